"""Ranking by meaning against plain arithmetic over every chunk."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recall.index import faiss, flat
from recall.index.base import Encoder, usable
from recall.index.collection import Collection
from recall.index.hashing import HashingEncoder
from recall.index.snapshot import Snapshot
from recall.search.dense import Near, Nearest, cosines, nearest_topics
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


@pytest.fixture(params=[flat.nearest, faiss.nearest], ids=["flat", "faiss"])
def nearest(request: pytest.FixtureRequest) -> Nearest:
    found: Nearest = request.param
    return found


class Best(NamedTuple):
    """What is right for one topic: its best cosine and the chunks that have it."""

    cosine: float
    chunks: set[int]


def best_chunks(snapshot: Snapshot, encoder: Encoder, query: str) -> dict[int, Best]:
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


def check(near: Near, right: dict[int, Best]) -> None:
    """The topics of `near` have their best cosine and one of the chunks that reach it."""
    assert len(set(near.positions.tolist())) == len(near.positions) == len(near.cosines) == len(near.chunks)
    for at, cosine, chunk in zip(near.positions.tolist(), near.cosines.tolist(), near.chunks.tolist(), strict=True):
        assert cosine == pytest.approx(right[at].cosine, abs=1e-6)
        assert chunk in right[at].chunks


def everything(snapshot: Snapshot) -> NDArray[np.bool_]:
    return np.ones(len(snapshot), np.bool_)


def files(notes: list[tuple[str, str]]) -> dict[str, str]:
    return {f"{number}.md": f"---\nname: '{title}'\n---\n{body}\n" for number, (title, body) in enumerate(notes)}


@few
@given(notes=NOTES, query=QUERIES, count=st.integers(1, 9), data=st.data())
@example(notes=[("!", "---\n" * 9 + "red green blue")] * 3, query="red deploy", count=2, data=None)
def test_the_nearest_topics_are_those_of_plain_arithmetic(
    memory: Memory, notes: list[tuple[str, str]], query: str, count: int, data: st.DataObject | None
) -> None:
    encoder = small_encoder()
    with memory(files(notes)) as collection:
        collection.sync_vectors(encoder)
        snapshot = collection.snapshot()
        allowed = everything(snapshot)
        if data:
            allowed &= np.asarray(
                data.draw(st.lists(st.booleans(), min_size=len(allowed), max_size=len(allowed))), np.bool_
            )
        right = {at: best for at, best in best_chunks(snapshot, encoder, query).items() if allowed[at]}
        vector = encoder.encode_query(query)
        for nearest in (flat.nearest, faiss.nearest):
            near = nearest_topics(snapshot, vector, count, allowed=allowed, nearest=nearest)
            check(near, right)
            assert near.cosines.tolist() == pytest.approx(
                sorted((best.cosine for best in right.values()), reverse=True)[:count], abs=1e-6
            )


@few
@given(notes=NOTES, query=QUERIES)
def test_cosines_of_given_topics_are_those_of_plain_arithmetic(
    memory: Memory, notes: list[tuple[str, str]], query: str
) -> None:
    encoder = small_encoder()
    with memory(files(notes)) as collection:
        collection.sync_vectors(encoder)
        snapshot = collection.snapshot()
        right = best_chunks(snapshot, encoder, query)
        asked = np.arange(len(snapshot))[::2]
        near = cosines(snapshot, encoder.encode_query(query), asked)
        check(near, right)
        assert near.positions.tolist() == [at for at in asked.tolist() if at in right]


def long_note(sentence: str, at: int) -> str:
    """A body of six chunks, one of which says something else."""
    lines = [f"line {number} of a long note about nothing" for number in range(6)]
    lines[at] = sentence
    return "\n".join(lines)


@pytest.mark.parametrize("at", [0, 3, 5])
def test_the_best_chunk_of_a_long_topic_is_named(memory: Memory, nearest: Nearest, at: int) -> None:
    encoder = small_encoder()
    notes = [("first", "deploy"), ("long", long_note("zeppelins need hydrogen", at)), ("last", "coffee")]
    with memory(files(notes)) as collection:
        collection.sync_vectors(encoder)
        snapshot = collection.snapshot()
        place = snapshot.paths.index("1.md")
        vector = encoder.encode_query("zeppelins hydrogen")
        near = nearest_topics(snapshot, vector, 1, allowed=everything(snapshot), nearest=nearest)
        assert (near.positions.tolist(), near.chunks.tolist()) == ([place], [at])
        near = cosines(snapshot, vector, np.asarray([place]))
        assert near.chunks.tolist() == [at]


def test_a_chunk_that_says_nothing_to_the_model_keeps_its_number(memory: Memory, nearest: Nearest) -> None:
    """The first chunk holds only marks and has no vector; the second one is still number 1."""
    encoder = small_encoder()
    with memory(files([("!", "--- --- ---\nzeppelins")])) as collection:
        report = collection.sync_vectors(encoder)
        assert len(report.unembedded) == 1
        snapshot = collection.snapshot()
        vector = encoder.encode_query("zeppelins")
        assert nearest_topics(snapshot, vector, 1, allowed=everything(snapshot), nearest=nearest).chunks.tolist() == [1]
        assert cosines(snapshot, vector, np.asarray([0])).chunks.tolist() == [1]


def test_topics_of_the_same_text_share_a_vector_and_are_all_found(memory: Memory, nearest: Nearest) -> None:
    encoder = small_encoder()
    same = {f"{folder}/same.md": "---\nname: same\n---\nzeppelins\n" for folder in "abcd"}
    with memory({**same, "other.md": "---\nname: other\n---\ncoffee\n"}) as collection:
        report = collection.sync_vectors(encoder)
        assert (report.embedded, report.unembedded) == (2, ())
        snapshot = collection.snapshot()
        vector = encoder.encode_query("zeppelins")
        for count in (1, 3, 4, 5):
            near = nearest_topics(snapshot, vector, count, allowed=everything(snapshot), nearest=nearest)
            paths = [snapshot.paths[at] for at in near.positions]
            assert len(paths) == count
            assert set(paths[:4]) <= set(same)


def test_a_topic_with_many_good_chunks_leaves_room_for_others(memory: Memory, nearest: Nearest) -> None:
    """The nearest forty rows all belong to one topic."""
    encoder = small_encoder()
    notes = [("long", "\n".join(f"zeppelins zeppelins zeppelins number{number}" for number in range(40)))]
    notes += [(f"note{number}", f"coffee zeppelins {number}") for number in range(5)]
    with memory(files(notes)) as collection:
        collection.sync_vectors(encoder)
        snapshot = collection.snapshot()
        vector = encoder.encode_query("zeppelins")
        near = nearest_topics(snapshot, vector, 3, allowed=everything(snapshot), nearest=nearest)
        right = best_chunks(snapshot, encoder, "zeppelins")
        check(near, right)
        assert near.cosines.tolist() == pytest.approx(sorted((b.cosine for b in right.values()), reverse=True)[:3])


def test_rows_of_texts_that_are_gone_are_not_found(memory: Memory, nearest: Nearest) -> None:
    encoder = small_encoder()
    with memory(files([("a", "zeppelins fly"), ("b", "coffee"), ("c", "tea")])) as collection:
        collection.sync_vectors(encoder)
        (collection.root / "0.md").unlink()
        (collection.root / "1.md").write_text("---\nname: b\n---\nballoons\n", encoding="utf-8")
        collection.sync_words()
        collection.sync_vectors(encoder)
        snapshot = collection.snapshot()
        assert len(snapshot.rows) > len(snapshot.chunk_row) == 2
        vector = encoder.encode_query("zeppelins fly")
        near = nearest_topics(snapshot, vector, 9, allowed=everything(snapshot), nearest=nearest)
        check(near, best_chunks(snapshot, encoder, "zeppelins fly"))
        assert len(near.positions) == 2


def test_without_vectors_nothing_is_near(memory: Memory, nearest: Nearest) -> None:
    encoder = small_encoder()
    vector = encoder.encode_query("deploy")
    with memory(files([("a", "deploy"), ("b", "coffee")])) as collection:
        snapshot = collection.snapshot()
        assert len(cosines(snapshot, vector, np.asarray([0, 1])).positions) == 0
        collection.sync_vectors(encoder, limit=1)
        snapshot = collection.snapshot()
        for near in (
            nearest_topics(snapshot, vector, 5, allowed=everything(snapshot), nearest=nearest),
            cosines(snapshot, vector, np.asarray([0, 1])),
        ):
            assert near.positions.tolist() == np.flatnonzero(snapshot.embedded).tolist()


def test_when_nothing_is_allowed_nothing_is_near(memory: Memory, nearest: Nearest) -> None:
    encoder = small_encoder()
    with memory(files([("a", "deploy"), ("b", "coffee")])) as collection:
        collection.sync_vectors(encoder)
        snapshot = collection.snapshot()
        near = nearest_topics(
            snapshot, encoder.encode_query("deploy"), 5, allowed=~everything(snapshot), nearest=nearest
        )
        assert len(near.positions) == len(near.cosines) == len(near.chunks) == 0
