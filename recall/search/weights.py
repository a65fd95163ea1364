"""What words weigh, in numbers alone: shared by the scorers over arrays and by the one of a fresh process."""

from collections.abc import Sequence
from typing import Final

from recall.store.topics import MemoryType
from recall.text.function_words import FUNCTION_WORDS

FIELD_WEIGHTS: Final = (4, 3, 1)
"""Points of a token found in the title, the description, the head of the body (founding document 000)."""

# Founding document 000: words that speak for a type, at most two of them count.
_TYPE_WORDS: Final = {
    MemoryType.USER: frozenset({"user", "preference", "preferences", "background", "role", "terse"}),
    MemoryType.FEEDBACK: frozenset({"feedback", "rule", "rules", "avoid", "style", "summary"}),
    MemoryType.PROJECT: frozenset({"project", "goal", "goals", "incident", "deadline", "release"}),
    MemoryType.REFERENCE: frozenset({"reference", "dashboard", "ticket", "docs", "doc", "link"}),
}
_TYPE_BONUS_LIMIT: Final = 2

K1: Final = 1.2
B: Final = 0.75
# A text that holds every query term once at average length gets 1 / (K1 + 1) of the greatest sum there is; the share
# of that greatest sum at which words count as fully covered was chosen on real data (spec models.md section 4).
FULL_SHARE: Final = 0.6

WORD_WEIGHT: Final = 0.5
PHRASE_WEIGHT: Final = 0.2
_FUNCTION_WORD_WEIGHT: Final = 0.3

# A topic that has no vector yet is judged by its words alone: they stand in for a cosine of half their coverage, about
# what right answers show on real data.
_ASSUMED_COSINE: Final = 0.5

WORDS_ALONE: Final = WORD_WEIGHT + _ASSUMED_COSINE
"""What F is multiplied by to score a topic by its words alone."""

# Whether a topic fits at all is judged otherwise than which topic is best: chance words must not make up for a meaning
# that lies far off. Chosen on 2,500 questions without an answer beside all sets of bench.quality.
_FIT_WORDS: Final = 0.2
_FIT_USUAL: Final = 0.5
_FIT_NOTHING_SHARED: Final = 0.03
_FULL_EVIDENCE: Final = 3  # words; one alone may be chance

NO_FLOOR: Final = -1.0
"""From here down a floor holds nothing back: no topic fits less."""

BESIDE_THE_BEST: Final = 0.5
"""Share of the best score that a hit must have: beside a note that says it, what only touches on it is noise."""

A_PART_OF_ITS_OWN: Final = 0.1
"""Share of the query, in words that no better topic holds, with which a hit may have less: who lists things asks for
each of them."""

FIT_SLACK: Final = 0.07
"""How far below the floor a topic may fit when another one reaches it."""

FIT_SLACK_OF_ITS_OWN: Final = 0.14
"""The same for one that holds a part of the query that no better one does."""


def word_weight(term: str) -> float:
    """What a term of the query weighs beside its rarity."""
    return _FUNCTION_WORD_WEIGHT if term in FUNCTION_WORDS else 1.0


def fit(cosine: float, coverage: float, matched: int, *, usual: float) -> float:
    """How well a topic fits the query: what the floor is compared with.

    Args:
        cosine: of the query with the topic.
        coverage: F of the topic.
        matched: how many different words of the query it holds, function words apart.
        usual: cosine that any topic of the memory shows with this query.
    """
    return cosine - _FIT_USUAL * usual + _FIT_WORDS * min(coverage, 1.0) * _evidence(matched)


def fit_unshared(fit: float) -> float:
    """The fit of a topic in the language of the query that shares no word with it."""
    return fit - _FIT_NOTHING_SHARED


def fit_by_words(coverage: float, matched: int) -> float:
    """The fit of a topic that is judged by its words alone."""
    return coverage * (_ASSUMED_COSINE + _FIT_WORDS * _evidence(matched)) if matched else 0.0


def _evidence(matched: int) -> float:
    return min(matched, _FULL_EVIDENCE) / _FULL_EVIDENCE


def type_bonus(tokens: Sequence[str], kind: MemoryType | None) -> int:
    """Points for query words that speak for a type, at most 2."""
    if kind is None:
        return 0
    return min(_TYPE_BONUS_LIMIT, sum(token in _TYPE_WORDS[kind] for token in tokens))
