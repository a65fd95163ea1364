from contextlib import closing
from pathlib import Path

from bench.baselines import FullText, Scan, words
from recall.index.hashing import HashingEncoder


def test_words_are_lower_case_runs_and_pairs_of_chinese_characters() -> None:
    assert list(words("Retry_Budget 发布前 v2 水!")) == ["retry", "budget", "发布", "布前", "v2", "水"]


def test_full_text_search_finds_words_in_both_languages_best_first(tmp_path: Path) -> None:
    for name, text in (("a", "发布之前要备份"), ("b", "the cache and the queue"), ("c", "cache cache cache 备份")):
        (tmp_path / f"{name}.md").write_text(text, encoding="utf-8")
    with closing(FullText(tmp_path, tmp_path / "fts.db")) as full_text:
        assert full_text.search("cache 'OR\"", 5) == [3, 2]
        assert set(full_text.search("备份", 5)) == {1, 3}
        assert full_text.search("cache", 1) == [3]
        assert full_text.search("??!", 5) == []
    with closing(FullText(tmp_path, tmp_path / "fts.db")) as again:
        assert again.search("queue", 5) == [2]


def test_a_scan_gives_the_nearest_rows_best_first() -> None:
    encoder = HashingEncoder()
    rows = encoder.encode_documents(["garden tools", "release plan of the queue", "queue"])
    assert list(Scan(rows, encoder).search("queue", 2)) == [2, 1]
    assert len(Scan(rows, encoder).search("queue", 5)) == 3
