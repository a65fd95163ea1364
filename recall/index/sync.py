"""Keeps the derived data true to the files: a pure plan, then its application in small committed steps.

Words come first and are searchable at once; vectors follow (index.embed), newest topic first, and may be interrupted at
any time: what is committed stays, the rest is found pending by the next run.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate
from pathlib import Path
from typing import Final

import numpy as np

from recall.errors import TopicError
from recall.index.bundle import open_bundle
from recall.index.catalog import Catalog, Record, advance, drop_paths, move_record, put_record, set_meta
from recall.index.known import UNSETTLED, Known, file_digest
from recall.index.postings import Document, Segment
from recall.index.sets import is_among
from recall.store.files import read_text
from recall.store.frontmatter import parse
from recall.store.look import Difference, Look
from recall.store.scan import Scan, Skipped, SourceFile, is_settled
from recall.store.topics import Scope, topic_of

Progress = Callable[[str, int, int], None]
"""Called with the stage (`words` or `vectors`), how many topics are done, and how many there are."""

_BATCH_FILES: Final = 2000
# The first batch is smaller, so that something can be found soon.
_FIRST_FILES: Final = 250
# Files of this size on average are what a limit in files means.
_TYPICAL_BYTES: Final = 16 * 1024
_MAX_SEGMENTS: Final = 8


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """What differs between the folder and the catalog.

    Attributes:
        read: files that are new or look changed, newest first.
        gone: paths in the catalog without a file.
        kept: how many files look untouched.
    """

    read: tuple[SourceFile, ...]
    gone: tuple[str, ...]
    kept: int


def plan(known: Mapping[str, Known], files: Sequence[SourceFile], *, full: bool = False) -> SyncPlan:
    """The difference between what the catalog knows and what the scan found.

    Args:
        known: from `Catalog.known`, by path.
        files: from `store.scan.scan`.
        full: read every file, also those that look untouched.
    """
    read = tuple(file for file in files if full or file.path not in known or not known[file.path].matches(file))
    present = {file.path for file in files}
    gone = tuple(path for path in known if path not in present)
    return SyncPlan(read, gone, len(files) - len(read))


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one synchronisation did. Every .md file below the root is in exactly one of the first six groups.

    Attributes:
        added: paths of new topics.
        changed: paths of topics whose text changed.
        moved: new paths of topics whose file was renamed or moved, with the same text.
        kept: number of topics that were as before.
        skipped: files that are no topics, with the reason.
        failed: files that could not be read, with the reason.
        removed: paths of topics whose file is gone.
        warnings: oddities of files that were indexed all the same.
        embedded: chunks that the model was asked for.
        reused: chunks whose vector was there already.
        unembedded: topics that stay without vectors, with the reason.
        left: number of files that are new or changed and were not read because they were more than wanted; then nothing
            else was done either.
        note: why the work could not be finished, "" when it could.
        duration_s: wall time in seconds.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    kept: int = 0
    skipped: tuple[tuple[str, str], ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    removed: tuple[str, ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()
    embedded: int = 0
    reused: int = 0
    unembedded: tuple[tuple[str, str], ...] = ()
    left: int = 0
    note: str = ""
    duration_s: float = 0.0


def joined(reports: Sequence[SyncReport]) -> SyncReport:
    """One report of several: lists one after the other, numbers added, notes joined."""
    total = reports[0]
    for report in reports[1:]:
        sums = {
            field.name: getattr(total, field.name) + getattr(report, field.name)
            for field in fields(SyncReport)
            if field.name != "note"
        }
        notes = dict.fromkeys(filter(None, (total.note, report.note)))
        total = SyncReport(**sums, note="; ".join(notes))
    return total


@dataclass(frozen=True, slots=True)
class Seen:
    """What the last synchronisation of words saw and did: the start of the next.

    Attributes:
        catalog: what it was applied to.
        look: the folder just before.
        words: number of the catalog's last change of words after it; another process may have gone on since.
        generation: number of its last commit after it, likewise.
        report: what it did.
    """

    catalog: Catalog
    look: Look
    words: int
    generation: int
    report: SyncReport


@dataclass(slots=True)
class _Batch:
    """What reading some files brought: new texts, known texts with new paths or times, and failures."""

    records: list[Record] = field(default_factory=list)
    moves: list[Record] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def apply_words(
    catalog: Catalog,
    scan: Scan,
    *,
    max_bytes: int,
    full: bool = False,
    limit: int | None = None,
    on_progress: Progress | None = None,
) -> SyncReport:
    """Brings topics and postings up to date with the folder; one commit a batch of files.

    Args:
        catalog: what to bring up to date.
        scan: what lies in the folder.
        max_bytes: larger files are reported, not indexed.
        full: read every file, also those that look untouched.
        limit: when more files of usual size than that are to be read, nothing is done; None for any number.
        on_progress: told after every batch.

    Raises:
        OSError: the cache folder is full or cannot be written; what was committed before stays.
    """
    known = catalog.known()
    todo = plan(known, scan.files, full=full)
    if _beyond(todo, limit):
        return SyncReport(kept=todo.kept, left=len(todo.read))
    report = _apply(catalog, todo, known, scope=scan.scope, max_bytes=max_bytes, on_progress=on_progress)
    present = {file.path for file in scan.files}
    drop_gone(catalog, report.removed, [path for path in catalog.unread() if path not in present])
    tidy_segments(catalog, alive=_topics_after(report))
    skipped = tuple((skip.path, _why(skip)) for skip in scan.skipped)
    return replace(report, skipped=skipped, warnings=tuple(_flat(catalog.warnings())))


def apply_difference(
    catalog: Catalog,
    changes: Difference,
    *,
    scope: Scope,
    max_bytes: int,
    before: SyncReport,
    limit: int | None = None,
) -> SyncReport:
    """The same for a few files, at a cost that does not depend on how many others there are.

    Args:
        catalog: what to bring up to date; as it was after the look that the difference starts from.
        changes: what is different since.
        scope: whose memory it is.
        max_bytes: larger files are reported, not indexed.
        before: report of the synchronisation after that look.
        limit: as for `apply_words`.

    Raises:
        OSError: the cache folder is full or cannot be written.
    """
    paths = [*(file.path for file in changes.read), *changes.gone]
    known = catalog.known(paths)
    # To count a hundred thousand rows would take longer than to read one file.
    read, total = plan(known, changes.read), _topics_after(before)
    todo = replace(
        read, kept=total - len(known) + read.kept, gone=tuple(path for path in changes.gone if path in known)
    )
    if _beyond(todo, limit):
        return SyncReport(kept=todo.kept, left=len(todo.read))
    report = _apply(catalog, todo, known, scope=scope, max_bytes=max_bytes)
    if changes:
        drop_gone(catalog, report.removed, changes.gone)
        tidy_segments(catalog, alive=_topics_after(report))
    return replace(
        report,
        skipped=before.skipped,
        failed=tuple(catalog.unread().items()),  # also those that failed before and are as they were
        warnings=tuple(_flat(catalog.warnings())),
        note=before.note,
    )


def _topics_after(report: SyncReport) -> int:
    """How many topics there were after it."""
    return report.kept + len(report.added) + len(report.changed) + len(report.moved)


def _beyond(todo: SyncPlan, limit: int | None) -> bool:
    """Whether to read all this takes longer than to read so many files of usual size."""
    if limit is None:
        return False
    return len(todo.read) > limit or sum(file.size for file in todo.read) > limit * _TYPICAL_BYTES


def _batches(files: Sequence[SourceFile]) -> Iterator[Sequence[SourceFile]]:
    if files:
        yield files[:_FIRST_FILES]
    for at in range(_FIRST_FILES, len(files), _BATCH_FILES):
        yield files[at : at + _BATCH_FILES]


def _apply(
    catalog: Catalog,
    todo: SyncPlan,
    known: Mapping[str, Known],
    *,
    scope: Scope,
    max_bytes: int,
    on_progress: Progress | None = None,
) -> SyncReport:
    """Reads and commits what is to be read; what is gone is only named."""
    gone: dict[bytes, list[str]] = {}
    for path in todo.gone:
        gone.setdefault(known[path].digest, []).append(path)
    report, done = SyncReport(kept=todo.kept), 0
    for part in _batches(todo.read):
        batch = _read_files(
            part, known, gone, next_doc=int(catalog.meta()["next_doc"]), scope=scope, max_bytes=max_bytes
        )
        _commit_words(catalog, batch)
        report = _reported(report, batch, known)
        done += len(part)
        if on_progress:
            on_progress("words", done, len(todo.read))
    return replace(report, removed=tuple(path for paths in gone.values() for path in paths))


def drop_gone(catalog: Catalog, removed: Sequence[str], stale: Sequence[str]) -> None:
    """Takes out topics whose file is gone, and problems of files that are not there or not topics any more."""
    if removed or stale:
        with catalog.transaction() as write:
            drop_paths(write, removed)
            write.executemany("DELETE FROM problems WHERE path = ?", [(path,) for path in stale])
            advance(write, words=True)


def _why(skipped: Skipped) -> str:
    return f"{skipped.reason}, {skipped.detail}" if skipped.detail else str(skipped.reason)


def _flat(warnings: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    return ((path, text) for path, texts in warnings.items() for text in texts)


def _reported(report: SyncReport, batch: _Batch, known: Mapping[str, Known]) -> SyncReport:
    fresh = [record.topic.path for record in batch.records]
    moved = tuple(record.topic.path for record in batch.moves if record.topic.path not in known)
    return replace(
        report,
        added=(*report.added, *(path for path in fresh if path not in known)),
        changed=(*report.changed, *(path for path in fresh if path in known)),
        moved=(*report.moved, *moved),
        kept=report.kept + len(batch.moves) - len(moved),
        failed=(*report.failed, *batch.failed.items()),
    )


def _read_files(
    files: Sequence[SourceFile],
    known: Mapping[str, Known],
    gone: dict[bytes, list[str]],
    *,
    next_doc: int,
    scope: Scope,
    max_bytes: int,
) -> _Batch:
    """Reads the files; takes from `gone` (paths by digest) what turns up under a new path."""
    batch = _Batch()
    for source in files:
        began_ns = time.time_ns()
        try:
            text, warnings = read_text(source.file, max_bytes=max_bytes)
            digest = file_digest(text)
            front = parse(text)
            topic = topic_of(front, path=source.path, scope=scope, mtime=source.mtime_ns / 1e9, file=source.file)
            warnings = (*warnings, *front.warnings)
        except FileNotFoundError:  # since the scan
            if source.path in known:
                gone.setdefault(known[source.path].digest, []).append(source.path)
            continue
        except (TopicError, OSError) as error:
            batch.failed[source.path] = _reason(error)
            continue
        if not is_settled(source.mtime_ns, began_ns):
            source = source._replace(size=UNSETTLED)
        before = known.get(source.path)
        if before is None and (old := _moved_from(gone.get(digest, []), source.path, topic.title)):
            gone[digest].remove(old)
            before = known[old]
        if before is not None and before.digest == digest:
            batch.moves.append(Record(before.doc, source, digest, topic, warnings))
        else:
            batch.records.append(Record(next_doc + len(batch.records), source, digest, topic, warnings))
    return batch


def _moved_from(gone: Sequence[str], new: str, title: str) -> str | None:
    """The gone path that a file with the same text was moved from.

    A title that came from the file name makes another name another text.
    """
    stem = Path(new).stem
    return next((old for old in gone if title != stem or Path(old).stem == stem), None)


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _commit_words(catalog: Catalog, batch: _Batch) -> None:
    segment = Segment.build(
        Document.of(record.doc, title=record.topic.title, description=record.topic.description, body=record.topic.body)
        for record in batch.records
    )
    name = ""
    if batch.records:
        name = uuid.uuid4().hex
        segment.write(segment_file(catalog, name))
    with catalog.transaction() as write:
        for record in batch.records:
            put_record(write, record)
        for record in batch.moves:
            move_record(write, record)
        read = [(record.topic.path,) for record in (*batch.records, *batch.moves)]
        write.executemany("DELETE FROM problems WHERE path = ?", read)
        drop_paths(write, batch.failed)
        write.executemany("INSERT OR REPLACE INTO problems VALUES (?, ?)", batch.failed.items())
        if name:
            write.execute("INSERT INTO segments VALUES (?)", (name,))
            set_meta(write, {"next_doc": str(batch.records[-1].doc + 1)})
        advance(write, words=True)


def segment_file(catalog: Catalog, name: str) -> Path:
    """Where the postings segment of that name lies."""
    return catalog.segment_file(name)


def check_segments(catalog: Catalog) -> None:
    """Reads all postings files in use.

    Raises:
        IndexFormatError: one is damaged or missing.
    """
    for (name,) in catalog.read("SELECT name FROM segments"):
        open_bundle(segment_file(catalog, name), check=True)


def worth_merging(sizes: Sequence[int], *, alive: int) -> int:
    """How many of the smallest segments should become one; 0 for none.

    A segment at least twice as large as all smaller ones together stays as it is, so that a document is rewritten a few
    times in its life however many there are. The others are merged when they are many, or large themselves, as after a
    first index.

    Args:
        sizes: documents of each segment, dead ones counted, rising.
        alive: documents that are not dead.
    """
    if sum(sizes) > 2 * alive + _BATCH_FILES:
        return len(sizes)
    below = [0, *accumulate(sizes)]
    small = max((at + 1 for at, size in enumerate(sizes) if at and size < 2 * below[at]), default=0)
    return small if len(sizes) > _MAX_SEGMENTS or below[small] >= _BATCH_FILES else 0


def tidy_segments(catalog: Catalog, *, alive: int | None = None) -> None:
    """Merges the small postings files when there are many or much in them is dead, and deletes files nobody names.

    Args:
        catalog: whose files.
        alive: how many topics it holds; counted when not known.
    """
    names = [name for (name,) in catalog.read("SELECT name FROM segments")]
    segments = sorted((Segment.open(segment_file(catalog, name)) for name in names), key=lambda part: len(part.docs))
    alive = catalog.count() if alive is None else alive
    victims = segments[: worth_merging([len(segment.docs) for segment in segments], alive=alive)]
    if victims:
        living = catalog.living(np.concatenate([segment.docs for segment in victims]).tolist())
        merged = Segment.merge([(segment, is_among(segment.docs, np.array(living, np.int64))) for segment in victims])
        fresh = uuid.uuid4().hex
        merged.write(segment_file(catalog, fresh))
        with catalog.transaction() as write:
            write.executemany("DELETE FROM segments WHERE name = ?", [(victim.name,) for victim in victims])
            write.execute("INSERT INTO segments VALUES (?)", (fresh,))
            advance(write)
        names = [*(segment.name for segment in segments if segment not in victims), fresh]
    catalog.discard(file for file in catalog.file.parent.glob("*.postings") if file.stem not in names)
