"""The work of `recall eval`: asks every question of a test set and judges the answers."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Final

from recall.apps.metrics import DEPTH, Judged, mean
from recall.apps.testset import Query, bare
from recall.apps.turn import Turn, Watch, play
from recall.config import Config
from recall.errors import EncoderError
from recall.index.base import Encoder
from recall.index.encoders import make_encoder
from recall.index.sync import Progress
from recall.memory.memory import Memory
from recall.search.types import Hit, Phase
from recall.store.files import read_text
from recall.store.frontmatter import parse
from recall.store.layout import Layout
from recall.store.topics import Topic
from recall.text.budget import estimate_tokens

NO_FLOOR: Final = -1e9


class Ranking(StrEnum):
    """What the topics are ranked by."""

    HYBRID = "hybrid"
    DENSE = "dense"
    WORDS = "words"
    HEURISTIC = "heuristic"


@dataclass(frozen=True, slots=True)
class Injected:
    """What one turn put in front of the model.

    Attributes:
        tokens: estimated tokens of all its blocks.
        first: phase of what the first request carried, None for nothing.
        later: whether a tool result carried something.
    """

    tokens: int
    first: Phase | None
    later: bool


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The answers to a test set.

    Attributes:
        judged: one a query, scope by scope.
        injected: likewise when deliveries were judged, else empty.
        topics: topics that took part, over all scopes.
        unknown: relevant ids that no topic has.
        floor: how well the best topic had to fit, None without one.
    """

    judged: tuple[Judged, ...] = ()
    injected: tuple[Injected, ...] = ()
    topics: int = 0
    unknown: tuple[str, ...] = ()
    floor: float | None = None


@dataclass(frozen=True, slots=True)
class Way:
    """How a test set is answered.

    Attributes:
        ranking: what the topics are ranked by.
        delivered: judge what a prefetch injects in a turn with tools instead of what a recall finds.
        with_floor: say nothing below the floor, as in use; DENSE and WORDS never do.
    """

    ranking: Ranking = Ranking.HYBRID
    delivered: bool = False
    with_floor: bool = True

    @property
    def is_partial(self) -> bool:
        """Whether it ranks by one part of the fused score only."""
        return self.ranking in {Ranking.DENSE, Ranking.WORDS}

    def settings(self, config: Config) -> Config:
        """The settings to open memories with."""
        search, encoder = config.search, config.encoder
        if self.ranking is Ranking.HEURISTIC:
            encoder = encoder._replace(model="off")
        if self.is_partial or not self.with_floor:
            search = search._replace(floor=NO_FLOOR)
        if not self.delivered:  # nobody reads the prompt
            search = search._replace(prompt_tokens=1)
        return replace(config, search=search, encoder=encoder)


def evaluate(
    root: Path, queries: Sequence[Query], *, config: Config, way: Way, on_progress: Progress | None = None
) -> Evaluation:
    """Opens every scope once, brings its index up to date, asks its queries.

    Args:
        root: the folder that ids and scopes are below.
        queries: from `testset.read_queries`.
        config: settings; what `way` needs otherwise is changed.
        way: how to answer.
        on_progress: told of the scope and stage, how much is done and how much there is.

    Raises:
        EncoderError: the model does not work, so that there would be something else to judge.
        LockedError: another process indexes the same folder.
        OSError: the cache folder is full.
    """
    settings = way.settings(config)
    encoder = make_encoder(settings.encoder)
    floor = None
    if encoder is not None and way.with_floor and not way.is_partial:
        floor = encoder.floor if settings.search.floor is None else settings.search.floor
    answered = Evaluation(floor=floor)
    unknown: set[str] = set()
    by_scope = attrgetter("scope")
    for scope, group in groupby(sorted(queries, key=by_scope), key=by_scope):
        with _Asked.open(root, scope, settings, encoder=encoder, way=way, on_progress=on_progress) as asked:
            part = list(asked.ask(list(group)))
            unknown |= asked.unknown
            answered = Evaluation(
                judged=(*answered.judged, *(judged for judged, _ in part)),
                injected=(*answered.injected, *(injected for _, injected in part if injected)),
                topics=answered.topics + len(asked.topics),
                unknown=tuple(sorted(unknown)),
                floor=floor,
            )
    return answered


@dataclass(slots=True)
class _Asked:
    """One scope, opened and indexed.

    Attributes:
        memory: its memory.
        watch: the memory's listener.
        scope: path below the root, "" for the root itself.
        way: how queries are answered.
        topics: its topics by id as test sets write it.
        on_progress: told of every query.
        unknown: relevant ids without a topic, so far.
    """

    memory: Memory
    watch: Watch
    scope: str
    way: Way
    on_progress: Progress | None
    topics: dict[str, Topic] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    _seqs: dict[str, float] | None = None

    @classmethod
    def open(
        cls, root: Path, scope: str, config: Config, *, encoder: Encoder | None, way: Way, on_progress: Progress | None
    ) -> "_Asked":
        folder, watch = root / scope, Watch()
        memory = Memory.open(
            folder,
            project=folder,
            layout=Layout.PLAIN,
            config=config,
            encoder=encoder,
            on_event=watch,
            background=False,
        )
        asked = cls(memory, watch, scope, way, on_progress)
        try:
            asked.index(must_embed=encoder is not None)
        except BaseException:
            memory.close()
            raise
        return asked

    def __enter__(self) -> "_Asked":
        return self

    def __exit__(self, *_: object) -> None:
        self.memory.close()

    def index(self, *, must_embed: bool) -> None:
        report = self.memory.reindex(on_progress=self._told)
        coverage = [status.coverage for status in self.memory.status()]
        if must_embed and any(part.embedded < part.topics for part in coverage):
            raise EncoderError(f"the topics of {self.scope or 'the root'} have no vectors: {report.note}")
        self.topics = {self.name(topic): topic for topic in self.memory.topics()}

    def name(self, topic: Topic) -> str:
        return bare(f"{self.scope}/{topic.path}" if self.scope else topic.path)

    def _told(self, stage: str, done: int, total: int) -> None:
        if self.on_progress is not None:
            self.on_progress(f"{self.scope}: {stage}" if self.scope else stage, done, total)

    def ask(self, queries: Sequence[Query]) -> Iterator[tuple[Judged, Injected | None]]:
        for number, query in enumerate(queries, start=1):
            self.unknown |= query.relevant.difference(self.topics)
            exclude = self._barred(query)
            if self.way.delivered:
                turn = play(self.memory, query.text, self.watch, exclude=exclude)
                hits = [hit for delivery in turn.deliveries for hit in delivery.recall.hits]
            else:
                turn, hits = None, self._found(query.text, exclude)
            ranking = tuple(self.name(hit.topic) for hit in hits)
            yield Judged(query.kind or "", ranking, query.relevant), None if turn is None else _injected(turn)
            self._told("queries", number, len(queries))

    def _barred(self, query: Query) -> frozenset[str]:
        """Ids, as the memory has them, of topics that may not be answered."""
        barred = {name for name in query.exclude or () if name in self.topics}
        if query.asof is not None:
            barred |= {name for name, seq in self._sequence().items() if not seq <= query.asof}
        return frozenset(self.topics[name].id for name in barred)

    def _sequence(self) -> Mapping[str, float]:
        """The `seq` of every topic."""
        if self._seqs is None:
            limit = self.memory.config.index.max_file_bytes
            self._seqs = {name: seq_of(topic, limit) for name, topic in self.topics.items()}
        return self._seqs

    def _found(self, text: str, exclude: Collection[str]) -> list[Hit]:
        if not self.way.is_partial:
            return list(self.memory.recall(text, k=DEPTH, exclude=exclude, origin=None).hits)
        hits = self.memory.recall(text, k=max(1, len(self.topics)), exclude=exclude, origin=None).hits
        return by_part(hits, self.way.ranking)[:DEPTH]


def seq_of(topic: Topic, max_bytes: int) -> float:
    """The `seq` that the topic states; one without a number takes no part in a query with `asof`."""
    stated = parse(read_text(topic.file, max_bytes=max_bytes)[0]).first("seq")
    try:
        return float(stated)
    except ValueError:
        return math.inf


def by_part(hits: Sequence[Hit], ranking: Ranking) -> list[Hit]:
    """The hits ranked anew by their cosine or by their words alone; those without that part are left out."""
    parts = [(hit.cosine if ranking is Ranking.DENSE else hit.lexical or None, hit) for hit in hits]
    return [hit for part, hit in sorted(_with_part(parts), key=lambda pair: -pair[0])]


def _with_part(parts: Sequence[tuple[float | None, Hit]]) -> list[tuple[float, Hit]]:
    return [(part, hit) for part, hit in parts if part is not None]


def _injected(turn: Turn) -> Injected:
    return Injected(
        tokens=sum(estimate_tokens(delivery.recall.prompt) for delivery in turn.deliveries),
        first=turn.first.phase if turn.first else None,
        later=turn.later is not None,
    )


def injection_stats(injected: Sequence[Injected]) -> dict[str, float | int | None]:
    """What deliveries cost and when they came: tokens a query, and shares of the queries."""
    tokens = [one.tokens for one in injected]
    return {
        "tokens_mean": mean(tokens),
        "tokens_max": max(tokens, default=None),
        "first_refined": mean([float(one.first is Phase.REFINED) for one in injected]),
        "first_fast": mean([float(one.first is Phase.FAST) for one in injected]),
        "first_nothing": mean([float(one.first is None) for one in injected]),
        "with_tool_result": mean([float(one.later) for one in injected]),
    }
