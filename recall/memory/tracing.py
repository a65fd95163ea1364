"""Traces of what was handed over, written off the hot path: a recall only leaves a note in a queue.

Whatever happens to the file, no recall is held up by it and none fails: what cannot be written is lost and counted.
"""

import logging
import queue
import secrets
import threading
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from recall.config import Config
from recall.errors import LockedError
from recall.index.folder import cache_folder
from recall.memory.model import Model
from recall.memory.opening import cache_root
from recall.search.delivery import Delivery
from recall.search.relevance import fused_relevance, words_relevance
from recall.search.retriever import bounded
from recall.search.types import Hit, Phase, Recall, Strategy
from recall.store.topics import Scope
from recall.store.tracelog import TraceLog
from recall.store.traces import MOST_HITS, Origin, Trace, TracedHit, asked, session_name

logger = logging.getLogger(__name__)

_MOST_WAITING: Final = 256
# How long the end of the process, or of a memory that nobody closed, waits for notes that are still to be written.
_EXIT_WAIT_S: Final = 0.1
_READER_WAIT_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Note:
    """One recall as it was handed over; slim, so that a full queue holds no memories and no long query.

    Attributes:
        id: of the handle.
        time: seconds since the epoch.
        query: the question at the length that is searched.
        strategy: how the hits were chosen.
        phase: None for a recall that waited.
        origin: who asked.
        hits: scope, path, score, and whether the score is a fused one; best first.
        floor: of the model that made fused scores.
    """

    id: str
    time: float
    query: str
    strategy: Strategy
    phase: Phase | None
    origin: Origin
    hits: tuple[tuple[Scope, str, float, bool], ...]
    floor: float


def slim(hits: Sequence[Hit]) -> tuple[tuple[Scope, str, float, bool], ...]:
    """The hits as a note has them."""
    return tuple((hit.topic.scope, hit.topic.path, hit.score, hit.lexical is not None) for hit in hits[:MOST_HITS])


def traces_of(note: Note) -> dict[Scope, Trace]:
    """The trace for every root that something was found in."""
    key, text = asked(note.query)
    found: dict[Scope, list[TracedHit]] = {}
    for scope, path, score, fused in note.hits:
        relevance = fused_relevance(score, note.floor) if fused else words_relevance(score, note.query)
        found.setdefault(scope, []).append(TracedHit(path, round(relevance, 2), round(float(score), 6)))
    return {
        scope: Trace(
            id=note.id,
            time=note.time,
            key=key,
            query=text,
            surface=note.origin.surface,
            session=session_name(note.origin.session),
            interactive=note.origin.interactive,
            phase=note.phase or "",
            strategy=note.strategy,
            hits=tuple(hits),
        )
        for scope, hits in found.items()
    }


@dataclass(slots=True)
class _Writing:
    """What the thread works on; it outlives the tracer that nobody closed.

    Attributes:
        logs: where traces go, by scope.
        notes: what is to be written; an event is set when its turn comes, None ends the thread. A simple queue, because
            it may be filled while garbage is collected, on any thread.
        thread: None until there is something to write.
        lost: notes that could not be written or found no place in the queue.
        complained: whether the log says so.
    """

    logs: Mapping[Scope, TraceLog]
    notes: "queue.SimpleQueue[Note | threading.Event | None]" = field(default_factory=queue.SimpleQueue)
    thread: threading.Thread | None = None
    lost: int = 0
    complained: bool = False

    def work(self) -> None:
        """Writes until it is told to end."""
        while (note := self.notes.get()) is not None:
            if isinstance(note, threading.Event):
                note.set()
                continue
            try:
                for scope, trace in traces_of(note).items():
                    self.logs[scope].append(trace)
            except Exception as error:
                self.lost += 1
                self._complain(error)

    def _complain(self, error: Exception) -> None:
        if not self.complained:
            self.complained = True
            expected = isinstance(error, OSError | LockedError)
            logger.warning("recalls leave no traces: %s", error, exc_info=None if expected else error)

    @property
    def is_alive(self) -> bool:
        return self.thread is not None and self.thread.is_alive()

    def drain(self, timeout_s: float) -> bool:
        """Waits until all notes are written; whether they are."""
        if not self.is_alive or self.thread is threading.current_thread():
            return self.notes.empty()
        written = threading.Event()
        self.notes.put(written)
        return written.wait(timeout_s)

    def finish(self, timeout_s: float) -> None:
        """Ends the thread once it has written what there is, waiting no longer than that."""
        if self.thread is not None:
            if not self.drain(timeout_s):
                logger.warning("some recalls may leave no traces: there was no time to write them")
            self.notes.put(None)


class Tracer:
    """Takes notes of what is handed over, and has them written; reads them back. Thread-safe.

    Args:
        logs: where traces lie, by scope.
        model: what encodes queries.
        enabled: whether notes are taken at all.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        logs: Mapping[Scope, TraceLog],
        model: Model,
        *,
        enabled: bool,
        clock: Callable[[], float],
    ) -> None:
        self._writing = _Writing(logs)
        self._model = model
        self._clock = clock
        self._lock = threading.Lock()
        self._is_open = enabled
        # At the end of the process, and when a memory is thrown away that nobody closed.
        self._finish = weakref.finalize(self, self._writing.finish, _EXIT_WAIT_S)

    @property
    def lost(self) -> int:
        """Notes that could not be written or found no place in the queue."""
        return self._writing.lost

    def record(self, recall: Recall, origin: Origin, *, phase: Phase | None = None, handle: str = "") -> None:
        """Notes a recall that was handed over; one without hits leaves nothing. Never waits, never raises.

        Args:
            recall: what was handed over.
            origin: who asked.
            phase: of a delivery.
            handle: the same for all deliveries of one question; "" makes one.
        """
        if not self._is_open or not recall.hits:
            return
        writing = self._writing
        if writing.notes.qsize() >= _MOST_WAITING:
            writing.lost += 1
            return
        try:
            writing.notes.put(self._note(recall, origin, phase, handle or new_handle()))
            if not writing.is_alive:  # none yet, or this is a forked child
                self._start()
        except Exception:
            logger.warning("a recall leaves no trace", exc_info=True)

    def _note(self, recall: Recall, origin: Origin, phase: Phase | None, handle: str) -> Note:
        encoder = self._model.encoder
        return Note(
            id=handle,
            time=self._clock(),
            query=bounded(recall.query),
            strategy=recall.strategy,
            phase=phase,
            origin=origin,
            hits=slim(recall.hits),
            floor=encoder.floor if encoder else 0.0,
        )

    def listener(self, origin: Origin) -> Callable[[Delivery], None]:
        """What notes the deliveries of one handle."""
        handle = new_handle()
        return lambda delivery: self.record(delivery.recall, origin, phase=delivery.phase, handle=handle)

    def _start(self) -> None:
        writing = self._writing
        with self._lock:
            if not writing.is_alive:
                writing.thread = threading.Thread(target=writing.work, name="recall-traces", daemon=True)
                writing.thread.start()

    def flush(self, timeout_s: float = _READER_WAIT_S) -> bool:
        """Waits until all notes are written; whether they are."""
        return self._writing.drain(timeout_s)

    def read(self, scope: Scope) -> list[Trace]:
        """The traces of one root, oldest first; none for a scope that is not open.

        Raises:
            OSError: they are there and cannot be read.
        """
        self.flush()
        log = self._writing.logs.get(scope)
        return log.read() if log else []

    def peek(self, scope: Scope) -> list[Trace]:
        """The same, but none when they cannot be read."""
        try:
            return self.read(scope)
        except OSError as error:
            logger.warning("traces cannot be read: %s", error)
            return []

    def purge(self, ids: Collection[str]) -> None:
        """Takes topics out of the traces of all roots, and the text of all questions that they were recalled for.

        Raises:
            LockedError: another process kept writing.
            OSError: the traces cannot be rewritten.
        """
        self.flush()
        prefix = f"{Scope.USER}:"
        of_user = frozenset(name.removeprefix(prefix) for name in ids if name.startswith(prefix))
        paths = {Scope.PROJECT: frozenset(ids), Scope.USER: of_user}
        logs = self._writing.logs
        keys = frozenset[str]().union(*(log.keys_of(paths[scope]) for scope, log in logs.items()))
        salt = secrets.token_bytes(16)
        for scope, log in logs.items():
            log.purge(paths[scope], keys, salt=salt)

    def close(self, timeout_s: float) -> None:
        """Writes what is noted and ends, waiting no longer than that; later notes leave nothing."""
        self._is_open = False
        if self._finish.detach() is not None:
            self._writing.finish(timeout_s)


def trace_logs(scopes: Mapping[Scope, Path], config: Config) -> dict[Scope, TraceLog]:
    """Where traces of recalls lie: in the cache folder, but not among the derived data, which is thrown away at will.

    Args:
        scopes: the memory roots.
        config: settings; whether traces are made at all is not looked at.
    """
    cache = cache_root(config)
    return {
        scope: TraceLog(cache / "traces" / cache_folder(cache, root).name, config.traces.max_bytes)
        for scope, root in scopes.items()
    }


def new_handle() -> str:
    """A name for one question that no other process gives."""
    return secrets.token_hex(8)
