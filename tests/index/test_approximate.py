"""Search by codes against search over every row: what it may miss, what it may not, and what no damage can do to it."""

import dataclasses
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import recall
from recall import Config, Memory
from recall.config import EncoderConfig, IndexConfig
from recall.index import approximate, faiss, flat
from recall.index.approximate import Tier, refresh_codes
from recall.index.base import Nearest, Vector, Vectors, check_vectors
from recall.index.bundle import open_bundle, write_bundle
from recall.index.catalog import Catalog, set_meta
from recall.index.collection import Collection
from recall.index.hashing import HashingEncoder
from recall.index.snapshot import Snapshot
from recall.index.vectors import VectorFile
from recall.search.fusion import fuse
from recall.search.lexical import Words
from recall.store.topics import Scope

DIM = 32
ROWS = 6000
LONG_S = 60.0  # an upper bound that only a broken implementation reaches


def random_rows(count: int, seed: int = 0) -> Vectors:
    """Rows in all directions alike: the hardest case, since nothing is near to anything."""
    return check_vectors(np.random.default_rng(seed).normal(size=(count, DIM)), rows=count, dim=DIM)


def clustered_rows(count: int, seed: int = 0) -> Vectors:
    """Rows around forty centres, as notes lie about a few themes."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(40, DIM))[random.integers(0, 40, count)]
    return check_vectors(centres + 0.3 * random.normal(size=(count, DIM)), rows=count, dim=DIM)


class Store:
    """A catalog with vectors and nothing else."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.catalog = Catalog(folder, folder)
        self.catalog.switch_encoder("some model", dim=DIM, vectors="first.vectors")

    def append(self, rows: Vectors) -> None:
        meta = self.catalog.meta()
        first = int(meta["rows"])
        VectorFile(self.folder / meta["vectors"], DIM).append(rows, at=first)
        with self.catalog.transaction() as write:
            set_meta(write, {"rows": str(first + len(rows))})

    def refresh(self, *, exact_rows: int = 1000, stop: threading.Event | None = None) -> None:
        refresh_codes(self.catalog, exact_rows=exact_rows, stop=stop)

    @property
    def rows(self) -> Vectors:
        meta = self.catalog.meta()
        return VectorFile(self.folder / meta["vectors"], DIM).view(int(meta["rows"]))

    @property
    def tier(self) -> Tier | None:
        return Tier.open(self.folder, self.catalog.meta())

    @property
    def file(self) -> Path:
        (file,) = self.folder.glob("*.codes")
        return file


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store")
    yield made
    made.catalog.close()


def coded(store: Store, rows: Vectors) -> Tier:
    """The tier of a store with these rows, all of which have codes."""
    store.append(rows)
    store.refresh()
    tier = store.tier
    assert tier is not None
    assert tier.count == len(rows)
    return tier


class Watched:
    """Exact search that notes how many rows it was given."""

    def __init__(self, nearest: Nearest = faiss.nearest) -> None:
        self.nearest = nearest
        self.seen: list[int] = []

    def __call__(self, rows: Vectors, vector: Vector, k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        self.seen.append(len(rows))
        return self.nearest(rows, vector, k)


def shares(tier: Tier, rows: Vectors, queries: Vectors, k: int) -> list[float]:
    """Of each query, how many of the k best rows are found."""
    found = []
    for vector in queries:
        scores, numbers = tier.nearest(rows, vector, k, exact=faiss.nearest)
        _, right = flat.nearest(rows, vector, k)
        np.testing.assert_allclose(scores, rows[numbers] @ vector, atol=1e-6)
        assert (np.diff(scores) <= 0).all()
        assert len(set(numbers.tolist())) == len(numbers) == k
        found.append(len(np.intersect1d(numbers, right)) / k)
    return found


# --- what it finds


@pytest.mark.parametrize("make", [random_rows, clustered_rows])
@pytest.mark.parametrize("k", [10, 64])
def test_nearly_all_of_the_nearest_rows_are_found(store: Store, make: Callable[..., Vectors], k: int) -> None:
    rows = make(ROWS)
    tier = coded(store, rows)
    queries = check_vectors(rows[::150] + 0.5 * make(40, seed=1), rows=40, dim=DIM)
    found = shares(tier, store.rows, queries, k)
    assert np.mean(found) >= 0.98
    assert min(found) >= 0.8


def test_few_rows_are_read(store: Store) -> None:
    tier = coded(store, random_rows(ROWS))
    exact = Watched()
    tier.nearest(store.rows, random_rows(1, seed=1)[0], 10, exact=exact)
    assert sum(exact.seen) <= 512


def test_rows_that_came_after_the_codes_are_found_exactly(store: Store) -> None:
    tier = coded(store, random_rows(ROWS))
    late = random_rows(50, seed=2)
    store.append(late)
    rows = store.rows
    for number, vector in enumerate(late):
        scores, numbers = tier.nearest(rows, vector, 5, exact=flat.nearest)
        assert (numbers[0], scores[0]) == (ROWS + number, pytest.approx(1, abs=1e-6))
    assert min(shares(tier, rows, late[:10], 10)) >= 0.8


def test_a_search_for_a_large_part_of_the_rows_is_exact(store: Store) -> None:
    tier = coded(store, random_rows(ROWS))
    vector = random_rows(1, seed=1)[0]
    for k in (ROWS // 16, ROWS, 2 * ROWS):
        scores, numbers = tier.nearest(store.rows, vector, k, exact=flat.nearest)
        expected, right = flat.nearest(store.rows, vector, k)
        assert (scores.tolist(), numbers.tolist()) == (expected.tolist(), right.tolist())


def test_of_rows_that_are_all_alike_as_many_as_wanted_are_found(store: Store) -> None:
    tier = coded(store, np.repeat(random_rows(1), ROWS, axis=0))
    for vector in (store.rows[0], -store.rows[0], np.zeros(DIM, np.float32)):
        scores, numbers = tier.nearest(store.rows, vector, 20, exact=faiss.nearest)
        assert len(set(scores.tolist())) == 1
        assert len(set(numbers.tolist())) == 20


def test_fewer_rows_on_the_disk_than_codes_are_all_read(store: Store) -> None:
    tier = coded(store, random_rows(ROWS))
    exact = Watched()
    tier.nearest(store.rows[:-1], random_rows(1, seed=1)[0], 10, exact=exact)
    assert exact.seen == [ROWS - 1]


@pytest.mark.parametrize("dim", [1, 2, 7, 8, 33, 384])
def test_codes_of_any_dimension_find_a_row_by_itself(dim: int) -> None:
    random = np.random.default_rng(dim)
    rows = check_vectors(random.normal(size=(600, dim)), rows=600, dim=dim)
    codes = faiss.Codes.learn(rows)
    codes.add(rows[:300])
    codes.add(rows[300:])
    again = faiss.Codes.restore(codes.dump())
    assert len(codes) == len(again) == 600
    for number in (0, 299, 300, 599):
        best = float(rows[number] @ rows[number])
        for some in (codes, again):
            likely = some.likely(rows[number], 100)
            assert len(set(likely.tolist())) == len(likely) == 100
            assert (rows[likely] @ rows[number]).max() == pytest.approx(best, abs=1e-6)
    assert set(codes.likely(rows[0], 1000).tolist()) <= set(range(600))


# --- when codes are made


def test_a_small_memory_has_no_codes(store: Store) -> None:
    store.append(random_rows(1000))
    store.refresh(exact_rows=1000)
    assert store.tier is None
    assert not list(store.folder.glob("*.codes"))


def test_too_few_rows_to_learn_from_have_no_codes_whatever_the_setting(store: Store) -> None:
    store.append(random_rows(20))
    store.refresh(exact_rows=1)
    assert store.tier is None


def test_codes_are_made_anew_when_more_than_a_fifth_has_come_since(store: Store) -> None:
    coded(store, random_rows(2000))
    name = store.file.name
    store.append(random_rows(400, seed=1))
    store.refresh()
    assert store.file.name == name
    store.append(random_rows(1, seed=2))
    store.refresh()
    assert store.file.name != name  # and the old one is gone
    tier = store.tier
    assert tier is not None
    assert tier.count == 2401


def test_codes_of_other_vectors_are_not_used_and_made_anew(store: Store) -> None:
    coded(store, random_rows(2000))
    store.catalog.switch_encoder("another model", dim=DIM, vectors="second.vectors")
    store.append(random_rows(2000, seed=1))
    assert store.tier is None
    tier = Tier.open(store.folder, store.catalog.meta() | {"vectors": "first.vectors"})
    assert Tier.open(store.folder, store.catalog.meta(), last=tier) is None
    store.refresh()
    tier = store.tier
    assert tier is not None
    assert min(shares(tier, store.rows, random_rows(5, seed=3), 10)) >= 0.8


def test_codes_of_another_version_of_the_library_are_not_used_and_made_anew(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    tier = coded(store, random_rows(ROWS))
    name = store.file.name
    with monkeypatch.context() as patch:
        patch.setattr(faiss, "VERSION", "0.0")
        exact = Watched()
        tier.nearest(store.rows, random_rows(1)[0], 10, exact=exact)
        assert exact.seen == [ROWS]
        store.refresh()
    assert store.file.name != name


def test_codes_go_when_the_memory_has_become_small(store: Store) -> None:
    coded(store, random_rows(2000))
    store.refresh(exact_rows=2000)
    assert store.tier is None
    assert not list(store.folder.glob("*.codes"))


def test_making_codes_stops_when_it_is_told_and_keeps_what_was(store: Store) -> None:
    coded(store, random_rows(2000))
    name = store.file.name
    store.append(random_rows(2000, seed=1))
    stop = threading.Event()
    stop.set()
    store.refresh(stop=stop)
    assert store.file.name == name


def test_readers_learn_of_new_codes_and_keep_those_they_have(store: Store) -> None:
    store.append(random_rows(2000))
    before = store.catalog.generation()
    store.refresh()
    assert store.catalog.generation() == before + 1
    tier = store.tier
    assert Tier.open(store.folder, store.catalog.meta(), last=tier) is tier
    store.refresh()
    assert store.catalog.generation() == before + 1


def test_vectors_that_are_no_numbers_get_no_codes(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    store.append(np.full((2000, DIM), np.nan, np.float32))
    with caplog.at_level(logging.WARNING):
        store.refresh()
    assert "all vectors go on being read" in caplog.text
    assert store.tier is None


# --- damage


def answers(store: Store) -> list[list[int]]:
    tier, rows = store.tier, store.rows
    queries = rows[:: ROWS // 5]
    if tier is None:
        return [faiss.nearest(rows, vector, 3)[1].tolist() for vector in queries]
    return [tier.nearest(rows, vector, 3, exact=faiss.nearest)[1].tolist() for vector in queries]


def test_damage_is_noticed_before_the_library_reads_it_and_repaired_by_the_next_writer(store: Store) -> None:
    coded(store, random_rows(ROWS))
    right = answers(store)
    whole = store.file.read_bytes()
    places = [0, 9, 30, 70, len(whole) // 2, len(whole) - 70]
    broken = [b"", b"something else", whole[:-1], whole[: len(whole) // 2], whole + b"\0"]
    broken += [whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :] for at in places]
    for content in broken:
        file = store.file
        file.unlink()  # a reader may have it mapped
        file.write_bytes(content)
        assert answers(store) == right
        store.refresh()
        assert store.file.name != file.name
        assert answers(store) == right


def test_what_can_neither_be_read_nor_deleted_is_no_error(store: Store) -> None:
    tier = coded(store, random_rows(ROWS))
    right = answers(store)
    store.file.unlink()
    tier.file.mkdir()
    assert tier.nearest(store.rows, store.rows[0], 3, exact=faiss.nearest)[1].tolist() == right[0]
    store.refresh()
    assert answers(store) == right
    again = store.tier
    assert again is not None
    assert again.file != tier.file


def test_codes_that_are_gone_are_made_anew(store: Store) -> None:
    tier = coded(store, random_rows(ROWS))
    store.file.unlink()
    exact = Watched()
    tier.nearest(store.rows, random_rows(1)[0], 3, exact=exact)
    assert exact.seen == [ROWS]
    assert store.tier is None
    store.refresh()
    assert store.tier is not None


def test_a_sound_file_of_something_else_is_not_used(store: Store) -> None:
    coded(store, random_rows(ROWS))
    file = store.file
    arrays = {name: array.copy() for name, array in open_bundle(file).items()}
    more = faiss.Codes.learn(random_rows(300))
    more.add(random_rows(2 * ROWS, seed=1))
    others = [
        {"codes": arrays["codes"]},
        {"about": arrays["about"]},
        {"about": np.frombuffer(b"{}", np.uint8), "codes": arrays["codes"]},
        {"about": arrays["about"], "codes": np.frombuffer(b"no index at all", np.uint8)},
        {"about": arrays["about"], "codes": more.dump()},
    ]
    right = answers(store)
    for other in others:
        file.unlink()
        write_bundle(file, other)
        assert answers(store) == right


# --- in a whole memory


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes are used however few rows there are."""
    monkeypatch.setattr(approximate, "_FEWEST", 1)
    monkeypatch.setattr(approximate, "_TOO_WIDE", 1)


def notes(root: Path, count: int) -> None:
    root.mkdir(exist_ok=True)
    random = np.random.default_rng(5)
    words = [f"word{number}" for number in range(60)]
    for number in range(count):
        body = " ".join(random.choice(words, 12))
        (root / f"{number:03}.md").write_text(f"---\nname: note {number}\n---\n{body}\n", encoding="utf-8")


def opened(base: Path) -> Collection:
    return Collection(base / "memory", Scope.PROJECT, cache=base / "cache", max_file_bytes=1 << 20, exact_rows=200)


@pytest.fixture
def memory(tmp_path: Path, eager: None) -> Iterator[Collection]:
    notes(tmp_path / "memory", 400)
    collection = opened(tmp_path)
    collection.sync_words()
    yield collection
    collection.close()


ENCODER = HashingEncoder(64)


def test_an_answer_is_never_kept_waiting_for_codes(memory: Collection) -> None:
    memory.sync_vectors(ENCODER, limit=10_000)
    assert memory.snapshot().tier is None
    memory.sync_vectors(ENCODER)
    tier = memory.snapshot().tier
    assert tier is not None
    tier.file.unlink()  # it has been read by now
    exact = Watched()
    tier.nearest(memory.snapshot().rows, ENCODER.encode_query("word1"), 3, exact=exact)
    assert 0 < sum(exact.seen) < 400


def nearest_topics(
    snapshot: Snapshot, vector: Vector, k: int, allowed: NDArray[np.bool_] | None = None
) -> tuple[list[int], list[float]]:
    """Positions and cosines of the k best by meaning alone."""
    if allowed is None:
        allowed = np.ones(len(snapshot), np.bool_)
    words = Words(np.zeros(len(snapshot)), np.zeros(len(snapshot), np.int64))
    found = fuse(snapshot, words, vector, k, allowed=allowed, products=faiss.products).best
    return [scored.position for scored in found], [scored.cosine or 0.0 for scored in found]


@pytest.mark.parametrize("with_codes", [True, False])
@pytest.mark.parametrize("allowed_share", [1.0, 0.5, 0.15, 0.03, 0.0])
def test_as_many_allowed_topics_are_found_as_there_are(
    memory: Collection, allowed_share: float, with_codes: bool
) -> None:
    memory.sync_vectors(ENCODER)
    snapshot = memory.snapshot()
    assert snapshot.tier is not None
    assert len(snapshot.chunk_row) == len(snapshot)
    if not with_codes:
        snapshot = dataclasses.replace(snapshot, tier=None)
    allowed = np.random.default_rng(3).random(len(snapshot)) < allowed_share
    shares = []
    for number in range(20):
        vector = ENCODER.encode_query(f"word{number} word{number + 20} word{number + 40}")
        positions, cosines = nearest_topics(snapshot, vector, 10, allowed)
        right = snapshot.rows[snapshot.chunk_row] @ vector
        np.testing.assert_allclose(cosines, right[positions], atol=1e-6)
        assert allowed[positions].all()
        assert len(positions) == len(set(positions)) == min(10, np.count_nonzero(allowed))
        assert (np.diff(cosines) <= 0).all()
        best = np.sort(right[allowed])[::-1][:10]
        shares.append(np.mean(np.asarray(cosines) >= best[-1] - 1e-6) if len(best) else 1.0)
    assert np.mean(shares) >= (0.98 if with_codes else 1.0)


def test_a_changed_file_is_found_at_once_without_new_codes(memory: Collection) -> None:
    memory.sync_vectors(ENCODER)
    before = memory.snapshot().tier
    (memory.root / "007.md").write_text("---\nname: seven\n---\nzeppelins need hydrogen\n", encoding="utf-8")
    memory.sync_words()
    memory.sync_vectors(ENCODER)
    snapshot = memory.snapshot()
    assert snapshot.tier is before
    positions, _ = nearest_topics(snapshot, ENCODER.encode_query("zeppelins hydrogen"), 3)
    assert snapshot.paths[positions[0]] == "007.md"
    assert len(positions) == 3


@pytest.mark.parametrize(("exact_rows", "files"), [(256, 1), (300, 0)])
def test_the_setting_says_from_how_many_vectors_on_codes_are_made(tmp_path: Path, exact_rows: int, files: int) -> None:
    notes(tmp_path / "memory", 300)
    index = IndexConfig(cache=str(tmp_path / "cache"), exact_rows=exact_rows)
    config = Config(index=index, encoder=EncoderConfig(model="hashing"))
    with Memory.open(tmp_path / "memory", config=config, background=False) as memory:
        memory.reindex()
        assert len(list((tmp_path / "cache").rglob("*.codes"))) == files
        assert memory.recall("word1 word2 word3", k=3).hits


OTHER = """
import sys
from pathlib import Path
from recall.index.collection import Collection
from recall.index.hashing import HashingEncoder
from recall.store.topics import Scope
base = Path(sys.argv[1])
index = Collection(base / "memory", Scope.PROJECT, cache=base / "cache", max_file_bytes=1 << 20, exact_rows=200)
index.sync_words()
index.sync_vectors(HashingEncoder(64))
tier = index.snapshot().tier
print(tier.file.name, tier.count)
index.close()
"""


def test_another_process_makes_codes_and_this_one_uses_them(memory: Collection, tmp_path: Path) -> None:
    def elsewhere() -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", OTHER, tmp_path],
            env=os.environ | {"PYTHONPATH": str(Path(recall.__file__).parents[1])},
            capture_output=True,
            check=True,
            timeout=LONG_S,
            encoding="utf-8",
        )
        return done.stdout.split()

    name, count = elsewhere()
    first = memory.snapshot()
    assert first.tier is not None
    assert (first.tier.file.name, str(first.tier.count)) == (name, count)
    vector = ENCODER.encode_query("word1 word2")
    near = nearest_topics(first, vector, 5)
    notes(tmp_path / "memory", 600)
    assert elsewhere()[0] != name  # more than a fifth is new
    assert near == nearest_topics(first, vector, 5)  # its codes are deleted, and still there for it
    second = memory.snapshot()
    assert second.tier is not None
    assert second.tier.file.name != name
