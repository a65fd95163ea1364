"""Answers: the quick one, the considered one of a prefetch, and the one that waits for all it needs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from recall.config import SearchConfig
from recall.context.prompt import relevant_memory
from recall.index.snapshot import Snapshot
from recall.memory.events import Event, RecallEvent
from recall.memory.keeper import ANEW, Keeper
from recall.memory.model import Model
from recall.search.current import behind, current, marked
from recall.search.retriever import Found, Hybrid, bounded, coverage_of, search_heuristic
from recall.search.types import Coverage, Filter, Hit, Recall, Strategy

# How long the considered answer of a prefetch waits for the first words of a new memory.
_FIRST_WORDS_S: Final = 4.0
_LOOKS: Final = 3
_NOT_LOOKED: Final = "the folder takes long to look at: what changed since the last look is read after this answer"
_GLANCED: Final = "the folder takes long to look at: files that were edited in place are read after this answer"


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
        return self._after_look(query, k, wanted, load_model=True)

    def _after_look(self, query: str, k: int, wanted: Filter, *, load_model: bool) -> Recall:
        note, snapshots = ANEW, list[Snapshot]()
        for number in range(_LOOKS):
            # Who waited for the vectors of a process that makes everything anew may find the next one at it.
            note = self._keeper.look(load_model=load_model, waits_for_vectors=number == 0)
            snapshots = self._keeper.snapshots(patience_s=_FIRST_WORDS_S)
            if note or self._keeper.shows_look(snapshots):
                break
        else:
            note = ANEW  # others throw the index away again and again
        missed = behind(self._keeper.indexes) if note else ()
        return self._answer(query, k, wanted, snapshots, note=note, behind=missed)

    def quick(self, query: str, wanted: Filter) -> Recall:
        """The fast search of a prefetch: words alone, from what is indexed."""
        snapshots = self._keeper.snapshots(patience_s=self._settings.budget_ms / 1000)
        start = time.perf_counter()
        # Beside the hybrid search the quick one has to be silent where nothing fits; without a model it is the
        # founding scorer as it was.
        floor = self._floor if self._model.encoder else 0.0
        found = search_heuristic(snapshots, bounded(query), self._settings.k, wanted=wanted, floor=floor)
        return self._finished(query, found, Strategy.HEURISTIC, self._coverage(snapshots), start)

    def considered(self, query: str, wanted: Filter) -> Recall:
        """The refined search of a prefetch: looks at the folder first; when that takes long, wholly only afterwards."""
        if not query.strip():
            return Recall(query)
        if self._keeper.looks_quickly:
            return self._after_look(query, self._settings.k, wanted, load_model=False)
        note = self._keeper.look(load_model=False, glances=True) if self._keeper.glances_quickly else _NOT_LOOKED
        snapshots = self._keeper.snapshots(patience_s=_FIRST_WORDS_S)
        answer = self._answer(query, self._settings.k, wanted, snapshots, note=note or _GLANCED)
        self._keeper.look_soon()
        return answer

    def render(self, hits: Sequence[Hit]) -> str:
        """The Relevant Memory block of the hits."""
        return relevant_memory(hits, now=self._clock(), max_tokens=self._settings.prompt_tokens)

    def _answer(
        self,
        query: str,
        k: int,
        wanted: Filter,
        snapshots: Sequence[Snapshot],
        *,
        note: str = "",
        behind: Sequence[str] = (),
    ) -> Recall:
        """Words and meaning; the founding heuristic where there is no vector of the query.

        Args:
            query: what is asked.
            k: most hits.
            wanted: which topics may be found.
            snapshots: where they are looked for.
            note: what could not be done before.
            behind: ids of topics that changed and could not be read before.
        """
        start = time.perf_counter()
        cut = bounded(query)
        vector = self._model.query(cut) if any(map(len, snapshots)) else None
        coverage = replace(self._coverage(snapshots, note), behind=tuple(behind))
        encoder = self._model.encoder
        if vector is None or encoder is None:
            found = search_heuristic(snapshots, cut, k, wanted=wanted)
            return self._finished(query, found, Strategy.HEURISTIC, coverage, start)
        if coverage.embedded < coverage.topics:
            self._keeper.want_vectors()
        hybrid = Hybrid(self._model.products, self._floor, encoder.fingerprint)
        found = hybrid.search(snapshots, cut, vector, k, wanted=wanted)
        return self._finished(query, found, Strategy.HYBRID, coverage, start)

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
