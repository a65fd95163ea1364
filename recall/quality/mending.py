"""Mends a memory folder: looks, plans, applies, and looks again."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from recall.errors import LockedError, StalePlanError
from recall.quality.check import check, fixes
from recall.quality.findings import Finding
from recall.quality.reading import Contents, read_contents
from recall.store.applying import apply
from recall.store.plan import Folder, Plan, Run
from recall.store.upkeep import bring_in_step

_TRIES: Final = 20  # others that write at the same moment are few


@dataclass(frozen=True, slots=True)
class Mending:
    """What mending one folder did.

    Attributes:
        contents: of the folder afterwards.
        findings: what is wrong afterwards.
        plan: what was done; an empty one for nothing.
        run: the run that did it, for `restore`; None for nothing.
    """

    contents: Contents
    findings: tuple[Finding, ...]
    plan: Plan
    run: Run | None = None


def mend(folder: Folder, *, max_file_bytes: int, clock: Callable[[], float] = time.time) -> Mending:
    """Mends what can be mended safely, and says what is left.

    Args:
        folder: which one.
        max_file_bytes: larger topics are not read.
        clock: seconds since the epoch.

    Raises:
        LockedError: others go on writing.
        OSError: the folder cannot be written.
    """
    for _ in range(_TRIES):
        contents = read_contents(folder, max_file_bytes=max_file_bytes)
        findings = check(contents)
        plan = fixes(contents, findings)
        if not plan:
            return Mending(contents, tuple(findings), plan)
        try:
            run = apply(plan, now=clock(), upkeep=bring_in_step)
        except StalePlanError:
            continue
        contents = read_contents(folder, max_file_bytes=max_file_bytes)
        return Mending(contents, tuple(check(contents)), plan, run)
    raise LockedError(folder.root, "somebody who goes on changing the same files")
