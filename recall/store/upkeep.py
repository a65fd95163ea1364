"""What follows a change of topics: the lines of MEMORY.md, and the time in the host's meta.json."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from recall.errors import RecallError
from recall.store import disk
from recall.store.capacity import INDEX_NAME
from recall.store.files import confine
from recall.store.index_file import Put, build_missing, curated, generated, publish_index, read_index, write_index
from recall.store.journal import TRASH, Aftermath
from recall.store.plan import Folder, IndexMode, content, digest
from recall.store.scan import SourceFile, scan, scan_order
from recall.store.state import update_meta
from recall.store.topics import Scope, Topic, parse_topic

_OLD: Final = f"000-{INDEX_NAME}.old"
_TRIES: Final = 5
# Topics that are read to fill an index; of older ones it is only said how many they are.
_READ: Final = 400


def bring_in_step(aftermath: Aftermath) -> tuple[Mapping[str, Any], Sequence[str]]:
    """Brings MEMORY.md and meta.json in step with changed topics (`journal.Upkeep`)."""
    record: dict[str, Any] = {}
    notes: list[str] = []
    for name, part in ((INDEX_NAME, _index), ("meta.json", _meta)):
        try:
            record |= part(aftermath)
        except (RecallError, OSError) as error:
            notes.append(f"{name} was not brought in step: {error}")
    return record, notes


def _meta(aftermath: Aftermath) -> dict[str, Any]:
    folder = aftermath.folder
    if folder.meta is not None:
        confine(folder.meta.absolute(), folder.root.parent)  # a link that came with a repository could lead to any file
        update_meta(
            folder.meta,
            lambda meta: replace(meta, updated_at=aftermath.time),
            lock=folder.root / TRASH / "meta.lock",
            now=aftermath.time,
        )
    return {}


def _index(aftermath: Aftermath) -> dict[str, Any]:
    folder = aftermath.folder
    if folder.index is IndexMode.OFF or any(done.path == INDEX_NAME for done in aftermath.done):
        return {}
    confine(INDEX_NAME, folder.root)  # a link that came with a repository could lead to any file of the user's
    earlier = content(aftermath.place / _OLD)  # by a process that was stopped, perhaps after it had written MEMORY.md
    for _ in range(_TRIES):
        before = read_index(folder.root)
        after = _renewed(before, aftermath)
        if after == (before or ""):
            return {}
        if _put(folder.root, before, after, aftermath.place):
            old = None if before is None else before.encode()
            if earlier is not None and earlier != old:
                return {}  # nobody knows what of this is of the run: to undo it, its lines are mended
            return {"index": {"before": digest(old), "after": digest(after.encode()), "old": _OLD if old else ""}}
    raise RecallError("somebody else goes on changing it; `recall check --fix` mends it")


def _renewed(before: str | None, aftermath: Aftermath) -> str:
    """MEMORY.md after the changes (DESIGN section 4.4)."""
    folder = aftermath.folder
    if folder.index is IndexMode.GENERATED:
        return generated(standing_topics(folder), before or "")
    if before is None:
        return build_missing(standing_topics(folder))
    put, gone = [], []
    for done in aftermath.done:
        now, old = _topic(folder, done.path, done.after), _topic(folder, done.path, done.before)
        if now is None or now.superseded_by:
            gone.append(done.path)
        else:
            put.append(Put(now, old))
    return curated(before, put=put, gone=gone)


def _put(root: Path, before: str | None, after: str, place: Path) -> bool:
    """Writes MEMORY.md, keeping what it held; False when somebody else has changed it meanwhile."""
    if before is None:
        return publish_index(root, after)
    _keep(before.encode(), place / _OLD)
    return write_index(root, after, before=before)


def _keep(data: bytes, file: Path) -> None:
    """Keeps a copy, in the place of an earlier one."""
    if content(file) == data:
        return
    fresh = file.with_suffix(".fresh")
    disk.delete(fresh)  # of a process that was stopped
    disk.create(fresh, [data], mode=0o600)
    disk.rename(fresh, file)
    disk.flush_folder(file.parent)


def _topic(folder: Folder, path: str, data: bytes | None) -> Topic | None:
    if data is None:
        return None
    text = data.decode("utf-8", "replace")
    return parse_topic(text, path=path, scope=folder.scope, mtime=0.0, file=folder.root / path)


def standing_topics(folder: Folder) -> list[Topic]:
    """The topics that an index lists: all but superseded ones. Older ones than fit into any are not read."""
    files = scan_order(scan(folder.root, folder.scope).files)
    read = [_read(file, folder.scope) for file in files[:_READ]]
    return [topic for topic in read if not topic.superseded_by] + [
        _unread(file, folder.scope) for file in files[_READ:]
    ]


def _read(file: SourceFile, scope: Scope) -> Topic:
    try:
        text = file.file.read_bytes().decode("utf-8", "replace")
    except OSError:
        return _unread(file, scope)
    return parse_topic(text, path=file.path, scope=scope, mtime=file.mtime_ns / 1e9, file=file.file)


def _unread(file: SourceFile, scope: Scope) -> Topic:
    return parse_topic("", path=file.path, scope=scope, mtime=file.mtime_ns / 1e9, file=file.file)
