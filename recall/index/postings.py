"""Which topics hold which terms: immutable segments of an inverted index, mapped from files.

A segment is written once from some documents. A changed topic goes into a new segment and its old place in an older
one is simply no longer asked for; merging drops such places. Terms are those of `text.tokens.terms`; a posting says in
which fields a term stands (for the heuristic scorer) and how often in all (for BM25).
"""

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
from recall.store.topics import PLACEHOLDER
from recall.text.tokens import terms

TITLE: Final = 1
DESCRIPTION: Final = 2
HEAD: Final = 4

HEAD_CHARS: Final = 1200
"""Characters of the body that the heuristic scorer sees (founding document 000)."""

_GRAM: Final = 3

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
    """

    slots: NDArray[np.int32]
    counts: NDArray[np.uint16]
    fields: NDArray[np.uint8]


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
        used = np.unique(owner)
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

    def find(self, term: str) -> int | None:
        """Number of the term, None when no document has it."""
        wanted = term.encode("utf-8", "surrogatepass")
        low, high = 0, self.size
        while low < high:
            middle = (low + high) // 2
            if self._term(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < self.size and self._term(low) == wanted else None

    def containing(self, part: str) -> list[int]:
        """Numbers of the terms that hold `part` (of three characters or more) anywhere, by the trigram table."""
        candidates: NDArray[Any] | None = None
        grams = self._arrays["grams"]
        for gram in sorted(_grams(part)):
            at = int(np.searchsorted(grams, gram))
            if at == len(grams) or grams[at] != gram:
                return []
            found = self._arrays["gram_terms"][slice(*self._arrays["gram_starts"][at : at + 2])]
            candidates = found if candidates is None else np.intersect1d(candidates, found, assume_unique=True)
            if not len(candidates):
                break
        numbers: list[int] = [] if candidates is None else candidates.tolist()
        if len(part) == _GRAM:
            return numbers
        wanted = part.encode("utf-8", "surrogatepass")
        return [number for number in numbers if wanted in self._term(number)]

    def postings(self, numbers: Sequence[int]) -> Postings:
        """Where the terms of these numbers stand, one term after the other; a slot comes once for each of them."""
        if len(numbers) == 1:
            place = slice(*self._starts[numbers[0] : numbers[0] + 2])
            return Postings(self._arrays["slots"][place], self._arrays["counts"][place], self._arrays["fields"][place])
        chosen = np.asarray(numbers, np.int64)
        starts, stops = self._arrays["starts"][chosen], self._arrays["starts"][chosen + 1]
        sizes = stops - starts
        places = np.arange(sizes.sum()) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        return Postings(self._arrays["slots"][places], self._arrays["counts"][places], self._arrays["fields"][places])

    def _term(self, number: int) -> bytes:
        offsets = self._offsets
        return self._text[offsets[number] : offsets[number + 1]].tobytes()

    # A memoryview gives plain numbers and bytes, several times faster than an array does.
    @cached_property
    def _text(self) -> memoryview:
        return memoryview(self._arrays["text"])  # type: ignore[arg-type]  # an array is a buffer

    @cached_property
    def _starts(self) -> memoryview:
        return memoryview(self._arrays["starts"])  # type: ignore[arg-type]  # same

    @cached_property
    def _offsets(self) -> memoryview:
        return memoryview(self._arrays["offsets"])  # type: ignore[arg-type]  # same


def _grams(term: str) -> set[int]:
    """The term's trigrams as numbers: three code points of 21 bits each."""
    codes = [ord(character) for character in term]
    return {codes[at] << 42 | codes[at + 1] << 21 | codes[at + 2] for at in range(len(codes) - _GRAM + 1)}


def _gram_table(vocabulary: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Sorted distinct trigrams, where the terms of each begin, and the terms in rising order.

    CJK pairs have no trigram and are found by `find`.
    """
    pairs = [(number, _grams(term)) for number, term in enumerate(vocabulary) if len(term) >= _GRAM]
    sizes = [len(grams) for _, grams in pairs]
    codes = np.fromiter((gram for _, grams in pairs for gram in grams), np.int64, sum(sizes))
    owners = np.repeat(np.fromiter((number for number, _ in pairs), np.int32, len(pairs)), sizes)
    order = np.lexsort((owners, codes))
    grams, starts = np.unique(codes[order], return_index=True)
    return grams, np.append(starts, len(codes)).astype(np.int64), owners[order].astype(np.int32)
