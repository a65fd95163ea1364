"""Memory: one project's memory, and the user's, opened for recall. The parts meet here and nowhere else."""

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import platformdirs

from recall.config import Config, load
from recall.context.prompt import relevant_memory
from recall.errors import EncoderError, LockedError, TopicError
from recall.index.base import Encoder
from recall.index.collection import Collection as Index
from recall.index.snapshot import Snapshot
from recall.index.sync import Progress, SyncReport
from recall.memory.model import Model, make_encoder
from recall.search.dense import Nearest
from recall.search.prefetch import Limits, Prefetch, PrefetchEvent, Search
from recall.search.retriever import Found, Hybrid, bounded, coverage_of, search_heuristic
from recall.search.types import Coverage, Hit, Recall, Strategy
from recall.search.workers import Lane, Lanes
from recall.store.layout import Layout, Located, locate
from recall.store.topics import Scope, Topic

logger = logging.getLogger(__name__)

# Topics that a recall gives their vectors before it answers; more are left to the background.
_INLINE_TOPICS: Final = 16
# A look at the folder that takes longer than this comes after the answer of a prefetch, not before it.
_QUICK_LOOK_S: Final = 0.02
_CLOSE_WAIT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class RecallEvent:
    """Telemetry of one search; holds no memory text (spec qwen.md section 10).

    Attributes:
        query_chars: length of the query.
        scanned: topics that could be found.
        selected: topics that were.
        strategy: how.
        duration_s: wall time in seconds.
    """

    query_chars: int
    scanned: int
    selected: int
    strategy: Strategy
    duration_s: float


Event = RecallEvent | PrefetchEvent | SyncReport
"""What `on_event` is told: a search, a delivery or its drop, a synchronisation."""


@dataclass(frozen=True, slots=True)
class RootStatus:
    """One memory root and its index.

    Attributes:
        root: the folder.
        scope: whose memory it is.
        report: what the last look at the folder found; accounts for every .md file in it.
        coverage: topics and how many have vectors.
        problems: files that could not be read or embedded, with the reason.
        folder: where derived data lies.
        bytes: size of derived data.
        encoder: model that made the vectors, "" for none.
        note: what is unusual, "" when nothing is.
    """

    root: Path
    scope: Scope
    report: SyncReport
    coverage: Coverage
    problems: Mapping[str, str]
    folder: Path
    bytes: int
    encoder: str
    note: str


class Memory:
    """An opened memory; use it as a context manager, or close it. Thread-safe.

    Opening returns at once: the model loads and the folder is indexed in the background, and what is asked meanwhile is
    answered from what is there.
    """

    def __init__(  # noqa: PLR0913 - stores what `open` made
        self,
        indexes: Sequence[Index],
        model: Model,
        *,
        config: Config,
        located: Located | None,
        nearest: Nearest | None,
        clock: Callable[[], float],
        on_event: Callable[[Event], object] | None,
    ) -> None:
        self.config = config
        self.located = located
        self._indexes = tuple(indexes)
        self._model = model
        self._nearest = nearest
        self._clock = clock
        self._on_event = on_event
        self._stop, self._wake = threading.Event(), threading.Event()
        self._words_ready = threading.Event()
        self._look_s = 0.0
        self._lanes = Lanes(Lane("fast", patience_s=5.0), Lane("refined", patience_s=5.0))
        self._keeper = threading.Thread(target=self._keep, name="recall-keeper", daemon=True)

    @classmethod
    def open(  # noqa: PLR0913 - the one place where a host says what it wants
        cls,
        root: Path | str | None = None,
        *,
        project: Path | str | None = None,
        layout: Layout | str | None = None,
        user_root: Path | str | None = None,
        config: Config | None = None,
        encoder: Encoder | None = None,
        index: Nearest | None = None,
        clock: Callable[[], float] = time.time,
        on_event: Callable[[Event], object] | None = None,
        background: bool = True,
    ) -> Self:
        """Opens a memory.

        Args:
            root: the folder of topic files; None finds the one of the project.
            project: a folder inside the project; None takes the working directory.
            layout: the host whose folders to use; None finds out.
            user_root: the folder of memory across projects; None takes the host's, if any.
            config: settings; None loads them from all sources.
            encoder: what turns text into vectors; None takes what the settings name.
            index: exact search over rows; None takes FAISS.
            clock: seconds since the epoch.
            on_event: told of every search, delivery and synchronisation; its exceptions are logged and dropped.
            background: load the model and index the folder at once, in the background.

        Raises:
            ConfigError: a setting cannot be used.
        """
        start = Path(project) if project else Path.cwd()
        config = config or load_config(start)
        located = find(root, project=start, layout=layout, config=config)
        place = located.chosen
        user = Path(user_root) if user_root else place.user_root
        cache = Path(config.index.cache or platformdirs.user_cache_dir("recall"))
        roots = [(place.root, Scope.PROJECT), *([(user, Scope.USER)] if user and user != place.root else [])]
        indexes = [
            Index(folder, scope, cache=cache, max_file_bytes=config.index.max_file_bytes) for folder, scope in roots
        ]
        memory = cls(
            indexes,
            _model(encoder, config),
            config=config,
            located=located,
            nearest=index,
            clock=clock,
            on_event=on_event,
        )
        if background:
            memory._keeper.start()
            memory._wake.set()
        return memory

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends background work and closes the index; waits two seconds at most."""
        self._stop.set()
        self._wake.set()
        self._lanes.stop()
        if self._keeper.is_alive():
            self._keeper.join(_CLOSE_WAIT_S)
        for index in self._indexes:
            index.close()

    def recall(self, query: str, *, k: int | None = None, exclude: Collection[str] = ()) -> Recall:
        """The memories that matter for the query; waits for what it needs.

        Files that changed are read first, so that the answer is true to the folder. A blank query, k <= 0 and an
        empty memory give an empty recall.

        Args:
            query: what the user asks or wants done.
            k: most hits; None takes `search.k`.
            exclude: ids of topics that the model has already.
        """
        k = self.config.search.k if k is None else k
        if not query.strip() or k <= 0:
            return Recall(query)
        note = self._look(vectors=True)
        return self._answer(query, k, exclude, wait=True, note=note)

    def prefetch(self, query: str, *, exclude: Collection[str] = ()) -> Prefetch:
        """Starts a recall and returns at once; `first()` then takes at most its budget.

        Args:
            query: what the user asks or wants done.
            exclude: ids of topics that the model has already.
        """
        search = self.config.search
        return Prefetch(
            Search(
                fast=lambda: self._quick(query, exclude),
                refined=lambda: self._considered(query, exclude),
                render=self._render,
                excluded=frozenset(exclude),
                refined_expected=self._model.is_warm and not (self._lanes.refined.busy or self._lanes.refined.is_open),
            ),
            self._lanes,
            limits=Limits(fast_k=search.fast_k, hold_s=search.hold_ms / 1000),
            on_event=self._tell,
        )

    def reindex(self, *, full: bool = False, on_progress: Progress | None = None) -> SyncReport:
        """Brings the index up to date with the files, vectors and all, and waits for it.

        Args:
            full: throw all derived data away first and make it anew.
            on_progress: told of the stage, how much is done and how much there is.

        Raises:
            EncoderError: the model does not work; words are up to date all the same.
            LockedError: another process keeps writing.
            OSError: the cache folder is full.
        """
        reports = []
        for index in self._indexes:
            if full:
                index.rebuild()
            words = index.sync_words(on_progress=on_progress)
            self._words_ready.set()
            vectors = self._embed(index, on_progress=on_progress)
            reports.append(
                replace(
                    words,
                    embedded=vectors.embedded,
                    reused=vectors.reused,
                    unembedded=vectors.unembedded,
                    note="; ".join(filter(None, (words.note, index.note, self._model.problem))),
                    duration_s=words.duration_s + vectors.duration_s,
                )
            )
        report = _joined(reports)
        self._tell(report)
        return report

    def _embed(self, index: Index, *, on_progress: Progress | None) -> SyncReport:
        self._model.warm_up()
        if self._model.encoder is None:
            return SyncReport()
        return index.sync_vectors(self._model.encoder, stop=self._stop, on_progress=on_progress)

    def status(self) -> list[RootStatus]:
        """Every root with what lies in it and what the index knows; reads changed files, makes no vectors.

        Raises:
            LockedError: another process keeps writing.
            OSError: the cache folder is full.
        """
        return [self._root_status(index) for index in self._indexes]

    def _root_status(self, index: Index) -> RootStatus:
        report = index.sync_words()
        snapshot = index.snapshot()
        return RootStatus(
            root=index.root,
            scope=index.scope,
            report=report,
            coverage=coverage_of([snapshot]),
            problems=index.problems(),
            folder=index.folder,
            bytes=sum(file.stat().st_size for file in index.folder.glob("*") if file.is_file()),
            encoder=snapshot.encoder,
            note="; ".join(filter(None, (report.note, index.note, self._model.problem))),
        )

    def topics(self) -> list[Topic]:
        """All topics, project before user, by path."""
        found = []
        for index in self._indexes:
            index.sync_words()
            snapshot = index.snapshot()
            topics = snapshot.topics(range(len(snapshot)))
            found.extend(sorted(topics.values(), key=lambda topic: topic.path))
        return found

    def topic(self, name: str) -> Topic:
        """One topic by its id, with or without `.md`.

        Raises:
            TopicError: there is none of that name.
        """
        topics = self.topics()
        for topic in topics:
            if name in {topic.id, topic.id.removesuffix(".md")}:
                return topic
        raise TopicError(f"no topic of that name among {len(topics)}; `recall status` lists the folder", path=name)

    def _keep(self) -> None:
        """Background thread: loads the model and indexes, whenever it is woken."""
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stop.is_set():
                return
            try:
                self._catch_up()
            except Exception:
                logger.warning("background indexing failed; it is tried again with the next recall", exc_info=True)
            finally:
                self._words_ready.set()

    def _catch_up(self) -> None:
        warming = threading.Thread(target=self._model.warm_up, name="recall-warm-up", daemon=True)
        warming.start()
        for index in self._indexes:
            self._tell(index.sync_words())
        self._words_ready.set()
        warming.join()
        for index in self._indexes:
            encoder = self._model.encoder
            if encoder is not None and not self._stop.is_set():
                with suppress(LockedError):  # another process is at it, and its vectors serve us as well
                    self._tell(index.sync_vectors(encoder, lock_wait_s=0, stop=self._stop))

    def _look(self, *, vectors: bool) -> str:
        """Reads what changed in the folders; a sentence on what could not be done, "" when all was."""
        notes, start = [], time.perf_counter()
        for index in self._indexes:
            try:
                index.sync_words(lock_wait_s=0.0)
                self._look_s = time.perf_counter() - start
                if vectors:
                    self._model.warm_up()
                if self._model.is_warm and self._model.encoder is not None:
                    index.sync_vectors(self._model.encoder, limit=_INLINE_TOPICS, lock_wait_s=0.0, stop=self._stop)
            except LockedError:
                notes.append("another process is indexing")
            except (EncoderError, OSError) as error:
                notes.append(str(error))
        self._words_ready.set()
        return "; ".join(dict.fromkeys(notes))

    def _quick(self, query: str, exclude: Collection[str]) -> Recall:
        snapshots = self._snapshots()
        if not any(len(snapshot) for snapshot in snapshots):
            self._words_ready.wait(self.config.search.budget_ms / 1000)
            snapshots = self._snapshots()
        start = time.perf_counter()
        found = search_heuristic(snapshots, bounded(query), self.config.search.k, exclude=exclude)
        return self._recall(query, found, Strategy.HEURISTIC, coverage_of(snapshots), start)

    def _considered(self, query: str, exclude: Collection[str]) -> Recall:
        if not query.strip():
            return Recall(query)
        slow = self._look_s > _QUICK_LOOK_S
        note = "" if slow else self._look(vectors=False)
        answer = self._answer(query, self.config.search.k, exclude, wait=True, note=note)
        if slow:
            self._wake.set()
        return answer

    def _answer(self, query: str, k: int, exclude: Collection[str], *, wait: bool, note: str) -> Recall:
        start = time.perf_counter()
        snapshots = self._snapshots()
        cut = bounded(query)
        vector = self._model.query(cut, wait=wait) if any(map(len, snapshots)) else None
        coverage = self._coverage(snapshots, note)
        if vector is None or self._model.encoder is None:
            found = search_heuristic(snapshots, cut, k, exclude=exclude)
            return self._recall(query, found, Strategy.HEURISTIC, coverage, start)
        if coverage.embedded < coverage.topics:
            self._wake.set()
        floor = self._model.floor if self.config.search.floor is None else self.config.search.floor
        hybrid = Hybrid(self._nearest or _faiss_nearest(), floor, self._model.encoder.fingerprint)
        found = hybrid.search(snapshots, cut, vector, k, exclude=exclude)
        return self._recall(query, found, Strategy.HYBRID, coverage, start)

    def _snapshots(self) -> list[Snapshot]:
        return [index.snapshot() for index in self._indexes]

    def _coverage(self, snapshots: Sequence[Snapshot], note: str) -> Coverage:
        notes = [note, self._model.problem, *(index.note for index in self._indexes)]
        encoder = self._model.encoder
        if encoder and any(snapshot.encoder not in ("", encoder.fingerprint) for snapshot in snapshots):
            notes.append(f"vectors are being made anew for {encoder.name}")
        return coverage_of(snapshots, "; ".join(filter(None, dict.fromkeys(notes))))

    def _recall(self, query: str, found: Found, strategy: Strategy, coverage: Coverage, start: float) -> Recall:
        recall = Recall(
            query,
            found.hits,
            strategy if found.hits else Strategy.NONE,
            self._render(found.hits),
            coverage,
            time.perf_counter() - start,
        )
        self._tell(RecallEvent(len(query), coverage.topics, len(recall.hits), recall.strategy, recall.duration_s))
        return recall

    def _render(self, hits: Sequence[Hit]) -> str:
        return relevant_memory(hits, now=self._clock(), max_tokens=self.config.search.prompt_tokens)

    def _tell(self, event: Event) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:
            logger.warning("on_event failed", exc_info=True)


def load_config(project: Path, arguments: Mapping[str, object] | None = None) -> Config:
    """Settings from all sources: the project's file, the environment, the user's file, the arguments.

    Raises:
        ConfigError: names the source and the key that cannot be used.
    """
    user_file = Path(platformdirs.user_config_dir("recall")) / "config.toml"
    return load(project=project, user_file=user_file, env=os.environ, arguments=arguments)


def find(root: Path | str | None, *, project: Path, layout: Layout | str | None, config: Config) -> Located:
    """Where the memory of a project lies, and why there (`store.layout.locate` with this process's environment)."""
    wanted = layout or config.layout.host
    return locate(
        project,
        layout=Layout(wanted) if wanted else None,
        root=Path(root) if root else None,
        env=os.environ,
        home=_home(),
        worktrees=config.layout.worktrees or None,
    )


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:
        return None


def _model(encoder: Encoder | None, config: Config) -> Model:
    if encoder is not None:
        return Model(encoder)
    try:
        return Model(make_encoder(config.encoder))
    except EncoderError as error:
        logger.warning("only words are searched: %s", error)
        return Model(None, str(error))


def _faiss_nearest() -> Nearest:
    from recall.index.faiss import nearest

    return nearest


def _joined(reports: Sequence[SyncReport]) -> SyncReport:
    """One report over all roots."""
    total = reports[0]
    for report in reports[1:]:
        total = SyncReport(
            added=total.added + report.added,
            changed=total.changed + report.changed,
            moved=total.moved + report.moved,
            kept=total.kept + report.kept,
            skipped=total.skipped + report.skipped,
            failed=total.failed + report.failed,
            removed=total.removed + report.removed,
            warnings=total.warnings + report.warnings,
            embedded=total.embedded + report.embedded,
            reused=total.reused + report.reused,
            unembedded=total.unembedded + report.unembedded,
            note="; ".join(filter(None, (total.note, report.note))),
            duration_s=total.duration_s + report.duration_s,
        )
    return total
