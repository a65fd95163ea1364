"""How good a ranking is: the measures of `recall eval`, as pure functions."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

DEPTH: Final = 10
"""How many answers are looked at, at most."""

_FOUND_IN: Final = 5

Metrics = Mapping[str, float | None]
"""Means by name; None where no query counts for it."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The answer to one query beside the truth.

    Attributes:
        kind: what sort of query it is.
        ranking: ids of the answered topics, best first, each once.
        relevant: ids that should have been answered; empty when nothing should.
    """

    kind: str
    ranking: tuple[str, ...]
    relevant: frozenset[str]


def hit_at_1(ranking: Sequence[str], relevant: Collection[str]) -> float:
    """1 when the first answer is right."""
    return float(ranking[0] in relevant) if ranking else 0.0


def recall_at_5(ranking: Sequence[str], relevant: Collection[str]) -> float:
    """Share of the right topics among the first five answers."""
    return len(set(ranking[:_FOUND_IN]).intersection(relevant)) / len(relevant)


def reciprocal_rank(ranking: Sequence[str], relevant: Collection[str]) -> float:
    """1 / rank of the first right answer within the first ten, else 0."""
    return next((1 / rank for rank, name in enumerate(ranking[:DEPTH], start=1) if name in relevant), 0.0)


def ndcg_at_10(ranking: Sequence[str], relevant: Collection[str]) -> float:
    """Discounted gain of the first ten answers over the best possible; a right topic gains 1."""
    gain = sum(1 / math.log2(rank + 1) for rank, name in enumerate(ranking[:DEPTH], start=1) if name in relevant)
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(relevant), DEPTH) + 1))
    return gain / best


_MEASURES: Final[Mapping[str, Callable[[Sequence[str], Collection[str]], float]]] = {
    "hit@1": hit_at_1,
    "recall@5": recall_at_5,
    "mrr": reciprocal_rank,
    "ndcg@10": ndcg_at_10,
}
NO_ANSWER: Final = "no_answer_answered"
NAMES: Final = (*_MEASURES, NO_ANSWER)


def measure(judged: Sequence[Judged]) -> dict[str, float | None]:
    """The means over all queries, by name.

    A query that nothing should be answered to counts in `no_answer_answered` alone: the share of those that got an
    answer all the same.
    """
    answerable = [one for one in judged if one.relevant]
    unanswerable = [float(bool(one.ranking)) for one in judged if not one.relevant]
    means = {name: mean([score(one.ranking, one.relevant) for one in answerable]) for name, score in _MEASURES.items()}
    return {**means, NO_ANSWER: mean(unanswerable)}


def by_kind(judged: Sequence[Judged]) -> dict[str, Sequence[Judged]]:
    """The same queries apart by kind, in the order of the kinds' names."""
    kinds = sorted({one.kind for one in judged})
    return {kind: [one for one in judged if one.kind == kind] for kind in kinds}


def mean(values: Sequence[float]) -> float | None:
    """The arithmetic mean; None of nothing."""
    return math.fsum(values) / len(values) if values else None
