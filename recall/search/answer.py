"""From the topics that words and meaning rank first to the answer: phrases, what fits, what repeats another.

The last steps of every search that is not the founding one; over arrays or over the numbers of a fresh process.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from recall.search.alike import Apart, apart
from recall.search.current import standing_first
from recall.search.phrases import Phrases, telling
from recall.search.scored import Place, Scored, Usual
from recall.search.types import Hit
from recall.search.weights import (
    A_PART_OF_ITS_OWN,
    BESIDE_THE_BEST,
    FIT_SLACK,
    FIT_SLACK_OF_ITS_OWN,
    NO_FLOOR,
    fit_unshared,
)
from recall.store.topics import Topic
from recall.text.scripts import is_cjk

if TYPE_CHECKING:  # a fresh process answers without arrays
    from recall.index.base import Vector

_JUDGED: Final = 5  # of the best, for whether anything fits
_SPARE: Final = 20
_READ: Final = 10  # of the best, whose texts are looked through
_REPEATED: Final = 10  # read beyond what is wanted: some say the same
_NOTHING: Final = Apart()


def depth(k: int) -> int:
    """How many topics of each memory are looked at for k hits: some do not fit, some say the same."""
    return 2 * k + _SPARE


class Memories(Protocol):
    """What is asked of the memories that places are in."""

    def key(self, place: Place) -> tuple[float, float, str]:
        """Sorts better scores first, then newer topics, then by path."""
        ...

    def topics(self, number: int, positions: Collection[int]) -> Mapping[int, Topic]:
        """Topics of one memory, whole; those that are gone by now are left out."""
        ...

    def held(self, places: Sequence[Place]) -> list[Collection[int]]:
        """Numbers of the query's words that each topic holds."""
        ...

    def vectors(self, hits: Sequence[Hit]) -> "Sequence[Vector | None]":
        """The vector of each hit whose topic has only one."""
        ...


class Asked(NamedTuple):
    """What was asked, and what is known of it.

    Attributes:
        query: cut to what is searched.
        k: topics wanted.
        floor: how well the best must fit.
        information: share of each word in what the query says; in the order of `text.tokens.terms`.
        usual: what topics show with it.
    """

    query: str
    k: int
    floor: float
    information: Mapping[str, float]
    usual: Usual

    def is_near(self, item: Scored) -> bool:
        """Whether the topic can be shown when another one fits."""
        slack = FIT_SLACK_OF_ITS_OWN if item.alone >= A_PART_OF_ITS_OWN else FIT_SLACK
        return item.fit(self.usual) >= self.floor - slack


class Found(NamedTuple):
    """Hits of one search.

    Attributes:
        hits: best first.
        best: the best score that any topic reached, also one below the floor; None when nothing was scored.
        apart: all that fits with what repeats another set aside, of which the hits are the first.
    """

    hits: tuple[Hit, ...] = ()
    best: float | None = None
    apart: Apart = _NOTHING


def answer(scored: Sequence[Place], memories: Memories, asked: Asked) -> Found:
    """The hits among the best topics of all memories.

    Args:
        scored: the best of each memory by words and meaning, in any order.
        memories: where they are.
        asked: the query.
    """
    if not scored or asked.k <= 0:
        return Found()
    texts = _Texts(memories)
    ranked = _with_phrases(sorted(scored, key=memories.key), texts, asked)
    ranked = _alone(sorted(ranked, key=memories.key), memories, asked)
    near = [place for at, place in enumerate(ranked) if at < _JUDGED or asked.is_near(place[1])]
    told, in_cjk = Apart(), is_cjk(asked.query)
    for most in (asked.k + _JUDGED, asked.k + _JUDGED + _REPEATED):
        hits = [_hit(item, topic, asked.usual, in_cjk=in_cjk) for (_, item), topic in texts.of(near[:most])]
        fit = standing_first(fitting(hits, asked.floor))
        told = apart(fit, memories.vectors(fit)) if asked.floor > NO_FLOOR else Apart(fit)
        if not told.like:
            break
    return Found(standing_first(told.shown)[: asked.k], ranked[0][1].score, told)


class _Texts:
    """Topics of the memories, each read once."""

    def __init__(self, memories: Memories) -> None:
        self._memories = memories
        self._topics: dict[tuple[int, int], Topic | None] = {}

    def of(self, places: Sequence[Place]) -> list[tuple[Place, Topic]]:
        """The topics, whole; those that are gone by now are left out."""
        for number in {number for number, _ in places}:
            wanted = {item.position for at, item in places if at == number}
            missing = [position for position in wanted if (number, position) not in self._topics]
            found = self._memories.topics(number, missing) if missing else {}
            self._topics.update({(number, position): found.get(position) for position in missing})
        topics = ((place, self._topics[place[0], place[1].position]) for place in places)
        return [(place, topic) for place, topic in topics if topic is not None]


def _with_phrases(ranked: Sequence[Place], texts: _Texts, asked: Asked) -> list[Place]:
    """The topics, the best few with what their phrases bring; those that hold no word of the query are not read."""
    phrases = Phrases.of(asked.query, asked.information)
    read = texts.of([place for place in ranked[:_READ] if place[1].matched]) if phrases.weights else []
    shares = {place: phrases.share(f"{topic.title}\n{topic.description}\n{topic.body}") for place, topic in read}
    return [(place[0], place[1].holding(shares[place])) if shares.get(place) else place for place in ranked]


def _alone(ranked: Sequence[Place], memories: Memories, asked: Asked) -> list[Place]:
    """The topics, each with the share of the query in words that no better one holds."""
    told = telling(list(asked.information), list(asked.information.values()))
    seen: set[int] = set()
    found: list[Place] = []
    for (number, item), words in zip(ranked, memories.held(ranked), strict=True):
        alone = sum(told[word] for word in words if word not in seen)
        seen.update(words)
        found.append((number, item._replace(alone=alone) if alone else item))
    return found


def _hit(item: Scored, topic: Topic, usual: Usual, *, in_cjk: bool) -> Hit:
    """The topic with all that words and meaning say; a word in common is missed where both are in the same script."""
    fit = item.fit(usual)
    is_missed = item.cosine is not None and not item.matched
    if is_missed and is_cjk(f"{topic.title} {topic.description} {topic.body}") == in_cjk:
        fit = fit_unshared(fit)
    return Hit(
        topic,
        item.score,
        cosine=item.cosine,
        lexical=item.coverage,
        chunk=item.chunk,
        phrases=item.phrases,
        alone=item.alone,
        fit=fit,
    )


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
