"""Calls into C++ libraries from daemon threads, and a clean end of the process.

When the interpreter ends, a daemon thread that comes back from such a call is unwound through C++ frames, which aborts
the whole process. So at exit no new call begins, and those under way get a moment to return; one that hangs never
returns, is not unwound, and does no harm. What takes longer than a part of that moment is to be several calls.

A fork waits for them in the same way.
"""

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from recall.errors import EncoderError

# Many times what a call takes, since the machine may be busy; nobody waits so long for a call that returns.
_GRACE_S: Final = 2.0


class Gate:
    """Counts the calls under way; once shut it lets none begin."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Sets it up; in a forked child once more, where no call of the parent's goes on or gives its lock back."""
        self._changed = threading.Condition()
        self._running = 0
        self._shut = False

    @contextmanager
    def call(self) -> Iterator[None]:
        """Wraps one call.

        Raises:
            EncoderError: the process is ending, and this is its main thread.
            SystemExit: the process is ending; the thread goes home without a word, which nobody could read any more.
        """
        with self._changed:
            if self._shut:
                raise _ending()
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def hold(self, grace_s: float) -> None:
        """Waits for the calls under way and keeps others waiting, until `release`."""
        self._changed.acquire()
        self._changed.wait_for(lambda: self._running == 0, grace_s)

    def release(self) -> None:
        """Lets calls begin again."""
        self._changed.release()

    def shut(self, grace_s: float) -> bool:
        """Lets no more calls begin and waits for those under way.

        Returns:
            Whether all of them returned in time.
        """
        with self._changed:
            self._shut = True
            return self._changed.wait_for(lambda: self._running == 0, grace_s)


def _ending() -> BaseException:
    if threading.current_thread() is threading.main_thread():
        return EncoderError("the process is ending")
    return SystemExit()


NATIVE: Final = Gate()
"""The gate of this process."""

atexit.register(NATIVE.shut, _GRACE_S)
if hasattr(os, "register_at_fork"):
    # The child has the libraries as they are at that moment: who waits there for another thread's work waits forever.
    os.register_at_fork(
        before=partial(NATIVE.hold, _GRACE_S), after_in_parent=NATIVE.release, after_in_child=NATIVE.begin
    )
