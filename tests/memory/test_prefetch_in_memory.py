"""A memory's prefetch: both searches for real, encoders that hang, a process that ends."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import recall
from recall import Config, Delivery, Drop, Memory, Phase, Point, PrefetchEvent, Recall, Strategy
from recall.config import EncoderConfig, IndexConfig, SearchConfig
from recall.index.base import Vector, Vectors
from recall.index.hashing import HashingEncoder
from recall.memory import keeper
from recall.memory.events import Event
from recall.store.locks import exclusive

LONG_S = 60.0  # an upper bound that only a broken implementation reaches

Write = Callable[..., Path]
Open = Callable[..., Memory]


class Hanging(HashingEncoder):
    """Hangs in every call once it is told to, until the gate opens."""

    def __init__(self) -> None:
        super().__init__()
        self.hangs, self.entered, self.gate = False, threading.Event(), threading.Event()

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        self._pass()
        return super().encode_documents(texts)

    def encode_query(self, text: str) -> Vector:
        self._pass()
        vector: Vector = super().encode_documents([text])[0]
        return vector

    def _pass(self) -> None:
        if self.hangs:
            self.entered.set()
            assert self.gate.wait(LONG_S)


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    encoder = Hanging()
    yield encoder
    encoder.gate.set()


@dataclass
class Ends:
    """A listener that knows the last events of prefetches."""

    events: list[PrefetchEvent] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        if isinstance(event, PrefetchEvent) and event.terminal:
            self.events.append(event)


def ids(found: Delivery | None) -> list[str]:
    assert found is not None
    return [hit.topic.id for hit in found.recall.hits]


# --- what is delivered


def test_the_first_delivery_is_the_answer_of_a_recall(opened: Open, write: Write, patient: Config) -> None:
    write("deploy.md", "我们周二发布上线")
    write("coffee.md", "no sugar in the cappuccino")
    ends = Ends()
    memory = opened(config=patient, on_event=ends)
    expected = memory.recall("什么时候发布上线")
    found = memory.prefetch("什么时候发布上线").first()
    assert found is not None
    assert (found.phase, found.point) == (Phase.REFINED, Point.INITIAL)
    assert found.recall.hits == expected.hits
    assert found.recall.prompt == expected.prompt
    assert found.recall.strategy is Strategy.HYBRID
    assert [(event.phase, event.selected) for event in ends.events] == [(Phase.REFINED, 1)]


def test_files_that_changed_show_in_a_prefetch_that_may_wait(opened: Open, write: Write, patient: Config) -> None:
    memory = opened(config=patient)
    memory.recall("warm up")
    write("new.md", "zebra crossing")
    assert ids(memory.prefetch("zebra crossing").first()) == ["new.md"]


def test_in_a_large_folder_what_came_went_or_was_exchanged_shows_at_once(
    opened: Open, write: Write, patient: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what was edited in place is not shown as it was, and shows the next time."""
    monkeypatch.setattr(keeper, "_QUICK_LOOK_S", -1.0)  # no whole look is quick
    for name in ("gone", "exchanged", "edited"):
        write(f"{name}.md", f"the {name} zebra crossing")
    memory = opened(config=patient)
    memory.recall("zebra")
    exchanged = write("gone.md", "the exchanged zebra crossing as well")
    exchanged.replace(exchanged.with_name("exchanged.md"))
    write("new.md", "a new zebra crossing")
    assert sorted(ids(memory.prefetch("zebra crossing").first(LONG_S))) == ["edited.md", "exchanged.md", "new.md"]
    write("edited.md", "the edited lion crossing")
    found = memory.prefetch("zebra crossing").first(LONG_S)
    assert found is not None
    assert "edited in place" in found.recall.coverage.note
    assert "edited zebra" not in found.recall.prompt
    memory.recall("wait for the whole look")
    assert "lion" in (memory.prefetch("lion").first(LONG_S) or found).recall.prompt


def test_in_a_large_folder_a_text_edited_in_place_is_found_late_where_nothing_else_is(
    opened: Open, write: Write, patient: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "_QUICK_LOOK_S", -1.0)  # no whole look is quick
    file = write("edited.md", "the edited zebra crossing")
    for place in (file, file.parent):  # what changed a moment ago is looked at in any case
        os.utime(place, (1e9, 1e9))
    memory = opened(config=patient)
    memory.recall("zebra")
    write("edited.md", "the edited lion crossing")
    found = memory.prefetch("lion").first(LONG_S)
    assert ids(found) == ["edited.md"]
    assert found is not None
    assert "lion" in found.recall.prompt


def test_excluded_topics_are_not_delivered(opened: Open, write: Write, patient: Config) -> None:
    write("a.md", "zebra crossing")
    write("b.md", "zebra crossing as well")
    memory = opened(config=patient)
    memory.reindex()
    assert ids(memory.prefetch("zebra crossing", exclude=["a.md"]).first()) == ["b.md"]
    assert memory.prefetch("zebra crossing", exclude=["a.md", "b.md"]).first() is None


def test_nothing_that_fits_is_an_end_with_a_reason(opened: Open, write: Write, patient: Config) -> None:
    write("a.md", "zebra")
    ends = Ends()
    memory = opened(config=patient, on_event=ends)
    memory.reindex()
    handle = memory.prefetch("qwrtz plmk")
    assert handle.first() is None
    assert handle.close() is Drop.NO_RELEVANT_RESULTS
    assert [event.drop for event in ends.events] == [Drop.NO_RELEVANT_RESULTS]


def test_closing_the_memory_ends_open_prefetches(opened: Open, write: Write, hanging: Hanging) -> None:
    write("a.md", "zebra")
    ends = Ends()
    memory = opened(encoder=hanging, on_event=ends)
    memory.reindex()
    hanging.hangs = True
    handle = memory.prefetch("zebra")
    assert hanging.entered.wait(LONG_S)
    memory.close()
    assert [event.drop for event in ends.events] == [Drop.SHUTDOWN]
    assert handle.on_tool_result() is None


# --- encoders that hang


def test_when_the_encoder_hangs_the_words_are_delivered_in_time(opened: Open, write: Write, hanging: Hanging) -> None:
    for number in range(4):
        write(f"{number}.md", f"zebra number {number}")
    memory = opened(encoder=hanging)
    memory.reindex()
    hanging.hangs = True
    handle = memory.prefetch("zebra number")
    assert hanging.entered.wait(LONG_S)
    found = handle.first(LONG_S)
    assert found is not None
    assert (found.phase, found.recall.strategy, len(found.recall.hits)) == (Phase.FAST, Strategy.HYBRID, 2)
    assert found.recall.prompt


def test_what_the_encoder_brings_later_comes_with_the_next_tool_result(
    opened: Open, write: Write, hanging: Hanging
) -> None:
    for number in range(4):
        write(f"{number}.md", f"zebra number {number}")
    memory = opened(encoder=hanging)
    memory.reindex()
    hanging.hangs = True
    handle = memory.prefetch("zebra number")
    first = handle.first(LONG_S)
    assert handle.on_tool_result() is None
    hanging.gate.set()
    memory._lanes.refined.submit(lambda: None).result(LONG_S)  # the lane does one thing after the other
    later = handle.on_tool_result()
    assert later is not None
    assert (later.phase, later.point) == (Phase.REFINED, Point.TOOL_RESULT)
    assert sorted([*ids(first), *ids(later)]) == ["0.md", "1.md", "2.md", "3.md"]


def test_an_encoder_that_hangs_while_it_loads_leaves_the_words(opened: Open, write: Write, hanging: Hanging) -> None:
    write("a.md", "zebra crossing")
    hanging.hangs = True
    memory = opened(encoder=hanging, background=True)
    assert hanging.entered.wait(LONG_S)
    assert memory._keeper.words_ready.wait(LONG_S)
    found = memory.prefetch("zebra crossing").first(LONG_S)
    assert ids(found) == ["a.md"]
    assert found is not None
    assert found.recall.strategy is Strategy.HYBRID


def test_an_encoder_that_hangs_in_a_changed_topic_leaves_the_words(
    opened: Open, write: Write, hanging: Hanging
) -> None:
    write("a.md", "zebra crossing")
    memory = opened(encoder=hanging)
    memory.reindex()
    hanging.hangs = True
    write("b.md", "tiger crossing")
    handle = memory.prefetch("zebra crossing")
    assert hanging.entered.wait(LONG_S)
    assert "a.md" in ids(handle.first(LONG_S))


def test_a_writer_that_hangs_does_not_keep_a_prefetch_waiting(opened: Open, write: Write, patient: Config) -> None:
    """Complaint 26: a search while somebody indexes answers from what was there."""
    write("a.md", "zebra crossing")
    memory = opened(config=patient)
    memory.reindex()
    folder = memory.status()[0].folder
    with exclusive(folder / "words.lock", timeout_s=0), exclusive(folder / "vectors.lock", timeout_s=0):
        write("b.md", "tiger crossing")
        assert ids(memory.prefetch("zebra crossing").first()) == ["a.md"]
    assert ids(memory.prefetch("tiger crossing").first())[:1] == ["b.md"]


def test_the_budget_of_the_settings_is_the_time_that_first_takes(
    opened: Open, write: Write, hanging: Hanging, patient: Config
) -> None:
    """With a minute to wait, a result that comes after the usual tenth of a second is still taken."""
    write("a.md", "zebra crossing")
    memory = opened(encoder=hanging, config=patient)
    memory.reindex()
    hanging.hangs = True
    handle = memory.prefetch("zebra crossing")
    assert hanging.entered.wait(LONG_S)
    found: list[Delivery | None] = []
    waiter = threading.Thread(target=lambda: found.append(handle.first()), daemon=True)
    waiter.start()
    waiter.join(0.3)
    assert waiter.is_alive()
    hanging.gate.set()
    waiter.join(LONG_S)
    assert found[0] is not None
    assert found[0].phase is Phase.REFINED


# --- a cold start


def test_a_cold_process_answers_from_what_the_last_one_left(opened: Open, write: Write, hanging: Hanging) -> None:
    write("a.md", "zebra crossing")
    opened().reindex()
    hanging.hangs = True
    memory = opened(encoder=hanging)
    assert ids(memory.prefetch("zebra crossing").first(LONG_S)) == ["a.md"]


@pytest.mark.parametrize("hold_ms", [1, 60_000], ids=["fast", "refined"])
def test_the_first_prefetch_of_a_new_memory_waits_for_the_words(
    opened: Open, write: Write, config: Config, hold_ms: int
) -> None:
    for number in range(200):
        write(f"{number}.md", f"animal{number}")
    search = SearchConfig(budget_ms=60_000, hold_ms=hold_ms)
    memory = opened(background=True, config=Config(search=search, index=config.index, encoder=config.encoder))
    assert ids(memory.prefetch("animal150").first()) == ["150.md"]


# --- the end of the process

ENDING = """
import sys, threading
from recall import Config, Memory
from recall.config import IndexConfig
from recall.index.hashing import HashingEncoder

class Hanging(HashingEncoder):
    entered = threading.Event()

    def encode_documents(self, texts):
        self.entered.set()
        threading.Event().wait()

    encode_query = encode_documents

memory = Memory.open(sys.argv[1], config=Config(index=IndexConfig(cache=sys.argv[2])), encoder=Hanging())
handle = memory.prefetch("zebra crossing")
Hanging.entered.wait()
memory._keeper.words_ready.wait()
found = memory.prefetch("zebra crossing").first(50)
print(found.recall.hits[0].topic.id, found.phase)
"""


def test_a_process_ends_though_its_encoder_hangs(root: Path, write: Write, tmp_path: Path) -> None:
    write("a.md", "zebra crossing")
    ended = subprocess.run(
        [sys.executable, "-c", ENDING, root, tmp_path / "cache"],
        env=os.environ | {"PYTHONPATH": str(Path(recall.__file__).parents[1])},
        capture_output=True,
        encoding="utf-8",
        timeout=LONG_S,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "a.md fast\n", "")


def test_without_a_model_both_phases_are_words(opened: Open, write: Write, tmp_path: Path) -> None:
    write("a.md", "zebra crossing")
    settings = Config(
        search=SearchConfig(budget_ms=60_000, hold_ms=60_000),
        index=IndexConfig(cache=str(tmp_path / "cache")),
        encoder=EncoderConfig(model="off"),
    )
    found = opened(config=settings).prefetch("zebra crossing").first()
    assert ids(found) == ["a.md"]
    assert found is not None
    assert found.recall.strategy is Strategy.HEURISTIC
    assert isinstance(found.recall, Recall)
