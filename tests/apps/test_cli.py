"""The commands, called as a person or a program calls them."""

import json
import os
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from recall import MemoryType, Scope, __version__
from recall.apps.cli import cli
from recall.apps.options import KINDS, SCOPES

Run = Callable[..., Result]
Data = Callable[..., dict[str, Any]]

REPOSITORY = Path(__file__).resolve().parents[2]
PATIENT = ("--set", "search.budget_ms=20000", "--set", "search.hold_ms=20000")


def first_id(answer: Mapping[str, Any]) -> object:
    return answer["hits"][0]["id"] if answer["hits"] else None


# --- search


def test_search_shows_the_topics_that_matter(on_memory: Run) -> None:
    result = on_memory("search", "where", "is", "request", "latency")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split()[0::2] == ["1", "reference_board.md"]
    assert "Latency board" in lines[1]
    assert "hybrid; 3 of 3 topics with vectors" in result.stdout


def test_search_answers_as_data(data: Data) -> None:
    answer = data("search", "回答风格")
    assert first_id(answer) == "team/feedback_style.md"
    assert answer["coverage"] == {"topics": 3, "embedded": 3, "note": "", "behind": [], "behind_count": 0}
    hit = answer["hits"][0]
    assert hit["score"] == pytest.approx(hit["cosine"] + 0.5 * hit["lexical"] + 0.2 * hit["phrases"], abs=1e-4)
    assert "回答风格" in answer["prompt"]


def test_search_says_when_nothing_fits(on_memory: Run) -> None:
    result = on_memory("search", "zebra")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "nothing fits")


def test_search_takes_the_number_of_hits_and_what_to_leave_out(data: Data) -> None:
    words = ("search", "release", "latency", "board", "windows", "--set", "search.floor=-9")
    assert len(data(*words)["hits"]) == 3
    assert len(data(*words, "--k", "1")["hits"]) == 1
    left = {
        hit["id"] for hit in data(*words, "--exclude", "reference_board", "--exclude", "project_rollout.md")["hits"]
    }
    assert left == {"team/feedback_style.md"}


def test_search_takes_the_kinds_and_scopes_that_are_wanted(data: Data) -> None:
    words = ("search", "release", "latency", "board", "windows", "--set", "search.floor=-9")
    kinds = data(*words, "--type", "reference", "--type", "feedback")["hits"]
    assert {hit["id"] for hit in kinds} == {"reference_board.md", "team/feedback_style.md"}
    assert data(*words, "--scope", "user")["hits"] == []
    off = ("--set", "encoder.model=off")
    assert [hit["id"] for hit in data(*words, "--type", "reference", *off)["hits"]] == ["reference_board.md"]
    assert (set(KINDS), set(SCOPES)) == (set(MemoryType), set(Scope))


def test_search_prints_the_block_alone_on_request(on_memory: Run, data: Data) -> None:
    result = on_memory("search", "latency board", "--prompt")
    assert result.stdout == data("search", "latency board")["prompt"]
    assert result.stdout.startswith("## ")
    assert on_memory("search", "zebra", "--prompt").stdout == ""


@pytest.mark.parametrize("stdin", ["latency board", b"latency \xff board\n", "latency board " + "x y " * 1_000_000])
def test_search_reads_the_query_from_stdin(on_memory: Run, stdin: str | bytes) -> None:
    answer = json.loads(on_memory("search", "-", "--json", "--set", "search.floor=-9", stdin=stdin).stdout)
    assert first_id(answer) == "reference_board.md"
    assert len(answer["query"]) <= 1000


def test_a_blank_query_is_no_error(on_memory: Run, data: Data) -> None:
    assert "blank query" in on_memory("search", "  ").stdout
    assert on_memory("search", "-", stdin="").exit_code == 0
    assert data("search", "\t")["hits"] == []


@pytest.mark.parametrize("k", ["0", "-1", "many"])
def test_a_number_of_hits_that_cannot_be_is_a_usage_error(on_memory: Run, k: str) -> None:
    result = on_memory("search", "x", "--k", k)
    assert result.exit_code == 2
    assert "--k" in result.stderr


def test_search_says_how_to_get_the_missing_vectors(
    on_memory: Run, memory: Path, written: Callable[[Path, Mapping[str, str]], Path]
) -> None:
    written(memory, {f"{number}.md": f"# Note {number}\nlatency {number}\n" for number in range(60)})
    assert "`recall reindex` makes them" in on_memory("search", "latency").stdout
    assert "recall reindex" not in on_memory("search", "latency", "--set", "encoder.model=off").stdout
    assert on_memory("reindex").exit_code == 0
    assert "recall reindex" not in on_memory("search", "latency").stdout


# --- prefetch


def test_prefetch_plays_a_cold_and_a_warm_turn(data: Data) -> None:
    answer = data("prefetch", "latency board", "--tool-result", *PATIENT)
    assert [turn["state"] for turn in answer["turns"]] == ["cold", "warm"]
    warm = answer["turns"][1]
    assert (warm["first"]["phase"], warm["first"]["point"], warm["end"]["drop"]) == ("refined", "initial", None)
    assert warm["first"]["hits"][0]["id"] == "reference_board.md"
    assert warm["first"]["tokens"] > 0


def test_prefetch_without_tools_says_why_the_rest_was_dropped(on_memory: Run) -> None:
    result = on_memory("prefetch", "zebra", *PATIENT)
    assert result.exit_code == 0
    assert result.stdout.count("first()          nothing") == 2
    assert "no_relevant_results: nothing relevant was found" in result.stdout


def test_a_blank_prefetch_is_no_error(on_memory: Run) -> None:
    result = on_memory("prefetch", " ")
    assert result.exit_code == 0
    assert "blank query" in result.stdout


# --- reindex, status


def test_reindex_may_encode_several_texts_at_once(on_memory: Run, data: Data) -> None:
    assert data("reindex", "--workers", "2")["embedded"] == 3
    assert data("search", "回答风格")["coverage"]["embedded"] == 3
    for number in ("0", "65", "many"):
        assert on_memory("reindex", "--workers", number).exit_code == 2


def test_reindex_reports_what_it_did(data: Data, memory: Path) -> None:
    first = data("reindex")
    assert sorted(first["added"]) == ["project_rollout.md", "reference_board.md", "team/feedback_style.md"]
    assert (first["embedded"], first["note"]) == (3, "")
    (memory / "team" / "feedback_style.md").rename(memory / "style.md")
    (memory / "reference_board.md").unlink()
    (memory / "MEMORY.md").write_text("- index\n", encoding="utf-8")
    (memory / "binary.md").write_bytes(bytes(5000))
    second = data("reindex")
    assert (second["moved"], second["removed"], second["kept"]) == (["style.md"], ["reference_board.md"], 1)
    assert second["skipped"] == [{"path": "MEMORY.md", "reason": "index file"}]
    assert [failed["path"] for failed in second["failed"]] == ["binary.md"]
    assert second["embedded"] == 0


def test_progress_is_shown_on_terminals_only(on_memory: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert on_memory("reindex").stderr == ""
    monkeypatch.setenv("FORCE_COLOR", "1")  # what makes rich take any stream for a terminal
    shown = on_memory("reindex", "--full", "--json")
    assert "words" in shown.stderr
    assert "vectors" in shown.stderr
    assert "3/3" in shown.stderr
    assert len(json.loads(shown.stdout)["added"]) == 3


def test_reindex_makes_everything_anew_on_request(data: Data) -> None:
    data("reindex")
    assert len(data("reindex", "--full")["added"]) == 3


def test_files_that_fail_are_a_report_and_no_failure(on_memory: Run, memory: Path) -> None:
    (memory / "binary.md").write_bytes(bytes(5000))
    result = on_memory("reindex")
    assert result.exit_code == 0
    assert "failed 1" in result.stdout
    assert "binary.md" in result.stdout


def test_reindex_fails_when_the_model_cannot_make_vectors(on_memory: Run, tmp_path: Path) -> None:
    result = on_memory("reindex", "--set", f"encoder.model={tmp_path / 'nothing'}")
    assert result.exit_code == 1
    assert str(tmp_path / "nothing") in result.stdout
    assert on_memory("reindex", "--set", "encoder.model=off").exit_code == 0


def test_reindex_fails_when_the_index_cannot_be_kept(on_memory: Run, own_surroundings: Path) -> None:
    own_surroundings.write_text("a file where the cache folder should be", encoding="utf-8")
    result = on_memory("reindex")
    assert result.exit_code == 1
    assert str(own_surroundings) in result.stdout


def test_status_accounts_for_every_file(on_memory: Run, data: Data, memory: Path) -> None:
    (memory / "MEMORY.md").write_text("- index\n", encoding="utf-8")
    (memory / "binary.md").write_bytes(bytes(5000))
    (memory / ".trash").mkdir()
    (memory / ".trash" / "old.md").write_text("old", encoding="utf-8")
    (root,) = data("status")["roots"]
    assert (root["files"], root["topics"], root["skipped"], root["failed"], root["embedded"]) == (6, 3, 2, 1, 0)
    assert {skip["path"] for skip in root["skips"]} == {"MEMORY.md", ".trash"}
    assert [problem["path"] for problem in root["problems"]] == ["binary.md"]
    on_memory("reindex")
    text = on_memory("status").stdout
    assert "6 .md files = 3 topics + 2 skipped + 1 failed" in text
    assert "unaccounted" not in text
    assert "vectors: 3 of 3 topics" in text
    assert "encoder: hashing" in text


def test_status_counts_no_file_twice(on_memory: Run, memory: Path, tmp_path: Path) -> None:
    (memory / "again.md").symlink_to(memory / "reference_board.md")
    (memory / "upper.MD").write_text("x", encoding="utf-8")
    (tmp_path / "outside.md").write_text("x", encoding="utf-8")
    (memory / "out.md").symlink_to(tmp_path / "outside.md")
    text = on_memory("status").stdout
    assert "5 .md files = 3 topics + 2 skipped + 0 failed" in text
    assert "unaccounted" not in text


# --- where, show


def test_where_explains_itself_and_opens_nothing(run: Run, memory: Path, own_surroundings: Path) -> None:
    result = run("where", "--root", memory)
    assert result.exit_code == 0
    assert str(memory) in result.stdout
    assert not own_surroundings.exists()


def test_where_lists_what_else_was_looked_at(run: Run, tmp_path: Path) -> None:
    found = json.loads(run("where", "--json", "--layout", "claude", "--user-root", tmp_path).stdout)
    assert found["chosen"]["layout"] == "claude"
    assert found["chosen"]["exists"] is False
    assert found["chosen"]["user_root"] == str(tmp_path)
    assert found["chosen"] in found["candidates"]
    assert run("where", "--root", tmp_path / "missing").exit_code == 0


def test_show_tells_how_a_topic_was_understood(on_memory: Run, data: Data, memory: Path) -> None:
    shown = data("show", "project_rollout")
    assert shown["links"] == ["reference_board"]
    assert shown["header"]["type"] == "project"
    assert shown["entries"] == [
        {
            "summary": "Only on Tuesday mornings. See [[reference_board]].",
            "why": "the warehouse is closed then.",
            "how_to_apply": None,
        }
    ]
    assert data("show", "reference_board.md")["modified"] == "2026-03-04T00:00:00+00:00"
    text = on_memory("show", "project_rollout.md").stdout
    assert str(memory / "project_rollout.md") in text
    assert "entries: 1" in text
    assert text.endswith("Why: the warehouse is closed then.\n")


def test_an_unknown_topic_is_one_line(on_memory: Run) -> None:
    result = on_memory("show", "nothing")
    assert result.exit_code == 1
    assert result.stderr.startswith("recall: nothing: no topic of that name")
    assert result.stdout == ""


# --- what all commands share

COMMANDS = (["search", "x"], ["prefetch", "x"], ["reindex"], ["status"], ["show", "x"])


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("option", ["--root", "--user-root"])
def test_a_named_folder_that_is_not_there_is_a_usage_error(
    run: Run, tmp_path: Path, command: list[str], option: str
) -> None:
    result = run(*command, option, tmp_path / "missing")
    assert result.exit_code == 2
    assert option in result.stderr
    assert str(tmp_path / "missing") in result.stderr


def test_a_project_without_memory_is_told_so(run: Run) -> None:
    result = run("search", "x", "--set", "encoder.model=hashing")
    assert result.exit_code == 0
    assert "no memory folder yet" in result.stdout
    assert run("reindex", "--set", "encoder.model=hashing").exit_code == 0


def test_the_memory_of_the_project_is_found(
    run: Run, tmp_path: Path, written: Callable[[Path, Mapping[str, str]], Path]
) -> None:
    project = tmp_path / "project"
    written(project / ".agents" / "memory", {"a.md": "# Rollout\nTuesday\n"})
    result = run("search", "rollout", "--project", project, "--set", "encoder.model=hashing")
    assert "a.md" in result.stdout


def test_the_memory_of_the_user_takes_part(
    data: Data, tmp_path: Path, written: Callable[[Path, Mapping[str, str]], Path]
) -> None:
    user = written(tmp_path / "user", {"me.md": "---\nname: Zebra keeper\n---\nI keep zebras.\n"})
    answer = data("search", "zebra keeper", "--user-root", str(user))
    assert first_id(answer) == "user:me.md"
    assert [root["scope"] for root in data("status", "--user-root", str(user))["roots"]] == ["project", "user"]


@pytest.mark.parametrize(
    ("setting", "said"),
    [("search.kk=3", "search.kk: unknown setting"), ("search.k=none", "search.k: expected a whole number, not")],
)
def test_a_setting_that_cannot_be_is_one_line(on_memory: Run, setting: str, said: str) -> None:
    result = on_memory("search", "x", "--set", setting)
    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_setting_without_a_value_is_a_usage_error(on_memory: Run) -> None:
    result = on_memory("search", "x", "--set", "search.k")
    assert result.exit_code == 2
    assert "--set" in result.stderr


def test_an_error_is_data_too_when_data_was_asked_for(on_memory: Run) -> None:
    result = on_memory("show", "nothing", "--json")
    assert result.exit_code == 1
    (line,) = result.stdout.splitlines()
    assert json.loads(line)["error"] in result.stderr


def test_the_version_is_the_one_of_the_package(run: Run) -> None:
    assert run("--version").stdout == f"recall, version {__version__}\n"


def test_a_broken_index_is_made_anew_without_a_word(data: Data, own_surroundings: Path) -> None:
    data("reindex")
    (catalog,) = own_surroundings.rglob("catalog.sqlite3")
    catalog.write_bytes(b"not a database at all" * 100)
    assert first_id(data("search", "latency board")) == "reference_board.md"
    with sqlite3.connect(catalog) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


# --- real processes


def start(*words: str | bytes, **environment: str) -> "subprocess.Popen[bytes]":
    env = os.environ | {"PYTHONPATH": str(REPOSITORY)} | environment
    return subprocess.Popen(
        [sys.executable, "-m", "recall", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
    )


def outcome(process: "subprocess.Popen[bytes]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out.decode("utf-8"), err.decode("utf-8")


def arguments(memory: Path) -> tuple[str, ...]:
    return "--root", str(memory), "--set", "encoder.model=hashing"


def test_a_process_answers_and_ends(memory: Path) -> None:
    code, out, err = outcome(start("search", "回答风格", "--json", *arguments(memory)))
    assert (code, err) == (0, "")
    assert json.loads(out)["hits"][0]["title"] == "回答风格"


@pytest.mark.parametrize("form", [[], ["--json"], ["--prompt"]], ids=["text", "json", "prompt"])
def test_a_reader_that_goes_home_early_is_no_error_message(memory: Path, form: list[str]) -> None:
    process = start("search", "latency board", *arguments(memory), *form)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    process.wait(timeout=60)
    assert err == b""


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("words", "code"), [(["search", "latency board"], 0), (["status", "--json"], 0), (["forget", "latency board"], 1)]
)
def test_a_stream_that_was_closed_before_the_start_is_no_fault(
    memory: Path, closed: str, words: list[str], code: int
) -> None:
    line = shlex.join([sys.executable, "-m", "recall", *words, *arguments(memory)])
    env = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    ended = subprocess.run(["sh", "-c", f"{line} {closed}"], env=env, capture_output=True, timeout=60, check=False)
    assert (ended.returncode, b"Traceback" in ended.stderr) == (code, False)


def test_a_terminal_that_takes_ascii_only_gets_ascii(memory: Path) -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    code, out, _ = outcome(start("search", "回答风格", *arguments(memory), **ascii_only))
    assert code == 0
    assert out.isascii()
    code, out, _ = outcome(start("search", "回答风格", "--json", *arguments(memory), **ascii_only))
    assert out.isascii()
    assert json.loads(out)["hits"][0]["title"] == "回答风格"


def test_names_and_queries_that_are_no_utf8_are_survived(memory: Path) -> None:
    Path(os.fsdecode(os.fsencode(memory) + b"/bad\xff.md")).write_text("x", encoding="utf-8")
    code, out, err = outcome(start("search", b"latency\xff board", "--json", *arguments(memory)))
    assert (code, err) == (0, "")
    assert json.loads(out)["query"] == "latency\ufffd board"
    assert json.loads(out)["hits"][0]["id"] == "reference_board.md"
    code, out, _ = outcome(start("status", *arguments(memory)))
    assert code == 0
    assert "name is not UTF-8" in out


def test_colours_are_for_terminals_and_can_be_refused(memory: Path) -> None:
    forced = outcome(start("search", "latency board", *arguments(memory), FORCE_COLOR="1", TERM="xterm", NO_COLOR=""))
    refused = outcome(start("search", "latency board", *arguments(memory), FORCE_COLOR="1", TERM="xterm", NO_COLOR="1"))
    plain = outcome(start("search", "latency board", *arguments(memory)))
    assert "\x1b[1;36m" in forced[1]
    assert "36m" not in refused[1]
    assert "\x1b" not in plain[1]


def test_an_interrupted_command_says_so_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: Sequence[str]) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("recall.apps.cli.query_of", interrupted)
    result = CliRunner().invoke(cli, ["search", "backup"])
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == "recall: interrupted; what was written whole stays\n"
