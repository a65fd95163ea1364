"""Vectors on disk: one append-only file of float32 rows a model, mapped by every process that reads it.

Crash rule: rows are flushed to the disk before anybody commits their numbers, and a writer appends after the last
committed row, so that rows of a writer that died are simply overwritten.
"""

import mmap
import os
from pathlib import Path

import numpy as np

from recall.index.base import Vectors


class VectorFile:
    """Rows of one model.

    Args:
        file: created on the first append.
        dim: length of a row.
    """

    def __init__(self, file: Path, dim: int) -> None:
        self.file = file
        self.dim = dim

    def append(self, rows: Vectors, *, at: int) -> None:
        """Writes the rows from row number `at` on and flushes them.

        Raises:
            OSError: the disk is full or the folder cannot be written; rows before `at` are untouched.
        """
        descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            data = memoryview(np.ascontiguousarray(rows, np.float32).tobytes())
            offset = at * self.dim * 4
            while data:
                written = os.pwrite(descriptor, data, offset)
                data, offset = data[written:], offset + written
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def view(self, count: int) -> Vectors:
        """The first `count` rows, mapped read-only, shape (count, dim); fewer when the file was cut short."""
        if count == 0:
            return np.zeros((0, self.dim), np.float32)
        try:
            with self.file.open("rb") as stream:
                mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return np.zeros((0, self.dim), np.float32)
        rows = min(count, len(mapped) // (self.dim * 4))
        return np.frombuffer(mapped, np.float32, rows * self.dim).reshape(rows, self.dim)
