"""What is remembered of a file, to see whether it changed."""

import hashlib
from typing import Final, NamedTuple

from recall.store.scan import SourceFile

_GREATEST: Final = 2**63 - 1  # of what SQLite can hold; dates after 2262 and some file systems' numbers are greater

UNSETTLED: Final = -1
"""Remembered in place of a size that says nothing (store.scan.is_settled)."""


class Known(NamedTuple):
    """What the catalog remembers of a file, to see whether it changed.

    Attributes:
        doc: number of the topic in postings and chunks.
        mtime_ns: modification time.
        size: bytes; UNSETTLED when the file may have got another text in the moment after it was read.
        inode: number of the file on its device; another one after an atomic save.
        digest: hash of the file's text.
    """

    doc: int
    mtime_ns: int
    size: int
    inode: int
    digest: bytes

    def matches(self, file: SourceFile) -> bool:
        """True when the file looks untouched: same time, size and inode."""
        return (self.mtime_ns, self.size, self.inode) == stamp(file)

    def may_be(self, file: SourceFile) -> bool:
        """True when nothing that can be seen without reading it speaks for another text."""
        return self.matches(file) or (self.size == UNSETTLED and self.matches(file._replace(size=UNSETTLED)))


def stamp(file: SourceFile) -> tuple[int, int, int]:
    """Time, size and inode of a file as the catalog holds them."""
    return min(file.mtime_ns, _GREATEST), file.size, min(file.inode, _GREATEST)


def file_digest(text: str) -> bytes:
    """Hash of a file's text, 16 bytes, by which a change or a move of the file is seen."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
