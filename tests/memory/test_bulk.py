"""Long work of an opened memory in processes of its own, while the memory answers."""

import logging
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from logging.handlers import QueueHandler
from pathlib import Path
from typing import Any

import pytest

from recall import Config, Memory, Recall, SyncReport
from recall.config import EncoderConfig, IndexConfig, SearchConfig
from recall.errors import LockedError
from recall.index import sync
from recall.index.base import Vectors
from recall.index.child import Children
from recall.index.hashing import HashingEncoder
from recall.index.job import Job
from recall.memory.events import Event
from recall.store.locks import exclusive

LONG_S = 100.0  # an upper bound that only a broken implementation reaches
MANY = 300  # files: more than are read here, and more than are committed at first

Write = Callable[..., Path]
Open = Callable[..., Memory]
Step = Callable[[str, int, int], None]


class Watched:
    """The processes that were started: their jobs, and something to do at each of their steps."""

    def __init__(self, run: Callable[..., SyncReport]) -> None:
        self._run = run
        self.jobs: list[Job] = []
        self.at_step: Callable[..., object] = lambda *_: None

    def stages(self) -> list[str]:
        return [one.stage for one in self.jobs]

    def vectors(self) -> "queue.Queue[int]":
        """Gets the number of the process at each step of vectors."""
        numbers: queue.Queue[int] = queue.Queue()

        def note(children: Children, stage: str, *_: int) -> None:
            if stage == "vectors":
                numbers.put(children.numbers[0])

        self.at_step = note
        return numbers

    def __call__(
        self, children: Children, wanted: Job, *, until: threading.Event, on_progress: Step | None = None
    ) -> SyncReport:
        self.jobs.append(wanted)

        def step(stage: str, done: int, total: int) -> None:
            if on_progress:
                on_progress(stage, done, total)
            self.at_step(children, stage, done, total)

        return self._run(children, wanted, until=until, on_progress=step)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    seen = Watched(Children.run)
    monkeypatch.setattr(Children, "run", lambda children, wanted, **how: seen(children, wanted, **how))
    return seen


@pytest.fixture
def read_here(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files this process read at once, each time."""
    counts: list[int] = []
    read = sync._read_files

    def counted(files: Sequence[Any], *rest: Any, **how: Any) -> Any:
        counts.append(len(files))
        return read(files, *rest, **how)

    monkeypatch.setattr(sync, "_read_files", counted)
    return counts


class Reports:
    """A listener that has the reports of the background, and waits for one of a kind."""

    def __init__(self) -> None:
        self.queue: queue.Queue[SyncReport] = queue.Queue()

    def __call__(self, event: Event) -> None:
        if isinstance(event, SyncReport):
            self.queue.put(event)

    def until(self, wanted: Callable[[SyncReport], object]) -> SyncReport:
        while not wanted(report := self.queue.get(timeout=LONG_S)):
            pass
        return report


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def onnx(tmp_path: Path) -> Config:
    return Config(index=IndexConfig(cache=str(tmp_path / "cache")), encoder=EncoderConfig())


@pytest.fixture
def notes(write: Write) -> Callable[..., None]:
    """Writes notes of which each has an animal of its own; the last one is the newest."""

    def written(count: int = MANY, *, animal: str = "animal", times: int = 1) -> None:
        for number in range(count):
            file = write(f"{animal} {number}.md", f"words of {number}, {animal}{number}. " * times)
            os.utime(file, (1000 + number, 1000 + number))

    return written


Notes = Callable[..., None]


def ids(found: Recall) -> list[str]:
    return [hit.topic.id for hit in found.hits]


# --- who does it


def test_much_is_read_and_encoded_elsewhere(
    opened: Open, notes: Notes, watched: Watched, read_here: list[int], reports: Reports
) -> None:
    notes()
    memory = opened(background=True, on_event=reports)
    words = reports.until(lambda report: report.added)
    assert (len(words.added), words.left) == (MANY, 0)
    assert reports.until(lambda report: report.embedded).embedded == MANY
    assert watched.stages() == ["words", "vectors"]
    assert read_here == []
    found = memory.recall("animal3")
    assert ids(found)[:1] == ["animal 3.md"]
    assert (found.coverage.topics, found.coverage.embedded, found.coverage.note) == (MANY, MANY, "")


def test_little_is_done_here(opened: Open, notes: Notes, watched: Watched, reports: Reports) -> None:
    notes(30)
    memory = opened(background=True, on_event=reports)
    reports.until(lambda report: report.embedded)
    memory.reindex()
    memory.reindex(full=True)
    assert watched.jobs == []


def test_few_files_of_great_size_are_much(opened: Open, write: Write, watched: Watched, reports: Reports) -> None:
    write("large.md", "a long text " * 200_000)
    opened(background=True, on_event=reports)
    reports.until(lambda report: report.embedded)
    assert watched.stages() == ["words", "vectors"]


@pytest.mark.parametrize("background", [True, False], ids=["by a setting", "without a background"])
def test_it_can_be_kept_here(
    opened: Open, notes: Notes, watched: Watched, config: Config, background: bool, tmp_path: Path
) -> None:
    notes()
    index = IndexConfig(cache=str(tmp_path / "cache"), workers=0 if background else 2)
    memory = opened(background=background, config=Config(index=index, encoder=config.encoder))
    memory.reindex()
    report = memory.reindex(full=True)
    assert (len(report.added), report.embedded) == (MANY, MANY)
    assert watched.jobs == []


def test_a_reindex_is_done_elsewhere_and_tells_its_progress_and_all_it_did(
    opened: Open, notes: Notes, watched: Watched, reports: Reports
) -> None:
    notes()
    memory = opened(background=True, on_event=reports)
    reports.until(lambda report: report.embedded)
    watched.jobs.clear()
    steps: list[tuple[str, int, int]] = []
    threads: set[int] = set()

    def progress(*step: Any) -> None:
        steps.append(step)
        threads.add(threading.get_ident())

    report = memory.reindex(full=True, on_progress=progress)
    assert (len(report.added), report.kept, report.embedded, report.left) == (MANY, 0, MANY, 0)
    assert watched.stages() == ["words", "vectors"]
    assert threads == {threading.get_ident()}
    assert steps[:2] == [("words", 250, MANY), ("words", MANY, MANY)]
    assert steps[-1] == ("vectors", MANY, MANY)
    assert memory.reindex().kept == MANY


def test_a_host_s_own_encoder_stays_here_and_the_words_do_not(
    opened: Open, notes: Notes, watched: Watched, read_here: list[int]
) -> None:
    notes()
    memory = opened(background=True, encoder=HashingEncoder(64))
    assert memory.reindex().unembedded == ()
    assert memory.recall("animal3").coverage.embedded == MANY
    assert watched.stages() == ["words"]
    assert read_here == []


def test_a_wrapper_that_passes_a_recipe_on_need_not_encode_documents(
    opened: Open, notes: Notes, watched: Watched
) -> None:
    class Wrapper(HashingEncoder):
        def encode_documents(self, texts: Sequence[str]) -> Vectors:
            assert len(texts) == 1, "only queries"
            return super().encode_documents(texts)

    notes()
    memory = opened(background=True, encoder=Wrapper())
    memory.reindex()
    assert memory.recall("animal3").coverage.embedded == MANY
    assert watched.stages() == ["words", "vectors"]


def test_a_cache_that_cannot_be_used_keeps_it_here(
    root: Path, notes: Notes, watched: Watched, tmp_path: Path, config: Config
) -> None:
    """What another process made in its temporary folder would be gone with it."""
    notes()
    (tmp_path / "cache").write_text("in the way", encoding="utf-8")
    with Memory.open(root, config=config) as memory:
        assert len(memory.reindex(full=True).added) == MANY
        found = memory.recall("animal3")
    assert ids(found)[:1] == ["animal 3.md"]
    assert "temporary" in found.coverage.note
    assert watched.jobs == []


# --- answers meanwhile


def impatient(cache: Path) -> Config:
    """Settings under which `first()` waits as long as it takes for the quick search, and never for vectors."""
    return Config(
        search=SearchConfig(budget_ms=60_000, hold_ms=60_000),
        index=IndexConfig(cache=str(cache)),
        encoder=EncoderConfig(model="hashing"),
    )


def test_the_old_index_answers_while_it_is_made_anew(
    opened: Open, notes: Notes, watched: Watched, patient: Config, reports: Reports
) -> None:
    notes()
    memory = opened(background=True, config=patient, on_event=reports)
    reports.until(lambda report: report.embedded)
    found: list[Recall] = []

    def ask(_: Children, stage: str, done: int, total: int) -> None:
        if stage == "words" and done < total:  # the newest are read, this one is not
            delivery = memory.prefetch("animal3").first()
            assert delivery
            found.extend([delivery.recall, memory.recall("animal3")])

    watched.at_step = ask
    memory.reindex(full=True)
    assert [ids(one)[:1] for one in found] == [["animal 3.md"]] * 2
    assert [(one.coverage.topics, one.coverage.embedded) for one in found] == [(MANY, MANY)] * 2
    assert "being made anew" in found[1].coverage.note
    assert "50 of 300 new or changed files are still being read" in found[1].coverage.note
    assert memory.recall("animal3").coverage.note == ""


def test_a_folder_that_is_read_for_the_first_time_answers_by_the_words_that_are_there(
    root: Path, notes: Notes, watched: Watched, patient: Config
) -> None:
    notes()
    found: queue.Queue[Recall | None] = queue.Queue()
    memories: queue.Queue[Memory] = queue.Queue()

    def ask(_: Children, stage: str, done: int, total: int) -> None:
        if stage == "words" and done < total:
            memory = memories.get(timeout=LONG_S)
            delivery = memory.prefetch("animal299").first()
            found.put(delivery.recall if delivery else None)

    watched.at_step = ask
    with Memory.open(root, config=patient) as memory:
        memories.put(memory)
        answer = found.get(timeout=LONG_S)
        assert answer
        assert ids(answer)[:1] == ["animal 299.md"]
        assert 250 <= answer.coverage.topics <= MANY
        assert "still being read" in answer.coverage.note


def test_an_answer_reads_no_more_than_a_few_files_itself_and_waits_for_who_reads_the_rest(
    opened: Open, notes: Notes, watched: Watched, read_here: list[int], reports: Reports
) -> None:
    notes(1)
    memory = opened(background=True, on_event=reports)
    reports.until(lambda report: report.embedded)
    read_here.clear()
    notes(100, animal="tiger")
    found = memory.recall("tiger70")
    assert ids(found)[:1] == ["tiger 70.md"]
    assert found.coverage.topics == 101
    assert (read_here, watched.stages()[:1]) == ([], ["words"])
    notes(5, animal="zebra")
    assert ids(memory.recall("zebra3"))[:1] == ["zebra 3.md"]
    assert sum(read_here) == 5  # the background may have begun with some


def test_an_answer_that_may_not_wait_leaves_the_rest_and_says_so(
    opened: Open, notes: Notes, watched: Watched, read_here: list[int], patient: Config, reports: Reports
) -> None:
    notes(1)
    memory = opened(background=True, config=patient, on_event=reports)
    reports.until(lambda report: report.embedded)
    read_here.clear()
    notes(100, animal="tiger")
    delivery = memory.prefetch("animal0").first()
    assert delivery
    assert "100 of 100 new or changed files are still being read" in delivery.recall.coverage.note
    assert len(reports.until(lambda report: report.added).added) == 100
    assert (read_here, watched.stages()[:1]) == ([], ["words"])


@pytest.mark.model
def test_words_do_not_wait_until_all_vectors_are_made(
    opened: Open, notes: Notes, watched: Watched, onnx: Config
) -> None:
    notes(150, times=30)
    at_it = watched.vectors()
    memory = opened(background=True, config=onnx)
    assert at_it.get(timeout=LONG_S)
    notes(100, animal="tiger")
    found = memory.recall("tiger70")
    assert ids(found)[:1] == ["tiger 70.md"]
    assert found.coverage.embedded < found.coverage.topics == 250
    assert watched.stages()[:3] == ["words", "vectors", "words"]
    while set(watched.stages()[3:]) != {"vectors"}:  # the others get theirs afterwards
        at_it.get(timeout=LONG_S)


# --- ends


@pytest.fixture
def logged() -> Iterator[queue.Queue[logging.LogRecord]]:
    records: queue.Queue[logging.LogRecord] = queue.Queue()
    logger, handler = logging.getLogger("recall.memory.bulk"), QueueHandler(records)
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)


@pytest.mark.parametrize("stage", ["words", "vectors"])
@pytest.mark.parametrize("full", [False, True], ids=["first", "full"])
def test_what_a_killed_process_left_is_done_here_and_logged(
    opened: Open, notes: Notes, watched: Watched, logged: queue.Queue[logging.LogRecord], stage: str, full: bool
) -> None:
    notes()

    def kill(children: Children, at: str, done: int, total: int) -> None:
        if at == stage and done < total:
            for number in children.numbers:
                os.kill(number, signal.SIGKILL)

    memory = opened(background=True)
    if full:
        memory.reindex()
    watched.at_step = kill
    report = memory.reindex(full=full)
    assert "code -9" in logged.get(timeout=LONG_S).getMessage()
    assert (report.failed, report.unembedded) == ((), ())
    found = memory.recall("animal3")
    assert ids(found)[:1] == ["animal 3.md"]
    assert (found.coverage.topics, found.coverage.embedded, found.coverage.note) == (MANY, MANY, "")


@pytest.mark.model
def test_closing_ends_the_process(opened: Open, notes: Notes, watched: Watched, onnx: Config) -> None:
    notes(100, times=30)
    at_it = watched.vectors()
    memory = opened(background=True, config=onnx)
    number = at_it.get(timeout=LONG_S)
    memory.close()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


@pytest.mark.model
def test_closing_ends_a_reindex_that_another_thread_waits_for(
    opened: Open, notes: Notes, watched: Watched, onnx: Config
) -> None:
    notes(100, times=30)
    at_it, ended = watched.vectors(), threading.Event()
    memory = opened(background=True, config=onnx)

    def reindex() -> None:
        try:
            memory.reindex(full=True)
        except Exception:
            logging.getLogger(__name__).info("closed")
        ended.set()

    threading.Thread(target=reindex, daemon=True).start()
    assert at_it.get(timeout=LONG_S)
    memory.close()
    assert ended.wait(LONG_S)


def test_errors_of_the_other_process_are_raised_here(
    opened: Open, notes: Notes, watched: Watched, monkeypatch: pytest.MonkeyPatch, reports: Reports
) -> None:
    notes(1)
    memory = opened(background=True, on_event=reports)
    reports.until(lambda report: report.embedded)
    notes(100, animal="tiger")
    monkeypatch.setattr("recall.memory.bulk._LOCK_WAIT_S", 0.05)
    locked = memory.status()[0].folder / "vectors.lock"
    with exclusive(locked, timeout_s=LONG_S), pytest.raises(LockedError):
        memory.reindex()
    assert watched.stages()[-1] == "vectors"
    assert memory.reindex().unembedded == ()


def test_a_reindex_takes_the_vectors_over_from_the_process_of_the_background(
    opened: Open, notes: Notes, watched: Watched, onnx: Config, reports: Reports
) -> None:
    notes(100, times=8)
    at_it = watched.vectors()
    memory = opened(background=True, config=onnx, on_event=reports)
    assert at_it.get(timeout=LONG_S)
    report = memory.reindex()
    assert 0 < report.embedded < 100
    assert memory.status()[0].coverage.embedded == 100
