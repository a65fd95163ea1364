"""One memory root with its derived data: opens it, keeps it in step with the files, hands out snapshots.

Whatever is damaged, foreign or gone among the derived data is thrown away and made anew; where the cache folder cannot
be written, a temporary one serves for the life of the process.
"""

import errno
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

from recall.errors import IndexFormatError, LockedError, RecallError
from recall.index.approximate import EXACT_ROWS, refresh_codes
from recall.index.base import Encoder
from recall.index.behind import behind, changed
from recall.index.catalog import Catalog
from recall.index.embed import Effort, apply_vectors, check_stored_vectors, count_lacking
from recall.index.findings import Finding, Kind, Subject
from recall.index.folder import VECTORS_LOCK, WORDS_LOCK
from recall.index.home import Home, writing
from recall.index.mending import mend_vectors, mend_words, renew_readers
from recall.index.purging import purge_vectors, purge_words
from recall.index.snapshot import Snapshot, take_snapshot
from recall.index.sync import Progress, Seen, SyncReport, apply_difference, apply_words, check_segments
from recall.store.look import Look, difference, glance, look
from recall.store.scan import Scan, scan
from recall.store.topics import Scope, Topic

logger = logging.getLogger(__name__)

_CLOSE_WAIT_S: Final = 1.0
_TRIES: Final = 8  # others that exchange the index again and again are few
_LOCK_WAIT_S: Final = 10.0

T = TypeVar("T")


class Collection:
    """Derived data of one memory root. Thread-safe.

    Args:
        root: the folder of topic files; may be missing.
        scope: whose memory it is.
        cache: folder of all derived data.
        max_file_bytes: larger files are reported, not indexed.
        optional: whether it is no fault when the root is missing.
        exact_rows: up to so many vectors all are read in a search; beyond, codes choose which.

    Attributes:
        inline_files: files that may be read at once where it cannot be chosen, so that more are left to a process of
            its own; None for any number.
    """

    def __init__(
        self,
        root: Path,
        scope: Scope,
        *,
        cache: Path,
        max_file_bytes: int,
        optional: bool = False,
        exact_rows: int = EXACT_ROWS,
    ) -> None:
        self.root = root
        self.scope = scope
        self.cache = cache
        self.max_file_bytes = max_file_bytes
        self.optional = optional
        self.exact_rows = exact_rows
        self.inline_files: int | None = None
        self._lock = threading.RLock()
        self._snapshot: Snapshot | None = None
        self._served: Snapshot | None = None
        self._held = self._closed = False
        self._seen: Seen | None = None
        self._checked: dict[str, Catalog] = {}
        self._home = Home(root, cache)
        self._catalog = self._home.open()

    @property
    def folder(self) -> Path:
        """Where the derived data lies."""
        return self._home.folder

    @property
    def note(self) -> str:
        """Why the derived data lies in a temporary folder, "" when it does not."""
        return self._home.note

    @property
    def is_temporary(self) -> bool:
        """Whether the derived data goes with this process, because the cache folder cannot be used."""
        return self._home.is_temporary

    @property
    def is_held(self) -> bool:
        """Whether another process makes everything anew for this one."""
        return self._held

    def hold(self) -> None:
        """Has `snapshot` give the present state, if there is any, until `release`: another process makes it anew."""
        now = self.snapshot()
        with self._lock:
            self._held, self._served = True, now if len(now) else None

    def release(self) -> None:
        """Ends what `hold` began, or what another process left undone; `snapshot` gives what is there."""
        with self._lock:
            self._held, self._served = False, None

    def rebuild(self, *, on_progress: Progress | None = None) -> SyncReport:
        """Throws all derived data away and reads the words anew; `snapshot` gives the old state meanwhile.

        Raises:
            LockedError: another process kept writing.
            OSError: the cache folder is full.
        """
        return self._renew(afresh=True, on_progress=on_progress)

    def _renew(
        self,
        *,
        afresh: bool = False,
        limit: int | None = None,
        lock_wait_s: float = _LOCK_WAIT_S,
        on_progress: Progress | None = None,
    ) -> SyncReport:
        """Opens the catalog again and sees to it that nobody meets an empty one."""
        with self._lock:
            elsewhere = self._held or self.inline_files is not None
            empty = self._snapshot is not None and not len(self._snapshot)
            if self._served is None and not (elsewhere and empty):  # the first words that another reads shall show
                self._served = self._snapshot
            try:
                self._checked.clear()
                self._catalog = self._home.open(afresh=afresh)
                return self.sync_words(limit=limit, lock_wait_s=lock_wait_s, on_progress=on_progress)
            finally:
                # With processes for what is much the old state serves until somebody has read all of the new one.
                if not elsewhere:
                    self._served = None

    def _sound(self, action: Callable[[Catalog], T]) -> T:
        """What the action gives; tries again with a catalog that others exchanged, and anew when it is damaged.

        Raises:
            RecallError: the collection is closed.
            IndexFormatError: others go on exchanging it.
        """
        damaged: Catalog | None = None
        for _ in range(_TRIES):
            catalog = self._current()
            try:
                return action(catalog)
            except IndexFormatError as error:
                logger.info("the index is looked at again: %s", error)
            if not catalog.is_in_place:
                continue  # whoever exchanged it fills it, and nothing of that may be thrown away
            with self._lock:
                if damaged is self._catalog and not self._closed:
                    self._try_renew(afresh=True)
            damaged = catalog
        return action(self._current())

    def _current(self) -> Catalog:
        """The catalog that is on the disk, opened again when it was deleted or exchanged."""
        with self._lock:
            if self._closed:
                raise RecallError(f"the memory in {self.root} is closed")
            try:
                self._catalog.check_in_place()
            except IndexFormatError as error:
                logger.info("the index is opened again: %s", error)
                self._try_renew()
            return self._catalog

    def _try_renew(self, *, afresh: bool = False) -> None:
        with suppress(LockedError, OSError):  # who synchronises will meet it too, and say so
            wait_s = _LOCK_WAIT_S if self.inline_files is None else 0.0
            self._renew(afresh=afresh, limit=self.inline_files, lock_wait_s=wait_s)

    def scan(self) -> Scan:
        """What lies in the root now."""
        return scan(self.root, self.scope)

    def sync_words(
        self,
        *,
        full: bool = False,
        glances: bool = False,
        limit: int | None = None,
        lock_wait_s: float = _LOCK_WAIT_S,
        on_progress: Progress | None = None,
    ) -> SyncReport:
        """Brings topics and words up to date with the files.

        Args:
            full: read every file, also those that look untouched.
            glances: leave files that were edited in place for the next time, and do nothing, which `left` says, where
                only a whole look tells what changed.
            limit: where more files of usual size are to be read, do nothing and say so in `left`; None for any number.
            lock_wait_s: how long to wait for another process that writes.
            on_progress: told after every batch.

        Raises:
            LockedError: another process kept writing.
            OSError: the cache folder is full.
        """
        start = time.perf_counter()

        def work(catalog: Catalog) -> SyncReport:
            with writing(catalog, WORDS_LOCK, lock_wait_s):
                self._check(catalog, WORDS_LOCK, check_segments)
                # Not before the lock: what another has added meanwhile would look gone.
                last = None if full else self._last_seen(catalog)
                if glances and last is None:
                    return SyncReport(left=1)
                seen = glance(last.look) if glances and last else look(self.root, last=last.look if last else None)
                report = self._apply_difference(catalog, last, seen, limit) if last else None
                if report is None and glances:
                    return SyncReport(left=1)
                if report is None:
                    report = self._apply_scan(catalog, full=full, limit=limit, on_progress=on_progress)
                if not report.left:
                    self._seen = Seen(catalog, seen, catalog.words(), catalog.generation(), report)
                return report

        try:
            report = self._sound(work)
        except OSError as error:
            if not self._move_aside(error):
                raise
            report = self._sound(work)
        if self.inline_files is not None and not (report.left or self._held):
            self._served = None
        return replace(report, duration_s=time.perf_counter() - start)

    def _move_aside(self, error: OSError) -> bool:
        """Goes on in a temporary folder when the cache cannot hold even the first words; False if there are some."""
        if error.errno != errno.ENOSPC and "disk is full" not in str(error):
            return False
        with self._lock:
            if self.is_temporary or self._closed or self._current().count():
                return False
            self._home.move_out(error)
            self._catalog = self._home.open()
            return True

    def _last_seen(self, catalog: Catalog) -> Seen | None:
        """What the last look saw; None when it was of another catalog, or another process has written since."""
        last = self._seen
        return last if last and last.catalog is catalog and last.words == catalog.words() else None

    def _apply_difference(self, catalog: Catalog, last: Seen, seen: Look, limit: int | None) -> SyncReport | None:
        """Brings the words up to date by what changed since the last look; None when that does not say enough."""
        changes, most = difference(last.look, seen), self.max_file_bytes
        if changes is None:
            return None
        return apply_difference(catalog, changes, scope=self.scope, max_bytes=most, before=last.report, limit=limit)

    def _apply_scan(
        self, catalog: Catalog, *, full: bool, limit: int | None, on_progress: Progress | None
    ) -> SyncReport:
        found = self.scan()
        report = apply_words(
            catalog, found, max_bytes=self.max_file_bytes, full=full, limit=limit, on_progress=on_progress
        )
        return replace(report, note="" if self.optional else found.root_problem)

    def shows_look(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot holds what the last look saw: others may have begun to make everything anew since."""
        last = self._seen  # while others make everything anew, one from before may serve
        return last is not None and snapshot.is_of(last.catalog) and snapshot.generation >= last.generation

    def shows_all(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot is the catalog's last commit, and no file has changed since."""
        return self._sound(lambda now: snapshot.shows(now, now.generation())) and not self.behind()

    def file_count(self) -> int:
        """About how many topic files lie in the root; cheaper than a scan."""
        return len(look(self.root))

    def lacks(self, encoder: Encoder, *, most: int) -> int:
        """About how many chunks have no vectors of this encoder, counted up to `most` topics."""
        return self._sound(lambda catalog: count_lacking(catalog, encoder.fingerprint, most))

    def sync_vectors(
        self,
        encoder: Encoder,
        *,
        limit: int | None = None,
        lock_wait_s: float = _LOCK_WAIT_S,
        stop: threading.Event | None = None,
        workers: int = 1,
        on_progress: Progress | None = None,
    ) -> SyncReport:
        """Gives topics their vectors, newest first.

        Args:
            encoder: the model; another one than last time makes all vectors anew.
            limit: chunks at most; None for all, and for the codes of a large memory.
            lock_wait_s: how long to wait for another process that does the same.
            stop: set it to stop after the present text.
            workers: texts that the model is asked for at once; more than one only if it bears that.
            on_progress: told after every step.

        Raises:
            EncoderError: the model does not work.
            LockedError: another process is at it.
            OSError: the cache folder is full.
        """
        start, effort = time.perf_counter(), Effort(limit, stop, workers)

        def work(catalog: Catalog) -> SyncReport:
            with writing(catalog, VECTORS_LOCK, lock_wait_s):
                self._check(catalog, VECTORS_LOCK, check_stored_vectors)
                report = apply_vectors(
                    catalog, encoder, neighbours=self._home.neighbours, effort=effort, on_progress=on_progress
                )
                if limit is None:  # else somebody waits for an answer
                    refresh_codes(catalog, exact_rows=self.exact_rows, stop=stop)
                return report

        report = self._sound(work)
        if limit is None:
            self.warm_up()
        return replace(report, duration_s=time.perf_counter() - start)

    def warm_up(self) -> None:
        """Reads the codes of a large memory, so that no answer has to."""
        if tier := self.snapshot().tier:
            tier.warm_up()

    @property
    def subject(self) -> Subject:
        """What a check looks at (index.health)."""
        return Subject(self.folder, self.root, self.scope, self.max_file_bytes)

    def mend(self, findings: Sequence[Finding]) -> tuple[str, ...]:
        """Mends derived data, never a memory file, by the smallest steps that help.

        What was taken out on the way comes back with the next synchronisation of words and of vectors.

        Args:
            findings: what a check found (index.health).

        Returns:
            What was done, a sentence each.

        Raises:
            LockedError: another process kept writing.
            OSError: the cache folder is full.
        """
        if any(finding.kind is Kind.CATALOG and finding.mendable for finding in findings):
            self.rebuild()
            return ("the catalog was thrown away with all that belongs to it; the words were read anew",)
        if not any(finding.mendable for finding in findings):
            return ()
        return self._rewritten(lambda own: mend_words(own, findings), lambda own: mend_vectors(own, findings))

    def _rewritten(self, *parts: Callable[[Catalog], tuple[str, ...]]) -> tuple[str, ...]:
        """Does something to words and vectors, each under its lock; what was done."""

        def work(catalog: Catalog) -> tuple[str, ...]:
            done: tuple[str, ...] = ()
            for lock, part in zip((WORDS_LOCK, VECTORS_LOCK), parts, strict=True):
                with writing(catalog, lock, _LOCK_WAIT_S):
                    done += part(catalog)
            renew_readers(catalog)
            return done

        return self._sound(work)

    def purge(self) -> None:
        """Leaves nothing in the derived data of what the files no longer say.

        Raises:
            LockedError: another process kept writing.
            OSError: the cache folder is full.
        """
        self.sync_words()
        self._rewritten(purge_words, purge_vectors)

    def _check(self, catalog: Catalog, what: str, check: Callable[[Catalog], None]) -> None:
        """Reads what lies on the disk, the first time that this process writes to the catalog."""
        if self._checked.get(what) is not catalog:
            check(catalog)
            self._checked[what] = catalog

    def snapshot(self) -> Snapshot:
        """The state at the last commit of any process."""
        if (served := self._served) is not None:
            return served
        taken = self._sound(self._take)
        served = self._served  # set meanwhile when the catalog turned out to be gone
        return taken if served is None else served

    def _take(self, catalog: Catalog) -> Snapshot:
        last, generation = self._snapshot, catalog.generation()
        if last is not None and not last.is_whole:
            last = self._snapshot = None
        elif last is not None and last.shows(catalog, generation):
            return last
        try:
            taken = take_snapshot(catalog, self.scope, last=last)
        except IndexFormatError:
            if catalog.generation() == generation:
                raise
            return self._take(catalog)  # somebody wrote meanwhile, and deleted files that were to be opened
        self._snapshot = taken
        return taken

    def changed(self, topics: Sequence[Topic]) -> set[str]:
        """Paths of those topics whose text is another by now, or that are gone; at the cost of a `stat` each."""
        return self._sound(lambda catalog: changed(catalog, topics, max_bytes=self.max_file_bytes))

    def behind(self) -> list[str]:
        """Paths that changed since the state that `snapshot` gives; waits for nobody, reads no file."""

        def work(catalog: Catalog) -> list[str]:
            last = self._seen if self._seen and self._seen.catalog is catalog else None
            changes = difference(last.look, look(self.root, last=last.look)) if last else None
            return behind(catalog, self.scan().files if changes is None else changes)

        return self._sound(work)

    def problems(self) -> dict[str, str]:
        """Files that could not be read or embedded at the last synchronisation, with the reason."""
        return self._sound(lambda catalog: catalog.problems())

    def warnings(self) -> dict[str, tuple[str, ...]]:
        """What was odd about files that were indexed all the same, by path."""
        return self._sound(lambda catalog: catalog.warnings())

    def close(self) -> None:
        """Closes the catalog; a temporary index is deleted. Waits no longer than a second for who is at work."""
        self._closed = True
        if not self._lock.acquire(timeout=_CLOSE_WAIT_S):
            return  # in the middle of a rebuild; the catalog is closed with its last user
        try:
            self._snapshot = self._served = None
            self._catalog.close()
            self._home.leave()
        finally:
            self._lock.release()
