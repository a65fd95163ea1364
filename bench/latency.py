"""How long an answer takes: cold, by words, and by words and meaning with query encoding.

Warm times are the searches alone, as `Recall.duration_s` tells them; the look at the folder before them is measured in
bench.reindex, and what the host waits for in bench.prefetch. Cold times are whole processes, interpreter included.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.baselines import FullText, Scan
from bench.encoders import Standin
from bench.generate import queries
from bench.probe import QUERY
from bench.runner import REPOSITORY, Figure, arguments, compared, interleaved, record, timed
from bench.workspace import Workspace, notes, workbench
from recall import Memory
from recall.search.types import Filter

_K = 5
_BARE = "python, sqlite3, json"
_WARM_UP = 20


def main() -> None:
    """Measures every size and records it."""
    parser = arguments(__doc__)
    parser.add_argument("--topics", type=int, action="append", help="1000, 10000 and 100000 unless given")
    parser.add_argument("--queries", type=int, help="warm queries a size; 1000")
    parser.add_argument("--processes", type=int, help="cold processes of each kind; 20")
    options = parser.parse_args()
    with workbench(options.work) as work:
        for count in options.topics or ([1000] if options.quick else [1000, 10_000, 100_000]):
            space = notes(work, count)
            print(f"{count:,} topics: index brought up to date in {space.index()}", flush=True)
            asked = options.queries or (200 if options.quick else 1000)
            figures = warm(space, asked) + cold(space, options.processes or (3 if options.quick else 20))
            record("latency", figures, topics=count, quick=options.quick)


def warm(space: Workspace, asked: int) -> list[Figure]:
    """Queries that differ, each answered by every candidate and baseline in turn."""
    encoder = Standin()
    collection = space.collection()
    scan = Scan(collection.snapshot().rows, encoder)
    collection.close()
    full_text = FullText(space.root, space.root.parent / "fts5.db")
    with space.open(config=space.config(model="off")) as lexical, space.open(encoder) as hybrid:
        for memory in (lexical, hybrid):
            memory.recall("warm-up")
            memory._keeper.look = _no_look  # type: ignore[method-assign]  # takes longer than what is measured
        cases: dict[str, Callable[[str], float | None]] = {
            "words": partial(_search, lexical),
            "quick": lambda query: hybrid._answers.quick(query, Filter()).duration_s,
            "fts5": lambda query: timed(lambda: full_text.search(query, _K)),
            "refined": partial(_search, hybrid),
            "scan": lambda query: timed(lambda: scan.search(query, _K)),
            "encoding": lambda query: timed(lambda: encoder.encode_query(query)),
        }
        found = interleaved(cases, queries(asked + _WARM_UP, among=space.count))
    full_text.close()
    seconds = {name: values[_WARM_UP:] for name, values in found.items()}
    return [
        compared("words, warm", seconds["words"], against="FTS5", baseline=seconds["fts5"]),
        compared("quick answer beside a model, warm", seconds["quick"], against="FTS5", baseline=seconds["fts5"]),
        compared("words and meaning, warm", seconds["refined"], against="numpy scan", baseline=seconds["scan"]),
        compared("words and meaning, warm", seconds["refined"], against="encoding alone", baseline=seconds["encoding"]),
    ]


def _no_look(**_: object) -> str:
    return ""


def _search(memory: Memory, query: str) -> float:
    return memory.recall(query, k=_K).duration_s


def cold(space: Workspace, repeats: int) -> list[Figure]:
    """Whole processes from spawn to exit that open the memory and give one answer."""
    settings = ("--set", f"index.cache={space.cache}", "--set", "encoder.model=off")
    search = ("-m", "recall", "search", QUERY, "--root", str(space.root), *settings)
    _process(*search)  # the files that the processes load are compiled, and the index is in step
    cases: dict[str, Callable[[int], float | None]] = {
        "search": lambda _: _process(*search),
        "words": lambda _: _process("-m", "bench.probe", "words", str(space.root), str(space.cache)),
        "recall": lambda _: _process("-m", "bench.probe", "recall", str(space.root), str(space.cache)),
        "model": lambda _: _process("-m", "bench.probe", "model", str(space.root), str(space.cache)),
        "python": lambda _: _process("-c", "import sqlite3, json"),
    }
    found = interleaved(cases, range(repeats))
    return [
        compared("recall search, cold process", found["search"], against=_BARE, baseline=found["python"]),
        compared("words, cold process", found["words"], against=_BARE, baseline=found["python"]),
        compared("full answer, cold process", found["recall"], against="loading the model", baseline=found["model"]),
    ]


def _process(*words: str, cwd: Path = REPOSITORY) -> float:
    command = [sys.executable, *words]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return timed(lambda: subprocess.run(command, cwd=cwd, env=env, check=True, stdout=subprocess.DEVNULL))


if __name__ == "__main__":
    main()
