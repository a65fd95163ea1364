"""Memory: one project's memory, and the user's, opened for recall. The parts meet here and nowhere else."""

import logging
import time
import weakref
from collections.abc import Callable, Collection
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from recall.config import Config
from recall.errors import TopicError
from recall.index.base import Encoder, Products
from recall.index.collection import Collection as Index
from recall.index.sync import Progress, SyncReport
from recall.memory.answers import Answers
from recall.memory.events import Event
from recall.memory.keeper import Keeper
from recall.memory.model import Model
from recall.memory.opening import cache_root, find, folders_of, instructions_of, load_config, make_model, scopes_of
from recall.memory.status import RootStatus, root_status
from recall.memory.tracing import Tracer, trace_logs
from recall.memory.watch import Watcher, need_library
from recall.search.prefetch import Delivery, Limits, Prefetch, Search
from recall.search.types import Drop, Filter, Recall
from recall.search.workers import Lane, Lanes
from recall.store.journal import has_pending
from recall.store.layout import Layout, Located
from recall.store.topics import MemoryType, Scope, Topic
from recall.store.traces import LIBRARY, Origin, Trace

if TYPE_CHECKING:  # a recall has no need of them
    from recall.lifecycle.remember import Origin as Origins
    from recall.memory.doctor import RootHealth, RootMending
    from recall.memory.stored import Remembered, Stored
    from recall.memory.writing import Writer
    from recall.search.explanation import Explanation
    from recall.store.plan import Plan, Run
    from recall.store.trash import Kept

logger = logging.getLogger(__name__)

_CLOSE_WAIT_S: Final = 2.0


class Memory:
    """An opened memory; use it as a context manager, or close it. Thread-safe; a forked process has to open its own.

    Opening returns at once: the model loads and the folder is indexed in the background, and what is asked meanwhile is
    answered from what is there.

    Attributes:
        config: the settings that hold.
        located: where the memory lies and why.
    """

    def __init__(  # noqa: PLR0913 - only stores parts
        self,
        keeper: Callable[[Callable[[Event], object]], Keeper],
        model: Model,
        *,
        config: Config,
        located: Located,
        tracer: Tracer,
        clock: Callable[[], float],
        on_event: Callable[[Event], object] | None,
    ) -> None:
        self.config = config
        self.located = located
        self._model = model
        self._tracer = tracer
        self._clock = clock
        self._on_event = on_event
        self._keeper = keeper(self._tell)
        self._answers = Answers(self._keeper, model, config.search, clock=clock, tell=self._tell)
        self._watcher: Watcher | None = None
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
        index: Products | None = None,
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
            index: inner products of rows and a vector; None takes FAISS.
            clock: seconds since the epoch.
            on_event: told of every search, delivery and synchronisation; its exceptions are logged and dropped.
            background: load the model and index the folder at once, in the background; with `index.watch` also go on
                to do so whenever a file changes. What is much work is then left to a process of its own
                (`index.workers`), also by `reindex`; without, all is done by who asks.

        Raises:
            ConfigError: a setting cannot be used.
            MissingExtraError: the settings want changes watched, and the library for that is not installed.
        """
        start = Path(project) if project else Path.cwd()
        config = config or load_config(start)
        if watches := background and bool(config.index.watch):
            need_library()
        located = find(root, project=start, layout=layout, config=config)
        scopes = scopes_of(located.chosen, user_root=Path(user_root) if user_root else None)
        indexes = [
            Index(
                folder,
                scope,
                cache=cache_root(config),
                max_file_bytes=config.index.max_file_bytes,
                exact_rows=config.index.exact_rows,
                optional=scope is Scope.USER and user_root is None,  # most people have no memory across projects
            )
            for scope, folder in scopes.items()
        ]
        model = make_model(encoder, config, products=index)
        memory = cls(
            lambda tell: Keeper(indexes, model, on_report=tell, workers=config.index.workers),
            model,
            config=config,
            located=located,
            tracer=Tracer(trace_logs(scopes, config), model, enabled=config.traces.enabled, clock=clock),
            clock=clock,
            on_event=on_event,
        )
        if any(has_pending(folder) for folder in scopes.values()):
            memory._writer.finish()
        if background:
            memory._keeper.start()
        if watches:
            memory._watcher = Watcher([index.root for index in indexes], memory._keeper.wake)
            memory._watcher.start()
        return memory

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends open prefetches and background work, and closes the index; waits two seconds at most."""
        until = time.monotonic() + _CLOSE_WAIT_S
        for handle in list(self._handles):
            handle.close(Drop.SHUTDOWN)
        self._lanes.stop()
        if self._watcher:
            self._watcher.stop()
        self._keeper.stop()
        self._tracer.close(max(0.0, until - time.monotonic()))  # has been writing all the time

    def recall(
        self,
        query: str,
        *,
        k: int | None = None,
        exclude: Collection[str] = (),
        types: Collection[MemoryType | str] = (),
        scopes: Collection[Scope | str] = (),
        origin: Origin | None = LIBRARY,
    ) -> Recall:
        """The memories that matter for the query; waits for what it needs.

        Files that changed are read first, so that the answer is true to the folder. A blank query, k <= 0 and an
        empty memory give an empty recall.

        Args:
            query: what the user asks or wants done.
            k: most hits; None takes `search.k`.
            exclude: ids of topics that the model has already.
            types: kinds of memory that are wanted; none given, all are.
            scopes: whose memory is wanted; none given, everybody's.
            origin: who asks, for the trace that the recall leaves; None leaves none.

        Raises:
            ValueError: no such type or scope.
        """
        wanted = _filter(exclude, types, scopes)
        k = self.config.search.k if k is None else k
        if not query.strip() or k <= 0:
            return Recall(query)
        recall = self._answers.full(query, k, wanted)
        if origin is not None:
            self._tracer.record(recall, origin)
        return recall

    def explain(
        self,
        query: str,
        *,
        k: int | None = None,
        exclude: Collection[str] = (),
        types: Collection[MemoryType | str] = (),
        scopes: Collection[Scope | str] = (),
    ) -> "Explanation":
        """What `recall` answers, and why: what each hit's score is made of, what came close, why nothing came.

        Takes several searches, and leaves no trace. Args and errors are those of `recall`.
        """
        from recall.search.explanation import Explanation, Silence

        wanted = _filter(exclude, types, scopes)
        k = self.config.search.k if k is None else k
        if not query.strip() or k <= 0:
            return Explanation(Recall(query), silence=Silence.NOT_ASKED)
        return self._answers.explain(query, k, wanted)

    def prefetch(self, query: str, *, exclude: Collection[str] = (), origin: Origin | None = LIBRARY) -> Prefetch:
        """Starts a recall and returns at once; `first()` then takes at most its budget.

        Args:
            query: what the user asks or wants done.
            exclude: ids of topics that the model has already.
            origin: who asks, for the trace that the recall leaves; None leaves none.
        """
        settings, refined, wanted = self.config.search, self._lanes.refined, Filter(frozenset(exclude))
        handle = Prefetch(
            Search(
                fast=lambda: self._answers.quick(query, wanted),
                refined=lambda: self._answers.considered(query, wanted),
                render=self._answers.render,
                excluded=wanted.exclude,
                refined_expected=self._model.is_warm and not (refined.busy or refined.is_open),
            ),
            self._lanes,
            limits=Limits(fast_k=settings.fast_k, budget_s=settings.budget_ms / 1000, hold_s=settings.hold_ms / 1000),
            on_event=self._tell,
            on_delivery=None if origin is None else self._tracer.listener(origin),
        )
        self._handles.add(handle)
        return handle

    def note_shown(self, delivery: Delivery, origin: Origin) -> None:
        """Has a delivery leave a trace now.

        For a host that asks with `origin=None`, because it learns only later whether the model got to see it.
        """
        self._tracer.record(delivery.recall, origin, phase=delivery.phase)

    def traces(self, scope: Scope = Scope.PROJECT) -> list[Trace]:
        """What recalls left behind in one root, oldest first; `store.traces.summarise` adds it up to topics.

        Raises:
            OSError: the traces are there and cannot be read.
        """
        return self._tracer.read(scope)

    def purge_traces(self, ids: Collection[str]) -> None:
        """Takes topics out of the traces, and the text of all questions that they were recalled for.

        The topics need not exist any more.

        Raises:
            LockedError: another process kept writing.
            OSError: the traces cannot be rewritten.
        """
        self._tracer.purge(ids)

    def remember(
        self,
        text: str,
        *,
        type: MemoryType | str,
        scope: Scope | str | None = None,
        target: str = "topic",
        origin: "Origins | str" = "owner",
    ) -> "Remembered":
        """Writes one fact down, unless it is known; index and MEMORY.md follow at once.

        The same fact said otherwise takes the place of the older words; one with another value supersedes the old one,
        which is kept beside it, dated, and ranked below.

        Args:
            text: the fact; lines `Why:` and `How to apply:` belong to it.
            type: user, feedback, project or reference.
            scope: whose memory; None takes the user's for user and feedback, where there is one, else the project's.
            target: `topic`, or `instructions` for a line in the project's AGENTS.md or the user's.
            origin: who says it: owner, agent, tool, web or repo. What was forgotten only its owner brings back.

        Raises:
            TopicError: the text cannot be remembered, or there is no memory of that scope.
            LockedError: another process kept writing.
            OSError: the folder cannot be written.
        """
        return self._writer.told(text, MemoryType(type), Scope(scope) if scope else None, target=target, origin=origin)

    def forget(self, query: str, *, limit: int | None = None, scopes: Collection[Scope | str] = ()) -> "Plan":
        """The plan that removes the entries which a request means; nothing is done before `apply()`.

        Meant is an id, else what holds the request word for word, else what fits it by words and meaning. A copy stays
        in `.trash` for `restore`, unless the plan is applied with `purge=True`. It does not come back by itself.

        Args:
            query: an id or what the memory is about; a blank one means nothing.
            limit: most entries; None takes 5.
            scopes: whose memory; none for everybody's.
        """
        return self._writer.forget(query, limit=limit, scopes=tuple(map(Scope, scopes)))

    def delete(self, *ids: str) -> "Plan":
        """The plan that removes topics or entries by their ids.

        Raises:
            TopicError: there is none of that name.
        """
        return self._writer.delete(ids)

    def edit(self, id: str, text: str, *, seen: str | None = None) -> "Plan":
        """The plan that gives a topic another text, header and all; refused when the file no longer holds `seen`.

        Raises:
            TopicError: there is no such topic, or the text is empty.
            StalePlanError: the file holds another text than was `seen` by who edited it.
        """
        return self._writer.edit(id, text, seen)

    def restore(self, run: "Run | str" = "") -> "Plan":
        """The plan that undoes a run, byte for byte; the last one if none is named.

        Raises:
            TopicError: there is no such run, or its copies are gone.
        """
        return self._writer.restore(run if isinstance(run, str) else run.id)

    def entries(self) -> "list[Stored]":
        """Every entry of every topic and every item of AGENTS.md, with its place and its id for `delete`."""
        return self._writer.entries()

    def runs(self) -> "list[Kept]":
        """The runs that `restore` can undo, newest first."""
        return self._writer.runs()

    @cached_property
    def _writer(self) -> "Writer":
        from recall.memory.writing import Writer

        return Writer(
            folders_of(self.located.chosen, self._keeper.scopes, self.config),
            instructions_of(self.located, self.config),
            keeper=self._keeper,
            model=self._model,
            answers=self._answers,
            tracer=self._tracer,
            clock=self._clock,
            keep_days=self.config.trash.keep_days,
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
        report = self._keeper.reindex(full=full, on_progress=on_progress)
        self._tell(report)
        return report

    def status(self) -> list[RootStatus]:
        """Every root with what lies in it and what the index knows; reads changed files, makes no vectors.

        Raises:
            LockedError: another process keeps writing.
            OSError: the cache folder is full.
        """
        unwatched = self._watcher.problem if self._watcher else ""
        notes = (self._model.problem, unwatched)
        return [root_status(index, self._tracer.peek(index.scope), notes) for index in self._keeper.indexes]

    def check(self) -> "list[RootHealth]":
        """Looks whether the derived data of every root is true and whole; changes nothing, loads the model.

        What was damaged already when the memory was opened has been made anew by then;
        `recall.memory.doctor.check` looks without opening.
        """
        from recall.memory.doctor import check_index

        return [check_index(index, self._model) for index in self._keeper.indexes]

    def mend(self) -> "list[RootMending]":
        """Checks every root and mends what is wrong, by the smallest step that helps; reads memory files only.

        Raises:
            LockedError: another process keeps writing.
            OSError: the cache folder is full.
        """
        from recall.memory.doctor import mend

        return mend(self._keeper.indexes, self._model, self.reindex)

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

    def _tell(self, event: Event) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:
            logger.warning("on_event failed", exc_info=True)


def _filter(exclude: Collection[str], types: Collection[MemoryType | str], scopes: Collection[Scope | str]) -> Filter:
    return Filter(frozenset(exclude), frozenset(map(MemoryType, types)), frozenset(map(Scope, scopes)))
