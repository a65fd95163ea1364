"""The upkeep of several indexes: a look before an answer, long work in the background, nobody stands in the way."""

import logging
import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from logging.handlers import QueueHandler
from pathlib import Path

import pytest

from recall import Memory, SyncReport
from recall.index import flat
from recall.index.base import Vector, Vectors
from recall.index.collection import Collection
from recall.index.hashing import HashingEncoder
from recall.index.sync import joined
from recall.memory.events import Event
from recall.memory.keeper import Keeper
from recall.memory.model import Model
from recall.store.locks import exclusive
from recall.store.topics import Scope

LONG_S = 60.0  # an upper bound that only a broken implementation reaches

Write = Callable[..., Path]
Open = Callable[..., Memory]


class Gated(HashingEncoder):
    """Answers documents only once the gate is open; queries at once."""

    def __init__(self) -> None:
        super().__init__(64)
        self.started, self.gate = threading.Event(), threading.Event()

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        self.started.set()
        assert self.gate.wait(LONG_S)
        return super().encode_documents(texts)

    def encode_query(self, text: str) -> Vector:
        vector: Vector = super().encode_documents([text])[0]
        return vector


@pytest.fixture
def gated() -> Iterator[Gated]:
    encoder = Gated()
    yield encoder
    encoder.gate.set()


Keep = Callable[..., Keeper]


@pytest.fixture
def keep(tmp_path: Path) -> Iterator[Keep]:
    """A keeper of a project's and a user's memory, not started."""
    there: list[Keeper] = []

    def kept(encoder: HashingEncoder | None = None) -> Keeper:
        indexes = []
        for scope in Scope:
            (tmp_path / scope).mkdir(exist_ok=True)
            cache = tmp_path / "cache"
            indexes.append(Collection(tmp_path / scope, scope, cache=cache, max_file_bytes=1 << 20))
        model = Model(encoder or HashingEncoder(64), products=flat.products)
        there.append(Keeper(indexes, model, on_report=lambda report: None))
        return there[-1]

    yield kept
    for keeper in there:
        keeper.stop()


def sizes(keeper: Keeper) -> list[tuple[int, int]]:
    """Topics and topics with vectors of each index."""
    return [(len(snapshot), int(snapshot.embedded.sum())) for snapshot in keeper.snapshots()]


def write(keeper: Keeper, number: int, name: str, text: str = "zebra") -> None:
    (keeper.indexes[number].root / name).write_text(text, encoding="utf-8")


@contextmanager
def locked(keeper: Keeper, name: str) -> Iterator[Callable[[], None]]:
    """Holds that lock of the first memory, until what it gives is called."""
    with ExitStack() as stack:
        stack.enter_context(exclusive(keeper.indexes[0].folder / name, timeout_s=0))
        yield stack.close


def test_a_look_reads_all_folders_and_embeds_a_little(keep: Keep) -> None:
    keeper = keep()
    write(keeper, 0, "a.md")
    for number in range(20):
        write(keeper, 1, f"{number}.md", f"text {number}")
    assert keeper.look(load_model=True) == ""
    assert sizes(keeper) == [(1, 1), (20, 16)]
    assert keeper.words_ready.is_set()


def test_a_look_that_may_not_load_the_model_reads_words_alone(keep: Keep) -> None:
    keeper = keep()
    write(keeper, 0, "a.md")
    assert keeper.look(load_model=False) == ""
    assert sizes(keeper) == [(1, 0), (0, 0)]


@pytest.mark.parametrize("lock", ["words.lock", "vectors.lock"])
def test_one_memory_that_is_locked_keeps_nobody_from_the_other(keep: Keep, lock: str) -> None:
    keeper = keep()
    keeper.look(load_model=True)
    write(keeper, 0, "a.md")
    write(keeper, 1, "b.md")
    with exclusive(keeper.indexes[0].folder / lock, timeout_s=0):
        note = keeper.look(load_model=False)
    doing = {"words.lock": "writing the index", "vectors.lock": "making vectors"}[lock]
    assert note == f"process {os.getpid()} is {doing}"
    assert sizes(keeper)[1] == (1, 1)
    assert keeper.look(load_model=False) == ""
    assert sizes(keeper) == [(1, 1), (1, 1)]


@pytest.mark.parametrize("is_new", [False, True], ids=["the same process", "another one"])
def test_where_nothing_changed_a_locked_memory_is_seen_to_be_true_to_its_files(keep: Keep, is_new: bool) -> None:
    keeper = keep()
    write(keeper, 0, "a.md")
    keeper.look(load_model=True)
    looking = keep() if is_new else keeper
    with locked(keeper, "words.lock"), locked(keeper, "vectors.lock"):
        assert looking.look(load_model=True) == ""
        assert looking.shows_look(looking.snapshots())
        write(keeper, 0, "b.md")
        assert not looking.shows_look(looking.snapshots())
        assert looking.look(load_model=True) == f"process {os.getpid()} is writing the index"
    assert looking.look(load_model=True) == ""
    assert looking.shows_look(looking.snapshots())
    assert sizes(looking) == [(2, 2), (0, 0)]


def test_of_a_writer_that_will_be_done_soon_an_answer_waits_for_the_vectors(
    keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recall.memory.keeper._WRITER_WAIT_S", LONG_S)
    keeper = keep()
    for number in range(17):  # more than an answer makes by itself: for who makes so many nobody waits
        write(keeper, 0, f"{number}.md")
    with locked(keeper, "vectors.lock") as let_go:
        assert keeper.look(load_model=True) == f"process {os.getpid()} is making vectors"
        (keeper.indexes[0].root / "16.md").unlink()
        threading.Timer(0.05, let_go).start()
        assert keeper.look(load_model=True) == ""
    assert sizes(keeper)[0] == (16, 16)


def test_words_are_ready_once_all_folders_were_read(keep: Keep) -> None:
    keeper = keep()
    with exclusive(keeper.indexes[1].folder / "words.lock", timeout_s=0):
        keeper.look(load_model=False)
    assert not keeper.words_ready.is_set()
    keeper.look(load_model=False)
    assert keeper.words_ready.is_set()


def test_how_long_a_look_takes_decides_whether_an_answer_waits_for_one(keep: Keep) -> None:
    keeper = keep()
    assert keeper.looks_quickly
    keeper._look_s[keeper.indexes[1]] = 0.5
    assert not keeper.looks_quickly
    keeper.look(load_model=False)
    assert keeper._look_s[keeper.indexes[1]] < 0.5


def test_what_it_took_to_read_new_files_says_nothing_of_a_look(keep: Keep) -> None:
    """Else the first prefetch after a first index would not see a file that was edited in place."""
    keeper = keep()
    files = keeper.indexes[0].root
    before = dict(keeper._look_s)
    for number in range(3):
        (files / f"new{number}.md").write_text("zebra", encoding="utf-8")
    keeper.look(load_model=False)
    assert keeper._look_s[keeper.indexes[0]] == before[keeper.indexes[0]]
    keeper.look(load_model=False)
    assert keeper._look_s[keeper.indexes[0]] != before[keeper.indexes[0]]


def test_a_reindex_takes_over_from_the_background(opened: Open, write: Write, gated: Gated) -> None:
    """Else it would wait for minutes of work, or give up, because of a thread of its own process."""
    for number in range(20):
        write(f"{number}.md", f"text {number}")
    memory = opened(background=True, encoder=gated)
    assert gated.started.wait(LONG_S)
    reports: list[SyncReport] = []
    reindexing = threading.Thread(target=lambda: reports.append(memory.reindex()), daemon=True)
    reindexing.start()
    gated.gate.set()
    reindexing.join(LONG_S)
    assert len(reports) == 1
    assert memory.status()[0].coverage.embedded == 20


def test_two_reindexes_at_once_both_succeed(opened: Open, write: Write) -> None:
    for number in range(20):
        write(f"{number}.md", f"text {number}")
    memory = opened(background=True)
    reports: list[SyncReport] = []
    threads = [threading.Thread(target=lambda: reports.append(memory.reindex()), daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_S)
    assert len(reports) == 3
    assert memory.status()[0].coverage.embedded == 20


class Embedded:
    """A listener that knows when the background has made so many vectors in one go."""

    def __init__(self) -> None:
        self.seen: dict[int, threading.Event] = {}

    def count(self, number: int) -> threading.Event:
        return self.seen.setdefault(number, threading.Event())

    def __call__(self, event: Event) -> None:
        if isinstance(event, SyncReport):
            self.count(event.embedded).set()


def test_the_background_makes_what_an_answer_left_also_after_a_reindex(opened: Open, write: Write) -> None:
    embedded = Embedded()
    write("a.md", "zebra")
    memory = opened(background=True, on_event=embedded)
    assert embedded.count(1).wait(LONG_S)
    memory.reindex()
    for number in range(40):
        write(f"{number}.md", f"text {number}")
    assert memory.recall("text").coverage.embedded == 1  # an answer makes a few itself, and leaves many
    assert embedded.count(40).wait(LONG_S)
    assert memory.status()[0].coverage.embedded == 41


def test_a_background_that_hangs_in_a_model_leaves_words_up_to_date(opened: Open, write: Write, gated: Gated) -> None:
    write("a.md", "zebra")
    memory = opened(background=True, encoder=gated)
    assert gated.started.wait(LONG_S)
    write("b.md", "tiger")
    found = memory.recall("tiger")
    assert [hit.topic.id for hit in found.hits] == ["b.md"]
    assert found.coverage.note == f"process {os.getpid()} is making vectors"


def test_work_that_outlives_the_memory_ends_without_a_word(
    opened: Open, write: Write, gated: Gated, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recall.memory.keeper._STOP_WAIT_S", 0.01)
    write("a.md", "zebra")
    memory = opened(background=True, encoder=gated)
    assert gated.started.wait(LONG_S)
    folder = memory.status()[0].folder
    memory.close()
    gated.gate.set()
    memory._keeper._thread.join(LONG_S)
    assert not memory._keeper._thread.is_alive()
    assert caplog.text == ""
    assert not (folder / "catalog.sqlite3-wal").exists()


class Recovering(HashingEncoder):
    """Fails in everything but the first query, until it is healthy."""

    healthy = False
    queries = 0

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        if not self.healthy:
            raise RuntimeError("boom")
        return super().encode_documents(texts)

    def encode_query(self, text: str) -> Vector:
        self.queries += 1
        if self.queries > 1 and not self.healthy:
            raise RuntimeError("boom")
        vector: Vector = super().encode_documents([text])[0]
        return vector


def test_what_fails_in_the_background_is_logged_and_tried_again(opened: Open, write: Write) -> None:
    records: queue.Queue[logging.LogRecord] = queue.Queue()
    embedded, encoder = Embedded(), Recovering()
    write("a.md", "zebra")
    logger, handler = logging.getLogger("recall.memory.keeper"), QueueHandler(records)
    logger.addHandler(handler)
    try:
        memory = opened(background=True, encoder=encoder, on_event=embedded)
        assert "boom" in records.get(timeout=LONG_S).getMessage()
    finally:
        logger.removeHandler(handler)
    encoder.healthy = True
    memory._keeper.wake()
    assert embedded.count(1).wait(LONG_S)
    assert memory.recall("zebra").coverage.embedded == 1


def test_a_report_of_several_holds_what_all_of_them_say() -> None:
    one = SyncReport(added=("a.md",), kept=2, embedded=1, note="slow", duration_s=0.5)
    other = SyncReport(added=("b.md",), failed=(("c.md", "broken"),), kept=3, note="slow", duration_s=0.25)
    assert joined([one, other]) == SyncReport(
        added=("a.md", "b.md"), failed=(("c.md", "broken"),), kept=5, embedded=1, note="slow", duration_s=0.75
    )
    assert joined([one, replace(one, note="full")]).note == "slow; full"
    assert joined([one]) == one
