"""Which topics hold which terms: immutable segments of an inverted index, mapped from files.

A segment is written once from some documents. A changed topic goes into a new segment and its old place in an older
one is simply no longer asked for; merging drops such places. Terms are those of `text.tokens.terms`; a posting says in
which fields a term stands (for the heuristic scorer) and how often in all (for BM25).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from recall.errors import IndexFormatError
from recall.index.bundle import open_bundle, write_bundle
from recall.index.recent import Recent, Slots
from recall.index.sets import distinct, is_among
from recall.store.topics import PLACEHOLDER
from recall.text.tokens import terms

TITLE: Final = 1
DESCRIPTION: Final = 2
HEAD: Final = 4

HEAD_CHARS: Final = 1200
"""Characters of the body that the heuristic scorer sees (founding document 000)."""

_GRAM: Final = 3
_HEAD: Final = 8  # bytes of a term that a number of 64 bits holds
_FEW: Final = 64  # terms that are looked through at once
_SMALL_TEXT: Final = 1 << 16
_SPARSE: Final = 5  # bytes of a slot with its fields, where those that do not hold the token are left out
_REMEMBERED_LEAST: Final = 1 << 20
_REMEMBERED_SHARE: Final = 4  # of the bytes of a segment as many may be remembered as one over this

_ARRAYS: Final = frozenset(
    {"docs", "lengths", "text", "offsets", "starts", "slots", "counts", "fields", "grams", "gram_starts", "gram_terms"}
)


def body_head(body: str) -> str:
    """The part of a body that the heuristic scorer sees."""
    return "" if body == PLACEHOLDER else body[:HEAD_CHARS]


@dataclass(frozen=True, slots=True)
class Document:
    """What a segment needs of one topic.

    Attributes:
        doc: number of the document, unique in its catalog.
        counts: occurrences of each term in title, description and whole body.
        fields: for each term the fields that it stands in: TITLE | DESCRIPTION | HEAD; 0 for deeper in the body only.
    """

    doc: int
    counts: Counter[str]
    fields: dict[str, int]

    @classmethod
    def of(cls, doc: int, *, title: str, description: str, body: str) -> Self:
        """The document of a topic's three texts."""
        in_title, in_description, in_body = terms(title), terms(description), terms(body)
        head = body_head(body)
        in_head = in_body if head == body else terms(head)
        fields = dict.fromkeys(in_body, 0)
        for flag, found in ((TITLE, in_title), (DESCRIPTION, in_description), (HEAD, in_head)):
            for term in found:
                fields[term] = fields.get(term, 0) | flag
        in_body.update(in_title)
        in_body.update(in_description)
        return cls(doc, in_body, fields)


class Postings(NamedTuple):
    """Where some terms stand: parallel arrays, one place a term and document of the segment.

    Attributes:
        slots: places of the documents in the segment.
        counts: occurrences, at least 0.
        fields: TITLE | DESCRIPTION | HEAD.
        sizes: how many of them belong to each term.
    """

    slots: NDArray[np.int32]
    counts: NDArray[np.uint16]
    fields: NDArray[np.uint8]
    sizes: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Segment:
    """Postings of some documents.

    Attributes:
        name: file name without suffix; "" for one in memory only.
        docs: document number of each slot, shape (n,).
        lengths: terms in each document, repeats counted, shape (n,).
    """

    name: str
    docs: NDArray[np.int64]
    lengths: NDArray[np.int32]
    _arrays: dict[str, NDArray[Any]] = field(repr=False)

    @classmethod
    def build(cls, documents: Iterable[Document]) -> Self:
        """A segment in memory; the slots are in the order of the documents."""
        ids: dict[str, int] = {}
        docs: list[int] = []
        lengths: list[int] = []
        columns: list[tuple[list[int], list[int], list[int]]] = []
        for document in documents:
            docs.append(document.doc)
            lengths.append(document.counts.total())
            numbers = [ids.setdefault(term, len(ids)) for term in document.fields]
            columns.append(
                (numbers, [document.counts[term] for term in document.fields], list(document.fields.values()))
            )
        slots = np.repeat(np.arange(len(docs), dtype=np.int32), [len(column[0]) for column in columns])
        flat = [
            np.fromiter((value for column in columns for value in column[part]), np.int64, len(slots))
            for part in range(3)
        ]
        return cls._assemble(
            np.asarray(docs, np.int64), np.asarray(lengths, np.int32), list(ids), flat[0], slots, flat[1], flat[2]
        )

    @classmethod
    def merge(cls, parts: Sequence[tuple["Segment", NDArray[np.bool_]]]) -> Self:
        """One segment of the documents that are still alive.

        Args:
            parts: segments, each with one flag a slot.
        """
        ids: dict[str, int] = {}
        columns: list[list[NDArray[Any]]] = [[], [], [], []]
        base = 0
        for segment, alive in parts:
            numbers = np.fromiter((ids.setdefault(term, len(ids)) for term in segment.terms()), np.int64, segment.size)
            owner = np.repeat(numbers, np.diff(segment._arrays["starts"]))
            slots = segment._arrays["slots"]
            keep = alive[slots]
            moved = base + np.cumsum(alive) - 1
            for column, values in zip(
                columns,
                (owner, moved[slots], segment._arrays["counts"], segment._arrays["fields"]),
                strict=True,
            ):
                column.append(values[keep])
            base += int(alive.sum())
        owner, slots, counts, fields = (np.concatenate(column) for column in columns)
        docs = np.concatenate([segment.docs[alive] for segment, alive in parts])
        lengths = np.concatenate([segment.lengths[alive] for segment, alive in parts])
        return cls._assemble(docs, lengths, list(ids), owner, slots, counts, fields)

    @classmethod
    def _assemble(  # noqa: PLR0913 - the columns of one table, built in two places
        cls,
        docs: NDArray[np.int64],
        lengths: NDArray[np.int32],
        vocabulary: list[str],
        owner: NDArray[np.int64],
        slots: NDArray[Any],
        counts: NDArray[Any],
        fields: NDArray[Any],
    ) -> Self:
        """Sorts the vocabulary and groups the postings by term."""
        used = distinct(owner)
        encoded = [vocabulary[number].encode("utf-8", "surrogatepass") for number in used]
        order = sorted(range(len(encoded)), key=encoded.__getitem__)
        rank = np.zeros(len(vocabulary), np.int64)
        rank[used[order]] = np.arange(len(order))
        by_term = np.lexsort((slots, rank[owner]))
        ranked = [encoded[number] for number in order]
        sizes = np.bincount(rank[owner], minlength=len(order)) if len(owner) else np.zeros(len(order), np.int64)
        grams, gram_starts, gram_terms = _gram_table([term.decode("utf-8", "surrogatepass") for term in ranked])
        arrays: dict[str, NDArray[Any]] = {
            "docs": docs,
            "lengths": lengths.astype(np.int32),
            "text": np.frombuffer(b"".join(ranked), np.uint8),
            "offsets": np.concatenate(([0], np.cumsum([len(term) for term in ranked], dtype=np.int64))),
            "starts": np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))),
            "slots": slots[by_term].astype(np.int32),
            "counts": np.minimum(counts[by_term], 0xFFFF).astype(np.uint16),
            "fields": fields[by_term].astype(np.uint8),
            "grams": grams,
            "gram_starts": gram_starts,
            "gram_terms": gram_terms,
        }
        return cls("", docs, arrays["lengths"], arrays)

    @classmethod
    def open(cls, file: Path) -> Self:
        """The segment in the file, mapped.

        Raises:
            IndexFormatError: absent, damaged or of another format.
        """
        arrays = open_bundle(file)
        if missing := _ARRAYS - arrays.keys():
            raise IndexFormatError(f"{file}: lacks {', '.join(sorted(missing))}")
        ends = {"offsets": "text", "starts": "slots", "gram_starts": "gram_terms"}
        if any(len(arrays[ends[name]]) != arrays[name][-1:].sum() for name in ends):
            raise IndexFormatError(f"{file}: its parts do not belong together")
        return cls(file.stem, arrays["docs"], arrays["lengths"], arrays)

    def write(self, file: Path) -> None:
        """Puts the segment on the disk, flushed."""
        write_bundle(file, self._arrays)

    @property
    def size(self) -> int:
        """How many distinct terms it holds."""
        return len(self._arrays["offsets"]) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return sum(array.nbytes for array in self._arrays.values())

    def terms(self) -> list[str]:
        """All terms, in byte order."""
        return [self._term(number).decode("utf-8", "surrogatepass") for number in range(self.size)]

    def find(self, wanted: Iterable[str]) -> dict[int, int]:
        """Numbers of the terms that documents have, by the place of each among those that are wanted."""
        encoded = [term.encode("utf-8", "surrogatepass") for term in wanted]
        heads = np.fromiter((int.from_bytes(term[:_HEAD].ljust(_HEAD, b"\0")) for term in encoded), np.uint64)
        starts, stops = (np.searchsorted(self._heads, heads, side).tolist() for side in ("left", "right"))
        found = {}
        for place, (term, start, stop) in enumerate(zip(encoded, starts, stops, strict=True)):
            at = bisect_left(range(stop), term, start, key=self._term) if start < stop else stop
            if at < stop and self._term(at) == term:
                found[place] = at
        return found

    def containing(self, part: str) -> NDArray[np.int32]:
        """Numbers, rising, of the terms that hold `part` anywhere; none when it has less than three characters."""
        grams, starts, owners = (self._arrays[name] for name in ("grams", "gram_starts", "gram_terms"))
        codes = np.fromiter(_grams(part), np.int64)
        places = np.searchsorted(grams, codes)
        if not (len(grams) and len(codes)) or (grams[np.minimum(places, len(grams) - 1)] != codes).any():
            return np.zeros(0, np.int32)
        rarest = places[np.argsort(starts[places + 1] - starts[places])[:2]]
        found, *others = (owners[starts[at] : starts[at + 1]] for at in rarest)
        if others and len(found) > _FEW:
            found = found[is_among(found, others[0])]
        return found if len(part) == _GRAM else self._with(found, part.encode("utf-8", "surrogatepass"))

    def _with(self, numbers: NDArray[np.int32], part: bytes) -> NDArray[np.int32]:
        """Those of the terms that hold these bytes."""
        starts, sizes = _spans(self._arrays["offsets"], numbers)
        text = self._arrays["text"][_places(starts, sizes)]
        ends = np.cumsum(sizes)
        at = np.flatnonzero(text[: max(0, len(text) - len(part) + 1)] == part[0])
        for offset in range(1, len(part)):
            at = at[text[at + offset] == part[offset]]
        owners = np.searchsorted(ends, at, "right")
        return numbers[distinct(owners[at + len(part) <= ends[owners]])]

    def holding(self, token: str) -> tuple[Slots, NDArray[np.uint8]]:
        """Slots of the documents in whose title, description or head a query token stands, and in which of the fields.

        A token of two characters is a term itself, a longer one stands wherever it is part of a term. Of a token that
        is in many documents the slots are a slice of all, and the fields of the others are 0. Not to be written to.
        """
        if (known := self._recent.get(token)) is None:
            known = self._holding(token)
            self._recent.put(token, *known)
        return known

    def _holding(self, token: str) -> tuple[Slots, NDArray[np.uint8]]:
        if self._few_terms and token.encode("utf-8", "surrogatepass") not in self._few_terms:
            return np.zeros(0, np.int32), np.zeros(0, np.uint8)
        numbers = (
            self.containing(token) if len(token) >= _GRAM else np.asarray([*self.find([token]).values()], np.int32)
        )
        places = _places(*_spans(self._arrays["starts"], numbers))
        where, fields = self._arrays["slots"][places], self._arrays["fields"][places]
        if len(numbers) > 1 or _SPARSE * len(where) > len(self.docs):
            every = np.zeros(len(self.docs), np.uint8)
            np.bitwise_or.at(every, where, fields)  # a document may have several of the terms
            return _packed(every)
        return where, fields

    def postings(self, numbers: Sequence[int] | NDArray[np.int32]) -> Postings:
        """Where the terms of these numbers stand, one term after the other; a slot comes once for each of them."""
        starts, sizes = _spans(self._arrays["starts"], np.asarray(numbers, np.int64))
        places = _places(starts, sizes)
        return Postings(
            self._arrays["slots"][places], self._arrays["counts"][places], self._arrays["fields"][places], sizes
        )

    def _term(self, number: int) -> bytes:
        offsets = self._offsets
        return self._text[offsets[number] : offsets[number + 1]].tobytes()

    @cached_property
    def _heads(self) -> NDArray[np.uint64]:
        """The first eight bytes of each term as a number; rising, as the terms do."""
        text, starts, sizes = self._arrays["text"], self._arrays["offsets"][:-1], np.diff(self._arrays["offsets"])
        heads = np.zeros(self.size, np.uint64)
        for at in range(_HEAD):
            longer = np.flatnonzero(sizes > at)
            heads[longer] |= text[starts[longer] + at].astype(np.uint64) << np.uint64(8 * (_HEAD - 1 - at))
        return heads

    # A memoryview gives plain numbers and bytes, several times faster than an array does.
    @cached_property
    def _text(self) -> memoryview:
        return memoryview(self._arrays["text"])  # type: ignore[arg-type]  # an array is a buffer

    @cached_property
    def _recent(self) -> Recent:
        return Recent(max(_REMEMBERED_LEAST, self.nbytes // _REMEMBERED_SHARE))

    @cached_property
    def _few_terms(self) -> bytes:
        """All terms of a small segment, in which most tokens are not; to see that takes a few microseconds."""
        text = self._arrays["text"]
        return text.tobytes() if len(text) <= _SMALL_TEXT else b""

    @cached_property
    def _offsets(self) -> memoryview:
        return memoryview(self._arrays["offsets"])  # type: ignore[arg-type]  # same


def _packed(fields: NDArray[np.uint8]) -> tuple[Slots, NDArray[np.uint8]]:
    """Fields of all documents as slots and their fields, whatever takes less memory."""
    if _SPARSE * np.count_nonzero(fields) > len(fields):
        return slice(None), fields
    slots = np.flatnonzero(fields).astype(np.int32)
    return slots, fields[slots]


def _spans(borders: NDArray[np.int64], numbers: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Beginning and size of each numbered stretch between borders."""
    starts = borders[numbers]
    return starts, borders[numbers + 1] - starts


def _places(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """All places of the stretches, one after the other."""
    ends = np.cumsum(sizes)
    places: NDArray[np.int64] = np.arange(sizes.sum()) + np.repeat(starts - (ends - sizes), sizes)
    return places


def _grams(term: str) -> set[int]:
    """The term's trigrams as numbers: three code points of 21 bits each."""
    codes = [ord(character) for character in term]
    return {codes[at] << 42 | codes[at + 1] << 21 | codes[at + 2] for at in range(len(codes) - _GRAM + 1)}


def _gram_table(vocabulary: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Sorted distinct trigrams, where the terms of each begin, and the terms in rising order.

    CJK pairs have no trigram and are found by `find`.
    """
    text = np.frombuffer("".join(vocabulary).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)
    sizes = np.fromiter(map(len, vocabulary), np.int64, len(vocabulary))
    windows = np.maximum(sizes - (_GRAM - 1), 0)
    places = _places(np.cumsum(sizes) - sizes, windows)
    codes = text[places] << 42 | text[places + 1] << 21 | text[places + 2]
    owners = np.repeat(np.arange(len(vocabulary), dtype=np.int32), windows)
    order = np.lexsort((owners, codes))
    codes, owners = codes[order], owners[order]
    first = np.ones(len(codes), np.bool_)
    first[1:] = (codes[1:] != codes[:-1]) | (owners[1:] != owners[:-1])  # a term may hold one twice
    codes, owners = codes[first], owners[first]
    grams, starts = np.unique(codes, return_index=True)  # noqa: TID251 - it sorts where places are wanted
    return grams, np.append(starts, len(codes)).astype(np.int64), owners
