"""What a disk may hold after a stop or a loss of power, step by step, on a file system that promises what ext4 does.

A tape follows the steps that go through `recall.store.disk` and the commits of SQLite. After each of them the power may
go. Kept is what was flushed. Of what was not: names that came or went are there up to any point of their order, or all
but one of them; a file's content is the old one, the new one or a torn one; of the write-ahead log any commit may be
the last one, since SQLite finds the end of it by checksums. SQLite's own promises are taken for granted: its main file
changes only at a checkpoint, which flushes the log first and the file afterwards; a new log is flushed with its folder
at its first commit.
"""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from recall.index.catalog import Catalog
from recall.index.folder import CATALOG_FILE
from recall.store import disk
from recall.store.disk import Step

LOG = f"{CATALOG_FILE}-wal"
LOG_HEADER = 32

State = Mapping[str, bytes | None]
"""Files by their path below the base, folders as None."""

Names = Mapping[str, int]
"""Number of the file behind each path."""

Change = Mapping[str, int | None]
"""Names that came or changed, with the file's number, or went."""


@dataclass(frozen=True)
class Moment:
    """The disk after one step.

    Attributes:
        step: what was done, for messages.
        names: what was flushed of the names.
        changes: what happened to names since, in order.
        contents: of each file, as processes see it; None of folders.
        older: contents that may still be on the disk instead of the last one.
    """

    step: str
    names: Names
    changes: tuple[Change, ...]
    contents: Mapping[int, bytes | None]
    older: Mapping[int, tuple[bytes, ...]]

    def stopped(self) -> State:
        """What is there when only the process ends."""
        return self._state(self.changes, self.contents)

    def without_power(self) -> Iterator[State]:
        """Everything that may be there after a loss of power; the same state may come several times.

        Torn files are combined with the extremes of the rest, all of it lost and all of it there.
        """
        orders = [self.changes[:end] for end in range(len(self.changes) + 1)]
        orders += [self.changes[:at] + self.changes[at + 1 :] for at in range(len(self.changes)) if self._ours(at)]
        logs = self._logs()
        for changes in orders:
            yield from (self._state(changes, {**self.contents, **log}) for log in logs)
        for changes in (self.changes, ()):
            for log in (logs[0], logs[-1]):
                yield from (self._state(changes, {**self.contents, **log, **torn}) for torn in self._torn())

    def _ours(self, at: int) -> bool:
        """Whether no file of SQLite is concerned: it relies on the order."""
        return not any(CATALOG_FILE in name for name in self.changes[at])

    def _logs(self) -> list[Mapping[int, bytes]]:
        """All logs as they are, one at a time as it may still be, and all at their shortest."""
        logs = {number: olds for number, olds in self.older.items() if self._is_log(number)}
        one = [{number: old} for number, olds in logs.items() for old in reversed(olds)]
        return [{}, *one, {number: olds[0] for number, olds in logs.items()}]

    def _torn(self) -> Iterator[Mapping[int, bytes]]:
        """One other file at a time as it may be."""
        for number, olds in self.older.items():
            for old in () if self._is_log(number) else olds:
                new = self.contents[number] or b""
                same = _same(old, new)  # of what was not written, nothing is lost
                rest = len(new) - same
                yield {number: old}
                yield {number: new[: same + rest // 2]}
                yield {number: new[:same] + bytes(rest)}
                yield {number: new[:same] + random.Random(rest).randbytes(rest)}

    def _is_log(self, number: int) -> bool:
        known = [*self.names.items(), *(pair for change in self.changes for pair in change.items())]
        return any(of == number and name.endswith(LOG) for name, of in known)

    def _state(self, changes: tuple[Change, ...], contents: Mapping[int, bytes | None]) -> State:
        names: dict[str, int] = dict(self.names)
        for change in changes:
            for name, number in change.items():
                names.pop(name, None)
                if number is not None:
                    names[name] = number
        return {
            name: contents[number]
            for name, number in sorted(names.items())
            if all(str(parent) in names for parent in Path(name).parents if parent.parts)
        }


def put(state: State, base: Path) -> Path:
    """Writes the state to a folder, which must be empty or missing."""
    base.mkdir(parents=True, exist_ok=True)
    for name, content in state.items():
        if content is None:
            (base / name).mkdir()
        else:
            (base / name).write_bytes(content)
    return base


@dataclass
class Tape:
    """Records what happens below a folder; what lies there at the beginning counts as flushed.

    Attributes:
        base: the folder, which need not exist.
        moments: one a step, and one of the beginning.
    """

    base: Path
    moments: list[Moment] = field(default_factory=list)
    _names: dict[str, int] = field(default_factory=dict)
    _flushed: dict[str, int] = field(default_factory=dict)
    _changes: list[Change] = field(default_factory=list)
    _contents: dict[int, bytes | None] = field(default_factory=dict)
    _older: dict[int, tuple[bytes, ...]] = field(default_factory=dict)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Follows all steps of this process while the block runs."""
        for path in sorted(self.base.rglob("*")):
            if self._wanted(path):
                self._appear(self._name(path), None if path.is_dir() else path.read_bytes())
        self._flushed, self._changes = dict(self._names), []
        self._keep("beginning")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(disk, "watch", self._step)
            self._follow_sqlite(patch)
            yield

    def _follow_sqlite(self, patch: pytest.MonkeyPatch) -> None:
        transaction, opened, close = Catalog.transaction, Catalog.__init__, Catalog.close

        @contextmanager
        def followed(catalog: Catalog) -> Iterator[object]:
            with transaction(catalog) as write:
                yield write
            self._sqlite(catalog.file, "commit")

        def follow_open(catalog: Catalog, folder: Path, root: Path) -> None:
            opened(catalog, folder, root)
            self._sqlite(catalog.file, "open")

        def follow_close(catalog: Catalog) -> None:
            close(catalog)
            self._sqlite(catalog.file, "close")

        patch.setattr(Catalog, "transaction", followed)
        patch.setattr(Catalog, "__init__", follow_open)
        patch.setattr(Catalog, "close", follow_close)

    def _step(self, step: Step, path: Path, old: Path | None) -> None:
        if not path.is_relative_to(self.base) or not self._wanted(path):
            return
        name = self._name(path)
        match step:
            case Step.CREATE:
                self._appear(name, b"")
            case Step.MAKE_FOLDER:
                if path != self.base:
                    self._appear(name, None)
            case Step.WRITE:
                self._written(name, path.read_bytes())
            case Step.FLUSH:
                self._older.pop(self._names.get(name, -1), None)
            case Step.RENAME | Step.LINK | Step.EXCHANGE:
                assert old is not None
                self._named(step, name, self._name(old))
            case Step.DELETE:
                gone = [known for known in self._names if known == name or known.startswith(f"{name}/")]
                self._change(dict.fromkeys(gone))
            case Step.FLUSH_FOLDER:
                self._flush_folder(name)
        self._keep(f"{step} {name}")

    def _named(self, step: Step, name: str, old: str) -> None:
        change: dict[str, int | None] = {name: self._names[old]}
        if step is not Step.LINK:
            change[old] = self._names[name] if step is Step.EXCHANGE else None
        self._change(change)

    def _sqlite(self, file: Path, what: str) -> None:
        """Looks at what SQLite did to its files."""
        name, log = self._name(file), self._name(file.with_name(LOG))
        folder = _parent(name)
        if name not in self._names:
            self._appear(name, file.read_bytes())
            self._flush_folder(folder)
        elif (content := file.read_bytes()) != self._contents[self._names[name]]:
            self._contents[self._names[name]] = content
            self._older.pop(self._names.get(log, -1), None)  # a checkpoint
        self._log(log, file.with_name(LOG), folder)
        self._keep(f"{what} {name}")

    def _log(self, log: str, file: Path, folder: str) -> None:
        content = file.read_bytes() if file.exists() else None
        before = self._contents[self._names[log]] if log in self._names else None
        if content is None:
            if before is not None:
                self._change({log: None})
            return
        if before is None:
            self._appear(log, b"")
            before = b""
        if not before and content:
            self._flush_folder(folder)
        number = self._names[log]
        if before and before[:LOG_HEADER] != content[:LOG_HEADER]:  # begun anew, after a checkpoint
            self._older[number] = (content[:LOG_HEADER],)
        elif before != content:
            self._older[number] = (*self._older.get(number, ()), before)
        self._contents[number] = content

    def _appear(self, name: str, content: bytes | None) -> None:
        number = len(self._contents)
        self._contents[number] = content
        self._change({name: number})

    def _written(self, name: str, content: bytes) -> None:
        number = self._names[name]
        before = self._contents[number]
        assert before is not None
        self._older[number] = (*self._older.get(number, ()), before)
        self._contents[number] = content

    def _change(self, change: Change) -> None:
        for name, number in change.items():
            self._names.pop(name, None)
            if number is not None:
                self._names[name] = number
        if change:
            self._changes.append(change)

    def _flush_folder(self, folder: str) -> None:
        for change in self._changes:
            for name, number in change.items():
                if _parent(name) == folder:
                    self._flushed.pop(name, None)
                    if number is not None:
                        self._flushed[name] = number
        rest = [{n: of for n, of in change.items() if _parent(n) != folder} for change in self._changes]
        self._changes = [change for change in rest if change]

    def _keep(self, step: str) -> None:
        older = {number: tuple(dict.fromkeys(olds)) for number, olds in self._older.items()}
        self.moments.append(Moment(step, dict(self._flushed), tuple(self._changes), dict(self._contents), older))

    def _name(self, path: Path) -> str:
        return path.relative_to(self.base).as_posix()

    def _wanted(self, path: Path) -> bool:
        """Locks and shared memory mean nothing once nobody is there."""
        return path.suffix != ".lock" and not path.name.endswith("-shm")


def _parent(name: str) -> str:
    return Path(name).parent.as_posix()


def _same(one: bytes, other: bytes) -> int:
    """Length of the common beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low
