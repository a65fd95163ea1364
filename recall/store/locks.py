"""One writer at a time: a kernel lock that dies with its process, with the holder's number readable beside it."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Final

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
    until = time.monotonic() + timeout_s
    with file.open("ab", buffering=0) as stream:
        while not _taken(stream):
            if time.monotonic() >= until:
                raise LockedError(file, _holder(file))
            time.sleep(_CHECK_EVERY_S)
        try:
            with suppress(OSError):  # the name of the holder is a courtesy; a full disk must not stop the work
                stream.truncate(0)
                stream.write(str(os.getpid()).encode("ascii"))
            yield
        finally:
            _give_back(stream)  # closing is not enough where a forked child has the stream too


# portalocker takes longer to load than many an answer takes; only Windows needs what it knows.
if sys.platform == "win32":

    def _taken(stream: FileIO) -> bool:
        """Whether the lock could be had at once."""
        import portalocker

        try:
            portalocker.lock(stream, portalocker.LOCK_EX | portalocker.LOCK_NB)
        except portalocker.LockException:
            return False
        return True

    def _give_back(stream: FileIO) -> None:
        import portalocker

        portalocker.unlock(stream)

else:
    import fcntl

    def _taken(stream: FileIO) -> bool:
        """Whether the lock could be had at once."""
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _give_back(stream: FileIO) -> None:
        fcntl.flock(stream, fcntl.LOCK_UN)


def _holder(file: Path) -> str:
    with suppress(OSError):
        number = file.read_text(encoding="ascii", errors="replace").strip()
        if number.isdigit():
            return f"process {number}"
    return ""
