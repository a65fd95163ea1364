"""What a search looks at: one memory root as it was at one commit, never changing while it is used."""

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from recall.errors import IndexFormatError
from recall.index.approximate import Tier
from recall.index.base import Vectors
from recall.index.bundle import is_whole, mapping_of
from recall.index.catalog import REMEMBERED, Catalog
from recall.index.embed import stored_vectors
from recall.index.postings import Segment
from recall.index.sync import segment_file
from recall.index.table import Table, follow, places_of
from recall.store.topics import Scope, Topic


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One root at one commit.

    Attributes:
        scope: whose memory it is.
        generation: number of the commit that it shows.
        encoder: fingerprint of the model that made the vectors, "" for none.
        vectors: name of the file of vectors, "" for none.
        table: its topics and chunks; a topic's position is its place in there.
        segments: postings, each with the position of every slot, -1 where the topic is gone.
        rows: vectors, shape (rows, dim); may hold rows that no chunk uses.
        tier: codes that find rows without reading them all; None when all are to be read.
    """

    scope: Scope
    generation: int
    encoder: str
    vectors: str
    table: Table
    segments: tuple[tuple[Segment, NDArray[np.int64]], ...]
    rows: Vectors
    tier: Tier | None
    _catalog: Catalog

    @property
    def docs(self) -> NDArray[np.int64]:
        """Document numbers, rising, shape (n,)."""
        return self.table.docs

    @property
    def paths(self) -> Sequence[str]:
        """Path of each topic."""
        return self.table.paths

    @property
    def types(self) -> NDArray[np.int8]:
        """Code of each topic's kind in TYPES, shape (n,)."""
        return self.table.types

    @property
    def mtimes(self) -> NDArray[np.float64]:
        """Modification times in seconds, shape (n,)."""
        return self.table.mtimes

    @property
    def embedded(self) -> NDArray[np.bool_]:
        """Which topics have their vectors, shape (n,)."""
        return self.table.embedded

    @property
    def chunk_owner(self) -> NDArray[np.int64]:
        """Position of each chunk's topic, rising, shape (m,)."""
        return self.table.chunk_owner

    @property
    def chunk_number(self) -> NDArray[np.int64]:
        """Number of each chunk in its topic, rising; a chunk without a vector is missing; shape (m,)."""
        return self.table.chunk_number

    @property
    def chunk_row(self) -> NDArray[np.int64]:
        """Row of each chunk's vector, shape (m,)."""
        return self.table.chunk_row

    @cached_property
    def first_chunks(self) -> NDArray[np.int64]:
        """Place of the first chunk of each topic that has any, rising."""
        return np.flatnonzero(np.diff(self.table.chunk_owner, prepend=-1))

    @cached_property
    def lengths(self) -> NDArray[np.float64]:
        """Terms in each topic, repeats counted, shape (n,)."""
        lengths = np.zeros(len(self))
        for segment, positions in self.segments:
            alive = positions >= 0
            lengths[positions[alive]] = segment.lengths[alive]
        return lengths

    @property
    def is_whole(self) -> bool:
        """Whether all that is mapped is still there, and no other process has cut a file short where it lies."""
        return all(map(is_whole, self._mappings))

    @cached_property
    def _mappings(self) -> tuple[mmap.mmap, ...]:
        arrays = (self.rows, *(segment.docs for segment, _ in self.segments))
        return tuple(mapped for mapped in map(mapping_of, arrays) if mapped is not None)

    def precedes(self, catalog: Catalog, meta: Mapping[str, str]) -> bool:
        """Whether the catalog, whose settings are given, still tells all that changed since this snapshot."""
        same = self._catalog is catalog and (self.encoder, self.vectors) == (meta["encoder"], meta["vectors"])
        return same and int(meta["generation"]) - self.generation <= REMEMBERED

    def __len__(self) -> int:
        """How many topics it holds."""
        return len(self.docs)

    def is_of(self, catalog: Catalog) -> bool:
        """Whether it is a state of that catalog, not of one that was exchanged for it."""
        return self._catalog is catalog

    def shows(self, catalog: Catalog, generation: int) -> bool:
        """Whether it is the state of that catalog at that commit."""
        return self.is_of(catalog) and self.generation == generation

    def topics(self, positions: Sequence[int]) -> dict[int, Topic]:
        """The topics at these positions, whole; those that are gone by now are left out."""
        docs = {int(self.docs[position]): position for position in positions}
        found = self._catalog.topics(list(docs), self.scope)
        return {docs[doc]: topic for doc, topic in found.items()}

    def position_of(self, name: str) -> int | None:
        """Position of the topic of that public name, None when there is none here."""
        prefix = "" if self.scope is Scope.PROJECT else f"{self.scope}:"
        return self._places.get(name.removeprefix(prefix)) if name.startswith(prefix) else None

    @cached_property
    def _places(self) -> dict[str, int]:
        return {path: position for position, path in enumerate(self.paths)}

    def id_of(self, position: int) -> str:
        """Public name of the topic at the position."""
        path = self.paths[position]
        return path if self.scope is Scope.PROJECT else f"{self.scope}:{path}"


def take_snapshot(catalog: Catalog, scope: Scope, *, last: Snapshot | None = None) -> Snapshot:
    """The catalog's present state.

    Args:
        catalog: what to show.
        scope: whose memory it is.
        last: an earlier snapshot; what did not change since is taken from it, so that a small change costs little.

    Raises:
        IndexFormatError: something is damaged or missing; the derived data has to be rebuilt.
    """
    with catalog.reading() as read:
        meta: dict[str, str] = dict(read("SELECT key, value FROM meta"))
        if last is not None and not last.precedes(catalog, meta):
            last = None
        since = (-1 if last is None else last.generation,)
        # SQLite does not know that few topics changed since the last time, and would go through all of them.
        few = "INDEXED BY topics_changed" if last else ""
        topics = read(
            f"SELECT doc, path, type, mtime_ns, embedded FROM topics {few} WHERE changed > ? ORDER BY doc",  # noqa: S608 - constants
            since,
        )
        chunks = read(
            f"SELECT chunks.doc, number, vector FROM topics {few} {'CROSS' if few else ''} JOIN chunks "  # noqa: S608 - same
            "ON chunks.doc = topics.doc WHERE changed > ? ORDER BY chunks.doc, number",
            since,
        )
        gone = [doc for (doc,) in read("SELECT doc FROM removed WHERE changed > ?", since)] if last else []
        names = [name for (name,) in read("SELECT name FROM segments")]
    rows, fresh = stored_vectors(catalog, meta), Table.of(topics, chunks)
    known = {segment.name: (segment, positions) for segment, positions in last.segments} if last else {}
    table, moved = last.table.updated(np.asarray(gone, np.int64), fresh) if last else (fresh, fresh.docs)
    if len(rows) < int(meta["rows"]) and int(table.chunk_row.max(initial=-1)) >= len(rows):
        raise IndexFormatError(f"{catalog.file.parent / meta['vectors']}: shorter than the catalog says")
    return Snapshot(
        scope=scope,
        generation=int(meta["generation"]),
        encoder=meta["encoder"],
        vectors=meta["vectors"],
        table=table,
        segments=tuple(
            (known[name][0], follow(moved, known[name][1]))
            if name in known
            else _placed(Segment.open(segment_file(catalog, name)), table)
            for name in names
        ),
        rows=rows,
        tier=Tier.open(catalog.file.parent, meta, last=last.tier if last else None),
        _catalog=catalog,
    )


def _placed(segment: Segment, table: Table) -> tuple[Segment, NDArray[np.int64]]:
    return segment, places_of(table.docs, segment.docs)
