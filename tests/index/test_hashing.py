"""The encoder without a model."""

import numpy as np
import pytest
from numpy.typing import NDArray

from recall.index.hashing import HashingEncoder


def cosine(one: str, other: str) -> float:
    rows: NDArray[np.float32] = HashingEncoder().encode_documents([one, other])
    return float(rows[0] @ rows[1])


def test_texts_that_share_words_lie_nearer_than_those_that_do_not() -> None:
    assert cosine("deploy on Tuesdays", "we deploy on Tuesdays and Thursdays") > 0.5
    assert cosine("周二发布上线", "每周二可以发布") > 0.2
    assert abs(cosine("deploy on Tuesdays", "卡布奇诺不加糖")) < 0.2


def test_parts_of_words_count_a_little() -> None:
    related, unrelated = cosine("deployment", "deployments"), cosine("deployment", "cappuccino")
    assert 0.2 > related > 0.05 > abs(unrelated)


def test_case_width_and_order_do_not_matter() -> None:
    assert cosine("API 部署", "ａｐｉ 部署") == pytest.approx(1)
    assert cosine("red green blue", "blue red green") == pytest.approx(1)


def test_a_text_without_letters_or_numbers_gives_a_zero_row() -> None:
    rows = HashingEncoder().encode_documents(["", " \n", "👍 --- !?", "word"])
    assert rows.any(axis=1).tolist() == [False, False, False, True]


def test_repeats_count_by_their_root() -> None:
    assert cosine("alpha beta", "alpha " * 50 + "beta " * 50) == pytest.approx(1)
    assert cosine("alpha", "alpha " * 4 + "beta") == pytest.approx(2 / 5**0.5, abs=0.02)  # as 2 : 1


def test_query_and_document_of_one_text_have_one_vector() -> None:
    encoder = HashingEncoder()
    np.testing.assert_array_equal(encoder.encode_query("部署 deploy"), encoder.encode_documents(["部署 deploy"])[0])


def test_another_dimension_is_another_space() -> None:
    small, large = HashingEncoder(64), HashingEncoder(1024)
    assert small.fingerprint != large.fingerprint
    assert small.encode_documents(["word"]).shape == (1, 64)


def test_vectors_stay_what_they_were_when_they_were_stored() -> None:
    """A change here needs another fingerprint: stored vectors would no longer fit new queries."""
    encoder = HashingEncoder()
    vector = encoder.encode_query("Deploy 部署 on 2024 café")
    assert encoder.fingerprint == "hashing-2-512"
    strong = {int(at): round(float(vector[at]), 2) for at in np.flatnonzero(np.abs(vector) > 0.15)}
    assert strong == {49: -0.42, 98: 0.42, 111: 0.21, 181: 0.42, 250: 0.42, 415: 0.17, 456: -0.42}
    assert np.count_nonzero(vector) == 21
