"""What recall knows of models that others publish: rows of models/presets.yaml, by name."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from recall.errors import ConfigError
from recall.index.onnx import models_folder

UNMEASURED_FLOOR: Final = 0.205
"""Floor of a model whose own was not measured: that of the shipped model."""


class Preset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row; the head of the file describes its fields.

    Attributes:
        floor: None where it was not measured.
        max_tokens: None where the model reads any length.
        trust_remote_code: whether the model brings code of its own, which is run.
    """

    model: str
    query_prefix: str
    document_prefix: str
    pooling: Literal["mean", "cls", "lasttoken", "static"]
    dim: Annotated[int, msgspec.Meta(gt=0)]
    max_tokens: Annotated[int, msgspec.Meta(gt=2)] | None
    licence: str
    floor: float | None
    trust_remote_code: bool = False


def read_presets(file: Path) -> dict[str, Preset]:
    """The rows of the file by name.

    Raises:
        ConfigError: no such file, no YAML, or a row that is none; names the file and the row's key.
    """
    import yaml

    try:
        rows = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"cannot be read: {error}", source=str(file)) from error
    if not isinstance(rows, Mapping):
        raise ConfigError("expected rows by name", source=str(file))
    return {str(name): _preset(row, file=file, name=str(name)) for name, row in rows.items()}


def _preset(row: object, *, file: Path, name: str) -> Preset:
    try:
        return msgspec.convert(row, Preset)
    except msgspec.ValidationError as error:
        raise ConfigError(str(error), source=str(file), key=name) from error


@cache
def presets() -> Mapping[str, Preset]:
    """The rows that come with recall."""
    return read_presets(models_folder() / "presets.yaml")
