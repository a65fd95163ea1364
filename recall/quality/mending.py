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
from recall.store.plan import Folder
from recall.store.upkeep import bring_in_step

_TRIES: Final = 20  # others that write at the same moment are few


@dataclass(frozen=True, slots=True)
class Mending:
    """What mending one folder did.

    Attributes:
        contents: of the folder afterwards.
        findings: what is wrong afterwards.
        mended: what was wrong before and is no more.
        run: the run that did it, for `restore`; "" for none.
        notes: why something could not be done, in sentences.
    """

    contents: Contents
    findings: tuple[Finding, ...]
    mended: tuple[Finding, ...] = ()
    run: str = ""
    notes: tuple[str, ...] = ()


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
            return Mending(contents, tuple(findings), notes=plan.notes)
        try:
            run = apply(plan, now=clock(), upkeep=bring_in_step)
        except StalePlanError:
            continue
        contents = read_contents(folder, max_file_bytes=max_file_bytes)
        left = check(contents)
        still = {_matter(finding) for finding in left}
        mended = tuple(one for one in findings if one.fix and _matter(one) not in still)
        return Mending(contents, tuple(left), mended, run.id, run.notes)
    raise LockedError(folder.root, "somebody who goes on changing the same files")


def _matter(finding: Finding) -> tuple[str, str, str]:
    """What a finding is about, wherever its line has got to."""
    return finding.kind, finding.path, finding.message
