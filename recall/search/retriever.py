"""One query over the snapshots of all scopes: the founding heuristic, or words and meaning together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from recall.index.base import Products, Vector
from recall.index.snapshot import Snapshot
from recall.index.table import TYPES
from recall.search.fusion import Scored, fuse, largest, rank_key
from recall.search.lexical import heuristic_points, match_words
from recall.search.types import Coverage, Filter, Hit
from recall.search.weights import BESIDE_THE_BEST, FIT_SLACK, NO_FLOOR, fit_by_words, fit_unshared
from recall.store.scan import scan_key
from recall.store.topics import Topic
from recall.text.scripts import is_cjk
from recall.text.tokens import bounded as bounded  # noqa: PLC0414 - part of this module's surface

_JUDGED: Final = 5  # of the best, for whether anything fits
_SPARE: Final = 20  # looked at beyond twice what is wanted: some do not fit

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
        floor: how well a topic must fit by its words alone; 0 for the founding behaviour, which answers with whatever
            shares a word.
    """
    ranked: list[tuple[float, float, int, object, int]] = []
    all_points = heuristic_points(snapshots, query)
    found = match_words(snapshots, query) if floor > 0 else [None] * len(snapshots)
    for number, (snapshot, points, words) in enumerate(zip(snapshots, all_points, found, strict=True)):
        points[~allowed_mask(snapshot, wanted)] = 0
        if words is not None:
            scored = np.flatnonzero(points)
            pairs = zip(words.coverage[scored].tolist(), words.matched[scored].tolist(), strict=True)
            points[scored[[fit_by_words(coverage, matched) < floor for coverage, matched in pairs]]] = 0
        for at in _leaders(points, snapshot.mtimes, k):
            key = scan_key(snapshot.paths[at])
            ranked.append((-int(points[at]), -float(snapshot.mtimes[at]), number, key, int(at)))
    ranked.sort()
    chosen = [(number, Scored(-points, at, None, 0.0, 0, 0, 0.0)) for points, _, number, _, at in ranked[:k]]
    return Found(_hits(snapshots, chosen), -ranked[0][0] if ranked else None)


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
        floor: how well the best topic must fit for anything to be found.
        encoder: fingerprint of the model that encodes queries; vectors of another one are not compared.
    """

    products: Products
    floor: float
    encoder: str

    def search(
        self, snapshots: Sequence[Snapshot], query: str, vector: Vector | None, k: int, *, wanted: Filter = ALL
    ) -> Found:
        """The k best topics over all snapshots; none when even the best do not fit.

        Args:
            snapshots: where to look; one with vectors of another model is searched by its words.
            query: the words.
            vector: their vector, shape (dim,); None judges by words alone.
            k: topics wanted.
            wanted: which topics may be found.
        """
        if k <= 0:
            return Found()
        scored: list[tuple[int, Scored]] = []
        depth = 2 * k + _SPARE
        for number, (snapshot, words) in enumerate(zip(snapshots, match_words(snapshots, query), strict=True)):
            allowed = allowed_mask(snapshot, wanted)
            known = vector if snapshot.encoder == self.encoder else None
            found = fuse(snapshot, words, known, depth, allowed=allowed, products=self.products)
            scored.extend((number, item) for item in found)
        scored.sort(key=lambda pair: rank_key(snapshots[pair[0]], pair[1].score, pair[1].position))
        near = [pair for at, pair in enumerate(scored) if at < _JUDGED or pair[1].fit >= self.floor - FIT_SLACK]
        hits = _hits(snapshots, near[: k + _JUDGED], query)
        return Found(fitting(hits, self.floor)[:k], scored[0][1].score if scored else None)


def fitting(hits: Sequence[Hit], floor: float) -> tuple[Hit, ...]:
    """Those of the ranked hits that fit; none when even the first few do not.

    Once one of the first reaches the floor, others may stay a little below it: the memory knows something of what is
    asked, and their rank says more than a border. What has less than half of the best score is left out all the same,
    save where words stand in for a vector that is still to be made.

    Args:
        hits: best first.
        floor: how well the best must fit; far below zero for all hits.
    """
    fits = [-math.inf if hit.fit is None else hit.fit for hit in hits]
    if not hits or max(fits[:_JUDGED]) < floor:
        return ()
    near = [hit for hit, fit in zip(hits, fits, strict=True) if fit >= floor - FIT_SLACK]
    best = near[0].score
    least = best * BESIDE_THE_BEST if floor > NO_FLOOR and best > 0 else -math.inf
    return tuple(hit for hit in near if hit.score >= least or hit.cosine is None)


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


def _hits(
    snapshots: Sequence[Snapshot], chosen: Sequence[tuple[int, Scored]], query: str | None = None
) -> tuple[Hit, ...]:
    """The chosen topics, read from the catalog; those that are gone by now are left out.

    Args:
        snapshots: where they come from.
        chosen: number of the snapshot, and the topic.
        query: the words, when words and meaning have chosen; None for the founding heuristic.
    """
    in_cjk = is_cjk(query) if query is not None else False
    topics = {
        number: snapshot.topics([item.position for at, item in chosen if at == number])
        for number, snapshot in enumerate(snapshots)
    }
    return tuple(
        Hit(
            topics[number][item.position],
            item.score,
            cosine=item.cosine,
            lexical=None if query is None else item.coverage,
            chunk=item.chunk,
            fit=None if query is None else _fit(item, topics[number][item.position], in_cjk=in_cjk),
        )
        for number, item in chosen
        if item.position in topics[number]
    )


def _fit(item: Scored, topic: Topic, *, in_cjk: bool) -> float:
    """How well the topic fits; a word in common is missed where both are written in the same script."""
    if item.cosine is None or item.matched or is_cjk(f"{topic.title} {topic.description} {topic.body}") != in_cjk:
        return item.fit
    return fit_unshared(item.fit)


def coverage_of(snapshots: Sequence[Snapshot], note: str = "") -> Coverage:
    """How much of the memory could take part in an answer."""
    topics = sum(len(snapshot) for snapshot in snapshots)
    embedded = int(sum(np.count_nonzero(snapshot.embedded) for snapshot in snapshots))
    if embedded < topics and not note:
        note = f"{topics - embedded} of {topics} topics are found by their words only"
    return Coverage(topics, embedded, note)
