"""Caches of memory roots that are no more: which there are, and how they go. Nothing else is ever removed."""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from recall.config import Config
from recall.errors import IndexFormatError, LockedError
from recall.index.folder import OPEN_LOCK, VECTORS_LOCK, WORDS_LOCK, cache_folder
from recall.index.inventory import read_meta
from recall.memory.opening import cache_root
from recall.store.locks import exclusive
from recall.store.projects import is_folder

UNUSED_DAYS: Final = 30.0
"""After so many days without use the cache of a memory root that is gone may be removed; its disk may only be away."""

_DAY_S: Final = 86_400.0
_OF_A_LOOK: Final = ("-shm", "-wal")  # SQLite makes them also for who only reads: being looked at is no use
_FOLDER_NAME: Final = re.compile(r"[0-9a-f]{24}")
_ESCAPED: Final = re.compile(rb"\\x([0-9a-f]{2})")
_OURS: Final = re.compile(
    r"catalog\.sqlite3(-wal|-shm|-journal)?|[0-9a-f]{32}\.(postings|vectors)|(open|words|vectors)\.lock"
)


@dataclass(frozen=True, slots=True)
class Abandoned:
    """Derived data of a memory root that is not there.

    Attributes:
        folder: where it lies.
        root: the memory root that it says it is of; "" when it cannot be read.
        bytes: its size.
        unused_days: days since anybody used it.
    """

    folder: Path
    root: str
    bytes: int
    unused_days: float

    def is_removable(self, unused_days: float = UNUSED_DAYS) -> bool:
        """Whether it has been unused for so long."""
        return self.unused_days >= unused_days


def abandoned(config: Config, *, now: float, keep: Collection[Path] = ()) -> list[Abandoned]:
    """Caches whose memory root is gone, or that do not say whose they are; by folder.

    Args:
        config: says where derived data lies.
        now: seconds since the epoch.
        keep: folders of derived data that are in use.
    """
    place = cache_root(config) / "roots"
    try:
        folders = sorted(place.iterdir())
    except OSError:
        return []
    return [
        found
        for folder in folders
        if folder not in keep and _FOLDER_NAME.fullmatch(folder.name) and not folder.is_symlink() and folder.is_dir()
        for found in _abandoned(folder, now)
    ]


def _abandoned(folder: Path, now: float) -> Iterator[Abandoned]:
    size, last = 0, 0.0
    with suppress(OSError):
        for file in folder.iterdir():
            status = file.lstat()
            size += status.st_size
            if not file.name.endswith(_OF_A_LOOK):
                last = max(last, status.st_mtime)
        last = last or folder.stat().st_mtime
    root = _root_of(folder)
    if root is None or not is_folder(root):
        yield Abandoned(folder, "" if root is None else str(root), size, max(0.0, now - last) / _DAY_S)


def _root_of(folder: Path) -> Path | None:
    """The memory root that the folder is named after; None when its catalog does not say."""
    try:
        text = read_meta(folder).get("root", "")
    except (IndexFormatError, ValueError, TypeError):
        return None
    raw = text.encode("utf-8", "surrogateescape")
    for spelled in (raw, _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), raw)):
        root = Path(spelled.decode("utf-8", "surrogateescape"))
        if text and cache_folder(Path(), root).name == folder.name:
            return root
    return None


def remove_abandoned(found: Sequence[Abandoned], *, unused_days: float = UNUSED_DAYS) -> list[Abandoned]:
    """Removes those that have been unused for so long; what others have put there stays, with its folder.

    Returns:
        Those that are gone now.
    """
    gone = []
    for one in found:
        if one.is_removable(unused_days):
            with suppress(OSError, LockedError):  # somebody uses it, or has put something of their own there
                _remove(one.folder)
                gone.append(one)
    return gone


def _remove(folder: Path) -> None:
    with (
        exclusive(folder / OPEN_LOCK, timeout_s=0),
        exclusive(folder / WORDS_LOCK, timeout_s=0),
        exclusive(folder / VECTORS_LOCK, timeout_s=0),
    ):
        for file in folder.iterdir():
            if _OURS.fullmatch(file.name) and file.suffix != ".lock":
                file.unlink(missing_ok=True)
    for file in folder.glob("*.lock"):
        if _OURS.fullmatch(file.name):
            file.unlink(missing_ok=True)
    folder.rmdir()
