"""Playing one turn of a host through, with the real parts; a gate in the encoder says when the refined result comes."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from recall.apps.turn import Watch, play
from recall.config import Config, IndexConfig, SearchConfig
from recall.index.base import Vector, Vectors
from recall.index.hashing import HashingEncoder
from recall.memory.events import Event
from recall.memory.memory import Memory
from recall.search.delivery import PrefetchEvent
from recall.search.types import Drop, Phase, Point

PATIENT_S = 30.0
QUERY = "latency of releases"


class Gated:
    """The hashing encoder, whose queries wait at a gate."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self._inner = HashingEncoder()
        self.name, self.fingerprint = self._inner.name, self._inner.fingerprint
        self.dim, self.chunk_tokens, self.floor = self._inner.dim, self._inner.chunk_tokens, -9.0

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        return self._inner.encode_documents(texts)

    def encode_query(self, text: str) -> Vector:
        assert self.gate.wait(PATIENT_S)
        return self._inner.encode_query(text)


class OpeningWatch(Watch):
    """Opens the gate once a fast result was delivered."""

    def __init__(self, encoder: Gated) -> None:
        super().__init__()
        self._encoder = encoder

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        if isinstance(event, PrefetchEvent) and event.phase is Phase.FAST:
            self._encoder.gate.set()


@pytest.fixture
def opened(memory: Path, own_surroundings: Path) -> Callable[[Gated, Watch], Memory]:
    """The three topics, indexed; a fast result is published at once where the refined one does not come."""

    def call(encoder: Gated, watch: Watch) -> Memory:
        config = Config(
            search=SearchConfig(budget_ms=PATIENT_S * 1000, hold_ms=1.0), index=IndexConfig(cache=str(own_surroundings))
        )
        opened = Memory.open(
            memory, project=memory, layout="plain", config=config, encoder=encoder, on_event=watch, background=False
        )
        opened.reindex()
        return opened

    return call


Opened = Callable[[Gated, Watch], Memory]


def test_the_fast_result_comes_first_and_the_rest_on_a_tool_result(opened: Opened) -> None:
    encoder = Gated()
    watch = OpeningWatch(encoder)
    with opened(encoder, watch) as memory:
        encoder.gate.clear()
        turn = play(memory, QUERY, watch)
    assert turn.first is not None
    assert turn.later is not None
    assert (turn.first.phase, turn.first.point) == (Phase.FAST, Point.INITIAL)
    assert (turn.later.phase, turn.later.point) == (Phase.REFINED, Point.TOOL_RESULT)
    names = [hit.topic.id for delivery in turn.deliveries for hit in delivery.recall.hits]
    assert sorted(names) == ["project_rollout.md", "reference_board.md", "team/feedback_style.md"]
    assert (turn.end.drop, turn.end.point) == (None, Point.TOOL_RESULT)


def test_a_turn_knows_nothing_of_the_turn_before(opened: Opened) -> None:
    encoder = Gated()
    watch = OpeningWatch(encoder)
    with opened(encoder, watch) as memory:
        play(memory, "rollout", watch)
        encoder.gate.clear()
        assert play(memory, QUERY, watch).later is not None


def test_a_turn_without_tools_has_no_place_for_a_late_result(opened: Opened) -> None:
    encoder, watch = Gated(), Watch()
    with opened(encoder, watch) as memory:
        encoder.gate.clear()
        turn = play(memory, QUERY, watch, tools=False)
        encoder.gate.set()
    assert [delivery.phase for delivery in turn.deliveries] == [Phase.FAST]
    assert turn.end.drop is Drop.NO_SAFE_DELIVERY_POINT


def test_a_refined_result_that_brings_nothing_new_is_not_delivered_again(opened: Opened) -> None:
    encoder = Gated()
    watch = OpeningWatch(encoder)
    with opened(encoder, watch) as memory:
        encoder.gate.clear()
        turn = play(memory, QUERY, watch, exclude=["team/feedback_style.md"])
    assert turn.later is None
    assert turn.end.drop is Drop.ALREADY_DELIVERED


def test_a_question_that_nothing_fits_ends_with_the_reason(opened: Opened) -> None:
    encoder, watch = Gated(), Watch()
    with opened(encoder, watch) as memory:
        everything = [topic.id for topic in memory.topics()]
        turn = play(memory, QUERY, watch, exclude=everything)
        blank = play(memory, " ", watch)
    assert (turn.deliveries, turn.end.drop) == ((), Drop.NO_RELEVANT_RESULTS)
    assert (blank.deliveries, blank.end.drop) == ((), Drop.NO_RELEVANT_RESULTS)


def test_a_memory_that_tells_somebody_else_is_noticed(opened: Opened) -> None:
    with opened(Gated(), Watch()) as memory, pytest.raises(RuntimeError, match="listener"):
        play(memory, QUERY, Watch(), tools=False)
