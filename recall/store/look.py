"""A cheap look at a memory folder: has anything changed that a scan would judge, and if so, which files?

A look costs little more than listing the folders and asking for each file's times. Most looks find nothing new, and
most others an edited, new or deleted topic; only what goes beyond that (links, folders, names with a meaning) needs a
scan.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from recall.store.scan import SourceFile, is_plain_name

Stamp = tuple[int, int, int, int]
"""Modification time in ns, size, inode, device of a file."""

_NO_FILE: Final = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Look:
    """What a folder looked like.

    Attributes:
        root: the real folder, ending in a separator.
        files: stamp of each ordinary topic file, by its place.
        rest: everything else that a scan would judge: links, folders, other names; place and what is known of it.
    """

    root: str
    files: Mapping[str, Stamp]
    rest: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed between two looks.

    Attributes:
        read: ordinary topic files that are new or have other stamps.
        gone: paths of those that are there no more.
    """

    read: tuple[SourceFile, ...]
    gone: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.read or self.gone)


def look(root: Path) -> Look:
    """The folder as it looks now; a folder that cannot be listed is part of `rest`, nothing is raised."""
    real = os.path.realpath(root).rstrip(os.sep) + os.sep
    files: dict[str, Stamp] = {}
    rest: dict[str, object] = {}
    pending = [real]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    _take(entry, files, rest, pending)
        except OSError as error:
            rest[folder] = error.errno
    return Look(real, files, rest)


def _take(entry: os.DirEntry[str], files: dict[str, Stamp], rest: dict[str, object], pending: list[str]) -> None:
    name = entry.name
    if entry.is_symlink():
        rest[entry.path] = os.readlink(entry.path)  # noqa: PTH115 - thousands of paths would cost more than the look
    elif entry.is_dir(follow_symlinks=False):
        rest[entry.path] = None
        if name[0] != ".":
            pending.append(entry.path)
    elif name.endswith(".md") and is_plain_name(name) and entry.is_file(follow_symlinks=False):
        status = entry.stat(follow_symlinks=False)
        files[entry.path] = status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev
    elif name[-9:].lower().endswith((".md", ".markdown")):
        status = entry.stat(follow_symlinks=False)
        rest[entry.path] = status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode


def difference(before: Look, now: Look) -> Difference | None:
    """What changed from one look to the next; None when a scan has to judge."""
    if before.root != now.root or before.rest != now.rest:
        return None
    if before.files == now.files:
        return Difference((), ())
    start = len(now.root)
    read = [
        SourceFile(place[start:].replace(os.sep, "/"), place, *stamp)
        for place, stamp in now.files.items()
        if before.files.get(place, _NO_FILE) != stamp
    ]
    gone = tuple(place[start:].replace(os.sep, "/") for place in before.files.keys() - now.files.keys())
    read.sort(key=lambda file: -file.mtime_ns)
    return Difference(tuple(read), gone)
