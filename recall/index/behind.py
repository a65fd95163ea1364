"""What the files say that the catalog does not say yet: asked where an answer cannot wait for a synchronisation."""

from collections.abc import Sequence
from pathlib import Path

from recall.errors import TopicError
from recall.index.catalog import Catalog
from recall.index.known import UNSETTLED, Known, file_digest
from recall.store.files import read_text
from recall.store.look import Difference
from recall.store.scan import SourceFile
from recall.store.topics import Topic


def changed(catalog: Catalog, topics: Sequence[Topic], *, max_bytes: int) -> set[str]:
    """Paths of those topics whose file is gone or has another text than when it was indexed.

    Costs one `stat` a topic; a file with other times but the same size is read, because copies and checkouts touch
    files without changing them.

    Args:
        catalog: what is compared with the files. Of a topic that it has not (any more, or not yet again while it is
            made anew) the time has to do.
        topics: what an answer is about to show.
        max_bytes: larger files count as changed once they are touched.
    """
    known = catalog.known([topic.path for topic in topics])
    return {
        topic.path
        for topic in topics
        if not (
            _is_same(known[topic.path], topic.file, topic.path, max_bytes=max_bytes)
            if topic.path in known
            else _is_untouched(topic)
        )
    }


def _is_untouched(topic: Topic) -> bool:
    try:
        return topic.file.stat().st_mtime_ns / 1e9 == topic.mtime
    except OSError:
        return False


def _is_same(known: Known, file: Path, path: str, *, max_bytes: int) -> bool:
    try:
        status = file.stat()
        stamp = status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev
        if known.matches(SourceFile(path, str(file), *stamp)):
            return True
        return (
            known.size in (status.st_size, UNSETTLED)
            and file_digest(read_text(file, max_bytes=max_bytes)[0]) == known.digest
        )
    except (OSError, TopicError):
        return False


def behind(catalog: Catalog, found: Sequence[SourceFile] | Difference) -> list[str]:
    """Paths that a synchronisation would read or take out, in order; without files that could not be read last time.

    Args:
        catalog: what is compared with the files.
        found: all files of a scan, or only what is different since some look; what another process has brought in
            since that look does not count.
    """
    from recall.index.sync import plan  # loads much, and an answer by words alone asks for `changed` only

    if isinstance(found, Difference):
        known = catalog.known([*(file.path for file in found.read), *found.gone])
        fresh = plan(known, found.read).read
        gone = [path for path in found.gone if path in known]
    else:
        known = catalog.known()
        todo = plan(known, found)
        fresh, gone = todo.read, list(todo.gone)
    unread = catalog.unread()
    read = [file.path for file in fresh if file.path not in known or not known[file.path].may_be(file)]
    return sorted([*(path for path in read if path not in unread), *gone])
