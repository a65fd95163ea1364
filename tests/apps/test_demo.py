"""The example memory and what is asked of it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from recall.apps.demo import QUESTIONS, write_memory
from recall.store.files import read_text
from recall.store.scan import scan
from recall.store.topics import MemoryType, Scope, Topic, parse_topic
from recall.text.secrets import mask

Run = Callable[..., Result]


@pytest.fixture
def topics(tmp_path: Path) -> dict[str, Topic]:
    folder = tmp_path / "example"
    write_memory(folder)
    return {
        source.path: parse_topic(
            read_text(source.file, max_bytes=10_000)[0],
            path=source.path,
            scope=Scope.PROJECT,
            mtime=source.mtime_ns / 1e9,
            file=source.file,
        )
        for source in scan(folder, Scope.PROJECT).files
    }


def test_the_example_memory_is_whole(topics: dict[str, Topic]) -> None:
    assert 10 <= len(topics) <= 14
    assert {topic.type for topic in topics.values()} == set(MemoryType)
    assert all(topic.title and topic.description and topic.body for topic in topics.values())
    assert all(mask(topic.body) == topic.body for topic in topics.values())


def test_the_index_of_the_example_memory_links_every_topic(topics: dict[str, Topic]) -> None:
    index = next(iter(topics.values())).file.with_name("MEMORY.md").read_text(encoding="utf-8")
    assert all(f"]({path})" in index for path in topics)
    assert index.count("](") == len(topics)


def test_questions_go_across_languages_both_ways_and_some_have_no_answer(topics: dict[str, Topic]) -> None:
    about = [question.about for question in QUESTIONS]
    assert {"zh → zh", "en → en", "zh → en", "en → zh", "zh → nothing", "en → nothing"} <= set(about)
    assert {question.expected for question in QUESTIONS} - {None} <= set(topics)
    for question in QUESTIONS:
        assert question.text.isascii() == question.about.startswith("en")


@pytest.mark.model
def test_the_demo_answers_every_question_rightly_and_leaves_nothing_behind(run: Run, own_surroundings: Path) -> None:
    result = run("demo", "--json")
    answer = json.loads(result.stdout)
    assert result.exit_code == 0
    assert answer["right"] == len(answer["questions"]) == len(QUESTIONS)
    assert [question["state"] for question in answer["questions"]].count("cold") == 1
    assert not own_surroundings.exists()


@pytest.mark.model
def test_the_demo_leaves_the_memory_where_it_is_told_to(run: Run, tmp_path: Path) -> None:
    result = run("demo", "--keep", tmp_path / "kept")
    assert result.exit_code == 0, result.output
    assert f"{len(QUESTIONS)} of {len(QUESTIONS)} questions answered rightly" in result.stdout
    assert (tmp_path / "kept" / "MEMORY.md").is_file()
    again = run("demo", "--keep", tmp_path / "kept")
    assert again.exit_code == 2
    assert "--keep" in again.stderr


@pytest.mark.model
def test_the_demo_fails_when_a_question_is_answered_wrongly(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = QUESTIONS[0].__class__("Write a haiku about the moon.", "en → en", "project_migration_window.md")
    monkeypatch.setattr("recall.apps.demo.QUESTIONS", (QUESTIONS[0], wrong))
    result = run("demo")
    assert result.exit_code == 1
    assert "WRONG" in result.stdout
    assert "1 of 2 questions answered rightly" in result.stdout
