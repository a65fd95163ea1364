"""What the texts of the best few topics say beside what the index knows: words of the query that stand together.

Names, turns of phrase, identifiers. The index knows how often a word stands in a topic, and not where.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, Self

from recall.text.function_words import FUNCTION_WORDS
from recall.text.scripts import CJK, MARK, OTHER, WORD, kinds
from recall.text.tokens import normalise

_RUN: Final = re.compile(f"{CJK}+|[{WORD}{MARK}]+")  # in the kinds of the characters (text.scripts)
_JOINT: Final = re.compile(r"[-_./\\:@#]+")
_IDENTIFIER_WEIGHT: Final = 3.0
_CJK_STOP: Final = re.compile("[\u3001-\u3003\u30fb]")  # 、 and the like, which count as CJK characters
_CJK_LENGTH: Final = 3
_GAP: Final = 4  # characters between two words that stand together, such as a full stop and a blank
_MOST: Final = 128  # phrases that are looked for, those that weigh most
_LONGEST: Final = 20_000  # characters of a topic that are looked through


class Run(NamedTuple):
    """A word, or some CJK characters in a row.

    Attributes:
        text: itself.
        start: where it begins.
        is_cjk: which of the two.
    """

    text: str
    start: int
    is_cjk: bool


def runs(normalised: str) -> list[Run]:
    """The words of a normalised text in their order."""
    kind = kinds(normalised)
    return [
        Run(normalised[run.start() : run.end()], run.start(), is_cjk=kind[run.start()] == CJK)
        for run in _RUN.finditer(kind)
    ]


class Phrases(NamedTuple):
    """The phrases of a query.

    Attributes:
        weights: share of each in what the query says, by its words; a single one is a run of CJK characters.
    """

    weights: Mapping[tuple[str, ...], float]

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
        found = runs(normalised)
        weights: dict[tuple[str, ...], float] = {}
        for text in (run.text for run in found if run.is_cjk):
            for at in range(len(text) - _CJK_LENGTH + 1):
                pairs = text[at : at + 2], text[at + 1 : at + 3]
                weights[(text[at : at + 3],)] = _mean(information, pairs)
        for one, other in pairwise(found):
            if not one.is_cjk and not other.is_cjk:
                words = one.text, other.text
                joined = _JOINT.fullmatch(normalised, one.start + len(one.text), other.start)
                weight = _mean(information, words) * (_IDENTIFIER_WEIGHT if joined else 1.0)
                weights[words] = max(weight, weights.get(words, 0.0))
        heaviest = sorted(weights, key=lambda phrase: -weights[phrase])[:_MOST]
        return cls({phrase: weights[phrase] for phrase in heaviest if weights[phrase] > 0})

    def found(self, text: str) -> list[tuple[str, ...]]:
        """Those that stand in the text, which weigh most first."""
        normalised = normalise(text[:_LONGEST])
        return [
            phrase
            for phrase in self.weights
            if all(word in normalised for word in phrase)
            and (len(phrase) == 1 or _stand_together(phrase[0], phrase[1], normalised))
        ]

    def share(self, text: str) -> float:
        """What those that stand in the text weigh together."""
        return sum(self.weights[phrase] for phrase in self.found(text))


def _stand_together(first: str, second: str, normalised: str) -> bool:
    """Whether one word follows the other somewhere, with nothing but a few other characters in between."""
    at = normalised.find(first)
    while at >= 0:
        stop = at + len(first)
        start = normalised.find(second, stop + 1, stop + _GAP + len(second))
        if start > 0 and not kinds(normalised[stop:start]).strip(OTHER):
            around = normalised[at - 1 : at] + normalised[start + len(second) : start + len(second) + 1]
            if not {WORD, MARK} & set(kinds(around)):
                return True
        at = normalised.find(first, stop)
    return False


def telling(words: Sequence[str], information: Sequence[float]) -> list[float]:
    """The share of each word in what a query is about: 0 for function words, 1 together unless nothing tells.

    Args:
        words: of the query (`text.tokens.terms`).
        information: share of each in what it says.
    """
    told = [
        0.0 if word in FUNCTION_WORDS or _CJK_STOP.search(word) else share
        for word, share in zip(words, information, strict=True)
    ]
    whole = sum(told)
    return [share / whole for share in told] if whole > 0 else told


def _mean(information: Mapping[str, float], words: tuple[str, str]) -> float:
    return sum(information.get(word, 0.0) for word in words) / len(words)
