"""MEMORY.md and meta.json follow every change, come back with it, and are right after every stop."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from recall.store import disk
from recall.store.applying import apply, writing
from recall.store.disk import Step
from recall.store.plan import Folder, IndexMode, Plan, planned
from recall.store.topics import Scope
from recall.store.trash import kept, restoring
from recall.store.upkeep import bring_in_step
from tests.power import Tape, put

NOW = 1_790_000_000.0


def topic(name: str, description: str = "", **fields: str) -> bytes:
    more = "".join(f"{key}: {value}\n" for key, value in fields.items())
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n\n{description or name}\n".encode()


def change(folder: Folder, files: Mapping[str, bytes | None], kind: str = "edit") -> str:
    plan = Plan(kind, tuple(planned(folder, path, data) for path, data in files.items()))
    return apply(plan, now=NOW, upkeep=bring_in_step).id


def index(folder: Folder) -> str:
    return (folder.root / "MEMORY.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    root = tmp_path / "memory"
    root.mkdir()
    return Folder(root, index=IndexMode.CURATED)


HANDWRITTEN = "# Notes of the team\n\n- [Old](old.md) — as it was, [see](other.md)\n- a line by hand\n\nbye"


def test_a_curated_index_changes_in_the_lines_of_changed_topics_alone(folder: Folder) -> None:
    (folder.root / "MEMORY.md").write_text(HANDWRITTEN, encoding="utf-8")
    change(folder, {"new.md": topic("New", "about it")})
    assert index(folder) == HANDWRITTEN.replace("(other.md)\n", "(other.md)\n- [New](new.md) — about it\n")
    change(folder, {"new.md": topic("New", "about something else")})
    assert "- [New](new.md) — about something else\n" in index(folder)
    change(folder, {"new.md": None})
    assert index(folder) == HANDWRITTEN


def test_a_missing_index_is_made_of_all_topics(folder: Folder) -> None:
    (folder.root / "there.md").write_bytes(topic("There", "was here before"))
    change(folder, {"new.md": topic("New", "about it")})
    assert sorted(index(folder).splitlines()) == ["- [new](new.md) — about it", "- [there](there.md) — was here before"]


def test_a_generated_index_is_made_anew_and_keeps_lines_by_hand(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "memory", index=IndexMode.GENERATED)
    folder.root.mkdir()
    (folder.root / "MEMORY.md").write_text("- [Gone](gone.md) — dead\n\nmind the gap\n", encoding="utf-8")
    change(folder, {"user/a.md": topic("A", "first", type="user")})
    assert index(folder) == "- [A](user/a.md) — first\n\nmind the gap"


def test_a_superseded_topic_has_no_line(folder: Folder) -> None:
    change(folder, {"a.md": topic("A", "new"), "a-until.md": topic("A", "old", superseded_by="a.md")})
    assert index(folder) == "- [a](a.md) — new\n"
    change(folder, {"b.md": topic("B", "b")})
    change(folder, {"b.md": topic("B", "b", superseded_by="a.md")})
    assert "b.md" not in index(folder)


def test_an_index_that_is_off_is_left_alone(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "memory", index=IndexMode.OFF)
    change(folder, {"a.md": topic("A")})
    assert not (folder.root / "MEMORY.md").exists()


def test_restoring_gives_back_every_byte_of_the_index(folder: Folder) -> None:
    (folder.root / "old.md").write_bytes(topic("Old", "as it was"))
    (folder.root / "MEMORY.md").write_bytes(HANDWRITTEN.replace("\n", "\r\n").encode())
    run = change(folder, {"old.md": None})
    assert "Old" not in index(folder)
    apply(restoring([folder], run), now=NOW, upkeep=bring_in_step)
    assert (folder.root / "MEMORY.md").read_bytes() == HANDWRITTEN.replace("\n", "\r\n").encode()


def test_restoring_mends_the_lines_where_the_index_was_edited_since(folder: Folder) -> None:
    (folder.root / "old.md").write_bytes(topic("Old", "as it was"))
    (folder.root / "MEMORY.md").write_text("- [Old](old.md) — as it was\n", encoding="utf-8")
    run = change(folder, {"old.md": None})
    with (folder.root / "MEMORY.md").open("a", encoding="utf-8") as stream:
        stream.write("- mine\n")
    apply(restoring([folder], run), now=NOW, upkeep=bring_in_step)
    assert sorted(index(folder).split("\n")) == ["", "", "- [Old](old.md) — as it was", "- mine"]


def test_an_index_that_cannot_be_edited_is_told_and_left(folder: Folder) -> None:
    (folder.root / "MEMORY.md").write_bytes(b"\xff\xfe\x00binary")
    plan = Plan("edit", (planned(folder, "a.md", topic("A")),))
    run = apply(plan, now=NOW, upkeep=bring_in_step)
    assert "MEMORY.md" in run.notes[0]
    assert (folder.root / "MEMORY.md").read_bytes() == b"\xff\xfe\x00binary"
    assert (folder.root / "a.md").exists()


def is_copied(step: Step, path: Path) -> bool:
    return step in {Step.CREATE, Step.RENAME} and path.name == "000-MEMORY.md.old"


def is_written_beside(step: Step, path: Path) -> bool:
    return step is Step.FLUSH and path.suffix == ".tmp" and path.parent.name == "memory"


@pytest.mark.parametrize("is_moment", [is_copied, is_written_beside])
def test_a_line_that_somebody_adds_at_the_same_moment_is_not_lost_nor_by_restoring(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, is_moment: Callable[[Step, Path], bool]
) -> None:
    (folder.root / "MEMORY.md").write_text("- first\n", encoding="utf-8")

    def watch(step: Step, path: Path, _old: Path | None) -> None:
        if is_moment(step, path):
            monkeypatch.setattr(disk, "watch", None)
            with (folder.root / "MEMORY.md").open("a", encoding="utf-8") as stream:
                stream.write("- by an agent\n")

    monkeypatch.setattr(disk, "watch", watch)
    run = change(folder, {"a.md": topic("A", "a")})
    assert sorted(index(folder).split("\n")) == ["", "", "- [A](a.md) — a", "- by an agent", "- first"]
    apply(restoring([folder], run), now=NOW + 1, upkeep=bring_in_step)
    assert index(folder).splitlines()[:2] == ["- first", "- by an agent"]
    assert sorted(file.name for file in folder.root.iterdir()) == [".trash", "MEMORY.md"]


def test_after_a_stop_a_line_that_was_added_meanwhile_survives_a_restoring(folder: Folder) -> None:
    class Stop(BaseException):
        pass

    (folder.root / "MEMORY.md").write_text("- first\n", encoding="utf-8")

    def watch(step: Step, path: Path, _old: Path | None) -> None:
        if step in {Step.RENAME, Step.EXCHANGE} and path.name == "MEMORY.md":
            raise Stop

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "watch", watch)
        with pytest.raises(Stop):
            change(folder, {"a.md": topic("A", "a")})
    # Written already; somebody takes the line out again and adds one.
    (folder.root / "MEMORY.md").write_text("- first\n- by an agent\n", encoding="utf-8")
    with writing(folder, upkeep=bring_in_step):
        pass
    assert "(a.md)" in index(folder)
    apply(restoring([folder]), now=NOW + 1, upkeep=bring_in_step)
    assert index(folder).splitlines()[:2] == ["- first", "- by an agent"]


def test_the_state_of_the_host_says_when(tmp_path: Path) -> None:
    meta = tmp_path / "meta.json"
    meta.write_text('{"version": 1, "theirs": [1, 2]}\n', encoding="utf-8")
    change(Folder(tmp_path / "memory", Scope.PROJECT, IndexMode.GENERATED, meta), {"a.md": topic("A")})
    said = json.loads(meta.read_text(encoding="utf-8"))
    assert said["theirs"] == [1, 2]
    assert said["updatedAt"] == "2026-09-21T14:13:20.000Z"


@pytest.mark.parametrize("text", ["export PATH\n", '{"mine": 1}\n'])
def test_a_state_that_is_a_link_out_of_the_repository_is_left_alone(tmp_path: Path, text: str) -> None:
    outside, meta = tmp_path / "profile", tmp_path / "repository/meta.json"
    outside.write_text(text, encoding="utf-8")
    meta.parent.mkdir()
    meta.symlink_to(outside)
    folder = Folder(meta.parent / "memory", Scope.PROJECT, IndexMode.GENERATED, meta)
    plan = Plan("edit", (planned(folder, "a.md", topic("A")),))
    run = apply(plan, now=NOW, upkeep=bring_in_step)
    assert any("meta.json" in note for note in run.notes)
    assert (folder.root / "a.md").exists()
    assert {file.name: file.read_text(encoding="utf-8") for file in tmp_path.iterdir() if file.is_file()} == {
        "profile": text
    }


@pytest.mark.parametrize("mode", [IndexMode.CURATED, IndexMode.GENERATED])
@pytest.mark.parametrize("has_index", [True, False])
def test_after_every_stop_topics_and_index_agree(tmp_path: Path, mode: IndexMode, has_index: bool) -> None:
    before = {"gone.md": topic("Gone", "goes"), "stays.md": topic("Stays", "stays")}
    lines = "- [Gone](gone.md) — goes\n- [Stays](stays.md) — stays\n"

    base = tmp_path / "disk"

    def fresh() -> Path:
        shutil.rmtree(base, ignore_errors=True)
        base.mkdir()
        return base

    def fill(base: Path) -> Folder:
        (base / "memory").mkdir()
        for number, (path, data) in enumerate(before.items()):
            (base / "memory" / path).write_bytes(data)
            os.utime(base / "memory" / path, (NOW + number, NOW + number))
        if has_index:
            (base / "memory/MEMORY.md").write_text(lines, encoding="utf-8")
        return Folder(base / "memory", index=mode)

    folder = fill(fresh())
    tape = Tape(base)
    with tape.recording():
        run = change(folder, {"gone.md": None, "new.md": topic("New", "new")}, "forget")
        apply(restoring([folder], run), now=NOW + 1, upkeep=bring_in_step)
    seen = set()
    for moment in tape.moments:
        for state in [moment.stopped(), *moment.without_power()]:
            key = repr(sorted(state.items()))
            if key not in seen:
                seen.add(key)
                _agrees(put(state, fresh()) / "memory", mode, moment.step)
    assert len(seen) > 40


def _agrees(root: Path, mode: IndexMode, step: str) -> None:
    folder = Folder(root, index=mode)
    with writing(folder, upkeep=bring_in_step):
        pass  # the next writer ends what was begun
    there = {file.name for file in root.glob("*.md")} - {"MEMORY.md"}
    assert there in ({"gone.md", "stays.md"}, {"new.md", "stays.md"}), step
    if (root / "MEMORY.md").exists():
        text = index(folder)
        listed = {name for name in ("gone.md", "stays.md", "new.md") if f"({name})" in text}
        assert listed == there, f"{step}: {text}"
    else:
        assert "gone.md" in there, f"no index after: {step}"
    assert all(one.run.id for one in kept(folder))
