"""Sets of whole numbers as rising arrays.

numpy has the same (`unique`, `isin`, `union1d`, `setdiff1d`), but makes them with a hash table in C++ that lets go of
the interpreter: a daemon thread that is in there when the interpreter ends aborts the whole process (index.native).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]


def distinct(numbers: Numbers) -> Numbers:
    """Each of the numbers once, rising."""
    ordered: Numbers = np.sort(numbers)
    found: Numbers = ordered[np.diff(ordered, prepend=ordered[:1] - 1) != 0]
    return found


def is_among(numbers: Numbers, others: Numbers) -> NDArray[np.bool_]:
    """Which of the numbers are among the others, shape of `numbers`."""
    if not len(others):
        return np.zeros(numbers.shape, np.bool_)
    ordered: Numbers = np.sort(others)
    found: NDArray[np.bool_] = ordered[np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)] == numbers
    return found


def without(numbers: Numbers, others: Numbers) -> Numbers:
    """Each of the numbers once that is not among the others, rising."""
    left = distinct(numbers)
    return left[~is_among(left, others)]
