"""MEMORY.md on the disk: never half-written, never put over another, refused where writing it back loses something."""

import errno
import os
from pathlib import Path

import pytest

from recall.errors import TopicError
from recall.store import disk
from recall.store.disk import Step
from recall.store.index_file import curated, load_index, publish_index, read_index, write_index
from tests.power import Tape

TEXT = "- [a](a.md) — 一条\n"


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


# --- reading for a change, writing


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf- [a](a.md)\r\n", b"a\rb\xe2\x80\xa8\x00 word", TEXT.encode()])
def test_what_is_read_and_written_again_is_the_same_to_the_byte(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "MEMORY.md").write_bytes(data)
    text = read_index(tmp_path)
    assert text is not None
    write_index(tmp_path, curated(text))
    assert (tmp_path / "MEMORY.md").read_bytes() == data
    assert names(tmp_path) == ["MEMORY.md"]


def test_a_missing_index_is_none(tmp_path: Path) -> None:
    assert read_index(tmp_path) is None
    assert read_index(tmp_path / "missing") is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"caf\xe9 - [a](a.md)", "not UTF-8"), ("\ufeffa".encode("utf-16-le"), "not UTF-8"), (bytes(99), "looks binary")],
)
def test_what_would_lose_something_is_not_read_for_a_change(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "MEMORY.md").write_bytes(data)
    with pytest.raises(TopicError, match=reason):
        read_index(tmp_path)


def test_a_folder_or_a_link_to_nothing_is_not_read_for_a_change(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").symlink_to("nowhere.md")
    with pytest.raises(TopicError, match="link to nothing"):
        read_index(tmp_path)
    (tmp_path / "MEMORY.md").unlink()
    (tmp_path / "MEMORY.md").mkdir()
    with pytest.raises(TopicError, match="is a folder"):
        read_index(tmp_path)
    with pytest.raises(TopicError, match="is a folder"):
        write_index(tmp_path, TEXT)


def test_half_a_character_is_not_written(tmp_path: Path) -> None:
    write_index(tmp_path, TEXT)
    with pytest.raises(TopicError, match="lone surrogate"):
        write_index(tmp_path, "\ud83e")
    assert read_index(tmp_path) == TEXT


# --- publishing


def test_a_missing_index_is_published_whole_and_nothing_else_stays(tmp_path: Path) -> None:
    assert publish_index(tmp_path, TEXT) is True
    assert (tmp_path / "MEMORY.md").read_bytes() == TEXT.encode("utf-8")
    assert names(tmp_path) == ["MEMORY.md"]
    assert (tmp_path / "MEMORY.md").stat().st_nlink == 1


def test_an_empty_text_makes_no_index(tmp_path: Path) -> None:
    assert publish_index(tmp_path, "") is False
    assert publish_index(tmp_path / "missing", "") is False
    assert names(tmp_path) == []


@pytest.mark.parametrize("what", ["empty", "text", "link to nothing", "folder"])
def test_an_index_that_is_there_is_left_alone_whatever_it_is(tmp_path: Path, what: str) -> None:
    file = tmp_path / "MEMORY.md"
    if what == "folder":
        file.mkdir()
    elif what == "link to nothing":
        file.symlink_to("nowhere.md")
    else:
        file.write_bytes(b"- [zzz](zzz.md)\n" if what == "text" else b"")
    before = file.lstat()
    assert publish_index(tmp_path, TEXT) is False
    assert names(tmp_path) == ["MEMORY.md"]
    assert (file.lstat().st_ino, file.lstat().st_size) == (before.st_ino, before.st_size)


@pytest.mark.parametrize("linked", [True, False], ids=["second names", "none"])
def test_one_that_appears_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    def appear(step: Step, path: Path, old: Path | None) -> None:
        if step is Step.FLUSH:
            (tmp_path / "MEMORY.md").write_bytes(b"theirs")

    if not linked:
        without_links(monkeypatch)
    monkeypatch.setattr(disk, "watch", appear)
    assert publish_index(tmp_path, TEXT) is False
    assert (tmp_path / "MEMORY.md").read_bytes() == b"theirs"
    assert names(tmp_path) == ["MEMORY.md"]


def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)


def test_where_a_file_has_one_name_only_it_is_published_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_links(monkeypatch)
    assert publish_index(tmp_path, TEXT) is True
    assert read_index(tmp_path) == TEXT
    assert names(tmp_path) == ["MEMORY.md"]
    assert publish_index(tmp_path, TEXT) is False


def test_a_missing_folder_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        publish_index(tmp_path / "missing", TEXT)
    assert names(tmp_path) == []


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        publish_index(tmp_path, TEXT)
    assert names(tmp_path) == []


def test_after_every_step_of_publishing_the_index_is_missing_or_whole(tmp_path: Path) -> None:
    base = tmp_path / "memory"
    base.mkdir()
    tape = Tape(base)
    with tape.recording():
        assert publish_index(base, TEXT) is True
    steps = [moment.step.partition(" .")[0].partition(" MEMORY")[0] for moment in tape.moments]
    assert steps == ["beginning", "create", "write", "flush", "link", "delete", "flush folder"]
    for moment in tape.moments:
        for state in (moment.stopped(), *moment.without_power()):
            assert state.get("MEMORY.md") in (None, TEXT.encode("utf-8")), moment.step
    assert tape.moments[-1].stopped() == {"MEMORY.md": TEXT.encode("utf-8")}
    assert next(iter(tape.moments[-1].without_power())) == {"MEMORY.md": TEXT.encode("utf-8")}


def test_a_name_beside_the_own_is_a_step_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[Step, Path, Path | None]] = []
    monkeypatch.setattr(disk, "watch", lambda *step: found.append(step))
    (tmp_path / "old").write_bytes(b"x")
    disk.link(tmp_path / "old", tmp_path / "new")
    assert found == [(Step.LINK, tmp_path / "new", tmp_path / "old")]
    with pytest.raises(FileExistsError):
        disk.link(tmp_path / "old", tmp_path / "new")


def test_what_was_published_is_what_is_loaded(tmp_path: Path) -> None:
    publish_index(tmp_path, TEXT)
    assert load_index(tmp_path).text == TEXT.strip()
