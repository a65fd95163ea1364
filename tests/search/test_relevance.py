"""Scores of different searches on one scale."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.search.relevance import LEAST, MOST, fused_relevance, words_relevance

FLOOR = 0.25
SCORES = st.floats(-2, 2, allow_nan=False)


@given(SCORES, SCORES, st.floats(-1, 1))
def test_a_fused_score_that_is_higher_is_never_less_relevant(one: float, other: float, floor: float) -> None:
    low, high = sorted((one, other))
    assert LEAST <= fused_relevance(low, floor) <= fused_relevance(high, floor) <= MOST


@given(st.integers(0, 500), st.integers(0, 500), st.text())
def test_so_are_points_of_the_founding_heuristic(one: int, other: int, query: str) -> None:
    low, high = sorted((one, other))
    assert LEAST <= words_relevance(low, query) <= words_relevance(high, query) <= MOST


def test_scores_above_the_floor_are_told_apart_to_the_top() -> None:
    found = [fused_relevance(score / 100, FLOOR) for score in range(25, 141)]
    assert found == sorted(set(found))
    assert found[0] == LEAST
    assert fused_relevance(-1e9, FLOOR) == LEAST


@pytest.mark.parametrize(
    ("score", "least", "most"),
    [(0.34, 3, 5), (0.42, 4.5, 6), (0.52, 6, 7.5), (0.95, 9, 10)],
    ids=["another language, weak", "another language", "another language, good", "words and meaning"],
)
def test_right_answers_spread_over_the_scale(score: float, least: float, most: float) -> None:
    assert least < fused_relevance(score, FLOOR) < most


def test_the_scale_begins_at_the_floor_of_the_model() -> None:
    assert fused_relevance(0.9, 0.85) == pytest.approx(fused_relevance(0.3, 0.25))


def test_points_count_by_the_share_of_the_question_that_they_stand_for() -> None:
    short, long = "release window", "release window for mobile clients after holidays"
    assert words_relevance(8, short) > words_relevance(8, long) + 3
    assert words_relevance(0, short) == LEAST
    assert words_relevance(8, short) == pytest.approx(words_relevance(4, "release"))
    assert words_relevance(8, short) < fused_relevance(0.95, FLOOR)
