"""What it costs to keep the index true: nothing changed, one file changed, everything new.

Nothing changed is compared with a plain walk that stats. For one changed file that walk is measured in every round and
subtracted, and so, as a second figure, is the look at the folder that the refresh itself took. The first index with
the real model is compared with the processor time that the model itself took in the same run. Sizes are those of the
files on disk.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from unittest.mock import patch

from bench.encoders import Metered, Standin
from bench.generate import edits
from bench.runner import Figure, arguments, compared, interleaved, record, summary, timed
from bench.workspace import Workspace, notes, workbench
from recall import Encoder
from recall.index import collection as index
from recall.index.collection import Collection
from recall.index.onnx import OnnxEncoder

P = ParamSpec("P")
T = TypeVar("T")


def main() -> None:
    """Measures every size and records it; sizes are compared with the first one."""
    parser = arguments(__doc__)
    parser.add_argument("--topics", type=int, action="append", help="1000, 10000 and 100000 unless given")
    parser.add_argument("--first", type=int, help="notes of the first index with the real model; 300")
    options = parser.parse_args()
    sizes = options.topics or ([300, 1000] if options.quick else [1000, 10_000, 100_000])
    repeats = 5 if options.quick else 15
    smallest: dict[str, float] = {}
    with workbench(options.work) as work:
        for count in sizes:
            space = notes(work, count)
            built = space.index()
            print(f"{count:,} topics: index brought up to date in {built}", flush=True)
            with closing(space.collection()) as collection:
                figures = unchanged(space, collection, repeats)
                figures += one_changed(space, collection, repeats, smallest, sizes[0])
                figures += index_size(space, collection)
            if count == sizes[0]:
                figures += after_edits(space)
            record("reindex", figures, topics=count, quick=options.quick)
        count = options.first or (50 if options.quick else 300)
        record("first_index", first_index(notes(work, count)), topics=count, quick=options.quick)


def unchanged(space: Workspace, collection: Collection, repeats: int) -> list[Figure]:
    """A refresh that finds nothing to do against os.walk and os.stat of every file."""
    cases: dict[str, Callable[[int], float | None]] = {
        "again": lambda _: timed(collection.sync_words),
        "new": lambda _: _first_refresh(space),
        "walk": lambda _: timed(lambda: _walk(space.root)),
    }
    found = {name: values[1:] for name, values in interleaved(cases, range(repeats + 1)).items()}
    return [
        compared(f"nothing changed, {what}", found[name], against="os.walk, os.stat", baseline=found["walk"])
        for name, what in (("again", "refreshed again"), ("new", "first refresh of a process"))
    ]


def _first_refresh(space: Workspace) -> float:
    with closing(space.collection()) as collection:
        return timed(collection.sync_words)


def _walk(root: Path) -> int:
    """Bytes of all files, by the fastest plain way there is."""
    files = (os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names)  # noqa: PTH118 - speed
    return sum(os.stat(file).st_size for file in files)  # noqa: PTH116 - paths of 100,000 files would cost more


def one_changed(
    space: Workspace, collection: Collection, repeats: int, smallest: dict[str, float], first: int
) -> list[Figure]:
    """One changed file: words, vectors and a new snapshot, with the walk taken apart.

    Args:
        space: the notes.
        collection: their index, up to date.
        repeats: how many files to change, one after the other; they get their old text back.
        smallest: medians at the smallest size; filled by the first call.
        first: the smallest size.
    """
    encoder = Standin()
    files = sorted(space.root.rglob("*.md"))
    chosen = [files[at * len(files) // (repeats + 1)] for at in range(repeats + 1)]
    before = {file: file.read_bytes() for file in chosen}
    looks: list[float] = []
    cases: dict[str, Callable[[Path], float | None]] = {
        "changed": lambda file: _after_edit(collection, encoder, file, looks),
        "walk": lambda _: timed(lambda: _walk(space.root)),
    }
    try:
        found = {name: values[1:] for name, values in interleaved(cases, chosen).items()}
        found["look"] = looks[1:]
    finally:
        for file, text in before.items():
            file.write_bytes(text)
        _brought_up(collection, encoder)
    return [
        _apart(found["changed"], found[name], f"one changed file, without {what}", smallest, first)
        for name, what in (("walk", "the walk"), ("look", "its own look at the folder"))
    ]


def _after_edit(collection: Collection, encoder: Encoder, file: Path, looks: list[float]) -> float:
    """Seconds of the whole; those of the look are added to the list."""
    with file.open("a", encoding="utf-8") as stream:
        stream.write(f"\n- changed at {time.time_ns()}\n")
    spent = [0.0]
    counted: dict[str, Any] = {name: _counted(getattr(index, name), spent) for name in ("look", "difference")}
    with patch.multiple(index, **counted):
        seconds = timed(lambda: _brought_up(collection, encoder))
    looks.append(spent[0])
    return seconds


def _counted(call: Callable[P, T], spent: list[float]) -> Callable[P, T]:
    """The call, which adds its seconds to the first of the list."""

    def counted(*given: P.args, **named: P.kwargs) -> T:
        start = time.perf_counter()
        try:
            return call(*given, **named)
        finally:
            spent[0] += time.perf_counter() - start

    return counted


def _brought_up(collection: Collection, encoder: Encoder) -> None:
    collection.sync_words()
    collection.sync_vectors(encoder)
    collection.snapshot()


def _apart(whole: list[float], part: list[float], name: str, smallest: dict[str, float], first: int) -> Figure:
    rest = summary([each - other for each, other in zip(whole, part, strict=True)], scale=1e3)
    if name not in smallest:
        smallest[name] = rest["p50"]
        return Figure(name, "ms", rest)
    return Figure(name, "ms", rest, f"{first:,} topics", {"p50": rest["p50"] / smallest[name]})


def after_edits(space: Workspace) -> list[Figure]:
    """One note of a hundred edited, one renamed, one deleted, in a copy: only the edited ones may be encoded again."""
    encoder = Metered(Standin())
    with tempfile.TemporaryDirectory(dir=space.root.parent) as name:
        copy = replace(space, root=Path(name) / "memory", cache=Path(name) / "cache")
        shutil.copytree(space.root, copy.root)
        with closing(copy.collection()) as collection:
            first = timed(lambda: _brought_up(collection, encoder))
            encoder.texts = 0
            edited = edits(copy.root)["edit"]
            again = timed(lambda: _brought_up(collection, encoder))
    ratio = {"value": again / first}
    return [
        Figure("1 % edited, 1 % renamed, 1 % deleted", "ms", {"value": 1e3 * again}, "the first index", ratio),
        Figure("chunks encoded for them", "an edited note", {"value": encoder.texts / len(edited)}),
    ]


def index_size(space: Workspace, collection: Collection) -> list[Figure]:
    """Bytes of derived data."""
    size = sum(file.stat().st_size for file in collection.folder.iterdir() if file.is_file())
    chunks = len(collection.snapshot().chunk_row)
    return [
        Figure(
            "index", "bytes a topic", {"value": size / space.count}, "the notes", {"value": size / space.text_bytes}
        ),
        Figure("chunks", "a topic", {"value": chunks / space.count}),
    ]


def first_index(space: Workspace) -> list[Figure]:
    """Processor seconds of a first index with the real model, and what of it the model took."""
    encoder = Metered(OnnxEncoder())
    encoder.encode_query("warm-up")
    with tempfile.TemporaryDirectory(dir=space.root.parent) as cache:
        start = time.process_time()
        with space.open(encoder, config=space.config(cache=Path(cache))) as memory:
            memory.reindex()
        spent = time.process_time() - start
    scale = 1000 / space.count
    ratio = {"value": spent / encoder.cpu_s}
    print(f"{encoder.texts} chunks of {space.count} notes encoded")
    return [Figure("first index", "CPU s per 1,000 notes", {"value": spent * scale}, "the bare encoder", ratio)]


if __name__ == "__main__":
    main()
