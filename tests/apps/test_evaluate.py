"""`recall eval` on small sets whose right answers are known."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from recall.apps.evaluate import Injected, Ranking, Way, by_part, injection_stats
from recall.config import Config, SearchConfig
from recall.search.types import Hit, Phase
from recall.store.topics import Scope, parse_topic

Lines = Callable[..., Path]
Run = Callable[..., Result]

CORPUS = {
    "cats.md": "---\nname: Cats\nseq: 1\n---\npurring felines sleep all day\n",
    "dogs.md": "---\nname: Dogs\nseq: 2\n---\nbarking canines guard the house\n",
    "fish.md": "---\nname: Fish\nseq: 3\n---\nsilent swimmers in the aquarium\n",
    "timeless.md": "---\nname: Birds\n---\nfeathered singers in the garden\n",
    "app/.claude/memory/deploy.md": "---\nname: Deploy\n---\nrelease trains leave on tuesday\n",
    "app/.claude/memory/sub/rollback.md": "---\nname: Rollback\n---\nundo a release with one command\n",
}


@pytest.fixture
def corpus(tmp_path: Path, written: Callable[[Path, Mapping[str, str]], Path]) -> Path:
    return written(tmp_path / "corpus", CORPUS)


@pytest.fixture
def judged(run: Run, corpus: Path, json_lines: Lines) -> Callable[..., dict[str, Any]]:
    """Evaluates queries against the corpus with the hashing encoder."""

    def call(queries: list[dict[str, Any]], *words: str, root: Path = corpus) -> dict[str, Any]:
        file = json_lines("queries.jsonl", *queries)
        result = run("eval", root, file, "--json", "--set", "encoder.model=hashing", *words)
        assert result.exit_code == 0, result.output
        answer: dict[str, Any] = json.loads(result.stdout)
        return answer

    return call


def asked(text: str, *relevant: str, **other: object) -> dict[str, Any]:
    return {"id": text, "text": text, "relevant": list(relevant), "kind": "fact", "scope": None, **other}


def test_right_and_wrong_answers_are_counted(judged: Callable[..., dict[str, Any]]) -> None:
    answer = judged(
        [
            asked("purring felines", "cats"),
            asked("barking canines", "fish", "dogs.md"),
            asked("silent swimmers aquarium", "nowhere"),
            asked("zebra", kind="none"),
            asked("feathered singers", kind="none"),
        ]
    )
    assert answer["queries"] == 5
    assert answer["metrics"]["hit@1"] == pytest.approx(2 / 3)
    assert answer["metrics"]["recall@5"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert answer["metrics"]["no_answer_answered"] == 0.5
    assert answer["by_kind"]["fact"]["queries"] == 3
    assert answer["by_kind"]["none"] == {
        "queries": 2, "hit@1": None, "recall@5": None, "mrr": None, "ndcg@10": None, "no_answer_answered": 0.5
    }  # fmt: skip
    assert answer["unknown_ids"] == ["nowhere"]


def test_a_scope_is_opened_as_a_memory_of_its_own_even_when_hidden(judged: Callable[..., dict[str, Any]]) -> None:
    hidden = "app/.claude/memory"
    answer = judged(
        [
            asked("release trains tuesday", f"{hidden}/deploy", scope=hidden),
            asked("undo with one command", f"{hidden}/sub/rollback.md", scope=f"{hidden}/"),
            asked("purring felines", kind="elsewhere", scope=hidden),
        ]
    )
    assert answer["metrics"]["hit@1"] == 1.0
    assert answer["metrics"]["no_answer_answered"] == 0.0
    assert answer["topics"] == 2


def test_the_whole_corpus_does_not_see_into_hidden_scopes(judged: Callable[..., dict[str, Any]]) -> None:
    assert judged([asked("release trains tuesday")])["metrics"]["no_answer_answered"] == 0.0


def test_excluded_topics_are_not_answered(judged: Callable[..., dict[str, Any]]) -> None:
    answer = judged(
        [
            asked("purring felines", kind="with", exclude=["cats"]),
            asked("barking canines", kind="with", exclude=["dogs.md"]),
            asked("purring felines", kind="without", exclude=["dogs"]),
        ]
    )
    assert answer["by_kind"]["with"]["no_answer_answered"] == 0.0
    assert answer["by_kind"]["without"]["no_answer_answered"] == 1.0


def test_only_topics_up_to_the_moment_take_part(judged: Callable[..., dict[str, Any]]) -> None:
    answer = judged(
        [
            asked("purring felines", kind="before", asof=0),
            asked("barking canines", kind="then", asof=2),
            asked("silent swimmers", kind="later", asof=2),
            asked("feathered singers", kind="without a seq", asof=99),
        ]
    )
    kinds = {kind: metrics["no_answer_answered"] for kind, metrics in answer["by_kind"].items()}
    assert kinds == {"before": 0.0, "then": 1.0, "later": 0.0, "without a seq": 0.0}


def test_the_floor_of_the_model_holds_unless_told_otherwise(judged: Callable[..., dict[str, Any]]) -> None:
    questions = [asked("garden of zebras in the afternoon")]
    with_floor, without = judged(questions, "--set", "search.floor=5"), judged(questions, "--no-floor")
    assert (with_floor["floor"], without["floor"]) == (5.0, None)
    assert with_floor["metrics"]["no_answer_answered"] == 0.0
    assert without["metrics"]["no_answer_answered"] == 1.0
    assert judged(questions)["floor"] > 0


@pytest.mark.parametrize("strategy", ["hybrid", "dense", "words", "heuristic"])
def test_every_strategy_finds_the_plain_answers(judged: Callable[..., dict[str, Any]], strategy: str) -> None:
    answer = judged([asked("purring felines", "cats"), asked("barking canines", "dogs")], "--strategy", strategy)
    assert answer["strategy"] == strategy
    assert answer["metrics"]["hit@1"] == 1.0


def test_words_answer_nothing_without_a_common_word_and_vectors_answer_always(
    judged: Callable[..., dict[str, Any]],
) -> None:
    questions = [asked("zebra")]
    assert judged(questions, "--strategy", "words")["metrics"]["no_answer_answered"] == 0.0
    assert judged(questions, "--strategy", "dense")["metrics"]["no_answer_answered"] == 1.0


def test_what_is_delivered_is_judged_with_its_cost(judged: Callable[..., dict[str, Any]]) -> None:
    questions = [asked("purring felines", "cats"), asked("barking canines", "dogs"), asked("zebra")]
    patient = ("--set", "search.budget_ms=20000", "--set", "search.hold_ms=20000")
    answer = judged(questions, "--delivered", *patient)
    assert answer["metrics"]["hit@1"] == 1.0
    assert answer["metrics"]["no_answer_answered"] == 0.0
    cost = answer["delivered"]
    assert 0 < cost["tokens_mean"] < cost["tokens_max"]
    shares = {name: cost[name] for name in ("first_refined", "first_fast", "first_nothing", "with_tool_result")}
    assert shares == pytest.approx(
        {"first_refined": 2 / 3, "first_fast": 0.0, "first_nothing": 1 / 3, "with_tool_result": 0.0}
    )
    assert judged(questions)["delivered"] is None


def test_a_packed_corpus_gives_what_its_files_give(
    judged: Callable[..., dict[str, Any]], json_lines: Lines, run: Run, own_surroundings: Path
) -> None:
    packed = json_lines(
        "corpus.jsonl",
        {"id": "pets/cats", "name": "Cats", "seq": 1, "body": "purring felines sleep all day"},
        {"id": "pets/dogs", "name": "Dogs", "seq": 2, "body": "barking canines guard the house"},
        {"id": "other", "body": "purring canines"},
    )
    questions = [
        asked("purring felines", "pets/cats", scope="pets", asof=1),
        asked("barking canines", scope="pets", asof=1, kind="later"),
    ]
    first = judged(questions, root=packed)
    assert first["metrics"]["hit@1"] == 1.0
    assert first["metrics"]["no_answer_answered"] == 0.0
    (folder,) = (own_surroundings / "eval").iterdir()
    again = json.loads(run("reindex", "--root", folder / "pets", "--json", "--set", "encoder.model=hashing").stdout)
    assert (again["kept"], again["embedded"]) == (2, 0)


def test_a_broken_question_ends_in_one_line(run: Run, corpus: Path, json_lines: Lines) -> None:
    file = json_lines("queries.jsonl", asked("a"), {"id": "b"})
    result = run("eval", corpus, file)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"recall: {file}:2: is no question: ")
    assert result.stderr.count("\n") == 1


def test_a_missing_model_is_an_error_and_not_a_judgement_of_words(
    run: Run, corpus: Path, json_lines: Lines, tmp_path: Path
) -> None:
    file = json_lines("queries.jsonl", asked("a"))
    result = run("eval", corpus, file, "--set", f"encoder.model={tmp_path / 'nothing'}")
    assert result.exit_code == 1
    assert str(tmp_path / "nothing") in result.stderr


def test_a_damaged_model_is_an_error_and_not_a_judgement_of_words(
    run: Run, corpus: Path, json_lines: Lines, tmp_path: Path
) -> None:
    damaged = tmp_path / "model"
    damaged.mkdir()
    shipped = Path(__file__).resolve().parents[2] / "models" / "e5-small-zhen-int8"
    for name in ("model.yaml", "tokenizer.json"):
        (damaged / name).write_bytes((shipped / name).read_bytes())
    (damaged / "model.onnx").write_bytes(b"no model at all")
    result = run("eval", corpus, json_lines("queries.jsonl", asked("a")), "--set", f"encoder.model={damaged}")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert str(damaged) in result.stderr


def test_a_corpus_that_cannot_be_unpacked_is_one_line(run: Run, json_lines: Lines, own_surroundings: Path) -> None:
    own_surroundings.write_text("a file where the cache folder should be", encoding="utf-8")
    packed = json_lines("corpus.jsonl", {"id": "a", "body": "x"})
    result = run("eval", packed, json_lines("queries.jsonl", asked("a")))
    assert result.exit_code == 1
    assert result.stderr.startswith(f"recall: {own_surroundings}")
    assert result.stderr.count("\n") == 1


def test_deliveries_are_not_judged_by_a_part_of_the_score(run: Run, corpus: Path, json_lines: Lines) -> None:
    result = run("eval", corpus, json_lines("q.jsonl", asked("a")), "--delivered", "--strategy", "dense")
    assert result.exit_code == 2
    assert "--delivered" in result.stderr


def test_the_table_has_a_row_a_kind_and_one_for_all(run: Run, corpus: Path, json_lines: Lines) -> None:
    file = json_lines("q.jsonl", asked("purring felines", "cats"), asked("zebra", kind="没有答案"))
    result = run("eval", corpus, file, "--set", "encoder.model=hashing")
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["kind", "queries", "hit@1", "recall@5", "mrr", "ndcg@10", "no_answer_answered"]
    assert rows[1] == ["fact", "1", "1.000", "1.000", "1.000", "1.000", "-"]
    assert rows[2] == ["没有答案", "1", "-", "-", "-", "-", "0.000"]
    assert rows[3][0] == "all"


# --- pure parts


def hit(name: str, *, cosine: float | None, lexical: float | None) -> Hit:
    topic = parse_topic("", path=f"{name}.md", scope=Scope.PROJECT, mtime=0, file=Path(f"/{name}.md"))
    return Hit(topic, 0.0, cosine=cosine, lexical=lexical)


def test_a_part_of_the_score_ranks_alone() -> None:
    hits = [
        hit("a", cosine=0.1, lexical=0.9),
        hit("b", cosine=0.5, lexical=0.0),
        hit("c", cosine=None, lexical=0.3),
        hit("d", cosine=-0.2, lexical=None),
    ]
    names = {ranking: [found.topic.title for found in by_part(hits, ranking)] for ranking in Ranking}
    assert names[Ranking.DENSE] == ["b", "a", "d"]
    assert names[Ranking.WORDS] == ["a", "c"]


def test_a_way_changes_only_the_settings_that_it_must() -> None:
    config = Config(search=SearchConfig(floor=0.3, k=7))
    assert Way(delivered=True).settings(config) == config
    assert Way(with_floor=False).settings(config).search.floor == pytest.approx(-1e9)
    assert Way(Ranking.DENSE).settings(config).search.floor == pytest.approx(-1e9)
    heuristic = Way(Ranking.HEURISTIC).settings(config)
    assert (heuristic.encoder.model, heuristic.search.floor, heuristic.search.k) == ("off", 0.3, 7)


def test_costs_are_means_and_shares_over_all_turns() -> None:
    turn = Injected(tokens=100, first=Phase.FAST, later=True)
    stats = injection_stats([turn, replace(turn, tokens=0, first=None, later=False)])
    assert stats == {
        "tokens_mean": 50.0, "tokens_max": 100, "first_refined": 0.0, "first_fast": 0.5, "first_nothing": 0.5,
        "with_tool_result": 0.5,
    }  # fmt: skip
