"""Which files of a memory folder are topics, and why the others are not.

A scan walks and stats; it reads no content, except the first bytes of files that are named like daily notes. Every
Markdown file that it comes across is either a topic or reported as skipped: nothing vanishes silently, nothing raises.

Sources: qwen.md section 3 (what is listed, in which order), deviations V3 (links), V29 (hidden folders).
"""

import errno
import os
import stat
import unicodedata
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from recall.store.topics import Scope
from recall.text.patterns import pattern


class Reason(StrEnum):
    """Why a file or folder is not among the topics."""

    INDEX = "index file"
    DIARY = "dream diary"
    DAILY_NOTE = "daily note"
    ENDING = "not a topic by its ending"
    HIDDEN_FILE = "hidden file"
    HIDDEN_FOLDER = "hidden folder"
    ALREADY_INDEXED = "link to a topic that is already indexed"
    OUTSIDE = "link to a place outside the memory folder"
    DANGLING = "link to nothing"
    LOOP = "link that leads back to itself"
    UNREADABLE = "cannot be read"
    NOT_A_FILE = "not a regular file"
    NAME = "name is not UTF-8"


_TICK_NS: Final = 20_000_000  # of the clock that file systems stamp with, generously; 1 to 10 ms where we looked
_COARSE_TICK_NS: Final = 2_000_000_000  # FAT counts two seconds, others one


def is_settled(mtime_ns: int, at_ns: int) -> bool:
    """Whether a file that is written to after `at_ns` gets another modification time than it had then.

    Two writes within one tick of the file system's clock leave the same time, and often the same size: who has read the
    file between the two has to read it again.

    Args:
        mtime_ns: its modification time.
        at_ns: a moment, both in ns since the epoch.
    """
    tick_ns = _TICK_NS if mtime_ns % 1_000_000_000 else _COARSE_TICK_NS
    return abs(at_ns - mtime_ns) >= tick_ns


class SourceFile(NamedTuple):
    """A topic file as the scan saw it.

    Attributes:
        path: position below the root with `/`, as spelled on disk.
        place: the file itself, absolute; for a link the link.
        mtime_ns: modification time in nanoseconds since the epoch.
        size: size in bytes.
        inode: number of the file on its device.
        device: number of the device.
    """

    path: str
    place: str
    mtime_ns: int
    size: int
    inode: int
    device: int

    @property
    def file(self) -> Path:
        """`place` as a path; to make thousands of these would cost more than the whole scan."""
        return Path(self.place)


class Skipped(NamedTuple):
    """A file, folder or link that is no topic.

    Attributes:
        path: position below the root with `/`; bytes that are not UTF-8 are written as hexadecimal escapes.
        reason: why.
        detail: what else is known: how many files, where a link leads, what the system said; "" for nothing.
    """

    path: str
    reason: Reason
    detail: str = ""

    def describe(self) -> str:
        """Reason and detail as one line: `hidden folder, 3 .md files`."""
        return f"{self.reason}, {self.detail}" if self.detail else str(self.reason)


class Scan(NamedTuple):
    """What a memory folder holds.

    Attributes:
        files: the topics, in the order of `scan_order`.
        skipped: everything else that could have been meant as one, by path.
        root_problem: why there is no folder to scan, in a sentence; "" when there is one.
        scope: whose memory it is.
    """

    files: tuple[SourceFile, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    root_problem: str = ""
    scope: Scope = Scope.PROJECT


def scan(root: Path, scope: Scope, *, allow: Sequence[Path] = ()) -> Scan:
    """List the topics below `root`.

    Args:
        root: the memory folder; it may itself be hidden or a link.
        scope: whose memory it is.
        allow: folders outside the root that links may lead to (deviations V3).
    """
    if problem := _root_problem(root):
        return Scan(root_problem=problem, scope=scope)
    walk = _Walk(root, allow)
    walk.run()
    skipped = sorted(walk.skipped, key=lambda skip: skip.path)
    return Scan(tuple(scan_order(walk.files)), tuple(skipped), scope=scope)


def _root_problem(root: Path) -> str:
    try:
        with os.scandir(root):
            return ""
    except FileNotFoundError:
        return f"{root} does not exist"
    except NotADirectoryError:
        return f"{root} is a file, not a folder"
    except (OSError, ValueError) as error:
        return f"{root} cannot be read: {_told(error)}"


# --- the walk

_DAY = pattern(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])\.md")
_SURROGATE = pattern("[\ud800-\udfff]")  # what a byte that is not UTF-8 becomes in a name
_SPECIAL = {"MEMORY.md": Reason.INDEX, "DREAMS.md": Reason.DIARY}
_COUNT_LIMIT = 20_000  # entries looked at to count what a hidden folder holds; a .git can be huge


class _Walk:
    """One scan in progress: real folders first, then the links, so that a real file wins over a link to it."""

    def __init__(self, root: Path, allow: Sequence[Path]) -> None:
        self.root = f"{root.absolute()}".rstrip(os.sep) + os.sep
        self.real_root = os.path.realpath(root)
        self.allowed = (self.real_root, *(os.path.realpath(folder) for folder in allow))
        self.files: list[SourceFile] = []
        self.skipped: list[Skipped] = []
        self.seen_folders: set[str] = set()
        self.seen_files: set[str] = set()
        self.folder_links: list[tuple[str, str]] = []  # (path, where it really leads)
        self.file_links: list[tuple[str, str]] = []

    def run(self) -> None:
        self.tree("", self.real_root)
        while self.folder_links:
            self.folder_links.sort()
            self.tree(*self.folder_links.pop(0))
        for path, real in sorted(self.file_links):
            if real in self.seen_files:
                self.skip(path, Reason.ALREADY_INDEXED, self.shown(real))
            else:
                self.file(path, real)

    def tree(self, path: str, real: str) -> None:
        """Walk the folder at `path`, whose real place is `real`, and what lies below it."""
        pending = [(path, real)]
        while pending:
            path, real = pending.pop()
            if real in self.seen_folders:
                self.skip(path, Reason.ALREADY_INDEXED, f"folder {self.shown(real)}")
                continue
            self.seen_folders.add(real)
            try:
                with os.scandir(real) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name, reverse=True)
            except OSError as error:
                self.skip(path, Reason.UNREADABLE, f"folder: {_told(error)}")
                continue
            pending += [folder for entry in entries if (folder := self.entry(path, entry))]

    def entry(self, folder: str, entry: os.DirEntry[str]) -> tuple[str, str] | None:
        """Take in one entry of a folder; a folder to go on with is given back."""
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.name.startswith(".") or not _is_utf8(entry.name):
            self.aside(path, entry)
        elif entry.is_symlink():
            self.link(path, entry)
        elif _is_folder(entry):
            return path, entry.path
        elif _is_markdown(entry.name):
            self.file(path, entry.path)
        return None

    def aside(self, path: str, entry: os.DirEntry[str]) -> None:
        """Report what a hidden or unspeakable name keeps out."""
        is_hidden = _is_utf8(entry.name)
        if _is_folder(entry):
            if count := _count_topics(entry.path):
                self.skip(path, Reason.HIDDEN_FOLDER if is_hidden else Reason.NAME, f"{count} .md files")
        elif _is_markdown(entry.name):
            self.skip(path, Reason.HIDDEN_FILE if is_hidden else Reason.NAME)

    def link(self, path: str, entry: os.DirEntry[str]) -> None:
        """Put a link aside until all real files are known."""
        try:
            real = os.path.realpath(entry.path, strict=True)
            is_folder = Path(real).is_dir()
        except OSError as error:
            self.skip(path, _LINK_ERRORS.get(error.errno or 0, Reason.UNREADABLE), _told(error))
            return
        if not is_folder and not _is_markdown(entry.name):
            return
        if any(_is_inside(real, folder) for folder in self.allowed):
            (self.folder_links if is_folder else self.file_links).append((path, real))
        else:
            self.skip(path, Reason.OUTSIDE, self.shown(real))

    def file(self, path: str, real: str) -> None:
        """Take in the Markdown file at `path`, whose real place is `real`."""
        try:
            status = os.stat(real)  # noqa: PTH116 - twice as fast for thousands of files
            if reason := _reason_against(path, real, status):
                self.skip(path, reason)
                return
        except FileNotFoundError:
            return  # gone since the folder was listed
        except OSError as error:
            self.skip(path, Reason.UNREADABLE, _told(error))
            return
        self.seen_files.add(real)
        stamp = status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev
        self.files.append(SourceFile(path, self.root + path, *stamp))

    def skip(self, path: str, reason: Reason, detail: str = "") -> None:
        self.skipped.append(Skipped(_speakable(path), reason, _speakable(detail)))

    def shown(self, real: str) -> str:
        """A real place, below the root where it lies there."""
        return os.path.relpath(real, self.real_root) if _is_inside(real, self.real_root) else real


_LINK_ERRORS = {errno.ELOOP: Reason.LOOP, errno.ENOENT: Reason.DANGLING, errno.ENOTDIR: Reason.DANGLING}


def _told(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def is_plain_name(name: str) -> bool:
    """Whether a file's name alone says nothing against its being a topic: not hidden, no index, diary or note."""
    return (
        name[0] != "." and _is_utf8(name) and name not in _SPECIAL and not (name[0].isdigit() and _DAY.fullmatch(name))
    )


def is_never_topic(name: str) -> bool:
    """Whether a Markdown file of this name is an index or a diary, whatever it holds."""
    return name in _SPECIAL


def _is_utf8(name: str) -> bool:
    return name.isascii() or _SURROGATE.search(name) is None


def _speakable(text: str) -> str:
    return text if _is_utf8(text) else os.fsencode(text).decode("utf-8", "backslashreplace")


def _is_markdown(name: str) -> bool:
    return name.lower().endswith((".md", ".markdown"))


def _is_inside(real: str, folder: str) -> bool:
    return real == folder or real.startswith(folder.rstrip(os.sep) + os.sep)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _reason_against(path: str, real: str, status: os.stat_result) -> Reason | None:
    """Why a Markdown file is no topic; the name of a link's target counts like its own."""
    if not path.endswith(".md"):
        return Reason.ENDING
    if not stat.S_ISREG(status.st_mode):
        return Reason.NOT_A_FILE
    name = path.rpartition("/")[2]
    for own in (name,) if real.endswith(name) else (name, real.rpartition(os.sep)[2]):
        if own in _SPECIAL:
            return _SPECIAL[own]
        if own[0].isdigit() and _DAY.fullmatch(own) and not _has_header(real):
            return Reason.DAILY_NOTE
    return None


def _has_header(real: str) -> bool:
    """Whether a file named like a daily note starts as a topic does; some memories are named after their day."""
    descriptor = os.open(real, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        return os.read(descriptor, 64).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"---")
    finally:
        os.close(descriptor)


def _count_topics(folder: str) -> str:
    """How many .md files lie in a folder that is not entered, "" for none; links in it are not followed."""
    count, looked_at, pending = 0, 0, [folder]
    while pending and looked_at < _COUNT_LIMIT:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    looked_at += 1
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    count += entry.name.endswith(".md")
        except OSError:
            continue
    return f"at least {count}" if pending and count else str(count or "")


# --- the order

_HIRAGANA_SHIFT = 0x60  # katakana sort with hiragana and differ from them only after everything else


def scan_order(files: Iterable[SourceFile]) -> list[SourceFile]:
    """Newest first; equal times by base name as a person would sort them, then by path (qwen.md section 3)."""
    ordered: list[SourceFile] = []
    newest_first = sorted(files, key=lambda source: source.mtime_ns, reverse=True)
    for _, group in groupby(newest_first, key=lambda source: source.mtime_ns):
        same = list(group)
        ordered += sorted(same, key=lambda source: scan_key(source.path)) if len(same) > 1 else same
    return ordered


def scan_key(path: str) -> tuple[tuple[str, str, str], bytes]:
    """What decides between topics of the same time: the base name as a person would sort it, then the path."""
    return collation_key(path.rpartition("/")[2]), path.encode("utf-16-be", "surrogatepass")


def collation_key(text: str) -> tuple[str, str, str]:
    """A sort key close to ICU's: letters first, then accents, then case.

    Punctuation < symbols < digits < Latin < Greek < Cyrillic < Hangul < kana < Han; lower case before upper.
    """
    if text.isascii():
        return text.lower().translate(_PRIMARY), "", text.swapcase()
    plain = unicodedata.normalize("NFKD", text)
    letters = "".join(char for char in plain if not unicodedata.combining(char))
    accents = "".join(char if unicodedata.combining(char) else " " for char in plain).rstrip()
    return letters.casefold().translate(_PRIMARY), accents, letters.swapcase() + text


class _Primary(dict[int, str]):
    """What a character weighs before accents and case are looked at; worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        category = unicodedata.category(char)
        if "ァ" <= char <= "ヶ":
            char = chr(code - _HIRAGANA_SHIFT)
        elif category == "Nd":
            char = str(unicodedata.digit(char))
        elif category[0] in "PSZ":
            char = f"/{char}"  # "/" itself has moved, the place just before "0" is free
        self[code] = char
        return char


_PUNCTUATION = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"  # as the root collation of CLDR has it
_PRIMARY = _Primary({ord(char): chr(1 + rank) for rank, char in enumerate(_PUNCTUATION)})
_PRIMARY |= {ord("ø"): "o", ord("đ"): "d", ord("ł"): "l", ord("ı"): "i", ord("æ"): "ae", ord("œ"): "oe"}
