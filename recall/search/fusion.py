"""Words and meaning on one absolute scale: score = cosine + 0.4 F.

F is BM25 divided by what the query could reach at most. Ranks and min-max scaling lose up to .3 of nDCG across
languages, because one chance word then counts as a full match; an absolute scale also lets a floor say that nothing
fits (spec models.md section 4).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from recall.index.base import Vector
from recall.index.snapshot import Snapshot
from recall.search.dense import Near, Nearest, cosines, nearest_topics
from recall.search.weights import WORD_WEIGHT, WORDS_ALONE

_FIRST_DEPTH: Final = 64


@dataclass(frozen=True, slots=True, order=True)
class Scored:
    """One topic of one snapshot with its parts.

    Attributes:
        score: what it is ranked by.
        position: its place in the snapshot.
        cosine: None when it has no vector.
        coverage: F.
        chunk: number of the best chunk.
    """

    score: float
    position: int
    cosine: float | None
    coverage: float
    chunk: int


def fuse(
    snapshot: Snapshot,
    coverage: NDArray[np.float64],
    vector: Vector | None,
    k: int,
    *,
    allowed: NDArray[np.bool_],
    nearest: Nearest,
) -> list[Scored]:
    """The k best topics of a snapshot, best first, exactly.

    Candidates come from the top of both rankings. Nothing outside them can score more than the last cosine plus the
    weighted last F (Fagin's threshold), so both are read deeper until the k-th candidate is better.

    Args:
        snapshot: where to look.
        coverage: F of each topic, shape (n,).
        vector: the query, shape (dim,); None or all zero when only words can judge.
        k: topics wanted.
        allowed: which topics may be found, shape (n,).
        nearest: exact search over rows.
    """
    if k <= 0:
        return []
    eligible = np.where(allowed, coverage, 0.0)
    by_words = np.argsort(-eligible, kind="stable")
    by_words = by_words[: np.count_nonzero(eligible)]
    with_vectors = vector if vector is not None and np.any(vector) and len(snapshot.chunk_row) else None
    depth = max(_FIRST_DEPTH, 4 * k)
    while True:
        top_words = by_words[:depth]
        near = _near(snapshot, with_vectors, depth, allowed=allowed, nearest=nearest, more=top_words)
        found = _combine(near, coverage, top_words)
        found.sort(key=lambda scored: rank_key(snapshot, scored))
        exhausted = depth >= len(snapshot)
        if exhausted or (len(found) >= k and found[k - 1].score > _bound(near, coverage, by_words, depth)):
            return found[:k]
        depth *= 4


def rank_key(snapshot: Snapshot, scored: Scored) -> tuple[float, float, str]:
    """Sorts better scores first, then newer topics, then by path: nothing that depends on how the index came about."""
    return -scored.score, -float(snapshot.mtimes[scored.position]), snapshot.paths[scored.position]


def _near(
    snapshot: Snapshot,
    vector: Vector | None,
    depth: int,
    *,
    allowed: NDArray[np.bool_],
    nearest: Nearest,
    more: NDArray[np.int64],
) -> Near:
    """The nearest topics, best first, and after them those of `more` that are not among them."""
    if vector is None:
        nothing = np.zeros(0, np.int64)
        return Near(nothing, np.zeros(0, np.float32), nothing)
    near = nearest_topics(snapshot, vector, depth, allowed=allowed, nearest=nearest)
    rest = cosines(snapshot, vector, np.sort(np.setdiff1d(more, near.positions)))
    return Near(
        np.concatenate([near.positions, rest.positions]),
        np.concatenate([near.cosines, rest.cosines]),
        np.concatenate([near.chunks, rest.chunks]),
    )


def _combine(near: Near, coverage: NDArray[np.float64], by_words: NDArray[np.int64]) -> list[Scored]:
    found = [
        Scored(
            float(cosine) + WORD_WEIGHT * float(coverage[at]), int(at), float(cosine), float(coverage[at]), int(chunk)
        )
        for at, cosine, chunk in zip(near.positions, near.cosines, near.chunks, strict=True)
    ]
    without = np.setdiff1d(by_words, near.positions)
    return found + [Scored(WORDS_ALONE * float(coverage[at]), int(at), None, float(coverage[at]), 0) for at in without]


def _bound(near: Near, coverage: NDArray[np.float64], by_words: NDArray[np.int64], depth: int) -> float:
    """What a topic outside the candidates could score at most."""
    last_words = float(coverage[by_words[depth]]) if len(by_words) > depth else 0.0
    last_cosine = float(near.cosines[depth - 1]) if len(near.cosines) >= depth else -1.0
    return max(last_cosine + WORD_WEIGHT * last_words, WORDS_ALONE * last_words)
