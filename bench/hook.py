"""What a host waits for at every prompt: the hook from spawn to exit, with the resident process and the real model.

Every hook is a process of its own and gets a question and a session of its own. One process more computes all the time,
so that on two cores the hook, the resident process and its model share what is left. In turn with each hook
`python -c pass` is started, which says what a process costs here, and a second question goes to the resident process
directly, with the time that a hook would give it, to see from what it answers.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.generate import queries
from bench.runner import REPOSITORY, Figure, arguments, compared, interleaved, record, timed
from bench.workspace import Workspace, notes, workbench
from recall.apps.hooks import BUDGET_MS, Line

_SPIN: Final = "while True: pass"
_WARM_UP: Final = 10
# What a hook has used and keeps of its budget when it asks: its own start, the way there and back, printing.
_SPENT_MS: Final = 30.0


def main() -> None:
    """Runs it and records it."""
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, help="500 unless given")
    parser.add_argument("--topics", type=int, help="100 unless given; all get their vectors from the real model first")
    parser.add_argument("--idle", action="store_true", help="without the process that computes")
    options = parser.parse_args()
    runs = options.runs or (50 if options.quick else 500)
    topics = options.topics or (30 if options.quick else 100)
    with workbench(options.work) as work:
        space = notes(work, topics, name="hook")
        with space.open(background=False) as memory:
            memory.reindex()  # quick when it was done before
        figures = measure(space, work, runs, busy=not options.idle)
    record("hook", figures, topics=topics, quick=options.quick)


def measure(space: Workspace, work: Path, runs: int, *, busy: bool) -> list[Figure]:
    """The hooks with the resident process there, and then without it."""
    socket, state = work / "hook.sock", "one core busy" if busy else "idle"
    (work / "run").mkdir(mode=0o700, exist_ok=True)
    env = {**os.environ, "RECALL_INDEX__CACHE": str(space.cache), "XDG_CACHE_HOME": str(work / "run")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process compiles anew
    asked = list(queries(2 * (runs + _WARM_UP), among=space.count))
    told: list[str] = []
    with running(["-c", _SPIN], env) if busy else timeless():
        with served(socket, env):
            found = interleaved(
                {
                    "hook": lambda at: _hook(asked[2 * at], f"hook {at}", space, socket, env),
                    "python": lambda _: _process(["-c", "pass"], env),
                    "direct": lambda at: told.append(_answer(asked[2 * at + 1], f"direct {at}", space, socket)),
                },
                range(runs + _WARM_UP),
            )
        alone = interleaved(
            {
                "hook": lambda at: _hook(asked[2 * at], f"alone {at}", space, socket, env),
                "python": lambda _: _process(["-c", "pass"], env),
            },
            range(max(10, runs // 10)),
        )
    late = sum(seconds * 1000 > BUDGET_MS for seconds in found["hook"][_WARM_UP:])
    return [
        compared(f"hook, {state}", found["hook"][_WARM_UP:], against="python -c pass", baseline=found["python"]),
        Figure(f"hooks beyond {BUDGET_MS:.0f} ms, {state}", "%", {"value": 100 * late / runs}),
        *shares(told[_WARM_UP:], state),
        compared(f"hook, no server, {state}", alone["hook"], against="python -c pass", baseline=alone["python"]),
    ]


def shares(strategies: Sequence[str], state: str) -> list[Figure]:
    """How many questions got an answer at all, and how many of the answers came from words and meaning."""
    count = Counter(strategies)
    answered = len(strategies) - count["none"]
    return [
        Figure(f"questions that something was found for, {state}", "%", {"value": 100 * answered / len(strategies)}),
        Figure(f"of these by words and meaning, {state}", "%", {"value": 100 * count["hybrid"] / max(answered, 1)}),
    ]


@contextmanager
def running(words: list[str], env: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """This interpreter with the words, until the end of the block."""
    command = [sys.executable, *words]
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=env, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


@contextmanager
def timeless() -> Iterator[None]:
    """Nothing that computes."""
    yield


@contextmanager
def served(socket: Path, env: Mapping[str, str]) -> Iterator[None]:
    """The resident process, ready for clients."""
    with running(["-m", "recall", "serve", "--socket", str(socket)], env) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield


def _hook(question: str, session: str, space: Workspace, socket: Path, env: Mapping[str, str]) -> float:
    words = ["prompt", "--root", str(space.root), "--layout", "plain", "--socket", str(socket), "--no-start"]
    request = json.dumps({"prompt": question, "session_id": session}).encode()
    return _process(["-m", "recall.apps.hooks", *words], env, request)


def _process(words: list[str], env: Mapping[str, str], data: bytes = b"") -> float:
    command = [sys.executable, *words]
    return timed(
        lambda: subprocess.run(command, cwd=REPOSITORY, env=env, input=data, check=True, stdout=subprocess.DEVNULL)
    )


def _answer(question: str, session: str, space: Workspace, socket: Path) -> str:
    """The strategy that the resident process answered with in the time that a hook has for it."""
    with Line(str(socket), until=time.monotonic() + 10.0) as line:
        place = {"root": str(space.root), "project": str(space.root), "layout": "plain", "user_root": ""}
        timeout_ms = BUDGET_MS - _SPENT_MS
        reply = line.ask("prompt", **place, query=question, session=session, timeout_ms=timeout_ms)
    return str(reply["strategy"])


if __name__ == "__main__":
    main()
