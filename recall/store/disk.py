"""Every change that recall makes to the files it writes, one small step after the other.

A loss of power keeps what was flushed and anything between nothing and all of the rest: of a file's content what was
flushed with `flush`, of names what was flushed with `flush_folder`; names that were not come and go in the order of the
changes, contents in none. (As far as fsync goes: on macOS it does not reach through the cache of the drive.) Hence two
rules for everybody who writes. A file and its name are flushed before anything names it. What names it no more is
flushed before it is deleted.
"""

import errno
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from itertools import takewhile
from pathlib import Path
from typing import Final

_BINARY: Final = getattr(os, "O_BINARY", 0)
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)


_HERE: Final = -100  # AT_FDCWD of Linux
_SWAP: Final = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
_EXCHANGES: Final[Mapping[str, tuple[str, Callable[[bytes, bytes], tuple[object, ...]]]]] = {
    "linux": ("renameat2", lambda one, other: (_HERE, one, _HERE, other, _SWAP)),
    "darwin": ("renamex_np", lambda one, other: (one, other, _SWAP)),
}
_CANNOT: Final = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}


class Step(StrEnum):
    """What was done last."""

    CREATE = "create"
    WRITE = "write"
    FLUSH = "flush"
    RENAME = "rename"
    LINK = "link"
    EXCHANGE = "exchange"
    DELETE = "delete"
    MAKE_FOLDER = "make folder"
    FLUSH_FOLDER = "flush folder"


watch: Callable[[Step, Path, Path | None], object] | None = None
"""Told of each step once it was done, with the path and, where two names are concerned, the old one. For tests."""


def _done(step: Step, path: Path, old: Path | None = None) -> None:
    if watch:
        watch(step, path, old)


def create(file: Path, parts: Iterable[bytes | memoryview], *, mode: int = 0o666) -> None:
    """Writes a new file and flushes its content, not its name.

    Raises:
        FileExistsError: there is one of that name; it is untouched.
        OSError: the disk is full or the folder cannot be written; the file is removed again.
    """
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, mode)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            _done(Step.CREATE, file)
            stream.writelines(parts)
            stream.flush()
            _done(Step.WRITE, file)
            os.fsync(descriptor)
            _done(Step.FLUSH, file)
    except BaseException:
        with suppress(OSError):
            delete(file)
        raise


def write_at(file: Path, data: memoryview, offset: int) -> None:
    """Writes into a file of the owner's eyes only, which is made when missing, and flushes its content.

    Raises:
        OSError: the disk is full or the folder cannot be written; what lies before `offset` is untouched.
    """
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        _done(Step.CREATE, file)
    descriptor = os.open(file, os.O_WRONLY | _BINARY)
    try:
        os.lseek(descriptor, offset, os.SEEK_SET)
        while data:
            data = data[os.write(descriptor, data) :]
        _done(Step.WRITE, file)
        os.fsync(descriptor)
        _done(Step.FLUSH, file)
    finally:
        os.close(descriptor)


def append(file: Path, data: bytes) -> None:
    """Writes to the end of a file of the owner's eyes only, which is made when missing, whole or not at all, unflushed.

    Raises:
        OSError: the disk is full or the folder cannot be written; the file is as it was.
    """
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NOFOLLOW | _BINARY, 0o600)
    try:
        size, written = os.fstat(descriptor).st_size, 0
        try:
            written = os.write(descriptor, data)
        finally:
            if written < len(data):
                os.ftruncate(descriptor, size)
        if written < len(data):
            raise OSError(f"{file}: only a part could be written")
        _done(Step.WRITE, file)
    finally:
        os.close(descriptor)


def flush(file: Path) -> None:
    """Flushes what anybody has written to the file.

    Raises:
        OSError: it is not there, or the disk failed.
    """
    descriptor = os.open(file, os.O_RDWR | _BINARY)  # Windows flushes only what may be written
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    _done(Step.FLUSH, file)


def flush_folder(folder: Path) -> None:
    """Makes names that came, went or changed in the folder survive a loss of power, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _done(Step.FLUSH_FOLDER, folder)


def rename(old: Path, new: Path) -> None:
    """Gives the file another name, in the place of whatever file had it."""
    old.replace(new)
    _done(Step.RENAME, new, old)


def link(old: Path, new: Path) -> None:
    """Gives the file another name beside its own, which nothing has yet.

    Raises:
        FileExistsError: something has that name, were it a link to nothing; it is untouched.
        OSError: the file system knows no second names.
    """
    new.hardlink_to(old)
    _done(Step.LINK, new, old)


def exchange(one: Path, other: Path) -> bool:
    """Gives two files each other's name at one go; False where the system cannot, and nothing was done.

    Raises:
        OSError: one of them is not there, or the folder cannot be written.
    """
    import ctypes  # takes longer to load than many an answer takes

    if sys.platform not in _EXCHANGES:
        return False
    call, arguments = _EXCHANGES[sys.platform]
    function = getattr(ctypes.CDLL(None, use_errno=True), call, None)  # an old C library lacks it
    if function is None:
        return False
    if function(*arguments(os.fsencode(one), os.fsencode(other))):
        number = ctypes.get_errno()
        if number in _CANNOT:
            return False
        raise OSError(number, os.strerror(number), os.fspath(one))
    _done(Step.EXCHANGE, other, one)
    return True


def delete(file: Path) -> None:
    """Removes the file, or nothing when it is gone."""
    file.unlink(missing_ok=True)
    _done(Step.DELETE, file)


def delete_folder(folder: Path) -> None:
    """Removes the folder with all in it, as far as that goes."""
    import shutil  # loads every kind of archive

    shutil.rmtree(folder, ignore_errors=True)
    _done(Step.DELETE, folder)


def make_folder(folder: Path, *, mode: int = 0o777) -> None:
    """Makes the folder unless it is there, flushed, with all above it; the mode is that of the last one."""
    missing = [*takewhile(lambda place: not place.exists(), (folder, *folder.parents))]
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    for made in reversed(missing):
        _done(Step.MAKE_FOLDER, made)
        flush_folder(made.parent)
