"""What an answer may show of files that changed behind its back, and what it says it does not know."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from recall.index.collection import Collection
from recall.search.current import behind, current, marked
from recall.search.retriever import search_heuristic
from recall.search.types import Coverage, Hit
from recall.store.topics import Scope


@pytest.fixture
def indexes(tmp_path: Path) -> Iterator[list[Collection]]:
    """A project's and a user's memory with three files each, indexed."""
    made = []
    for scope in Scope:
        for name in ("a", "b", "c"):
            file = tmp_path / scope / "sub" / f"{name}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"zebra number {name}", encoding="utf-8")
        made.append(Collection(tmp_path / scope, scope, cache=tmp_path / "cache", max_file_bytes=1000))
        made[-1].sync_words()
    yield made
    for index in made:
        index.close()


def found(indexes: list[Collection]) -> tuple[Hit, ...]:
    return search_heuristic([index.snapshot() for index in indexes], "zebra", 10).hits


def checked(indexes: list[Collection]) -> tuple[set[str], list[str]]:
    hits, stale = current(found(indexes), indexes)
    return {hit.topic.id for hit in hits}, stale


ALL = {f"{prefix}sub/{name}.md" for prefix in ("", "user:") for name in "abc"}


def test_untouched_files_are_all_shown_in_their_order(indexes: list[Collection]) -> None:
    assert current(found(indexes), indexes) == (found(indexes), [])
    assert checked(indexes) == (ALL, [])


def test_edited_and_deleted_files_are_left_out_and_named(indexes: list[Collection], tmp_path: Path) -> None:
    (tmp_path / "project" / "sub" / "a.md").write_text("tiger number a", encoding="utf-8")
    (tmp_path / "user" / "sub" / "b.md").unlink()
    assert checked(indexes) == (ALL - {"sub/a.md", "user:sub/b.md"}, ["sub/a.md", "user:sub/b.md"])


def test_an_edit_that_keeps_the_length_is_seen(indexes: list[Collection], tmp_path: Path) -> None:
    file = tmp_path / "project" / "sub" / "a.md"
    before = file.stat()
    other = file.with_suffix(".tmp")
    other.write_text("tiger number a", encoding="utf-8")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)
    assert checked(indexes)[1] == ["sub/a.md"]


def test_a_file_that_was_only_touched_is_shown(indexes: list[Collection], tmp_path: Path) -> None:
    os.utime(tmp_path / "project" / "sub" / "a.md", (1000, 1000))
    assert checked(indexes) == (ALL, [])


def test_a_folder_in_the_place_of_a_file_is_a_change(indexes: list[Collection], tmp_path: Path) -> None:
    file = tmp_path / "project" / "sub" / "a.md"
    file.unlink()
    file.mkdir()
    assert checked(indexes)[1] == ["sub/a.md"]


def test_while_the_index_is_made_anew_untouched_files_are_shown(indexes: list[Collection], tmp_path: Path) -> None:
    """What answers is the old state; the catalog does not know its topics yet again."""
    hits = found(indexes)
    (tmp_path / "project" / "sub" / "a.md").write_text("tiger number a", encoding="utf-8")
    (tmp_path / "user" / "sub" / "b.md").unlink()
    anew = [Collection(index.root, index.scope, cache=tmp_path / "anew", max_file_bytes=1000) for index in indexes]
    kept, stale = current(hits, anew)
    assert ({hit.topic.id for hit in kept}, stale) == (
        ALL - {"sub/a.md", "user:sub/b.md"},
        ["sub/a.md", "user:sub/b.md"],
    )
    for index in anew:
        index.close()


# --- what a whole memory is behind by


def test_new_edited_and_deleted_files_are_what_an_index_is_behind_by(indexes: list[Collection], tmp_path: Path) -> None:
    assert behind(indexes) == []
    folder = tmp_path / "project" / "sub"
    (folder / "a.md").write_text("tiger", encoding="utf-8")
    (folder / "b.md").rename(folder / "d.md")
    shutil.rmtree(tmp_path / "user" / "sub")
    changes = ["sub/a.md", "sub/b.md", "sub/d.md", "user:sub/a.md", "user:sub/b.md", "user:sub/c.md"]
    assert sorted(behind(indexes)) == changes
    for index in indexes:
        index.sync_words()
    assert behind(indexes) == []


@pytest.mark.parametrize("has_looked", [True, False])
def test_what_another_process_has_brought_in_does_not_count(
    indexes: list[Collection], tmp_path: Path, has_looked: bool
) -> None:
    """One that never looked itself compares all files, one that did only those that are different since."""
    other = Collection(tmp_path / "project", Scope.PROJECT, cache=tmp_path / "cache", max_file_bytes=1000)
    if has_looked:
        other.sync_words()
    folder = tmp_path / "project" / "sub"
    (folder / "a.md").write_text("tiger", encoding="utf-8")
    (folder / "b.md").unlink()
    assert other.behind() == ["sub/a.md", "sub/b.md"]
    indexes[0].sync_words()
    assert other.behind() == []
    other.close()


def test_a_file_that_cannot_be_read_is_not_waited_for(indexes: list[Collection], tmp_path: Path) -> None:
    (tmp_path / "project" / "binary.md").write_bytes(b"\0" * 999)
    assert indexes[0].behind() == ["binary.md"]
    indexes[0].sync_words()
    assert indexes[0].behind() == []
    other = Collection(tmp_path / "project", Scope.PROJECT, cache=tmp_path / "cache", max_file_bytes=1000)
    assert other.behind() == []
    other.close()


def test_of_many_files_ten_are_named_and_all_are_counted() -> None:
    coverage = marked(Coverage(5, 5), [f"{number}.md" for number in (1, 1, *range(30))])
    assert (coverage.behind[:3], len(coverage.behind), coverage.behind_count) == (("1.md", "0.md", "2.md"), 10, 30)
    assert marked(Coverage(5, 5), []) == Coverage(5, 5)
