"""Checks of derived data against itself: each looks at one inventory and what it names, and gives what is wrong."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recall.errors import IndexFormatError
from recall.index.base import Encoder, Products, Vectors, check_vectors
from recall.index.bundle import open_bundle
from recall.index.catalog import EMBEDDED, UNUSABLE
from recall.index.embed import chunk_digest, is_wasteful
from recall.index.findings import Finding, Kind
from recall.index.folder import CATALOG_FILE
from recall.index.inventory import Inventory, StoredText
from recall.index.postings import Document, Segment
from recall.index.sets import distinct, is_among
from recall.index.vectors import is_unit
from recall.text.chunks import chunk_topic

_SAME: float = 0.999
_BLOCK = 4096
_MOST_COUNT = 0xFFFF  # of a term in a topic, as postings hold it

Findings = Iterator[Finding]


# --- vectors


def vector_file(inventory: Inventory, rows: Vectors) -> Findings:
    """Whether all committed rows are there, and how many nobody uses.

    Args:
        inventory: what the catalog says.
        rows: what can be read of them, shape (n, dim).
    """
    name, stated = inventory.meta["vectors"], int(inventory.meta["rows"])
    if len(rows) < stated:
        yield Finding(Kind.VECTOR_FILE, name, f"holds {len(rows):,} of the {stated:,} vectors that it should hold")
    beyond = int(np.count_nonzero((inventory.rows < 0) | (inventory.rows >= stated)))
    if beyond:
        yield Finding(Kind.DIGEST, CATALOG_FILE, f"names {_many(beyond, 'text')} whose vector was never stored")
    used = len(inventory.used)
    if is_wasteful(stated, used):
        share = f"{stated - used:,} of {stated:,} vectors ({(stated - used) / stated:.0%})"
        yield Finding(Kind.GHOSTS, name, f"{share} are used by no topic and should have been compacted away")


def chunks(inventory: Inventory, rows: Vectors) -> Findings:
    """Whether every topic has the chunks that it is said to have, and every chunk a sound vector."""
    docs, places = inventory.chunks[:, 0], inventory.chunks[:, 2]
    known = is_among(docs, np.fromiter(inventory.paths, np.int64, len(inventory.paths)))
    if not known.all():
        stray = f"{_many(int((~known).sum()), 'chunk')} of {_many(len(distinct(docs[~known])), 'topic')}"
        yield Finding(Kind.STRAY, CATALOG_FILE, f"still holds {stray} that are gone")
    there = (places >= 0) & (places < len(rows))
    misplaced = distinct(docs[known & ~(there & is_among(places, inventory.rows))])
    for path in _paths(inventory, misplaced):
        yield Finding(Kind.MISPLACED, path, "one of its chunks points at a vector that is not there")
    sound = there.copy()
    sound[there] = _sound(rows, places[there])
    for path in _paths(inventory, distinct(docs[known & there & ~sound])):
        yield Finding(Kind.VECTOR, path, "one of its vectors is damaged: it is not of unit length")
    yield from _numbering(inventory)


def _sound(rows: Vectors, places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these rows are of unit length, shape of `places`."""
    parts = [is_unit(rows[places[at : at + _BLOCK]]) for at in range(0, len(places), _BLOCK)]
    return np.concatenate(parts) if parts else np.zeros(0, np.bool_)


def _numbering(inventory: Inventory) -> Findings:
    """Whether the chunks of each topic are numbered from 0 without a gap."""
    docs, starts, sizes = np.unique(  # noqa: TID251 - it sorts where places are wanted
        inventory.chunks[:, 0], return_index=True, return_counts=True
    )
    first, last = inventory.chunks[starts, 1], inventory.chunks[starts + sizes - 1, 1]
    whole = {doc: bool(fine) for doc, fine in zip(docs.tolist(), (first == 0) & (last == sizes - 1), strict=True)}
    for doc, path in inventory.paths.items():
        state = inventory.states[path]
        if state == EMBEDDED and not whole.get(doc, False):
            yield Finding(Kind.INCOMPLETE, path, "is said to have all its vectors and lacks some")
        elif state not in (EMBEDDED, UNUSABLE) and doc in whole:
            yield Finding(Kind.INCOMPLETE, path, "is said to have no vectors yet and has some")


def _paths(inventory: Inventory, docs: NDArray[np.int64]) -> list[str]:
    return [inventory.paths[doc] for doc in docs.tolist()]


def chunk_texts(inventory: Inventory, topic: StoredText, budget: int) -> Iterator[tuple[str, int | None]]:
    """The topic's chunks: text, and row of the vector that it has, None for none.

    Args:
        inventory: where the topic stands.
        topic: one of its sample.
        budget: estimated tokens of a chunk that the model takes.
    """
    start, stop = np.searchsorted(inventory.chunks[:, 0], [topic.doc, topic.doc + 1])
    rows = {int(number): int(row) for _, number, row in inventory.chunks[start:stop]}
    texts = [chunk.text for chunk in chunk_topic(topic.title, topic.description, topic.body, budget=budget)]
    yield from ((text, rows.pop(number, None)) for number, text in enumerate(texts))
    yield from (("", row) for row in rows.values())  # chunks beyond the end of the text


def texts_of_vectors(inventory: Inventory, budget: int) -> Findings:
    """Whether the chunks of the sampled topics point at the vectors of their texts, and none is missing."""
    texts = dict(zip(inventory.rows.tolist(), inventory.digests, strict=True))
    for topic in inventory.sample:
        state = inventory.states[topic.path]
        if state not in (EMBEDDED, UNUSABLE):
            continue
        places = list(chunk_texts(inventory, topic, budget))
        if state == EMBEDDED and any(row is None for _, row in places):
            yield Finding(Kind.INCOMPLETE, topic.path, "is said to have all its vectors and lacks some")
        if any(row is not None and texts.get(row) != chunk_digest(text) for text, row in places):
            yield Finding(Kind.MISPLACED, topic.path, "one of its chunks points at the vector of another text")


def self_search(inventory: Inventory, rows: Vectors, wanted: Sequence[int], products: Products) -> Findings:
    """Whether a search for each of the wanted rows, which are sound, finds it first."""
    owners = {int(row): int(doc) for doc, _, row in inventory.chunks}
    for row in wanted:
        best = float(np.nanmax(products(rows, rows[row]), initial=-np.inf))
        if not abs(best - 1) < 1 - _SAME:
            path = inventory.paths.get(owners[row], CATALOG_FILE)
            yield Finding(Kind.LOST, path, "a search for one of its vectors finds something else")


def same_model(inventory: Inventory, rows: Vectors, encoder: Encoder, most: int) -> Findings:
    """Whether the model gives the sampled topics the vectors that are stored.

    Args:
        inventory: the topics.
        rows: the vectors, shape (n, dim).
        encoder: the model, of the catalog's fingerprint.
        most: topics that are encoded; of each the first chunk.
    """
    texts = dict(zip(inventory.rows.tolist(), inventory.digests, strict=True))
    embedded = [topic for topic in inventory.sample if inventory.states[topic.path] == EMBEDDED]
    for topic in embedded[:: max(1, len(embedded) // most)][:most]:
        text, row = next(chunk_texts(inventory, topic, encoder.chunk_tokens))
        if row is None or row >= len(rows) or texts.get(row) != chunk_digest(text) or not is_unit(rows[row][None])[0]:
            continue  # other checks speak of it
        try:
            vector = check_vectors(encoder.encode_documents([text]), rows=1, dim=encoder.dim)[0]
        except Exception as error:  # an encoder of the host's may raise anything
            yield Finding(Kind.MODEL, encoder.name, f"the model does not work: {error}", mendable=False)
            return
        cosine = float(rows[row] @ vector)
        if not cosine > _SAME:
            sentence = f"the model gives it another vector than the stored one (cosine {cosine:.3f})"
            yield Finding(Kind.MODEL, topic.path, sentence)


# --- postings


@dataclass(frozen=True, slots=True, eq=False)
class OpenSegment:
    """A postings file that could be read whole.

    Attributes:
        segment: its postings.
        slots: place of each document in it.
        terms: number of each term.
    """

    segment: Segment
    slots: Mapping[int, int]
    terms: Mapping[str, int]

    @classmethod
    def read(cls, file: Path) -> "OpenSegment":
        """The segment in the file, every byte compared with its checksum.

        Raises:
            IndexFormatError: absent or damaged.
        """
        slots = open_bundle(file, check=True).get("slots", np.zeros(0, np.int32))
        segment = Segment.open(file)
        places = {doc: slot for slot, doc in enumerate(segment.docs.tolist())}
        if len(slots) and not 0 <= int(slots.min()) <= int(slots.max()) < len(segment.docs):
            raise IndexFormatError(f"{file}: names documents that it does not hold")
        terms = {term: number for number, term in enumerate(segment.terms())}
        return cls(segment, places, terms)


def postings(inventory: Inventory, segments: Sequence[OpenSegment]) -> Findings:
    """Whether every topic stands in one segment, and the sampled ones with the terms of their text."""
    homes: dict[int, list[OpenSegment]] = {}
    for part in segments:
        for doc in part.slots:
            if doc in inventory.paths:
                homes.setdefault(doc, []).append(part)
    for doc, path in inventory.paths.items():
        if len(found := homes.get(doc, [])) != 1:
            many = "in no file" if not found else f"in {len(found)} files"
            yield Finding(Kind.POSTINGS, path, f"its words stand {many} of postings instead of one")
    for topic in inventory.sample:
        if len(found := homes.get(topic.doc, [])) == 1 and not _agrees(found[0], topic):
            yield Finding(Kind.POSTINGS, topic.path, "the index holds other words of it than its text")


def _agrees(part: OpenSegment, topic: StoredText) -> bool:
    """Whether the segment says of the topic what its text says."""
    document = Document.of(topic.doc, title=topic.title, description=topic.description, body=topic.body)
    slot = part.slots[topic.doc]
    if part.segment.lengths[slot] != document.counts.total():  # else terms that the text lacks would not be noticed
        return False
    for term, fields in document.fields.items():
        number = part.terms.get(term)
        if number is None:
            return False
        found = part.segment.postings([number])
        at = int(np.searchsorted(found.slots, slot))
        count = min(document.counts[term], _MOST_COUNT)
        if at == len(found.slots) or (found.slots[at], found.counts[at], found.fields[at]) != (slot, count, fields):
            return False
    return True


def _many(number: int, one: str) -> str:
    return f"{number:,} {one if number == 1 else one + 's'}"
