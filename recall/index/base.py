"""The two seams of the index: what turns text into vectors, and what finds the nearest of them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from recall.errors import EncoderError

Vectors = NDArray[np.float32]
"""Shape (n, dim), rows of unit length."""

Vector = NDArray[np.float32]
"""Shape (dim,), of unit length."""

Products = Callable[[Vectors, Vector], NDArray[np.float32]]
"""Inner products of all rows with a vector, shape (n,); in `index.faiss` and `index.flat`."""

Nearest = Callable[[Vectors, Vector, int], tuple[NDArray[np.float32], NDArray[np.int64]]]
"""The k best rows for a vector: inner products, best first, and row numbers; in `index.faiss` and `index.flat`."""


@runtime_checkable
class Encoder(Protocol):
    """Text to vectors of unit length.

    One that can be made anew from settings says so by a further attribute `recipe`, an EncoderConfig: then long work is
    left to a process of its own (index.child). It has to be safe to use from several threads.

    Attributes:
        name: what people call the model.
        fingerprint: changes whenever the same text could get another vector (weights, prefixes, dimension, head).
        dim: length of a vector.
        chunk_tokens: estimated tokens (text.chunks) that a text should have at most.
        floor: how well the best topic must fit a query for anything to be found (search.weights.fit).
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - described in the class docstring, as attributes
    @property
    def fingerprint(self) -> str: ...  # noqa: D102 - same
    @property
    def dim(self) -> int: ...  # noqa: D102 - same
    @property
    def chunk_tokens(self) -> int: ...  # noqa: D102 - same
    @property
    def floor(self) -> float: ...  # noqa: D102 - same

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text, shape (n, dim); every part of every text counts, however long it is."""
        ...

    def encode_query(self, text: str) -> Vector:
        """The query's vector, shape (dim,); all zero when the text says nothing that the model knows."""
        ...


class VectorIndex(Protocol):
    """Nearest neighbours by inner product of unit vectors, under string keys."""

    def upsert(self, keys: Sequence[str], vectors: Vectors) -> None:
        """Adds the rows, replacing those of keys that are there; within one call the last row of a key wins."""
        ...

    def remove(self, keys: Sequence[str]) -> None:
        """Forgets the keys; unknown ones are ignored."""
        ...

    def search(self, vector: Vector, k: int) -> list[tuple[str, float]]:
        """The k best keys with their inner product, best first, equal ones by key; fewer when there are fewer."""
        ...

    def save(self, folder: Path) -> None:
        """Writes the index into the folder; a reader sees the old one or the new one, never a mixture."""
        ...

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The index that was saved there.

        Raises:
            IndexFormatError: absent, damaged or of another kind.
        """
        ...

    def __len__(self) -> int:
        """How many keys it holds."""
        ...


def check_vectors(vectors: NDArray[np.floating], *, rows: int, dim: int) -> Vectors:
    """The vectors as float32 rows of unit length; rows that are all zero or hold something infinite become zero.

    Raises:
        EncoderError: of another shape than (rows, dim).
    """
    if vectors.shape != (rows, dim):
        raise EncoderError(f"expected vectors of shape ({rows}, {dim}), got {vectors.shape}")
    out = np.ascontiguousarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(out.astype(np.float64), axis=1, keepdims=True)
    fine = np.isfinite(lengths) & (lengths > 0)
    unit: Vectors = np.divide(out, lengths, out=np.zeros_like(out), where=fine, casting="same_kind")
    return unit


def usable(vectors: Vectors) -> NDArray[np.bool_]:
    """Which rows can be compared: finite and not all zero. Shape (n,)."""
    return np.asarray(np.isfinite(vectors).all(axis=1) & vectors.any(axis=1), np.bool_)
