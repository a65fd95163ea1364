"""What `fixes` plans and `mend` does: MEMORY.md alone, whole, and so that it can be undone."""

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from recall.errors import StalePlanError
from recall.quality.check import check
from recall.quality.findings import Kind, Severity
from recall.quality.mending import mend
from recall.quality.reading import read_contents
from recall.store.applying import apply
from recall.store.plan import Folder, IndexMode
from recall.store.trash import restoring
from recall.store.upkeep import bring_in_step
from tests.quality.conftest import MAX_BYTES, Looked, topic

Look = Callable[..., Looked]
NOW = 1_780_000_000.0

WRONG = {
    "MEMORY.md": "\ufeff# Mine\r\n\r\n- [A](a.md) — a\r\n- [Gone](gone.md) — x\r\n- [A](a.md) — a\r\n- [M](m.md)\r\n"
    "\r\nBye\r\n",
    "a.md": topic("1."),
    "new/m.md": topic("2."),
    "lost.md": topic("3.", name="Lost"),
}
MENDED = "\ufeff# Mine\r\n\r\n- [A](a.md) — a\r\n- [M](new/m.md)\r\n- [Lost](lost.md) — When it matters.\r\n\r\nBye\r\n"


def contents(root: Path) -> Mapping[str, bytes]:
    files = {file.relative_to(root).as_posix(): file for file in root.rglob("*.md")}
    return {path: file.read_bytes() for path, file in files.items() if not path.startswith(".")}


def mended(root: Path, mode: IndexMode = IndexMode.CURATED) -> str:
    mend(Folder(root, index=mode), max_file_bytes=MAX_BYTES, clock=lambda: NOW)
    return (root / "MEMORY.md").read_bytes().decode()


def test_mending_changes_the_lines_that_are_wrong_and_keeps_everything_else(looked: Look, root: Path) -> None:
    looked(WRONG)
    before = contents(root)
    assert mended(root) == MENDED
    assert {path: data for path, data in contents(root).items() if path != "MEMORY.md"} == {
        path: data for path, data in before.items() if path != "MEMORY.md"
    }
    assert looked({}).findings == []


def test_what_was_mended_is_said_and_can_be_undone_byte_for_byte(looked: Look, root: Path) -> None:
    looked(WRONG)
    before = contents(root)
    folder = Folder(root)
    done = mend(folder, max_file_bytes=MAX_BYTES, clock=lambda: NOW)
    assert [(finding.line, finding.kind) for finding in done.mended] == [
        (4, Kind.DEAD_LINK), (5, Kind.REPEATED_LINE), (6, Kind.DEAD_LINK), (1, Kind.ORPHAN),
    ]  # fmt: skip
    assert done.findings == ()
    apply(restoring([folder], done.run), now=NOW + 1, upkeep=bring_in_step)
    assert contents(root) == before


def test_mending_twice_changes_nothing_more(looked: Look, root: Path) -> None:
    looked(WRONG)
    mended(root)
    again = mend(Folder(root), max_file_bytes=MAX_BYTES, clock=lambda: NOW + 1)
    assert (again.run, again.mended) == ("", ())
    assert (root / "MEMORY.md").read_bytes().decode() == MENDED


def test_a_folder_with_nothing_to_mend_is_not_even_written_to(looked: Look, root: Path) -> None:
    looked({"MEMORY.md": "- [A](a.md) — a\n", "a.md": "no header\n"})
    names = sorted(root.iterdir())
    assert mended(root) == "- [A](a.md) — a\n"
    assert sorted(root.iterdir()) == names


def test_an_index_that_changed_meanwhile_is_not_overwritten(looked: Look, root: Path) -> None:
    plan = looked(WRONG).plan
    (root / "MEMORY.md").write_text("- [New](a.md)\n", encoding="utf-8")
    with pytest.raises(StalePlanError):
        apply(plan, now=NOW)
    assert (root / "MEMORY.md").read_text(encoding="utf-8") == "- [New](a.md)\n"


def test_mending_looks_again_when_somebody_writes_at_the_same_moment(looked: Look, root: Path) -> None:
    looked(WRONG)

    def clock() -> float:
        file = root / "MEMORY.md"
        if "New" not in file.read_text(encoding="utf-8"):
            file.write_text("- [New](a.md) — n\n- [Gone](gone.md)\n", encoding="utf-8")
        return NOW

    mend(Folder(root), max_file_bytes=MAX_BYTES, clock=clock)
    text = (root / "MEMORY.md").read_text(encoding="utf-8")
    assert text.startswith("- [New](a.md) — n\n- [")
    assert "gone.md" not in text
    assert "lost.md" in text


def test_a_missing_index_is_made(looked: Look, root: Path) -> None:
    looked({"a.md": topic(), "old.md": topic("x", superseded_by="a.md")})
    assert mended(root) == "- [a](a.md) — When it matters.\n"


def test_a_generated_index_is_made_anew_with_what_was_written_by_hand(looked: Look, root: Path) -> None:
    found = looked({**WRONG, "MEMORY.md": "# Mine\n\n- [A](a.md) — a\n- [G](gone.md)\n\nBye"}, IndexMode.GENERATED)
    assert found.places(Kind.ORPHAN) == [("lost.md", 1), ("new/m.md", 1)]
    text = mended(root, IndexMode.GENERATED)
    assert text.startswith("# Mine\n\n- [")
    assert text.endswith("\n\nBye")
    assert "gone.md" not in text
    assert all(f"]({path})" in text for path in ("a.md", "new/m.md", "lost.md"))
    assert looked({}, IndexMode.GENERATED).findings == []


def test_what_a_rebuilt_index_keeps_wrong_is_not_said_to_be_mended(looked: Look, root: Path) -> None:
    """A sentence with a dead link is its author's; the index is made anew around it."""
    looked({**WRONG, "MEMORY.md": "### [It](gone.md)\n\nSee [it](gone.md).\n\n- [A](a.md) — a\n"})
    folder = Folder(root, index=IndexMode.GENERATED)
    done = mend(folder, max_file_bytes=MAX_BYTES, clock=lambda: NOW)
    assert [finding.kind for finding in done.mended] == [Kind.ORPHAN, Kind.ORPHAN]
    assert [(finding.kind, finding.line) for finding in done.findings] == [(Kind.DEAD_LINK, 1), (Kind.DEAD_LINK, 3)]


def test_a_generated_index_that_has_no_room_for_all_is_sound(looked: Look, root: Path) -> None:
    looked({f"t{number:03}.md": topic(f"Fact {number}.") for number in range(230)})
    mended(root, IndexMode.GENERATED)
    assert looked({}, IndexMode.GENERATED).of(Kind.ORPHAN) == []


def test_a_hundred_orphans_never_fill_the_index(looked: Look, root: Path) -> None:
    files = {f"t{number:03}.md": topic(f"Fact {number}.") for number in range(300)}
    looked({"MEMORY.md": "# Mine\n", **files})
    assert len(mended(root).splitlines()) <= 140
    left = looked({})
    assert [finding.kind for finding in left.findings] == [Kind.ORPHAN]
    assert not left.plan


def test_an_index_that_recall_made_leaves_nothing_to_mend(looked: Look, root: Path) -> None:
    looked({f"t{number:03}.md": topic(f"Fact {number}.", description="d" * 60) for number in range(300)})
    mended(root)
    assert [(finding.kind, finding.severity) for finding in looked({}).findings] == [(Kind.ORPHAN, Severity.NOTE)]


def test_an_index_that_lies_elsewhere_is_left_alone(looked: Look, root: Path) -> None:
    outside = root.parent / "MEMORY.md"
    outside.write_text("- [Gone](gone.md)\n", encoding="utf-8")
    (root / "MEMORY.md").symlink_to(outside)
    found = looked({"a.md": topic()})
    assert found.places(Kind.DEAD_LINK) == [("MEMORY.md", 1)]
    assert not found.plan
    assert "lies outside" in found.plan.notes[0]


def test_a_folder_that_is_missing_or_empty_is_a_note_and_one_that_is_none_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x", encoding="utf-8")
    said = {}
    for name in ("missing", "empty", "file"):
        (finding,) = check(read_contents(Folder(tmp_path / name), max_file_bytes=MAX_BYTES))
        said[name] = (finding.severity.value, finding.message.removeprefix(f"{tmp_path / name} "))
    assert said == {
        "missing": ("note", "does not exist"),
        "empty": ("note", "holds no memory yet"),
        "file": ("error", "is a file, not a folder"),
    }
    assert not (tmp_path / "missing").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_checked_all_the_same(looked: Look, root: Path) -> None:
    looked(WRONG)
    root.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert looked({}).of(Kind.DEAD_LINK)
        with pytest.raises(OSError, match="denied"):
            mended(root)
    finally:
        root.chmod(0o700)
