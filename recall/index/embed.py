"""Gives topics their vectors: cuts them into chunks, asks the model for what is new, commits in small steps.

Vectors are kept by the hash of the text they were made from, so that a renamed, moved or restored topic costs nothing.
"""

import logging
import sqlite3
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import takewhile
from pathlib import Path
from typing import Final

import numpy as np

from recall.errors import EncoderError, IndexFormatError
from recall.index.base import Encoder, Vector, Vectors, check_vectors, usable
from recall.index.catalog import EMBEDDED, NEXT, NO_VECTOR, UNUSABLE, Catalog, Pending, advance, set_meta
from recall.index.neighbours import Neighbours
from recall.index.shelf import clear, settle, shelve, shelved
from recall.index.sync import Progress, SyncReport
from recall.index.vectors import VectorFile, is_unit
from recall.text.chunks import chunk_topic

logger = logging.getLogger(__name__)

_STEP_CHUNKS: Final = 32
_SPARE_ROWS: Final = 4096
_WORTH_ASKING: Final = 8
_FOUND_FOR_ONE_MADE: Final = 32  # vectors that are found and copied in the time that the model takes for one
_LONG_BODY: Final = 20_000
_CHUNK_CHARS: Final = 1500  # of a body; a chunk may hold a few more
# More than any chunk has of any text that says something.
_MOST_CHUNK_CHARS: Final = 4000


@dataclass(frozen=True, slots=True)
class Effort:
    """How much one run may do, and how.

    Attributes:
        limit: chunks at most, those whose vectors are found somewhere hardly counted; a topic that would go beyond is
            left, with those after it. None for all.
        stop: set it to stop after the present text; what was made stays.
        workers: texts that the model is asked for at once; more than one only if it bears that.
    """

    limit: int | None = None
    stop: threading.Event | None = None
    workers: int = 1


class _Stopped(Exception):  # noqa: N818 - a wish of the caller, not a mistake
    """Raised between two texts when the caller wants an end."""


@dataclass(slots=True)
class _Source:
    """Where vectors come from: other roots first, then the model, one text after the other.

    Attributes:
        encoder: the model.
        others: catalogs of other roots.
        effort: when to end, and how many texts at once.
        asked: texts that the model was asked for.
    """

    encoder: Encoder
    others: Neighbours
    effort: Effort
    asked: int = 0

    def rows(self, texts: Mapping[str, bytes]) -> Vectors:
        """One row a text, shape (n, dim).

        Raises:
            EncoderError: the model does not work.
        """
        adopted = self.others.find(list(texts.values()))
        made = self._ask_all([text for text, digest in texts.items() if digest not in adopted])
        return np.stack([adopted[digest] if digest in adopted else made[text] for text, digest in texts.items()])

    def _ask_all(self, texts: Sequence[str]) -> dict[str, Vector]:
        """The model's vector of each text; what there is does not depend on how many are made at once."""
        if self.effort.workers > 1 and len(texts) > 1:
            # One text each, by the same session: a batch would give other vectors (index.onnx).
            with ThreadPoolExecutor(self.effort.workers, thread_name_prefix="recall-encode") as pool:
                made = list(pool.map(self._ask, texts))
        else:
            made = [self._ask(text) for text in texts]
        self.asked += len(made)
        return dict(zip(texts, made, strict=True))

    def _ask(self, text: str) -> Vector:
        if self.effort.stop and self.effort.stop.is_set():
            raise _Stopped
        try:
            vector: Vector = check_vectors(self.encoder.encode_documents([text]), rows=1, dim=self.encoder.dim)[0]
        except Exception as error:  # an encoder of the host's may raise anything
            self._blame_text(error)
            return np.zeros(self.encoder.dim, np.float32)
        return vector

    def _blame_text(self, error: Exception) -> None:
        """Goes on when the model can still encode another text: one bad text must not keep vectors from all."""
        try:
            self.encoder.encode_query("warm-up")
        except EncoderError:
            raise
        except Exception:
            raise EncoderError(f"{self.encoder.name} does not work: {error}") from error
        logger.warning("%s cannot encode a text: %s", self.encoder.name, error)


def apply_vectors(
    catalog: Catalog,
    encoder: Encoder,
    *,
    neighbours: Callable[[], Sequence[Path]] = tuple,
    effort: Effort = Effort(),
    on_progress: Progress | None = None,
) -> SyncReport:
    """Gives topics their vectors, newest first, in small committed steps.

    Args:
        catalog: what to complete.
        encoder: the model; another one than last time makes all vectors anew.
        neighbours: gives folders of derived data of other roots, which may have some of the vectors.
        effort: how much of it, and how.
        on_progress: told after every step.

    Raises:
        EncoderError: the model does not work; nothing is lost.
        OSError: the cache folder is full or cannot be written; what was committed before stays.
        IndexFormatError: the vectors are damaged.
    """
    report = _switched(catalog, encoder)
    ((total,),) = catalog.read("SELECT COUNT(*) FROM topics WHERE embedded = 0")
    kept = shelved(catalog, encoder.fingerprint)
    # A few changed files are encoded faster than other catalogs are opened.
    others = [*kept, *neighbours()] if total >= _WORTH_ASKING else kept
    source = _Source(encoder, Neighbours(others, encoder.fingerprint, encoder.dim), effort)
    done = chunks = spent = 0
    while step := _take(_next(catalog, effort.limit), encoder.chunk_tokens, _room(effort.limit, spent)):
        size = sum(len(texts) for _, texts in step)
        if effort.limit is not None and spent + size > effort.limit:
            break
        try:
            report = _commit_step(catalog, source, step, report)
        except _Stopped:
            break
        done, chunks = done + len(step), chunks + size
        spent = source.asked + (chunks - source.asked) // _FOUND_FOR_ONE_MADE
        if on_progress:
            on_progress("vectors", done, total)
    if effort.limit is None:  # else somebody waits for an answer
        compact_vectors(catalog)
        if kept and not catalog.pending(1):
            clear(catalog, encoder.fingerprint)
    return replace(report, embedded=source.asked, reused=report.reused - source.asked)


def _switched(catalog: Catalog, encoder: Encoder) -> SyncReport:
    """Has the catalog name this model; the vectors of another one are put on the shelf."""
    meta = catalog.meta()
    before, vectors = meta["encoder"], meta["vectors"]
    if before == encoder.fingerprint:
        return SyncReport()
    try:
        place = shelve(catalog)
    except OSError as error:  # the disk is full: they are made anew when they are wanted
        logger.info("vectors of %s are not kept: %s", before, error)
        place = None
    catalog.switch_encoder(encoder.fingerprint, dim=encoder.dim, vectors=f"{uuid.uuid4().hex}.vectors")
    if place:
        settle(catalog, vectors, place)
    delete_old_vectors(catalog)
    return SyncReport(note=f"vectors of {before} give way to those of {encoder.fingerprint}" if before else "")


def count_lacking(catalog: Catalog, fingerprint: str, most: int) -> int:
    """About how many chunks have no vectors of that model, counted up to `most` topics."""
    which = "" if catalog.meta()["encoder"] != fingerprint else "WHERE embedded = 0"
    bodies = f"SELECT body FROM topics {which} LIMIT ?"  # noqa: S608 - constants only
    ((chunks,),) = catalog.read(f"SELECT TOTAL(1 + LENGTH(body) / {_CHUNK_CHARS}) FROM ({bodies})", (most,))  # noqa: S608 - same
    return int(chunks)


def compact_vectors(catalog: Catalog, *, now: bool = False) -> None:
    """Copies the vectors in use to a new file when most rows are of texts that are gone.

    To know which are takes a look at all chunks, so that it is done when many rows have come since the last time, or
    `now`.
    """
    meta = catalog.meta()
    rows, looked = int(meta["rows"]), int(meta.get("looked", "0"))
    if not now and 0 <= rows - looked < _SPARE_ROWS // 4:
        return
    with catalog.transaction() as write:
        set_meta(write, {"looked": str(rows)})
    used = [row for (row,) in catalog.read("SELECT DISTINCT vector FROM chunks ORDER BY vector")]
    if is_wasteful(rows, len(used)):
        keep_vectors(catalog, used)


def is_wasteful(rows: int, used: int) -> bool:
    """Whether so many of the rows are unused that copying the others is worth it."""
    return rows > 2 * used + _SPARE_ROWS


def keep_vectors(catalog: Catalog, used: Sequence[int]) -> None:
    """Copies these rows to a new file, which takes the place of the old one; the others are gone.

    Args:
        catalog: whose vectors.
        used: rows that are there, rising; all that chunks use.
    """
    meta = catalog.meta()
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
    delete_old_vectors(catalog)


def check_stored_vectors(catalog: Catalog) -> None:
    """Reads all vectors in use, and deletes what the last process may not have come to delete.

    Raises:
        IndexFormatError: some are damaged or missing.
    """
    meta = catalog.meta()
    rows = stored_vectors(catalog, meta)
    used = np.asarray([row for (row,) in catalog.read("SELECT DISTINCT vector FROM chunks ORDER BY vector")], np.int64)
    whole = not len(used) or int(used[-1]) < len(rows)
    if not whole or not all(
        is_unit(rows[used[at : at + _SPARE_ROWS]]).all() for at in range(0, len(used), _SPARE_ROWS)
    ):
        raise IndexFormatError(f"{catalog.file.parent / meta['vectors']}: damaged")
    delete_old_vectors(catalog)


def _room(limit: int | None, taken: int) -> int:
    return _STEP_CHUNKS if limit is None else min(_STEP_CHUNKS, limit - taken)


def _next(catalog: Catalog, limit: int | None) -> list[Pending]:
    """Topics without vectors in the order in which they get them, up to one that is far too long for the limit.

    To cut a text of megabytes only to see that it has too many chunks would take longer than the limit is to allow.
    """
    pending = _short_first(catalog.pending(_STEP_CHUNKS))
    if limit is None:
        return pending
    return list(takewhile(lambda topic: len(topic.body) <= limit * _MOST_CHUNK_CHARS, pending))


def _short_first(pending: Sequence[Pending]) -> list[Pending]:
    """Topics that take long come after the others: one of them must not keep all the rest waiting."""
    return sorted(pending, key=lambda topic: len(topic.body) > _LONG_BODY)


def _take(pending: Sequence[Pending], budget: int, room: int) -> list[tuple[Pending, list[str]]]:
    """The first topics with their chunks, `room` chunks at most, but one topic at least; none when none is pending."""
    step: list[tuple[Pending, list[str]]] = []
    size = 0
    for topic in pending:
        texts = [chunk.text for chunk in chunk_topic(topic.title, topic.description, topic.body, budget=budget)]
        if step and size + len(texts) > room:
            break
        step.append((topic, texts))
        size += len(texts)
    return step


def _commit_step(
    catalog: Catalog, source: _Source, step: Sequence[tuple[Pending, list[str]]], report: SyncReport
) -> SyncReport:
    texts = dict.fromkeys(text for _, chunks in step for text in chunks)
    digests = {text: chunk_digest(text) for text in texts}
    rows = _stored_rows(catalog, source, digests)
    unembedded = []
    with catalog.transaction() as write:
        for topic, chunks in step:
            placed = [rows.get(digests[text]) for text in chunks]
            _put_chunks(write, topic.doc, placed)
            if None in placed:
                unembedded.append((topic.path, NO_VECTOR))
        advance(write)
    return replace(report, reused=report.reused + len(digests), unembedded=(*report.unembedded, *unembedded))


def _stored_rows(catalog: Catalog, source: _Source, digests: Mapping[str, bytes]) -> dict[bytes, int]:
    """The row of each text; new ones are made and committed a few at a time, those without a usable vector left out."""
    rows = catalog.rows_of(digests.values())
    fresh = [(text, digest) for text, digest in digests.items() if digest not in rows]
    for at in range(0, len(fresh), _STEP_CHUNKS):
        part = dict(fresh[at : at + _STEP_CHUNKS])
        vectors = source.rows(part)
        good = usable(vectors)
        first = int(catalog.meta()["rows"])
        stored = [digest for digest, fine in zip(part.values(), good, strict=True) if fine]
        if not stored:
            continue
        _vector_file(catalog).append(vectors[good], at=first)
        numbered = {digest: first + number for number, digest in enumerate(stored)}
        with catalog.transaction() as write:
            write.executemany("INSERT INTO vectors VALUES (?, ?)", [(row, digest) for digest, row in numbered.items()])
            set_meta(write, {"rows": str(first + len(stored))})
        rows.update(numbered)
    return rows


def chunk_digest(text: str) -> bytes:
    """Hash of a chunk's text, by which its vector is found again."""
    return blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


def _put_chunks(write: sqlite3.Connection, doc: int, rows: Sequence[int | None]) -> None:
    """Notes a topic's vectors, None where there is none, unless the topic changed while they were made."""
    state = UNUSABLE if None in rows else EMBEDDED
    update = f"UPDATE topics SET embedded = ?, changed = {NEXT} WHERE doc = ?"  # noqa: S608 - a constant
    if write.execute(update, (state, doc)).rowcount:
        chunks = [(doc, number, row) for number, row in enumerate(rows) if row is not None]
        write.executemany("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?)", chunks)


def _vector_file(catalog: Catalog) -> VectorFile:
    meta = catalog.meta()
    return VectorFile(catalog.file.parent / meta["vectors"], int(meta["dim"]))


def delete_old_vectors(catalog: Catalog) -> None:
    """Removes vector files that the catalog does not name; who has one mapped keeps reading it."""
    current = catalog.meta()["vectors"]
    catalog.discard(file for file in catalog.file.parent.glob("*.vectors") if file.name != current)


def stored_vectors(catalog: Catalog, meta: Mapping[str, str]) -> Vectors:
    """The committed rows, mapped, shape (rows, dim)."""
    return VectorFile(catalog.file.parent / meta["vectors"], int(meta["dim"])).view(int(meta["rows"]))
