"""Benchmarks: one question a script, run as `python -m bench.NAME`; see README.md beside this file."""
