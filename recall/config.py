"""Settings: one frozen record a section, each value with its unit in the name, merged from visible sources.

Order, later wins: defaults, project file (only keys that can do no harm, because it comes from the opened repository),
environment, user file, arguments (DESIGN section 4.6). A named tuple is made ten times as quickly as a dataclass, and
every hook and command makes these before it can answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import inf, isfinite, isnan
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar, cast

from recall.errors import ConfigError


class SearchConfig(NamedTuple):
    """How a query is answered.

    Attributes:
        k: topics in an answer.
        budget_ms: how long `Prefetch.first()` may take.
        hold_ms: how long a quick result waits for a better one, counted from `first()`.
        fast_k: topics in a quick result.
        floor: how well the best topic must fit a query for anything to be found; None takes the model's own.
        prompt_tokens: estimated tokens that the Relevant Memory block may have.
    """

    k: int = 5
    budget_ms: float = 100.0
    hold_ms: float = 70.0
    fast_k: int = 2
    floor: float | None = None
    prompt_tokens: int = 4000


class IndexConfig(NamedTuple):
    """What is indexed, and where derived data lies.

    Attributes:
        cache: folder of derived data; "" takes the platform's cache folder.
        max_file_bytes: larger files are reported, not indexed.
        exact_rows: up to so many vectors all are looked at; beyond, short codes choose which are.
        watch: index changes when they happen, not at the next question; None: where the process is a resident one and
            the extra `watch` is installed.
        workers: texts that long work encodes at once, 64 at most, in a process of its own; 0 leaves it to the process
            that opened the memory.
    """

    cache: str = ""
    max_file_bytes: int = 16 * 1024 * 1024
    exact_rows: int = 100_000
    watch: bool | None = None
    workers: int = 1


class EncoderConfig(NamedTuple):
    """What turns text into vectors.

    Attributes:
        model: `onnx` for the shipped one, `hashing` for none, `off` for words alone, the name of a preset, `sbert:` and
            a folder or a name for a model of sentence-transformers, else the folder of an ONNX model.
        threads: threads of one encoding, 64 at most.
    """

    model: str = "onnx"
    threads: int = 1


class LayoutConfig(NamedTuple):
    """Where memories lie.

    Attributes:
        host: qwen, claude, wave, workbuddy or plain; "" finds out.
        worktrees: `shared` or `separate`; "" leaves it to the host's custom.
    """

    host: Literal["", "qwen", "claude", "wave", "workbuddy", "plain"] = ""
    worktrees: Literal["", "shared", "separate"] = ""


class TracesConfig(NamedTuple):
    """What is noted of recalls, for what is learnt from them later.

    Attributes:
        enabled: whether recalls leave traces. Not for a project file, which could keep a user's memory from learning.
        max_bytes: size of the traces of one memory folder; the oldest ones go.
    """

    enabled: bool = True
    max_bytes: int = 8 * 1024 * 1024


class IndexFileConfig(NamedTuple):
    """What becomes of MEMORY.md when memories change.

    Attributes:
        mode: `generated` makes it anew from all topics, `curated` touches only the lines of topics that changed, `off`
            leaves it alone; "" takes the host's custom.
    """

    mode: Literal["", "generated", "curated", "off"] = ""


class TrashConfig(NamedTuple):
    """What becomes of removed memories.

    Attributes:
        keep_days: so long they can be restored.
    """

    keep_days: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings."""

    search: SearchConfig = SearchConfig()  # noqa: RUF009 - a frozen record
    index: IndexConfig = IndexConfig()  # noqa: RUF009 - a frozen record
    encoder: EncoderConfig = EncoderConfig()  # noqa: RUF009 - a frozen record
    layout: LayoutConfig = LayoutConfig()  # noqa: RUF009 - a frozen record
    traces: TracesConfig = TracesConfig()  # noqa: RUF009 - a frozen record
    index_file: IndexFileConfig = IndexFileConfig()  # noqa: RUF009 - a frozen record
    trash: TrashConfig = TrashConfig()  # noqa: RUF009 - a frozen record


SBERT: Final = "sbert:"
"""In `encoder.model`, before the folder or the name of a model of sentence-transformers."""

Number = TypeVar("Number", int, float)


def _whole(value: object, *, least: int = 1, most: float = inf) -> int:
    number = _parsed(int, value)
    if number is None:
        raise ValueError(f"expected a whole number, not {value!r}")
    if not least <= number <= most:
        wanted = f"{least} to {most}" if most < inf else f"{least} or more"
        raise ValueError(f"expected a whole number of {wanted}, not {number}")
    return number


def _real(value: object) -> float:
    number = float(value) if type(value) is int else _parsed(float, value)
    if number is None or isnan(number):
        raise ValueError(f"expected a number, not {value!r}")
    return number


def _parsed(kind: Callable[[str], Number], value: object) -> Number | None:
    """The value itself when it is of the kind, what a string of it says, else None."""
    if type(value) is kind:
        return cast("Number", value)
    try:
        return kind(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _positive(value: object) -> float:
    number = _real(value)
    if number <= 0:
        raise ValueError(f"expected more than 0, not {number:g}")
    return number


def _floor(value: object) -> float | None:
    if value is None or value == "null":
        return None
    number = _real(value)
    if not isfinite(number):
        raise ValueError(f"expected a number, not {value!r}")
    return number


def _flag(value: object) -> bool:
    said = {"true": True, "1": True, "false": False, "0": False}.get(str(value).lower())
    if said is None or not isinstance(value, bool | str):
        raise ValueError(f"expected true or false, not {value!r}")
    return said


def _perhaps(value: object) -> bool | None:
    return None if value is None or value == "null" else _flag(value)


def _text(value: object, *, among: tuple[str, ...] = ()) -> str:
    if not isinstance(value, str) or (among and value not in among):
        wanted = f"one of {', '.join(among[1:])}" if among else "text"
        raise ValueError(f"expected {wanted}, not {value!r}")
    return value


def _model(value: object) -> str:
    text = _text(value)
    if not text.removeprefix(SBERT):
        raise ValueError(f"expected the name or the folder of a model, not {value!r}")
    return text


_CHECKS: Final[Mapping[str, Callable[[object], object]]] = {
    "search.k": _whole,
    "search.budget_ms": _positive,
    "search.hold_ms": _positive,
    "search.fast_k": _whole,
    "search.floor": _floor,
    "search.prompt_tokens": _whole,
    "index.cache": _text,
    "index.max_file_bytes": _whole,
    "index.exact_rows": _whole,
    "index.watch": _perhaps,
    "index.workers": partial(_whole, least=0, most=64),
    "encoder.model": _model,
    "encoder.threads": partial(_whole, most=64),
    "layout.host": partial(_text, among=("", "qwen", "claude", "wave", "workbuddy", "plain")),
    "layout.worktrees": partial(_text, among=("", "shared", "separate")),
    "traces.enabled": _flag,
    "traces.max_bytes": _whole,
    "index_file.mode": partial(_text, among=("", "generated", "curated", "off")),
    "trash.keep_days": _positive,
}
"""What may be set, by dotted key, with what makes a setting of a given value or raises ValueError."""

_PROJECT_RANGES: Final = {
    "search.k": (1, 20),
    "search.fast_k": (1, 5),
    "search.floor": (0.2, 10),
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
    for key, value in values.items():
        if key not in _CHECKS:
            raise ConfigError(f"unknown setting; known are {', '.join(_CHECKS)}", source=source, key=key)
        section, _, name = key.partition(".")
        try:
            checked = _CHECKS[key](value)
        except ValueError as error:
            raise ConfigError(str(error), source=source, key=key) from error
        changed: dict[str, Any] = {section: getattr(config, section)._replace(**{name: checked})}
        config = replace(config, **changed)
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
        text = file.read_text(encoding="utf-8-sig")
        import tomllib  # only for who has a file

        tables = tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:  # neither text nor TOML
        raise ConfigError(f"cannot be read: {error}", source=str(file)) from error
    flat: dict[str, object] = {}
    for section, values in tables.items():
        if not isinstance(values, dict):
            raise ConfigError("settings stand in sections, for instance [search]", source=str(file), key=section)
        flat.update((f"{section}.{name}", value) for name, value in values.items())
    return flat
