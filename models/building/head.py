"""The language-neutral head: one linear map, so that a note is found whatever language it and the question are in.

A multilingual model puts texts of one language close together and squeezes all cosines into a narrow band. Subtracting
the mean of all vectors widens the band; projecting out the direction from one language to the other, and the main
directions in which translations differ, lets languages lie upon each other (spec models.md section 4).
"""

from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Head:
    """x -> projection (x - mean), for x of unit length; the result is brought to unit length again.

    Attributes:
        mean: shape (dim,).
        projection: shape (dim, dim), symmetric.
    """

    mean: Matrix
    projection: Matrix

    def __call__(self, vectors: NDArray[np.float32]) -> Matrix:
        """Rows of unit length, shape (n, dim)."""
        return _unit((_unit(np.asarray(vectors, np.float64)) - self.mean) @ self.projection)


def pairs() -> tuple[list[str], list[str]]:
    """Texts in Chinese and, at the same places, in English: written for this project."""
    lines = files(__package__).joinpath("pairs.tsv").read_text(encoding="utf-8").splitlines()
    chinese, english = zip(*(line.split("\t") for line in lines), strict=True)
    return [*chinese], [*english]


def fit(one: NDArray[np.float32], other: NDArray[np.float32], *, directions: int) -> Head:
    """The head that brings two languages together.

    Args:
        one: vectors of texts, shape (n, dim).
        other: vectors of their translations, shape (n, dim).
        directions: how many are projected out: first the one between the languages, then the main ones of the
            differences between a text and its translation. 0 subtracts the mean only.
    """
    left, right = _unit(np.asarray(one, np.float64)), _unit(np.asarray(other, np.float64))
    dim = left.shape[1]
    mean = (left.mean(axis=0) + right.mean(axis=0)) / 2
    if directions == 0:
        return Head(mean, np.eye(dim))
    between = left.mean(axis=0) - right.mean(axis=0)
    differences = left - right
    main = np.linalg.eigh(differences.T @ differences)[1][:, ::-1][:, : directions - 1]
    basis, _ = np.linalg.qr(np.column_stack([between, main]))
    return Head(mean, np.eye(dim) - basis @ basis.T)


def _unit(vectors: Matrix) -> Matrix:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: Matrix = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit
