"""Daemon workers for searches that must never hold a caller up, and the one timer that they share.

A `Lane` runs one kind of job, one job at a time. A job that outstays its patience is written off together with its
thread, a fresh thread takes over, and after repeated hangs the lane refuses work for a while instead of piling up
threads. Nothing here is ever joined: a process ends at once, whatever a job is doing.
"""

import heapq
import itertools
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from recall.errors import RecallError

T = TypeVar("T")

_LOG = logging.getLogger(__name__)
_IDLE_S = 30.0  # an idle thread goes home after this long, so that a forgotten lane is collected
_FADING = 0.98
_MOST_LATE_S = 0.04
_BACKLOG = 8  # jobs that may wait; beyond it the oldest one gives way to the newest


class LaneBusy(RecallError):  # noqa: N818 - a state of the lane that callers expect, not a mistake
    """The lane does not run this job: it hung, the breaker is open, or the lane was stopped."""


class Alarm:
    """Calls functions later on one daemon thread, which starts with the first request.

    Calls have to be short: a slow one delays those behind it. Their exceptions are logged and dropped.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._order = itertools.count()
        self.begin()

    def begin(self) -> None:
        """Has it without calls and without its thread, as it is in a forked child, where nobody gives its lock back."""
        self._changed = threading.Condition()
        self._calls: list[tuple[float, int, Callable[[], object]]] = []
        self._thread: threading.Thread | None = None

    def after(self, delay_s: float, call: Callable[[], object]) -> None:
        """Runs `call` once, `delay_s` seconds from now; holds on to it until then."""
        with self._changed:
            entry = (self._clock() + delay_s, next(self._order), call)
            heapq.heappush(self._calls, entry)
            if self._thread is None or not self._thread.is_alive():
                self._thread = _started(self._serve, "recall-alarm")
            elif self._calls[0] is entry:
                self._changed.notify()

    def _serve(self) -> None:
        while True:
            try:
                self._next()()  # never bound to a name: a name would keep the call's owner alive while idle
            except Exception:
                _LOG.warning("a delayed call failed", exc_info=True)

    def _next(self) -> Callable[[], object]:
        with self._changed:
            while True:
                wait_s = self._calls[0][0] - self._clock() if self._calls else None
                if wait_s is not None and wait_s <= 0:
                    return heapq.heappop(self._calls)[2]
                self._changed.wait(wait_s)


ALARM = Alarm()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ALARM.begin)


@dataclass(eq=False, slots=True)
class _Job:
    call: Callable[[], Any]
    future: Future[Any]
    started: float = 0.0
    answered: bool = False  # under the lane's lock: who sets it answers the future


class Lane:
    """A single-flight daemon worker for one kind of job, with a breaker against jobs that hang.

    The newest waiting job runs first, since the older ones have likely missed their moment; a job whose future was
    cancelled is skipped. Safe to use from any thread.
    """

    def __init__(
        self,
        name: str,
        *,
        patience_s: float,
        breaker_after: int = 3,
        breaker_rest_s: float = 30.0,
        max_stuck: int = 4,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Makes a lane without threads; the first job starts one.

        Args:
            name: ends up in thread names and log lines.
            patience_s: a job that runs this long is written off: its future fails, its late result is ignored.
            breaker_after: consecutive hangs that open the breaker.
            breaker_rest_s: how long an open breaker refuses jobs; a hung job that comes back closes it earlier.
            max_stuck: written-off threads that may exist at once; while they do, the lane takes no jobs.
            clock: seconds, growing.
        """
        self._name = name
        self._patience_s = patience_s
        self._breaker_after = breaker_after
        self._breaker_rest_s = breaker_rest_s
        self._max_stuck = max_stuck
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: deque[_Job] = deque()
        self._running: _Job | None = None
        self._worker: threading.Thread | None = None
        self._stuck: set[_Job] = set()
        self._hangs = 0
        self._opened_at: float | None = None
        self._stopped = False

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Queues `call` and returns at once.

        Returns:
            The future of its result. It fails with LaneBusy when the lane refuses the job or writes it off, and is
            cancelled when newer jobs crowd it out. Cancelling it before the job starts skips the job.
        """
        self._review()
        job = _Job(call, Future())
        crowded_out: _Job | None = None
        with self._changed:
            accepted = not self._refuses()
            if accepted:
                self._waiting.append(job)
                crowded_out = self._waiting.popleft() if len(self._waiting) > _BACKLOG else None
                self._ensure_worker()
                self._changed.notify()
        if not accepted:
            job.future.set_exception(LaneBusy(f"{self._name} takes no jobs now"))
        if crowded_out is not None:
            crowded_out.future.cancel()
        return job.future

    @property
    def busy(self) -> bool:
        """Whether a new job would have to wait for another."""
        self._review()
        with self._changed:
            return self._running is not None or bool(self._waiting)

    @property
    def is_open(self) -> bool:
        """Whether the breaker is open (or the lane stopped), so that a new job would be refused."""
        self._review()
        with self._changed:
            return self._refuses()

    def stop(self) -> None:
        """Takes no more jobs, cancels the waiting ones and lets the running one end alone."""
        with self._changed:
            self._stopped = True
            dropped = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
        for job in dropped:
            job.future.cancel()

    def _refuses(self) -> bool:
        resting = self._opened_at is not None and self._clock() < self._opened_at + self._breaker_rest_s
        return self._stopped or resting or len(self._stuck) >= self._max_stuck

    def _ensure_worker(self) -> None:
        if self._worker is None:
            self._worker = _started(self._serve, f"recall-{self._name}")

    def _review(self) -> None:
        """Writes the running job off when it has outstayed its patience."""
        with self._changed:
            job = self._running
            if job is None or self._clock() - job.started < self._patience_s:
                return
            failed = [] if job.answered else [job]
            job.answered = True
            self._stuck.add(job)
            self._running = self._worker = None
            self._hangs += 1
            if self._hangs >= self._breaker_after or len(self._stuck) >= self._max_stuck:
                self._opened_at = self._clock()
                failed += self._waiting
                self._waiting.clear()
            elif self._waiting:
                self._ensure_worker()
        _LOG.warning("a %s job has run for %.1f s and is written off", self._name, self._patience_s)
        for lost in failed:
            if lost.future.running() or lost.future.set_running_or_notify_cancel():
                lost.future.set_exception(LaneBusy(f"{self._name} hangs"))

    def _serve(self) -> None:
        while (job := self._next()) is not None:
            try:
                result, error = job.call(), None
            except BaseException as raised:  # whatever it was, it belongs to the one who waits
                result, error = None, raised
            self._answer(job, result, error)
            del job, result, error  # an idle thread keeps nothing alive

    def _next(self) -> _Job | None:
        """Waits for the next job to run; None sends this thread home."""
        with self._changed:
            while self._worker is threading.current_thread():
                while self._waiting:
                    job = self._waiting.pop()
                    if job.future.set_running_or_notify_cancel():
                        job.started = self._clock()
                        self._running = job
                        ALARM.after(self._patience_s, _reviewer(weakref.ref(self)))
                        return job
                if self._stopped or (not self._changed.wait(_IDLE_S) and not self._waiting):
                    self._worker = None
        return None

    def _answer(self, job: _Job, result: object, error: BaseException | None) -> None:
        with self._changed:
            late, job.answered = job.answered, True
        if not late and error is not None:
            job.future.set_exception(error)
        elif not late:
            job.future.set_result(result)
        with self._changed:  # only now: a callback of the future that hangs is a hang of the job
            self._stuck.discard(job)
            if self._running is job:
                self._running = None
            self._hangs = 0
            self._opened_at = None


class Lateness:
    """By how much waits ended late: by a few ms on a busy machine, or where a thread of the host computes.

    Of late waits the latest counts, for some fifty waits to come, whether they end by time or by an answer.
    """

    def __init__(self) -> None:
        self._seconds = 0.0

    @property
    def seconds(self) -> float:
        """By how much the next wait may well end late; 0.04 at most."""
        return self._seconds

    def note(self, seconds: float) -> None:
        """A wait has ended so late; 0 for one that ended before its time."""
        self._seconds = max(min(seconds, _MOST_LATE_S), _FADING * self._seconds)


@dataclass(frozen=True, slots=True)
class Lanes:
    """The two lanes of a prefetch: the quick search never queues behind the considered one.

    Attributes:
        fast: runs the fast searches.
        refined: runs the refined searches, which may hang in an encoder or on a network.
        lateness: of the waits for them.
    """

    fast: Lane
    refined: Lane
    lateness: Lateness = field(default_factory=Lateness)

    def stop(self) -> None:
        """Stops both."""
        self.fast.stop()
        self.refined.stop()


def _started(serve: Callable[[], None], name: str) -> threading.Thread | None:
    """Starts a daemon; None when the system gives no thread now (what waits for it stays queued for the next try)."""
    thread = threading.Thread(target=serve, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        _LOG.warning("no thread for %s", name, exc_info=True)
        return None
    return thread


def _reviewer(lane: weakref.ref[Lane]) -> Callable[[], None]:
    def review() -> None:
        if (owner := lane()) is not None:
            owner._review()

    return review
