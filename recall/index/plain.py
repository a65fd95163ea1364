"""One memory root as plain numbers: what a fresh process reads to answer one question by words.

A snapshot of arrays answers many questions quickly, but to load numpy takes a fresh process longer than all else that
one answer needs. Here the same files are read through memoryviews.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

from recall.errors import IndexFormatError
from recall.index.behind import changed
from recall.index.bundle import open_numbers
from recall.index.catalog import Catalog
from recall.index.known import stamp
from recall.store.scan import SourceFile
from recall.store.topics import Scope, Topic

_GRAM: Final = 3
_NEEDED: Final = ("docs", "lengths", "text", "offsets", "starts", "slots", "counts", "fields", "grams", "gram_starts")


class Row(NamedTuple):
    """What the catalog says of one topic, without its text."""

    path: str
    type: str | None
    mtime_ns: int
    size: int
    inode: int
    embedded: int


class PlainSegment:
    """Postings of some documents; what they hold is said in `index.postings`.

    Args:
        numbers: the arrays of the segment's file.

    Attributes:
        docs: document number of each slot.
        lengths: terms in each document.
    """

    def __init__(self, numbers: Mapping[str, memoryview]) -> None:
        self._numbers = numbers
        self._text, self._offsets = numbers["text"], numbers["offsets"]
        self.docs: Sequence[int] = numbers["docs"].tolist()
        self.lengths: Sequence[int] = numbers["lengths"].tolist()

    @classmethod
    def open(cls, file: Path) -> Self:
        """The segment in the file, mapped.

        Raises:
            IndexFormatError: absent, damaged or of another format.
        """
        numbers = open_numbers(file)
        if any(name not in numbers for name in (*_NEEDED, "gram_terms")):
            raise IndexFormatError(f"{file}: lacks some of its parts")
        return cls(numbers)

    def find(self, term: str) -> list[int]:
        """Number of the term, as a list of none or one."""
        wanted, size = term.encode("utf-8", "surrogatepass"), len(self._offsets) - 1
        at = bisect_left(range(size), wanted, key=self._term)
        return [at] if at < size and self._term(at) == wanted else []

    def containing(self, part: str) -> list[int]:
        """Numbers of the terms that hold `part` (of three characters or more) anywhere, by the trigram table."""
        found: set[int] | None = None
        for at in range(len(part) - _GRAM + 1):
            terms = self._holding(part[at : at + _GRAM])
            found = terms if found is None else found & terms
            if not found:
                return []
        wanted = part.encode("utf-8", "surrogatepass")
        return [number for number in found or () if len(part) == _GRAM or wanted in self._term(number)]

    def fields(self, numbers: Iterable[int]) -> dict[int, int]:
        """In which fields the documents have any of the terms: flags by slot, without those that are 0."""
        found: dict[int, int] = {}
        starts, slots, fields = (self._numbers[name] for name in ("starts", "slots", "fields"))
        for number in numbers:
            place = slice(starts[number], starts[number + 1])
            for slot, flags in zip(slots[place], fields[place], strict=True):
                if flags:
                    found[slot] = found.get(slot, 0) | flags
        return found

    def counts(self, number: int) -> Iterator[tuple[int, int]]:
        """Slot and occurrences of every document that has the term; occurrences may be 0."""
        place = slice(*self._numbers["starts"][number : number + 2].tolist())
        return zip(self._numbers["slots"][place], self._numbers["counts"][place], strict=True)

    def _holding(self, gram: str) -> set[int]:
        first, second, third = map(ord, gram)
        code = first << 42 | second << 21 | third
        grams = self._numbers["grams"]
        at = bisect_left(grams, code)
        if at == len(grams) or grams[at] != code:
            return set()
        return set(self._numbers["gram_terms"][slice(*self._numbers["gram_starts"][at : at + 2].tolist())].tolist())

    def _term(self, number: int) -> bytes:
        return self._text[self._offsets[number] : self._offsets[number + 1]].tobytes()


class PlainIndex(NamedTuple):
    """One root at one commit.

    Attributes:
        scope: whose memory it is.
        rows: its topics, by document number.
        segments: postings; they may hold documents that are no more.
        catalog: where the texts are.
        max_file_bytes: larger files are not read to see whether they changed.
    """

    scope: Scope
    rows: Mapping[int, Row]
    segments: tuple[PlainSegment, ...]
    catalog: Catalog
    max_file_bytes: int

    @classmethod
    def of(cls, catalog: Catalog, scope: Scope, *, max_file_bytes: int) -> Self:
        """The catalog's present state.

        Args:
            catalog: what to read.
            scope: whose memory it is.
            max_file_bytes: larger files are not read to see whether they changed.

        Raises:
            IndexFormatError: something is damaged or missing.
        """
        with catalog.reading() as read:
            rows = read("SELECT doc, path, type, mtime_ns, size, inode, embedded FROM topics")
            names = [name for (name,) in read("SELECT name FROM segments")]
        segments = tuple(PlainSegment.open(catalog.segment_file(name)) for name in names)
        return cls(scope, {doc: Row(*rest) for doc, *rest in rows}, segments, catalog, max_file_bytes)

    def is_true_to(self, files: Sequence[SourceFile]) -> bool:
        """Whether these are the files that it was made from, and none of them looks changed."""
        known = {row.path: (row.mtime_ns, row.size, row.inode) for row in self.rows.values()}
        return len(files) == len(known) and all(known.get(file.path) == stamp(file) for file in files)

    def changed(self, topics: Sequence[Topic]) -> set[str]:
        """Paths of those topics whose text is another by now, or that are gone; at the cost of a `stat` each."""
        return changed(self.catalog, topics, max_bytes=self.max_file_bytes)

    def id_of(self, doc: int) -> str:
        """Public name of the topic."""
        path = self.rows[doc].path
        return path if self.scope is Scope.PROJECT else f"{self.scope}:{path}"

    def topics(self, docs: Iterable[int]) -> dict[int, Topic]:
        """The topics of these numbers, whole; those that are gone by now are left out."""
        return self.catalog.topics(list(docs), self.scope)
