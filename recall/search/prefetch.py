"""A recall that answers inside the turn: something at once, the considered rest later, nothing twice.

`Prefetch` runs two searches on daemon lanes and feeds a `PrefetchState`, which holds the rules (search.delivery).
"""

import logging
import math
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from recall.search.delivery import (
    FAST_K,
    Delivery,
    PrefetchEvent,
    PrefetchSession,
    PrefetchState,
    Step,
    Verdict,
    admitted,
)
from recall.search.types import Drop, Hit, Phase, Point, Recall, Strategy
from recall.search.workers import ALARM, LaneBusy, Lanes

__all__ = ["Delivery", "Limits", "Prefetch", "PrefetchEvent", "PrefetchSession", "PrefetchState", "Search"]

INITIAL_WAIT_S = 0.1

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Search:
    """One query as the two searches that a prefetch runs.

    Attributes:
        fast: the quick search.
        refined: the considered search; when it fails, the fast result takes its place.
        render: writes the prompt about some hits; also for every recall that comes without one.
        excluded: ids of topics that may not be delivered.
        refined_expected: whether the refined result is likely to be in within the wait. The fast one is then held
            back for a while; otherwise (encoder cold, busy or broken, or a slow model) it is published at once.
    """

    fast: Callable[[], Recall]
    refined: Callable[[], Recall]
    render: Callable[[Sequence[Hit]], str]
    excluded: frozenset[str] = frozenset()
    refined_expected: bool = True


@dataclass(frozen=True, slots=True)
class Limits:
    """The figures of a prefetch.

    Attributes:
        fast_k: most hits of a fast delivery.
        budget_s: how long an initial request waits unless it says otherwise.
        hold_s: how long after the initial request a fast result is held back for an expected refined one.
        margin_s: part of the allowed time that is kept for handing over; so much more as waits have ended late.
    """

    fast_k: int = FAST_K
    budget_s: float = INITIAL_WAIT_S
    hold_s: float = 0.07
    margin_s: float = 0.012


@dataclass(slots=True)
class _Results:
    """What the searches brought so far: None while one runs, an empty recall after a failed fast search."""

    fast: Recall | None = None
    top: Recall | None = None  # the part of fast that a fast delivery shows
    refined: Recall | None = None
    refined_failed: bool = False
    seconds: dict[Phase, float] = field(default_factory=dict)


class Prefetch:
    """The handle of one query, safe to use from any thread.

    Both searches start with the constructor. Whatever they do, `first` returns in time; what they bring after the end
    is ignored. No topic is handed over twice, so ask for the first delivery either by `first` or by `future`: with
    both, whoever comes first gets it and the other gets None.

    A refined search that fails is replaced by the whole fast result, which keeps its own strategy, as the founding
    document 000 does with a model that fails. An empty refined result is an answer and is replaced by nothing.
    """

    def __init__(
        self,
        search: Search,
        lanes: Lanes,
        *,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_event: Callable[[PrefetchEvent], object] | None = None,
        on_delivery: Callable[[Delivery], object] | None = None,
    ) -> None:
        """Starts both searches.

        Args:
            search: what to run.
            lanes: where to run it.
            limits: waiting times and sizes.
            clock: seconds, growing.
            on_event: gets every event, on the thread that caused it; its exceptions are logged and dropped.
            on_delivery: likewise every delivery.
        """
        self._limits = limits or Limits()
        self._lateness = lanes.lateness
        self._clock = clock
        self._on_event = on_event
        self._on_delivery = on_delivery
        self._render = search.render
        self._lock = threading.Lock()  # never held while foreign code runs
        self._ready = threading.Event()  # set for good once the state waits no longer
        self._state = PrefetchState(begun=clock(), excluded=search.excluded, fast_k=self._limits.fast_k)
        self._results = _Results()
        self._holding = search.refined_expected
        self._asked_at = math.inf
        self._future: Future[Delivery | None] | None = None
        self._future_open = False
        fast = lanes.fast.submit(partial(_searched, search.fast, search, self._limits.fast_k))
        refined = lanes.refined.submit(partial(_searched, search.refined, search))
        self._drop_jobs = weakref.finalize(self, _cancel, (fast, refined))
        self._drop_jobs.atexit = False
        fast.add_done_callback(partial(_arrived, weakref.ref(self), Phase.FAST))
        refined.add_done_callback(partial(_arrived, weakref.ref(self), Phase.REFINED))

    def first(self, timeout_s: float | None = None) -> Delivery | None:
        """What the first request to the model should carry: the refined result if it is in, else the fast one.

        Args:
            timeout_s: most seconds to wait, counted from this call; 0 takes what is there, None is the budget (0.1).
        """
        now = self._note_asked()
        budget_s = self._limits.budget_s if timeout_s is None else timeout_s
        deadline = now + max(0.0, budget_s - self._limits.margin_s - self._lateness.seconds)
        end = deadline + self._limits.margin_s
        in_time = self._wait(min(deadline, now + self._limits.hold_s))
        if not in_time:
            self._stop_holding(end)
            in_time = self._wait(deadline)
        if budget_s > 0:
            self._lateness.note(0.0 if in_time else self._clock() - deadline)
        return self._consume(PrefetchState.on_initial, end)

    def on_tool_result(self) -> Delivery | None:
        """What the next tool result should carry: the refined result without what was delivered; never waits."""
        return self._consume(PrefetchState.on_tool_result, self._soon())

    def close(self, reason: Drop = Drop.NO_SAFE_DELIVERY_POINT) -> Drop | None:
        """Ends the handle; harmless when it has ended.

        Returns:
            Why nothing, or nothing more, was delivered; None when the refined result was.
        """
        with self._lock:
            self._state, verdict = self._state.cancel(reason, self._clock())
        if verdict is not None:
            self._hand_over(verdict)
            self._announce()
        ended = self._state.ended
        return ended.drop if ended is not None else None

    @property
    def future(self) -> Future[Delivery | None]:
        """What `first` would give, for hosts that cannot block; a thread of this library resolves it.

        Its time counts from the first call of either. Cancelling it leaves the delivery to the other points.
        """
        gone = self._note_asked() - self._asked_at
        with self._lock:
            if self._future is not None:
                return self._future
            future = self._future = Future()
            self._future_open = True
        wait_s = self._limits.budget_s - self._limits.margin_s
        ALARM.after(min(wait_s, self._limits.hold_s) - gone, self._stop_holding)
        ALARM.after(wait_s - gone, self._resolve)
        self._announce()
        return future

    def _note_asked(self) -> float:
        now = self._clock()
        self._asked_at = min(self._asked_at, now)
        return now

    def _soon(self) -> float:
        return self._clock() + self._limits.margin_s

    def _left(self, until: float) -> float:
        return min(max(0.0, until - self._clock()), threading.TIMEOUT_MAX)

    def _wait(self, until: float) -> bool:
        return self._ready.wait(self._left(until))

    def _enter(self, until: float) -> bool:
        return self._lock.acquire(timeout=self._left(until))

    def _stop_holding(self, until: float | None = None) -> None:
        """The refined result will not make it: the fast one may be published, now or when it comes."""
        self._holding = False
        if self._enter(self._soon() if until is None else until):
            try:
                self._feed()
            finally:
                self._lock.release()
            self._announce()

    def _take(self, phase: Phase, found: tuple[Recall, Recall] | None) -> None:
        """A search has ended; None when it failed."""
        with self._lock:
            got = self._results
            got.seconds[phase] = self._clock() - self._state.begun
            if phase is Phase.FAST:
                got.fast, got.top = found or (Recall(query=""), Recall(query=""))
            elif found is not None:
                got.refined = found[0]
            else:
                got.refined_failed = True
            self._feed()
        self._announce()

    def _feed(self) -> None:
        """Tells the state, which ignores what it knows, what it may know by now."""
        got = self._results
        if got.refined is not None:
            self._state = self._state.on_refined(got.refined)
        elif got.refined_failed and got.fast is not None:
            self._state = self._state.on_refined(got.fast)
        elif got.top is not None and got.top.hits and not self._holding:
            self._state = self._state.on_fast(got.top)

    def _announce(self) -> None:
        if not self._state.waiting:
            self._ready.set()
            self._resolve()

    def _resolve(self) -> None:
        """Answers the future, if it was asked for and is still open."""
        with self._lock:
            future, self._future_open = self._future if self._future_open else None, False
        if future is not None and future.set_running_or_notify_cancel():
            future.set_result(self._consume(PrefetchState.on_initial, self._soon()))

    def _consume(self, ask: Callable[[PrefetchState, float], Step], until: float) -> Delivery | None:
        if not self._enter(until):
            return None
        try:
            self._feed()
            self._state, verdict = ask(self._state, self._clock())
        finally:
            self._lock.release()
        return None if verdict is None else self._hand_over(verdict)

    def _hand_over(self, verdict: Verdict) -> Delivery | None:
        event, recall = verdict.event, verdict.recall
        if recall is not None and event.terminal:
            try:
                recall = _written(recall, self._render)
            except Exception:
                _LOG.warning("rendering failed: nothing is delivered", exc_info=True)
                event, recall = self._unrendered(event), None
        self._report(event)
        if event.terminal:
            self._drop_jobs()
        if recall is None:
            return None
        delivery = Delivery(recall, event.phase, event.point, event.latency_s)
        if self._on_delivery is not None:
            try:
                self._on_delivery(delivery)
            except Exception:
                _LOG.warning("a listener of deliveries failed", exc_info=True)
        return delivery

    def _unrendered(self, event: PrefetchEvent) -> PrefetchEvent:
        """Turns a delivery that cannot be written down into that of a failed search."""
        drop, none = Drop.NO_RELEVANT_RESULTS, Strategy.NONE
        event = replace(event, point=Point.DISCARDED, drop=drop, strategy=none, selected=0)
        with self._lock:
            self._state = replace(self._state, ended=event)
        return event

    def _report(self, event: PrefetchEvent) -> None:
        if self._on_event is None:
            return
        seconds = self._results.seconds
        try:
            self._on_event(replace(event, fast_s=seconds.get(Phase.FAST), refined_s=seconds.get(Phase.REFINED)))
        except Exception:
            _LOG.warning("a listener of prefetch events failed", exc_info=True)


def _searched(find: Callable[[], Recall], search: Search, k: int | None = None) -> tuple[Recall, Recall]:
    """Runs on a lane: all that may be delivered, and the best `k` of it, each with its prompt."""
    whole = _written(admitted(find(), excluded=search.excluded), search.render)
    return whole, _written(admitted(whole, excluded=(), k=k), search.render)


def _written(recall: Recall, render: Callable[[Sequence[Hit]], str]) -> Recall:
    return replace(recall, prompt=render(recall.hits)) if recall.hits and not recall.prompt else recall


def _cancel(jobs: tuple[Future[Any], ...]) -> None:
    for job in jobs:
        job.cancel()


def _arrived(owner: weakref.ref[Prefetch], phase: Phase, job: Future[tuple[Recall, Recall]]) -> None:
    prefetch = owner()
    if prefetch is None:
        return
    error = CancelledError() if job.cancelled() else job.exception()
    if error is not None:
        expected = isinstance(error, CancelledError | LaneBusy | SystemExit)  # the last at the end of the process
        _LOG.log(logging.DEBUG if expected else logging.WARNING, "no %s result", phase, exc_info=error)
    prefetch._take(phase, None if error is not None else job.result())
