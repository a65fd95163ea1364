"""Measures of rankings against numbers worked out by hand."""

import math

import pytest

from recall.apps.metrics import (
    NAMES,
    Judged,
    by_kind,
    hit_at_1,
    mean,
    measure,
    ndcg_at_10,
    recall_at_5,
    reciprocal_rank,
)

TWO = frozenset({"b", "d"})


def test_the_first_answer_decides_hit_at_1() -> None:
    assert hit_at_1(["b", "a"], TWO) == 1.0
    assert hit_at_1(["a", "b"], TWO) == 0.0
    assert hit_at_1([], TWO) == 0.0


def test_recall_counts_the_first_five_answers_over_all_right_ones() -> None:
    assert recall_at_5(["a", "b", "c", "d"], TWO) == 1.0
    assert recall_at_5(["a", "b"], TWO) == 0.5
    assert recall_at_5(["1", "2", "3", "4", "b", "d"], TWO) == 0.5
    assert recall_at_5(["1", "2", "3", "4", "5", "b", "d"], TWO) == 0.0


def test_the_reciprocal_rank_ends_after_ten() -> None:
    assert reciprocal_rank(["a", "x", "d", "b"], TWO) == pytest.approx(1 / 3)
    assert reciprocal_rank([*"123456789", "b"], TWO) == pytest.approx(0.1)
    assert reciprocal_rank([*"1234567890", "b"], TWO) == 0.0


def test_ndcg_discounts_by_the_logarithm_of_the_rank() -> None:
    # right at ranks 2 and 4 of the two that exist: (1/log2(3) + 1/log2(5)) / (1/log2(2) + 1/log2(3))
    expected = (0.6309297535714575 + 0.43067655807339306) / (1 + 0.6309297535714575)
    assert ndcg_at_10(["a", "b", "c", "d"], TWO) == pytest.approx(expected)
    assert ndcg_at_10(["d", "b"], TWO) == 1.0
    assert ndcg_at_10([], TWO) == 0.0


def test_ndcg_never_asks_for_more_than_ten_right_answers() -> None:
    relevant = frozenset(map(str, range(20)))
    assert ndcg_at_10([str(number) for number in range(20)], relevant) == pytest.approx(1.0)
    assert ndcg_at_10([*map(str, range(5))], relevant) == pytest.approx(
        sum(1 / math.log2(rank + 1) for rank in range(1, 6)) / sum(1 / math.log2(rank + 1) for rank in range(1, 11))
    )


def test_questions_without_an_answer_count_in_their_own_measure_only() -> None:
    judged = [
        Judged("fact", ("b",), TWO),
        Judged("fact", ("a",), TWO),
        Judged("none", ("a",), frozenset()),
        Judged("none", (), frozenset()),
        Judged("none", (), frozenset()),
    ]
    means = measure(judged)
    assert tuple(means) == NAMES
    assert means["hit@1"] == 0.5
    assert means["recall@5"] == 0.25
    assert means["mrr"] == 0.5
    assert means["no_answer_answered"] == pytest.approx(1 / 3)


def test_a_measure_that_no_question_counts_for_is_none() -> None:
    assert measure([Judged("none", (), frozenset())])["ndcg@10"] is None
    assert measure([Judged("fact", ("b",), TWO)])["no_answer_answered"] is None
    assert mean([]) is None


def test_kinds_come_apart_in_the_order_of_their_names() -> None:
    judged = [Judged("z", (), TWO), Judged("a", ("b",), TWO), Judged("z", ("d",), TWO)]
    parts = by_kind(judged)
    assert list(parts) == ["a", "z"]
    assert [len(part) for part in parts.values()] == [1, 2]
