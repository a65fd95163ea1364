"""One writer at a time: a kernel lock that dies with its process, with the holder's number readable beside it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import portalocker

from recall.errors import LockedError

_CHECK_EVERY_S: Final = 0.02


@contextmanager
def exclusive(file: Path, *, timeout_s: float) -> Iterator[None]:
    """Holds the lock file for the block; it is made when missing and stays.

    Args:
        file: the lock; its text names the process that holds it or held it last.
        timeout_s: how long to wait for another holder; 0 for not at all.

    Raises:
        LockedError: another process, or another thread of this one, still holds it.
        OSError: the lock file cannot be made.
    """
    lock = portalocker.Lock(
        str(file),
        mode="a",
        timeout=timeout_s,
        check_interval=_CHECK_EVERY_S,
        fail_when_locked=timeout_s <= 0,
        encoding="ascii",
    )
    try:
        stream = lock.acquire()
    except portalocker.LockException as error:
        raise LockedError(file, _holder(file)) from error
    try:
        with suppress(OSError):  # the name of the holder is a courtesy; a full disk must not stop the work
            stream.truncate(0)
            stream.write(str(os.getpid()))
            stream.flush()
        yield
    finally:
        lock.release()


def _holder(file: Path) -> str:
    with suppress(OSError):
        number = file.read_text(encoding="ascii", errors="replace").strip()
        if number.isdigit():
            return f"process {number}"
    return ""
