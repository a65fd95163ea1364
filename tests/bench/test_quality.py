import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.quality.__main__ import answer, main
from bench.quality.columns import COLUMNS, Answers
from bench.quality.figures import figures
from bench.quality.sets import QualitySet, find_sets, role, shared_folder
from recall.apps.metrics import Judged
from recall.apps.testset import Query
from recall.config import Config, load

NOTES = {
    "one/release": "Releases go out on Tuesday after the backup.",
    "one/garden": "The garden needs water in July.",
    "two/release": "发布之前要备份数据库。",
    "two/old": "发布在周二。",
    "two/new": "发布改到周四。",
}
SEQS = {"two/release": 1, "two/old": 2, "two/new": 3}


def question(text: str, relevant: Sequence[str], scope: str | None, **keys: object) -> dict[str, object]:
    return {"id": text, "text": text, "lang": "en", "relevant": list(relevant), "kind": "plain", "scope": scope, **keys}


QUESTIONS = [
    question("发布前要做什么？", ["two/release"], "two", lang="zh"),
    question("When do releases go out?", ["one/release"], "one"),
    question("发布在周二吗？", ["two/old"], "two", lang="zh", kind="dated", asof=2, exclude=["two/release"]),
    question("zzqx vvkw", [], "one", kind="nothing"),
]


def write_set(folder: Path, *, corpus: str = "corpus") -> QualitySet:
    for name, body in NOTES.items():
        file = folder / corpus / f"{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        seq = f"seq: {SEQS[name]}\n" if name in SEQS else ""
        file.write_text(f"---\nname: {file.stem}\n{seq}---\n\n{body}\n", encoding="utf-8")
    lines = [json.dumps(one, ensure_ascii=False) for one in QUESTIONS]
    (folder / "queries.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return QualitySet(folder.name, folder / corpus, folder / "queries.jsonl")


def by_hashing(cache: Path) -> Config:
    return load(arguments={"index.cache": str(cache), "encoder.model": "hashing"})


# --- sets


def test_sets_are_found_in_all_three_forms_and_other_folders_are_none(tmp_path: Path) -> None:
    write_set(tmp_path / "bench" / "apart")
    write_set(tmp_path / "bench" / "beside", corpus="")
    packed = write_set(tmp_path / "bench" / "packed").queries.parent / "corpus.jsonl"
    packed.write_text('{"id": "a", "body": "b"}', encoding="utf-8")
    (tmp_path / "bench" / "extraction").mkdir()
    found = {one.name: one.corpus for one in find_sets(tmp_path)}
    bench = tmp_path / "bench"
    assert found == {"apart": bench / "apart" / "corpus", "beside": bench / "beside", "packed": packed}


def test_a_folder_without_sets_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"holds no retrieval sets; name the folder by --shared"):
        find_sets(tmp_path)


def test_the_shared_folder_is_the_named_one_else_that_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECALL_SHARED", str(tmp_path))
    assert shared_folder(tmp_path / "named") == tmp_path / "named"
    assert shared_folder(None) == tmp_path
    monkeypatch.delenv("RECALL_SHARED")
    assert shared_folder(None).name == "shared"


def test_the_digest_tells_notes_names_and_questions_apart_and_overlooks_the_rest(tmp_path: Path) -> None:
    one = write_set(tmp_path / "set")
    digests = [one.digest()]
    (tmp_path / "set" / "SOURCE.md").write_text("where it is from", encoding="utf-8")
    assert one.digest() == digests[0]
    note = one.corpus / "one" / "garden.md"
    note.write_text("other", encoding="utf-8")
    digests.append(one.digest())
    note.rename(note.with_name("gardens.md"))
    digests.append(one.digest())
    one.queries.write_text("{}", encoding="utf-8")
    digests.append(one.digest())
    assert len(set(digests)) == 4


def test_a_set_is_headline_or_tuned_on_or_neither() -> None:
    assert [role(name) for name in ("realmem", "locomo_sessions", "dureader_zh")] == ["headline", "tuned on", ""]


def test_questions_of_real_memories_belong_to_their_repository_and_others_to_themselves(tmp_path: Path) -> None:
    queries = [Query(id="q", text="", relevant=frozenset(), scope=f"me__repo/{at}", line=at) for at in (1, 2)]
    real, other = (QualitySet(name, tmp_path, tmp_path) for name in ("real_memories", "locomo_sessions"))
    assert {real.cluster(query) for query in queries} == {"me__repo"}
    assert len({other.cluster(query) for query in queries}) == 2


# --- answers


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    pytest.importorskip("bm25s")
    return answer(write_set(tmp_path / "set"), by_hashing(tmp_path / "cache"))


def test_every_column_answers_every_question_in_one_order(answers: Answers) -> None:
    assert tuple(answers.columns) == COLUMNS
    assert [query.scope for query in answers.queries] == ["one", "one", "two", "two"]
    for judged in answers.columns.values():
        assert [one.relevant for one in judged] == [query.relevant for query in answers.queries]
    assert (answers.topics, answers.unknown, len(answers.injected)) == (5, (), 4)


def test_every_column_keeps_to_scope_time_and_exclusion(answers: Answers) -> None:
    for name, judged in answers.columns.items():
        for query, one in zip(answers.queries, judged, strict=True):
            assert {found.partition("/")[0] for found in one.ranking} <= {query.scope}, name
        asof = judged[next(at for at, query in enumerate(answers.queries) if query.asof)]
        assert asof.ranking == ("two/old",), name


def test_the_floor_works_in_recall_and_delivered_alone(answers: Answers) -> None:
    at = next(at for at, query in enumerate(answers.queries) if not query.relevant)
    found = {name: len(judged[at].ranking) for name, judged in answers.columns.items()}
    assert found["dense"] == found["hybrid"] == 2
    assert found["recall"] == found["delivered"] == found["bm25s"] == 0


# --- figures


def by_hand() -> Answers:
    """Two zh questions, one en, one without an answer; dense is right throughout, recall but once, bm25s never."""
    queries = tuple(
        Query(id=name, text="", relevant=frozenset(relevant), lang=lang, kind=kind, scope="", line=at)
        for at, (name, relevant, lang, kind) in enumerate(
            [("p", "a", "zh", "x"), ("q", "b", "zh", "y"), ("r", "c", "en", "y"), ("s", "", "en", "z")]
        )
    )
    rankings = {"dense": ["a", "b", "c", "d"], "recall": ["a", "z", "z", ""], "bm25s": ["z", "z", "z", "d"]}
    columns = {
        name: tuple(
            Judged(query.kind or "", tuple(rankings.get(name, [""] * 4)[at]), query.relevant)
            for at, query in enumerate(queries)
        )
        for name in COLUMNS
    }
    return Answers(queries, columns, (), 4, (), 0.25)


def test_means_are_over_answerable_questions_and_the_others_are_apart() -> None:
    whole = figures(by_hand(), cluster=lambda query: query.id, seed=1)["whole"]
    assert (whole["answerable"], whole["no_answer"]) == (3, 1)
    assert whole["columns"]["dense"] == {
        "hit@1": 1.0, "recall@5": 1.0, "mrr": 1.0, "ndcg@10": 1.0, "no_answer_answered": 1.0,
    }  # fmt: skip
    assert whole["columns"]["recall"]["ndcg@10"] == 0.3333
    assert whole["columns"]["recall"]["no_answer_answered"] == 0.0


def test_figures_are_apart_by_language_and_by_kind() -> None:
    parts = figures(by_hand(), cluster=lambda query: query.id, seed=1)["parts"]
    assert {name: part["answerable"] for name, part in parts["lang"].items()} == {"en": 1, "zh": 2}
    assert {name: part["answerable"] for name, part in parts["kind"].items()} == {"x": 1, "y": 2, "z": 0}
    assert parts["lang"]["zh"]["columns"]["recall"]["hit@1"] == 0.5
    assert parts["kind"]["z"]["columns"]["dense"] | {"no_answer_answered": None} == dict.fromkeys(
        ("hit@1", "recall@5", "mrr", "ndcg@10", "no_answer_answered")
    )


def test_differences_are_of_recall_to_each_rival_with_the_better_one_named() -> None:
    found = figures(by_hand(), cluster=lambda query: query.id, seed=1)["differences"]
    assert found["better"] == "dense"
    assert found["dense"] == {"mean": -0.6667, "low": -1.0, "high": 0.0}
    assert found["bm25s"] == {"mean": 0.3333, "low": 0.0, "high": 1.0}


def test_questions_of_one_cluster_are_resampled_together() -> None:
    found = figures(by_hand(), cluster=lambda query: query.lang or "", seed=1)["differences"]
    assert found["dense"] == {"mean": -0.6667, "low": -1.0, "high": -0.5}
    assert "dense" not in figures(by_hand(), cluster=lambda _: "all", seed=1)["differences"]


# --- the command


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.model
def test_each_chosen_set_gets_a_line_with_all_that_its_figures_depend_on(tmp_path: Path) -> None:
    pytest.importorskip("bm25s")
    shared, results = tmp_path / "shared", tmp_path / "results"
    sets = {name: write_set(shared / "bench" / name) for name in ("first", "other", "third")}
    words = ["--shared", str(shared), "--cache", str(tmp_path / "cache"), "--results", str(results)]
    main([*words, "--set", "third", "--set", "first", "--answers", str(tmp_path / "answers")])
    first, third = lines(results / "quality.jsonl")
    assert (first["set"], third["set"]) == ("first", "third")
    assert third["data"] == sets["third"].digest()
    assert (third["topics"], third["floor"], third["unknown"]) == (5, 0.205, 0)
    assert third["encoder"].startswith("e5-small-zhen-int8-")
    assert {"commit", "time", "seed", "resamples", "peers"} <= third.keys()
    assert tuple(third["whole"]["columns"]) == COLUMNS
    kept = lines(tmp_path / "answers" / "third.jsonl")
    assert [line["id"] for line in kept] == [one["id"] for one in sorted(QUESTIONS, key=lambda one: str(one["scope"]))]
    assert kept[0]["bm25s"] == kept[0]["relevant"] == ["one/release"]


@pytest.mark.model
def test_a_quick_run_notes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("bm25s")
    write_set(tmp_path / "bench" / "first")
    main(["--shared", str(tmp_path), "--cache", str(tmp_path / "cache"), "--results", str(tmp_path), "--quick"])
    assert not (tmp_path / "quality.jsonl").exists()
    assert "first, 3 answerable, 1 not" in capsys.readouterr().out


def test_a_set_that_is_not_there_is_named(tmp_path: Path) -> None:
    write_set(tmp_path / "bench" / "first")
    with pytest.raises(SystemExit, match=r"no such set: second; there are first"):
        main(["--shared", str(tmp_path), "--set", "second"])
