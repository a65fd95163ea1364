"""What it costs to change a memory: one fact remembered, one forgotten, and that undone.

Compared with the least that a careful host does for the same: the file of the fact and MEMORY.md written beside and put
in place, each flushed. On a copy of the generated notes that is indexed, with vectors of the stand-in.
"""

import os
import secrets
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from bench.encoders import Standin
from bench.runner import Figure, arguments, compared, record, timed
from bench.workspace import Workspace, notes, workbench
from recall import Memory, Run


def main() -> None:
    """Measures every size and records it."""
    parser = arguments(__doc__)
    parser.add_argument("--topics", type=int, action="append", help="100, 1000 and 10000 unless given")
    options = parser.parse_args()
    sizes = options.topics or ([100] if options.quick else [100, 1000, 10_000])
    with workbench(options.work) as work:
        for count in sizes:
            record(
                "writing", changes(notes(work, count), 5 if options.quick else 30), topics=count, quick=options.quick
            )


def changes(space: Workspace, repeats: int) -> list[Figure]:
    """Milliseconds of each kind of change, beside the plainest careful way to write a fact down."""
    with tempfile.TemporaryDirectory(dir=space.root.parent) as name:
        copy = replace(space, root=Path(name) / "memory", cache=Path(name) / "cache")
        shutil.copytree(space.root, copy.root)
        (plain := Path(name) / "plain").mkdir()
        with copy.open(Standin()) as memory:
            memory.reindex()
            memory.remember("A first fact, so that the index and MEMORY.md are there", type="project")
            shutil.copy(copy.root / "MEMORY.md", plain / "MEMORY.md")
            rounds = [_round(memory, plain, number) for number in range(repeats + 1)][1:]
    found = {name: [each[name] for each in rounds] for name in rounds[0]}
    return [
        compared(f"one fact: {name}", found[name], against="two files written and flushed", baseline=found["plain"])
        for name in ("remember", "forget", "restore")
    ]


def _round(memory: Memory, plain: Path, number: int) -> dict[str, float]:
    """Seconds of each step of one fact's life, and of writing it down plainly."""
    fact, runs = _fact(number), list[Run]()
    return {
        "plain": timed(lambda: _plainly(plain, fact)),
        "remember": timed(lambda: memory.remember(fact, type="project")),
        "forget": timed(lambda: runs.append(memory.forget(fact).apply())),
        "restore": timed(lambda: memory.restore(runs[-1]).apply()),
    }


def _fact(number: int) -> str:
    word = f"q{number:04}z{'abcdefgh'[number % 8]}"
    return f"The {word} service listens on port {10_000 + number} and is owned by team {word[::-1]}"


def _plainly(folder: Path, fact: str) -> None:
    """A fact in a file of its own and a line in MEMORY.md, each whole after a loss of power."""
    name = f"{secrets.token_hex(8)}.md"
    _write(folder / name, f"---\nname: {fact}\ndescription: {fact}\ntype: project\n---\n\n{fact}\n")
    index = folder / "MEMORY.md"
    _write(index, index.read_text(encoding="utf-8") + f"- [{fact}]({name})\n")


def _write(file: Path, text: str) -> None:
    beside = file.with_suffix(".tmp")
    with beside.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    beside.replace(file)
    descriptor = os.open(file.parent, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


if __name__ == "__main__":
    main()
