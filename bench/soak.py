"""Two processes search, edit and re-index one folder at once; every answer is checked, and the last ones by a rebuild.

    python -m bench.soak --seconds 60           hashing vectors: as many changes a second as the disk takes
    python -m bench.soak --seconds 60 --onnx    the real model

Each process changes notes of its own, so that it knows what there has to be found: its own last words at once, nothing
that it deleted, and the notes that nobody touches. Only an answer that says itself that the index is behind may fall
short. Now and then it brings the index up to date, throws it away, or closes and opens the memory. A third process
rebuilds the index and is killed at it, again and again.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path
from random import Random
from typing import Final

from bench.runner import REPOSITORY
from bench.workspace import workbench
from recall import Config, Memory, Recall
from recall.config import load

NAMES: Final = ("left", "right")
VICTIM: Final = "victim"
_OWN: Final = 12
_QUERIES: Final = ("thing3 thing8", "what does 主题5号 say", "lastword", "left note", "right note")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a soak did and whether it went well.

    Attributes:
        done: how often each thing was done, over both processes.
        wrong: what went wrong, in sentences; empty when all went well.
    """

    done: Counter[str]
    wrong: tuple[str, ...]


def soak(work: Path, *, topics: int, seconds: float | None = None, rounds: int | None = None, model: str) -> Outcome:
    """Lets two processes at a new folder for so long, or for so many rounds each."""
    root = work / "memory"
    root.mkdir(parents=True)
    for number in range(topics):
        (root / f"base{number}.md").write_text(f"note thing{number} of 主题{number}号\n", encoding="utf-8")
    limits = [f"--{name}={value}" for name, value in (("seconds", seconds), ("rounds", rounds)) if value is not None]
    options = [f"--work={work}", f"--topics={topics}", *(["--onnx"] if model == "onnx" else [])]
    workers = [_started(name, *options, *limits) for name in NAMES]
    killed, wrong = _kill_some(options, until_s=seconds, most=2 if seconds is None else 10_000)
    reports = [_line(worker) for worker in workers]  # all edits are made; now both say what they find
    ends = [worker.communicate("go\n") for worker in workers]
    expected = _answers(root, work / "fresh", model)
    done: Counter[str] = Counter({"killed while it rebuilt": killed})
    for name, worker, report, (out, errors) in zip(NAMES, workers, reports, ends, strict=True):
        done.update(report.get("done", {}))
        wrong += [f"{name}: {text}" for text in report.get("wrong", ())]
        if worker.returncode or errors:
            wrong.append(f"{name}: ended with {worker.returncode}: {errors}")
        elif not _same(json.loads(out), expected):
            wrong.append(f"{name}: other answers than a rebuild: {out} instead of {expected}")
    return Outcome(done, tuple(wrong))


def _started(name: str, *options: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "bench.soak", f"--worker={name}", *options],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONUTF8": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def _kill_some(options: list[str], *, until_s: float | None, most: int) -> tuple[int, list[str]]:
    """Has a third process rebuild the index and kills it at any moment; gives how often, and what it ended of else."""
    rng, until, killed = Random(1), time.monotonic() + (until_s or float("inf")), 0
    wrong: list[str] = []
    while killed < most and time.monotonic() < until:
        with _started(VICTIM, *options) as victim:
            assert victim.stdout
            assert victim.stderr
            victim.stdout.readline()  # it has begun
            with suppress(subprocess.TimeoutExpired):
                victim.wait(rng.uniform(0.0, 0.5))
                wrong.append(f"{VICTIM}: ended by itself: {victim.stderr.read()}")
            victim.kill()
        killed += 1
    return killed, wrong


def _line(worker: "subprocess.Popen[str]") -> dict[str, dict[str, int]]:
    assert worker.stdout
    line = worker.stdout.readline()
    return json.loads(line) if line.strip() else {}


def _config(cache: Path, model: str) -> Config:
    return load(
        arguments={"index.cache": str(cache), "encoder.model": model, "search.k": 200, "search.floor": -10.0},
    )


def _answers(root: Path, cache: Path, model: str) -> list[list[tuple[str, float]]]:
    with Memory.open(root, layout="plain", config=_config(cache, model), background=False) as memory:
        memory.reindex()
        return [sorted((hit.topic.id, hit.score) for hit in memory.recall(query).hits) for query in _QUERIES]


def _same(found: list[list[list[str | float]]], expected: list[list[tuple[str, float]]]) -> bool:
    return all(
        [name for name, _ in one] == [name for name, _ in other]
        and all(abs(float(score) - float(wanted)) <= 1e-6 for (_, score), (_, wanted) in zip(one, other, strict=True))
        for one, other in zip(found, expected, strict=True)
    )


@dataclass
class _Worker:
    """One of the two processes."""

    name: str
    root: Path
    topics: int
    open: Callable[[], Memory]
    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = Random(self.name)
        self._words: dict[str, str] = {}  # of each own note, the word that it alone holds

    def run(self, rounds: Iterator[int]) -> None:
        memory = self.open()
        for number in rounds:
            self._edit(number)
            self._ask(memory)
            if number % 9 == 4:
                memory.reindex(full=number % 27 == 4)
                self.done["rebuilt" if number % 27 == 4 else "brought up to date"] += 1
            if number % 31 == 30:
                memory.close()
                memory = self.open()
                self.done["opened anew"] += 1
        memory.close()

    def _edit(self, number: int) -> None:
        path = f"{self.name}{self._rng.randrange(_OWN)}.md"
        deed = self._rng.choice(("write", "write", "write", "move", "delete"))
        if deed == "write" or path not in self._words:
            deed = "write"
            self._words[path] = f"{self.name}word{number}x"
            (self.root / path).write_text(f"{self.name} note with the lastword {self._words[path]}\n", encoding="utf-8")
        elif deed == "move":
            new = f"{self.name}moved{number}.md"
            self._words[new] = self._words.pop(path)
            (self.root / path).rename(self.root / new)
        else:
            del self._words[path]
            (self.root / path).unlink()
        self.done[deed] += 1

    def _ask(self, memory: Memory) -> None:
        path = self._rng.choice(sorted(self._words)) if self._words else ""
        if path:
            self._check(memory.recall(self._words[path]), path)
        base = self._rng.randrange(self.topics)
        self._check(memory.recall(f"thing{base} 主题{base}号"), f"base{base}.md")

    def _check(self, found: Recall, path: str) -> None:
        """The note is found, and first; nothing of one's own that is not there (any more) is."""
        self.done["asked"] += 1
        ids = [hit.topic.id for hit in found.hits]
        ghosts = [name for name in ids if name.startswith(self.name) and name not in self._words]
        if ids[:1] == [path] and not ghosts:
            return
        if found.coverage.note:
            self.done["asked while the index was behind, and told so"] += 1
        else:
            self.wrong.append(f"{found.query!r} found {ids[:3]}, not {path}; not there: {ghosts}; {found.coverage}")


def _work(options: argparse.Namespace, model: str) -> None:
    root, cache = options.work / "memory", options.work / "cache"
    until = time.monotonic() + options.seconds if options.rounds is None else float("inf")
    rounds = takewhile(lambda _: time.monotonic() < until, count() if options.rounds is None else range(options.rounds))

    def opened() -> Memory:
        background = options.worker == NAMES[0]
        return Memory.open(root, layout="plain", config=_config(cache, model), background=background)

    if options.worker == VICTIM:
        with opened() as memory:
            print("begun", flush=True)
            while True:
                memory.reindex(full=True)
    worker = _Worker(options.worker, root, options.topics, opened)
    worker.run(rounds)
    print(json.dumps({"done": worker.done, "wrong": worker.wrong}), flush=True)
    sys.stdin.readline()
    print(json.dumps(_answers(root, cache, model)), flush=True)


def main() -> None:
    """Runs both processes, or, started by itself, is one of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, help="of each process, in place of the seconds")
    parser.add_argument("--topics", type=int, default=60, help="that nobody touches; 60")
    parser.add_argument("--onnx", action="store_true", help="vectors by the real model")
    parser.add_argument("--work", type=Path, help="an empty folder; a temporary one unless given")
    parser.add_argument("--worker", choices=(*NAMES, VICTIM), help=argparse.SUPPRESS)
    options = parser.parse_args()
    model = "onnx" if options.onnx else "hashing"
    if options.worker:
        _work(options, model)
        return
    with workbench(options.work) as work:
        outcome = soak(work, topics=options.topics, seconds=options.seconds, rounds=options.rounds, model=model)
    for what, times in outcome.done.most_common():
        print(f"{times:>8,}  {what}")
    for text in outcome.wrong:
        print(f"wrong: {text}")
    print("all well" if not outcome.wrong else f"{len(outcome.wrong)} wrong")
    raise SystemExit(bool(outcome.wrong))


if __name__ == "__main__":
    main()
