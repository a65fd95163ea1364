"""A memory folder, opened as a host opens it, and real processes beside it."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import recall
from recall import Config, Memory
from recall.config import EncoderConfig, IndexConfig, SearchConfig

LONG_S = 60.0  # an upper bound that only a broken implementation reaches


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A user and a cache of our own; gives the environment for other processes."""
    for name in [name for name in os.environ if name.startswith(("RECALL_", "XDG_")) and name != "RECALL_SHARED"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RECALL_INDEX__CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(Path(recall.__file__).parents[1]))
    return dict(os.environ)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "memory"
    folder.mkdir()
    return folder


@pytest.fixture
def write(root: Path) -> Callable[..., Path]:
    """Writes a topic file and gives its path."""

    def written(path: str, body: str, *, folder: Path | None = None) -> Path:
        file = (folder or root) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\nname: {file.stem}\ntype: project\n---\n{body}\n", encoding="utf-8")
        return file

    return written


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Nothing is cut off because the machine is slow."""
    return Config(
        search=SearchConfig(budget_ms=60_000, hold_ms=60_000),
        index=IndexConfig(cache=str(tmp_path / "cache")),
        encoder=EncoderConfig(model="hashing"),
    )


@pytest.fixture
def opened(root: Path, config: Config) -> Iterator[Callable[..., Memory]]:
    """Opens the memory, without background work unless asked for, and closes it after the test."""
    there: list[Memory] = []

    def open_(**options: Any) -> Memory:
        settings: dict[str, Any] = {"config": config, "background": False}
        there.append(Memory.open(root, **(settings | options)))
        return there[-1]

    yield open_
    for memory in there:
        memory.close()


@pytest.fixture
def with_model(config: Config) -> Config:
    """The settings with the shipped model."""
    return replace(config, encoder=EncoderConfig())


@pytest.fixture
def cli(root: Path, surroundings: dict[str, str]) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Runs the command line in a process of its own, with the hashing encoder unless the words say otherwise."""

    def run(command: str, *words: str, **more: Any) -> "subprocess.CompletedProcess[str]":
        line = ["-m", "recall", command, "--root", str(root), "--set", "encoder.model=hashing", *words]
        return subprocess.run(
            [sys.executable, *line], env=surroundings, capture_output=True, encoding="utf-8", timeout=LONG_S, **more
        )

    return run


HOLDER = """
import sys
from pathlib import Path
from recall.store.locks import exclusive

with exclusive(Path(sys.argv[1]), timeout_s=50):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def held(surroundings: dict[str, str]) -> Iterator[Callable[[Path], "subprocess.Popen[str]"]]:
    """Has another process hold a lock until its stdin is closed."""
    there: list[subprocess.Popen[str]] = []

    def hold(lock: Path) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(lock)],
            env=surroundings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
        )  # fmt: skip
        there.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    yield hold
    for process in there:
        process.communicate(timeout=LONG_S)
