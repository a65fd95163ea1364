"""Nearness of topics to a query: the cosine of its vector with the best of a topic's chunks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recall.index.base import Products, Vector
from recall.index.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """Topics of one snapshot; parallel arrays.

    Attributes:
        positions: each topic once, rising.
        cosines: of the query with the best chunk; not a number where a stored vector is damaged.
    """

    positions: NDArray[np.int64]
    cosines: NDArray[np.float32]


def all_cosines(snapshot: Snapshot, vector: Vector, products: Products) -> Near:
    """Every topic that has a vector.

    To look at all rows takes as long as to search for a few: what counts is the memory that is read.

    Args:
        snapshot: where to look.
        vector: the query, of unit length, shape (dim,).
        products: of rows and a vector.
    """
    first = snapshot.first_chunks
    if not len(first):
        return Near(first, np.zeros(0, np.float32))
    scores = products(snapshot.rows, vector)[snapshot.chunk_row]
    return Near(snapshot.chunk_owner[first], np.fmax.reduceat(scores, first))


def best_chunks(snapshot: Snapshot, vector: Vector, positions: NDArray[np.int64]) -> list[int]:
    """For each topic the number of its chunk that lies nearest, 0 for a topic without any."""
    start, stop = (np.searchsorted(snapshot.chunk_owner, positions, side) for side in ("left", "right"))
    return [
        int(snapshot.chunk_number[first + np.argmax(snapshot.rows[snapshot.chunk_row[first:last]] @ vector)])
        if last > first
        else 0
        for first, last in zip(start.tolist(), stop.tolist(), strict=True)
    ]
