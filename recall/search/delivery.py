"""What a prefetch may hand over, when, and how it ends: rules as values, without threads and clocks.

`PrefetchState` is the life of one handle and `PrefetchSession` that of a host which has one handle at a time; times are
arguments. The rules are those of the founding document 000 (recall prefetch) and of spec qwen.md section 5.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from recall.search.types import Drop, Hit, Phase, Point, Recall, Strategy

FAST_K = 2


@dataclass(frozen=True, slots=True)
class PrefetchEvent:
    """What became of a handle, for telemetry (spec qwen.md section 10, recall.delivery).

    A handle reports one terminal event, which has phase refined, and before it at most one fast delivery.

    Attributes:
        phase: which of the two results.
        point: where it was handed over, or DISCARDED.
        drop: why it was not, None on a delivery.
        strategy: how the result was chosen; NONE when it was not in yet.
        selected: hits handed over on a delivery, hits chosen on a discard.
        latency_s: seconds since the handle was begun.
        fast_s: seconds from the begin until the fast search had ended, None while it runs.
        refined_s: the same of the refined search.
    """

    phase: Phase
    point: Point
    drop: Drop | None
    strategy: Strategy
    selected: int
    latency_s: float
    fast_s: float | None = None
    refined_s: float | None = None

    @property
    def delivered(self) -> int:
        """Hits handed over."""
        return self.selected if self.drop is None else 0

    @property
    def terminal(self) -> bool:
        """Whether nothing follows."""
        return self.phase is Phase.REFINED


@dataclass(frozen=True, slots=True)
class Delivery:
    """Memories for the model to see now.

    Attributes:
        recall: only what is delivered; its prompt is about exactly these hits.
        phase: which of the two results it is.
        point: where in the turn it belongs: before the user's message, or after a tool result.
        latency_s: seconds since the handle was begun.
    """

    recall: Recall
    phase: Phase
    point: Point
    latency_s: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a state decided: deliver, or drop.

    Attributes:
        event: the decision, to be reported.
        recall: what to deliver, None on a drop. Its prompt is empty when hits were left out: render it anew.
    """

    event: PrefetchEvent
    recall: Recall | None = None


@dataclass(frozen=True, slots=True)
class PrefetchState:
    """One handle, from its begin to its only terminal event; every transition gives a new value.

    A transition that can hand something over returns the new state and a Verdict, or None: nothing now. An initial
    request that gets None while `waiting` waits for the next event, at most until its deadline, and asks again.

    Attributes:
        begun: when the handle was begun, in seconds of any clock.
        excluded: ids of topics that the model has before its eyes; never delivered.
        fast_k: most hits of a fast delivery.
        fast: the published fast result, None while there is none.
        refined: the settled result, None while the search runs; empty when it failed.
        shown: ids that this handle's fast delivery handed over.
        ended: the terminal event, None while the handle is open.
    """

    begun: float
    excluded: frozenset[str] = frozenset()
    fast_k: int = FAST_K
    fast: Recall | None = None
    refined: Recall | None = None
    shown: frozenset[str] = frozenset()
    ended: PrefetchEvent | None = None

    @property
    def waiting(self) -> bool:
        """Whether an initial request has to wait; once false, it stays false."""
        return self.ended is None and self.fast is None and self.refined is None

    def on_fast(self, recall: Recall) -> "PrefetchState":
        """The fast result is published; ignored when it comes twice or too late to matter."""
        if not self.waiting:
            return self
        return replace(self, fast=admitted(recall, excluded=self.excluded, k=self.fast_k))

    def on_refined(self, recall: Recall) -> "PrefetchState":
        """The refined search has ended; ignored when the handle has."""
        if self.ended is not None or self.refined is not None:
            return self
        return replace(self, refined=admitted(recall, excluded=self.excluded))

    def on_failed(self) -> "PrefetchState":
        """The refined search failed, which counts as an empty result."""
        return self.on_refined(Recall(query=""))

    def on_initial(self, now: float) -> "Step":
        """The first request to the model is about to leave: its question, and its question at the deadline."""
        if self.ended is not None:
            return self, None
        if self.refined is not None:
            return self._settle(self.refined, Point.INITIAL, now)
        if self.fast is None or not self.fast.hits or self.shown:
            return self, None
        event = self._event(Point.INITIAL, now, phase=Phase.FAST, recall=self.fast)
        return replace(self, shown=ids(self.fast)), Verdict(event, self.fast)

    def on_tool_result(self, now: float) -> "Step":
        """A tool result goes to the model: only a settled result may ride along, a fast one never."""
        if self.ended is not None or self.refined is None:
            return self, None
        return self._settle(self.refined, Point.TOOL_RESULT, now)

    def on_turn_end(self, now: float) -> "Step":
        """The turn is over: there is no place left to deliver to."""
        return self.cancel(Drop.NO_SAFE_DELIVERY_POINT, now)

    def on_abort(self, now: float) -> "Step":
        """The surrounding request was aborted, which stops a running search but leaves a settled result alone."""
        return (self, None) if self.refined is not None else self.cancel(Drop.ABORT, now)

    def cancel(self, reason: Drop, now: float) -> "Step":
        """Ends the handle. A result that the fast delivery covered wholly was not lost and is reported as such."""
        if self.ended is not None:
            return self, None
        chosen = ids(self.refined) if self.refined is not None else frozenset()
        covered = bool(chosen) and chosen <= self.shown
        return self._end(self._event(Point.DISCARDED, now, drop=Drop.ALREADY_DELIVERED if covered else reason))

    def _settle(self, refined: Recall, point: Point, now: float) -> "Step":
        rest = admitted(refined, excluded=self.shown)
        if rest.hits:
            return self._end(self._event(point, now, recall=rest), rest)
        drop = Drop.ALREADY_DELIVERED if refined.hits else Drop.NO_RELEVANT_RESULTS
        return self._end(self._event(Point.DISCARDED, now, drop=drop))

    def _end(self, event: PrefetchEvent, recall: Recall | None = None) -> "Step":
        return replace(self, ended=event), Verdict(event, recall)

    def _event(
        self,
        point: Point,
        now: float,
        *,
        phase: Phase = Phase.REFINED,
        recall: Recall | None = None,
        drop: Drop | None = None,
    ) -> PrefetchEvent:
        about = recall or self.refined
        strategy, selected = (about.strategy, len(about.hits)) if about else (Strategy.NONE, 0)
        return PrefetchEvent(phase, point, drop, strategy, selected, now - self.begun)


Step = tuple[PrefetchState, Verdict | None]


def ids(recall: Recall) -> frozenset[str]:
    """The topics of a recall."""
    return frozenset(hit.topic.id for hit in recall.hits)


def admitted(recall: Recall, *, excluded: Collection[str], k: int | None = None) -> Recall:
    """The recall without excluded and repeated topics, at most `k` of them; without its prompt if that changed it."""
    kept: dict[str, Hit] = {}
    for hit in recall.hits:
        if hit.topic.id not in excluded:
            kept.setdefault(hit.topic.id, hit)
    hits = tuple(kept.values())[:k]
    if len(hits) == len(recall.hits):
        return recall
    return replace(recall, hits=hits, prompt="", strategy=recall.strategy if hits else Strategy.NONE)


@dataclass(frozen=True, slots=True)
class PrefetchSession:
    """A host's turns: one pending handle at a time, and no topic twice while the model still has it.

    Events of a search carry the serial number of the handle that started it, so that late ones are told apart.

    Attributes:
        enabled: a session that is switched off begins nothing and reports nothing.
        surfaced: ids of the topics that were delivered; the next handle excludes them.
        serial: number of the latest handle, 0 before the first.
        pending: the open handle.
    """

    enabled: bool = True
    surfaced: frozenset[str] = frozenset()
    serial: int = 0
    pending: PrefetchState | None = None

    def begin(self, now: float) -> "SessionStep":
        """Starts the handle of a new query, which ends the pending one; `surfaced` is what its search excludes."""
        if not self.enabled:
            return self, None
        ended, verdict = self.cancel(Drop.NEW_QUERY, now)
        state = PrefetchState(begun=now, excluded=ended.surfaced)
        return replace(ended, serial=self.serial + 1, pending=state), verdict

    def on_fast(self, serial: int, recall: Recall) -> "PrefetchSession":
        """The fast result of a handle is published."""
        state = self._handle(serial)
        return self if state is None else replace(self, pending=state.on_fast(recall))

    def on_refined(self, serial: int, recall: Recall) -> "PrefetchSession":
        """The refined search of a handle has ended."""
        state = self._handle(serial)
        return self if state is None else replace(self, pending=state.on_refined(recall))

    def on_failed(self, serial: int) -> "PrefetchSession":
        """The refined search of a handle failed."""
        state = self._handle(serial)
        return self if state is None else replace(self, pending=state.on_failed())

    def waiting(self, serial: int) -> bool:
        """Whether an initial request of this handle has to wait."""
        state = self._handle(serial)
        return state is not None and state.waiting

    def on_initial(self, serial: int, now: float) -> "SessionStep":
        """The first request of the handle's turn is about to leave, or its wait is over."""
        state = self._handle(serial)
        return (self, None) if state is None else self._after(state.on_initial(now))

    def on_tool_result(self, serial: int, now: float) -> "SessionStep":
        """A tool result of the handle's turn goes to the model."""
        state = self._handle(serial)
        return (self, None) if state is None else self._after(state.on_tool_result(now))

    def on_turn_end(self, now: float) -> "SessionStep":
        """The turn is over."""
        return self.cancel(Drop.NO_SAFE_DELIVERY_POINT, now)

    def on_abort(self, now: float) -> "SessionStep":
        """The surrounding request was aborted."""
        return (self, None) if self.pending is None else self._after(self.pending.on_abort(now))

    def cancel(self, reason: Drop, now: float) -> "SessionStep":
        """Ends the pending handle, if any."""
        return (self, None) if self.pending is None else self._after(self.pending.cancel(reason, now))

    def reset(self, now: float) -> "SessionStep":
        """The conversation starts anew: every topic may come again."""
        session, verdict = self.cancel(Drop.RESET, now)
        return replace(session, surfaced=frozenset()), verdict

    def compacted(self, topics: Collection[str]) -> "PrefetchSession":
        """The host cut these topics out of its context: they may come again (deviations V16)."""
        return replace(self, surfaced=self.surfaced.difference(topics))

    def _handle(self, serial: int) -> PrefetchState | None:
        return self.pending if serial == self.serial else None

    def _after(self, step: Step) -> "SessionStep":
        state, verdict = step
        new = ids(verdict.recall) if verdict is not None and verdict.recall is not None else frozenset()
        pending = state if state.ended is None else None
        return replace(self, surfaced=self.surfaced | new, pending=pending), verdict


SessionStep = tuple[PrefetchSession, Verdict | None]
