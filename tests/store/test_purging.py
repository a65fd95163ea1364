"""Real forgetting: no copy of a text is left in `.trash`, and what has nothing to do with it stays."""

import json
import os
from pathlib import Path

import pytest

from recall.store.applying import apply, writing
from recall.store.plan import Folder, Item, Plan, Run, planned
from recall.store.trash import kept, purge
from recall.store.upkeep import bring_in_step

NOW = 1_790_000_000.0


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    root = tmp_path / "memory"
    root.mkdir()
    (root / "a.md").write_bytes(b"first a\n")
    (root / "b.md").write_bytes(b"first b\n")
    return Folder(root, key=b"k" * 32)


def edit(folder: Folder, path: str, data: bytes | None, *, now: float = NOW, text: str = "") -> Run:
    items = (Item(path, text),) if text else ()
    return apply(Plan("edit", (planned(folder, path, data),), items), now=now)


def test_purging_looks_into_everything_but_leaves_what_has_nothing_to_do_with_it(folder: Folder) -> None:
    edit(folder, "a.md", b"the Password is\n\n swordfish\n")
    other = edit(folder, "b.md", b"second b\n", now=NOW + 1)
    trash = folder.root / ".trash"
    (trash / "theirs/deep").mkdir(parents=True)
    (trash / "theirs/deep/note.txt").write_text("the Password is swordfish", encoding="utf-8")
    (trash / "untouched").mkdir()
    (trash / "untouched/note.txt").write_text("swordfish swims", encoding="utf-8")
    (trash / "pending.json.corrupt-1").write_text(
        json.dumps({"items": [{"text": "the Password is swordfish, 密码"}]}), encoding="utf-8"
    )
    (folder.root / "a.md").unlink()
    purge(folder, ["the Password is swordfish"], paths={"a.md"})
    found = [file for file in trash.rglob("*") if file.is_file() and b"Password" in file.read_bytes()]
    assert found == []
    assert (trash / "untouched/note.txt").exists()
    assert [one.run.id for one in kept(folder)] == [other.id]


def test_purging_finds_texts_that_a_record_escapes(folder: Folder) -> None:
    run = edit(folder, "a.md", b"other\n", text='密码是 "剑鱼"\n第二行')
    assert purge(folder, ['密码是 "剑鱼" 第二行']) == [run.id]


def test_purging_reads_and_deletes_nothing_through_a_link(folder: Folder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.txt").write_text("swordfish", encoding="utf-8")
    with writing(folder) as trash:
        (trash / "link").symlink_to(outside)
        (trash / "endless").symlink_to("/dev/zero")
        (trash / "run").mkdir()
        (trash / "run/run.json").symlink_to(outside / "mine.txt")
    assert purge(folder, ["swordfish"], runs={"link"}) == ["link"]
    assert (outside / "mine.txt").read_text(encoding="utf-8") == "swordfish"
    assert purge(folder, ["swordfish"], runs={"run"}) == ["run"]
    assert (outside / "mine.txt").exists()


def test_purging_names_what_cannot_be_read_and_does_the_rest(folder: Folder) -> None:
    run = edit(folder, "a.md", b"swordfish\n")
    edit(folder, "a.md", b"something\n", now=NOW + 1)
    closed = folder.root / ".trash/0-closed"
    closed.mkdir()
    closed.chmod(0)
    if os.access(closed, os.R_OK):
        pytest.skip("nothing is forbidden to this user")
    with pytest.raises(OSError, match="0-closed"):
        purge(folder, ["swordfish"], runs={run.id})
    closed.chmod(0o700)
    assert [one.run.id for one in kept(folder)] == []


def test_a_text_of_blanks_purges_nothing(folder: Folder) -> None:
    run = edit(folder, "a.md", b"other\n")
    assert purge(folder, [" \n", ""]) == []
    assert [one.run.id for one in kept(folder)] == [run.id]


def test_purging_a_short_text_leaves_longer_words_and_what_others_put_there(folder: Folder) -> None:
    edit(folder, "a.md", b"- Go\n- tests first\n")
    other = edit(folder, "b.md", b"Google signs in\n", now=NOW + 1)
    edit(folder, "b.md", b"third b\n", now=NOW + 2)
    trash = folder.root / ".trash"
    (trash / "Holiday notes").mkdir()
    (trash / "Holiday notes/plan.md").write_text("We go to Gomera. Gobi_Go is no word", encoding="utf-8")
    (trash / "Holiday notes/list.md").write_text("- Go\n", encoding="utf-8")
    (trash / "Holiday notes/other.md").write_text("Gone", encoding="utf-8")
    last = edit(folder, "a.md", b"- tests first\n", now=NOW + 3)
    purge(folder, ["Go"], runs={last.id})
    assert other.id in [one.run.id for one in kept(folder)]
    assert sorted(file.name for file in (trash / "Holiday notes").iterdir()) == ["other.md"]


@pytest.mark.parametrize(
    ("text", "kept_text", "holds"),
    [
        ("Go", "we Go home", True),
        ("Go", "Google", False),
        ("Go", "cargo, Gopher and Go!", True),
        ("1 1", "x1 1 1", True),
        ("port 8080", "port 80801", False),
        ("port 8080", "端口port\n8080是", True),
        ("旧的事实", "很旧的\n事实了", True),
        ("旧的事实", "旧的", False),
        ("C++", "in C++20", True),
        ("a.b", "axb", False),
    ],
)
def test_purging_finds_a_text_at_the_edges_of_words(folder: Folder, text: str, kept_text: str, holds: bool) -> None:
    edit(folder, "a.md", kept_text.encode())
    run = edit(folder, "a.md", b"third a\n", now=NOW + 1)
    assert (run.id in purge(folder, [text])) is holds


def test_purging_finds_a_file_in_kept_indexes_however_its_link_is_spelled(folder: Folder) -> None:
    (folder.root / "密码.md").write_bytes("---\nname: 密码\n---\n剑鱼\n".encode())
    (folder.root / "MEMORY.md").write_text("- [密…](%E5%AF%86%E7%A0%81.md)\n- [a](a.md)\n", encoding="utf-8")

    def done(path: str, data: bytes | None, now: float) -> str:
        return apply(Plan("edit", (planned(folder, path, data),)), now=now, upkeep=bring_in_step).id

    done("c.md", b"---\nname: c\n---\nc\n", NOW)  # keeps MEMORY.md as it was
    last = done("密码.md", None, NOW + 1)
    later = done("d.md", b"---\nname: d\n---\nd\n", NOW + 2)
    purge(folder, ["剑鱼"], paths={"密码.md"}, runs={last})
    assert [one.run.id for one in kept(folder)] == [later]
    assert not [file for file in folder.root.rglob("*") if file.is_file() and b"%E5%AF%86" in file.read_bytes()]


def test_purging_takes_what_a_changed_file_said_in_other_words(folder: Folder) -> None:
    (folder.root / "a.md").write_bytes(b"I live at 5 Oak Street\n\nI prefer tabs\n")
    edit(folder, "a.md", b"My home is 5 Oak Street\n\nI prefer tabs\n")
    other = edit(folder, "b.md", b"second b\n", now=NOW + 1)
    last = edit(folder, "a.md", b"I prefer tabs\n", now=NOW + 2, text="My home is 5 Oak Street")
    purge(folder, ["My home is 5 Oak Street"], runs={last.id})
    assert [one.run.id for one in kept(folder)] == [other.id]


def test_a_deep_folder_stops_no_purging(folder: Folder) -> None:
    run = edit(folder, "a.md", b"second a\n")
    deep = folder.root / ".trash" / "/".join("d" * 1500)
    above = [deep, *deep.parents[:1499]]
    for place in reversed(above):
        place.mkdir()
    try:
        assert purge(folder, ["first a"]) == [run.id]
    finally:
        for place in above:
            place.rmdir()  # what tidies up after tests does not reach so deep
