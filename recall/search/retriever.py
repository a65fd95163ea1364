"""One query over the snapshots of all scopes: the founding heuristic, or words and meaning together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from recall.index.base import Products, Vector
from recall.index.snapshot import Snapshot
from recall.index.table import TYPES
from recall.search.fusion import Scored, fuse, largest, rank_key
from recall.search.lexical import heuristic_points, word_coverage
from recall.search.types import Coverage, Filter, Hit
from recall.search.weights import WORDS_ALONE
from recall.store.scan import scan_key
from recall.text.tokens import bounded as bounded  # noqa: PLC0414 - part of this module's surface

ALL: Final = Filter()
"""Everything may be found."""


@dataclass(frozen=True, slots=True)
class Found:
    """Hits of one search.

    Attributes:
        hits: best first.
        best: the best score that any topic reached, also one below the floor; None when nothing was scored.
    """

    hits: tuple[Hit, ...] = ()
    best: float | None = None


def search_heuristic(
    snapshots: Sequence[Snapshot], query: str, k: int, *, wanted: Filter = ALL, floor: float = 0.0
) -> Found:
    """The founding scorer's k best topics: score, then newer first, then scan order, project before user.

    Args:
        snapshots: where to look.
        query: the words.
        k: topics wanted.
        wanted: which topics may be found.
        floor: fused score that a topic must reach by its words alone; 0 for the founding behaviour, which answers
            with whatever shares a word.
    """
    ranked: list[tuple[float, float, int, object, int]] = []
    all_points = heuristic_points(snapshots, query)
    coverage = word_coverage(snapshots, query) if floor > 0 else [None] * len(snapshots)
    for number, (snapshot, points, shares) in enumerate(zip(snapshots, all_points, coverage, strict=True)):
        points[~allowed_mask(snapshot, wanted)] = 0
        if shares is not None:
            points[shares < floor / WORDS_ALONE] = 0
        for at in _leaders(points, snapshot.mtimes, k):
            key = scan_key(snapshot.paths[at])
            ranked.append((-int(points[at]), -float(snapshot.mtimes[at]), number, key, int(at)))
    ranked.sort()
    chosen = [(number, Scored(-points, at, None, 0.0, 0)) for points, _, number, _, at in ranked[:k]]
    return Found(_hits(snapshots, chosen, lexical=False), -ranked[0][0] if ranked else None)


def _leaders(points: NDArray[np.int32], mtimes: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Positions of the k best by points and time, with all that tie with the last of them; none without points."""
    best = largest(points, k, above=0)
    if k <= 0 or len(best) <= k:
        return best[: max(k, 0)]
    order = best[np.lexsort((-mtimes[best], -points[best]))]
    last = order[k - 1]
    ties = (points[order[k:]] == points[last]) & (mtimes[order[k:]] == mtimes[last])
    return order[: k + int(np.count_nonzero(ties))]


@dataclass(frozen=True, slots=True)
class Hybrid:
    """Words and meaning together.

    Attributes:
        products: of rows and a vector.
        floor: fused score below which a topic is taken for chance.
        encoder: fingerprint of the model that encodes queries; vectors of another one are not compared.
    """

    products: Products
    floor: float
    encoder: str

    def search(
        self, snapshots: Sequence[Snapshot], query: str, vector: Vector | None, k: int, *, wanted: Filter = ALL
    ) -> Found:
        """The k best topics at or above the floor, over all snapshots.

        Args:
            snapshots: where to look; one with vectors of another model is searched by its words.
            query: the words.
            vector: their vector, shape (dim,); None judges by words alone.
            k: topics wanted.
            wanted: which topics may be found.
        """
        scored: list[tuple[int, Scored]] = []
        for number, (snapshot, coverage) in enumerate(zip(snapshots, word_coverage(snapshots, query), strict=True)):
            allowed = allowed_mask(snapshot, wanted)
            known = vector if snapshot.encoder == self.encoder else None
            found = fuse(snapshot, coverage, known, k, allowed=allowed, products=self.products)
            scored.extend((number, item) for item in found)
        scored.sort(key=lambda pair: rank_key(snapshots[pair[0]], pair[1].score, pair[1].position))
        good = [pair for pair in scored[:k] if pair[1].score >= self.floor]
        return Found(_hits(snapshots, good, lexical=True), scored[0][1].score if scored else None)


def allowed_mask(snapshot: Snapshot, wanted: Filter) -> NDArray[np.bool_]:
    """Which topics may be found, shape (n,); names of other memories are ignored."""
    if wanted.scopes and snapshot.scope not in wanted.scopes:
        return np.zeros(len(snapshot), np.bool_)
    if wanted.types:
        allowed = np.isin(snapshot.types, [code for code, kind in enumerate(TYPES) if kind in wanted.types])
    else:
        allowed = np.ones(len(snapshot), np.bool_)
    allowed[[at for name in wanted.exclude if (at := snapshot.position_of(name)) is not None]] = False
    return allowed


def _hits(snapshots: Sequence[Snapshot], chosen: Sequence[tuple[int, Scored]], *, lexical: bool) -> tuple[Hit, ...]:
    """The chosen topics, read from the catalog; those that are gone by now are left out."""
    topics = {
        number: snapshot.topics([item.position for at, item in chosen if at == number])
        for number, snapshot in enumerate(snapshots)
    }
    return tuple(
        Hit(
            topics[number][item.position],
            item.score,
            cosine=item.cosine,
            lexical=item.coverage if lexical else None,
            chunk=item.chunk,
        )
        for number, item in chosen
        if item.position in topics[number]
    )


def coverage_of(snapshots: Sequence[Snapshot], note: str = "") -> Coverage:
    """How much of the memory could take part in an answer."""
    topics = sum(len(snapshot) for snapshot in snapshots)
    embedded = int(sum(np.count_nonzero(snapshot.embedded) for snapshot in snapshots))
    if embedded < topics and not note:
        note = f"{topics - embedded} of {topics} topics are found by their words only"
    return Coverage(topics, embedded, note)
