"""One query over the snapshots of all scopes: the founding heuristic, or words and meaning together."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from recall.index.base import Products, Vector
from recall.index.snapshot import Snapshot
from recall.index.table import TYPES
from recall.search.answer import Asked, answer, depth
from recall.search.answer import Found as Found  # noqa: PLC0414 - part of this module's surface
from recall.search.answer import fitting as fitting  # noqa: PLC0414 - same
from recall.search.current import standing_first
from recall.search.dense import only_vector
from recall.search.fusion import fuse, largest, rank_key
from recall.search.lexical import Words, heuristic_points, match_words
from recall.search.scored import Place, Usual
from recall.search.types import Coverage, Filter, Hit
from recall.search.weights import fit_by_words
from recall.store.scan import scan_key
from recall.store.topics import Topic
from recall.text.tokens import bounded as bounded  # noqa: PLC0414 - part of this module's surface
from recall.text.tokens import terms

ALL: Final = Filter()
"""Everything may be found."""


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
    best = ranked[: max(k, 0)]
    topics = [snapshot.topics([item[-1] for item in best if item[2] == at]) for at, snapshot in enumerate(snapshots)]
    hits = (Hit(topics[number][at], -points) for points, _, number, _, at in best if at in topics[number])
    return Found(standing_first(tuple(hits)), -ranked[0][0] if ranked else None)


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
            found = fuse(snapshot, words, known, depth(k), allowed=allowed, products=self.products)
            scored.extend((number, item) for item in found.best)
            usual += found.usual
        information = matches[0].shares.information.tolist() if matches else []
        told = dict(zip(terms(query), information, strict=True)) if matches else {}
        return answer(scored, _Snapshots(snapshots, matches), Asked(query, k, self.floor, told, usual))


@dataclass(frozen=True, slots=True)
class _Snapshots:
    """Snapshots for `answer`, with what the words say of them."""

    snapshots: Sequence[Snapshot]
    matches: Sequence[Words]

    def key(self, place: Place) -> tuple[float, float, str]:
        return rank_key(self.snapshots[place[0]], place[1].score, place[1].position)

    def topics(self, number: int, positions: Collection[int]) -> dict[int, Topic]:
        return self.snapshots[number].topics(list(positions))

    def held(self, places: Sequence[Place]) -> list[Collection[int]]:
        found = [
            words.shares.held([item.position for number, item in places if number == at], len(words.coverage))
            for at, words in enumerate(self.matches)
        ]
        return [found[number].get(item.position, ()) for number, item in places]

    def vectors(self, hits: Sequence[Hit]) -> list[Vector | None]:
        by_scope = {snapshot.scope: snapshot for snapshot in self.snapshots}
        places = [(by_scope[hit.topic.scope], by_scope[hit.topic.scope].position_of(hit.topic.id)) for hit in hits]
        return [None if at is None else only_vector(snapshot, at) for snapshot, at in places]


def allowed_mask(snapshot: Snapshot, wanted: Filter) -> NDArray[np.bool_]:
    """Which topics may be found, shape (n,); names of other memories are ignored."""
    if wanted.scopes and snapshot.scope not in wanted.scopes:
        return np.zeros(len(snapshot), np.bool_)
    if wanted.types:
        allowed = np.array([kind in wanted.types for kind in TYPES])[snapshot.types]
    else:
        allowed = np.ones(len(snapshot), np.bool_)
    allowed[[at for name in wanted.exclude if (at := snapshot.position_of(name)) is not None]] = False
    return allowed


def coverage_of(snapshots: Sequence[Snapshot], note: str = "") -> Coverage:
    """How much of the memory could take part in an answer."""
    topics = sum(len(snapshot) for snapshot in snapshots)
    embedded = int(sum(np.count_nonzero(snapshot.embedded) for snapshot in snapshots))
    if embedded < topics and not note:
        note = f"{topics - embedded} of {topics} topics are found by their words only"
    return Coverage(topics, embedded, note)
