"""Memory files on disk: finding folders, scanning them, parsing topics. The only package that writes memory files."""
