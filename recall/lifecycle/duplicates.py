"""Whether a new fact says the same as one that is remembered, changes it, or is another one.

No model of language decides: the words of both are laid side by side (`text.wording`), their values are compared
(`text.facts`), and the cosine of their vectors confirms. Two similar facts side by side are a smaller evil than one
that was merged away or declared outdated: in doubt it is another fact.
"""

import itertools
import unicodedata
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from recall.lifecycle.changes import asks, changes
from recall.lifecycle.pairs import Pair, pair_of, reading
from recall.text.facts import Difference, differences
from recall.text.opposites import MAY
from recall.text.patterns import pattern


class Verdict(StrEnum):
    """What a new fact is to an old one."""

    SAME = "same"
    RESTATED = "restated"
    CHANGED = "changed"
    OTHER = "other"


LONGEST: Final = 2000
"""Characters of a fact; a longer text is many facts and is the same as another one only to the letter."""

# Least cosine of the shipped model, within a language and across (docs/duplicates.md).
_RESTATED: Final = (0.65, 0.25)
_CHANGED: Final = (0.5, 0.0)

_NOTHING_SAID: Final = pattern(
    r"[\s!\"'(),:;?\[\]{}`\u2018-\u201f\u2026\u2013\u2014\u3001\u3002\u3008-\u3011]+|(?<!\S)[-*.]+(?!\S)|[.]+(?!\S)"
)
_BESIDE_HAN: Final = pattern(r"(?<=[\u3400-\u9fff]) +| +(?=[\u3400-\u9fff])")
_PASSIVE: Final = pattern(r"\b(?:is|are|was|were|be|been) (?:\w+ )?\w+(?:ed|en|wn|lt|pt|nt)\b(?! to\b)|\bby\b|由|被")
# What causes stands behind it, and before it otherwise.
_BECAUSE: Final = pattern(r"\bbecause\b|\bdue to\b|因为|由于|引起的|造成的")
# X is Y and Y is X say the same.
_EVEN: Final = frozenset(["is", "are", "was", "were", "the", "a", "an", "our", "是", "的", "and", "和"])
_LEAST_SAID: Final = 2
_LONGEST_COMPARED: Final = 40  # words whose order is compared


def judge(new: str, old: str, cosine: float) -> Verdict:
    """What the new fact is to the old one.

    Args:
        new: one or a few sentences, English or Chinese.
        old: such a text that is remembered.
        cosine: of the vectors that the shipped model gives the two as documents.
    """
    return judging(new)(old, cosine)


def judging(new: str) -> Callable[[str, float], Verdict]:
    """`judge` for one new fact beside many old ones: what is to be found in the new one is found once."""
    folded = _folded(new)
    known = reading(new.strip()) if len(new) <= LONGEST else None

    def judged(old: str, cosine: float) -> Verdict:
        if _folded(old) == folded and (folded or new == old):
            return Verdict.OTHER if Difference.CODE in differences(new, old) else Verdict.SAME
        if known is None or len(old) > LONGEST or asks(new) != asks(old):
            return Verdict.OTHER
        pair = pair_of(known, reading(old.strip()), cosine)
        if _restates(pair):
            return Verdict.RESTATED
        return Verdict.CHANGED if pair.reaches(_CHANGED) and changes(pair) else Verdict.OTHER

    return judged


def _folded(text: str) -> str:
    words = _NOTHING_SAID.sub(" ", unicodedata.normalize("NFKC", text).lower())
    return _BESIDE_HAN.sub("", " ".join(words.split()))


def _restates(pair: Pair) -> bool:
    may = [MAY in values.sides for values in pair.values]
    if pair.differences or not pair.framed or may[0] != may[1] or not _same_roles(pair):
        return False
    return pair.readings[0].said >= _LEAST_SAID and pair.reaches(_RESTATED)


def _same_roles(pair: Pair) -> bool:
    """False where two words changed places round a third: A depends on B, B depends on A."""
    if pair.words[0].content == pair.words[1].content and pair.values[0].order != pair.values[1].order:
        return False
    if any(len({bool(built.search(text)) for text in pair.texts}) == 2 for built in (_PASSIVE, _BECAUSE)):
        return _turned_round(pair)
    one, other = (words.sequence for words in pair.words)
    if len(one) > _LONGEST_COMPARED or len(other) > _LONGEST_COMPARED:
        return one == other
    first, second = _places(one), _places(other)
    both = [word for word in first if word in second]
    content = [word for word in both if word in pair.words[0].content]
    pivots = [word for word in both if word not in _EVEN]
    return not any(
        _between(first, left, pivot, right) and _between(second, right, pivot, left)
        for left, right in itertools.permutations(content, 2)
        if first[left] < first[right] and second[right] < second[left]
        for pivot in pivots
    )


def _turned_round(pair: Pair) -> bool:
    """Whether who did it, or what caused it, stands first in one text alone."""
    return pair.across or pair.words[0].content[0] != pair.words[1].content[0]


def _places(words: tuple[str, ...]) -> dict[str, int]:
    """Where the words stand that occur once."""
    counts = Counter(words)
    return {word: place for place, word in enumerate(words) if counts[word] == 1}


def _between(places: dict[str, int], left: str, pivot: str, right: str) -> bool:
    return places[left] < places[pivot] < places[right]
