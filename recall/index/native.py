"""Calls into C++ libraries from daemon threads, and a clean end of the process.

When the interpreter ends, a daemon thread that comes back from such a call is unwound through C++ frames, which aborts
the whole process. So at exit no new call begins, and those under way get a moment to return; one that hangs never
returns, is not unwound, and does no harm.
"""

import atexit
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from recall.errors import EncoderError

_GRACE_S: Final = 0.8


class Gate:
    """Counts the calls under way; once shut it lets none begin."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._shut = False

    @contextmanager
    def call(self) -> Iterator[None]:
        """Wraps one call.

        Raises:
            EncoderError: the process is ending.
        """
        with self._changed:
            if self._shut:
                raise EncoderError("the process is ending")
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def shut(self, grace_s: float) -> bool:
        """Lets no more calls begin and waits for those under way.

        Returns:
            Whether all of them returned in time.
        """
        with self._changed:
            self._shut = True
            return self._changed.wait_for(lambda: self._running == 0, grace_s)


NATIVE: Final = Gate()
"""The gate of this process."""

atexit.register(NATIVE.shut, _GRACE_S)
