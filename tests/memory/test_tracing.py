"""Traces of a memory in use: what leaves one, what does not, and that no recall is harmed."""

import gc
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import recall
from recall import Config, Drop, Memory, Origin, Phase, Recall, Scope
from recall.config import EncoderConfig, IndexConfig, SearchConfig, TracesConfig
from recall.index.hashing import HashingEncoder
from recall.memory.tracing import Tracer, trace_logs
from recall.store.locks import exclusive
from recall.store.traces import query_key, summarise

LONG_S = 60.0  # an upper bound that only a broken implementation reaches
TOKEN = "ghp_" + "a1B2c3D4e5" * 4

Write = Callable[..., Path]
Open = Callable[..., Memory]


def files(cache: Path) -> list[Path]:
    return sorted((cache / "traces").rglob("*.jsonl"))


def texts(cache: Path) -> str:
    return "".join(file.read_text(encoding="utf-8") for file in files(cache))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def animals(write: Write) -> None:
    for animal in ("zebra", "tiger", "quokka"):
        write(f"{animal}.md", f"the {animal} crosses the street")


@pytest.fixture
def quick(cache: Path) -> Config:
    """Settings under which words alone are searched and a result is published at once."""
    return Config(index=IndexConfig(cache=str(cache)), encoder=EncoderConfig(model="off"))


# --- what leaves a trace


@pytest.mark.usefixtures("animals")
def test_a_recall_leaves_what_it_handed_over_for_whom_and_when(opened: Open) -> None:
    memory = opened(clock=lambda: 1_775_640_600.25)
    found = memory.recall("Zebra crosses", origin=Origin("mcp", "s1", interactive=False))
    (trace,) = memory.traces()
    assert [hit.path for hit in trace.hits] == [hit.topic.path for hit in found.hits]
    assert [hit.score for hit in trace.hits] == pytest.approx([hit.score for hit in found.hits], abs=1e-6)
    relevance = [hit.relevance for hit in trace.hits]
    assert relevance == sorted(relevance, reverse=True)
    assert (trace.time, trace.query, trace.key) == (1_775_640_600.25, "Zebra crosses", query_key("zebra crosses"))
    assert (trace.surface, trace.session, trace.interactive) == ("mcp", "s1", False)
    assert (trace.phase, trace.strategy) == ("", "hybrid")


@pytest.mark.usefixtures("animals")
def test_who_asks_can_leave_no_trace(opened: Open, quick: Config) -> None:
    memory = opened(config=quick)
    assert memory.recall("zebra", origin=None).hits
    assert memory.prefetch("zebra", origin=None).first(LONG_S) is not None
    memory.recall("tiger")
    assert [(trace.query, trace.surface) for trace in memory.traces()] == [("tiger", "library")]
    assert [trace.query for trace in opened().traces()] == ["tiger"]


@pytest.mark.usefixtures("animals")
def test_words_alone_are_calibrated_apart(opened: Open, quick: Config) -> None:
    memory = opened(config=quick)
    found = memory.recall("zebra street")
    (trace,) = memory.traces()
    assert trace.strategy == "heuristic"
    assert trace.hits[0].score == found.hits[0].score > 1.5
    assert 1 < trace.hits[0].relevance < 10


@pytest.mark.usefixtures("animals")
def test_searches_without_hits_leave_none(opened: Open, cache: Path) -> None:
    memory = opened()
    memory.recall("xylophone")
    memory.recall("   ")
    memory.recall("zebra", k=0)
    assert memory.prefetch("xylophone").first(LONG_S) is None
    memory.status()
    memory.topics()
    memory.reindex()
    assert memory.traces() == []
    assert files(cache) == []


@pytest.mark.usefixtures("animals")
def test_a_delivery_leaves_one(opened: Open, patient: Config) -> None:
    memory = opened(config=patient)
    memory.recall("warm", origin=None)
    delivery = memory.prefetch("zebra", origin=Origin("host", "s")).first()
    assert delivery is not None
    (trace,) = memory.traces()
    assert (trace.phase, trace.query, trace.surface) == (delivery.phase, "zebra", "host")
    assert [hit.path for hit in trace.hits] == [hit.topic.path for hit in delivery.recall.hits]


@pytest.mark.usefixtures("animals")
@pytest.mark.parametrize("reason", [Drop.NEW_QUERY, Drop.ABORT, Drop.NO_SAFE_DELIVERY_POINT])
def test_what_is_dropped_leaves_none(opened: Open, quick: Config, reason: Drop) -> None:
    ended = threading.Event()
    memory = opened(config=quick, on_event=lambda _: ended.set())
    handle = memory.prefetch("zebra")
    assert ended.wait(LONG_S)  # there is a result by now, or nearly
    handle.close(reason)
    assert handle.first() is None
    assert memory.traces() == []


class Slow(HashingEncoder):
    """Encodes queries only once the gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def encode_query(self, text: str) -> object:  # type: ignore[override]
        if text != "warm-up":
            assert self.gate.wait(LONG_S)
        return super().encode_query(text)


@pytest.mark.usefixtures("animals")
def test_both_deliveries_of_a_handle_are_one_recall_of_each_topic(opened: Open, cache: Path) -> None:
    settings = Config(search=SearchConfig(budget_ms=60_000, hold_ms=1, fast_k=1), index=IndexConfig(cache=str(cache)))
    refined, encoder = threading.Event(), Slow()
    memory = opened(config=settings, encoder=encoder, on_event=lambda event: ready(event, refined))
    memory.reindex()
    handle = memory.prefetch("zebra tiger street")
    first = handle.first()
    assert first is not None
    assert first.phase is Phase.FAST
    encoder.gate.set()
    later = None
    while later is None:
        assert refined.wait(LONG_S)
        later = handle.on_tool_result()
    fast, rest = memory.traces()
    assert (fast.phase, rest.phase) == ("fast", "refined")
    assert fast.id == rest.id
    counted = summarise(memory.traces())
    assert len(counted) == len(fast.hits) + len(rest.hits) > 1
    assert {one.recalls for one in counted.values()} == {1}
    assert memory.status()[0].traced == 1


def ready(event: object, refined: threading.Event) -> None:
    if isinstance(event, recall.RecallEvent) and event.strategy is recall.Strategy.HYBRID:
        refined.set()


@pytest.mark.usefixtures("animals")
def test_a_host_can_say_later_that_it_was_shown(opened: Open, quick: Config) -> None:
    memory = opened(config=quick)
    delivery = memory.prefetch("zebra", origin=None).first(LONG_S)
    assert delivery is not None
    assert memory.traces() == []
    memory.note_shown(delivery, Origin("hook", "s1"))
    (trace,) = memory.traces()
    assert (trace.surface, trace.session, trace.phase) == ("hook", "s1", delivery.phase)


def test_each_root_has_the_traces_of_its_own_topics(opened: Open, write: Write, tmp_path: Path) -> None:
    write("zebra.md", "the zebra crosses the street")
    write("zebra.md", "I like every zebra", folder=tmp_path / "user")
    memory = opened(user_root=tmp_path / "user")
    assert len(memory.recall("zebra").hits) == 2
    (of_project,), (of_user,) = memory.traces(), memory.traces(Scope.USER)
    assert [hit.path for hit in of_project.hits] == [hit.path for hit in of_user.hits] == ["zebra.md"]
    assert of_project.id == of_user.id
    assert opened(tmp_path / "user").traces() == [of_user]
    assert opened().traces(Scope.USER) == []


@pytest.mark.usefixtures("animals")
def test_credentials_and_long_questions_are_not_kept(opened: Open, quick: Config, cache: Path) -> None:
    memory = opened(config=quick)
    memory.recall(f"zebra with {TOKEN} and {'more ' * 50_000}")
    assert len(memory.traces()) == 1
    assert TOKEN[:12] not in texts(cache)
    assert "[masked github token]" in texts(cache)
    assert len(texts(cache)) < 1500


# --- settings


@pytest.mark.usefixtures("animals")
def test_nothing_is_noted_when_traces_are_off_and_old_ones_can_still_be_read(
    opened: Open, config: Config, cache: Path
) -> None:
    off = replace(config, traces=TracesConfig(enabled=False))
    memory = opened(config=off)
    memory.recall("zebra")
    assert memory.prefetch("zebra").first(LONG_S) is not None
    assert memory.traces() == []
    assert not (cache / "traces").exists()
    memory.close()
    on = opened()
    on.recall("zebra")
    on.close()  # which waits for what is being written
    assert len(opened(config=off).traces()) == 1


@pytest.mark.usefixtures("animals")
def test_the_setting_bounds_them(opened: Open, config: Config, cache: Path) -> None:
    memory = opened(config=replace(config, traces=TracesConfig(max_bytes=3000)))
    for number in range(30):
        memory.recall(f"zebra {number}")
    found = memory.traces()
    assert 3 < len(found) < 15
    assert found[-1].query == "zebra 29"
    assert len(texts(cache)) <= 3000


# --- staying, and going


@pytest.mark.usefixtures("animals")
def test_they_outlive_a_full_reindex(opened: Open) -> None:
    memory = opened()
    memory.recall("zebra")
    memory.reindex(full=True)
    assert len(memory.traces()) == 1
    assert len(opened().traces()) == 1


@pytest.mark.usefixtures("animals")
def test_closing_writes_what_is_noted(root: Path, config: Config, opened: Open) -> None:
    with Memory.open(root, config=config, background=False) as memory:
        for number in range(20):
            memory.recall(f"zebra {number}")
    assert [trace.query for trace in opened().traces()] == [f"zebra {number}" for number in range(20)]


@pytest.mark.usefixtures("animals")
def test_a_process_that_ends_without_closing_has_written_it(root: Path, cache: Path) -> None:
    script = """
import sys
from recall import Memory
memory = Memory.open(sys.argv[1], background=False)
assert memory.recall("zebra").hits
"""
    env = os.environ | {"RECALL_ENCODER__MODEL": "hashing", "PYTHONPATH": str(Path(recall.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", script, str(root)], env=env, capture_output=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, b"")
    assert '"query":"zebra"' in texts(cache)


@pytest.mark.usefixtures("animals")
def test_a_memory_that_is_thrown_away_leaves_no_thread(root: Path, config: Config) -> None:
    memory = Memory.open(root, config=config, background=False)
    memory.recall("zebra")
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "recall-traces"]
    del memory
    gc.collect()
    thread.join(LONG_S)
    assert not thread.is_alive()


@pytest.mark.usefixtures("animals")
def test_a_purged_topic_is_in_no_trace_of_any_root_and_neither_are_its_questions(
    opened: Open, write: Write, quick: Config, tmp_path: Path, cache: Path
) -> None:
    write("stripes.md", "I like every zebra", folder=tmp_path / "user")
    memory = opened(config=quick, user_root=tmp_path / "user")
    memory.recall("zebra on the street")
    memory.recall("zebra On the  street", exclude=["zebra.md"])
    memory.recall("quokka")
    memory.purge_traces(["zebra.md"])
    left = texts(cache)
    assert "zebra" not in left.lower()
    assert query_key("zebra on the street") not in left
    assert [trace.query for trace in memory.traces()][-1] == "quokka"
    of_user = summarise(memory.traces(Scope.USER))["stripes.md"]
    assert (of_user.recalls, len(of_user.queries)) == (2, 1)
    memory.purge_traces(["user:stripes.md"])
    assert "stripes" not in texts(cache)


# --- no recall is harmed


@pytest.mark.usefixtures("animals")
def test_a_folder_that_cannot_be_written_costs_one_line_in_the_log(
    opened: Open, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache.mkdir()
    (cache / "traces").write_text("in the way", encoding="utf-8")
    memory = opened()
    with caplog.at_level(logging.INFO):
        for number in range(5):
            assert memory.recall(f"zebra {number}").hits
        assert memory.traces() == []
    assert [record.message for record in caplog.records if "traces" in record.message] == [
        f"recalls leave no traces: [Errno 20] Not a directory: '{_only(memory)}'"
    ]
    assert memory.status()[0].traced == 0


def _only(memory: Memory) -> Path:
    logs = trace_logs({Scope.PROJECT: memory.located.chosen.root}, memory.config)
    return logs[Scope.PROJECT].folder


@pytest.mark.usefixtures("animals")
def test_a_full_queue_drops_and_counts_and_nobody_waits(opened: Open, config: Config) -> None:
    memory = opened()
    found = memory.recall("zebra", origin=None)
    tracer = own_tracer(memory, config)
    log = trace_logs({Scope.PROJECT: memory.located.chosen.root}, config)[Scope.PROJECT]
    log.folder.mkdir(parents=True)
    with exclusive(log.folder / "recalls.lock", timeout_s=LONG_S):
        for _ in range(400):
            tracer.record(found, Origin())
        assert tracer.lost >= 140
    assert tracer.flush(LONG_S)
    assert len(tracer.read(Scope.PROJECT)) + tracer.lost == 400
    tracer.close(LONG_S)


@pytest.mark.usefixtures("animals")
def test_a_clock_or_a_recall_that_fails_harms_nobody(opened: Open, config: Config) -> None:
    def broken() -> float:
        raise ValueError("no time")

    memory = opened()
    found = memory.recall("zebra", origin=None)
    tracer = own_tracer(memory, config, clock=broken)
    tracer.record(found, Origin())
    tracer.close(1)
    other = own_tracer(memory, config)
    other.record(replace(found, query="half \ud83d of one"), Origin())
    other.record(replace(found, hits=(replace(found.hits[0], score=float("nan")),)), Origin())
    other.record(replace(found, query="the last"), Origin())
    assert [trace.query for trace in other.read(Scope.PROJECT)] == ["half \ud83d of one", "the last"]
    other.close(1)


def own_tracer(memory: Memory, config: Config, clock: Callable[[], float] = lambda: 5.0) -> Tracer:
    logs = trace_logs({Scope.PROJECT: memory.located.chosen.root}, config)
    return Tracer(logs, memory._model, enabled=True, clock=clock)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.usefixtures("animals")
def test_a_forked_child_writes_its_own(root: Path, cache: Path) -> None:
    script = """
import os, sys
from recall import Memory
memory = Memory.open(sys.argv[1], background=False)
memory.recall("zebra before")
memory.traces()
if not (child := os.fork()):
    found = memory.recall("zebra after")
    memory.traces()
    os._exit(0)
os.waitpid(child, 0)
"""
    env = os.environ | {"RECALL_ENCODER__MODEL": "hashing", "PYTHONPATH": str(Path(recall.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", script, str(root)], env=env, check=True, timeout=100)
    assert [name for name in ("zebra before", "zebra after") if f'"query":"{name}"' in texts(cache)] == [
        "zebra before", "zebra after",
    ]  # fmt: skip


@pytest.mark.usefixtures("animals")
def test_a_delivery_whose_listener_fails_is_delivered_all_the_same(
    opened: Open, quick: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("no")

    memory = opened(config=quick)
    monkeypatch.setattr(memory._tracer, "record", refuse)
    delivery = memory.prefetch("zebra").first(LONG_S)
    assert delivery is not None
    assert delivery.recall.hits


def test_only_hits_are_kept_that_somebody_could_have_read(opened: Open, write: Write) -> None:
    for number in range(50):
        write(f"{number:02}.md", "zebra")
    memory = opened()
    found: Recall = memory.recall("zebra", k=50)
    assert len(found.hits) == 50
    assert [hit.path for hit in memory.traces()[0].hits] == [hit.topic.path for hit in found.hits[:32]]
