"""The catalog against the files of its memory root: every file is read and compared, whatever its times say."""

import os
from collections.abc import Iterator
from typing import Final

from recall.errors import TopicError
from recall.index.findings import Finding, Kind
from recall.index.inventory import Inventory, StoredText
from recall.index.known import UNSETTLED, Known, file_digest
from recall.store.files import read_text
from recall.store.frontmatter import parse
from recall.store.scan import Scan, SourceFile
from recall.store.topics import Scope, topic_of

_EDITED: Final = "the file was edited since; the next look reads it"
_OTHER_TEXT: Final = "the file has another text than the one that was indexed, with the same size and time"


def compare(inventory: Inventory, scan: Scan, *, scope: Scope, max_bytes: int) -> Iterator[Finding]:
    """What the catalog has otherwise than the files.

    A file with another time, size or inode than the catalog remembers is harmless, the next look at the folder reads
    it; one that looks untouched and has another text would never be read again.

    Args:
        inventory: what the catalog says.
        scan: what lies in the folder.
        scope: whose memory it is.
        max_bytes: larger files are no topics.
    """
    sample = {topic.path: topic for topic in inventory.sample}
    present = {file.path for file in scan.files}
    for path in inventory.known:
        if path not in present:
            yield Finding(Kind.GONE, path, "its file is gone; the next look takes the topic out", harmless=True)
    for file in scan.files:
        known = inventory.known.get(file.path)
        if known is None and file.path not in inventory.failed:
            yield Finding(Kind.UNINDEXED, file.path, "not indexed yet; the next look reads it", harmless=True)
        elif known is not None and not known.may_be(file):
            yield Finding(Kind.STALE, file.path, _EDITED, harmless=True)
        elif known is not None and (said := _differs(file, known, sample.get(file.path), scope, max_bytes)):
            is_unread = known.size == UNSETTLED and said == _OTHER_TEXT
            if is_unread or not _is_untouched(file, known):
                yield Finding(Kind.STALE, file.path, _EDITED, harmless=True)
            else:
                yield Finding(Kind.STALE, file.path, said)


def _differs(file: SourceFile, known: Known, stored: StoredText | None, scope: Scope, max_bytes: int) -> str:
    """What is different between the file and what is stored of it, "" for nothing."""
    try:
        text, _ = read_text(file.file, max_bytes=max_bytes)
    except (TopicError, OSError) as error:
        return f"the file cannot be read any more ({error})"
    if file_digest(text) != known.digest:
        return _OTHER_TEXT
    if stored is None:
        return ""
    topic = topic_of(parse(text), path=file.path, scope=scope, mtime=file.mtime_ns / 1e9, file=file.file)
    now = (topic.title, topic.description, topic.type, topic.body)
    is_same = now == (stored.title, stored.description, stored.type, stored.body)
    return "" if is_same else "what is stored of it is not what its file says"


def _is_untouched(file: SourceFile, known: Known) -> bool:
    """Whether the file still looks as the catalog remembers it: nobody wrote it while it was read."""
    try:
        status = os.stat(file.place)  # noqa: PTH116 - as the scan does
    except OSError:
        return False
    now = SourceFile(file.path, file.place, status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev)
    return known.may_be(now)
