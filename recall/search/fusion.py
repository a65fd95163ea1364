"""Words and meaning on one absolute scale: score = cosine + 0.5 F, to which the best few get what their phrases bring.

F is BM25 divided by what the query could reach at most. Ranks and min-max scaling lose up to .3 of nDCG across
languages, because one chance word then counts as a full match; an absolute scale also lets a floor say that nothing
fits (spec models.md section 4).
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from recall.index.base import Products, Vector
from recall.index.snapshot import Snapshot
from recall.search.dense import best_chunks, near_topics, usual
from recall.search.lexical import Words
from recall.search.scored import Scored, Usual
from recall.search.weights import WORD_WEIGHT, WORDS_ALONE

# Where codes choose what is compared, so many of the best by words are compared as well.
_BY_WORDS: Final = 256
_NONE: Final = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Fused:
    """The best topics of one snapshot.

    Attributes:
        best: best first.
        usual: what its topics show with the query.
    """

    best: list[Scored]
    usual: Usual


def fuse(
    snapshot: Snapshot,
    words: Words,
    vector: Vector | None,
    k: int,
    *,
    allowed: NDArray[np.bool_],
    products: Products,
) -> Fused:
    """The k best topics of a snapshot; exactly, unless codes choose what is compared (search.dense).

    With codes, a topic can be missing that neither the codes take for near nor the words for one of the best.

    Args:
        snapshot: where to look.
        words: what the words of the query say of its topics.
        vector: the query, shape (dim,); None or all zero when only words can judge.
        k: topics wanted.
        allowed: which topics may be found, shape (n,).
        products: of rows and a vector.
    """
    cosines, known, coverage = np.full(len(snapshot), np.nan), Usual(), words.coverage
    scores = np.where(allowed & (coverage > 0), WORDS_ALONE * coverage, -np.inf)
    if vector is not None and vector.any() and len(snapshot.chunk_row):
        by_words = largest(np.where(allowed, coverage, 0.0), max(_BY_WORDS, k), above=0.0) if snapshot.tier else _NONE
        near = near_topics(snapshot, vector, allowed=allowed, others=by_words, k=k, products=products)
        cosines[near.positions] = near.cosines
        known = usual(snapshot, vector, near)
        has_cosine = allowed & ~np.isnan(cosines)
        if snapshot.tier is not None:  # what has a vector and was not compared is not judged by its words alone
            scores[snapshot.chunk_owner] = -np.inf
        scores[has_cosine] = cosines[has_cosine] + WORD_WEIGHT * coverage[has_cosine]
    best = largest(scores, k, above=-np.inf)
    ranked = sorted(best.tolist(), key=lambda at: rank_key(snapshot, float(scores[at]), at))[: max(k, 0)]
    chunks = best_chunks(snapshot, vector, np.asarray(ranked, np.int64)) if vector is not None else [0] * len(ranked)
    return Fused(
        [
            Scored(
                float(scores[at]),
                at,
                None if np.isnan(cosines[at]) else float(cosines[at]),
                float(coverage[at]),
                chunk,
                int(words.matched[at]),
            )
            for at, chunk in zip(ranked, chunks, strict=True)
        ],
        known,
    )


def rank_key(snapshot: Snapshot, score: float, position: int) -> tuple[float, float, str]:
    """Sorts better scores first, then newer topics, then by path: nothing that depends on how the index came about."""
    return -score, -float(snapshot.mtimes[position]), snapshot.paths[position]


def largest(values: NDArray[Any], k: int, *, above: float) -> NDArray[np.int64]:
    """Places of the k largest values above a border and of all that equal the last of them, in rising order."""
    places = np.flatnonzero(values > above)
    if not 0 < k < len(places):
        return places[: len(places) if k > 0 else 0]
    least = np.partition(values[places], len(places) - k)[len(places) - k]
    best: NDArray[np.int64] = places[values[places] >= least]
    return best
