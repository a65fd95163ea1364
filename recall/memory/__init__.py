"""The place where the parts meet."""
