"""Everything that a check needs from the catalog, as it was at one commit: read once, without changing anything.

The reader has a connection of its own that cannot write, so that a damaged catalog is looked at and not made anew.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from recall.errors import IndexFormatError
from recall.index.catalog import EMBEDDED
from recall.index.folder import CATALOG_FILE, OPEN_LOCK
from recall.index.known import Known
from recall.index.sets import distinct
from recall.store.locks import exclusive
from recall.store.topics import MemoryType

_MOST_COMPLAINTS: Final = 5
_WAIT_S: Final = 10.0

_KINDS: Final = ", ".join(f"'{kind}'" for kind in MemoryType)
# What SQLite's own check does not see: a damaged page that still is a page, with values that nobody would have written.
_ODD_TOPICS: Final = (
    "typeof(mtime_ns) != 'integer' OR typeof(size) != 'integer' "
    "OR typeof(inode) != 'integer' OR typeof(digest) != 'blob' OR embedded NOT IN (0, 1, 2) "
    f"OR NOT (type IS NULL OR type IN ({_KINDS})) "
    "OR typeof(title) != 'text' OR typeof(description) != 'text' OR typeof(body) != 'text' "
    "OR typeof(changed) != 'integer' OR typeof(modified) NOT IN ('real', 'integer') OR typeof(path) != 'text'"
)
_NUMBERS: Final = ("generation", "words", "next_doc", "rows", "dim")


@dataclass(frozen=True, slots=True)
class StoredText:
    """A topic of the sample, with its texts.

    Attributes:
        doc: its number.
        path: position below the root.
        title: as stored.
        description: as stored.
        type: as stored.
        body: as stored.
    """

    doc: int
    path: str
    title: str
    description: str
    type: str | None
    body: str


@dataclass(frozen=True, eq=False)
class Inventory:
    """The catalog at one commit.

    Attributes:
        folder: where derived data lies.
        meta: settings of the catalog.
        known: what is remembered of each topic's file, by path.
        states: whether each topic has its vectors (`catalog.EMBEDDED`, `catalog.UNUSABLE` or 0), by path.
        failed: files that could not be read.
        chunks: document, number in it, row of its vector; shape (m, 3), by document and number.
        rows: rows that have a text, shape (n,).
        digests: hash of the text of each of these rows.
        segments: names of the postings files.
        sample: some topics with their texts; all when there are few.
        complaints: what SQLite and the form of the values have to say against the file.
    """

    folder: Path
    meta: Mapping[str, str]
    known: Mapping[str, Known]
    states: Mapping[str, int]
    failed: frozenset[str]
    chunks: NDArray[np.int64]
    rows: NDArray[np.int64]
    digests: Sequence[bytes]
    segments: Sequence[str]
    sample: Sequence[StoredText]
    complaints: Sequence[str]

    @cached_property
    def paths(self) -> dict[int, str]:
        """Path of each topic, by document."""
        return {known.doc: path for path, known in self.known.items()}

    @cached_property
    def used(self) -> NDArray[np.int64]:
        """Rows that chunks use, rising, each once."""
        return distinct(self.chunks[:, 2])

    @property
    def embedded(self) -> int:
        """How many topics have all their vectors."""
        return sum(state == EMBEDDED for state in self.states.values())


def connect(folder: Path) -> sqlite3.Connection:
    """A connection to the folder's catalog that only reads.

    Raises:
        sqlite3.Error: it cannot be opened.
    """
    uri = f"{(folder / CATALOG_FILE).absolute().as_uri()}?mode=ro"
    return sqlite3.connect(uri, uri=True, timeout=_WAIT_S, isolation_level=None)


def read_meta(folder: Path) -> dict[str, str]:
    """Settings of the folder's catalog; none when it is not there or has no tables yet.

    Raises:
        IndexFormatError: it cannot be read.
    """
    if not (folder / CATALOG_FILE).is_file():
        return {}
    try:
        with closing(connect(folder)) as connection:
            return _meta(connection)
    except sqlite3.Error as error:
        raise IndexFormatError(f"{folder / CATALOG_FILE}: {error}") from error


def _meta(connection: sqlite3.Connection) -> dict[str, str]:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
        return {}
    return dict(connection.execute("SELECT key, value FROM meta"))


def take_inventory(
    folder: Path, identity: Mapping[str, str], *, sampled: int, seed: int | None = None
) -> Inventory | None:
    """What the catalog in the folder says; None when there is none of this identity.

    Args:
        folder: where derived data lies.
        identity: settings that the catalog has to have.
        sampled: most topics whose texts are read.
        seed: makes the choice of these repeatable; None for another one each time.

    Raises:
        IndexFormatError: the catalog cannot be read.
        LockedError: another process keeps making it anew.
        OSError: the folder cannot be used.
    """
    file = folder / CATALOG_FILE
    if not file.is_file():
        return None
    try:
        with closing(_begun(folder)) as connection:
            meta = _meta(connection)
            if not identity.items() <= meta.items():
                return None
            return _read(connection, folder, meta, np.random.default_rng(seed), sampled)
    except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
        raise IndexFormatError(f"{file}: {error}") from error


def _begun(folder: Path) -> sqlite3.Connection:
    """A connection that sees one commit, whatever happens to the file from now on."""
    # Nobody may open what another is about to delete; who has it open reads on in peace.
    with exclusive(folder / OPEN_LOCK, timeout_s=_WAIT_S):
        connection = connect(folder)
        try:
            connection.execute("BEGIN")
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.Error:
            connection.close()
            raise
        return connection


def _read(
    connection: sqlite3.Connection, folder: Path, meta: dict[str, str], chance: np.random.Generator, sampled: int
) -> Inventory:
    def rows(statement: str) -> list[tuple[Any, ...]]:
        return connection.execute(statement).fetchall()

    complaints = [text for (text,) in rows(f"PRAGMA integrity_check({_MOST_COMPLAINTS})") if text != "ok"]
    if odd := rows(f"SELECT COUNT(*) FROM topics WHERE {_ODD_TOPICS}")[0][0]:  # noqa: S608 - a constant
        complaints.append(f"{odd} topics hold values that nobody would have written")
    for texts in rows("SELECT links, warnings FROM topics WHERE links != '[]' OR warnings != '[]'"):
        for text in texts:
            msgspec.json.decode(text, type=list[str])
    complaints += [f"its {key} is {meta.get(key)!r}" for key in _NUMBERS if not meta.get(key, "").isdecimal()]
    complaints += [f"it does not say its {key}" for key in ("encoder", "vectors") if key not in meta]
    if meta.get("dim") == "0" != meta.get("rows"):
        complaints.append("its vectors have no length")
    topics = rows("SELECT path, doc, mtime_ns, size, inode, digest, embedded FROM topics ORDER BY doc")
    vectors = rows("SELECT row, digest FROM vectors ORDER BY row")
    chunks = rows("SELECT doc, number, vector FROM chunks ORDER BY doc, number")
    chosen = chance.permutation(len(topics))[:sampled]
    return Inventory(
        folder=folder,
        meta=meta,
        known={path: Known(*rest) for path, *rest, _ in topics},
        states={row[0]: row[-1] for row in topics},
        failed=frozenset(path for (path,) in rows("SELECT path FROM problems")),
        chunks=np.asarray(chunks, np.int64).reshape(len(chunks), 3),
        rows=np.fromiter((row for row, _ in vectors), np.int64, len(vectors)),
        digests=[digest for _, digest in vectors],
        segments=[name for (name,) in rows("SELECT name FROM segments")],
        sample=[_stored(connection, topics[number][1]) for number in sorted(chosen.tolist())],
        complaints=complaints,
    )


def _stored(connection: sqlite3.Connection, doc: int) -> StoredText:
    columns = "SELECT doc, path, title, description, type, body FROM topics WHERE doc = ?"
    return StoredText(*connection.execute(columns, (doc,)).fetchone())
