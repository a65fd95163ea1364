"""A topic with the parts of its score, before its text is read."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from recall.search.weights import PHRASE_WEIGHT, fit, fit_by_words

# What an unrelated topic shows on average, and how many of them are supposed.
_UNRELATED: Final = 0.06
_SUPPOSED: Final = 10


@dataclass(frozen=True, slots=True)
class Usual:
    """What topics show with a query, whether they have to do with it or not; of several memories the sum.

    Attributes:
        total: sum of the cosines.
        topics: how many there are.
    """

    total: float = 0.0
    topics: float = 0.0

    def __add__(self, other: "Usual") -> "Usual":
        return Usual(self.total + other.total, self.topics + other.topics)

    @property
    def cosine(self) -> float:
        """The mean, unrelated topics added: of few, one right answer is much."""
        return (self.total + _UNRELATED * _SUPPOSED) / (self.topics + _SUPPOSED)


class Scored(NamedTuple):
    """One topic of one memory with its parts.

    Attributes:
        score: what it is ranked by.
        position: its place in the snapshot, or its document number.
        cosine: None when it has no vector.
        coverage: F.
        chunk: number of the best chunk.
        matched: how many different words of the query it holds, function words apart.
        phrases: share of what the query says in phrases that it holds (search.phrases).
        alone: share of it in words that no better topic holds.
    """

    score: float
    position: int
    cosine: float | None
    coverage: float
    chunk: int
    matched: int
    phrases: float = 0.0
    alone: float = 0.0

    def holding(self, phrases: float) -> "Scored":
        """The same once its text has been looked at."""
        return self._replace(score=self.score + PHRASE_WEIGHT * phrases, phrases=phrases)

    def fit(self, usual: Usual) -> float:
        """How well it fits the query (search.weights)."""
        if self.cosine is None:
            return fit_by_words(self.coverage, self.matched)
        return fit(self.cosine, self.coverage, self.matched, usual=usual.cosine)


Place = tuple[int, Scored]
"""Number of the memory, and the topic."""
