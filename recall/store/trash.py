"""What was removed or replaced: the runs in `.trash`, undoing one, letting old ones go, and real forgetting."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recall.errors import TopicError, UnsafePathError
from recall.store import disk
from recall.store.applying import writing
from recall.store.capacity import INDEX_NAME
from recall.store.files import confine
from recall.store.journal import RECORD, TRASH, Journal, read_journal
from recall.store.plan import Change, Folder, Plan, Run, content, digest, read_bytes

_DAY_S = 86_400.0


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
        data = content(place / RECORD) if place.is_dir() and not place.is_symlink() else None
        if data is None:
            continue
        try:
            record = json.loads(data)
            journal = read_journal(folder, record)
        except (ValueError, KeyError, TypeError, UnsafePathError):
            continue
        if journal.run.id == place.name:
            yield place, journal, record


def restoring(folders: Sequence[Folder], run: str = "") -> Plan:
    """The plan that undoes a run: every file gets back the bytes and the time that it had before.

    A plan like any other: what it takes the place of is kept in `.trash` too, and it is refused when a file has been
    changed since the run.

    Args:
        folders: the memory folders.
        run: its id; "" for the last one that was no restoring itself.

    Raises:
        TopicError: there is no such run.
    """
    found = [
        (place, journal, record)
        for folder in folders
        for place, journal, record in _journals(folder)
        if journal.run.id == run or (not run and journal.run.kind != "restore")
    ]
    if not found:
        named = f"no run {run}" if run else "no run"
        raise TopicError(
            f"{named} is there to restore; `recall restore --list` shows all", path=folders[0].root / TRASH
        )
    last = max(found, key=lambda one: (one[1].run.time, one[1].run.id))[1].run
    parts = [one for one in found if one[1].run.id == last.id]
    changes = [change for place, journal, record in parts for change in _inverse(place, journal, record)]
    notes = (f"undoes {last.kind} {last.id}",)
    return Plan("restore", tuple(changes), last.items, notes, undoes=last.id)


def _inverse(place: Path, journal: Journal, record: Mapping[str, Any]) -> Iterator[Change]:
    for step in journal.steps:
        if step.path in record.get("skipped", ()):
            continue
        before = content(confine(step.old.name, place)) if step.before else None
        if step.before and digest(before) != step.before:
            raise TopicError("the kept copy is gone or was changed; take from it what you need by hand", path=step.old)
        yield Change(journal.folder, step.path, step.after, before, step.mtime_ns or None)
    if index := _index_inverse(place, journal.folder, record.get("index")):
        yield index


def _index_inverse(place: Path, folder: Folder, told: object) -> Change | None:
    """How MEMORY.md gets back every byte; None where somebody has written to it since, and lines are to be mended."""
    if not isinstance(told, dict):
        return None
    before, after, old = (str(told.get(key, "")) for key in ("before", "after", "old"))
    if digest(read_bytes(folder, INDEX_NAME)) != after:
        return None
    data = content(confine(old, place)) if before else None
    return Change(folder, INDEX_NAME, after, data) if digest(data) == before else None


def expire(folder: Folder, *, now: float, days: float) -> list[str]:
    """Deletes the runs that are older than so many days; gives their ids.

    Raises:
        LockedError: another process keeps writing.
    """
    old = [place for place, journal, _ in _journals(folder) if now - journal.run.time > days * _DAY_S]
    if not old:
        return []
    with writing(folder):
        for place in old:
            disk.delete_folder(place)
    return [place.name for place in old]


def purge(
    folder: Folder, texts: Sequence[str], *, paths: Collection[str] = (), runs: Collection[str] = ()
) -> list[str]:
    """Deletes every run that keeps a copy of one of the texts or files, with all else that it keeps.

    Args:
        folder: the memory folder.
        texts: what must not be found any more, however it is spaced.
        paths: files of which no earlier state may be found.
        runs: ids of runs that go whatever they hold.

    Returns:
        The ids of the runs that went.

    Raises:
        LockedError: another process keeps writing.
        OSError: a copy cannot be read or deleted.
    """
    needles = [needle for text in texts if (needle := _bare(text))]
    gone = []
    with writing(folder) as trash:
        touched = {place for place, journal, _ in _journals(folder) if any(s.path in paths for s in journal.steps)}
        for place in sorted(trash.iterdir()):
            if not place.is_dir() or place.is_symlink():
                continue
            if place.name in runs or place in touched or any(_holds(file, needles) for file in place.iterdir()):
                disk.delete_folder(place)
                if place.exists():
                    raise OSError(f"{place}: cannot be deleted; delete it by hand")
                gone.append(place.name)
        disk.flush_folder(trash)
    return gone


def _holds(file: Path, needles: Sequence[str]) -> bool:
    text = (content(file) or b"").decode("utf-8", "replace")
    if file.name == RECORD:
        with suppress(ValueError, KeyError, TypeError):
            text = " ".join(str(item["text"]) for item in json.loads(text)["items"])
    bare = _bare(text)
    return any(needle in bare for needle in needles)


def _bare(text: str) -> str:
    return "".join(text.split())
