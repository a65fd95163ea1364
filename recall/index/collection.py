"""One memory root with its derived data: opens it, keeps it in step with the files, hands out snapshots.

Whatever is damaged, foreign or gone among the derived data is thrown away and made anew; where the cache folder cannot
be written, a temporary one serves for the life of the process.
"""

import hashlib
import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

from recall.errors import IndexFormatError
from recall.index.base import Encoder
from recall.index.catalog import Catalog
from recall.index.embed import apply_vectors
from recall.index.snapshot import Snapshot, take_snapshot
from recall.index.sync import Progress, SyncReport, apply_words
from recall.store.locks import exclusive
from recall.store.scan import Scan, scan
from recall.store.topics import Scope

logger = logging.getLogger(__name__)

_OPEN_LOCK: Final = "open.lock"
_WORDS_LOCK: Final = "words.lock"
_VECTORS_LOCK: Final = "vectors.lock"
_LOCK_WAIT_S: Final = 10.0

T = TypeVar("T")


def cache_folder(cache: Path, root: Path) -> Path:
    """Where derived data of the root lies: named by the hash of its real path."""
    name = hashlib.sha256(str(root.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return cache / "roots" / name


class Collection:
    """Derived data of one memory root. Thread-safe.

    Args:
        root: the folder of topic files; may be missing.
        scope: whose memory it is.
        cache: folder of all derived data.
        max_file_bytes: larger files are reported, not indexed.
    """

    def __init__(self, root: Path, scope: Scope, *, cache: Path, max_file_bytes: int) -> None:
        self.root = root
        self.scope = scope
        self.note = ""
        self._max_file_bytes = max_file_bytes
        self._lock = threading.RLock()
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._snapshot: Snapshot | None = None
        self.folder = cache_folder(cache, root)
        self._catalog = self._open()

    def _open(self) -> Catalog:
        for attempt in range(2):
            try:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                with exclusive(self.folder / _OPEN_LOCK, timeout_s=_LOCK_WAIT_S):
                    return Catalog(self.folder, self.root.resolve())
            except IndexFormatError as error:
                logger.info("derived data is made anew: %s", error)
                self._wipe()
            except OSError as error:
                if attempt:
                    break
                self._use_temporary(error)
        raise IndexFormatError(f"{self.folder}: cannot hold an index; free some space or set index.cache")

    def _use_temporary(self, error: OSError) -> None:
        self.note = f"{self.folder} cannot be used ({error.strerror or error}); the index of this run is temporary"
        logger.warning("%s", self.note)
        self._temporary = tempfile.TemporaryDirectory(prefix="recall-", ignore_cleanup_errors=True)
        self.folder = Path(self._temporary.name)

    def _wipe(self) -> None:
        """Deletes derived data; lock files stay, others may hold them."""
        for file in self.folder.glob("*"):
            if file.suffix == ".lock":
                continue
            if file.is_dir() and not file.is_symlink():
                shutil.rmtree(file, ignore_errors=True)
            else:
                file.unlink(missing_ok=True)

    def rebuild(self) -> None:
        """Throws all derived data away."""
        with self._lock:
            self._close_catalog()
            self._wipe()
            self._catalog = self._open()

    def _close_catalog(self) -> None:
        self._snapshot = None
        with suppress(Exception):  # a broken catalog may also be broken at closing
            self._catalog.close()

    def _sound(self, action: Callable[[Catalog], T]) -> T:
        """What the action gives; opens the catalog again when it was exchanged, and starts anew when it is damaged."""
        catalog = self._catalog
        try:
            return action(catalog)
        except IndexFormatError as error:
            logger.info("the index is opened again: %s", error)
            with self._lock:
                if self._catalog is catalog:
                    self._close_catalog()
                    self._catalog = self._open()
        try:
            return action(self._catalog)
        except IndexFormatError as error:
            logger.info("the index is made anew: %s", error)
            self.rebuild()
            self.sync_words()
        return action(self._catalog)

    def scan(self) -> Scan:
        """What lies in the root now."""
        return scan(self.root, self.scope)

    def sync_words(
        self, *, full: bool = False, lock_wait_s: float = _LOCK_WAIT_S, on_progress: Progress | None = None
    ) -> SyncReport:
        """Brings topics and words up to date with the files.

        Args:
            full: read every file, also those that look untouched.
            lock_wait_s: how long to wait for another process that writes.
            on_progress: told after every batch.

        Raises:
            LockedError: another process kept writing.
            OSError: the cache folder is full.
        """
        start = time.perf_counter()
        found = self.scan()

        def work(catalog: Catalog) -> SyncReport:
            with exclusive(self.folder / _WORDS_LOCK, timeout_s=lock_wait_s):
                return apply_words(
                    catalog,
                    found,
                    scope=self.scope,
                    max_bytes=self._max_file_bytes,
                    full=full,
                    on_progress=on_progress,
                )

        report = self._sound(work)
        return replace(report, note=found.root_problem, duration_s=time.perf_counter() - start)

    def sync_vectors(
        self,
        encoder: Encoder,
        *,
        limit: int | None = None,
        lock_wait_s: float = _LOCK_WAIT_S,
        stop: threading.Event | None = None,
        on_progress: Progress | None = None,
    ) -> SyncReport:
        """Gives topics their vectors, newest first.

        Args:
            encoder: the model; another one than last time makes all vectors anew.
            limit: chunks at most; None for all.
            lock_wait_s: how long to wait for another process that does the same.
            stop: set it to stop after the present text.
            on_progress: told after every step.

        Raises:
            EncoderError: the model does not work.
            LockedError: another process is at it.
            OSError: the cache folder is full.
        """
        start = time.perf_counter()

        def work(catalog: Catalog) -> SyncReport:
            with exclusive(self.folder / _VECTORS_LOCK, timeout_s=lock_wait_s):
                return apply_vectors(
                    catalog, encoder, neighbours=self._neighbours(), limit=limit, stop=stop, on_progress=on_progress
                )

        return replace(self._sound(work), duration_s=time.perf_counter() - start)

    def _neighbours(self) -> list[Path]:
        """Folders of derived data of other roots, the one used last first."""
        if self._temporary:
            return []
        others = [folder for folder in self.folder.parent.iterdir() if folder != self.folder]
        return sorted(others, key=lambda folder: folder.stat().st_mtime, reverse=True)

    def snapshot(self) -> Snapshot:
        """The state at the last commit of any process."""
        return self._sound(self._take)

    def _take(self, catalog: Catalog) -> Snapshot:
        catalog.check_in_place()
        last = self._snapshot
        ((generation,),) = catalog.read("SELECT value FROM meta WHERE key = 'generation'")
        if last is None or last.generation != int(generation):
            opened = {segment.name: segment for segment, _ in last.segments} if last else {}
            last = self._snapshot = take_snapshot(catalog, self.scope, opened=opened)
        return last

    def problems(self) -> dict[str, str]:
        """Files that could not be read or embedded at the last synchronisation, with the reason."""
        return self._sound(lambda catalog: catalog.problems())

    def warnings(self) -> dict[str, tuple[str, ...]]:
        """What was odd about files that were indexed all the same, by path."""
        return self._sound(lambda catalog: catalog.warnings())

    def close(self) -> None:
        """Closes the catalog; a temporary index is deleted."""
        with self._lock:
            self._close_catalog()
            if self._temporary:
                self._temporary.cleanup()
