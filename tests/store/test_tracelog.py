"""The log of traces on a real disk: several processes, bounds, damage, purging."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import recall
from recall.errors import LockedError
from recall.store.locks import exclusive
from recall.store.tracelog import TraceLog
from recall.store.traces import Trace, TracedHit, query_key, to_line

REPOSITORY = Path(recall.__file__).parents[1]
SALT = b"some salt"


@pytest.fixture
def log(tmp_path: Path) -> TraceLog:
    return TraceLog(tmp_path / "traces" / "of this root")


def trace(number: int, *paths: str, query: str = "") -> Trace:
    query = query or f"question {number}"
    return Trace(
        id=f"{number:08}", time=float(number), key=query_key(query), query=query, surface="hook", strategy="hybrid",
        hits=tuple(TracedHit(path, 5.0, 0.5) for path in paths or ("a.md",)),
    )  # fmt: skip


def numbers(log: TraceLog) -> list[int]:
    return [int(one.id) for one in log.read()]


def content(log: TraceLog) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(log.folder.iterdir()))


def test_what_was_appended_is_read_in_order(log: TraceLog) -> None:
    traces = [trace(number) for number in range(5)]
    for one in traces:
        log.append(one)
    assert log.read() == traces


def test_a_log_that_nobody_wrote_is_empty_and_stays_unmade(log: TraceLog) -> None:
    assert log.read() == []
    assert log.keys_of({"a.md"}) == frozenset()
    log.purge({"a.md"}, (), salt=SALT)
    assert not log.folder.exists()


def test_it_is_for_its_user_alone(log: TraceLog) -> None:
    before = os.umask(0)
    try:
        log.append(trace(1))
        assert stat.S_IMODE(log.folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((log.folder / "recalls.jsonl").stat().st_mode) == 0o600
        log.append(trace(2, "b.md"))
        log.purge({"b.md"}, (), salt=SALT)
        assert stat.S_IMODE((log.folder / "recalls.jsonl").stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_processes_that_write_at_once_lose_no_line(log: TraceLog) -> None:
    script = """
import sys
from pathlib import Path
from recall.store.tracelog import TraceLog
from recall.store.traces import Trace, TracedHit
log, first = TraceLog(Path(sys.argv[1])), int(sys.argv[2])
sys.stdin.readline()
for number in range(first, first + 200):
    hits = (TracedHit("a.md", 5.0, 0.5),)
    trace = Trace(id=str(number), time=1.0, key="k", query="问题" * 60, surface="x", strategy="y", hits=hits)
    log.append(trace, wait_s=60)
"""
    command = [sys.executable, "-c", script, str(log.folder)]
    env = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    writers = [
        subprocess.Popen([*command, str(first)], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        for first in (0, 1000, 2000)
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"go\n")
        writer.stdin.flush()
    for writer in writers:
        _, complaint = writer.communicate(timeout=100)
        assert writer.returncode == 0, complaint.decode()
    found = numbers(log)
    assert sorted(found) == [first + number for first in (0, 1000, 2000) for number in range(200)]
    for first in (0, 1000, 2000):
        own = [number for number in found if first <= number < first + 1000]
        assert own == sorted(own)


def test_the_bound_holds_and_the_oldest_go_first(tmp_path: Path) -> None:
    log = TraceLog(tmp_path / "small", max_bytes=4000)
    for number in range(200):
        log.append(trace(number))
        assert len(content(log)) <= 4000 + 20  # the lock holds the number of a process
    found = numbers(log)
    assert found == list(range(200 - len(found), 200))
    assert len(found) * len(to_line(trace(1))) > 1500


def test_a_line_that_is_larger_than_the_log_leaves_the_others(tmp_path: Path) -> None:
    log = TraceLog(tmp_path / "small", max_bytes=1000)
    log.append(trace(1))
    log.append(trace(2, *(f"{number}.md" for number in range(100))))
    assert numbers(log) == [1]


def test_damaged_lines_are_skipped(log: TraceLog) -> None:
    log.append(trace(1))
    file = log.folder / "recalls.jsonl"
    with file.open("ab") as stream:
        stream.write(b"\n{broken\n\xff\xfe\0\n" + to_line(trace(9)).replace(b'"v":1', b'"v":77'))
    log.append(trace(2))
    with file.open("ab") as stream:
        stream.write(to_line(trace(3))[:-15])  # whoever wrote it died
    log.append(trace(4))
    assert numbers(log) == [1, 2, 4]


def test_a_reader_does_without_the_lock_when_it_cannot_have_it(log: TraceLog) -> None:
    log.append(trace(1))
    with exclusive(log.folder / "recalls.lock", timeout_s=1):
        assert numbers(log) == [1]
        with pytest.raises(LockedError):
            log.append(trace(2), wait_s=0)
    assert numbers(log) == [1]


def test_a_full_disk_is_an_error_and_leaves_no_half_line(log: TraceLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append(trace(1))
    real = os.write

    def full(descriptor: int, data: bytes) -> int:
        return real(descriptor, data[:20]) if data.startswith(b"{") else real(descriptor, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="only a part"):
        log.append(trace(2))
    monkeypatch.undo()
    assert (log.folder / "recalls.jsonl").read_bytes() == to_line(trace(1))


def test_a_file_in_the_place_of_the_folder_is_an_error_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(OSError, match="file"):
        TraceLog(tmp_path / "file" / "x").append(trace(1))


def test_a_relative_folder_is_not_made_wherever_the_process_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError):
        TraceLog(Path("traces")).append(trace(1))
    assert list(tmp_path.iterdir()) == []


# --- purging


def test_a_purged_topic_leaves_no_byte_of_itself_or_its_questions(log: TraceLog) -> None:
    log.append(trace(1, "secret_plan.md", query="what is the Secret plan?"))
    log.append(trace(2, "b.md", "secret_plan.md", query="新的计划是什么"))
    log.append(trace(3, "b.md", query="WHAT is the secret  plan?"))  # the same question, another answer
    log.append(trace(4, "b.md", query="harmless"))
    keys = log.keys_of({"secret_plan.md"})
    log.purge({"secret_plan.md"}, keys, salt=SALT)
    left = content(log)
    for gone in ("secret", "plan", "计划", *keys):
        assert gone.encode() not in left.lower()
    assert [(one.id[-1], one.query, [hit.path for hit in one.hits]) for one in log.read()] == [
        ("2", "", ["b.md"]),
        ("3", "", ["b.md"]),
        ("4", "harmless", ["b.md"]),
    ]


def test_what_is_counted_of_the_other_topics_stays_true(log: TraceLog) -> None:
    log.append(trace(1, "a.md", "b.md", query="one"))
    log.append(trace(2, "a.md", "b.md", query="One "))
    log.append(trace(3, "a.md", "b.md", query="two"))
    log.append(trace(4, "b.md", query="three"))
    log.purge({"a.md"}, log.keys_of({"a.md"}), salt=SALT)
    keys = [one.key for one in log.read()]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
    assert keys[3] == query_key("three")


def test_both_files_damaged_lines_and_what_a_killed_purge_left_are_purged(tmp_path: Path) -> None:
    log = TraceLog(tmp_path / "small", max_bytes=3000)
    for number in range(12):
        log.append(trace(number, "a.md" if number % 2 else "b.md", query=f"mammoth {number % 2}"))
    assert (log.folder / "recalls.old.jsonl").exists()
    with (log.folder / "recalls.jsonl").open("ab") as stream:
        stream.write(b'{"query":"mammoth 1')
    (log.folder / "0123.tmp").write_text("mammoth 1", encoding="utf-8")
    log.purge({"a.md"}, log.keys_of({"a.md"}), salt=SALT)
    assert b"mammoth 1" not in content(log)
    assert b"a.md" not in content(log)
    assert {one.query for one in log.read()} == {"mammoth 0"}


def test_a_log_of_nothing_else_is_gone(log: TraceLog) -> None:
    log.append(trace(1))
    log.purge({"a.md"}, log.keys_of({"a.md"}), salt=SALT)
    assert [file.name for file in log.folder.iterdir()] == ["recalls.lock"]
    log.append(trace(2))
    assert numbers(log) == [2]
