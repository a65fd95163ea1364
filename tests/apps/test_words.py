"""The answer of a process that has just started: the same as that of an opened memory, or none."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result

from recall.apps import words
from recall.config import Config
from recall.memory.memory import Memory
from recall.memory.opening import find, load_config
from recall.search.types import Recall
from tests.aging import age

QUERIES = ["latency board", "when may the releases go out", "回答要简短", "zebra", "  "]
OFF = ("--set", "encoder.model=off")


@pytest.fixture
def config() -> Config:
    return load_config(Path.cwd(), {"encoder.model": "off"})


@pytest.fixture
def opened(memory: Path, config: Config) -> Iterator[Memory]:
    """The memory, with an index of its words."""
    with Memory.open(memory, config=config, clock=lambda: 0.0, background=False) as found:
        found.reindex()
        yield found


@pytest.fixture
def quick(memory: Path, config: Config) -> Callable[..., Recall | None]:
    """The quick answer over the memory."""

    def ask(
        query: str, *, k: int = 5, exclude: frozenset[str] = frozenset(), with_prompt: bool = False
    ) -> Recall | None:
        place = find(memory, project=memory, layout=None, config=config).chosen
        return words.recall(query, place, config=config, k=k, exclude=exclude, with_prompt=with_prompt)

    return ask


def test_it_answers_like_the_opened_memory(opened: Memory, quick: Callable[..., Recall | None]) -> None:
    for query in QUERIES:
        full, found = opened.recall(query), quick(query)
        assert found is not None
        assert found == replace(full, prompt="", duration_s=found.duration_s)
    assert quick("latency board", exclude=frozenset({"reference_board.md"})) != quick("latency board")
    assert quick("latency board", k=0) == Recall("latency board")


def test_the_block_is_laid_out_only_when_it_is_wanted(opened: Memory, quick: Callable[..., Recall | None]) -> None:
    bare, whole = quick("latency board"), quick("latency board", with_prompt=True)
    assert bare is not None
    assert whole is not None
    assert bare.prompt == ""
    assert "### Latency board (reference_board.md)" in whole.prompt


def test_without_an_index_it_has_no_answer_and_makes_none(
    memory: Path, quick: Callable[..., Recall | None], own_surroundings: Path
) -> None:
    assert quick("latency board") is None
    assert not own_surroundings.exists()


def test_an_index_that_is_out_of_date_does_not_answer(
    memory: Path, opened: Memory, quick: Callable[..., Recall | None]
) -> None:
    (memory / "new.md").write_text("the zebra", encoding="utf-8")
    assert quick("zebra") is None
    opened.reindex()
    assert quick("zebra") is None  # it might have been written once more since, in the same tick of the clock
    age(memory)
    opened.reindex()
    assert quick("zebra") is not None
    os.utime(memory / "new.md", (1, 1))
    assert quick("zebra") is None
    (memory / "new.md").unlink()
    assert quick("zebra") is None


def test_a_damaged_index_does_not_answer(opened: Memory, quick: Callable[..., Recall | None]) -> None:
    assert quick("latency board") is not None
    for file in opened.status()[0].folder.glob("*.postings"):
        file.write_bytes(b"\0" * 100)
    assert quick("latency board") is None


def test_a_large_memory_is_left_to_arrays(
    opened: Memory, quick: Callable[..., Recall | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "MOST_TOPICS", 3)
    assert quick("latency board") is not None
    monkeypatch.setattr(words, "MOST_TOPICS", 2)
    assert quick("latency board") is None


def test_a_search_sees_what_changed_a_moment_ago(memory: Path, on_memory: Callable[..., Result]) -> None:
    assert "nothing fits" in on_memory("search", "zebra", *OFF).stdout
    (memory / "new.md").write_text("the zebra", encoding="utf-8")
    for _ in range(2):  # the first one reads the file, the second finds all in order
        assert "new.md" in on_memory("search", "zebra", *OFF).stdout
    (memory / "new.md").unlink()
    assert "nothing fits" in on_memory("search", "zebra", *OFF).stdout
