"""Ranking by words: the founding heuristic, and BM25 on an absolute scale, both answered from postings.

`score` and `rank` work on topics in memory and are the oracle of `score_words`, which never reads a file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from recall.index.postings import DESCRIPTION, HEAD, TITLE, Segment, body_head
from recall.index.snapshot import Snapshot
from recall.index.table import TYPES
from recall.search.types import Hit
from recall.search.weights import FIELD_WEIGHTS, FULL_SHARE, K1, B, type_bonus
from recall.store.topics import Topic
from recall.text.tokens import normalise, terms, tokenize

_WEIGHTS: Final = dict(zip((TITLE, DESCRIPTION, HEAD), FIELD_WEIGHTS, strict=True))
_FIELD_SCORES: Final = np.asarray(
    [sum(weight for flag, weight in _WEIGHTS.items() if flags & flag) for flags in range(8)], np.int32
)


def score(tokens: Sequence[str], topic: Topic) -> int:
    """The founding heuristic: 4 a token found in the title, 3 in the description, 1 in the head of the body.

    Tokens are found as parts of words. A topic with any hit gets at most 2 more for query words that speak for its
    type; no hit is 0.

    Source: founding document 000, spec qwen.md section 4.2.
    """
    texts = {
        TITLE: normalise(topic.title),
        DESCRIPTION: normalise(topic.description),
        HEAD: normalise(body_head(topic.body)),
    }
    found = sum(_WEIGHTS[flag] for token in tokens for flag, text in texts.items() if token in text)
    return found + type_bonus(tokens, topic.type) if found else 0


def rank(query: str, topics: Sequence[Topic], *, k: int) -> list[Hit]:
    """The k best topics by the founding heuristic: score, then newer first, then the order given; no zero scores."""
    tokens = tokenize(query)
    hits = [Hit(topic, points) for topic in topics if (points := score(tokens, topic))]
    return sorted(hits, key=lambda hit: (-hit.score, -hit.topic.mtime))[: max(k, 0)]


@dataclass(frozen=True, slots=True, eq=False)
class WordScores:
    """What the words of a query say of each topic of one snapshot.

    Attributes:
        heuristic: the founding score, shape (n,).
        coverage: F of the fusion: BM25 over the greatest sum that the query could reach, times 1 / 0.6; shape (n,).
    """

    heuristic: NDArray[np.int32]
    coverage: NDArray[np.float64]


def score_words(snapshots: Sequence[Snapshot], query: str) -> list[WordScores]:
    """Scores of every topic, one record a snapshot; word statistics are taken over all of them together."""
    tokens, words = tokenize(query), list(terms(query))
    found = _term_table(snapshots, words)
    bm25 = _bm25(snapshots, words, found)
    return [
        WordScores(_heuristic(snapshot, tokens), coverage) for snapshot, coverage in zip(snapshots, bm25, strict=True)
    ]


def _heuristic(snapshot: Snapshot, tokens: Sequence[str]) -> NDArray[np.int32]:
    points = np.zeros(len(snapshot), np.int32)
    for token in tokens:
        flags = np.zeros(len(snapshot), np.uint8)
        for segment, positions in snapshot.segments:
            slots, _, fields = segment.postings(_matching(segment, token))
            where = positions[slots]
            for flag in _WEIGHTS:
                flags[where[(where >= 0) & (fields & flag > 0)]] |= flag
        points += _FIELD_SCORES[flags]
    bonus = np.asarray([type_bonus(tokens, kind) for kind in TYPES], np.int32)
    points[points > 0] += bonus[snapshot.types[points > 0]]
    return points


def _matching(segment: Segment, token: str) -> list[int]:
    """Numbers of the terms that a token is part of; a CJK pair is a term itself."""
    if len(token) > 2:
        return segment.containing(token)
    number = segment.find(token)
    return [] if number is None else [number]


@dataclass(frozen=True, slots=True, eq=False)
class _Occurrences:
    """Where one term stands in one snapshot: positions of living topics with the number of occurrences."""

    positions: NDArray[np.int64]
    counts: NDArray[np.float64]


def _term_table(snapshots: Sequence[Snapshot], words: Sequence[str]) -> list[list[_Occurrences]]:
    return [[_occurrences(snapshot, word) for word in words] for snapshot in snapshots]


def _occurrences(snapshot: Snapshot, word: str) -> _Occurrences:
    positions: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    counts: list[NDArray[np.float64]] = [np.zeros(0, np.float64)]
    for segment, places in snapshot.segments:
        number = segment.find(word)
        if number is not None:
            found = segment.postings([number])
            where = places[found.slots]
            alive = (where >= 0) & (found.counts > 0)
            positions.append(where[alive])
            counts.append(found.counts[alive].astype(np.float64))
    return _Occurrences(np.concatenate(positions), np.concatenate(counts))


def _bm25(
    snapshots: Sequence[Snapshot], words: Sequence[str], found: Sequence[Sequence[_Occurrences]]
) -> list[NDArray[np.float64]]:
    lengths = [_lengths(snapshot) for snapshot in snapshots]
    total = sum(len(part) for part in lengths)
    average = sum(float(part.sum()) for part in lengths) / max(total, 1)
    frequency = np.asarray([sum(len(row[at].positions) for row in found) for at in range(len(words))], np.float64)
    idf = np.log1p((total - frequency + 0.5) / (frequency + 0.5))
    greatest = FULL_SHARE * (K1 + 1) * float(idf.sum())
    scores = [np.zeros(len(snapshot)) for snapshot in snapshots]
    if greatest <= 0 or average <= 0:
        return scores
    for out, part, row in zip(scores, lengths, found, strict=True):
        for weight, seen in zip(idf, row, strict=True):
            norm = K1 * (1 - B + B * part[seen.positions] / average)
            out[seen.positions] += weight * seen.counts * (K1 + 1) / (seen.counts + norm)
        out /= greatest
    return scores


def _lengths(snapshot: Snapshot) -> NDArray[np.float64]:
    """Terms in each topic, repeats counted, shape (n,)."""
    lengths = np.zeros(len(snapshot))
    for segment, positions in snapshot.segments:
        alive = positions >= 0
        lengths[positions[alive]] = segment.lengths[alive]
    return lengths
