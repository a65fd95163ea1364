"""Sets of whole numbers, compared with numpy's own."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recall.index import sets

_KINDS = [np.int8, np.int32, np.int64, np.uint8]
_ANY = st.lists(st.integers(0, 127), max_size=40)


@pytest.mark.parametrize("kind", _KINDS)
@given(first=_ANY, second=_ANY)
def test_it_is_what_numpy_finds(kind: Any, first: list[int], second: list[int]) -> None:
    numbers, others = np.array(first, kind), np.array(second, kind)
    _same(sets.distinct(numbers), np.unique(numbers))
    _same(sets.is_among(numbers, others), np.isin(numbers, others))
    _same(sets.without(numbers, others), np.setdiff1d(numbers, others))


@pytest.mark.parametrize("kind", _KINDS)
def test_the_ends_of_the_range_are_numbers_like_others(kind: Any) -> None:
    ends = np.array([np.iinfo(kind).max, np.iinfo(kind).min, np.iinfo(kind).max], kind)
    _same(sets.distinct(ends), np.unique(ends))
    _same(sets.is_among(ends, ends[1:2]), np.array([False, True, False]))


def _same(found: NDArray[Any], right: NDArray[Any]) -> None:
    assert found.dtype == right.dtype
    assert found.tolist() == right.tolist()
