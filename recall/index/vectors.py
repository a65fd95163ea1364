"""Vectors on disk: one append-only file of float32 rows a model, mapped by every process that reads it.

Crash rule: rows, and with the first of them the name of the file, are flushed to the disk before anybody commits their
numbers, and a writer appends after the last committed row, so that rows of a writer that died are simply overwritten.
"""

import mmap
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from recall.errors import IndexFormatError
from recall.index.base import Vectors
from recall.store import disk

_ROUNDING: Final = 1e-3


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
            IndexFormatError: there are fewer rows than `at`; the file was cut short.
        """
        offset = at * self.dim * 4
        if at and self._size() < offset:  # writing would leave a hole, and nobody would notice
            raise IndexFormatError(f"{self.file}: holds fewer than {at} rows")
        disk.write_at(self.file, memoryview(np.ascontiguousarray(rows, np.float32).tobytes()), offset)
        if at == 0:
            disk.flush_folder(self.file.parent)

    def _size(self) -> int:
        try:
            return self.file.stat().st_size
        except FileNotFoundError:
            return 0

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


def is_unit(rows: Vectors) -> NDArray[np.bool_]:
    """Which rows are of unit length, as all that are stored have to be; others are damaged. Shape (n,)."""
    with np.errstate(all="ignore"):
        return np.asarray(np.abs(np.einsum("ij,ij->i", rows, rows) - 1) < _ROUNDING, np.bool_)
