"""What would change in memory files, as values: the one form in which forget, remember, dream and cleanup say it.

A plan names each file with the hash of what it must hold; `store.applying` does what it says.

Sources: DESIGN sections 2 and 4.7, deviations V11, V12, V22.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path, PurePosixPath

from recall.errors import UnsafePathError
from recall.store.files import confine
from recall.store.seals import Key
from recall.store.topics import Scope


class IndexMode(StrEnum):
    """Who owns MEMORY.md (DESIGN section 4.4)."""

    GENERATED = "generated"
    CURATED = "curated"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Folder:
    """A memory folder that may be written.

    Attributes:
        root: the folder; made when missing.
        scope: whose memory it is.
        index: who owns its MEMORY.md.
        meta: the host's meta.json, None where the host has none.
        key: the user's secret, or the folder where it lies: by it his own journals are known (`store.seals`). Without
            one, only what this process has begun is believed.
    """

    root: Path
    scope: Scope = Scope.PROJECT
    index: IndexMode = IndexMode.CURATED
    meta: Path | None = None
    key: Key = field(default=Path(), repr=False)


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of one file.

    Attributes:
        folder: the memory folder.
        path: place of the file below it, with `/`.
        before: SHA-256 of the bytes that it must hold, in hex; "" when it must not be there.
        after: the bytes that it is to hold; None when it is to go.
        mtime_ns: modification time to give it, in ns since the epoch; None for the present.
        mode: permission bits of a new file, None for the usual ones; what is there keeps its own.
    """

    folder: Folder
    path: str
    before: str
    after: bytes | None
    mtime_ns: int | None = None
    mode: int | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a plan is about, as people know it.

    Attributes:
        id: of the topic or entry.
        text: what it says.
    """

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Run:
    """A plan that was applied.

    Attributes:
        id: name of its folder in `.trash`; "" when there was nothing to do.
        kind: what it was: remember, forget, edit, restore ...
        time: when, seconds since the epoch.
        paths: the files that were changed, below their folders.
        skipped: files that somebody else changed at the same moment, and that were left as they are.
        notes: what else could not be done, in sentences.
        items: what it was about.
        undoes: id of the run that it undid; "" for none.
        purges: whether no copy of what it removed is to be kept.
    """

    id: str
    kind: str
    time: float
    paths: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()
    undoes: str = ""
    purges: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What would change. Nothing has been done yet.

    Attributes:
        kind: what it is: remember, forget, edit, restore ...
        changes: each file once.
        items: what it is about, for people.
        notes: what the reader should know before it is applied.
        undoes: id of the run that it undoes; "" for none.
        purges: whether no copy of what it removes is to be kept; `apply` says so.
        is_guess: whether what it is about was chosen by likeness, so that somebody should look before it is done.
    """

    kind: str
    changes: tuple[Change, ...]
    items: tuple[Item, ...] = ()
    notes: tuple[str, ...] = ()
    undoes: str = ""
    purges: bool = False
    is_guess: bool = False
    _carry_out: "Callable[[Plan, bool], Run] | None" = field(default=None, repr=False, compare=False)

    def __bool__(self) -> bool:
        """Whether anything would change."""
        return bool(self.changes)

    def apply(self, *, purge: bool = False) -> Run:
        """Does it.

        Args:
            purge: keep no copy of what is removed, here or anywhere (`Memory.forget`).

        Raises:
            StalePlanError: a file changed since the plan was made; nothing was done.
            LockedError: another process keeps writing.
            OSError: a folder cannot be written; nothing was done.
        """
        if self._carry_out is not None:
            return self._carry_out(self, purge)
        if purge:
            raise ValueError("only a plan that a Memory made can be purged")
        from recall.store.applying import apply  # which imports this module

        return apply(self, now=time.time())


def joined(first: Plan, second: Plan) -> Plan:
    """The first plan with what the second one does as well."""
    return replace(
        first,
        changes=first.changes + second.changes,
        items=first.items + second.items,
        notes=first.notes + second.notes,
    )


def digest(data: bytes | None) -> str:
    """SHA-256 in hex of what a file holds; "" for no file."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def read_bytes(folder: Folder, path: str) -> bytes | None:
    """What the file holds, None when there is none.

    Raises:
        UnsafePathError: the path leads out of the folder.
        OSError: it cannot be read, or is no file.
    """
    return content(place_of(folder, path))


def content(file: Path) -> bytes | None:
    """What the file holds, None when there is none."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def place_of(folder: Folder, path: str) -> Path:
    """The real place of a memory file.

    Raises:
        UnsafePathError: the path leads out of the folder or into a hidden one, or names no Markdown file.
    """
    pure = PurePosixPath(path)
    if any(part.startswith(".") for part in pure.parts) or pure.suffix.lower() not in {".md", ".markdown"}:
        raise UnsafePathError(path, folder.root)
    return confine(path, folder.root)


def planned(folder: Folder, path: str, after: bytes | None) -> Change:
    """The change of a file from what it holds now."""
    return Change(folder, path, digest(read_bytes(folder, path)), after)
