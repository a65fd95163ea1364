"""Gives topics their vectors: cuts them into chunks, asks the model for what is new, commits in small steps.

Vectors are kept by the hash of the text they were made from, so that a renamed, moved or restored topic costs nothing.
"""

import sqlite3
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Final

import numpy as np

from recall.index.base import Encoder, Vectors, usable
from recall.index.catalog import Catalog, Pending, advance, set_meta
from recall.index.neighbours import Neighbours
from recall.index.sync import Progress, SyncReport
from recall.index.vectors import VectorFile
from recall.text.chunks import chunk_topic

_BATCH_CHUNKS: Final = 32
_SPARE_ROWS: Final = 4096
_WORTH_ASKING: Final = 8


def apply_vectors(
    catalog: Catalog,
    encoder: Encoder,
    *,
    neighbours: Sequence[Path] = (),
    limit: int | None = None,
    stop: threading.Event | None = None,
    on_progress: Progress | None = None,
) -> SyncReport:
    """Gives topics their vectors, newest first, in small committed steps.

    Args:
        catalog: what to complete.
        encoder: the model; another one than last time makes all vectors anew.
        neighbours: folders of derived data of other roots, which may have some of the vectors.
        limit: topics at most; None for all that are pending.
        stop: set it to stop after the present step.
        on_progress: told after every step.

    Raises:
        EncoderError: the model does not work; nothing is lost.
        OSError: the cache folder is full or cannot be written; what was committed before stays.
    """
    if catalog.meta()["encoder"] != encoder.fingerprint:
        catalog.switch_encoder(encoder.fingerprint, dim=encoder.dim, vectors=f"{uuid.uuid4().hex}.vectors")
        _delete_old_vectors(catalog)
    ((total,),) = catalog.read("SELECT COUNT(*) FROM topics WHERE embedded = 0")
    total = min(total, limit) if limit is not None else total
    # A few changed files are encoded faster than other catalogs are opened.
    others = Neighbours(neighbours if total >= _WORTH_ASKING else (), encoder.fingerprint, encoder.dim)
    report, done = SyncReport(), 0
    while done < total and not (stop and stop.is_set()):
        step = _take(catalog.pending(min(_BATCH_CHUNKS, total - done)), encoder.chunk_tokens)
        if not step:
            break
        report = _commit_vectors(catalog, partial(_vectors_of, encoder, others), step, report)
        done += len(step)
        if on_progress:
            on_progress("vectors", done, total)
    compact_vectors(catalog)
    return report


def compact_vectors(catalog: Catalog) -> None:
    """Copies the vectors in use to a new file when most rows are of texts that are gone."""
    meta = catalog.meta()
    used = [row for (row,) in catalog.read("SELECT DISTINCT vector FROM chunks ORDER BY vector")]
    if int(meta["rows"]) <= 2 * len(used) + _SPARE_ROWS:
        return
    rows = stored_vectors(catalog, meta)
    name = f"{uuid.uuid4().hex}.vectors"
    VectorFile(catalog.file.parent / name, int(meta["dim"])).append(rows[used], at=0)
    with catalog.transaction() as write:
        write.execute("CREATE TEMP TABLE moved (old INTEGER PRIMARY KEY, new INTEGER NOT NULL)")
        write.executemany("INSERT INTO moved VALUES (?, ?)", [(old, new) for new, old in enumerate(used)])
        write.execute("CREATE TEMP TABLE kept AS SELECT new, digest FROM vectors JOIN moved ON row = old")
        write.execute("DELETE FROM vectors")
        write.execute("INSERT INTO vectors SELECT new, digest FROM kept")
        write.execute("UPDATE chunks SET vector = (SELECT new FROM moved WHERE old = vector)")
        write.execute("DROP TABLE moved")
        write.execute("DROP TABLE kept")
        set_meta(write, {"vectors": name, "rows": str(len(used))})
        advance(write)
    _delete_old_vectors(catalog)


def _take(pending: Sequence[Pending], budget: int) -> list[tuple[Pending, list[str]]]:
    """The first topics with their chunks, about one batch of chunks, at least one topic."""
    step: list[tuple[Pending, list[str]]] = []
    size = 0
    for topic in pending:
        texts = [chunk.text for chunk in chunk_topic(topic.title, topic.description, topic.body, budget=budget)]
        if step and size + len(texts) > _BATCH_CHUNKS:
            break
        step.append((topic, texts))
        size += len(texts)
    return step


def _vectors_of(encoder: Encoder, others: Neighbours, texts: Mapping[str, bytes]) -> tuple[Vectors, int]:
    """One row a text, and how many of them the model was asked for."""
    adopted = others.find(list(texts.values()))
    missing = [text for text, digest in texts.items() if digest not in adopted]
    made = iter(encoder.encode_documents(missing))
    rows = np.zeros((len(texts), encoder.dim), np.float32)
    for row, digest in zip(rows, texts.values(), strict=True):
        row[:] = adopted[digest] if digest in adopted else next(made)
    return rows, len(missing)


def _commit_vectors(
    catalog: Catalog,
    vectors_of: Callable[[Mapping[str, bytes]], tuple[Vectors, int]],
    step: Sequence[tuple[Pending, list[str]]],
    report: SyncReport,
) -> SyncReport:
    texts = dict.fromkeys(text for _, chunks in step for text in chunks)
    digests = {text: blake2b(text.encode("utf-8", "replace"), digest_size=16).digest() for text in texts}
    rows = catalog.rows_of(digests.values())
    fresh = {text: digest for text, digest in digests.items() if digest not in rows}
    vectors, encoded = vectors_of(fresh)
    good = usable(vectors)
    first = int(catalog.meta()["rows"])
    stored = [digest for digest, fine in zip(fresh.values(), good, strict=True) if fine]
    if stored:
        _vector_file(catalog).append(vectors[good], at=first)
    numbered = {digest: first + number for number, digest in enumerate(stored)}
    rows.update(numbered)
    unembedded = [
        (topic.path, "the model gave no usable vector for it; found by its words only")
        for topic, chunks in step
        if any(digests[text] not in rows for text in chunks)
    ]
    with catalog.transaction() as write:
        write.executemany("INSERT INTO vectors VALUES (?, ?)", [(row, digest) for digest, row in numbered.items()])
        set_meta(write, {"rows": str(first + len(stored))})
        for topic, chunks in step:
            placed = ((topic.doc, number, rows.get(digests[text])) for number, text in enumerate(chunks))
            _put_chunks(write, topic, [(doc, number, row) for doc, number, row in placed if row is not None])
        write.executemany("INSERT OR REPLACE INTO problems VALUES (?, ?)", unembedded)
        advance(write)
    return replace(
        report,
        embedded=report.embedded + encoded,
        reused=report.reused + len(digests) - encoded,
        unembedded=(*report.unembedded, *unembedded),
    )


def _put_chunks(write: sqlite3.Connection, topic: Pending, chunks: Sequence[tuple[int, int, int]]) -> None:
    """Notes a topic's vectors, unless the topic changed while they were made."""
    done = write.execute("UPDATE topics SET embedded = 1 WHERE doc = ?", (topic.doc,))
    if done.rowcount:
        write.executemany("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?)", chunks)


def _vector_file(catalog: Catalog) -> VectorFile:
    meta = catalog.meta()
    return VectorFile(catalog.file.parent / meta["vectors"], int(meta["dim"]))


def _delete_old_vectors(catalog: Catalog) -> None:
    """Removes vector files that the catalog does not name; who has one mapped keeps reading it."""
    current = catalog.meta()["vectors"]
    for file in catalog.file.parent.glob("*.vectors"):
        if file.name != current:
            file.unlink(missing_ok=True)


def stored_vectors(catalog: Catalog, meta: Mapping[str, str]) -> Vectors:
    """The committed rows, mapped, shape (rows, dim)."""
    return VectorFile(catalog.file.parent / meta["vectors"], int(meta["dim"])).view(int(meta["rows"]))
