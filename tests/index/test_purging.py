"""After a purge, derived data holds nothing that the files no longer say, and answers as if it had been made anew."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from recall import Config, Memory, Recall
from recall.config import EncoderConfig, IndexConfig, SearchConfig
from recall.errors import LockedError
from recall.index.catalog import Catalog
from recall.index.collection import Collection
from recall.index.folder import CATALOG_FILE, cache_folder
from recall.index.purging import purge_vectors
from recall.store.topics import Scope

SECRET = "xylograph quincunx 剑鱼密码"
WORDS = ("xylograph", "quincunx", "剑鱼", "鱼密")
QUERY = "thing1 主题1 number"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "memory"
    folder.mkdir()
    for number in range(12):
        write(folder, f"{number}.md", f"number {number} tells about thing{number} and 主题{number}号")
    for number in range(3):
        write(folder, f"secret{number}.md", f"{SECRET} for the {number}. time\n\n" + "and filler of many words\n" * 40)
    return folder


def write(root: Path, path: str, body: str) -> Path:
    file = root / path
    file.write_text(f"---\nname: {file.stem}\n---\n{body}\n", encoding="utf-8")
    return file


def opened(root: Path, cache: Path, *, model: str = "hashing") -> Memory:
    config = Config(
        search=SearchConfig(floor=-1.0), index=IndexConfig(cache=str(cache)), encoder=EncoderConfig(model=model)
    )
    return Memory.open(root, config=config, background=False)


def shown(recall: Recall) -> list[tuple[str, float, float | None]]:
    return [(hit.topic.id, round(hit.score, 5), hit.cosine and round(hit.cosine, 5)) for hit in recall.hits]


def holding(cache: Path, *words: str) -> set[tuple[str, str]]:
    """Files of the cache in which a word stands, with the word."""
    found = set()
    for file in cache.rglob("*"):
        if file.is_file():
            data = file.read_bytes().lower()
            found |= {(file.name, word) for word in words if word.encode() in data}
    return found


def purge(root: Path, cache: Path) -> None:
    with closing(Collection(root, Scope.PROJECT, cache=cache, max_file_bytes=1 << 20)) as collection:
        collection.purge()


def forgotten(root: Path) -> None:
    for file in root.glob("secret*.md"):
        file.unlink()


@pytest.mark.parametrize("model", ["hashing", "off"])
def test_no_word_of_a_topic_that_is_gone_is_left_in_any_file(root: Path, tmp_path: Path, model: str) -> None:
    cache = tmp_path / "cache"
    with opened(root, cache, model=model) as memory:
        assert memory.recall(SECRET, origin=None).hits
        memory.reindex()
        assert {word for _, word in holding(cache, *WORDS)} >= {"xylograph", "剑鱼"}
        forgotten(root)
        purge(root, cache)
        assert holding(cache, *WORDS) == set()
        assert not [hit for hit in memory.recall(SECRET, origin=None).hits if hit.topic.path.startswith("secret")]
    assert holding(cache, *WORDS) == set()


def test_no_word_that_a_topic_no_longer_says_is_left(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with opened(root, cache) as memory:
        memory.reindex()
        for file in root.glob("secret*.md"):
            write(root, file.name, "harmless words")
        memory.reindex()
    purge(root, cache)
    assert holding(cache, *WORDS) == set()
    assert holding(cache, "harmless")


def test_vectors_of_what_is_gone_leave_the_file(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with opened(root, cache) as memory:
        memory.reindex()
    (before,) = cache.rglob("*.vectors")
    size, rows = before.stat().st_size, set(_rows(before))
    forgotten(root)
    purge(root, cache)
    (after,) = cache.rglob("*.vectors")
    assert after.name != before.name
    assert after.stat().st_size < size
    assert set(_rows(after)) < rows


def _rows(file: Path, chunk: int = 64) -> list[bytes]:
    data = file.read_bytes()
    return [data[at : at + chunk] for at in range(0, len(data), chunk)]


def test_a_purged_index_answers_as_one_that_was_made_anew(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with opened(root, cache) as memory:
        memory.reindex()
        forgotten(root)
        purge(root, cache)
        queries = (QUERY, "number 7", "主题3号", SECRET, "filler")
        purged = [shown(memory.recall(query, origin=None)) for query in queries]
        assert memory.check()[0].findings == ()
    with opened(root, tmp_path / "fresh") as fresh:
        fresh.reindex()
        assert [shown(fresh.recall(query, origin=None)) for query in queries] == purged


def test_a_purge_of_nothing_and_of_everything_leaves_a_sound_index(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with opened(root, cache) as memory:
        memory.reindex()
        before = shown(memory.recall(QUERY, origin=None))
        purge(root, cache)
        assert shown(memory.recall(QUERY, origin=None)) == before
        for file in root.glob("*.md"):
            file.unlink()
        purge(root, cache)
        assert memory.recall(QUERY, origin=None).hits == ()
        assert memory.check()[0].findings == ()
        assert holding(cache, *WORDS, "thing1") == set()
        write(root, "new.md", "thing1 again")
        assert [hit.topic.id for hit in memory.recall(QUERY, origin=None).hits] == ["new.md"]


def test_an_index_that_was_never_made_is_purged_too(root: Path, tmp_path: Path) -> None:
    forgotten(root)
    purge(root, tmp_path / "cache")
    assert holding(tmp_path / "cache", *WORDS) == set()


def test_others_that_have_the_index_open_go_on_and_see_the_purged_one(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with opened(root, cache) as one, opened(root, cache) as other:
        one.reindex()
        assert other.recall(SECRET, origin=None).hits[0].topic.path.startswith("secret")
        forgotten(root)
        purge(root, cache)
        assert holding(cache, *WORDS) == set()
        assert shown(other.recall(QUERY, origin=None)) == shown(one.recall(QUERY, origin=None))
        assert not [hit for hit in other.recall(SECRET, origin=None).hits if hit.topic.path.startswith("secret")]


def test_a_reader_in_the_way_is_told_of_and_not_passed_over(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with opened(root, cache) as memory:
        memory.reindex()
    forgotten(root)
    catalog = cache_folder(cache, root) / CATALOG_FILE
    with closing(sqlite3.connect(catalog)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM topics").fetchone()  # holds the state before
        with pytest.raises(LockedError, match="reading"):
            purge(root, cache)
    purge(root, cache)
    assert holding(cache, *WORDS) == set()


def test_searches_while_a_purge_runs_give_answers(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with opened(root, cache) as memory:
        memory.reindex()
        stop, wrong = threading.Event(), list[object]()

        def search() -> None:
            while not stop.is_set():
                try:
                    if not memory.recall(QUERY, origin=None).hits:
                        wrong.append("no hits")
                except Exception as error:
                    wrong.append(error)

        searcher = threading.Thread(target=search, daemon=True)
        searcher.start()
        try:
            forgotten(root)
            for _ in range(3):
                purge(root, cache)
        finally:
            stop.set()
            searcher.join()
        assert wrong == []
    assert holding(cache, *WORDS) == set()


def test_what_was_done_is_said(root: Path, tmp_path: Path) -> None:
    with opened(root, tmp_path / "cache") as memory:
        memory.reindex()
    with closing(Catalog(cache_folder(tmp_path / "cache", root), root)) as catalog:
        assert purge_vectors(catalog) == ("the catalog was written anew",)
