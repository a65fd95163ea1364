"""What must be equal in two texts for them to say one thing: numbers, dates, negation, code words, opposites.

Two sentences that mean nearly the same to a model may differ in the one value that matters. This looks at the values
alone, and is strict: what it cannot read as equal is different.
"""

import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from recall.text.code_words import code_words
from recall.text.negation import Denial, denial
from recall.text.opposites import opposed, poles
from recall.text.patterns import pattern
from recall.text.quantities import quantities


class Difference(StrEnum):
    """In what two texts differ."""

    NUMBER = "number"
    DATE = "date"
    NEGATION = "negation"
    CODE = "code"
    OPPOSITE = "opposite"


@dataclass(frozen=True, slots=True)
class Facts:
    """Values of a text, each in one spelling.

    Attributes:
        numbers: with their units (`16 gb`, `3600 s`, `3.11`).
        dates: days, weekdays, times of the day, frequencies (`2026-03-05`, `--03`, `fri`, `15:00`, `every`).
        denial: what is denied.
        codes: identifiers, paths, flags, names of files, addresses.
        sides: which side of known opposites it takes.
        words: its words, in lower case, among which a code word of another text may stand unmarked.
        order: numbers and dates as they stand.
    """

    numbers: frozenset[str]
    dates: frozenset[str]
    denial: Denial
    codes: frozenset[str]
    sides: frozenset[str]
    words: frozenset[str]
    order: tuple[str, ...]

    @property
    def negated(self) -> bool:
        """Whether anything is denied."""
        return bool(self.denial.heads)


_WORD: Final = pattern(r"[a-z0-9][a-z0-9+#-]*")
_BLANKS: Final = pattern(r"\s+")


def facts(text: str) -> Facts:
    """The values of a text; takes time in proportion to its length."""
    plain = _BLANKS.sub(" ", unicodedata.normalize("NFKC", text))
    codes, rest = code_words(plain)
    rest = rest.lower()
    numbers, dates = quantities(rest)
    return Facts(
        numbers=frozenset(numbers),
        dates=frozenset(dates),
        denial=denial(rest),
        codes=codes,
        sides=poles(rest),
        words=frozenset(_WORD.findall(rest)),
        order=(*numbers, *dates),
    )


def differences(first: str, second: str) -> frozenset[Difference]:
    """In which kinds of values two texts differ."""
    return compared(facts(first), facts(second))


def compared(one: Facts, other: Facts) -> frozenset[Difference]:
    """In which kinds these values differ."""
    found = {
        Difference.NUMBER: one.numbers != other.numbers,
        Difference.DATE: one.dates != other.dates,
        Difference.NEGATION: one.denial.contradicts(other.denial),
        Difference.CODE: bool(_missing(one, other) or _missing(other, one)),
        Difference.OPPOSITE: opposed(one.sides, other.sides),
    }
    return frozenset(difference for difference, differs in found.items() if differs)


def may_be_one(first: str, second: str) -> bool:
    """Whether two texts have the same values, so that they can say the same thing; that they do is not said."""
    return not differences(first, second)


def _missing(one: Facts, other: Facts) -> set[str]:
    """Code words of one text that the other has neither as such nor as a plain word."""
    return {word for word in one.codes - other.codes if word.lower() not in other.words}
