"""Lanes that outlive hanging jobs, and the alarm. Clocks are arguments; gates hold jobs, nothing sleeps."""

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

import pytest

from recall.search import workers
from recall.search.workers import Alarm, Lane, LaneBusy, Lanes

LONG_S = 60.0  # an upper bound that only a broken implementation reaches


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Gate:
    """A job that hangs until it is opened."""

    error: Exception | None = None
    started: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def __call__(self) -> str:
        self.started.set()
        assert self.opened.wait(LONG_S)
        if self.error is not None:
            raise self.error
        return "late"


@dataclass
class Yard:
    """Makes lanes under one clock and opens every gate at the end."""

    clock: Clock = field(default_factory=Clock)
    gates: list[Gate] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)

    def lane(self, name: str = "yard", *, breaker_after: int = 3, max_stuck: int = 4) -> Lane:
        lane = Lane(
            name,
            patience_s=2.0,
            breaker_after=breaker_after,
            breaker_rest_s=30.0,
            max_stuck=max_stuck,
            clock=self.clock,
        )
        self.lanes.append(lane)
        return lane

    def hang(self, lane: Lane) -> tuple[Gate, Future[str]]:
        gate = Gate()
        self.gates.append(gate)
        future = lane.submit(gate)
        assert gate.started.wait(LONG_S)
        return gate, future

    def write_off(self, lane: Lane) -> tuple[Gate, Future[str]]:
        gate, future = self.hang(lane)
        self.clock.now += 2.0
        assert not lane.busy
        return gate, future


@pytest.fixture
def yard() -> Iterator[Yard]:
    made = Yard()
    yield made
    for gate in made.gates:
        gate.opened.set()
    for lane in made.lanes:
        lane.stop()


def _threads(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == f"recall-{name}"]


def _go_home(gate: Gate, name: str) -> None:
    """Opens a gate whose thread was written off, and waits until the thread is gone."""
    before = _threads(name)
    gate.opened.set()
    for thread in before:
        thread.join(LONG_S)


def test_a_job_runs_on_a_daemon_thread_and_its_result_comes_back(yard: Yard) -> None:
    thread = yard.lane().submit(threading.current_thread).result(LONG_S)
    assert thread.daemon
    assert thread is not threading.current_thread()


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1)])
def test_whatever_a_job_raises_belongs_to_its_future_and_the_lane_goes_on(yard: Yard, error: BaseException) -> None:
    def fail() -> None:
        raise error

    lane = yard.lane()
    assert lane.submit(fail).exception(LONG_S) is error
    assert lane.submit(lambda: 7).result(LONG_S) == 7


def test_one_job_runs_at_a_time_and_the_newest_waiting_one_comes_next(yard: Yard) -> None:
    lane = yard.lane()
    order: list[str] = []
    gate, first = yard.hang(lane)
    waiting = [lane.submit(lambda name=name: order.append(name)) for name in "abc"]  # type: ignore[misc]
    assert lane.busy
    assert not any(job.running() or job.done() for job in waiting)
    gate.opened.set()
    assert first.result(LONG_S) == "late"
    for job in waiting:
        job.result(LONG_S)
    assert order == ["c", "b", "a"]


def test_a_job_that_was_cancelled_before_it_started_is_skipped(yard: Yard) -> None:
    lane = yard.lane()
    ran: list[str] = []
    gate, _ = yard.hang(lane)
    last = lane.submit(lambda: ran.append("last"))
    dropped = lane.submit(lambda: ran.append("dropped"))
    assert dropped.cancel()
    gate.opened.set()
    last.result(LONG_S)
    assert ran == ["last"]


def test_only_so_many_jobs_wait_and_the_oldest_gives_way(yard: Yard) -> None:
    lane = yard.lane()
    gate, _ = yard.hang(lane)
    waiting = [lane.submit(lambda: None) for _ in range(workers._BACKLOG + 2)]
    assert [job.cancelled() for job in waiting] == [True, True] + [False] * workers._BACKLOG
    gate.opened.set()
    for job in waiting[2:]:
        job.result(LONG_S)


def test_a_job_within_its_patience_is_left_alone(yard: Yard) -> None:
    lane = yard.lane()
    gate, future = yard.hang(lane)
    yard.clock.now += 1.99
    assert lane.busy
    assert not future.done()
    gate.opened.set()
    assert future.result(LONG_S) == "late"


def test_a_job_beyond_its_patience_is_written_off_and_a_fresh_thread_takes_over(yard: Yard) -> None:
    lane = yard.lane("fresh")
    gate, hung = yard.hang(lane)
    yard.clock.now += 2.0
    assert lane.submit(lambda: "next").result(LONG_S) == "next"
    assert not gate.opened.is_set()
    assert isinstance(hung.exception(LONG_S), LaneBusy)
    assert len(_threads("fresh")) == 2


@pytest.mark.parametrize("error", [None, ValueError("late")])
def test_what_a_job_brings_after_it_was_written_off_is_ignored(yard: Yard, error: Exception | None) -> None:
    lane = yard.lane("late")
    gate, hung = yard.write_off(lane)
    gate.error = error
    _go_home(gate, "late")
    assert isinstance(hung.exception(), LaneBusy)


def test_the_alarm_frees_a_job_that_waits_behind_a_hung_one(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[float, Callable[[], object]]] = []
    alarm = Alarm()
    monkeypatch.setattr(alarm, "after", lambda delay_s, call: calls.append((delay_s, call)))
    monkeypatch.setattr(workers, "ALARM", alarm)
    lane = yard.lane()
    yard.hang(lane)
    behind = lane.submit(lambda: "freed")
    yard.clock.now += 2.0
    (delay_s, call), *_ = calls
    assert delay_s == 2.0
    call()
    assert behind.result(LONG_S) == "freed"


def test_three_hangs_in_a_row_open_the_breaker_and_waiting_jobs_fail_at_once(yard: Yard) -> None:
    lane = yard.lane()
    yard.write_off(lane)
    yard.write_off(lane)
    assert not lane.is_open
    yard.hang(lane)
    behind = lane.submit(lambda: "never")
    yard.clock.now += 2.0
    assert lane.is_open
    assert isinstance(behind.exception(LONG_S), LaneBusy)
    assert isinstance(lane.submit(lambda: "never").exception(), LaneBusy)


def test_the_breaker_closes_after_its_rest_and_the_next_hang_opens_it_again(yard: Yard) -> None:
    lane = yard.lane(max_stuck=9)
    for _ in range(3):
        yard.write_off(lane)
    yard.clock.now += 29.9
    assert lane.is_open
    yard.clock.now += 0.1
    assert not lane.is_open
    yard.write_off(lane)
    assert lane.is_open


def test_a_good_job_after_the_rest_makes_the_count_of_hangs_start_anew(yard: Yard) -> None:
    lane = yard.lane(max_stuck=9)
    for _ in range(3):
        yard.write_off(lane)
    yard.clock.now += 30.0
    assert lane.submit(lambda: "good").result(LONG_S) == "good"
    gate, _ = yard.hang(lane)  # starts only after the good job was counted
    gate.opened.set()
    yard.write_off(lane)
    yard.write_off(lane)
    assert not lane.is_open


def test_a_hung_job_that_comes_back_closes_the_breaker(yard: Yard) -> None:
    lane = yard.lane("back", breaker_after=1)
    gate, _ = yard.write_off(lane)
    assert lane.is_open
    _go_home(gate, "back")
    assert not lane.is_open
    assert lane.submit(lambda: "good").result(LONG_S) == "good"


def test_written_off_threads_are_bounded_however_long_the_breaker_rests(yard: Yard) -> None:
    lane = yard.lane("bounded", breaker_after=99, max_stuck=2)
    gate, _ = yard.write_off(lane)
    yard.write_off(lane)
    yard.clock.now += 1000.0
    assert lane.is_open
    assert isinstance(lane.submit(lambda: None).exception(), LaneBusy)
    assert len(_threads("bounded")) == 2
    gate.opened.set()
    for thread in _threads("bounded")[:1]:
        thread.join(LONG_S)
    assert lane.submit(lambda: "again").result(LONG_S) == "again"


def test_a_stopped_lane_cancels_what_waits_refuses_the_rest_and_sends_its_thread_home(yard: Yard) -> None:
    lane = yard.lane("stopped")
    gate, running = yard.hang(lane)
    waiting = lane.submit(lambda: None)
    lane.stop()
    assert waiting.cancelled()
    assert lane.is_open
    assert isinstance(lane.submit(lambda: None).exception(), LaneBusy)
    _go_home(gate, "stopped")
    assert running.result(LONG_S) == "late"
    assert _threads("stopped") == []


def test_stopping_the_lanes_stops_both(yard: Yard) -> None:
    lanes = Lanes(fast=yard.lane(), refined=yard.lane())
    lanes.stop()
    assert (lanes.fast.is_open, lanes.refined.is_open) == (True, True)


def test_an_idle_thread_goes_home_and_a_forgotten_lane_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_IDLE_S", 0.0)
    lane = Lane("idle", patience_s=LONG_S)
    lane.submit(threading.current_thread).result(LONG_S).join(LONG_S)
    assert lane.submit(lambda: "woken").result(LONG_S) == "woken"
    for thread in _threads("idle"):
        thread.join(LONG_S)
    forgotten = weakref.ref(lane)
    del lane
    gc.collect()
    assert forgotten() is None


def test_a_lane_without_a_thread_keeps_its_jobs_for_the_next_try(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = yard.lane()
    with monkeypatch.context() as scarce:
        scarce.setattr(threading.Thread, "start", _no_thread)
        early = lane.submit(lambda: "early")
    assert lane.submit(lambda: "later").result(LONG_S) == "later"
    assert early.result(LONG_S) == "early"


def _no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_an_earlier_call_overtakes_a_later_one_and_a_failing_call_stops_nothing() -> None:
    alarm = Alarm()
    called = threading.Event()
    late: list[str] = []
    alarm.after(3600.0, lambda: late.append("late"))
    alarm.after(0.0, lambda: 1 / 0)
    alarm.after(0.0, called.set)
    assert called.wait(LONG_S)
    assert late == []


def test_calls_of_an_alarm_run_in_the_order_of_their_times_on_one_daemon_thread() -> None:
    clock = Clock()
    alarm = Alarm(clock)
    ran: list[tuple[str, threading.Thread]] = []
    done = threading.Event()
    gate = Gate()
    alarm.after(0.0, gate)  # holds the thread until all calls are known
    assert gate.started.wait(LONG_S)
    for delay_s, name in [(3.0, "c"), (1.0, "a"), (2.0, "b")]:
        alarm.after(delay_s, lambda name=name: ran.append((name, threading.current_thread())))  # type: ignore[misc]
    alarm.after(4.0, done.set)
    clock.now = 4.0
    gate.opened.set()
    assert done.wait(LONG_S)
    assert [name for name, _ in ran] == ["a", "b", "c"]
    assert {thread.daemon for _, thread in ran} == {True}
    assert len({thread for _, thread in ran}) == 1


def test_a_process_ends_at_once_while_a_job_hangs() -> None:
    script = """
import threading
from recall.search.workers import ALARM, Lane
lane = Lane("hung", patience_s=3600)
started = threading.Event()
lane.submit(lambda: (started.set(), threading.Event().wait()))
assert started.wait(60)
lane.submit(lambda: print("never"))
ALARM.after(3600, print)
print("main is done", flush=True)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, encoding="utf-8", timeout=100
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "main is done\n", "")
