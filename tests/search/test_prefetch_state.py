"""The rules of delivering, as values: spec qwen.md section 5 and the recall prefetch chart of document 000."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from recall.search.delivery import Step, Verdict, admitted
from recall.search.prefetch import PrefetchSession, PrefetchState
from recall.search.types import Drop, Hit, Phase, Point, Recall, Strategy
from recall.store.topics import Scope, Topic

REASONS = st.sampled_from([Drop.NO_SAFE_DELIVERY_POINT, Drop.NEW_QUERY, Drop.RESET, Drop.ABORT, Drop.SHUTDOWN])
NAMES = st.lists(st.sampled_from("abcdef"), max_size=6)


def _recall(names: str | list[str], strategy: Strategy = Strategy.HYBRID) -> Recall:
    hits = tuple(
        Hit(Topic(Scope.PROJECT, name, name, "", None, "", 0.0, 0.0, Path("/memory", name)), 1.0) for name in names
    )
    return Recall("q", hits, strategy if names else Strategy.NONE, "".join(names))


def _names(recall: Recall | None) -> str:
    return "".join(hit.topic.id for hit in recall.hits) if recall else ""


def _told(step: Step) -> tuple[Phase, Point, Drop | None, str] | None:
    if (verdict := step[1]) is None:
        return None
    return verdict.event.phase, verdict.event.point, verdict.event.drop, _names(verdict.recall)


DROPPED = (Phase.REFINED, Point.DISCARDED)
NEW = PrefetchState(begun=10.0)
FAST_SHOWN = NEW.on_fast(_recall("ab", Strategy.HEURISTIC)).on_initial(10.1)[0]


def test_a_new_handle_waits_and_has_nothing_for_anybody() -> None:
    assert NEW.waiting
    assert _told(NEW.on_initial(10.1)) is None
    assert _told(NEW.on_tool_result(10.1)) is None


def test_a_settled_result_goes_out_whole_at_the_first_request_even_if_the_fast_one_came_earlier() -> None:
    state = NEW.on_fast(_recall("ab")).on_refined(_recall("abc"))
    assert _told(state.on_initial(10.1)) == (Phase.REFINED, Point.INITIAL, None, "abc")


def test_a_fast_result_goes_out_at_the_first_request_only_and_only_once() -> None:
    state = NEW.on_fast(_recall("ab"))
    assert _told(state.on_tool_result(10.1)) is None
    shown, _ = state.on_initial(10.1)
    assert _told(state.on_initial(10.1)) == (Phase.FAST, Point.INITIAL, None, "ab")
    assert _told(shown.on_initial(10.2)) is None
    assert not shown.waiting


def test_a_fast_result_has_at_most_two_hits_and_then_needs_a_new_prompt() -> None:
    verdict = NEW.on_fast(_recall("abc")).on_initial(10.1)[1]
    assert verdict is not None
    assert (_names(verdict.recall), verdict.recall and verdict.recall.prompt) == ("ab", "")


def test_an_empty_fast_result_ends_the_wait_without_a_delivery() -> None:
    state = NEW.on_fast(_recall(""))
    assert not state.waiting
    assert _told(state.on_initial(10.1)) is None


def test_the_refined_result_leaves_out_what_the_fast_one_showed_and_loses_its_prompt() -> None:
    verdict = FAST_SHOWN.on_refined(_recall("bcad")).on_tool_result(10.4)[1]
    assert verdict is not None
    assert (_names(verdict.recall), verdict.recall and verdict.recall.prompt) == ("cd", "")
    assert (verdict.event.selected, verdict.event.delivered) == (2, 2)


def test_a_refined_result_that_repeats_nothing_keeps_its_prompt() -> None:
    verdict = FAST_SHOWN.on_refined(_recall("cd")).on_tool_result(10.4)[1]
    assert verdict is not None
    assert verdict.recall == _recall("cd")


@pytest.mark.parametrize("ask", [PrefetchState.on_initial, PrefetchState.on_tool_result])
def test_nothing_left_is_already_delivered_and_nothing_chosen_is_no_relevant_results(
    ask: Callable[[PrefetchState, float], Step],
) -> None:
    assert _told(ask(FAST_SHOWN.on_refined(_recall("b")), 10.4)) == (*DROPPED, Drop.ALREADY_DELIVERED, "")
    assert _told(ask(FAST_SHOWN.on_refined(_recall("")), 10.4)) == (*DROPPED, Drop.NO_RELEVANT_RESULTS, "")
    assert _told(ask(NEW.on_failed(), 10.4)) == (*DROPPED, Drop.NO_RELEVANT_RESULTS, "")


def test_a_discard_reports_how_many_hits_were_chosen_but_none_as_delivered() -> None:
    verdict = FAST_SHOWN.on_refined(_recall("b")).on_tool_result(10.5)[1]
    assert verdict is not None
    assert (verdict.event.selected, verdict.event.delivered) == (1, 0)
    assert verdict.event.strategy is Strategy.HYBRID
    assert verdict.event.latency_s == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(NEW, Drop.SHUTDOWN, id="not settled"),
        pytest.param(FAST_SHOWN, Drop.SHUTDOWN, id="fast shown, not settled"),
        pytest.param(NEW.on_refined(_recall("a")), Drop.SHUTDOWN, id="settled, nothing shown"),
        pytest.param(FAST_SHOWN.on_refined(_recall("abc")), Drop.SHUTDOWN, id="settled, partly shown"),
        pytest.param(FAST_SHOWN.on_refined(_recall("ba")), Drop.ALREADY_DELIVERED, id="settled, wholly shown"),
        pytest.param(FAST_SHOWN.on_refined(_recall("")), Drop.SHUTDOWN, id="settled and empty (V18)"),
        pytest.param(FAST_SHOWN.on_failed(), Drop.SHUTDOWN, id="failed"),
    ],
)
def test_a_cancelled_handle_gives_the_reason_unless_everything_chosen_was_shown(
    state: PrefetchState, expected: Drop
) -> None:
    assert _told(state.cancel(Drop.SHUTDOWN, 11.0)) == (*DROPPED, expected, "")


def test_the_end_of_a_turn_is_no_safe_delivery_point() -> None:
    assert _told(NEW.on_turn_end(11.0)) == (*DROPPED, Drop.NO_SAFE_DELIVERY_POINT, "")


def test_an_abort_stops_a_running_search_and_leaves_a_settled_result_alone() -> None:
    assert _told(NEW.on_abort(10.1)) == (*DROPPED, Drop.ABORT, "")
    settled = NEW.on_refined(_recall("a"))
    assert settled.on_abort(10.1) == (settled, None)


def test_excluded_topics_are_neither_delivered_nor_counted() -> None:
    state = PrefetchState(begun=0.0, excluded=frozenset("ab"))
    assert _told(state.on_fast(_recall("abcd")).on_initial(0.1)) == (Phase.FAST, Point.INITIAL, None, "cd")
    assert _told(state.on_refined(_recall("ba")).on_initial(0.1)) == (*DROPPED, Drop.NO_RELEVANT_RESULTS, "")


def test_a_result_that_repeats_a_topic_is_delivered_with_its_first_place_only() -> None:
    twice = _recall("aba")
    assert _names(admitted(twice, excluded=())) == "ab"
    same = twice.hits[0]
    assert admitted(Recall("q", (same, same)), excluded=()).hits == (same,)


def test_a_state_is_a_value() -> None:
    with pytest.raises(FrozenInstanceError):
        NEW.begun = 1.0  # type: ignore[misc]
    assert PrefetchState(begun=10.0) == NEW


class HandleMachine(RuleBasedStateMachine):
    """One handle under every order of events."""

    @initialize(excluded=st.frozensets(st.sampled_from("abcdef"), max_size=3))
    def begin(self, excluded: frozenset[str]) -> None:
        self.excluded = excluded
        self.state = PrefetchState(begun=0.0, excluded=excluded)
        self.now = 0.0
        self.verdicts: list[Verdict] = []
        self.chosen: str | None = None  # the refined result as the handle must know it

    def _step(self, step: Step) -> None:
        before = self.state
        self.state, verdict = step
        if before.ended is not None:
            assert (self.state, verdict) == (before, None), "nothing happens after the end"
        if verdict is not None:
            self.verdicts.append(verdict)

    @rule(names=NAMES)
    def fast(self, names: list[str]) -> None:
        self.state = self.state.on_fast(_recall(names, Strategy.HEURISTIC))

    @rule(names=NAMES)
    def refined(self, names: list[str]) -> None:
        if self.chosen is None and self.state.ended is None:
            self.chosen = "".join(dict.fromkeys(name for name in names if name not in self.excluded))
        self.state = self.state.on_refined(_recall(names))

    @rule()
    def failed(self) -> None:
        if self.chosen is None and self.state.ended is None:
            self.chosen = ""
        self.state = self.state.on_failed()

    @rule(wait=st.floats(0, 5))
    def initial(self, wait: float) -> None:
        self.now += wait
        open_and_ready = self.state.ended is None and self.chosen is not None
        self._step(self.state.on_initial(self.now))
        assert not open_and_ready or self.state.ended is not None, "a settled result ends at the first request"

    @rule(wait=st.floats(0, 5))
    def tool_result(self, wait: float) -> None:
        self.now += wait
        count = len(self.verdicts)
        self._step(self.state.on_tool_result(self.now))
        assert all(verdict.event.phase is Phase.REFINED for verdict in self.verdicts[count:])

    @rule()
    def turn_end(self) -> None:
        self._step(self.state.on_turn_end(self.now))
        assert self.state.ended is not None

    @rule()
    def abort(self) -> None:
        self._step(self.state.on_abort(self.now))

    @rule(reason=REASONS)
    def cancel(self, reason: Drop) -> None:
        self._step(self.state.cancel(reason, self.now))
        assert self.state.ended is not None

    @invariant()
    def no_topic_comes_twice_and_no_excluded_one_at_all(self) -> None:
        delivered = "".join(_names(verdict.recall) for verdict in self.verdicts)
        assert len(set(delivered)) == len(delivered)
        assert not set(delivered) & self.excluded

    @invariant()
    def exactly_one_terminal_event_at_the_end_and_at_most_one_fast_delivery_before_it(self) -> None:
        phases = [verdict.event.phase for verdict in self.verdicts]
        ended = [Phase.REFINED] if self.state.ended is not None else []
        assert phases in (ended, [Phase.FAST, *ended])
        assert not ended or self.verdicts[-1].event == self.state.ended

    @invariant()
    def a_refined_delivery_is_what_was_chosen_without_what_was_shown(self) -> None:
        if self.verdicts and self.verdicts[-1].event.terminal and self.verdicts[-1].recall is not None:
            shown = "".join(_names(verdict.recall) for verdict in self.verdicts[:-1])
            assert self.chosen is not None
            assert _names(self.verdicts[-1].recall) == "".join(name for name in self.chosen if name not in shown)

    @invariant()
    def every_event_tells_the_truth(self) -> None:
        for verdict in self.verdicts:
            event = verdict.event
            assert (event.drop is None) == (event.point is not Point.DISCARDED) == (verdict.recall is not None)
            assert event.delivered == len(_names(verdict.recall))
            assert 0 <= event.latency_s <= self.now
            if verdict.recall is not None:
                assert verdict.recall.hits
                assert verdict.recall.prompt in ("", _names(verdict.recall))
            elif event.drop is Drop.ALREADY_DELIVERED:
                assert self.chosen
                assert set(self.chosen) <= self.state.shown
            elif event.drop is Drop.NO_RELEVANT_RESULTS:
                assert self.chosen == ""

    @invariant()
    def it_waits_only_while_nothing_is_in(self) -> None:
        settled = self.chosen is not None
        assert self.state.waiting == (self.state.ended is None and self.state.fast is None and not settled)


class SessionMachine(RuleBasedStateMachine):
    """Several queries under every order of events, late ones of earlier handles included."""

    @initialize()
    def begin_session(self) -> None:
        self.session = PrefetchSession()
        self.now = 0.0
        self.seen: set[str] = set()  # what the model has before its eyes
        self.shown: dict[int, set[str]] = {}  # what each handle handed over
        self.terminal: list[int] = []
        self.begun = 0

    def _step(self, step: tuple[PrefetchSession, Verdict | None], serial: int) -> None:
        had_handle = self.session.pending is not None
        self.session, verdict = step
        if verdict is None:
            return
        assert had_handle, "only a pending handle says anything"
        new = set(_names(verdict.recall))
        assert not new & self.seen, "what the model still has does not come again"
        assert not new & self.shown[serial], "a handle hands nothing over twice"
        self.seen |= new
        self.shown[serial] |= new
        if verdict.event.terminal:
            self.terminal.append(serial)

    def _serial(self, back: int) -> int:
        return max(0, self.session.serial - back)

    @rule(wait=st.floats(0, 5))
    def begin(self, wait: float) -> None:
        self.now += wait
        pending, serial = self.session.pending, self.session.serial
        self._step(self.session.begin(self.now), serial)
        self.begun += 1
        self.shown[self.session.serial] = set()
        assert self.session.pending is not None
        assert self.session.pending.excluded == self.seen
        assert pending is None or self.terminal[-1] == serial

    @rule(back=st.integers(0, 2), names=NAMES)
    def fast(self, back: int, names: list[str]) -> None:
        before = self.session
        self.session = before.on_fast(self._serial(back), _recall(names))
        assert back == 0 or before.serial == 0 or self.session == before, "late results are ignored"

    @rule(back=st.integers(0, 2), names=NAMES)
    def refined(self, back: int, names: list[str]) -> None:
        before = self.session
        self.session = before.on_refined(self._serial(back), _recall(names))
        assert back == 0 or before.serial == 0 or self.session == before, "late results are ignored"

    @rule(back=st.integers(0, 2))
    def failed(self, back: int) -> None:
        self.session = self.session.on_failed(self._serial(back))

    @rule(back=st.integers(0, 2))
    def initial(self, back: int) -> None:
        self._step(self.session.on_initial(self._serial(back), self.now), self._serial(back))

    @rule(back=st.integers(0, 2))
    def tool_result(self, back: int) -> None:
        self._step(self.session.on_tool_result(self._serial(back), self.now), self._serial(back))

    @rule()
    def turn_end(self) -> None:
        self._step(self.session.on_turn_end(self.now), self.session.serial)

    @rule()
    def abort(self) -> None:
        self._step(self.session.on_abort(self.now), self.session.serial)

    @rule(reason=REASONS)
    def cancel(self, reason: Drop) -> None:
        self._step(self.session.cancel(reason, self.now), self.session.serial)
        assert self.session.pending is None

    @rule()
    def reset(self) -> None:
        self._step(self.session.reset(self.now), self.session.serial)
        self.seen.clear()
        assert self.session.pending is None

    @rule(names=st.sets(st.sampled_from("abcdef")))
    def compacted(self, names: set[str]) -> None:
        self.session = self.session.compacted(names)
        self.seen -= names

    @invariant()
    def the_surfaced_set_is_what_the_model_has(self) -> None:
        assert self.session.surfaced == self.seen

    @invariant()
    def every_handle_but_the_pending_one_ended_exactly_once(self) -> None:
        open_one = self.session.pending is not None
        assert self.terminal == sorted(set(self.terminal))
        assert len(self.terminal) == self.begun - open_one
        assert self.session.serial == self.begun


PATIENT = settings(deadline=None, stateful_step_count=30)  # no verdict hangs on the speed of the machine
TestHandleUnderEveryOrderOfEvents = HandleMachine.TestCase
TestHandleUnderEveryOrderOfEvents.settings = PATIENT
TestSessionUnderEveryOrderOfEvents = SessionMachine.TestCase
TestSessionUnderEveryOrderOfEvents.settings = PATIENT


def test_a_new_query_ends_the_pending_handle_and_excludes_what_was_shown() -> None:
    session, _ = PrefetchSession().begin(0.0)
    session, _ = session.on_fast(1, _recall("a")).on_initial(1, 0.05)
    session, verdict = session.begin(1.0)
    assert verdict is not None
    assert verdict.event.drop is Drop.NEW_QUERY
    assert session.pending is not None
    assert session.pending.excluded == {"a"}


def test_a_result_of_an_earlier_query_is_never_delivered_to_a_later_one() -> None:
    session = PrefetchSession().begin(0.0)[0].begin(1.0)[0]
    assert session.on_refined(1, _recall("a")) == session
    assert session.on_fast(1, _recall("a")) == session
    assert session.on_refined(2, _recall("b")).on_initial(1, 1.1)[1] is None


def test_a_compacted_topic_may_come_again_and_a_discarded_one_was_never_excluded() -> None:
    session = PrefetchSession(surfaced=frozenset("ab")).begin(0.0)[0].on_refined(1, _recall("c"))
    session, _ = session.on_turn_end(1.0)
    assert session.compacted(["a"]).surfaced == {"b"}


def test_a_reset_lets_everything_come_again() -> None:
    session, verdict = PrefetchSession(surfaced=frozenset("ab")).begin(0.0)[0].reset(1.0)
    assert verdict is not None
    assert verdict.event.drop is Drop.RESET
    assert session.surfaced == frozenset()


@settings(deadline=None)
@given(names=NAMES)
def test_a_disabled_session_begins_and_reports_nothing(names: list[str]) -> None:
    off = PrefetchSession(enabled=False)
    assert off.begin(0.0) == (off, None)
    assert off.on_refined(0, _recall(names)).on_initial(0, 0.1) == (off, None)
    assert off.on_turn_end(1.0) == (off, None)
