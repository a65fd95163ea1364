"""Ranking by words: the founding heuristic, and BM25 on an absolute scale, both answered from postings.

`score` and `rank` work on topics in memory and are the oracle of `heuristic_points`, which never reads a file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from recall.index.postings import DESCRIPTION, HEAD, TITLE, body_head
from recall.index.snapshot import Snapshot
from recall.index.table import TYPES
from recall.search.types import Hit
from recall.search.weights import FIELD_WEIGHTS, FULL_SHARE, K1, B, type_bonus, word_weight
from recall.store.topics import Topic
from recall.text.function_words import FUNCTION_WORDS
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


def heuristic_points(snapshots: Sequence[Snapshot], query: str) -> list[NDArray[np.int32]]:
    """What `score` says of every topic of each snapshot, shape (n,)."""
    tokens = tokenize(query)
    return [_points(snapshot, tokens) for snapshot in snapshots]


def _points(snapshot: Snapshot, tokens: Sequence[str]) -> NDArray[np.int32]:
    # The place behind the last topic takes what stands in topics that are gone: their position is -1.
    points = np.zeros(len(snapshot) + 1, np.int32)
    for segment, positions in snapshot.segments:
        found = np.zeros(len(segment.docs), np.int32)
        for token in tokens:
            slots, fields = segment.holding(token)
            found[slots] += _FIELD_SCORES[fields]
        has_points = np.flatnonzero(found)
        points[positions[has_points]] += found[has_points]
    points = points[:-1]
    bonus = np.asarray([type_bonus(tokens, kind) for kind in TYPES], np.int32)
    points[points > 0] += bonus[snapshot.types[points > 0]]
    return points


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """What each word of a query adds to F in one snapshot; parallel arrays, one place a word and topic that holds it.

    Attributes:
        words: numbers of the words, in the order of `text.tokens.terms`.
        positions: of the topics.
        shares: parts of F.
        information: share of each word in what the query says, 1 together or all 0; the same in all snapshots.
    """

    words: NDArray[np.int64]
    positions: NDArray[np.int64]
    shares: NDArray[np.float64]
    information: NDArray[np.float64]

    def held(self, positions: Sequence[int], topics: int) -> dict[int, set[int]]:
        """Numbers of the words that each of the topics holds.

        Args:
            positions: of the topics.
            topics: how many the snapshot has.
        """
        is_asked = np.zeros(topics, np.bool_)
        is_asked[list(positions)] = True
        here = is_asked[self.positions] & (self.shares > 0)
        found: dict[int, set[int]] = {}
        for word, at in zip(self.words[here].tolist(), self.positions[here].tolist(), strict=True):
            found.setdefault(at, set()).add(word)
        return found


NO_WORDS: Final = Shares(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
"""Those of a query without words."""


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """What the words of a query say of every topic of one snapshot.

    Attributes:
        coverage: F of the fusion, shape (n,): BM25 over the greatest sum that the query could reach, times 1 / 0.6.
        matched: how many different words each topic holds, function words apart, shape (n,).
        shares: what each word adds.
    """

    coverage: NDArray[np.float64]
    matched: NDArray[np.int64]
    shares: Shares = NO_WORDS


def match_words(snapshots: Sequence[Snapshot], query: str) -> list[Words]:
    """What the words say; word statistics are taken over all snapshots together."""
    is_content = np.asarray([term not in FUNCTION_WORDS for term in terms(query)], np.bool_)
    return [
        Words(
            np.bincount(found.positions, found.shares, len(snapshot)).astype(np.float64, copy=False),
            np.bincount(found.positions[is_content[found.words] & (found.shares > 0)], minlength=len(snapshot)),
            found,
        )
        for found, snapshot in zip(word_shares(snapshots, query), snapshots, strict=True)
    ]


def word_shares(snapshots: Sequence[Snapshot], query: str) -> list[Shares]:
    """The parts that `match_words` adds up, for each snapshot."""
    words = list(terms(query))
    total = sum(map(len, snapshots))
    average = sum(float(snapshot.lengths.sum()) for snapshot in snapshots) / max(total, 1)
    found = [_occurrences(snapshot, words) for snapshot in snapshots]
    frequency = sum(
        (np.bincount(part.words[part.counts > 0], minlength=len(words)) for part in found), np.zeros(len(words))
    )
    idf = np.log1p((total - frequency + 0.5) / (frequency + 0.5)) * np.asarray([word_weight(word) for word in words])
    said = float(idf.sum())
    information = idf / said if said > 0 and average > 0 else np.zeros(len(words))
    weights = information / (FULL_SHARE * (K1 + 1))
    return [
        Shares(part.words, part.positions, _bm25(part, weights, snapshot.lengths, average or 1.0), information)
        for part, snapshot in zip(found, snapshots, strict=True)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class _Occurrences:
    """Where some words stand in one snapshot; parallel arrays, one place a word and living topic.

    Attributes:
        words: numbers of the words.
        positions: of the topics.
        counts: occurrences; 0 where a word only stands in a field that cuts it.
    """

    words: NDArray[np.int64]
    positions: NDArray[np.int64]
    counts: NDArray[np.float64]


def _occurrences(snapshot: Snapshot, words: Sequence[str]) -> _Occurrences:
    columns: list[list[NDArray[Any]]] = [[np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]]
    for segment, places in snapshot.segments:
        numbers = segment.find(words)
        found = segment.postings(list(numbers.values()))
        positions = places[found.slots]
        alive = positions >= 0
        which = np.repeat(np.fromiter(numbers, np.int64), found.sizes)
        parts: tuple[NDArray[Any], ...] = (which, positions, found.counts)
        for column, values in zip(columns, parts, strict=True):
            column.append(values[alive])
    owners, positions, counts = (np.concatenate(column) for column in columns)
    return _Occurrences(owners, positions, counts)


def _bm25(
    found: _Occurrences, weights: NDArray[np.float64], lengths: NDArray[np.float64], average: float
) -> NDArray[np.float64]:
    norm = K1 * (1 - B + B * lengths[found.positions] / average)
    shares: NDArray[np.float64] = weights[found.words] * found.counts * (K1 + 1) / (found.counts + norm)
    return shares
