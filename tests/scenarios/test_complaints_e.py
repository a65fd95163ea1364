"""Complaints from the field, group E: vectors that are none."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from recall import Config, Memory, Strategy
from recall.index.base import Vector, Vectors
from recall.index.hashing import HashingEncoder

Write = Callable[..., Path]
Open = Callable[..., Memory]


class Poisoned(HashingEncoder):
    """Gives something that is no vector for a text that holds `poison`."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        rows = np.array(super().encode_documents(texts))
        rows[["poison" in text for text in texts]] = self.value
        return rows

    def encode_query(self, text: str) -> Vector:
        vector: Vector = super().encode_documents([text])[0]
        return vector


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0])
def test_e30_a_text_whose_vector_is_no_number_is_found_by_its_words_and_reported_and_harms_no_ranking(
    opened: Open, write: Write, value: float
) -> None:
    for name in ("zebra", "tiger", "poison"):
        write(f"{name}.md", f"the {name} sleeps in the garden")
    memory, healthy = opened(encoder=Poisoned(value)), opened(encoder=HashingEncoder())
    report = memory.reindex()
    assert [path for path, _ in report.unembedded] == ["poison.md"]
    assert list(memory.status()[0].problems) == ["poison.md"]
    found = memory.recall("poison sleeps")
    assert found.hits[0].topic.id == "poison.md"
    assert "stand in for a vector" in memory.explain("poison sleeps").recall.hits[0].explain()[0]
    assert all(math.isfinite(hit.score) for hit in found.hits)
    assert not memory._keeper._vectors_wanted.is_set()  # nobody tries again at every recall
    scores = [memory.recall(f"{name} sleeps").hits[0].score for name in ("zebra", "tiger")]
    healthy.reindex(full=True)
    assert scores == pytest.approx([healthy.recall(f"{name} sleeps").hits[0].score for name in ("zebra", "tiger")])


@pytest.mark.parametrize("model", ["hashing", pytest.param("onnx", marks=pytest.mark.model)])
@pytest.mark.parametrize("query", ["…… —— ！！", "\u0d05\u0d06\u0d07", "\ue000\ue001", "\u200b\u200b"])
def test_e31_a_query_of_characters_that_nobody_knows_finds_nothing_and_raises_nothing(
    opened: Open, write: Write, config: Config, with_model: Config, query: str, model: str
) -> None:
    write("a.md", "我们周二发布上线")
    write("b.md", "The user drinks tea without milk.")
    memory = opened(config=config if model == "hashing" else with_model)
    memory.reindex()
    found = memory.recall(query)
    assert (found.hits, found.strategy, found.prompt) == ((), Strategy.NONE, "")
    assert memory.prefetch(query).first() is None
