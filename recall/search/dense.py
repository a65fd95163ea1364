"""Ranking by meaning: the topics whose chunks lie nearest to the query's vector. A topic counts by its best chunk."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from recall.index.base import Nearest, Vector
from recall.index.snapshot import Snapshot

__all__ = ["Near", "Nearest", "cosines", "nearest_topics"]

# Looking at every row costs the same for one row as for hundreds.
_FIRST_DEPTH: Final = 512
_DEEPER: Final = 8

# When one topic in so many is allowed, comparing those alone is faster than searching among the others.
_FEW: Final = 16


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """Topics of one snapshot with their best chunk; parallel arrays.

    Attributes:
        positions: each topic once.
        cosines: of the query with the best chunk.
        chunks: number of that chunk in its topic.
    """

    positions: NDArray[np.int64]
    cosines: NDArray[np.float32]
    chunks: NDArray[np.int64]


def nearest_topics(
    snapshot: Snapshot, vector: Vector, count: int, *, allowed: NDArray[np.bool_], nearest: Nearest
) -> Near:
    """The `count` allowed topics that lie nearest, best first; fewer only when there are fewer.

    In a snapshot with codes a few of the nearest may be missing, next best ones in their place; cosines are exact, and
    the search goes on until `count` allowed topics are found, however many are not allowed.

    Args:
        snapshot: where to look.
        vector: the query, of unit length, shape (dim,).
        count: topics wanted.
        allowed: which topics may be found, shape (n,).
        nearest: exact search over rows.
    """
    if np.count_nonzero(allowed) * _FEW <= len(snapshot):
        return _nearest_of(cosines(snapshot, vector, np.flatnonzero(allowed)), count)
    depth = 2 * count if snapshot.tier else max(2 * count, _FIRST_DEPTH)
    while True:
        scores, rows = _rows(snapshot, vector, depth, nearest)
        chunks, source = _chunks_of(snapshot, rows)
        owners = snapshot.chunk_owner[chunks]
        keep = allowed[owners]
        positions, first = np.unique(owners[keep], return_index=True)
        if len(positions) >= count or depth >= len(snapshot.rows):
            # np.unique gives the first place of each topic, which is its best chunk, since rows come best first.
            best = np.sort(first)[:count]
            chosen = chunks[keep][best]
            return Near(owners[keep][best], scores[source][keep][best], snapshot.chunk_number[chosen])
        depth *= _DEEPER


def _nearest_of(near: Near, count: int) -> Near:
    best = np.argsort(-near.cosines, kind="stable")[:count]
    return Near(near.positions[best], near.cosines[best], near.chunks[best])


def _rows(
    snapshot: Snapshot, vector: Vector, depth: int, nearest: Nearest
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The best rows; all of them, exactly, when the depth is that of the file."""
    if snapshot.tier is None:
        return nearest(snapshot.rows, vector, depth)
    return snapshot.tier.nearest(snapshot.rows, vector, depth, exact=nearest)


def _chunks_of(snapshot: Snapshot, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Chunks whose vector is one of the rows, in the order of the rows, and for each the place of its row there."""
    # Half a millisecond for 150,000 chunks each time; keeping them in order of their rows is 16 after every change.
    places = np.full(len(snapshot.rows), -1, np.int32)
    places[rows] = np.arange(len(rows))
    place = places[snapshot.chunk_row]
    chunks = np.flatnonzero(place >= 0)
    chunks = chunks[np.argsort(place[chunks], kind="stable")]
    return chunks, place[chunks].astype(np.int64)


def cosines(snapshot: Snapshot, vector: Vector, positions: NDArray[np.int64]) -> Near:
    """The given topics with their best chunk; those without vectors are left out."""
    start = np.searchsorted(snapshot.chunk_owner, positions, "left")
    stop = np.searchsorted(snapshot.chunk_owner, positions, "right")
    have = stop > start
    start, sizes, positions = start[have], (stop - start)[have], positions[have]
    if not len(positions):
        return Near(positions, np.zeros(0, np.float32), np.zeros(0, np.int64))
    begin = np.cumsum(sizes) - sizes
    chunks = np.repeat(start - begin, sizes) + np.arange(sizes.sum())
    scores = snapshot.rows[snapshot.chunk_row[chunks]] @ vector
    best = np.maximum.reduceat(scores, begin)
    # The first chunk that reaches its topic's best score.
    is_best = np.flatnonzero(scores == np.repeat(best, sizes))
    _, first = np.unique(np.repeat(np.arange(len(sizes)), sizes)[is_best], return_index=True)
    return Near(positions, best, snapshot.chunk_number[chunks[is_best[first]]])
