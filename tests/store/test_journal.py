"""A run that fails, or meets an edit by somebody else at any moment, loses no content and can be carried on."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recall.errors import LockedError, StalePlanError
from recall.store import disk
from recall.store.applying import apply, writing
from recall.store.disk import Step
from recall.store.journal import has_pending
from recall.store.plan import Change, Folder, IndexMode, Plan, planned
from recall.store.topics import Scope
from recall.store.trash import kept, restoring

NOW = 1_790_000_000.0
KEY = b"k" * 32


class Stop(BaseException):
    """The end of a process."""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    root = tmp_path / "memory"
    root.mkdir()
    (root / "a.md").write_bytes(b"first a\n")
    (root / "b.md").write_bytes(b"first b\n")
    return Folder(root, key=KEY)


@contextmanager
def watching(watch: Callable[[Step, Path, Path | None], None]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "watch", watch)
        yield


def holders(folder: Folder, text: bytes) -> list[Path]:
    return [file for file in folder.root.rglob("*") if file.is_file() and text in file.read_bytes()]


def is_journal(step: Step, path: Path) -> bool:
    return step is Step.RENAME and path.name == "pending.json"


@pytest.fixture(params=[True, False], ids=["exchanging", "renaming"], autouse=True)
def exchanges(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not every system can exchange two names at one go."""
    if not request.param:
        monkeypatch.setattr(disk, "exchange", lambda _one, _other: False)


def failing_after(patch: pytest.MonkeyPatch, folder: Folder, done: str) -> None:
    """Lets no file get another name in the memory once `done` has changed."""
    rename, link, exchange, is_full = disk.rename, disk.link, disk.exchange, False

    def refuse(new: Path) -> None:
        if is_full and new.parent == folder.root.resolve():
            raise OSError(errno.EDQUOT, "disk quota exceeded")
        if is_full and new.suffix == ".old":
            raise OSError(errno.EDQUOT, "disk quota exceeded")

    def renaming(old: Path, new: Path) -> None:
        nonlocal is_full
        refuse(new)
        rename(old, new)
        is_full = is_full or done in {old.name, new.name}

    def linking(old: Path, new: Path) -> None:
        refuse(new)
        link(old, new)

    def exchanging(one: Path, other: Path) -> bool:
        nonlocal is_full
        refuse(other)
        is_done = exchange(one, other)
        is_full = is_full or (is_done and done == other.name)
        return is_done

    patch.setattr(disk, "exchange", exchanging)
    patch.setattr(disk, "rename", renaming)
    patch.setattr(disk, "link", linking)


# --- taking back


@pytest.mark.parametrize("after", [None, b"second a\n"])
def test_what_cannot_be_taken_back_is_kept_and_carried_out_by_the_next_writer(
    folder: Folder, after: bytes | None
) -> None:
    changes = (planned(folder, "a.md", after), planned(folder, "b.md", None))
    with pytest.MonkeyPatch.context() as patch:
        failing_after(patch, folder, "a.md")
        with pytest.raises(OSError, match="quota"):
            apply(Plan("forget", changes), now=NOW)
    assert holders(folder, b"first a")
    with writing(folder):
        assert not has_pending(folder.root)
    assert not (folder.root / "b.md").exists()
    (run,) = kept(folder)
    apply(restoring([folder], run.run.id), now=NOW + 1)
    assert [(folder.root / name).read_bytes() for name in ("a.md", "b.md")] == [b"first a\n", b"first b\n"]


@pytest.mark.parametrize("stop_at", range(1, 24))
def test_a_taking_back_that_is_stopped_is_carried_on_as_a_whole(folder: Folder, stop_at: int) -> None:
    (folder.root / "a.md").chmod(0o600)
    changes = (planned(folder, "a.md", b"second a\n"), planned(folder, "c.md", b"new\n"), planned(folder, "b.md", None))
    count, fails = 0, False

    def watch(step: Step, path: Path, _old: Path | None) -> None:
        nonlocal count, fails
        if step is Step.RENAME and path.name.endswith("b.md.old"):
            fails = True
            raise OSError(errno.EIO, "the disk fails")
        count += fails
        if count == stop_at:
            raise Stop

    with watching(watch), pytest.raises((Stop, OSError)) as caught:
        apply(Plan("edit", changes), now=NOW)
    assert isinstance(caught.value, Stop) or stop_at > 12
    with writing(folder):
        assert not has_pending(folder.root)
    there = {file.name: file.read_bytes() for file in folder.root.glob("*.md")}
    assert there in ({"a.md": b"first a\n", "b.md": b"first b\n"}, {"a.md": b"second a\n", "c.md": b"new\n"})
    assert (folder.root / "a.md").stat().st_mode & 0o777 == 0o600
    if "c.md" in there:
        apply(restoring([folder]), now=NOW + 1)
        assert (folder.root / "a.md").read_bytes() == b"first a\n"


def test_taking_back_gives_mode_and_time_back(folder: Folder) -> None:
    (folder.root / "a.md").chmod(0o640)
    os.utime(folder.root / "a.md", (1_600_000_000, 1_600_000_000))

    def watch(step: Step, path: Path, _old: Path | None) -> None:
        if step is Step.RENAME and path.name.endswith("b.md.old"):
            raise OSError(errno.EIO, "the disk fails")

    plan = Plan("edit", (planned(folder, "a.md", b"second a\n"), planned(folder, "b.md", None)))
    with watching(watch), pytest.raises(OSError, match="fails"):
        apply(plan, now=NOW)
    there = (folder.root / "a.md").stat()
    assert (there.st_mode & 0o777, there.st_mtime) == (0o640, 1_600_000_000)
    assert not has_pending(folder.root)
    assert kept(folder) == []


def test_what_somebody_else_wrote_meanwhile_is_no_reason_to_drop_the_copies(folder: Folder) -> None:
    def watch(step: Step, path: Path, _old: Path | None) -> None:
        if step is Step.RENAME and path.name.endswith("b.md.old"):
            (folder.root / "a.md").write_bytes(b"third a\n")
            raise OSError(errno.EIO, "the disk fails")

    plan = Plan("edit", (planned(folder, "a.md", b"second a\n"), planned(folder, "b.md", None)))
    with watching(watch), pytest.raises(OSError, match="somebody else"):
        apply(plan, now=NOW)
    assert holders(folder, b"first a")
    assert (folder.root / "a.md").read_bytes() == b"third a\n"


# --- edits at the last moment


def test_an_edit_that_a_removal_moved_away_comes_back_although_the_process_stopped(folder: Folder) -> None:
    def watch(step: Step, path: Path, old: Path | None) -> None:
        if is_journal(step, path):
            (folder.root / "a.md").write_bytes(b"edited by the user\n")
        if step is Step.RENAME and old and old.name == "a.md":
            raise Stop

    with watching(watch), pytest.raises(Stop):
        apply(Plan("forget", (planned(folder, "a.md", None),)), now=NOW)
    with writing(folder):
        pass
    assert (folder.root / "a.md").read_bytes() == b"edited by the user\n"
    assert kept(folder) == []


def test_an_edit_that_a_removal_moved_away_does_not_come_back_over_a_newer_one(folder: Folder) -> None:
    def watch(step: Step, path: Path, old: Path | None) -> None:
        if is_journal(step, path):
            (folder.root / "a.md").write_bytes(b"edit 1\n")
        if step is Step.RENAME and old and old.name == "a.md":
            (folder.root / "a.md").write_bytes(b"edit 2, the newest\n")

    with watching(watch):
        run = apply(Plan("forget", (planned(folder, "a.md", None),)), now=NOW)
    assert run.skipped == ("a.md",)
    assert (folder.root / "a.md").read_bytes() == b"edit 2, the newest\n"
    assert holders(folder, b"edit 1")


def test_an_edit_while_the_new_content_is_looked_at_is_not_lost(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Path.read_bytes

    def read(file: Path) -> bytes:
        data = reading(file)
        if file.name.endswith("a.md.new"):
            (folder.root / "a.md").write_bytes(b"edited by the user\n")
        return data

    monkeypatch.setattr(Path, "read_bytes", read)
    run = apply(Plan("edit", (planned(folder, "a.md", b"second a\n"),)), now=NOW)
    monkeypatch.undo()
    assert run.skipped == ("a.md",)
    assert (folder.root / "a.md").read_bytes() == b"edited by the user\n"


def test_an_edit_that_was_taken_out_when_a_stop_came_is_put_back(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = disk.exchange

    def stopping(one: Path, other: Path) -> bool:
        (folder.root / "a.md").write_bytes(b"edited by the user\n")
        if exchange(one, other):
            raise Stop
        return False

    monkeypatch.setattr(disk, "exchange", stopping)
    plan = Plan("edit", (planned(folder, "a.md", b"second a\n"),))
    if exchange(folder.root / "a.md", folder.root / "b.md"):
        exchange(folder.root / "a.md", folder.root / "b.md")
    else:
        pytest.skip("nothing is exchanged here")
    with pytest.raises(Stop):
        apply(plan, now=NOW)
    monkeypatch.setattr(disk, "exchange", exchange)
    with writing(folder):
        pass
    assert (folder.root / "a.md").read_bytes() == b"edited by the user\n"


# --- the journal


def test_an_interruption_at_the_moment_of_the_journal_stops_no_later_writer(folder: Folder) -> None:
    def watch(step: Step, path: Path, _old: Path | None) -> None:
        if is_journal(step, path):
            raise KeyboardInterrupt

    with watching(watch), pytest.raises(KeyboardInterrupt):
        apply(Plan("edit", (planned(folder, "a.md", b"second a\n"),)), now=NOW)
    apply(Plan("edit", (planned(folder, "b.md", b"second b\n"),)), now=NOW + 1)
    assert (folder.root / "a.md").read_bytes() == b"second a\n"
    assert len(kept(folder)) == 2


def test_a_journal_that_cannot_be_named_leaves_nothing_behind(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def rename(_old: Path, new: Path) -> None:
        raise OSError(errno.EACCES, "no", str(new))

    monkeypatch.setattr(disk, "rename", rename)
    with pytest.raises(OSError, match="no"):
        apply(Plan("edit", (planned(folder, "a.md", b"second a\n"),)), now=NOW)
    monkeypatch.undo()
    assert [place.name for place in (folder.root / ".trash").iterdir() if place.is_dir()] == []


# --- modes


def test_a_file_that_was_removed_comes_back_with_its_mode(folder: Folder) -> None:
    (folder.root / "a.md").chmod(0o600)
    run = apply(Plan("forget", (planned(folder, "a.md", None),)), now=NOW)
    apply(restoring([folder], run.id), now=NOW + 1)
    assert (folder.root / "a.md").stat().st_mode & 0o777 == 0o600


def test_undoing_an_edit_leaves_the_mode_that_the_file_has_by_now(folder: Folder) -> None:
    (folder.root / "a.md").chmod(0o644)
    run = apply(Plan("edit", (planned(folder, "a.md", b"second a\n"),)), now=NOW)
    (folder.root / "a.md").chmod(0o600)
    apply(restoring([folder], run.id), now=NOW + 1)
    assert (folder.root / "a.md").stat().st_mode & 0o777 == 0o600


def test_a_change_may_say_the_mode_of_a_new_file(folder: Folder) -> None:
    apply(Plan("edit", (Change(folder, "c.md", "", b"secret\n", mode=0o600),)), now=NOW)
    assert (folder.root / "c.md").stat().st_mode & 0o777 == 0o600


def test_a_journal_whose_run_was_deleted_is_set_aside(folder: Folder) -> None:
    def watch(step: Step, path: Path, _old: Path | None) -> None:
        if is_journal(step, path):
            raise KeyboardInterrupt

    with watching(watch), pytest.raises(KeyboardInterrupt):
        apply(Plan("edit", (planned(folder, "a.md", b"second a\n"),)), now=NOW)
    (place,) = (folder.root / ".trash").glob("2*")
    shutil.rmtree(place)
    apply(Plan("edit", (planned(folder, "b.md", b"second b\n"),)), now=NOW + 1)
    assert (folder.root / "a.md").read_bytes() == b"first a\n"
    assert [len(list((folder.root / ".trash").glob(name))) for name in ("pending.json", "pending.json.lost-*")] == [
        0,
        1,
    ]


# --- several folders


@pytest.fixture
def other(tmp_path: Path) -> Folder:
    root = tmp_path / "user"
    root.mkdir()
    (root / "x.md").write_bytes(b"first x\n")
    return Folder(root, Scope.USER, key=KEY)


def both(folder: Folder, other: Folder) -> Plan:
    return Plan("forget", (planned(folder, "a.md", None), planned(other, "x.md", None)))


def state(*folders: Folder) -> list[str]:
    return sorted(file.name for folder in folders for file in folder.root.glob("*.md"))


def test_a_plan_over_two_folders_is_refused_as_a_whole_when_a_file_of_either_changed(
    folder: Folder, other: Folder
) -> None:
    for stale in (folder.root / "a.md", other.root / "x.md"):
        plan = both(folder, other)
        stale.write_bytes(b"edited by hand\n")
        with pytest.raises(StalePlanError):
            apply(plan, now=NOW)
        assert state(folder, other) == ["a.md", "b.md", "x.md"]
        assert (kept(folder), kept(other)) == ([], [])


def test_a_plan_over_two_folders_waits_for_both_before_it_begins(folder: Folder, other: Folder) -> None:
    plan = both(folder, other)
    with writing(other), pytest.raises(LockedError):
        apply(plan, now=NOW, timeout_s=0)
    assert state(folder, other) == ["a.md", "b.md", "x.md"]


@pytest.mark.parametrize("name", ["journal", "001-x.md.old"])
def test_a_folder_that_fails_takes_the_other_back(folder: Folder, other: Folder, name: str) -> None:
    def watch(step: Step, path: Path, _old: Path | None) -> None:
        if step in {Step.CREATE, Step.RENAME} and path.name == name and path.is_relative_to(other.root.resolve()):
            raise OSError(errno.EIO, "the disk fails")

    with watching(watch), pytest.raises(OSError, match="fails"):
        apply(both(folder, other), now=NOW)
    assert state(folder, other) == ["a.md", "b.md", "x.md"]
    assert not [place for one in (folder, other) for place in (one.root / ".trash").iterdir() if place.is_dir()]
    assert not has_pending(folder.root)
    assert not has_pending(other.root)


def test_instructions_that_lie_in_the_memory_folder_are_changed_with_it(folder: Folder) -> None:
    (folder.root / "AGENTS.md").write_bytes(b"- one\n- two\n")
    beside = Folder(folder.root, index=IndexMode.OFF, key=KEY)
    plan = Plan("delete", (planned(beside, "AGENTS.md", b"- two\n"), planned(folder, "a.md", None)))
    run = apply(plan, now=NOW)
    assert state(folder) == ["AGENTS.md", "b.md"]
    apply(restoring([folder, beside], run.id), now=NOW + 1)
    assert (folder.root / "AGENTS.md").read_bytes() == b"- one\n- two\n"
    assert (folder.root / "a.md").read_bytes() == b"first a\n"
