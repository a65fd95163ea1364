"""What a search looks at: one commit, whole, whatever is written meanwhile."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from recall.errors import IndexFormatError
from recall.index.catalog import Catalog
from recall.index.collection import Collection
from recall.index.hashing import HashingEncoder
from recall.index.snapshot import TYPES, take_snapshot
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
    assert (len(snapshot), snapshot.paths, snapshot.rows.shape[0], snapshot.segments) == (0, (), 0, ())
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
    assert (np.diff(snapshot.chunk_row[snapshot.chunks_by_row]) >= 0).all()
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
    assert (old.paths, len(old)) == (("a.md",), 1)
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
        take_snapshot(catalog, Scope.USER, opened={})
    catalog.close()
