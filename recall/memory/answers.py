"""Answers: the quick one, the considered one of a prefetch, and the one that waits for all it needs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from recall.config import SearchConfig
from recall.context.prompt import relevant_memory
from recall.index.base import Vector
from recall.index.snapshot import Snapshot
from recall.memory.events import Event, RecallEvent
from recall.memory.keeper import ANEW, Keeper
from recall.memory.model import Model
from recall.search.current import behind, current, marked
from recall.search.retriever import Found, Hybrid, bounded, coverage_of, search_heuristic
from recall.search.types import Coverage, Filter, Hit, Recall, Strategy
from recall.search.weights import NO_FLOOR
from recall.store.topics import Topic

if TYPE_CHECKING:  # most answers are not explained
    from recall.search.explanation import Explanation

# How long the considered answer of a prefetch waits for the first words of a new memory.
_FIRST_WORDS_S: Final = 4.0
_LOOKS: Final = 3
# Up to so many topics the quick answer ranks as the considered one does.
_RANKED_TOPICS: Final = 50_000
_NOT_LOOKED: Final = "the folder takes long to look at: what changed since the last look is read after this answer"
_GLANCED: Final = "the folder takes long to look at: files that were edited in place are read after this answer"


class _State(NamedTuple):
    """What an answer is made from.

    Attributes:
        snapshots: the indexes.
        note: what could not be done before.
        behind: ids of topics that changed and could not be read before.
    """

    snapshots: Sequence[Snapshot]
    note: str = ""
    behind: Sequence[str] = ()


class Answers:
    """What a memory answers from its indexes and its model. Thread-safe.

    Args:
        keeper: the indexes, kept true to the files.
        model: what encodes queries.
        settings: how a query is answered.
        clock: seconds since the epoch.
        tell: told of every search.
    """

    def __init__(
        self,
        keeper: Keeper,
        model: Model,
        settings: SearchConfig,
        *,
        clock: Callable[[], float],
        tell: Callable[[Event], object],
    ) -> None:
        self._keeper = keeper
        self._model = model
        self._settings = settings
        self._clock = clock
        self._tell = tell

    def full(self, query: str, k: int, wanted: Filter) -> Recall:
        """Reads what changed, loads the model if need be, then searches by words and meaning."""
        return self._answer(query, k, wanted, self._looked(load_model=True))

    def explain(self, query: str, k: int, wanted: Filter) -> "Explanation":
        """What `full` answers, and why."""
        from recall.search.explain import Question, explain

        state = self._looked(load_model=True)
        recall = self._answer(query, k, wanted, state)
        cut, encoder = bounded(query), self._model.encoder
        vector = self._vector(cut, state)  # the model remembers it
        tokens = encoder.chunk_tokens if encoder else 0
        return explain(recall, Question(cut, k, wanted, state.snapshots, vector, self._hybrid(vector), tokens))

    def nearest(self, text: str, k: int) -> list[Topic]:
        """The topics most like a text, whether they fit or not."""
        state = self._looked(load_model=True)
        cut = bounded(text)
        hybrid = self._hybrid(vector := self._vector(cut, state), floor=NO_FLOOR)
        if hybrid is None:
            return [hit.topic for hit in search_heuristic(state.snapshots, cut, k, wanted=Filter()).hits]
        return [hit.topic for hit in hybrid.search(state.snapshots, cut, vector, k, wanted=Filter()).hits]

    def _looked(self, *, load_model: bool) -> _State:
        """What is there to answer from, once what changed has been read."""
        note, snapshots = ANEW, list[Snapshot]()
        for number in range(_LOOKS):
            # Who waited for the vectors of a process that makes everything anew may find the next one at it.
            note = self._keeper.look(load_model=load_model, waits_for_vectors=number == 0)
            snapshots = self._keeper.snapshots(patience_s=_FIRST_WORDS_S)
            if note or self._keeper.shows_look(snapshots):
                break
        else:
            note = ANEW  # others throw the index away again and again
        return _State(snapshots, note, behind(self._keeper.indexes) if note else ())

    def quick(self, query: str, wanted: Filter) -> Recall:
        """The fast search of a prefetch: words alone, from what is indexed."""
        snapshots = self._keeper.snapshots(patience_s=self._settings.budget_ms / 1000)
        start = time.perf_counter()
        # Beside the hybrid search the quick one judges as it does, by words alone; in a memory so large that this takes
        # more than its time, and without a model, it is the founding scorer.
        cut, k, encoder = bounded(query), self._settings.k, self._model.encoder
        if encoder and sum(map(len, snapshots)) <= _RANKED_TOPICS:
            found = Hybrid(self._model.products, self._floor, encoder.fingerprint).search(
                snapshots, cut, None, k, wanted=wanted
            )
            return self._finished(query, found, Strategy.HYBRID, self._coverage(snapshots), start)
        found = search_heuristic(snapshots, cut, k, wanted=wanted, floor=self._floor if encoder else 0.0)
        return self._finished(query, found, Strategy.HEURISTIC, self._coverage(snapshots), start)

    def considered(self, query: str, wanted: Filter) -> Recall:
        """The refined search of a prefetch: looks at the folder first; when that takes long, wholly only afterwards.

        Where it finds nothing, there is no answer that a whole look would delay.
        """
        if not query.strip():
            return Recall(query)
        if self._keeper.looks_quickly:
            return self._answer(query, self._settings.k, wanted, self._looked(load_model=False))
        note = self._keeper.look(load_model=False, glances=True) if self._keeper.glances_quickly else _NOT_LOOKED
        snapshots = self._keeper.snapshots(patience_s=_FIRST_WORDS_S)
        answer = self._answer(query, self._settings.k, wanted, _State(snapshots, note or _GLANCED))
        if not answer.hits and self._keeper.looks_in_time:
            return self._answer(query, self._settings.k, wanted, self._looked(load_model=False))
        self._keeper.look_soon()
        return answer

    def render(self, hits: Sequence[Hit]) -> str:
        """The Relevant Memory block of the hits."""
        return relevant_memory(hits, now=self._clock(), max_tokens=self._settings.prompt_tokens)

    def _answer(self, query: str, k: int, wanted: Filter, state: _State) -> Recall:
        """Words and meaning; the founding heuristic where there is no vector of the query."""
        start = time.perf_counter()
        cut = bounded(query)
        vector = self._vector(cut, state)
        coverage = replace(self._coverage(state.snapshots, state.note), behind=tuple(state.behind))
        hybrid = self._hybrid(vector)
        if hybrid is None:
            found = search_heuristic(state.snapshots, cut, k, wanted=wanted)
            return self._finished(query, found, Strategy.HEURISTIC, coverage, start)
        if coverage.embedded < coverage.topics:
            self._keeper.want_vectors()
        found = hybrid.search(state.snapshots, cut, vector, k, wanted=wanted)
        return self._finished(query, found, Strategy.HYBRID, coverage, start)

    def _vector(self, cut: str, state: _State) -> Vector | None:
        return self._model.query(cut) if any(map(len, state.snapshots)) else None

    def _hybrid(self, vector: Vector | None, *, floor: float | None = None) -> Hybrid | None:
        encoder = self._model.encoder
        if vector is None or encoder is None:
            return None
        return Hybrid(self._model.products, self._floor if floor is None else floor, encoder.fingerprint)

    @property
    def _floor(self) -> float:
        encoder, floor = self._model.encoder, self._settings.floor
        return floor if floor is not None else encoder.floor if encoder else 0.0

    def _coverage(self, snapshots: Sequence[Snapshot], note: str = "") -> Coverage:
        notes = [note, self._keeper.note, self._model.problem, *(index.note for index in self._keeper.indexes)]
        encoder = self._model.encoder
        if encoder:
            others = {snapshot.encoder for snapshot in snapshots} - {"", encoder.fingerprint}
            notes += [f"vectors of {other} are made anew for {encoder.fingerprint}" for other in sorted(others)]
        return coverage_of(snapshots, "; ".join(filter(None, dict.fromkeys(notes))))

    def _finished(self, query: str, found: Found, strategy: Strategy, coverage: Coverage, start: float) -> Recall:
        hits, stale = current(found.hits, self._keeper.indexes)
        coverage = marked(coverage, [*stale, *coverage.behind])
        recall = Recall(
            query,
            hits,
            strategy if hits else Strategy.NONE,
            self.render(hits),
            coverage,
            time.perf_counter() - start,
        )
        self._tell(RecallEvent(len(query), coverage.topics, len(recall.hits), recall.strategy, recall.duration_s))
        return recall
