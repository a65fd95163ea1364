"""What is kept of a prompt that got no answer in time, so that the next one can say so: an empty file.

Like the hook itself it uses little of the standard library.
"""

import os
from binascii import crc32

from recall.apps import protocol

LATE = "> NOTE: The last prompt was answered without memories: the time did not suffice."
"""What is said once, with the next answer."""

_PREFIX = "late-"
_MOST = 64


def mark_of(socket: str, whose: str) -> str:
    """Where it is noted: beside the socket, in a folder of the user alone.

    Args:
        socket: where the resident process listens, "" where there are no sockets.
        whose: the session, or what stands for it.
    """
    folder = os.path.dirname(socket) if socket else protocol.cache_folder(os.environ)
    return os.path.join(folder, f"{_PREFIX}{crc32(whose.encode('utf-8', 'surrogatepass')):08x}")


def leave_mark(file: str) -> None:
    """Notes that a prompt got no answer in time; of many that nobody asked for all go.

    Raises:
        OSError: it cannot be written.
    """
    folder = os.path.dirname(file)
    marks = [name for name in os.listdir(folder) if name.startswith(_PREFIX)]
    for name in marks if len(marks) >= _MOST else ():
        take_mark(os.path.join(folder, name))
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))


def take_mark(file: str) -> bool:
    """Whether there was one; of several that ask one learns it."""
    try:
        os.unlink(file)
    except OSError:
        return False
    return True
