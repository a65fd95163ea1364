"""Reading and writing single files safely: no hang on a pipe, no half-written file, no way out of a folder.

Line ends are never translated: what is in the file is in the text, and the other way round.
"""

import codecs
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from recall.errors import TopicError, UnsafePathError
from recall.store import disk

_NONBLOCK = getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not wait for somebody to write into it
_BINARY = getattr(os, "O_BINARY", 0)
_UTF8_BOM = codecs.BOM_UTF8
_WIDE_BOMS = (  # UTF-32 first: its little-endian mark begins like that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_FEW_NULS = 8  # more than that, and more than one in a hundred bytes: no text


def read_text(file: Path, *, max_bytes: int) -> tuple[str, tuple[str, ...]]:
    """Read a text file leniently.

    Args:
        file: a regular file or a link to one; anything else is refused without being opened.
        max_bytes: the largest size that is read, in bytes.

    Returns:
        The text without a byte order mark, and a sentence for each thing that had to be repaired: another encoding,
        bytes that are not UTF-8 (U+FFFD in the text), NUL characters (kept).

    Raises:
        TopicError: the file is too large, binary or not a regular file.
        OSError: it is not there (any more) or cannot be read.
    """
    data = _read(file, max_bytes)
    if len(data) > max_bytes:
        raise TopicError(
            f"is larger than the limit of {max_bytes:,} bytes; split it into several files or raise the limit",
            path=file,
        )
    for mark, encoding in _WIDE_BOMS:
        if data.startswith(mark):
            text, repaired = _decode(data[len(mark) :], encoding)
            return text, (f"is {encoding.upper()}; save it as UTF-8", *repaired)
    return _utf8(file, data.removeprefix(_UTF8_BOM))


def _read(file: Path, max_bytes: int) -> bytes:
    """At most one byte more than `max_bytes`, from a regular file only."""
    _require_regular(file, file.stat().st_mode)  # not even opened: opening a device can do things
    descriptor = os.open(file, os.O_RDONLY | _NONBLOCK | _BINARY)
    with os.fdopen(descriptor, "rb") as stream:
        _require_regular(file, os.fstat(descriptor).st_mode)  # again: it may have been exchanged in between
        return stream.read(max_bytes + 1)


def _require_regular(file: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe, socket or device"
        raise TopicError(f"is {kind}, not a regular file; move it out of the memory folder", path=file)


def _utf8(file: Path, data: bytes) -> tuple[str, tuple[str, ...]]:
    text, repaired = _decode(data, "utf-8")
    nuls = data.count(0)
    if nuls and _is_binary(text, len(data), nuls):
        raise TopicError(
            f"holds {nuls:,} NUL bytes and looks binary; save it as UTF-8 text or move it out of the memory folder",
            path=file,
        )
    return text, (*repaired, *([f"holds {nuls} NUL character{'s'[: nuls > 1]}"] if nuls else []))


def _is_binary(text: str, size: int, nuls: int) -> bool:
    """Whether data with NUL bytes is no text: many of them, much broken UTF-8 beside them, or nothing else."""
    has_text = any(char.isalnum() for char in text)
    is_broken = text.count("\ufffd") * 10 > len(text)
    return not has_text or is_broken or (nuls > _FEW_NULS and nuls * 100 > size)


def _decode(data: bytes, encoding: str) -> tuple[str, tuple[str, ...]]:
    try:
        return data.decode(encoding), ()
    except UnicodeDecodeError:
        text = data.decode(encoding, "replace")
        return text, (f"holds bytes that are not {encoding.upper()}; they became U+FFFD",)


def atomic_write(file: Path, text: str) -> None:
    r"""Write `text` as UTF-8 so that readers see the old content or the new one, also after a crash.

    The mode of an existing file is kept; a link is followed and stays a link; \n is written as \n.

    Raises:
        TopicError: the text holds lone surrogates, or something other than a regular file stands in the way.
        OSError: the folder is missing or not writable, or the disk is full; the old file is then untouched.
    """
    target = Path(os.path.realpath(file))
    data = encoded(text, file)
    mode = _mode(target)
    temporary = target.with_name(f".{os.urandom(8).hex()}.tmp")
    disk.create(temporary, [data], mode=0o666 if mode is None else 0o600)
    try:
        if mode is not None:
            temporary.chmod(mode)
        disk.rename(temporary, target)
    except BaseException:
        with suppress(OSError):
            disk.delete(temporary)
        raise
    disk.flush_folder(target.parent)


def encoded(text: str, file: Path) -> bytes:
    """The text as it is to stand in the file.

    Raises:
        TopicError: it holds lone surrogates.
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise TopicError("holds half of a character (a lone surrogate); remove it", path=file, line=line) from error


def replace_exactly(file: Path, before: bytes | None, after: bytes, *, new: Path | None = None) -> bool:
    """Puts new content in the place of exactly the old one; False when the file holds something else by now.

    Where the system can exchange two names at one go, no edit of others is lost, however close it comes: what was
    taken out is looked at, and put back if it is not what was expected.

    Args:
        file: a regular file, no link.
        before: what it holds; None when it must not be there.
        after: what it is to hold.
        new: where the new content lies already, flushed, in the same file system; None has it laid beside the file.

    Raises:
        OSError: the folder is missing or not writable, or the disk is full; the old file is then untouched.
    """
    temporary = new or file.with_name(f".{os.urandom(8).hex()}.tmp")
    if new is None:
        disk.create(temporary, [after], mode=0o666 if before is None else 0o600)
    try:
        is_done = _put_in_place(temporary, file, before, after)
    finally:
        if new is None and _holds(temporary, (before, after)):
            with suppress(OSError):
                disk.delete(temporary)
    disk.flush_folder(file.parent)
    return is_done


def _put_in_place(temporary: Path, file: Path, before: bytes | None, after: bytes) -> bool:
    try:
        if before is None:
            return _put_anew(temporary, file)
        if not _holds(file, (before,)):
            return False
        temporary.chmod(stat.S_IMODE(file.stat().st_mode))
        if not disk.exchange(temporary, file):
            disk.rename(temporary, file)
            return True
    except (FileExistsError, FileNotFoundError):
        return False
    disk.flush_folder(file.parent)  # who had opened the old one is given the time to write
    if _holds(temporary, (before,)):
        return True
    disk.exchange(temporary, file)
    return False


def _put_anew(temporary: Path, file: Path) -> bool:
    try:
        disk.link(temporary, file)
    except FileExistsError:
        return False
    except OSError:  # no second names here
        if file.exists():
            return False
        disk.rename(temporary, file)
    return True


def _holds(file: Path, contents: Sequence[bytes | None]) -> bool:
    try:
        return file.read_bytes() in contents
    except FileNotFoundError:
        return False


def _mode(target: Path) -> int | None:
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    _require_regular(target, mode)
    return stat.S_IMODE(mode)


def confine(path: Path | str, root: Path | str) -> Path:
    """The real, absolute place of `path`, which is taken relative to `root`.

    Compared is component by component after links were resolved: `..name` is inside, `root-2` is not.

    Raises:
        UnsafePathError: the place lies outside `root`.
    """
    try:
        real_root = Path(os.path.realpath(root))
        real = Path(os.path.realpath(real_root / path))
    except ValueError as error:  # a NUL character in the path
        raise UnsafePathError(path, root) from error
    if not real.is_relative_to(real_root):
        raise UnsafePathError(path, root)
    return real
