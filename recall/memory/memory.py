"""Memory: one project's memory, and the user's, opened for recall. The parts meet here and nowhere else."""

import logging
import time
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from recall.config import Config
from recall.context.prompt import relevant_memory
from recall.errors import TopicError
from recall.index.base import Encoder
from recall.index.collection import Collection as Index
from recall.index.snapshot import Snapshot
from recall.index.sync import Progress, SyncReport
from recall.memory.events import Event, RecallEvent
from recall.memory.keeper import Keeper
from recall.memory.model import Model
from recall.memory.opening import cache_root, find, load_config, make_model
from recall.search.dense import Nearest
from recall.search.prefetch import Limits, Prefetch, Search
from recall.search.retriever import Found, Hybrid, bounded, coverage_of, search_heuristic
from recall.search.types import Coverage, Drop, Hit, Recall, Strategy
from recall.search.workers import Lane, Lanes
from recall.store.layout import Layout, Located
from recall.store.topics import Scope, Topic

logger = logging.getLogger(__name__)

# How long the considered answer of a prefetch waits for the first words of a new memory.
_FIRST_WORDS_S: Final = 4.0


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

    Attributes:
        config: the settings that hold.
        located: where the memory lies and why.
    """

    def __init__(
        self,
        keeper: Callable[[Callable[[Event], object]], Keeper],
        model: Model,
        *,
        config: Config,
        located: Located,
        clock: Callable[[], float],
        on_event: Callable[[Event], object] | None,
    ) -> None:
        self.config = config
        self.located = located
        self._model = model
        self._clock = clock
        self._on_event = on_event
        self._keeper = keeper(self._tell)
        self._handles: weakref.WeakSet[Prefetch] = weakref.WeakSet()
        self._lanes = Lanes(Lane("fast", patience_s=5.0), Lane("refined", patience_s=5.0))

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
            background: load the model and index the folder at once, in the background. What is much work is then left
                to a process of its own (`index.workers`), also by `reindex`; without, all is done by who asks.

        Raises:
            ConfigError: a setting cannot be used.
        """
        start = Path(project) if project else Path.cwd()
        config = config or load_config(start)
        located = find(root, project=start, layout=layout, config=config)
        place = located.chosen
        user = Path(user_root) if user_root else place.user_root
        scopes = {Scope.PROJECT: place.root} | ({Scope.USER: user} if user and user != place.root else {})
        indexes = [
            Index(
                folder,
                scope,
                cache=cache_root(config),
                max_file_bytes=config.index.max_file_bytes,
                optional=scope is Scope.USER and user_root is None,  # most people have no memory across projects
            )
            for scope, folder in scopes.items()
        ]
        model = make_model(encoder, config, nearest=index)
        memory = cls(
            lambda tell: Keeper(indexes, model, on_report=tell, workers=config.index.workers),
            model,
            config=config,
            located=located,
            clock=clock,
            on_event=on_event,
        )
        if background:
            memory._keeper.start()
        return memory

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends open prefetches and background work, and closes the index; waits two seconds at most."""
        for handle in list(self._handles):
            handle.close(Drop.SHUTDOWN)
        self._lanes.stop()
        self._keeper.stop()

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
        return self._answer(query, k, exclude, note=self._keeper.look(load_model=True))

    def prefetch(self, query: str, *, exclude: Collection[str] = ()) -> Prefetch:
        """Starts a recall and returns at once; `first()` then takes at most its budget.

        Args:
            query: what the user asks or wants done.
            exclude: ids of topics that the model has already.
        """
        settings, refined = self.config.search, self._lanes.refined
        handle = Prefetch(
            Search(
                fast=lambda: self._quick(query, exclude),
                refined=lambda: self._considered(query, exclude),
                render=self._render,
                excluded=frozenset(exclude),
                refined_expected=self._model.is_warm and not (refined.busy or refined.is_open),
            ),
            self._lanes,
            limits=Limits(fast_k=settings.fast_k, budget_s=settings.budget_ms / 1000, hold_s=settings.hold_ms / 1000),
            on_event=self._tell,
        )
        self._handles.add(handle)
        return handle

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
        report = self._keeper.reindex(full=full, on_progress=on_progress)
        self._tell(report)
        return report

    def status(self) -> list[RootStatus]:
        """Every root with what lies in it and what the index knows; reads changed files, makes no vectors.

        Raises:
            LockedError: another process keeps writing.
            OSError: the cache folder is full.
        """
        return [self._root_status(index) for index in self._keeper.indexes]

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
            bytes=_size(index.folder),
            encoder=snapshot.encoder,
            note="; ".join(filter(None, (report.note, index.note, self._model.problem))),
        )

    def topics(self) -> list[Topic]:
        """All topics, project before user, by path."""
        found = []
        for index in self._keeper.indexes:
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
        raise TopicError(
            f"no topic of that name among {len(topics)}; names are paths below the memory folder", path=name
        )

    def _quick(self, query: str, exclude: Collection[str]) -> Recall:
        """The fast search of a prefetch: words alone, from what is indexed."""
        snapshots = self._keeper.snapshots(patience_s=self.config.search.budget_ms / 1000)
        start = time.perf_counter()
        # Beside the hybrid search the quick one has to be silent where nothing fits; without a model it is the
        # founding scorer as it was.
        floor = self._floor if self._model.encoder else 0.0
        found = search_heuristic(snapshots, bounded(query), self.config.search.k, exclude=exclude, floor=floor)
        return self._finished(query, found, Strategy.HEURISTIC, self._coverage(snapshots), start)

    @property
    def _floor(self) -> float:
        encoder, floor = self._model.encoder, self.config.search.floor
        return floor if floor is not None else encoder.floor if encoder else 0.0

    def _considered(self, query: str, exclude: Collection[str]) -> Recall:
        """The refined search of a prefetch: looks at the folder first when that is quick, else afterwards."""
        if not query.strip():
            return Recall(query)
        note = self._keeper.look(load_model=False) if (looked := self._keeper.looks_quickly) else ""
        answer = self._answer(query, self.config.search.k, exclude, note=note)
        if not looked:
            self._keeper.wake()
        return answer

    def _answer(self, query: str, k: int, exclude: Collection[str], *, note: str) -> Recall:
        """Words and meaning; the founding heuristic where there is no vector of the query."""
        start = time.perf_counter()
        snapshots = self._keeper.snapshots(patience_s=_FIRST_WORDS_S)
        cut = bounded(query)
        vector = self._model.query(cut) if any(map(len, snapshots)) else None
        coverage = self._coverage(snapshots, note)
        encoder = self._model.encoder
        if vector is None or encoder is None:
            found = search_heuristic(snapshots, cut, k, exclude=exclude)
            return self._finished(query, found, Strategy.HEURISTIC, coverage, start)
        if coverage.embedded < coverage.topics:
            self._keeper.wake()
        hybrid = Hybrid(self._model.nearest, self._floor, encoder.fingerprint)
        found = hybrid.search(snapshots, cut, vector, k, exclude=exclude)
        return self._finished(query, found, Strategy.HYBRID, coverage, start)

    def _coverage(self, snapshots: Sequence[Snapshot], note: str = "") -> Coverage:
        notes = [note, self._keeper.note, self._model.problem, *(index.note for index in self._keeper.indexes)]
        encoder = self._model.encoder
        if encoder and any(snapshot.encoder not in ("", encoder.fingerprint) for snapshot in snapshots):
            notes.append(f"vectors are being made anew for {encoder.name}")
        return coverage_of(snapshots, "; ".join(filter(None, dict.fromkeys(notes))))

    def _finished(self, query: str, found: Found, strategy: Strategy, coverage: Coverage, start: float) -> Recall:
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


def _size(folder: Path) -> int:
    """Bytes of the files in the folder; others may be deleting some of them."""
    total = 0
    for file in folder.glob("*"):
        with suppress(OSError):
            total += file.stat().st_size
    return total
