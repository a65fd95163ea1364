"""A memory folder as it lies on the disk, read once, for everything that is then said about it."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from recall.errors import TopicError
from recall.store.capacity import INDEX_NAME
from recall.store.files import read_text
from recall.store.frontmatter import Frontmatter, parse
from recall.store.index_links import lines_of
from recall.store.index_view import MAX_BYTES
from recall.store.plan import Folder
from recall.store.scan import Skipped, SourceFile, scan
from recall.store.topics import Scope, Topic, topic_of

_DISK: Final = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class TopicFile:
    """A topic with what it was read from.

    Attributes:
        topic: as it was understood.
        text: what the file holds.
        front: its header.
        repairs: what had to be repaired to read it, a sentence each.
    """

    topic: Topic
    text: str
    front: Frontmatter
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexFile:
    """MEMORY.md.

    Attributes:
        exists: whether there is one, were it unreadable.
        text: what it holds; "" for none and for an unreadable one.
        problem: why it cannot be read, "" when it can.
        repairs: what had to be repaired to read it, a sentence each.
        data: its bytes, as they are; b"" for an unreadable one.
        present: what its links mean and is there, besides topics: below the folder, with `/`.
    """

    exists: bool = False
    text: str = ""
    problem: str = ""
    repairs: tuple[str, ...] = ()
    data: bytes = b""
    present: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Contents:
    """All of a memory folder.

    Attributes:
        folder: which one.
        files: its topics, newest first.
        index: its MEMORY.md.
        skipped: what is no topic, by path.
        failed: topics that cannot be read, each with the reason.
        problem: why there is nothing to read, "" when there is.
        exists: whether there is anything in its place.
    """

    folder: Folder
    files: tuple[TopicFile, ...] = ()
    index: IndexFile = IndexFile()
    skipped: tuple[Skipped, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    problem: str = ""
    exists: bool = True

    @property
    def standing(self) -> list[Topic]:
        """The topics that hold, newest first."""
        return [file.topic for file in self.files if not file.topic.superseded_by]


def read_contents(folder: Folder, *, max_file_bytes: int) -> Contents:
    """Reads a memory folder; what cannot be read is told, never raised.

    Args:
        folder: which one; need not exist.
        max_file_bytes: larger topics are not read.
    """
    seen = scan(folder.root, folder.scope)
    if seen.root_problem:
        return Contents(folder, problem=seen.root_problem, exists=os.path.lexists(folder.root))
    files: list[TopicFile] = []
    failed: list[tuple[str, str]] = []
    for source in seen.files:
        try:
            files.append(_topic_file(source, folder.scope, max_file_bytes))
        except FileNotFoundError:
            continue  # gone since the folder was listed
        except (TopicError, OSError) as error:
            failed.append((source.path, told(error)))
    return Contents(folder, tuple(files), _index_file(folder.root), seen.skipped, tuple(failed))


def told(error: TopicError | OSError) -> str:
    """What went wrong, without the name of the file."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).removeprefix(f"{error.path}: ") if isinstance(error, TopicError) else str(error)


def _topic_file(source: SourceFile, scope: Scope, max_bytes: int) -> TopicFile:
    text, repairs = read_text(source.file, max_bytes=max_bytes)
    front = parse(text)
    topic = topic_of(front, path=source.path, scope=scope, mtime=source.mtime_ns / 1e9, file=source.file)
    return TopicFile(topic, text, front, repairs)


def _index_file(root: Path) -> IndexFile:
    file = root / INDEX_NAME
    try:
        text, repairs = read_text(file, max_bytes=MAX_BYTES)
        data = file.read_bytes()
    except FileNotFoundError:
        return IndexFile(exists=True, problem="is a link to nothing") if file.is_symlink() else IndexFile()
    except (TopicError, OSError) as error:
        return IndexFile(exists=True, problem=told(error))
    return IndexFile(True, text, repairs=repairs, data=data, present=frozenset(_present(text, root)))


def _present(text: str, root: Path) -> Iterator[str]:
    for target in {link.target for line in lines_of(text) for link in line.links}:
        place = inside(target, root)
        try:
            if place and (root / place).exists():
                yield place
        except (OSError, ValueError):  # a name that no file can have
            continue


def inside(target: str, root: Path) -> str:
    """The place below the folder that the target of a link means, "" for one outside; links are not followed."""
    if target.startswith("~") or _DISK.match(target):
        return ""
    base = os.path.abspath(root)  # noqa: PTH100 - does not follow links
    place = os.path.normpath(os.path.join(base, target))  # noqa: PTH118 - the same
    if not place.startswith(base + os.sep):
        return ""
    return place[len(base) + 1 :].replace(os.sep, "/")


def is_for_people(path: str) -> bool:
    """Whether a file tells people about its folder, and needs no header and no line in the index."""
    return PurePosixPath(path).name.lower() == "readme.md"
