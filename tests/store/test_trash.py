"""What lies in `.trash` is undone, goes in time, is purged for good, and is not believed when others put it there."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from recall.errors import TopicError, UnsafePathError
from recall.store import disk
from recall.store.applying import apply, finish, writing
from recall.store.disk import Step
from recall.store.journal import has_pending
from recall.store.plan import Change, Folder, Item, Plan, Run, digest, planned
from recall.store.trash import expire, kept, purge, restoring
from recall.store.upkeep import bring_in_step

NOW = 1_790_000_000.0
DAY = 86_400.0
KEY = b"k" * 32


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    root = tmp_path / "memory"
    root.mkdir()
    (root / "a.md").write_bytes(b"first a\n")
    (root / "b.md").write_bytes(b"first b\n")
    return Folder(root, key=KEY)


def edit(folder: Folder, path: str, data: bytes | None, *, now: float = NOW, text: str = "") -> Run:
    items = (Item(path, text),) if text else ()
    return apply(Plan("edit", (planned(folder, path, data),), items), now=now)


def state(folder: Folder) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.root.glob("*.md"))}


# --- undoing


def test_runs_on_other_files_do_not_stand_in_the_way_of_an_older_one(folder: Folder) -> None:
    older = edit(folder, "a.md", None)
    edit(folder, "b.md", b"second b\n", now=NOW + 1)
    apply(restoring([folder], older.id), now=NOW + 2)
    assert state(folder) == {"a.md": b"first a\n", "b.md": b"second b\n"}


def test_runs_on_the_same_file_are_undone_from_the_newest_back(folder: Folder) -> None:
    older = edit(folder, "a.md", b"second a\n")
    newer = edit(folder, "a.md", b"third a\n", now=NOW + 1)
    with pytest.raises(TopicError):
        apply(restoring([folder], older.id), now=NOW + 2)
    assert state(folder)["a.md"] == b"third a\n"
    apply(restoring([folder], newer.id), now=NOW + 3)
    apply(restoring([folder], older.id), now=NOW + 4)
    assert state(folder)["a.md"] == b"first a\n"


def test_what_was_restored_cannot_be_restored_twice(folder: Folder) -> None:
    run = edit(folder, "a.md", None)
    apply(restoring([folder], run.id), now=NOW + 1)
    with pytest.raises(TopicError):
        apply(restoring([folder], run.id), now=NOW + 2)
    assert state(folder) == {"a.md": b"first a\n", "b.md": b"first b\n"}


def test_a_run_whose_copy_is_missing_says_so_and_changes_nothing(folder: Folder) -> None:
    run = edit(folder, "a.md", None)
    for copy in (folder.root / ".trash" / run.id).glob("*.old"):
        copy.unlink()
    with pytest.raises(TopicError, match="gone or was changed"):
        restoring([folder], run.id)
    assert state(folder) == {"b.md": b"first b\n"}


def test_a_run_over_two_folders_is_undone_in_both(folder: Folder, tmp_path: Path) -> None:
    other = Folder(tmp_path / "user", key=KEY)
    plan = Plan("edit", (planned(folder, "a.md", None), Change(other, "x.md", "", b"x\n")))
    run = apply(plan, now=NOW)
    assert [one.run.id for one in (*kept(folder), *kept(other))] == [run.id, run.id]
    apply(restoring([folder, other], run.id), now=NOW + 1)
    assert state(folder)["a.md"] == b"first a\n"
    assert state(other) == {}


def test_a_removed_file_whose_folder_has_gone_is_given_back(folder: Folder) -> None:
    (folder.root / "deep/er").mkdir(parents=True)
    (folder.root / "deep/er/x.md").write_bytes(b"deep\n")
    run = edit(folder, "deep/er/x.md", None)
    shutil.rmtree(folder.root / "deep")
    apply(restoring([folder], run.id), now=NOW + 1)
    assert (folder.root / "deep/er/x.md").read_bytes() == b"deep\n"


# --- letting go


def test_what_a_stop_left_of_a_run_goes_with_the_old_ones(folder: Folder) -> None:
    run = edit(folder, "a.md", b"second a\n")
    trash = folder.root / ".trash"
    (trash / run.id).rename(trash / "2001-01-01T00-00-00-0123abcd")  # a run of another name is no run
    (trash / "mine").mkdir()
    assert expire(folder, now=NOW, days=30) == ["2001-01-01T00-00-00-0123abcd"]
    assert (trash / "mine").is_dir()


def test_nothing_expires_where_there_was_never_a_run(tmp_path: Path) -> None:
    assert expire(Folder(tmp_path / "nowhere"), now=NOW, days=0) == []
    assert list(tmp_path.iterdir()) == []


# --- a trash that came along with a repository


def stopped(folder: Folder, plan: Plan) -> None:
    """Leaves the plan as a process does that dies once the journal has its name."""

    class Stop(BaseException):
        pass

    def watch(step: Step, path: Path, _old: Path | None) -> None:
        if step is Step.RENAME and path.name == "pending.json":
            raise Stop

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "watch", watch)
        patch.setattr(disk, "delete_folder", lambda _: None)  # a dead process tidies nothing up
        with pytest.raises(Stop):
            apply(plan, now=NOW)


def test_what_this_user_began_is_ended(folder: Folder) -> None:
    stopped(folder, Plan("forget", (planned(folder, "a.md", None),)))
    with writing(folder):
        assert not has_pending(folder.root)
    assert state(folder) == {"b.md": b"first b\n"}


@pytest.mark.parametrize("who", ["somebody else", "nobody"])
def test_what_somebody_else_began_is_not_done(folder: Folder, who: str) -> None:
    theirs = Folder(folder.root, key=b"x" * 32 if who == "somebody else" else b"")
    plan = (planned(theirs, "a.md", None), planned(theirs, "b.md", b"evil\n"), planned(theirs, "new.md", b"evil\n"))
    stopped(theirs, Plan("forget", plan))
    with writing(folder) as trash:
        assert not has_pending(folder.root)
        assert len(list(trash.glob("pending.json.foreign-*"))) == 1
    assert state(folder) == {"a.md": b"first a\n", "b.md": b"first b\n"}


def test_a_journal_of_this_user_is_not_believed_in_another_folder(folder: Folder, tmp_path: Path) -> None:
    stopped(folder, Plan("forget", (planned(folder, "a.md", None),)))
    copy = Folder(tmp_path / "copy", key=KEY)
    shutil.copytree(folder.root, copy.root)
    with writing(copy):
        pass
    assert state(copy) == {"a.md": b"first a\n", "b.md": b"first b\n"}


def test_a_journal_that_was_changed_is_not_believed(folder: Folder) -> None:
    stopped(folder, Plan("forget", (planned(folder, "a.md", None),)))
    file = folder.root / ".trash/pending.json"
    file.write_text(file.read_text(encoding="utf-8").replace('"a.md"', '"b.md"'), encoding="utf-8")
    with writing(folder):
        pass
    assert state(folder) == {"a.md": b"first a\n", "b.md": b"first b\n"}


def test_the_last_run_is_the_last_of_this_user(folder: Folder) -> None:
    mine = edit(folder, "a.md", b"second a\n")
    theirs = edit(Folder(folder.root), "b.md", b"second b\n", now=NOW + 9e9)
    assert restoring([folder]).undoes == mine.id
    assert not any("look twice" in note for note in restoring([folder]).notes)
    by_name = restoring([folder], theirs.id)
    assert by_name.undoes == theirs.id
    assert any("look twice" in note for note in by_name.notes)


def record(folder: Folder, **other: Any) -> dict[str, Any]:
    change = {
        "path": "a.md",
        "before": digest(b"first a\n"),
        "after": "",
        "mtime_ns": 0,
        "old": "001.old",
        "new": "001.new",
    }
    return {
        "version": 1,
        "run": "2026-01-01T00-00-00-0123abcd",
        "kind": "forget",
        "time": NOW,
        "items": [],
        "changes": [change | {key: value for key, value in other.items() if key in change}],
        **{key: value for key, value in other.items() if key not in change},
    }


HOSTILE: Mapping[str, Mapping[str, Any]] = {
    "a path upwards": {"path": "../outside.md"},
    "an absolute path": {"path": "/etc/outside.md"},
    "a hidden folder": {"path": ".git/config.md"},
    "no Markdown": {"path": "script.sh"},
    "a copy upwards": {"old": "../../../outside.md"},
    "a copy without a name": {"old": ""},
    "the folder as its own copy": {"old": "."},
    "new and old in one": {"old": "001.new"},
    "an absolute new one": {"new": "/etc/passwd"},
    "a run upwards": {"run": "../.."},
    "a run without a name": {"run": ""},
    "the trash as a run": {"run": "."},
    "no time": {"time": float("nan")},
    "an endless time": {"time": float("inf")},
    "a time as a list": {"time": []},
    "changes that are none": {"changes": ["a.md"]},
    "changes that are a number": {"changes": 7},
    "an item that is none": {"items": [None]},
    "a huge modification time": {"mtime_ns": 10**30},
    "no hash": {"before": "deadbeef"},
    "half a character": {"path": "\ud800.md"},
    "a NUL": {"path": "a\0.md"},
    "a path without end": {"path": "x" * 5_000 + ".md"},
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("key", [KEY, b""], ids=["with a key", "without one"])
def test_no_journal_reaches_beyond_the_memory_or_stops_its_work(
    folder: Folder, tmp_path: Path, name: str, key: bytes
) -> None:
    folder = Folder(folder.root, key=key)
    outside = tmp_path / "outside.md"
    outside.write_bytes(b"mine\n")
    with writing(folder) as trash:
        pass
    text = json.dumps(record(folder, **HOSTILE[name]))
    for place in (trash / "2026-01-01T00-00-00-0123abcd", trash / "other"):
        place.mkdir()
        (place / "001.new").write_bytes(b"evil\n")
        (place / "run.json").write_text(text, encoding="utf-8")
    (trash / "pending.json").write_text(text, encoding="utf-8")
    run = edit(folder, "b.md", b"second b\n")  # the next writer gets through
    assert not has_pending(folder.root)
    assert state(folder) == {"a.md": b"first a\n", "b.md": b"second b\n"}
    assert outside.read_bytes() == b"mine\n"
    assert run.id in [one.run.id for one in kept(folder)]
    expire(folder, now=NOW + 99 * DAY, days=30)
    assert outside.read_bytes() == b"mine\n"
    assert state(folder) == {"a.md": b"first a\n", "b.md": b"second b\n"}


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "null", "{", "", '{"run": 1e999}', "9" * 5_000, "\udcff\udcfe"])
@pytest.mark.parametrize("name", ["pending.json", "2026-01-01T00-00-00-0123abcd/run.json"])
def test_what_is_no_journal_hinders_nobody(folder: Folder, name: str, text: str) -> None:
    with writing(folder) as trash:
        (trash / name).parent.mkdir(exist_ok=True)
        (trash / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    run = edit(folder, "a.md", b"second a\n")
    assert [one.run.id for one in kept(folder)] == [run.id]
    assert purge(folder, ["first a"]) == [run.id]


def _link(file: Path) -> None:
    file.symlink_to("/dev/zero")


def _dangling(file: Path) -> None:
    file.symlink_to("nowhere")


def _folder(file: Path) -> None:
    file.mkdir()
    (file / "x").write_bytes(b"")


def _pipe(file: Path) -> None:
    os.mkfifo(file)


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices are files elsewhere only by name")
@pytest.mark.parametrize("make", [_link, _dangling, _folder, _pipe])
@pytest.mark.parametrize("name", ["pending.json", "2026-01-01T00-00-00-0123abcd/run.json"])
def test_what_is_no_file_is_not_waited_for(folder: Folder, name: str, make: Callable[[Path], None]) -> None:
    with writing(folder) as trash:
        (trash / name).parent.mkdir(exist_ok=True)
    make(trash / name)
    run = edit(folder, "a.md", b"second a\n")
    assert [one.run.id for one in kept(folder)] == [run.id]
    assert purge(folder, ["first a"]) == [run.id]


@pytest.mark.parametrize("lock", ["writer.lock", "remember.lock", "meta.lock"])
def test_a_lock_that_is_a_link_is_not_written_through(folder: Folder, tmp_path: Path, lock: str) -> None:
    outside = tmp_path / "profile"
    outside.write_bytes(b"mine\n")
    (folder.root / ".trash").mkdir()
    (folder.root / ".trash" / lock).symlink_to(outside)
    with pytest.raises(UnsafePathError):
        edit(folder, "a.md", b"second a\n")
    assert outside.read_bytes() == b"mine\n"


def test_copies_that_are_links_give_nothing_away(folder: Folder, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"token\n")
    place = folder.root / ".trash/2026-01-01T00-00-00-0123abcd"
    place.mkdir(parents=True)
    (place / "001.old").symlink_to(secret)
    told = record(folder, path="stolen.md", before=digest(b"token\n"), after="")
    (place / "run.json").write_text(json.dumps(told), encoding="utf-8")
    assert kept(folder) == []
    with pytest.raises(TopicError):
        restoring([folder], place.name)


def test_a_record_with_odd_ends_cannot_trip_a_restoring(folder: Folder) -> None:
    run = edit(folder, "a.md", b"second a\n")
    file = folder.root / ".trash" / run.id / "run.json"
    whole = json.loads(file.read_text(encoding="utf-8"))
    odds: list[dict[str, object]]
    odds = [{"skipped": 7}, {"index": 7}, {"index": {"before": "x", "after": "", "old": ""}}, {"index": {}}]
    for odd in odds:
        file.write_text(json.dumps(whole | odd), encoding="utf-8")
        plan = restoring([folder], run.id)
        assert [change.path for change in plan.changes] == ["a.md"]


def test_an_index_that_is_a_link_out_of_the_memory_is_left_alone(folder: Folder, tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    profile.write_bytes(b"export PATH\n")
    (folder.root / "MEMORY.md").symlink_to(profile)
    run = apply(Plan("edit", (planned(folder, "a.md", b"`rm -rf` is mine\n"),)), now=NOW, upkeep=bring_in_step)
    assert profile.read_bytes() == b"export PATH\n"
    assert any("MEMORY.md" in note for note in run.notes)


def test_a_file_that_became_a_folder_is_skipped_when_a_stopped_run_is_ended(folder: Folder) -> None:
    plan = (planned(folder, "a.md", b"second a\n"), planned(folder, "b.md", b"second b\n"))
    stopped(folder, Plan("edit", plan))
    (folder.root / "a.md").unlink()
    (folder.root / "a.md").mkdir()
    with writing(folder):
        pass
    assert (folder.root / "b.md").read_bytes() == b"second b\n"
    assert [change.path for change in restoring([folder]).changes] == ["b.md"]


def test_content_that_waits_and_was_changed_is_not_put_into_the_memory(folder: Folder) -> None:
    stopped(folder, Plan("edit", (planned(folder, "a.md", b"second a\n"),)))
    (new,) = (folder.root / ".trash").glob("*/*.new")
    new.write_bytes(b"evil\n")
    with writing(folder):
        pass
    assert state(folder)["a.md"] == b"first a\n"


def test_ending_nothing_is_nothing(folder: Folder) -> None:
    with writing(folder):
        assert finish(folder) is None


def test_a_disk_that_is_full_at_the_very_end_leaves_a_change_that_the_next_one_records(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def watch(step: Step, path: Path, _old: Path | None) -> None:
        if step is Step.CREATE and path.name == "record":
            raise OSError(28, "the disk is full")

    monkeypatch.setattr(disk, "watch", watch)
    run = edit(folder, "a.md", b"second a\n")
    monkeypatch.undo()
    assert (run.paths, state(folder)["a.md"]) == (("a.md",), b"second a\n")
    assert any("cannot be recorded yet" in note for note in run.notes)
    with writing(folder):
        pass
    apply(restoring([folder], run.id), now=NOW + 1)
    assert state(folder)["a.md"] == b"first a\n"
