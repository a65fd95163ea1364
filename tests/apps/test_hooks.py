"""The hook client as hosts run it: a process of its own, fed on stdin, that never fails."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recall.apps import hooks, late, protocol
from recall.apps.hooks import Asked, Options, asked, parse, wrapped
from recall.config import Config, EncoderConfig
from recall.memory.memory import Memory
from recall.memory.opening import load_config

REPOSITORY = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
PATIENT = ("--timeout-ms", "30000")
BLOCK = "## Relevant memory\n"

Hook = Callable[..., str]


# --- what hosts say


def test_both_hosts_are_understood() -> None:
    claude = {"session_id": "s1", "transcript_path": "/t", "cwd": "/w", "hook_event_name": "UserPromptSubmit"}
    qwen = {**claude, "timestamp": "2026-01-01T00:00:00Z"}
    for said in (claude, qwen):
        assert asked(json.dumps({**said, "prompt": "什么时候发布？"}).encode()) == Asked("什么时候发布？", "/w", "s1")
    typed = {**qwen, "prompt": "@notes.md什么时候发布？", "submitted_prompt": "什么时候发布？"}
    assert asked(json.dumps(typed).encode()).prompt == "什么时候发布？"
    assert asked(b'{"session_id": "s1", "source": "compact"}') == Asked(session="s1", source="compact")


@pytest.mark.parametrize(
    ("data", "prompt"),
    [
        (b"when may I release?\n", "when may I release?"),
        (b"", ""),
        (b'{"prompt": "half', ""),
        (b'{"prompt": 7, "cwd": ["/"], "session_id": null}', ""),
        (b'"quoted"', "quoted"),
        (b"[1, 2]", "[1, 2]"),
        (b"42", "42"),
        (b"[" * 100_000, "[" * 4000 + "\n" + "[" * 4000),
        (b'\xef\xbb\xbf{"prompt": "marked"}', "marked"),
        (b"caf\xe9", "caf\ufffd"),
        (b'{"prompt": "a", "cwd": "relative"}', "a"),
        (rb'{"prompt": "cut \ud83d", "session_id": ""}', "cut ?"),
    ],
)
def test_anything_else_is_taken_for_what_it_can_mean(data: bytes, prompt: str) -> None:
    assert asked(data) == Asked(prompt)


def test_of_a_long_prompt_beginning_and_end_are_kept() -> None:
    found = asked(json.dumps({"prompt": f"first{'x' * 50_000}last"}).encode()).prompt
    assert found.startswith("first")
    assert found.endswith("last")
    assert len(found) == protocol.LONGEST_QUERY + 1


def test_options_are_read_in_both_forms() -> None:
    assert parse(["prompt"]) == ("prompt", Options())
    words = ["--root=/m", "session", "--user-root", "/u", "--timeout-ms", "20", "--format=json", "--no-start"]
    expected = Options(root="/m", user_root="/u", timeout_ms=20.0, format="json", start=False)
    assert parse(words) == ("session", expected)


@pytest.mark.parametrize(
    "words",
    [[], ["prompt", "session"], ["prompt", "--frob=1"], ["prompt", "--root"], ["prompt", "--format=xml"],
     ["prompt", "--timeout-ms=soon"], ["prompt", "--start=1"]],
)  # fmt: skip
def test_options_that_mean_nothing_are_refused(words: list[str]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - one type for all; main() only notes it
        parse(words)


def test_the_block_is_wrapped_as_hosts_take_context() -> None:
    assert wrapped("a\nb", "text") == "a\nb"
    assert json.loads(wrapped("回答", "json")) == {
        "hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "回答"}
    }


# --- the process


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user of our own, with paths short enough for sockets; gives the folder."""
    folder = tmp_path_factory.mktemp("h")
    for name in [name for name in os.environ if name.startswith(("RECALL_", "XDG_", "COV_"))]:
        monkeypatch.delenv(name)
    for name, value in {
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder),
        "RECALL_ENCODER__MODEL": "hashing",
        "PYTHONPATH": str(REPOSITORY),
    }.items():
        monkeypatch.setenv(name, value)
    return folder


def outcome(process: "subprocess.Popen[bytes]", data: bytes) -> str:
    """What it prints; it must not fail and not complain."""
    stdout, stderr = process.communicate(data, timeout=PATIENCE_S)
    assert (process.returncode, stderr) == (0, b"")
    return stdout.decode("utf-8")


def begun(*words: str, module: str = "recall.apps.hooks") -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", *module.split(), *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)


@pytest.fixture
def hook(home: Path, memory: Path, tmp_path: Path) -> Hook:
    """Runs the hook on the three topics."""

    def call(query: str | bytes, *words: str, event: str = "prompt", **more: object) -> str:
        said = {"session_id": "s", "cwd": str(tmp_path), "prompt": query, **more}
        data = query if isinstance(query, bytes) else json.dumps(said).encode()
        return outcome(begun(event, "--root", str(memory), *words), data)

    return call


@pytest.fixture
def log(home: Path) -> Callable[[], str]:
    """What went wrong so far."""
    file = home / ".cache" / "recall" / "hook.log"
    return lambda: file.read_text(encoding="utf-8") if file.exists() else ""


@pytest.fixture
def resident(home: Path) -> Iterator[Path]:
    """The socket of a process that serves where hooks look."""
    command = [sys.executable, "-m", "recall", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        yield Path(process.stdout.readline().removeprefix("ready ").rstrip("\n"))
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


def test_the_block_comes_from_the_resident_process(resident: Path, hook: Hook) -> None:
    assert resident.is_socket()
    assert "Grafana, folder api." in hook("latency board", *PATIENT, session_id="a")
    context = json.loads(hook("latency board", *PATIENT, "--format", "json", session_id="b"))["hookSpecificOutput"]
    assert context["hookEventName"] == "UserPromptSubmit"
    assert context["additionalContext"].startswith(BLOCK)
    assert hook("zebra", "--timeout-ms", "500") == ""
    assert hook("   ") == ""
    assert "Grafana" in hook("latency board \ud83d", *PATIENT, session_id="half of an emoji \ud83d")


def test_a_session_is_told_once_and_again_after_compaction(resident: Path, hook: Hook) -> None:
    assert hook("latency board", *PATIENT).startswith(BLOCK)
    assert "Latency board" not in hook("latency board", "--timeout-ms", "500")
    assert hook("", event="session", source="resume") == ""
    assert "Latency board" not in hook("latency board", "--timeout-ms", "500")
    assert hook("", *PATIENT, event="session", source="compact") == ""
    assert "Latency board" in hook("latency board", *PATIENT)


def index(root: Path, home: Path) -> None:
    with Memory.open(root, project=root, config=Config(encoder=EncoderConfig(model="hashing"))) as memory:
        memory.reindex()
    assert (home / ".cache" / "recall").is_dir()


def test_without_a_resident_process_words_answer_from_the_index(hook: Hook, memory: Path, home: Path) -> None:
    index(memory, home)
    (memory / "new.md").write_text("latency board, too\n", encoding="utf-8")  # the hook reads no folder
    found = hook("latency board", "--no-start", *PATIENT)
    assert "Grafana, folder api." in found
    assert "new.md" not in found
    assert hook("zebra", "--no-start", *PATIENT) == ""
    (memory / "reference_board.md").write_text("Kibana, since the latency board moved.\n", encoding="utf-8")
    assert "Grafana" not in hook("latency board", "--no-start", *PATIENT)  # nor shows what a file no longer says


def test_without_an_index_and_a_resident_process_nothing_is_said(hook: Hook, log: Callable[[], str]) -> None:
    assert hook("latency board", "--no-start", *PATIENT) == ""
    assert log() == ""


def test_the_command_does_the_same(home: Path, memory: Path) -> None:
    index(memory, home)
    words = ("prompt", "--root", str(memory), "--no-start", "--format", "json", *PATIENT)
    answer = outcome(begun(*words, module="recall hook"), b"latency board")
    assert BLOCK in json.loads(answer)["hookSpecificOutput"]["additionalContext"]


def test_without_time_nothing_is_said_but_noted(hook: Hook, log: Callable[[], str]) -> None:
    assert hook("latency board", "--no-start", "--timeout-ms", "1") == ""
    assert "no time for an answer" in log() or "TimeoutError" in log()  # the latter where the host was slow to ask


def test_an_answer_that_cannot_be_in_time_is_not_begun(home: Path) -> None:
    place = {"root": "/m", "project": "/", "layout": "", "user_root": ""}
    found, why = hooks._in_process("latency", place, time.monotonic() + 0.03)
    assert found is None
    assert "no time for an answer" in why
    assert not home.joinpath(".cache/recall/roots").exists()


def limits(monkeypatch: pytest.MonkeyPatch, words: list[str], *, listening: Path | None) -> list[float]:
    """By when the hook that began at 1000 asks the resident process, and answers alone."""
    seen: list[float] = []

    class Connected(hooks.Line):
        def __init__(self, file: str, *, until: float) -> None:
            seen.append(until)
            super().__init__(file, until=until)

    monkeypatch.setattr(hooks, "Line", Connected)
    monkeypatch.setattr(hooks, "_read", lambda until: b"latency")
    monkeypatch.setattr(hooks, "_answer_here", lambda turn, until: seen.append(until))
    monkeypatch.setattr(hooks, "_prompt", lambda line, turn, until: seen.append(until))
    event, options = parse(["prompt", "--no-start", *words, *(("--socket", str(listening)) if listening else ())])
    hooks.run(event, options, born=1000.0)
    return seen


def test_without_a_resident_process_an_answer_may_take_longer_unless_the_host_says_how_long(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the time for the resident process is over before it turns out that there is none."""
    assert limits(monkeypatch, [], listening=None) == pytest.approx([1000.09, 1000.4])


def test_what_the_host_says_holds_with_and_without_a_resident_process(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert limits(monkeypatch, ["--timeout-ms", "20"], listening=None) == pytest.approx([1000.02, 1000.02])


def test_with_a_resident_process_the_usual_time_holds(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home / "here.sock"
    with socket.socket(socket.AF_UNIX) as there:
        there.bind(str(file))
        there.listen()
        assert limits(monkeypatch, [], listening=file) == pytest.approx([1000.09, 1000.09])


# --- what the next prompt is told


def test_after_a_prompt_that_was_late_the_next_of_the_session_says_so_once(
    hook: Hook, memory: Path, home: Path
) -> None:
    index(memory, home)
    for session in ("a", "b"):
        assert hook("latency board", "--no-start", "--timeout-ms", "1", session_id=session) == ""
    patient = ("--no-start", *PATIENT)
    told = hook("latency board", *patient, session_id="a")
    assert told.startswith(BLOCK)
    assert told.endswith(f"\n\n{late.LATE}\n")
    assert late.LATE not in hook("latency board", *patient, session_id="a")
    assert late.LATE not in hook("latency board", *patient, session_id="c")
    context = json.loads(hook("zebra", *patient, "--format", "json", session_id="b"))["hookSpecificOutput"]
    assert context["additionalContext"] == f"{late.LATE}\n"  # also where nothing fits
    assert hook("zebra", *patient, session_id="b") == ""


def test_without_a_session_the_next_prompt_of_the_place_is_told(hook: Hook, memory: Path, home: Path) -> None:
    index(memory, home)
    assert hook("latency board", "--no-start", "--timeout-ms", "1", session_id=None) == ""
    assert late.LATE not in hook("latency board", "--no-start", *PATIENT, "--project", str(home), session_id=None)
    assert late.LATE in hook("latency board", "--no-start", *PATIENT, session_id=None)


def test_of_marks_that_nobody_asks_for_only_some_stay(tmp_path: Path) -> None:
    (tmp_path / "other.sock").touch()
    for number in range(1000):
        late.leave_mark(str(tmp_path / f"late-{number}"))
    assert len(list(tmp_path.iterdir())) <= 65
    assert (tmp_path / "other.sock").exists()
    assert late.take_mark(str(tmp_path / "late-999"))
    assert not late.take_mark(str(tmp_path / "late-999"))


def test_after_a_resident_process_that_was_late_the_next_prompt_says_so(resident: Path, hook: Hook) -> None:
    file = resident.with_name("hangs.sock")
    with socket.socket(socket.AF_UNIX) as hanging:
        hanging.bind(str(file))
        hanging.listen()
        assert hook("latency board", "--socket", str(file), "--timeout-ms", "300") == ""
    told = hook("latency board", *PATIENT)
    assert told.startswith(BLOCK)
    assert late.LATE in told
    assert late.LATE not in hook("latency", *PATIENT)


def test_a_process_that_hangs_holds_nobody_up(home: Path, hook: Hook, log: Callable[[], str]) -> None:
    file = home / "hangs.sock"
    with socket.socket(socket.AF_UNIX) as hanging:
        hanging.bind(str(file))
        hanging.listen()
        assert hook("latency board", "--socket", str(file), "--timeout-ms", "300") == ""
    assert "TimeoutError" in log()


@pytest.mark.parametrize(
    "reply", [b"nonsense\n", b'{"v": 99, "prompt": "x"}\n', b"", b'{"v": 1, "error": "no"}\n', b"[]\n"]
)
def test_a_process_that_talks_nonsense_is_not_believed(
    home: Path, hook: Hook, log: Callable[[], str], reply: bytes, memory: Path
) -> None:
    file = home / "mad.sock"
    with socket.socket(socket.AF_UNIX) as mad:
        mad.bind(str(file))
        mad.listen()
        process = begun("prompt", "--root", str(memory), "--socket", str(file), *PATIENT)
        assert process.stdin is not None
        process.stdin.write(b"latency")
        process.stdin.close()
        process.stdin = None
        connection, _ = mad.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(reply)
        assert outcome(process, b"") == ""
    assert "Error" in log()


def test_a_host_that_never_ends_its_request_is_not_waited_for(home: Path, log: Callable[[], str]) -> None:
    with begun("prompt", "--no-start", "--timeout-ms", "300") as process:
        assert process.stdin is not None
        process.stdin.write(b'{"prompt": "latency')
        process.stdin.flush()
        assert process.wait(PATIENCE_S) == 0
    assert "did not finish" in log()


def test_words_that_mean_nothing_do_not_fail_the_host(home: Path, log: Callable[[], str]) -> None:
    assert outcome(begun("prompt", "--frobnicate"), b"latency") == ""
    assert "frobnicate" in log()


def test_the_log_stays_small(home: Path, log: Callable[[], str]) -> None:
    for number in range(400):
        hooks.note(f"{number} {'x' * 1000}")
    files = sorted((home / ".cache" / "recall").iterdir())
    assert [file.name for file in files] == ["hook.log", "hook.log.1"]
    assert all(file.stat().st_size < 70_000 for file in files)
    assert " 399 " in log()


# --- starting the resident process


def serving(file: Path) -> list[int]:
    """Processes that were started to serve there."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"serve" in words and os.fsencode(file) in words:
            found.append(int(folder.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="counts processes by /proc")
def test_of_many_hooks_at_once_one_starts_the_process(home: Path, hook: Hook, memory: Path) -> None:
    file = Path(protocol.socket_file(os.environ))
    words = ("prompt", "--root", str(memory), "--timeout-ms", "2000")
    together = [begun(*words) for _ in range(4)]
    for process in together:
        outcome(process, b"latency board")
    answers = (hook("latency board", session_id=str(number)) for number in range(200))
    assert any(answer.startswith(BLOCK) for answer in answers)
    pids = serving(file)
    with hooks.Line(str(file), until=time.monotonic() + PATIENCE_S) as line:
        assert pids == [line.ask("ping")["pid"]]
        line.ask("shutdown")


# --- what is loaded


def loaded(code: str) -> set[str]:
    """Modules that the code loads in a new process."""
    script = f"import sys\nbefore = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=True, env=clean()
    )
    return set(done.stderr.split())


def clean() -> dict[str, Any]:
    return {**os.environ, "PYTHONPATH": str(REPOSITORY)}


def test_the_hook_loads_only_the_standard_library_and_little_of_it() -> None:
    modules = loaded("import recall.apps.hooks")
    ours = {name for name in modules if name.split(".")[0] == "recall"}
    assert ours == {"recall", "recall.apps", "recall.apps.hooks", "recall.apps.late", "recall.apps.protocol"}
    assert {name.split(".")[0].lstrip("_") for name in modules - ours} <= sys.stdlib_module_names | {
        name.lstrip("_") for name in sys.stdlib_module_names
    }
    assert not modules & {
        "pathlib",
        "subprocess",
        "dataclasses",
        "inspect",
        "tempfile",
        "hashlib",
        "argparse",
        "logging",
        "typing",
        "contextlib",
    }


def test_help_loads_nothing_heavy() -> None:
    modules = loaded("from recall.apps.cli import cli\ncli(['--help'], standalone_mode=False)")
    assert not modules & {
        "numpy",
        "onnxruntime",
        "faiss",
        "tokenizers",
        "rich",
        "yaml",
        "sqlite3",
        "recall.memory.memory",
    }


HEAVY = {
    "numpy",
    "onnxruntime",
    "faiss",
    "tokenizers",
    "regex",
    "rich",
    "msgspec",
    "platformdirs",
    "yaml",
    "tomllib",
    "logging",
    "tempfile",
    "asyncio",
    "concurrent.futures",
    "recall.memory.memory",
    "recall.memory.model",
    "recall.index.snapshot",
    "recall.apps.evaluate",
    "recall.apps.demo",
}
"""What a question to an index that is up to date does without; each takes longer to load than such an answer."""


def test_a_search_without_a_model_loads_none(memory: Path) -> None:
    words = ["search", "latency", "--root", str(memory), "--set", "encoder.model=off"]
    code = f"from recall.apps.cli import cli\ncli({words!r}, standalone_mode=False)"
    first, later = loaded(code), loaded(code)  # the first one has to make the index
    assert "numpy" in first
    assert not first & {"onnxruntime", "faiss", "tokenizers", "rich", "recall.apps.evaluate", "recall.apps.demo"}
    assert not later & HEAVY
    assert "recall.context.prompt" not in later


def test_an_answer_without_a_server_loads_little(memory: Path) -> None:
    place = {"root": str(memory), "project": str(memory), "layout": "", "user_root": ""}
    config = load_config(memory, {"encoder.model": "off"})
    with Memory.open(memory, config=config, background=False) as opened:
        opened.reindex()
    code = f"from recall.apps.words import answer\nassert 'Latency' in answer('latency board', **{place!r}).prompt"
    assert not loaded(code) & (HEAVY | {"click"})
