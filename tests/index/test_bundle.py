"""Several arrays in one mapped file."""

import errno
import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray

from recall.errors import IndexFormatError
from recall.index.bundle import open_bundle, write_bundle

ARRAYS: dict[str, NDArray[Any]] = {
    "rows": np.arange(12, dtype=np.float32).reshape(4, 3),
    "text": np.frombuffer("部署 👍".encode(), np.uint8),
    "none": np.zeros((0, 7), np.float32),
    "docs": np.asarray([3, 1, 2], np.int64),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "some.bundle"
    write_bundle(file, ARRAYS)
    return file


def test_arrays_come_back_as_they_were(file: Path) -> None:
    found = open_bundle(file, check=True)
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found[name], array)


@settings(max_examples=30, deadline=None)
@given(
    arrays=st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=6),
        npst.arrays(
            st.sampled_from([np.float32, np.float64, np.int8, np.int64, np.uint8, np.uint16]),
            npst.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5),
        ),
        max_size=4,
    )
)
def test_any_arrays_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, object]) -> None:
    file = tmp_path_factory.mktemp("bundle") / "some.bundle"
    whole = {name: np.asarray(array) for name, array in arrays.items()}
    write_bundle(file, whole)
    found = open_bundle(file, check=True)
    assert set(found) == set(whole)
    for name, array in whole.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_arrays_begin_where_vector_instructions_like_it(file: Path) -> None:
    addresses = [array.ctypes.data for array in open_bundle(file).values() if array.size]
    assert all(address % 64 == 0 for address in addresses)


def test_arrays_of_another_memory_layout_come_back_too(tmp_path: Path) -> None:
    array = np.arange(20, dtype=np.int64).reshape(4, 5)
    write_bundle(tmp_path / "file", {"columns": array.T, "every_other": array[:, ::2]})
    found = open_bundle(tmp_path / "file")
    np.testing.assert_array_equal(found["columns"], array.T)
    np.testing.assert_array_equal(found["every_other"], array[:, ::2])


def test_what_is_mapped_cannot_be_changed(file: Path) -> None:
    with pytest.raises(ValueError, match="read-only"):
        open_bundle(file)["docs"][0] = 7


def test_a_mapping_outlives_the_name_of_its_file(file: Path) -> None:
    found = open_bundle(file)
    file.unlink()
    np.testing.assert_array_equal(found["docs"], [3, 1, 2])


def test_a_bundle_is_never_written_over(file: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(FileExistsError):
        write_bundle(file, {})
    assert file.read_bytes() == before


def test_a_full_disk_is_an_error_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flush fails as it would there; the half-written file must not stay."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_bundle(tmp_path / "file", ARRAYS)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_missing_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_bundle(tmp_path / "missing" / "file", ARRAYS)


def test_an_absent_file_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(IndexFormatError, match="missing"):
        open_bundle(tmp_path / "missing")


def test_a_folder_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(IndexFormatError):
        open_bundle(tmp_path)


@pytest.mark.parametrize("content", [b"", b"RECALL", b"RECALL02", b"# a Markdown file\n" * 9, bytes(4096)])
def test_something_else_is_no_bundle(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(IndexFormatError, match="file: "):
        open_bundle(tmp_path / "file")


def test_a_file_that_was_cut_anywhere_is_noticed(file: Path) -> None:
    whole = file.read_bytes()
    for length in range(0, len(whole), 5):
        file.write_bytes(whole[:length])
        with pytest.raises(IndexFormatError):
            open_bundle(file)


def test_a_file_with_something_behind_it_is_noticed(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0")
    with pytest.raises(IndexFormatError, match="bytes instead of"):
        open_bundle(file)


def header_bytes(file: Path) -> int:
    """Where the arrays begin."""
    first = next(iter(open_bundle(file).values()))
    return file.read_bytes().index(first.tobytes())


def test_a_changed_header_is_noticed_at_open(file: Path) -> None:
    whole = file.read_bytes()
    for at in range(0, header_bytes(file), 3):
        damaged = bytearray(whole)
        damaged[at] ^= 1 + at % 255
        file.write_bytes(damaged)
        with pytest.raises(IndexFormatError):
            open_bundle(file)


def test_changed_arrays_are_noticed_when_asked(file: Path) -> None:
    damaged = bytearray(file.read_bytes())
    damaged[header_bytes(file) + 5] ^= 0x40
    file.write_bytes(damaged)
    assert open_bundle(file)["rows"].shape == (4, 3)
    with pytest.raises(IndexFormatError, match="damaged"):
        open_bundle(file, check=True)


def test_opening_reads_no_arrays(file: Path) -> None:
    """They are mapped: the memory behind them is the file's."""
    base: object = open_bundle(file)["rows"]
    while isinstance(base, np.ndarray | memoryview):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    assert isinstance(base, mmap.mmap)
