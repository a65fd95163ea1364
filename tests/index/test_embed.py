"""Vectors for topics: what is asked of the model and what never again, what a bad model cannot spoil."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from recall.errors import EncoderError, IndexFormatError, ModelNotFoundError
from recall.index.base import Vector, Vectors
from recall.index.collection import Collection
from recall.index.hashing import HashingEncoder
from recall.index.snapshot import Snapshot
from recall.index.vectors import VectorFile, is_unit
from recall.store.topics import Scope
from recall.text.chunks import Chunk, chunk_topic

LONG_S = 60.0  # an upper bound that only a broken implementation reaches


class Recorded(HashingEncoder):
    """The hashing encoder with a memory of what it was asked, and another name or dimension if wanted."""

    def __init__(self, dim: int = 64, *, version: str = "") -> None:
        super().__init__(dim)
        self.fingerprint += version
        self.asked: list[str] = []

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return super().encode_documents(texts)

    def encode_query(self, text: str) -> Vector:
        vector: Vector = super().encode_documents([text])[0]
        return vector


class Spoilt(Recorded):
    """Gives something of its own for texts that hold `poison`."""

    def __init__(self, spoil: Callable[[Vectors], Vectors]) -> None:
        super().__init__()
        self.spoil = spoil

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        vectors = super().encode_documents(texts)
        return self.spoil(vectors) if any("poison" in text for text in texts) else vectors


Open = Callable[..., Collection]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens the index of a folder below the temporary one, all in one cache."""
    there: list[Collection] = []

    def open_(name: str = "memory", *, cache: str = "cache") -> Collection:
        (tmp_path / name).mkdir(exist_ok=True)
        there.append(Collection(tmp_path / name, Scope.PROJECT, cache=tmp_path / cache, max_file_bytes=1 << 24))
        return there[-1]

    yield open_
    for index in there:
        index.close()


def write(index: Collection, path: str, body: str, *, title: str = "") -> Path:
    file = index.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\nname: {title or file.stem}\n---\n{body}\n", encoding="utf-8")
    return file


def vectors_of(snapshot: Snapshot) -> dict[str, list[list[float]]]:
    """All vectors by path, rounded."""
    found: dict[str, list[list[float]]] = {path: [] for path in snapshot.paths}
    for owner, row in zip(snapshot.chunk_owner, snapshot.chunk_row, strict=True):
        found[snapshot.paths[owner]].append(np.round(snapshot.rows[row], 4).tolist())
    return found


def in_step(index: Collection, encoder: HashingEncoder, *, limit: int | None = None) -> Snapshot:
    index.sync_words()
    index.sync_vectors(encoder, limit=limit)
    return index.snapshot()


def long_body(sections: Sequence[str]) -> str:
    return "\n\n".join(f"## {name}\n\n" + f"{name} says a good deal. " * 90 for name in sections)


# --- what is asked of the model


def test_a_text_is_asked_for_once_wherever_it_stands(opened: Open) -> None:
    index, encoder = opened(), Recorded()
    for path in ("one.md", "two.md", "sub/three.md"):
        write(index, path, "the same words", title="same")
    snapshot = in_step(index, encoder)
    assert len(encoder.asked) == 1
    assert len(snapshot.chunk_row) == 3
    assert len(snapshot.rows) == 1


def test_renaming_a_file_or_moving_a_folder_asks_for_nothing(opened: Open) -> None:
    index, encoder = opened(), Recorded()
    for number in range(3):
        write(index, f"folder/{number}.md", f"words of {number}", title=f"name {number}")
    in_step(index, encoder)
    encoder.asked.clear()
    (index.root / "folder").rename(index.root / "elsewhere")
    (index.root / "elsewhere/0.md").rename(index.root / "elsewhere/nought.md")
    snapshot = in_step(index, encoder)
    assert encoder.asked == []
    assert sorted(snapshot.paths) == ["elsewhere/1.md", "elsewhere/2.md", "elsewhere/nought.md"]
    assert snapshot.embedded.all()


def test_a_topic_that_comes_back_costs_nothing(opened: Open) -> None:
    index, encoder = opened(), Recorded()
    file = write(index, "a.md", "cats")
    text = file.read_bytes()
    in_step(index, encoder)
    file.unlink()
    in_step(index, encoder)
    file.write_bytes(text)
    encoder.asked.clear()
    assert in_step(index, encoder).embedded.all()
    assert encoder.asked == []


def test_only_the_changed_part_of_a_long_topic_is_asked_for(opened: Open) -> None:
    index, encoder = opened(), Recorded()
    sections = [f"section{number}" for number in range(6)]
    write(index, "a.md", long_body(sections))
    before = len(in_step(index, encoder).chunk_row)
    assert before >= 6
    encoder.asked.clear()
    write(index, "a.md", long_body([*sections[:-1], "something else"]))
    in_step(index, encoder)
    assert 0 < len(encoder.asked) <= before / 2


def test_a_shrunk_file_leaves_no_chunk(opened: Open) -> None:
    index, encoder = opened(), Recorded()
    write(index, "a.md", long_body(["kept", "removed", "gone"]))
    write(index, "b.md", "another")
    many = len(in_step(index, encoder).chunk_row)
    write(index, "a.md", long_body(["kept"]))
    few = in_step(index, encoder)
    fresh = in_step(opened(cache="other"), Recorded())
    assert len(few.chunk_row) < many
    assert vectors_of(few) == vectors_of(fresh)


def test_every_part_of_one_endless_line_is_read_in_bounded_pieces(opened: Open) -> None:
    index, encoder = opened(), Recorded()
    line = " ".join(f"word{number}" for number in range(6_000))
    (index.root / "long.md").write_text(line, encoding="utf-8")
    write(index, "other.md", "cats")
    snapshot = in_step(index, encoder)
    assert snapshot.embedded.all()
    pieces = [text.removeprefix("long") for text in encoder.asked if text.startswith("long")]
    assert max(map(len, pieces)) < 4 * encoder.chunk_tokens
    assert "".join("".join(pieces).split()) == line.replace(" ", "")


def test_a_second_folder_with_the_same_files_asks_for_nothing(opened: Open) -> None:
    first, second = opened("here"), opened("there")
    for index in (first, second):
        for number in range(9):
            write(index, f"{number}.md", f"words of {number}")
    in_step(first, Recorded())
    encoder = Recorded()
    snapshot = in_step(second, encoder)
    assert encoder.asked == []
    assert vectors_of(snapshot) == vectors_of(first.snapshot())


@pytest.mark.parametrize("damage", ["vectors", "catalog", "model"])
def test_vectors_of_another_folder_are_not_taken_when_they_are_damaged_or_of_another_model(
    opened: Open, damage: str
) -> None:
    first, second = opened("here"), opened("there")
    for index in (first, second):
        for number in range(9):
            write(index, f"{number}.md", f"words of {number}")
    in_step(first, Recorded(version="-old") if damage == "model" else Recorded())
    first.close()
    if damage == "vectors":
        (file,) = first.folder.glob("*.vectors")
        file.write_bytes(b"\0" * file.stat().st_size)
    elif damage == "catalog":
        (first.folder / "catalog.sqlite3").write_bytes(b"nonsense" * 999)
    encoder = Recorded()
    snapshot = in_step(second, encoder)
    assert len(encoder.asked) == 9
    assert is_unit(snapshot.rows).all()


# --- another model


@pytest.mark.parametrize("other", [Recorded(version="-retrained"), Recorded(dim=32)], ids=["same width", "narrower"])
def test_another_model_makes_all_vectors_anew_and_says_so(opened: Open, other: Recorded) -> None:
    index = opened()
    for number in range(5):
        write(index, f"{number}.md", f"words of {number}")
    in_step(index, Recorded())
    report = index.sync_vectors(other)
    snapshot = index.snapshot()
    assert (report.embedded, report.reused) == (5, 0)
    assert Recorded().fingerprint in report.note
    assert other.fingerprint in report.note
    assert snapshot.encoder == other.fingerprint
    assert snapshot.rows.shape == (5, other.dim)
    assert len(list(index.folder.glob("*.vectors"))) == 1


def test_a_change_of_model_that_is_cut_short_shows_only_vectors_of_the_new_one(opened: Open) -> None:
    index = opened()
    for number in range(5):
        write(index, f"{number}.md", f"words of {number}")
    old = in_step(index, Recorded())
    rows = old.rows.copy()
    other = Recorded(version="-retrained")
    snapshot = in_step(index, other, limit=2)
    assert (snapshot.encoder, len(snapshot.chunk_row), int(snapshot.embedded.sum())) == (other.fingerprint, 2, 2)
    np.testing.assert_array_equal(old.rows, rows)  # a search that is under way keeps what it looks at


# --- a model that fails


def refuse(vectors: Vectors) -> Vectors:
    raise RuntimeError(f"no {len(vectors)} vectors today")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda vectors: vectors * np.nan,
        lambda vectors: vectors * 0,
        lambda vectors: np.full_like(vectors, np.inf),
        lambda vectors: vectors[:, :5],
        lambda vectors: vectors[:0],
        refuse,
    ],
    ids=["nan", "zero", "infinite", "too narrow", "too few", "raises"],
)
def test_a_text_without_a_usable_vector_is_reported_and_spoils_no_other(
    opened: Open, spoil: Callable[[Vectors], Vectors]
) -> None:
    index = opened()
    write(index, "bad.md", "poison")
    write(index, "good.md", "cats")
    index.sync_words()
    report = index.sync_vectors(Spoilt(spoil))
    snapshot = index.snapshot()
    embedded = dict(zip(snapshot.paths, snapshot.embedded.tolist(), strict=True))
    assert [path for path, _ in report.unembedded] == ["bad.md"]
    assert list(index.problems()) == ["bad.md"]
    assert embedded == {"bad.md": False, "good.md": True}
    assert is_unit(snapshot.rows).all()
    assert len(snapshot.rows) == 1


def test_a_text_without_a_usable_vector_is_not_asked_for_again_until_it_or_the_model_changes(opened: Open) -> None:
    index, encoder = opened(), Spoilt(lambda vectors: vectors * np.nan)
    file = write(index, "bad.md", "poison", title="bad")
    in_step(index, encoder)
    encoder.asked.clear()
    file.rename(index.root / "renamed.md")
    in_step(index, encoder)
    assert encoder.asked == []
    assert list(index.problems()) == ["renamed.md"]
    assert in_step(index, Recorded(version="-healthy")).embedded.all()
    assert index.problems() == {}


def test_the_vectors_of_an_encoder_that_scales_them_are_stored_at_unit_length(opened: Open) -> None:
    index = opened()
    write(index, "a.md", "poison and cats")
    snapshot = in_step(index, Spoilt(lambda vectors: vectors * 1000))
    assert is_unit(snapshot.rows).all()


class Broken(Recorded):
    """Every call fails in the same way."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        raise self.error

    def encode_query(self, text: str) -> Vector:
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError("boom"), ModelNotFoundError("gone", path="m.onnx"), KeyError(3)])
def test_a_model_that_does_not_work_at_all_is_one_error_and_loses_nothing(opened: Open, error: Exception) -> None:
    index = opened()
    write(index, "a.md", "cats")
    index.sync_words()
    with pytest.raises(EncoderError):
        index.sync_vectors(Broken(error))
    assert index.problems() == {}
    assert in_step(index, Recorded()).embedded.all()


# --- limits and interruptions


def test_a_limit_counts_chunks_and_takes_the_newest_topics(opened: Open) -> None:
    index = opened()
    for number in range(40):
        os.utime(write(index, f"{number}.md", f"words of {number}"), (1000 + number, 1000 + number))
    snapshot = in_step(index, Recorded(), limit=16)
    embedded = {path for path, done in zip(snapshot.paths, snapshot.embedded, strict=True) if done}
    assert embedded == {f"{number}.md" for number in range(24, 40)}


def test_a_topic_that_goes_beyond_the_limit_is_left(opened: Open) -> None:
    index, encoder = opened(), Recorded()
    os.utime(write(index, "long.md", long_body([f"section{number}" for number in range(8)])), (2000, 2000))
    os.utime(write(index, "newest.md", "short"), (3000, 3000))
    snapshot = in_step(index, encoder, limit=4)
    assert dict(zip(snapshot.paths, snapshot.embedded.tolist(), strict=True)) == {"newest.md": True, "long.md": False}
    assert len(encoder.asked) == 1


class Gated(Recorded):
    """Does something before it answers, once."""

    def __init__(self, before: Callable[[], object]) -> None:
        super().__init__()
        self.before: Callable[[], object] | None = before

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        if self.before:
            before, self.before = self.before, None
            before()
        return super().encode_documents(texts)


def test_a_topic_far_beyond_the_limit_is_not_even_cut_into_chunks(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, cut = opened(), []

    def noted(title: str, *rest: str, budget: int) -> list[Chunk]:
        cut.append(title)
        return chunk_topic(title, *rest, budget=budget)

    monkeypatch.setattr("recall.index.embed.chunk_topic", noted)
    write(index, "large.md", "word " * 100_000)
    write(index, "small.md", "zebra")
    assert in_step(index, Recorded(), limit=16).embedded.tolist() == [
        path == "small.md" for path in index.snapshot().paths
    ]
    assert cut == ["small"]
    assert in_step(index, Recorded()).embedded.all()


def test_work_that_is_stopped_is_taken_up_where_it_ended(opened: Open) -> None:
    index = opened()
    for number in range(70):
        write(index, f"{number}.md", f"words of {number}")
    index.sync_words()
    stop, encoder = threading.Event(), Recorded()
    stopped = index.sync_vectors(encoder, stop=stop, on_progress=lambda *_: stop.set())
    assert 0 < stopped.embedded < 70
    assert in_step(index, encoder).embedded.all()
    assert len(encoder.asked) == len(set(encoder.asked)) == 70


def test_a_topic_that_changes_while_it_is_encoded_gets_no_vector_of_its_old_text(opened: Open) -> None:
    index = opened()
    file = write(index, "a.md", "the old text")

    def edit() -> None:
        file.write_text("the new text is another", encoding="utf-8")
        index.sync_words()

    snapshot = in_step(index, Gated(edit))
    expected = Recorded().encode_documents(["a\nthe new text is another"])
    assert vectors_of(snapshot)["a.md"] == [np.round(expected[0], 4).tolist()]


def test_a_topic_that_is_deleted_while_it_is_encoded_stays_deleted(opened: Open) -> None:
    index = opened()
    file = write(index, "a.md", "cats")
    write(index, "b.md", "dogs")

    def delete() -> None:
        file.unlink()
        index.sync_words()

    snapshot = in_step(index, Gated(delete))
    assert tuple(snapshot.paths) == ("b.md",)
    assert snapshot.chunk_owner.tolist() == [0]


@pytest.mark.parametrize("whole", [True, False], ids=["the folder", "the catalog"])
def test_an_index_that_is_deleted_while_it_is_encoded_is_made_anew(opened: Open, whole: bool) -> None:
    index = opened()
    write(index, "a.md", "cats")

    def delete() -> None:
        shutil.rmtree(index.folder) if whole else (index.folder / "catalog.sqlite3").unlink()

    snapshot = in_step(index, Gated(delete))
    assert tuple(snapshot.paths) == ("a.md",)
    assert snapshot.embedded.all()


# --- the file of vectors


def test_no_row_is_written_behind_a_gap(tmp_path: Path) -> None:
    file = VectorFile(tmp_path / "some.vectors", 3)
    file.append(np.ones((2, 3), np.float32), at=0)
    with pytest.raises(IndexFormatError, match="fewer than 3"):
        file.append(np.ones((1, 3), np.float32), at=3)
    assert file.view(9).shape == (2, 3)


def test_vectors_that_nobody_needs_are_left_behind_when_they_are_most(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recall.index.embed._SPARE_ROWS", 4)
    index, encoder = opened(), Recorded()
    for round_ in range(8):
        for number in range(3):
            write(index, f"{number}.md", f"words of {number} in round {round_}")
        in_step(index, encoder)
    snapshot = index.snapshot()
    assert len(snapshot.rows) <= 2 * 3 + 4
    assert vectors_of(snapshot) == vectors_of(in_step(opened(cache="other"), Recorded()))
    assert len(list(index.folder.glob("*.vectors"))) == 1
    encoder.asked.clear()
    (index.root / "0.md").rename(index.root / "again.md")
    write(index, "again.md", "words of 0 in round 7", title="0")
    assert in_step(index, encoder).embedded.all()
    assert encoder.asked == []


@pytest.mark.parametrize("size", [0.5, 0.0, None], ids=["half", "empty", "missing"])
def test_vectors_that_were_cut_short_are_noticed_though_new_ones_are_added_first(
    opened: Open, size: float | None
) -> None:
    index = opened()
    for number in range(8):
        write(index, f"{number}.md", f"words of {number}")
    in_step(index, Recorded())
    index.close()
    (file,) = index.folder.glob("*.vectors")
    if size is None:
        file.unlink()
    else:
        os.truncate(file, int(file.stat().st_size * size))
    again = opened()
    write(again, "new.md", "something new")
    snapshot = in_step(again, Recorded())
    assert vectors_of(snapshot) == vectors_of(in_step(opened(cache="other"), Recorded()))
    assert is_unit(snapshot.rows).all()
