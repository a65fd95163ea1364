"""What words weigh, in numbers alone: shared by the scorers over arrays and by the one of a fresh process."""

from collections.abc import Sequence
from typing import Final

from recall.store.topics import MemoryType

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

WORD_WEIGHT: Final = 0.4

# A topic that has no vector yet is judged by its words alone: they stand in for a cosine of half their coverage, about
# what right answers show on real data.
_ASSUMED_COSINE: Final = 0.5

WORDS_ALONE: Final = WORD_WEIGHT + _ASSUMED_COSINE
"""What F is multiplied by to score a topic by its words alone."""


def type_bonus(tokens: Sequence[str], kind: MemoryType | None) -> int:
    """Points for query words that speak for a type, at most 2."""
    if kind is None:
        return 0
    return min(_TYPE_BONUS_LIMIT, sum(token in _TYPE_WORDS[kind] for token in tokens))
