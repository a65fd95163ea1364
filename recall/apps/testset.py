"""Test sets of `recall eval`: questions with their right answers, and corpora packed into one file."""

import hashlib
import json
import math
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any, Final

import msgspec

from recall.errors import TopicError, UnsafePathError
from recall.store.files import confine

OTHER_KIND: Final = "other"
_BOM: Final = b"\xef\xbb\xbf"
_HEADER_KEY: Final = re.compile(r"[A-Za-z_][\w-]{0,39}")
_LONGEST_NAME: Final = 255  # bytes; what most file systems take
_NOT_IN_HEADER: Final = frozenset({"id", "body"})


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """One question of a test set; keys that are not named here are ignored.

    Attributes:
        id: its name.
        text: what is asked.
        relevant: ids of the topics that answer it; empty when nothing does.
        lang: its language.
        kind: what sort of question it is.
        scope: the folder below the root that is opened as a memory; "" for the root itself.
        exclude: ids of topics that may not be answered.
        asof: only topics whose `seq` is at most this take part; None for all.
        line: where it stands in its file, counted from 1.
    """

    id: str
    text: str
    relevant: frozenset[str]
    lang: str | None = None
    kind: str | None = None
    scope: str | None = None
    exclude: frozenset[str] | None = None
    asof: float | None = None
    line: int = 0


def read_queries(file: Path, *, root: Path, limit: int | None = None) -> list[Query]:
    """The questions of a JSON Lines file, ids without `.md`, scopes as clean paths below the root.

    Raises:
        TopicError: a line that is no question, a scope that is no folder below the root, or no question at all; names
            the file and the line.
        OSError: the file cannot be read.
    """
    queries: list[Query] = []
    for line, data in _lines(file):
        if limit is not None and len(queries) >= limit:
            break
        try:
            query = msgspec.json.decode(data, type=Query)
        except msgspec.DecodeError as error:
            raise TopicError(f"is no question: {error}", path=file, line=line) from error
        queries.append(
            msgspec.structs.replace(
                query,
                line=line,
                relevant=frozenset(map(bare, query.relevant)),
                exclude=frozenset(map(bare, query.exclude or ())),
                kind=query.kind or OTHER_KIND,
                scope=_scope(query.scope or "", root=root, file=file, line=line),
            )
        )
    if not queries:
        raise TopicError("holds no questions", path=file)
    return queries


def bare(name: str) -> str:
    """The id without `.md`."""
    return name.removesuffix(".md")


def _scope(scope: str, *, root: Path, file: Path, line: int) -> str:
    clean = normpath(scope) if scope else "."
    try:
        folder = confine(clean, root)
    except UnsafePathError as error:
        raise TopicError(f"scope: {error}", path=file, line=line) from error
    if not folder.is_dir():
        raise TopicError(f"scope: there is no folder {scope} in {root}", path=file, line=line)
    return "" if clean == "." else clean


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, with their number."""
    with file.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            data = line.removeprefix(_BOM).strip() if number == 1 else line.strip()
            if data:
                yield number, data


# --- corpora in one file


@dataclass(frozen=True, slots=True)
class _Record:
    """One topic of a packed corpus: the file to write, below the folder, and its text."""

    path: PurePosixPath
    text: str


def unpack_corpus(file: Path, cache: Path) -> Path:
    """Writes every topic of a packed corpus out as a Markdown file, into a folder named by the corpus' content.

    The files carry the time of the corpus, so that neither ages nor the index change from one run to the next.

    Args:
        file: JSON Lines; one object a topic with `id`, `body` and the keys of its header.
        cache: folder of derived data; the files go into `eval/` in it.

    Raises:
        TopicError: a line that is no topic, or an id that is no path inside a folder; names the file and the line.
        OSError: the corpus cannot be read or the folder not be written.
    """
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:24]
    folder = cache / "eval" / digest
    records = list(_records(file))
    if _is_whole(folder, len(records)):
        return folder
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f"{digest}-", dir=folder.parent))
    try:
        _write(records, fresh, stamp=file.stat().st_mtime)
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    except OSError:
        if not _is_whole(folder, len(records)):  # otherwise another process was quicker
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return folder


def _is_whole(folder: Path, count: int) -> bool:
    return sum(1 for _ in folder.rglob("*.md")) == count if folder.is_dir() else False


def _records(file: Path) -> Iterator[_Record]:
    seen: set[PurePosixPath] = set()
    for line, data in _lines(file):
        try:
            fields = msgspec.json.decode(data, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise TopicError(f"is no topic: {error}", path=file, line=line) from error
        name, body = fields.get("id"), fields.get("body", "")
        if not isinstance(name, str) or not isinstance(body, str):
            raise TopicError("is no topic: `id` and `body` have to be strings", path=file, line=line)
        path = _path(name)
        if path is None or path in seen:
            why = "cannot be a path below a folder" if path is None else "was used before"
            raise TopicError(f"the id {name!r} {why}", path=file, line=line)
        seen.add(path)
        yield _Record(path, f"---\n{_header(fields)}---\n\n{body}")


def _path(name: str) -> PurePosixPath | None:
    """Where the topic goes; None for an id that would leave the folder or that no file system takes."""
    parts = f"{bare(name)}.md".split("/")
    try:
        sizes = [len(part.encode("utf-8")) for part in parts]
    except UnicodeEncodeError:
        return None
    is_odd = "\\" in name or "\0" in name or parts[-1] == ".md" or max(sizes) > _LONGEST_NAME
    return None if is_odd or any(part in {"", ".", ".."} for part in parts) else PurePosixPath(*parts)


def _header(fields: dict[str, Any]) -> str:
    """The header: strings and lists quoted as JSON, which YAML reads as well."""
    lines = []
    for key, value in fields.items():
        if key in _NOT_IN_HEADER or not _HEADER_KEY.fullmatch(key) or not _is_plain(value):
            continue
        lines.append(f"{key}: {json.dumps(value, ensure_ascii=False)}\n")
    return "".join(lines)


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _write(records: list[_Record], folder: Path, *, stamp: float) -> None:
    for record in records:
        file = folder / record.path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8", errors="replace", newline="\n") as stream:
            stream.write(record.text)
        os.utime(file, (stamp, stamp))
