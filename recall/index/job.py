"""Work on one memory root that a process of its own does, as that process sees it: a job in, messages out.

The job is the first line of stdin, a message each line of stdout, all JSON. The end of stdin is the wish that the work
end soon, or the death of who wants it; what was committed by then stays.
"""

import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import msgspec

from recall.config import EncoderConfig
from recall.errors import EncoderError, LockedError
from recall.index.collection import Collection
from recall.index.encoders import make_encoder
from recall.index.sync import SyncReport
from recall.store.topics import Scope

Stage = Literal["words", "vectors"]

# A text takes less; whoever hangs for longer is ended where it stands, which costs nothing that was committed.
_GRACE_S: Final = 1.0
_NICE: Final = 10
_LISTED: Final = 500  # entries of a report in one message, so that to read it never takes long


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One stage of a synchronisation.

    Attributes:
        stage: `words` or `vectors`.
        root: the memory root, absolute.
        scope: whose memory it is.
        cache: folder of all derived data.
        max_file_bytes: larger files are reported, not indexed.
        exact_rows: up to so many vectors no codes are wanted.
        optional: whether it is no fault when the root is missing.
        full: throw all derived data away first.
        recipe: what makes vectors.
        workers: texts that are encoded at once.
        lock_wait_s: how long to wait for another process that does the same.
    """

    stage: Stage
    root: str
    scope: Scope
    cache: str
    max_file_bytes: int
    exact_rows: int
    optional: bool
    full: bool = False
    recipe: EncoderConfig = EncoderConfig(model="off")
    workers: int = 1
    lock_wait_s: float = 10.0


class Progressed(msgspec.Struct, frozen=True, tag="progress"):
    """So many topics are done."""

    stage: str
    done: int
    total: int


class Reported(msgspec.Struct, frozen=True, tag="report"):
    """A part of the report; `joined` makes one of them all."""

    part: SyncReport


class Logged(msgspec.Struct, frozen=True, tag="log"):
    """What the library said there."""

    level: int
    logger: str
    text: str


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The work could not be done.

    Attributes:
        kind: class of the exception, or "" for one that says nothing to a caller.
        text: what it said.
        path: the file concerned, "" for none.
        detail: holder of a lock, or number of a system error.
    """

    kind: str
    text: str
    path: str = ""
    detail: str = ""


class Done(msgspec.Struct, frozen=True, tag="done"):
    """There is nothing more to come."""


Message = Progressed | Reported | Logged | Failed | Done
Tell = Callable[[Message], None]


def encoded(item: Job | Message) -> bytes:
    """The item as a line; ASCII, so that a path may hold bytes that are no text."""
    return json.dumps(msgspec.to_builtins(item)).encode("ascii") + b"\n"


def decoded(line: bytes) -> Message | None:
    """The message, None for a line that is none: whatever a library printed."""
    try:
        message: Message = msgspec.convert(json.loads(line), Message)
    except (ValueError, RecursionError, msgspec.ValidationError):
        return None
    return message


def job_for(index: Collection, stage: Stage, **how: Any) -> Job:
    """The job that does for this collection what it would do itself."""
    return Job(
        stage=stage,
        root=str(index.root.absolute()),
        scope=index.scope,
        cache=str(index.cache),
        max_file_bytes=index.max_file_bytes,
        exact_rows=index.exact_rows,
        optional=index.optional,
        **how,
    )


def work(job: Job, tell: Tell, stop: threading.Event) -> None:
    """Does the job.

    Args:
        job: what to do.
        tell: gets progress and report.
        stop: set it to stop after the present text.

    Raises:
        EncoderError: the model does not work.
        LockedError: another process keeps writing.
        OSError: the cache folder is full, or cannot be used.
    """

    def progress(stage: str, done: int, total: int) -> None:
        tell(Progressed(stage, done, total))

    index = Collection(
        Path(job.root),
        job.scope,
        cache=Path(job.cache),
        max_file_bytes=job.max_file_bytes,
        optional=job.optional,
        exact_rows=job.exact_rows,
    )
    try:
        _check_permanent(index)
        if job.stage == "vectors":
            encoder = make_encoder(job.recipe)
            assert encoder is not None  # noqa: S101 - `off` is no recipe (index.encoders)
            report = index.sync_vectors(
                encoder, lock_wait_s=job.lock_wait_s, stop=stop, workers=job.workers, on_progress=progress
            )
        elif job.full:
            report = index.rebuild(on_progress=progress)
        else:
            report = index.sync_words(lock_wait_s=job.lock_wait_s, on_progress=progress)
        _check_permanent(index)
        for part in _parts(report):
            tell(Reported(part))
    finally:
        index.close()


def _check_permanent(index: Collection) -> None:
    if index.is_temporary:
        raise RuntimeError(index.note)  # what is made here would be lost; who wants it has to see for itself


def _parts(report: SyncReport) -> Iterator[SyncReport]:
    """The report in pieces that together say the same."""
    lists: dict[str, Any] = {
        field.name: value for field in fields(report) if isinstance(value := getattr(report, field.name), tuple)
    }
    nothing: dict[str, Any] = dict.fromkeys(lists, ())
    yield replace(report, **nothing)
    for name, items in lists.items():
        for at in range(0, len(items), _LISTED):
            yield SyncReport(**{name: items[at : at + _LISTED]})


# --- the process


class _Out:
    """Messages to whoever started this process, a line each, from any thread."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def __call__(self, message: Message) -> None:
        with self._lock:
            self._stream.write(encoded(message))
            self._stream.flush()


class _LogHandler(logging.Handler):
    """Sends on what the library logs."""

    def __init__(self, tell: Tell) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Sends the record; one that cannot be sent is lost."""
        with suppress(OSError):
            self._tell(Logged(record.levelno, record.name, record.getMessage()))


def _failed(error: Exception) -> Failed:
    if isinstance(error, LockedError):
        return Failed("LockedError", str(error), path=str(error.path), detail=error.holder)
    if isinstance(error, EncoderError):
        return Failed("EncoderError", str(error))
    if isinstance(error, OSError):
        path = "" if error.filename is None else str(error.filename)
        return Failed("OSError", error.strerror or str(error), path=path, detail=str(error.errno or ""))
    return Failed("", str(error) or repr(error))


def _obey(asked: BinaryIO, stop: threading.Event) -> None:
    """Waits for the end of stdin, then ends the work, and the process if need be."""
    asked.read()
    stop.set()
    threading.Event().wait(_GRACE_S)
    os._exit(1)


def main() -> None:
    """What the process runs; it ends with it."""
    # Whatever a library prints goes nowhere; the stream is for messages.
    tell = _Out(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)
    logging.getLogger("recall").addHandler(_LogHandler(tell))
    stop = threading.Event()
    try:
        job = msgspec.convert(json.loads(sys.stdin.buffer.readline()), Job)
        threading.Thread(target=_obey, args=(sys.stdin.buffer, stop), daemon=True).start()
        if hasattr(os, "nice"):
            os.nice(_NICE)
        work(job, tell, stop)
        tell(Done())
    except Exception as error:
        with suppress(OSError):  # nobody is there any more
            tell(_failed(error))
    os._exit(0)  # at once, whatever threads and libraries are at
