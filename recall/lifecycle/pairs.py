"""Two texts laid side by side: their values, their words, what one has and the other has not."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from recall.text.facts import Difference, Facts, compared, facts
from recall.text.function_words import FUNCTION_WORDS
from recall.text.scripts import CJK, kinds
from recall.text.wording import Wording, form, wording

_USES: Final = frozenset({"use", "uses", "用"})
_LETTERS: Final = 2  # of a word; a shorter one is a variable or a unit
# Words that say from where to where, whose, whether it is so still; 到 and 由 stand for English ones.
_AXES: Final = (frozenset({"from", "to", "by", "for"}), frozenset({"my", "your"}), frozenset({"is", "was"}))
_DIRECTIONS: Final = {word: word for axis in _AXES for word in axis} | {
    "are": "is", "were": "was", "从": "from", "到": "to", "给": "to", "由": "by", "我": "my", "你": "your",
}  # fmt: skip
# What a value shows of itself: the release is on March 5, the date of the release is March 5.
_DATED: Final = frozenset({form("date"), form("time")})
_NAMED: Final = frozenset({"called", "named", "叫", "名叫"})
_NAME: Final = frozenset({form("name")})
_PREFERS: Final = form("prefer")


@dataclass(frozen=True, slots=True)
class Reading:
    """A text and what is found in it without another one beside it."""

    text: str
    values: Facts
    words: Wording
    han: bool

    @property
    def said(self) -> int:
        """How much it says: content words, values, a negation."""
        return len(set(self.words.content)) + len(self.values.order) + self.values.negated

    @property
    def stated(self) -> int:
        """How many words and values it has that are no function words."""
        light = {word for word in self.words.words if word not in FUNCTION_WORDS and len(word) > 1}
        light.update(word for word in self.words.words if word in _USES)
        return self.said + len(light & self.words.frame)

    @property
    def directions(self) -> set[str]:
        """The words that say from where to where, in English; a preference goes nowhere."""
        found = {_DIRECTIONS[word] for word in self.words.words if word in _DIRECTIONS}
        return found - {"to"} if _PREFERS in self.words.forms else found


@dataclass(frozen=True, slots=True)
class Pair:
    """Both texts and what was found of them, the old one first."""

    readings: tuple[Reading, Reading]
    words: tuple[Wording, Wording]
    differences: frozenset[Difference]
    cosine: float

    @property
    def texts(self) -> tuple[str, str]:
        """As they were given, in lower case."""
        return self.readings[0].text.lower(), self.readings[1].text.lower()

    @property
    def values(self) -> tuple[Facts, Facts]:
        """Numbers and the like of both."""
        return self.readings[0].values, self.readings[1].values

    @property
    def across(self) -> bool:
        """Whether they are in two languages."""
        return self.readings[0].han != self.readings[1].han

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
        one, other = (reading.directions for reading in self.readings)
        return (
            said
            and set(self.gone + self.added) <= self._shown
            and not any((one - other) & axis and (other - one) & axis for axis in _AXES)
        )

    @property
    def _shown(self) -> frozenset[str]:
        """Words that may be missing, since the values or other words of both say as much."""
        dated = _DATED if self.values[0].dates and self.values[1].dates else frozenset[str]()
        return dated | _NAME if any(_NAMED & words.frame for words in self.words) else dated

    def reaches(self, least: tuple[float, float]) -> bool:
        """Whether the cosine is at least that: within a language, across languages."""
        return self.cosine >= least[self.across]


def reading(text: str) -> Reading:
    """What is found in one text; the part of a comparison that is done once where many stand beside it."""
    return Reading(text, facts(text), wording(text), CJK in kinds(text))


def pair_of(new: Reading, old: Reading, cosine: float) -> Pair:
    """Both texts and what is found of them together."""
    found = compared(old.values, new.values)
    turned = old.values.sides ^ new.values.sides if Difference.OPPOSITE in found else frozenset()
    return Pair((old, new), (old.words.without(turned), new.words.without(turned)), found, cosine)


def _less(one: Wording, other: Wording) -> list[str]:
    return list((Counter(one.content) - Counter(other.content)).elements())
