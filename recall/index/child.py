"""Long work on a memory root in a process of its own, as the process sees it that wants it.

Parsing, chunking and encoding hold the interpreter's lock again and again; a host that has to answer within 100 ms
cannot have them in its own process (DESIGN section 5). Two processes on one index are nothing new to it: locks, commits
and snapshots see to that.
"""

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from recall.errors import EncoderError, LockedError
from recall.index.job import Done, Failed, Job, Logged, Message, Progressed, Reported, decoded, encoded
from recall.index.sync import Progress, SyncReport, joined

logger = logging.getLogger(__name__)

# The package comes from where this one came from, and its folder last on the path: nothing that lies beside it, in the
# working directory or anywhere else is taken for a library (apps.hooks does the same).
_CODE: Final = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import recall
sys.path.append(sys.path.pop(0))
from recall.index.job import main
main()
"""

# Windows only: no console, and the low priority that `os.nice` gives elsewhere.
_QUIETLY: Final[int] = getattr(subprocess, "CREATE_NO_WINDOW", 0) | getattr(
    subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0
)

_END_WAITS_S: Final = (0.5, 0.3, 0.2)
"""For the end of its own accord, after a request to end, and after being killed."""


class ChildError(Exception):
    """The process could not be started, died, or met what only its starter can deal with."""


def can_start() -> bool:
    """Whether this process has an interpreter to start another with; a host that holds its own would start itself."""
    name = Path(sys.executable or "").name.lower()
    return name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)


class Child:
    """A process that does one job; use it as a context manager, at whose end it is gone.

    Args:
        job: what it is to do.

    Raises:
        ChildError: it cannot be started.
    """

    def __init__(self, job: Job) -> None:
        package = Path(__file__).absolute().parents[2]
        self._asked_to_end = threading.Event()
        self._closing = threading.Lock()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter and this package
                [sys.executable, "-P", "-c", _CODE, str(package)],
                cwd=Path(package.anchor),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                creationflags=_QUIETLY,
                # Ctrl-C in a terminal is for the host; a session of its own would make its low priority worthless.
                process_group=0 if sys.platform != "win32" else None,
            )
        except (OSError, ValueError, RuntimeError) as error:  # the last when the interpreter is ending
            raise ChildError(f"no process for long work can be started: {error}") from error
        self._send(encoded(job))

    def _send(self, line: bytes) -> None:
        assert self._process.stdin is not None  # noqa: S101 - a pipe
        with suppress(OSError):  # it is dead already, which reading will tell
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        assert self._process.stdout is not None  # noqa: S101 - a pipe
        self._process.stdout.close()

    @property
    def number(self) -> int:
        """The number of the process."""
        return self._process.pid

    def run(self, on_progress: Progress | None = None) -> SyncReport:
        """Waits for the end of the work.

        Args:
            on_progress: told what the other process is told.

        Returns:
            What was done; after `call_off` perhaps not all of it.

        Raises:
            EncoderError: the model does not work there.
            LockedError: another process keeps writing.
            OSError: the cache folder is full.
            ChildError: it did not come to an end.
        """
        parts = [SyncReport()]
        for message in self._messages():
            match message:
                case Progressed(stage, done, total) if on_progress:
                    on_progress(stage, done, total)
                case Reported(part):
                    parts.append(part)
                case Logged(level, name, text):
                    logging.getLogger(name).log(level, "%s", text)
                case Failed():
                    raise _error(message)
                case Done():
                    return joined(parts)
        if self._asked_to_end.is_set():
            return joined(parts)
        self.end()
        raise ChildError(f"the process for long work ended with code {self._process.returncode} in the middle of it")

    def _messages(self) -> Iterator[Message]:
        assert self._process.stdout is not None  # noqa: S101 - a pipe
        for line in self._process.stdout:
            if (message := decoded(line)) is not None:
                yield message

    def call_off(self) -> None:
        """Has it end after the present text; does not wait for it."""
        self._asked_to_end.set()
        assert self._process.stdin is not None  # noqa: S101 - a pipe
        with self._closing, suppress(OSError):
            self._process.stdin.close()

    def end(self) -> None:
        """Has it end, by force if need be; takes a second at most."""
        self.call_off()
        for wait_s, force in zip(_END_WAITS_S, ("terminate", "kill", ""), strict=True):
            try:
                self._process.wait(wait_s)
                break
            except subprocess.TimeoutExpired:
                if force:
                    getattr(self._process, force)()


def _error(failed: Failed) -> Exception:
    """The exception that it met there."""
    match failed.kind:
        case "EncoderError":
            return EncoderError(failed.text)
        case "LockedError":
            return LockedError(failed.path, failed.detail)
        case "OSError" if failed.detail:
            return OSError(int(failed.detail), failed.text, failed.path or None)
        case "OSError":
            return OSError(failed.text)
    return ChildError(f"the process for long work gave up: {failed.text}")


class Children:
    """The processes that work for one memory now. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[Child, threading.Event] = {}

    def run(self, job: Job, *, until: threading.Event, on_progress: Progress | None = None) -> SyncReport:
        """Has a process do the job and waits for its end.

        Args:
            job: what to do.
            until: set it, then call `call_off`, to have it end after the present text.
            on_progress: told what the other process is told.

        Raises:
            EncoderError: the model does not work there.
            LockedError: another process keeps writing.
            OSError: the cache folder is full.
            ChildError: it could not be started or did not come to an end.
        """
        if until.is_set():
            return SyncReport()
        with Child(job) as child:
            with self._lock:
                self._running[child] = until
            try:
                if until.is_set():
                    child.call_off()
                return child.run(on_progress)
            finally:
                with self._lock:
                    del self._running[child]

    @property
    def numbers(self) -> list[int]:
        """The numbers of the processes."""
        with self._lock:
            return [child.number for child in self._running]

    def call_off(self) -> None:
        """Has those end whose event is set; waits for none."""
        with self._lock:
            ending = [child for child, until in self._running.items() if until.is_set()]
        for child in ending:
            child.call_off()

    def end(self) -> None:
        """Has all of them end, by force if need be; takes a second for each at most."""
        with self._lock:
            ending = list(self._running)
        for child in ending:
            child.end()
