"""The catalog of one memory root: which topics there are, where their chunks and vectors lie. One SQLite file.

Everything in it is derived from the topic files. A catalog that is damaged, of another version or of another root is
emptied and filled anew. One process writes at a time (the caller holds the lock); readers are never kept waiting.
"""

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from recall.errors import IndexFormatError
from recall.store.scan import SourceFile
from recall.store.topics import MemoryType, Scope, Topic

FORMAT: Final = 1
"""Raise it whenever tables, terms, segments or the way topics are parsed change: older catalogs are then rebuilt."""

CATALOG_FILE: Final = "catalog.sqlite3"
"""Its name in the folder of derived data."""

_TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE topics (
    doc INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL,
    inode INTEGER NOT NULL, digest BLOB NOT NULL, title TEXT NOT NULL, description TEXT NOT NULL, type TEXT,
    body TEXT NOT NULL, modified REAL NOT NULL, links TEXT NOT NULL, warnings TEXT NOT NULL, embedded INTEGER NOT NULL
);
CREATE INDEX topics_pending ON topics (embedded, mtime_ns DESC);
CREATE TABLE chunks (
    doc INTEGER NOT NULL, number INTEGER NOT NULL, vector INTEGER NOT NULL, PRIMARY KEY (doc, number)
) WITHOUT ROWID;
CREATE TABLE vectors (row INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE);
CREATE TABLE segments (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE problems (path TEXT PRIMARY KEY, reason TEXT NOT NULL) WITHOUT ROWID;
"""


class Read(Protocol):
    """Runs a query and gives all its rows."""

    def __call__(self, statement: str, values: Sequence[Any] = (), /) -> list[tuple[Any, ...]]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Known:
    """What the catalog remembers of a file, to see whether it changed.

    Attributes:
        doc: number of the topic in postings and chunks.
        mtime_ns: modification time.
        size: bytes.
        inode: number of the file on its device; another one after an atomic save.
        digest: hash of the file's text.
    """

    doc: int
    mtime_ns: int
    size: int
    inode: int
    digest: bytes

    def matches(self, file: SourceFile) -> bool:
        """True when the file looks untouched: same time, size and inode."""
        return (self.mtime_ns, self.size, self.inode) == (file.mtime_ns, file.size, file.inode)


@dataclass(frozen=True, slots=True)
class Record:
    """A topic on its way into the catalog.

    Attributes:
        doc: its number, new for new text.
        source: the file as it was seen.
        digest: hash of the file's text.
        topic: what was read from it.
        warnings: what was odd about the file, a sentence each.
    """

    doc: int
    source: SourceFile
    digest: bytes
    topic: Topic
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pending:
    """A topic that still lacks its vectors."""

    doc: int
    path: str
    title: str
    description: str
    body: str


class Catalog:
    """Tables of one memory root. Thread-safe: readers have a connection of their own.

    Args:
        folder: where the file lies; must exist.
        root: the memory root that the catalog belongs to.

    Raises:
        IndexFormatError: SQLite cannot use the file; it has to be deleted and made anew.
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self.file = folder / CATALOG_FILE
        self.root = root
        self._writer_lock, self._reader_lock = threading.RLock(), threading.Lock()
        try:
            self._writer = self._connect()
            self._reader = self._connect()
            self._prepare()
            self._inode = self.file.stat().st_ino
        except sqlite3.OperationalError as error:
            raise OSError(f"{self.file}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise IndexFormatError(f"{self.file}: {error}") from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.file, timeout=10.0, check_same_thread=False, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def _prepare(self) -> None:
        identity = {"format": str(FORMAT), "root": str(self.root)}
        with self.transaction() as write:
            tables = {name for (name,) in write.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if tables:
                found = dict(write.execute("SELECT key, value FROM meta")) if "meta" in tables else {}
                if identity.items() <= found.items():
                    return
                raise IndexFormatError(f"{self.file}: of format {found.get('format')} for {found.get('root')}")
            for statement in _TABLES.split(";"):
                write.execute(statement)
            first = {
                **identity,
                "generation": "0",
                "next_doc": "1",
                "rows": "0",
                "encoder": "",
                "vectors": "",
                "dim": "0",
            }
            write.executemany("INSERT INTO meta VALUES (?, ?)", first.items())

    def check_in_place(self) -> None:
        """Makes sure that the file was not deleted or exchanged since it was opened.

        Raises:
            IndexFormatError: it was; the catalog has to be opened again.
        """
        try:
            found = self.file.stat().st_ino
        except OSError as error:
            raise IndexFormatError(f"{self.file}: {error.strerror}") from error
        if found != self._inode:
            raise IndexFormatError(f"{self.file}: was exchanged")

    def close(self) -> None:
        """Closes both connections."""
        self._writer.close()
        self._reader.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One change, whole or not at all.

        Raises:
            OSError: the disk is full or the folder cannot be written.
            IndexFormatError: the file is damaged.
        """
        with self._writer_lock:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException as error:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                if isinstance(error, sqlite3.OperationalError):
                    raise OSError(f"{self.file}: {error}") from error
                if isinstance(error, sqlite3.DatabaseError):
                    raise IndexFormatError(f"{self.file}: {error}") from error
                raise

    @contextmanager
    def reading(self) -> Iterator[Read]:
        """Several queries that see one and the same commit.

        Raises:
            IndexFormatError: the file is damaged or gone.
        """
        try:
            with self._reader_lock:
                self._reader.execute("BEGIN")
                try:
                    yield lambda statement, values=(): self._reader.execute(statement, values).fetchall()
                finally:
                    self._reader.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise IndexFormatError(f"{self.file}: {error}") from error

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of one query.

        Raises:
            IndexFormatError: the file is damaged or gone.
        """
        with self.reading() as read:
            return read(statement, values)

    def meta(self) -> dict[str, str]:
        """All settings of the catalog: format, root, generation, next_doc, rows, encoder, vectors, dim."""
        return dict(self.read("SELECT key, value FROM meta"))

    def known(self) -> dict[str, Known]:
        """What is remembered of each file, by path."""
        rows = self.read("SELECT path, doc, mtime_ns, size, inode, digest FROM topics")
        return {path: Known(*rest) for path, *rest in rows}

    def problems(self) -> dict[str, str]:
        """Files that could not be read or embedded, with the reason."""
        return dict(self.read("SELECT path, reason FROM problems"))

    def warnings(self) -> dict[str, tuple[str, ...]]:
        """What was odd about files that were indexed all the same, by path."""
        rows = self.read("SELECT path, warnings FROM topics WHERE warnings != '[]'")
        return {path: tuple(msgspec.json.decode(text)) for path, text in rows}

    def topics(self, docs: Sequence[int], scope: Scope) -> dict[int, Topic]:
        """The topics of these numbers, whole; numbers that are gone are left out."""
        marks = ",".join("?" * len(docs))
        columns = "doc, path, title, description, type, body, mtime_ns, modified, links"
        rows = self.read(f"SELECT {columns} FROM topics WHERE doc IN ({marks})", docs)  # noqa: S608 - only marks put in
        return {doc: self._topic(scope, *rest) for doc, *rest in rows}

    def _topic(  # noqa: PLR0913 - one column each
        self, scope: Scope, path: str, title: str, description: str, kind: str | None, body: str,
        mtime_ns: int, modified: float, links: str,
    ) -> Topic:  # fmt: skip
        return Topic(
            scope=scope, path=path, title=title, description=description, type=MemoryType(kind) if kind else None,
            body=body, mtime=mtime_ns / 1e9, modified=modified, file=self.root / path,
            links=tuple(msgspec.json.decode(links)),
        )  # fmt: skip

    def pending(self, limit: int) -> list[Pending]:
        """Topics that still lack their vectors, newest first, at most `limit`."""
        rows = self.read(
            "SELECT doc, path, title, description, body FROM topics WHERE embedded = 0 ORDER BY mtime_ns DESC LIMIT ?",
            (limit,),
        )
        return [Pending(*row) for row in rows]

    def rows_of(self, digests: Iterable[bytes]) -> dict[bytes, int]:
        """Row of each text that has a vector already, by the hash of the text."""
        wanted = list(digests)
        found: dict[bytes, int] = {}
        for at in range(0, len(wanted), 500):
            part = wanted[at : at + 500]
            marks = ",".join("?" * len(part))
            found.update(
                self.read(f"SELECT digest, row FROM vectors WHERE digest IN ({marks})", part)  # noqa: S608 - same
            )
        return found

    def switch_encoder(self, fingerprint: str, *, dim: int, vectors: str) -> None:
        """Forgets all vectors and names the model that is to make new ones; words stay searchable.

        Args:
            fingerprint: identity of the model.
            dim: length of its vectors.
            vectors: name of the file that will hold them.
        """
        with self.transaction() as write:
            write.execute("DELETE FROM chunks")
            write.execute("DELETE FROM vectors")
            write.execute("UPDATE topics SET embedded = 0")
            set_meta(write, {"encoder": fingerprint, "dim": str(dim), "vectors": vectors, "rows": "0"})
            advance(write)


def set_meta(write: sqlite3.Connection, values: Mapping[str, str]) -> None:
    """Puts settings of the catalog into a running transaction."""
    write.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())


def advance(write: sqlite3.Connection) -> None:
    """Tells readers, at the commit of the running transaction, that something changed."""
    write.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")


def put_record(write: sqlite3.Connection, record: Record) -> None:
    """Puts a topic in, in the place of an older one of the same path."""
    topic, source = record.topic, record.source
    drop_paths(write, [topic.path])
    write.execute(
        "INSERT INTO topics VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
        (
            record.doc, topic.path, source.mtime_ns, source.size, source.inode, record.digest, topic.title,
            topic.description, topic.type, topic.body, topic.modified,
            msgspec.json.encode(topic.links).decode(), msgspec.json.encode(record.warnings).decode(),
        ),
    )  # fmt: skip


def move_record(write: sqlite3.Connection, doc: int, source: SourceFile, modified: float) -> None:
    """Notes a new path or new times of a topic whose text stayed as it was."""
    write.execute(
        "UPDATE topics SET path = ?, mtime_ns = ?, size = ?, inode = ?, modified = ? WHERE doc = ?",
        (source.path, source.mtime_ns, source.size, source.inode, modified, doc),
    )


def drop_paths(write: sqlite3.Connection, paths: Iterable[str]) -> None:
    """Takes topics out, with their chunks; vectors stay until they are collected."""
    for path in paths:
        write.execute("DELETE FROM chunks WHERE doc IN (SELECT doc FROM topics WHERE path = ?)", (path,))
        write.execute("DELETE FROM topics WHERE path = ?", (path,))
