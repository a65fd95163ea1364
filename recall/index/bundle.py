"""Several arrays in one file that is written once and mapped by every reader.

Layout: magic, length of the header, header (JSON: arrays with dtype, shape, offset; size of the whole file), then the
arrays, each at a multiple of 64 bytes. A file that was cut short or belongs to another format is noticed at open.
"""

import json
import mmap
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from recall.errors import IndexFormatError

_MAGIC: Final = b"RECALL01"
_ALIGN: Final = 64

Arrays = Mapping[str, NDArray[Any]]


def write_bundle(file: Path, arrays: Arrays) -> None:
    """Writes the arrays and flushes them to the disk; the file must not exist.

    Raises:
        OSError: the disk is full or the folder cannot be written; what was written is removed.
    """
    solid = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    spec: dict[str, Any] = {}
    offset = 0
    for name, array in solid.items():
        spec[name] = {"dtype": array.dtype.str, "shape": array.shape, "offset": offset}
        offset += -(-array.nbytes // _ALIGN) * _ALIGN
    header = json.dumps({"arrays": spec, "bytes": offset}).encode("ascii")
    header += b" " * (-(len(_MAGIC) + 8 + len(header)) % _ALIGN)
    try:
        with file.open("xb") as stream:
            stream.write(_MAGIC + struct.pack("<Q", len(header)) + header)
            for array in solid.values():
                stream.write(array.tobytes())
                stream.write(b"\0" * (-array.nbytes % _ALIGN))
            stream.flush()
            os.fsync(stream.fileno())
    except FileExistsError:
        raise
    except OSError:
        file.unlink(missing_ok=True)
        raise


def open_bundle(file: Path) -> dict[str, NDArray[Any]]:
    """The arrays, mapped read-only; the mapping lives as long as one of them does.

    Raises:
        IndexFormatError: absent, cut short, or no bundle of this format.
    """
    try:
        with file.open("rb") as stream:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        if mapped[: len(_MAGIC)] != _MAGIC:
            raise IndexFormatError(f"{file}: not an index file of this version")
        start = len(_MAGIC) + 8
        (length,) = struct.unpack("<Q", mapped[len(_MAGIC) : start])
        header = json.loads(mapped[start : start + length])
        base = start + length
        if len(mapped) != base + header["bytes"]:
            raise IndexFormatError(f"{file}: {len(mapped)} bytes instead of {base + header['bytes']}")
        return {
            name: np.frombuffer(mapped, item["dtype"], int(np.prod(item["shape"])), base + item["offset"]).reshape(
                item["shape"]
            )
            for name, item in header["arrays"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
        raise IndexFormatError(f"{file}: cannot be read as an index file: {error}") from error
