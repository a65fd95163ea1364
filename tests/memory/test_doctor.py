"""`Memory.check` and `Memory.mend`: real damage is found and mended, and an answer is then that of a fresh index."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest

import recall
from recall import Config, Memory
from recall.apps.demo import write_memory
from recall.config import EncoderConfig, IndexConfig
from recall.index.findings import Kind
from recall.index.folder import cache_folder
from recall.index.health import Sample
from recall.memory.doctor import RootHealth, check
from recall.memory.opening import make_model
from recall.store.layout import Layout
from recall.store.topics import Scope

Write = Callable[..., Path]
Open = Callable[..., Memory]
LONG_S = 60.0  # an upper bound that only a broken implementation reaches


@pytest.fixture
def folder(root: Path, tmp_path: Path, write: Write, config: Config) -> Path:
    """Derived data of twenty topics, with no process at work."""
    for number in range(20):
        write(f"{number}.md", f"number {number} tells about thing{number}")
    write("long.md", "\n".join(f"line {number} about part{number}" for number in range(300)))
    with Memory.open(root, config=config, background=False) as memory:
        memory.reindex()
    return cache_folder(tmp_path / "cache", root)


def unopened(root: Path, config: Config) -> RootHealth:
    (health,) = check({Scope.PROJECT: root}, config, make_model(None, config))
    return health


def answers(memory: Memory) -> list[object]:
    queries = ("thing3", "thing17 number", "part250", "line about part7")
    return [[(hit.topic.id, round(hit.score, 5), hit.chunk) for hit in memory.recall(query).hits] for query in queries]


def fresh(root: Path, tmp_path: Path) -> list[object]:
    config = Config(index=IndexConfig(cache=str(tmp_path / "fresh")), encoder=EncoderConfig(model="hashing"))
    with Memory.open(root, config=config, background=False) as memory:
        memory.reindex()
        return answers(memory)


def environment() -> Mapping[str, str]:
    """That of another process which runs this code."""
    return os.environ | {"PYTHONPATH": str(Path(recall.__file__).parents[1]), "PYTHONUTF8": "1"}


def contents(root: Path) -> Mapping[str, tuple[bytes, int]]:
    return {str(file): (file.read_bytes(), file.stat().st_mtime_ns) for file in root.rglob("*.md")}


def largest(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern), key=lambda file: file.stat().st_size)


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def overwrite(file: Path) -> None:
    with file.open("r+b") as stream:
        stream.seek(file.stat().st_size // 2)
        stream.write(b"\xa5" * 64)


def test_a_sound_memory_has_nothing_to_mend(folder: Path, opened: Open) -> None:
    memory = opened()
    (health,) = memory.check()
    assert (health.findings, health.is_sound, health.folder) == ((), True, folder)
    (mending,) = memory.mend()
    assert (mending.done, mending.after) == ((), mending.before)


@pytest.mark.parametrize("damage", [cut, overwrite, Path.unlink])
@pytest.mark.parametrize(
    ("pattern", "kind"),
    [("*.postings", Kind.POSTINGS), ("*.vectors", None), ("catalog.sqlite3", None)],
)
def test_damaged_files_are_found_without_opening_and_mended_to_the_answers_of_a_fresh_index(
    root: Path,
    folder: Path,
    config: Config,
    opened: Open,
    tmp_path: Path,
    pattern: str,
    kind: Kind | None,
    damage: Callable[[Path], object],
) -> None:
    before = contents(root)
    damage(largest(folder, pattern))
    health = unopened(root, config)
    assert health.findings
    assert health.faults or damage is Path.unlink  # without a catalog nothing is indexed, which is no fault
    assert kind is None or {fault.kind for fault in health.faults} == {kind}
    memory = opened()
    (mending,) = memory.mend()
    assert mending.after.findings == ()
    assert mending.done
    assert answers(memory) == fresh(root, tmp_path)
    assert contents(root) == before


def test_a_memory_in_use_is_checked_and_mended_beside_its_searches(root: Path, folder: Path, opened: Open) -> None:
    memory = opened()
    assert memory.recall("thing3").hits[0].topic.id == "3.md"
    with closing(sqlite3.connect(folder / "catalog.sqlite3")) as connection, connection:
        connection.execute("DELETE FROM chunks WHERE doc = (SELECT doc FROM topics WHERE path = '3.md')")
        connection.execute("DELETE FROM topics WHERE path = '4.md'")
    (health,) = memory.check()
    assert {(finding.kind, finding.what) for finding in health.findings} == {
        (Kind.INCOMPLETE, "3.md"),
        (Kind.UNINDEXED, "4.md"),
        (Kind.STRAY, "catalog.sqlite3"),
    }
    (mending,) = memory.mend()
    assert mending.after.findings == ()
    found = memory.recall("thing4")
    assert found.hits[0].topic.id == "4.md"
    assert found.coverage.embedded == found.coverage.topics == len(memory.topics())


def test_the_user_s_memory_is_checked_and_mended_too(
    folder: Path, opened: Open, tmp_path: Path, write: Write, config: Config
) -> None:
    user = tmp_path / "user"
    write("mine.md", "my own", folder=user)
    memory = opened(user_root=user)
    memory.reindex()
    with closing(sqlite3.connect(cache_folder(tmp_path / "cache", user) / "catalog.sqlite3")) as connection, connection:
        connection.execute("DELETE FROM chunks")
    assert [(health.scope, health.is_sound) for health in memory.check()] == [
        (Scope.PROJECT, True),
        (Scope.USER, False),
    ]
    assert [mending.after.is_sound for mending in memory.mend()] == [True, True]


def test_all_roots_are_mended_before_words_are_refreshed_so_that_none_is_made_anew(
    folder: Path, opened: Open, tmp_path: Path, write: Write
) -> None:
    user = tmp_path / "user"
    write("mine.md", "my own", folder=user)
    memory = opened(user_root=user)
    memory.reindex()
    memory.close()
    folders = (folder, cache_folder(tmp_path / "cache", user))
    vectors = [largest(place, "*.vectors") for place in folders]
    for place in folders:
        cut(largest(place, "*.postings"))
    mendings = opened(user_root=user).mend()
    assert [mending.before.is_sound for mending in mendings] == [False, False]
    assert [mending.after.findings for mending in mendings] == [(), ()]
    assert [largest(place, "*.vectors") for place in folders] == vectors


def test_what_a_sample_shows_is_looked_for_in_all_topics_before_it_is_mended(
    folder: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recall.index.health.Sample", lambda: Sample(topics=5))
    with closing(sqlite3.connect(folder / "catalog.sqlite3")) as connection, connection:
        connection.execute("UPDATE topics SET body = 'somebody wrote this'")
    memory = opened()
    assert len({finding.what for finding in memory.check()[0].findings}) == 5
    (mending,) = memory.mend()
    assert mending.after.findings == ()
    assert not any("anew" in sentence and "all derived data" in sentence for sentence in mending.done)
    monkeypatch.undo()
    assert memory.check()[0].findings == ()


def test_small_steps_that_do_not_help_end_in_a_rebuild(
    root: Path, folder: Path, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recall.index.collection.mend_words", lambda *_: ())
    memory = opened()
    memory.recall("thing3")
    with closing(sqlite3.connect(folder / "catalog.sqlite3")) as connection, connection:
        connection.execute("UPDATE topics SET body = 'somebody wrote this' WHERE path = '3.md'")
    (mending,) = memory.mend()
    assert mending.after.findings == ()
    assert any("all derived data was made anew" in sentence for sentence in mending.done)
    assert answers(memory) == fresh(root, tmp_path)


def test_without_a_model_words_are_mended_and_the_missing_model_is_told(
    root: Path, folder: Path, tmp_path: Path
) -> None:
    config = Config(index=IndexConfig(cache=str(tmp_path / "cache")), encoder=EncoderConfig(model=str(tmp_path)))
    cut(largest(folder, "*.postings"))
    with Memory.open(root, config=config, background=False) as memory:
        (mending,) = memory.mend()
        assert memory.recall("thing3").hits[0].topic.id == "3.md"
    assert {finding.kind for finding in mending.before.findings} == {Kind.POSTINGS, Kind.MODEL}
    assert [(fault.kind, fault.mendable) for fault in mending.after.faults] == [(Kind.MODEL, False)]


WORKER = """
import sys
from pathlib import Path
from recall import Config, Memory
from recall.config import EncoderConfig, IndexConfig

root = Path(sys.argv[1])
config = Config(index=IndexConfig(cache=sys.argv[2]), encoder=EncoderConfig(model="hashing"))
with Memory.open(root, config=config) as memory:
    for number in range(30):
        (root / f"{number % 7}.md").write_text(f"edit {number} of many", encoding="utf-8")
        (root / f"moved{number % 3}.md").unlink(missing_ok=True)
        (root / f"{10 + number % 5}.md").rename(root / f"moved{number % 3}.md")
        (root / f"{10 + number % 5}.md").write_text(f"back {number}", encoding="utf-8")
        memory.recall("edit")
        if number % 6 == 5:
            memory.reindex(full=number % 12 == 11)
"""


def test_checks_beside_a_process_that_writes_and_rebuilds_raise_no_alarm(
    root: Path, folder: Path, config: Config, tmp_path: Path, opened: Open
) -> None:
    words = [sys.executable, "-c", WORKER, str(root), str(tmp_path / "cache")]
    looks = 0
    with subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, encoding="utf-8") as worker:
        while worker.poll() is None:
            assert unopened(root, config).faults == ()
            looks += 1
        assert worker.stderr
        assert (worker.returncode, worker.stderr.read()) == (0, "")
    assert looks > 3
    memory = opened()
    memory.reindex()
    assert memory.check()[0].findings == ()


VICTIM = """
import os, signal, sys
from pathlib import Path
from recall import Config, Memory
from recall.config import EncoderConfig, IndexConfig
from recall.index import catalog

deaths = int(sys.argv[3])
commits = 0

class Dying(catalog.Catalog):
    def transaction(self):
        global commits
        commits += 1
        if commits > deaths:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().transaction()

from recall.index import home
home.Catalog = Dying
config = Config(index=IndexConfig(cache=sys.argv[2]), encoder=EncoderConfig(model="hashing"))
with Memory.open(Path(sys.argv[1]), config=config, background=False) as memory:
    memory.mend()
print(commits)
"""


def test_a_doctor_that_is_killed_leaves_what_the_next_open_handles(
    root: Path, folder: Path, config: Config, tmp_path: Path
) -> None:
    """Killed before one of its commits; first it is seen how many there are."""
    expected = fresh(root, tmp_path)

    def treated(deaths: int) -> subprocess.CompletedProcess[str]:
        cut(largest(folder, "*.postings"))
        cut(largest(folder, "*.vectors"))
        with closing(sqlite3.connect(folder / "catalog.sqlite3")) as connection, connection:
            connection.execute("UPDATE topics SET body = 'somebody wrote this' WHERE path = '3.md'")
        words = [sys.executable, "-c", VICTIM, str(root), str(tmp_path / "cache"), str(deaths)]
        return subprocess.run(
            words, env=environment(), capture_output=True, encoding="utf-8", timeout=LONG_S, check=False
        )

    whole = treated(10**6)
    assert (whole.returncode, whole.stderr) == (0, "")
    commits = int(whole.stdout)
    assert commits > 5
    for deaths in (0, 1, 2, commits // 2, commits - 2, commits - 1):
        assert treated(deaths).returncode == -signal.SIGKILL
        with Memory.open(root, config=config, background=False) as memory:
            assert len(memory.recall("thing5").hits) > 0
            memory.mend()
            assert answers(memory) == expected, deaths
            assert memory.check()[0].findings == ()


@pytest.mark.model
def test_the_example_memory_with_the_real_model_is_sound_and_mends(tmp_path: Path) -> None:
    root, config = tmp_path / "demo", Config(index=IndexConfig(cache=str(tmp_path / "cache")))
    write_memory(root)
    with Memory.open(root, project=root, layout=Layout.PLAIN, config=config, background=False) as memory:
        memory.reindex()
        (health,) = memory.check()
        assert (health.findings, health.counts.embedded) == ((), health.counts.topics)
        (root / "user_backend_lead.md").rename(root / "moved.md")
        (root / "feedback_commits.md").unlink()
        memory.reindex()
        assert memory.check()[0].findings == ()
        with closing(sqlite3.connect(health.folder / "catalog.sqlite3")) as connection, connection:
            ((dim,),) = connection.execute("SELECT value FROM meta WHERE key = 'dim'")
        file = largest(health.folder, "*.vectors")
        data = file.read_bytes()
        row = int(dim) * 4
        file.write_bytes(data[row:] + data[:row])  # every vector stands where that of another text should
        (mending,) = memory.mend()
        assert {fault.kind for fault in mending.before.faults} == {Kind.MODEL}
        assert mending.after.findings == ()
