"""Exact nearest neighbours by FAISS; the only user of the faiss library.

`nearest` searches rows where they lie, mapped from the vector file. `FaissIndex` is the same search behind string keys.
"""

import itertools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

import faiss
import msgspec
import numpy as np
from numpy.typing import NDArray

from recall.errors import IndexFormatError
from recall.index.base import Vector, Vectors, check_vectors
from recall.index.bundle import open_bundle, write_bundle
from recall.index.native import NATIVE

_FILE: Final = "faiss.bundle"

# One query is one thread's work; more of them only fight with the host for two cores.
faiss.omp_set_num_threads(1)


def nearest(rows: Vectors, vector: Vector, k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Inner products and numbers of the k best rows, best first, equal ones in row order; shapes (min(k, n),)."""
    k = min(k, len(rows))
    if k <= 0:
        return np.zeros(0, np.float32), np.zeros(0, np.int64)
    with NATIVE.call():
        query = np.ascontiguousarray(vector[None], np.float32)
        scores, numbers = faiss.knn(query, rows, k, metric=faiss.METRIC_INNER_PRODUCT)
    order = np.lexsort((numbers[0], -scores[0]))
    return scores[0][order], numbers[0][order].astype(np.int64)


class FaissIndex:
    """VectorIndex over an IndexFlatIP with numbers of its own, which are never given twice. Thread-safe.

    Args:
        dim: length of a vector.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._index: Any = faiss.IndexIDMap2(faiss.IndexFlatIP(dim))
        self._numbers: dict[str, int] = {}
        self._keys: dict[int, str] = {}
        self._next = itertools.count()
        self._lock = threading.Lock()

    def upsert(self, keys: Sequence[str], vectors: Vectors) -> None:
        """Adds the rows, replacing those of keys that are there; within one call the last row of a key wins.

        Raises:
            EncoderError: the vectors are not of shape (len(keys), dim).
        """
        rows = check_vectors(vectors, rows=len(keys), dim=self.dim)
        latest = {key: row for row, key in enumerate(keys)}
        with self._lock:
            self._remove(latest)
            numbers = {key: next(self._next) for key in latest}
            if numbers:
                self._index.add_with_ids(rows[list(latest.values())], np.fromiter(numbers.values(), np.int64))
            self._numbers.update(numbers)
            self._keys.update((number, key) for key, number in numbers.items())

    def remove(self, keys: Sequence[str]) -> None:
        """Forgets the keys; unknown ones are ignored."""
        with self._lock:
            self._remove(dict.fromkeys(keys, 0))

    def _remove(self, keys: dict[str, int]) -> None:
        gone = [self._numbers.pop(key) for key in keys if key in self._numbers]
        for number in gone:
            del self._keys[number]
        if gone:
            self._index.remove_ids(np.asarray(gone, np.int64))

    def search(self, vector: Vector, k: int) -> list[tuple[str, float]]:
        """The k best keys with their inner product, best first, equal ones by key; none for an all-zero vector."""
        with self._lock:
            wanted = min(k, len(self._numbers))
            if wanted <= 0 or not np.any(vector):
                return []
            scores, numbers = self._index.search(np.ascontiguousarray(vector[None], np.float32), wanted)
            found = [
                (self._keys[int(number)], float(score))
                for score, number in zip(scores[0], numbers[0], strict=True)
                if number >= 0  # FAISS fills up with -1 where it finds less than it was asked for
            ]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))

    def save(self, folder: Path) -> None:
        """Writes the index into the folder as one file, exchanged in one step."""
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / f"{_FILE}.new"
        fresh.unlink(missing_ok=True)
        with self._lock:
            keys = msgspec.json.encode([[number, key] for key, number in self._numbers.items()])
            arrays = {"keys": np.frombuffer(keys, np.uint8), "index": faiss.serialize_index(self._index)}
        write_bundle(fresh, arrays)
        fresh.replace(folder / _FILE)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The index that was saved there.

        Raises:
            IndexFormatError: absent, damaged or of another kind.
        """
        arrays = open_bundle(folder / _FILE)
        try:
            loaded = faiss.deserialize_index(np.array(arrays["index"]))
            pairs = msgspec.json.decode(arrays["keys"].tobytes(), type=list[tuple[int, str]])
        except (KeyError, RuntimeError, msgspec.DecodeError) as error:
            raise IndexFormatError(f"{folder / _FILE}: not a saved FAISS index: {error}") from error
        if not isinstance(loaded, faiss.IndexIDMap2) or loaded.ntotal != len(pairs):
            raise IndexFormatError(f"{folder / _FILE}: its {len(pairs)} keys belong to another index")
        index = cls(loaded.d)
        index._index = loaded
        index._numbers = {key: number for number, key in pairs}
        index._keys = dict(pairs)
        index._next = itertools.count(max(index._keys, default=-1) + 1)
        return index

    def __len__(self) -> int:
        """How many keys it holds."""
        return len(self._numbers)
