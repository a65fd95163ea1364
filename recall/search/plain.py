"""The quick answer of a fresh process: the founding scorer over plain numbers, in place of loading numpy.

Gives what `retriever.search_heuristic` gives, which is its oracle; for a few thousand topics in less time than it
takes to load an array library, beyond that in more.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from math import log1p
from typing import Final

from recall.index.plain import PlainIndex
from recall.search.current import standing_first
from recall.search.types import Coverage, Hit
from recall.search.weights import FIELD_WEIGHTS, FULL_SHARE, K1, B, fit_by_words, type_bonus, word_weight
from recall.store.scan import scan_key
from recall.store.topics import MemoryType
from recall.text.function_words import FUNCTION_WORDS
from recall.text.tokens import terms, tokenize

MOST_TOPICS: Final = 5000
"""Beyond so many, arrays are quicker, the time to load their library included."""

_POINTS: Final = [sum(points for at, points in enumerate(FIELD_WEIGHTS) if flags >> at & 1) for flags in range(8)]

_Words = dict[int, tuple[float, int]]
"""F of a topic, and how many different words it holds, function words apart; by document number."""


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
    tokens = tokenize(query)
    words = _match(indexes, list(terms(query))) if floor > 0 else []
    ranked: list[tuple[int, float, int, int]] = []
    for number, index in enumerate(indexes):
        for doc, points in _heuristic(index, tokens).items():
            row = index.rows[doc]
            fits = not words or fit_by_words(*words[number].get(doc, (0.0, 0))) >= floor
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


def _match(indexes: Sequence[PlainIndex], words: Sequence[str]) -> list[_Words]:
    """What `lexical.match_words` says of the topics that hold a word; word statistics over all indexes."""
    lengths = [dict(_lengths(index)) for index in indexes]
    total = sum(len(index.rows) for index in indexes)
    average = sum(sum(part.values()) for part in lengths) / max(total, 1)
    found = [[dict(_occurrences(index, word)) for index in indexes] for word in words]
    frequencies = [sum(map(len, row)) for row in found]
    weights = [
        log1p((total - frequency + 0.5) / (frequency + 0.5)) * word_weight(word)
        for word, frequency in zip(words, frequencies, strict=True)
    ]
    greatest = FULL_SHARE * (K1 + 1) * sum(weights)
    matches: list[_Words] = [{} for _ in indexes]
    if greatest <= 0 or average <= 0:
        return matches
    for word, weight, row in zip(words, weights, found, strict=True):
        for match, part, counts in zip(matches, lengths, row, strict=True):
            for doc, count in counts.items():
                norm = K1 * (1 - B + B * part[doc] / average)
                coverage, matched = match.get(doc, (0.0, 0))
                share = weight * count * (K1 + 1) / (count + norm) / greatest
                match[doc] = coverage + share, matched + (word not in FUNCTION_WORDS)
    return matches


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
