"""Does what a plan says: under the lock of the folder, as a whole or not at all, also after a stop.

What is to be written, and what it takes the place of, lies flushed in `.trash/<run>/` before the first file changes,
and a journal beside it lets the next process end what one that was stopped had begun. Afterwards the run stays in
`.trash` with all that it removed, so that it can be undone (`store.trash`).
"""

import logging
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
from recall.store.plan import Change, Folder, Plan, Run, digest, place_of, read_bytes

logger = logging.getLogger(__name__)

_LOCK_WAIT_S: Final = 30.0


def apply(plan: Plan, *, now: float, upkeep: Upkeep = no_upkeep) -> Run:
    """Does what the plan says, folder by folder, each as a whole or not at all.

    Args:
        plan: what to do.
        now: seconds since the epoch.
        upkeep: what is to follow in each folder.

    Raises:
        StalePlanError: a file is not as the plan expects; nothing was done.
        LockedError: another process keeps writing.
        UnsafePathError: a path leads out of its folder.
        OSError: a folder cannot be written; nothing was done in it.
    """
    run = Run("", plan.kind, now, items=plan.items, undoes=plan.undoes)
    folders = sorted({change.folder for change in plan.changes}, key=lambda folder: str(folder.root))
    if not folders:
        return run
    name = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%dT%H-%M-%S}-{secrets.token_hex(4)}"
    for folder in folders:
        changes = tuple(change for change in plan.changes if change.folder == folder)
        with writing(folder, upkeep=upkeep):
            _check(changes)
            run = _joined(run, _applied(journal_of(replace(run, id=name), folder, changes), changes, upkeep))
    return run


def _applied(journal: Journal, changes: Sequence[Change], upkeep: Upkeep) -> Run:
    journal.stage({change.path: change for change in changes})
    try:
        skipped = journal.carry_out()
    except OSError:
        journal.take_back()
        raise
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
    return journal.end(journal.carry_out(), upkeep)


def _set_aside(file: Path, kind: str, why: str) -> None:
    aside = file.with_name(f"{PENDING}.{kind}-{secrets.token_hex(4)}")
    disk.rename(file, aside)
    logger.warning("%s was set aside, and nothing of it was done: %s", aside, why)
