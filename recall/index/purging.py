"""Real forgetting in derived data: what files no longer say is not to be found in it either, not even in free pages.

The caller has synchronised the words and holds the lock that each part names.
"""

from contextlib import suppress

from recall.errors import LockedError
from recall.index.catalog import Catalog
from recall.index.embed import delete_old_vectors, keep_vectors
from recall.index.folder import CATALOG_FILE
from recall.index.mending import renew_postings
from recall.index.shelf import clear
from recall.index.sync import tidy_segments


def purge_words(catalog: Catalog) -> tuple[str, ...]:
    """Makes the postings anew, without the words of topics that are gone; for the lock of the words.

    Raises:
        OSError: the cache folder is full.
    """
    renew_postings(catalog)
    tidy_segments(catalog)
    return ("the postings were made anew",)


def purge_vectors(catalog: Catalog) -> tuple[str, ...]:
    """Copies the vectors in use to a new file, and leaves no page of the catalog with what was deleted from it.

    For the lock of the vectors.

    Raises:
        LockedError: somebody goes on reading what was there before, which keeps it in the log.
        OSError: the cache folder is full.
    """
    used = [row for (row,) in catalog.read("SELECT DISTINCT vector FROM chunks ORDER BY vector")]
    if len(used) < int(catalog.meta()["rows"]):
        keep_vectors(catalog, used)
    delete_old_vectors(catalog)
    clear(catalog)
    catalog.vacuum()
    with suppress(FileNotFoundError):  # of a file system that knows no such log
        if catalog.file.with_name(f"{CATALOG_FILE}-wal").stat().st_size:
            raise LockedError(catalog.file, "somebody who goes on reading from it; purge again")
    return ("the catalog was written anew",)
