"""Words and meaning together, against plain arithmetic over every topic."""

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from recall.index import faiss, flat
from recall.index.base import Encoder, Products, Vector, Vectors, usable
from recall.index.collection import Collection
from recall.index.hashing import HashingEncoder
from recall.index.snapshot import Snapshot
from recall.search.fusion import fuse
from recall.search.lexical import Words, match_words
from recall.search.retriever import Hybrid
from recall.search.scored import Scored
from recall.search.types import Filter
from recall.store.topics import Scope
from recall.text.chunks import chunk_topic

Memory = Callable[..., AbstractContextManager[Collection]]


def worded(coverage: NDArray[np.float64]) -> Words:
    """What words would say that cover the topics so far."""
    return Words(coverage, np.zeros(len(coverage), np.int64))


Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

WORDS = [
    "deploy", "gateway", "release", "backup", "coffee", "sugar", "zeppelin", "ledger", "report", "peanut",
    "部署", "流程", "上线", "回滚", "备份", "咖啡", "花生", "周报", "证书", "数据库",
]  # fmt: skip
QUERIES = [
    "deploy gateway",
    "部署流程 上线 ledger",
    "zeppelin",
    " ".join(WORDS),
]


def small_encoder() -> Encoder:
    """Reads so little at once that short bodies have several chunks."""
    encoder = HashingEncoder(64)
    encoder.chunk_tokens = 10
    return encoder


def sentence(chance: random.Random, most: int = 5) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.randint(1, most)))


def note(chance: random.Random) -> str:
    """Some notes are short and alike, some have several chunks, and chunks repeat between notes."""
    title = chance.choice(["deploy", "咖啡", "note", "!!!"])
    body = "\n".join(sentence(chance) for _ in range(chance.choice([0, 1, 1, 2, 6])))
    return f"---\nname: '{title}'\ndescription: {chance.choice(['', sentence(chance, 2)])}\n---\n{body or '…'}\n"


@dataclass(frozen=True)
class Corpus:
    """A memory with the vectors of its chunks, made from the texts; None where a topic was left without any."""

    snapshot: Snapshot
    chunks: list[Vectors | None]

    def right(self, coverage: Floats, vector: Vector | None, allowed: Mask) -> dict[int, Scored]:
        """Every allowed topic that can be judged, by position."""
        found = {}
        for at in np.flatnonzero(allowed).tolist():
            share, rows = float(coverage[at]), self.chunks[at]
            if rows is not None and vector is not None and vector.any() and rows.any():
                cosines = np.where(usable(rows), rows @ vector, -2)
                best = float(cosines.max())
                found[at] = Scored(best + 0.5 * share, at, best, share, int(cosines.argmax()), 0)
            elif share:
                found[at] = Scored(share, at, None, share, 0, 0)
        return found

    def check(self, found: list[Scored], right: dict[int, Scored], k: int) -> None:
        """The right scores in the right order, each with its right parts; which of two equals comes first is open."""
        best = sorted((scored.score for scored in right.values()), reverse=True)[:k]
        assert [scored.score for scored in found] == pytest.approx(best, abs=1e-5)
        assert len({scored.position for scored in found}) == len(found)
        for scored in found:
            expected = right[scored.position]
            assert (scored.score, scored.coverage) == pytest.approx((expected.score, expected.coverage), abs=1e-5)
            assert scored.cosine == (None if expected.cosine is None else pytest.approx(expected.cosine, abs=1e-5))


@pytest.fixture(scope="module", params=["all vectors", "some vectors", "no vectors"])
def corpus(request: pytest.FixtureRequest, memory: Memory) -> Iterator[Corpus]:
    """Three hundred topics, more than are looked at in the first step."""
    chance, encoder = random.Random(7), small_encoder()
    files = {f"{number}.md": note(chance) for number in range(300)}
    mtimes = {path: (1_700_000_000 + number) * 10**9 for number, path in enumerate(files)}
    limit = {"all vectors": None, "some vectors": 200, "no vectors": 0}[request.param]
    with memory(files, mtimes=mtimes) as collection:
        collection.sync_vectors(encoder, limit=limit)
        snapshot = collection.snapshot()
        owners = set(snapshot.chunk_owner.tolist())
        assert {None: 280, 200: 50, 0: 0}[limit] <= len(owners) <= {None: 300, 200: 150, 0: 0}[limit]
        chunks: list[Vectors | None] = [None] * len(snapshot)
        for at, topic in snapshot.topics(sorted(owners)).items():
            texts = chunk_topic(topic.title, topic.description, topic.body, budget=encoder.chunk_tokens)
            chunks[at] = encoder.encode_documents([chunk.text for chunk in texts])
        yield Corpus(snapshot, chunks)


@pytest.fixture(params=[flat.products, faiss.products], ids=["flat", "faiss"])
def products(request: pytest.FixtureRequest) -> Products:
    found: Products = request.param
    return found


@pytest.mark.parametrize("query", QUERIES)
def test_the_best_topics_are_those_of_plain_arithmetic(corpus: Corpus, products: Products, query: str) -> None:
    snapshot = corpus.snapshot
    chance = np.random.default_rng(len(query))
    (words,) = match_words([snapshot], query)
    vector = small_encoder().encode_query(query)
    for share in (1.0, 0.5, 0.02):
        allowed = chance.random(len(snapshot)) < share
        right = corpus.right(words.coverage, vector, allowed)
        for k in (1, 5, 1000):
            corpus.check(fuse(snapshot, words, vector, k, allowed=allowed, products=products).best, right, k)


def test_the_best_topics_are_found_whatever_the_words_say(corpus: Corpus, products: Products) -> None:
    """Coverages and a vector of pure chance: words and meaning contradict each other as they like."""
    snapshot = corpus.snapshot
    for seed in range(60):
        chance = np.random.default_rng(seed)
        strength = chance.choice([0.3, 0.5, 1.66])  # from about as strong as the cosines to the greatest there is
        coverage = np.where(chance.random(len(snapshot)) < chance.random(), chance.random(len(snapshot)) * strength, 0)
        vector = chance.normal(size=64).astype(np.float32)
        vector /= np.linalg.norm(vector)
        allowed = chance.random(len(snapshot)) < 0.7
        k = int(chance.choice([1, 2, 3, 20]))
        right = corpus.right(coverage, vector, allowed)
        corpus.check(fuse(snapshot, worded(coverage), vector, k, allowed=allowed, products=products).best, right, k)


def test_the_best_chunk_is_named(corpus: Corpus, products: Products) -> None:
    snapshot = corpus.snapshot
    everything = np.ones(len(snapshot), np.bool_)
    vector = small_encoder().encode_query("zeppelin 花生 ledger")
    for scored in fuse(
        snapshot, worded(np.zeros(len(snapshot))), vector, 300, allowed=everything, products=products
    ).best:
        rows = corpus.chunks[scored.position]
        assert rows is not None
        assert float(rows[scored.chunk] @ vector) == pytest.approx(scored.cosine, abs=1e-6)


@pytest.mark.parametrize("vector", [None, np.zeros(64, np.float32)], ids=["no vector", "zero vector"])
def test_without_a_vector_of_the_query_words_alone_judge(
    corpus: Corpus, products: Products, vector: Vector | None
) -> None:
    snapshot = corpus.snapshot
    (words,) = match_words([snapshot], "deploy 咖啡")
    everything = np.ones(len(snapshot), np.bool_)
    found = fuse(snapshot, words, vector, 50, allowed=everything, products=products).best
    corpus.check(found, corpus.right(words.coverage, None, everything), 50)
    assert [scored.cosine for scored in found] == [None] * 50


@pytest.mark.parametrize("k", [0, -1, -5])
@pytest.mark.parametrize("query", ["deploy", "nothing known here"])
def test_asking_for_nothing_gives_nothing(corpus: Corpus, products: Products, query: str, k: int) -> None:
    snapshot = corpus.snapshot
    (words,) = match_words([snapshot], query)
    everything = np.ones(len(snapshot), np.bool_)
    for vector in (None, small_encoder().encode_query(query)):
        assert fuse(snapshot, words, vector, k, allowed=everything, products=products).best == []


def test_a_memory_without_topics_has_no_best(memory: Memory, products: Products) -> None:
    with memory({}) as collection:
        none = np.zeros(0, np.bool_)
        vector = small_encoder().encode_query("deploy")
        assert fuse(collection.snapshot(), worded(np.zeros(0)), vector, 5, allowed=none, products=products).best == []


def test_equal_topics_come_in_the_order_of_their_positions(memory: Memory, products: Products) -> None:
    encoder = small_encoder()
    same = {f"{number:03}/same.md": "---\nname: same\n---\nzeppelins\n" for number in range(70)}
    with memory(same) as collection:
        collection.sync_vectors(encoder)
        snapshot = collection.snapshot()
        (words,) = match_words([snapshot], "zeppelins")
        everything = np.ones(len(snapshot), np.bool_)
        vector = encoder.encode_query("zeppelins")
        for k in (1, 3, 60):
            found = fuse(snapshot, words, vector, k, allowed=everything, products=products).best
            assert [scored.position for scored in found] == list(range(k))


def test_a_topic_without_a_vector_is_judged_by_its_words_alone(memory: Memory, products: Products) -> None:
    """Words stand in for a cosine of half their coverage."""
    encoder = small_encoder()
    files = {"old.md": "---\nname: zeppelin\n---\n", "new.md": "---\nname: coffee\n---\n"}
    with memory(files, mtimes={"old.md": 10**18, "new.md": 2 * 10**18}) as collection:
        collection.sync_vectors(encoder, limit=1)
        snapshot = collection.snapshot()
        (words,) = match_words([snapshot], "zeppelin")
        everything = np.ones(2, np.bool_)
        found = fuse(snapshot, words, encoder.encode_query("zeppelin"), 2, allowed=everything, products=products).best
    best = found[0]
    assert snapshot.paths[best.position] == "old.md"
    assert best.cosine is None
    assert best.score == pytest.approx(best.coverage)
    assert found[1].cosine == pytest.approx(0, abs=0.3)


# --- over several memories


def test_hits_of_two_memories_are_ranked_together(memory: Memory, products: Products) -> None:
    encoder = small_encoder()
    files = {"a.md": "---\nname: zeppelin\n---\nzeppelin hydrogen 2\n", "b.md": "---\nname: coffee\n---\nsugar\n"}
    other = {"a.md": "---\nname: zeppelin\n---\nzeppelin 1\n", "c.md": "---\nname: peanut\n---\nallergy\n"}
    with memory(files) as project, memory(other, scope=Scope.USER) as user:
        project.sync_vectors(encoder)
        user.sync_vectors(encoder)
        hybrid = Hybrid(products, 0.2, encoder.fingerprint)
        snapshots = [project.snapshot(), user.snapshot()]
        vector = encoder.encode_query("zeppelin")
        found = hybrid.search(snapshots, "zeppelin", vector, 5)
        assert [hit.topic.id for hit in found.hits] == ["user:a.md", "a.md"]
        assert found.best == found.hits[0].score
        assert [hit.topic.id for hit in hybrid.search(snapshots, "zeppelin", vector, 1).hits] == ["user:a.md"]
        without = hybrid.search(snapshots, "zeppelin", vector, 5, wanted=Filter(frozenset({"user:a.md"})))
        assert [hit.topic.id for hit in without.hits] == ["a.md"]
        none = hybrid.search(snapshots, "zeppelin", vector, 5, wanted=Filter(frozenset({"user:a.md", "a.md"})))
        assert none.hits == ()
        assert none.best is not None
        assert none.best < 0.2


def test_vectors_of_another_model_are_not_compared(memory: Memory, products: Products) -> None:
    encoder = small_encoder()
    with memory({"a.md": "---\nname: zeppelin\n---\n"}) as collection:
        collection.sync_vectors(HashingEncoder(32))
        hybrid = Hybrid(products, 0.0, encoder.fingerprint)
        (hit,) = hybrid.search([collection.snapshot()], "zeppelin", encoder.encode_query("zeppelin"), 5).hits
        assert hit.cosine is None
        assert hit.lexical is not None
        assert hit.score == pytest.approx(hit.lexical)
