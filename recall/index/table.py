"""Topics and chunks of one root as parallel arrays, and the step from one state to the next.

A step copies the stretches between the few topics that changed, and no text: with 100,000 topics a millisecond or two
instead of half a second for a new reading of the catalog.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

from recall.index.catalog import EMBEDDED
from recall.store.topics import MemoryType

TYPES: Final[tuple[MemoryType | None, ...]] = (None, *MemoryType)
"""Kinds by their code in `Table.types`."""

_CODES: Final = {kind: code for code, kind in enumerate(TYPES)}

_MOST_RECENT: Final = 1024  # texts that are copied at each step

Numbers = NDArray[np.int64]
Positions = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Paths(Sequence[str]):
    """The path of each topic. To copy 100,000 texts means to count the uses of each, wherever it lies in memory.

    Attributes:
        settled: texts, of which some may not be used any more; never copied.
        recent: later texts; few.
        places: of each topic's text in the two, one after the other, shape (n,).
    """

    settled: tuple[str, ...]
    recent: tuple[str, ...]
    places: Positions

    @classmethod
    def of(cls, texts: Sequence[str]) -> Self:
        """Paths of these texts."""
        return cls(tuple(texts), (), np.arange(len(texts), dtype=np.int32))

    def updated(self, fresh: "Paths", pieces: Sequence["_Piece"]) -> "Paths":
        """The paths in these pieces of this and of the fresh ones."""
        known = len(self.settled) + len(self.recent)
        places = _shifted(
            [
                (fresh.places[start:stop], known) if is_fresh else (self.places[start:stop], 0)
                for is_fresh, start, stop in pieces
            ]
        )
        paths = Paths(self.settled, (*self.recent, *fresh), places)
        return paths if len(paths.recent) <= _MOST_RECENT else Paths.of(tuple(paths))

    @overload
    def __getitem__(self, position: int, /) -> str: ...
    @overload
    def __getitem__(self, position: slice, /) -> Sequence[str]: ...
    def __getitem__(self, position: int | slice, /) -> str | Sequence[str]:
        if isinstance(position, slice):
            return Paths(self.settled, self.recent, self.places[position])
        place = int(self.places[position])
        return self.settled[place] if place < len(self.settled) else self.recent[place - len(self.settled)]

    def __iter__(self) -> Iterator[str]:
        texts = self.settled + self.recent
        return map(texts.__getitem__, self.places.tolist())

    def __len__(self) -> int:
        return len(self.places)


class _Piece(NamedTuple):
    """Topics that stand next to each other, in the old table or among the fresh ones."""

    is_fresh: bool
    start: int
    stop: int


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Topics in the order of their numbers, and their chunks in the order of the topics.

    Attributes:
        docs: document numbers, rising, shape (n,).
        paths: path of each topic.
        types: code of each topic's kind in TYPES, shape (n,).
        mtimes: modification times in seconds, shape (n,).
        embedded: which topics have their vectors, shape (n,).
        chunk_owner: position of each chunk's topic, rising, shape (m,).
        chunk_number: number of each chunk in its topic, rising within it, shape (m,).
        chunk_row: row of each chunk's vector, shape (m,).
    """

    docs: Numbers
    paths: Paths
    types: NDArray[np.int8]
    mtimes: NDArray[np.float64]
    embedded: NDArray[np.bool_]
    chunk_owner: Numbers
    chunk_number: Numbers
    chunk_row: Numbers

    @classmethod
    def of(cls, topics: Sequence[tuple[Any, ...]], chunks: Sequence[tuple[Any, ...]]) -> Self:
        """The table of some rows of the catalog.

        Args:
            topics: doc, path, type, mtime_ns, embedded; by doc.
            chunks: doc, number, row; by doc and number.
        """
        size = len(topics)
        docs = np.fromiter((row[0] for row in topics), np.int64, size)
        doc, number, row = np.array(np.asarray(chunks, np.int64).reshape(len(chunks), 3).T, order="C")
        return cls(
            docs=docs,
            paths=Paths.of([row[1] for row in topics]),
            types=np.fromiter((_CODES[row[2]] for row in topics), np.int8, size),
            mtimes=np.fromiter((row[3] / 1e9 for row in topics), np.float64, size),
            embedded=np.fromiter((row[4] == EMBEDDED for row in topics), np.bool_, size),
            chunk_owner=np.searchsorted(docs, doc),
            chunk_number=number,
            chunk_row=row,
        )

    def updated(self, gone: Numbers, fresh: "Table") -> tuple["Table", Positions]:
        """The table after some topics went and others came or changed.

        Args:
            gone: numbers of topics that are no more; unknown ones are ignored.
            fresh: topics that are new or changed, whole.

        Returns:
            The new table, and for each position of this one the new position, -1 for a topic that went; one more -1
            behind the last, for what was -1 before (`follow`).
        """
        known = places_of(self.docs, fresh.docs)
        dead = np.unique(np.concatenate([places_of(self.docs, gone), known]))
        topics = _merged(self.docs, dead[dead >= 0], fresh.docs)
        owners = self.chunk_owner, fresh.chunk_owner
        chunks = [
            _Piece(is_fresh, *np.searchsorted(owners[is_fresh], [start, stop]).tolist())
            for is_fresh, start, stop in topics
        ]
        places = [0, *accumulate(stop - start for _, start, stop in topics)]
        table = Table(
            docs=_joined(self.docs, fresh.docs, topics),
            paths=self.paths.updated(fresh.paths, topics),
            types=_joined(self.types, fresh.types, topics),
            mtimes=_joined(self.mtimes, fresh.mtimes, topics),
            embedded=_joined(self.embedded, fresh.embedded, topics),
            chunk_owner=_shifted(
                [
                    (owners[is_fresh][start:stop], place - piece.start)
                    for (is_fresh, start, stop), piece, place in zip(chunks, topics, places, strict=False)
                ]
            ),
            chunk_number=_joined(self.chunk_number, fresh.chunk_number, chunks),
            chunk_row=_joined(self.chunk_row, fresh.chunk_row, chunks),
        )
        moved = np.full(len(self.docs) + 1, -1, np.int32)
        for (is_fresh, start, stop), place in zip(topics, places, strict=False):
            moved[known[start:stop] if is_fresh else slice(start, stop)] = np.arange(place, place + stop - start)
        moved[-1] = -1  # what was not known has gone there
        return table, moved


def _merged(docs: Numbers, dead: Numbers, fresh: Numbers) -> list[_Piece]:
    """Pieces of the living old topics and of the fresh ones that put all of them into the order of their numbers.

    Args:
        docs: numbers of the old topics, rising.
        dead: places of those that went or are among the fresh ones, rising.
        fresh: numbers of the fresh topics, rising.
    """
    at = np.searchsorted(docs, fresh)
    starts = np.setdiff1d(np.concatenate([[0], dead + 1, at]), [*dead, len(docs)])
    stops = np.unique(np.concatenate([dead, at, [len(docs)]]))
    stops = stops[np.searchsorted(stops, starts, "right")]
    pieces, taken = list[_Piece](), 0
    before = np.searchsorted(at, starts, "right")
    for start, stop, number in zip(starts.tolist(), stops.tolist(), before.tolist(), strict=True):
        pieces += [_Piece(True, taken, number), _Piece(False, start, stop)]
        taken = number
    return [*pieces, _Piece(True, taken, len(fresh))]


def _joined(old: NDArray[Any], fresh: NDArray[Any], pieces: Sequence[_Piece]) -> NDArray[Any]:
    return np.concatenate([(fresh if is_fresh else old)[start:stop] for is_fresh, start, stop in pieces])


def _shifted(parts: Sequence[tuple[NDArray[Any], int]]) -> NDArray[Any]:
    """The parts one after the other, each with a number added, in one pass."""
    whole = np.empty(sum(len(part) for part, _ in parts), parts[0][0].dtype)
    at = 0
    for part, shift in parts:
        np.add(part, shift, out=whole[at : at + len(part)])
        at += len(part)
    return whole


def places_of(docs: Numbers, wanted: Numbers) -> Numbers:
    """Place of each wanted number in the rising `docs`, -1 where it is not there; shape of `wanted`."""
    if not len(docs):
        return np.full(len(wanted), -1, np.int64)
    places = np.minimum(np.searchsorted(docs, wanted), len(docs) - 1)
    return np.where(docs[places] == wanted, places, -1)


def follow(moved: Positions, positions: Positions) -> Positions:
    """Where positions of the old table are in the new one; -1 stays, and comes from what went."""
    return moved[positions]
