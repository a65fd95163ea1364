"""One fact told many times must not crowd the others out: hits that repeat a better one, and hits that nearly do.

What repeats is shown once. What is only near, two short notes whose vectors are close, is put behind the others, since
another name in the same sentence is as near as the same fact in other words (docs/ranking.md).
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from recall.search.phrases import runs
from recall.search.types import Hit
from recall.store.topics import Scope, Topic
from recall.text.tokens import normalise

if TYPE_CHECKING:  # a fresh process answers without arrays
    from recall.index.base import Vector

_NEAR: Final = 0.75
_SHORT: Final = 16  # different words of a note that states one fact
_MOST: Final = 64  # of the best; who asks for more wants all there is
_PLURAL_FROM: Final = 4

# Words that the same sentence may have or lack. Those that a fact turns on are none of them: before, only, all, must.
_FILLER_WORDS: Final = """
a also am an are be been being did do does had has have he her his i is it its just me my our please really she so that
the their there these they this those us very was we were will you your 的 了 是 呢 吧 啊 也
"""
_FILLERS: Final = frozenset(_FILLER_WORDS.split())

# Where one of these stands, the order of the words is part of the fact.
_ORDERING_WORDS: Final = "after before from instead not over rather than to 从 從 先 到 后 後 比 而"
_ORDERING: Final = frozenset(_ORDERING_WORDS.split())


_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Apart(NamedTuple):
    """Hits with the repetitions set aside.

    Attributes:
        shown: each fact once, best first, and behind them those that are near one of the others.
        repeated: those that are not shown.
        like: for each of the latter two the id of the topic that it is like.
    """

    shown: tuple[Hit, ...] = ()
    repeated: tuple[Hit, ...] = ()
    like: Mapping[str, str] = _NOTHING


class _Note:
    def __init__(self, hit: Hit, vector: "Vector | None") -> None:
        self.hit, self.vector = hit, vector

    @cached_property
    def words(self) -> tuple[str, ...]:
        """In the order of the text, fillers and plurals apart; of CJK the characters."""
        topic = self.hit.topic
        pieces = _pieces(f"{topic.title}\n{topic.description}\n{topic.body}")
        return tuple(word for word in map(_singular, pieces) if word not in _FILLERS)

    @cached_property
    def different(self) -> frozenset[str]:
        return frozenset(self.words)

    @property
    def stated(self) -> str:
        """What it says; a title may be no more than the name of a file."""
        return f"{self.hit.topic.description}\n{self.hit.topic.body}"


def apart(hits: Sequence[Hit], vectors: "Sequence[Vector | None]") -> Apart:
    """Sets aside what a better hit, or a fuller one that is near it, says as well.

    Of two that are near each other, one of which says all that the other does, the fuller one is shown in the place of
    the better, unless a newer fact has superseded it; of two that say the same the better one, or that of the project
    where both scopes have it.

    Args:
        hits: best first.
        vectors: of each topic that has only one, of unit length; None for the others, which are compared by their text.
    """
    first: list[_Note] = []
    behind: list[_Note] = []
    repeated: list[Hit] = []
    like: dict[str, str] = {}
    for hit, vector in zip(hits[:_MOST], vectors[:_MOST], strict=True):
        note = _Note(hit, vector)
        at, other = next(((at, other) for at, other in enumerate(first) if _near(note, other)), (0, None))
        if other is None:
            first.append(note)
            continue
        told, tells = _repeats(note, other), _repeats(other, note)
        if tells and (not told or _is_of_user_only(other, note)) and not note.hit.topic.superseded_by:
            first[at] = note
            repeated.append(other.hit)
            like = {name: hit.topic.id if of == other.hit.topic.id else of for name, of in like.items()}
            like[other.hit.topic.id] = hit.topic.id
            continue
        like[hit.topic.id] = other.hit.topic.id
        if told:
            repeated.append(hit)
        else:
            behind.append(note)
    shown = (*(note.hit for note in (*first, *behind)), *hits[_MOST:])
    return Apart(shown, tuple(repeated), like)


def _near(note: _Note, other: _Note) -> bool:
    """Whether one repeats the other, or both are short and may well mean the same."""
    if _is_copy(note.hit.topic, other.hit.topic):
        return True
    if note.vector is None or other.vector is None or float(note.vector @ other.vector) < _NEAR:
        return False
    from recall.text.facts import may_be_one  # takes a while to load, and only vectors bring anybody here

    may_mean_the_same = _repeats(note, other) or _repeats(other, note) or _are_one_fact(note, other)
    return may_mean_the_same and may_be_one(note.stated, other.stated)


def _is_copy(topic: Topic, other: Topic) -> bool:
    same_head = (topic.title, topic.description) == (other.title, other.description)
    return topic.body == other.body and same_head


def _are_one_fact(note: _Note, other: _Note) -> bool:
    """Whether both are short, and neither turns the words of the other round."""
    turned = note.different == other.different and bool(note.different & _ORDERING)
    return max(len(note.different), len(other.different)) <= _SHORT and not turned


def _repeats(note: _Note, other: _Note) -> bool:
    """Whether the other says all that the note does, in the same order."""
    words = iter(other.words)
    return all(word in words for word in note.words)


def _is_of_user_only(other: _Note, note: _Note) -> bool:
    return other.hit.topic.scope is Scope.USER and note.hit.topic.scope is Scope.PROJECT


def _pieces(text: str) -> Iterable[str]:
    for run in runs(normalise(text)):
        yield from run.text if run.is_cjk else (run.text,)


def _singular(word: str) -> str:
    is_plural = len(word) >= _PLURAL_FROM and word.endswith("s") and not word.endswith("ss")
    return word[:-1] if is_plural else word
