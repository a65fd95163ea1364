"""How sure a mean difference is: percentile intervals of the paired bootstrap."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

RESAMPLES: Final = 5_000
_TAILS: Final = (0.025, 0.975)


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with the bounds that 95 of 100 such samples would keep it in.

    Attributes:
        mean: of the sample itself.
        low: lower bound.
        high: upper bound.
    """

    mean: float
    low: float
    high: float


def paired(
    differences: Sequence[float], *, seed: int, clusters: Sequence[str] | None = None, resamples: int = RESAMPLES
) -> Interval | None:
    """The mean of paired differences, resampled with replacement.

    Args:
        differences: one way's score minus the other's, one a query.
        seed: of the draws.
        clusters: what each query belongs to, where queries of one cluster resemble each other; clusters are then drawn
            as wholes, each with all its queries. None draws query by query.
        resamples: number of draws.

    Returns:
        None where there are fewer than two things to draw from.
    """
    values = np.asarray(differences, np.float64)
    groups = range(len(values)) if clusters is None else clusters
    if len(set(groups)) < 2:
        return None
    _, member = np.unique(np.asarray(groups), return_inverse=True)
    sums, sizes = np.bincount(member, weights=values), np.bincount(member)
    count = len(sums)
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=resamples)
    low, high = np.quantile(drawn @ sums / (drawn @ sizes), _TAILS)
    return Interval(float(values.mean()), float(low), float(high))
