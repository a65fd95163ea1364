"""Derived data that is damaged, foreign, gone, locked or in use by others: never an error, never another answer."""

import collections
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path

import pytest

import recall
from recall import Config, Memory, Recall
from recall.config import EncoderConfig, IndexConfig, SearchConfig
from recall.errors import IndexFormatError, RecallError
from recall.index import home
from recall.index.catalog import FORMAT, Catalog
from recall.index.collection import Collection
from recall.index.folder import CATALOG_FILE, cache_folder
from recall.index.hashing import HashingEncoder
from recall.store.locks import exclusive
from recall.store.projects import real_path
from recall.store.topics import Scope

LONG_S = 100.0  # an upper bound that only a broken implementation reaches
QUERY = "thing1 主题1 number"
COUNT = 24

Answer = list[tuple[str, float, float | None]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "memory"
    folder.mkdir()
    for number in range(COUNT):
        write(folder, f"{number}.md", f"number {number} tells about thing{number} and 主题{number}号")
    return folder


def write(root: Path, path: str, body: str) -> Path:
    file = root / path
    file.write_text(f"---\nname: {file.stem}\n---\n{body}\n", encoding="utf-8")
    return file


def settings(cache: Path) -> Config:
    """Without a floor, so that there are several answers to compare."""
    return Config(
        search=SearchConfig(floor=-1.0), index=IndexConfig(cache=str(cache)), encoder=EncoderConfig(model="hashing")
    )


def opened(root: Path, cache: Path) -> Memory:
    return Memory.open(root, config=settings(cache), background=False)


def shown(recall: Recall) -> Answer:
    return [(hit.topic.id, round(hit.score, 5), hit.cosine and round(hit.cosine, 5)) for hit in recall.hits]


def answer(root: Path, cache: Path) -> Answer:
    with opened(root, cache) as memory:
        memory.reindex()
        return shown(memory.recall(QUERY))


# --- damage


def half(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def emptied(file: Path) -> None:
    os.truncate(file, 0)


def garbage(file: Path) -> None:
    file.write_bytes(random.Random(7).randbytes(file.stat().st_size))


def gone(file: Path) -> None:
    file.unlink()


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


DERIVED = ("catalog.sqlite3", "*.postings", "*.vectors")


@pytest.mark.parametrize("name", DERIVED)
@pytest.mark.parametrize("damage", [half, emptied, garbage, gone, a_folder])
def test_a_damaged_file_of_the_index_is_made_anew(
    root: Path, tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    cache = tmp_path / "cache"
    expected = answer(root, cache)
    assert len(expected) >= 2
    (file,) = cache.rglob(name)
    damage(file)
    with opened(root, cache) as memory:
        found = memory.recall(QUERY)
        assert {hit.topic.id for hit in found.hits} >= {expected[0][0]}
        assert found.coverage.topics == COUNT
        memory.reindex()
        assert shown(memory.recall(QUERY)) == expected


@pytest.mark.parametrize("name", ["*.postings", "*.vectors"])
@pytest.mark.parametrize("damage", [half, emptied])
def test_a_file_that_is_cut_short_between_two_searches_does_not_end_the_process(
    root: Path, tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    cache = tmp_path / "cache"
    expected = answer(root, cache)
    with opened(root, cache) as memory:
        memory.recall(QUERY)
        (index,) = memory._keeper.indexes
        before = index.snapshot()
        assert before.is_whole
        (file,) = cache.rglob(name)
        damage(file)
        assert not before.is_whole
        assert index.snapshot() is not before, "to search it would end the process of the tests"
        memory.reindex()
        assert shown(memory.recall(QUERY)) == expected


def test_a_log_of_the_catalog_that_is_cut_short_while_it_is_open_is_damage_and_no_fault_of_the_disk(
    root: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    with opened(root, cache) as memory, closing(Catalog(cache_folder(cache, root), real_path(root))) as catalog:
        memory.reindex()
        assert catalog.count() == COUNT
        (log,) = cache.rglob("*-wal")
        emptied(log)
        with pytest.raises(IndexFormatError, match="I/O"), catalog.transaction() as write_to:
            write_to.execute("UPDATE topics SET body = body || body")
        write(root, "fresh.md", "the heron stands on thing99")
        recall = memory.recall("heron")
    assert [hit.topic.id for hit in recall.hits][:1] == ["fresh.md"]


@pytest.mark.parametrize("name", DERIVED)
def test_a_few_bytes_that_were_overwritten_never_change_an_answer(root: Path, tmp_path: Path, name: str) -> None:
    expected = answer(root, tmp_path / "cache")
    for seed in range(5):
        chance, cache = random.Random(seed), tmp_path / str(seed)
        shutil.copytree(tmp_path / "cache", cache)
        (file,) = cache.rglob(name)
        data = bytearray(file.read_bytes())
        at = chance.randrange(len(data) - 64)
        data[at : at + 64] = chance.randbytes(64)
        file.write_bytes(data)
        with opened(root, cache) as memory:
            assert memory.recall(QUERY).hits
            memory.reindex()
            if name != "catalog.sqlite3":  # SQLite keeps no checksums; text in it that was overwritten is not noticed
                assert shown(memory.recall(QUERY)) == expected


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE meta SET value = '{FORMAT + 1}' WHERE key = 'format'",
        "UPDATE meta SET value = '/another/memory' WHERE key = 'root'",
        "DELETE FROM meta",
        "DROP TABLE meta",
        "DROP TABLE chunks",
    ],
)
def test_a_catalog_of_another_format_or_memory_is_made_anew(root: Path, tmp_path: Path, statement: str) -> None:
    cache = tmp_path / "cache"
    expected = answer(root, cache)
    (file,) = cache.rglob("catalog.sqlite3")
    connection = sqlite3.connect(file)
    with connection:
        connection.execute(statement)
    connection.close()
    assert answer(root, cache) == expected


@pytest.mark.parametrize("name", [*DERIVED, "roots"])
def test_what_is_deleted_while_it_is_open_does_not_show_in_the_next_answer(
    root: Path, tmp_path: Path, name: str
) -> None:
    with opened(root, tmp_path / "cache") as memory:
        memory.reindex()
        before = memory.recall(QUERY)
        (found,) = (tmp_path / "cache").rglob(name)
        shutil.rmtree(found) if found.is_dir() else found.unlink()
        write(root, "new.md", "something else")
        after = memory.recall(QUERY)
        assert after.hits[0].topic.id == before.hits[0].topic.id
        assert after.coverage.topics == COUNT + 1
        memory.reindex()
        assert [hit.topic.id for hit in memory.recall("something else").hits][:1] == ["new.md"]


# --- a cache that cannot be used


def test_a_file_in_place_of_the_cache_makes_the_index_temporary(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (tmp_path / "cache").write_text("in the way", encoding="utf-8")
    with opened(root, tmp_path / "cache") as memory:
        found = memory.recall(QUERY)
        assert found.hits
        assert str(tmp_path / "cache") in found.coverage.note
        assert list(temporary.iterdir())
    assert list(temporary.iterdir()) == []
    assert (tmp_path / "cache").read_text(encoding="utf-8") == "in the way"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 500 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        os.geteuid()
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=500k", "tmpfs", disk], check=False).returncode
    ):
        pytest.skip("mounting a small disk needs more rights")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_read_only_cache_makes_the_index_temporary_whatever_lies_in_it(root: Path, small_disk: Path) -> None:
    expected = answer(root, small_disk)
    (catalog,) = small_disk.rglob("catalog.sqlite3")
    for content in (None, b"nonsense" * 999):
        subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
        if content:
            catalog.write_bytes(content)
        subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
        with opened(root, small_disk) as memory:
            memory.reindex()
            found = memory.recall(QUERY)
        assert shown(found) == expected
        assert str(catalog.parent) in found.coverage.note


def fill(file: Path) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT)
    with suppress(OSError):
        while True:
            os.write(descriptor, b"x" * 512)
    os.close(descriptor)


def test_a_full_disk_leaves_what_was_there_and_names_the_folder(root: Path, small_disk: Path) -> None:
    assert answer(root, small_disk)
    fill(small_disk / "filler")
    for number in range(50):
        write(root, f"more{number}.md", f"more words{number} " * 500)
    with opened(root, small_disk) as memory:
        found = memory.recall(QUERY)
        assert found.hits
        assert str(small_disk) in found.coverage.note


LIMITED = """
import resource, sys
from pathlib import Path
from recall import Config, Memory
from recall.config import EncoderConfig, IndexConfig

root, cache = map(Path, sys.argv[1:])
config = Config(index=IndexConfig(cache=str(cache)), encoder=EncoderConfig(model="hashing"))
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
with Memory.open(root, config=config, background=False) as memory:
    found = memory.recall("thing1")
    print(found.hits[0].topic.id, found.coverage.note)
"""


def python(script: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", script, *map(str, arguments)]


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(Path(recall.__file__).parents[1]), "PYTHONUTF8": "1"}


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="files cannot be limited here")
def test_files_that_may_not_grow_leave_what_was_there(root: Path, tmp_path: Path) -> None:
    """What a quota does: the words of the new topics do not fit any more, the old answers stay."""
    cache = tmp_path / "cache"
    assert answer(root, cache)
    for number in range(40):
        write(root, f"more{number}.md", " ".join(f"w{number}x{at}" for at in range(400)))
    done = subprocess.run(
        python(LIMITED, root, cache), env=environment(), capture_output=True, encoding="utf-8", timeout=LONG_S
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1.md ")
    assert str(cache) in done.stdout


def test_derived_data_are_for_the_eyes_of_the_owner(root: Path, tmp_path: Path) -> None:
    answer(root, tmp_path / "cache")
    assert cache_folder(tmp_path / "cache", root).stat().st_mode & 0o077 == 0


def test_one_memory_has_one_index_by_whatever_path_it_is_reached(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    assert cache_folder(tmp_path, tmp_path / "link") == cache_folder(tmp_path, root)
    assert cache_folder(tmp_path, root.parent) != cache_folder(tmp_path, root)


# --- the end


def test_a_closed_index_says_so_and_may_be_closed_again(root: Path, tmp_path: Path) -> None:
    index = Collection(root, Scope.PROJECT, cache=tmp_path, max_file_bytes=99)
    index.close()
    index.close()
    with pytest.raises(RecallError, match="closed"):
        index.snapshot()
    with pytest.raises(RecallError, match="closed"):
        index.sync_words()


def test_closing_leaves_no_journal(root: Path, tmp_path: Path) -> None:
    answer(root, tmp_path / "cache")
    assert {file.suffix for file in cache_folder(tmp_path / "cache", root).iterdir()} == {
        ".sqlite3",
        ".postings",
        ".vectors",
        ".lock",
    }


# --- others


def test_what_one_process_writes_another_finds_without_opening_anew(root: Path, tmp_path: Path) -> None:
    with opened(root, tmp_path / "cache") as here, opened(root, tmp_path / "cache") as there:
        here.reindex()
        there.recall(QUERY)
        write(root, "new.md", "zebra crossing")
        here.reindex()
        with exclusive(cache_folder(tmp_path / "cache", root) / "words.lock", timeout_s=0):
            found = there.prefetch("zebra crossing").first(LONG_S)  # reads nothing itself while the lock is held
    assert found is not None
    assert found.recall.hits[0].topic.id == "new.md"


def test_threads_that_search_while_others_rebuild_always_find(root: Path, tmp_path: Path) -> None:
    wrong: collections.Counter[str] = collections.Counter()
    done = threading.Event()

    def search(memory: Memory) -> None:
        while not done.is_set():
            found = memory.recall("thing7 thing8")
            if not {"7.md", "8.md"} <= {hit.topic.id for hit in found.hits}:
                wrong[str(found.coverage)] += 1

    with opened(root, tmp_path / "cache") as memory:
        memory.reindex()
        threads = [Watched(search, memory) for _ in range(2)]
        try:
            for _ in range(4):
                memory.reindex(full=True)
        finally:
            done.set()
        for thread in threads:
            thread.result()
    assert wrong == {}


class Watched(threading.Thread):
    """A thread whose exception is not lost."""

    def __init__(self, work: Callable[[Memory], None], memory: Memory) -> None:
        super().__init__(daemon=True)
        self.work, self.memory = work, memory
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.work(self.memory)
        except BaseException as error:
            self.error = error

    def result(self) -> None:
        self.join(LONG_S)
        if self.error:
            raise self.error


def test_who_waited_for_a_rebuild_takes_nothing_of_it_away(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It opened the index when that was empty; while it waits for its turn, another makes everything anew."""

    def opened_index() -> Collection:
        return Collection(root, Scope.PROJECT, cache=tmp_path / "cache", max_file_bytes=1 << 20)

    def rebuilt_first(file: Path, *, timeout_s: float) -> AbstractContextManager[None]:
        monkeypatch.undo()
        with closing(opened_index()) as other:
            other.rebuild()
            assert other.sync_vectors(HashingEncoder()).embedded == COUNT
        return exclusive(file, timeout_s=timeout_s)

    with closing(opened_index()) as waiting:
        monkeypatch.setattr(home, "exclusive", rebuilt_first)
        assert waiting.sync_vectors(HashingEncoder()).embedded == 0
        assert waiting.snapshot().embedded.all()
        assert len(list(waiting.folder.glob("*.vectors"))) == 1


WORKER = """
import sys
from pathlib import Path
from recall import Config, Memory
from recall.config import EncoderConfig, IndexConfig, SearchConfig

root, cache, name = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
config = Config(search=SearchConfig(floor=-1.0), index=IndexConfig(cache=cache), encoder=EncoderConfig(model="hashing"))
with Memory.open(root, config=config, background=name == "left") as memory:
    for number in range(20):
        mark = f"{name}mark{number}"
        (root / f"{name}{number % 7}.md").write_text(f"this is {mark}", encoding="utf-8")
        answer, mine = memory.recall(mark), f"{name}{number % 7}.md"
        # Who writes for long, as when the other one reads everything anew, is not waited for, and the answer says so.
        assert mine in answer.coverage.behind or [hit.topic.id for hit in answer.hits][:1] == [mine], (mark, answer)
        assert [hit.topic.id for hit in memory.recall("thing7").hits][:1] == ["7.md"]
        if number % 8 == 7:
            memory.reindex(full=number == 15)
"""


def test_processes_that_write_and_search_one_memory_see_their_own_edits_and_end_in_the_index_of_a_rebuild(
    root: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    workers = [
        subprocess.Popen(python(WORKER, root, cache, name), env=environment(), stderr=subprocess.PIPE, encoding="utf-8")
        for name in ("left", "right")
    ]
    for worker in workers:
        _, errors = worker.communicate(timeout=LONG_S)
        assert (worker.returncode, errors) == (0, "")
    assert answer(root, cache) == answer(root, tmp_path / "fresh")


VICTIM = """
import sys, threading
from pathlib import Path
from recall import Config, Memory
from recall.config import IndexConfig
from recall.index.hashing import HashingEncoder

class Slow(HashingEncoder):
    def encode_documents(self, texts):
        if texts != ["warm-up"]:
            print("text", flush=True)
            sys.stdin.readline()
        return super().encode_documents(texts)

config = Config(index=IndexConfig(cache=sys.argv[2]))
with Memory.open(Path(sys.argv[1]), config=config, encoder=Slow(), background=False) as memory:
    memory.reindex(on_progress=lambda *step: (print(*step, flush=True), sys.stdin.readline()))
"""


@pytest.mark.parametrize("moment", ["words", 1, 33, "vectors"])
def test_a_process_that_is_killed_while_it_indexes_spoils_nothing(
    root: Path, tmp_path: Path, moment: str | int
) -> None:
    """At the end of the words, at a text of the first and of the second step, after the first step."""
    for number in range(COUNT, 40):
        write(root, f"{number}.md", f"number {number} tells about thing{number}")
    cache = tmp_path / "cache"
    with subprocess.Popen(
        python(VICTIM, root, cache),
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as victim:
        assert victim.stdin
        assert victim.stdout
        texts = 0
        for line in victim.stdout:
            texts += line == "text\n"
            if moment in (line.partition(" ")[0], texts):
                victim.send_signal(signal.SIGKILL)
                break
            victim.stdin.write("\n")
            victim.stdin.flush()
        assert victim.wait(LONG_S) == -signal.SIGKILL
    with opened(root, cache) as memory:
        found = memory.recall(QUERY)
        assert found.hits[0].topic.id == "1.md"
        report = memory.reindex()
        assert report.failed == report.unembedded == ()
        again = shown(memory.recall(QUERY))
    assert again == answer(root, tmp_path / "fresh")


def test_what_is_left_of_a_half_finished_wipe_is_no_part_of_a_new_catalog(root: Path, tmp_path: Path) -> None:
    """Somebody died after deleting the catalog; another still has it open, with its log."""
    (root / "a.md").write_text("zebra crossing", encoding="utf-8")
    with closing(Collection(root, Scope.PROJECT, cache=tmp_path / "cache", max_file_bytes=1000)) as old:
        old.sync_words()
        log = old.folder / f"{CATALOG_FILE}-shm"
        before = log.stat().st_ino
        (old.folder / CATALOG_FILE).unlink()
        with closing(Collection(root, Scope.PROJECT, cache=tmp_path / "cache", max_file_bytes=1000)) as new:
            assert log.stat().st_ino != before
            new.sync_words()
            assert len(new.snapshot()) == len(old.snapshot()) == len(list(root.glob("*.md")))


def test_a_snapshot_from_before_a_look_does_not_show_it(root: Path, tmp_path: Path) -> None:
    """It may serve while another process makes all anew; who waits for an edit is not to take it for the answer."""
    with closing(Collection(root, Scope.PROJECT, cache=tmp_path / "cache", max_file_bytes=1 << 20)) as collection:
        collection.sync_words()
        before = collection.snapshot()
        assert collection.shows_look(before)
        (root / "1.md").write_text("another text", encoding="utf-8")
        collection.sync_words()
        assert not collection.shows_look(before)
        assert not collection.shows_all(before)
        assert collection.shows_look(collection.snapshot())
        assert collection.shows_all(collection.snapshot())
        (root / "1.md").write_text("yet another text", encoding="utf-8")
        assert not collection.shows_all(collection.snapshot())
