"""Nearness of topics to a query: the cosine of its vector with the best of a topic's chunks.

Up to a size all topics are looked at: what takes time is to read the rows, and to look for a few reads as many. In a
larger memory the codes of the snapshot (index.approximate) say which topics are likely to be near; cosines are exact
all the same, and only the choice is not.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from recall.index.base import Products, Vector
from recall.index.flat import best_rows
from recall.index.sets import distinct
from recall.index.snapshot import Snapshot
from recall.search.scored import Usual

_LIKELY_ROWS: Final = 256
_DEEPER: Final = 8
_SAMPLE: Final = 512
# When one topic in so many is allowed, comparing those alone is faster than searching among the others.
_FEW: Final = 16


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """Topics of one snapshot; parallel arrays.

    Attributes:
        positions: each topic once, rising.
        cosines: of the query with the best chunk; not a number where a stored vector is damaged.
    """

    positions: NDArray[np.int64]
    cosines: NDArray[np.float32]


def near_topics(
    snapshot: Snapshot,
    vector: Vector,
    *,
    allowed: NDArray[np.bool_],
    others: NDArray[np.int64],
    k: int,
    products: Products,
) -> Near:
    """All topics that have a vector; where that takes too long, those that are likely to be near, and the others given.

    Args:
        snapshot: where to look.
        vector: the query, of unit length, shape (dim,).
        allowed: which topics are wanted, shape (n,); others may come as well.
        others: positions of topics that are to be compared in any case.
        k: how many allowed ones there have to be at least, if there are so many.
        products: of rows and a vector.
    """
    if np.count_nonzero(allowed) * _FEW <= len(snapshot):
        return cosines(snapshot, vector, np.flatnonzero(allowed))
    if snapshot.tier is None:
        return _all_cosines(snapshot, vector, products)
    likely = _likely(snapshot, vector, k, allowed=allowed, products=products)
    return cosines(snapshot, vector, distinct(np.concatenate((likely, others))))


def _all_cosines(snapshot: Snapshot, vector: Vector, products: Products) -> Near:
    first = snapshot.first_chunks
    if not len(first):
        return Near(first, np.zeros(0, np.float32))
    scores = products(snapshot.rows, vector)[snapshot.chunk_row]
    return Near(snapshot.chunk_owner[first], np.fmax.reduceat(scores, first))


def cosines(snapshot: Snapshot, vector: Vector, positions: NDArray[np.int64]) -> Near:
    """The given topics, whose positions rise; those without vectors are left out."""
    start, stop = (np.searchsorted(snapshot.chunk_owner, positions, side) for side in ("left", "right"))
    sizes = stop - start
    positions, start, sizes = positions[sizes > 0], start[sizes > 0], sizes[sizes > 0]
    if not len(positions):
        return Near(positions, np.zeros(0, np.float32))
    begin = np.cumsum(sizes) - sizes
    chunks = np.repeat(start - begin, sizes) + np.arange(sizes.sum())
    scores = snapshot.rows[snapshot.chunk_row[chunks]] @ vector
    return Near(positions, np.fmax.reduceat(scores, begin))


def usual(snapshot: Snapshot, vector: Vector, near: Near) -> Usual:
    """What the topics of the snapshot show with this query.

    Args:
        snapshot: where was looked.
        vector: the query, shape (dim,).
        near: what was compared; where that was not everything, a sample of the memory stands for it: how well a topic
            fits must not depend on what else was wanted.
    """
    topics = len(snapshot.first_chunks)
    if len(near.positions) < topics:
        near = cosines(snapshot, vector, distinct(np.linspace(0, len(snapshot) - 1, _SAMPLE).astype(np.int64)))
    found = near.cosines[~np.isnan(near.cosines)]
    return Usual(float(found.mean(dtype=np.float64)) * topics, topics) if len(found) else Usual()


def _likely(
    snapshot: Snapshot, vector: Vector, k: int, *, allowed: NDArray[np.bool_], products: Products
) -> NDArray[np.int64]:
    """Positions of topics that are likely to be near, at least k allowed ones if there are so many."""
    assert snapshot.tier is not None  # noqa: S101 - the caller has looked
    depth = max(_LIKELY_ROWS, 4 * k)
    while True:
        _, rows = snapshot.tier.nearest(
            snapshot.rows, vector, depth, exact=lambda part, query, most: best_rows(products(part, query), most)
        )
        is_likely = np.zeros(len(snapshot.rows), np.bool_)
        is_likely[rows] = True
        owners = distinct(snapshot.chunk_owner[is_likely[snapshot.chunk_row]])
        if np.count_nonzero(allowed[owners]) >= k or depth >= len(snapshot.rows):
            return owners
        depth *= _DEEPER


def only_vector(snapshot: Snapshot, position: int) -> Vector | None:
    """The vector of the topic at the position; None when it has several or none."""
    start, stop = (int(np.searchsorted(snapshot.chunk_owner, position, side)) for side in ("left", "right"))
    return snapshot.rows[snapshot.chunk_row[start]] if stop - start == 1 else None


def best_chunks(snapshot: Snapshot, vector: Vector, positions: NDArray[np.int64]) -> list[int]:
    """For each topic the number of its chunk that lies nearest, 0 for a topic without any."""
    start, stop = (np.searchsorted(snapshot.chunk_owner, positions, side) for side in ("left", "right"))
    return [
        int(snapshot.chunk_number[first + _best(snapshot.rows[snapshot.chunk_row[first:last]] @ vector)])
        if last > first
        else 0
        for first, last in zip(start.tolist(), stop.tolist(), strict=True)
    ]


def _best(scores: NDArray[np.float32]) -> int:
    """Place of the greatest; what is not a number is of a damaged vector."""
    return int(np.argmax(np.where(np.isnan(scores), -np.inf, scores)))
