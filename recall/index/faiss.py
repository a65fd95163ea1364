"""Nearest neighbours by FAISS; the only user of the faiss library.

`products` and `nearest` read rows where they lie, mapped from the vector file, exactly. `Codes` finds rows that are
likely to be near without reading them (index.approximate). `FaissIndex` is exact search behind string keys.
"""

import itertools
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Self

import faiss
import numpy as np
from numpy.typing import NDArray

from recall.index.base import Vector, Vectors, check_vectors
from recall.index.flat import best_rows, load_rows, save_rows
from recall.index.native import NATIVE

VERSION: Final[str] = faiss.__version__
"""Of the library: codes are read by the one that made them."""

SAMPLE: Final = 2048
"""Rows that codes are learnt from at most; more of them, or more rounds, find no more and take seconds."""

_ROUNDS: Final = 10
_SHORT_DIM: Final = 9
_FILE: Final = "faiss.bundle"

# One query is one thread's work; more of them only fight with the host for two cores.
faiss.omp_set_num_threads(1)


def products(rows: Vectors, vector: Vector) -> NDArray[np.float32]:
    """Inner products of all rows, shape (n,); one pass over the memory, which costs what a search for one row does."""
    if (short := _SHORT_DIM - len(vector)) > 0:  # for these FAISS sums several rows at once, each in its own way
        rows, vector = np.pad(rows, ((0, 0), (0, short))), np.pad(vector, (0, short))
    rows, vector = np.ascontiguousarray(rows, np.float32), np.ascontiguousarray(vector, np.float32)
    scores = np.empty(len(rows), np.float32)
    if len(rows):
        pointers = [faiss.swig_ptr(array) for array in (scores, vector, rows)]
        with NATIVE.call():
            faiss.fvec_inner_products_ny(*pointers, *rows.shape[::-1])  # type: ignore[attr-defined]  # not in its stubs
    return scores


def nearest(rows: Vectors, vector: Vector, k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Inner products and numbers of the k best rows, best first, equal ones in row order; shapes (min(k, n),)."""
    return best_rows(products(rows, vector), k)


def _with_ties(
    search: Callable[[int], tuple[NDArray[np.float32], NDArray[np.int64]]], k: int, count: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The k best of `count` with all that tie with the last of them; FAISS alone would keep any of those."""
    most = min(k + 1, count)
    with NATIVE.call():
        scores, numbers = search(most)
        while most < count and scores[0, -1] == scores[0, k - 1]:
            most = min(4 * most, count)
            scores, numbers = search(most)
    return scores[0], numbers[0]


class Codes:
    """Rows as codes of half a byte for two numbers each, all of which a search looks at: fast, small and inexact.

    They take a sixteenth of the space of the rows. At 150,000 rows a search by them takes a seventh of the time, the
    reading of 512 rows included, and finds 99 of 100 of the 64 nearest (bench/approximate.py). Graphs (HNSW) and lists
    of clusters (IVF) are no match: a request that lies far from all notes makes them miss nearly everything.
    """

    def __init__(self, index: Any) -> None:
        self._index = index

    @classmethod
    def learn(cls, sample: Vectors) -> Self:
        """Empty codes for rows like those of the sample.

        Raises:
            RuntimeError: the sample is too small, or holds what is no number.
        """
        dim = sample.shape[1]
        index = faiss.IndexPQFastScan(dim, dim // 2 if dim % 2 == 0 else dim, 4, faiss.METRIC_INNER_PRODUCT)
        index.pq.cp.niter = _ROUNDS
        index.pq.cp.min_points_per_centroid = 1  # FAISS would print that it wants more
        with NATIVE.call():
            index.train(np.ascontiguousarray(sample[:SAMPLE], np.float32))
        return cls(index)

    def add(self, rows: Vectors) -> None:
        """Appends rows; their numbers go on where the last ended."""
        with NATIVE.call():
            self._index.add(np.ascontiguousarray(rows, np.float32))

    def likely(self, vector: Vector, count: int) -> NDArray[np.int64]:
        """Numbers of at most `count` rows that seem nearest, in no order."""
        with NATIVE.call():
            _, numbers = self._index.search(np.ascontiguousarray(vector[None], np.float32), min(count, len(self)))
        return np.asarray(numbers[0][numbers[0] >= 0], np.int64)

    def dump(self) -> NDArray[np.uint8]:
        """The codes as bytes for `restore`."""
        return np.asarray(faiss.serialize_index(self._index), np.uint8)

    @classmethod
    def restore(cls, data: NDArray[np.uint8]) -> Self:
        """What `dump` gave; the same library must have done it, and the bytes be whole: FAISS trusts what it reads.

        Raises:
            RuntimeError: it is something else.
        """
        return cls(faiss.deserialize_index(data))

    def __len__(self) -> int:
        """How many rows it holds."""
        return int(self._index.ntotal)


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
            self._add(list(latest), rows[list(latest.values())])

    def remove(self, keys: Sequence[str]) -> None:
        """Forgets the keys; unknown ones are ignored."""
        with self._lock:
            self._remove(dict.fromkeys(keys))

    def _add(self, keys: Sequence[str], rows: Vectors) -> None:
        numbers = {key: next(self._next) for key in keys}
        if numbers:
            self._index.add_with_ids(rows, np.fromiter(numbers.values(), np.int64))
        self._numbers.update(numbers)
        self._keys.update((number, key) for key, number in numbers.items())

    def _remove(self, keys: Iterable[str]) -> None:
        gone = [self._numbers.pop(key) for key in keys if key in self._numbers]
        for number in gone:
            del self._keys[number]
        if gone:
            self._index.remove_ids(np.asarray(gone, np.int64))

    def search(self, vector: Vector, k: int) -> list[tuple[str, float]]:
        """The k best keys with their inner product, best first, equal ones by key; none for an all-zero vector."""
        with self._lock:
            k = min(k, len(self._numbers))
            if k <= 0 or not np.any(vector):
                return []
            query = np.ascontiguousarray(vector[None], np.float32)
            scores, numbers = _with_ties(lambda most: self._index.search(query, most), k, len(self._numbers))
            found = [(self._keys[int(number)], float(score)) for score, number in zip(scores, numbers, strict=True)]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:k]

    def save(self, folder: Path) -> None:
        """Writes the index into the folder as one file, exchanged in one step."""
        with self._lock:
            # Keys and rows alone: FAISS trusts what it reads, so that a damaged file of its own can end the process.
            keys = [self._keys[int(number)] for number in faiss.vector_to_array(self._index.id_map)]
            rows = self._index.index.reconstruct_n(0, len(keys))
        save_rows(folder / _FILE, keys, rows)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The index that was saved there.

        Raises:
            IndexFormatError: absent, damaged or of another kind.
        """
        keys, rows = load_rows(folder / _FILE)
        index = cls(rows.shape[1])
        index._add(keys, rows)
        return index

    def __len__(self) -> int:
        """How many keys it holds."""
        return len(self._numbers)
