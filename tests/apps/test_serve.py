"""The resident process, asked over its real socket."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from recall import __version__
from recall.apps import protocol
from recall.apps.hooks import Line
from recall.apps.residence import Memories, Place, Sessions, Told
from recall.apps.serve import Server
from recall.search.delivery import Delivery
from recall.search.types import Hit, Phase, Point, Recall
from recall.store.topics import Scope, Topic, parse_topic

REPOSITORY = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
PATIENT_MS = 30_000

Ask = Callable[..., dict[str, Any]]


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Variables of a user of our own, whose memories are searched without a real model."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RECALL_", "XDG_", "COV_"))}
    return {
        **kept,
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder),
        "RECALL_ENCODER__MODEL": "hashing",
        "PYTHONPATH": str(REPOSITORY),
        **more,
    }


def started(file: Path, env: Mapping[str, str], *words: str) -> "subprocess.Popen[str]":
    """A process that serves there, once clients can connect."""
    command = [sys.executable, "-m", "recall", "serve", "--socket", str(file), *words]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line == f"ready {file}\n", process.communicate()
    return process


def connected(file: Path) -> Line:
    return Line(str(file), until=time.monotonic() + PATIENCE_S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short enough for a socket."""
    return tmp_path_factory.mktemp("s")


@pytest.fixture(scope="module")
def resident(folder: Path) -> Iterator[Path]:
    """The socket of a process that serves all tests of this file."""
    file = folder / "recall" / "a.sock"
    with started(file, environment(folder)) as process:
        yield file
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


@pytest.fixture
def ask(resident: Path) -> Iterator[Ask]:
    """Sends a request on the connection of this test."""
    with connected(resident) as line:
        yield line.ask


@pytest.fixture
def place(memory: Path, tmp_path: Path) -> dict[str, str]:
    """How a request names the three topics."""
    return {"root": str(memory), "project": str(tmp_path)}


@pytest.fixture
def prompted(ask: Ask, place: dict[str, str]) -> Ask:
    """Prompts about the three topics."""

    def prompt(query: str, **more: object) -> dict[str, Any]:
        return ask("prompt", **{"query": query, "timeout_ms": PATIENT_MS, **place, **more})

    return prompt


# --- requests


def test_a_ping_says_who_answers(ask: Ask) -> None:
    answer = ask("ping")
    assert answer["version"] == __version__
    assert answer["pid"] != os.getpid()


def test_a_prompt_brings_the_block_and_what_is_in_it(prompted: Ask) -> None:
    answer = prompted("where is request latency shown?")
    assert "reference_board.md" in answer["ids"]
    assert answer["prompt"].startswith("## Relevant memory")
    assert "Grafana, folder api." in answer["prompt"]
    assert answer["phase"] in {"fast", "refined"}
    assert answer["strategy"] in {"heuristic", "hybrid"}
    assert answer["ms"] > 0


def test_a_prompt_that_nothing_fits_was_not_late(prompted: Ask) -> None:
    assert [prompted(query)["late"] for query in ("zebra", "")] == [False, False]


@pytest.mark.parametrize("query", ["", "   ", "zebra"])
def test_a_prompt_that_nothing_fits_brings_nothing(prompted: Ask, query: str) -> None:
    answer = prompted(query, timeout_ms=300)
    assert (answer["prompt"], answer["ids"], answer["strategy"]) == ("", [], "none")


def test_excluded_topics_do_not_come(prompted: Ask) -> None:
    assert "reference_board.md" not in prompted("latency board", exclude=["reference_board.md"])["ids"]


def test_a_file_written_after_the_start_is_found(prompted: Ask, memory: Path) -> None:
    prompted("latency board")
    (memory / "new.md").write_text("---\nname: Quokka\n---\nThe quokka feeds at noon.\n", encoding="utf-8")
    assert any("new.md" in prompted("quokka")["ids"] for _ in range(50))


def test_folders_of_one_project_share_a_memory(ask: Ask, prompted: Ask, tmp_path: Path, place: dict[str, str]) -> None:
    (tmp_path / "below").mkdir()
    prompted("latency board")
    before = ask("ping")["memories"]
    prompted("latency board", project=str(tmp_path / "below"))
    assert ask("ping", **place)["memories"] == before


def test_what_a_session_was_shown_comes_again_only_after_compaction(
    prompted: Ask, resident: Path, ask: Ask, place: dict[str, str]
) -> None:
    said = prompted("latency board", session="one")["ids"]
    assert said
    assert prompted("latency board", session="one")["ids"] == said  # it never reached the model
    with connected(resident) as line:
        reply = line.ask("prompt", **place, query="latency board", timeout_ms=PATIENT_MS, session="one")
        line.tell("shown")
        line.ask("ping")
    shown = set(reply["ids"])
    assert shown
    assert not shown & set(prompted("latency board", session="one", timeout_ms=300)["ids"])
    assert prompted("latency board", session="other")["ids"]
    ask("compacted", session="one")
    assert shown & set(prompted("latency board", session="one")["ids"])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"hello\n", "not a request"),
        (b'{"v": 2, "request": "ping"}\n', "not a request"),
        (b'{"v": 1, "request": "obey"}\n', "not a request"),
        (b'{"v": 1, "request": "prompt", "query": 7}\n', "not a request"),
        (b'{"v": 1, "request": "prompt", "query": "a", "project": "relative"}\n', "names a project"),
        (b'{"v": 1, "request": "prompt", "query": "a", "project": "/", "layout": "emacs"}\n', "no such layout"),
        (b'{"v": 1, "request": "ping", "x": "' + b"x" * protocol.LONGEST_REQUEST + b'"}\n', "too long"),
    ],
)
def test_what_is_no_request_gets_an_error_and_harms_nobody(resident: Path, ask: Ask, line: bytes, why: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE_S)
        client.connect(str(resident))
        client.sendall(line)
        with client.makefile("rb") as replies:
            reply = json.loads(replies.readline())
    assert why in reply["error"]
    assert ask("ping")["version"] == __version__


# --- one process, and its end


def test_the_socket_is_for_its_user_alone(resident: Path) -> None:
    assert stat.S_IMODE(resident.stat().st_mode) == 0o600
    assert stat.S_IMODE(resident.parent.stat().st_mode) == 0o700


def test_a_second_process_gives_way_and_names_the_first(resident: Path, folder: Path, ask: Ask) -> None:
    command = [sys.executable, "-m", "recall", "serve", "--socket", str(resident)]
    second = subprocess.run(command, env=environment(folder), capture_output=True, encoding="utf-8", check=False)
    assert second.returncode == 1
    assert f"process {ask('ping')['pid']}" in second.stderr


def test_a_dead_socket_is_replaced_and_a_signal_ends_the_process_cleanly(folder: Path) -> None:
    file = folder / "stale" / "b.sock"
    protocol.make_private(str(file.parent))
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(file))
    with started(file, environment(folder)) as process:
        with connected(file) as line:
            assert line.ask("ping")["pid"] == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert not file.exists()


def test_a_client_can_end_the_process(folder: Path) -> None:
    file = folder / "ended" / "c.sock"
    with started(file, environment(folder)) as process:
        with connected(file) as line:
            line.ask("shutdown")
        assert process.wait(PATIENCE_S) == 0
    assert not file.exists()


def test_a_process_that_nobody_asks_ends(tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("i") / "d.sock"
    with Server(file) as server:
        server.run(0.01)
    assert not file.exists()


def test_a_process_that_nobody_can_reach_ends(tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("u") / "e.sock"
    with Server(file) as server:
        serving = threading.Thread(target=server.run, args=(3600.0,), kwargs={"look_s": 0.01}, daemon=True)
        serving.start()
        file.unlink()
        serving.join(PATIENCE_S)
        assert not serving.is_alive()


def test_a_socket_that_another_took_over_is_left_alone(tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("o") / "f.sock"
    with Server(file) as server, socket.socket(socket.AF_UNIX) as other:
        file.rename(file.with_name("kept"))  # so that its number is not given away again
        other.bind(str(file))
        server.run(3600.0)
    assert file.exists()


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="only root can become another user")
def test_another_user_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("p") / "g.sock"
    code = (
        "import os, socket; os.setuid(65534); s = socket.socket(socket.AF_UNIX); s.connect('g.sock')\n"
        """try: s.sendall(b'{"v": 1, "request": "ping"}\\n'); print(s.recv(100))\n"""
        "except OSError: print(b'')"
    )
    with Server(file) as server:
        file.parent.chmod(0o755)  # no folder and no mode guards it any more
        file.chmod(0o666)
        serving = threading.Thread(target=server.run, args=(3600.0,), daemon=True)
        serving.start()
        stranger = subprocess.run([sys.executable, "-c", code], cwd=file.parent, capture_output=True, check=True)
        assert stranger.stdout == b"b''\n"
        with connected(file) as line:
            assert line.ask("ping")["pid"] == os.getpid()
        server.stop()
        serving.join(PATIENCE_S)


def test_this_user_is_not_refused() -> None:
    here, there = socket.socketpair()
    with here, there:
        assert protocol.is_own(here)


# --- where it listens


def test_settings_that_change_the_answer_change_the_place(tmp_path: Path) -> None:
    env = {"HOME": "/h", "XDG_RUNTIME_DIR": str(tmp_path)}
    usual = protocol.socket_file(env, longest=4096)
    assert usual.startswith(f"{tmp_path}/recall/")
    assert protocol.socket_file({**env, "TERM": "dumb"}, longest=4096) == usual
    for name in ("RECALL_SEARCH__K", "CLAUDE_CONFIG_DIR", "QWEN_HOME"):
        assert protocol.socket_file({**env, name: "7"}, longest=4096) != usual


def test_every_variable_that_finding_a_memory_looks_at_is_among_them() -> None:
    source = (REPOSITORY / "recall" / "store" / "hosts.py").read_text(encoding="utf-8")
    read = set(re.findall(r'"((?:QWEN|CLAUDE|WAVE|WORKBUDDY|CODEBUDDY)_[A-Z_]+)"', source))
    assert len(read) > 8
    assert read <= protocol.ENVIRONMENT


def test_a_path_too_long_for_a_socket_moves_to_the_temp_folder(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("t")))
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    found = Path(protocol.socket_file({"XDG_RUNTIME_DIR": str(deep)}))
    assert found.parent.parent == Path(tempfile.gettempdir())
    assert stat.S_IMODE(found.parent.stat().st_mode) == 0o700
    with socket.socket(socket.AF_UNIX) as possible:
        possible.bind(str(found))


def test_a_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    for folder in (shared, link):
        with pytest.raises(PermissionError, match="not a folder of this user alone"):
            protocol.make_private(str(folder))


# --- what it keeps


def roots(tmp_path: Path, count: int) -> list[Place]:
    found = []
    for number in range(count):
        root = tmp_path / f"m{number}"
        root.mkdir()
        (root / "a.md").write_text(f"memory number{number}\n", encoding="utf-8")
        found.append(Place(root=str(root), project=str(tmp_path)))
    return found


def test_only_some_memories_stay_open_and_none_closes_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECALL_ENCODER__MODEL", "off")
    memories = Memories(1)
    first, second, third = roots(tmp_path, 3)
    with memories.lease(first) as kept:
        with memories.lease(second), memories.lease(third):
            assert len(memories) == 3
        assert [hit.topic.id for hit in kept.recall("number0").hits] == ["a.md"]
        with memories.lease(first) as again:
            assert again is kept
    assert len(memories) == 1
    memories.close()
    assert len(memories) == 0


def test_memories_share_one_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECALL_ENCODER__MODEL", "hashing")
    memories = Memories(2)
    first, second = roots(tmp_path, 2)
    with memories.lease(first) as one, memories.lease(second) as other:
        assert one is not other
        assert one._model.encoder is other._model.encoder is not None
    memories.close()


def test_a_project_that_gets_other_settings_is_asked_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECALL_ENCODER__MODEL", "off")
    now = [0.0]
    memories = Memories(2, clock=lambda: now[0])
    (first,) = roots(tmp_path, 1)
    with memories.lease(first) as memory:
        assert memory.config.search.k == 5
    (tmp_path / ".recall.toml").write_text("[search]\nk = 3\n", encoding="utf-8")
    now[0] += 60
    with memories.lease(first) as memory:
        assert memory.config.search.k == 3
    memories.close()


def topic(name: str) -> Topic:
    return parse_topic("text", path=name, file=Path("/m", name), mtime=0.0, scope=Scope.PROJECT)


def test_sessions_that_were_not_heard_of_for_long_are_forgotten() -> None:
    sessions = Sessions(2)
    recall = Recall("q", (Hit(topic("a.md"), 1.0),))
    delivery = Delivery(recall, Phase.REFINED, Point.INITIAL, 0.0)
    for name in ("one", "two", "one", "three"):
        sessions.note(Told(delivery, name, Path("/m"), 0.0))
    assert [bool(sessions.surfaced(name, Path("/m"))) for name in ("one", "two", "three")] == [True, False, True]
    assert not sessions.surfaced("one", Path("/other"))
