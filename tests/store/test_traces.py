"""Traces as values: what is kept of a question, and what traces add up to."""

from dataclasses import astuple
from datetime import UTC, date, timedelta, timezone

import msgspec
import pytest

from recall.store.traces import (
    Summary,
    Trace,
    TracedHit,
    asked,
    from_line,
    query_key,
    session_name,
    summarise,
    to_line,
)

TOKEN = "ghp_" + "a1B2c3D4e5" * 4
DAY_S = 86_400.0


def trace(path: str = "a.md", relevance: float = 5.0, **more: object) -> Trace:
    fields: dict[str, object] = {
        "id": "1", "time": 1000.0, "key": "k", "query": "q", "surface": "hook", "strategy": "hybrid",
        "hits": (TracedHit(path, relevance, 0.5),),
    }  # fmt: skip
    return Trace(**(fields | more))  # type: ignore[arg-type]


# --- questions


@pytest.mark.parametrize(
    "other", ["when  may we\trelease?", " When MAY we release? ", "ｗｈｅｎ may we release？", "when may we\nrelease?"]
)
def test_the_same_question_in_another_dress_has_the_same_key(other: str) -> None:
    assert query_key(other) == query_key("when may we release?")


@pytest.mark.parametrize("other", ["when may we release", "when may you release?", "什么时候发布？"])
def test_another_question_has_another_key(other: str) -> None:
    assert query_key(other) != query_key("when may we release?")


@pytest.mark.parametrize("blank", ["", " ", "\n\t\u3000"])
def test_a_blank_question_has_none(blank: str) -> None:
    assert query_key(blank) == ""


def test_credentials_are_in_neither_the_text_nor_the_key() -> None:
    key, text = asked(f"use {TOKEN} to push")
    assert text == "use [masked github token] to push"
    assert key == query_key(text)


def test_a_credential_is_masked_also_where_the_text_is_cut() -> None:
    for before in range(260, 310):
        key, text = asked("x" * before + f" {TOKEN}")
        assert TOKEN[:10] not in text
        assert len(text) <= 300
        assert key


def test_questions_that_differ_behind_the_cut_are_different() -> None:
    one, other = (asked("why? " * 100 + end) for end in ("a", "b"))
    assert one[1] == other[1]
    assert one[0] != other[0]


def test_names_of_conversations_are_bounded_and_masked_too() -> None:
    assert session_name("b1946ac9-2f4c") == "b1946ac9-2f4c"
    assert len(session_name("x" * 5000)) == 200
    assert TOKEN not in session_name(f"session {TOKEN}")


# --- lines


@pytest.mark.parametrize(
    "text", ["什么时候发布？", 'a "quoted"\nline\r\u2028end', "half \ud83d of one", "nul \0 inside"]
)
def test_a_line_gives_back_the_trace(text: str) -> None:
    one = trace(f"{text}.md", query=text, session=text, phase="fast", interactive=False)
    line = to_line(one)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert from_line(line) == one


def test_lines_of_another_time_may_have_fields_that_are_unknown() -> None:
    assert from_line(to_line(trace()).replace(b'"id"', b'"mood":"good","id"')) == trace()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        to_line(trace())[:-20],
        to_line(trace()).replace(b'"v":1', b'"v":2'),
        to_line(trace()).replace(b"1000.0", b"NaN"),
        to_line(trace()).replace(b"1000.0", b"1e300"),
        to_line(trace()).replace(b"1000.0", b"-5"),
        to_line(trace()).replace(b"5.0,", b"11.0,"),
        to_line(trace()).replace(b'"a.md"', b"7"),
    ],
)
def test_what_is_no_trace_gives_none(line: bytes) -> None:
    assert from_line(line) is None


# --- sums


def test_a_topic_adds_up() -> None:
    found = summarise(
        [
            trace(id="3", time=2 * DAY_S + 5, key="k2", relevance=9.0, session="s2"),
            trace(id="1", time=5.0, key="k1", relevance=3.0, session="s1"),
            trace(id="2", time=10.0, key="k1", relevance=6.0, session="s1"),
            trace("b.md", id="4", time=7.0),
        ],
        zone=UTC,
    )
    assert found["a.md"] == Summary(
        recalls=3,
        queries=frozenset({"k1", "k2"}),
        days=frozenset({date(1970, 1, 1), date(1970, 1, 3)}),
        contexts=frozenset({"hook:s1", "hook:s2"}),
        first=5.0,
        last=2 * DAY_S + 5,
        relevance=6.0,
    )
    assert found["b.md"].recalls == 1
    assert set(found) == {"a.md", "b.md"}
    assert len(astuple(found["b.md"])) == 7


def test_the_same_question_on_three_days_is_one_question_on_three_days() -> None:
    found = summarise([trace(id=str(day), time=day * DAY_S) for day in range(3)], zone=UTC)["a.md"]
    assert (found.recalls, len(found.queries), len(found.days)) == (3, 1, 3)


def test_what_one_handle_delivered_twice_counts_once() -> None:
    found = summarise([trace(id="1", phase="fast", relevance=4.0), trace(id="1", time=1001.0, phase="refined")])["a.md"]
    assert (found.recalls, found.relevance, found.last) == (1, 4.0, 1000.0)


def test_blank_questions_are_no_questions() -> None:
    found = summarise([trace(id="1", key=""), trace(id="2", key="")])["a.md"]
    assert (found.recalls, found.queries) == (2, frozenset())


def test_without_a_conversation_the_question_is_the_context() -> None:
    traces = [trace(id="1", key="k1"), trace(id="2", key="k2"), trace(id="3", key="k1"), trace(id="4", surface="cli")]
    assert summarise(traces)["a.md"].contexts == {"hook:k1", "hook:k2", "cli:k"}


def test_days_begin_where_the_zone_says() -> None:
    late = trace(time=DAY_S - 60)  # 23:59 in UTC
    assert summarise([late], zone=UTC)["a.md"].days == {date(1970, 1, 1)}
    assert summarise([late], zone=timezone(timedelta(hours=8)))["a.md"].days == {date(1970, 1, 2)}


def test_who_sums_up_can_leave_traces_out() -> None:
    traces = [trace(id="1"), trace(id="2", interactive=False)]
    assert summarise(one for one in traces if one.interactive)["a.md"].recalls == 1
    assert summarise([]) == {}


def test_a_topic_that_is_listed_twice_in_a_recall_counts_once() -> None:
    double = msgspec.structs.replace(trace(), hits=trace().hits * 2)
    assert summarise([double])["a.md"].recalls == 1
