"""What the texts of the best few topics say beside what the index knows: words of the query that stand together.

Names, turns of phrase, identifiers. The index knows how often a word stands in a topic, and not where.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple, Self

from recall.text.function_words import FUNCTION_WORDS
from recall.text.scripts import CJK, MARK, WORD, kinds
from recall.text.tokens import normalise

_ASCII_RUN: Final = re.compile("[a-z0-9]+")
_RUN: Final = re.compile(f"{CJK}+|[{WORD}{MARK}]+")  # in the kinds of the characters (text.scripts)
_JOINT: Final = re.compile(r"[-_./\\:@#]+")
_IDENTIFIER_WEIGHT: Final = 3.0
_CJK_STOP: Final = re.compile("[\u3001-\u3003\u30fb]")  # 、 and the like, which count as CJK characters
_CJK_LENGTH: Final = 3
_MOST: Final = 128  # phrases that are looked for, those that weigh most
_LONGEST: Final = 20_000  # characters of a topic that are looked through


class _Run(NamedTuple):
    """A word of normalised text, or a run of CJK characters."""

    start: int
    stop: int
    is_cjk: bool


def running(text: str) -> str:
    """The words of a text in their order, normalised, with one blank on either side of each.

    A run of CJK characters stays whole, so that a phrase of either kind stands in a text when it is a part of this.
    """
    normalised = normalise(text[:_LONGEST])
    if normalised.isascii():
        return f" {' '.join(_ASCII_RUN.findall(normalised))} "
    return f" {' '.join(normalised[run.start : run.stop] for run in _runs(normalised))} "


def _runs(normalised: str) -> list[_Run]:
    kind = kinds(normalised)
    return [_Run(*run.span(), is_cjk=kind[run.start()] == CJK) for run in _RUN.finditer(kind)]


@dataclass(frozen=True, slots=True)
class Phrases:
    """The phrases of a query.

    Attributes:
        weights: of each phrase, as it stands in a running text: its share of what the query says.
    """

    weights: Mapping[str, float]

    @classmethod
    def of(cls, query: str, information: Mapping[str, float]) -> Self:
        """Neighbouring words, and threes of CJK characters that stand together.

        A phrase weighs what its two words (or CJK pairs) do on average. Words that are joined by more than a blank,
        as in a path, a version or the code of an error, are meant as they stand, and weigh three times as much.

        Args:
            query: cut to what is searched.
            information: share of every word of the query (`text.tokens.terms`) in what it says.
        """
        normalised = normalise(query)
        runs = _runs(normalised)
        weights: dict[str, float] = {}
        for run in runs:
            if run.is_cjk:
                text = normalised[run.start : run.stop]
                for at in range(len(text) - _CJK_LENGTH + 1):
                    pairs = text[at : at + 2], text[at + 1 : at + 3]
                    weights[text[at : at + 3]] = _mean(information, pairs)
        for one, other in pairwise(runs):
            if not one.is_cjk and not other.is_cjk:
                words = normalised[one.start : one.stop], normalised[other.start : other.stop]
                joined = _JOINT.fullmatch(normalised, one.stop, other.start)
                weight = _mean(information, words) * (_IDENTIFIER_WEIGHT if joined else 1.0)
                phrase = f" {words[0]} {words[1]} "
                weights[phrase] = max(weight, weights.get(phrase, 0.0))
        heaviest = sorted(weights, key=lambda phrase: -weights[phrase])[:_MOST]
        return cls({phrase: weights[phrase] for phrase in heaviest if weights[phrase] > 0})

    def found(self, running_text: str) -> list[str]:
        """Those that stand in the text, which weigh most first."""
        return [phrase for phrase in self.weights if phrase in running_text]

    def share(self, running_text: str) -> float:
        """What those that stand in the text weigh together."""
        return sum(self.weights[phrase] for phrase in self.found(running_text))


def telling(information: Mapping[str, float]) -> dict[str, float]:
    """The words that say what a query is about, each with its share in that; of a long query those that say most.

    Args:
        information: share of every word of the query (`text.tokens.terms`) in what it says.
    """
    words = [word for word in information if word not in FUNCTION_WORDS and not _CJK_STOP.search(word)]
    heaviest = sorted(words, key=lambda word: -information[word])[:_MOST]
    said = sum(information[word] for word in heaviest)
    return {word: information[word] / said for word in heaviest} if said > 0 else {}


def held(words: Iterable[str], running_text: str) -> set[str]:
    """Those of the words that stand in the text."""
    return {word for word in words if (word if _is_pair(word) else f" {word} ") in running_text}


def _is_pair(word: str) -> bool:
    return kinds(word) == CJK + CJK


def _mean(information: Mapping[str, float], words: tuple[str, str]) -> float:
    return sum(information.get(word, 0.0) for word in words) / len(words)
