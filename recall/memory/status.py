"""What there is of a memory: every root with its files and its derived data."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from recall.index.collection import Collection as Index
from recall.index.sync import SyncReport
from recall.search.retriever import coverage_of
from recall.search.types import Coverage
from recall.store.topics import Scope
from recall.store.traces import Trace


@dataclass(frozen=True, slots=True)
class RootStatus:
    """One memory root and its index.

    Attributes:
        root: the folder.
        scope: whose memory it is.
        report: what the last look at the folder found; accounts for every .md file in it.
        coverage: topics and how many have vectors.
        problems: files that could not be read or embedded, with the reason.
        folder: where derived data lies.
        bytes: size of derived data.
        encoder: model that made the vectors, "" for none.
        traced: recalls that left a trace here.
        traced_since: time of the first of them, seconds since the epoch; None for none.
        note: what is unusual, "" when nothing is.
    """

    root: Path
    scope: Scope
    report: SyncReport
    coverage: Coverage
    problems: Mapping[str, str]
    folder: Path
    bytes: int
    encoder: str
    traced: int
    traced_since: float | None
    note: str


def root_status(index: Index, traces: Sequence[Trace], notes: Sequence[str]) -> RootStatus:
    """How one root stands; reads changed files, makes no vectors.

    Args:
        index: of the root.
        traces: what recalls left there.
        notes: what else is unusual.

    Raises:
        LockedError: another process keeps writing.
        OSError: the cache folder is full.
    """
    report = index.sync_words()
    snapshot = index.snapshot()
    return RootStatus(
        root=index.root,
        scope=index.scope,
        report=report,
        coverage=coverage_of([snapshot]),
        problems=index.problems(),
        folder=index.folder,
        bytes=_size(index.folder),
        encoder=snapshot.encoder,
        traced=len({trace.id for trace in traces}),
        traced_since=min((trace.time for trace in traces), default=None),
        note="; ".join(filter(None, (report.note, index.note, *notes))),
    )


def _size(folder: Path) -> int:
    """Bytes of the files in the folder; others may be deleting some of them."""
    total = 0
    for file in folder.glob("*"):
        with suppress(OSError):
            total += file.stat().st_size
    return total
