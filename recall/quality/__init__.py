"""What is wrong with memory files, and what of it can be mended safely."""
