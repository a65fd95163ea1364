"""What a plan does in one folder, step by step, in such a way that another process can end what was begun."""

import json
import math
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from recall.errors import TopicError
from recall.store import disk
from recall.store.files import confine, read_text
from recall.store.plan import Change, Folder, Item, Run, content, digest, place_of
from recall.store.seals import is_sealed, sealed
from recall.store.steps import Step

TRASH: Final = ".trash"
PENDING: Final = "pending.json"
RECORD: Final = "run.json"
PURGING: Final = "purging"

_STEM: Final = 40  # characters of a file's name that its backup keeps, for people
_VERSION: Final = 1
_LARGEST: Final = (
    256 * 1024 * 1024
)  # bytes of a journal; it says what was forgotten, of which a file has 16 MiB at most
_HASH: Final = re.compile(r"(?:[0-9a-f]{64})?")
_LATEST_NS: Final = 2**63
_PERMISSIONS: Final = 0o777
_LONGEST_NAME: Final = 255  # characters; no file system has longer ones


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one file.

    Attributes:
        path: place of the file below the memory folder.
        before: what it held; None for nothing.
        after: what it holds now; None when it went.
    """

    path: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What is known of the work on a folder that upkeep follows.

    Attributes:
        folder: the memory folder.
        done: the files that changed.
        place: folder of the run, for what upkeep replaces.
        time: of the run, seconds since the epoch.
    """

    folder: Folder
    done: tuple[Done, ...]
    place: Path
    time: float


Upkeep = Callable[[Aftermath], tuple[Mapping[str, Any], Sequence[str]]]
"""Brings MEMORY.md and the host's state in step after changes; never raises, and may be done twice.

Gives what the record of the run should say of it, and sentences about what could not be done.
"""


def no_upkeep(_aftermath: Aftermath) -> tuple[Mapping[str, Any], Sequence[str]]:
    """Leaves everything as it is."""
    return {}, ()


@dataclass(frozen=True, slots=True)
class Journal:
    """What a run does in one folder, whose lock is held."""

    folder: Folder
    run: Run
    steps: tuple[Step, ...]

    @property
    def _trash(self) -> Path:
        return self.folder.root / TRASH

    @property
    def place(self) -> Path:
        """Where the run lays out what is to come, and keeps what was."""
        return self._trash / self.run.id

    @property
    def _draft(self) -> Path:
        return self.place / "journal"

    def stage(self, changes: Mapping[str, Change]) -> None:
        """Lays out everything.

        Raises:
            OSError: there is no place for it; nothing has changed.
        """
        disk.make_folder(self.place, mode=0o700)
        for step in self.steps:
            step.stage(changes[step.path])
        disk.create(self._draft, [self._dumped(self.described())], mode=0o600)
        disk.flush_folder(self.place)
        disk.flush_folder(self._trash)

    def begin(self) -> None:
        """Gives the journal its name; from here on, the run will be done."""
        disk.rename(self._draft, self._trash / PENDING)
        disk.flush_folder(self._trash)

    def carry_out(self) -> list[str]:
        """Changes the files; gives the paths of those that somebody else changed at this moment."""
        skipped = [step.path for step in self.steps if not step.carry_out()]
        disk.flush_folder(self.place)
        return skipped

    def undo(self) -> list[OSError]:
        """Takes back what was done; gives why what is left could not be."""
        failed: list[OSError] = []
        for step in reversed(self.steps):
            try:
                step.undo()
            except OSError as error:
                failed.append(error)
        return failed

    def drop(self) -> None:
        """Forgets a run of which nothing is done."""
        disk.delete(self._trash / PENDING)
        disk.flush_folder(self._trash)
        disk.delete_folder(self.place)

    def end(self, skipped: Sequence[str], upkeep: Upkeep) -> Run:
        """Brings in step what hangs on the files, and writes the record of the run."""
        done = tuple(step.path for step in self.steps if step.path not in skipped)
        more, notes = upkeep(Aftermath(self.folder, self._done(done), self.place, self.run.time))
        run = replace(self.run, paths=done, skipped=tuple(skipped), notes=tuple(notes))
        record = {**self.described(), "skipped": list(skipped), **more}
        if not (self.place / RECORD).exists():  # else a stop came after it, and it knows more
            draft = self.place / "record"
            disk.delete(draft)
            disk.create(draft, [self._dumped(record)], mode=0o600)
            disk.rename(draft, self.place / RECORD)
        disk.flush_folder(self.place)
        disk.delete(self._trash / PENDING)
        disk.flush_folder(self._trash)
        return run

    def _done(self, done: Sequence[str]) -> tuple[Done, ...]:
        return tuple(
            Done(
                step.path,
                content(step.old) if step.before else None,
                content(step.target) if step.after else None,
            )
            for step in self.steps
            if step.path in done
        )

    def _dumped(self, record: Mapping[str, Any]) -> bytes:
        whole = sealed(record, self.folder.root, self.folder.key)
        return (json.dumps(whole, ensure_ascii=True, indent=2) + "\n").encode("ascii")

    def described(self) -> dict[str, Any]:
        """For the journal and the record."""
        return {
            "version": _VERSION,
            "run": self.run.id,
            "kind": self.run.kind,
            "time": self.run.time,
            "undoes": self.run.undoes,
            "purges": self.run.purges,
            "items": [{"id": item.id, "text": item.text} for item in self.run.items],
            "changes": [step.described() for step in self.steps],
        }


def journal_of(run: Run, folder: Folder, changes: Sequence[Change]) -> Journal:
    """What a run is going to do in a folder."""
    place = folder.root / TRASH / run.id
    steps = []
    # What removes comes last, so that no moment has less than before.
    for number, change in enumerate(sorted(changes, key=lambda change: change.after is None), 1):
        name = f"{number:03}-{PurePosixPath(change.path).name[:_STEM]}"
        target = place_of(folder, change.path)
        there = target.stat() if change.before else None
        mtime_ns, mode = (there.st_mtime_ns, stat.S_IMODE(there.st_mode)) if there else (0, 0)
        new, old = place / f"{name}.new", place / f"{name}.old"
        steps.append(Step(change.path, change.before, digest(change.after), mtime_ns, target, new, old, mode))
    return Journal(folder, run, tuple(steps))


def read_record(file: Path) -> Mapping[str, Any]:
    """What a journal or a record says.

    Raises:
        ValueError: it is a link, huge or no JSON.
        OSError: it is not there or cannot be read.
    """
    if file.is_symlink():
        raise TopicError("is a link; a journal is none", path=file)
    text, _ = read_text(file, max_bytes=_LARGEST)
    try:
        record = json.loads(text)
    except RecursionError as error:
        raise TopicError("is no journal", path=file) from error
    if not isinstance(record, dict):
        raise TopicError("is no journal", path=file)
    return record


def read_journal(folder: Folder, record: Mapping[str, Any]) -> Journal:
    """What a run has said that it does, in its journal or its record.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, OverflowError: it was not written by us.
        UnsafePathError: it names files outside the folder.
    """
    name, time = _name(record["run"]), float(record["time"])
    if not math.isfinite(time):
        raise ValueError("a run has a time")
    place = confine(name, folder.root / TRASH)
    items = tuple(Item(str(item["id"]), str(item["text"])) for item in record["items"])
    steps = tuple(_step(change, folder, place) for change in record["changes"])
    kind, undoes = str(record["kind"]), str(record.get("undoes", ""))
    run = Run(name, kind, time, items=items, undoes=undoes, purges=record.get("purges") is True)
    return Journal(folder, run, steps)


def is_ours(folder: Folder, record: Mapping[str, Any]) -> bool:
    """Whether this user's recall wrote the journal or the record, and nobody has changed it."""
    return is_sealed(record, folder.root, folder.key)


def _step(change: Mapping[str, Any], folder: Folder, place: Path) -> Step:
    new, old = (confine(_name(change[key]), place) for key in ("new", "old"))
    path, mtime_ns, mode = str(change["path"]), int(change["mtime_ns"]), int(change.get("mode", 0))
    before, after = str(change["before"]), str(change["after"])
    if any(len(part) > _LONGEST_NAME for part in PurePosixPath(path).parts):
        raise ValueError("no file has so long a name")
    if not (_HASH.fullmatch(before) and _HASH.fullmatch(after) and 0 <= mtime_ns < _LATEST_NS and new != old):
        raise ValueError("a change has two hashes, a time and two places for what it moves")
    return Step(path, before, after, mtime_ns, place_of(folder, path), new, old, mode & _PERMISSIONS)


def _name(told: object) -> str:
    """A name in a folder, which leads nowhere else."""
    if not isinstance(told, str) or PurePosixPath(told).name != told or told in {"", ".", ".."}:
        raise ValueError("a run and its copies have plain names")
    return told


def has_pending(root: Path) -> bool:
    """Whether a run or a purge in the folder was stopped before its end, or is going on."""
    with suppress(PermissionError):  # who may not look has none of his own there
        return any((root / TRASH / name).exists() for name in (PENDING, PURGING))
    return False
