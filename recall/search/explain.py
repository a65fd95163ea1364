"""Finds out why an answer is what it is.

Nothing here takes part in an answer. Figures come from the functions that rank, called again without floor or filter,
so that an explanation stays true whatever the ranking is changed to.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from recall.index.base import Vector
from recall.index.snapshot import Snapshot
from recall.search.answer import Found
from recall.search.explanation import FILTERS, Evidence, Explanation, Field, Rejected, Silence, Why, Word
from recall.search.lexical import Shares, heuristic_points, score, word_shares
from recall.search.phrases import Phrases
from recall.search.retriever import ALL, Hybrid, allowed_mask, search_heuristic
from recall.search.types import Filter, Hit, Recall
from recall.search.weights import BESIDE_THE_BEST, FIT_SLACK, type_bonus
from recall.store.topics import Topic
from recall.text.chunks import chunk_topic
from recall.text.secrets import mask
from recall.text.tokens import terms, tokenize

_NEXT: Final = 5  # topics named of those that were filtered, and of the others


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked, and of what.

    Attributes:
        query: cut to what is searched.
        k: hits wanted.
        wanted: which topics may be found.
        snapshots: where they were looked for.
        vector: of the query, shape (dim,).
        hybrid: what ranked; None for the founding heuristic.
        chunk_tokens: estimated tokens of a chunk; 0 without a model.
    """

    query: str
    k: int
    wanted: Filter
    snapshots: Sequence[Snapshot]
    vector: Vector | None = None
    hybrid: Hybrid | None = None
    chunk_tokens: int = 0

    def ranked(self, wanted: Filter, *, floor: bool) -> Found:
        """The hits and some that follow them, as the answer was ranked."""
        k = self.k + _NEXT
        if self.hybrid is None:
            return search_heuristic(self.snapshots, self.query, k, wanted=wanted)
        ranking = self.hybrid if floor else replace(self.hybrid, floor=-math.inf)
        return ranking.search(self.snapshots, self.query, self.vector, k, wanted=wanted)


def explain(recall: Recall, question: Question) -> Explanation:
    """Why the question was answered with that.

    Args:
        recall: the answer.
        question: what led to it; its snapshots are those that the answer came from.
    """
    shares = word_shares(question.snapshots, question.query) if question.hybrid else []
    rejected = [
        replace(other, hit=replace(other.hit, evidence=_evidence(other.hit, question, shares)))
        for other in _rejected(recall, question)
    ]
    hits = tuple(replace(hit, evidence=_evidence(hit, question, shares)) for hit in recall.hits)
    unmatched = tuple(_unmatched(question, shares))
    return Explanation(
        replace(recall, hits=hits),
        floor=question.hybrid.floor if question.hybrid else None,
        rejected=tuple(rejected),
        unmatched=unmatched,
        silence=None if hits else _silence(question, rejected, has_word=len(unmatched) < len(_words(question))),
    )


def _silence(question: Question, rejected: Sequence[Rejected], *, has_word: bool) -> Silence:
    whys = {other.why for other in rejected}
    if not any(map(len, question.snapshots)):
        return Silence.EMPTY
    if Why.CHANGED in whys:
        return Silence.CHANGED
    if whys & FILTERS or not any(allowed_mask(snapshot, question.wanted).any() for snapshot in question.snapshots):
        return Silence.FILTERED
    return Silence.BELOW_FLOOR if has_word else Silence.NO_SHARED_WORD


# --- what came close


def _rejected(recall: Recall, question: Question) -> list[Rejected]:
    """Topics that would be hits if they were wanted, and those that rank next to the hits; best first."""
    hits = {hit.topic.id for hit in recall.hits}
    all_that_fit = question.ranked(ALL, floor=True) if question.wanted != ALL else Found()
    wished = (*all_that_fit.hits, *all_that_fit.apart.repeated)
    filtered = [(hit, reason) for hit in wished if (reason := _filtered(hit.topic, question.wanted))]
    answer = question.ranked(question.wanted, floor=True)
    near = [hit for hit in question.ranked(question.wanted, floor=False).hits if hit.topic.id not in hits]
    missed = [(hit, _missed(hit, question, answer)) for hit in near]
    rejected = [Rejected(hit, *reason) for hit, reason in (*filtered[:_NEXT], *missed[:_NEXT])]
    return sorted(rejected, key=lambda other: -other.hit.score)


def _filtered(topic: Topic, wanted: Filter) -> tuple[Why, str] | None:
    if topic.id in wanted.exclude:
        return Why.EXCLUDED, "excluded by its id"
    if wanted.scopes and topic.scope not in wanted.scopes:
        return Why.SCOPE, f"the scope {topic.scope} is not wanted"
    if wanted.types and topic.type not in wanted.types:
        return Why.TYPE, f"the type {topic.type or 'none'} is not wanted"
    return None


def _missed(hit: Hit, question: Question, answer: Found) -> tuple[Why, str]:
    """Why a topic is no hit that may be one.

    Args:
        hit: the topic.
        question: what was asked.
        answer: those that are let through, best first.
    """
    floor = question.hybrid.floor if question.hybrid else 0.0
    if (other := answer.apart.like.get(hit.topic.id)) is not None:
        return Why.ALIKE, f"nearly the same as {other}"
    ranks = {other.topic.id: rank for rank, other in enumerate(answer.hits, start=1)}
    rank = ranks.get(hit.topic.id)
    if rank is None and ranks and question.hybrid and (hit.fit or 0.0) >= floor - FIT_SLACK:
        return Why.FAR_BEHIND, f"less than {BESIDE_THE_BEST:g} of the best score"
    if rank is None:
        return Why.BELOW_FLOOR, f"below the floor of {floor:.3f}"
    if rank > question.k:
        return Why.OUTRANKED, f"ranks {rank}, {question.k} wanted"
    return Why.CHANGED, "its file has changed or gone since it was indexed"


# --- what stands behind a score


def _words(question: Question) -> list[str]:
    """The words of the query that are looked for."""
    return list(terms(question.query)) if question.hybrid else tokenize(question.query)


def _unmatched(question: Question, shares: Sequence[Shares]) -> Iterator[str]:
    """Words that no wanted topic holds where they count."""
    allowed = [allowed_mask(snapshot, question.wanted) for snapshot in question.snapshots]
    if question.hybrid is None:
        for token in _words(question):
            points = heuristic_points(question.snapshots, token)
            if not any(part[wanted].any() for part, wanted in zip(points, allowed, strict=True)):
                yield token
        return
    held: set[int] = set()
    for found, wanted in zip(shares, allowed, strict=True):
        held.update(found.words[wanted[found.positions] & (found.shares > 0)].tolist())
    yield from (word for number, word in enumerate(_words(question)) if number not in held)


def _evidence(hit: Hit, question: Question, shares: Sequence[Shares]) -> Evidence:
    topic = hit.topic
    if question.hybrid is None:
        tokens = tokenize(question.query)
        return Evidence(_ordered(_pointed(tokens, topic)), bonus=type_bonus(tokens, topic.type))
    words, together = _ordered(_shared(question, topic, shares)), _together(hit, question, shares)
    if hit.cosine is None:
        return Evidence(words, phrases=together)
    chunks = chunk_topic(topic.title, topic.description, topic.body, budget=question.chunk_tokens)
    best = chunks[min(hit.chunk, len(chunks) - 1)]
    return Evidence(
        words, phrases=together, passage=mask(topic.body[best.start : best.stop].strip()), chunks=len(chunks)
    )


def _together(hit: Hit, question: Question, shares: Sequence[Shares]) -> tuple[str, ...]:
    """Words that stand together in the topic as they do in the query, where that was looked for."""
    if not hit.phrases or not shares:
        return ()
    information = dict(zip(_words(question), shares[0].information.tolist(), strict=True))
    topic = hit.topic
    found = Phrases.of(question.query, information).found(f"{topic.title}\n{topic.description}\n{topic.body}")
    return tuple(map(" ".join, found))


def _ordered(words: Iterator[Word]) -> tuple[Word, ...]:
    return tuple(sorted(words, key=lambda word: -word.value))


def _pointed(tokens: Sequence[str], topic: Topic) -> Iterator[Word]:
    """Tokens that bring points by the heuristic."""
    bare = replace(topic, title="", description="", body="", type=None)
    parts = {field: replace(bare, **{field: getattr(topic, field)}) for field in Field}
    for token in tokens:
        points = {field: score([token], part) for field, part in parts.items()}
        if any(points.values()):
            yield Word(token, tuple(field for field in Field if points[field]), sum(points.values()))


def _shared(question: Question, topic: Topic, shares: Sequence[Shares]) -> Iterator[Word]:
    """Words that bring a part of F."""
    held = {field: terms(getattr(topic, field)) for field in Field}
    words = list(terms(question.query))
    for snapshot, found in zip(question.snapshots, shares, strict=True):
        if snapshot.scope is topic.scope and (at := snapshot.position_of(topic.id)) is not None:
            here = (found.positions == at) & (found.shares > 0)
            for number, share in zip(found.words[here].tolist(), found.shares[here].tolist(), strict=True):
                yield Word(words[number], tuple(field for field in Field if words[number] in held[field]), share)
