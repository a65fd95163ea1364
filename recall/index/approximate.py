"""Nearest neighbours in a memory so large that reading every vector takes too long.

Short codes of the rows (index.faiss) say which are likely to be near; of those, eight times as many as are wanted, the
rows themselves are read, so that every score is exact and only the choice is not. Rows that were appended after the
codes were made are all read. The codes lie in a file beside the vectors that the catalog names; without it, or when it
is damaged or of other vectors or another library, all rows are read: slower, never wrong.

What that means to fusion, which reads two rankings until nothing outside of them can win (search.fusion): the bound
that it takes from the last cosine holds but for rows that the codes pass over. Such a row lies near the end of what was
read, for the codes err by little, and when it shares words with the query its exact cosine comes in by the words.
Reading deeper keeps what was found and adds to it, and from a sixty-fourth of the rows on it is exact, so that the loop
ends. Its answer is the exact one unless a winner by meaning alone is passed over.
"""

import logging
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from recall.config import IndexConfig
from recall.errors import EncoderError, IndexFormatError
from recall.index.base import Nearest, Vector, Vectors
from recall.index.bundle import open_bundle, write_bundle
from recall.index.catalog import Catalog, advance, set_meta
from recall.index.vectors import VectorFile
from recall.store import disk

if TYPE_CHECKING:
    from recall.index.faiss import Codes

logger = logging.getLogger(__name__)

EXACT_ROWS: Final = IndexConfig().exact_rows
"""Up to so many rows all are read: 10 ms of the hundred that an answer may take, a tenth of a millisecond a 1,000."""

_WIDER: Final = 8
_FEWEST: Final = 512
_LEAST_ROWS: Final = 256
_BLOCK: Final = 8192

# Reading the rows that codes point at, here and there, costs several times what reading them in order does.
_TOO_WIDE: Final = 8


@dataclass(frozen=True, slots=True)
class _About:
    """What codes belong to.

    Attributes:
        vectors: name of the file of vectors.
        rows: how many of them, from the first, have codes.
        faiss: version of the library that made the codes.
    """

    vectors: str
    rows: int
    faiss: str


@dataclass(frozen=True, eq=False)
class Tier:
    """Codes of the first rows of one file of vectors.

    Attributes:
        file: where they lie.
        vectors: name of the file of vectors.
        count: rows that have codes.
    """

    file: Path
    vectors: str
    count: int

    @classmethod
    def open(cls, folder: Path, meta: Mapping[str, str], *, last: Self | None = None) -> Self | None:
        """The codes that a catalog's settings name; None when there are none to be used.

        Args:
            folder: of the catalog.
            meta: its settings.
            last: what an earlier state had, and keeps when it is still that.
        """
        name = meta.get("codes", "")
        if last is not None and (last.file.name, last.vectors) == (name, meta["vectors"]):
            return last
        about = _about(folder / name) if name else None
        if about is None or about.vectors != meta["vectors"] or about.rows > int(meta["rows"]):
            return None
        return cls(folder / name, about.vectors, about.rows)

    @cached_property
    def _codes(self) -> "Codes | None":
        """Read when first needed; a damaged file is deleted, so that whoever writes next makes it anew."""
        from recall.index.faiss import VERSION, Codes

        try:
            arrays = open_bundle(self.file, check=True)
        except IndexFormatError as error:
            logger.info("all vectors are read until codes are made anew: %s", error)
            with suppress(OSError):  # in a folder that may only be read
                disk.delete(self.file)
            return None
        about = _decoded(arrays)
        if about is None or about.faiss != VERSION:
            return None
        try:
            codes = Codes.restore(arrays["codes"])
        except (KeyError, RuntimeError):
            return None
        return codes if len(codes) == self.count else None

    def warm_up(self) -> None:
        """Reads the codes: 20 ms for 150,000 rows, which no answer need wait for."""
        _ = self._codes

    def nearest(
        self, rows: Vectors, vector: Vector, k: int, *, exact: Nearest
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """As exact search over rows, but a few of the k best may be missing, next best ones in their place.

        Args:
            rows: all rows of the file of vectors, shape (n, dim).
            vector: the query, shape (dim,).
            k: rows wanted; for a large part of all rows the search is exact.
            exact: search over the rows without codes, or over all.
        """
        wanted = max(_WIDER * k, _FEWEST)
        codes = self._codes if wanted * _TOO_WIDE <= self.count <= len(rows) else None
        likely = np.sort(codes.likely(vector, wanted)) if codes else np.zeros(0, np.int64)
        if codes is None or len(likely) < k:  # FAISS leaves rows out when their codes tie with the worst
            return exact(rows, vector, k)
        near, places = exact(rows[likely], vector, k)
        late, tail = exact(rows[self.count :], vector, k)
        scores, numbers = np.concatenate([near, late]), np.concatenate([likely[places], tail + self.count])
        order = np.lexsort((numbers, -scores))[:k]
        return scores[order], numbers[order]


def _about(file: Path) -> _About | None:
    """What the file says of itself; None when it cannot be read."""
    try:
        return _decoded(open_bundle(file))
    except IndexFormatError as error:
        logger.info("%s", error)
        return None


def _decoded(arrays: Mapping[str, NDArray[Any]]) -> _About | None:
    try:
        return msgspec.json.decode(arrays["about"].tobytes(), type=_About)
    except (KeyError, msgspec.DecodeError):
        return None


def refresh_codes(catalog: Catalog, *, exact_rows: int = EXACT_ROWS, stop: threading.Event | None = None) -> None:
    """Makes codes when there are more vectors than can be read each time and too many of them have no codes yet.

    The caller holds the lock for writing vectors.

    Args:
        catalog: whose vectors.
        exact_rows: up to so many rows no codes are wanted.
        stop: set it to give up; what was there before stays.

    Raises:
        OSError: the disk is full or the folder cannot be written.
    """
    meta = catalog.meta()
    folder, rows, named = catalog.file.parent, int(meta["rows"]), meta.get("codes", "")
    if rows <= max(exact_rows, _LEAST_ROWS):
        if named:
            _commit(catalog, "")
    elif _is_stale(folder, meta):
        name = f"{uuid.uuid4().hex}.codes"
        vectors = VectorFile(folder / meta["vectors"], int(meta["dim"]))
        if _write_codes(folder / name, vectors, rows, stop=stop):
            _commit(catalog, name)


def _is_stale(folder: Path, meta: Mapping[str, str]) -> bool:
    """Whether the codes that the settings name are not to be used, or leave out more than a sixth of the rows."""
    from recall.index.faiss import VERSION

    about = _about(folder / meta["codes"]) if meta.get("codes") else None
    if about is None or (about.vectors, about.faiss) != (meta["vectors"], VERSION):
        return True
    # A sixth left out is a fifth of those that have codes.
    return int(meta["rows"]) - about.rows > about.rows // 5


def _write_codes(file: Path, vectors: VectorFile, count: int, *, stop: threading.Event | None) -> bool:
    """Writes codes of the first rows to a new file; False when that was stopped or cannot be done."""
    from recall.index.faiss import SAMPLE, VERSION, Codes

    rows = vectors.view(count)
    try:
        codes = Codes.learn(rows[:: -(-len(rows) // SAMPLE)])
        for at in range(0, len(rows), _BLOCK):
            if stop and stop.is_set():
                return False
            codes.add(rows[at : at + _BLOCK])
    except (RuntimeError, EncoderError) as error:  # what was read is damaged, or the process is ending
        logger.warning("all vectors go on being read at each search: %s", error)
        return False
    about = msgspec.json.encode(_About(vectors.file.name, len(codes), VERSION))
    write_bundle(file, {"about": np.frombuffer(about, np.uint8), "codes": codes.dump()})
    return True


def _commit(catalog: Catalog, name: str) -> None:
    """Names the file of codes, tells readers, and deletes other ones; who has one mapped keeps it."""
    with catalog.transaction() as write:
        set_meta(write, {"codes": name})
        advance(write)
    catalog.discard(file for file in catalog.file.parent.glob("*.codes") if file.name != name)
