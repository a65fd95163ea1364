"""What every VectorIndex does: the plain numpy one and the FAISS one, and the search over bare rows beneath them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray

from recall.errors import EncoderError, IndexFormatError
from recall.index import faiss, flat
from recall.index.base import Vector, VectorIndex, Vectors, check_vectors, usable

Make = Callable[[int], VectorIndex]
Floats = NDArray[np.float32]
Nearest = Callable[[Vectors, Vector, int], tuple[Floats, NDArray[np.int64]]]

KEYS = ["a.md", "用户/偏好.md", "line\nbreak", "👍", 'quote "\\ and \x00', "a.md#1", " ", ""]

few = settings(max_examples=40, deadline=None)


@pytest.fixture(params=[flat.FlatIndex, faiss.FaissIndex], ids=["flat", "faiss"])
def make(request: pytest.FixtureRequest) -> Make:
    kind: Make = request.param
    return kind


def unit(*vectors: tuple[float, ...]) -> Floats:
    return check_vectors(np.asarray(vectors, np.float32), rows=len(vectors), dim=len(vectors[0]))


X, Y, Z = unit((1, 0, 0), (0, 1, 0), (0, 0, 1))


def filled(make: Make) -> VectorIndex:
    index = make(3)
    index.upsert(["x", "y", "xy"], unit((1, 0, 0), (0, 1, 0), (1, 1, 0)))
    return index


# --- finding


def test_the_nearest_key_comes_first_with_its_cosine(make: Make) -> None:
    found = filled(make).search(X, 2)
    assert [key for key, _ in found] == ["x", "xy"]
    assert [score for _, score in found] == pytest.approx([1, 0.5**0.5])


def test_vectors_are_brought_to_unit_length(make: Make) -> None:
    index = make(2)
    index.upsert(["long", "short"], np.asarray([[300, 400], [0.0006, 0.0008]], np.float32))
    assert [score for _, score in index.search(unit((3, 4))[0], 2)] == pytest.approx([1, 1])


def test_asking_for_more_than_there_is_gives_all(make: Make) -> None:
    assert [key for key, _ in filled(make).search(X, 100)] == ["x", "xy", "y"]


@pytest.mark.parametrize("k", [0, -1, -100])
def test_asking_for_nothing_gives_nothing(make: Make, k: int) -> None:
    assert filled(make).search(X, k) == []


def test_an_empty_index_finds_nothing(make: Make) -> None:
    index = make(3)
    assert (len(index), index.search(X, 5)) == (0, [])
    index.upsert([], np.zeros((0, 3), np.float32))
    index.remove([])
    assert (len(index), index.search(X, 5)) == (0, [])


def test_an_all_zero_query_finds_nothing(make: Make) -> None:
    assert filled(make).search(np.zeros(3, np.float32), 5) == []


def test_an_all_zero_row_is_as_near_as_a_right_angle(make: Make) -> None:
    index = make(3)
    index.upsert(["zero", "x"], np.asarray([[0, 0, 0], [1, 0, 0]], np.float32))
    assert index.search(X, 2) == [("x", 1.0), ("zero", 0.0)]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_no_number_counts_as_zero(make: Make, bad: float) -> None:
    index = make(3)
    index.upsert(["bad", "x"], np.asarray([[bad, 1, 0], [1, 0, 0]], np.float32))
    assert index.search(X, 2) == [("x", 1.0), ("bad", 0.0)]


def test_equal_scores_are_ordered_by_key_also_where_the_cut_falls_between_them(make: Make) -> None:
    index = make(3)
    keys = [f"{number:03}" for number in range(150)]
    index.upsert([*reversed(keys), "best"], unit(*[(0.6, 0.8, 0)] * 150, (1, 0, 0)))
    for k in (1, 2, 5, 120, 151):
        assert [key for key, _ in index.search(X, k)] == ["best", *keys][:k]


# --- changing


def test_an_upsert_replaces_the_row_of_a_key(make: Make) -> None:
    index = filled(make)
    index.upsert(["x"], unit((0, 0, 1)))
    assert len(index) == 3
    assert index.search(Z, 1) == [("x", 1.0)]
    assert [key for key, _ in index.search(X, 3)] == ["xy", "x", "y"]


def test_upserting_the_same_twice_changes_nothing(make: Make) -> None:
    index = filled(make)
    before = index.search(X, 3)
    index.upsert(["x", "y", "xy"], unit((1, 0, 0), (0, 1, 0), (1, 1, 0)))
    assert (len(index), index.search(X, 3)) == (3, before)


def test_of_a_key_that_comes_twice_in_one_call_the_last_row_wins(make: Make) -> None:
    index = make(3)
    index.upsert(["same", "other", "same"], unit((1, 0, 0), (0, 1, 0), (0, 0, 1)))
    assert len(index) == 2
    assert index.search(Z, 1) == [("same", 1.0)]
    assert dict(index.search(X, 2))["same"] == 0


def test_removed_keys_are_not_found_and_unknown_ones_ignored(make: Make) -> None:
    index = filled(make)
    index.remove(["x", "unknown", "x"])
    assert [key for key, _ in index.search(X, 5)] == ["xy", "y"]
    index.remove(["xy", "y"])
    assert (len(index), index.search(X, 5)) == (0, [])


def test_a_removed_key_can_come_back(make: Make) -> None:
    index = filled(make)
    index.remove(["x"])
    index.upsert(["x"], unit((0, 1, 0)))
    assert index.search(Y, 2) == [("x", 1.0), ("y", 1.0)]


@pytest.mark.parametrize("shape", [(1, 2), (1, 4), (2, 3), (0, 3)])
def test_vectors_of_another_shape_are_refused_and_change_nothing(make: Make, shape: tuple[int, int]) -> None:
    index = filled(make)
    before = index.search(X, 3)
    with pytest.raises(EncoderError, match=r"expected vectors of shape \(1, 3\)"):
        index.upsert(["x"], np.ones(shape, np.float32))
    assert index.search(X, 3) == before


def test_the_callers_array_may_change_afterwards(make: Make) -> None:
    index, vectors = make(3), unit((1, 0, 0))
    index.upsert(["x"], vectors)
    vectors[:] = Y
    assert index.search(X, 1) == [("x", 1.0)]


# --- keeping


def test_a_saved_index_is_loaded_as_it_was(make: Make, tmp_path: Path) -> None:
    index = make(3)
    index.upsert(KEYS, unit(*((1, number, 0) for number in range(len(KEYS)))))
    index.remove(KEYS[2:3])
    index.save(tmp_path / "made" / "on the way")
    loaded = type(index).load(tmp_path / "made" / "on the way")
    assert len(loaded) == len(KEYS) - 1
    assert loaded.search(X, 99) == index.search(X, 99)


def test_a_loaded_index_goes_on_like_the_first(make: Make, tmp_path: Path) -> None:
    first = filled(make)
    first.save(tmp_path)
    loaded = type(first).load(tmp_path)
    for index in (first, loaded):
        index.upsert(["new", "x"], unit((0, 0, 1), (0, 1, 1)))
        index.remove(["y"])
    assert loaded.search(Z, 9) == first.search(Z, 9)


def test_an_empty_index_can_be_kept(make: Make, tmp_path: Path) -> None:
    index = make(3)
    index.save(tmp_path)
    loaded = type(index).load(tmp_path)
    assert len(loaded) == 0
    loaded.upsert(["x"], unit((1, 0, 0)))
    assert loaded.search(X, 1) == [("x", 1.0)]


def test_saving_again_takes_the_place_of_the_older_save(make: Make, tmp_path: Path) -> None:
    index = filled(make)
    index.save(tmp_path)
    index.remove(["x"])
    (saved,) = tmp_path.iterdir()
    saved.with_name(f"{saved.name}.new").write_bytes(b"left behind by a process that died")
    index.save(tmp_path)
    assert len(type(index).load(tmp_path)) == 2
    assert list(tmp_path.iterdir()) == [saved]


def test_a_loaded_index_does_not_need_its_file_any_more(make: Make, tmp_path: Path) -> None:
    index = filled(make)
    index.save(tmp_path)
    loaded = type(index).load(tmp_path)
    for file in tmp_path.iterdir():
        file.write_bytes(b"")
    assert loaded.search(X, 9) == index.search(X, 9)


def test_an_absent_index_has_to_be_made_anew(make: Make, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(IndexFormatError):
            type(make(3)).load(folder)


def test_an_index_of_another_kind_has_to_be_made_anew(make: Make, tmp_path: Path) -> None:
    other: VectorIndex = flat.FlatIndex(3) if isinstance(make(3), faiss.FaissIndex) else faiss.FaissIndex(3)
    other.save(tmp_path)
    with pytest.raises(IndexFormatError):
        type(make(3)).load(tmp_path)


def test_a_damaged_index_has_to_be_made_anew(make: Make, tmp_path: Path) -> None:
    index = filled(make)
    index.save(tmp_path)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for content in (b"", b"something else", whole[:-1], whole[: len(whole) // 2], whole + b"\0"):
        file.write_bytes(content)
        with pytest.raises(IndexFormatError, match=file.name):
            type(index).load(tmp_path)
    for at in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        file.write_bytes(damaged)
        try:
            loaded = type(index).load(tmp_path)
        except IndexFormatError:
            continue
        assert loaded.search(X, 9) == index.search(X, 9)  # the byte was one of those that only fill a gap


# --- against the oracle

# Small whole numbers: their products are exact in float32, so that equal scores are really equal.
NUMBERS = st.integers(-2, 2).map(float)


def tables(dim: int, most: int = 40) -> st.SearchStrategy[Floats]:
    rows = st.integers(0, most)
    return rows.flatmap(lambda count: npst.arrays(np.float32, (count, dim), elements=NUMBERS))


@few
@given(rows=tables(3), vector=npst.arrays(np.float32, 3, elements=NUMBERS), k=st.integers(-1, 50))
def test_both_searches_over_rows_give_the_same(rows: Vectors, vector: Floats, k: int) -> None:
    scores, numbers = flat.nearest(rows, vector, k)
    expected = sorted(range(len(rows)), key=lambda row: (-float(rows[row] @ vector), row))[: max(k, 0)]
    assert numbers.tolist() == expected
    assert scores.tolist() == (rows[expected] @ vector).tolist()
    found = faiss.nearest(rows, vector, k)
    assert (found[0].tolist(), found[1].tolist()) == (scores.tolist(), expected)
    assert [array.dtype for array in found] == [array.dtype for array in (scores, numbers)] == [np.float32, np.int64]


@pytest.mark.parametrize("dim", [2, 16, 384])
@pytest.mark.parametrize("k", [1, 7, 150, 1000])
def test_both_searches_agree_on_real_vectors_with_doubles(dim: int, k: int) -> None:
    random = np.random.default_rng(dim + k)
    distinct = check_vectors(random.normal(size=(150, dim)), rows=150, dim=dim)
    rows = distinct[random.integers(0, 150, 600)]
    vector = distinct[0]
    scores, numbers = faiss.nearest(rows, vector, k)
    expected, oracle = flat.nearest(rows, vector, k)
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    same = np.flatnonzero((rows == rows[numbers[0]]).all(axis=1))[: len(numbers)]
    assert numbers[: len(same)].tolist() == oracle[: len(same)].tolist() == same.tolist()  # doubles in row order
    assert len(set(numbers.tolist())) == min(k, 600)


@pytest.mark.parametrize("nearest", [flat.nearest, faiss.nearest], ids=["flat", "faiss"])
@pytest.mark.parametrize("dim", [2, 16, 384])
def test_equal_rows_have_equal_scores_wherever_they_stand(nearest: Nearest, dim: int) -> None:
    random = np.random.default_rng(dim)
    distinct = check_vectors(random.normal(size=(50, dim)), rows=50, dim=dim)
    for count in range(395, 405):
        which = random.integers(0, 50, count)
        scores, numbers = nearest(distinct[which], distinct[0], count)
        for row in range(50):
            assert len(set(scores[which[numbers] == row].tolist())) <= 1


@few
@given(rows=tables(3), vector=npst.arrays(np.float32, 3, elements=NUMBERS))
def test_both_products_are_those_of_all_rows(rows: Vectors, vector: Floats) -> None:
    for products in (flat.products(rows, vector), faiss.products(rows, vector)):
        assert products.tolist() == (rows @ vector).tolist()
        assert products.dtype == np.float32


@pytest.mark.parametrize("dim", [1, 2, 4, 8, 9, 31, 384])
def test_products_of_rows_of_any_length_agree(dim: int) -> None:
    random = np.random.default_rng(dim)
    rows = check_vectors(random.normal(size=(101, dim)), rows=101, dim=dim)
    for view in (rows, rows[::2], rows[7:], np.asfortranarray(rows)):
        np.testing.assert_allclose(faiss.products(view, rows[3]), flat.products(view, rows[3]), atol=1e-6)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_rows_that_are_no_numbers_come_last(k: int) -> None:
    rows = np.asarray([[np.nan, 0, 0], [1, 0, 0], [0, np.nan, 0], [0, 1, 0]], np.float32)
    _, numbers = faiss.nearest(rows, X, k)
    assert numbers.tolist() == [1, 3, 0, 2][:k]


ROWS = npst.arrays(np.float32, 4, elements=NUMBERS)
STEPS = st.one_of(
    st.tuples(st.just("upsert"), st.lists(st.tuples(st.sampled_from(KEYS), ROWS))),
    st.tuples(st.just("remove"), st.lists(st.sampled_from(KEYS))),
)


@few
@given(steps=st.lists(STEPS, max_size=6), vector=ROWS, k=st.integers(0, 10))
def test_both_indexes_answer_alike_after_any_changes(
    steps: list[tuple[str, list[Any]]], vector: Floats, k: int
) -> None:
    one, other, model = flat.FlatIndex(4), faiss.FaissIndex(4), dict[str, Floats]()
    for step, items in steps:
        if step == "remove":
            one.remove(items)
            other.remove(items)
            model = {key: row for key, row in model.items() if key not in items}
        else:
            keys = [key for key, _ in items]
            rows = np.asarray([row for _, row in items], np.float32).reshape(len(items), 4)
            one.upsert(keys, rows)
            other.upsert(keys, rows)
            model |= dict(zip(keys, check_vectors(rows, rows=len(keys), dim=4), strict=True))
    assert len(one) == len(other) == len(model)
    found, again = one.search(vector, k), other.search(vector, k)
    best = sorted((float(row @ vector) for row in model.values()), reverse=True)[:k] if vector.any() else []
    for answer in (found, again):
        assert [score for _, score in answer] == pytest.approx(best, abs=1e-5)
        assert all(score == pytest.approx(float(model[key] @ vector), abs=1e-5) for key, score in answer)


# --- bringing vectors to unit length


@few
@given(npst.arrays(np.float32, (3, 4), elements=st.floats(-(2.0**100), 2.0**100, width=32)))
def test_checked_vectors_have_unit_length_or_are_zero(vectors: Floats) -> None:
    checked = check_vectors(vectors, rows=3, dim=4)
    assert checked.dtype == np.float32
    for row, before in zip(checked, vectors, strict=True):
        assert np.linalg.norm(row) == pytest.approx(1 if before.any() else 0, abs=1e-5)
    assert usable(checked).tolist() == vectors.any(axis=1).tolist()


def test_usable_rows_are_finite_and_not_all_zero() -> None:
    rows = np.asarray([[0, 1], [0, 0], [np.nan, 1], [np.inf, 1]], np.float32)
    assert usable(rows).tolist() == [True, False, False, False]
    assert usable(rows[:0]).tolist() == []
