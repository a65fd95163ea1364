"""Where the derived data of one memory root lies, and how it is opened: a temporary folder serves where it must."""

import errno
import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from recall.errors import IndexFormatError, LockedError
from recall.index.catalog import Catalog
from recall.index.folder import CATALOG_FILE, OPEN_LOCK, cache_folder
from recall.store import disk
from recall.store.locks import exclusive
from recall.store.projects import real_path

logger = logging.getLogger(__name__)

_LOCK_WAIT_S: Final = 10.0


class Home:
    """The folder of derived data of one root.

    Args:
        root: the memory root.
        cache: folder of all derived data.

    Attributes:
        folder: where it is; another one after it turned out not to be usable.
        note: why it is another one, "" while it is not.
    """

    def __init__(self, root: Path, cache: Path) -> None:
        self.folder = cache_folder(cache, root)
        self.note = ""
        self._root = root
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    @property
    def is_temporary(self) -> bool:
        """Whether the derived data goes with this process, because the cache folder cannot be used."""
        return self._temporary is not None

    def open(self, *, afresh: bool = False) -> Catalog:
        """The catalog; emptied first when that is wanted, or when it is damaged or foreign.

        Raises:
            IndexFormatError: not even a temporary folder can hold one.
        """
        for _ in range(3):
            try:
                self._make()
                # Nobody may open what another is about to delete.
                with exclusive(self.folder / OPEN_LOCK, timeout_s=_LOCK_WAIT_S):
                    # Who died in the middle of a wipe may have left the log of the old catalog, which others still have
                    # open: a new catalog of the same name would be read with it.
                    if afresh or not (self.folder / CATALOG_FILE).exists():
                        self._wipe()
                    return Catalog(self.folder, real_path(self._root))
            except IndexFormatError as error:
                logger.info("derived data is made anew: %s", error)
                afresh = True
            except (OSError, LockedError) as error:
                if self._temporary:
                    break
                self.move_out(error)
        raise IndexFormatError(f"{self.folder}: cannot hold an index; free some space or set index.cache")

    def _make(self) -> None:
        if not self.folder.is_absolute():  # such as ~/.cache for a user without a home
            raise FileNotFoundError(errno.ENOENT, "there is no home folder")
        disk.make_folder(self.folder, mode=0o700)

    def _wipe(self) -> None:
        """Deletes derived data, the catalog first; lock files stay, others may hold them."""
        files = sorted(self.folder.glob("*"), key=lambda file: not file.name.startswith(CATALOG_FILE))
        for file in files:
            if file.suffix == ".lock":
                continue
            if file.is_dir() and not file.is_symlink():
                disk.delete_folder(file)
            else:
                disk.delete(file)

    def move_out(self, error: OSError | LockedError) -> None:
        """Takes a temporary folder for the life of the process."""
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        self.note = f"{self.folder} cannot be used ({why}); the index of this run is temporary"
        logger.warning("%s", self.note)
        self._temporary = tempfile.TemporaryDirectory(prefix="recall-", ignore_cleanup_errors=True)
        self.folder = Path(self._temporary.name)

    def neighbours(self) -> list[Path]:
        """Folders of derived data of other roots, the one used last first."""
        ages: dict[Path, float] = {}
        for folder in () if self._temporary else self.folder.parent.iterdir():
            with suppress(OSError):  # deleted a moment ago
                ages[folder] = folder.stat().st_mtime
        ages.pop(self.folder, None)
        return sorted(ages, key=ages.__getitem__, reverse=True)

    def leave(self) -> None:
        """Deletes a temporary folder."""
        if self._temporary:
            self._temporary.cleanup()


@contextmanager
def writing(catalog: Catalog, lock: str, wait_s: float) -> Iterator[None]:
    """Holds the lock; an error of the disk names the folder, one of a folder that was deleted asks for a new try."""
    folder = catalog.file.parent
    try:
        with exclusive(folder / lock, timeout_s=wait_s):
            catalog.check_in_place()  # who had the lock before may have made everything anew
            yield
    except OSError as error:
        catalog.check_in_place()
        if error.errno and error.filename is None:
            raise OSError(error.errno, error.strerror, str(folder)) from error
        raise
