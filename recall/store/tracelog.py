"""The file of traces: lines that several processes append, of a bounded size, from which a topic can be purged.

JSON lines rather than a database: one damaged line costs one line, nothing is ever migrated, and what was purged is in
no page, journal or free list. Whoever writes holds a lock, so that a line never goes into a file that is being put
aside or rewritten. Two files take turns: a full one becomes the old one, and the old one before it is gone.
"""

import hashlib
import os
import secrets
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from recall.errors import LockedError
from recall.store import disk
from recall.store.locks import exclusive
from recall.store.traces import Trace, from_line, to_line

DEFAULT_BYTES: Final = 8 * 1024 * 1024

_NEW: Final = "recalls.jsonl"
_OLD: Final = "recalls.old.jsonl"
_LOCK: Final = "recalls.lock"
_WAIT_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class TraceLog:
    """The traces of one memory root.

    Attributes:
        folder: where they lie; made with the first trace, for this user alone.
        max_bytes: size of all files together.
    """

    folder: Path
    max_bytes: int = DEFAULT_BYTES

    def append(self, trace: Trace, *, wait_s: float = _WAIT_S) -> None:
        """Writes one trace; the oldest ones go when there is no room.

        Args:
            trace: what happened.
            wait_s: how long to wait for another process that writes.

        Raises:
            LockedError: another process kept writing.
            OSError: the folder cannot be used or the disk is full; what was there is as it was.
        """
        line = to_line(trace)
        if len(line) > self.max_bytes // 2:
            return
        if not self.folder.is_absolute():  # a user without a home; not into whatever folder this happens to be
            raise FileNotFoundError(self.folder)
        disk.make_folder(self.folder, mode=0o700)
        with self._locked(wait_s):
            self._make_room(len(line))
            _append(self.folder / _NEW, line)

    def read(self) -> list[Trace]:
        """All traces, in the order in which they were written; damaged lines are left out.

        Raises:
            OSError: a file is there and cannot be read.
        """
        if not self.folder.is_dir():
            return []
        try:
            with self._locked(_WAIT_S):
                lines = self._lines()
        except (LockedError, OSError):  # a reader can do without
            lines = self._lines()
        return [trace for line in lines if (trace := from_line(line)) is not None]

    def keys_of(self, paths: Collection[str]) -> frozenset[str]:
        """Keys of all questions that one of the topics was handed over for.

        Raises:
            OSError: a file is there and cannot be read.
        """
        wanted = frozenset(paths)
        return frozenset(trace.key for trace in self.read() if any(hit.path in wanted for hit in trace.hits))

    def purge(self, paths: Collection[str], keys: Collection[str], *, salt: bytes) -> None:
        """Takes topics and questions out of all traces, and damaged lines with them.

        A trace of other topics stays, without its text and with a key that says nothing any more but is still the same
        for the same question, so that what is counted of those topics stays true.

        Args:
            paths: topics that are to be forgotten.
            keys: questions that are to be forgotten (`keys_of`, over all roots of the memory).
            salt: random bytes that nobody keeps; the same for all roots.

        Raises:
            LockedError: another process kept writing.
            OSError: a file cannot be rewritten.
        """
        if not self.folder.is_dir():
            return
        gone, unsaid = frozenset(paths), frozenset(keys)
        with self._locked(_WAIT_S):
            for left_over in self.folder.glob("*.tmp"):  # of a purge that was killed
                disk.delete(left_over)
            for name in (_OLD, _NEW):
                traces = [trace for line in _lines(self.folder / name) if (trace := from_line(line)) is not None]
                kept = [rest for trace in traces if (rest := _purged(trace, gone, unsaid, salt)) is not None]
                _replace(self.folder / name, b"".join(map(to_line, kept)))

    @contextmanager
    def _locked(self, wait_s: float) -> Iterator[None]:
        with exclusive(self.folder / _LOCK, timeout_s=wait_s):
            yield

    def _lines(self) -> list[bytes]:
        return [*_lines(self.folder / _OLD), *_lines(self.folder / _NEW)]

    def _make_room(self, size: int) -> None:
        new = self.folder / _NEW
        with suppress(FileNotFoundError):
            if new.stat().st_size + size > self.max_bytes // 2:
                disk.rename(new, self.folder / _OLD)


def _append(file: Path, line: bytes) -> None:
    """Writes the line behind the end of a line: somebody may have died in the middle of the last one."""
    with suppress(FileNotFoundError), file.open("rb") as stream:
        if stream.seek(0, os.SEEK_END):
            stream.seek(-1, os.SEEK_END)
            line = line if stream.read(1) == b"\n" else b"\n" + line
    disk.append(file, line)


def _lines(file: Path) -> list[bytes]:
    try:
        return file.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []


def _purged(trace: Trace, paths: frozenset[str], keys: frozenset[str], salt: bytes) -> Trace | None:
    hits = tuple(hit for hit in trace.hits if hit.path not in paths)
    if not hits:
        return None
    if trace.key not in keys:
        return trace if len(hits) == len(trace.hits) else msgspec.structs.replace(trace, hits=hits)
    key = hashlib.sha256(salt + trace.key.encode()).hexdigest()[: len(trace.key)]
    return msgspec.structs.replace(trace, hits=hits, query="", key=key)


def _replace(file: Path, data: bytes) -> None:
    """Puts other content in the place of a file; without content the file goes."""
    if not data:
        disk.delete(file)
        return
    temporary = file.with_name(f"{secrets.token_hex(8)}.tmp")
    disk.create(temporary, [data], mode=0o600)
    try:
        disk.rename(temporary, file)
    except BaseException:
        with suppress(OSError):
            disk.delete(temporary)
        raise
    disk.flush_folder(file.parent)
