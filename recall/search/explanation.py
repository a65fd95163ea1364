"""An explanation as a value, and in sentences: the parts of each score, what came close, why nothing came."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from recall.search.types import Hit, Recall
from recall.search.weights import FIELD_WEIGHTS, PHRASE_WEIGHT, WORD_WEIGHT, WORDS_ALONE
from recall.text.markup import one_line

_WORDS_SHOWN: Final = 12
_QUOTED: Final = 240  # characters


class Field(StrEnum):
    """Where in a topic a word stands."""

    TITLE = "title"
    DESCRIPTION = "description"
    BODY = "body"


class Why(StrEnum):
    """Why a topic that came close is no hit."""

    BELOW_FLOOR = "below_floor"
    FAR_BEHIND = "far_behind"
    ALIKE = "alike"
    OUTRANKED = "outranked"
    EXCLUDED = "excluded"
    TYPE = "type"
    SCOPE = "scope"
    CHANGED = "changed"


class Silence(StrEnum):
    """Why nothing came."""

    NOT_ASKED = "not_asked"
    EMPTY = "empty"
    NO_SHARED_WORD = "no_shared_word"
    BELOW_FLOOR = "below_floor"
    FILTERED = "filtered"
    CHANGED = "changed"


FILTERS: Final = frozenset({Why.EXCLUDED, Why.TYPE, Why.SCOPE})
"""Reasons that lie in the question."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the query, or a pair of Chinese characters, that a topic holds.

    Attributes:
        text: in lower case and NFKC.
        fields: where it stands; by the heuristic also as a part of words, and in the first 1,200 characters of a body.
        value: what it adds to `Hit.lexical`; by the heuristic its points.
    """

    text: str
    fields: tuple[Field, ...]
    value: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """What stands behind a score.

    Attributes:
        words: those of the query that the topic holds, which bring most first.
        bonus: points that the heuristic gives for the topic's type.
        phrases: words that stand together in it as they do in the query, or three CJK characters; which bring most
            first.
        passage: body of the chunk that lies nearest, credentials masked; "" where no vector was compared.
        chunks: how many the topic has; 0 likewise.
    """

    words: tuple[Word, ...]
    bonus: int = 0
    phrases: tuple[str, ...] = ()
    passage: str = ""
    chunks: int = 0


@dataclass(frozen=True, slots=True)
class Rejected:
    """A topic that came close and is no hit.

    Attributes:
        hit: with the score that it has.
        why: the first reason that holds.
        reason: the same in words.
    """

    hit: Hit
    why: Why
    reason: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """An answer and why it is that.

    Attributes:
        recall: the answer; its hits carry their evidence.
        floor: how well the best topic must fit for anything to be found; None where only words are counted, of which
            one is enough.
        rejected: what came close, best first: five that were filtered and five others at most.
        unmatched: words of the query that no wanted topic holds.
        silence: why nothing came; None when something did.
    """

    recall: Recall
    floor: float | None = None
    rejected: tuple[Rejected, ...] = ()
    unmatched: tuple[str, ...] = ()
    silence: Silence | None = None

    def why_nothing(self) -> str:
        """Why nothing came, in a sentence; "" when something did."""
        below = [other.hit for other in self.rejected if other.why is Why.BELOW_FLOOR]
        nearest = max(below, key=lambda hit: hit.fit or 0.0, default=None)
        floor = f"the floor of {self.floor:.3f}" if self.floor is not None else "a floor"
        reaches = (
            f"{floor}; the nearest is {nearest.topic.id}, which fits by {nearest.fit or 0:.3f}" if nearest else floor
        )
        match self.silence:
            case None:
                return ""
            case Silence.NOT_ASKED:
                return "nothing was asked: the query is blank, or no hit was wanted"
            case Silence.EMPTY:
                return "no topic is indexed"
            case Silence.NO_SHARED_WORD:
                words = (
                    "no topic holds a word of the query" if self.unmatched else "the query holds no word to look for"
                )
                return f"{words}, and by meaning alone none reaches {reaches}" if nearest else words
            case Silence.BELOW_FLOOR:
                return f"no topic reaches {reaches}"
            case Silence.FILTERED:
                names = self._named(FILTERS)
                return f"what would fit is not wanted: {names}" if names else "no topic is of those that are wanted"
            case Silence.CHANGED:
                return f"what fitted has changed or gone since it was indexed: {self._named({Why.CHANGED})}"

    def _named(self, whys: Set[Why]) -> str:
        return ", ".join(other.hit.topic.id for other in self.rejected if other.why in whys)


# --- in sentences


def sentences(hit: Hit) -> tuple[str, ...]:
    """What the score of a hit is made of; with evidence also by which words, and its nearest passage."""
    said = [f"score {_sum(hit)}"]
    if hit.topic.superseded_by:
        since = f" since {one_line(hit.topic.superseded_on)}" if hit.topic.superseded_on else ""
        said.append(f"superseded{since} by {one_line(hit.topic.superseded_by)}, and therefore behind what still holds")
    if hit.evidence is not None:
        said.append(f"words: {_named(hit.evidence.words, points=hit.lexical is None) or 'none in common'}")
    if hit.evidence is not None and hit.evidence.phrases:
        said.append(f"standing together: {', '.join(hit.evidence.phrases[:_WORDS_SHOWN])}")
    if hit.evidence is not None and hit.evidence.chunks:
        quoted = one_line(hit.evidence.passage)
        cut = "" if len(quoted) <= _QUOTED else "…"
        said.append(f"nearest part, {hit.chunk + 1} of {hit.evidence.chunks}: {quoted[:_QUOTED]}{cut}")
    return tuple(said)


def _sum(hit: Hit) -> str:
    """The score and its parts."""
    if hit.lexical is None:
        bonus = hit.evidence.bonus if hit.evidence else 0
        extra = f", {bonus} of them for the type {hit.topic.type}" if bonus else ""
        return f"{hit.score:.0f} points{extra}"
    phrases = f" + {PHRASE_WEIGHT:g} x phrases {hit.phrases:.3f}" if hit.phrases else ""
    if hit.cosine is None:
        words = f"{WORDS_ALONE:g} x words {hit.lexical:.3f}, which stand in for a vector as well"
        return f"{hit.score:.3f} = {words}{phrases}"
    parts = f"cosine {hit.cosine:.3f} + {WORD_WEIGHT:g} x words {hit.lexical:.3f}{phrases}"
    return f"{hit.score:.3f} = {parts}; fits by {hit.fit or 0:.3f}"


def _named(words: Sequence[Word], *, points: bool) -> str:
    shown = [f"{word.text} {_value(word, points=points)}" for word in words[:_WORDS_SHOWN]]
    others = len(words) - len(shown)
    return ", ".join([*shown, *([f"and {others} more"] if others else [])])


def _value(word: Word, *, points: bool) -> str:
    if not points:
        return f"{word.value:.3f} ({', '.join(word.fields)})"
    each = dict(zip(Field, FIELD_WEIGHTS, strict=True))
    return f"{word.value:.0f} ({', '.join(f'{field} {each[field]}' for field in word.fields)})"
