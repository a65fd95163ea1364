"""The prefetch in front of real lanes: gates hold the searches, a virtual clock counts the waits, nothing sleeps."""

import gc
import logging
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from recall.search import prefetch as module
from recall.search.prefetch import Delivery, Limits, Prefetch, PrefetchEvent, Search
from recall.search.types import Drop, Hit, Phase, Point, Recall, Strategy
from recall.search.workers import Alarm, Lane, Lanes, Lateness
from recall.store.topics import Scope, Topic

LONG_S = 60.0  # an upper bound that only a broken implementation reaches


def _recall(names: str, strategy: Strategy = Strategy.HYBRID, *, prompt: str | None = None) -> Recall:
    hits = tuple(
        Hit(Topic(Scope.PROJECT, name, name, "", None, "", 0.0, 0.0, Path("/memory", name)), 1.0) for name in names
    )
    text = _render(hits) if prompt is None and names else prompt or ""
    return Recall("q", hits, strategy if names else Strategy.NONE, text)


def _words(names: str) -> Recall:
    return _recall(names, Strategy.HEURISTIC)


def _names(hits: Sequence[Hit]) -> str:
    return "".join(hit.topic.id for hit in hits)


def _render(hits: Sequence[Hit]) -> str:
    return f"<{_names(hits)}>"


@dataclass
class Gate:
    """A search that hangs until it is opened."""

    answer: Recall | Exception
    started: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def __call__(self) -> Recall:
        self.started.set()
        assert self.opened.wait(LONG_S)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@dataclass
class Host:
    """Begins prefetches on two real lanes and remembers what they report."""

    lanes: Lanes
    events: list[PrefetchEvent] = field(default_factory=list)
    gates: list[Gate] = field(default_factory=list)

    def gate(self, answer: Recall | Exception, *, opened: bool = False) -> Gate:
        gate = Gate(answer)
        self.gates.append(gate)
        if opened:
            gate.opened.set()
        return gate

    def begin(
        self,
        fast: Recall | Exception | Gate,
        refined: Recall | Exception | Gate,
        *,
        on_event: Callable[[PrefetchEvent], object] | None = None,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
        **search: Any,
    ) -> Prefetch:
        """A prefetch whose searches have started; those that are no closed gates have ended."""
        gates = [job if isinstance(job, Gate) else self.gate(job, opened=True) for job in (fast, refined)]
        prefetch = Prefetch(
            Search(gates[0], gates[1], **{"render": _render, **search}),
            self.lanes,
            limits=limits,
            clock=clock,
            on_event=on_event or self.events.append,
        )
        for gate, lane in zip(gates, (self.lanes.fast, self.lanes.refined), strict=True):
            assert gate.started.wait(LONG_S)
            if gate.opened.is_set():
                self.drain(lane)
        return prefetch

    def drain(self, lane: Lane) -> None:
        """Waits until the job that the lane runs now, and its callbacks, are done."""
        lane.submit(lambda: None).result(LONG_S)

    def open(self, gate: Gate, lane: Lane) -> None:
        gate.opened.set()
        self.drain(lane)

    def told(self) -> list[tuple[Phase, Point, Drop | None, int]]:
        return [(event.phase, event.point, event.drop, event.selected) for event in self.events]


def _got(delivery: Delivery | None) -> tuple[Phase, Point, str, str] | None:
    if delivery is None:
        return None
    return delivery.phase, delivery.point, _names(delivery.recall.hits), delivery.recall.prompt


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


class VirtualWait(threading.Event):
    """An event whose waits take virtual time; `during` says what happens while the n-th wait lasts."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.waits: list[float] = []
        self.during: list[Callable[[], object]] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None, "no wait is unbounded"
        if self.is_set():
            return True
        self.waits.append(round(timeout, 6))
        if self.during:
            self.during.pop(0)()
        if not self.is_set():
            self.clock.now += timeout
        return self.is_set()


class StoppedAlarm(Alarm):
    """An alarm that keeps its calls until the test lets them happen."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[float, Callable[[], object]]] = []

    def after(self, delay_s: float, call: Callable[[], object]) -> None:
        self.calls.append((round(delay_s, 6), call))

    def ring(self, delay_s: float) -> None:
        due = [call for due_s, call in self.calls if due_s <= delay_s]
        self.calls = [entry for entry in self.calls if entry[0] > delay_s]
        for call in due:
            call()


@pytest.fixture
def host() -> Iterator[Host]:
    made = Host(Lanes(Lane("fast", patience_s=LONG_S), Lane("refined", patience_s=LONG_S)))
    yield made
    for gate in made.gates:
        gate.opened.set()
    made.lanes.stop()


@pytest.fixture
def alarm(monkeypatch: pytest.MonkeyPatch) -> StoppedAlarm:
    stopped = StoppedAlarm()
    monkeypatch.setattr(module, "ALARM", stopped)
    return stopped


def _virtual(prefetch: Prefetch, clock: Clock) -> VirtualWait:
    prefetch._ready = waits = VirtualWait(clock)
    return waits


REFINED_AT_FIRST = (Phase.REFINED, Point.INITIAL)


# --- which of the two results


def test_a_refined_result_that_is_in_wins_over_the_fast_one(host: Host) -> None:
    prefetch = host.begin(_words("ab"), _recall("cab"))
    assert _got(prefetch.first()) == (*REFINED_AT_FIRST, "cab", "<cab>")
    assert host.told() == [(Phase.REFINED, Point.INITIAL, None, 3)]


def test_the_fast_result_is_delivered_while_the_refined_search_is_still_in_flight(host: Host) -> None:
    refined = host.gate(_recall("cab"))
    prefetch = host.begin(_words("abc"), refined, limits=Limits(hold_s=0.0))
    assert _got(prefetch.first(LONG_S)) == (Phase.FAST, Point.INITIAL, "ab", "<ab>")
    assert refined.started.is_set()
    assert not refined.opened.is_set()
    host.open(refined, host.lanes.refined)
    assert _got(prefetch.on_tool_result()) == (Phase.REFINED, Point.TOOL_RESULT, "c", "<c>")
    assert [told[:2] for told in host.told()] == [(Phase.FAST, Point.INITIAL), (Phase.REFINED, Point.TOOL_RESULT)]


def test_without_an_expected_refined_result_the_fast_one_is_delivered_at_once(host: Host) -> None:
    refined = host.gate(_recall("c"))
    prefetch = host.begin(_words("ab"), refined, limits=Limits(hold_s=LONG_S), refined_expected=False)
    assert _got(prefetch.first(LONG_S)) == (Phase.FAST, Point.INITIAL, "ab", "<ab>")
    assert not refined.opened.is_set()


def test_a_fast_result_is_held_while_the_refined_one_may_still_make_it(host: Host) -> None:
    clock = Clock()
    refined = host.gate(_recall("cd"))
    prefetch = host.begin(_words("ab"), refined, clock=clock)
    waits = _virtual(prefetch, clock)
    waits.during = [lambda: host.open(refined, host.lanes.refined)]
    assert _got(prefetch.first()) == (*REFINED_AT_FIRST, "cd", "<cd>")
    assert waits.waits == [0.07]


def test_a_held_fast_result_is_delivered_when_the_hold_is_over(host: Host) -> None:
    clock = Clock()
    prefetch = host.begin(_words("ab"), host.gate(_recall("cd")), clock=clock)
    waits = _virtual(prefetch, clock)
    clock.now += 5.0
    delivery = prefetch.first()
    assert _got(delivery) == (Phase.FAST, Point.INITIAL, "ab", "<ab>")
    assert waits.waits == [0.07]
    assert delivery is not None
    assert delivery.latency_s == pytest.approx(5.07)


def test_a_fast_result_that_comes_after_the_hold_is_delivered_when_it_comes(host: Host) -> None:
    clock = Clock()
    fast = host.gate(_words("ab"))
    prefetch = host.begin(fast, host.gate(_recall("cd")), clock=clock)
    waits = _virtual(prefetch, clock)
    waits.during = [lambda: None, lambda: host.open(fast, host.lanes.fast)]
    assert _got(prefetch.first()) == (Phase.FAST, Point.INITIAL, "ab", "<ab>")
    assert waits.waits == [0.07, 0.018]


def test_a_fast_result_after_the_first_request_is_of_no_use_to_a_tool_result(host: Host) -> None:
    fast = host.gate(_words("ab"))
    prefetch = host.begin(fast, host.gate(_recall("c")))
    assert prefetch.first(0) is None
    host.open(fast, host.lanes.fast)
    assert prefetch.on_tool_result() is None


def test_an_empty_fast_result_does_not_end_the_wait(host: Host) -> None:
    clock = Clock()
    refined = host.gate(_recall("c"))
    prefetch = host.begin(_words(""), refined, clock=clock)
    waits = _virtual(prefetch, clock)
    waits.during = [lambda: None, lambda: host.open(refined, host.lanes.refined)]
    assert _got(prefetch.first()) == (*REFINED_AT_FIRST, "c", "<c>")
    assert len(waits.waits) == 2


def test_an_empty_refined_result_is_an_answer_that_a_held_fast_result_does_not_replace(host: Host) -> None:
    prefetch = host.begin(_words("ab"), _recall(""))
    assert prefetch.first() is None
    assert host.told() == [(Phase.REFINED, Point.DISCARDED, Drop.NO_RELEVANT_RESULTS, 0)]


# --- failures


@pytest.mark.parametrize("order", ["fast first", "refined first"])
def test_a_refined_search_that_fails_is_replaced_by_the_whole_fast_result(
    host: Host, caplog: pytest.LogCaptureFixture, order: str
) -> None:
    fast, refined = host.gate(_words("abc")), host.gate(RuntimeError("broken encoder"))
    prefetch = host.begin(fast, refined)
    steps = [(fast, host.lanes.fast), (refined, host.lanes.refined)]
    for gate, lane in steps if order == "fast first" else reversed(steps):
        host.open(gate, lane)
    delivery = prefetch.first(LONG_S)
    assert _got(delivery) == (*REFINED_AT_FIRST, "abc", "<abc>")
    assert delivery is not None
    assert delivery.recall.strategy is Strategy.HEURISTIC
    assert "broken encoder" in caplog.text


def test_a_failure_after_a_fast_delivery_brings_the_rest_of_the_fast_result(host: Host) -> None:
    refined = host.gate(RuntimeError("broken"))
    prefetch = host.begin(_words("abcd"), refined, limits=Limits(hold_s=0.0))
    assert _got(prefetch.first()) == (Phase.FAST, Point.INITIAL, "ab", "<ab>")
    host.open(refined, host.lanes.refined)
    assert _got(prefetch.on_tool_result()) == (Phase.REFINED, Point.TOOL_RESULT, "cd", "<cd>")


def test_a_failure_during_the_wait_ends_it_with_the_held_fast_result(host: Host) -> None:
    clock = Clock()
    refined = host.gate(RuntimeError("broken"))
    prefetch = host.begin(_words("ab"), refined, clock=clock)
    waits = _virtual(prefetch, clock)
    waits.during = [lambda: host.open(refined, host.lanes.refined)]
    assert _got(prefetch.first()) == (*REFINED_AT_FIRST, "ab", "<ab>")
    assert waits.waits == [0.07]


@pytest.mark.parametrize("fast", [_words(""), RuntimeError("disk")])
def test_when_nothing_good_is_left_a_failure_is_an_empty_result(host: Host, fast: Recall | Exception) -> None:
    prefetch = host.begin(fast, RuntimeError("broken"))
    assert prefetch.first(LONG_S) is None
    assert host.told() == [(Phase.REFINED, Point.DISCARDED, Drop.NO_RELEVANT_RESULTS, 0)]
    assert prefetch.close() is Drop.NO_RELEVANT_RESULTS


def test_a_fast_search_that_fails_or_hangs_does_not_touch_the_refined_result(host: Host) -> None:
    assert _got(host.begin(RuntimeError("disk"), _recall("c")).first()) == (*REFINED_AT_FIRST, "c", "<c>")
    assert _got(host.begin(host.gate(_words("a")), _recall("c")).first()) == (*REFINED_AT_FIRST, "c", "<c>")


def test_a_lane_that_refuses_counts_as_a_failure(host: Host) -> None:
    host.lanes.refined.stop()
    prefetch = Prefetch(Search(lambda: _words("abc"), lambda: _recall("c"), _render), host.lanes)
    assert _got(prefetch.first(LONG_S)) == (*REFINED_AT_FIRST, "abc", "<abc>")


# --- time


def test_first_comes_back_empty_handed_when_everything_hangs(host: Host) -> None:
    clock = Clock()
    fast, refined = host.gate(_words("a")), host.gate(_recall("b"))
    prefetch = host.begin(fast, refined, clock=clock)
    waits = _virtual(prefetch, clock)
    clock.now += 80.0  # the time counts from the request, not from the begin
    assert prefetch.first() is None
    assert waits.waits == [0.07, 0.018]  # 100 ms without the margin
    assert not fast.opened.is_set()
    assert not refined.opened.is_set()
    assert host.events == []
    assert prefetch.close() is Drop.NO_SAFE_DELIVERY_POINT


@pytest.mark.parametrize(
    ("timeout_s", "expected"), [(0.0, [0.0, 0.0]), (0.003, [0.0, 0.0]), (0.05, [0.038, 0.0]), (0.5, [0.07, 0.418])]
)
def test_the_wait_is_the_given_time_without_the_margin(host: Host, timeout_s: float, expected: list[float]) -> None:
    clock = Clock()
    prefetch = host.begin(host.gate(_words("a")), host.gate(_recall("b")), clock=clock)
    waits = _virtual(prefetch, clock)
    assert prefetch.first(timeout_s) is None
    assert waits.waits == expected


def test_a_request_without_time_takes_what_is_there(host: Host) -> None:
    refined = host.gate(_recall("c"))
    prefetch = host.begin(_words("ab"), refined)
    assert _got(prefetch.first(0)) == (Phase.FAST, Point.INITIAL, "ab", "<ab>")


def test_first_returns_although_somebody_sits_on_the_lock(host: Host) -> None:
    prefetch = host.begin(_words("ab"), _recall("cd"))
    with prefetch._lock, ThreadPoolExecutor(1) as pool:
        assert pool.submit(prefetch.first, 0.01).result(LONG_S) is None
        assert pool.submit(prefetch.on_tool_result).result(LONG_S) is None
    assert _got(prefetch.first()) == (*REFINED_AT_FIRST, "cd", "<cd>")


def test_a_wait_without_bound_ends_with_the_result(host: Host) -> None:
    clock = Clock()
    refined = host.gate(_recall("c"))
    prefetch = host.begin(_words(""), refined, clock=clock)
    waits = _virtual(prefetch, clock)
    waits.during = [lambda: None, lambda: host.open(refined, host.lanes.refined)]
    assert _got(prefetch.first(float("inf"))) == (*REFINED_AT_FIRST, "c", "<c>")
    assert waits.waits[1] <= threading.TIMEOUT_MAX


def test_a_deliverys_event_tells_when_each_search_had_ended(host: Host) -> None:
    clock = Clock(10.0)
    fast, refined = host.gate(_words("ab")), host.gate(_recall("c"))
    prefetch = host.begin(fast, refined, clock=clock, limits=Limits(hold_s=0.0))
    clock.now = 10.25
    host.open(fast, host.lanes.fast)
    prefetch.first(0)
    clock.now = 11.5
    host.open(refined, host.lanes.refined)
    clock.now = 12.0
    prefetch.on_tool_result()
    assert [(event.fast_s, event.refined_s, event.latency_s) for event in host.events] == [
        (0.25, None, 0.25),
        (0.25, 1.5, 2.0),
    ]


# --- what is delivered


def test_only_what_was_removed_from_is_rendered_anew(host: Host) -> None:
    rendered: list[str] = []

    def render(hits: Sequence[Hit]) -> str:
        rendered.append(_names(hits))
        return _render(hits)

    refined = host.gate(_recall("cd", prompt="the searcher's own"))
    prefetch = host.begin(_words("ab"), refined, limits=Limits(hold_s=0.0), render=render)
    prefetch.first()
    host.open(refined, host.lanes.refined)
    assert _got(prefetch.on_tool_result()) == (Phase.REFINED, Point.TOOL_RESULT, "cd", "the searcher's own")
    assert rendered == []


def test_a_result_without_a_prompt_gets_one(host: Host) -> None:
    prefetch = host.begin(_words(""), _recall("cd", prompt=""))
    assert _got(prefetch.first()) == (*REFINED_AT_FIRST, "cd", "<cd>")


def test_excluded_topics_are_in_neither_result(host: Host) -> None:
    refined = host.gate(_recall("dax"))
    prefetch = host.begin(_words("abxc"), refined, limits=Limits(hold_s=0.0), excluded=frozenset("ax"))
    assert _got(prefetch.first()) == (Phase.FAST, Point.INITIAL, "bc", "<bc>")
    host.open(refined, host.lanes.refined)
    assert _got(prefetch.on_tool_result()) == (Phase.REFINED, Point.TOOL_RESULT, "d", "<d>")


def test_the_size_of_a_fast_delivery_is_a_limit(host: Host) -> None:
    prefetch = host.begin(_words("abcd"), host.gate(_recall("")), limits=Limits(fast_k=3))
    assert _got(prefetch.first(0)) == (Phase.FAST, Point.INITIAL, "abc", "<abc>")


# --- the host's own functions


def _refuse(_: object) -> str:
    raise ZeroDivisionError("the host's mistake")


def test_a_prompt_that_cannot_be_rendered_is_not_delivered_and_ends_the_handle(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    refined = host.gate(_recall("bc"))
    prefetch = host.begin(_words("ab"), refined, limits=Limits(hold_s=0.0), render=_refuse)
    assert _got(prefetch.first()) == (Phase.FAST, Point.INITIAL, "ab", "<ab>")
    host.open(refined, host.lanes.refined)
    assert prefetch.on_tool_result() is None
    assert host.told()[1:] == [(Phase.REFINED, Point.DISCARDED, Drop.NO_RELEVANT_RESULTS, 0)]
    assert prefetch.close() is Drop.NO_RELEVANT_RESULTS
    assert len(host.events) == 2
    assert "the host's mistake" in caplog.text


def test_searches_whose_prompts_cannot_be_rendered_have_failed(host: Host) -> None:
    prefetch = host.begin(_recall("ab", prompt=""), _recall("cd", prompt=""), render=_refuse)
    assert prefetch.first(LONG_S) is None
    assert host.told() == [(Phase.REFINED, Point.DISCARDED, Drop.NO_RELEVANT_RESULTS, 0)]


def test_a_listener_that_fails_spoils_nothing(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    prefetch = host.begin(_words("ab"), _recall("cd"), on_event=_refuse)
    assert _got(prefetch.first(LONG_S)) == (*REFINED_AT_FIRST, "cd", "<cd>")
    assert "the host's mistake" in caplog.text
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


# --- the end


def test_a_close_reports_its_reason_once_and_nothing_comes_after_it(host: Host) -> None:
    refined = host.gate(_recall("c"))
    prefetch = host.begin(_words("ab"), refined, limits=Limits(hold_s=0.0))
    assert prefetch.close(Drop.NEW_QUERY) is Drop.NEW_QUERY
    host.open(refined, host.lanes.refined)
    assert prefetch.close(Drop.SHUTDOWN) is Drop.NEW_QUERY
    assert prefetch.first(LONG_S) is None
    assert prefetch.on_tool_result() is None
    assert host.told() == [(Phase.REFINED, Point.DISCARDED, Drop.NEW_QUERY, 0)]


def test_a_close_of_what_was_shown_wholly_or_delivered_says_so(host: Host) -> None:
    refined = host.gate(_recall("ba"))
    shown = host.begin(_words("ab"), refined, limits=Limits(hold_s=0.0))
    shown.first()
    host.open(refined, host.lanes.refined)
    assert shown.close() is Drop.ALREADY_DELIVERED
    delivered = host.begin(_words(""), _recall("a"))
    assert delivered.first() is not None
    assert delivered.close() is None


def test_a_close_ends_the_wait_of_another_thread(host: Host) -> None:
    clock = Clock()
    prefetch = host.begin(host.gate(_words("a")), host.gate(_recall("b")), clock=clock)
    waits = _virtual(prefetch, clock)
    waits.during = [lambda: prefetch.close(Drop.ABORT)]
    assert prefetch.first() is None
    assert waits.waits == [0.07]
    assert [event.drop for event in host.events] == [Drop.ABORT]


def test_a_closed_handle_leaves_no_search_behind_that_had_not_started(host: Host) -> None:
    blocking = host.gate(_recall("z"))
    host.lanes.refined.submit(blocking)
    assert blocking.started.wait(LONG_S)
    unwanted = host.gate(_recall("b"))
    prefetch = Prefetch(Search(lambda: _words("a"), unwanted, _render), host.lanes)
    prefetch.close()
    host.open(blocking, host.lanes.refined)
    assert not unwanted.started.is_set()


def test_a_forgotten_handle_is_collected_and_its_search_is_skipped_or_ends_alone(host: Host) -> None:
    running = host.gate(_recall("c"))
    prefetch = host.begin(_words("ab"), running)
    unwanted = host.gate(_recall("b"))
    fast = host.gate(_words("a"))
    queued = Prefetch(Search(fast, unwanted, _render), host.lanes)
    assert fast.started.wait(LONG_S)
    host.open(fast, host.lanes.fast)
    forgotten = [weakref.ref(prefetch), weakref.ref(queued)]
    del prefetch, queued
    gc.collect()
    assert [ref() for ref in forgotten] == [None, None]
    host.open(running, host.lanes.refined)
    assert not unwanted.started.is_set()


# --- the future


def test_a_future_resolves_when_the_refined_result_comes(host: Host, alarm: StoppedAlarm) -> None:
    refined = host.gate(_recall("cd"))
    prefetch = host.begin(_words("ab"), refined)
    future = prefetch.future
    assert future is prefetch.future
    assert not future.done()
    host.open(refined, host.lanes.refined)
    assert _got(future.result(LONG_S)) == (*REFINED_AT_FIRST, "cd", "<cd>")


def test_a_future_gets_the_fast_result_when_the_hold_is_over(host: Host, alarm: StoppedAlarm) -> None:
    prefetch = host.begin(_words("ab"), host.gate(_recall("cd")))
    future = prefetch.future
    alarm.ring(0.069)
    assert not future.done()
    alarm.ring(0.07)
    assert _got(future.result(LONG_S)) == (Phase.FAST, Point.INITIAL, "ab", "<ab>")


def test_a_future_resolves_to_nothing_at_its_deadline(host: Host, alarm: StoppedAlarm) -> None:
    prefetch = host.begin(host.gate(_words("ab")), host.gate(_recall("cd")))
    future = prefetch.future
    alarm.ring(0.087)
    assert not future.done()
    alarm.ring(0.088)
    assert future.result(LONG_S) is None
    assert host.events == []


def test_the_shared_alarm_itself_resolves_a_future_while_everything_hangs(host: Host) -> None:
    prefetch = host.begin(host.gate(_words("ab")), host.gate(_recall("cd")))
    assert prefetch.future.result(LONG_S) is None


def test_a_future_of_a_result_that_is_in_is_done_at_once(host: Host, alarm: StoppedAlarm) -> None:
    assert _got(host.begin(_words("ab"), _recall("cd")).future.result(0)) == (*REFINED_AT_FIRST, "cd", "<cd>")


def test_the_time_of_a_future_counts_from_an_earlier_first(host: Host, alarm: StoppedAlarm) -> None:
    clock = Clock()
    prefetch = host.begin(host.gate(_words("ab")), host.gate(_recall("cd")), clock=clock)
    _virtual(prefetch, clock)
    prefetch.first(0.045)
    assert prefetch.future.done() is False
    assert [delay_s for delay_s, _ in alarm.calls] == [0.037, 0.055]


def test_a_cancelled_future_leaves_the_delivery_to_first(host: Host, alarm: StoppedAlarm) -> None:
    refined = host.gate(_recall("cd"))
    prefetch = host.begin(_words("ab"), refined)
    assert prefetch.future.cancel()
    host.open(refined, host.lanes.refined)
    alarm.ring(1.0)
    assert prefetch.future.cancelled()
    assert _got(prefetch.first()) == (*REFINED_AT_FIRST, "cd", "<cd>")


def test_a_close_resolves_the_future_to_nothing(host: Host, alarm: StoppedAlarm) -> None:
    prefetch = host.begin(host.gate(_words("ab")), host.gate(_recall("cd")))
    future = prefetch.future
    prefetch.close()
    assert future.result(0) is None
    alarm.ring(1.0)


def test_first_and_future_share_one_delivery(host: Host, alarm: StoppedAlarm) -> None:
    prefetch = host.begin(_words("ab"), host.gate(_recall("cd")))
    future = prefetch.future
    assert prefetch.first(0) is None  # it ended the hold, and the future had asked before it
    assert _got(future.result(0)) == (Phase.FAST, Point.INITIAL, "ab", "<ab>")
    assert len(host.events) == 1


# --- many threads


def _at_once(acts: Sequence[Callable[[], object]]) -> list[object]:
    """What the functions return when as many threads call them at the same moment."""
    start = threading.Barrier(len(acts))

    def take_part(act: Callable[[], object]) -> object:
        start.wait(LONG_S)
        return act()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(take_part, acts))


def test_under_many_threads_no_topic_comes_twice_and_one_terminal_event_ends_it(host: Host) -> None:
    for _ in range(40):
        host.events.clear()
        fast, refined = host.gate(_words("abc")), host.gate(_recall("bcde"))
        prefetch = host.begin(fast, refined, limits=Limits(hold_s=0.0))
        future = prefetch.future
        acts: list[Callable[[], object]] = [
            fast.opened.set,
            refined.opened.set,
            prefetch.first,
            prefetch.first,
            prefetch.on_tool_result,
        ]
        got = [*_at_once([*acts, prefetch.close]), future.result(LONG_S)]
        names = "".join(_names(delivery.recall.hits) for delivery in got if isinstance(delivery, Delivery))
        assert len(set(names)) == len(names)
        assert sum(event.terminal for event in host.events) == 1
        assert sum(event.delivered for event in host.events) == len(names)
        host.drain(host.lanes.fast)
        host.drain(host.lanes.refined)


def test_a_process_ends_at_once_while_both_searches_hang() -> None:
    script = """
import threading
from recall.search.prefetch import Prefetch, Search
from recall.search.workers import Lane, Lanes, Lateness
hang = threading.Event().wait
lanes = Lanes(Lane("fast", patience_s=3600), Lane("refined", patience_s=3600))
prefetch = Prefetch(Search(hang, hang, str), lanes)
future = prefetch.future
print(prefetch.first(), flush=True)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, encoding="utf-8", timeout=100
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "None\n", "")


def test_where_waits_end_late_first_stops_waiting_earlier(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait that the system ends 12 ms late is begun 12 ms shorter the next time, and for some fifty times."""
    now = [100.0]
    asked: list[float] = []

    def waited(_: Prefetch, until: float) -> bool:
        asked.append(round(until - 100.0, 4))
        now[0] = until + 0.012
        return False

    monkeypatch.setattr(Prefetch, "_wait", waited)
    for _ in range(3):
        now[0] = 100.0
        prefetch = host.begin(host.gate(_words("a")), host.gate(_recall("b")), clock=lambda: now[0])
        prefetch.first(0.1)
        prefetch.close()
        for gate in host.gates:
            gate.opened.set()
    assert asked[1::2] == [0.088, 0.076, 0.076]
    assert asked[::2] == [0.07] * 3


def test_a_stop_of_the_process_is_forgotten_after_some_turns_in_time(host: Host) -> None:
    host.lanes.lateness.note(10.0)
    assert host.lanes.lateness.seconds == 0.04
    for number in range(150):
        prefetch = host.begin(_words("a"), _recall(str(number)))
        assert prefetch.first(LONG_S) is not None
        prefetch.close()
    assert host.lanes.lateness.seconds < 0.004


def test_lateness_fades_and_is_bounded() -> None:
    lateness = Lateness()
    assert lateness.seconds == 0
    lateness.note(0.02)
    lateness.note(-0.001)
    assert 0.019 < lateness.seconds < 0.02
    for _ in range(600):
        lateness.note(0.0)
    assert lateness.seconds < 0.001
    lateness.note(5.0)
    assert lateness.seconds == 0.04
