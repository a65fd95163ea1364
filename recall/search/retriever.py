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
from recall.search.alike import Apart, apart
from recall.search.current import standing_first
from recall.search.dense import Usual
from recall.search.fusion import Scored, fuse, largest, rank_key
from recall.search.lexical import heuristic_points, match_words
from recall.search.texts import Asked, Place, Texts
from recall.search.types import Coverage, Filter, Hit
from recall.search.weights import (
    A_PART_OF_ITS_OWN,
    BESIDE_THE_BEST,
    FIT_SLACK,
    FIT_SLACK_OF_ITS_OWN,
    NO_FLOOR,
    fit_by_words,
    fit_unshared,
)
from recall.store.scan import scan_key
from recall.store.topics import Topic
from recall.text.scripts import is_cjk
from recall.text.tokens import bounded as bounded  # noqa: PLC0414 - part of this module's surface
from recall.text.tokens import terms

_JUDGED: Final = 5  # of the best, for whether anything fits
_SPARE: Final = 20  # looked at beyond twice what is wanted: some do not fit
_READ: Final = 10  # of the best, whose texts are looked through
_REPEATED: Final = 10  # read beyond what is wanted: some say the same

ALL: Final = Filter()
"""Everything may be found."""


_NOTHING: Final = Apart()


@dataclass(frozen=True, slots=True)
class Found:
    """Hits of one search.

    Attributes:
        hits: best first.
        best: the best score that any topic reached, also one below the floor; None when nothing was scored.
        apart: all that fits with what repeats another set aside, of which the hits are the first.
    """

    hits: tuple[Hit, ...] = ()
    best: float | None = None
    apart: Apart = _NOTHING


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
    chosen = [(number, Scored(-points, at, None, 0.0, 0, 0)) for points, _, number, _, at in ranked[:k]]
    return Found(standing_first(_hits(Texts(snapshots), chosen)), -ranked[0][0] if ranked else None)


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
        scored: list[Place] = []
        usual, matches = Usual(), match_words(snapshots, query)
        for number, (snapshot, words) in enumerate(zip(snapshots, matches, strict=True)):
            allowed = allowed_mask(snapshot, wanted)
            known = vector if snapshot.encoder == self.encoder else None
            found = fuse(snapshot, words, known, 2 * k + _SPARE, allowed=allowed, products=self.products)
            scored.extend((number, item) for item in found.best)
            usual += found.usual
        if not scored:
            return Found()

        def by_rank(place: Place) -> tuple[float, float, str]:
            return rank_key(snapshots[place[0]], place[1].score, place[1].position)

        scored.sort(key=by_rank)
        texts, asked = Texts(snapshots), Asked(list(terms(query)), matches)
        scored = sorted([*texts.holding(scored[:_READ], asked.phrases(query)), *scored[_READ:]], key=by_rank)
        scored = asked.alone(scored)
        near = [place for at, place in enumerate(scored) if at < _JUDGED or self._is_near(place[1], usual)]
        told, in_cjk = Apart(), is_cjk(query)
        for depth in (k + _JUDGED, k + _JUDGED + _REPEATED):
            fit = standing_first(fitting(_fused_hits(texts, near[:depth], usual, in_cjk=in_cjk), self.floor))
            told = apart(fit, texts.vectors(fit)) if self.floor > NO_FLOOR else Apart(fit)
            if not told.like:
                break
        return Found(standing_first(told.shown)[:k], scored[0][1].score, told)

    def _is_near(self, item: Scored, usual: Usual) -> bool:
        slack = FIT_SLACK_OF_ITS_OWN if item.alone >= A_PART_OF_ITS_OWN else FIT_SLACK
        return item.fit(usual) >= self.floor - slack


def fitting(hits: Sequence[Hit], floor: float) -> tuple[Hit, ...]:
    """Those of the ranked hits that fit; none when even the first few do not.

    Once one of the first reaches the floor, others may stay a little below it: the memory knows something of what is
    asked, and their rank says more than a border. What has less than half of the best score is left out all the same,
    save where it holds a part of the query that no better one does, or where words stand in for a vector that is still
    to be made.

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
    beside = {hit.topic.id for hit in near if hit.score >= least or hit.cosine is None}
    return tuple(
        hit
        for hit, fit in zip(hits, fits, strict=True)
        if hit.topic.id in beside or (hit.alone >= A_PART_OF_ITS_OWN and fit >= floor - FIT_SLACK_OF_ITS_OWN)
    )


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


def _hits(texts: Texts, chosen: Sequence[Place]) -> tuple[Hit, ...]:
    """The chosen topics; those that are gone by now are left out."""
    return tuple(Hit(topic, place[1].score) for place, topic in texts.topics(chosen))


def _fused_hits(texts: Texts, chosen: Sequence[Place], usual: Usual, *, in_cjk: bool) -> tuple[Hit, ...]:
    """The same with all that words and meaning say.

    Args:
        texts: where the topics are read.
        chosen: best first.
        usual: what topics show with the query.
        in_cjk: whether the query is.
    """
    return tuple(
        Hit(
            topic,
            item.score,
            cosine=item.cosine,
            lexical=item.coverage,
            chunk=item.chunk,
            phrases=item.phrases,
            alone=item.alone,
            fit=_fit(item, topic, usual, in_cjk=in_cjk),
        )
        for (_, item), topic in texts.topics(chosen)
    )


def _fit(item: Scored, topic: Topic, usual: Usual, *, in_cjk: bool) -> float:
    """How well the topic fits; a word in common is missed where both are written in the same script."""
    fit = item.fit(usual)
    if item.cosine is None or item.matched or is_cjk(f"{topic.title} {topic.description} {topic.body}") != in_cjk:
        return fit
    return fit_unshared(fit)


def coverage_of(snapshots: Sequence[Snapshot], note: str = "") -> Coverage:
    """How much of the memory could take part in an answer."""
    topics = sum(len(snapshot) for snapshot in snapshots)
    embedded = int(sum(np.count_nonzero(snapshot.embedded) for snapshot in snapshots))
    if embedded < topics and not note:
        note = f"{topics - embedded} of {topics} topics are found by their words only"
    return Coverage(topics, embedded, note)
