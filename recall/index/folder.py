"""The folder of derived data of one memory root: where it is, and what the files in it are called."""

import hashlib
import os
from pathlib import Path
from typing import Final

from recall.store.projects import real_path

CATALOG_FILE: Final = "catalog.sqlite3"
"""The catalog (index.catalog)."""

OPEN_LOCK: Final = "open.lock"
"""Held, in that folder, while a catalog is made, thrown away or opened."""

WORDS_LOCK: Final = "words.lock"
"""Held while topics and postings are written."""

VECTORS_LOCK: Final = "vectors.lock"
"""Held while vectors are written."""


def cache_folder(cache: Path, root: Path) -> Path:
    """Where derived data of the root lies: named by the hash of its real path."""
    name = hashlib.sha256(os.fsencode(real_path(root))).hexdigest()[:24]
    return cache / "roots" / name


def recorded(root: Path) -> str:
    """The root as the catalog notes it; bytes of a path that are no text as hexadecimal escapes."""
    return os.fsencode(root).decode("utf-8", "backslashreplace")
