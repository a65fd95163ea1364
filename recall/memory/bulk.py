"""Where long work on an index is done: in this process, or in one of its own when there is much of it."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from recall.index.base import Encoder
from recall.index.collection import Collection
from recall.index.encoders import recipe_of
from recall.index.sync import Progress, SyncReport

if TYPE_CHECKING:  # loaded by who has a background, not by every short command
    from recall.index.child import Children
    from recall.index.job import Stage

logger = logging.getLogger(__name__)

# To read so many files takes some 20 ms; a process of its own needs 0.3 s to begin.
_INLINE_FILES: Final = 64
# To encode so many takes about as long as another process needs to load the model, 0.7 s.
_INLINE_CHUNKS: Final = 32
_LOCK_WAIT_S: Final = 10.0


class Bulk:
    """Brings words and vectors of one index after the other up to date. Thread-safe.

    Args:
        workers: texts that long work encodes at once; 0 keeps all work in this process.
        on_words: called when the first words of an index can be found while others are still being read.
    """

    def __init__(self, workers: int, *, on_words: Callable[[], object]) -> None:
        self._workers = workers
        self._on_words = on_words
        self._children: Children | None = None
        self._reading: dict[Collection, tuple[int, int]] = {}

    def start(self, indexes: Sequence[Collection]) -> None:
        """From now on what is much goes to processes of its own, if there may be any."""
        if self._workers == 0:
            return
        from recall.index.child import Children, can_start

        if can_start():
            self._children = Children()
            for index in indexes:
                index.inline_files = _INLINE_FILES

    def call_off(self) -> None:
        """Has those processes end whose event is set."""
        if self._children:
            self._children.call_off()

    def end(self) -> None:
        """Has all processes end; takes a second at most."""
        if self._children:
            self._children.end()

    @property
    def note(self) -> str:
        """What is being read, in a sentence; "" when nothing is."""
        parts = list(self._reading.values())
        done, total = sum(part[0] for part in parts), sum(part[1] for part in parts)
        return f"{total - done} of {total} new or changed files are still being read" if total else ""

    def _leaves(self, index: Collection) -> bool:
        return self._children is not None and not index.is_temporary

    def read_few(self, index: Collection, *, lock_wait_s: float, on_progress: Progress | None = None) -> SyncReport:
        """Reads what changed, unless it is much and may be left to another process: then the report says so.

        Raises:
            LockedError: another process kept writing.
            OSError: the cache folder is full.
        """
        limit = _INLINE_FILES if self._leaves(index) else None
        report = index.sync_words(limit=limit, lock_wait_s=lock_wait_s, on_progress=on_progress)
        if report.left:
            self._reading.setdefault(index, (0, report.left))
        else:
            self._reading.pop(index, None)
        return report

    def read(
        self, index: Collection, *, full: bool, until: threading.Event, on_progress: Progress | None = None
    ) -> SyncReport:
        """Reads all that changed, wherever that is better.

        Args:
            index: what to bring up to date.
            full: throw all derived data away first.
            until: set it, then call `call_off`, to end another process early.
            on_progress: told after every batch.

        Raises:
            LockedError: another process kept writing.
            OSError: the cache folder is full.
        """
        if not full:
            report = self.read_few(index, lock_wait_s=_LOCK_WAIT_S, on_progress=on_progress)
            if not report.left:
                return report
        elif not self._leaves(index) or index.file_count() <= _INLINE_FILES:
            return index.rebuild(on_progress=on_progress)
        return self.read_many(index, full=full, until=until, on_progress=on_progress)

    def read_many(
        self,
        index: Collection,
        *,
        full: bool = False,
        until: threading.Event,
        lock_wait_s: float = _LOCK_WAIT_S,
        on_progress: Progress | None = None,
    ) -> SyncReport:
        """Reads all that changed in a process of its own, or in this one when that one does not get to an end.

        Raises:
            LockedError: another process kept writing.
            OSError: the cache folder is full.
        """

        def progress(stage: str, done: int, total: int) -> None:
            self._reading[index] = (done, total)
            self._on_words()
            if on_progress:
                on_progress(stage, done, total)

        if full:
            index.hold()
        try:
            report = self._elsewhere(
                index, "words", full=full, lock_wait_s=lock_wait_s, until=until, on_progress=progress
            )
            if report is None and full:
                report = index.rebuild(on_progress=progress)
            elif report is None:
                report = index.sync_words(lock_wait_s=lock_wait_s, on_progress=progress)
            return report
        finally:
            index.release()
            self._reading.pop(index, None)

    def embed(
        self,
        index: Collection,
        encoder: Encoder,
        *,
        until: threading.Event,
        lock_wait_s: float = _LOCK_WAIT_S,
        on_progress: Progress | None = None,
    ) -> SyncReport:
        """Gives all topics their vectors, wherever that is better.

        Args:
            index: what to bring up to date.
            encoder: the model; only one with a recipe can work in another process, or on several texts at once.
            until: set it, then call `call_off`, to stop after the present text.
            lock_wait_s: how long to wait for another process that does the same.
            on_progress: told after every step.

        Raises:
            EncoderError: the model does not work.
            LockedError: another process is at it.
            OSError: the cache folder is full.
        """
        recipe, workers = recipe_of(encoder), 1
        if recipe and not self._leaves(index):
            workers = max(1, self._workers)
        elif recipe and index.lacks(encoder, most=2 * _INLINE_CHUNKS) > _INLINE_CHUNKS:
            report = self._elsewhere(
                index,
                "vectors",
                recipe=recipe,
                workers=self._workers,
                lock_wait_s=lock_wait_s,
                until=until,
                on_progress=on_progress,
            )
            if report is not None:
                index.warm_up()
                return report
        return index.sync_vectors(
            encoder, lock_wait_s=lock_wait_s, stop=until, workers=workers, on_progress=on_progress
        )

    def _elsewhere(
        self,
        index: Collection,
        stage: "Stage",
        *,
        until: threading.Event,
        on_progress: Progress | None,
        **how: Any,
    ) -> SyncReport | None:
        """Has another process do it; None when that one does not get to an end."""
        from recall.index.child import ChildError
        from recall.index.job import job_for

        if self._children is None:
            return None
        try:
            return self._children.run(job_for(index, stage, **how), until=until, on_progress=on_progress)
        except ChildError as error:
            logger.warning("%s; this process goes on", error)
            return None
