"""What a plan does in one folder, step by step, in such a way that another process can end what was begun."""

import errno
import json
import math
import os
import re
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

TRASH: Final = ".trash"
PENDING: Final = "pending.json"
RECORD: Final = "run.json"

_STEM: Final = 40  # characters of a file's name that its backup keeps, for people
_VERSION: Final = 1
_LARGEST: Final = (
    256 * 1024 * 1024
)  # bytes of a journal; it says what was forgotten, of which a file has 16 MiB at most
_HASH: Final = re.compile(r"(?:[0-9a-f]{64})?")
_LATEST_NS: Final = 2**63
_LONGEST_NAME: Final = 255  # characters; no file system has longer ones
_NO_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}  # of some file systems


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
class Step:
    """One change on its way.

    Attributes:
        path: place of the file below the memory folder.
        before: hash of what the file must hold, "" when it must not be there.
        after: hash of what it is to hold, "" when it is to go.
        mtime_ns: modification time of what was there; 0 for nothing.
        target: the real file.
        new: where the new content waits.
        old: where the old content goes.
    """

    path: str
    before: str
    after: str
    mtime_ns: int
    target: Path
    new: Path
    old: Path

    def stage(self, change: Change) -> None:
        """Lays out all that the change needs, flushed; changes no memory file."""
        if change.after is None:
            return
        mode = 0o666
        if self.before:
            mode = self.target.stat().st_mode & 0o777
            disk.create(self.old, [self.target.read_bytes()], mode=0o600)
        disk.make_folder(self.target.parent)
        disk.create(self.new, [change.after], mode=mode)
        if self.before:
            self.new.chmod(mode)  # whatever the umask says
        if change.mtime_ns is not None:
            os.utime(self.new, ns=(change.mtime_ns, change.mtime_ns))

    def carry_out(self) -> bool:
        """Changes the file; False when somebody else changed it at this moment, and it was left alone.

        May be done again after a stop, also where a loss of power left both names of a file that was renamed.
        """
        if not self.after:
            return self._remove()
        if not self.new.exists():
            return True
        now = _seen(self.target)
        if now == self.after:
            disk.delete(self.new)
            return True
        if now != self.before or _seen(self.new) != self.after:
            return False
        return self._exchange() if self.before else self._put()

    def _exchange(self) -> bool:
        disk.rename(self.new, self.target)
        disk.flush_folder(self.target.parent)
        return True

    def _put(self) -> bool:
        try:
            disk.link(self.new, self.target)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return self._exchange()
        disk.flush_folder(self.target.parent)
        disk.delete(self.new)
        return True

    def _remove(self) -> bool:
        if not self.old.exists():
            try:
                disk.rename(self.target, self.old)  # whatever it holds by now, it is kept
            except FileNotFoundError:
                return True
            if _seen(self.old) != self.before:
                disk.rename(self.old, self.target)
                return False
            disk.flush_folder(self.old.parent)
        elif self.target.exists():
            if not self.before == _seen(self.target) == _seen(self.old):
                return False
            disk.delete(self.target)
        disk.flush_folder(self.target.parent)
        return True

    def undo(self) -> None:
        """Takes back what was done, unless somebody else changed the file since."""
        if _seen(self.target) != self.after:
            return
        if not self.before:
            disk.delete(self.target)
        elif self.old.exists():
            disk.rename(self.old, self.target)

    def described(self) -> dict[str, Any]:
        """For the journal and the record."""
        return {
            "path": self.path,
            "before": self.before,
            "after": self.after,
            "mtime_ns": self.mtime_ns,
            "old": self.old.name,
            "new": self.new.name,
        }


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
    def _place(self) -> Path:
        return self._trash / self.run.id

    def stage(self, changes: Mapping[str, Change]) -> None:
        """Lays out everything; once the journal has its name, the run will be done.

        Raises:
            OSError: there is no place for it; nothing has changed.
        """
        disk.make_folder(self._place, mode=0o700)
        try:
            for step in self.steps:
                step.stage(changes[step.path])
            draft = self._place / "journal"
            disk.create(draft, [self._dumped(self.described())], mode=0o600)
            disk.flush_folder(self._place)
            disk.flush_folder(self._trash)
            disk.rename(draft, self._trash / PENDING)
        except BaseException:
            disk.delete_folder(self._place)
            raise
        disk.flush_folder(self._trash)

    def carry_out(self) -> list[str]:
        """Changes the files; gives the paths of those that somebody else changed at this moment."""
        skipped = [step.path for step in self.steps if not step.carry_out()]
        disk.flush_folder(self._place)
        return skipped

    def take_back(self) -> None:
        """Undoes what was done, and forgets the run."""
        for step in reversed(self.steps):
            with suppress(OSError):
                step.undo()
        disk.delete(self._trash / PENDING)
        disk.delete_folder(self._place)

    def end(self, skipped: Sequence[str], upkeep: Upkeep) -> Run:
        """Brings in step what hangs on the files, and writes the record of the run."""
        done = tuple(step.path for step in self.steps if step.path not in skipped)
        more, notes = upkeep(Aftermath(self.folder, self._done(done), self._place, self.run.time))
        run = replace(self.run, paths=done, skipped=tuple(skipped), notes=tuple(notes))
        record = {**self.described(), "skipped": list(skipped), **more}
        with suppress(FileExistsError):
            disk.create(self._place / RECORD, [self._dumped(record)], mode=0o600)
        disk.flush_folder(self._place)
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
        mtime_ns = target.stat().st_mtime_ns if change.before else 0
        after = digest(change.after)
        steps.append(
            Step(change.path, change.before, after, mtime_ns, target, place / f"{name}.new", place / f"{name}.old")
        )
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
    return Journal(
        folder, Run(name, str(record["kind"]), time, items=items, undoes=str(record.get("undoes", ""))), steps
    )


def is_ours(folder: Folder, record: Mapping[str, Any]) -> bool:
    """Whether this user's recall wrote the journal or the record, and nobody has changed it."""
    return is_sealed(record, folder.root, folder.key)


def _step(change: Mapping[str, Any], folder: Folder, place: Path) -> Step:
    new, old = (confine(_name(change[key]), place) for key in ("new", "old"))
    path, mtime_ns = str(change["path"]), int(change["mtime_ns"])
    before, after = str(change["before"]), str(change["after"])
    if any(len(part) > _LONGEST_NAME for part in PurePosixPath(path).parts):
        raise ValueError("no file has so long a name")
    if not (_HASH.fullmatch(before) and _HASH.fullmatch(after) and 0 <= mtime_ns < _LATEST_NS and new != old):
        raise ValueError("a change has two hashes, a time and two places for what it moves")
    return Step(path, before, after, mtime_ns, place_of(folder, path), new, old)


def _name(told: object) -> str:
    """A name in a folder, which leads nowhere else."""
    if not isinstance(told, str) or PurePosixPath(told).name != told or told in {"", ".", ".."}:
        raise ValueError("a run and its copies have plain names")
    return told


def _seen(file: Path) -> str:
    """The hash of what a file holds, "" for no file; no hash at all for a folder, which is none of ours."""
    try:
        return digest(content(file))
    except (IsADirectoryError, NotADirectoryError):
        return "a folder"


def has_pending(root: Path) -> bool:
    """Whether a run in the folder was stopped before its end, or is going on."""
    return os.path.exists(root / TRASH / PENDING)  # noqa: PTH110 - which is no error where one may not look
