"""Folders of generated notes with their indexes; made once, then used again."""

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.encoders import Standin
from bench.generate import SEED, write
from recall import Config, Encoder, Memory, Scope
from recall.config import load
from recall.index.collection import Collection

# Raise it when the generator changes.
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Workspace:
    """Generated notes and where their derived data goes.

    Attributes:
        count: number of notes.
        root: the memory folder.
        cache: folder of derived data.
        text_bytes: size of the notes.
    """

    count: int
    root: Path
    cache: Path
    text_bytes: int

    def config(self, *, model: str = "onnx", cache: Path | None = None, **arguments: object) -> Config:
        """Settings with this cache; further ones as `search__k=3`."""
        given = {key.replace("__", "."): value for key, value in arguments.items()}
        return load(arguments={"index.cache": str(cache or self.cache), "encoder.model": model, **given})

    def collection(self, *, cache: Path | None = None) -> Collection:
        """The index alone."""
        return Collection(self.root, Scope.PROJECT, cache=cache or self.cache, max_file_bytes=1 << 24)

    def open(
        self,
        encoder: Encoder | None = None,
        *,
        config: Config | None = None,
        background: bool = False,
        on_event: Callable[[object], object] | None = None,
    ) -> Memory:
        """A memory over the notes and nothing else."""
        return Memory.open(
            self.root,
            layout="plain",
            config=config or self.config(),
            encoder=encoder,
            background=background,
            on_event=on_event,
        )

    def index(self) -> dict[str, float]:
        """Brings the index up to date with stand-in vectors; gives seconds of `words` and `vectors`."""
        collection = self.collection()
        try:
            start = time.perf_counter()
            collection.sync_words()
            middle = time.perf_counter()
            collection.sync_vectors(Standin())
            return {"words": middle - start, "vectors": time.perf_counter() - middle}
        finally:
            collection.close()


@contextmanager
def workbench(work: Path | None) -> Iterator[Path]:
    """The folder to work in; a temporary one when none is named."""
    if work:
        work.mkdir(parents=True, exist_ok=True)
        yield work.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="recall-bench-") as name:
        yield Path(name).resolve()


def notes(work: Path, count: int, *, name: str = "notes") -> Workspace:
    """The generated notes in the work folder, written now unless they are there, whole and of this seed."""
    folder = work / f"{name}-{count}"
    stamp = folder / "stamp.json"
    wanted = {"version": _VERSION, "seed": SEED, "count": count}
    found = json.loads(stamp.read_text(encoding="utf-8")) if stamp.exists() else {}
    if {key: found.get(key) for key in wanted} != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        size = write(folder / "memory", count)
        found = {**wanted, "bytes": size}
        stamp.write_text(json.dumps(found), encoding="utf-8")
    return Workspace(count, folder / "memory", folder / "cache", int(found["bytes"]))
