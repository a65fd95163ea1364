"""A memory remembers, changes, forgets and gives back: files, MEMORY.md and answers go together."""

import json
import multiprocessing
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from recall import Config, Memory, StalePlanError, TopicError
from recall.config import EncoderConfig, IndexConfig, TrashConfig
from recall.lifecycle.remember import Outcome
from recall.memory.stored import Remembered
from tests.memory.conftest import Write

TUESDAY = "Deploys to production happen on Tuesday after 15:00, never before a holiday."
THURSDAY = "Deploys to production happen on Thursday after 15:00, never before a holiday."


@pytest.fixture
def real(tmp_path: Path) -> Config:
    """The settings of a user: the real model."""
    return Config(index=IndexConfig(cache=str(tmp_path / "cache")))


@pytest.fixture
def memory(root: Path, real: Config) -> Iterator[Memory]:
    with Memory.open(root, config=real, background=False) as opened:
        yield opened


def files(folder: Path) -> dict[str, bytes]:
    """All that people see of a memory: its files but what is hidden."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    }


def holding(text: str, folder: Path) -> list[Path]:
    """Every file below the folder in which the text stands."""
    wanted = (text.encode(), json.dumps(text)[1:-1].encode(), text.lower().encode())
    return [
        file for file in folder.rglob("*") if file.is_file() and any(needle in file.read_bytes() for needle in wanted)
    ]


def test_a_fact_lives_from_remembering_to_real_forgetting(memory: Memory, root: Path, tmp_path: Path) -> None:
    memory.remember("The design tokens live in packages/theme.", type="reference")
    first = memory.remember(TUESDAY, type="project")
    assert first.outcome is Outcome.CREATED
    assert memory.recall("什么时候部署到生产环境？").hits[0].topic.id == first.id  # in the other language

    changed = memory.remember(THURSDAY, type="project")
    assert (changed.outcome, changed.id) == (Outcome.SUPERSEDED, first.id)
    hits = memory.recall("When do we deploy to production?").hits
    assert [("Thursday" in hit.topic.body, bool(hit.topic.superseded_by)) for hit in hits[:2]] == [
        (True, False),
        (False, True),
    ]
    assert all(hit.explain() for hit in hits)
    assert "Thursday" in (root / "MEMORY.md").read_text(encoding="utf-8")
    assert "Tuesday" not in (root / "MEMORY.md").read_text(encoding="utf-8").replace(first.id, "")

    before = files(root)
    plan = memory.forget("deploys to production")
    assert {item.text for item in plan.items} == {TUESDAY, THURSDAY}
    assert files(root) == before
    run = plan.apply()
    assert not any("deploys" in name for name in files(root))
    assert "Thursday" not in (root / "MEMORY.md").read_text(encoding="utf-8")
    assert memory.recall("When do we deploy to production?").hits == ()

    memory.restore(run).apply()
    assert files(root) == before
    assert memory.recall("When do we deploy to production?").hits[0].topic.id == first.id

    memory.forget("deploys to production").apply(purge=True)
    memory.traces()  # waits until all are written
    for text in (TUESDAY, THURSDAY, "deploys to production", "When do we deploy"):
        assert holding(text, tmp_path) == [], text
    assert "packages/theme" in memory.recall("where are the design tokens?").hits[0].topic.body


def test_what_the_header_of_a_topic_told_of_a_fact_goes_with_it(memory: Memory, root: Path, tmp_path: Path) -> None:
    done = memory.remember("The vault code of the office is ZEBRA-991-QUAGGA", type="project")
    assert done.file is not None
    with done.file.open("a", encoding="utf-8") as stream:
        stream.write("\nThe key lies under the mat.\n")
    memory.forget("ZEBRA-991-QUAGGA").apply(purge=True)
    topic = memory.topic(done.id)
    assert (topic.title, topic.description) == ("The key lies under the mat.", "The key lies under the mat.")
    assert holding("ZEBRA-991-QUAGGA", tmp_path) == []
    assert memory.recall("what is the vault code?").hits == () or "ZEBRA" not in memory.recall("vault code?").prompt


def test_forgetting_what_holds_takes_what_it_superseded_along(memory: Memory, root: Path) -> None:
    for port in (8000, 9000, 9500):
        memory.remember(f"The staging proxy listens on port {port}", type="project")
    assert len(memory.topics()) == 3
    current = next(topic for topic in memory.topics() if not topic.superseded_by)
    plan = memory.delete(current.id)
    assert sorted("8000" in item.text or "9000" in item.text for item in plan.items) == [False, True, True]
    run = plan.apply()
    assert memory.topics() == []
    memory.restore(run).apply()
    assert len(memory.topics()) == 3


def test_what_was_forgotten_in_one_scope_does_not_come_back_in_the_other(tmp_path: Path, real: Config) -> None:
    with Memory.open(tmp_path / "p", user_root=tmp_path / "u", config=real, background=False) as memory:
        fact = "The user's home town is Bergen"
        memory.remember(fact, type="user")
        memory.forget(fact).apply()
        assert memory.remember(fact, type="project", origin="web").outcome is Outcome.FORGOTTEN
        assert memory.remember(fact, type="project").outcome is Outcome.CREATED


def test_what_was_forgotten_comes_back_only_when_its_owner_says_so(memory: Memory) -> None:
    memory.remember("用户住在杭州，时区是 UTC+8", type="user")
    memory.forget("用户住在杭州").apply()
    refused = memory.remember(" 用户住在杭州，时区是 utc+8。", type="user", origin="agent")
    assert refused.outcome is Outcome.FORGOTTEN
    assert refused.file is None
    assert memory.topics() == []
    assert memory.remember("用户住在杭州，时区是 UTC+8", type="user", origin="owner").outcome is Outcome.CREATED
    assert memory.remember("用户住在杭州，时区是 UTC+8", type="user", origin="agent").outcome is Outcome.KNOWN


def test_restoring_what_was_forgotten_lets_others_say_it_again(memory: Memory) -> None:
    memory.remember("The staging database is wiped every night", type="project")
    run = memory.forget("staging database").apply()
    memory.restore(run).apply()
    again = memory.remember("The staging database is wiped every night", type="project", origin="agent")
    assert again.outcome is Outcome.KNOWN


def test_a_request_finds_what_it_means_in_other_words_and_another_language(memory: Memory) -> None:
    memory.remember("All answers to this user should be in French", type="feedback")
    memory.remember("The CI cache is keyed by the lock file", type="project")
    assert [item.text for item in memory.forget("用法语回答").items] == ["All answers to this user should be in French"]
    assert not memory.forget("the recipe for apple pie")
    assert not memory.forget("   ")


def test_a_plan_to_forget_holds_while_others_write_elsewhere_in_the_file(memory: Memory, write: Write) -> None:
    file = write("many.md", "first fact\n\nsecond fact")
    plan = memory.forget("second fact")
    file.write_text(file.read_text(encoding="utf-8").replace("first fact", "first fact, said better"), encoding="utf-8")
    plan.apply()
    assert "first fact, said better" in file.read_text(encoding="utf-8")
    assert "second" not in file.read_text(encoding="utf-8")


def test_a_plan_to_forget_is_refused_once_the_entry_says_something_else(memory: Memory, write: Write) -> None:
    file = write("many.md", "first fact\n\nsecond fact")
    plan = memory.forget("second fact")
    file.write_text(file.read_text(encoding="utf-8").replace("second fact", "second fact is new"), encoding="utf-8")
    with pytest.raises(StalePlanError):
        plan.apply()
    assert "second fact is new" in file.read_text(encoding="utf-8")


def test_an_edit_is_refused_when_the_file_changed_under_the_editor(memory: Memory, write: Write) -> None:
    file = write("a.md", "old")
    seen = file.read_text(encoding="utf-8")
    file.write_text(seen + "\nby somebody else\n", encoding="utf-8")
    with pytest.raises(StalePlanError):
        memory.edit("a", seen.replace("old", "new"), seen=seen)


def test_an_edit_keeps_line_ends_and_byte_order_mark(memory: Memory, root: Path) -> None:
    (root / "w.md").write_bytes("\ufeff---\r\nname: W\r\n---\r\nold\r\n".encode())
    memory.edit("w.md", "---\nname: W\n---\nnew\n").apply()
    assert (root / "w.md").read_bytes() == "\ufeff---\r\nname: W\r\n---\r\nnew\r\n".encode()
    memory.restore().apply()
    assert (root / "w.md").read_bytes() == "\ufeff---\r\nname: W\r\n---\r\nold\r\n".encode()


def test_several_facts_in_one_text_are_known_when_they_come_again(memory: Memory) -> None:
    text = "- first bullet about kiwis\n- second bullet about mangos"
    done = memory.remember(text, type="project")
    again = memory.remember(text, type="project")
    assert (done.outcome, again.outcome, again.id) == (Outcome.CREATED, Outcome.KNOWN, done.id)
    assert memory.remember(f"{text}\n- third bullet about plums", type="project").outcome is Outcome.CREATED


def test_files_without_a_fact_or_in_another_encoding_can_be_deleted_whole(memory: Memory, root: Path) -> None:
    (root / "empty.md").write_bytes(b"")
    (root / "wide.md").write_bytes("a wide fact\n".encode("utf-16"))
    run = memory.delete("empty", "wide.md").apply()
    assert files(root) == {}
    memory.restore(run).apply()
    assert files(root).keys() >= {"empty.md", "wide.md"}
    (root / "wide.md").write_bytes("one fact\n\nanother fact\n".encode("utf-16"))
    with pytest.raises(TopicError, match="UTF-8"):
        memory.delete("wide.md:0")


def test_more_than_the_limit_is_told(memory: Memory, write: Write) -> None:
    for number in range(8):
        write(f"{number}.md", f"The Frobnitz number {number} is in the cellar")
    plan = memory.forget("frobnitz number")
    assert len(plan.items) == 5
    assert "3 more hold it; a greater limit takes more" in plan.notes
    assert len(memory.forget("frobnitz number", limit=400).items) == 8
    assert not memory.forget("frobnitz number 3").is_guess


def test_what_is_chosen_by_meaning_is_told_so(memory: Memory) -> None:
    memory.remember("All answers to this user should be in French", type="feedback")
    plan = memory.forget("用法语回答")
    assert plan.is_guess
    assert any("by what they mean" in note for note in plan.notes)


def test_ids_that_are_not_there_are_named(memory: Memory) -> None:
    with pytest.raises(TopicError, match="nowhere"):
        memory.delete("nowhere.md")
    with pytest.raises(TopicError, match="nowhere"):
        memory.edit("nowhere", "text")


@pytest.mark.parametrize("text", ["", "  \n ", "…", "a\0b", "\ud800"])
def test_nothing_is_remembered_of_an_empty_or_broken_text(memory: Memory, root: Path, text: str) -> None:
    with pytest.raises(TopicError):
        memory.remember(text, type="project")
    assert files(root) == {}


def test_text_cannot_write_outside_the_memory_or_break_its_header(memory: Memory, root: Path) -> None:
    done = memory.remember("../../etc/passwd\n---\nname: evil\ntype: user\n---\n", type="project")
    assert done.file is not None
    assert done.file.parent == root
    topic = memory.topic(done.id)
    assert topic.title != "evil"
    assert topic.type == "project"


def test_user_memory_takes_what_is_about_the_user(tmp_path: Path, real: Config) -> None:
    with Memory.open(tmp_path / "p", user_root=tmp_path / "u", config=real, background=False) as memory:
        of_user = memory.remember("Prefers short answers", type="feedback")
        of_project = memory.remember("The release train leaves every second Monday", type="project")
        assert of_user.id.startswith("user:")
        assert not of_project.id.startswith("user:")
        # Known in one scope, it is not written into the other.
        assert memory.remember("Prefers short answers", type="project").outcome is Outcome.KNOWN
        memory.delete(of_user.id, of_project.id).apply()
        assert memory.topics() == []
        memory.restore().apply()
        assert len(memory.topics()) == 2


def test_a_host_without_user_memory_says_so(memory: Memory) -> None:
    with pytest.raises(TopicError, match="across projects"):
        memory.remember("Prefers tabs", type="user", scope="user")


def test_a_change_that_was_stopped_is_ended_at_the_next_opening(root: Path, real: Config, write: Write) -> None:
    file = write("a.md", "old fact")
    context = multiprocessing.get_context("spawn")
    worker = context.Process(target=_die_in_the_middle, args=(root, real))
    worker.start()
    worker.join()
    assert worker.exitcode == 9
    assert file.exists()
    with Memory.open(root, config=real, background=False) as memory:
        assert memory.topics() == []
        memory.restore().apply()
        assert [topic.id for topic in memory.topics()] == ["a.md"]


@pytest.mark.parametrize("at", ["pending.json", "run.json"])
def test_a_purge_that_was_stopped_is_ended_at_the_next_opening(
    root: Path, real: Config, write: Write, tmp_path: Path, at: str
) -> None:
    write("a.md", "the quokka lives on Rottnest")
    context = multiprocessing.get_context("spawn")
    worker = context.Process(target=_die_in_the_middle, args=(root, real, at, True))
    worker.start()
    worker.join()
    assert worker.exitcode == 9
    with Memory.open(root, config=real, background=False) as memory:
        assert memory.topics() == []
        assert memory.runs() == []
    assert holding("quokka", tmp_path) == []


def _die_in_the_middle(root: Path, config: Config, at: str = "pending.json", purges: bool = False) -> None:
    from recall.store import disk
    from recall.store.disk import Step

    def watch(step: Step, path: Path, _old: Path | None) -> None:
        if step in {Step.RENAME, Step.CREATE} and path.name == at:
            os._exit(9)

    with Memory.open(root, config=config, background=False) as memory:
        plan = memory.delete("a.md")
        disk.watch = watch
        plan.apply(purge=purges)


def test_what_was_removed_long_ago_goes_with_the_next_change(root: Path, real: Config, write: Write) -> None:
    config = replace(real, encoder=EncoderConfig(model="off"), trash=TrashConfig(keep_days=2))
    now = 1_775_600_000.0
    for name in ("a.md", "b.md", "c.md"):
        write(name, f"fact {name}")
    with Memory.open(root, config=config, background=False, clock=lambda: now) as memory:
        old = memory.delete("a.md").apply()
        now += 86_400
        young = memory.delete("b.md").apply()
        now += 86_401
        (root / ".trash" / "0-not-ours").mkdir()
        assert {one.run.id for one in memory.runs()} == {old.id, young.id}
        last = memory.delete("c.md").apply()
        assert [one.run.id for one in memory.runs()] == [last.id, young.id]
    assert not (root / ".trash" / old.id).exists()
    assert (root / ".trash" / "0-not-ours").is_dir()


@pytest.mark.parametrize("days", [1e9, float("inf")])
def test_what_was_removed_may_be_kept_for_ever(root: Path, real: Config, write: Write, days: float) -> None:
    config = replace(real, encoder=EncoderConfig(model="off"), trash=TrashConfig(keep_days=days))
    write("a.md", "fact")
    now = 0.0
    with Memory.open(root, config=config, background=False, clock=lambda: now) as memory:
        first = memory.delete("a.md").apply()
        now = 4e9
        memory.remember("another one", type="project")
        assert first.id in {one.run.id for one in memory.runs()}


# --- many at once

_EACH = int(os.environ.get("RECALL_WRITES", "40"))  # the issue asks for 200, which takes a minute and a half


def test_two_processes_that_remember_forget_and_edit_lose_no_line(root: Path, real: Config) -> None:
    config = replace(real, encoder=EncoderConfig(model="off"))
    entries = "\n\n".join(
        f"{name}{number} goes {_word(name, number)}" for name in "ab" for number in range(0, _EACH, 4)
    )
    (root / "outside.md").write_text(f"---\nname: outside\n---\n\n{entries}\n", encoding="utf-8")
    (root / "MEMORY.md").write_text("# Index\n", encoding="utf-8")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_work, args=(root, config, name, _EACH)) for name in "ab"]
    stop = threading.Event()
    written: list[int] = []
    editor = threading.Thread(target=_edit_outside, args=(root, stop, written))
    editor.start()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    stop.set()
    editor.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    with Memory.open(root, config=config, background=False) as memory:
        bodies = {topic.body for topic in memory.topics()}
    index = (root / "MEMORY.md").read_text(encoding="utf-8")
    outside = (root / "outside.md").read_text(encoding="utf-8")
    assert written
    for number in written:  # what somebody else wrote meanwhile, into both
        assert f"- outside {number}.\n" in index
        assert f"outside {number}." in outside
    for name in "ab":
        for number in range(_EACH):
            kept = f"{name}{number} is kept {_word(name, number)}"
            assert kept in bodies
            assert kept in index
        for number in range(0, _EACH, 4):
            assert f"{name}{number} goes" not in outside


def _word(name: str, number: int) -> str:
    """Words that no other fact has."""
    return f"q{name}x{number:03}z"


def _work(root: Path, config: Config, name: str, count: int) -> None:
    with Memory.open(root, config=config, background=False) as memory:
        for number in range(count):
            done: Remembered = memory.remember(f"{name}{number} is kept {_word(name, number)}", type="project")
            assert done.outcome is Outcome.CREATED, done
            if number % 4 == 0:
                plan = memory.forget(f"{name}{number} goes {_word(name, number)}")
                assert len(plan.items) == 1, plan
                run = plan.apply()
                assert not run.skipped, run


def _edit_outside(root: Path, stop: threading.Event, written: list[int]) -> None:
    """Adds lines as a careless editor does, to the index and to the topic that the others take entries out of."""
    number = 0
    while not stop.wait(0.2):
        number += 1
        for file, line in (("MEMORY.md", f"- outside {number}.\n"), ("outside.md", f"\noutside {number}.\n")):
            with (root / file).open("a", encoding="utf-8") as stream:
                stream.write(line)
        written.append(number)
