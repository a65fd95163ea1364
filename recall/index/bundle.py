"""Several arrays in one file that is written once and mapped by every reader.

Layout: magic, length and CRC-32 of the header, header (JSON: arrays with dtype, shape, offset, CRC-32; size of them
all), then the arrays, each at a multiple of 64 bytes. A file that was cut short, has a damaged header or belongs to
another format is noticed at open; damaged arrays only when asked, since that reads all of them.
"""

import json
import math
import mmap
import struct
import zlib
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from recall.errors import IndexFormatError
from recall.store import disk

_MAGIC: Final = b"RECALL02"
_PREFIX: Final = struct.Struct("<8sQI")
_ALIGN: Final = 64

Arrays = Mapping[str, NDArray[Any]]


def write_bundle(file: Path, arrays: Arrays) -> None:
    """Writes the arrays and flushes them and their name to the disk; the file must not exist.

    Raises:
        OSError: the disk is full or the folder cannot be written; what was written is removed.
    """
    solid = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    spec: dict[str, Any] = {}
    offset = 0
    for name, array in solid.items():
        spec[name] = {"dtype": array.dtype.str, "shape": array.shape, "offset": offset, "crc": _checksum(array)}
        offset += -(-array.nbytes // _ALIGN) * _ALIGN
    header = json.dumps({"arrays": spec, "bytes": offset}).encode("ascii")
    header += b" " * (-(_PREFIX.size + len(header)) % _ALIGN)
    first = _PREFIX.pack(_MAGIC, len(header), zlib.crc32(header)) + header
    rest = (part for array in solid.values() for part in (array.tobytes(), b"\0" * (-array.nbytes % _ALIGN)))
    disk.create(file, chain([first], rest))
    disk.flush_folder(file.parent)


def open_bundle(file: Path, *, check: bool = False) -> dict[str, NDArray[Any]]:
    """The arrays, mapped read-only; the mapping lives as long as one of them does.

    Args:
        file: what `write_bundle` wrote.
        check: read all arrays and compare them with their checksums.

    Raises:
        IndexFormatError: absent, cut short, damaged, or no bundle of this format.
    """
    try:
        with file.open("rb") as stream:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        magic, length, crc = _PREFIX.unpack(mapped[: _PREFIX.size])
    except (OSError, ValueError, struct.error) as error:
        raise IndexFormatError(f"{file}: cannot be read as an index file: {error}") from error
    base = _PREFIX.size + length
    header = mapped[_PREFIX.size : base]
    if magic != _MAGIC or zlib.crc32(header) != crc:
        raise IndexFormatError(f"{file}: not an index file of this version, or its header is damaged")
    spec = json.loads(header)
    if len(mapped) != base + spec["bytes"]:
        raise IndexFormatError(f"{file}: {len(mapped)} bytes instead of {base + spec['bytes']}")
    arrays = {name: _mapped(mapped, base, item) for name, item in spec["arrays"].items()}
    if check and any(_checksum(arrays[name]) != item["crc"] for name, item in spec["arrays"].items()):
        raise IndexFormatError(f"{file}: damaged")
    return arrays


def _mapped(mapped: mmap.mmap, base: int, item: Mapping[str, Any]) -> NDArray[Any]:
    shape = item["shape"]
    return np.frombuffer(mapped, item["dtype"], math.prod(shape), base + item["offset"]).reshape(shape)


def _checksum(array: NDArray[Any]) -> int:
    return zlib.crc32(array.data)
