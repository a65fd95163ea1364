"""Whatever step of the index the process or the power ends at: the next one answers like a rebuild, and asks the model
for no vector that a commit had reached the disk with.

All stops and losses are enumerated (tests.power), not drawn by chance.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from recall import Config, Encoder, Memory
from recall.config import IndexConfig, SearchConfig
from recall.index import embed, sync
from recall.index.base import Vector, Vectors
from recall.index.catalog import Catalog
from recall.index.collection import Collection
from recall.index.folder import CATALOG_FILE
from recall.index.hashing import HashingEncoder
from recall.index.onnx import OnnxEncoder
from recall.store.disk import Step
from recall.store.topics import Scope
from tests.power import LOG, Moment, State, Tape, put

QUERIES = ("cats eat fish, 周二部署上线 thing4", "something renewed")

Answer = list[list[tuple[str, float]]]


class Asked:
    """An encoder that keeps account of what it is asked for, and asks the real one only once."""

    def __init__(self, encoder: Encoder, known: dict[str, Vector]) -> None:
        self.name, self.fingerprint, self.dim = encoder.name, encoder.fingerprint, encoder.dim
        self.chunk_tokens, self.floor = encoder.chunk_tokens, encoder.floor
        self.texts: list[str] = []
        self._encoder, self._known = encoder, known

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        for text in texts:
            if text not in self._known:
                self._known[text] = self._encoder.encode_documents([text])[0]
        return np.stack([self._known[text] for text in texts])

    def encode_query(self, text: str) -> Vector:
        if f"query {text}" not in self._known:
            self._known[f"query {text}"] = self._encoder.encode_query(text)
        return self._known[f"query {text}"]


@dataclass
class Bench:
    """Folders and an encoder to try things with."""

    base: Path
    encoder: Encoder = field(default_factory=lambda: HashingEncoder(64))
    known: dict[str, Vector] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root, self.cache = self.base / "memory", self.base / "cache"
        self.root.mkdir()

    def write(self, path: str, body: str, *, root: Path | None = None) -> None:
        file = (root or self.root) / path
        file.write_text(f"---\nname: {file.stem}\n---\n{body}\n", encoding="utf-8")

    def fill(self, count: int, *, root: Path | None = None) -> None:
        for number in range(count):
            about = ("cats eat fish", "周二部署上线，周五回滚", "a dashboard behind the proxy")[number % 3]
            self.write(f"topic{number}.md", f"{about}, thing{number}", root=root)

    def collection(self, cache: Path | None = None, root: Path | None = None) -> Collection:
        return Collection(root or self.root, Scope.PROJECT, cache=cache or self.cache, max_file_bytes=1 << 20)

    def asked(self) -> Asked:
        return Asked(self.encoder, self.known)

    @contextmanager
    def opened(self, root: Path | None = None) -> Iterator[Collection]:
        with closing(self.collection(root=root)) as collection:
            yield collection

    def bring_up_to_date(self, collection: Collection) -> None:
        collection.sync_words()
        collection.sync_vectors(self.asked())

    def index(self, root: Path | None = None) -> None:
        with self.opened(root) as collection:
            self.bring_up_to_date(collection)

    def answers(self, cache: Path, root: Path, encoder: Encoder) -> Answer:
        """Of a memory that was brought up to date."""
        config = Config(search=SearchConfig(k=100, floor=-10.0), index=IndexConfig(cache=str(cache)))
        with Memory.open(root, layout="plain", config=config, encoder=encoder, background=False) as memory:
            report = memory.reindex()
            assert (report.failed, report.unembedded) == ((), ())
            assert "temporary" not in report.note
            return [sorted((hit.topic.id, hit.score) for hit in memory.recall(query).hits) for query in QUERIES]


def digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()


class Held:
    """Which vectors the commits in a state name, made by one model."""

    def __init__(self, fingerprint: str) -> None:
        self._fingerprint = fingerprint
        self._seen: dict[tuple[bytes, bytes | None], set[bytes]] = {}

    def of(self, state: State) -> set[bytes]:
        found: set[bytes] = set()
        for name, content in state.items():
            if name.endswith(CATALOG_FILE) and content:
                log = state.get(f"{name.removesuffix(CATALOG_FILE)}{LOG}")
                if (content, log) not in self._seen:
                    self._seen[content, log] = self._read(content, log)
                found |= self._seen[content, log]
        return found

    def _read(self, content: bytes, log: bytes | None) -> set[bytes]:
        with TemporaryDirectory() as name:
            put({CATALOG_FILE: content} | ({LOG: log} if log is not None else {}), Path(name))
            with closing(sqlite3.connect(Path(name, CATALOG_FILE))) as read:
                tables = read.execute("SELECT COUNT(*) FROM sqlite_master WHERE type = 'table'").fetchone()[0]
                meta = dict(read.execute("SELECT key, value FROM meta")) if tables else {}
                if meta.get("encoder") != self._fingerprint:
                    return set()
                return {row[0] for row in read.execute("SELECT digest FROM vectors")}


def every_state(moments: Sequence[Moment]) -> Iterator[tuple[str, State]]:
    """Each state that a stop or a loss of power can leave, once, with the step before it."""
    seen: set[int] = set()
    for number, moment in enumerate(moments):
        for what, states in (("stopped", [moment.stopped()]), ("without power", moment.without_power())):
            for state in states:
                key = hash(tuple(state.items()))
                if key not in seen:
                    seen.add(key)
                    yield f"{what} after step {number}, {moment.step}", state


def check_all(bench: Bench, moments: Sequence[Moment], *, roots: Sequence[Path] = (), keeps: bool = True) -> int:
    """Goes on from every state, and compares with a rebuild.

    Args:
        bench: the folder as it is now.
        moments: of a tape.
        roots: memories to ask; the bench's unless given.
        keeps: whether no vector that a commit names may be made anew.

    Returns:
        How many states there were.
    """
    held, count = Held(bench.encoder.fingerprint), 0
    expected: Mapping[Path, Answer] = {}
    for root in roots or [bench.root]:
        fresh = bench.base / "fresh"
        expected = {**expected, root: bench.answers(fresh, root, bench.asked())}
        shutil.rmtree(fresh)
    assert any(any(answer) for answer in expected.values())
    for what, state in every_state(moments):
        for root, answer in expected.items():
            cache = put(state, bench.base / "state")
            encoder = bench.asked()
            with closing(bench.collection(cache, root)) as collection:
                collection.snapshot()  # what a search finds before anybody looked at the folder
                folder = collection.folder
            same_answers(bench.answers(cache, root, encoder), answer, what)
            again = {text for text in encoder.texts if digest(text) in held.of(state)}
            assert not (keeps and again), f"{what}: made anew: {again}"
            assert derived(folder) == named(folder), what
            shutil.rmtree(cache)
        count += 1
    return count


def derived(folder: Path) -> set[str]:
    return {file.name for suffix in ("postings", "vectors") for file in folder.glob(f"*.{suffix}")}


def named(folder: Path) -> set[str]:
    with closing(sqlite3.connect(folder / CATALOG_FILE)) as read:
        segments = read.execute("SELECT name || '.postings' FROM segments")
        return {name for (name,) in [*segments, *read.execute("SELECT value FROM meta WHERE key = 'vectors'")]}


def same_answers(found: Answer, expected: Answer, what: str) -> None:
    for one, other in zip(found, expected, strict=True):
        assert [name for name, _ in one] == [name for name, _ in other], what
        np.testing.assert_allclose([score for _, score in one], [score for _, score in other], atol=1e-6, err_msg=what)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Small steps, so that a small folder goes through all of them, on a disk that flushes fast if there is one."""
    monkeypatch.setattr(sync, "_BATCH_FILES", 5)
    monkeypatch.setattr(sync, "_FIRST_FILES", 5)
    monkeypatch.setattr(embed, "_STEP_CHUNKS", 4)
    monkeypatch.setattr(embed, "_WORTH_ASKING", 0)
    memory_disk = Path("/dev/shm")
    with TemporaryDirectory(dir=memory_disk if os.access(memory_disk, os.W_OK) else None) as name:
        yield Bench(Path(name).resolve())


def recorded(bench: Bench, work: Callable[[], object]) -> list[Moment]:
    tape = Tape(bench.cache)
    with tape.recording():
        work()
    return tape.moments


def steps_on(moments: Sequence[Moment], step: Step, suffix: str) -> int:
    return sum(moment.step.startswith(step) and moment.step.endswith(suffix) for moment in moments)


def test_a_first_index(bench: Bench) -> None:
    bench.fill(9)
    assert check_all(bench, recorded(bench, bench.index)) > 70


@pytest.mark.model
def test_a_first_index_by_the_real_model(bench: Bench) -> None:
    bench.encoder = OnnxEncoder()
    bench.fill(3)
    assert check_all(bench, recorded(bench, bench.index)) > 30


@pytest.mark.parametrize("checkpoint_pages", [1000, 1])
def test_changed_moved_deleted_and_new_files(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, checkpoint_pages: int
) -> None:
    bench.fill(5)
    bench.index()
    connect = Catalog._connect

    def with_checkpoints(catalog: Catalog) -> sqlite3.Connection:
        connection = connect(catalog)
        connection.execute(f"PRAGMA wal_autocheckpoint = {checkpoint_pages}")
        return connection

    def work() -> None:
        with bench.opened() as collection:
            bench.write("topic1.md", "something renewed")
            (bench.root / "topic2.md").rename(bench.root / "moved.md")
            (bench.root / "topic3.md").unlink()
            bench.write("new.md", "new, thing4")
            bench.bring_up_to_date(collection)
            bench.write("topic1.md", "something renewed again")
            (bench.root / "moved.md").unlink()
            bench.bring_up_to_date(collection)

    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "_connect", with_checkpoints)
        moments = recorded(bench, work)
    assert check_all(bench, moments) > 45


@pytest.mark.parametrize(("most_segments", "changed"), [(2, 1), (100, 2)])
def test_postings_that_are_merged(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, most_segments: int, changed: int
) -> None:
    """Because there are many files of them; because much in them is dead."""
    monkeypatch.setattr(sync, "_MAX_SEGMENTS", most_segments)
    monkeypatch.setattr(sync, "_BATCH_FILES", 2)
    monkeypatch.setattr(sync, "_FIRST_FILES", 2)
    bench.fill(3)
    bench.index()

    def work() -> None:
        with bench.opened() as collection:
            for number in range(3):
                for topic in range(changed):
                    bench.write(f"topic{topic}.md", f"something renewed {number} times, thing{topic}")
                bench.bring_up_to_date(collection)

    moments = recorded(bench, work)
    assert steps_on(moments, Step.DELETE, ".postings") >= 3
    assert check_all(bench, moments) > 140


def test_vectors_that_are_compacted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "_SPARE_ROWS", 2)
    bench.fill(6)
    bench.index()

    def work() -> None:
        with bench.opened() as collection:
            for number in range(3):
                for topic in range(3):
                    bench.write(f"topic{topic}.md", f"something renewed {number} times, thing{topic}")
                bench.bring_up_to_date(collection)

    moments = recorded(bench, work)
    assert steps_on(moments, Step.DELETE, ".vectors") == 1
    assert check_all(bench, moments) > 100


def test_another_model(bench: Bench) -> None:
    bench.fill(6)
    bench.encoder = HashingEncoder(32)
    bench.index()
    bench.encoder, bench.known = HashingEncoder(64), {}
    moments = recorded(bench, bench.index)
    assert steps_on(moments, Step.RENAME, ".vectors") == 1
    assert check_all(bench, moments) > 20


def test_back_to_the_model_before(bench: Bench) -> None:
    bench.fill(6)
    for dim in (32, 64):
        bench.encoder, bench.known = HashingEncoder(dim), {}
        bench.index()
    bench.encoder, bench.known = HashingEncoder(32), {}
    moments = recorded(bench, bench.index)
    assert not bench.known  # what was kept is taken back
    assert steps_on(moments, Step.RENAME, ".vectors") == 1
    assert check_all(bench, moments) > 20


def test_vectors_that_another_memory_has(bench: Bench) -> None:
    bench.fill(5)
    other = bench.base / "other"
    shutil.copytree(bench.root, other)
    bench.write("own.md", "something renewed", root=other)

    def work() -> None:
        bench.index()
        bench.index(other)

    moments = recorded(bench, work)
    assert check_all(bench, moments, roots=[other]) > 130


def test_everything_made_anew(bench: Bench) -> None:
    bench.fill(6)
    bench.index()

    def work() -> None:
        with bench.opened() as collection:
            collection.rebuild()
            collection.sync_vectors(bench.asked())

    moments = recorded(bench, work)
    assert steps_on(moments, Step.DELETE, ".vectors") == 1
    assert check_all(bench, moments, keeps=False) > 60


def test_a_second_stop_while_the_first_is_repaired(bench: Bench) -> None:
    bench.fill(5)
    states = [state for _, state in every_state(recorded(bench, bench.index))]
    count = 0
    for state in states[9::20]:
        shutil.rmtree(bench.cache)
        put(state, bench.cache)
        count += check_all(bench, recorded(bench, bench.index))
    assert count > 60
