"""Memory as a host uses it: true to the folder, over two scopes, with events."""

import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from recall import (
    Config,
    ConfigError,
    Memory,
    PrefetchEvent,
    Recall,
    RecallError,
    RecallEvent,
    Scope,
    Strategy,
    SyncReport,
    Topic,
    TopicError,
)
from recall.config import EncoderConfig, IndexConfig, SearchConfig
from recall.index import flat
from recall.index.hashing import HashingEncoder
from recall.index.home import Home
from recall.memory.events import Event
from recall.store.locks import exclusive

LONG_S = 60.0  # an upper bound that only a broken implementation reaches

Write = Callable[..., Path]
Open = Callable[..., Memory]


def ids(found: Recall) -> list[str]:
    return [hit.topic.id for hit in found.hits]


# --- true to the folder


def test_what_happened_to_the_files_before_a_recall_shows_in_it(opened: Open, write: Write) -> None:
    memory = opened()
    assert memory.recall("zebra crossing").hits == ()
    file = write("a.md", "zebra crossing")
    assert ids(memory.recall("zebra crossing")) == ["a.md"]
    write("a.md", "no animals at all")
    assert memory.recall("zebra crossing").hits == ()
    temporary = file.with_suffix(".tmp")
    temporary.write_text("the zebra crossing again", encoding="utf-8")
    temporary.replace(file)
    assert ids(memory.recall("zebra crossing")) == ["a.md"]
    file.rename(file.with_name("b.md"))
    assert ids(memory.recall("zebra crossing")) == ["b.md"]
    (file.parent / "b.md").unlink()
    assert memory.recall("zebra crossing").hits == ()


def test_a_text_of_the_same_length_and_time_is_seen_when_the_file_is_another(opened: Open, write: Write) -> None:
    """What `cp -p` over an atomic save leaves: only the number of the file tells."""
    memory = opened()
    file = write("a.md", "zebra crossing")
    os.utime(file, (1000, 1000))
    memory.recall("zebra")
    other = write("b.tmp", "tiger crossing")
    os.utime(other, (1000, 1000))
    other.replace(file)
    assert memory.recall("zebra").hits == ()
    assert ids(memory.recall("tiger")) == ["a.md"]


def test_a_second_edit_in_the_same_tick_of_the_clock_is_seen(opened: Open, write: Write) -> None:
    """Size, time and number of the file are those of the first edit."""
    memory = opened()
    second = time.time_ns() // 10**9 * 10**9  # a whole one: of a file system that counts no less
    for word in ("zebra", "tiger", "mouse"):
        file = write("a.md", f"{word} crossing")
        os.utime(file, ns=(second, second))
        assert ids(memory.recall(word)) == ["a.md"]
        assert memory.recall(word).coverage.behind == ()


def test_an_index_that_others_throw_away_after_every_look_is_told_of(
    opened: Open, write: Write, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recall.index.collection._LOCK_WAIT_S", 0.0)
    write("a.md", "zebra crossing")
    memory = opened()
    folder, look, locks = memory.status()[0].folder, memory._keeper.look, ExitStack()

    def followed(**how: bool) -> str:
        locks.close()
        said = look(**how)
        Home(root, tmp_path / "cache").open(afresh=True).close()
        locks.enter_context(exclusive(folder / "words.lock", timeout_s=0.0))
        return said

    with locks:
        monkeypatch.setattr(memory._keeper, "look", followed)
        found = memory.recall("zebra")
    assert found.hits == ()
    assert "made anew" in found.coverage.note
    assert found.coverage.behind == ("a.md",)
    monkeypatch.undo()
    assert ids(memory.recall("zebra")) == ["a.md"]


def test_a_few_new_topics_have_their_vectors_in_the_first_answer(opened: Open, write: Write) -> None:
    for number in range(16):
        write(f"{number}.md", f"words of {number}")
    found = opened().recall("words")
    assert (found.coverage.topics, found.coverage.embedded, found.coverage.note) == (16, 16, "")


def test_of_many_new_topics_the_rest_is_found_by_its_words_and_that_is_said(opened: Open, write: Write) -> None:
    for number in range(40):
        os.utime(write(f"{number}.md", f"words of {number}, animal{number}"), (1000 + number, 1000 + number))
    memory = opened()
    found = memory.recall("animal3")
    assert ids(found) == ["3.md"]
    assert found.coverage.embedded == 16
    assert found.coverage.note.startswith("24 of 40 topics")
    memory.reindex()
    assert memory.recall("animal3").coverage.note == ""


def test_the_first_recall_waits_for_the_words_that_the_background_is_reading(opened: Open, write: Write) -> None:
    for number in range(300):
        write(f"{number}.md", f"words of {number}, animal{number}")
    found = opened(background=True).recall("animal250")
    assert ids(found)[:1] == ["250.md"]
    assert found.coverage.topics == 300


def test_a_recall_waits_for_others_that_are_reading_the_folder(opened: Open, write: Write) -> None:
    memory = opened()
    memory.reindex()
    write("a.md", "zebra crossing")
    found: list[Recall] = []
    asking = threading.Thread(target=lambda: found.append(memory.recall("zebra crossing")), daemon=True)
    with exclusive(memory.status()[0].folder / "words.lock", timeout_s=LONG_S):
        write("b.md", "zebra crossing as well")
        asking.start()
        asking.join(0.2)
        assert asking.is_alive()
    asking.join(LONG_S)
    assert sorted(ids(found[0])) == ["a.md", "b.md"]
    assert found[0].coverage.note == ""


def test_the_background_makes_the_index_without_being_asked(opened: Open, write: Write) -> None:
    for number in range(40):
        write(f"{number}.md", f"words of {number}")
    done = threading.Event()

    def listen(event: Event) -> None:
        if isinstance(event, SyncReport) and event.embedded:
            done.set()

    memory = opened(background=True, on_event=listen)
    assert done.wait(LONG_S)
    assert memory.recall("words").coverage.embedded == 40


def test_an_answer_shows_topic_score_and_prompt(opened: Open, write: Write) -> None:
    write("deploy.md", "我们周二发布，周五不发布。", title="发布", description="什么时候可以上线")
    found = opened().recall("什么时候发布上线？")
    (hit,) = found.hits
    assert (hit.topic.title, hit.topic.description, hit.topic.scope) == ("发布", "什么时候可以上线", Scope.PROJECT)
    assert hit.topic.body == "我们周二发布，周五不发布。"
    assert (hit.cosine, hit.lexical) != (None, None)
    assert found.strategy is Strategy.HYBRID
    assert found.query == "什么时候发布上线？"
    assert "我们周二发布" in found.prompt
    assert found.duration_s > 0


@pytest.mark.parametrize("k", [1, 3, 100])
def test_k_bounds_the_hits(opened: Open, write: Write, k: int) -> None:
    for number in range(6):
        write(f"{number}.md", f"zebra number {number}")
    assert len(opened().recall("zebra", k=k).hits) == min(k, 6)


def test_the_settings_bound_them_else(write: Write, opened: Open, config: Config) -> None:
    for number in range(6):
        write(f"{number}.md", f"zebra number {number}")
    settings = Config(search=SearchConfig(k=2), index=config.index, encoder=config.encoder)
    assert len(opened(config=settings).recall("zebra").hits) == 2
    assert len(opened().recall("zebra").hits) == 5


def test_excluded_topics_are_not_found_again(opened: Open, write: Write, tmp_path: Path) -> None:
    write("a.md", "zebra")
    write("b.md", "zebra and tiger")
    write("a.md", "zebra 7", folder=tmp_path / "user")
    memory = opened(user_root=tmp_path / "user")
    assert sorted(ids(memory.recall("zebra"))) == ["a.md", "b.md", "user:a.md"]
    assert ids(memory.recall("zebra", exclude=["a.md", "b.md"])) == ["user:a.md"]
    assert sorted(ids(memory.recall("zebra", exclude={"user:a.md", "no such.md"}))) == ["a.md", "b.md"]


def test_nonsense_finds_nothing(opened: Open, write: Write) -> None:
    write("a.md", "we deploy on Tuesdays")
    found = opened().recall("qwrtz plmk vbnx")
    assert (found.hits, found.strategy, found.prompt) == ((), Strategy.NONE, "")


def test_another_search_and_another_encoder_can_be_put_in(opened: Open, write: Write) -> None:
    write("a.md", "zebra crossing")
    memory = opened(index=flat.products, encoder=HashingEncoder(32))
    found = memory.recall("zebra crossing")
    assert ids(found) == ["a.md"]
    assert memory.status()[0].encoder == HashingEncoder(32).fingerprint


def test_without_a_model_words_are_searched(opened: Open, write: Write, config: Config) -> None:
    write("a.md", "zebra crossing")
    memory = opened(config=Config(index=config.index, encoder=EncoderConfig(model="off")))
    found = memory.recall("zebra crossing")
    assert (ids(found), found.strategy) == (["a.md"], Strategy.HEURISTIC)
    assert found.hits[0].cosine is None
    assert memory.reindex().note == ""


# --- another model


class Retrained(HashingEncoder):
    """Same width, same name, other vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.fingerprint += "-retrained"


@pytest.mark.parametrize("other", [Retrained(), HashingEncoder(32)], ids=["same width", "narrower"])
def test_another_model_never_mixes_its_vectors_with_those_of_the_last(
    opened: Open, write: Write, other: HashingEncoder
) -> None:
    for number in range(40):
        write(f"{number}.md", f"words of animal{number}")
    opened().reindex()
    memory = opened(encoder=other)
    found = memory.recall("animal3 words")
    assert found.coverage.embedded == 16
    assert HashingEncoder().fingerprint in found.coverage.note
    report = memory.reindex()
    assert (report.embedded, report.unembedded) == (24, ())
    fresh = opened(encoder=other, config=Config(index=IndexConfig(cache=str(memory.status()[0].folder / "fresh"))))
    fresh.reindex()
    assert memory.recall("animal3 words").hits == fresh.recall("animal3 words").hits


# --- scopes


def test_project_and_user_memory_are_both_kept_under_one_name(opened: Open, write: Write, tmp_path: Path) -> None:
    write("style.md", "answer briefly in this project")
    write("style.md", "answer briefly everywhere", folder=tmp_path / "user")
    memory = opened(user_root=tmp_path / "user")
    assert sorted(ids(memory.recall("answer briefly"))) == ["style.md", "user:style.md"]
    assert [topic.id for topic in memory.topics()] == ["style.md", "user:style.md"]
    assert memory.topic("user:style").body == "answer briefly everywhere"
    assert memory.topic("style.md").body == "answer briefly in this project"
    assert [status.scope for status in memory.status()] == [Scope.PROJECT, Scope.USER]


def test_a_user_folder_that_is_the_memory_itself_is_opened_once(opened: Open, write: Write, root: Path) -> None:
    write("a.md", "zebra")
    assert ids(opened(user_root=root).recall("zebra")) == ["a.md"]


def test_a_missing_user_folder_costs_only_a_note(opened: Open, write: Write, tmp_path: Path) -> None:
    write("a.md", "zebra")
    found = opened(user_root=tmp_path / "nowhere").recall("zebra")
    assert ids(found) == ["a.md"]
    assert "nowhere" in found.coverage.note


# --- topics and status


def test_topics_are_given_by_path_and_found_by_name(opened: Open, write: Write) -> None:
    for path in ("b.md", "a.md", "sub/c.md"):
        write(path, f"text of {path}")
    memory = opened()
    assert [topic.path for topic in memory.topics()] == ["a.md", "b.md", "sub/c.md"]
    assert isinstance(memory.topic("sub/c"), Topic)
    with pytest.raises(TopicError, match="among 3"):
        memory.topic("missing")


def test_status_accounts_for_every_file(opened: Open, write: Write, root: Path) -> None:
    write("a.md", "zebra")
    write("MEMORY.md", "- [a](a.md)")
    write(".hidden/x.md", "x")
    write("broken.md", "").write_bytes(b"\0" * 999)
    memory = opened()
    memory.reindex()
    (status,) = memory.status()
    assert (status.root, status.coverage.topics, status.coverage.embedded) == (root, 1, 1)
    assert [path for path, _ in status.report.skipped] == [".hidden", "MEMORY.md"]
    assert list(status.problems) == ["broken.md"]
    assert status.bytes > 10_000
    assert status.encoder == HashingEncoder().fingerprint


def test_what_was_read_once_is_kept(opened: Open, write: Write) -> None:
    write("a.md", "zebra")
    first = opened().reindex()
    again = opened().reindex()
    assert (first.added, first.embedded, first.kept) == (("a.md",), 1, 0)
    assert (again.added, again.embedded, again.kept) == ((), 0, 1)


def test_a_full_reindex_makes_everything_anew(opened: Open, write: Write) -> None:
    write("a.md", "zebra")
    memory = opened()
    memory.reindex()
    steps: list[tuple[str, int, int]] = []
    report = memory.reindex(full=True, on_progress=lambda *step: steps.append(step))
    assert (report.added, report.embedded, report.kept) == (("a.md",), 1, 0)
    assert steps == [("words", 1, 1), ("vectors", 1, 1)]
    assert ids(memory.recall("zebra")) == ["a.md"]


# --- events


def test_searches_deliveries_and_synchronisations_are_told_without_any_text(opened: Open, write: Write) -> None:
    write("a.md", "zebra crossing")
    events: list[Event] = []
    memory = opened(on_event=events.append)
    memory.reindex()
    found = memory.recall("zebra")
    memory.prefetch("zebra").first(LONG_S)
    told = next(event for event in events if isinstance(event, RecallEvent))
    assert (told.query_chars, told.scanned, told.selected, told.strategy) == (5, 1, 1, Strategy.HYBRID)
    assert told.duration_s == found.duration_s
    assert {type(event) for event in events} == {RecallEvent, PrefetchEvent, SyncReport}
    assert "zebra" not in repr(events)


def test_an_exception_of_a_listener_is_logged_and_dropped(
    opened: Open, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    write("a.md", "zebra crossing")

    def fail(event: Event) -> None:
        raise RuntimeError(f"no {type(event)}")

    memory = opened(on_event=fail)
    memory.reindex()
    assert ids(memory.recall("zebra")) == ["a.md"]
    assert memory.prefetch("zebra").first(LONG_S) is not None
    assert "RuntimeError" in caplog.text


# --- opening and closing


def test_a_memory_may_be_closed_twice_and_then_says_that_it_is_closed(root: Path, config: Config) -> None:
    with Memory.open(root, config=config) as memory:
        memory.close()
    memory.close()
    with pytest.raises(RecallError, match="closed"):
        memory.recall("zebra")
    assert memory.prefetch("zebra").first(LONG_S) is None


def test_closing_ends_the_threads_of_the_background(root: Path, config: Config) -> None:
    before = {thread.name for thread in threading.enumerate()}
    with Memory.open(root, config=config) as memory:
        memory.recall("zebra")
    assert {thread.name for thread in threading.enumerate()} - before <= {"recall-alarm"}


def test_settings_come_from_the_environment_when_none_are_given(
    write: Write, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.md", "zebra")
    monkeypatch.setenv("RECALL_ENCODER__MODEL", "hashing")
    monkeypatch.setenv("RECALL_SEARCH__K", "3")
    with Memory.open(root, project=tmp_path, background=False) as memory:
        assert (memory.config.search.k, memory.config.encoder.model) == (3, "hashing")
        assert ids(memory.recall("zebra")) == ["a.md"]
        assert memory.status()[0].folder.is_relative_to(tmp_path / "cache")


def test_a_setting_that_cannot_be_used_is_named(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECALL_SEARCH__K", "many")
    with pytest.raises(ConfigError, match=r"search\.k"):
        Memory.open(root, project=tmp_path)
    monkeypatch.delenv("RECALL_SEARCH__K")
    with pytest.raises(ConfigError, match="gopher"):
        Memory.open(root, project=tmp_path, layout="gopher")


def test_a_relative_folder_stays_the_same_when_the_process_moves(
    opened: Open, write: Write, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.md", "zebra")
    monkeypatch.chdir(root.parent)
    memory = opened(Path("memory"))
    monkeypatch.chdir("/")
    assert ids(memory.recall("zebra")) == ["a.md"]


@pytest.fixture
def _homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user that the system does not know, as containers have them."""

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "RECALL_INDEX__CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)


@pytest.mark.usefixtures("_homeless")
def test_without_a_home_the_index_is_temporary_and_nothing_is_taken_from_the_working_folder(
    write: Write, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    trap = project / "~" / ".config" / "recall"
    trap.mkdir(parents=True)
    (trap / "config.toml").write_text("[search]\nk = 77\n", encoding="utf-8")
    monkeypatch.chdir(project)
    monkeypatch.setenv("RECALL_ENCODER__MODEL", "hashing")
    write("a.md", "zebra")
    with Memory.open(root, background=False) as memory:
        found = memory.recall("zebra")
        assert memory.config.search.k == 5
    assert ids(found) == ["a.md"]
    assert "temporary" in found.coverage.note
    assert [path.name for path in (project / "~").iterdir()] == [".config"]


@pytest.mark.usefixtures("_homeless")
def test_without_a_home_a_cache_folder_in_it_is_a_wrong_setting(root: Path) -> None:
    with pytest.raises(ConfigError, match=r"index\.cache"):
        Memory.open(root, config=Config(index=IndexConfig(cache="~/cache")))


# --- the real model


@pytest.fixture(scope="session")
def model() -> object:
    from recall.index.onnx import OnnxEncoder

    encoder = OnnxEncoder()
    encoder.warm_up()
    return encoder


@pytest.mark.model
def test_the_shipped_model_finds_across_languages(opened: Open, write: Write, config: Config, model: object) -> None:
    write("deploy.md", "我们每周二发布上线，周五不允许发布。", title="发布窗口")
    write("coffee.md", "The user takes his cappuccino without sugar.", title="coffee")
    write("tests.md", "Run the unit tests before every commit.", title="tests")
    memory = opened(encoder=model, config=Config(index=config.index))
    found = memory.recall("On which day of the week may we deploy?")
    assert ids(found)[:1] == ["deploy.md"]
    assert found.strategy is Strategy.HYBRID
    assert ids(memory.recall("提交代码之前要做什么？"))[:1] == ["tests.md"]


@pytest.mark.model
def test_the_shipped_model_is_taken_when_nothing_else_is_said(write: Write, root: Path, tmp_path: Path) -> None:
    write("deploy.md", "我们每周二发布上线。")
    with Memory.open(root, project=tmp_path, background=False) as memory:
        found = memory.recall("发布上线")
        assert ids(found) == ["deploy.md"]
        assert memory.status()[0].encoder.startswith("e5-small-zhen-int8")
        assert found.coverage.embedded == 1


# --- filters


def test_a_recall_is_filled_up_with_the_kinds_and_scopes_that_are_wanted(opened: Open, write: Write) -> None:
    for number in range(12):
        write(f"{number}.md", f"---\ntype: project\n---\nzebra crossing {number}")
    write("rule.md", "---\ntype: feedback\n---\nzebra crossing, and much else that is beside the point")
    memory = opened()
    memory.reindex()
    assert ids(memory.recall("zebra crossing", k=3, types=["feedback"])) == ["rule.md"]
    assert len(ids(memory.recall("zebra crossing", k=3, types=["project"]))) == 3
    assert len(ids(memory.recall("zebra crossing", k=20, types=["project", "feedback"]))) == 13
    assert ids(memory.recall("zebra crossing", scopes=["user"])) == []
    assert len(ids(memory.recall("zebra crossing", scopes=["project"]))) == 5
    with pytest.raises(ValueError, match="bogus"):
        memory.recall("zebra", types=["bogus"])
