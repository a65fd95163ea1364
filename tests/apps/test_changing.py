"""The commands that change memory files: what they say, what they ask, and that they do no more than was agreed."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from recall.apps import plans
from recall.apps.changing import ORIGINS
from recall.lifecycle.remember import Origin
from recall.store.plan import Run as Done
from tests.apps.conftest import TOPICS

Run = Callable[..., Result]
Data = Callable[..., dict[str, Any]]
Written = Callable[[Path, Mapping[str, str]], Path]

REPOSITORY = Path(__file__).resolve().parents[2]
RUN_ID = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-[0-9a-f]{8}"


def files(folder: Path) -> dict[str, bytes]:
    """All that people see of a memory."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    }


def run_named(result: Result) -> str:
    """The run that the output says how to undo."""
    found = re.search(rf"`recall restore ({RUN_ID})` undoes it", result.stdout)
    assert found, result.output
    return found[1]


# --- remember


def test_a_fact_of_several_words_is_written_down_and_found(on_memory: Run, data: Data, memory: Path) -> None:
    result = on_memory("remember", "Backups", "are", "copied", "to", "Leipzig", "--type", "reference")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[0] == "created  reference_backups-are-copied-to-leipzig.md"
    assert run_named(result)
    assert "Backups are copied to Leipzig" in (memory / "MEMORY.md").read_text(encoding="utf-8")
    assert data("search", "Leipzig backups")["hits"][0]["type"] == "reference"


def test_a_fact_comes_from_a_pipe_with_its_reasons(on_memory: Run, data: Data) -> None:
    result = on_memory("remember", "-", stdin="备份每天复制到莱比锡\nWhy: 法规要求\n")
    assert result.stdout.startswith("created  project_备份每天复制到莱比锡.md\n")
    entries = data("show", "project_备份每天复制到莱比锡")["entries"]
    assert entries == [{"summary": "备份每天复制到莱比锡", "why": "法规要求", "how_to_apply": None}]


def test_what_is_known_is_not_written_again(data: Data, on_memory: Run, memory: Path) -> None:
    first = data("remember", "Backups are copied to Leipzig")
    assert first == {
        "outcome": "created",
        "id": "project_backups-are-copied-to-leipzig.md",
        "file": str(memory / "project_backups-are-copied-to-leipzig.md"),
        "run": first["run"],
        "other": None,
        "notes": [],
    }
    assert re.fullmatch(RUN_ID, first["run"])
    before = files(memory)
    again = data("remember", "Backups are copied to Leipzig")
    assert (again["outcome"], again["id"], again["run"]) == ("known", first["id"], None)
    assert again["other"].casefold() == "backups are copied to leipzig"
    text = on_memory("remember", "Backups are copied to Leipzig").stdout
    assert text.splitlines()[0] == f"known  {first['id']}"
    assert "says: " in text
    assert "undoes" not in text
    assert files(memory) == before


def test_what_was_forgotten_comes_back_by_its_owner_only(on_memory: Run, data: Data) -> None:
    assert on_memory("remember", "Backups are copied to Leipzig").exit_code == 0
    assert on_memory("forget", "Leipzig", "--yes").exit_code == 0
    refused = data("remember", "Backups are copied to Leipzig", "--origin", "agent")
    assert (refused["outcome"], refused["id"], refused["file"], refused["run"]) == ("forgotten", None, None, None)
    text = on_memory("remember", "Backups are copied to Leipzig", "--origin", "web").stdout
    assert text.splitlines()[0] == "forgotten"
    assert "owner" in text
    assert data("remember", "Backups are copied to Leipzig")["outcome"] == "created"


def test_an_instruction_is_a_line_of_agents_md_that_can_be_taken_out(on_memory: Run, memory: Path) -> None:
    before = files(memory)
    result = on_memory("remember", "Run the tests first", "--instructions")
    assert Path("AGENTS.md").read_text(encoding="utf-8") == "- Run the tests first\n"
    assert files(memory) == before
    found = re.search(r"`recall delete (AGENTS\.md#\w+)` takes it out", result.stdout)
    assert found, result.stdout
    assert on_memory("remember", "Run the tests first", "--instructions").stdout.startswith(f"known  {found[1]}\n")
    assert on_memory("delete", found[1], "--yes").exit_code == 0
    assert Path("AGENTS.md").read_text(encoding="utf-8") == ""


def test_the_memory_of_the_user_takes_what_is_about_the_user(on_memory: Run, tmp_path: Path) -> None:
    there = ("--user-root", tmp_path / "new/user")
    result = on_memory("remember", "Answers are to be short", "--type", "feedback", *there)
    assert result.stdout.startswith("created  user:feedback_answers-are-to-be-short.md\n")
    assert (tmp_path / "new/user/feedback_answers-are-to-be-short.md").is_file()
    shown = on_memory("delete", "user:feedback_answers-are-to-be-short", *there).stdout
    assert "  removes user:feedback_answers-are-to-be-short.md\n" in shown


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        (["  "], None),
        (["…"], None),
        (["-"], b""),
        (["-"], b"latency \xff board"),
        (["prefers tabs", "--scope=user"], None),
    ],
)
def test_what_cannot_be_remembered_is_one_line(
    on_memory: Run, memory: Path, words: Sequence[str], stdin: bytes | None
) -> None:
    result = on_memory("remember", *words, stdin=stdin)
    assert result.exit_code == 1
    assert result.stderr.startswith("recall: ")
    assert result.stderr.count("\n") == 1
    assert files(memory).keys() == TOPICS.keys()


def test_the_origins_are_those_of_the_library() -> None:
    assert set(ORIGINS) == set(Origin)


# --- forget, delete


def test_nothing_is_forgotten_without_consent(on_memory: Run, data: Data, memory: Path) -> None:
    before = files(memory)
    for more in ((), ("--purge",)):
        result = on_memory("forget", "Grafana", *more)
        assert result.exit_code == 1
        assert result.stdout.splitlines() == [
            "reference_board.md  Grafana, folder api.",
            "  removes reference_board.md",
        ]
        assert "--yes" in result.stderr
    plan = data("forget", "Grafana")
    assert plan == {
        "kind": "forget",
        "items": [{"id": "reference_board.md", "text": "Grafana, folder api."}],
        "changes": [{"scope": "project", "path": "reference_board.md", "action": "removes"}],
        "notes": [],
        "run": None,
    }
    assert on_memory("delete", "reference_board").exit_code == 1
    assert files(memory) == before
    assert not (memory / ".trash").exists()


def test_what_was_forgotten_is_given_back_byte_for_byte(on_memory: Run, data: Data, memory: Path) -> None:
    before = files(memory)
    result = on_memory("forget", "Grafana", "--yes")
    assert result.exit_code == 0
    assert "forget: 1 file changed; `recall restore" in result.stdout
    assert "reference_board.md" not in files(memory)
    (listed,) = data("restore", "--list")["runs"]
    assert listed == {
        "id": run_named(result),
        "kind": "forget",
        "time": listed["time"],
        "scope": "project",
        "root": str(memory),
        "items": [{"id": "reference_board.md", "text": "Grafana, folder api."}],
    }
    assert on_memory("restore", "--list").stdout == f"{listed['id']}  forget  reference_board.md  {memory}\n"
    assert on_memory("restore").exit_code == 1  # nobody agreed
    assert "reference_board.md" not in files(memory)
    done = data("restore", listed["id"], "--yes")
    assert (done["run"]["paths"], done["run"]["restorable"]) == (["reference_board.md", "MEMORY.md"], True)
    assert files(memory) == before


def test_purging_keeps_nothing_and_promises_nothing(on_memory: Run, data: Data, memory: Path) -> None:
    result = on_memory("forget", "Grafana", "--yes", "--purge")
    assert result.exit_code == 0
    assert "recall restore" not in result.stdout
    assert "no copy of it is kept" in result.stdout
    run = data("delete", "project_rollout", "--yes", "--purge")["run"]
    assert run["restorable"] is False
    assert data("restore", "--list") == {"runs": []}
    kept = [file for file in memory.rglob("*") if file.is_file() and b"Grafana" in file.read_bytes()]
    assert kept == []


def test_one_entry_goes_and_the_others_stay(on_memory: Run, memory: Path) -> None:
    (memory / "many.md").write_text("---\nname: Many\n---\n\n- first\n- second\n- third\n", encoding="utf-8")
    assert on_memory("delete", "many.md:0", "many.md:2", "--yes").exit_code == 0
    assert (memory / "many.md").read_text(encoding="utf-8") == "---\nname: Many\n---\n\nsecond\n"


def test_files_are_counted_as_people_count_them(on_memory: Run, memory: Path) -> None:
    assert "delete: 2 files changed" in on_memory("delete", "reference_board", "project_rollout", "--yes").stdout


@pytest.mark.parametrize("query", ["zebra", "", "-"])
def test_a_request_that_means_nothing_is_no_error(on_memory: Run, memory: Path, query: str) -> None:
    result = on_memory("forget", query, "--yes", stdin="")
    assert (result.exit_code, result.stdout) == (0, "nothing to forget\n")
    assert files(memory).keys() == TOPICS.keys()


def test_a_request_is_bounded_and_takes_a_scope(on_memory: Run, data: Data, written: Written, tmp_path: Path) -> None:
    user = written(tmp_path / "user", {f"{number}.md": f"Grafana {number} is mine\n" for number in range(9)})
    there = ("--user-root", str(user))
    assert len(data("forget", "Grafana", *there)["items"]) == 5
    assert len(data("forget", "Grafana", "--limit", "7", "--scope", "user", *there)["items"]) == 7
    assert [item["id"] for item in data("forget", "Grafana", "--scope", "project", *there)["items"]] == [
        "reference_board.md"
    ]
    assert on_memory("forget", "Grafana", "--limit", "0").exit_code == 2


@pytest.mark.parametrize(
    "words",
    [["delete", "nothing"], ["delete", "reference_board", "nothing.md:3"], ["edit", "nothing"], ["restore", "x"]],
)
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_name_of_nothing_is_one_line_and_changes_nothing(
    on_memory: Run, memory: Path, words: list[str], more: list[str]
) -> None:
    result = on_memory(*words, *(["--yes"] if words[0] != "edit" else []), *more)
    assert result.exit_code == 1
    assert result.stderr.startswith("recall: ")
    assert words[-1] in result.stderr
    assert result.stderr.count("\n") == 1
    assert bool(more) == result.stdout.startswith('{"error": ')
    assert files(memory).keys() == TOPICS.keys()


# --- restore


def test_restoring_twice_or_what_was_changed_since_is_refused_before_it_asks(on_memory: Run, memory: Path) -> None:
    first = run_named(on_memory("edit", "reference_board", "--from-stdin", stdin="one\n"))
    second = run_named(on_memory("edit", "reference_board", "--from-stdin", stdin="two\n"))
    result = on_memory("restore", first)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"reference_board.md: has changed since {first}; undo later runs first" in result.stderr
    assert on_memory("restore", second, "--yes").exit_code == 0
    assert f"{second}: is undone already" in on_memory("restore", second).stderr
    assert on_memory("restore", first, "--yes").exit_code == 0
    assert (memory / "reference_board.md").read_bytes() == TOPICS["reference_board.md"].encode()


def test_nothing_to_restore_is_said(on_memory: Run, data: Data) -> None:
    assert on_memory("restore", "--list").stdout == "nothing can be restored\n"
    assert data("restore", "--list") == {"runs": []}
    assert on_memory("restore").exit_code == 1


def test_long_lists_and_texts_are_cut_for_people_and_whole_for_programs(
    on_memory: Run, data: Data, memory: Path
) -> None:
    long = "word " * 100
    (memory / "many.md").write_text(f"{long}\n\nsecond\n\nthird\n\nfourth\n", encoding="utf-8")
    shown = on_memory("delete", "many").stdout.splitlines()
    assert (len(shown[0]), shown[0][-1]) == (len("many.md:0  ") + 161, "…")
    assert data("delete", "many", "--yes")["items"][0]["text"] == long.strip()
    assert "delete  many.md:0, many.md:1, many.md:2 and 1 more  " in on_memory("restore", "--list").stdout
    assert len(data("restore", "--list")["runs"][0]["items"]) == 4


def test_a_file_that_was_left_alone_is_named() -> None:
    done = Done("run-1", "forget", 0.0, paths=("a.md",), skipped=("b\x1b.md",), notes=("so it is",))
    lines = [line.plain for line in plans.run(done, restorable=True)]
    assert lines == [
        "forget: 1 file changed; `recall restore run-1` undoes it",
        "  b .md was changed by somebody else at this moment, and left alone",
        "  so it is",
    ]
    assert plans.run_data(done, restorable=False)["skipped"] == ["b\x1b.md"]
    assert plans.run_data(replace(done, time=float("inf")), restorable=False)["time"] is None
    assert list(plans.run(Done("", "forget", 0.0), restorable=True)) == []


# --- edit


def editor(tmp_path: Path, script: str) -> str:
    """An editor of one step, as $EDITOR names it."""
    file = tmp_path / "editor.py"
    file.write_text(f"import pathlib, sys\nfile = pathlib.Path(sys.argv[1])\n{script}\n", encoding="utf-8")
    return f'"{sys.executable}" "{file}"'


@pytest.fixture
def edited(on_memory: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Result]:
    """Edits the board of latencies with an editor that does this."""

    def call(script: str) -> Result:
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", editor(tmp_path, script))
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        return on_memory("edit", "reference_board")

    return call


SWAP = "file.write_bytes(file.read_bytes().replace(b'Grafana', b'Kibana'))"


def test_a_topic_is_changed_in_an_editor(edited: Callable[[str], Result], memory: Path) -> None:
    (memory / "reference_board.md").write_bytes(b"\xef\xbb\xbf---\r\nname: B\r\n---\r\nGrafana \xff here")
    result = edited(SWAP)
    assert result.exit_code == 0
    assert "edit: 1 file changed" in result.stdout
    assert (memory / "reference_board.md").read_bytes() == b"\xef\xbb\xbf---\r\nname: B\r\n---\r\nKibana \xff here"


def test_an_editor_that_changes_nothing_changes_nothing(edited: Callable[[str], Result], memory: Path) -> None:
    assert edited("").stdout == "nothing to edit\n"
    assert not (memory / ".trash").exists()


def test_an_editor_that_fails_is_one_line(edited: Callable[[str], Result], memory: Path) -> None:
    result = edited(f"{SWAP}; sys.exit(3)")
    assert result.exit_code == 1
    assert "$EDITOR" in result.stderr
    assert result.stderr.count("\n") == 1
    assert b"Grafana" in files(memory)["reference_board.md"]


def test_what_somebody_wrote_is_not_lost_when_it_cannot_be_saved(
    edited: Callable[[str], Result], memory: Path, tmp_path: Path
) -> None:
    board = memory / "reference_board.md"
    result = edited(f"{SWAP}; pathlib.Path({str(board)!r}).write_text('by another', encoding='utf-8')")
    assert result.exit_code == 1
    found = re.search(r"your text is kept in (\S+)\)", result.stderr)
    assert found, result.stderr
    assert b"Kibana" in Path(found[1]).read_bytes()
    assert board.read_text(encoding="utf-8") == "by another"


def test_without_a_terminal_an_editor_has_to_be_named(on_memory: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    result = on_memory("edit", "reference_board")
    assert result.exit_code == 1
    assert "--from-stdin" in result.stderr


@pytest.mark.parametrize("stdin", [b"", b" \n", b"Grafana \xff"])
def test_a_new_text_that_is_none_is_refused(on_memory: Run, memory: Path, stdin: bytes) -> None:
    result = on_memory("edit", "reference_board", "--from-stdin", stdin=stdin)
    assert result.exit_code == 1
    assert "reference_board.md" in result.stderr
    assert files(memory).keys() == TOPICS.keys()


# --- list


def test_every_entry_is_listed_with_its_place(on_memory: Run, data: Data, memory: Path) -> None:
    (memory / "many.md").write_text("---\nname: Many\n---\n\n- first\n  - Why: so\n- second\n", encoding="utf-8")
    on_memory("remember", "Use pnpm", "--instructions")
    lines = on_memory("list", "--entries").stdout.splitlines()
    assert "many.md:0  5-6  first" in lines
    assert "many.md:1  7  second" in lines
    assert lines[-1] == "6 entries"
    entries = data("list", "--entries")["entries"]
    assert entries[-1] == {
        "id": entries[-1]["id"],
        "scope": "project",
        "file": str(Path("AGENTS.md").absolute()),
        "first": 1,
        "last": 1,
        "text": "Use pnpm",
    }
    assert [one["text"] for one in data("list", "--entries", "--type", "reference")["entries"]] == [
        "Grafana, folder api."
    ]
    assert data("list", "--entries", "--scope", "user")["entries"] == []
    assert "Use pnpm" in on_memory("list", "--entries", "--scope", "project").stdout


def test_topics_are_listed_by_kind_and_scope(on_memory: Run, data: Data) -> None:
    assert on_memory("list", "--type", "reference").stdout.splitlines() == [
        "reference_board.md  reference   Where request latency is shown",
        "1 topic",
    ]
    assert [one["id"] for one in data("list", "--type", "feedback", "--type", "project")["topics"]] == [
        "project_rollout.md",
        "team/feedback_style.md",
    ]
    assert data("list", "--scope", "user") == {"topics": []}
    assert data("list")["topics"][0]["superseded_by"] is None


def test_a_project_without_memory_says_so(run: Run) -> None:
    for words in (["list"], ["list", "--entries"], ["forget", "x"]):
        result = run(*words, "--set", "encoder.model=off")
        assert result.exit_code == 0
        assert "no memory folder yet" in result.stdout


@pytest.mark.parametrize("words", [["forget", "x"], ["delete", "x"], ["edit", "x"], ["restore"], ["list"]])
def test_only_remember_makes_a_folder_that_is_not_there(run: Run, tmp_path: Path, words: list[str]) -> None:
    result = run(*words, "--root", tmp_path / "missing")
    assert result.exit_code == 2
    assert not (tmp_path / "missing").exists()
    made = run("remember", "a new fact", "--root", tmp_path / "missing", "--set", "encoder.model=off")
    assert made.exit_code == 0
    assert (tmp_path / "missing/project_a-new-fact.md").is_file()


def test_no_control_character_of_a_memory_is_printed(on_memory: Run, memory: Path) -> None:
    (memory / "evil.md").write_text("evil \x1b[31m\x07 red\n", encoding="utf-8")
    shown = on_memory("forget", "evil").stdout + on_memory("list", "--entries").stdout
    shown += on_memory("forget", "evil", "--yes").stdout + on_memory("restore", "--list", "--json").stdout
    shown += on_memory("remember", "evil \x1b[31m\x07 red", "--origin", "agent").stdout
    assert "evil" in shown
    assert not set(shown) & {"\x1b", "\x07"}


# --- a terminal


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo terminals")
@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1), ("\x04", 1)])
def test_a_terminal_is_asked(memory: Path, answer: str, code: int) -> None:
    import pty

    ours, theirs = pty.openpty()
    words = ("forget", "Grafana", "--root", str(memory), "--set", "encoder.model=off")
    process = subprocess.Popen(
        [sys.executable, "-m", "recall", *words],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY), "NO_COLOR": "1"},
    )
    os.close(theirs)
    asked = b""
    while b"Do it? [y/N]: " not in asked:
        asked += os.read(ours, 1024)
    assert "reference_board.md" in files(memory)
    os.write(ours, f"{answer}\n".encode() if answer != "\x04" else answer.encode())
    out, _ = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == code
    assert out.startswith(b"reference_board.md  Grafana, folder api.\n")
    assert (b"undoes it" in out) == (code == 0)
    assert ("reference_board.md" in files(memory)) == (code == 1)


def test_answers_are_one_json_object_a_command(on_memory: Run) -> None:
    for words in (["forget", "Grafana"], ["forget", "Grafana", "--yes"], ["restore", "--yes"], ["restore", "--list"]):
        (line,) = on_memory(*words, "--json").stdout.splitlines()
        assert json.loads(line)


def test_what_is_chosen_by_meaning_is_not_purged_unseen(on_memory: Run, memory: Path) -> None:
    before = {file.name for file in memory.glob("*.md")}
    result = on_memory("forget", "api folder grafana", "--yes", "--purge")
    assert (result.exit_code, "by meaning" in result.stderr) == (1, True)
    assert {file.name for file in memory.glob("*.md")} == before
