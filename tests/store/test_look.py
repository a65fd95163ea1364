"""A look says when a scan would say the same, and what changed when that is ordinary."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall.store.look import Difference, difference, glance, look
from recall.store.scan import SourceFile, scan
from recall.store.topics import Scope
from tests.aging import age


def put(root: Path, path: str, text: str = "text") -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path in ("a.md", "sub/b.md", "MEMORY.md", "2026-01-02.md", ".hidden/c.md", "notes.txt"):
        put(tmp_path, path)
    return age(tmp_path)


def test_nothing_changed_is_an_empty_difference(root: Path) -> None:
    found = difference(look(root), look(root))
    assert found is not None
    assert not found


def test_ordinary_edits_are_named(root: Path) -> None:
    before = look(root)
    put(root, "a.md", "longer text")
    put(root, "sub/new.md")
    (root / "sub/b.md").unlink()
    found = difference(before, look(root))
    assert found is not None
    assert sorted(file.path for file in found.read) == ["a.md", "sub/new.md"]
    assert found.gone == ("sub/b.md",)


CHANGES: dict[str, Callable[[Path], object]] = {
    "the index file": lambda root: file.unlink() if (file := root / "MEMORY.md").exists() else put(root, file.name),
    "a daily note": lambda root: put(root, "2026-01-02.md", "---\nname: now a topic\n---\n"),
    "a new folder": lambda root: put(root, "more/d.md"),
    "a link": lambda root: (root / "link.md").symlink_to("a.md"),
    "a hidden folder": lambda root: put(root, ".other/e.md"),
    "another ending": lambda root: put(root, "f.MD"),
    "a pipe": lambda root: os.mkfifo(root / "pipe.md"),
    "a folder named like a topic": lambda root: (root / "folder.md").mkdir(),
    "a topic that becomes a folder": lambda root: (root / "a.md").rename(root / "z.txt").with_name("a.md").mkdir(),
    "the root": lambda root: root.rename(root.with_name("elsewhere")),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_needs_judgement_is_left_to_a_scan(root: Path, name: str) -> None:
    before = look(root)
    CHANGES[name](root)
    assert difference(before, look(root)) is None


def test_what_the_index_says_is_nothing_to_a_look(root: Path) -> None:
    before = look(root)
    put(root, "MEMORY.md", "other words")
    put(root, "a.md", "edited")
    found = difference(before, look(root))
    assert found is not None
    assert [file.path for file in found.read] == ["a.md"]


def test_a_missing_folder_looks_the_same_until_it_is_there(tmp_path: Path) -> None:
    missing = tmp_path / "memory"
    before = look(missing)
    assert difference(before, look(missing)) is not None
    missing.mkdir()
    assert difference(before, look(missing)) is None


def test_a_look_keeps_what_is_as_it_was(root: Path) -> None:
    put(root, "sub/b.md")
    put(root, "sub/c.md")
    before = look(age(root), last=None)
    put(root, "a.md", "another text")
    now = look(root, last=before)
    real = os.path.realpath(root)
    assert now.listings[f"{real}/sub"] is before.listings[f"{real}/sub"]
    (root / "sub/b.md").unlink()
    later = look(root, last=now)
    assert [Path(place).name for place in later.listings[f"{real}/sub"].files] == ["c.md"]
    assert sorted(Path(place).name for place in now.listings[f"{real}/sub"].files) == ["b.md", "c.md"]
    assert {id(place) for place in later.listings[f"{real}/"].files} == {
        id(place) for place in before.listings[f"{real}/"].files
    }


STEPS = st.tuples(
    st.sampled_from(["write", "delete", "link", "folder", "rename"]),
    st.sampled_from(["a.md", "b.md", "sub/c.md", "MEMORY.md", "2026-01-02.md", ".h.md"]),
)


def step(root: Path, deed: str, path: str, number: int) -> None:
    file = root / path
    if deed == "write" and not file.is_symlink() and not file.is_dir():
        put(root, path, "x" * number)
    elif deed == "delete":
        file.unlink(missing_ok=True)
    elif deed == "link" and not file.exists() and not file.is_symlink() and file.parent.is_dir():
        file.symlink_to("a.md")
    elif deed == "folder":
        (root / f"new{number}").mkdir()
    elif deed == "rename" and file.is_file():
        file.rename(root / f"renamed{number}.md")


@settings(max_examples=60)
@given(steps=st.lists(STEPS, max_size=10))
def test_a_difference_says_what_two_scans_say(steps: Sequence[tuple[str, str]]) -> None:
    with TemporaryDirectory() as base:
        root = Path(os.path.realpath(base))
        for number, (deed, path) in enumerate(steps):
            looked, before = look(age(root)), by_path(root)
            step(root, deed, path, number)
            found, after = difference(looked, look(root)), by_path(root)
            assert difference(looked, look(root, last=looked)) == found
            if found is not None:
                assert {file.path: file for file in found.read} == {
                    path: file for path, file in after.items() if before.get(path) != file
                }
                assert set(found.gone) == before.keys() - after.keys()


def by_path(root: Path) -> dict[str, SourceFile]:
    return {file.path: file for file in scan(root, Scope.PROJECT).files}


# --- glances


def settle(root: Path) -> None:
    """As if nothing had happened in the folders for a while."""
    for folder in (root, *(place for place in root.rglob("*") if place.is_dir() and not place.is_symlink())):
        os.utime(folder, (1_000_000_000, 1_000_000_000))


def test_a_glance_sees_files_that_come_go_and_are_exchanged(root: Path) -> None:
    settle(root)
    before = look(root)
    put(root, "sub/new.md")
    put(root, "sub/b.tmp", "another text").replace(root / "sub/b.md")
    (root / "a.md").unlink()
    found = difference(before, glance(before))
    assert found is not None
    assert sorted(file.path for file in found.read) == ["sub/b.md", "sub/new.md"]
    assert found.gone == ("a.md",)


def test_what_a_glance_overlooks_the_next_look_sees(root: Path) -> None:
    settle(root)
    before = look(root)
    put(root, "sub/b.md", "edited in place")
    glanced = glance(before)
    assert difference(before, glanced) == Difference((), ())  # it was an old file that the first look saw
    found = difference(glanced, look(root))
    assert found is not None
    assert [file.path for file in found.read] == ["sub/b.md"]


def test_a_folder_that_changed_just_now_is_listed_again(root: Path) -> None:
    """Its time need not have moved on when something happens once more in the same tick."""
    put(root, "sub/new.md")
    status = (root / "sub").stat()
    before = look(root)
    (root / "sub/b.md").unlink()
    os.utime(root / "sub", ns=(status.st_atime_ns, status.st_mtime_ns))
    found = difference(before, glance(before))
    assert found is not None
    assert found.gone == ("sub/b.md",)


@pytest.mark.parametrize("name", ["the index file", "a new folder", "a link", "a hidden folder", "a pipe"])
def test_what_needs_judgement_is_left_to_a_scan_by_a_glance_too(root: Path, name: str) -> None:
    (root / "MEMORY.md").unlink()
    settle(root)
    before = look(root)
    CHANGES[name](root)
    assert difference(before, glance(before)) is None


def test_a_glance_lists_only_folders_that_changed(root: Path) -> None:
    settle(root)
    before = look(root)
    put(root, "sub/new.md")
    glanced = glance(before)
    real = os.path.realpath(root)
    assert glanced.listings[f"{real}/"] is before.listings[f"{real}/"]
    assert glanced.listings[f"{real}/sub"] is not before.listings[f"{real}/sub"]
    assert len(glanced) == 3
