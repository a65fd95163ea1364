"""What others would do: full-text search of SQLite for words, a plain numpy scan for vectors."""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from recall import Encoder
from recall.index.base import Vectors

_RUN: Final = re.compile(r"([\u3400-\u9fff]+)|[^\W_\u3400-\u9fff]+")


def words(text: str) -> Iterator[str]:
    """Lower-case runs of letters and digits, and neighbouring pairs of Chinese characters."""
    for run in _RUN.finditer(text.lower()):
        han = run[1]
        if han is None:
            yield run[0]
        elif len(han) == 1:
            yield han
        else:
            yield from (han[at : at + 2] for at in range(len(han) - 1))


class FullText:
    """The notes below a folder in an FTS5 table, ranked by its BM25; kept in the file and used again.

    FTS5 has no tokenizer that finds Chinese words, so it gets pairs of characters, set apart by blanks. It finds whole
    words only, not parts of them, and looks at no file once it is built: it has less to do than a recall.
    """

    def __init__(self, root: Path, file: Path) -> None:
        is_new = not file.exists()
        self._database = sqlite3.connect(file)
        if is_new:
            self._database.execute("CREATE VIRTUAL TABLE notes USING fts5(text, content='', tokenize='unicode61')")
            rows = ((" ".join(words(path.read_text(encoding="utf-8"))),) for path in sorted(root.rglob("*.md")))
            self._database.executemany("INSERT INTO notes (text) VALUES (?)", rows)
            self._database.execute("INSERT INTO notes (notes) VALUES ('optimize')")
            self._database.commit()

    def search(self, query: str, k: int) -> list[int]:
        """Row numbers of the k best notes that share any word with the query."""
        wanted = " OR ".join(f'"{word}"' for word in dict.fromkeys(words(query)))
        if not wanted:
            return []
        found = self._database.execute("SELECT rowid FROM notes WHERE notes MATCH ? ORDER BY rank LIMIT ?", (wanted, k))
        return [row for (row,) in found]

    def close(self) -> None:
        """Closes the file."""
        self._database.close()


class Scan:
    """All vectors in memory, every query multiplied with all of them.

    Args:
        rows: shape (n, dim).
        encoder: encodes the queries.
    """

    def __init__(self, rows: Vectors, encoder: Encoder) -> None:
        self._rows = np.array(rows, np.float32)
        self._encoder = encoder

    def search(self, query: str, k: int) -> NDArray[np.int64]:
        """Numbers of the k nearest rows, best first."""
        scores = self._rows @ self._encoder.encode_query(query)
        best = np.argpartition(-scores, min(k, len(scores) - 1))[:k]
        return best[np.argsort(-scores[best])]
