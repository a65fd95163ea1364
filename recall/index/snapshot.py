"""What a search looks at: one memory root as it was at one commit, never changing while it is used."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from recall.errors import IndexFormatError
from recall.index.base import Vectors
from recall.index.catalog import EMBEDDED, Catalog
from recall.index.embed import stored_vectors
from recall.index.postings import Segment
from recall.index.sync import segment_file
from recall.store.topics import MemoryType, Scope, Topic

TYPES: Final[tuple[MemoryType | None, ...]] = (None, *MemoryType)
"""Kinds by their code in `Snapshot.types`."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Arrays over the topics of one root; a topic's position in them is its place in the order of `docs`.

    Attributes:
        scope: whose memory it is.
        generation: number of the commit that it shows.
        encoder: fingerprint of the model that made the vectors, "" for none.
        docs: document numbers, rising, shape (n,).
        paths: path of each topic.
        types: code of each topic's kind in TYPES, shape (n,).
        mtimes: modification times in seconds, shape (n,).
        embedded: which topics have their vectors, shape (n,).
        segments: postings, each with the position of every slot, -1 where the topic is gone.
        chunk_owner: position of each chunk's topic, rising, shape (m,).
        chunk_number: number of each chunk in its topic, rising; a chunk without a vector is missing, shape (m,).
        chunk_row: row of each chunk's vector, shape (m,).
        chunks_by_row: numbers of the chunks in the order of their rows, shape (m,).
        rows: vectors, shape (rows, dim); may hold rows that no chunk uses.
    """

    scope: Scope
    generation: int
    encoder: str
    docs: NDArray[np.int64]
    paths: tuple[str, ...]
    types: NDArray[np.int8]
    mtimes: NDArray[np.float64]
    embedded: NDArray[np.bool_]
    segments: tuple[tuple[Segment, NDArray[np.int64]], ...]
    chunk_owner: NDArray[np.int64]
    chunk_number: NDArray[np.int64]
    chunk_row: NDArray[np.int64]
    chunks_by_row: NDArray[np.int64]
    rows: Vectors
    _catalog: Catalog

    def __len__(self) -> int:
        """How many topics it holds."""
        return len(self.docs)

    def shows(self, catalog: Catalog, generation: int) -> bool:
        """Whether it is the state of that catalog at that commit."""
        return self._catalog is catalog and self.generation == generation

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


def take_snapshot(catalog: Catalog, scope: Scope, *, opened: Mapping[str, Segment]) -> Snapshot:
    """The catalog's present state.

    Args:
        catalog: what to show.
        scope: whose memory it is.
        opened: segments that an earlier snapshot has opened, by name.

    Raises:
        IndexFormatError: something is damaged or missing; the derived data has to be rebuilt.
    """
    with catalog.reading() as read:
        meta: dict[str, str] = dict(read("SELECT key, value FROM meta"))
        topics = read("SELECT doc, path, type, mtime_ns, embedded FROM topics ORDER BY doc")
        chunks = read("SELECT doc, number, vector FROM chunks ORDER BY doc, number")
        names = [name for (name,) in read("SELECT name FROM segments")]
    docs = np.fromiter((row[0] for row in topics), np.int64, len(topics))
    codes = {kind: code for code, kind in enumerate(TYPES)}
    rows = stored_vectors(catalog, meta)
    segments = [opened.get(name) or Segment.open(segment_file(catalog, name)) for name in names]
    table = np.asarray(chunks, np.int64).reshape(len(chunks), 3)
    if len(chunks) and int(table[:, 2].max()) >= len(rows):
        raise IndexFormatError(f"{catalog.file.parent / meta['vectors']}: shorter than the catalog says")
    return Snapshot(
        scope=scope,
        generation=int(meta["generation"]),
        encoder=meta["encoder"],
        docs=docs,
        paths=tuple(row[1] for row in topics),
        types=np.fromiter((codes[row[2]] for row in topics), np.int8, len(topics)),
        mtimes=np.fromiter((row[3] / 1e9 for row in topics), np.float64, len(topics)),
        embedded=np.fromiter((row[4] == EMBEDDED for row in topics), np.bool_, len(topics)),
        segments=tuple((segment, _positions(docs, segment.docs)) for segment in segments),
        chunk_owner=np.searchsorted(docs, table[:, 0]),
        chunk_number=table[:, 1],
        chunk_row=table[:, 2],
        chunks_by_row=np.argsort(table[:, 2], kind="stable"),
        rows=rows,
        _catalog=catalog,
    )


def _positions(docs: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Place of each wanted number in the rising `docs`, -1 where it is not there."""
    if not len(docs):
        return np.full(len(wanted), -1, np.int64)
    places = np.minimum(np.searchsorted(docs, wanted), len(docs) - 1)
    return np.where(docs[places] == wanted, places, -1)
