"""Which encoders another process can make."""

from pathlib import Path
from typing import Any

import pytest

from recall.config import EncoderConfig
from recall.index.encoders import make_encoder, recipe_of
from recall.index.hashing import HashingEncoder
from recall.index.onnx import DEFAULT_MODEL, OnnxEncoder, models_folder


@pytest.mark.parametrize(
    "config", [EncoderConfig(model="hashing"), EncoderConfig(), EncoderConfig(threads=2)], ids=lambda c: f"{c.model}"
)
def test_what_was_made_from_settings_says_from_which(config: EncoderConfig) -> None:
    assert recipe_of(make_encoder(config)) == config


def test_a_model_of_ones_own_is_named_by_its_folder() -> None:
    folder = models_folder() / DEFAULT_MODEL
    assert recipe_of(OnnxEncoder(folder)) == EncoderConfig(model=str(folder))
    assert recipe_of(OnnxEncoder()) == EncoderConfig()


class Wrapper:
    """Passes on a recipe and perhaps another fingerprint."""

    def __init__(self, recipe: object, fingerprint: str) -> None:
        self.recipe, self.fingerprint = recipe, fingerprint


HASHING = EncoderConfig(model="hashing")


def test_a_wrapper_may_pass_a_recipe_on_as_long_as_the_vectors_are_the_same(tmp_path: Path) -> None:
    same: Any = Wrapper(HASHING, HashingEncoder().fingerprint)
    assert recipe_of(same) == HASHING
    lost = EncoderConfig(model=str(tmp_path / "nowhere"))
    others: list[Any] = [
        Wrapper(HASHING, "mine"),
        Wrapper(None, HashingEncoder().fingerprint),
        Wrapper("hashing", HashingEncoder().fingerprint),
        Wrapper(EncoderConfig(model="off"), ""),
        Wrapper(lost, "lost"),
    ]
    assert [recipe_of(other) for other in others] == [None] * len(others)


def test_others_have_none() -> None:
    assert recipe_of(HashingEncoder(64)) is None
    assert recipe_of(None) is None
