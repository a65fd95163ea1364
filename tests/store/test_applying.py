"""A plan is applied as a whole or not at all, is refused when files changed, can be undone, and survives every stop."""

import multiprocessing
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from recall.errors import LockedError, StalePlanError, TopicError, UnsafePathError
from recall.store import disk
from recall.store.applying import apply, finish, writing
from recall.store.disk import Step
from recall.store.journal import has_pending
from recall.store.plan import Change, Folder, Item, Plan, digest, planned
from recall.store.trash import expire, kept, purge, restoring
from tests.power import Tape, put

NOW = 1_790_000_000.0
BEFORE: Mapping[str, bytes | None] = {
    "kept.md": b"---\nname: kept\n---\nold words\n",
    "sub/gone.md": "---\r\nname: 走\r\n---\r\n旧的事实\r\n".encode(),
    "new/fresh.md": None,
}
AFTER: Mapping[str, bytes | None] = {
    "kept.md": b"---\nname: kept\n---\nnew words\n",
    "sub/gone.md": None,
    "new/fresh.md": "一件新事 🎉\n".encode(),
}


def fill(root: Path, files: Mapping[str, bytes | None] = BEFORE) -> Folder:
    root.mkdir(exist_ok=True)
    for path, data in files.items():
        if data is not None:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
    return Folder(root)


def state(root: Path) -> dict[str, bytes | None]:
    return {path: (root / path).read_bytes() if (root / path).exists() else None for path in BEFORE}


def whole(folder: Folder) -> Plan:
    changes = tuple(planned(folder, path, data) for path, data in AFTER.items())
    return Plan("forget", changes, (Item("sub/gone.md", "旧的事实"),))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return fill(tmp_path / "memory")


def test_a_plan_changes_nothing_until_it_is_applied(folder: Folder) -> None:
    plan = whole(folder)
    assert state(folder.root) == BEFORE
    run = apply(plan, now=NOW)
    assert state(folder.root) == AFTER
    assert set(run.paths) == set(AFTER)
    assert run.skipped == ()


def test_a_plan_is_refused_as_a_whole_when_one_file_changed(folder: Folder) -> None:
    plan = whole(folder)
    (folder.root / "kept.md").write_bytes(b"edited by hand\n")
    with pytest.raises(StalePlanError, match=r"kept\.md") as caught:
        apply(plan, now=NOW)
    assert caught.value.paths == (folder.root / "kept.md",)
    assert state(folder.root) == {**BEFORE, "kept.md": b"edited by hand\n"}
    assert kept(folder) == []


def test_a_plan_is_refused_when_what_it_would_make_is_there_by_now(folder: Folder) -> None:
    plan = whole(folder)
    (folder.root / "new").mkdir()
    (folder.root / "new/fresh.md").write_bytes(b"somebody was faster\n")
    with pytest.raises(StalePlanError):
        plan.apply()
    assert state(folder.root) == {**BEFORE, "new/fresh.md": b"somebody was faster\n"}


def test_restoring_gives_back_every_byte_and_the_time_of_each_file(folder: Folder) -> None:
    os.utime(folder.root / "sub/gone.md", (1_600_000_000, 1_600_000_000))
    run = apply(whole(folder), now=NOW)
    back = restoring([folder], run.id)
    assert state(folder.root) == AFTER
    apply(back, now=NOW + 1)
    assert state(folder.root) == BEFORE
    assert (folder.root / "sub/gone.md").stat().st_mtime == 1_600_000_000


def test_a_restored_run_can_be_done_again_by_restoring_the_restoring(folder: Folder) -> None:
    run = apply(whole(folder), now=NOW)
    back = apply(restoring([folder], run.id), now=NOW + 1)
    apply(restoring([folder], back.id), now=NOW + 2)
    assert state(folder.root) == AFTER


def test_restoring_is_refused_where_a_file_was_edited_since(folder: Folder) -> None:
    run = apply(whole(folder), now=NOW)
    (folder.root / "kept.md").write_bytes(b"edited by hand\n")
    with pytest.raises(TopicError, match=r"kept\.md"):
        apply(restoring([folder], run.id), now=NOW + 1)
    assert state(folder.root) == {**AFTER, "kept.md": b"edited by hand\n"}


def test_restoring_without_a_name_takes_the_last_run_that_is_not_undone(folder: Folder) -> None:
    first = apply(Plan("edit", (planned(folder, "kept.md", b"one\n"),)), now=NOW)
    second = apply(Plan("edit", (planned(folder, "kept.md", b"two\n"),)), now=NOW + 1)
    undoing = restoring([folder])
    assert undoing.undoes == second.id
    undo = apply(undoing, now=NOW + 2)
    assert restoring([folder]).undoes == first.id
    apply(restoring([folder], undo.id), now=NOW + 3)  # what was undone holds again
    assert restoring([folder]).undoes == second.id
    assert [one.run.kind for one in kept(folder)] == ["restore", "restore", "edit", "edit"]


def test_a_run_that_is_not_there_is_said_by_name(folder: Folder) -> None:
    with pytest.raises(TopicError, match="no run nonsense"):
        restoring([folder], "nonsense")


def test_a_kept_copy_that_was_changed_is_not_restored(folder: Folder) -> None:
    run = apply(whole(folder), now=NOW)
    for copy in (folder.root / ".trash" / run.id).glob("*.old"):
        copy.write_bytes(b"tampered")
    with pytest.raises(TopicError, match="was changed"):
        restoring([folder], run.id)


@pytest.mark.parametrize("path", ["../out.md", ".trash/x.md", "a/.hidden/x.md", "notes.txt", "/etc/x.md", "a\0.md"])
def test_no_plan_reaches_outside_the_memory_or_into_its_hidden_folders(folder: Folder, path: str) -> None:
    with pytest.raises((UnsafePathError, StalePlanError)):
        apply(Plan("edit", (Change(folder, path, "", b"x"),)), now=NOW)
    assert not (folder.root.parent / "out.md").exists()
    assert not (folder.root / ".trash/x.md").exists()


def test_a_link_that_leads_out_is_not_written_through(folder: Folder, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_bytes(b"mine\n")
    (folder.root / "link.md").symlink_to(outside)
    with pytest.raises(UnsafePathError):
        apply(Plan("edit", (Change(folder, "link.md", digest(b"mine\n"), b"theirs\n"),)), now=NOW)
    assert outside.read_bytes() == b"mine\n"


def test_a_trash_that_is_a_link_is_not_followed(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (folder.root / ".trash").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafePathError):
        apply(whole(folder), now=NOW)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_mode_of_a_rewritten_file_stays(folder: Folder) -> None:
    (folder.root / "kept.md").chmod(0o640)
    apply(whole(folder), now=NOW)
    assert (folder.root / "kept.md").stat().st_mode & 0o777 == 0o640


def test_kept_copies_are_for_the_owner_alone_and_no_topics(folder: Folder) -> None:
    run = apply(whole(folder), now=NOW)
    place = folder.root / ".trash" / run.id
    assert place.stat().st_mode & 0o777 == 0o700
    assert not list((folder.root / ".trash").rglob("*.md"))
    assert (folder.root / ".trash/.gitignore").read_text(encoding="utf-8") == "*\n"


def test_an_empty_plan_leaves_no_trace(tmp_path: Path) -> None:
    run = apply(Plan("forget", ()), now=NOW)
    assert run.id == ""
    assert list(tmp_path.iterdir()) == []


def test_two_runs_of_one_second_do_not_share_a_folder(folder: Folder) -> None:
    first = apply(whole(folder), now=NOW)
    second = apply(restoring([folder], first.id), now=NOW)
    assert first.id != second.id
    assert len(kept(folder)) == 2


def test_another_writer_is_waited_for_and_then_named(folder: Folder) -> None:
    with (
        writing(folder),
        pytest.raises(LockedError, match=str(os.getpid())),
        writing(folder, timeout_s=0),
    ):
        pytest.fail("two writers at once")


def test_a_full_disk_while_the_plan_is_laid_out_changes_nothing(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = whole(folder)
    with writing(folder):
        pass
    _fail_at(monkeypatch, lambda step, path: step is Step.CREATE and path.suffix == ".new")
    with pytest.raises(OSError, match="full"):
        apply(plan, now=NOW)
    assert state(folder.root) == BEFORE
    assert not has_pending(folder.root)
    assert kept(folder) == []


def test_a_folder_that_cannot_be_written_takes_everything_back(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = whole(folder)
    _fail_at(monkeypatch, lambda step, path: step is Step.LINK)
    with pytest.raises(OSError, match="full"):
        apply(plan, now=NOW)
    monkeypatch.undo()
    assert state(folder.root) == BEFORE
    assert not has_pending(folder.root)


def _fail_at(monkeypatch: pytest.MonkeyPatch, wanted: Callable[[Step, Path], bool]) -> None:
    """Fails once, after the first step of that kind."""
    failed = False

    def watch(step: Step, path: Path, _old: Path | None) -> None:
        nonlocal failed
        if not failed and wanted(step, path):
            failed = True
            raise OSError(28, "the disk is full")

    monkeypatch.setattr(disk, "watch", watch)


@pytest.mark.parametrize("edited", ["kept.md", "sub/gone.md"])
def test_an_edit_that_comes_between_check_and_change_is_not_lost(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, edited: str
) -> None:
    plan = whole(folder)

    def watch(step: Step, path: Path, _old: Path | None) -> None:
        if step is Step.RENAME and path.name == "pending.json":
            (folder.root / edited).write_bytes(b"edited at the last moment\n")

    monkeypatch.setattr(disk, "watch", watch)
    run = apply(plan, now=NOW)
    assert run.skipped == (edited,)
    assert (folder.root / edited).read_bytes() == b"edited at the last moment\n"
    assert state(folder.root) == {**AFTER, edited: b"edited at the last moment\n"}


def _fresh(base: Path) -> Path:
    """The folder, empty. A journal is believed only where it was begun."""
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir()
    return base


def _stops(base: Path, action: Callable[[Folder], object]) -> list[tuple[str, Sequence[Mapping[str, bytes | None]]]]:
    """Every state that a stop or a loss of power may leave behind while the action runs."""
    folder = fill(_fresh(base) / "memory")
    tape = Tape(base)
    with tape.recording():
        action(folder)
    return [(moment.step, [moment.stopped(), *moment.without_power()]) for moment in tape.moments]


@pytest.mark.parametrize("what", ["apply", "restore"])
def test_after_every_stop_and_loss_of_power_no_file_is_lost_or_half_written(tmp_path: Path, what: str) -> None:
    def action(folder: Folder) -> None:
        run = apply(whole(folder), now=NOW)
        if what == "restore":
            apply(restoring([folder], run.id), now=NOW + 1)

    seen: set[str] = set()
    for step, states in _stops(tmp_path / "disk", action):
        for found in states:
            key = digest(repr(sorted(found.items())).encode())
            if key in seen:
                continue
            seen.add(key)
            root = put(found, _fresh(tmp_path / "disk")) / "memory"
            if root.exists():
                _is_whole(root, step)
    assert len(seen) > 30


def _is_whole(root: Path, step: str) -> None:
    for path, data in state(root).items():
        assert data in {BEFORE[path], AFTER[path]}, f"{path} is half-written after: {step}"
    with writing(Folder(root)):
        pass  # the next writer ends what was begun
    assert state(root) in (BEFORE, AFTER), f"neither before nor after: {step}"
    assert not has_pending(root)
    if state(root) == AFTER:
        last = kept(Folder(root))[0].run
        apply(restoring([Folder(root)], last.id), now=NOW + 9)
        assert state(root) == BEFORE, f"cannot be undone after: {step}"


def test_a_journal_that_is_not_ours_is_set_aside(folder: Folder) -> None:
    with writing(folder) as trash:
        (trash / "pending.json").write_text('{"run": "../..", "changes": []}', encoding="utf-8")
        assert finish(folder) is None
        assert not has_pending(folder.root)
        assert len(list(trash.glob("pending.json.corrupt-*"))) == 1


def _append(root: Path, name: str, count: int) -> None:
    folder = Folder(root)
    for number in range(count):
        while True:
            old = (root / "list.md").read_bytes()
            plan = Plan("edit", (Change(folder, "list.md", digest(old), old + f"- {name} {number}\n".encode()),))
            try:
                apply(plan, now=NOW)
            except StalePlanError:
                continue
            break


def test_two_processes_that_append_to_one_file_lose_no_line(folder: Folder) -> None:
    (folder.root / "list.md").write_bytes(b"")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_append, args=(folder.root, name, 20)) for name in ("a", "b")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    lines = (folder.root / "list.md").read_text(encoding="utf-8").splitlines()
    assert sorted(lines) == sorted(f"- {name} {number}" for name in "ab" for number in range(20))


def test_old_runs_go_and_young_ones_stay(folder: Folder) -> None:
    first = apply(whole(folder), now=NOW)
    second = apply(restoring([folder], first.id), now=NOW + 86_400)
    assert expire(folder, now=NOW + 86_400 * 30 + 1, days=30) == [first.id]
    assert [one.run.id for one in kept(folder)] == [second.id]
    assert state(folder.root) == BEFORE


def test_purging_leaves_no_byte_of_the_text_behind(folder: Folder) -> None:
    run = apply(whole(folder), now=NOW)
    assert purge(folder, ["旧的\n事实"]) == [run.id]
    assert not [file for file in folder.root.rglob("*") if file.is_file() and "旧的".encode() in file.read_bytes()]


def test_purging_takes_earlier_states_of_a_file_along_and_leaves_other_runs(folder: Folder) -> None:
    edited = apply(Plan("edit", (planned(folder, "sub/gone.md", b"other words\n"),)), now=NOW)
    other = apply(Plan("edit", (planned(folder, "kept.md", b"new words\n"),)), now=NOW + 1)
    assert purge(folder, [], paths={"sub/gone.md"}) == [edited.id]
    assert [one.run.id for one in kept(folder)] == [other.id]
