"""The append-only file of vectors."""

import os
from pathlib import Path

import numpy as np
import pytest

from recall.index.vectors import VectorFile


@pytest.fixture
def vectors(tmp_path: Path) -> VectorFile:
    return VectorFile(tmp_path / "some.vectors", 3)


def rows(*numbers: float) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.asarray([[number, number + 0.25, -number] for number in numbers], np.float32)


def test_rows_come_back_as_they_were(vectors: VectorFile) -> None:
    vectors.append(rows(1, 2, 3), at=0)
    vectors.append(rows(4), at=3)
    found = vectors.view(4)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, rows(1, 2, 3, 4))


def test_only_the_committed_rows_are_seen(vectors: VectorFile) -> None:
    vectors.append(rows(1, 2, 3), at=0)
    np.testing.assert_array_equal(vectors.view(2), rows(1, 2))


def test_rows_that_nobody_committed_are_overwritten(vectors: VectorFile) -> None:
    """A writer died behind row 1; the next one begins there again."""
    vectors.append(rows(1, 7, 8, 9), at=0)
    vectors.append(rows(2, 3), at=1)
    np.testing.assert_array_equal(vectors.view(3), rows(1, 2, 3))


def test_no_rows_need_no_file(vectors: VectorFile) -> None:
    assert vectors.view(0).shape == (0, 3)
    assert not vectors.file.exists()


@pytest.mark.parametrize("content", [None, b"", b"\0" * 11])
def test_a_file_that_is_missing_or_cut_short_has_fewer_rows(vectors: VectorFile, content: bytes | None) -> None:
    if content is not None:
        vectors.file.write_bytes(content)
    assert vectors.view(5).shape == (0, 3)


def test_a_file_cut_within_a_row_has_the_rows_before_it(vectors: VectorFile) -> None:
    vectors.append(rows(1, 2, 3), at=0)
    os.truncate(vectors.file, 3 * 12 - 1)
    np.testing.assert_array_equal(vectors.view(3), rows(1, 2))


def test_what_is_mapped_cannot_be_changed(vectors: VectorFile) -> None:
    vectors.append(rows(1), at=0)
    with pytest.raises(ValueError, match="read-only"):
        vectors.view(1)[0] = 0


def test_an_older_view_stays_true_while_rows_are_added(vectors: VectorFile) -> None:
    vectors.append(rows(1, 2), at=0)
    view = vectors.view(2)
    vectors.append(rows(*range(100)), at=2)
    np.testing.assert_array_equal(view, rows(1, 2))


def test_only_the_owner_may_read_vectors(vectors: VectorFile) -> None:
    vectors.append(rows(1), at=0)
    assert vectors.file.stat().st_mode & 0o077 == 0


def test_rows_of_another_layout_are_stored_as_float32_rows(vectors: VectorFile) -> None:
    columns = np.asfortranarray(rows(1, 2).astype(np.float64))
    vectors.append(columns[:, ::-1], at=0)  # type: ignore[arg-type]  # wider numbers than asked for
    np.testing.assert_array_equal(vectors.view(2), rows(1, 2)[:, ::-1])


def test_appending_nothing_makes_an_empty_file(vectors: VectorFile) -> None:
    vectors.append(rows()[:0].reshape(0, 3), at=0)
    assert vectors.file.stat().st_size == 0


def test_a_folder_that_is_missing_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        VectorFile(tmp_path / "missing" / "file", 3).append(rows(1), at=0)
