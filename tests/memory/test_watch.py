"""Changes are noticed when they happen, with the real library, and never missed for long or waited for at the end."""

import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import recall
from recall import Config, Memory, MissingExtraError, SyncReport
from recall.apps.residence import Memories, Place
from recall.memory.events import Event
from recall.memory.watch import Watcher, concerns

LONG_S = 60.0  # an upper bound that only a broken implementation reaches

Write = Callable[..., Path]
Open = Callable[..., Memory]


class Reports:
    """A listener that waits for a synchronisation of the background."""

    def __init__(self) -> None:
        self._seen: list[SyncReport] = []
        self._news = threading.Condition()

    def __call__(self, event: Event) -> None:
        if isinstance(event, SyncReport):
            with self._news:
                self._seen.append(event)
                self._news.notify_all()

    def wait(self, kind: str, *paths: str) -> None:
        """Returns once all the paths were reported as being of the kind, which they then may be again."""

        def is_there() -> bool:
            return set(paths) <= {path for report in self._seen for path in getattr(report, kind)}

        with self._news:
            assert self._news.wait_for(is_there, LONG_S), f"{paths} never {kind}: {self._seen}"
            self._seen.clear()


@pytest.fixture
def reports() -> Reports:
    return Reports()


def watching(config: Config, watch: bool | None = True) -> Config:
    return replace(config, index=config.index._replace(watch=watch))


@pytest.fixture
def watched(opened: Open, config: Config, reports: Reports) -> Callable[..., Memory]:
    """Opens a memory that is watched, and waits until it is."""

    def open_(folder: Path | None = None, **options: Any) -> Memory:
        return opened(folder, config=watching(config), background=True, on_event=reports, **options)

    return open_


def test_a_file_that_is_written_saved_moved_and_deleted_is_followed(
    watched: Callable[..., Memory], reports: Reports, write: Write, root: Path
) -> None:
    watched()
    file = write("a.md", "zebra")
    reports.wait("added", "a.md")
    file.write_text("tiger", encoding="utf-8")
    reports.wait("changed", "a.md")
    saved = root / "a.tmp"
    saved.write_text("lion", encoding="utf-8")
    saved.replace(file)
    reports.wait("changed", "a.md")
    (root / "sub").mkdir()
    file.rename(root / "sub" / "a.md")
    reports.wait("moved", "sub/a.md")
    (root / "sub").rename(root / "other")
    reports.wait("moved", "other/a.md")
    (root / "other" / "a.md").write_text("deep", encoding="utf-8")
    reports.wait("changed", "other/a.md")
    shutil.rmtree(root / "other")
    reports.wait("removed", "other/a.md")


def test_a_folder_that_comes_from_elsewhere_is_followed(
    watched: Callable[..., Memory], reports: Reports, write: Write, root: Path, tmp_path: Path
) -> None:
    watched()
    write("1.md", "zebra", folder=tmp_path / "elsewhere")
    (tmp_path / "elsewhere").rename(root / "here")
    reports.wait("added", "here/1.md")
    write("here/2.md", "tiger")
    reports.wait("added", "here/2.md")
    (root / "here").rename(tmp_path / "elsewhere")
    reports.wait("removed", "here/1.md", "here/2.md")


def test_a_root_that_comes_later_is_noticed(
    watched: Callable[..., Memory], reports: Reports, write: Write, tmp_path: Path
) -> None:
    root = tmp_path / "later" / "memory"
    watched(root)
    write("a.md", "zebra", folder=root)
    reports.wait("added", "a.md")


def test_a_root_that_is_exchanged_under_its_name_is_noticed(
    watched: Callable[..., Memory], reports: Reports, write: Write, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        write(f"{name}.md", name, folder=tmp_path / name)
    link = tmp_path / "link"
    link.symlink_to("one")
    watched(link)
    reports.wait("added", "one.md")
    other = tmp_path / "new"
    other.symlink_to("two")
    other.replace(link)
    reports.wait("added", "two.md")
    write("three.md", "three", folder=tmp_path / "two")
    reports.wait("added", "three.md")


def test_the_memory_of_the_user_is_watched_as_well(
    watched: Callable[..., Memory], reports: Reports, write: Write, tmp_path: Path
) -> None:
    watched(user_root=tmp_path / "user")
    write("style.md", "briefly", folder=tmp_path / "user")
    reports.wait("added", "style.md")


@pytest.mark.parametrize(
    ("path", "matters"),
    [
        ("/m/a.md", True),
        ("/m/sub/a.MD", True),
        ("/m/a.markdown", True),
        ("/m/gone-file-or-folder", True),
        ("/m/.git/index.md", False),
        ("/m/sub/.a.md.swp", False),
        ("/m/.hidden/user/a.md", True),
        ("/m/.hidden/user/.x/a.md", False),
        (sys.executable, False),
    ],
)
def test_only_what_a_look_would_see_wakes(path: str, matters: bool) -> None:
    """A root may lie in a hidden folder of another one."""
    assert concerns(path, ["/m", "/m/.hidden/user", "/"][: 3 if path == sys.executable else 2]) is matters


# --- the end


def names() -> list[str]:
    return [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize("exists", [True, False])
def test_closing_leaves_no_thread(watched: Callable[..., Memory], tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "folder"
    if exists:
        folder.mkdir()
    memory = watched(folder)
    assert "recall-watcher" in names()
    memory.close()
    assert "recall-watcher" not in names()


RUN = os.environ | {"PYTHONPATH": str(Path(recall.__file__).parents[1])}

UNCLOSED = """
import sys, threading
from recall import Config, Memory
from recall.config import EncoderConfig, IndexConfig

config = Config(index=IndexConfig(cache=sys.argv[2], watch=True), encoder=EncoderConfig(model="hashing"))
added = threading.Event()
memory = Memory.open(sys.argv[1], config=config, on_event=lambda event: getattr(event, "added", ()) and added.set())
(memory.located.chosen.root / "a.md").write_text("zebra", encoding="utf-8")
assert added.wait(50)
"""


def test_a_process_that_never_closes_its_memory_ends_cleanly(root: Path, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", UNCLOSED, root, tmp_path / "cache"],
        env=RUN, capture_output=True, encoding="utf-8", timeout=LONG_S,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


# --- where it cannot be

NO_WATCHES = """
import resource, sys
from recall import Config, Memory
from recall.config import EncoderConfig, IndexConfig
from recall.memory.watch import Watcher, need_library
import watchfiles

from pathlib import Path
woken = []
watcher = Watcher([Path(sys.argv[1])], lambda: woken.append(1))
resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
watcher.start()
watcher._thread.join(50)
print(watcher._thread.is_alive(), watcher.problem)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="takes the file numbers away that inotify needs")
def test_a_system_that_allows_no_more_watches_is_said_once_and_harms_nobody(root: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", NO_WATCHES, root], env=RUN, capture_output=True, encoding="utf-8", timeout=LONG_S
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("False changes are not noticed when they happen, but when a question is asked: ")
    assert ended.stderr == ended.stdout.removeprefix("False ")  # the warning, once


def test_a_memory_whose_watch_broke_answers_as_ever_and_says_so(
    watched: Callable[..., Memory], reports: Reports, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    monkeypatch.setattr("recall.memory.memory.need_library", lambda: None)  # went away after it was looked for
    write("a.md", "zebra")
    memory = watched()
    reports.wait("added", "a.md")
    assert memory._watcher is not None
    memory._watcher._thread.join(LONG_S)
    write("b.md", "tiger")
    assert [hit.topic.id for hit in memory.recall("tiger").hits] == ["b.md"]
    assert "when a question is asked" in memory.status()[0].note


def test_without_the_library_the_extra_is_named(opened: Open, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(MissingExtraError, match=r"recall-memory\[watch\]"):
        opened(config=watching(config), background=True)
    opened(config=watching(config))  # nothing is watched without the background
    opened(config=config, background=True)


# --- who watches


@pytest.mark.parametrize(("watch", "watches"), [(None, True), (True, True), (False, False)])
def test_the_resident_process_watches_unless_told_otherwise(
    root: Path, monkeypatch: pytest.MonkeyPatch, watch: bool | None, watches: bool
) -> None:
    monkeypatch.setenv("RECALL_ENCODER__MODEL", "hashing")
    if watch is not None:
        monkeypatch.setenv("RECALL_INDEX__WATCH", str(watch).lower())
    memories = Memories()
    with memories.lease(Place(root=str(root), project=str(root))):
        assert ("recall-watcher" in names()) is watches
    memories.close()


def test_the_resident_process_does_without_the_library(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECALL_ENCODER__MODEL", "hashing")
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    memories = Memories()
    with memories.lease(Place(root=str(root), project=str(root))):
        assert "recall-watcher" not in names()
    memories.close()


def test_nothing_else_watches_by_itself(opened: Open) -> None:
    opened(background=True)
    assert "recall-watcher" not in names()


@pytest.fixture
def woken(root: Path) -> Iterator[threading.Semaphore]:
    times = threading.Semaphore(0)
    watcher = Watcher([root], times.release)
    watcher.start()
    yield times
    watcher.stop()


def test_what_happened_just_before_the_watch_began_is_looked_for(woken: threading.Semaphore) -> None:
    """Once when it begins, and once more when it is certain that it has begun."""
    assert woken.acquire(timeout=LONG_S)
    assert woken.acquire(timeout=LONG_S)


def test_a_folder_that_is_exchanged_while_it_is_watched_is_watched_in_the_place_of_the_old_one(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    link, times = tmp_path / "link", threading.Semaphore(0)
    link.symlink_to("one")
    watcher = Watcher([link], times.release)
    watcher.start()
    try:
        assert times.acquire(timeout=LONG_S)
        assert times.acquire(timeout=LONG_S)
        (tmp_path / "new").symlink_to("two")
        (tmp_path / "new").replace(link)
        assert times.acquire(timeout=LONG_S)
        assert times.acquire(timeout=LONG_S)
        (tmp_path / "two" / "a.md").write_text("zebra", encoding="utf-8")
        assert times.acquire(timeout=LONG_S)
    finally:
        watcher.stop()


def test_a_folder_that_goes_before_it_can_be_watched_is_told_as_gone(root: Path) -> None:
    times = threading.Semaphore(0)

    def wake() -> None:
        shutil.rmtree(root, ignore_errors=True)
        times.release()

    watcher = Watcher([root], wake)
    watcher.start()
    try:
        assert times.acquire(timeout=LONG_S)
        assert times.acquire(timeout=LONG_S)
        root.mkdir()
        assert times.acquire(timeout=LONG_S)
    finally:
        watcher.stop()


def test_a_folder_that_goes_and_comes_again_is_told_each_time(tmp_path: Path) -> None:
    root, seen = tmp_path / "later" / "memory", queue.Queue[bool]()

    def until(exists: bool) -> None:
        while seen.get(timeout=LONG_S) is not exists:
            pass

    watcher = Watcher([root], lambda: seen.put(root.exists()))
    watcher.start()
    try:
        until(False)
        for _ in range(3):
            root.mkdir(parents=True)
            until(True)
            until(True)  # the first may have come by chance; now the watcher knows it
            shutil.rmtree(root)
            until(False)
    finally:
        watcher.stop()
