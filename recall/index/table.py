"""Topics and chunks of one root as parallel arrays, and the step from one state to the next.

A step copies the stretches between the few topics that changed, and no text: with 100,000 topics a millisecond or two
instead of half a second for a new reading of the catalog.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

from recall.index.catalog import EMBEDDED
from recall.index.sets import distinct, without
from recall.store.topics import MemoryType

TYPES: Final[tuple[MemoryType | None, ...]] = (None, *MemoryType)
"""Kinds by their code in `Table.types`."""

_CODES: Final = {kind: code for code, kind in enumerate(TYPES)}

_MOST_RECENT: Final = 1024  # texts that are copied at each step
_MANY: Final = 256  # stretches of an array from which on they are not copied one by one

Numbers = NDArray[np.int64]


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
    places: NDArray[np.int32]

    @classmethod
    def of(cls, texts: Sequence[str]) -> Self:
        """Paths of these texts."""
        return cls(tuple(texts), (), np.arange(len(texts), dtype=np.int32))

    def updated(self, fresh: "Paths", pieces: "_Pieces") -> "Paths":
        """The paths in these pieces of this and of the fresh ones."""
        known = len(self.settled) + len(self.recent)
        places = _joined(self.places, fresh.places + np.int32(known), pieces)
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


class _Pieces(NamedTuple):
    """Stretches that make up a new array, in turn of the fresh one and of the old one, the first and the last fresh.

    Attributes:
        starts: first place of each in its array.
        stops: place behind its last.
    """

    starts: Numbers
    stops: Numbers

    @property
    def places(self) -> Numbers:
        """Where each begins in the new array."""
        sizes = self.stops - self.starts
        ends: Numbers = np.cumsum(sizes)
        return ends - sizes


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

    def updated(self, gone: Numbers, fresh: "Table") -> tuple["Table", Numbers]:
        """The table after some topics went and others came or changed.

        Args:
            gone: numbers of topics that are no more; unknown ones are ignored.
            fresh: topics that are new or changed, whole.

        Returns:
            The new table, and for each position of this one the new position, -1 for a topic that went; one more -1
            behind the last, for what was -1 before (`follow`).
        """
        known = places_of(self.docs, fresh.docs)
        dead = distinct(np.concatenate([places_of(self.docs, gone), known]))
        dead, at = dead[dead >= 0], np.searchsorted(self.docs, fresh.docs)
        topics = _merged(len(self.docs), dead, at)
        chunks = _Pieces(*(_bordered(borders, fresh.chunk_owner, self.chunk_owner) for borders in topics))
        table = Table(
            docs=_joined(self.docs, fresh.docs, topics),
            paths=self.paths.updated(fresh.paths, topics),
            types=_joined(self.types, fresh.types, topics),
            mtimes=_joined(self.mtimes, fresh.mtimes, topics),
            embedded=_joined(self.embedded, fresh.embedded, topics),
            chunk_owner=_joined(self.chunk_owner, fresh.chunk_owner, chunks, add=topics.places - topics.starts),
            chunk_number=_joined(self.chunk_number, fresh.chunk_number, chunks),
            chunk_row=_joined(self.chunk_row, fresh.chunk_row, chunks),
        )
        return table, _moved(len(self.docs), dead, at, known)


def _merged(count: int, dead: Numbers, at: Numbers) -> _Pieces:
    """Pieces that put the living old topics and the fresh ones into the order of their numbers.

    Args:
        count: of old topics.
        dead: places of those that went or are among the fresh ones, rising.
        at: for each fresh topic the place of the old one that it comes before, rising.
    """
    starts = without(np.concatenate([[0], dead + 1, at]), np.append(dead, count))
    stops = distinct(np.concatenate([dead, at, [count]]))
    before = np.searchsorted(at, starts, "right")
    pieces = _Pieces(*np.zeros((2, 2 * len(starts) + 1), np.int64))
    pieces.starts[1::2], pieces.stops[1::2] = starts, stops[np.searchsorted(stops, starts, "right")]
    pieces.starts[2::2], pieces.stops[:-1:2] = before, before
    pieces.stops[-1] = len(at)
    return pieces


def _moved(count: int, dead: Numbers, at: Numbers, known: Numbers) -> Numbers:
    """Where each old topic stands in the new table, as `Table.updated` gives it.

    Args:
        count: as for `_merged`.
        dead: same.
        at: same.
        known: for each fresh topic the place of its older state, -1 for none.
    """
    steps = np.ones(count + 1, np.int64)
    steps[0] = 0
    steps[dead + 1] = 0
    np.add.at(steps, at, 1)
    moved = np.cumsum(steps, out=steps)
    moved[dead] = -1
    moved[known] = at - np.searchsorted(dead, at) + np.arange(len(at))
    moved[-1] = -1  # what was not known has gone there
    return moved


def _bordered(topics: Numbers, fresh: Numbers, old: Numbers) -> Numbers:
    """Where the chunks of the topics at these borders of pieces begin, by the owners of all chunks."""
    borders = np.empty_like(topics)
    borders[::2], borders[1::2] = np.searchsorted(fresh, topics[::2]), np.searchsorted(old, topics[1::2])
    return borders


def _joined(old: NDArray[Any], fresh: NDArray[Any], pieces: _Pieces, *, add: Numbers | None = None) -> NDArray[Any]:
    """The pieces one after the other, to each of which a number may be added."""
    starts, stops = pieces
    sizes = stops - starts
    if len(starts) > _MANY:
        first = starts - pieces.places
        first[::2] += len(old)
        whole: NDArray[Any] = np.concatenate([old, fresh])[np.repeat(first, sizes) + np.arange(sizes.sum())]
        return whole if add is None else whole + np.repeat(add, sizes)
    parts = [
        (old if number % 2 else fresh)[start:stop]
        for number, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True))
    ]
    if add is None:
        return np.concatenate(parts)
    whole = np.empty(sizes.sum(), old.dtype)
    for part, number, at in zip(parts, add.tolist(), pieces.places.tolist(), strict=True):
        np.add(part, number, out=whole[at : at + len(part)])
    return whole


def places_of(docs: Numbers, wanted: Numbers) -> Numbers:
    """Place of each wanted number in the rising `docs`, -1 where it is not there; shape of `wanted`."""
    if not len(docs):
        return np.full(len(wanted), -1, np.int64)
    places = np.minimum(np.searchsorted(docs, wanted), len(docs) - 1)
    return np.where(docs[places] == wanted, places, -1)


def follow(moved: Numbers, positions: Numbers) -> Numbers:
    """Where positions of the old table are in the new one; -1 stays, and comes from what went."""
    return moved[positions]
