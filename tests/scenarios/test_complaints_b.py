"""Complaints from the field, group B: the index and the disk disagree (tests/scenarios/manifest.py)."""

import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from recall import Config, Delivery, Memory, Recall, Strategy, SyncReport
from recall.memory.events import Event
from tests.aging import age

LONG_S = 60.0

Write = Callable[..., Path]
Open = Callable[..., Memory]
Cli = Callable[..., "subprocess.CompletedProcess[str]"]


def ids(found: Recall | Delivery | None) -> list[str]:
    recall = found.recall if isinstance(found, Delivery) else found
    return [hit.topic.id for hit in recall.hits] if recall else []


class Told:
    """Sets an event for each change of a file that a background synchronisation reports."""

    def __init__(self) -> None:
        self.events: dict[tuple[str, str], threading.Event] = {}

    def of(self, kind: str, path: str) -> threading.Event:
        return self.events.setdefault((kind, path), threading.Event())

    def __call__(self, event: Event) -> None:
        if isinstance(event, SyncReport):
            for kind in ("added", "changed", "moved", "removed"):
                for path in getattr(event, kind):
                    self.of(kind, path).set()


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def watched(opened: Open, config: Config, told: Told) -> Callable[[], Memory]:
    """Opens the memory with a watcher."""
    settings = replace(config, index=config.index._replace(watch=True))
    return lambda: opened(config=settings, background=True, on_event=told)


def stale(opened: Open, write: Write, **options: object) -> Memory:
    """An index of two files, of which one is deleted and the other edited."""
    gone, edited = write("a.md", "zebra crossing at noon"), write("b.md", "tiger in the garden")
    memory = opened(**options)
    memory.reindex()
    gone.unlink()
    edited.write_text("lion on the roof", encoding="utf-8")
    return memory


def test_b07_deleted_and_edited_files_are_never_served_stale(opened: Open, write: Write) -> None:
    memory = stale(opened, write)
    assert ids(memory.recall("zebra crossing")) == ids(memory.recall("tiger in the garden")) == []
    found = memory.recall("lion on the roof")
    assert (ids(found), found.coverage.behind) == (["b.md"], ())


def test_b07_while_another_process_indexes_nothing_stale_is_served_and_the_answer_says_what_it_lacks(
    opened: Open, write: Write, held: Callable[[Path], "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    memory = stale(opened, write)
    other = held(next((tmp_path / "cache").rglob("words.lock")))
    write("c.md", "zebra again")
    for query in ("zebra crossing", "tiger in the garden"):
        found = memory.recall(query)
        assert (found.hits, found.prompt, found.strategy) == ((), "", Strategy.NONE)
        assert (sorted(found.coverage.behind), found.coverage.behind_count) == (["a.md", "b.md", "c.md"], 3)
        assert found.coverage.note == f"process {other.pid} is writing the index"


def test_b07_an_answer_that_comes_before_the_look_at_a_large_folder_shows_nothing_stale(
    opened: Open, write: Write, root: Path, monkeypatch: pytest.MonkeyPatch, told: Told
) -> None:
    monkeypatch.setattr("recall.memory.keeper._QUICK_LOOK_S", -1.0)
    write("a.md", "zebra crossing")
    write("b.md", "tiger in the garden")
    write("c.md", "zebra and tiger in the wild")
    os.utime(age(root), (1_000_000_000, 1_000_000_000))  # no name has changed for long
    memory = opened(on_event=told)
    memory.recall("zebra")
    write("b.md", "lion on the roof of the house")  # in place, which only a whole look notices
    found = memory.prefetch("zebra crossing, tiger in the garden").first()
    assert set(ids(found)) == {"a.md", "c.md"}
    assert found is not None
    assert found.recall.coverage.behind == ("b.md",)
    memory._keeper.start()
    memory.prefetch("zebra").first()
    assert told.of("changed", "b.md").wait(LONG_S)  # the look follows
    (root / "a.md").unlink()  # this a glance notices
    assert set(ids(memory.prefetch("zebra in the wild, lion on the roof").first())) == {"b.md", "c.md"}


def test_b07_the_command_line_serves_nothing_stale(opened: Open, write: Write, cli: Cli) -> None:
    stale(opened, write)
    for query in ("zebra", "tiger"):
        done = cli("search", query)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("nothing fits\n")


def test_b09_atomic_saves_and_moves_arrive_at_the_watcher(
    watched: Callable[[], Memory], told: Told, write: Write, root: Path
) -> None:
    file = write("a.md", "zebra crossing")
    memory = watched()
    assert told.of("added", "a.md").wait(LONG_S)
    saved = root / "a.md.tmp"
    saved.write_text("tiger in the garden", encoding="utf-8")
    saved.replace(file)
    assert told.of("changed", "a.md").wait(LONG_S)
    shutil.move(file, root / "b.md")
    assert told.of("added", "b.md").wait(LONG_S)  # its title is its name: another text
    assert told.of("removed", "a.md").wait(LONG_S)
    assert ids(memory.recall("zebra crossing")) == []
    assert ids(memory.recall("tiger in the garden")) == ["b.md"]


def test_b10_a_deletion_under_a_running_watcher_is_carried_out(
    watched: Callable[[], Memory], told: Told, write: Write
) -> None:
    file = write("a.md", "zebra crossing")
    memory = watched()
    assert told.of("added", "a.md").wait(LONG_S)
    file.unlink()
    assert told.of("removed", "a.md").wait(LONG_S)
    assert memory.recall("zebra crossing").coverage.topics == 0


Live = tuple[int, int, int, int]


@pytest.fixture
def live(opened: Open, config: Config, tmp_path: Path) -> Callable[..., tuple[Live, Live]]:
    """Checks an index; gives its files, topics, topics with vectors and chunks, and those of an index made anew."""

    def counted(memory: Memory) -> Live:
        (health,) = memory.check()
        assert health.faults == ()
        counts = health.counts
        return counts.files, counts.topics, counts.embedded, counts.chunks

    def both(memory: Memory, settings: Config = config) -> tuple[Live, Live]:
        elsewhere = settings.index._replace(cache=str(tmp_path / "made anew"))
        fresh = opened(config=replace(settings, index=elsewhere))
        fresh.reindex()
        return counted(memory), counted(fresh)

    return both


def test_b11_a_file_that_shrinks_leaves_no_chunk_behind(
    opened: Open, write: Write, live: Callable[..., tuple[Live, Live]]
) -> None:
    animals = ("zebra", "tiger", "lion", "walrus", "heron")
    sections = [f"# {animal}\n\n{f'The {animal} sleeps. ' * 200}" for animal in animals]
    memory = opened()
    write("a.md", "\n\n".join(sections))
    memory.reindex()
    assert all(ids(memory.recall(animal)) == ["a.md"] for animal in animals)
    (before,) = memory.check()
    write("a.md", "\n\n".join(sections[:2]))
    memory.reindex()
    assert [animal for animal in animals if ids(memory.recall(animal))] == ["zebra", "tiger"]
    now, anew = live(memory)
    assert now == anew
    assert 1 < now[-1] < before.counts.chunks


def test_b12_files_that_were_there_before_the_watcher_are_found(
    watched: Callable[[], Memory], told: Told, write: Write
) -> None:
    write("a.md", "zebra crossing")
    memory = watched()
    assert told.of("added", "a.md").wait(LONG_S)
    assert ids(memory.prefetch("zebra crossing").first()) == ["a.md"]


@pytest.mark.model
def test_b14_a_forgotten_memory_is_gone_from_the_vectors_too(
    opened: Open, write: Write, with_model: Config, live: Callable[..., tuple[Live, Live]]
) -> None:
    file = write("a.md", "我们周二发布上线，周五不发布。")
    write("b.md", "The user drinks tea without milk.")
    memory = opened(config=with_model)
    asked = "on which weekday do we release?"
    found = memory.recall(asked)
    assert (ids(found), found.hits[0].lexical) == (["a.md"], 0.0)  # by meaning alone
    file.unlink()
    found = memory.recall(asked)
    assert ids(found) == []
    assert (found.coverage.topics, found.coverage.embedded) == (1, 1)
    assert live(memory, with_model) == ((1, 1, 1, 1), (1, 1, 1, 1))


@pytest.mark.model
def test_b15_a_new_memory_is_found_by_meaning_at_once(opened: Open, write: Write, with_model: Config) -> None:
    write("b.md", "The user drinks tea without milk.")
    memory = opened(config=with_model)
    memory.reindex()
    write("a.md", "我们周二发布上线，周五不发布。")
    found = memory.recall("on which weekday do we release?")
    assert ids(found) == ["a.md"]
    assert found.hits[0].lexical == 0.0
    assert found.hits[0].cosine is not None


def test_b17_after_a_consolidation_only_the_merged_file_is_found(opened: Open, write: Write) -> None:
    phrases = ("zebra crossing at noon", "tiger in the garden", "lion on the roof")
    files = [write(f"{number}.md", phrase) for number, phrase in enumerate(phrases)]
    memory = opened()
    memory.reindex()
    write("merged.md", "\n".join(phrases))
    for file in files:
        file.unlink()
    for phrase in phrases:
        found = memory.recall(phrase)
        assert (ids(found), found.coverage.topics) == (["merged.md"], 1)
        assert ids(memory.prefetch(phrase).first()) == ["merged.md"]
