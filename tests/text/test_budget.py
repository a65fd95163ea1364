"""The token estimate is a simple rule, on the high side, and adds up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.text.budget import estimate_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("seven l", 2),
        ("eight le", 3),
        ("汉字", 2),
        ("汉字 ab", 3),
        ("é", 1),
        ("🚀", 2),
        ("\ud800", 1),
    ],
)
def test_ascii_costs_two_sevenths_cjk_one_and_emoji_two(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text(), st.text())
def test_a_whole_never_costs_more_than_its_parts_nor_less_than_one_of_them(one: str, two: str) -> None:
    assert max(estimate_tokens(one), estimate_tokens(two)) <= estimate_tokens(one + two)
    assert estimate_tokens(one + two) <= estimate_tokens(one) + estimate_tokens(two)
