"""A command line to call, with a home, a cache and a memory of its own."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from recall.apps.cli import cli
from tests.aging import age

TOPICS = {
    "project_rollout.md": "---\nname: Rollout windows\ndescription: When releases may go out\ntype: project\n---\n\n"
    "Only on Tuesday mornings. See [[reference_board]].\n\nWhy: the warehouse is closed then.\n",
    "reference_board.md": "---\nname: Latency board\ndescription: Where request latency is shown\ntype: reference\n"
    "metadata:\n  modified: 2026-03-04\n---\n\nGrafana, folder api.\n",
    "team/feedback_style.md": "---\nname: 回答风格\ndescription: 回答要简短\ntype: feedback\n---\n\n先说结论。\n",
}


@pytest.fixture(autouse=True)
def own_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache, a home and a working directory that no other test and no user has; gives the cache."""
    cache = tmp_path / "cache"
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("RECALL_INDEX__CACHE", str(cache))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return cache


@pytest.fixture
def written() -> Callable[[Path, Mapping[str, str]], Path]:
    """Writes files below a folder, by name, and gives the folder."""

    def write(folder: Path, files: Mapping[str, str]) -> Path:
        for name, text in files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return folder

    return write


@pytest.fixture
def memory(tmp_path: Path, written: Callable[[Path, Mapping[str, str]], Path]) -> Path:
    """A folder of three topics."""
    return age(written(tmp_path / "memory", TOPICS))


@pytest.fixture
def run() -> Callable[..., Result]:
    """The command line, called in this process."""

    def call(*words: str | Path, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(cli, [str(word) for word in words], input=stdin)

    return call


@pytest.fixture
def on_memory(run: Callable[..., Result], memory: Path) -> Callable[..., Result]:
    """A command on the three topics; the encoder is the hashing one unless the words say otherwise."""

    def call(command: str, *words: str | Path, stdin: str | bytes | None = None) -> Result:
        return run(command, "--root", memory, "--set", "encoder.model=hashing", *words, stdin=stdin)

    return call


@pytest.fixture
def data(on_memory: Callable[..., Result]) -> Callable[..., dict[str, Any]]:
    """What a command on the three topics says with --json."""

    def call(command: str, *words: str | Path) -> dict[str, Any]:
        result = on_memory(command, "--json", *words)
        assert result.exit_code == 0, result.output
        answer: dict[str, Any] = json.loads(result.stdout)
        return answer

    return call


@pytest.fixture
def json_lines(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file of JSON lines; a string stands for a line as it is."""

    def made(name: str, *records: object) -> Path:
        file = tmp_path / name
        lines = [record if isinstance(record, str) else json.dumps(record, ensure_ascii=False) for record in records]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return file

    return made
