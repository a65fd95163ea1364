"""What a search looks at: one commit, whole, whatever is written meanwhile."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall.errors import IndexFormatError
from recall.index.catalog import Catalog
from recall.index.collection import Collection
from recall.index.hashing import HashingEncoder
from recall.index.snapshot import Snapshot, take_snapshot
from recall.index.table import TYPES, Table, follow, places_of
from recall.store.topics import MemoryType, Scope


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Collection]:
    root = tmp_path / "memory"
    root.mkdir()
    collection = Collection(root, Scope.USER, cache=tmp_path / "cache", max_file_bytes=1 << 20)
    yield collection
    collection.close()


def write(index: Collection, path: str, body: str, *, kind: str = "") -> Path:
    file = index.root / path
    header = f"---\ntype: {kind}\n---\n" if kind else ""
    file.write_text(header + body, encoding="utf-8")
    return file


def in_step(index: Collection) -> None:
    index.sync_words()
    index.sync_vectors(HashingEncoder(32))


def long_text(name: str) -> str:
    return "\n\n".join(f"{name} says {number} things. " * 120 for number in range(4))


def test_an_empty_memory_has_an_empty_snapshot(index: Collection) -> None:
    snapshot = index.snapshot()
    assert (len(snapshot), tuple(snapshot.paths), len(snapshot.rows), snapshot.segments) == (0, (), 0, ())
    assert snapshot.topics([]) == {}


def test_its_arrays_speak_of_the_same_topics(index: Collection) -> None:
    write(index, "long.md", long_text("long"), kind="feedback")
    write(index, "short.md", "short", kind="user")
    write(index, "plain.md", "plain")
    in_step(index)
    snapshot = index.snapshot()
    kinds = dict(zip(snapshot.paths, [TYPES[code] for code in snapshot.types], strict=True))
    assert kinds == {"long.md": MemoryType.FEEDBACK, "short.md": MemoryType.USER, "plain.md": None}
    assert (np.diff(snapshot.docs) > 0).all()
    assert (np.diff(snapshot.chunk_owner) >= 0).all()
    assert set(snapshot.chunk_owner.tolist()) == {0, 1, 2}
    for position, topic in snapshot.topics([0, 1, 2]).items():
        assert topic.path == snapshot.paths[position]
        assert topic.mtime == snapshot.mtimes[position]
        assert topic.id == snapshot.id_of(position) == f"user:{topic.path}"


def test_it_is_the_same_one_until_somebody_commits(index: Collection) -> None:
    write(index, "a.md", "cats")
    in_step(index)
    first = index.snapshot()
    index.sync_vectors(HashingEncoder(32))
    assert index.snapshot() is first
    write(index, "b.md", "dogs")
    index.sync_words()
    assert index.snapshot() is not first


def test_it_stays_as_it_was_while_topics_come_and_change(index: Collection) -> None:
    write(index, "a.md", "cats")
    in_step(index)
    old = index.snapshot()
    rows = old.rows.copy()
    write(index, "a.md", "cats and dogs")
    write(index, "b.md", "birds")
    in_step(index)
    assert (tuple(old.paths), len(old)) == (("a.md",), 1)
    np.testing.assert_array_equal(old.rows, rows)
    assert sorted(index.snapshot().paths) == ["a.md", "b.md"]


def test_topics_that_are_gone_by_now_are_left_out(index: Collection) -> None:
    write(index, "a.md", "cats")
    write(index, "b.md", "dogs")
    in_step(index)
    snapshot = index.snapshot()
    (index.root / "a.md").unlink()
    write(index, "b.md", "dogs of another kind")
    index.sync_words()
    assert snapshot.topics([0, 1]) == {}


def test_it_can_be_read_after_the_index_was_made_anew(index: Collection) -> None:
    """A search that is under way while somebody rebuilds ends in peace."""
    write(index, "a.md", "cats")
    in_step(index)
    snapshot = index.snapshot()
    index.rebuild()
    in_step(index)
    assert [topic.body for topic in snapshot.topics([0]).values()] == ["cats"]
    assert len(snapshot.rows) == 1
    assert index.snapshot() is not snapshot


def test_the_topics_of_a_great_memory_are_read_in_parts(index: Collection) -> None:
    write(index, "a.md", "cats")
    in_step(index)
    with_many_numbers = Catalog(index.folder, index.root).topics(range(400_000), Scope.USER)
    assert [topic.path for topic in with_many_numbers.values()] == ["a.md"]


def test_vectors_that_are_missing_on_the_disk_are_damage(index: Collection) -> None:
    write(index, "a.md", "cats")
    in_step(index)
    (file,) = index.folder.glob("*.vectors")
    file.unlink()
    catalog = Catalog(index.folder, index.root)
    with pytest.raises(IndexFormatError, match=r"shorter"):
        take_snapshot(catalog, Scope.USER)
    catalog.close()


STEPS = st.tuples(st.sampled_from(["write", "long", "delete", "move", "words", "vectors"]), st.integers(0, 5))


def take_step(index: Collection, deed: str, number: int) -> None:
    file = index.root / f"topic {number}.md"
    if deed in {"write", "long"}:
        write(index, file.name, long_text(f"n{number}") if deed == "long" else f"short {number}", kind="user")
    elif deed == "delete":
        file.unlink(missing_ok=True)
    elif deed == "move" and file.exists():
        file.rename(index.root / f"topic {(number + 1) % 6}.md")
    elif deed == "words":
        index.sync_words()
    elif deed == "vectors":
        index.sync_vectors(HashingEncoder(32), limit=5)


State = tuple[dict[str, list[object]], list[list[int]]]


def state(snapshot: Snapshot) -> State:
    return content(snapshot.table), [positions.tolist() for _, positions in snapshot.segments]


def content(table: Table) -> dict[str, list[object]]:
    return {field.name: list(getattr(table, field.name)) for field in fields(Table)}


@settings(max_examples=30)
@given(steps=st.lists(STEPS, max_size=12))
def test_a_snapshot_made_from_the_last_one_is_that_of_a_new_reading(steps: Sequence[tuple[str, int]]) -> None:
    with TemporaryDirectory() as base:
        (root := Path(base, "memory")).mkdir()
        index = Collection(root, Scope.USER, cache=Path(base, "cache"), max_file_bytes=1 << 20)
        taken: list[tuple[Snapshot, State]] = []
        for deed, number in steps:
            take_step(index, deed, number)
            stepped = index.snapshot()
            taken.append((stepped, state(stepped)))
            catalog = Catalog(index.folder, index.root)
            fresh = take_snapshot(catalog, Scope.USER)
            assert state(stepped) == state(fresh)
            assert [segment.name for segment, _ in stepped.segments] == [segment.name for segment, _ in fresh.segments]
            catalog.close()
        assert all(state(snapshot) == before for snapshot, before in taken)
        index.close()


TOPICS = st.dictionaries(
    st.integers(1, 12),
    st.tuples(st.text("abc", min_size=1), st.sampled_from(TYPES), st.integers(0, 9), st.booleans(), st.integers(0, 3)),
    max_size=8,
)


def table_of(topics: Mapping[int, tuple[str, MemoryType | None, int, bool, int]]) -> Table:
    """Topics by their numbers: path, kind, time, whether they have vectors, how many chunks."""
    return Table.of(
        [(doc, path, kind, time, int(done)) for doc, (path, kind, time, done, _) in sorted(topics.items())],
        [(doc, at, 10 * doc + at) for doc, (*_, chunks) in sorted(topics.items()) for at in range(chunks)],
    )


@given(first=TOPICS, steps=st.lists(st.tuples(st.frozensets(st.integers(1, 12), max_size=4), TOPICS), max_size=4))
def test_a_table_brought_up_to_date_is_that_of_a_new_reading_and_the_old_ones_stay(
    first: Mapping[int, Any], steps: Sequence[tuple[frozenset[int], Mapping[int, Any]]]
) -> None:
    topics, tables = dict(first), [table_of(first)]
    contents = [content(tables[0])]
    for gone, fresh in steps:
        before = tables[-1]
        table, moved = before.updated(np.asarray(sorted(gone), np.int64), table_of(fresh))
        topics = {doc: topic for doc, topic in topics.items() if doc not in gone} | dict(fresh)
        assert content(table) == content(table_of(topics))
        assert moved.tolist() == [*places_of(table.docs, before.docs).tolist(), -1]
        tables.append(table)
        contents.append(content(table))
    assert [content(table) for table in tables] == contents


@pytest.mark.parametrize("count", [3, 100, 600])
def test_many_topics_that_change_among_others_are_put_in_order(count: int) -> None:
    topics: dict[int, Any] = {doc: (f"{doc}.md", None, doc, False, doc % 3) for doc in range(2, 2000, 3)}
    fresh: dict[int, Any] = {
        doc: (f"new {doc}.md", MemoryType.USER, doc, True, 2) for doc in range(2, 2 + 3 * count, 2)
    }
    gone = np.arange(5, 2000, 30)
    table, moved = table_of(topics).updated(gone, table_of(fresh))
    right = table_of({doc: topic for doc, topic in topics.items() if doc not in gone} | fresh)
    assert content(table) == content(right)
    assert moved.tolist() == [*places_of(right.docs, np.asarray(list(topics))).tolist(), -1]


def test_paths_are_the_same_texts_when_many_have_changed_one_by_one() -> None:
    table = Table.of([(doc, f"{doc}.md", None, 0, 0) for doc in range(4)], [])
    kept = table.paths[0]
    for doc in range(4, 3000):
        table, _ = table.updated(np.asarray([doc - 3]), Table.of([(doc, f"{doc}.md", None, 0, 0)], []))
    assert list(table.paths) == ["0.md", "2997.md", "2998.md", "2999.md"]
    assert list(table.paths[1:3]) == ["2997.md", "2998.md"]
    assert table.paths[0] is kept
    assert len(table.paths.settled) + len(table.paths.recent) < 1100  # texts of what is gone do not stay for ever


def test_positions_follow_a_table_that_loses_gains_and_renews_topics() -> None:
    rows = [(doc, f"{doc}.md", None, 0, 0) for doc in (2, 4, 6, 8)]
    before = Table.of(rows, [(2, 0, 0), (4, 0, 1), (4, 1, 2), (8, 0, 3)])
    fresh = Table.of([(6, "6.md", "user", 10**9, 1), (9, "9.md", None, 0, 1)], [(6, 0, 4), (9, 0, 5)])
    after, moved = before.updated(np.asarray([4, 5]), fresh)
    assert after.docs.tolist() == [2, 6, 8, 9]
    assert tuple(after.paths) == ("2.md", "6.md", "8.md", "9.md")
    assert (after.types.tolist(), after.mtimes.tolist()) == ([0, 1, 0, 0], [0.0, 1.0, 0.0, 0.0])
    assert list(zip(after.chunk_owner.tolist(), after.chunk_row.tolist(), strict=True)) == [
        (0, 0),
        (1, 4),
        (2, 3),
        (3, 5),
    ]
    assert moved.tolist() == [0, -1, 1, 2, -1]
    assert follow(moved, np.asarray([3, -1, 1, 2])).tolist() == [2, -1, -1, 1]
    assert places_of(after.docs, np.asarray([8, 3])).tolist() == [2, -1]
