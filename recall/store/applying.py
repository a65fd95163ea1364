"""Does what a plan says: under the lock of the folder, as a whole or not at all, also after a stop.

What is to be written, and what it takes the place of, lies flushed in `.trash/<run>/` before the first file changes,
and a journal beside it lets the next process end what one that was stopped had begun. Afterwards the run stays in
`.trash` with all that it removed, so that it can be undone (`store.trash`).
"""

import logging
import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from recall.errors import StalePlanError, UnsafePathError
from recall.store import disk, tombstones
from recall.store.journal import (
    PENDING,
    TRASH,
    Journal,
    Upkeep,
    is_ours,
    journal_of,
    no_upkeep,
    read_journal,
    read_record,
)
from recall.store.locks import exclusive
from recall.store.plan import Change, Folder, IndexMode, Plan, Run, digest, place_of, read_bytes

logger = logging.getLogger(__name__)

_LOCK_WAIT_S: Final = 30.0


def apply(plan: Plan, *, now: float, upkeep: Upkeep = no_upkeep, timeout_s: float = _LOCK_WAIT_S) -> Run:
    """Does what the plan says, in all its folders or in none.

    Args:
        plan: what to do.
        now: seconds since the epoch.
        upkeep: what is to follow in each folder.
        timeout_s: how long to wait for another writer of a folder.

    Raises:
        StalePlanError: a file is not as the plan expects; nothing was done.
        LockedError: another process keeps writing; nothing was done.
        UnsafePathError: a path leads out of its folder; nothing was done.
        OSError: a folder cannot be written; nothing was done. Where not even what had been done could be taken back,
            the next writer does the rest.
    """
    run = Run("", plan.kind, now, items=plan.items, undoes=plan.undoes, purges=plan.purges)
    by_folder = _by_folder(plan.changes)
    if not by_folder:
        return run
    name = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%dT%H-%M-%S}-{secrets.token_hex(4)}"
    with ExitStack() as held:
        for folder in by_folder:
            held.enter_context(writing(folder, upkeep=upkeep, timeout_s=timeout_s))
        _check(plan.changes)
        journals = [journal_of(replace(run, id=name), folder, changes) for folder, changes in by_folder.items()]
        for journal, skipped in zip(journals, _carried_out(journals, by_folder), strict=True):
            run = _joined(run, _ended(journal, skipped, upkeep))
    return run


def _by_folder(changes: Sequence[Change]) -> dict[Folder, list[Change]]:
    """The changes in each folder, in the order in which everybody takes the locks; one folder has one lock."""
    roots: dict[str, list[Change]] = {}
    for change in changes:
        roots.setdefault(os.path.realpath(change.folder.root), []).append(change)
    return {
        # AGENTS.md may lie in the memory folder, which then is the one that has an index.
        min((change.folder for change in found), key=lambda folder: folder.index is IndexMode.OFF): found
        for _, found in sorted(roots.items())
    }


def _carried_out(journals: Sequence[Journal], changes: Mapping[Folder, Sequence[Change]]) -> list[list[str]]:
    """Changes the files of all folders; gives the paths of those that were left alone, folder by folder."""
    try:
        for journal in journals:
            journal.stage({change.path: change for change in changes[journal.folder]})
    except BaseException:
        for journal in journals:
            journal.drop()
        raise
    try:
        for journal in journals:
            journal.begin()
        return [journal.carry_out() for journal in journals]
    except OSError:
        _take_back(journals)
        raise


def _take_back(journals: Sequence[Journal]) -> None:
    """Undoes what was done.

    Raises:
        OSError: not all could be undone. The journals and all copies stay, and the next writer carries them out.
    """
    failed = [error for journal in reversed(journals) for error in journal.undo()]
    if failed:
        raise failed[0]
    for journal in journals:
        journal.drop()


def _ended(journal: Journal, skipped: Sequence[str], upkeep: Upkeep) -> Run:
    try:
        return journal.end(skipped, upkeep)
    except OSError as error:
        note = f"this was done, but cannot be recorded yet, so not be undone: {error}; the next change records it"
        done = tuple(step.path for step in journal.steps if step.path not in skipped)
        return replace(journal.run, paths=done, skipped=tuple(skipped), notes=(note,))


def _joined(first: Run, second: Run) -> Run:
    return replace(
        second,
        paths=first.paths + second.paths,
        skipped=first.skipped + second.skipped,
        notes=first.notes + second.notes,
    )


def _check(changes: Sequence[Change]) -> None:
    """Refuses when a file is not as the plan expects."""
    stale = [
        place_of(change.folder, change.path)
        for change in changes
        if digest(read_bytes(change.folder, change.path)) != change.before
    ]
    if stale:
        raise StalePlanError(stale)


@contextmanager
def writing(folder: Folder, *, upkeep: Upkeep = no_upkeep, timeout_s: float = _LOCK_WAIT_S) -> Iterator[Path]:
    """Holds the folder for one writer, once what an earlier one left undone is finished; gives its `.trash`.

    Raises:
        LockedError: another process keeps writing.
        OSError: the folder cannot be written.
    """
    disk.make_folder(folder.root)
    trash = make_trash(folder.root)
    with exclusive(trash / "writer.lock", timeout_s=timeout_s):
        finish(folder, upkeep=upkeep)
        yield trash


def make_trash(root: Path) -> Path:
    """The folder of removed things, made when missing, which no scan and no commit takes in.

    Raises:
        UnsafePathError: somebody put a link in its place or in that of a lock, which could lead anywhere.
    """
    trash = root / TRASH
    if trash.is_symlink():
        raise UnsafePathError(trash, root)
    tombstones.make_trash(trash)
    for lock in trash.glob("*.lock"):
        if not stat.S_ISREG(lock.lstat().st_mode):
            raise UnsafePathError(lock, root)
    return trash


def finish(folder: Folder, *, upkeep: Upkeep = no_upkeep) -> Run | None:
    """Does what is left of a run that was stopped; the lock of the folder must be held.

    A journal that this user's recall has not written, for instance one that came with a repository, is set aside, and
    nothing of it is done.

    Returns:
        The run; None when there was none.

    Raises:
        OSError: it cannot be done yet.
    """
    file = folder.root / TRASH / PENDING
    try:
        record = read_record(file)
        journal = read_journal(folder, record)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, UnsafePathError) as error:
        # A journal has its name only once it is whole: this one is not ours, or somebody wrote into it.
        _set_aside(file, "corrupt", str(error))
        return None
    if not is_ours(folder, record):
        _set_aside(file, "foreign", "this user's recall has not written it")
        return None
    if not journal.place.is_dir():
        _set_aside(file, "lost", "somebody deleted the folder of what was waiting")
        return None
    return journal.end(journal.carry_out(), upkeep)


def _set_aside(file: Path, kind: str, why: str) -> None:
    aside = file.with_name(f"{PENDING}.{kind}-{secrets.token_hex(4)}")
    disk.rename(file, aside)
    logger.warning("%s was set aside, and nothing of it was done: %s", aside, why)
