"""Exact nearest neighbours in plain numpy: the oracle that every other index is tested against."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from recall.errors import IndexFormatError
from recall.index.base import Vector, Vectors, check_vectors
from recall.index.bundle import open_bundle, write_bundle
from recall.store import disk

_FILE: Final = "flat.bundle"


def nearest(rows: Vectors, vector: Vector, k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Inner products and numbers of the k best rows, best first, equal ones in row order; shapes (min(k, n),)."""
    scores = products(rows, vector)
    best = np.lexsort((np.arange(len(scores)), -scores))[: max(k, 0)]
    return scores[best], best.astype(np.int64)


def products(rows: Vectors, vector: Vector) -> NDArray[np.float32]:
    """Inner products of all rows, shape (n,). Unlike with `@`, equal rows get equal ones, wherever they stand."""
    scores: NDArray[np.float32] = np.einsum("ij,j->i", rows, vector)
    return scores


def best_rows(scores: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The k best scores, best first, equal ones in row order, with their numbers; what is no number comes last."""
    scores = np.where(np.isnan(scores), np.float32(-np.inf), scores)  # a damaged row may hold anything
    numbers = np.arange(len(scores))
    if 0 < k < len(scores):
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        numbers = np.flatnonzero(scores >= least)
    order = numbers[np.lexsort((numbers, -scores[numbers]))[: max(k, 0)]]
    return scores[order], order.astype(np.int64)


def save_rows(file: Path, keys: Sequence[str], rows: Vectors) -> None:
    """Writes rows and their keys as one file, exchanged in one step; the folder is made when it is missing."""
    disk.make_folder(file.parent)
    fresh = file.with_name(f"{file.name}.new")
    disk.delete(fresh)
    write_bundle(fresh, {"keys": np.frombuffer(msgspec.json.encode(keys), np.uint8), "rows": rows})
    disk.rename(fresh, file)
    disk.flush_folder(file.parent)


def load_rows(file: Path) -> tuple[list[str], Vectors]:
    """What `save_rows` wrote: keys and rows, shape (n, dim).

    Raises:
        IndexFormatError: absent, damaged or of another kind.
    """
    arrays = open_bundle(file, check=True)
    try:
        rows, keys = arrays["rows"], msgspec.json.decode(arrays["keys"].tobytes(), type=list[str])
    except (KeyError, msgspec.DecodeError) as error:
        raise IndexFormatError(f"{file}: not a saved index: {error}") from error
    if rows.ndim != 2 or len(keys) != len(rows):
        raise IndexFormatError(f"{file}: {len(keys)} keys for an array of shape {rows.shape}")
    return keys, np.array(rows, np.float32)


class FlatIndex:
    """VectorIndex over one array; every search looks at every row.

    Args:
        dim: length of a vector.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._keys: list[str] = []
        self._rows: Vectors = np.zeros((0, dim), np.float32)

    def upsert(self, keys: Sequence[str], vectors: Vectors) -> None:
        """Adds the rows, replacing those of keys that are there; within one call the last row of a key wins.

        Raises:
            EncoderError: the vectors are not of shape (len(keys), dim).
        """
        rows = check_vectors(vectors, rows=len(keys), dim=self.dim)
        latest = {key: row for row, key in enumerate(keys)}
        self.remove(list(latest))
        self._keys = [*self._keys, *latest]
        self._rows = np.vstack([self._rows, rows[list(latest.values())]])

    def remove(self, keys: Sequence[str]) -> None:
        """Forgets the keys; unknown ones are ignored."""
        gone = set(keys)
        stay = [number for number, key in enumerate(self._keys) if key not in gone]
        self._keys = [self._keys[number] for number in stay]
        self._rows = self._rows[stay]

    def search(self, vector: Vector, k: int) -> list[tuple[str, float]]:
        """The k best keys with their inner product, best first, equal ones by key; none for an all-zero vector."""
        if k <= 0 or not self._keys or not np.any(vector):
            return []
        scores = products(self._rows, vector)
        ranked = sorted(zip(self._keys, scores.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0]))
        return ranked[:k]

    def save(self, folder: Path) -> None:
        """Writes the index into the folder as one file, exchanged in one step."""
        save_rows(folder / _FILE, self._keys, self._rows)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The index that was saved there.

        Raises:
            IndexFormatError: absent, damaged or of another kind.
        """
        keys, rows = load_rows(folder / _FILE)
        index = cls(rows.shape[1])
        index._keys, index._rows = keys, rows
        return index

    def __len__(self) -> int:
        """How many keys it holds."""
        return len(self._keys)
