"""Optional: notices changes below the memory folders when they happen, so that no question has to look for them.

Whatever arrives only wakes the upkeep, which looks at the folder as ever: an event that is lost, doubled or strange can
make nothing wrong. Needs the extra `watch`.
"""

import atexit
import logging
import os
import stat
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from recall.errors import MissingExtraError

if TYPE_CHECKING:
    from watchfiles import Change

logger = logging.getLogger(__name__)

_QUIET_MS: Final = 50
_MOST_MS: Final = 500
"""Changes are told once nothing happened for so long, at the latest after so long."""
_RECHECK_MS: Final = 1000
"""How often it is asked whether the folders are still the same ones."""
_STOP_WAIT_S: Final = 2.0

_Place = tuple[int, int]


def is_installed() -> bool:
    """Whether there is the library that watching needs."""
    return find_spec("watchfiles") is not None


def need_library() -> None:
    """Makes sure that watching is possible.

    Raises:
        MissingExtraError: the library is not installed.
    """
    if not is_installed():
        raise MissingExtraError("watchfiles", extra="watch")


class Watcher:
    """Calls back after changes below some folders, in a thread of its own; folders may come, go and be exchanged.

    Args:
        roots: the folders.
        wake: called on that thread, soon after something changed and whenever a folder begins to be watched; must not
            take long.

    Attributes:
        problem: why changes are not noticed any more, in a sentence; "" while they are.
    """

    def __init__(self, roots: Sequence[Path], wake: Callable[[], object]) -> None:
        self.problem = ""
        self._roots = tuple(roots)
        self._wake = wake
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="recall-watcher", daemon=True)

    def start(self) -> None:
        """Begins to watch."""
        # A thread that waits in native code may not be there any more when the interpreter ends.
        atexit.register(self.stop)
        self._thread.start()

    def stop(self) -> None:
        """Ends it; takes about as long as a pause between two changes, two seconds at most."""
        atexit.unregister(self.stop)
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_WAIT_S)

    def _serve(self) -> None:
        try:
            while not self._stop.is_set():
                there = _places(self._roots)
                self._wake()  # folders came, went or were exchanged
                if there:
                    self._follow(there)
                else:
                    self._await_any()
        except Exception as error:  # the system's limit of watches, or whatever a file system comes up with
            self.problem = f"changes are not noticed when they happen, but when a question is asked: {error}"
            logger.warning("%s", self.problem)

    def _await_any(self) -> None:
        while not self._stop.wait(_RECHECK_MS / 1000) and not _places(self._roots):
            pass

    def _follow(self, there: Mapping[str, _Place]) -> None:
        """Watches these folders until one of the roots is another folder than it was."""
        from watchfiles import Change, watch

        is_first = True
        try:
            for changes in watch(
                *there,
                watch_filter=lambda _, path: concerns(path, there),
                debounce=_MOST_MS,
                step=_QUIET_MS,
                rust_timeout=_RECHECK_MS,
                yield_on_timeout=True,
                stop_event=self._stop,
                ignore_permission_denied=False,  # would also hide that no more watches are allowed
            ):
                if changes or is_first:  # something may have happened just before the watch began
                    self._wake()
                is_first = False
                if _lost(changes, there, Change.deleted) or _places(self._roots) != there:
                    return
        except FileNotFoundError:  # it, or a folder in it, went away before it could be watched
            self._stop.wait(_QUIET_MS / 1000)


def _places(roots: Sequence[Path]) -> dict[str, _Place]:
    """The roots that are there: real path, and which folder it is."""
    found = {}
    for root in roots:
        real = os.path.realpath(root)
        try:
            status = os.stat(real)  # noqa: PTH116 - the watcher speaks of paths as strings
        except (OSError, ValueError):
            continue
        if stat.S_ISDIR(status.st_mode):
            found[real] = status.st_ino, status.st_dev
    return found


def _lost(changes: Collection[tuple["Change", str]], there: Collection[str], deleted: "Change") -> bool:
    """Whether a watched folder itself was deleted; a new one in its place may get the same number."""
    return any(change is deleted and path in there for change, path in changes)


def concerns(path: str, roots: Collection[str]) -> bool:
    """Whether a change at the path can matter: to a Markdown file or a folder, neither of them hidden below its root.

    Args:
        path: absolute; what was there may be gone, and then it may have been a folder.
        roots: real paths of the watched folders.
    """
    inside = [path[len(root) :] for root in roots if path == root or path.startswith(root.rstrip(os.sep) + os.sep)]
    if all(f"{os.sep}." in below for below in inside):
        return False
    return path.lower().endswith((".md", ".markdown")) or not Path(path).is_file()
