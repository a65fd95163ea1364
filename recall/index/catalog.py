"""The catalog of one memory root: which topics there are, where their chunks and vectors lie. One SQLite file.

Everything in it is derived from the topic files. A catalog that is damaged, of another version or of another root is
emptied and filled anew. One process writes at a time (the caller holds the lock); readers are never kept waiting.
"""

import json
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from recall.errors import IndexFormatError
from recall.index.folder import CATALOG_FILE, recorded
from recall.index.known import Known, stamp
from recall.store import disk
from recall.store.scan import SourceFile
from recall.store.topics import MemoryType, Scope, Topic

FORMAT: Final = 4
"""Raise it whenever tables, terms, segments or the way topics are parsed change: older catalogs are then rebuilt."""

NO_VECTOR: Final = "the model gave no usable vector for it; found by its words only"
"""What `Catalog.problems` says of a topic that the model could not read."""

EMBEDDED: Final = 1
"""State of a topic that has all its vectors; 0 while they are to be made."""

UNUSABLE: Final = 2
"""State of a topic that the model gave no usable vector for, for all of it or for a part."""

NEXT: Final = "(SELECT value + 1 FROM meta WHERE key = 'generation')"
"""In SQL, the number that the running transaction will get: whoever changes a topic notes it in `changed`."""

REMEMBERED: Final = 10_000
"""Commits for which the catalog knows which topics were taken out."""

_VARIABLES: Final = 500  # in one statement

_TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE topics (
    doc INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL,
    inode INTEGER NOT NULL, digest BLOB NOT NULL, title TEXT NOT NULL, description TEXT NOT NULL, type TEXT,
    body TEXT NOT NULL, modified REAL NOT NULL, links TEXT NOT NULL,
    superseded_by TEXT NOT NULL, superseded_on TEXT NOT NULL, warnings TEXT NOT NULL, embedded INTEGER NOT NULL,
    changed INTEGER NOT NULL
);
CREATE INDEX topics_changed ON topics (changed);
CREATE TABLE removed (doc INTEGER NOT NULL, changed INTEGER NOT NULL);
CREATE INDEX removed_changed ON removed (changed);
CREATE INDEX topics_odd ON topics (path) WHERE warnings != '[]';
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

    def __call__(self, statement: str, values: Sequence[Any] = (), /) -> list[tuple[Any, ...]]: ...  # noqa: D102 - the class says it


class Record(NamedTuple):
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


class Pending(NamedTuple):
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
        read_only: take what is there and write nothing, not even an empty catalog where there is none.

    Raises:
        IndexFormatError: SQLite cannot use the file; it has to be deleted and made anew.
        OSError: the folder cannot be written, or holds no catalog and none is to be made.
    """

    def __init__(self, folder: Path, root: Path, *, read_only: bool = False) -> None:
        self.file = folder / CATALOG_FILE
        self._read_only = read_only
        self.root = root
        self._writer_lock, self._reader_lock = threading.RLock(), threading.Lock()
        try:
            self._writer, self._reader = self._connect(), self._connect()
            # Whoever still searches an exchanged catalog may end in peace; its last user closes it.
            self._connections = weakref.finalize(self, _close, self._writer, self._reader)
            self._connections.atexit = False
            self._inode = self.file.stat().st_ino
            self._prepare()
        except sqlite3.OperationalError as error:
            raise OSError(f"{self.file}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise IndexFormatError(f"{self.file}: {error}") from error

    def _connect(self) -> sqlite3.Connection:
        place = f"{self.file.absolute().as_uri()}?mode={'ro' if self._read_only else 'rwc'}"
        connection = sqlite3.connect(place, uri=True, timeout=10.0, check_same_thread=False, isolation_level=None)
        if self._read_only:
            return connection
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _prepare(self) -> None:
        identity = {"format": str(FORMAT), "root": recorded(self.root)}
        tables = {name for (name,) in self.read("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables:
            found = self.meta() if "meta" in tables else {}
            if not identity.items() <= found.items():
                raise IndexFormatError(f"{self.file}: of format {found.get('format')} for {found.get('root')}")
            return
        if self._read_only:
            raise IndexFormatError(f"{self.file}: holds nothing yet")
        first = {
            "generation": "0",
            "words": "0",
            "next_doc": "1",
            "rows": "0",
            "encoder": "",
            "vectors": "",
            "dim": "0",
        }
        with self.transaction() as write:
            for statement in _TABLES.split(";"):
                write.execute(statement)
            write.executemany("INSERT INTO meta VALUES (?, ?)", (identity | first).items())

    def segment_file(self, name: str) -> Path:
        """Where the postings segment of that name lies."""
        return self.file.parent / f"{name}.postings"

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

    @property
    def is_in_place(self) -> bool:
        """Whether the file was neither deleted nor exchanged since it was opened."""
        try:
            self.check_in_place()
        except IndexFormatError:
            return False
        return True

    def close(self) -> None:
        """Closes both connections, after what is under way."""
        with self._writer_lock, self._reader_lock:
            self._connections()

    def flush(self) -> None:
        """Has the last commit outlast a loss of power."""
        # Without a log all commits are in the main file, flushed by SQLite. Its locks are not on the log, so that
        # closing it here gives none of them up.
        with suppress(FileNotFoundError):
            disk.flush(self.file.with_name(f"{CATALOG_FILE}-wal"))

    def discard(self, files: Iterable[Path]) -> None:
        """Deletes files that the last commit does not name, once no loss of power can bring back one that did.

        What cannot be deleted, as on Windows a file that is mapped, stays for the next time.
        """
        for number, file in enumerate(sorted(files)):
            if number == 0:
                self.flush()
            with suppress(PermissionError, IsADirectoryError):
                disk.delete(file)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One change, whole or not at all.

        Raises:
            OSError: the disk is full or the folder cannot be written.
            IndexFormatError: the file is damaged, or was deleted or exchanged since it was opened.
        """
        with self._writer_lock:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                self.check_in_place()
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException as error:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                if isinstance(error, sqlite3.OperationalError) and not _is_damage(error):
                    raise OSError(f"{self.file}: {error}") from error
                if isinstance(error, sqlite3.DatabaseError):
                    raise IndexFormatError(f"{self.file}: {error}") from error
                raise

    def vacuum(self) -> None:
        """Writes the file anew, so that nothing of deleted rows is left in it or in its log.

        Raises:
            OSError: the disk is full, or the folder cannot be written.
        """
        with self._writer_lock:
            self.check_in_place()
            try:
                self._writer.execute("PRAGMA secure_delete = ON")  # for what the next changes set free
                self._writer.execute("VACUUM")
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            except sqlite3.OperationalError as error:
                raise OSError(f"{self.file}: {error}") from error

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
        # One statement is one state by itself; each step more would give the interpreter's lock away once more.
        try:
            with self._reader_lock:
                return self._reader.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise IndexFormatError(f"{self.file}: {error}") from error

    def meta(self) -> dict[str, str]:
        """All settings of the catalog: format, root, generation, words, next_doc, rows, encoder, vectors, dim."""
        return dict(self.read("SELECT key, value FROM meta"))

    def generation(self) -> int:
        """Number of the last commit that changed what a search sees."""
        ((value,),) = self.read("SELECT value FROM meta WHERE key = 'generation'")
        return int(value)

    def words(self) -> int:
        """Number of the last commit that changed topics or words."""
        ((value,),) = self.read("SELECT value FROM meta WHERE key = 'words'")
        return int(value)

    def count(self) -> int:
        """How many topics there are."""
        ((value,),) = self.read("SELECT COUNT(*) FROM topics")
        return int(value)

    def living(self, docs: Sequence[int]) -> list[int]:
        """Those of the numbers that a topic has."""
        return [doc for (doc,) in self._read_in("SELECT doc FROM topics WHERE doc", docs)]

    def known(self, paths: Sequence[str] | None = None) -> dict[str, Known]:
        """What is remembered of each file, or of those at the paths, by path."""
        columns = "SELECT path, doc, mtime_ns, size, inode, digest FROM topics"
        rows = self.read(columns) if paths is None else self._read_in(f"{columns} WHERE path", paths)
        return {path: Known(*rest) for path, *rest in rows}

    def unread(self) -> dict[str, str]:
        """Files that could not be read, with the reason."""
        return dict(self.read("SELECT path, reason FROM problems"))

    def problems(self) -> dict[str, str]:
        """Files that could not be read or embedded, with the reason."""
        unusable = self.read("SELECT path, ? FROM topics WHERE embedded = ?", (NO_VECTOR, UNUSABLE))
        return self.unread() | dict(unusable)

    def warnings(self) -> dict[str, tuple[str, ...]]:
        """What was odd about files that were indexed all the same, by path."""
        rows = self.read("SELECT path, warnings FROM topics WHERE warnings != '[]'")
        return {path: tuple(json.loads(text)) for path, text in rows}

    def topics(self, docs: Sequence[int], scope: Scope) -> dict[int, Topic]:
        """The topics of these numbers, whole; numbers that are gone are left out."""
        columns = "doc, path, title, description, type, body, mtime_ns, modified, links, superseded_by, superseded_on"
        rows = self._read_in(f"SELECT {columns} FROM topics WHERE doc", docs)  # noqa: S608 - constants only
        return {doc: self._topic(scope, rest) for doc, *rest in rows}

    def _topic(self, scope: Scope, row: Sequence[Any]) -> Topic:
        path, title, description, kind, body, mtime_ns, modified, links, superseded_by, superseded_on = row
        return Topic(
            scope=scope, path=path, title=title, description=description, type=MemoryType(kind) if kind else None,
            body=body, mtime=mtime_ns / 1e9, modified=modified, file=self.root / path,
            links=tuple(json.loads(links)), superseded_by=superseded_by, superseded_on=superseded_on,
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
        return dict(self._read_in("SELECT digest, row FROM vectors WHERE digest", list(digests)))

    def _read_in(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Rows of a statement that is to end in `IN (values)`; asked in parts, SQLite takes so many at a time."""
        found: list[tuple[Any, ...]] = []
        for at in range(0, len(values), _VARIABLES):
            part = values[at : at + _VARIABLES]
            found += self.read(f"{statement} IN ({','.join('?' * len(part))})", part)
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
            write.execute(f"UPDATE topics SET embedded = 0, changed = {NEXT}")  # noqa: S608 - a constant
            set_meta(write, {"encoder": fingerprint, "dim": str(dim), "vectors": vectors, "rows": "0"})
            advance(write)


def _is_damage(error: sqlite3.OperationalError) -> bool:
    """Whether the file is to blame, which lacks a table or was cut short with its log, and not the disk."""
    code: int | None = getattr(error, "sqlite_errorcode", None)  # not where Python itself raises it
    return code == sqlite3.SQLITE_IOERR_SHORT_READ or str(error).startswith("no such ")


def _close(*connections: sqlite3.Connection) -> None:
    for connection in connections:
        with suppress(sqlite3.Error):  # a broken catalog may also be broken at closing
            connection.close()


def set_meta(write: sqlite3.Connection, values: Mapping[str, str]) -> None:
    """Puts settings of the catalog into a running transaction."""
    write.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())


def advance(write: sqlite3.Connection, *, words: bool = False) -> None:
    """Tells readers, at the commit of the running transaction, that something changed.

    Args:
        write: the transaction.
        words: whether topics or their words changed, not only vectors.
    """
    write.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation' OR (? AND key = 'words')", (words,))
    write.execute(f"DELETE FROM removed WHERE changed < {NEXT} - ?", (REMEMBERED + 1,))  # noqa: S608 - a constant


def put_record(write: sqlite3.Connection, record: Record) -> None:
    """Puts a topic in, in the place of an older one of the same path."""
    topic = record.topic
    mtime_ns, size, inode = stamp(record.source)
    drop_paths(write, [topic.path])
    write.execute(
        f"INSERT INTO topics VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, {NEXT})",  # noqa: S608 - a constant
        (
            record.doc, topic.path, mtime_ns, size, inode, record.digest, topic.title, topic.description, topic.type,
            topic.body, topic.modified, _json(topic.links), topic.superseded_by, topic.superseded_on,
            _json(record.warnings),
        ),
    )  # fmt: skip


def move_record(write: sqlite3.Connection, record: Record) -> None:
    """Notes a new path or new times of a topic whose text stayed, and what depends on them."""
    topic = record.topic
    columns = "path = ?, mtime_ns = ?, size = ?, inode = ?, type = ?, modified = ?, warnings = ?"
    write.execute(
        f"UPDATE topics SET {columns}, changed = {NEXT} WHERE doc = ?",  # noqa: S608 - constants
        (topic.path, *stamp(record.source), topic.type, topic.modified, _json(record.warnings), record.doc),
    )


def _json(texts: Sequence[str]) -> str:
    return json.dumps(texts)


def drop_paths(write: sqlite3.Connection, paths: Iterable[str]) -> None:
    """Takes topics out, with their chunks; vectors stay until they are collected."""
    for path in paths:
        write.execute(f"INSERT INTO removed SELECT doc, {NEXT} FROM topics WHERE path = ?", (path,))  # noqa: S608 - same
        write.execute("DELETE FROM chunks WHERE doc IN (SELECT doc FROM topics WHERE path = ?)", (path,))
        write.execute("DELETE FROM topics WHERE path = ?", (path,))
