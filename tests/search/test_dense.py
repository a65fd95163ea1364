"""Ranking by meaning against plain arithmetic over every chunk."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recall.index import faiss, flat
from recall.index.base import Encoder, Products, Vector, usable
from recall.index.collection import Collection
from recall.index.hashing import HashingEncoder
from recall.index.snapshot import Snapshot
from recall.search.dense import Near, best_chunks, near_topics
from recall.text.chunks import chunk_topic

Memory = Callable[..., AbstractContextManager[Collection]]

SENTENCES = [
    "red green blue.",
    "deploy on Tuesdays.",
    "部署流程。",
    "周五不上线。",
    "coffee no sugar.",
    "!!! --- ???",
    "👍👍👍👍。",
]
BODIES = st.lists(st.sampled_from(SENTENCES), max_size=8).map("\n".join)
NOTES = st.lists(st.tuples(st.sampled_from(["red", "deploy", "部署", "!", "---"]), BODIES), max_size=7)
QUERIES = st.sampled_from(["red deploy", "周五部署", "coffee", "blue green sugar 流程", "zeppelin"])

few = settings(max_examples=12, deadline=None)


def small_encoder() -> Encoder:
    """Reads so little at once that short bodies have several chunks."""
    encoder = HashingEncoder(64)
    encoder.chunk_tokens = 10
    return encoder


@pytest.fixture(params=[flat.products, faiss.products], ids=["flat", "faiss"])
def products(request: pytest.FixtureRequest) -> Products:
    found: Products = request.param
    return found


def all_cosines(snapshot: Snapshot, vector: Vector, products: Products) -> Near:
    everything = np.ones(len(snapshot), np.bool_)
    return near_topics(
        snapshot, vector, allowed=everything, others=np.zeros(0, np.int64), k=len(everything), products=products
    )


class Best(NamedTuple):
    """What is right for one topic: its best cosine and the chunks that have it."""

    cosine: float
    chunks: set[int]


def right_topics(snapshot: Snapshot, encoder: Encoder, query: str) -> dict[int, Best]:
    """Every topic that says something to the model, by position; computed from the texts."""
    vector = encoder.encode_query(query)
    found = {}
    for at, topic in snapshot.topics(range(len(snapshot))).items():
        chunks = chunk_topic(topic.title, topic.description, topic.body, budget=encoder.chunk_tokens)
        rows = encoder.encode_documents([chunk.text for chunk in chunks])
        scores = {number: float(rows[number] @ vector) for number in np.flatnonzero(usable(rows))}
        if scores:
            best = max(scores.values())
            found[at] = Best(best, {int(number) for number, score in scores.items() if score > best - 1e-6})
    return found


def check(snapshot: Snapshot, vector: Vector, products: Products, right: dict[int, Best]) -> None:
    """Exactly the right topics are there, each with its best cosine and one of the chunks that reach it."""
    near = all_cosines(snapshot, vector, products)
    assert near.positions.tolist() == sorted(right)
    assert near.cosines.tolist() == pytest.approx([right[at].cosine for at in sorted(right)], abs=1e-6)
    for at, chunk in zip(sorted(right), best_chunks(snapshot, vector, near.positions), strict=True):
        assert chunk in right[at].chunks


def files(notes: list[tuple[str, str]]) -> dict[str, str]:
    return {f"{number}.md": f"---\nname: '{title}'\n---\n{body}\n" for number, (title, body) in enumerate(notes)}


@few
@given(notes=NOTES, query=QUERIES)
@example(notes=[("!", "---\n" * 9 + "red green blue")] * 3, query="red deploy")
def test_nearness_is_that_of_plain_arithmetic(memory: Memory, notes: list[tuple[str, str]], query: str) -> None:
    encoder = small_encoder()
    with memory(files(notes)) as collection:
        collection.sync_vectors(encoder)
        snapshot = collection.snapshot()
        for products in (flat.products, faiss.products):
            check(snapshot, encoder.encode_query(query), products, right_topics(snapshot, encoder, query))


def long_note(sentence: str, at: int) -> str:
    """A body of six chunks, one of which says something else."""
    lines = [f"line {number} of a long note about nothing" for number in range(6)]
    lines[at] = sentence
    return "\n".join(lines)


@pytest.mark.parametrize("at", [0, 3, 5])
def test_the_best_chunk_of_a_long_topic_is_named(memory: Memory, products: Products, at: int) -> None:
    encoder = small_encoder()
    notes = [("first", "deploy"), ("long", long_note("zeppelins need hydrogen", at)), ("last", "coffee")]
    with memory(files(notes)) as collection:
        collection.sync_vectors(encoder)
        snapshot = collection.snapshot()
        place = snapshot.paths.index("1.md")
        vector = encoder.encode_query("zeppelins hydrogen")
        assert int(np.argmax(all_cosines(snapshot, vector, products).cosines)) == place
        assert best_chunks(snapshot, vector, np.asarray([place])) == [at]


def test_a_chunk_that_says_nothing_to_the_model_keeps_its_number(memory: Memory, products: Products) -> None:
    """The first chunk holds only marks and has no vector; the second one is still number 1."""
    encoder = small_encoder()
    with memory(files([("!", "--- --- ---\nzeppelins")])) as collection:
        report = collection.sync_vectors(encoder)
        assert len(report.unembedded) == 1
        snapshot = collection.snapshot()
        vector = encoder.encode_query("zeppelins")
        assert all_cosines(snapshot, vector, products).positions.tolist() == [0]
        assert best_chunks(snapshot, vector, np.asarray([0])) == [1]


def test_topics_of_the_same_text_share_a_vector_and_are_equally_near(memory: Memory, products: Products) -> None:
    encoder = small_encoder()
    same = {f"{folder}/same.md": "---\nname: same\n---\nzeppelins\n" for folder in "abcd"}
    with memory({**same, "other.md": "---\nname: other\n---\ncoffee\n"}) as collection:
        report = collection.sync_vectors(encoder)
        assert (report.embedded, report.unembedded) == (2, ())
        snapshot = collection.snapshot()
        near = all_cosines(snapshot, encoder.encode_query("zeppelins"), products)
        assert len(near.positions) == 5
        best = near.positions[near.cosines == near.cosines.max()]
        assert {snapshot.paths[at] for at in best} == set(same)


def test_rows_of_texts_that_are_gone_are_not_found(memory: Memory, products: Products) -> None:
    encoder = small_encoder()
    with memory(files([("a", "zeppelins fly"), ("b", "coffee"), ("c", "tea")])) as collection:
        collection.sync_vectors(encoder)
        (collection.root / "0.md").unlink()
        (collection.root / "1.md").write_text("---\nname: b\n---\nballoons\n", encoding="utf-8")
        collection.sync_words()
        collection.sync_vectors(encoder)
        snapshot = collection.snapshot()
        assert len(snapshot.rows) > len(snapshot.chunk_row) == 2
        query = "zeppelins fly"
        check(snapshot, encoder.encode_query(query), products, right_topics(snapshot, encoder, query))


def test_without_vectors_nothing_is_near(memory: Memory, products: Products) -> None:
    encoder = small_encoder()
    vector = encoder.encode_query("deploy")
    with memory(files([("a", "deploy"), ("b", "coffee")])) as collection:
        assert all_cosines(collection.snapshot(), vector, products).positions.tolist() == []
        assert best_chunks(collection.snapshot(), vector, np.asarray([0, 1])) == [0, 0]
        collection.sync_vectors(encoder, limit=1)
        snapshot = collection.snapshot()
        near = all_cosines(snapshot, vector, products)
        assert near.positions.tolist() == np.flatnonzero(snapshot.embedded).tolist()


def test_a_damaged_row_hides_no_good_one(memory: Memory, products: Products) -> None:
    """What the bytes on the disk became is no number; the topic's other chunks still count."""
    encoder = small_encoder()
    notes = [("long", long_note("zeppelins", 3)), ("other", "deploy")]
    with memory(files(notes)) as collection:
        collection.sync_vectors(encoder)
        snapshot = collection.snapshot()
        long, other = (snapshot.paths.index(name) for name in ("0.md", "1.md"))
        rows = np.array(snapshot.rows)
        rows[snapshot.chunk_row[snapshot.chunk_owner == long][0]] = np.nan
        rows[snapshot.chunk_row[snapshot.chunk_owner == other]] = np.nan
        near = all_cosines(replace(snapshot, rows=rows), encoder.encode_query("zeppelins"), products)
    assert near.cosines[long] > 0.1
    assert np.isnan(near.cosines[other])
