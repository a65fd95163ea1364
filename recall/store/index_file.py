"""MEMORY.md, the index of a memory folder: made, kept up to date and read here alone.

Who owns it differs (DESIGN section 4.4). Where the host makes it anew each time, it is `generated` from all topics.
Elsewhere people and agents write it, and only the lines of topics that we add, change or delete are touched
(`curated`). A missing one is built once (`build_missing`) and never put over one that is there.

Text in, text out, except where a folder is the argument. Two writers must not work at once: `write_index` wants the
lock of the folder held from reading to writing.

Sources: DESIGN sections 4.4 and 4.5, wave.md W-CAP-07 to -10, qwen.md section 9, deviations V4, V15, V22.
"""

import os
import secrets
from pathlib import Path

from recall.errors import TopicError
from recall.store import disk
from recall.store.capacity import INDEX_NAME
from recall.store.files import atomic_write, encoded, read_text, replace_exactly
from recall.store.index_curated import Put as Put  # noqa: PLC0414 - part of this module's surface, as all of these
from recall.store.index_curated import curated as curated  # noqa: PLC0414 - part of this module's surface
from recall.store.index_lines import index_line as index_line  # noqa: PLC0414 - part of this module's surface
from recall.store.index_links import IndexEntry as IndexEntry  # noqa: PLC0414 - part of this module's surface
from recall.store.index_links import entries as entries  # noqa: PLC0414 - part of this module's surface
from recall.store.index_made import build_missing as build_missing  # noqa: PLC0414 - part of this module's surface
from recall.store.index_made import generated as generated  # noqa: PLC0414 - part of this module's surface
from recall.store.index_view import MAX_BYTES
from recall.store.index_view import IndexView as IndexView  # noqa: PLC0414 - part of this module's surface
from recall.store.index_view import load_index as load_index  # noqa: PLC0414 - part of this module's surface
from recall.store.index_view import truncate as truncate  # noqa: PLC0414 - part of this module's surface
from recall.store.projects import real_path


def read_index(folder: Path) -> str | None:
    """The folder's MEMORY.md for changing it, exactly, with its byte order mark; None where there is none.

    Raises:
        TopicError: it is no UTF-8 text, huge, a folder or a link to nothing, and writing it back would lose something.
        OSError: it cannot be read.
    """
    file = folder / INDEX_NAME
    try:
        read_text(file, max_bytes=MAX_BYTES)  # says what is wrong with a file that is no text
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        if file.is_symlink():
            raise TopicError("is a link to nothing; remove it or put a file where it leads", path=file) from error
        return None
    except UnicodeDecodeError as error:
        raise TopicError("is not UTF-8; save it as UTF-8 and try again", path=file) from error


def write_index(folder: Path, text: str, *, before: str | None = None) -> bool:
    """Puts the text into the folder's MEMORY.md, whole or not at all; the caller holds the lock of the folder.

    Args:
        folder: the memory folder.
        text: the whole new index.
        before: what the file must still hold, from `read_index`; None for anything.

    Returns:
        False when the file holds something else by now, and was left alone.

    Raises:
        TopicError: the text holds lone surrogates, or MEMORY.md is no regular file.
        OSError: the folder is missing or not writable, or the disk is full.
    """
    file = folder / INDEX_NAME
    if before is None:
        atomic_write(file, text)
        return True
    return replace_exactly(real_path(file), before.encode(), encoded(text, file))


def publish_index(folder: Path, text: str) -> bool:
    """Gives the folder a MEMORY.md with this text unless there is one, were it empty or a link to nothing (W-CAP-09).

    One that appears meanwhile is not overwritten. An empty text makes none (W-CAP-10).

    Returns:
        Whether the file was made.

    Raises:
        OSError: the folder is missing or not writable, or the disk is full.
    """
    target = folder / INDEX_NAME
    if not text or os.path.lexists(target):
        return False
    data = text.encode("utf-8", "replace")
    temporary = folder / f".{secrets.token_hex(8)}.tmp"
    disk.create(temporary, [data])
    try:
        disk.link(temporary, target)
    except OSError:  # it is there by now, or no file here has two names: then made in place, half-written at worst
        try:
            disk.create(target, [data])
        except FileExistsError:
            return False
    finally:
        disk.delete(temporary)
        disk.flush_folder(folder)
    return True
