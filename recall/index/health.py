"""Looks whether the derived data of one memory root is true and whole; reads only, mends nothing (`index.mending`).

What is cheap is looked at whole: every file, chunk, vector and checksum. What is dear is looked at in a sample, another
one each time. Others may write meanwhile: the catalog is read at one commit, and what depends on files that nobody is
to write in that moment is left out when somebody does.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from recall.errors import IndexFormatError, LockedError
from recall.index import checks
from recall.index.base import Encoder, Products, Vectors
from recall.index.catalog import EMBEDDED, FORMAT, UNUSABLE
from recall.index.comparison import compare
from recall.index.findings import Counts, Finding, Health, Kind, Subject
from recall.index.folder import CATALOG_FILE, VECTORS_LOCK, WORDS_LOCK, recorded
from recall.index.inventory import Inventory, connect, read_meta, take_inventory
from recall.index.vectors import VectorFile, is_unit
from recall.store.locks import exclusive
from recall.store.projects import real_path
from recall.store.scan import Scan, scan

_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Sample:
    """How much is looked at of what is dear.

    Attributes:
        topics: whose text is compared with words, vectors and file.
        searches: stored vectors that are searched for.
        encodings: texts that the model encodes again.
        seed: makes the choice repeatable; None for another one each time.
    """

    topics: int = 500
    searches: int = 100
    encodings: int = 4
    seed: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Opened:
    """An inventory with the files that it names, as far as they can be read.

    Attributes:
        inventory: what the catalog says.
        rows: the vectors that are there, shape (n, dim).
        segments: the postings that are whole.
        damaged: what is wrong with the others.
    """

    inventory: Inventory
    rows: Vectors
    segments: Sequence[checks.OpenSegment]
    damaged: Sequence[Finding]


def examine(subject: Subject, *, encoder: Encoder | None, products: Products, sample: Sample | None = None) -> Health:
    """Looks at one root.

    Args:
        subject: which.
        encoder: the model, ready to encode; None leaves out what needs it.
        products: of rows and a vector.
        sample: how much to look at of what is dear.
    """
    sample = sample or Sample()
    found = scan(subject.root, subject.scope)
    try:
        opened = _open_steadily(subject, sample)
    except IndexFormatError as error:
        return Health((Finding(Kind.CATALOG, CATALOG_FILE, str(error)),), Counts(files=len(found.files)))
    except (LockedError, OSError) as error:
        locked = Finding(Kind.CATALOG, CATALOG_FILE, f"could not be looked at: {error}", mendable=False)
        return Health((locked,), Counts(files=len(found.files)))
    if opened is None:
        return _nothing_indexed(subject, found)
    inventory = opened.inventory
    if inventory.complaints:
        wrong = tuple(Finding(Kind.CATALOG, CATALOG_FILE, complaint) for complaint in inventory.complaints)
        return Health(wrong, Counts(files=len(found.files), topics=len(inventory.known)))
    orphans, unseen = _orphans(subject.folder)
    findings = [
        *_root(found),
        *(
            compare(inventory, found, scope=subject.scope, max_bytes=subject.max_file_bytes)
            if _is_listed(found)
            else ()
        ),
        *opened.damaged,
        *checks.postings(inventory, opened.segments),
        *checks.vector_file(inventory, opened.rows),
        *checks.chunks(inventory, opened.rows),
        *_vector_contents(opened, encoder, products, sample),
        *_coverage(inventory, encoder),
        *orphans,
    ]
    # While vectors are written, many may have just lost their texts; the writer compacts at the end.
    told = [finding for finding in findings if not (unseen and finding.kind is Kind.GHOSTS)]
    unique = tuple({(finding.kind, finding.what): finding for finding in told}.values())
    sampled = _sampled(inventory, sample, encoder)
    return Health(unique, _counts(inventory, found), (*sampled, *unseen))


def _nothing_indexed(subject: Subject, found: Scan) -> Health:
    """Nothing is there yet, or only what another release or another root left."""
    meta: dict[str, str] = {}
    with suppress(IndexFormatError):  # being made anew in this moment
        meta = read_meta(subject.folder)
    findings = _root(found)
    if meta:
        said = f"of format {meta.get('format')} for {meta.get('root')}; the next use makes it anew"
        findings.append(Finding(Kind.CATALOG, CATALOG_FILE, said, harmless=True))
    findings += [
        Finding(Kind.UNINDEXED, file.path, "not indexed yet; the next look reads it", harmless=True)
        for file in found.files
    ]
    return Health(tuple(findings), Counts(files=len(found.files)))


def _open_steadily(subject: Subject, sample: Sample) -> _Opened | None:
    """The inventory with its files; None when there is none of this format and root.

    Raises:
        IndexFormatError: the catalog cannot be read.
        LockedError: another process keeps throwing it away.
    """
    identity = {"format": str(FORMAT), "root": recorded(real_path(subject.root))}
    opened = None
    for _ in range(_TRIES):
        before = _marks(subject.folder)
        inventory = take_inventory(subject.folder, identity, sampled=sample.topics, seed=sample.seed)
        if inventory is None:
            return None
        opened = _open(inventory)
        # Compaction, merging and a rebuild delete files that were to be opened.
        is_whole = not opened.damaged and len(opened.rows) >= _stated(inventory)
        if is_whole or _marks(subject.folder) == before:
            break
    return opened


def _marks(folder: Path) -> tuple[object, ...]:
    """Changes whenever somebody writes to the catalog or exchanges it."""
    try:
        return (folder / CATALOG_FILE).stat().st_ino, read_meta(folder).get("generation")
    except (OSError, IndexFormatError):
        return ()


def _stated(inventory: Inventory) -> int:
    return 0 if inventory.complaints else int(inventory.meta["rows"])


def _open(inventory: Inventory) -> _Opened:
    segments, damaged = [], []
    if inventory.complaints:
        return _Opened(inventory, np.zeros((0, 0), np.float32), (), ())
    for name in inventory.segments:
        file = inventory.folder / f"{name}.postings"
        try:
            segments.append(checks.OpenSegment.read(file))
        except (IndexFormatError, ValueError, IndexError) as error:
            damaged.append(Finding(Kind.POSTINGS, file.name, str(error)))
    vectors = VectorFile(inventory.folder / inventory.meta["vectors"], int(inventory.meta["dim"]))
    return _Opened(inventory, vectors.view(_stated(inventory)), segments, damaged)


def _root(found: Scan) -> list[Finding]:
    if _is_listed(found):
        return []
    return [Finding(Kind.ROOT, str(found.root_problem), "there is no memory to look at", mendable=False, harmless=True)]


def _is_listed(found: Scan) -> bool:
    return not found.root_problem


def _vector_contents(opened: _Opened, encoder: Encoder | None, products: Products, sample: Sample) -> Iterator[Finding]:
    inventory, rows = opened.inventory, opened.rows
    wanted = [row for row in _chosen(inventory.used, sample) if 0 <= row < len(rows)]
    sound = [row for row in wanted if is_unit(rows[row][None]).all()]
    yield from checks.self_search(inventory, rows, sound, products)
    if encoder is not None and inventory.meta["encoder"] == encoder.fingerprint:
        yield from checks.texts_of_vectors(inventory, encoder.chunk_tokens)
        yield from checks.same_model(inventory, rows, encoder, sample.encodings)


def _chosen(used: NDArray[np.int64], sample: Sample) -> list[int]:
    chance = np.random.default_rng(sample.seed)
    size = min(sample.searches, len(used))
    return sorted(chance.choice(used, size, replace=False).tolist()) if size else []


def _coverage(inventory: Inventory, encoder: Encoder | None) -> Iterator[Finding]:
    """What has no vectors, and whose vectors they are."""
    topics, states = len(inventory.known), list(inventory.states.values())
    made_by = inventory.meta["encoder"]
    if encoder is None:
        return
    if made_by not in ("", encoder.fingerprint):
        said = f"vectors are of {made_by}; the next look makes them anew with {encoder.fingerprint}"
        yield Finding(Kind.MODEL, encoder.name, said, harmless=True)
    if pending := states.count(0):
        said = f"{topics - pending} of {topics} topics embedded; the next look goes on, words find the others meanwhile"
        yield Finding(Kind.PENDING, inventory.meta["vectors"] or CATALOG_FILE, said, harmless=True)
    if unusable := states.count(UNUSABLE):
        said = f"{inventory.embedded} of {topics} topics embedded; {unusable} got no usable vector from {encoder.name}"
        yield Finding(
            Kind.UNUSABLE, encoder.name, said, mendable=False, harmless=bool(states.count(EMBEDDED) or pending)
        )


def _counts(inventory: Inventory, found: Scan) -> Counts:
    stated = int(inventory.meta["rows"])
    return Counts(
        files=len(found.files),
        topics=len(inventory.known),
        embedded=inventory.embedded,
        chunks=len(inventory.chunks),
        vectors=stated,
        unused=max(0, stated - len(inventory.used)),
        segments=len(inventory.segments),
    )


def _sampled(inventory: Inventory, sample: Sample, encoder: Encoder | None) -> list[str]:
    topics, used = len(inventory.known), len(inventory.used)
    said = []
    if len(inventory.sample) < topics:
        said.append(f"texts of {len(inventory.sample):,} of {topics:,} topics were compared with words and vectors")
    if sample.searches < used:
        said.append(f"{sample.searches:,} of {used:,} vectors were searched for")
    if encoder is None:
        said.append("without a model no vector was compared with its text")
    elif inventory.meta["encoder"] == encoder.fingerprint and inventory.embedded > sample.encodings:
        said.append(f"{sample.encodings} of {inventory.embedded:,} topics were encoded again")
    return said


def _orphans(folder: Path) -> tuple[list[Finding], list[str]]:
    """Files that nobody names, and what could not be looked at."""
    findings: list[Finding] = []
    unseen: list[str] = []
    look: Sequence[tuple[str, str, Callable[[], set[str]]]] = (
        ("postings", WORDS_LOCK, lambda: _segment_names(folder)),
        ("vectors", VECTORS_LOCK, lambda: {read_meta(folder).get("vectors", "")}),
    )
    for suffix, lock, named in look:
        try:
            with exclusive(folder / lock, timeout_s=0):  # a writer has its new files named only when it commits
                orphans = {file.name for file in folder.glob(f"*.{suffix}")} - named()
        except (LockedError, IndexFormatError, OSError, sqlite3.Error):
            unseen.append(f"another process is writing: unnamed files of {suffix} were not looked for")
            continue
        findings += [
            Finding(Kind.ORPHAN, name, "no longer needed by anybody; it only takes up space", harmless=True)
            for name in sorted(orphans)
        ]
    return findings, unseen


def _segment_names(folder: Path) -> set[str]:
    with closing(connect(folder)) as connection:
        return {f"{name}.postings" for (name,) in connection.execute("SELECT name FROM segments")}
