"""Several arrays in one file that is written once and mapped by every reader.

Layout: magic, length and CRC-32 of the header, header (JSON: arrays with dtype, shape, offset, CRC-32; size of them
all), then the arrays, each at a multiple of 64 bytes. A file that was cut short, has a damaged header or belongs to
another format is noticed at open; damaged arrays only when asked, since that reads all of them.
"""

from __future__ import annotations

import json
import math
import mmap
import struct
import sys
import zlib
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from recall.errors import IndexFormatError
from recall.store import disk

if TYPE_CHECKING:  # who reads plain numbers does without
    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[Any]]

_MAGIC: Final = b"RECALL02"
_PREFIX: Final = struct.Struct("<8sQI")
_ALIGN: Final = 64
_ORDER: Final = "<" if sys.byteorder == "little" else ">"
# What `memoryview.cast` calls the types that an index file is made of.
_CASTS: Final[Mapping[str, Literal["B", "H", "i", "q"]]] = {
    "|u1": "B",
    f"{_ORDER}u2": "H",
    f"{_ORDER}i4": "i",
    f"{_ORDER}i8": "q",
}


def write_bundle(file: Path, arrays: Arrays) -> None:
    """Writes the arrays and flushes them and their name to the disk; the file must not exist.

    Raises:
        OSError: the disk is full or the folder cannot be written; what was written is removed.
    """
    import numpy as np

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
    found = _map(file)
    arrays = {name: _array(found, item) for name, item in found.spec.items()}
    if check and any(_checksum(arrays[name]) != item["crc"] for name, item in found.spec.items()):
        raise IndexFormatError(f"{file}: damaged")
    return arrays


def open_numbers(file: Path) -> dict[str, memoryview]:
    """The same arrays, flat, as plain numbers, for a process that does without numpy; all are read and checked.

    Raises:
        IndexFormatError: absent, cut short, damaged, or of another format or byte order.
    """
    found = _map(file)
    view = memoryview(found.mapped)
    numbers: dict[str, memoryview] = {}
    for name, item in found.spec.items():
        if item["dtype"] not in _CASTS:
            raise IndexFormatError(f"{file}: {name} is of the type {item['dtype']}")
        cast = _CASTS[item["dtype"]]
        start = found.base + item["offset"]
        part = view[start : start + math.prod(item["shape"]) * struct.calcsize(cast)]
        if zlib.crc32(part) != item["crc"]:
            raise IndexFormatError(f"{file}: damaged")
        numbers[name] = part.cast(cast)
    return numbers


def mapping_of(array: object) -> mmap.mmap | None:
    """The mapping that the array is a view of, None when it lies in memory of its own."""
    import numpy as np

    while isinstance(array, np.ndarray):
        array = array.base
    owner = array.obj if isinstance(array, memoryview) else array
    return owner if isinstance(owner, mmap.mmap) else None


def is_whole(mapped: mmap.mmap) -> bool:
    """Whether the file still reaches as far as it is mapped: the system ends a process that reads on behind its end."""
    try:
        return mapped.size() >= len(mapped)
    except OSError:  # the file system is gone
        return False


class _Mapped(NamedTuple):
    """A bundle as it lies in the file: its bytes, where the arrays begin, what is said of each."""

    mapped: mmap.mmap
    base: int
    spec: Mapping[str, Mapping[str, Any]]


def _map(file: Path) -> _Mapped:
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
    return _Mapped(mapped, base, spec["arrays"])


def _array(found: _Mapped, item: Mapping[str, Any]) -> NDArray[Any]:
    import numpy as np

    shape = item["shape"]
    return np.frombuffer(found.mapped, item["dtype"], math.prod(shape), found.base + item["offset"]).reshape(shape)


def _checksum(array: NDArray[Any]) -> int:
    return zlib.crc32(array.data)
