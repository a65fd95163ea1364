"""One query over several memories: the founding heuristic, and words with meaning above a floor."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from recall.index.collection import Collection
from recall.index.flat import products
from recall.index.hashing import HashingEncoder
from recall.index.snapshot import Snapshot
from recall.search.answer import Found
from recall.search.lexical import rank
from recall.search.retriever import Hybrid, bounded, coverage_of, fitting, search_heuristic
from recall.search.types import Coverage, Filter, Hit
from recall.store.topics import MemoryType, Scope, parse_topic
from recall.text.chunks import chunk_topic

ENCODER = HashingEncoder(128)


def write(index: Collection, path: str, body: str, *, title: str = "", mtime: int = 1000) -> None:
    file = index.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\nname: {title or file.stem}\n---\n{body}\n", encoding="utf-8")
    os.utime(file, (mtime, mtime))


def in_step(scopes: Sequence[Collection], encoder: HashingEncoder | None = ENCODER) -> list[Snapshot]:
    for index in scopes:
        index.sync_words()
        if encoder:
            index.sync_vectors(encoder)
    return [index.snapshot() for index in scopes]


def ids(found: Found) -> list[str]:
    return [hit.topic.id for hit in found.hits]


def hybrid(floor: float = -10.0) -> Hybrid:
    return Hybrid(products, floor, ENCODER.fingerprint)


# --- a query of any length


def test_a_query_of_common_length_is_taken_whole() -> None:
    assert bounded("问" * 8000) == "问" * 8000


def test_of_an_endless_query_beginning_and_end_are_taken() -> None:
    cut = bounded("begin " + "x" * 4_000_000 + " end?")
    assert cut.startswith("begin ")
    assert cut.endswith(" end?")
    assert len(cut) <= 8001


# --- the heuristic


def test_the_heuristic_ranks_like_the_founding_scorer(scopes: list[Collection]) -> None:
    write(scopes[0], "a.md", "deploy deploy deploy", title="deploy plan", mtime=10)
    write(scopes[0], "b.md", "we deploy on Tuesdays", mtime=30)
    write(scopes[0], "c.md", "redeployments are rare", mtime=20)
    write(scopes[0], "d.md", "nothing of that", mtime=40)
    snapshots = in_step(scopes, None)
    topics = list(snapshots[0].topics(range(4)).values())
    found = search_heuristic(snapshots, "deploy the plan", 9)
    expected = rank("deploy the plan", topics, k=9)
    assert [(hit.topic.id, hit.score) for hit in found.hits] == [(hit.topic.id, hit.score) for hit in expected]
    assert ids(found) == ["a.md", "b.md", "c.md"]
    assert found.best == expected[0].score
    assert all(hit.cosine is None is hit.lexical for hit in found.hits)


def test_of_equal_scores_the_newer_comes_first_then_the_project_then_the_name(scopes: list[Collection]) -> None:
    project, user = scopes
    for path, mtime in (("z.md", 50), ("b10.md", 10), ("a2.md", 10), ("sub/a1.md", 10)):
        write(project, path, "deploy", mtime=mtime, title="t")
    write(user, "a0.md", "deploy", mtime=10, title="t")
    write(user, "new.md", "deploy", mtime=60, title="t")
    found = search_heuristic(in_step(scopes, None), "deploy", 9)
    assert ids(found) == ["user:new.md", "z.md", "sub/a1.md", "a2.md", "b10.md", "user:a0.md"]


@pytest.mark.parametrize("k", range(1, 5))
def test_ties_at_the_border_are_decided_by_the_name_and_not_by_history(scopes: list[Collection], k: int) -> None:
    for path in ("d.md", "b.md", "c.md", "a.md"):  # each in an index of its own history
        write(scopes[0], path, "deploy", title="t")
        in_step(scopes, None)
    assert ids(search_heuristic(in_step(scopes, None), "deploy", k)) == ["a.md", "b.md", "c.md", "d.md"][:k]


def test_the_heuristic_finds_nothing_for_words_that_nobody_wrote(scopes: list[Collection]) -> None:
    write(scopes[0], "a.md", "deploy")
    assert search_heuristic(in_step(scopes, None), "zebra", 5) == Found()
    assert search_heuristic([], "zebra", 5) == Found()


# --- words and meaning


def test_hits_come_from_both_memories_with_the_parts_of_their_scores(scopes: list[Collection]) -> None:
    write(scopes[0], "same.md", "cats eat fish")
    write(scopes[1], "same.md", "cats eat fish in the morning")
    write(scopes[1], "other.md", "the dashboard is behind the proxy")
    snapshots = in_step(scopes)
    found = hybrid().search(snapshots, "cats eat fish", ENCODER.encode_query("cats eat fish"), 2)
    assert sorted(ids(found)) == ["same.md", "user:same.md"]
    for hit in found.hits:
        assert hit.cosine is not None
        assert hit.lexical is not None
        assert hit.score == pytest.approx(hit.cosine + 0.5 * hit.lexical + 0.2 * hit.phrases)
    assert found.best == found.hits[0].score


def test_words_count_the_same_in_whichever_memory_they_stand(scopes: list[Collection]) -> None:
    """Word statistics are those of both memories together: a word is not rarer for standing in the smaller one."""
    for number in range(6):
        write(scopes[0], f"{number}.md", "deploy", title=f"t{number}")
    write(scopes[1], "one.md", "deploy", title="t9")
    found = hybrid().search(in_step(scopes, None), "deploy", None, 9)
    assert len({round(hit.score, 6) for hit in found.hits}) == 1
    assert len(found.hits) == 7


def test_when_none_fits_there_is_no_hit_but_the_best_score_is_told(scopes: list[Collection]) -> None:
    write(scopes[0], "a.md", "cats eat fish")
    snapshots = in_step(scopes)
    query = "cats and something altogether different"
    vector = ENCODER.encode_query(query)
    (hit,) = hybrid(-10).search(snapshots, query, vector, 5).hits
    assert hit.fit is not None
    found = hybrid(hit.fit + 0.001).search(snapshots, query, vector, 5)
    assert found.hits == ()
    assert found.best == pytest.approx(hit.score)
    assert ids(hybrid(hit.fit).search(snapshots, query, vector, 5)) == ["a.md"]


def hit_of(score: float, fit: float) -> Hit:
    topic = parse_topic("x", path=f"{score}.md", scope=Scope.PROJECT, mtime=0, file=Path("/m/x.md"))
    return Hit(topic, score, cosine=0.1, fit=fit)


def test_what_has_no_vector_yet_is_not_measured_by_what_has_one() -> None:
    ranked = [hit_of(0.9, 0.3), replace(hit_of(0.3, 0.3), cosine=None), hit_of(0.29, 0.3)]
    assert fitting(ranked, 0.2) == tuple(ranked[:2])


@pytest.mark.parametrize(
    ("hits", "shown"),
    [
        ([(0.9, 0.3), (0.8, 0.14), (0.7, 0.12)], 2),  # beside one that fits, others may fit a little less
        ([(0.9, 0.199), (0.8, 0.19)], 0),
        ([(0.9, 0.15), (0.8, 0.2)], 2),  # it need not be the first
        ([(0.9, 0.15), *[(0.8, 0.1)] * 4, (0.7, 0.9)], 0),  # but among the first five
        ([(0.9, 0.3), (0.46, 0.25), (0.44, 0.25)], 2),  # less than half of the best is noise
        ([(-0.1, -0.3), (-0.2, -0.35)], 0),
        ([], 0),
    ],
)
def test_what_fits_is_judged_together(hits: list[tuple[float, float]], shown: int) -> None:
    ranked = [hit_of(score, fit) for score, fit in hits]
    assert fitting(ranked, 0.2) == tuple(ranked[:shown])
    assert fitting(ranked, -10) == tuple(ranked)


def test_what_does_not_fit_itself_holds_nothing_back() -> None:
    chance, right = hit_of(0.51, 0.068), hit_of(0.24, 0.218)
    assert fitting([chance, right], 0.205) == (right,)
    assert fitting([hit_of(-0.1, -0.2), hit_of(-0.3, -0.25)], -0.5) != ()


def test_how_well_a_topic_fits_does_not_depend_on_what_else_is_wanted(scopes: list[Collection]) -> None:
    for number in range(60):
        write(scopes[0], f"{number}.md", f"cats eat fish number{number} in the garden")
    write(scopes[0], "z.md", "dogs sleep in the sun")
    snapshots, query = in_step(scopes), "what do dogs eat"
    vector = ENCODER.encode_query(query)
    wanted = Filter(exclude=frozenset(f"{number}.md" for number in range(58)))
    whole = {hit.topic.id: hit.fit for hit in hybrid().search(snapshots, query, vector, 61).hits}
    part = {hit.topic.id: hit.fit for hit in hybrid().search(snapshots, query, vector, 5, wanted=wanted).hits}
    assert len(part) == 3
    assert part == {name: pytest.approx(whole[name]) for name in part}


def test_topics_that_do_not_fit_take_no_places(scopes: list[Collection]) -> None:
    """What ranks before them by chance words alone is not counted."""
    for number in range(12):
        write(scopes[0], f"{number}.md", "cats " * (number + 1) + f"eat fish with number{number}")
    snapshots, query = in_step(scopes), "cats eat fish"
    vector = ENCODER.encode_query(query)
    every = hybrid().search(snapshots, query, vector, 12).hits
    floor = sorted(hit.fit or 0.0 for hit in every)[8]
    right = [hit.topic.id for hit in fitting(every, floor)]
    for k in (1, 3, 5, 12):
        assert ids(hybrid(floor).search(snapshots, query, vector, k)) == right[:k]


def test_a_shorter_answer_is_the_beginning_of_a_longer_one(scopes: list[Collection]) -> None:
    """Also when only a later one of the first five fits."""
    write(scopes[0], "a.md", "cats cats cats cats", title="cats")
    write(scopes[0], "b.md", "some cats eat fish")
    snapshots, query = in_step(scopes), "do some cats eat"
    vector = ENCODER.encode_query(query)
    fits = [hit.fit or 0.0 for hit in hybrid(-10).search(snapshots, query, vector, 2).hits]
    floor = max(fits) - 0.001
    assert (
        ids(hybrid(floor).search(snapshots, query, vector, 1))
        == ids(hybrid(floor).search(snapshots, query, vector, 2))[:1]
    )


def test_vectors_of_another_model_are_not_compared(scopes: list[Collection]) -> None:
    write(scopes[0], "a.md", "cats eat fish")
    snapshots = in_step(scopes)
    other = Hybrid(products, -10.0, "another model of the same width")
    found = other.search(snapshots, "cats eat", ENCODER.encode_query("cats eat"), 5)
    assert [(hit.topic.id, hit.cosine) for hit in found.hits] == [("a.md", None)]
    assert found == other.search(snapshots, "cats eat", None, 5)


def test_without_a_vector_words_alone_are_judged(scopes: list[Collection]) -> None:
    write(scopes[0], "a.md", "cats eat fish")
    write(scopes[0], "b.md", "dogs")
    found = hybrid(0.1).search(in_step(scopes), "cats eat fish", None, 5)
    assert [(hit.topic.id, hit.cosine) for hit in found.hits] == [("a.md", None)]


def test_the_chunk_that_fits_is_named(scopes: list[Collection]) -> None:
    sections = [f"section{number} tells about animal{number} " * 100 for number in range(5)]
    write(scopes[0], "long.md", "\n\n".join(sections))
    query = "animal3 section3"
    (hit,) = hybrid().search(in_step(scopes), query, ENCODER.encode_query(query), 1).hits
    topic = hit.topic
    chunks = chunk_topic(topic.title, topic.description, topic.body, budget=ENCODER.chunk_tokens)
    assert len(chunks) > 5
    assert "animal3" in chunks[hit.chunk].text


@pytest.mark.parametrize("with_vector", [True, False])
def test_excluded_topics_leave_their_place_to_others(scopes: list[Collection], with_vector: bool) -> None:
    for number in range(4):
        write(scopes[0], f"{number}.md", f"cats number {number}")
        write(scopes[1], f"{number}.md", f"cats number {number}")
    snapshots = in_step(scopes)
    vector = ENCODER.encode_query("cats number") if with_vector else None
    barred = {"0.md", "1.md", "user:1.md", "user:2.md", "user:3.md"}
    assert set(ids(hybrid().search(snapshots, "cats number", vector, 3, wanted=Filter(frozenset(barred))))) == {
        "2.md",
        "3.md",
        "user:0.md",
    }
    assert set(ids(search_heuristic(snapshots, "cats number", 3, wanted=Filter(frozenset(barred))))) == {
        "2.md",
        "3.md",
        "user:0.md",
    }


def test_topics_that_are_gone_since_the_snapshot_are_no_hits(scopes: list[Collection]) -> None:
    write(scopes[0], "a.md", "cats")
    write(scopes[0], "b.md", "cats and dogs")
    snapshots = in_step(scopes)
    (scopes[0].root / "a.md").unlink()
    scopes[0].sync_words()
    assert ids(hybrid().search(snapshots, "cats", ENCODER.encode_query("cats"), 5)) == ["b.md"]
    assert ids(search_heuristic(snapshots, "cats", 5)) == ["b.md"]


# --- how much took part


def test_coverage_counts_topics_and_vectors_and_explains_a_difference(scopes: list[Collection]) -> None:
    write(scopes[0], "a.md", "cats")
    write(scopes[1], "b.md", "dogs")
    assert coverage_of(in_step(scopes)) == Coverage(2, 2, "")
    write(scopes[1], "c.md", "birds")
    found = coverage_of(in_step(scopes, None))
    assert (found.topics, found.embedded) == (3, 2)
    assert found.note.startswith("1 of 3 topics")
    assert coverage_of(in_step(scopes, None), "the model is missing").note == "the model is missing"
    assert coverage_of([]) == Coverage()


@pytest.mark.parametrize("with_vector", [True, False])
def test_kinds_and_scopes_are_filters_after_which_k_is_filled(scopes: list[Collection], with_vector: bool) -> None:
    """A hundred better topics of another kind do not take the places of the five that are wanted."""
    for number in range(100):
        write(scopes[0], f"other{number}.md", "cats cats", title="cats\ntype: project")
    for number in range(5):
        write(scopes[0], f"{number}.md", "cats among other animals", title="animals\ntype: feedback")
        write(scopes[1], f"{number}.md", "cats among other animals", title="animals\ntype: user")
    write(scopes[0], "none.md", "cats")
    snapshots = in_step(scopes)
    vector = ENCODER.encode_query("cats") if with_vector else None
    mine = {f"user:{number}.md" for number in range(5)}
    feedback = {f"{number}.md" for number in range(5)}
    for wanted, right in (
        (Filter(types=frozenset({MemoryType.FEEDBACK})), feedback),
        (Filter(types=frozenset({MemoryType.FEEDBACK, MemoryType.USER})), feedback | mine),
        (Filter(scopes=frozenset({Scope.USER})), mine),
        (Filter(frozenset({"3.md"}), frozenset({MemoryType.FEEDBACK})), feedback - {"3.md"}),
        (Filter(types=frozenset({MemoryType.REFERENCE})), set()),
    ):
        k = max(1, len(right))
        assert set(ids(hybrid().search(snapshots, "cats", vector, k, wanted=wanted))) == right
        assert set(ids(search_heuristic(snapshots, "cats", k, wanted=wanted))) == right
    assert len(ids(hybrid().search(snapshots, "cats", vector, 200))) == 111
