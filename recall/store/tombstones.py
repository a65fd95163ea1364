"""What was forgotten and must not come back, known by its digest alone.

One file of JSON lines in the folder of backups. Its first line holds a random key; every other line holds the digest
of one forgotten text under that key, the run that forgot it and when. The texts are nowhere: who has the file can tell
whether a text that he knows was forgotten, not what was.

A line that cannot be read costs what it named and nothing else. Where that is the line of the key, the next addition
brings a new one: a key counts for the lines below it.
"""

import hashlib
import hmac
import json
import secrets
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from recall.errors import TopicError
from recall.store import disk
from recall.store.files import atomic_write, confine
from recall.store.locks import exclusive
from recall.store.state import iso_time
from recall.text.tokens import normalise

MOST: Final = 10_000
"""Forgotten texts that are known; the oldest give way."""

_FILE: Final = "forgotten.jsonl"
_LOCK: Final = "forgotten.lock"
_WAIT_S: Final = 10.0
_LARGEST: Final = 64 * 1024 * 1024
_KEY_BYTES: Final = 32
_DIGEST_CHARS: Final = 32
_VERSION: Final = 1
_SAYS_SOMETHING: Final = "#%-"  # punctuation that is part of a word: C#, 100%, -1


class _Mark(NamedTuple):
    key: bytes
    digest: str
    run: str
    time: str


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was known at one moment, for many questions in a row.

    Attributes:
        digests: of the forgotten texts, by the key that they were made with.
        warnings: a sentence when lines could not be read.
    """

    digests: Mapping[bytes, frozenset[str]]
    warnings: tuple[str, ...] = ()

    def holds(self, text: str) -> bool:
        """Whether the text was forgotten, in this spelling or one that `folded` makes the same."""
        plain = folded(text)
        return bool(plain) and any(_digest(plain, key) in known for key, known in self.digests.items())


@dataclass(frozen=True, slots=True)
class Tombstones:
    """The forgotten texts of one memory root. Processes that change them take turns; readers never wait.

    Attributes:
        folder: where the file lies: the folder of backups, `.trash` below the root; need not exist.
    """

    folder: Path

    def read(self) -> Forgotten:
        """What is known now.

        Raises:
            TopicError: something other than a file of a bearable size has its name.
            UnsafePathError: the file is a link out of the folder.
            OSError: it cannot be read.
        """
        content = _parsed(self._data())
        keys = {mark.key for mark in content.marks}
        digests = {key: frozenset(mark.digest for mark in content.marks if mark.key == key) for key in keys}
        return Forgotten(digests, content.warnings(self._file()))

    def holds(self, text: str) -> bool:
        """`read().holds(text)`: whether the text was forgotten."""
        return self.read().holds(text)

    def add(self, texts: Iterable[str], *, run: str, time: float) -> None:
        """Makes the texts known as forgotten; blank ones name nothing.

        Args:
            texts: what was forgotten; only digests of it are kept.
            run: the run that did it, by which `lift` finds them again.
            time: when, in seconds since the epoch.

        Raises:
            LockedError: another process kept the lock.
            TopicError, UnsafePathError, OSError: as of `read`, or the folder or the file cannot be written.
        """
        plain = [text for text in map(folded, texts) if text]
        if not plain:
            return
        make_trash(self.folder)
        with self._locked():
            data = self._data()
            content = _parsed(data)
            key = content.key or secrets.token_bytes(_KEY_BYTES)
            new = dict.fromkeys(_Mark(key, _digest(text, key), run, iso_time(time)) for text in plain)
            known = {(mark.key, mark.digest, mark.run) for mark in content.marks}
            fresh = [mark for mark in new if mark[:3] not in known]
            if len(content.marks) + len(fresh) > MOST:
                self._rewrite([*content.marks, *fresh][-MOST:])
            elif fresh:
                self._append(_lines(fresh, content.key), data)

    def lift(self, run: str) -> int:
        """Lets everything come back that the run forgot, for instance because it was restored.

        Returns:
            How many texts are known no more, counting one that another run forgot as well.

        Raises:
            LockedError: another process kept the lock.
            TopicError, UnsafePathError, OSError: as of `read`, or the file cannot be written.
        """
        return self._drop(lambda mark: mark.run == run)

    def lift_text(self, text: str) -> int:
        """Lets one text come back, whichever runs forgot it; otherwise like `lift`."""
        plain = folded(text)
        digest = cache(lambda key: _digest(plain, key))
        return self._drop(lambda mark: mark.digest == digest(mark.key)) if plain else 0

    def _drop(self, is_lifted: Callable[[_Mark], bool]) -> int:
        if not self._file().exists():
            return 0
        with self._locked():
            marks = _parsed(self._data()).marks
            kept = [mark for mark in marks if not is_lifted(mark)]
            if len(kept) < len(marks):
                self._rewrite(kept)
        return len(marks) - len(kept)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with exclusive(confine(_LOCK, self.folder), timeout_s=_WAIT_S):
            yield

    def _file(self) -> Path:
        return confine(_FILE, self.folder)

    def _data(self) -> bytes:
        file = self._file()
        if not file.exists():
            return b""
        if not file.is_file() or file.stat().st_size > _LARGEST:
            raise TopicError(f"is no file of at most {_LARGEST:,} bytes; move it away", path=file)
        return file.read_bytes()

    def _append(self, lines: str, before: bytes) -> None:
        """Adds to the file, below the end of a line: somebody may have died in the middle of the last one."""
        file = self._file()
        data = lines.encode("ascii")
        if not file.exists():
            disk.create(file, [data], mode=0o600)
            disk.flush_folder(self.folder)
        else:
            disk.append(file, data if before.endswith(b"\n") or not before else b"\n" + data)
            disk.flush(file)

    def _rewrite(self, marks: Collection[_Mark]) -> None:
        atomic_write(self._file(), _lines(marks, None))


def make_trash(folder: Path) -> None:
    """Makes the folder of backups, for this user alone, with a word to git that nothing in it is to be committed.

    Raises:
        OSError: it cannot be made.
    """
    disk.make_folder(folder, mode=0o700)
    ignore = folder / ".gitignore"
    if not (ignore.is_symlink() or ignore.exists()):
        atomic_write(ignore, "*\n")


def folded(text: str) -> str:
    """The text as it is compared: NFKC, lower case, single blanks, nothing invisible, no punctuation around it."""
    visible = "".join(char for char in normalise(text) if unicodedata.category(char) != "Cf")
    plain = " ".join(visible.split())
    start, end = 0, len(plain)
    while start < end and _is_edge(plain[start]):
        start += 1
    while start < end and _is_edge(plain[end - 1]):
        end -= 1
    return plain[start:end] or plain


def _is_edge(char: str) -> bool:
    return char == " " or (char not in _SAYS_SOMETHING and unicodedata.category(char).startswith("P"))


def _digest(plain: str, key: bytes) -> str:
    return hmac.new(key, plain.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:_DIGEST_CHARS]


class _Content(NamedTuple):
    """What the file holds.

    Attributes:
        marks: in the order of the file, so the newest last.
        key: the last one, which new lines go under; None when there is none.
        broken: numbers of the lines that name nothing, from 1.
    """

    marks: list[_Mark]
    key: bytes | None
    broken: list[int]

    def warnings(self, file: Path) -> tuple[str, ...]:
        if not self.broken:
            return ()
        count = len(self.broken)
        return (f"{file}:{self.broken[0]}: {count} broken line{'s'[: count > 1]}; what they named may come back",)


def _parsed(data: bytes) -> _Content:
    marks: list[_Mark] = []
    broken: list[int] = []
    key: bytes | None = None
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        found = _line(line, key)
        if isinstance(found, bytes):
            key = found
        elif found is None:
            broken.append(number)
        else:
            marks.append(found)
    return _Content(marks, key, broken)


def _line(line: bytes, key: bytes | None) -> bytes | _Mark | None:
    """The key or the mark of a line; None when it is broken, or a mark without a key."""
    try:
        match json.loads(line):
            case {"v": int(version), "key": str(text)} if version == _VERSION:
                return bytes.fromhex(text) or None
            case {"digest": str(digest), "run": str(run), "time": str(time)} if key:
                return _Mark(key, digest, run, time)
    except (ValueError, RecursionError):
        pass
    return None


def _lines(marks: Iterable[_Mark], key: bytes | None) -> str:
    """The lines that say these marks below a line of `key`."""
    lines: list[str] = []
    for mark in marks:
        if mark.key != key:
            key = mark.key
            lines.append(json.dumps({"v": _VERSION, "key": key.hex()}))
        lines.append(json.dumps({"digest": mark.digest, "run": mark.run, "time": mark.time}))
    return "".join(f"{line}\n" for line in lines)
