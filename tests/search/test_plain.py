"""The quick answer of a fresh process is the answer of the arrays, over any index."""

import os
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from recall.errors import IndexFormatError
from recall.index.catalog import EMBEDDED, Catalog
from recall.index.collection import Collection
from recall.index.flat import products
from recall.index.hashing import HashingEncoder
from recall.index.plain import PlainIndex
from recall.search.plain import coverage_plain, search_plain, search_words
from recall.search.retriever import Hybrid, coverage_of, search_heuristic
from recall.search.types import Filter, Hit
from recall.store.scan import scan
from recall.store.topics import Scope

WORDS = [
    "deploy",
    "deployment",
    "redeploy",
    "plan",
    "release",
    "rule",
    "user",
    "a1",
    "naïve",
    "数据库",
    "数据",
    "迁移",
    "库",
]
QUERIES = [
    "deploy",
    "the release plan",
    "数据库怎么迁移",
    "user rule naïve",
    "ploy 库",
    "zebra",
    "",
    "DEPLOY 数据库 a1 plan",
]


def write(index: Collection, number: int, rng: Random) -> None:
    """A topic of random words; few times, so that many tie."""
    file = index.root / f"{number % 7}" / f"t{number}.md"
    file.parent.mkdir(exist_ok=True)
    title, description, body = (" ".join(rng.choices(WORDS, k=size)) for size in (2, 3, 20))
    kind = rng.choice(["user", "feedback", "project", "reference", ""])
    head = f"---\nname: {title}\ndescription: {description}\n" + (f"type: {kind}\n" if kind else "")
    file.write_text(f"{head}---\n{body}\n", encoding="utf-8")
    os.utime(file, (1000 + rng.randrange(3),) * 2)


@pytest.fixture
def worn(scopes: list[Collection]) -> list[Collection]:
    """Two memories that were filled, changed and thinned out: several segments, and places in them that are dead."""
    rng = Random(7)
    for index in scopes:
        for round_ in range(3):
            for number in rng.sample(range(60), 25):
                write(index, number, rng)
            for file in rng.sample(sorted(index.root.rglob("*.md")), 4 * (round_ > 0)):
                file.unlink()
            index.sync_words()
    return scopes


def plain(index: Collection) -> PlainIndex:
    return PlainIndex.of(Catalog(index.folder, index.root, read_only=True), index.scope, max_file_bytes=1 << 20)


def close(indexes: Sequence[PlainIndex]) -> None:
    for index in indexes:
        index.catalog.close()


@pytest.mark.parametrize("floor", [0.0, 0.2, 0.5])
def test_it_finds_what_the_arrays_find(worn: list[Collection], floor: float) -> None:
    snapshots, indexes = [index.snapshot() for index in worn], [plain(index) for index in worn]
    assert all(len(index.segments) > 1 for index in indexes)
    some = 0
    for query in QUERIES:
        for k in (0, 1, 3, 10, 200):
            expected = search_heuristic(snapshots, query, k, floor=floor).hits
            assert search_plain(indexes, query, k, floor=floor) == expected, (query, k)
            some += len(expected)
    assert some > 100
    close(indexes)


def parts(hit: Hit) -> tuple[object, ...]:
    """All that a hit says, as exact as sums in another order are."""
    assert hit.lexical is not None
    assert hit.fit is not None
    numbers = (hit.score, hit.lexical, hit.phrases, hit.alone, hit.fit)
    return hit.topic, hit.cosine, hit.chunk, *(round(number, 9) for number in numbers)


@pytest.mark.parametrize("floor", [-1.0, 0.0, 0.2, 0.5])
def test_by_words_alone_it_finds_what_the_arrays_find(worn: list[Collection], floor: float) -> None:
    same = "---\nname: deploy\n---\nthe release plan of the zebra\n"
    for index in worn:
        (index.root / "same.md").write_text(same, encoding="utf-8")
        index.sync_words()
    snapshots, indexes = [index.snapshot() for index in worn], [plain(index) for index in worn]
    hybrid, wanted = Hybrid(products, floor, ""), Filter(frozenset({"0/t0.md", "user:1/t1.md"}))
    some = 0
    for query in QUERIES:
        for k in (0, 1, 3, 10, 200):
            expected = hybrid.search(snapshots, query, None, k, wanted=wanted).hits
            found = search_words(indexes, query, k, exclude=wanted.exclude, floor=floor)
            assert [parts(hit) for hit in found] == [parts(hit) for hit in expected], (query, k)
            some += len(expected)
    assert some > 50
    assert [hit.topic.id for hit in search_words(indexes, "zebra", 5, floor=0.1)] == ["same.md"]
    close(indexes)


def test_what_is_excluded_is_not_found(worn: list[Collection]) -> None:
    snapshots, indexes = [index.snapshot() for index in worn], [plain(index) for index in worn]
    found = [hit.topic.id for hit in search_plain(indexes, "deploy", 6)]
    rest = search_plain(indexes, "deploy", 6, exclude=found[::2])
    assert rest == search_heuristic(snapshots, "deploy", 6, wanted=Filter(frozenset(found[::2]))).hits
    assert not set(found[::2]) & {hit.topic.id for hit in rest}
    close(indexes)


def test_it_tells_how_much_took_part(worn: list[Collection]) -> None:
    worn[0].sync_vectors(HashingEncoder(32))
    indexes = [plain(index) for index in worn]
    assert coverage_plain(indexes, embedded=EMBEDDED) == coverage_of([index.snapshot() for index in worn])
    close(indexes)


def test_an_index_is_true_to_the_files_that_it_was_made_from(worn: list[Collection]) -> None:
    index, root = plain(worn[0]), worn[0].root
    files = scan(root, Scope.PROJECT).files
    assert index.is_true_to(files)
    assert not index.is_true_to(files[1:])
    write(worn[0], 99, Random(1))
    assert not index.is_true_to(scan(root, Scope.PROJECT).files)
    (root / "1" / "t99.md").unlink()
    assert index.is_true_to(scan(root, Scope.PROJECT).files)
    os.utime(root / files[0].path, (5, 5))
    assert not index.is_true_to(scan(root, Scope.PROJECT).files)
    close([index])


def test_a_damaged_segment_is_noticed(worn: list[Collection]) -> None:
    segment = next(worn[0].folder.glob("*.postings"))
    data = bytearray(segment.read_bytes())
    data[-65] ^= 0xFF
    data[len(data) // 2] ^= 0xFF
    segment.write_bytes(data)
    with pytest.raises(IndexFormatError, match="damaged"):
        plain(worn[0])


def test_a_catalog_that_is_only_read_is_never_made(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="unable to open"):
        Catalog(tmp_path, tmp_path, read_only=True)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "catalog.sqlite3").touch()
    with pytest.raises(IndexFormatError, match="nothing yet"):
        Catalog(tmp_path, tmp_path, read_only=True)
