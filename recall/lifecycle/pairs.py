"""Two texts laid side by side: their values, their words, what one has and the other has not."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from recall.text.facts import Difference, Facts, compared, facts
from recall.text.scripts import CJK, kinds
from recall.text.wording import WEAK, WEAK_VERBS, Wording, wording

_LETTERS: Final = 2  # of a word; a shorter one is a variable or a unit


@dataclass(frozen=True, slots=True)
class Pair:
    """Both texts and what was found of them, the old one first."""

    texts: tuple[str, str]
    values: tuple[Facts, Facts]
    words: tuple[Wording, Wording]
    differences: frozenset[Difference]
    cosine: float

    @property
    def across(self) -> bool:
        """Whether they are in two languages."""
        return len({CJK in kinds(text) for text in self.texts}) == 2

    @property
    def gone(self) -> list[str]:
        """Content words of the old one that the new one lacks."""
        return _less(self.words[0], self.words[1])

    @property
    def added(self) -> list[str]:
        """Content words of the new one that the old one lacks."""
        return _less(self.words[1], self.words[0])

    @property
    def framed(self) -> bool:
        """Whether both are about the same, whatever they say of it."""
        said = any(len(word) > _LETTERS or not word.isascii() for word in self.words[0].content)
        gone, added = set(self.gone), set(self.added)
        return said and gone | added <= (WEAK_VERBS if gone and added else WEAK)

    @property
    def said(self) -> int:
        """How much the old one says: content words, values, a negation."""
        values = self.values[0]
        return len(set(self.words[0].content)) + len(values.order) + values.negated

    def reaches(self, least: tuple[float, float]) -> bool:
        """Whether the cosine is at least that: within a language, across languages."""
        return self.cosine >= least[self.across]


def pair_of(new: str, old: str, cosine: float) -> Pair:
    """Both texts and what is found of them."""
    values = facts(old), facts(new)
    found = compared(*values)
    turned = values[0].sides ^ values[1].sides if Difference.OPPOSITE in found else frozenset()
    words = tuple(wording(text, without=turned) for text in (old, new))
    return Pair((old, new), values, (words[0], words[1]), found, cosine)


def _less(one: Wording, other: Wording) -> list[str]:
    return list((Counter(one.content) - Counter(other.content)).elements())
