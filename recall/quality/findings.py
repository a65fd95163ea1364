"""What a look at the memory files finds, one value each."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is: an error costs memories, a warning wants mending, a note is for information."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Kind(StrEnum):
    """What is wrong."""

    FOLDER = "folder"
    INDEX_MISSING = "index-missing"
    INDEX_UNREADABLE = "index-unreadable"
    INDEX_FULL = "index-full"
    LONG_LINE = "long-line"
    DEAD_LINK = "dead-link"
    OUTSIDE_LINK = "outside-link"
    SUPERSEDED_LINK = "superseded-link"
    REPEATED_LINE = "repeated-line"
    REPEATED_LINK = "repeated-link"
    ORPHAN = "orphan"
    UNREADABLE = "unreadable"
    SKIPPED = "skipped"
    ENCODING = "encoding"
    HEADER = "header"
    DESCRIPTION = "description"
    TYPE = "type"
    SIZE = "size"
    WIKI_LINK = "wiki-link"
    SUPERSEDED_BY = "superseded-by"
    CASE = "case"
    TITLE = "title"
    SAME_BODY = "same-body"
    SAME_ENTRY = "same-entry"
    SECRET = "secret"  # noqa: S105 - no password


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with one file.

    Attributes:
        kind: what it is.
        severity: how bad it is.
        path: the file, below the memory folder, with `/`; "" for the folder itself.
        line: where in it, from 1; 1 for the file as a whole.
        message: what is wrong, in words. May quote the file, credentials excepted.
        fix: what mending would do, in words; "" where it can do nothing.
    """

    kind: Kind
    severity: Severity
    path: str
    line: int
    message: str
    fix: str = ""
