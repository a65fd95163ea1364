"""Vectors of models that were used before are kept, and taken back instead of made anew."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from recall.index.base import Vector, Vectors
from recall.index.collection import Collection
from recall.index.hashing import HashingEncoder
from recall.store.topics import Scope

TOPICS = 40


class Counting(HashingEncoder):
    """A model of some name; counts the documents that it was asked for."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.fingerprint = f"{name}:{self.dim}"
        self.asked = 0

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        self.asked += sum(text != "warm-up" for text in texts)
        return super().encode_documents(texts)

    def encode_query(self, text: str) -> Vector:
        return super().encode_query(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "memory"
    folder.mkdir()
    for number in range(TOPICS):
        put(folder, number, f"note {number} about backups")
    return folder


@pytest.fixture
def opened(root: Path, tmp_path: Path) -> Callable[[], Collection]:
    return lambda: Collection(root, Scope.PROJECT, cache=tmp_path / "cache", max_file_bytes=1 << 20)


def put(folder: Path, number: int, text: str) -> None:
    (folder / f"note-{number}.md").write_text(f"---\nname: Note {number}\n---\n{text}\n", encoding="utf-8")


def use(collection: Collection, encoder: Counting, *, limit: int | None = None) -> int:
    """Brings the vectors of the model up to date.

    Returns:
        How many texts it was asked for.
    """
    before = encoder.asked
    collection.sync_words()
    collection.sync_vectors(encoder, limit=limit)
    return encoder.asked - before


def shelves(collection: Collection) -> list[Path]:
    return sorted((collection.folder / "shelf").glob("*/*.vectors"))


def embedded(collection: Collection) -> int:
    return int(np.count_nonzero(collection.snapshot().embedded))


def test_who_comes_back_to_a_model_makes_nothing_anew(opened: Callable[[], Collection]) -> None:
    one, other, collection = Counting("one"), Counting("other"), opened()
    assert use(collection, one) == TOPICS
    rows = collection.snapshot().rows[np.argsort(collection.snapshot().chunk_row)].tolist()
    assert use(collection, other) == TOPICS
    assert use(collection, one) == 0
    assert (embedded(collection), collection.snapshot().encoder) == (TOPICS, one.fingerprint)
    assert sorted(collection.snapshot().rows.tolist()) == sorted(rows)
    assert use(collection, other) == 0
    collection.close()


def test_one_question_with_another_model_costs_the_vectors_of_none(opened: Callable[[], Collection]) -> None:
    one, other, collection = Counting("one"), Counting("other"), opened()
    use(collection, one)
    assert use(collection, other, limit=4) == 4
    assert use(collection, one, limit=4) == 0
    assert embedded(collection) == TOPICS
    collection.close()


def test_what_was_taken_back_in_part_is_not_lost_when_the_model_changes_again(
    opened: Callable[[], Collection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recall.index.embed._FOUND_FOR_ONE_MADE", 1)
    one, other, collection = Counting("one"), Counting("other"), opened()
    use(collection, one)
    for _ in range(3):
        use(collection, other, limit=4)
        assert use(collection, one, limit=4) == 0
    assert 0 < embedded(collection) < TOPICS
    assert use(collection, one) == 0
    assert embedded(collection) == TOPICS
    collection.close()


def test_text_that_changed_meanwhile_is_all_that_is_made(opened: Callable[[], Collection], root: Path) -> None:
    one, other, collection = Counting("one"), Counting("other"), opened()
    use(collection, one)
    use(collection, other)
    put(root, 3, "something else")
    assert use(collection, one) == 1
    collection.close()


def test_another_process_takes_them_back_as_well(opened: Callable[[], Collection]) -> None:
    first = opened()
    use(first, Counting("one"))
    use(first, Counting("other"))
    first.close()
    second = opened()
    assert use(second, Counting("one")) == 0
    second.close()


def test_the_models_used_last_are_kept_and_no_more(opened: Callable[[], Collection]) -> None:
    collection = opened()
    for name in ("one", "two", "three", "four"):
        use(collection, Counting(name))
    assert len(shelves(collection)) == 2
    assert use(collection, Counting("three")) == 0
    assert use(collection, Counting("one")) == TOPICS
    collection.close()


def test_once_all_is_taken_back_nothing_is_kept_twice(opened: Callable[[], Collection]) -> None:
    collection = opened()
    for name in ("one", "other", "one"):
        use(collection, Counting(name))
    assert len(shelves(collection)) == 1
    collection.close()


@pytest.mark.parametrize("damage", [b"", b"no vectors"])
def test_what_was_damaged_on_the_shelf_is_made_anew(opened: Callable[[], Collection], damage: bytes) -> None:
    collection = opened()
    use(collection, Counting("one"))
    use(collection, Counting("other"))
    for file in [*shelves(collection), *(collection.folder / "shelf").glob("*/catalog.sqlite3")]:
        file.write_bytes(damage)
    assert use(collection, Counting("one")) == TOPICS
    assert embedded(collection) == TOPICS
    collection.close()


def test_a_rebuild_and_a_purge_leave_nothing_on_the_shelf(opened: Callable[[], Collection]) -> None:
    collection = opened()
    use(collection, Counting("one"))
    use(collection, Counting("other"))
    assert shelves(collection)
    collection.purge()
    assert not (collection.folder / "shelf").exists()
    use(collection, Counting("one"))
    assert shelves(collection)
    collection.rebuild()
    assert not shelves(collection)
    collection.close()
