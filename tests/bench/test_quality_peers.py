from collections.abc import Sequence
from contextlib import closing
from math import log
from pathlib import Path

import pytest

from bench.quality.peers import Bm25, FullText, ask_peers, read_notes, words
from recall.apps.testset import Query


def note(folder: Path, name: str, *, title: str = "", body: str = "", header: str = "") -> None:
    file = folder / f"{name}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\nname: {title or name}\n{header}---\n\n{body}\n", encoding="utf-8")


def query(text: str, relevant: Sequence[str] = ("a",), **keys: object) -> Query:
    given: dict[str, object] = {"scope": "", "exclude": frozenset(), **keys}
    return Query(id="q", text=text, relevant=frozenset(relevant), **given)  # type: ignore[arg-type]


def test_words_are_lower_case_runs_and_pairs_of_cjk_characters() -> None:
    assert list(words("Retry_Budget 发布前 v2 水! データ 검색어")) == [
        "retry", "budget", "发布", "布前", "v2", "水", "デー", "ータ", "검색", "색어",
    ]  # fmt: skip


def test_bm25s_scores_as_the_formula_by_hand() -> None:
    """Lucene's BM25: idf = ln(1 + (N - n + .5) / (n + .5)), tf / (tf + k1 (1 - b + b length / mean length))."""
    pytest.importorskip("bm25s")
    peer = Bm25(["cache cache queue", "cache budget release plan for today", "garden"])
    idf = {"cache": log(1 + 1.5 / 2.5), "budget": log(1 + 2.5 / 1.5)}
    mean = (3 + 6 + 1) / 3
    first = idf["cache"] * 2 / (2 + 1.5 * (0.25 + 0.75 * 3 / mean))
    second = (idf["cache"] + idf["budget"]) / (1 + 1.5 * (0.25 + 0.75 * 6 / mean))
    assert peer.scores("cache budget?") == pytest.approx([first, second, 0.0], rel=1e-5)
    assert peer.scores("cache, cache budget: cache?") == pytest.approx([first, second, 0.0], rel=1e-5)
    assert peer.rank("cache budget?") == [1, 0]
    assert peer.rank("cache") == [0, 1]


def test_bm25s_finds_chinese_and_answers_nothing_without_a_common_word() -> None:
    pytest.importorskip("bm25s")
    peer = Bm25(["发布之前要备份", "花园里的工具"])
    assert peer.rank("怎么备份？") == [0]
    assert peer.rank("天气") == []
    assert peer.rank("??") == []


def test_full_text_search_finds_both_languages_best_first_whatever_signs_the_query_has() -> None:
    with closing(FullText(["发布之前要备份", "the cache and the queue", "cache cache cache 备份"])) as peer:
        assert peer.rank("cache 'OR\" -NEAR(") == [2, 1]
        assert sorted(peer.rank("备份")) == [0, 2]
        assert peer.rank("??!") == []


def test_a_note_is_its_name_description_and_body_and_an_index_file_is_none(tmp_path: Path) -> None:
    note(tmp_path / "one", "a", title="Title", header="description: what it is\nseq: 3\n", body="The body.")
    (tmp_path / "one" / "MEMORY.md").write_text("- [Title](a.md)", encoding="utf-8")
    (read,) = read_notes(tmp_path, "one")
    assert (read.name, read.text, read.seq) == ("one/a", "Title\nwhat it is\nThe body.", 3.0)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    pytest.importorskip("bm25s")
    for scope in ("one", "two"):
        note(tmp_path / scope, "a", header="seq: 1\n", body="the cache")
        note(tmp_path / scope, "b", header="seq: 2\n", body="the cache the cache")
    note(tmp_path / "two", "c", body="the cache the cache the cache")
    return tmp_path


def test_peers_answer_from_the_scope_alone(corpus: Path) -> None:
    answers = ask_peers(corpus, [query("cache", scope="two"), query("cache", scope="one")])
    assert set(answers) == {"bm25s", "fts5"}
    for judged in answers.values():
        assert [{name.partition("/")[0] for name in one.ranking} for one in judged] == [{"one"}, {"two"}]


def test_peers_answer_nothing_excluded_and_nothing_later_than_asked(corpus: Path) -> None:
    for judged in ask_peers(corpus, [query("cache", scope="two", exclude=frozenset({"two/a"}))]).values():
        assert sorted(judged[0].ranking) == ["two/b", "two/c"]
    for judged in ask_peers(corpus, [query("cache", scope="two", asof=1.0)]).values():
        assert judged[0].ranking == ("two/a",)


def test_a_peer_gives_ten_answers_at_most(tmp_path: Path) -> None:
    pytest.importorskip("bm25s")
    for at in range(15):
        note(tmp_path, f"n{at:02}", body="cache")
    for judged in ask_peers(tmp_path, [query("cache")]).values():
        assert len(judged[0].ranking) == 10
