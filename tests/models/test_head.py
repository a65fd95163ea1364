"""The language-neutral head, on vectors whose languages are known."""

import numpy as np
import pytest
from numpy.typing import NDArray

from models.building.head import Head, fit, pairs
from models.building.parity import compare, vectors
from recall.index.base import Vector
from recall.index.hashing import HashingEncoder

COUNT, DIM = 200, 24


def two_languages() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Meanings in the last 20 numbers; the rest, and a large common part, are the language's."""
    random = np.random.default_rng(7)
    meaning = random.normal(size=(COUNT, DIM))
    meaning[:, :4] = 0
    found = []
    for sign in (1, -1):
        language = np.zeros((COUNT, DIM))
        language[:, 0] = 4 * sign
        language[:, 1:3] = sign * random.normal(size=(COUNT, 2)) * 2
        language[:, 3] = 9
        rows = meaning + language
        found.append((rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32))
    return found[0], found[1]


def share_found(questions: NDArray[np.float64], notes: NDArray[np.float64]) -> float:
    """Of the questions, how many find their translation among the notes of both languages, after themselves."""
    order = np.argsort(-(questions @ np.vstack([questions, notes]).T), axis=1)
    return float(np.mean(order[:, 1] == np.arange(COUNT) + COUNT))


def test_translations_come_to_lie_on_each_other() -> None:
    one, other = two_languages()
    before = share_found(one.astype(np.float64), other.astype(np.float64))
    head = fit(one, other, directions=3)
    assert before < 0.1
    assert share_found(head(one), head(other)) > 0.95
    assert share_found(fit(one, other, directions=1)(one), fit(one, other, directions=1)(other)) < 0.95


def test_the_head_of_directions_is_a_projection_of_that_rank() -> None:
    head = fit(*two_languages(), directions=3)
    np.testing.assert_allclose(head.projection @ head.projection, head.projection, atol=1e-9)
    assert np.trace(head.projection) == pytest.approx(DIM - 3)


def test_without_directions_only_the_mean_goes() -> None:
    one, other = two_languages()
    head = fit(one, other, directions=0)
    np.testing.assert_array_equal(head.projection, np.eye(DIM))
    np.testing.assert_allclose(head.mean, np.vstack([one, other]).mean(axis=0), atol=1e-6)
    both = np.vstack([one, other])
    assert abs(float(np.mean(head(both) @ head(both).T))) < 0.01 < 0.5 < float(np.mean(both @ both.T))


def test_rows_come_out_with_unit_length_whatever_theirs_was() -> None:
    one, other = two_languages()
    head = fit(one, other, directions=3)
    np.testing.assert_allclose(head(one * 5), head(one), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(head(one), axis=1), 1)
    nothing = Head(np.zeros(2), np.zeros((2, 2)))
    np.testing.assert_array_equal(nothing(np.ones((1, 2), np.float32)), [[0, 0]])


def test_the_texts_that_it_is_fitted_on_are_pairs_of_two_languages() -> None:
    chinese, english = pairs()
    assert len(chinese) == len(english) == len({*chinese}) == len({*english}) == 120
    assert all(any("\u4e00" <= letter <= "\u9fff" for letter in text) for text in chinese)
    assert all(text.isascii() and text.strip() == text for text in english)


def test_the_text_that_came_out_worst_is_named() -> None:
    wanted = np.eye(4, dtype=np.float32)
    for at, text in enumerate("abcd"):
        found = wanted.copy()
        found[at] *= 0.5
        parity = compare(wanted, found, ["a", "b", "c", "d"])
        assert (parity.count, parity.mean, parity.least, parity.worst) == (4, 0.875, 0.5, text)


def test_texts_are_compared_as_queries_and_as_documents() -> None:
    class Told(HashingEncoder):
        def encode_query(self, text: str) -> Vector:
            return super().encode_query(f"question {text}")

    plain, told = HashingEncoder(), Told()
    texts = ["deploy", "deploy", "coffee"]
    wanted = np.stack([told.encode_query("deploy"), plain.encode_query("deploy"), told.encode_query("coffee")])
    np.testing.assert_array_equal(vectors(told, texts), wanted)
