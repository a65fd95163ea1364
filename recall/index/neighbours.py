"""Vectors that other memory roots have already: a moved folder or a second worktree asks the model for nothing anew."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import numpy as np

from recall.index.base import Vector
from recall.index.catalog import FORMAT
from recall.index.folder import CATALOG_FILE
from recall.index.vectors import VectorFile, is_unit

_MOST: Final = 64


class Neighbours:
    """Catalogs of other roots that were filled by the same model; read, never written.

    Args:
        folders: folders of derived data, the most promising first.
        encoder: fingerprint of the model.
        dim: length of its vectors.
    """

    def __init__(self, folders: Sequence[Path], encoder: str, dim: int) -> None:
        self._folders = [folder for folder in folders[:_MOST] if (folder / CATALOG_FILE).is_file()]
        self._encoder = encoder
        self._dim = dim

    def find(self, digests: Sequence[bytes]) -> dict[bytes, Vector]:
        """The vectors of these texts, as far as somebody has them; a catalog that cannot be read has none."""
        found: dict[bytes, Vector] = {}
        for folder in self._folders:
            missing = [digest for digest in digests if digest not in found]
            if not missing:
                break
            try:
                found.update(self._look(folder, missing))
            except (sqlite3.Error, OSError, ValueError):
                self._folders = [other for other in self._folders if other != folder]
        return found

    def _look(self, folder: Path, digests: Sequence[bytes]) -> dict[bytes, Vector]:
        with closing(sqlite3.connect(f"{(folder / CATALOG_FILE).as_uri()}?mode=ro", uri=True, timeout=0.1)) as read:
            meta = dict(read.execute("SELECT key, value FROM meta"))
            if (meta.get("format"), meta.get("encoder")) != (str(FORMAT), self._encoder):
                return {}
            places = {
                digest: row
                for digest in digests
                for (row,) in read.execute("SELECT row FROM vectors WHERE digest = ?", (digest,))
            }
            rows = VectorFile(folder / meta["vectors"], self._dim).view(int(meta["rows"]))
        found = {digest: np.array(rows[row]) for digest, row in places.items() if row < len(rows)}
        return {digest: row for digest, row in found.items() if is_unit(row[None]).all()}
