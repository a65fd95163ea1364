"""Whether `Prefetch.first` keeps its 100 ms while everything else goes wrong.

A process of its own makes the calls while a full re-index with the real model runs in the background, the encoding of
queries hangs at random, a FIFO lies among the notes and a host thread computes in pure Python. Beside every tenth call
it waits as long on a bare event: what that takes beyond 100 ms is the interpreter's and the system's, not ours.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.encoders import Hanging
from bench.generate import SEED, queries
from bench.runner import REPOSITORY, Figure, arguments, compared, record
from bench.workspace import Workspace, notes, workbench
from recall import Drop, EncoderError, LockedError, Memory, PrefetchEvent, RecallError
from recall.index.onnx import OnnxEncoder

_BUDGET_S: Final = 0.1
_HANG_SHARE: Final = 0.01
_LONGEST_HANG_S: Final = 3.0
_NOTHING_FITS: Final = f"none: {Drop.NO_RELEVANT_RESULTS}"


def main() -> None:
    """Runs the child, waits for its end and records both."""
    parser = arguments(__doc__)
    parser.add_argument("--calls", type=int, help="2000 unless given")
    parser.add_argument("--topics", type=int, help="300 unless given; all get their vectors from the real model first")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    calls = options.calls or (200 if options.quick else 2000)
    topics = options.topics or (100 if options.quick else 300)
    if options.child:
        print(json.dumps(measure(notes(options.work, topics, name="trouble"), calls)), flush=True)
        return
    with workbench(options.work) as work:
        figures = watched(work, topics, calls)
    record("prefetch", figures, topics=topics, quick=options.quick)


def watched(work: Path, topics: int, calls: int) -> list[Figure]:
    """What the child measured, and how long it took to be gone after its last line."""
    words = ["-m", "bench.prefetch", "--child", "--work", str(work), "--topics", str(topics), "--calls", str(calls)]
    with subprocess.Popen(
        [sys.executable, *words], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as child:
        assert child.stdout is not None
        found: dict[str, Any] = json.loads(child.stdout.readline())
        child.wait()
        gone_s = time.monotonic() - found["ended"]
    print(f"deliveries: {found['deliveries']}; encoder hung {found['hung']} times; re-indexes {found['reindexes']}")
    first, bare = found["first"], found["bare"]
    threads = {key: found[key] for key in ("before", "most", "after")}
    return [
        compared("first() in trouble", first, against="waiting 100 ms", baseline=bare, keys=("p99", "p99.9", "max")),
        Figure("first() without any answer", "%", {"value": 100 * found["late"] / calls}),
        Figure("quick search ended in time", "%", {"value": 100 * found["quick"] / calls}),
        Figure("threads of the library", "", threads),
        Figure("close()", "s", {"value": found["close"]}),
        Figure("end of main to end of process", "s", {"value": gone_s}),
    ]


def measure(space: Workspace, calls: int) -> dict[str, Any]:
    """Makes the calls; times in seconds."""
    with suppress(FileExistsError):
        os.mkfifo(space.root / "a-pipe.md")
    real = OnnxEncoder()
    with space.open(real) as memory:
        memory.reindex()
    encoder = Hanging(real, share=_HANG_SHARE, longest_s=_LONGEST_HANG_S, seed=SEED)
    first, bare = [], []
    deliveries: Counter[str] = Counter()
    quick: list[bool] = []
    memory = space.open(encoder, background=True, on_event=partial(_note_quick, quick))
    trouble = Trouble(memory)
    memory.recall("warm-up")
    memory.prefetch("warm-up").first()
    quick.clear()
    before = most = threading.active_count()
    trouble.start()
    for number, query in enumerate(queries(calls, among=space.count)):
        handle = memory.prefetch(query)
        start = time.perf_counter()
        delivery = handle.first(_BUDGET_S)
        first.append(time.perf_counter() - start)
        dropped = handle.close()
        deliveries[f"{delivery.phase} {delivery.recall.strategy}" if delivery else f"none: {dropped}"] += 1
        most = max(most, threading.active_count())
        if number % 10 == 0:
            start = time.perf_counter()
            threading.Event().wait(_BUDGET_S)
            bare.append(time.perf_counter() - start)
    after = threading.active_count() - trouble.threads
    start = time.perf_counter()
    memory.close()
    closed = time.perf_counter() - start
    return {
        "first": first,
        "bare": bare,
        "deliveries": dict(deliveries),
        "late": sum(number for kind, number in deliveries.items() if kind.startswith("none"))
        - deliveries[_NOTHING_FITS],
        "quick": sum(quick),
        "hung": encoder.hung,
        "reindexes": trouble.reindexes,
        "before": before,
        "most": most - trouble.threads,
        "after": after,
        "close": closed,
        "ended": time.monotonic(),
    }


def _note_quick(quick: list[bool], event: object) -> None:
    """Notes of each handle whether its quick search had ended before it."""
    if isinstance(event, PrefetchEvent) and event.terminal:
        quick.append(event.fast_s is not None)


class Trouble:
    """A full re-index again and again, and a thread of the host that computes; both end with the process."""

    threads: Final = 2

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.reindexes = 0

    def start(self) -> None:
        """Starts both."""
        for work in (self._reindex, _compute):
            threading.Thread(target=work, name=f"trouble-{work.__name__}", daemon=True).start()

    def _reindex(self) -> None:
        while True:
            try:
                self.reindexes += 1
                self._memory.reindex(full=True)
            except (LockedError, EncoderError):
                continue
            except RecallError:  # closed
                return


def _compute() -> None:
    total = 0
    while True:
        total = (total * 31 + 7) % 1_000_003


if __name__ == "__main__":
    main()
