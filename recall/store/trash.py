"""What was removed or replaced: the runs in `.trash`, undoing one, letting old ones go, and real forgetting."""

import errno
import re
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from recall.errors import TopicError, UnsafePathError
from recall.store import disk
from recall.store.applying import writing
from recall.store.capacity import INDEX_NAME
from recall.store.files import confine
from recall.store.index_links import lines_of
from recall.store.journal import RECORD, TRASH, Journal, is_ours, read_journal, read_record
from recall.store.plan import Change, Folder, Plan, Run, content, digest, read_bytes
from recall.text.scripts import WORD, kinds

_DAY_S: Final = 86_400.0
_RUN: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)-[0-9a-f]{8}")
_NOT_OURS: Final = "it was recorded by another user or on another machine, or came with the repository; look twice"
_NO_COPIES: Final = frozenset({".gitignore", "forgotten.jsonl"})


@dataclass(frozen=True, slots=True)
class Kept:
    """One run in one folder's `.trash`.

    Attributes:
        run: what was done.
        folder: the memory folder.
    """

    run: Run
    folder: Folder


def kept(folder: Folder) -> list[Kept]:
    """The runs that can be undone, newest first; what is no run is left out."""
    found = [Kept(journal.run, folder) for _, journal, _ in _journals(folder)]
    return sorted(found, key=lambda one: (one.run.time, one.run.id), reverse=True)


def _journals(folder: Folder) -> Iterator[tuple[Path, Journal, Mapping[str, Any]]]:
    trash = folder.root / TRASH
    if trash.is_symlink() or not trash.is_dir():
        return
    for place in sorted(trash.iterdir()):
        if place.is_symlink() or not place.is_dir():
            continue
        try:
            record = read_record(place / RECORD)
            journal = read_journal(folder, record)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, UnsafePathError):
            continue
        if journal.run.id == place.name and _did_something(journal, record):
            yield place, journal, record


def _did_something(journal: Journal, record: Mapping[str, Any]) -> bool:
    """Whether not all of it was left alone because of edits that came at the same moment."""
    skipped = record.get("skipped")
    return not isinstance(skipped, list) or any(step.path not in skipped for step in journal.steps)


def restoring(folders: Sequence[Folder], run: str = "") -> Plan:
    """The plan that undoes a run: every file gets back the bytes and the time that it had before.

    A plan like any other: what it takes the place of is kept in `.trash` too, and it is refused when a file has been
    changed since the run.

    Args:
        folders: the memory folders.
        run: its id; "" for the last one that is not undone and no restoring itself. One that somebody else put there,
            with a cloned repository for instance, is meant only where there is none of this user's.

    Raises:
        TopicError: there is no such run, it is undone already, or one of its files has changed since.
    """
    # Two of the folders may be one, which AGENTS.md shares with the topics.
    every = list({one[0].resolve(): one for folder in reversed(folders) for one in _journals(folder)}.values())
    undone = _undone([journal.run for _, journal, _ in every])
    found = [
        (place, journal, record)
        for place, journal, record in every
        if journal.run.id == run or (not run and journal.run.kind != "restore" and journal.run.id not in undone)
    ]
    if not found:
        named = f"no run {run}" if run else "no run"
        raise TopicError(f"{named} can be undone; `recall restore --list` shows all", path=run or "restore")
    ours = [one for one in found if is_ours(one[1].folder, one[2])]
    last = max(ours or found, key=lambda one: (one[1].run.time, one[1].run.id))[1].run
    parts = [one for one in ours or found if one[1].run.id == last.id]
    changes = [change for place, journal, record in parts for change in _inverse(place, journal, record)]
    _check(changes, last.id)
    notes = (f"undoes {last.kind} {last.id}", *(() if ours else (_NOT_OURS,)))
    return Plan("restore", tuple(changes), last.items, notes, undoes=last.id)


def _undone(runs: Sequence[Run]) -> set[str]:
    """Ids of the runs that others have undone, which are not undone themselves."""
    undone: set[str] = set()
    for run in sorted(runs, key=lambda run: (run.time, run.id), reverse=True):
        if run.undoes and run.id not in undone:
            undone.add(run.undoes)
    return undone


def _check(changes: Sequence[Change], run: str) -> None:
    """Refuses what cannot be undone: better said before anybody agrees to it."""
    now = [digest(read_bytes(change.folder, change.path)) for change in changes]
    if changes and all(found == digest(change.after) for found, change in zip(now, changes, strict=True)):
        raise TopicError("is undone already; `recall restore --list` shows all runs", path=run)
    for found, change in zip(now, changes, strict=True):
        if found != change.before:
            raise TopicError(
                f"has changed since {run}; undo later runs first, `recall restore --list` shows them",
                path=change.folder.root / change.path,
            )


def _inverse(place: Path, journal: Journal, record: Mapping[str, Any]) -> Iterator[Change]:
    told = record.get("skipped")
    skipped = told if isinstance(told, list) else []
    for step in journal.steps:
        if step.path in skipped:
            continue
        before = _copy(step.old) if step.before else None
        if step.before and digest(before) != step.before:
            raise TopicError("the kept copy is gone or was changed; take from it what you need by hand", path=step.old)
        mode = None if step.after else step.mode or None  # a file that is there keeps its own
        yield Change(journal.folder, step.path, step.after, before, step.mtime_ns or None, mode)
    if index := _index_inverse(place, journal.folder, record.get("index")):
        yield index


def _index_inverse(place: Path, folder: Folder, told: object) -> Change | None:
    """How MEMORY.md gets back every byte; None where somebody has written to it since, and lines are to be mended."""
    if not isinstance(told, dict):
        return None
    before, after, old = (str(told.get(key, "")) for key in ("before", "after", "old"))
    if before == after or digest(read_bytes(folder, INDEX_NAME)) != after:
        return None
    data = _copy(confine(old, place)) if before else None
    return Change(folder, INDEX_NAME, after, data) if digest(data) == before else None


def _copy(file: Path) -> bytes | None:
    """What a kept copy holds; None where there is none."""
    return content(file) if file.is_file() and not file.is_symlink() else None


def expire(folder: Folder, *, now: float, days: float) -> list[str]:
    """Deletes the runs that are older than so many days, also what a stop left of one; gives their ids.

    Raises:
        LockedError: another process keeps writing.
    """
    if not _older(folder, now - days * _DAY_S):
        return []
    with writing(folder) as trash:
        old = _older(folder, now - days * _DAY_S)
        for place in old:
            disk.delete_folder(place)
        disk.flush_folder(trash)
    return [place.name for place in old]


def _older(folder: Folder, than: float) -> list[Path]:
    times = {place: journal.run.time for place, journal, _ in _journals(folder)}
    trash = folder.root / TRASH
    for place in sorted(trash.iterdir()) if trash.is_dir() and not trash.is_symlink() else ():
        if place not in times and (named := _RUN.fullmatch(place.name)) and not place.is_symlink():
            with suppress(ValueError):
                times[place] = datetime.strptime(named[1], "%Y-%m-%dT%H-%M-%S").replace(tzinfo=UTC).timestamp()
    return [place for place, time in times.items() if time < than]


def unpurged(folder: Folder) -> list[tuple[Run, set[str]]]:
    """Runs of this user's that were to leave no copy, and still have one, with the paths of the files that went."""
    return [
        (journal.run, {step.path for step in journal.steps if not step.after})
        for _, journal, record in _journals(folder)
        if journal.run.purges and is_ours(folder, record)
    ]


def purge(
    folder: Folder, texts: Sequence[str], *, paths: Collection[str] = (), runs: Collection[str] = ()
) -> list[str]:
    """Deletes every run that keeps a copy of one of the texts or files, with all else that it keeps.

    What others have put into `.trash` loses the files that hold one of the texts, and nothing else.

    Args:
        folder: the memory folder.
        texts: what must not be found any more, however it is spaced; part of a longer word is something else.
        paths: files of which no earlier state may be found, nor a line in a kept MEMORY.md.
        runs: ids of runs that go whatever they hold, with all others that changed the same files: an earlier state of
            such a file may say the same in other words.

    Returns:
        The ids of the runs that went.

    Raises:
        LockedError: another process keeps writing.
        OSError: a copy cannot be read or deleted.
    """
    sought = _Sought([_Needle.of(text) for text in texts if text.strip()], frozenset(paths))
    gone: list[str] = []
    left: list[str] = []
    with writing(folder) as trash:
        touched = _touched(folder, paths, runs)
        for place in sorted(trash.iterdir()):
            if place.name in _NO_COPIES or place.suffix == ".lock":
                continue
            is_run = bool(_RUN.fullmatch(place.name))
            try:
                if place.name in runs or place in touched or (is_run and any(map(sought.is_in, _files(place)))):
                    _delete(place)
                    gone.append(place.name)
                elif not is_run:
                    _delete_some(place, sought)
            except (OSError, RecursionError) as error:
                left.append(f"{place} ({error})")
        disk.flush_folder(trash)
    if left:
        raise OSError(f"a copy may be left, because this cannot be read or deleted: {', '.join(left)}")
    return gone


def _touched(folder: Folder, paths: Collection[str], runs: Collection[str]) -> set[Path]:
    """Folders of the runs that changed one of the files, or one that one of the named runs changed."""
    journals = list(_journals(folder))
    changed = {step.path for _, journal, _ in journals if journal.run.id in runs for step in journal.steps}
    meant = {*paths, *changed} - {INDEX_NAME}  # which nearly every run changes; a copy of it is looked into
    return {place for place, journal, _ in journals if any(step.path in meant for step in journal.steps)}


def _delete(place: Path) -> None:
    """Deletes it; a link goes, what it leads to stays."""
    if place.is_symlink() or not place.is_dir():
        disk.delete(place)
        return
    disk.delete_folder(place)
    if place.exists():
        raise OSError(errno.ENOTEMPTY, "not all of it could be deleted", str(place))


def _delete_some(place: Path, sought: "_Sought") -> None:
    for file in list(_files(place)):
        if sought.is_in(file):
            disk.delete(file)


def _files(place: Path) -> Iterator[Path]:
    """The regular files at and below a place, however deep; links lead nowhere."""
    pending = [place]
    while pending:
        here = pending.pop()
        mode = here.lstat().st_mode
        if stat.S_ISDIR(mode):
            pending += here.iterdir()
        elif stat.S_ISREG(mode):
            yield here


@dataclass(frozen=True, slots=True)
class _Needle:
    """A text that is looked for, however it is spaced.

    Attributes:
        bare: its characters without blanks.
        spaced: finds it with any blanks in between.
    """

    bare: str
    spaced: re.Pattern[str]

    @classmethod
    def of(cls, text: str) -> "_Needle":
        bare = _bare(text)
        return cls(bare, re.compile("(?=(" + r"\s*".join(map(re.escape, bare)) + "))"))

    def is_in(self, text: str, bare: str) -> bool:
        """Whether it stands in the text, and not within a longer word."""
        return self.bare in bare and any(
            not (_parts_word(text, match.start(1)) or _parts_word(text, match.end(1)))
            for match in self.spaced.finditer(text)
        )


def _parts_word(text: str, at: int) -> bool:
    """Whether two characters of one word meet there; scripts without blanks have no words to tell apart."""
    return 0 < at < len(text) and kinds(text[at - 1 : at + 1]) == WORD * 2


@dataclass(frozen=True, slots=True)
class _Sought:
    """What no file may hold.

    Attributes:
        needles: texts.
        paths: files that no kept index may have a link to.
    """

    needles: Sequence[_Needle]
    paths: frozenset[str]

    def is_in(self, file: Path) -> bool:
        """Whether the file holds any of it."""
        text = file.read_bytes().decode("utf-8", "replace")
        return self._says(text) or self._says(_told(file)) or (bool(self.paths) and self._links(file, text))

    def _says(self, text: str) -> bool:
        bare = _bare(text)
        return any(needle.is_in(text, bare) for needle in self.needles)

    def _links(self, file: Path, text: str) -> bool:
        """Whether it is a copy of MEMORY.md with a link to one of the files, however that is spelled."""
        return INDEX_NAME in file.name and any(
            link.target in self.paths for line in lines_of(text) for link in line.links
        )


def _told(file: Path) -> str:
    """What a journal or a record is about; in the file itself, what is not ASCII is escaped."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return "\n".join(str(item["text"]) for item in read_record(file)["items"])
    return ""


def _bare(text: str) -> str:
    return "".join(text.split())
