"""Vectors of models that a memory used before: who comes back to one, or asks once with another, makes nothing anew.

Each model has a folder of its own below the derived data, a catalog of texts and rows alone beside the file of vectors,
which index.neighbours reads as it reads another memory's. Those put there last are kept; a rebuild throws all away.
"""

import hashlib
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from recall.index.catalog import FORMAT, Catalog
from recall.index.folder import CATALOG_FILE
from recall.store import disk

_SHELF: Final = "shelf"
_MOST: Final = 2  # models
_TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE vectors (row INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE);
"""


def shelve(catalog: Catalog) -> Path | None:
    """Makes a place for the vectors of the catalog's model, which the catalog is to name no longer.

    Returns:
        The place, for `settle`; None when nothing is to go there: there are no vectors, or more are there already.

    Raises:
        OSError: the cache folder is full or cannot be written.
    """
    meta = catalog.meta()
    if not meta["encoder"] or not int(meta["rows"]):
        return None
    folder = _place(catalog, meta["encoder"])
    if _rows(folder) >= int(meta["rows"]):  # not all of them were taken back since the model was changed last
        return None
    disk.delete_folder(folder)
    disk.make_folder(folder, mode=0o700)
    kept = {key: meta[key] for key in ("encoder", "dim", "vectors", "rows")} | {"format": str(FORMAT)}
    try:
        with closing(sqlite3.connect(folder / CATALOG_FILE)) as write:
            write.executescript(_TABLES)
            write.executemany("INSERT INTO meta VALUES (?, ?)", kept.items())
            write.executemany("INSERT INTO vectors VALUES (?, ?)", catalog.read("SELECT row, digest FROM vectors"))
            write.commit()
    except sqlite3.Error as error:
        disk.delete_folder(folder)
        raise OSError(f"{folder}: {error}") from error
    return folder


def settle(catalog: Catalog, vectors: str, place: Path) -> None:
    """Moves the file of vectors to its place, and lets the oldest models go.

    Args:
        catalog: which names another file by now.
        vectors: name of the file that it named before.
        place: what `shelve` made.
    """
    catalog.flush()  # or a loss of power would bring back a catalog that names the file where it was
    with suppress(OSError):  # gone, or in use on a system that moves no such file: then nothing is kept
        disk.rename(catalog.file.with_name(vectors), place / vectors)
    for old in _by_age(catalog)[_MOST:]:
        disk.delete_folder(old)


def shelved(catalog: Catalog, fingerprint: str) -> Sequence[Path]:
    """The folder of the model's vectors, as `Neighbours` takes it; none when there are none."""
    folder = _place(catalog, fingerprint)
    return [folder] if folder.is_dir() else []


def clear(catalog: Catalog, *fingerprints: str) -> None:
    """Throws away what is kept of these models; of all when none is named."""
    for folder in map(_place, [catalog] * len(fingerprints), fingerprints):
        disk.delete_folder(folder)
    if not fingerprints:
        disk.delete_folder(catalog.file.with_name(_SHELF))


def _place(catalog: Catalog, fingerprint: str) -> Path:
    name = hashlib.sha256(fingerprint.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return catalog.file.with_name(_SHELF) / name


def _rows(folder: Path) -> int:
    """How many vectors are kept there; 0 where that cannot be said."""
    try:
        with closing(sqlite3.connect(f"{(folder / CATALOG_FILE).as_uri()}?mode=ro", uri=True)) as read:
            meta = dict(read.execute("SELECT key, value FROM meta"))
        return int(meta["rows"]) if (folder / meta["vectors"]).is_file() and meta["format"] == str(FORMAT) else 0
    except (sqlite3.Error, OSError, KeyError, ValueError):
        return 0


def _by_age(catalog: Catalog) -> list[Path]:
    """Folders of models, the one that was put there last first."""
    ages: dict[Path, float] = {}
    with suppress(FileNotFoundError):
        for folder in catalog.file.with_name(_SHELF).iterdir():
            with suppress(OSError):
                ages[folder] = (folder / CATALOG_FILE).stat().st_mtime
    return sorted(ages, key=ages.__getitem__, reverse=True)
