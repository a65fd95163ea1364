"""The encoder in a running memory."""

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from recall.config import EncoderConfig
from recall.errors import ModelNotFoundError
from recall.index import flat
from recall.index.base import Vector, Vectors
from recall.index.encoders import make_encoder
from recall.index.hashing import HashingEncoder
from recall.index.onnx import OnnxEncoder
from recall.memory.model import Model, readable
from recall.text.chunks import encoder_tokens

LONG_S = 60.0  # an upper bound that only a broken implementation reaches


class Counted(HashingEncoder):
    """Remembers its queries and answers them as it is told to."""

    def __init__(self, answer: object = None) -> None:
        super().__init__(64)
        self.answer = answer
        self.queries: list[str] = []

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        raise AssertionError("a query is no document")

    def encode_query(self, text: str) -> Vector:
        self.queries.append(text)
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is not None:
            return self.answer  # type: ignore[return-value]  # whatever a host's encoder gives
        vector: Vector = super().encode_documents([text])[0]
        return vector


# --- which encoder


def test_the_settings_name_the_encoder(tmp_path: Path) -> None:
    assert make_encoder(EncoderConfig(model="off")) is None
    assert isinstance(make_encoder(EncoderConfig(model="hashing")), HashingEncoder)
    shipped = make_encoder(EncoderConfig())
    assert isinstance(shipped, OnnxEncoder)
    assert make_encoder(EncoderConfig()) is shipped
    with pytest.raises(ModelNotFoundError, match="nowhere"):
        make_encoder(EncoderConfig(model=str(tmp_path / "nowhere")))


# --- loading


def test_it_is_warm_only_after_it_was_loaded() -> None:
    model = Model(Counted(), products=flat.products)
    assert not model.is_warm
    model.warm_up()
    assert model.is_warm
    assert model.products is flat.products


def test_without_an_encoder_it_is_never_warm_and_asks_for_nothing() -> None:
    model = Model(None, problem="no model")
    model.warm_up()
    assert not model.is_warm
    assert model.query("zebra") is None
    assert model.problem == "no model"


def test_a_model_that_cannot_be_loaded_is_a_problem_and_no_error() -> None:
    model = Model(Counted(RuntimeError("boom")), products=flat.products)
    model.warm_up()
    assert (model.encoder, model.problem, model.is_warm) == (None, "boom", False)
    assert model.query("zebra") is None


def test_an_error_without_words_is_a_problem_with_a_name() -> None:
    model = Model(Counted(KeyError()), products=flat.products)
    model.warm_up()
    assert model.problem == "KeyError()"


def test_it_is_loaded_once_by_however_many() -> None:
    encoder = Counted()
    model = Model(encoder, products=flat.products)
    threads = [threading.Thread(target=model.warm_up, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_S)
    assert len(encoder.queries) == 1


# --- queries


def test_a_query_loads_the_model_and_is_asked_for_once() -> None:
    encoder = Counted()
    model = Model(encoder, products=flat.products)
    first, second = model.query("zebra crossing"), model.query("zebra crossing")
    assert first is not None
    assert second is first
    assert encoder.queries.count("zebra crossing") == 1
    assert np.linalg.norm(first) == pytest.approx(1)


def test_old_queries_are_forgotten() -> None:
    encoder = Counted()
    model = Model(encoder, products=flat.products)
    for number in range(200):
        model.query(f"query {number}")
    assert len(model._recent) == 64
    model.query("query 199")
    model.query("query 0")
    assert (encoder.queries.count("query 199"), encoder.queries.count("query 0")) == (1, 2)


@pytest.mark.parametrize(
    "answer",
    [RuntimeError("boom"), np.zeros(63, np.float32), [0.5] * 64, "text"],
    ids=["raises", "narrow", "list", "str"],
)
def test_a_query_that_cannot_be_encoded_is_searched_by_its_words(answer: object) -> None:
    encoder = Counted()
    model = Model(encoder, products=flat.products)
    model.warm_up()
    encoder.answer = answer
    assert model.query("zebra") is None
    assert model.is_warm
    encoder.answer = None
    assert model.query("zebra") is not None


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_a_vector_that_is_no_direction_takes_no_part(value: float) -> None:
    model = Model(Counted(np.full(64, value, np.float32)), products=flat.products)
    vector = model.query("zebra")
    assert vector is None or not vector.any()


def test_vectors_of_any_length_are_taken_for_their_direction() -> None:
    model = Model(Counted(np.full(64, 1e30, np.float32)), products=flat.products)
    vector = model.query("zebra")
    assert vector is not None
    assert vector == pytest.approx(1 / 8)


# --- long queries


def test_a_query_that_a_model_can_read_is_left_as_it_is() -> None:
    assert readable("什么时候发布？", 430) == "什么时候发布？"


@pytest.mark.parametrize("filling", ["日志", "a log line with words ", "x"])
def test_of_a_longer_one_beginning_and_end_are_read(filling: str) -> None:
    cut = readable("开头 " + filling * 4000 + " 结尾？", 430)
    assert cut.startswith("开头")
    assert cut.endswith("结尾？")
    assert encoder_tokens(cut) < 430 * 1.2
