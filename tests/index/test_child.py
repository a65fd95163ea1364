"""Long work in processes of its own: real ones, with what may happen to them."""

import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recall.config import EncoderConfig
from recall.errors import EncoderError, LockedError
from recall.index.child import Child, ChildError, Children, can_start
from recall.index.collection import Collection
from recall.index.encoders import make_encoder
from recall.index.job import (
    Done,
    Failed,
    Job,
    Logged,
    Message,
    Progressed,
    Reported,
    Stage,
    decoded,
    encoded,
    job_for,
    work,
)
from recall.index.onnx import DEFAULT_MODEL, models_folder
from recall.index.sync import SyncReport, joined
from recall.store.locks import exclusive
from recall.store.topics import Scope

LONG_S = 100.0  # an upper bound that only a broken implementation reaches
HASHING = EncoderConfig(model="hashing")
REPOSITORY = Path(__file__).resolve().parents[2]
Step = tuple[str, int, int]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Collection]:
    """The index of a folder of forty notes, nothing read yet."""
    root = tmp_path / "memory"
    root.mkdir()
    for number in range(40):
        write(root, f"{number}.md", f"number {number} tells about animal{number} and 主题{number}号")
    collection = Collection(root, Scope.PROJECT, cache=tmp_path / "cache", max_file_bytes=1 << 20)
    yield collection
    collection.close()


def write(root: Path, path: str, body: str) -> None:
    (root / path).write_text(body, encoding="utf-8")


def words(index: Collection, **how: Any) -> Job:
    return job_for(index, "words", **how)


def vectors(index: Collection, recipe: EncoderConfig = HASHING, **how: Any) -> Job:
    return job_for(index, "vectors", recipe=recipe, **how)


def done(job: Job, steps: list[Step] | None = None) -> SyncReport:
    with Child(job) as child:
        return child.run((lambda *step: steps.append(step)) if steps is not None else None)


def done_here(index: Collection, stage: Stage, cache: Path) -> SyncReport:
    """What this process reports of the same work, in another cache."""
    other = Collection(index.root, index.scope, cache=cache, max_file_bytes=index.max_file_bytes)
    try:
        report = other.sync_words()
        if stage == "vectors":
            encoder = make_encoder(HASHING)
            assert encoder
            report = other.sync_vectors(encoder)
    finally:
        other.close()
    return report


def rows(index: Collection) -> np.ndarray[Any, Any]:
    return np.array(index.snapshot().rows)


# --- the work


def test_what_it_makes_is_what_this_process_sees_and_would_have_made(index: Collection, tmp_path: Path) -> None:
    write(index.root, "broken.md", "\0" * 99)
    write(index.root, "MEMORY.md", "- [1](1.md)")
    steps: list[Step] = []
    for stage, job in (("words", words(index)), ("vectors", vectors(index))):
        report = done(job, steps)
        expected = done_here(index, stage, tmp_path / f"other {stage}")  # type: ignore[arg-type]
        assert replace(report, duration_s=0) == replace(expected, duration_s=0)
        assert report.duration_s > 0
    assert len(index.snapshot()) == 40
    assert index.snapshot().embedded.all()
    assert list(index.problems()) == ["broken.md"]
    assert (steps[0], steps[-1]) == (("words", 41, 41), ("vectors", 40, 40))


def test_a_full_one_makes_everything_anew(index: Collection) -> None:
    done(words(index))
    inode = (index.folder / "catalog.sqlite3").stat().st_ino
    index.hold()
    assert len(done(words(index, full=True)).added) == 40
    index.release()
    assert (index.folder / "catalog.sqlite3").stat().st_ino != inode
    assert len(index.snapshot()) == 40


def test_an_index_that_is_held_shows_its_old_state_until_it_is_released(index: Collection) -> None:
    done(words(index))
    index.hold()
    write(index.root, "new.md", "new")
    done(words(index, full=True))
    index.sync_words()
    assert (index.is_held, len(index.snapshot())) == (True, 40)
    index.release()
    assert (index.is_held, len(index.snapshot())) == (False, 41)


def test_an_index_that_is_held_before_anything_was_read_shows_what_there_is(index: Collection) -> None:
    index.hold()
    done(words(index, full=True))
    assert len(index.snapshot()) == 40


def test_an_index_that_others_threw_away_shows_its_old_state_until_somebody_has_read_the_folder(
    index: Collection,
) -> None:
    done(words(index))
    before = index.snapshot()
    index.inline_files = 10
    (index.folder / "catalog.sqlite3").unlink()
    assert index.snapshot() is before
    assert index.sync_words(limit=10).left == 40
    assert index.snapshot() is before
    done(words(index))
    assert index.sync_words(limit=10).left == 0
    assert index.snapshot() is not before
    assert len(index.snapshot()) == 40


def test_an_index_that_is_damaged_is_not_read_by_who_leaves_that_to_others(index: Collection) -> None:
    done(words(index))
    (postings,) = index.folder.glob("*.postings")
    os.truncate(postings, postings.stat().st_size // 2)
    index.inline_files = 10
    assert index.sync_words(limit=10).left == 40
    assert len(index.sync_words(limit=40).added) == 40


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of files are text")
def test_names_that_are_no_text_and_reports_of_any_length_come_through(tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"caf\xe9 \xe5")
    root.mkdir()
    for number in range(600):
        write(root, f"备忘{number}.md", f"text {number}")
    index = Collection(root, Scope.USER, cache=tmp_path / "cache", max_file_bytes=1 << 20, optional=True)
    try:
        report = done(words(index))
        assert len(set(report.added)) == 600
        assert "备忘599.md" in report.added
        shutil.rmtree(root)
        assert len(done(words(index)).removed) == 600
        required = replace_optional(words(index))
        assert str(root) in done(required).note
    finally:
        index.close()


def replace_optional(job: Job) -> Job:
    return Job(**{name: getattr(job, name) for name in job.__struct_fields__} | {"optional": False})


@pytest.mark.skipif(not hasattr(os, "getpriority"), reason="the system knows no priorities")
def test_it_works_at_low_priority(index: Collection) -> None:
    found: list[int] = []
    with Child(words(index)) as child:
        child.run(lambda *_: found.append(os.getpriority(os.PRIO_PROCESS, child.number)))
    assert found == [min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)]


def test_nothing_in_the_working_directory_is_taken_for_a_library(
    index: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = tmp_path / "project"
    (trap / "recall").mkdir(parents=True)
    for name in ("json.py", "msgspec.py", "numpy.py", "recall/__init__.py"):
        write(trap, name, "raise SystemExit('a trap')")
    monkeypatch.chdir(trap)
    assert len(done(words(index)).added) == 40


@pytest.mark.model
def test_several_workers_make_the_same_rows_in_the_same_order(index: Collection) -> None:
    write(index.root, "long.md", "some words that go on and on, 还有一些中文。" * 80)
    found = []
    for workers in (1, 2):
        done(words(index, full=True))
        report = done(vectors(index, EncoderConfig(), workers=workers))
        assert report.embedded > 41  # the long one has several chunks
        found.append((rows(index), index.snapshot().chunk_row.tolist()))
    assert np.array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


# --- errors


def test_a_model_that_does_not_work_is_reported_as_it_is_here(index: Collection, tmp_path: Path) -> None:
    broken = tmp_path / "model"
    broken.mkdir()
    shutil.copy(models_folder() / DEFAULT_MODEL / "model.yaml", broken)
    done(words(index))
    for files in ((), ("model.onnx", "tokenizer.json")):
        for name in files:
            write(broken, name, "no model")
        with pytest.raises(EncoderError, match="reinstall recall"):
            done(vectors(index, EncoderConfig(model=str(broken))))
    assert not index.snapshot().embedded.any()


def test_who_holds_the_lock_is_named(index: Collection) -> None:
    done(words(index))
    with (
        exclusive(index.folder / "vectors.lock", timeout_s=LONG_S),
        pytest.raises(LockedError, match=f"process {os.getpid()}") as caught,
    ):
        done(vectors(index, lock_wait_s=0.0))
    assert caught.value.path == index.folder / "vectors.lock"


def test_a_cache_that_only_it_cannot_use_is_no_error_of_the_cache(index: Collection) -> None:
    job = words(index)
    (index.root.parent / "file").write_text("", encoding="utf-8")
    elsewhere = Job(
        **{name: getattr(job, name) for name in job.__struct_fields__} | {"cache": str(index.root.parent / "file")}
    )
    with pytest.raises(ChildError, match="cannot be used"):
        done(elsewhere)


def test_what_the_system_says_keeps_its_number_and_its_file(index: Collection) -> None:
    """A folder in the place of the lock file: an error that no try mends."""
    done(words(index))
    lock = index.folder / "vectors.lock"
    lock.unlink(missing_ok=True)
    lock.mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        done(vectors(index))
    assert caught.value.filename == str(lock)


def test_what_the_library_logs_there_is_logged_here(index: Collection, caplog: pytest.LogCaptureFixture) -> None:
    shutil.rmtree(index.folder)
    index.folder.parent.mkdir(exist_ok=True)
    index.folder.write_text("in the way", encoding="utf-8")
    with caplog.at_level(logging.WARNING, "recall"), pytest.raises(ChildError):
        done(words(index))
    assert [record.name for record in caplog.records if "temporary" in record.getMessage()] == ["recall.index.home"]


def test_a_process_that_cannot_be_started_is_no_error_of_the_system(
    index: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no python"))
    with pytest.raises(ChildError, match="no python"):
        done(words(index))


def test_an_application_that_is_its_own_interpreter_starts_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_start()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert not can_start()
    monkeypatch.undo()
    for program in ("", None, "/usr/bin/uwsgi"):
        monkeypatch.setattr(sys, "executable", program)
        assert not can_start()


def test_an_interpreter_that_is_none_of_ours_does_not_come_to_an_end(
    index: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho hello\nexit 3\n", encoding="utf-8")
    other.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(other))
    with pytest.raises(ChildError, match="code 3"):
        done(words(index))


# --- ends


def fill(root: Path, times: int = 2) -> None:
    """So much that the real model is not done with it soon."""
    for number in range(60):
        write(root, f"long {number}.md", f"note {number} says a lot about this and that, and 中文也有一些。 " * times)


def test_one_that_is_killed_is_missed_and_loses_nothing(index: Collection) -> None:
    fill(index.root)
    with pytest.raises(ChildError, match="code -9"), Child(words(index)) as child:
        child.run(lambda *_: os.kill(child.number, signal.SIGKILL))
    assert len(index.snapshot()) == 100
    assert done(words(index)).failed == ()
    done(vectors(index))
    assert index.snapshot().embedded.all()


@pytest.mark.model
def test_one_that_is_killed_between_vectors_loses_none_that_was_told(index: Collection) -> None:
    fill(index.root)
    done(words(index))
    with pytest.raises(ChildError), Child(vectors(index, EncoderConfig())) as child:
        child.run(lambda *_: os.kill(child.number, signal.SIGKILL))
    made = int(index.snapshot().embedded.sum())
    assert 0 < made < 100
    report = done(vectors(index, EncoderConfig()))
    assert index.snapshot().embedded.all()
    assert 100 - made - 32 <= report.embedded <= 100 - made


@pytest.mark.model
def test_one_that_is_called_off_ends_after_the_present_text_and_says_what_it_did(index: Collection) -> None:
    fill(index.root, times=8)
    done(words(index))
    children, until = Children(), threading.Event()

    def call_off(*_: object) -> None:
        children.call_off()  # its event is not set: goes on
        until.set()
        children.call_off()

    report = children.run(vectors(index, EncoderConfig()), until=until, on_progress=call_off)
    assert 0 < report.embedded < 100
    assert int(index.snapshot().embedded.sum()) == report.embedded
    assert children.numbers == []
    assert children.run(vectors(index), until=until) == SyncReport()  # called off before it began


@pytest.mark.model
def test_ending_one_waits_for_no_model(index: Collection) -> None:
    fill(index.root, times=8)
    done(words(index))
    with Child(vectors(index, EncoderConfig())) as child:
        child.run(lambda *_: child.end())
        with pytest.raises(ProcessLookupError):
            os.kill(child.number, 0)


PARENT = """
import sys
from pathlib import Path
from recall.config import EncoderConfig
from recall.index.child import Child
from recall.index.collection import Collection
from recall.index.job import job_for
from recall.store.topics import Scope

index = Collection(Path(sys.argv[1]), Scope.PROJECT, cache=Path(sys.argv[2]), max_file_bytes=1 << 20)
child = Child(job_for(index, "vectors", recipe=EncoderConfig()))
child.run(lambda *_: (print("at it", flush=True), sys.stdin.readline()))
"""


@pytest.mark.model
def test_it_does_not_outlive_who_wanted_it(index: Collection) -> None:
    fill(index.root, times=8)
    done(words(index))
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(index.root), str(index.cache)],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as parent:
        assert parent.stdout
        assert parent.stdout.readline() == "at it\n"
        parent.kill()
    with exclusive(index.folder / "vectors.lock", timeout_s=LONG_S):  # it goes with the process that holds it
        assert 0 < int(index.snapshot().embedded.sum()) < 100


# --- the messages


MESSAGES: list[Message] = [
    Progressed("words", 1, 2),
    Reported(SyncReport(added=("a.md",), failed=(("b.md", "why"),), kept=3, note="caf\udce9", duration_s=0.5)),
    Logged(30, "recall", "text"),
    Failed("OSError", "full", "/x", "28"),
    Done(),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_every_message_comes_through_as_one_line(message: Message) -> None:
    line = encoded(message)
    assert line.count(b"\n") == 1
    assert decoded(line) == message


@pytest.mark.parametrize("line", [b"hello\n", b"\xff\n", b"{}\n", b'{"type": "who"}\n', b"[" * 100_000, b""])
def test_other_lines_are_no_messages(line: bytes) -> None:
    assert decoded(line) is None


def test_a_report_in_parts_says_the_same(index: Collection) -> None:
    """The work itself, in this process, where every line of it counts."""
    told: list[Message] = []
    work(words(index), told.append, threading.Event())
    parts = [message.part for message in told if isinstance(message, Reported)]
    assert len(parts) > 1
    assert len(joined(parts).added) == 40
    work(vectors(index), told.append, threading.Event())
    assert index.snapshot().embedded.all()
    work(words(index, full=True), told.append, threading.Event())
    assert not index.snapshot().embedded.any()
