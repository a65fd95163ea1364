"""Who wrote a journal: a seal under a secret of the user's, which no file in an opened repository can bear.

A memory folder may come with a cloned repository, and with it whatever its author put into `.trash`. What a journal
says is done without asking, so that one is done only when this user's own recall has begun it.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from recall.store import disk

FIELD: Final = "seal"

_FILE: Final = "journal.key"
_BYTES: Final = 32
_OF_THIS_PROCESS: Final = secrets.token_bytes(_BYTES)


Key = bytes | Path
"""The user's secret, or the folder where it lies and is made when first needed; `Path()` is this process's alone."""


def key_in(folder: Path) -> bytes:
    """The user's secret, which is made when it is missing.

    Args:
        folder: one of the user's own, outside every repository. Without one, or where it cannot be written, the secret
            is this process's alone, and what it leaves unfinished is not believed by the next one.
    """
    file = folder / _FILE
    if not folder.is_absolute():
        return _OF_THIS_PROCESS
    with suppress(OSError):
        return _read(file) or _made(file)
    return _OF_THIS_PROCESS


def _read(file: Path) -> bytes:
    with suppress(FileNotFoundError):
        data = file.read_bytes()
        return data if len(data) == _BYTES else b""
    return b""


def _made(file: Path) -> bytes:
    disk.make_folder(file.parent, mode=0o700)
    temporary = file.with_name(f".{secrets.token_hex(8)}.tmp")
    disk.create(temporary, [secrets.token_bytes(_BYTES)], mode=0o600)
    try:
        with suppress(FileExistsError):  # another process was faster, unless it left a broken one
            disk.link(temporary, file)
    except OSError:  # no second names here
        disk.rename(temporary, file)
    if not _read(file):
        disk.rename(temporary, file)
    disk.delete(temporary)
    disk.flush_folder(file.parent)
    return _read(file)


def sealed(record: Mapping[str, Any], root: Path, key: Key) -> dict[str, Any]:
    """The record with the seal of who wrote it for this folder; as it is with an empty key."""
    secret = key_in(key) if isinstance(key, Path) else key
    return {**record, FIELD: _seal(record, root, secret)} if secret else dict(record)


def is_sealed(record: Mapping[str, Any], root: Path, key: Key) -> bool:
    """Whether the holder of the key wrote all of the record for this folder; never with an empty key. Makes none."""
    secret = _known(key) if isinstance(key, Path) else key
    told = record.get(FIELD)
    if not secret or not isinstance(told, str):
        return False
    return hmac.compare_digest(told.encode("utf-8", "surrogatepass"), _seal(record, root, secret).encode())


def _known(folder: Path) -> bytes:
    if folder.is_absolute():
        with suppress(OSError):
            if known := _read(folder / _FILE):
                return known
    return _OF_THIS_PROCESS


def _seal(record: Mapping[str, Any], root: Path, key: bytes) -> str:
    said = json.dumps({name: record[name] for name in record if name != FIELD}, sort_keys=True)
    return hmac.new(key, f"{root.resolve()}\0{said}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
