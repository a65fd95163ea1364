"""Derived data: catalog, postings, vectors, and the sync that keeps them true to the files; it can be rebuilt."""
