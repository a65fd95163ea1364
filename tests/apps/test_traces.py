"""Which commands and hooks leave traces of what they recall, and what `recall status` says of them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from click.testing import Result

from recall.apps.hooks import Line
from recall.memory.memory import Memory
from recall.memory.opening import load_config
from recall.store.traces import Trace

REPOSITORY = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
PATIENT_MS = 30_000

Run = Callable[..., Result]
Traces = Callable[..., list[Trace]]
T = TypeVar("T")


@pytest.fixture
def traces(memory: Path) -> Traces:
    """What lies in the traces of the three topics."""

    def read() -> list[Trace]:
        with Memory.open(memory, project=memory, config=load_config(memory), background=False) as opened:
            return opened.traces()

    return read


@pytest.fixture
def data(on_memory: Run) -> Callable[..., Any]:
    return lambda *words: json.loads(on_memory(*words, "--json").stdout)


def test_a_search_leaves_one_and_status_counts_it(on_memory: Run, traces: Traces, data: Callable[..., Any]) -> None:
    assert "recalls traced: 0\n" in on_memory("status").stdout
    (root,) = data("status")["roots"]
    assert (root["traced"], root["traced_since"]) == (0, None)
    before = time.time()
    on_memory("search", "latency board")
    (trace,) = traces()
    assert (trace.surface, trace.query, trace.hits[0].path) == ("cli", "latency board", "reference_board.md")
    assert before <= trace.time <= time.time()
    assert "recalls traced: 1 since 2" in on_memory("status").stdout
    (root,) = data("status")["roots"]
    assert root["traced"] == 1
    assert root["traced_since"].endswith("+00:00")


def test_a_search_leaves_none_when_it_is_told_so(on_memory: Run, traces: Traces) -> None:
    on_memory("search", "latency board", "--set", "traces.enabled=false")
    assert traces() == []


def test_what_only_shows_or_judges_leaves_none(
    on_memory: Run, run: Run, memory: Path, traces: Traces, tmp_path: Path, own_surroundings: Path
) -> None:
    questions = tmp_path / "q.jsonl"
    questions.write_text('{"id": "1", "text": "latency board", "relevant": ["reference_board"]}\n', encoding="utf-8")
    judged = run("eval", memory, questions, "--json", "--set", "encoder.model=hashing")
    assert json.loads(judged.stdout)["queries"] == 1, judged.output
    delivered = run("eval", memory, questions, "--json", "--delivered", "--set", "encoder.model=hashing")
    assert json.loads(delivered.stdout)["queries"] == 1, delivered.output
    for words in (["prefetch", "latency board"], ["show", "reference_board"], ["reindex", "--full"], ["status"]):
        assert on_memory(*words).exit_code == 0
    assert traces() == []
    assert not (own_surroundings / "traces").exists()


# --- hooks


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RECALL_", "XDG_", "COV_"))}
    own = {"HOME": str(home), "XDG_RUNTIME_DIR": str(home), "RECALL_ENCODER__MODEL": "hashing"}
    return {**kept, **own, "RECALL_INDEX__CACHE": str(home / "cache"), "PYTHONPATH": str(REPOSITORY)}


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with paths short enough for sockets."""
    folder = tmp_path_factory.mktemp("t")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for name, value in environment(folder).items():
        monkeypatch.setenv(name, value)
    return folder


def served(file: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "recall", "serve", "--socket", str(file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready ")
    return process


def test_a_prompt_leaves_one_once_the_client_says_that_it_was_shown(home: Path, memory: Path, traces: Traces) -> None:
    asked = {"root": str(memory), "project": str(memory), "query": "latency board", "timeout_ms": PATIENT_MS}
    with served(home / "a.sock") as process:
        with Line(str(home / "a.sock"), until=time.monotonic() + PATIENCE_S) as line:
            assert line.ask("prompt", **asked, session="lost")["ids"]
            line.ask("prompt", **{**asked, "query": "xylophone", "timeout_ms": 300}, session="empty")
            line.tell("shown")
            reply = line.ask("prompt", **asked, session="s1")
            line.tell("shown")
            line.tell("shown")
            line.ask("ping")
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    (trace,) = traces()
    assert (trace.surface, trace.session, trace.phase) == ("hook", "s1", reply["phase"])
    assert (trace.interactive, trace.query) == (True, "latency board")
    assert [hit.path for hit in trace.hits] == reply["ids"]


def hooked(memory: Path, *words: str, timeout_ms: int = PATIENT_MS) -> str:
    command = [sys.executable, "-m", "recall.apps.hooks", "prompt", "--root", str(memory), "--no-start"]
    said = json.dumps({"session_id": "s7", "cwd": str(memory), "prompt": "latency board"}).encode()
    timeout = f"--timeout-ms={timeout_ms}"
    done = subprocess.run([*command, timeout, *words], input=said, capture_output=True, timeout=PATIENCE_S, check=True)
    assert done.stderr == b""
    return done.stdout.decode()


def awaited(read: Callable[[], T]) -> T:
    """What it gives once it gives something: the hook leaves its trace after it has ended for the host."""
    until = time.monotonic() + PATIENCE_S
    while not (found := read()) and time.monotonic() < until:
        pass
    return found


def test_a_hook_that_answers_by_itself_leaves_one(home: Path, memory: Path, traces: Traces) -> None:
    assert hooked(memory) == ""  # nothing is indexed yet
    assert traces() == []
    with Memory.open(memory, project=memory, config=load_config(memory)) as opened:
        opened.reindex()
    assert "Grafana" in hooked(memory)
    (trace,) = awaited(traces)
    assert (trace.surface, trace.session, trace.phase, trace.strategy) == ("hook", "s7", "fast", "hybrid")
    assert trace.hits[0].path == "reference_board.md"
    assert not (home / ".cache" / "recall" / "hook.log").exists()


def test_a_hook_whose_trace_cannot_be_written_has_answered(
    home: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(memory, project=memory, config=load_config(memory)) as opened:
        opened.reindex()
    (home / "cache" / "traces").write_text("in the way", encoding="utf-8")
    assert "Grafana" in hooked(memory)
    assert awaited((home / ".cache" / "recall" / "hook.log").exists)
    monkeypatch.setenv("RECALL_TRACES__ENABLED", "false")
    (home / "cache" / "traces").unlink()
    assert "Grafana" in hooked(memory)
    assert not (home / "cache" / "traces").exists()
