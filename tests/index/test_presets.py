"""The rows of models that others publish."""

from pathlib import Path

import pytest

from recall.errors import ConfigError
from recall.index.onnx import DEFAULT_MODEL, models_folder, read_card
from recall.index.presets import UNMEASURED_FLOOR, Preset, presets, read_presets

ROW = """
tiny:
  model: acme/tiny
  query_prefix: "query: "
  document_prefix: ""
  pooling: mean
  dim: 8
  max_tokens: 32
  licence: MIT
  floor: null
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "presets.yaml"


def test_a_row_says_what_the_model_is(file: Path) -> None:
    file.write_text(ROW, encoding="utf-8")
    assert read_presets(file) == {
        "tiny": Preset(
            model="acme/tiny",
            query_prefix="query: ",
            document_prefix="",
            pooling="mean",
            dim=8,
            max_tokens=32,
            licence="MIT",
            floor=None,
        )
    }


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ("dim: 8", "dim: 0", "dim"),
        ("dim: 8", "dim: many", "dim"),
        ("  dim: 8\n", "", "dim"),
        ("pooling: mean", "pooling: mode", "pooling"),
        ("max_tokens: 32", "max_tokens: 2", "max_tokens"),
        ("  floor: null\n", "", "floor"),
        ("licence: MIT", "license: MIT", "license"),
        ("licence: MIT", "licence: 3", "licence"),
    ],
)
def test_a_row_that_makes_no_sense_is_named_with_its_file_and_key(
    file: Path, before: str, after: str, named: str
) -> None:
    assert before in ROW
    file.write_text(ROW.replace(before, after), encoding="utf-8")
    with pytest.raises(ConfigError, match=named) as caught:
        read_presets(file)
    assert (caught.value.source, caught.value.key) == (str(file), "tiny")


@pytest.mark.parametrize("text", ["", "- a list\n", "tiny: [\n", "tiny: 3\n"])
def test_a_file_without_rows_is_named(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_presets(file)
    assert caught.value.source == str(file)


def test_a_missing_file_is_named(file: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        read_presets(file)
    assert caught.value.source == str(file)


def test_the_key_of_each_preset_is_the_last_part_of_its_model() -> None:
    assert len(presets()) == 11
    assert [*presets()] == [row.model.rpartition("/")[2] for row in presets().values()]


def test_only_the_model_that_needs_it_may_bring_code() -> None:
    assert [name for name, row in presets().items() if row.trust_remote_code] == ["gte-multilingual-base"]


def test_prefixes_keep_their_blanks() -> None:
    e5 = presets()["multilingual-e5-small"]
    assert (e5.query_prefix, e5.document_prefix) == ("query: ", "passage: ")
    assert presets()["Qwen3-Embedding-0.6B"].query_prefix.endswith("\nQuery:")


def test_an_unmeasured_floor_is_that_of_the_shipped_model() -> None:
    assert read_card(models_folder() / DEFAULT_MODEL).floor == UNMEASURED_FLOOR
