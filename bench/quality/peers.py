"""Search by words as others do it, over the same topics: bm25s and SQLite's FTS5, both fed pairs of CJK characters."""

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from recall.apps.metrics import DEPTH, Judged
from recall.apps.testset import Query, bare
from recall.store.files import read_text
from recall.store.frontmatter import parse
from recall.store.scan import scan
from recall.store.topics import Scope, topic_of

_CJK: Final = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
_RUN: Final = re.compile(rf"([{_CJK}]+)|[^\W_{_CJK}]+")
_MAX_BYTES: Final = 16 * 1024 * 1024


class Peer(Protocol):
    """Another search over numbered texts."""

    def rank(self, query: str) -> Sequence[int]:
        """Numbers of all texts that share any word with the query, best first."""


@dataclass(frozen=True, slots=True)
class Note:
    """A topic as peers see it.

    Attributes:
        name: its id as test sets write it.
        text: name, description and body.
        seq: when it was written, in the source's own count; infinite where that is not stated.
    """

    name: str
    text: str
    seq: float


def words(text: str) -> Iterator[str]:
    """Lower-case runs of letters and digits, and neighbouring pairs of Chinese, Japanese and Korean characters."""
    for run in _RUN.finditer(text.lower()):
        cjk = run[1]
        if cjk is None or len(cjk) == 1:
            yield run[0]
        else:
            yield from (cjk[at : at + 2] for at in range(len(cjk) - 1))


class Bm25:
    """The library bm25s with k1 = 1.5 and b = 0.75.

    Args:
        texts: what is searched.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        import bm25s  # of the extra `bench`; the report does without

        self._index = bm25s.BM25(k1=1.5, b=0.75)
        self._count = len(texts)
        self._index.index([list(words(text)) for text in texts], show_progress=False)

    def scores(self, query: str) -> NDArray[np.float32]:
        """One score a text, shape (n,); 0 where no word is shared.

        A word that is asked twice counts once, as it does for the others: long chatty questions get better answers so.
        """
        known = [word for word in dict.fromkeys(words(query)) if word in self._index.vocab_dict]
        return self._index.get_scores(known) if known else np.zeros(self._count, np.float32)

    def rank(self, query: str) -> Sequence[int]:
        """Numbers of all texts that share any word with the query, best first, earlier ones before equal ones."""
        scores = self.scores(query)
        order = np.argsort(-scores, kind="stable")
        return [int(row) for row in order if scores[row] > 0]


class FullText:
    """An FTS5 table in memory, ranked by its own BM25; it has no tokenizer that finds Chinese words by itself.

    Args:
        texts: what is searched.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._database = sqlite3.connect(":memory:")
        self._database.execute("CREATE VIRTUAL TABLE notes USING fts5(text, tokenize='unicode61')")
        rows = ((row, " ".join(words(text))) for row, text in enumerate(texts))
        self._database.executemany("INSERT INTO notes (rowid, text) VALUES (?, ?)", rows)

    def rank(self, query: str) -> Sequence[int]:
        """Numbers of all texts that share any word with the query, best first, earlier ones before equal ones."""
        wanted = " OR ".join(f'"{word}"' for word in dict.fromkeys(words(query)))
        if not wanted:
            return []
        found = self._database.execute("SELECT rowid FROM notes WHERE notes MATCH ? ORDER BY rank, rowid", (wanted,))
        return [row for (row,) in found]

    def close(self) -> None:
        """Frees the table."""
        self._database.close()


def ask_peers(root: Path, queries: Sequence[Query]) -> dict[str, tuple[Judged, ...]]:
    """What each peer answers, one a query, in the order of `recall.apps.evaluate.evaluate`.

    Args:
        root: the folder that ids and scopes are below.
        queries: from `testset.read_queries`.
    """
    by_scope = attrgetter("scope")
    answers: dict[str, list[Judged]] = {"bm25s": [], "fts5": []}
    for scope, group in groupby(sorted(queries, key=by_scope), key=by_scope):
        notes = read_notes(root, scope)
        asked = list(group)
        texts = [note.text for note in notes]
        with closing(FullText(texts)) as full_text:
            peers: Mapping[str, Peer] = {"bm25s": Bm25(texts), "fts5": full_text}
            for name, peer in peers.items():
                answers[name] += [_judged(peer, notes, query) for query in asked]
    return {name: tuple(judged) for name, judged in answers.items()}


def read_notes(root: Path, scope: str) -> list[Note]:
    """The topics of one scope; what is no topic to recall (an index file, say) is none to its peers."""
    notes = []
    for source in scan(root / scope, Scope.PROJECT).files:
        front = parse(read_text(source.file, max_bytes=_MAX_BYTES)[0])
        topic = topic_of(front, path=source.path, scope=Scope.PROJECT, mtime=0.0, file=source.file)
        name = bare(f"{scope}/{source.path}" if scope else source.path)
        notes.append(Note(name, f"{topic.title}\n{topic.description}\n{topic.body}", _seq(front.first("seq"))))
    return notes


def _seq(stated: str) -> float:
    try:
        return float(stated)
    except ValueError:
        return inf


def _judged(peer: Peer, notes: Sequence[Note], query: Query) -> Judged:
    until = inf if query.asof is None else query.asof
    found = (notes[row] for row in peer.rank(query.text))
    names = [note.name for note in found if note.seq <= until and note.name not in (query.exclude or ())]
    return Judged(query.kind or "", tuple(names[:DEPTH]), query.relevant)
