"""A memory folder of one's own, opened with the hashing encoder and a cache beside it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recall import Config, Memory
from recall.config import EncoderConfig, IndexConfig, SearchConfig

Write = Callable[..., Path]
Open = Callable[..., Memory]


@pytest.fixture(autouse=True)
def _own_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads the settings of whoever runs it, or writes into their cache."""
    for name in [name for name in os.environ if name.startswith("RECALL_") and name != "RECALL_SHARED"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))
    monkeypatch.setenv("RECALL_INDEX__CACHE", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "memory"
    folder.mkdir()
    return folder


@pytest.fixture
def write(root: Path) -> Write:
    """Writes a topic file below the root (or another folder) and gives its path."""

    def written(path: str, body: str, *, title: str = "", description: str = "", folder: Path | None = None) -> Path:
        file = (folder or root) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        name = title or file.stem
        file.write_text(f"---\nname: {name}\ndescription: {description}\n---\n{body}\n", encoding="utf-8")
        return file

    return written


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(index=IndexConfig(cache=str(tmp_path / "cache")), encoder=EncoderConfig(model="hashing"))


@pytest.fixture
def patient(tmp_path: Path) -> Config:
    """Settings under which `first()` waits for the refined result as long as it takes."""
    return Config(
        search=SearchConfig(budget_ms=60_000, hold_ms=60_000),
        index=IndexConfig(cache=str(tmp_path / "cache")),
        encoder=EncoderConfig(model="hashing"),
    )


@pytest.fixture
def opened(root: Path, config: Config) -> Iterator[Open]:
    """Opens the memory, without background work unless asked for, and closes it after the test."""
    there: list[Memory] = []

    def open_(folder: Path | None = None, **options: Any) -> Memory:
        settings: dict[str, Any] = {"config": config, "background": False}
        there.append(Memory.open(folder or root, **(settings | options)))
        return there[-1]

    yield open_
    for memory in there:
        memory.close()
