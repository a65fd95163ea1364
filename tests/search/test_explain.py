"""Why an answer is what it is: parts that add up, words and passages, what came close, why nothing came."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from recall.index.collection import Collection
from recall.index.flat import products
from recall.index.hashing import HashingEncoder
from recall.index.snapshot import Snapshot
from recall.search.explain import Question, explain
from recall.search.explanation import Explanation, Field, Silence, Why
from recall.search.retriever import ALL, Hybrid, search_heuristic
from recall.search.types import Filter, Hit, Recall, Strategy
from recall.search.weights import PHRASE_WEIGHT, WORD_WEIGHT, WORDS_ALONE
from recall.store.topics import MemoryType, Scope, parse_topic

ENCODER = HashingEncoder(256)
FLOOR = 0.25


def write(index: Collection, path: str, body: str, *, head: str = "") -> None:
    (index.root / path).write_text(f"---\n{head or f'name: {Path(path).stem}'}\n---\n{body}\n", encoding="utf-8")


def in_step(scopes: Sequence[Collection], *, vectors: bool = True) -> list[Snapshot]:
    for index in scopes:
        index.sync_words()
        if vectors:
            index.sync_vectors(ENCODER)
    return [index.snapshot() for index in scopes]


def by_meaning(
    snapshots: Sequence[Snapshot], query: str, k: int = 5, *, wanted: Filter = ALL, floor: float = FLOOR
) -> Explanation:
    """The explanation of a hybrid answer, whose hits are all shown."""
    hybrid, vector = Hybrid(products, floor, ENCODER.fingerprint), ENCODER.encode_query(query)
    hits = hybrid.search(snapshots, query, vector, k, wanted=wanted).hits
    question = Question(query, k, wanted, snapshots, vector, hybrid, ENCODER.chunk_tokens)
    return explain(Recall(query, hits, Strategy.HYBRID), question)


def by_words(snapshots: Sequence[Snapshot], query: str, k: int = 5, *, wanted: Filter = ALL) -> Explanation:
    hits = search_heuristic(snapshots, query, k, wanted=wanted).hits
    return explain(Recall(query, hits, Strategy.HEURISTIC), Question(query, k, wanted, snapshots))


def words(hit: Hit) -> dict[str, tuple[str, ...]]:
    assert hit.evidence is not None
    return {word.text: word.fields for word in hit.evidence.words}


def whys(found: Explanation) -> dict[str, Why]:
    return {other.hit.topic.id: other.why for other in found.rejected}


def assert_adds_up(hit: Hit) -> None:
    assert hit.evidence is not None
    assert hit.lexical is not None
    assert sum(word.value for word in hit.evidence.words) == pytest.approx(hit.lexical)
    weighed = WORDS_ALONE * hit.lexical if hit.cosine is None else hit.cosine + WORD_WEIGHT * hit.lexical
    assert hit.score == pytest.approx(weighed + PHRASE_WEIGHT * hit.phrases)


# --- parts of a score


def test_the_words_of_a_hit_add_up_to_its_coverage_and_the_parts_to_its_score(scopes: list[Collection]) -> None:
    project, user = scopes
    write(project, "a.md", "The zebra sleeps; a zebra runs.", head="name: zebra crossing\ndescription: stripes at noon")
    write(project, "b.md", "noon is hot")
    write(user, "c.md", "a striped zebra and other stripes")
    found = by_meaning(in_step(scopes), "zebra stripes at noon", floor=-9)
    assert found.recall.hits[0].topic.id == "a.md"
    assert words(found.recall.hits[0]) == {
        "stripes": ("description",),
        "noon": ("description",),
        "at": ("description",),
        "zebra": ("title", "body"),
    }
    assert len(found.recall.hits) == 3
    for hit in found.recall.hits:
        assert_adds_up(hit)
    user_hit = next(hit for hit in found.recall.hits if hit.topic.scope is Scope.USER)
    assert set(words(user_hit)) == {"zebra", "stripes"}


def test_words_come_in_the_order_of_what_they_bring(scopes: list[Collection]) -> None:
    for number in range(5):
        write(scopes[0], f"{number}.md", "the garden")
    write(scopes[0], "a.md", "the zebra")
    hit = by_meaning(in_step(scopes), "the zebra").recall.hits[0]
    assert hit.evidence is not None
    assert [word.text for word in hit.evidence.words] == ["zebra", "the"]
    assert hit.evidence.words[0].value > hit.evidence.words[1].value > 0


def test_of_a_chinese_query_the_pairs_that_matched_are_shown(scopes: list[Collection]) -> None:
    write(scopes[0], "a.md", "迁移只在周二执行", head="name: 数据库窗口")
    found = by_meaning(in_step(scopes), "数据库怎么迁移？")
    assert words(found.recall.hits[0]) == {"数据": ("title",), "据库": ("title",), "迁移": ("body",)}
    assert found.unmatched == ("库怎", "怎么", "么迁")


def test_a_topic_without_a_vector_says_that_its_words_stand_in(scopes: list[Collection]) -> None:
    write(scopes[0], "a.md", "zebra crossing")
    hit = by_meaning(in_step(scopes, vectors=False), "zebra crossing").recall.hits[0]
    assert_adds_up(hit)
    assert hit.cosine is None
    assert "stand in for a vector" in hit.explain()[0]
    assert hit.evidence is not None
    assert (hit.evidence.passage, hit.evidence.chunks) == ("", 0)


def test_the_heuristic_says_points_by_field_and_for_the_type(scopes: list[Collection]) -> None:
    write(scopes[0], "a.md", "it was released", head="name: release\ndescription: the goal\ntype: project")
    write(scopes[0], "b.md", "x" * 1300 + " release")
    hit = by_words(in_step(scopes, vectors=False), "release project goal").recall.hits[0]
    assert words(hit) == {"release": (Field.TITLE, Field.BODY), "goal": (Field.DESCRIPTION,)}
    assert hit.evidence is not None
    assert [word.value for word in hit.evidence.words] == [5, 3]
    assert (hit.evidence.bonus, hit.score) == (2, 10)
    assert hit.explain() == (
        "score 10 points, 2 of them for the type project",
        "words: release 5 (title 4, body 1), goal 3 (description 3)",
    )


# --- the passage


def test_the_passage_is_the_chunk_that_lies_nearest(scopes: list[Collection]) -> None:
    animals = ("tiger", "heron", "zebra", "walrus")
    write(scopes[0], "a.md", "\n\n".join(f"The {animal} sleeps. " * 200 for animal in animals))
    hit = by_meaning(in_step(scopes), "zebra", floor=-9).recall.hits[0]
    assert hit.evidence is not None
    assert hit.chunk > 0
    assert hit.evidence.chunks > hit.chunk
    assert "zebra" in hit.evidence.passage
    assert "tiger" not in hit.evidence.passage
    quoted = hit.explain()[-1]
    assert quoted.startswith(f"nearest part, {hit.chunk + 1} of {hit.evidence.chunks}: The zebra sleeps.")
    assert quoted.endswith("…")
    assert len(quoted) < 300


def test_credentials_in_a_passage_are_masked(scopes: list[Collection]) -> None:
    key = "ghp_" + "a1B2c3D4e5F6" * 3
    write(scopes[0], "a.md", f"the zebra token is {key}")
    hit = by_meaning(in_step(scopes), "zebra token", floor=-9).recall.hits[0]
    assert hit.evidence is not None
    assert "the zebra token is" in hit.evidence.passage
    assert key not in hit.evidence.passage + " ".join(hit.explain())


# --- sentences of a hit


def hit_of(**parts: float | None) -> Hit:
    topic = parse_topic("x", path="a.md", scope=Scope.PROJECT, mtime=0, file=Path("/m/a.md"))
    return Hit(topic, parts.pop("score") or 0.0, **parts)  # type: ignore[arg-type]  # cosine and lexical


@pytest.mark.parametrize(
    ("hit", "said"),
    [
        (
            hit_of(score=0.75, cosine=0.55, lexical=0.4, fit=0.5),
            "score 0.750 = cosine 0.550 + 0.5 x words 0.400; fits by 0.500",
        ),
        (hit_of(score=0.4, lexical=0.4), "score 0.400 = 1 x words 0.400, which stand in for a vector as well"),
        (hit_of(score=7), "score 7 points"),
    ],
)
def test_a_hit_of_an_ordinary_recall_explains_the_parts_that_it_carries(hit: Hit, said: str) -> None:
    assert hit.explain() == (said,)


# --- what came close


def test_topics_below_the_floor_are_named_with_their_score(scopes: list[Collection]) -> None:
    write(scopes[0], "a.md", "zebra crossing at noon")
    write(scopes[0], "b.md", "zebra among many other words about the garden, the roof, the river and the old house")
    found = by_meaning(in_step(scopes), "zebra crossing at noon", floor=0.9)
    assert [hit.topic.id for hit in found.recall.hits] == ["a.md"]
    other = found.rejected[0]
    assert (other.hit.topic.id, other.why, other.reason) == ("b.md", Why.BELOW_FLOOR, "below the floor of 0.900")
    assert other.hit.score < 0.9
    assert_adds_up(other.hit)
    assert (found.floor, found.silence, found.why_nothing()) == (0.9, None, "")


@pytest.mark.parametrize("ask", [by_meaning, by_words])
def test_topics_behind_the_first_k_are_named_with_their_rank(scopes: list[Collection], ask: object) -> None:
    for number in range(9):
        write(scopes[0], f"{number}.md", f"zebra {number}" + " and" * number)
    assert callable(ask)
    found: Explanation = ask(in_step(scopes), "zebra", 2)
    assert len(found.recall.hits) == 2
    assert len(found.rejected) == 5
    assert {other.why for other in found.rejected} == {Why.OUTRANKED}
    assert [other.reason for other in found.rejected] == [f"ranks {rank}, 2 wanted" for rank in range(3, 8)]
    scores = [hit.score for hit in (*found.recall.hits, *(other.hit for other in found.rejected))]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("ask", [by_meaning, by_words])
def test_what_the_filter_kept_away_is_named_with_the_filter(scopes: list[Collection], ask: object) -> None:
    project, user = scopes
    write(project, "a.md", "zebra crossing", head="name: zebra\ntype: project")
    write(project, "b.md", "zebra crossing", head="name: zebra\ntype: feedback")
    write(project, "c.md", "zebra crossing", head="name: zebra\ntype: project")
    write(project, "far.md", "nothing of that", head="name: far\ntype: feedback")
    write(user, "d.md", "zebra crossing", head="name: zebra\ntype: project")
    wanted = Filter(frozenset({"c.md"}), frozenset({MemoryType.PROJECT}), frozenset({Scope.PROJECT}))
    assert callable(ask)
    found: Explanation = ask(in_step(scopes), "zebra crossing", wanted=wanted)
    assert [hit.topic.id for hit in found.recall.hits] == ["a.md"]
    assert whys(found) == {"b.md": Why.TYPE, "c.md": Why.EXCLUDED, "user:d.md": Why.SCOPE}
    assert {other.reason for other in found.rejected} == {
        "the type feedback is not wanted",
        "excluded by its id",
        "the scope user is not wanted",
    }


@pytest.mark.parametrize("k", [1, 5])
def test_a_topic_that_was_found_and_is_no_hit_has_changed_since(scopes: list[Collection], k: int) -> None:
    write(scopes[0], "a.md", "zebra crossing")
    snapshots = in_step(scopes)
    hybrid, vector = Hybrid(products, FLOOR, ENCODER.fingerprint), ENCODER.encode_query("zebra")
    found = explain(Recall("zebra"), Question("zebra", k, ALL, snapshots, vector, hybrid, ENCODER.chunk_tokens))
    assert whys(found) == {"a.md": Why.CHANGED}
    assert found.silence is Silence.CHANGED
    assert found.why_nothing() == "what fitted has changed or gone since it was indexed: a.md"


# --- why nothing came


def test_of_an_empty_memory_is_said_that_it_is_empty(scopes: list[Collection]) -> None:
    for found in (by_meaning(in_step(scopes), "zebra"), by_words(in_step(scopes), "zebra")):
        assert (found.silence, found.rejected) == (Silence.EMPTY, ())
        assert found.why_nothing() == "no topic is indexed"


def test_of_a_query_that_shares_no_word_the_nearest_in_meaning_is_named(scopes: list[Collection]) -> None:
    write(scopes[0], "a.md", "zebra crossing")
    found = by_meaning(in_step(scopes), "qqq xyzzy")
    assert (found.silence, found.unmatched) == (Silence.NO_SHARED_WORD, ("qqq", "xyzzy"))
    assert found.why_nothing() == (
        "no topic holds a word of the query, and by meaning alone none reaches the floor of 0.250; "
        f"the nearest is a.md, which fits by {found.rejected[0].hit.fit:.3f}"
    )
    assert by_words(in_step(scopes), "qqq xyzzy").why_nothing() == "no topic holds a word of the query"
    assert by_words(in_step(scopes), "ab ?").why_nothing() == "the query holds no word to look for"


def test_of_words_that_are_too_few_the_best_candidate_is_named(scopes: list[Collection]) -> None:
    write(scopes[0], "a.md", "zebra crossing")
    write(scopes[0], "b.md", "tiger")
    found = by_meaning(in_step(scopes), "zebra " + " ".join(f"other{number}" for number in range(30)), floor=0.5)
    best = found.rejected[0]
    assert (best.hit.topic.id, best.why, found.silence) == ("a.md", Why.BELOW_FLOOR, Silence.BELOW_FLOOR)
    assert found.why_nothing() == (
        f"no topic reaches the floor of 0.500; the nearest is a.md, which fits by {best.hit.fit:.3f}"
    )


@pytest.mark.parametrize("ask", [by_meaning, by_words])
def test_of_a_filter_that_leaves_nothing_the_topics_behind_it_are_named(scopes: list[Collection], ask: object) -> None:
    write(scopes[0], "a.md", "zebra crossing")
    write(scopes[0], "b.md", "unrelated")
    assert callable(ask)
    found: Explanation = ask(in_step(scopes), "zebra crossing", wanted=Filter(frozenset({"a.md"})))
    assert (found.silence, found.why_nothing()) == (Silence.FILTERED, "what would fit is not wanted: a.md")
    found = ask(in_step(scopes), "qqq", wanted=Filter(scopes=frozenset({Scope.USER})))
    assert (found.silence, found.why_nothing()) == (Silence.FILTERED, "no topic is of those that are wanted")
    found = ask(in_step(scopes), "qqq", wanted=Filter(frozenset({"a.md"})))
    assert found.silence is Silence.NO_SHARED_WORD


def test_words_that_only_unwanted_topics_hold_are_unmatched(scopes: list[Collection]) -> None:
    write(scopes[0], "a.md", "zebra crossing")
    write(scopes[0], "b.md", "tiger crossing")
    wanted = Filter(frozenset({"a.md"}))
    for ask in (by_meaning, by_words):
        found: Explanation = ask(in_step(scopes), "zebra tiger crossing", wanted=wanted)
        assert found.unmatched == ("zebra",)
