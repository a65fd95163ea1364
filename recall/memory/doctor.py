"""Health of derived data: what `Memory.check`, `Memory.mend` and the doctor of the command line do.

A check opens no index as a memory does, because opening throws away what is damaged: a check is to see it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from recall.config import Config
from recall.errors import EncoderError
from recall.index.collection import Collection
from recall.index.findings import Counts, Finding, Kind, Subject
from recall.index.folder import cache_folder
from recall.index.health import Sample, examine
from recall.memory.model import Model
from recall.memory.opening import cache_root
from recall.store.topics import Scope

_THOROUGH: Final = Sample(topics=2**31)
_BY_SAMPLE: Final = frozenset({Kind.STALE, Kind.INCOMPLETE, Kind.MISPLACED})


@dataclass(frozen=True, slots=True)
class RootHealth:
    """What a check found in the derived data of one memory root.

    Attributes:
        root: the memory folder.
        scope: whose memory it is.
        folder: where derived data lies.
        findings: all that is not as it should be.
        counts: what there is.
        sampled: what was looked at in part only, and what could not be looked at, a sentence each.
    """

    root: Path
    scope: Scope
    folder: Path
    findings: tuple[Finding, ...]
    counts: Counts
    sampled: tuple[str, ...]

    @property
    def faults(self) -> tuple[Finding, ...]:
        """The findings that are not harmless."""
        return tuple(finding for finding in self.findings if not finding.harmless)

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong; harmless findings aside."""
        return not self.faults


@dataclass(frozen=True, slots=True)
class RootMending:
    """What mending one memory root did.

    Attributes:
        before: what was found.
        done: what was done about it, a sentence each.
        after: what was found afterwards.
    """

    before: RootHealth
    done: tuple[str, ...]
    after: RootHealth


def check(scopes: Mapping[Scope, Path], config: Config, model: Model) -> list[RootHealth]:
    """Looks at the derived data of memory roots without opening them.

    Args:
        scopes: whose memory, and its folder.
        config: says where derived data lies.
        model: what makes vectors; loaded if it is not.
    """
    cache, most = cache_root(config), config.index.max_file_bytes
    return [_looked(Subject(cache_folder(cache, root), root, scope, most), model) for scope, root in scopes.items()]


def check_index(index: Collection, model: Model) -> RootHealth:
    """Looks at the derived data of an opened index."""
    return _looked(index.subject, model)


def _looked(subject: Subject, model: Model, sample: Sample | None = None) -> RootHealth:
    model.warm_up()
    health = examine(subject, encoder=model.encoder, products=model.products, sample=sample)
    problem = Finding(Kind.MODEL, "encoder", f"only words are searched: {model.problem}", mendable=False)
    return RootHealth(
        root=subject.root,
        scope=subject.scope,
        folder=subject.folder,
        findings=(*health.findings, *((problem,) if model.problem else ())),
        counts=health.counts,
        sampled=health.sampled,
    )


def mend(indexes: Sequence[Collection], model: Model, refresh: Callable[[], object]) -> list[RootMending]:
    """Checks indexes and mends them: by the smallest steps that help, and by a rebuild where those did not.

    Args:
        indexes: what to mend.
        model: what makes vectors.
        refresh: synchronises words and vectors of all of them with the files.

    Raises:
        LockedError: another process keeps writing.
        OSError: the cache folder is full.
    """
    before = [_to_mend(index, model) for index in indexes]
    if not any(finding.mendable for health in before for finding in health.findings):
        return [RootMending(health, (), health) for health in before]
    # All of them first: what is damaged when the refresh meets it is made anew as a whole.
    done = [list(index.mend(health.findings)) for index, health in zip(indexes, before, strict=True)]
    refreshed = _refreshed(refresh)
    after = [check_index(index, model) for index in indexes]
    failed = [place for place, health in enumerate(after) if any(fault.mendable for fault in health.faults)]
    for place in failed:
        indexes[place].rebuild()
        done[place].append("the small steps did not help: all derived data was made anew")
    if failed:
        refreshed = _refreshed(refresh)
        after = [check_index(index, model) for index in indexes]
    return [
        RootMending(health, (*steps, *refreshed), then) for health, steps, then in zip(before, done, after, strict=True)
    ]


def _to_mend(index: Collection, model: Model) -> RootHealth:
    """A look that leaves no topic out when the sample has a fault that is mended topic by topic."""
    health = check_index(index, model)
    is_sampled = any(fault.kind in _BY_SAMPLE for fault in health.faults)
    return _looked(index.subject, model, _THOROUGH) if is_sampled else health


def _refreshed(refresh: Callable[[], object]) -> list[str]:
    try:
        refresh()
    except EncoderError as error:
        return [f"words are up to date, vectors could not be made: {error}"]
    return ["words and vectors were brought up to date with the files"]
