"""A cheap look at a memory folder: has anything changed that a scan would judge, and if so, which files?

A look costs little more than listing the folders and asking for each file's times. Most looks find nothing new, and
most others an edited, new or deleted topic; only what goes beyond that (links, folders, names with a meaning) needs a
scan.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from recall.store.scan import SourceFile, is_never_topic, is_plain_name, is_settled

Stamp = tuple[int, int, int, int]
"""Modification time in ns, size, inode, device of a file."""

_COARSEST_NS: Final = 2_000_000_000  # of file systems in use; FAT counts two seconds


class Listing(NamedTuple):
    """What one folder held.

    Attributes:
        changed_ns: modification time of the folder itself: when a name in it came, went or was exchanged last.
        files: stamp of each ordinary topic file, by its place.
        rest: everything else that a scan would judge: links, folders, other names; place and what is known of it.
        folders: places of the folders in it that are looked at.
        unsettled: places of files that were written so short a time ago that another write would not have shown.
    """

    changed_ns: int
    files: Mapping[str, Stamp]
    rest: Mapping[str, object]
    folders: tuple[str, ...]
    unsettled: frozenset[str] = frozenset()


_NOTHING: Final = Listing(0, {}, {}, ())


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """What a folder looked like.

    Attributes:
        root: the real folder, ending in a separator.
        began_ns: when the look began, in ns since the epoch.
        listings: of the folder and all below it, by their places.
    """

    root: str
    began_ns: int
    listings: Mapping[str, Listing]

    def __len__(self) -> int:
        """How many ordinary topic files there were."""
        return sum(len(listing.files) for listing in self.listings.values())


class Difference(NamedTuple):
    """What changed between two looks.

    Attributes:
        read: ordinary topic files that are new, have other stamps, or were written to just before the first look.
        gone: paths of those that are there no more.
    """

    read: tuple[SourceFile, ...]
    gone: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.read or self.gone)


def look(root: Path, *, last: Look | None = None) -> Look:
    """The folder as it looks now; a folder that cannot be listed is part of `rest`, nothing is raised.

    Args:
        root: the folder.
        last: an earlier look; what is as it was is taken from it, so that the difference is found at once.
    """
    return _walk(root, last, glances=False)


def glance(last: Look) -> Look:
    """The folder as it looks now, save that a file which was edited in place looks as it did.

    Folders in which no name came, went or was exchanged since the last look are not listed again. Saving by renaming
    exchanges a name.
    """
    return _walk(Path(last.root), last, glances=True)


def _walk(root: Path, last: Look | None, *, glances: bool) -> Look:
    began_ns = time.time_ns()
    real = os.path.realpath(root).rstrip(os.sep) + os.sep
    listings: dict[str, Listing] = {}
    pending = [real]
    while pending:
        folder = pending.pop()
        known = _NOTHING if last is None else last.listings.get(folder, _NOTHING)
        is_as_it_was = glances and last is not None and folder in last.listings and _is_settled(folder, known, last)
        listing = known if is_as_it_was else _listed(folder, known)
        listings[folder] = listing
        pending += listing.folders
    return Look(real, began_ns, listings)


def _is_settled(folder: str, known: Listing, last: Look) -> bool:
    """Whether nothing can have come, gone or been exchanged in the folder since it was listed."""
    try:
        changed_ns = os.stat(folder).st_mtime_ns  # noqa: PTH116 - as below
    except OSError:
        return False
    # What changed just before it was listed may have changed once more in the same tick of the file system's clock.
    return changed_ns == known.changed_ns < last.began_ns - _COARSEST_NS


def _listed(folder: str, known: Listing) -> Listing:
    """What the folder holds; whatever is as it was known is the same object, so that to forget one of two is free."""
    fresh: dict[str, Stamp] = {}
    gone = dict(known.files)
    rest: dict[str, object] = {}
    folders: list[str] = []
    changed_ns, began_ns = 0, time.time_ns()
    try:
        changed_ns = os.stat(folder).st_mtime_ns  # noqa: PTH116 - thousands of paths would cost more than the look
        with os.scandir(folder) as entries:
            for entry in entries:
                _take(entry, fresh, rest, folders, gone)
    except OSError as error:
        rest[folder] = error.errno
    ended_ns = time.time_ns()
    files = known.files
    if fresh or gone:
        files = {**files, **fresh}
        for place in gone:
            del files[place]
    recent = [(place, stamp[0]) for place, stamp in files.items() if stamp[0] > began_ns - _COARSEST_NS]
    unsettled = frozenset(
        place
        for place, mtime_ns in recent
        if began_ns <= mtime_ns <= ended_ns or not (is_settled(mtime_ns, began_ns) and is_settled(mtime_ns, ended_ns))
    )
    found = Listing(changed_ns, files, rest, tuple(folders), unsettled)
    return known if found == known else found


def _take(
    entry: os.DirEntry[str],
    fresh: dict[str, Stamp],
    rest: dict[str, object],
    pending: list[str],
    gone: dict[str, Stamp],
) -> None:
    """Notes what is new or other than it was known, and strikes it off what seems gone."""
    name = entry.name
    if entry.is_symlink():
        rest[entry.path] = os.readlink(entry.path)  # noqa: PTH115 - thousands of paths would cost more than the look
    elif entry.is_dir(follow_symlinks=False):
        rest[entry.path] = None
        if name[0] != ".":
            pending.append(entry.path)
    elif name.endswith(".md") and is_plain_name(name) and entry.is_file(follow_symlinks=False):
        status = entry.stat(follow_symlinks=False)
        stamp, place = (status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev), entry.path
        if gone.pop(place, None) != stamp:
            fresh[place] = stamp
    elif name[-9:].lower().endswith((".md", ".markdown")):
        status = entry.stat(follow_symlinks=False)
        # What MEMORY.md says is nothing to a scan, and it changes with every memory.
        is_read = not is_never_topic(name)
        rest[entry.path] = status.st_mode, (status.st_mtime_ns, status.st_size, status.st_ino) if is_read else None


def difference(before: Look, now: Look) -> Difference | None:
    """What changed, or may have, from one look to the next; None when a scan has to judge."""
    if before.root != now.root:
        return None
    start = len(now.root)
    read: list[SourceFile] = []
    gone: list[str] = []
    for folder in before.listings.keys() | now.listings.keys():
        old, new = before.listings.get(folder, _NOTHING), now.listings.get(folder, _NOTHING)
        if old is new and not old.unsettled:
            continue
        if old.rest != new.rest:
            return None
        others = [(place, stamp) for place, stamp in new.files.items() if old.files.get(place) is not stamp]
        others = [(place, stamp) for place, stamp in others if old.files.get(place) != stamp]
        others += [(place, new.files[place]) for place in old.unsettled if old.files[place] == new.files.get(place)]
        read += (SourceFile(place[start:].replace(os.sep, "/"), place, *stamp) for place, stamp in others)
        came = sum(place not in old.files for place, _ in others)
        if len(old.files) + came != len(new.files):  # else none can have gone
            gone += (place[start:].replace(os.sep, "/") for place in old.files.keys() - new.files.keys())
    read.sort(key=lambda file: -file.mtime_ns)
    return Difference(tuple(read), tuple(gone))
