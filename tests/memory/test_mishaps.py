"""Bad luck and bad intent on the way of a memory to its files: kills, races, full disks, odd names, hostile clones."""

import multiprocessing
import os
import random
import re
import shutil
import signal
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from recall import Config, Memory, RecallError
from recall.config import EncoderConfig, IndexConfig
from recall.lifecycle.remember import Outcome
from tests.memory.conftest import Write

FACT = "The staging database is wiped every night"


@pytest.fixture
def plain(tmp_path: Path) -> Config:
    return Config(index=IndexConfig(cache=str(tmp_path / "cache")), encoder=EncoderConfig(model="off"))


@pytest.fixture
def memory(root: Path, plain: Config) -> Iterator[Memory]:
    with Memory.open(root, config=plain, background=False) as opened:
        yield opened


def names(root: Path) -> set[str]:
    return {file.relative_to(root).as_posix() for file in root.rglob("*.md") if ".trash" not in file.parts}


# --- several at once, and stops


def _remember(root: Path, config: Config, begin: float) -> Outcome:
    with Memory.open(root, config=config, background=False) as memory:
        while time.time() < begin:
            pass  # both at the same moment
        return memory.remember(FACT, type="project").outcome


def test_two_processes_that_remember_one_fact_write_it_once(root: Path, plain: Config) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.starmap(_remember, [(root, plain, 0.0)] * 2)  # what opening costs is over
        shutil.rmtree(root)
        outcomes = pool.starmap(_remember, [(root, plain, time.time() + 0.2)] * 2, chunksize=1)
    assert sorted(outcomes) == [Outcome.CREATED, Outcome.KNOWN]
    assert len(names(root)) == 2  # with MEMORY.md


def _work(root: Path, config: Config, seed: int, ready: "multiprocessing.synchronize.Event") -> None:
    chance = random.Random(seed)
    with Memory.open(root, config=config, background=False) as memory:
        ready.set()
        for number in range(10_000):
            topics = memory.topics()
            if not topics or chance.random() < 0.5:
                memory.remember(f"fact q{seed}x{number} holds for z{chance.random()}", type="project")
            elif chance.random() < 0.6:
                memory.delete(chance.choice(topics).id).apply()
            else:
                try:
                    memory.restore().apply()
                except RecallError:
                    continue  # there is nothing to restore, or it was restored


@pytest.mark.skipif(os.name != "posix", reason="no signal ends a process as hard elsewhere")
def test_a_process_that_is_killed_at_any_moment_leaves_a_memory_in_step(root: Path, plain: Config) -> None:
    context = multiprocessing.get_context("spawn")
    chance = random.Random(7)
    for seed in range(int(os.environ.get("RECALL_KILLS", "6"))):
        ready = context.Event()
        worker = context.Process(target=_work, args=(root, plain, seed, ready))
        worker.start()
        assert ready.wait(60)
        worker.join(chance.random() * 0.15)
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        assert worker.exitcode == -signal.SIGKILL
        with Memory.open(root, config=plain, background=False) as memory:
            topics = memory.topics()
        assert not (root / ".trash/pending.json").exists()
        assert {topic.path for topic in topics} == names(root) - {"MEMORY.md"}
        assert all(re.fullmatch(r"fact q\d+x\d+ holds for z[\d.e-]+", topic.body) for topic in topics)
        index = (root / "MEMORY.md").read_text(encoding="utf-8") if (root / "MEMORY.md").exists() else ""
        assert set(re.findall(r"\]\((.+?)\)", index)) == {topic.path for topic in topics}
        assert not list(root.glob(".*.tmp"))


# --- a clone with traps in it


def test_a_journal_that_came_with_a_clone_is_not_done_at_the_next_opening(
    root: Path, plain: Config, tmp_path: Path, write: Write
) -> None:
    """Somebody's stopped forgetting, sealed with somebody's key, in a repository that the user clones."""
    write("mine.md", FACT)
    _died(root, plain, home=tmp_path / "theirs")
    with Memory.open(root, config=plain, background=False) as memory:
        assert [topic.id for topic in memory.topics()] == ["mine.md"]
        assert not (root / ".trash/pending.json").exists()
        memory.remember("Another fact entirely", type="project")
        assert "mine.md" in names(root)


def test_what_a_stop_left_is_ended_although_the_cache_was_deleted(
    root: Path, plain: Config, tmp_path: Path, write: Write
) -> None:
    write("mine.md", FACT)
    _died(root, plain, home=tmp_path / "home")
    shutil.rmtree(tmp_path / "cache")
    with Memory.open(root, config=plain, background=False) as memory:
        assert memory.topics() == []
        memory.restore().apply()
    assert "mine.md" in names(root)


def test_who_only_reads_makes_no_secret(root: Path, plain: Config, tmp_path: Path, write: Write) -> None:
    write("mine.md", FACT)
    with Memory.open(root, config=plain, background=False) as memory:
        memory.entries()
        memory.runs()
        assert not list(tmp_path.rglob("journal.key"))
        memory.remember("Another fact entirely", type="project")
        assert len(list((tmp_path / "home").rglob("journal.key"))) == 1


def _died(root: Path, config: Config, *, home: Path) -> None:
    """Lets the user of that home die while he deletes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_CONFIG_HOME", str(home / "config"))
        worker = multiprocessing.get_context("spawn").Process(target=_die, args=(root, config))
        worker.start()
        worker.join()
    assert worker.exitcode == 9


def _die(root: Path, config: Config) -> None:
    from recall.store import disk
    from recall.store.disk import Step

    def watch(step: Step, path: Path, _old: Path | None) -> None:
        if step is Step.RENAME and path.name == "pending.json":
            os._exit(9)

    with Memory.open(root, config=config, background=False) as memory:
        plan = memory.delete("mine.md")
        disk.watch = watch
        plan.apply()


@pytest.mark.parametrize("name", [".trash", ".trash/writer.lock", ".trash/remember.lock", "MEMORY.md"])
def test_links_that_lead_out_are_never_written_through(root: Path, plain: Config, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"mine\n")
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).symlink_to(outside if name == ".trash" else outside / "file")
    with Memory.open(root, config=plain, background=False) as memory:
        if name == "MEMORY.md":
            assert any("outside" in note for note in memory.remember(FACT, type="project").notes)
        else:
            with pytest.raises(RecallError, match="outside"):
                memory.remember(FACT, type="project")
    assert (outside / "file").read_bytes() == b"mine\n"
    assert [file.name for file in outside.iterdir()] == ["file"]


def test_topics_behind_links_and_loops_are_left_alone(root: Path, plain: Config, tmp_path: Path, write: Write) -> None:
    outside = write("o.md", FACT, folder=tmp_path / "outside")
    inside = write("real.md", FACT)
    (root / "in.md").symlink_to("real.md")
    (root / "out.md").symlink_to(outside)
    (root / "loop").symlink_to(".")
    with Memory.open(root, config=plain, background=False) as memory:
        memory.forget(FACT).apply()
        assert not inside.exists()
        assert (root / "in.md").is_symlink()
        assert outside.exists()
        memory.restore().apply()
        assert inside.exists()


# --- odd places and names

NAMES = [
    "with space.md",
    "br[ack]et(s).md",
    "ha#sh.md",
    "100%.md",
    "中文 名.md",
    "🎉.md",
    unicodedata.normalize("NFD", "é") + ".md",
    "a&b'c.md",
    "sub dir/x y.md",
    *(["new\nline.md", 'quo"te.md', "back\\slash.md"] if os.name == "posix" else []),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_any_name_is_changed_forgotten_and_given_back(
    memory: Memory, root: Path, write: Write, name: str
) -> None:
    file = write(name, FACT)
    before = file.read_bytes()
    (topic,) = memory.topics()
    memory.edit(topic.id, before.decode().replace("night", "day")).apply()
    memory.restore().apply()
    assert file.read_bytes() == before
    assert memory.remember(FACT, type="project").outcome is Outcome.KNOWN
    run = memory.delete(topic.id).apply()
    assert not file.exists()
    memory.restore(run).apply()
    assert file.read_bytes() == before
    memory.forget(FACT).apply(purge=True)
    assert not [one for one in root.rglob("*") if one.is_file() and b"staging" in one.read_bytes()]


@pytest.mark.parametrize("where", ["项目 🎉/记忆", "not/there/yet"])
def test_a_memory_may_lie_anywhere(tmp_path: Path, plain: Config, where: str) -> None:
    with Memory.open(tmp_path / where, config=plain, background=False) as memory:
        done = memory.remember(FACT, type="project")
        assert done.file is not None
        assert done.file.exists()
        memory.forget("staging database").apply()
        memory.restore().apply()
        assert [topic.id for topic in memory.topics()] == [done.id]


def test_a_user_without_a_home_can_do_it_all(root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "RECALL_INDEX__CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "")
    with Memory.open(root, config=Config(encoder=EncoderConfig(model="off")), background=False) as memory:
        done = memory.remember(FACT, type="project")
        memory.forget("staging database").apply()
        memory.restore().apply()
        assert [topic.id for topic in memory.topics()] == [done.id]
    assert list((tmp_path / "work").iterdir()) == []


def test_an_empty_folder_has_nothing_to_forget_or_restore(memory: Memory, root: Path) -> None:
    assert not memory.forget("anything")
    assert memory.entries() == []
    assert memory.runs() == []
    with pytest.raises(RecallError, match="no run"):
        memory.restore()
    assert names(root) == set()


def test_a_huge_index_takes_one_more_line_and_keeps_all_others(memory: Memory, root: Path) -> None:
    lines = "".join(f"- [x{number}](x{number}.md) — words of line {number} by hand\n" for number in range(5_000))
    assert len(lines) > 220_000
    (root / "MEMORY.md").write_text(f"# Mine\n{lines}", encoding="utf-8")
    memory.remember(FACT, type="project")
    index = (root / "MEMORY.md").read_text(encoding="utf-8")
    assert set(lines.splitlines()) < set(index.splitlines())
    assert FACT in index


def test_an_index_that_is_a_folder_is_said_and_stops_nothing(memory: Memory, root: Path) -> None:
    (root / "MEMORY.md").mkdir()
    done = memory.remember(FACT, type="project")
    assert done.outcome is Outcome.CREATED
    assert any("MEMORY.md" in note for note in done.notes)


@pytest.mark.skipif(os.name != "posix", reason="modes mean little elsewhere")
def test_a_folder_that_may_only_be_read_is_said_by_name(memory: Memory, root: Path, write: Write) -> None:
    file = write("a.md", FACT)
    root.chmod(0o500)
    try:
        if os.access(root, os.W_OK):
            pytest.skip("nothing is forbidden to this user")
        with pytest.raises(PermissionError, match="memory"):
            memory.remember("Another fact entirely", type="project")
        with pytest.raises(PermissionError, match="memory"):
            memory.forget(FACT).apply()
    finally:
        root.chmod(0o700)
    assert file.exists()


def test_a_purge_is_done_or_refused_but_never_passed_over(
    root: Path, plain: Config, tmp_path: Path, write: Write
) -> None:
    write("a.md", "old words of mine")
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    with Memory.open(root, project=project, config=plain, background=False) as memory:
        plan = memory.edit("a", "new words\n")
        with pytest.raises(ValueError, match="keeps a copy"):
            plan.apply(purge=True)
        assert "old words" in (root / "a.md").read_text(encoding="utf-8")
        plan.apply()
        with pytest.raises(ValueError, match="keeps a copy"):
            memory.restore().apply(purge=True)
        done = memory.remember("Never touch the swordfish", type="project", target="instructions")
        memory.delete(done.id).apply(purge=True)
    assert not [file for file in project.rglob("*") if file.is_file() and b"swordfish" in file.read_bytes()]
