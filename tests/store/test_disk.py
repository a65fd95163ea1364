"""The one way to the disk: what each step leaves, and that a file is old or new whenever the power goes."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from recall.store import disk
from recall.store.disk import Step
from recall.store.files import atomic_write
from tests.power import Tape


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    monkeypatch.setattr(
        disk, "watch", lambda step, path, _: found.append((str(step), path.relative_to(tmp_path).as_posix()))
    )
    return found


def test_a_new_file_is_written_and_flushed_in_this_order(tmp_path: Path, steps: list[tuple[str, str]]) -> None:
    disk.create(tmp_path / "new", [b"one", memoryview(b"two")])
    assert (tmp_path / "new").read_bytes() == b"onetwo"
    assert steps == [("create", "new"), ("write", "new"), ("flush", "new")]


def test_a_file_that_is_there_is_never_made_anew(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        disk.create(tmp_path / "old", [b"new"])
    assert (tmp_path / "old").read_bytes() == b"old"


def test_a_file_that_could_not_be_flushed_is_taken_away_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        disk.create(tmp_path / "new", [b"one"])
    assert list(tmp_path.iterdir()) == []


def test_writing_in_the_middle_leaves_what_lies_before(tmp_path: Path, steps: list[tuple[str, str]]) -> None:
    disk.write_at(tmp_path / "rows", memoryview(b"aaabbb"), 0)
    disk.write_at(tmp_path / "rows", memoryview(b"cc"), 3)
    assert (tmp_path / "rows").read_bytes() == b"aaaccb"
    assert [step for step, _ in steps] == ["create", "write", "flush", "write", "flush"]


def test_folders_are_made_from_the_top_and_each_is_flushed_into_the_one_above(
    tmp_path: Path, steps: list[tuple[str, str]]
) -> None:
    disk.make_folder(tmp_path / "a" / "b", mode=0o700)
    assert steps == [("make folder", "a"), ("flush folder", "."), ("make folder", "a/b"), ("flush folder", "a")]
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    steps.clear()
    disk.make_folder(tmp_path / "a" / "b")
    assert steps == []


def test_names_change_and_go(tmp_path: Path, steps: list[tuple[str, str]]) -> None:
    (tmp_path / "one").write_bytes(b"one")
    (tmp_path / "two").write_bytes(b"two")
    disk.rename(tmp_path / "one", tmp_path / "two")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("two", b"one")]
    disk.delete(tmp_path / "two")
    disk.delete(tmp_path / "two")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    disk.delete_folder(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == []
    assert steps == [("rename", "two"), ("delete", "two"), ("delete", "two"), ("delete", "folder")]


def test_flushing_a_file_that_is_missing_is_an_error_and_flushing_a_folder_never_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        disk.flush(tmp_path / "missing")
    disk.flush_folder(tmp_path / "missing")


def states_of(base: Path, work: Callable[[], object]) -> list[dict[str, bytes | None]]:
    tape = Tape(base)
    with tape.recording():
        work()
    return [
        {name: content for name, content in state.items() if not name.startswith(".")}  # of a writer that died
        for moment in tape.moments
        for state in (moment.stopped(), *moment.without_power())
    ]


def test_a_file_written_in_one_step_is_the_old_or_the_new_one_after_any_stop(tmp_path: Path) -> None:
    file = tmp_path / "topic.md"
    file.write_bytes(b"the old text")
    states = states_of(tmp_path, lambda: atomic_write(file, "the new text, which is longer"))
    assert len(states) > 15
    assert {state["topic.md"] for state in states} == {b"the old text", b"the new text, which is longer"}
    assert states[-1] == {"topic.md": b"the new text, which is longer"}  # from its return on, come what may


def test_a_new_file_is_whole_or_missing_after_any_stop(tmp_path: Path) -> None:
    states = states_of(tmp_path, lambda: atomic_write(tmp_path / "topic.md", "text"))
    assert all(state in ({}, {"topic.md": b"text"}) for state in states)
    assert states[-1] == {"topic.md": b"text"}


def test_the_tape_knows_what_an_unflushed_file_may_become(tmp_path: Path) -> None:
    """The test of the tests: a writer that flushes nothing leaves anything."""

    def careless() -> None:
        (tmp_path / "file").write_bytes(b"")
        for step in (Step.CREATE, Step.WRITE):
            if step is Step.WRITE:
                (tmp_path / "file").write_bytes(b"abcd")
            assert disk.watch
            disk.watch(step, tmp_path / "file", None)

    found = {state.get("file") for state in states_of(tmp_path, careless)}
    assert {None, b"", b"ab", b"abcd", bytes(4)} < found
    assert len(found) == 6


def test_two_files_are_exchanged_at_one_go(tmp_path: Path) -> None:
    one, other = tmp_path / "一", tmp_path / "other"
    one.write_text("1", encoding="utf-8")
    other.write_text("2", encoding="utf-8")
    if not disk.exchange(one, other):
        pytest.skip("this system cannot exchange files")
    assert (one.read_text(encoding="utf-8"), other.read_text(encoding="utf-8")) == ("2", "1")
    with pytest.raises(FileNotFoundError):
        disk.exchange(one, tmp_path / "missing")
