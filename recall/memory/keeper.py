"""Keeps the indexes of a memory true to its files: a look before an answer, the long work in the background."""

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from typing import Final

from recall.errors import EncoderError, IndexFormatError, LockedError
from recall.index.collection import Collection
from recall.index.snapshot import Snapshot
from recall.index.sync import Progress, SyncReport
from recall.memory.model import Model

logger = logging.getLogger(__name__)

# Chunks that get their vectors before an answer; more are left to the background.
_INLINE_CHUNKS: Final = 16
# A look at the folders that takes longer than this comes after the answer of a prefetch, not before it.
_QUICK_LOOK_S: Final = 0.02
# How long an answer that may wait does so for others that read the folders.
_LOOK_WAIT_S: Final = 5.0
_VECTORS_WAIT_S: Final = 1.5
_STOP_WAIT_S: Final = 2.0


class Keeper:
    """The indexes of all scopes with their upkeep. Thread-safe.

    Args:
        indexes: project before user.
        model: what makes vectors.
        on_report: told of every synchronisation in the background.

    Attributes:
        indexes: as given.
        words_ready: set once the words of all topics have been looked at for the first time.
    """

    def __init__(
        self, indexes: Sequence[Collection], model: Model, *, on_report: Callable[[SyncReport], object]
    ) -> None:
        self.indexes = tuple(indexes)
        self.words_ready = threading.Event()
        self._model = model
        self._on_report = on_report
        self._stop, self._wake = threading.Event(), threading.Event()
        # Set while the background is to leave the making of vectors to others.
        self._aside = threading.Event()
        self._working = threading.RLock()
        self._look_s = dict.fromkeys(self.indexes, 0.0)
        self._unread = set(self.indexes)
        self._thread = threading.Thread(target=self._serve, name="recall-keeper", daemon=True)

    def start(self) -> None:
        """Loads the model and indexes, in the background."""
        self._thread.start()
        self._wake.set()

    def wake(self) -> None:
        """Has the background look again."""
        self._wake.set()

    def stop(self) -> None:
        """Ends the background work, waiting two seconds at most, and closes the indexes."""
        self._stop.set()
        self._aside.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_WAIT_S)
        for index in self.indexes:
            index.close()

    @property
    def looks_quickly(self) -> bool:
        """Whether the last look at the folders took so little that an answer can wait for one."""
        return sum(self._look_s.values()) <= _QUICK_LOOK_S

    def snapshots(self, *, patience_s: float = 0.0) -> list[Snapshot]:
        """The state of every index at its last commit.

        Args:
            patience_s: how long to wait for the first words while nothing is indexed yet.
        """
        found = [index.snapshot() for index in self.indexes]
        if any(map(len, found)) or self.words_ready.is_set():
            return found
        self.words_ready.wait(patience_s)
        return [index.snapshot() for index in self.indexes]

    def look(self, *, load_model: bool) -> str:
        """Reads what changed in the folders, and gives a few changed topics their vectors.

        Args:
            load_model: wait for the model, and for another thread or process that reads the folders; else vectors are
                only made when the model is loaded already, and nobody is waited for.

        Returns:
            What could not be done, in a sentence; "" when all was.
        """
        wait_s = _LOOK_WAIT_S if load_model else 0.0
        # A small new memory is embedded by then; a large one is not worth a longer wait.
        vectors_wait_s = _VECTORS_WAIT_S if load_model else 0.0
        notes = [_attempt(partial(self._sync_words, index, wait_s)) for index in self.indexes]
        if load_model:
            self._model.warm_up()
        if self._model.is_warm and (encoder := self._model.encoder) is not None:
            notes += [
                _attempt(
                    partial(
                        index.sync_vectors, encoder, limit=_INLINE_CHUNKS, lock_wait_s=vectors_wait_s, stop=self._stop
                    )
                )
                for index in self.indexes
            ]
        return "; ".join(filter(None, dict.fromkeys(notes)))

    def _sync_words(self, index: Collection, wait_s: float) -> SyncReport:
        report = index.sync_words(lock_wait_s=wait_s)
        self._look_s[index] = report.duration_s
        self._unread.discard(index)
        if not self._unread:
            self.words_ready.set()
        return report

    def reindex(self, *, full: bool, on_progress: Progress | None) -> SyncReport:
        """Brings all indexes up to date, vectors and all.

        Raises:
            EncoderError: the model does not work; words are up to date all the same.
            LockedError: another process keeps writing.
            OSError: the cache folder is full.
        """
        self._model.warm_up()
        self._aside.set()
        try:
            with self._working:
                return joined([*self._all_words(full, on_progress), *self._all_vectors(on_progress)])
        finally:
            if not self._stop.is_set():
                self._aside.clear()

    def _all_words(self, full: bool, on_progress: Progress | None) -> list[SyncReport]:
        reports = []
        for index in self.indexes:
            words = (index.rebuild if full else index.sync_words)(on_progress=on_progress)
            reports.append(replace(words, note="; ".join(filter(None, (words.note, index.note)))))
        self.words_ready.set()
        return reports

    def _all_vectors(self, on_progress: Progress | None) -> list[SyncReport]:
        if (encoder := self._model.encoder) is None:
            return [SyncReport(note=self._model.problem)]
        return [index.sync_vectors(encoder, stop=self._stop, on_progress=on_progress) for index in self.indexes]

    def _serve(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stop.is_set():
                return
            try:
                self._catch_up()
            except Exception:
                if not self._stop.is_set():  # else it is the closed index that it met
                    logger.warning("background indexing failed; the next recall tries again", exc_info=True)
            finally:
                self.words_ready.set()

    def _catch_up(self) -> None:
        warming = threading.Thread(target=self._model.warm_up, name="recall-warm-up", daemon=True)
        warming.start()
        with self._working:
            for index in self.indexes:
                self._on_report(self._sync_words(index, _LOOK_WAIT_S))
        warming.join()
        with self._working:
            for index in self.indexes:
                if self._model.encoder is not None and not self._aside.is_set():
                    with suppress(LockedError):  # another process is at it, and its vectors serve us as well
                        self._on_report(index.sync_vectors(self._model.encoder, lock_wait_s=0.0, stop=self._aside))


def _attempt(sync: Callable[[], SyncReport]) -> str:
    """Runs it; gives what is to be said about it."""
    try:
        return sync().note
    except LockedError:
        return "another process or thread is indexing"
    except IndexFormatError:  # again and again: somebody throws it away while it is read
        return "the index is being made anew"
    except (EncoderError, OSError) as error:
        return str(error)


def joined(reports: Sequence[SyncReport]) -> SyncReport:
    """One report of several: lists one after the other, numbers added, notes joined."""
    total = reports[0]
    for report in reports[1:]:
        sums = {
            field.name: getattr(total, field.name) + getattr(report, field.name)
            for field in fields(SyncReport)
            if field.name != "note"
        }
        notes = dict.fromkeys(filter(None, (total.note, report.note)))
        total = SyncReport(**sums, note="; ".join(notes))
    return total
