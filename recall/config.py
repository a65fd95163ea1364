"""Settings: one frozen record a section, each value with its unit in the name, merged from visible sources.

Order, later wins: defaults, project file (only keys that can do no harm, because it comes from the opened repository),
environment, user file, arguments (DESIGN section 4.6).
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from recall.errors import ConfigError

Count = Annotated[int, msgspec.Meta(ge=1)]
Milliseconds = Annotated[float, msgspec.Meta(gt=0)]


class SearchConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a query is answered.

    Attributes:
        k: topics in an answer.
        budget_ms: how long `Prefetch.first()` may take.
        hold_ms: how long a quick result waits for a better one, counted from `first()`.
        fast_k: topics in a quick result.
        floor: fused score below which a hit is taken for chance; None takes the model's own.
        prompt_tokens: estimated tokens that the Relevant Memory block may have.
    """

    k: Count = 5
    budget_ms: Milliseconds = 100.0
    hold_ms: Milliseconds = 70.0
    fast_k: Count = 2
    floor: float | None = None
    prompt_tokens: Count = 4000


class IndexConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is indexed, and where derived data lies.

    Attributes:
        cache: folder of derived data; "" takes the platform's cache folder.
        max_file_bytes: larger files are reported, not indexed.
        workers: texts that long work encodes at once, 64 at most, in a process of its own; 0 leaves it to the process
            that opened the memory.
    """

    cache: str = ""
    max_file_bytes: Count = 16 * 1024 * 1024
    workers: Annotated[int, msgspec.Meta(ge=0, le=64)] = 1


class EncoderConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What turns text into vectors.

    Attributes:
        model: `onnx` for the shipped one, `hashing` for none, `off` for words alone, else the folder of an ONNX model.
        threads: threads of one encoding, 64 at most.
    """

    model: str = "onnx"
    threads: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1


class LayoutConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where memories lie.

    Attributes:
        host: qwen, claude, wave, workbuddy or plain; "" finds out.
        worktrees: `shared` or `separate`; "" leaves it to the host's custom.
    """

    host: Literal["", "qwen", "claude", "wave", "workbuddy", "plain"] = ""
    worktrees: Literal["", "shared", "separate"] = ""


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings."""

    search: SearchConfig = SearchConfig()
    index: IndexConfig = IndexConfig()
    encoder: EncoderConfig = EncoderConfig()
    layout: LayoutConfig = LayoutConfig()


_PROJECT_RANGES: Final = {
    "search.k": (1, 20),
    "search.fast_k": (1, 5),
    "search.floor": (0, 10),
    "search.prompt_tokens": (1, 8000),
}
PROJECT_KEYS: Final = frozenset(_PROJECT_RANGES)
"""All that a file inside an opened repository may set: nothing that names paths, models or time limits."""

PROJECT_FILE: Final = ".recall.toml"
ENV_PREFIX: Final = "RECALL_"

Flat = Mapping[str, object]


def load(
    *,
    project: Path | None = None,
    user_file: Path | None = None,
    env: Mapping[str, str] | None = None,
    arguments: Flat | None = None,
) -> Config:
    """The settings that hold, from all sources.

    Args:
        project: folder that may hold `.recall.toml`.
        user_file: the user's own file; may be missing.
        env: variables such as `RECALL_SEARCH__K=8`.
        arguments: dotted keys, for instance `{"search.k": 8}`.

    Raises:
        ConfigError: an unknown key, a value of the wrong kind, or a file that is no TOML; names source and key.
    """
    config = Config()
    if project:
        config = _merge(config, _project_keys(project / PROJECT_FILE), source=str(project / PROJECT_FILE))
    config = _merge(config, _env_keys(env or {}), source="environment")
    if user_file:
        config = _merge(config, _read(user_file), source=str(user_file))
    return _merge(config, arguments or {}, source="arguments")


def _merge(config: Config, values: Flat, *, source: str) -> Config:
    """The config with some dotted keys replaced."""
    built: dict[str, dict[str, Any]] = msgspec.to_builtins(config)
    for key, value in values.items():
        section, _, name = key.partition(".")
        if name not in built.get(section, {}):
            known = ", ".join(f"{part}.{field}" for part, fields in built.items() for field in fields)
            raise ConfigError(f"unknown setting; known are {known}", source=source, key=key)
        built[section][name] = value
        try:
            # Checked one by one, so that the message can name the key that is wrong.
            config = msgspec.convert(built, Config, strict=False)
        except msgspec.ValidationError as error:
            raise ConfigError(str(error), source=source, key=key) from error
    return config


def _project_keys(file: Path) -> dict[str, object]:
    values = _read(file)
    for key in values:
        if key not in PROJECT_KEYS:
            allowed = ", ".join(sorted(PROJECT_KEYS))
            raise ConfigError(f"a project file may only set {allowed}", source=str(file), key=key)
        value, (least, most) = values[key], _PROJECT_RANGES[key]
        if isinstance(value, int | float) and not least <= value <= most:
            raise ConfigError(f"a project file may set {least} to {most}, not {value}", source=str(file), key=key)
    return values


def _env_keys(env: Mapping[str, str]) -> dict[str, object]:
    """Settings among the variables: RECALL_SECTION__NAME; other RECALL_ names are not ours to judge."""
    names = {name: name.removeprefix(ENV_PREFIX).lower() for name in env if name.startswith(ENV_PREFIX)}
    return {key.replace("__", ".", 1): env[name] for name, key in names.items() if "__" in key}


def _read(file: Path) -> dict[str, object]:
    """Dotted keys of a TOML file; none when it is missing."""
    try:
        if file.exists() and not file.is_file():
            raise OSError("not a regular file")  # a link in a cloned project may lead to a device that never ends
        tables = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", source=str(file)) from error
    flat: dict[str, object] = {}
    for section, values in tables.items():
        if not isinstance(values, dict):
            raise ConfigError("settings stand in sections, for instance [search]", source=str(file), key=section)
        flat.update((f"{section}.{name}", value) for name, value in values.items())
    return flat
