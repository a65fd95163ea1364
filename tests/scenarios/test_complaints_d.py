"""Complaints from the field, group D: damage, and two processes at one memory."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from recall import Config, Delivery, LockedError, Memory, Recall, SyncReport
from recall.store.locks import exclusive

LONG_S = 60.0

Write = Callable[..., Path]
Open = Callable[..., Memory]
Held = Callable[[Path], "subprocess.Popen[str]"]
Cli = Callable[..., "subprocess.CompletedProcess[str]"]


def ids(found: Recall | Delivery | None) -> list[str]:
    recall = found.recall if isinstance(found, Delivery) else found
    return [hit.topic.id for hit in recall.hits] if recall else []


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def overwrite(file: Path) -> None:
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle - 32 : middle + 32] = b"\xff\x00\xaa\x55" * 16
    file.write_bytes(data)


@pytest.mark.parametrize("damage", [cut, overwrite])
@pytest.mark.parametrize("suffix", [".sqlite3", ".postings", ".vectors"])
def test_d23_a_damaged_index_crashes_nothing_and_is_made_anew_from_the_files(
    opened: Open, write: Write, cli: Cli, tmp_path: Path, suffix: str, damage: Callable[[Path], None], config: Config
) -> None:
    for number in range(50):
        write(f"{number}.md", f"words of animal{number} " * 40)
    every = replace(config, search=config.search._replace(floor=-1e6))
    memory = opened(config=every)
    memory.reindex()
    asked = " ".join(f"animal{number}" for number in range(50))  # whatever byte is wrong takes part in the answer
    right = memory.recall(asked, k=50).hits
    assert len(right) > 40
    memory.close()
    (derived,) = [file for file in (tmp_path / "cache").rglob("*") if file.suffix == suffix]
    damage(derived)
    found = cli("search", "animal33", "--k", "1")  # a crash would end a process of its own
    assert (found.returncode, found.stderr) == (0, "")
    assert "33.md" in found.stdout
    memory = opened(config=every)
    assert memory.reindex().failed == ()
    assert memory.status()[0].coverage.embedded == 50
    assert memory.recall(asked, k=50).hits == right


@pytest.mark.parametrize("lock", ["words.lock", "vectors.lock"])
def test_d25_readers_are_never_blocked_by_a_process_that_writes(
    opened: Open, write: Write, held: Held, lock: str
) -> None:
    write("a.md", "zebra crossing")
    memory = opened()
    memory.reindex()
    held(memory.status()[0].folder / lock)
    assert ids(memory.prefetch("zebra crossing").first()) == ["a.md"]


def test_d25_a_recall_where_nothing_changed_asks_for_no_lock_and_lacks_nothing(
    opened: Open, write: Write, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the process that was there before as in a new one, while another holds both locks to the end of the test."""
    monkeypatch.setattr("recall.memory.keeper._WRITER_WAIT_S", 30 * LONG_S)  # to wait at all is to hang
    animals = ("zebra", "tiger", "lion")
    for animal in animals:
        write(f"{animal}.md", f"words of a {animal}")
    before = opened()
    before.reindex()
    folder = before.status()[0].folder
    writers = [held(folder / lock) for lock in ("words.lock", "vectors.lock")]
    for memory in (before, opened()):
        for animal in animals:
            found = memory.recall(animal)
            assert ids(found) == [f"{animal}.md"]
            assert (found.coverage.embedded, found.coverage.behind, found.coverage.note) == (3, (), "")
    assert [writer.poll() for writer in writers] == [None, None]


def test_d25_a_recall_that_a_writer_keeps_from_reading_a_change_answers_from_what_is_there_and_names_who_writes(
    opened: Open, write: Write, held: Held, cli: Cli
) -> None:
    write("a.md", "zebra crossing")
    memory = opened()
    memory.reindex()
    folder = memory.status()[0].folder
    writer, _ = held(folder / "words.lock"), held(folder / "vectors.lock")
    write("b.md", "tiger in the garden")
    for found in (memory.recall("zebra crossing"), opened().recall("zebra crossing")):
        assert ids(found) == ["a.md"]
        assert (found.coverage.behind, found.coverage.behind_count) == (("b.md",), 1)
        assert found.coverage.note == f"process {writer.pid} is writing the index"
    answer = json.loads(cli("search", "zebra crossing", "--json").stdout)
    assert [hit["id"] for hit in answer["hits"]] == ["a.md"]
    assert f"process {writer.pid} is writing the index" in answer["coverage"]["note"]
    assert answer["coverage"]["behind"] == ["b.md"]
    assert writer.poll() is None


def test_d25_a_second_writer_waits_for_the_first(opened: Open, write: Write, held: Held) -> None:
    memory = opened()
    other = held(memory.status()[0].folder / "words.lock")
    write("a.md", "zebra crossing")
    done: list[SyncReport] = []
    writing = threading.Thread(target=lambda: done.append(memory.reindex()), daemon=True)
    writing.start()
    writing.join(0.2)
    assert writing.is_alive()
    other.communicate(timeout=LONG_S)
    writing.join(LONG_S)
    assert done[0].added == ("a.md",)


def test_d25_a_writer_that_gives_up_says_who_holds_the_index_and_advises_nothing_destructive(
    opened: Open, held: Held
) -> None:
    lock = opened().status()[0].folder / "words.lock"
    other = held(lock)
    with pytest.raises(LockedError) as error, exclusive(lock, timeout_s=0):
        pass
    assert str(other.pid) in str(error.value)
    assert "wait" in str(error.value)
    assert not any(word in str(error.value).lower() for word in ("delete", "remove", "move ", "format", "corrupt"))


def test_d26_a_search_during_a_large_first_index_answers_from_the_old_index(
    opened: Open, write: Write, root: Path, surroundings: dict[str, str]
) -> None:
    write("old.md", "zebra crossing")
    memory = opened()
    memory.reindex()
    for number in range(1000):
        write(f"{number}.md", f"words of animal{number} " * 20)
    command = [sys.executable, "-m", "recall", "reindex", "--root", str(root), "--set", "encoder.model=hashing"]
    asked = 0
    with subprocess.Popen(command, env=surroundings, stdout=subprocess.DEVNULL) as indexing:
        while indexing.poll() is None:
            assert ids(memory.prefetch("zebra crossing").first())[:1] == ["old.md"]
            asked += 1
    assert indexing.returncode == 0
    assert asked > 1
    assert memory.recall("animal234").coverage.topics == 1001


def test_d27_what_another_process_indexes_is_seen_by_one_that_was_open_before(
    opened: Open, write: Write, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the open one does not look at the folder itself before it answers."""
    monkeypatch.setattr("recall.memory.keeper._QUICK_LOOK_S", -1.0)
    write("old.md", "zebra crossing")
    memory = opened()
    memory.reindex()
    assert ids(memory.prefetch("zebra crossing").first()) == ["old.md"]
    write("new.md", "tiger in the garden")
    assert cli("reindex").returncode == 0
    assert ids(memory.prefetch("tiger in the garden").first()) == ["new.md"]


_ADD = """
import sys
from pathlib import Path
from recall import Memory
with Memory.open(Path(sys.argv[1]), background=False) as memory:
    for number in range(50):
        memory.remember(f"{sys.argv[2]}{number} stands for q{sys.argv[2]}x{number:03}z", type="project")
"""


def test_d28_two_sessions_that_add_at_once_lose_no_line_of_the_index(root: Path, surroundings: dict[str, str]) -> None:
    environment = surroundings | {"RECALL_ENCODER__MODEL": "off"}
    sessions = [
        subprocess.Popen(
            [sys.executable, "-c", _ADD, root, name], env=environment, stderr=subprocess.PIPE, encoding="utf-8"
        )
        for name in ("left", "right")
    ]
    for session in sessions:
        assert (session.communicate(timeout=LONG_S * 5)[1], session.returncode) == ("", 0)
    lines = (root / "MEMORY.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 100
    assert all(
        any(f"{name}{number} stands" in line for line in lines) for name in ("left", "right") for number in range(50)
    )
