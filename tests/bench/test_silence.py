"""Silence: what is counted as answered, and what a floor costs."""

import json
from pathlib import Path

import pytest

from bench import silence
from bench.silence import Asked, answered, lost, small_talk
from recall import Hit, Scope
from recall.store.topics import parse_topic


def hit(score: float, fit: float) -> Hit:
    topic = parse_topic("x", path=f"{score}.md", scope=Scope.PROJECT, mtime=0, file=Path("/m/x.md"))
    return Hit(topic, score, cosine=0.1, fit=fit)


def test_a_question_counts_as_answered_when_the_retriever_would_show_anything() -> None:
    asked = {
        "chat": [Asked("chat", (hit(0.5, 0.3), hit(0.4, 0.1))), Asked("chat", (hit(0.3, 0.1),)), Asked("chat", ())],
        "a set, without an answer": [Asked("q", (hit(0.9, 0.9),))],
    }
    found = answered(asked, 0.2)
    assert found == {"all": pytest.approx(100 / 3), "chat": pytest.approx(100 / 3), "a set, without an answer": 100}


def test_a_floor_costs_the_right_answers_that_it_holds_back() -> None:
    strong = Asked("q", (hit(0.9, 0.5), hit(0.8, 0.14), hit(0.3, 0.5)), (True, True, True), 4)
    weak = Asked("q", (hit(0.3, 0.1), hit(0.2, 0.1)), (False, True), 1)
    assert (strong.recall(-9), strong.recall(0.2), weak.recall(-9), weak.recall(0.2)) == (0.75, 0.5, 1.0, 0.0)
    costs = lost({"one": [strong, weak], "other": [Asked("q", (hit(0.9, 0.9),), (True,), 1)]}, 0.2)
    assert costs["one"] == pytest.approx(62.5)
    assert costs["other"] == 0
    assert costs["all"] == pytest.approx(125 / 3)
    assert costs["mean of sets"] == pytest.approx(31.25)


def test_the_list_of_small_talk_is_in_both_languages() -> None:
    lines = small_talk()
    assert len({text for *_, text in lines}) == len(lines) >= 150
    assert {language for language, *_ in lines} == {"en", "zh"}
    assert {kind for _, kind, _ in lines} == {"small_talk", "command", "general"}


@pytest.mark.model
def test_it_measures_a_folder_of_sets_with_the_real_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, notes in {
        "pets": {"cat.md": "Our cat sleeps on the sofa and eats fish.", "dog.md": "The dog guards the garden."},
        "servers": {"db.md": "生产数据库每周二凌晨两点迁移。", "web.md": "网站前端部署在两台服务器上。"},
    }.items():
        folder = tmp_path / "shared" / "bench" / name / "corpus"
        folder.mkdir(parents=True)
        for path, text in notes.items():
            (folder / path).write_text(text, encoding="utf-8")
        question = {"pets": ("what does the cat eat?", "cat"), "servers": ("数据库什么时候迁移?", "db")}[name]
        lines = [{"id": "1", "text": question[0], "relevant": [question[1]]}, {"id": "2", "text": "…", "relevant": []}]
        queries = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (folder.parent / "queries.jsonl").write_text(queries, encoding="utf-8")
    figures = []
    monkeypatch.setattr(silence, "record", lambda bench, found, **_: figures.extend(found))
    silence.main(["--shared", str(tmp_path / "shared"), "--work", str(tmp_path / "cache")])
    found, cost = figures[0].values, figures[2].values
    assert {"command", "general", "small talk", "of another memory, other language"} < found.keys()
    assert found["of another memory, other language"] == 0
    assert found["all"] < 20
    assert (cost["pets"], cost["servers"]) == (0, 0)
    assert "<- shipped" in capsys.readouterr().out
