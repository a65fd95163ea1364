"""`recall status --check` and `recall doctor`: what they say, what they mend, and their exit codes."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from recall.apps.doctor import REMEDIES
from recall.index.findings import Kind
from recall.index.folder import cache_folder

Run = Callable[..., Result]
DAY_S = 86_400


@pytest.fixture
def derived(on_memory: Run, memory: Path, own_surroundings: Path) -> Path:
    """Derived data of the three topics, complete."""
    assert on_memory("reindex").exit_code == 0
    return cache_folder(own_surroundings, memory)


def spoil(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "catalog.sqlite3")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def answer(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def kinds(result: Result) -> list[str]:
    return [finding["kind"] for root in answer(result)["roots"] for finding in root["findings"]]


def contents(folder: Path) -> Iterator[tuple[str, bytes, int]]:
    for file in sorted(folder.rglob("*.md")):
        yield str(file), file.read_bytes(), file.stat().st_mtime_ns


@pytest.mark.parametrize("words", [("status", "--check"), ("doctor",), ("doctor", "--fix")])
def test_a_sound_index_is_called_healthy(on_memory: Run, derived: Path, words: tuple[str, ...]) -> None:
    result = on_memory(*words)
    assert result.exit_code == 0
    assert "healthy" in result.stdout
    assert "topics: 3 of 3 files, 3 with vectors" in result.stdout
    assert "wrong" not in result.stdout
    assert on_memory(*words, "--json").exit_code == 0


def test_a_check_tells_the_fault_changes_nothing_and_ends_with_1(on_memory: Run, derived: Path) -> None:
    spoil(derived, "DELETE FROM chunks WHERE doc = (SELECT doc FROM topics WHERE path = 'project_rollout.md')")
    for _ in range(2):
        result = on_memory("status", "--check")
        assert result.exit_code == 1
        assert "wrong: project_rollout.md: is said to have all its vectors and lacks some" in result.stdout
        assert "1 wrong" in result.stdout
    again = on_memory("status", "--check", "--json")
    assert (again.exit_code, kinds(again)) == (1, ["incomplete"])
    assert answer(again)["roots"][0]["sound"] is False


def test_a_doctor_says_what_would_help_and_does_it_only_with_fix(on_memory: Run, memory: Path, derived: Path) -> None:
    before = list(contents(memory))
    (file,) = derived.glob("*.postings")
    os.truncate(file, 100)
    result = on_memory("doctor")
    assert result.exit_code == 1
    assert "--fix would make the postings anew from the stored topics" in result.stdout
    assert file.stat().st_size == 100
    mended = on_memory("doctor", "--fix")
    assert mended.exit_code == 0
    assert "done: the postings were made anew" in mended.stdout
    assert mended.stdout.index("wrong: ") < mended.stdout.index("done: ") < mended.stdout.index("healthy")
    assert on_memory("doctor", "--json").stdout.count('"findings": []') == 1
    assert list(contents(memory)) == before


def test_a_catalog_that_cannot_be_read_is_told_and_made_anew(on_memory: Run, derived: Path) -> None:
    (derived / "catalog.sqlite3").write_bytes(b"nonsense" * 999)
    result = on_memory("status", "--check", "--json")
    assert (result.exit_code, kinds(result)) == (1, ["catalog"])
    mended = on_memory("doctor", "--fix", "--json")
    assert (mended.exit_code, kinds(mended)) == (0, [])
    assert "thrown away" in answer(mended)["done"][0]
    assert answer(on_memory("status", "--json"))["roots"][0]["embedded"] == 3


def test_an_edit_since_the_last_look_is_noted_and_no_fault(on_memory: Run, memory: Path, derived: Path) -> None:
    (memory / "reference_board.md").write_text("an edited file", encoding="utf-8")
    result = on_memory("status", "--check")
    assert result.exit_code == 0
    assert "note: reference_board.md: the file was edited since" in result.stdout
    assert on_memory("doctor", "--fix").exit_code == 0
    assert kinds(on_memory("status", "--check", "--json")) == []


def test_an_edit_that_kept_size_and_time_is_a_fault(on_memory: Run, memory: Path, derived: Path) -> None:
    file = memory / "project_rollout.md"
    stamp = file.stat()
    file.write_text(file.read_text(encoding="utf-8").replace("Tuesday", "Holiday"), encoding="utf-8")
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert file.stat().st_size == stamp.st_size
    result = on_memory("doctor")
    assert result.exit_code == 1
    assert "another text than the one that was indexed" in result.stdout
    assert on_memory("doctor", "--fix").exit_code == 0
    assert "Holiday" in on_memory("show", "project_rollout").stdout


def test_many_findings_of_a_kind_are_cut_short_for_people_and_whole_as_data(
    on_memory: Run, memory: Path, derived: Path
) -> None:
    for number in range(14):
        (memory / f"{number}.md").write_text(f"new {number}", encoding="utf-8")
    result = on_memory("doctor")
    assert "note: and 4 more like it" in result.stdout
    assert result.stdout.count("--fix would read the file") == 1
    assert len(kinds(on_memory("doctor", "--json"))) == 14


def test_a_fault_that_cannot_be_mended_stays_told(on_memory: Run, derived: Path, tmp_path: Path) -> None:
    result = on_memory("doctor", "--fix", "--set", f"encoder.model={tmp_path}")
    assert result.exit_code == 1
    assert "only words are searched" in result.stdout
    told = on_memory("doctor", "--json", "--set", f"encoder.model={tmp_path}")
    assert [finding["remedy"] for finding in answer(told)["roots"][0]["findings"]] == [None]


def test_caches_of_folders_that_are_gone_are_listed_and_removed_when_long_unused(
    on_memory: Run, run: Run, derived: Path, own_surroundings: Path, tmp_path: Path
) -> None:
    folders = {}
    for name in ("young", "old"):
        root = tmp_path / name
        root.mkdir()
        (root / "a.md").write_text("something", encoding="utf-8")
        assert run("reindex", "--root", root, "--set", "encoder.model=hashing").exit_code == 0
        folders[name] = cache_folder(own_surroundings, root)
        shutil.rmtree(root)
    for file in folders["old"].iterdir():
        stamp = file.stat().st_mtime - 31 * DAY_S
        os.utime(file, (stamp, stamp))
    listed = on_memory("doctor")
    assert listed.exit_code == 0
    assert f"of {tmp_path / 'old'}, which is not there" in listed.stdout
    assert "--fix removes it" in listed.stdout
    assert "stays until it has been unused for 30 days" in listed.stdout
    assert folders["old"].exists()
    fixed = answer(on_memory("doctor", "--fix", "--json"))
    assert {cache["root"]: (cache["removable"], cache["removed"]) for cache in fixed["caches"]} == {
        str(tmp_path / "old"): (True, True),
        str(tmp_path / "young"): (False, False),
    }
    assert (folders["old"].exists(), folders["young"].exists(), derived.exists()) == (False, True, True)


def test_a_folder_that_is_not_there_is_a_wrong_command(run: Run, tmp_path: Path) -> None:
    for words in (("status", "--check"), ("doctor",), ("doctor", "--fix")):
        assert run(*words, "--root", tmp_path / "nowhere").exit_code == 2


def test_a_project_without_memory_is_no_fault_and_gets_no_cache(run: Run, own_surroundings: Path) -> None:
    assert run("doctor", "--set", "encoder.model=hashing").exit_code == 0
    assert not own_surroundings.exists()


def test_every_kind_that_can_be_mended_has_a_remedy() -> None:
    assert set(Kind) - set(REMEDIES) == {Kind.ROOT, Kind.UNUSABLE}
