"""The quick answer of a fresh process: the founding scorer, or words alone, over plain numbers instead of numpy.

Gives what `retriever.search_heuristic` gives, or `retriever.Hybrid.search` without a vector, which are its oracles; for
a few thousand topics in less time than it takes to load an array library, beyond that in more.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from math import log1p
from typing import Final, NamedTuple

from recall.index.plain import PlainIndex
from recall.search.answer import Asked, answer, depth
from recall.search.current import standing_first
from recall.search.scored import Place, Scored, Usual
from recall.search.types import Coverage, Hit
from recall.search.weights import FIELD_WEIGHTS, FULL_SHARE, K1, WORDS_ALONE, B, fit_by_words, type_bonus, word_weight
from recall.store.scan import scan_key
from recall.store.topics import MemoryType, Topic
from recall.text.function_words import FUNCTION_WORDS
from recall.text.tokens import terms, tokenize

MOST_TOPICS: Final = 5000
"""Beyond so many, arrays are quicker, the time to load their library included."""

_POINTS: Final = [sum(points for at, points in enumerate(FIELD_WEIGHTS) if flags >> at & 1) for flags in range(8)]

_Words = dict[int, tuple[float, list[int]]]
"""F of a topic, and numbers of the words that it holds; by document number."""


def search_plain(
    indexes: Sequence[PlainIndex], query: str, k: int, *, exclude: Collection[str] = (), floor: float = 0.0
) -> tuple[Hit, ...]:
    """The founding scorer's k best topics: score, then newer first, then scan order, project before user.

    Args:
        indexes: where to look.
        query: the words.
        k: topics wanted.
        exclude: ids of topics that may not be found.
        floor: how well a topic must fit by its words alone; 0 answers with whatever shares a word.
    """
    tokens, asked = tokenize(query), list(terms(query))
    words = _match(indexes, asked)[0] if floor > 0 else []
    ranked: list[tuple[int, float, int, int]] = []
    for number, index in enumerate(indexes):
        for doc, points in _heuristic(index, tokens).items():
            row = index.rows[doc]
            coverage, held = words[number].get(doc, (0.0, [])) if words else (0.0, [])
            fits = not words or fit_by_words(coverage, _telling(asked, held)) >= floor
            if fits and not (exclude and index.id_of(doc) in exclude):
                ranked.append((-points, -row.mtime_ns / 1e9, number, doc))
    ranked.sort()
    last = ranked[k - 1][:3] if 0 < k <= len(ranked) else ()
    # The scan order only has to tell apart what ties with the last one that is wanted, and what comes before it.
    candidates = [item for at, item in enumerate(ranked) if at < k or item[:3] == last]
    candidates.sort(key=lambda item: (*item[:3], scan_key(indexes[item[2]].rows[item[3]].path)))
    best = candidates[: max(k, 0)]
    topics = [index.topics([doc for *_, at, doc in best if at == number]) for number, index in enumerate(indexes)]
    return standing_first([Hit(topics[at][doc], -points) for points, _, at, doc in best if doc in topics[at]])


def search_words(
    indexes: Sequence[PlainIndex], query: str, k: int, *, exclude: Collection[str] = (), floor: float
) -> tuple[Hit, ...]:
    """The k best topics by their words alone, on the scale of the fused score; none when even the best do not fit.

    Args:
        indexes: where to look.
        query: the words.
        k: topics wanted.
        exclude: ids of topics that may not be found.
        floor: how well the best topic must fit by its words.
    """
    if k <= 0:
        return ()
    asked = list(terms(query))
    words, information = _match(indexes, asked)
    memories = _Plain(indexes, words)
    scored: list[Place] = []
    for number, (index, found) in enumerate(zip(indexes, words, strict=True)):
        barred = {doc for doc in found if exclude and index.id_of(doc) in exclude}
        places = [
            (number, Scored(WORDS_ALONE * coverage, doc, None, coverage, 0, _telling(asked, held)))
            for doc, (coverage, held) in found.items()
            if doc not in barred
        ]
        scored += heapq.nsmallest(depth(k), places, key=memories.key)
    told = dict(zip(asked, information, strict=True))
    return answer(scored, memories, Asked(query, k, floor, told, Usual())).hits


class _Plain(NamedTuple):
    """Indexes for `answer`, with what the words say of their topics."""

    indexes: Sequence[PlainIndex]
    words: Sequence[_Words]

    def key(self, place: Place) -> tuple[float, float, str]:
        row = self.indexes[place[0]].rows[place[1].position]
        return -place[1].score, -row.mtime_ns / 1e9, row.path

    def topics(self, number: int, positions: Collection[int]) -> dict[int, Topic]:
        return self.indexes[number].topics(positions)

    def held(self, places: Sequence[Place]) -> list[Collection[int]]:
        return [self.words[number][item.position][1] for number, item in places]

    def vectors(self, hits: Sequence[Hit]) -> list[None]:
        return [None for _ in hits]


def coverage_plain(indexes: Sequence[PlainIndex], *, embedded: int) -> Coverage:
    """How much of the memory could take part in an answer.

    Args:
        indexes: where was looked.
        embedded: the catalog's state of a topic that has its vectors.
    """
    states = Counter(row.embedded for index in indexes for row in index.rows.values())
    total, without = states.total(), states.total() - states[embedded]
    note = f"{without} of {total} topics are found by their words only" if without else ""
    return Coverage(total, states[embedded], note)


def _heuristic(index: PlainIndex, tokens: Sequence[str]) -> dict[int, int]:
    """Founding score of every topic that has one."""
    scores: defaultdict[int, int] = defaultdict(int)
    for token in tokens:
        for segment in index.segments:
            # A CJK pair is a term itself.
            numbers = segment.containing(token) if len(token) > 2 else segment.find(token)
            for slot, flags in segment.fields(numbers).items():
                scores[segment.docs[slot]] += _POINTS[flags]
    bonus: dict[str | None, int] = {kind: type_bonus(tokens, kind) for kind in (None, *MemoryType)}
    return {doc: points + bonus[index.rows[doc].type] for doc, points in scores.items() if doc in index.rows}


def _telling(words: Sequence[str], held: Collection[int]) -> int:
    """How many of the words are no function words."""
    return sum(words[number] not in FUNCTION_WORDS for number in held)


def _match(indexes: Sequence[PlainIndex], words: Sequence[str]) -> tuple[list[_Words], list[float]]:
    """What `lexical.match_words` says of the topics that hold a word, and the share of each word in what is said."""
    lengths = [dict(_lengths(index)) for index in indexes]
    total = sum(len(index.rows) for index in indexes)
    average = sum(sum(part.values()) for part in lengths) / max(total, 1)
    found = [[dict(_occurrences(index, word)) for index in indexes] for word in words]
    frequencies = [sum(map(len, row)) for row in found]
    weights = [
        log1p((total - frequency + 0.5) / (frequency + 0.5)) * word_weight(word)
        for word, frequency in zip(words, frequencies, strict=True)
    ]
    said = sum(weights)
    matches: list[_Words] = [{} for _ in indexes]
    if said <= 0 or average <= 0:
        return matches, [0.0] * len(words)
    for number, (weight, row) in enumerate(zip(weights, found, strict=True)):
        for match, part, counts in zip(matches, lengths, row, strict=True):
            for doc, count in counts.items():
                norm = K1 * (1 - B + B * part[doc] / average)
                coverage, held = match.get(doc, (0.0, []))
                share = weight / said / FULL_SHARE * count / (count + norm)
                match[doc] = coverage + share, [*held, number]
    return matches, [weight / said for weight in weights]


def _lengths(index: PlainIndex) -> Iterator[tuple[int, int]]:
    for segment in index.segments:
        for doc, length in zip(segment.docs, segment.lengths, strict=True):
            if doc in index.rows:
                yield doc, length


def _occurrences(index: PlainIndex, word: str) -> Iterator[tuple[int, int]]:
    for segment in index.segments:
        for number in segment.find(word):
            for slot, count in segment.counts(number):
                if count and (doc := segment.docs[slot]) in index.rows:
                    yield doc, count
