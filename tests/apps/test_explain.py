"""`recall search --explain`, for people and for programs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from recall.apps import render
from recall.search.explanation import Evidence, Explanation, Rejected, Silence, Why, Word
from recall.search.types import Hit, Recall
from recall.store.topics import Scope, parse_topic

Run = Callable[..., Result]
Data = Callable[..., dict[str, Any]]


def test_it_says_what_a_score_is_made_of_and_what_came_close(on_memory: Run) -> None:
    result = on_memory("search", "request latency board", "--explain", "--set", "search.floor=0.5")
    assert result.exit_code == 0, result.output
    assert "score 0." in result.stdout
    assert " + 0.5 x words " in result.stdout
    assert "words: latency " in result.stdout
    assert "(title, description)" in result.stdout
    assert "nearest part, 1 of 1: Grafana, folder api." in result.stdout
    assert "project_rollout.md: below the floor of 0.500" in result.stdout
    assert "nearest part" not in on_memory("search", "request latency board").stdout


def test_it_shows_the_pairs_of_a_chinese_query(on_memory: Run) -> None:
    result = on_memory("search", "回答要怎么写", "--explain")
    assert "words: 回答 0." in result.stdout
    assert "答要 0." in result.stdout
    assert "in no topic: 要怎, 怎么, 么写" in result.stdout


def test_it_says_why_nothing_came(on_memory: Run) -> None:
    result = on_memory("search", "zebra", "--explain")
    lines = result.stdout.splitlines()
    assert lines[0] == "nothing fits"
    assert lines[1].startswith("why: no topic holds a word of the query, and by meaning alone none reaches the floor")
    assert on_memory("search", " ", "--explain").stdout.startswith("blank query")


def test_it_says_so_as_data_and_the_field_is_null_unless_asked(data: Data) -> None:
    assert data("search", "request latency")["explanation"] is None
    answer = data("search", "request latency", "--explain", "--exclude", "reference_board")
    given = answer["explanation"]
    assert [hit["id"] for hit in answer["hits"]] == [hit["id"] for hit in given["hits"]]
    excluded = next(other for other in given["rejected"] if other["why"] == "excluded")
    assert excluded["id"] == "reference_board.md"
    assert {word["text"]: word["fields"] for word in excluded["words"]} == {
        "latency": ["title", "description"],
        "request": ["description"],
    }
    assert data("search", "zebra", "--explain")["explanation"]["silence"] == "no_shared_word"


def test_without_a_model_it_says_points_also_where_a_fresh_process_would_answer_by_itself(
    on_memory: Run, data: Data
) -> None:
    off = ("--set", "encoder.model=off")
    on_memory("reindex")
    result = on_memory("search", "request latency board", "--explain", *off)
    assert "points" in result.stdout
    assert "latency 7 (title 4, description 3)" in result.stdout
    given = data("search", "request latency board", "--explain", *off)["explanation"]
    assert given["floor"] is None
    hit = given["hits"][0]
    assert sum(word["value"] for word in hit["words"]) + hit["bonus"] == 14


def test_an_explanation_prints_nothing_that_a_terminal_acts_on() -> None:
    evil = "a\x1b[2J\u202eb"
    topic = parse_topic(evil, path=f"{evil}.md", scope=Scope.PROJECT, mtime=0, file=Path("/m/a.md"))
    hit = Hit(topic, 0.1, 0.1, 0.0, evidence=Evidence((Word(evil, (), 0.1),), passage=evil, chunks=1))
    given = Explanation(Recall("q", (hit,)), 0.25, (Rejected(hit, Why.BELOW_FLOOR, evil),), (evil,), Silence.CHANGED)
    text = "\n".join(line.plain for line in render.search(given.recall, note="", total_s=0, explanation=given))
    assert text.count("[2J") >= 5
    assert not set(text) & set("\x1b\u202e")


def test_the_prompt_alone_stays_alone(on_memory: Run) -> None:
    words = ("search", "request latency board", "--prompt")
    assert on_memory(*words, "--explain").stdout == on_memory(*words).stdout


@pytest.mark.parametrize("words", [("回答风格",), ("qqq",)])
def test_the_data_is_one_line_of_json(on_memory: Run, words: tuple[str, ...]) -> None:
    result = on_memory("search", *words, "--explain", "--json")
    assert len(result.stdout.splitlines()) == 1
    assert json.loads(result.stdout)["explanation"]["rejected"] is not None
