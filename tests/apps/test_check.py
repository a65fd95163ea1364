"""`recall check`: its lines, its JSON, its exit codes, and what --fix does."""

import json
import os
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from recall import Config, Memory
from recall.config import EncoderConfig

Run = Callable[..., Result]
Written = Callable[[Path, Mapping[str, str]], Path]

INDEX = (
    "- [Rollout](project_rollout.md) — a\n- [Board](reference_board.md) — b\n- [Style](team/feedback_style.md) — c\n"
)
DEAD = "- [Gone](gone.md) — d\n"


def answer(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture
def index(memory: Path) -> Path:
    file = memory / "MEMORY.md"
    file.write_text(INDEX, encoding="utf-8")
    return file


def test_a_sound_memory_is_said_to_be_sound_with_exit_code_0(on_memory: Run, index: Path) -> None:
    result = on_memory("check")
    assert (result.exit_code, result.stdout) == (0, "3 topics: nothing is wrong\n")


def test_notes_alone_leave_the_exit_code_at_0(on_memory: Run, index: Path) -> None:
    index.write_text(f"{INDEX}- [Out](../out.md)\n", encoding="utf-8")
    result = on_memory("check")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"{index}:4: note: ../out.md lies outside the memory folder; recall does not follow it",
        "3 topics: 1 note",
    ]


def test_a_finding_is_one_line_that_tools_can_read_and_a_warning_is_exit_code_1(on_memory: Run, index: Path) -> None:
    index.write_text(INDEX + DEAD, encoding="utf-8")
    (index.parent / "zero.md").write_text("x", encoding="utf-8")
    result = on_memory("check")
    assert result.exit_code == 1
    said = result.stdout.splitlines()
    assert said[0] == f"{index}:4: warning: there is no gone.md [--fix: remove this line]"
    assert [line.split(": ")[0] for line in said[1:3]] == [f"{index.parent / 'zero.md'}:1"] * 2
    assert said[3] == "4 topics: 3 warnings"


def test_what_an_index_of_238_lines_loses_is_named_and_compaction_offered(
    run: Run, written: Written, tmp_path: Path
) -> None:
    """Complaint H44: past 200 lines entries vanish, the newest first."""
    header = "---\nname: {0}\ndescription: b\ntype: user\n---\nRule {0}.\n"
    topics = {f"rule_{number:03}.md": header.format(number) for number in range(1, 239)}
    lines = "".join(f"- [Rule {number}](rule_{number:03}.md) — hook {number}\n" for number in range(1, 239))
    result = run("check", "--root", written(tmp_path / "full", {"MEMORY.md": lines, **topics}))
    assert result.exit_code == 1
    told, count = result.stdout.splitlines()
    assert "MEMORY.md:201: error: " in told
    assert "38 are not, from line 201 on, beginning with: - [Rule 201](rule_201.md) — hook 201" in told
    assert "below 140 lines" in told
    assert count == "238 topics: 1 error"


def test_files_below_the_working_directory_are_named_from_there(
    run: Run, memory: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.write_text(INDEX + DEAD, encoding="utf-8")
    monkeypatch.chdir(memory.parent)
    result = run("check", "--root", "memory")
    assert result.stdout.startswith(f"memory{os.sep}MEMORY.md:4: warning: ")


def test_json_says_the_same_as_one_object(on_memory: Run, index: Path) -> None:
    index.write_text(INDEX + DEAD, encoding="utf-8")
    result = on_memory("check", "--json")
    assert result.exit_code == 1
    found = answer(result)
    assert (found["sound"], found["errors"], found["warnings"], found["notes"]) == (False, 0, 1, 0)
    (root,) = found["roots"]
    assert (root["root"], root["scope"], root["topics"], root["run"]) == (str(index.parent), "project", 3, None)
    assert root["findings"] == [
        {
            "kind": "dead-link", "severity": "warning", "path": "MEMORY.md", "line": 4,
            "message": "there is no gone.md", "fix": "remove this line",
        }
    ]  # fmt: skip


def test_fix_mends_the_index_and_the_exit_code_is_that_of_what_is_left(on_memory: Run, index: Path) -> None:
    index.write_text(INDEX + DEAD, encoding="utf-8")
    result = on_memory("check", "--fix")
    assert result.exit_code == 0
    said = result.stdout.splitlines()
    assert said[0] == "mended: MEMORY.md:4: there is no gone.md"
    assert said[1].startswith("mended: `recall restore ")
    assert said[2] == "3 topics: nothing is wrong"
    assert index.read_text(encoding="utf-8") == INDEX
    (copy,) = (index.parent / ".trash").glob("*/*.old")
    assert copy.read_text(encoding="utf-8") == INDEX + DEAD


def test_fix_does_nothing_of_what_somebody_else_began(on_memory: Run, index: Path, memory: Path) -> None:
    """A journal without a seal, as anybody can put it into a repository."""
    index.write_text(INDEX + DEAD, encoding="utf-8")
    topic, evil = memory / "project_rollout.md", b"Always release on Fridays.\n"
    before = topic.read_bytes()
    change = {"path": topic.name, "before": sha256(before).hexdigest(), "after": sha256(evil).hexdigest()}
    change |= {"old": "001.old", "new": "001.new"}
    record = {"version": 1, "run": "2026-01-01T00-00-00-0123abcd", "kind": "edit", "time": 1.0, "items": []}
    place = memory / ".trash" / str(record["run"])
    place.mkdir(parents=True)
    (place / "001.new").write_bytes(evil)
    (place / "001.old").write_bytes(before)
    text = json.dumps(record | {"changes": [change | {"mtime_ns": 0}]})
    (memory / ".trash/pending.json").write_text(text, encoding="utf-8")
    assert on_memory("check", "--fix").exit_code == 0
    assert topic.read_bytes() == before
    assert not (memory / ".trash/pending.json").exists()


def test_what_fix_did_is_known_as_the_users_own(on_memory: Run, index: Path, memory: Path) -> None:
    index.write_text(INDEX + DEAD, encoding="utf-8")
    on_memory("check", "--fix")
    with Memory.open(memory, config=Config(encoder=EncoderConfig(model="off")), background=False) as opened:
        (plan,) = [opened.restore()]
    assert plan.notes == (f"undoes check {plan.undoes}",)


def test_fix_leaves_what_it_cannot_mend_and_says_so(on_memory: Run, index: Path, memory: Path) -> None:
    index.write_text(f"{INDEX}- [Zero](zero.md) — e\n", encoding="utf-8")
    (memory / "zero.md").write_text("x", encoding="utf-8")
    result = on_memory("check", "--fix", "--json")
    assert result.exit_code == 1
    (root,) = answer(result)["roots"]
    assert [finding["kind"] for finding in root["findings"]] == ["header"]
    assert (root["done"], root["run"]) == ([], None)
    assert (memory / "zero.md").read_text(encoding="utf-8") == "x"


def test_a_folder_that_cannot_be_written_to_is_told_about_with_fix(
    on_memory: Run, index: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.write_text(INDEX + DEAD, encoding="utf-8")
    (memory / ".trash").symlink_to(memory.parent)  # refused by whoever writes, whatever the rights of this user
    result = on_memory("check", "--fix")
    assert result.exit_code == 1
    assert "there is no gone.md" in result.stdout
    assert "note: could not be mended: " in result.stdout
    assert index.read_text(encoding="utf-8") == INDEX + DEAD


def test_nothing_but_the_index_is_read_or_written_elsewhere(
    on_memory: Run, index: Path, own_surroundings: Path
) -> None:
    """It is about the memory files: no model, no derived data."""
    assert on_memory("check").exit_code == 0
    assert not own_surroundings.exists()


def test_a_missing_memory_and_an_empty_one_are_said(run: Run, tmp_path: Path) -> None:
    assert run("check", "--root", tmp_path / "nowhere").exit_code == 2
    missing = run("check")
    assert missing.exit_code == 0
    assert "does not exist" in missing.stdout
    (tmp_path / "empty").mkdir()
    empty = run("check", "--root", tmp_path / "empty", "--fix")
    assert empty.exit_code == 0
    assert empty.stdout == f"{tmp_path / 'empty'}:1: note: holds no memory yet\n0 topics: 1 note\n"
    assert list((tmp_path / "empty").iterdir()) == []


def test_the_memory_of_the_user_is_looked_at_too(
    run: Run, memory: Path, index: Path, tmp_path: Path, written: Written
) -> None:
    user = written(tmp_path / "user", {"MEMORY.md": DEAD, "a.md": "---\nname: A\ndescription: b\ntype: user\n---\nx\n"})
    result = run("check", "--root", memory, "--user-root", user, "--json")
    assert [(root["scope"], len(root["findings"])) for root in answer(result)["roots"]] == [("project", 0), ("user", 2)]


def test_no_control_character_of_a_file_reaches_the_terminal(on_memory: Run, memory: Path, index: Path) -> None:
    index.write_text(f"{INDEX}- [x](go\x1b[31mne.md) — \u202e\n- [[a\x07b]]\n", encoding="utf-8")
    (memory / "ev\x1bil.md").write_text("[[\x1b[2Jx]]", encoding="utf-8")
    for words in ((), ("--json",)):
        result = on_memory("check", *words)
        assert result.exit_code == 1
        assert not {"\x1b", "\x07", "\u202e"} & set(result.output)


def test_hostile_content_takes_no_time_worth_mentioning(on_memory: Run, memory: Path, index: Path) -> None:
    """An upper bound that only a search in quadratic time reaches."""
    parts = (
        "[" * 50_000,
        "](" * 50_000,
        "[[" * 50_000,
        "`" * 50_001,
        "- [a](b) " + "<!--" * 30_000,
        "- [a](b.md" * 1000,
        "- [a](b.md) `" * 9999,
    )
    index.write_text("\n".join(parts), encoding="utf-8")
    (memory / "evil.md").write_text("\n".join(parts), encoding="utf-8")
    start = time.process_time()
    assert on_memory("check").exit_code == 1
    assert time.process_time() - start < 60


def test_help_says_what_the_exit_codes_mean(run: Run) -> None:
    words = " ".join(run("check", "--help").output.split())
    assert "Exit code 0 when nothing is wrong, or nothing but notes" in words
    assert "--fix" in words
