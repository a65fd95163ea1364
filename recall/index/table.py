"""Topics and chunks of one root as parallel arrays, and the step from one state to the next.

A step costs a few copies of the arrays, not a new reading of the catalog: with 100,000 topics milliseconds instead of
half a second.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from recall.index.catalog import EMBEDDED
from recall.store.topics import MemoryType

TYPES: Final[tuple[MemoryType | None, ...]] = (None, *MemoryType)
"""Kinds by their code in `Table.types`."""

_CODES: Final = {kind: code for code, kind in enumerate(TYPES)}

_FEW: Final = 64  # topics taken out of a list one by one

Numbers = NDArray[np.int64]


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
    paths: tuple[str, ...]
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
        table = np.asarray(chunks, np.int64).reshape(len(chunks), 3)
        return cls(
            docs=docs,
            paths=tuple(row[1] for row in topics),
            types=np.fromiter((_CODES[row[2]] for row in topics), np.int8, size),
            mtimes=np.fromiter((row[3] / 1e9 for row in topics), np.float64, size),
            embedded=np.fromiter((row[4] == EMBEDDED for row in topics), np.bool_, size),
            chunk_owner=np.searchsorted(docs, table[:, 0]),
            chunk_number=table[:, 1],
            chunk_row=table[:, 2],
        )

    def updated(self, gone: Numbers, fresh: "Table") -> tuple["Table", Numbers]:
        """The table after some topics went and others came or changed.

        Args:
            gone: numbers of topics that are no more; unknown ones are ignored.
            fresh: topics that are new or changed, whole.

        Returns:
            The new table, and for each position of this one the new position, -1 for a topic that went.
        """
        changed = places_of(self.docs, np.concatenate([gone, fresh.docs]))
        keep = np.ones(len(self.docs), np.bool_)
        keep[changed[changed >= 0]] = False
        docs = np.concatenate([self.docs[keep], fresh.docs])
        stayed = int(keep.sum())
        # New text has a greater number than all before, so that mostly nothing has to be put into order.
        is_ordered = 0 in (stayed, len(fresh.docs)) or docs[stayed] > docs[stayed - 1]
        order = slice(None) if is_ordered else np.argsort(docs, kind="stable")
        place = np.empty(len(docs), np.int64)
        place[order] = np.arange(len(docs))
        moved = np.full(len(self.docs), -1, np.int64)
        moved[keep] = place[:stayed]
        renewed = places_of(self.docs, fresh.docs)
        moved[renewed[renewed >= 0]] = place[stayed:][renewed >= 0]
        chunk_kept = keep[self.chunk_owner]
        owner = np.concatenate([moved[self.chunk_owner[chunk_kept]], place[stayed:][fresh.chunk_owner]])
        by_owner = slice(None) if is_ordered else np.argsort(owner, kind="stable")
        table = Table(
            docs=docs[order],
            paths=_ordered(self.paths, keep, fresh.paths, order),
            types=np.concatenate([self.types[keep], fresh.types])[order],
            mtimes=np.concatenate([self.mtimes[keep], fresh.mtimes])[order],
            embedded=np.concatenate([self.embedded[keep], fresh.embedded])[order],
            chunk_owner=owner[by_owner],
            chunk_number=np.concatenate([self.chunk_number[chunk_kept], fresh.chunk_number])[by_owner],
            chunk_row=np.concatenate([self.chunk_row[chunk_kept], fresh.chunk_row])[by_owner],
        )
        return table, moved


def _ordered(
    old: Sequence[str], keep: NDArray[np.bool_], new: Sequence[str], order: Numbers | slice
) -> tuple[str, ...]:
    """The kept old texts and the new ones, in the order; a slice of all when they are in order."""
    gone = np.flatnonzero(~keep)
    if len(gone) <= _FEW and isinstance(order, slice):
        listed = list(old)
        for at in gone[::-1].tolist():
            del listed[at]
        return (*listed, *new)
    whole = np.empty(len(old), object)
    whole[:] = old
    texts = np.empty(len(old) - len(gone) + len(new), object)
    texts[: len(old) - len(gone)] = whole[keep]
    texts[len(old) - len(gone) :] = new
    return tuple(texts[order])


def places_of(docs: Numbers, wanted: Numbers) -> Numbers:
    """Place of each wanted number in the rising `docs`, -1 where it is not there; shape of `wanted`."""
    if not len(docs):
        return np.full(len(wanted), -1, np.int64)
    places = np.minimum(np.searchsorted(docs, wanted), len(docs) - 1)
    return np.where(docs[places] == wanted, places, -1)


def follow(moved: Numbers, positions: Numbers) -> Numbers:
    """Where positions of the old table are in the new one; -1 stays, and comes from what went."""
    if not len(moved):
        return np.full(len(positions), -1, np.int64)
    return np.where(positions >= 0, moved[positions], -1)
