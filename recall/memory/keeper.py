"""Keeps the indexes of a memory true to its files: a look before an answer, the long work in the background."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import Final

from recall.errors import EncoderError, LockedError
from recall.index.collection import Collection
from recall.index.snapshot import Snapshot
from recall.index.sync import Progress, SyncReport
from recall.memory.model import Model

logger = logging.getLogger(__name__)

# Chunks that get their vectors before an answer; more are left to the background.
_INLINE_CHUNKS: Final = 16
# A look at the folders that takes longer than this comes after the answer of a prefetch, not before it.
_QUICK_LOOK_S: Final = 0.02
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
        self._look_s = 0.0
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
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_WAIT_S)
        for index in self.indexes:
            index.close()

    @property
    def looks_quickly(self) -> bool:
        """Whether the last look at the folders took so little that an answer can wait for one."""
        return self._look_s <= _QUICK_LOOK_S

    def snapshots(self) -> list[Snapshot]:
        """The state of every index at its last commit."""
        return [index.snapshot() for index in self.indexes]

    def look(self, *, load_model: bool) -> str:
        """Reads what changed in the folders, and gives a few changed topics their vectors.

        Args:
            load_model: wait for the model; else vectors are only made when it is loaded already.

        Returns:
            What could not be done, in a sentence; "" when all was.
        """
        notes, start = [], time.perf_counter()
        try:
            notes.extend([index.sync_words(lock_wait_s=0.0).note for index in self.indexes])
            self._look_s = time.perf_counter() - start
            if load_model:
                self._model.warm_up()
            for index in self.indexes:
                if self._model.is_warm and self._model.encoder is not None:
                    index.sync_vectors(self._model.encoder, limit=_INLINE_CHUNKS, lock_wait_s=0.0, stop=self._stop)
        except LockedError:
            notes.append("another process or thread is indexing")
        except (EncoderError, OSError) as error:
            notes.append(str(error))
        self.words_ready.set()
        return "; ".join(filter(None, dict.fromkeys(notes)))

    def reindex(self, *, full: bool, on_progress: Progress | None) -> SyncReport:
        """Brings all indexes up to date, vectors and all.

        Raises:
            EncoderError: the model does not work; words are up to date all the same.
            LockedError: another process keeps writing.
            OSError: the cache folder is full.
        """
        self._model.warm_up()
        reports = []
        for index in self.indexes:
            if full:
                index.rebuild()
            words = index.sync_words(on_progress=on_progress)
            reports.append(replace(words, note="; ".join(filter(None, (words.note, index.note)))))
        self.words_ready.set()
        if self._model.encoder is not None:
            encoder = self._model.encoder
            reports.extend(
                [index.sync_vectors(encoder, stop=self._stop, on_progress=on_progress) for index in self.indexes]
            )
        reports.append(SyncReport(note=self._model.problem))
        return joined(reports)

    def _serve(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stop.is_set():
                return
            try:
                self._catch_up()
            except Exception:
                logger.warning("background indexing failed; the next recall tries again", exc_info=True)
            finally:
                self.words_ready.set()

    def _catch_up(self) -> None:
        warming = threading.Thread(target=self._model.warm_up, name="recall-warm-up", daemon=True)
        warming.start()
        for index in self.indexes:
            self._on_report(index.sync_words())
        self.words_ready.set()
        warming.join()
        for index in self.indexes:
            if self._model.encoder is not None and not self._stop.is_set():
                with suppress(LockedError):  # another process is at it, and its vectors serve us as well
                    self._on_report(index.sync_vectors(self._model.encoder, lock_wait_s=0.0, stop=self._stop))


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
