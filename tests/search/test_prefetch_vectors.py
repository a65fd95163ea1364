"""The 44 scripts of the founding system's prefetch, run through the pure session under a virtual clock."""

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from recall.search.delivery import SessionStep, Verdict
from recall.search.prefetch import PrefetchEvent, PrefetchSession
from recall.search.types import Drop, Hit, Phase, Point, Recall, Strategy
from recall.store.topics import Scope, Topic

OVERRIDDEN: dict[str, str] = {}  # id of a case -> row of spec/deviations.md; V16-V18 and V26 contradict none
BUDGET_MS = 100


def _recall(names: list[str], strategy: str) -> Recall:
    hits = tuple(
        Hit(Topic(Scope.PROJECT, name, name, "", None, "", 0.0, 0.0, Path("/memory", name)), 1.0) for name in names
    )
    return Recall("q", hits, Strategy(strategy), "\n".join(names))


def _names(recall: Recall | None) -> list[str]:
    return [hit.topic.id for hit in recall.hits] if recall else []


@dataclass
class _Wait:
    serial: int
    until: int
    answer: dict[str, Any]


@dataclass
class _Host:
    """Plays one script: what the founding host does around its coordinator."""

    session: PrefetchSession
    now: int = 0
    waits: list[_Wait] = field(default_factory=list)
    consumes: list[dict[str, Any]] = field(default_factory=list)
    events: list[PrefetchEvent] = field(default_factory=list)
    aborted: list[bool] = field(default_factory=list)
    excluded: list[list[str]] = field(default_factory=list)

    def play(self, script: list[dict[str, Any]]) -> None:
        for step in script:
            self._run_timers(step["t"])
            self.now = step["t"]
            getattr(self, f"op_{step['op']}")(**{key: value for key, value in step.items() if key not in ("t", "op")})
            for wait in [wait for wait in self.waits if not self.session.waiting(wait.serial)]:
                self._answer(wait)
        self._run_timers(10**9)

    def _run_timers(self, until: int) -> None:
        for wait in sorted((wait for wait in self.waits if wait.until <= until), key=lambda wait: wait.until):
            self.now = wait.until
            self._answer(wait)

    def _answer(self, wait: _Wait) -> None:
        self.waits = [other for other in self.waits if other is not wait]
        at = self.session.on_tool_result if wait.answer["point"] == "tool_result" else self.session.on_initial
        verdict = self._step(at(wait.serial, self.now / 1000))
        kind = "nothing" if verdict is None else "empty" if verdict.recall is None else "prompt"
        wait.answer |= {
            "answered_at": self.now,
            "returned": kind,
            "docs": _names(verdict.recall) if verdict else [],
        }

    def _step(self, step: SessionStep) -> Verdict | None:
        self.session, verdict = step
        if verdict is not None:
            self.events.append(verdict.event)
        return verdict

    def _cancelling(self, step: SessionStep) -> None:
        if self._step(step) is not None:
            self.aborted[-1] = True

    def op_begin(self, *, already_aborted: bool = False) -> None:
        self._cancelling(self.session.begin(self.now / 1000))
        if self.session.pending is not None:
            self.aborted.append(False)
            self.excluded.append(sorted(self.session.pending.excluded))
        if already_aborted:
            self.op_abort()

    def op_consume(self, point: str, *, zero_wait: bool = False) -> None:
        answer = {"point": point, "asked_at": self.now}
        self.consumes.append(answer)
        patience = 0 if zero_wait or point == "tool_result" else BUDGET_MS
        wait = _Wait(self.session.serial, self.now + patience, answer)
        self.waits.append(wait)
        if not patience:
            self._answer(wait)

    def op_fast(self, docs: list[str], recall: int | None = None) -> None:
        self.session = self.session.on_fast(self._serial(recall), _recall(docs, "heuristic"))

    def op_done(self, docs: list[str], strategy: str, recall: int | None = None) -> None:
        self.session = self.session.on_refined(self._serial(recall), _recall(docs, strategy))

    def op_fail(self, *, abort_error: bool = False, recall: int | None = None) -> None:
        self.session = self.session.on_failed(self._serial(recall))

    def op_finish(self) -> None:
        self._cancelling(self.session.on_turn_end(self.now / 1000))

    def op_abort(self) -> None:
        self._cancelling(self.session.on_abort(self.now / 1000))

    def op_reset(self) -> None:
        self._cancelling(self.session.reset(self.now / 1000))

    def op_shutdown(self) -> None:
        self._cancelling(self.session.cancel(Drop.SHUTDOWN, self.now / 1000))

    def _serial(self, recall: int | None) -> int:
        return self.session.serial if recall is None else recall + 1

    def report(self) -> dict[str, Any]:
        return {
            "consumes": self.consumes,
            "telemetry": [_telemetry(event) for event in self.events],
            "surfaced": sorted(self.session.surfaced),
            "pending_at_end": self.session.pending is not None,
            "recall_aborted": self.aborted,
            "excluded_at_begin": self.excluded,
            "recalls_started": self.session.serial,
        }


def _telemetry(event: PrefetchEvent) -> dict[str, Any]:
    return {
        "phase": event.phase,
        "delivery_point": event.point,
        "discard_reason": event.drop,
        "strategy": event.strategy,
        "docs_selected": event.selected,
        "latency_ms": round(event.latency_s * 1000),
    }


def _play(script: list[dict[str, Any]], *, enabled: bool = True) -> dict[str, Any]:
    host = _Host(PrefetchSession(enabled=enabled))
    host.play(script)
    return host.report()


@cache
def _load(file: Path) -> dict[str, dict[str, Any]]:
    return {case["id"]: case for case in json.loads(file.read_text(encoding="utf-8"))["cases"]}


@pytest.mark.vectors
def test_every_script_of_the_founding_system_gives_its_answers_its_events_and_its_surfaced_set(shared: Path) -> None:
    cases = _load(shared / "vectors/qwen/prefetch/dev.json")
    assert cases
    wrong = {}
    for name, case in cases.items():
        expected = case["expected"] | {
            "surfaced": sorted(case["expected"]["surfaced"]),
            "excluded_at_begin": [sorted(ids) for ids in case["expected"]["excluded_at_begin"]],
        }
        if name not in OVERRIDDEN and (got := _play(case["script"], enabled=case.get("enabled", True))) != expected:
            wrong[name] = {key: (got[key], expected[key]) for key in expected if got[key] != expected[key]}
    assert wrong == {}


@pytest.mark.vectors
def test_every_overridden_script_exists(shared: Path) -> None:
    assert set(OVERRIDDEN) <= set(_load(shared / "vectors/qwen/prefetch/dev.json"))


def test_a_result_at_the_very_deadline_is_too_late_and_one_just_before_it_is_not() -> None:
    def answer(at: int) -> str:
        script = [
            {"t": 0, "op": "begin"},
            {"t": 30, "op": "consume", "point": "initial"},
            {"t": at, "op": "done", "docs": ["a"], "strategy": "model"},
            {"t": 200, "op": "finish"},
        ]
        return str(_play(script)["consumes"][0]["returned"])

    assert (answer(129), answer(130)) == ("prompt", "nothing")


def test_a_turn_with_a_fast_and_a_refined_delivery_reports_both_from_the_begin() -> None:
    got = _play(
        [
            {"t": 0, "op": "begin"},
            {"t": 10, "op": "consume", "point": "initial"},
            {"t": 40, "op": "fast", "docs": ["a", "b", "c"]},
            {"t": 300, "op": "done", "docs": ["c", "b"], "strategy": "hybrid"},
            {"t": 310, "op": "consume", "point": "tool_result"},
            {"t": 400, "op": "finish"},
        ]
    )
    assert [(answer["answered_at"], answer["docs"]) for answer in got["consumes"]] == [(40, ["a", "b"]), (310, ["c"])]
    assert got["telemetry"] == [
        {
            "phase": Phase.FAST,
            "delivery_point": Point.INITIAL,
            "discard_reason": None,
            "strategy": Strategy.HEURISTIC,
            "docs_selected": 2,
            "latency_ms": 40,
        },
        {
            "phase": Phase.REFINED,
            "delivery_point": Point.TOOL_RESULT,
            "discard_reason": None,
            "strategy": Strategy.HYBRID,
            "docs_selected": 1,
            "latency_ms": 310,
        },
    ]
    assert got["surfaced"] == ["a", "b", "c"]
