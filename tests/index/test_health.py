"""Checks of derived data: each damage is found under its name and mended, and what is sound is not complained of."""

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recall.index.base import Encoder, Vectors
from recall.index.collection import Collection
from recall.index.findings import Health, Kind
from recall.index.flat import products
from recall.index.hashing import HashingEncoder
from recall.index.health import Sample, examine
from recall.index.inventory import Inventory, take_inventory
from recall.store.locks import exclusive
from recall.store.topics import Scope
from tests.aging import age

LONG_S = 60.0  # an upper bound that only a broken implementation reaches
ENCODER = HashingEncoder(64)
LONG_BODY = "\n".join(f"line {number} of a long note about topic{number}" for number in range(200))  # several chunks
ROW_BYTES = 64 * 4

Index = Collection


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "memory"
    folder.mkdir()
    for number in range(12):
        write(folder, f"{number}.md", f"number {number} tells about thing{number}")
    write(folder, "long.md", LONG_BODY)
    return age(folder)


def write(folder: Path, path: str, body: str, *, title: str = "") -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\nname: {title or file.stem}\n---\n{body}\n", encoding="utf-8")
    return file


@pytest.fixture
def opened(root: Path, tmp_path: Path) -> Iterator[Callable[[], Collection]]:
    there: list[Collection] = []

    def open_() -> Collection:
        there.append(Collection(root, Scope.PROJECT, cache=tmp_path / "cache", max_file_bytes=1 << 20))
        return there[-1]

    yield open_
    for index in there:
        index.close()


@pytest.fixture
def index(opened: Callable[[], Collection]) -> Collection:
    """An index in step with the folder."""
    made = opened()
    in_step(made)
    return made


def in_step(index: Collection) -> None:
    index.sync_words()
    index.sync_vectors(ENCODER)


def looked(index: Collection, *, encoder: Encoder | None = ENCODER, sample: Sample | None = None) -> Health:
    return examine(index.subject, encoder=encoder, products=products, sample=sample)


def kinds(health: Health) -> set[Kind]:
    return {finding.kind for finding in health.findings}


def found(index: Collection) -> dict[Kind, set[str]]:
    """What was found, by kind."""
    named: dict[Kind, set[str]] = {}
    for finding in looked(index).findings:
        named.setdefault(finding.kind, set()).add(finding.what)
    return named


def mended(index: Collection) -> Sequence[str]:
    """Mends, brings up to date and makes sure that nothing is left to find."""
    done = index.mend(looked(index).findings)
    in_step(index)
    health = looked(index)
    assert health.findings == ()
    assert health.counts.embedded == health.counts.topics == health.counts.files
    return done


def sql(index: Collection, *statements: str) -> None:
    with closing(sqlite3.connect(index.folder / "catalog.sqlite3")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def only(index: Collection, pattern: str) -> Path:
    (file,) = index.folder.glob(pattern)
    return file


def overwrite(file: Path, *, at: int | None = None, data: bytes = b"\xa5" * 64) -> None:
    with file.open("r+b") as stream:
        stream.seek(file.stat().st_size // 2 if at is None else at)
        stream.write(data)


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


# --- nothing is wrong


def test_a_sound_index_gives_no_finding_and_tells_its_counts(index: Collection) -> None:
    health = looked(index)
    assert health.findings == ()
    assert (health.counts.files, health.counts.topics, health.counts.embedded) == (13, 13, 13)
    assert health.counts.chunks == health.counts.vectors > 13
    assert (health.counts.unused, health.counts.segments) == (0, 1)


def test_edits_renames_deletions_and_rebuilds_leave_nothing_to_find(index: Collection, root: Path) -> None:
    steps: Sequence[Callable[[], object]] = (
        lambda: write(root, "1.md", "edited and longer than before"),
        lambda: (root / "2.md").rename(root / "renamed.md"),
        lambda: (root / "3.md").unlink(),
        lambda: write(root, "long.md", "short now"),
        lambda: shutil.copy(root / "4.md", root / "copy.md"),
        lambda: write(root, "sub/folder/名前.md", "新しい記憶"),
        lambda: (root / "5.md").write_bytes(b"\0" * 5000),
        lambda: write(root, "MEMORY.md", "an index file"),
        lambda: write(root, "empty words.md", "...", title="..."),
        lambda: write(root, "repeated.md", "again " * 70_000),
        index.rebuild,
    )
    for step in steps:
        step()
        in_step(index)
        assert [finding for finding in looked(index).findings if finding.kind is not Kind.UNUSABLE] == []


def test_unused_vectors_are_counted_and_no_fault_below_the_limit_of_compaction(index: Collection, root: Path) -> None:
    write(root, "long.md", "short now")
    in_step(index)
    health = looked(index)
    assert (health.findings, health.counts.unused) == ((), health.counts.vectors - 13)
    assert health.counts.unused > 0


def test_many_segments_and_their_merging_leave_nothing_to_find(index: Collection, root: Path) -> None:
    for number in range(20):
        write(root, f"{number % 3}.md", f"edit {number}")
        in_step(index)
        assert looked(index).findings == ()


def test_what_the_next_look_at_the_folder_sets_right_is_told_and_is_no_fault(index: Collection, root: Path) -> None:
    (root / "1.md").unlink()
    write(root, "2.md", "another text")
    write(root, "new.md", "a new one")
    health = looked(index)
    assert found(index) == {Kind.GONE: {"1.md"}, Kind.STALE: {"2.md"}, Kind.UNINDEXED: {"new.md"}}
    assert health.faults == ()
    mended(index)


def test_a_folder_that_was_never_indexed_is_no_fault(opened: Callable[[], Collection], tmp_path: Path) -> None:
    index = opened()
    health = looked(index)
    assert (kinds(health), health.faults) == ({Kind.UNINDEXED}, ())
    shutil.rmtree(tmp_path / "cache")
    assert looked(index) == health
    assert not (tmp_path / "cache").exists()


def test_topics_that_wait_for_vectors_are_counted(opened: Callable[[], Collection]) -> None:
    index = opened()
    index.sync_words()
    health = looked(index)
    assert (kinds(health), health.faults) == ({Kind.PENDING}, ())
    assert "0 of 13 topics embedded" in health.findings[0].sentence
    assert looked(index, encoder=None).findings == ()


def test_an_index_of_another_model_is_told_and_is_no_fault(index: Collection) -> None:
    health = looked(index, encoder=HashingEncoder(32))
    assert (kinds(health), health.faults) == ({Kind.MODEL}, ())


class Useless(HashingEncoder):
    """A model whose vectors are never usable."""

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        return np.zeros((len(texts), self.dim), np.float32)


def test_a_model_without_usable_vectors_is_a_fault(opened: Callable[[], Collection]) -> None:
    index, useless = opened(), Useless(64)
    index.sync_words()
    index.sync_vectors(useless)
    (fault,) = looked(index, encoder=useless).faults
    assert (fault.kind, fault.mendable) == (Kind.UNUSABLE, False)
    assert "0 of 13 topics embedded" in fault.sentence


def test_a_missing_memory_folder_is_told_and_its_topics_are_not_called_gone(index: Collection, root: Path) -> None:
    root.rename(root.with_name("elsewhere"))
    health = looked(index)
    assert (kinds(health), health.faults) == ({Kind.ROOT}, ())


def test_a_catalog_of_another_format_is_no_fault(index: Collection) -> None:
    sql(index, "UPDATE meta SET value = '1' WHERE key = 'format'")
    health = looked(index)
    assert (kinds(health), health.faults) == ({Kind.CATALOG, Kind.UNINDEXED}, ())


# --- files


def test_an_edit_with_the_same_size_and_time_is_found_and_read(index: Collection, root: Path) -> None:
    file = root / "7.md"
    before = file.stat()
    text = file.read_text(encoding="utf-8").replace("thing7", "thong7")
    file.write_text(text, encoding="utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    in_step(index)
    assert found(index) == {Kind.STALE: {"7.md"}}
    assert [fault.what for fault in looked(index, sample=Sample(topics=0)).faults] == ["7.md"]  # no sample, all files
    mended(index)
    assert file.read_text(encoding="utf-8") == text
    snapshot = index.snapshot()
    place = snapshot.position_of("7.md")
    assert place is not None
    assert "thong7" in snapshot.topics([place])[place].body


def test_stored_text_that_is_not_the_file_s_is_found_and_read_anew(index: Collection) -> None:
    sql(index, "UPDATE topics SET body = 'somebody wrote this' WHERE path = '3.md'")
    assert "3.md" in found(index)[Kind.STALE]
    mended(index)


def test_a_lost_topic_is_found_and_read_again(index: Collection) -> None:
    sql(index, "DELETE FROM topics WHERE path = '3.md'", "DELETE FROM chunks WHERE doc NOT IN (SELECT doc FROM topics)")
    assert found(index) == {Kind.UNINDEXED: {"3.md"}}
    mended(index)


# --- vectors


def test_chunks_of_a_topic_that_is_gone_are_found_and_taken_out(index: Collection) -> None:
    sql(index, "DELETE FROM topics WHERE path = '3.md'")
    assert found(index) == {Kind.UNINDEXED: {"3.md"}, Kind.STRAY: {"catalog.sqlite3"}}
    mended(index)


@pytest.mark.parametrize("which", ["number = 1", "number = 0", "number > 1", "1"])
def test_a_topic_that_lacks_chunks_is_found_and_embedded_again(index: Collection, which: str) -> None:
    sql(index, f"DELETE FROM chunks WHERE doc = (SELECT doc FROM topics WHERE path = 'long.md') AND {which}")
    assert found(index) == {Kind.INCOMPLETE: {"long.md"}}
    mended(index)


def test_a_topic_with_chunks_beyond_its_text_is_found_and_embedded_again(index: Collection) -> None:
    sql(index, "INSERT INTO chunks SELECT doc, 1, vector FROM chunks JOIN topics USING (doc) WHERE path = '1.md'")
    assert [finding.kind for finding in looked(index).faults] == [Kind.MISPLACED]
    mended(index)


def test_a_topic_that_waits_for_vectors_and_has_some_is_found(index: Collection) -> None:
    sql(index, "UPDATE topics SET embedded = 0 WHERE path = '3.md'")
    assert found(index)[Kind.INCOMPLETE] == {"3.md"}
    mended(index)


def test_a_chunk_whose_vector_belongs_to_no_text_is_found_without_a_model(index: Collection) -> None:
    sql(
        index, "DELETE FROM vectors WHERE row = (SELECT vector FROM chunks JOIN topics USING (doc) WHERE path = '1.md')"
    )
    (fault,) = looked(index, encoder=None).faults
    assert (fault.kind, fault.what) == (Kind.MISPLACED, "1.md")
    mended(index)


@pytest.mark.parametrize("row", [10**6, -1, 2**62])
def test_a_chunk_that_points_beyond_the_vectors_is_found_and_made_again(index: Collection, row: int) -> None:
    sql(index, f"UPDATE chunks SET vector = {row} WHERE doc = 1")
    assert {kind: len(paths) for kind, paths in found(index).items()} == {Kind.MISPLACED: 1}
    mended(index)


def test_a_chunk_that_points_at_the_vector_of_another_text_is_found_and_costs_no_encoding(index: Collection) -> None:
    sql(index, "UPDATE chunks SET vector = (SELECT vector FROM chunks WHERE doc = 2 AND number = 0) WHERE doc = 1")
    assert {kind: len(paths) for kind, paths in found(index).items()} == {Kind.MISPLACED: 1}
    index.mend(looked(index).findings)
    assert index.sync_vectors(ENCODER).embedded == 0
    assert looked(index).findings == ()


@pytest.mark.parametrize(
    "data", [b"\0" * ROW_BYTES, b"\xff" * 64, np.full(64, 1e30, np.float32).tobytes(), b"\xa5" * 64]
)
def test_a_damaged_vector_is_found_and_made_again(index: Collection, data: bytes) -> None:
    overwrite(only(index, "*.vectors"), at=2 * ROW_BYTES, data=data)
    assert Kind.VECTOR in found(index)
    index.mend(looked(index).findings)
    assert index.sync_vectors(ENCODER).embedded == 1
    assert looked(index).findings == ()


def test_a_cut_vector_file_keeps_what_is_whole(index: Collection) -> None:
    file = only(index, "*.vectors")
    stored = looked(index).counts.vectors
    cut(file)
    named = found(index)
    assert named[Kind.VECTOR_FILE] == {file.name}
    assert named[Kind.MISPLACED]
    index.mend(looked(index).findings)
    assert 0 < index.sync_vectors(ENCODER).embedded < stored
    assert looked(index).findings == ()


def test_a_missing_vector_file_is_found_and_made_anew(index: Collection) -> None:
    only(index, "*.vectors").unlink()
    assert Kind.VECTOR_FILE in found(index)
    mended(index)


def test_texts_whose_vector_was_never_stored_are_found_and_taken_out(index: Collection) -> None:
    sql(index, "INSERT INTO vectors VALUES (1000000, x'00112233445566778899aabbccddeeff')")
    assert found(index) == {Kind.DIGEST: {"catalog.sqlite3"}}
    mended(index)


def test_more_ghosts_than_compaction_allows_are_found_counted_and_go(index: Collection) -> None:
    file, stored = only(index, "*.vectors"), looked(index).counts.vectors
    ghosts = 5000
    with file.open("ab") as stream:
        stream.write(np.eye(1, 64, dtype=np.float32).tobytes() * ghosts)
    with closing(sqlite3.connect(index.folder / "catalog.sqlite3")) as connection, connection:
        rows = [(stored + number, number.to_bytes(16, "big")) for number in range(ghosts)]
        connection.executemany("INSERT INTO vectors VALUES (?, ?)", rows)
        connection.execute("UPDATE meta SET value = ? WHERE key = 'rows'", (str(stored + ghosts),))
    health = looked(index)
    assert [(fault.kind, fault.what) for fault in health.faults] == [(Kind.GHOSTS, file.name)]
    assert f"5,000 of {stored + ghosts:,}" in health.faults[0].sentence
    assert health.counts.unused == ghosts
    with exclusive(index.folder / "vectors.lock", timeout_s=0):  # whoever writes compacts at the end
        assert looked(index).faults == ()
    index.mend(health.findings)
    assert (looked(index).findings, looked(index).counts.unused) == ((), 0)


def test_while_somebody_writes_vectors_ghosts_and_unnamed_files_are_left_alone(index: Collection) -> None:
    (index.folder / f"{'0' * 32}.vectors").write_bytes(b"just begun")
    with exclusive(index.folder / "vectors.lock", timeout_s=0):
        health = looked(index)
    assert health.findings == ()
    assert any("another process is writing" in sentence for sentence in health.sampled)


def test_an_unused_vector_that_spoils_every_search_is_found_and_goes(index: Collection, root: Path) -> None:
    write(root, "long.md", "short now")
    in_step(index)
    with closing(sqlite3.connect(index.folder / "catalog.sqlite3")) as connection:
        ((row,),) = connection.execute(
            "SELECT MAX(row) FROM vectors WHERE row NOT IN (SELECT vector FROM chunks)"
        ).fetchall()
    overwrite(only(index, "*.vectors"), at=row * ROW_BYTES, data=np.full(64, 9.0, np.float32).tobytes())
    assert Kind.LOST in found(index)
    mended(index)


def test_vectors_that_the_model_would_make_otherwise_are_found_and_made_anew(index: Collection) -> None:
    class Retrained(HashingEncoder):
        """The same name and fingerprint, other vectors."""

        def encode_documents(self, texts: Sequence[str]) -> Vectors:
            return np.roll(super().encode_documents(texts), 1, axis=1)

    health = looked(index, encoder=Retrained(64))
    assert {fault.kind for fault in health.faults} == {Kind.MODEL}
    assert len(health.faults) == Sample().encodings
    index.mend(health.findings)
    index.sync_vectors(Retrained(64))
    assert looked(index, encoder=Retrained(64)).findings == ()


def test_a_model_that_fails_is_told(index: Collection) -> None:
    class Broken(HashingEncoder):
        def encode_documents(self, texts: Sequence[str]) -> Vectors:
            raise RuntimeError("out of order")

    (fault,) = looked(index, encoder=Broken(64)).faults
    assert (fault.kind, fault.mendable) == (Kind.MODEL, False)
    assert "out of order" in fault.sentence


# --- postings


@pytest.mark.parametrize("damage", [cut, overwrite, Path.unlink, lambda file: file.write_bytes(b"")])
def test_damaged_postings_are_found_and_made_anew_without_touching_a_vector(
    index: Collection, damage: Callable[[Path], object]
) -> None:
    file = only(index, "*.postings")
    damage(file)
    assert file.name in found(index)[Kind.POSTINGS]
    index.mend(looked(index).findings)
    report = index.sync_words()
    assert (report.kept, report.added) == (13, ())
    assert looked(index).findings == ()
    assert index.sync_vectors(ENCODER).reused == 0


def test_a_topic_in_no_segment_is_found_and_gets_its_words(index: Collection, root: Path) -> None:
    write(root, "new.md", "zebra")
    in_step(index)
    with closing(sqlite3.connect(index.folder / "catalog.sqlite3")) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM segments")}
    smallest = min(names, key=lambda name: (index.folder / f"{name}.postings").stat().st_size)
    sql(index, f"DELETE FROM segments WHERE name = '{smallest}'")
    assert found(index) == {Kind.POSTINGS: {"new.md"}, Kind.ORPHAN: {f"{smallest}.postings"}}
    mended(index)


def test_a_topic_in_two_segments_is_found(index: Collection) -> None:
    file = only(index, "*.postings")
    shutil.copy(file, file.with_name(f"{'1' * 32}.postings"))
    sql(index, f"INSERT INTO segments VALUES ('{'1' * 32}')")
    assert len(found(index)[Kind.POSTINGS]) == 13
    mended(index)


@pytest.mark.parametrize(
    "body", ["number 3 tells about thing3 thing3", "number 3 tells about", "number 3 about tells x"]
)
def test_words_that_are_not_those_of_the_text_are_found(index: Collection, root: Path, body: str) -> None:
    """The postings of one text under the document of another."""
    other = Collection(root.parent / "other", Scope.PROJECT, cache=root.parent / "cache2", max_file_bytes=1 << 20)
    shutil.copytree(root, other.root)
    stamp = (other.root / "3.md").stat()
    write(other.root, "3.md", body)
    os.utime(other.root / "3.md", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    in_step(other)
    with closing(sqlite3.connect(other.folder / "catalog.sqlite3")) as connection:
        theirs = dict(connection.execute("SELECT path, doc FROM topics"))
    other.close()
    with closing(sqlite3.connect(index.folder / "catalog.sqlite3")) as connection:
        assert dict(connection.execute("SELECT path, doc FROM topics")) == theirs
    shutil.copy(only(other, "*.postings"), only(index, "*.postings"))
    assert found(index) == {Kind.POSTINGS: {"3.md"}}
    mended(index)


# --- the folder


def test_files_that_nobody_names_are_found_and_deleted_and_others_stay(index: Collection) -> None:
    orphans = {f"{'a' * 32}.postings", f"{'b' * 32}.vectors"}
    for name in orphans:
        (index.folder / name).write_bytes(b"left behind")
    (index.folder / "notes.txt").write_text("not ours", encoding="utf-8")
    health = looked(index)
    assert found(index) == {Kind.ORPHAN: orphans}
    assert health.faults == ()
    mended(index)
    assert not orphans & {file.name for file in index.folder.iterdir()}
    assert (index.folder / "notes.txt").exists()


# --- the catalog


@pytest.mark.parametrize("damage", [cut, lambda file: file.write_bytes(b"nonsense" * 999), overwrite])
def test_a_damaged_catalog_is_found_without_making_it_anew(
    index: Collection, opened: Callable[[], Collection], damage: Callable[[Path], object]
) -> None:
    index.close()
    file = index.folder / "catalog.sqlite3"
    damage(file)
    data = file.read_bytes()
    health = looked(index)
    assert health.faults, "a page of the catalog was overwritten and nobody noticed"
    assert file.read_bytes() == data
    again = opened()
    if health.faults[0].kind is Kind.CATALOG:
        again.mend(looked(again).findings)
        in_step(again)
    else:
        mended(again)
    assert looked(again).findings == ()


def test_a_page_overwritten_anywhere_in_the_catalog_is_mended(
    index: Collection, opened: Callable[[], Collection], tmp_path: Path
) -> None:
    """What hits a free page is not seen and does no harm."""
    index.close()
    whole = shutil.copytree(index.folder, tmp_path / "whole")
    size = (whole / "catalog.sqlite3").stat().st_size
    seen = 0
    for at in range(0, size, size // 24):
        shutil.rmtree(index.folder)
        shutil.copytree(whole, index.folder)
        overwrite(index.folder / "catalog.sqlite3", at=at)
        faults = looked(index).faults
        seen += bool(faults)
        again = opened()
        again.mend(faults)
        in_step(again)
        assert looked(again).findings == (), at
        again.close()
    assert seen > 3


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE topics SET type = 'nonsense' WHERE path = '1.md'",
        "UPDATE topics SET links = '[' WHERE path = '1.md'",
        "UPDATE topics SET mtime_ns = 'x' WHERE path = '1.md'",
        "UPDATE topics SET embedded = 7 WHERE path = '1.md'",
        "UPDATE topics SET body = x'c3' WHERE path = '1.md'",
        "UPDATE topics SET title = CAST(x'c328' AS TEXT) WHERE path = '1.md'",
        "UPDATE meta SET value = '0' WHERE key = 'dim'",
        "DELETE FROM meta WHERE key = 'vectors'",
        "UPDATE chunks SET vector = 'x' WHERE doc = 1",
        "UPDATE meta SET value = 'x' WHERE key = 'rows'",
        "DELETE FROM meta WHERE key = 'generation'",
        "DROP TABLE vectors",
    ],
)
def test_values_that_nobody_would_have_written_make_the_catalog_anew(index: Collection, statement: str) -> None:
    sql(index, statement)
    assert found(index) == {Kind.CATALOG: {"catalog.sqlite3"}}
    mended(index)


# --- samples and others


def test_what_is_looked_at_in_part_is_said(index: Collection) -> None:
    sample = Sample(topics=5, searches=6, encodings=2)
    said = " ".join(looked(index, sample=sample).sampled)
    assert "texts of 5 of 13 topics" in said
    assert "6 of " in said
    assert "2 of 13 topics were encoded again" in said
    assert "without a model" in " ".join(looked(index, encoder=None).sampled)


def test_a_sample_is_another_one_each_time_unless_it_is_to_be_repeatable(index: Collection) -> None:
    sql(index, "UPDATE topics SET body = 'somebody wrote this' WHERE path = '3.md'")
    seen = {bool(looked(index, sample=Sample(topics=3, seed=seed)).findings) for seed in range(30)}
    assert seen == {True, False}
    assert len({looked(index, sample=Sample(topics=3, seed=7)).findings for _ in range(5)}) == 1


def test_a_catalog_that_somebody_keeps_locked_is_told_and_not_called_healthy(
    index: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recall.index.inventory._WAIT_S", 0.0)
    with exclusive(index.folder / "open.lock", timeout_s=0):
        (fault,) = looked(index).faults
    assert (fault.kind, fault.mendable) == (Kind.CATALOG, False)
    assert "could not be looked at" in fault.sentence
    assert index.mend([fault]) == ()


@pytest.mark.parametrize("times", [1, 3])
def test_a_rebuild_between_the_catalog_and_its_files_raises_no_alarm(
    index: Collection, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    rebuilt: list[object] = []

    def interrupted(*words: Any, **named: Any) -> Inventory | None:
        inventory = take_inventory(*words, **named)
        if len(rebuilt) < times:
            rebuilt.append(index.rebuild())
            in_step(index)
        return inventory

    monkeypatch.setattr("recall.index.health.take_inventory", interrupted)
    assert looked(index).findings == ()
    assert len(rebuilt) == times


def test_checks_complain_of_nothing_while_others_write_compact_and_rebuild(index: Collection, root: Path) -> None:
    done = threading.Event()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for number in range(40):
                write(root, f"{number % 5}.md", f"edit {number} of many", title=f"title {number}")
                (root / f"{number % 5 + 5}.md").unlink(missing_ok=True)
                write(root, f"{(number + 1) % 5 + 5}.md", f"again {number}")
                in_step(index)
                if number % 10 == 9:
                    index.rebuild()
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    writer = threading.Thread(target=work, daemon=True)
    writer.start()
    looks = 0
    while not done.is_set():
        assert looked(index).faults == ()
        looks += 1
    writer.join(LONG_S)
    assert errors == []
    assert looks > 3
    assert [finding for finding in looked(index).findings if finding.kind is not Kind.PENDING] == []
