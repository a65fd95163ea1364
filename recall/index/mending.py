"""Mends derived data by the findings of a check: small committed steps, each of which leaves an index that works.

Nothing here reads or writes a memory file, or asks a model. A step takes out what is wrong and marks what is missing;
the usual synchronisation then reads the files and makes the vectors. A process that dies in between leaves just that
to the next one.
"""

import uuid
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from recall.index.catalog import NEXT, REMEMBERED, Catalog, advance
from recall.index.embed import compact_vectors, delete_old_vectors, keep_vectors, stored_vectors
from recall.index.findings import Finding, Kind
from recall.index.postings import Document, Segment
from recall.index.sets import distinct, without
from recall.index.sync import segment_file, tidy_segments
from recall.index.vectors import is_unit

_BATCH_TOPICS = 2000
_BLOCK = 4096
_OF_A_TOPIC = frozenset({Kind.INCOMPLETE, Kind.MISPLACED, Kind.VECTOR})
_OF_THE_FILE = frozenset({Kind.VECTOR, Kind.VECTOR_FILE, Kind.DIGEST, Kind.LOST})


def mend_words(catalog: Catalog, findings: Sequence[Finding]) -> tuple[str, ...]:
    """Mends topics and postings; the caller holds the lock of the words.

    Args:
        catalog: whose data.
        findings: what was found; those of other parts are left.

    Returns:
        What was done, a sentence each.

    Raises:
        OSError: the cache folder is full.
    """
    done = []
    if stale := _paths([finding for finding in findings if not finding.harmless], {Kind.STALE}):
        forget_texts(catalog, stale)
        done.append(f"{_many(len(stale), 'topic')} marked to be read again")
    if any(finding.kind in {Kind.GONE, Kind.UNINDEXED} for finding in findings):
        # Whoever remembers the folder from an earlier look sees no difference until readers are renewed.
        done.append("the whole folder is to be looked at again")
    if any(finding.kind is Kind.POSTINGS for finding in findings):
        renew_postings(catalog)
        done.append("the postings were made anew from the stored topics")
    if orphans := _paths(findings, {Kind.ORPHAN}, ending=".postings"):
        tidy_segments(catalog)
        done.append(f"{_many(len(orphans), 'unnamed file')} of postings deleted")
    return tuple(done)


def mend_vectors(catalog: Catalog, findings: Sequence[Finding]) -> tuple[str, ...]:
    """Mends chunks and vectors; the caller holds the lock of the vectors.

    Args:
        catalog: whose data.
        findings: what was found; those of other parts are left.

    Returns:
        What was done, a sentence each.

    Raises:
        OSError: the cache folder is full.
    """
    kinds = {finding.kind for finding in findings if finding.mendable and not finding.harmless}
    done = []
    if Kind.MODEL in kinds:
        meta = catalog.meta()
        catalog.switch_encoder(meta["encoder"], dim=int(meta["dim"]), vectors=f"{uuid.uuid4().hex}.vectors")
        done.append("all vectors were thrown away, since the model makes others")
    if Kind.STRAY in kinds:
        drop_stray_chunks(catalog)
        done.append("chunks of topics that are gone were taken out")
    if topics := _paths(findings, _OF_A_TOPIC):
        requeue(catalog, topics)
        done.append(f"{_many(len(topics), 'topic')} marked to get vectors again")
    if kinds & _OF_THE_FILE:
        keep_sound_vectors(catalog)
        done.append("the vectors that are sound were copied to a new file")
    if Kind.GHOSTS in kinds:
        compact_vectors(catalog, now=True)
        done.append("the vectors that are in use were copied to a new file")
    if orphans := _paths(findings, {Kind.ORPHAN}, ending=".vectors"):
        done.append(f"{_many(len(orphans), 'unnamed file')} of vectors deleted")
    delete_old_vectors(catalog)
    return tuple(done)


def _paths(findings: Sequence[Finding], kinds: Collection[Kind], *, ending: str = "") -> list[str]:
    return [finding.what for finding in findings if finding.kind in kinds and finding.what.endswith(ending)]


def forget_texts(catalog: Catalog, paths: Sequence[str]) -> None:
    """Has the files read again as if they had changed; until then their topics stay as they are."""
    with catalog.transaction() as write:
        write.executemany("UPDATE topics SET size = -1, digest = x'' WHERE path = ?", [(path,) for path in paths])
        advance(write, words=True)


def renew_postings(catalog: Catalog) -> None:
    """Makes the postings of all topics anew from what is stored of them, and deletes the old files."""
    with catalog.reading() as read:
        docs = [doc for (doc,) in read("SELECT doc FROM topics ORDER BY doc")]
        old = read("SELECT name FROM segments")
    names = []
    for at in range(0, len(docs), _BATCH_TOPICS):
        part = docs[at], docs[min(at + _BATCH_TOPICS, len(docs)) - 1]
        rows = catalog.read("SELECT doc, title, description, body FROM topics WHERE doc BETWEEN ? AND ?", part)
        segment = Segment.build(
            Document.of(doc, title=title, description=description, body=body) for doc, title, description, body in rows
        )
        names.append(uuid.uuid4().hex)
        segment.write(segment_file(catalog, names[-1]))
    with catalog.transaction() as write:
        write.executemany("DELETE FROM segments WHERE name = ?", old)
        write.executemany("INSERT INTO segments VALUES (?)", [(name,) for name in names])
        advance(write, words=True)
    tidy_segments(catalog)


def drop_stray_chunks(catalog: Catalog) -> None:
    """Takes out chunks whose topic is gone."""
    with catalog.transaction() as write:
        write.execute("DELETE FROM chunks WHERE doc NOT IN (SELECT doc FROM topics)")
        advance(write)


def requeue(catalog: Catalog, paths: Sequence[str]) -> None:
    """Takes the topics' chunks out and notes that they are to get vectors; those that are stored serve again."""
    with catalog.transaction() as write:
        for path in paths:
            write.execute("DELETE FROM chunks WHERE doc IN (SELECT doc FROM topics WHERE path = ?)", (path,))
            write.execute(f"UPDATE topics SET embedded = 0, changed = {NEXT} WHERE path = ?", (path,))  # noqa: S608 - a constant
        advance(write)


def keep_sound_vectors(catalog: Catalog) -> None:
    """Leaves nothing but sound vectors; topics that lose one are to get it again."""
    rows = stored_vectors(catalog, catalog.meta())
    used = _rows(catalog, "SELECT DISTINCT vector FROM chunks ORDER BY vector")
    wanted = distinct(np.concatenate((used, _rows(catalog, "SELECT row FROM vectors"))))
    there = wanted[(wanted >= 0) & (wanted < len(rows))]
    parts = [is_unit(rows[there[at : at + _BLOCK]]) for at in range(0, len(there), _BLOCK)]
    sound = there[np.concatenate(parts)] if parts else there
    owners = "SELECT path FROM topics JOIN chunks ON chunks.doc = topics.doc WHERE vector = ?"
    lost = without(used, sound).tolist()
    requeue(catalog, [path for row in lost for (path,) in catalog.read(owners, (row,))])
    drop_stray_chunks(catalog)
    keep_vectors(catalog, sound.tolist())


def _rows(catalog: Catalog, statement: str) -> NDArray[np.int64]:
    return np.asarray([row for (row,) in catalog.read(statement)], np.int64)


def renew_readers(catalog: Catalog) -> None:
    """Has every process look at the whole folder and take all topics and chunks anew.

    What went wrong behind their backs left no note by which they would see it.
    """
    with catalog.transaction() as write:
        write.execute("UPDATE meta SET value = value + ? WHERE key = 'generation'", (REMEMBERED,))
        advance(write, words=True)


def _many(number: int, one: str) -> str:
    return f"{number:,} {one if number == 1 else one + 's'}"
