"""Keeps the indexes of a memory true to its files: a look before an answer, the long work in the background."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from recall.errors import EncoderError, IndexFormatError, LockedError
from recall.index.base import Encoder
from recall.index.collection import Collection
from recall.index.folder import VECTORS_LOCK
from recall.index.snapshot import Snapshot
from recall.index.sync import Progress, SyncReport, joined
from recall.memory.bulk import Bulk
from recall.memory.model import Model
from recall.store.topics import Scope

logger = logging.getLogger(__name__)

# Chunks that get their vectors before an answer; more are left to the background.
_INLINE_CHUNKS: Final = 16
# A look at the folders that takes longer than this comes after the answer of a prefetch, not before it.
_QUICK_LOOK_S: Final = 0.02
_QUICK_GLANCE_S: Final = 0.04
# Where nothing was found, an answer that comes late is better than none, if it does so within this.
_LATE_LOOK_S: Final = 0.3
# How many times as long as for a look the background rests before the next one that nobody waits for.
_REST: Final = 10.0
# How long an answer that may wait does so for the background of its own process, which reads what many files say.
_LOOK_WAIT_S: Final = 5.0
# How long it waits for another process that writes: as long as what one changed file costs, its vectors included.
_WRITER_WAIT_S: Final = 0.3
_STOP_WAIT_S: Final = 0.7
# Rounds of the background that an answer waits for: the one under way may have begun before the files changed.
_LOOKS: Final = 3
# To read so many takes few of the milliseconds that an answer has.
_GLANCED_FILES: Final = 8
_UNREAD: Final = "what changed in the folder is read after this answer"
ANEW: Final = "the index is being made anew"
"""What is said of an answer meanwhile."""


class Keeper:
    """The indexes of all scopes with their upkeep. Thread-safe.

    Args:
        indexes: project before user.
        model: what makes vectors.
        on_report: told of every synchronisation in the background.
        workers: texts that long work encodes at once; 0 keeps it in this process even with a background.

    Attributes:
        indexes: as given.
        words_ready: set once the words of all topics have been looked at for the first time.
    """

    def __init__(
        self,
        indexes: Sequence[Collection],
        model: Model,
        *,
        on_report: Callable[[SyncReport], object],
        workers: int = 0,
    ) -> None:
        self.indexes = tuple(indexes)
        self.words_ready = threading.Event()
        self._model = model
        self._on_report = on_report
        self._bulk = Bulk(workers, on_words=self._some_words)
        self._stop, self._wake, self._hurry = threading.Event(), threading.Event(), threading.Event()
        # Set while the background is to leave the making of vectors to others.
        self._aside = threading.Event()
        self._claims, self._rounds = 0, 0
        self._changed = threading.Condition()
        self._reading, self._working = threading.RLock(), threading.RLock()
        self._look_s = dict.fromkeys(self.indexes, 0.0)
        self._glance_s = 0.0
        self._unread = set(self.indexes)
        self._passed: set[Collection] = set()
        self._has_words = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="recall-keeper", daemon=True)
        self._warming = threading.Thread(name="recall-warm-up", daemon=True)  # one that was never started
        # In a thread of their own: they may take minutes, and files go on changing.
        self._vectors_wanted = threading.Event()
        self._vectors = threading.Thread(target=self._make_vectors, name="recall-vectors", daemon=True)

    @property
    def scopes(self) -> dict[Scope, Path]:
        """The memory folders."""
        return {index.scope: index.root for index in self.indexes}

    def start(self) -> None:
        """Loads the model and indexes, in the background; from now on long work is left to processes of its own."""
        self._bulk.start(self.indexes)
        self._thread.start()
        self._vectors.start()
        self.wake()

    def wake(self) -> None:
        """Has the background look again, now."""
        self._hurry.set()
        self._wake.set()

    def look_soon(self) -> None:
        """Has the background look again, once it has rested from the last look: answers need the machine as well."""
        self._wake.set()

    def want_vectors(self) -> None:
        """Has the background make vectors that are missing, and can be made, without another look at the folders."""
        encoder = self._model.encoder
        if encoder is not None and any(index.lacks(encoder, most=1) for index in self.indexes):
            self._vectors_wanted.set()

    def stop(self) -> None:
        """Ends the background work, waiting less than a second, and closes the indexes."""
        self._stop.set()
        self._aside.set()
        self.wake()
        self._vectors_wanted.set()
        self._end_round()
        self._bulk.end()
        until = time.monotonic() + _STOP_WAIT_S
        for thread in (self._thread, self._vectors):
            if thread.is_alive():
                thread.join(max(0.0, until - time.monotonic()))
        for index in self.indexes:
            index.close()

    @property
    def note(self) -> str:
        """What is being read, in a sentence; "" when nothing is."""
        return self._bulk.note

    @property
    def looks_quickly(self) -> bool:
        """Whether the last look at the folders took so little that an answer can wait for one."""
        return sum(self._look_s.values()) <= _QUICK_LOOK_S

    @property
    def looks_in_time(self) -> bool:
        """Whether a late answer can wait for a look at the folders."""
        return sum(self._look_s.values()) <= _LATE_LOOK_S

    @property
    def glances_quickly(self) -> bool:
        """Whether the last glance since the background looked took so little that an answer can wait for one."""
        return self._glance_s <= _QUICK_GLANCE_S

    def snapshots(self, *, patience_s: float = 0.0) -> list[Snapshot]:
        """The state of every index at its last commit.

        Args:
            patience_s: how long to wait for the first words while nothing is indexed yet.
        """
        found = [index.snapshot() for index in self.indexes]
        if any(map(len, found)) or self.words_ready.is_set():
            return found
        self._has_words.wait(patience_s)
        return [index.snapshot() for index in self.indexes]

    def shows_look(self, snapshots: Sequence[Snapshot]) -> bool:
        """Whether these snapshots, one of each index, hold what the last look saw."""
        return all(
            (index.shows_all if index in self._passed else index.shows_look)(shown)
            for index, shown in zip(self.indexes, snapshots, strict=True)
        )

    def look(self, *, load_model: bool, glances: bool = False, waits_for_vectors: bool = True) -> str:
        """Reads what changed in the folders, and gives a few changed topics their vectors.

        Args:
            load_model: wait for the model, for what the background reads, and a moment for another thread or process
                that writes; else vectors are only made when the model is loaded already, and nobody is waited for.
            glances: leave out what takes long to notice, files that were edited in place.
            waits_for_vectors: with `load_model`, also wait for a process that makes vectors.

        Returns:
            What could not be done, in a sentence; "" when all was.
        """
        wait_s = _LOOK_WAIT_S if load_model else 0.0
        vectors_wait_s = _WRITER_WAIT_S if load_model and waits_for_vectors else 0.0
        start = time.perf_counter()
        read = _glance_at if glances else partial(self._look_at, wait_s=wait_s)
        notes = [_attempt(partial(read, index)) for index in self.indexes]
        if glances:
            self._glance_s = time.perf_counter() - start
        if load_model:
            self._model.warm_up()
        if self._model.is_warm and (encoder := self._model.encoder) is not None:
            notes += [
                _attempt(partial(self._give_vectors, index, encoder, wait_s=vectors_wait_s))
                for index in self.indexes
                if not index.is_held
            ]
        return "; ".join(filter(None, dict.fromkeys(notes)))

    def _look_at(self, index: Collection, wait_s: float) -> SyncReport:
        """Reads what changed; what is much is left to the background, which is waited for."""
        until = time.monotonic() + wait_s
        report = SyncReport()
        for _ in range(_LOOKS):
            if index.is_held:
                return SyncReport(note=ANEW)
            rounds = self._rounds
            report = self._read_or_pass(index, min(_WRITER_WAIT_S, until - time.monotonic()))
            if not report.left or not self._await_round(rounds, until - time.monotonic()):
                break
        return replace(report, note=_UNREAD) if report.left else report

    def _read_or_pass(self, index: Collection, wait_s: float) -> SyncReport:
        """Reads what changed; who is writing is only waited for where anything did.

        Raises:
            LockedError: something changed, and another thread or process kept writing.
        """
        try:
            report = self._sync_words(index, 0.0)
        except LockedError:
            if not index.behind():
                self._passed.add(index)
                return SyncReport()
            if wait_s <= 0:
                raise
            report = self._sync_words(index, wait_s)
        self._passed.discard(index)
        return report

    def _give_vectors(self, index: Collection, encoder: Encoder, *, wait_s: float) -> SyncReport:
        """Gives a few chunks their vectors, unless there are many and a background that makes them, the newest first.

        Who is making some is only waited for where that ends soon.

        Raises:
            LockedError: some are missing, and another thread or process makes them.
        """
        if self._vectors.is_alive() and index.lacks(encoder, most=_INLINE_CHUNKS + 1) > _INLINE_CHUNKS:
            self._vectors_wanted.set()
            return SyncReport()
        make = partial(index.sync_vectors, encoder, limit=_INLINE_CHUNKS, stop=self._stop)
        try:
            return make(lock_wait_s=0.0)
        except LockedError:
            lacking = index.lacks(encoder, most=_INLINE_CHUNKS + 1)
            if not lacking:
                return SyncReport()
            if wait_s <= 0 or lacking > _INLINE_CHUNKS:
                raise
            return make(lock_wait_s=wait_s)

    def _await_round(self, last: int, wait_s: float) -> bool:
        """Has the background read what is new, and waits until it did; False when it takes longer."""
        # Words are worth more than vectors: those of the background are made afterwards.
        self._aside.set()
        self._bulk.call_off()
        self.wake()
        with self._changed:
            return self._changed.wait_for(lambda: self._rounds > last or self._stop.is_set(), wait_s)

    def _sync_words(self, index: Collection, wait_s: float) -> SyncReport:
        report = self._bulk.read_few(index, lock_wait_s=max(0.0, wait_s))
        if not (report.left or report.added or report.changed):  # else it was the reading that took its time
            self._look_s[index] = report.duration_s
        if not report.left:
            self._has_read(index)
        return report

    def _has_read(self, index: Collection) -> None:
        self._unread.discard(index)
        if not self._unread:
            self._all_words_ready()

    def _all_words_ready(self) -> None:
        self.words_ready.set()
        self._some_words()

    def _some_words(self) -> None:
        self._has_words.set()

    def reindex(self, *, full: bool, on_progress: Progress | None) -> SyncReport:
        """Brings all indexes up to date, vectors and all.

        Raises:
            EncoderError: the model does not work; words are up to date all the same.
            LockedError: another process keeps writing.
            OSError: the cache folder is full.
        """
        self._model.warm_up()
        self._claim(1)
        try:
            with self._reading:
                words = self._all_words(full, on_progress)
            with self._working:
                return joined([*words, *self._all_vectors(on_progress)])
        finally:
            self._claim(-1)

    def _claim(self, number: int) -> None:
        """Keeps the background from making vectors while there are claims."""
        with self._changed:
            self._claims += number
            if self._claims or self._stop.is_set():
                self._aside.set()
            else:
                self._aside.clear()
        self._bulk.call_off()

    def _all_words(self, full: bool, on_progress: Progress | None) -> list[SyncReport]:
        reports = []
        for index in self.indexes:
            words = self._bulk.read(index, full=full, until=self._stop, on_progress=on_progress)
            reports.append(replace(words, note="; ".join(filter(None, (words.note, index.note)))))
        self._all_words_ready()
        return reports

    def _all_vectors(self, on_progress: Progress | None) -> list[SyncReport]:
        if (encoder := self._model.encoder) is None:
            return [SyncReport(note=self._model.problem)]
        return [self._bulk.embed(index, encoder, until=self._stop, on_progress=on_progress) for index in self.indexes]

    def _serve(self) -> None:
        while True:
            self._wake.wait()
            self._hurry.wait(_REST * sum(self._look_s.values()))
            self._wake.clear()
            self._hurry.clear()
            if self._stop.is_set():
                return
            try:
                self._catch_up()
            except Exception:
                if not self._stop.is_set():  # else it is the closed index that it met
                    logger.warning("background indexing failed; the next recall tries again", exc_info=True)
            finally:
                self._all_words_ready()
                self._end_round()

    def _end_round(self) -> None:
        with self._changed:
            self._rounds += 1
            self._changed.notify_all()

    def _catch_up(self) -> None:
        self._claim(0)
        self._glance_s = 0.0  # it may have been a moment of much work elsewhere
        if not self._warming.is_alive():  # it may hang
            self._warming = threading.Thread(target=self._model.warm_up, name="recall-warm-up", daemon=True)
            self._warming.start()
        with self._reading:
            for index in self.indexes:
                report = self._sync_words(index, _LOOK_WAIT_S)
                if report.left:
                    report = self._bulk.read_many(index, until=self._stop, lock_wait_s=_LOOK_WAIT_S)
                    self._has_read(index)
                self._on_report(report)
        self._end_round()
        self._vectors_wanted.set()

    def _make_vectors(self) -> None:
        while True:
            self._vectors_wanted.wait()
            self._vectors_wanted.clear()
            if self._stop.is_set():
                return
            try:
                self._model.warm_up()
                self._embed_all()
            except Exception:
                if not self._stop.is_set():  # else it is the closed index that it met
                    logger.warning("making vectors failed; the next recall tries again", exc_info=True)

    def _embed_all(self) -> None:
        with self._working:
            for index in self.indexes:
                if self._model.encoder is not None and not self._aside.is_set():
                    with suppress(LockedError):  # another process is at it, and its vectors serve us as well
                        self._on_report(
                            self._bulk.embed(index, self._model.encoder, until=self._aside, lock_wait_s=0.0)
                        )


def _glance_at(index: Collection) -> SyncReport:
    """Reads the few files that came, went or were exchanged; what is more is left to the background."""
    report = index.sync_words(glances=True, limit=_GLANCED_FILES, lock_wait_s=0.0)
    return replace(report, note=_UNREAD) if report.left else report


def _attempt(sync: Callable[[], SyncReport]) -> str:
    """Runs it; gives what is to be said about it."""
    try:
        return sync().note
    except LockedError as error:
        writer = error.holder or "another process"
        return f"{writer} is {'making vectors' if error.path.name == VECTORS_LOCK else 'writing the index'}"
    except IndexFormatError:  # again and again: somebody throws it away while it is read
        return ANEW
    except (EncoderError, OSError) as error:
        return str(error)
