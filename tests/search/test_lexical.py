"""Ranking by words: the founding heuristic on topics, and the same answers from postings."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recall.index.collection import Collection
from recall.index.snapshot import Snapshot
from recall.search.lexical import heuristic_points, match_words, rank, score
from recall.search.retriever import search_heuristic
from recall.store.scan import SourceFile, scan_order
from recall.store.topics import MemoryType, Scope, Topic
from recall.text.function_words import FUNCTION_WORDS
from recall.text.tokens import terms, tokenize

Memory = Callable[..., AbstractContextManager[Collection]]


def word_coverage(snapshots: Sequence[Snapshot], query: str) -> list[NDArray[np.float64]]:
    return [words.coverage for words in match_words(snapshots, query)]


PLAIN = Topic(Scope.PROJECT, "a.md", "", "", None, "", 0.0, 0.0, Path("/memory/a.md"))


def topic(**fields: Any) -> Topic:
    return replace(PLAIN, **fields)


def points(query: str, **fields: Any) -> int:
    return score(tokenize(query), topic(**fields))


# --- the founding heuristic


def test_title_counts_four_description_three_body_one() -> None:
    assert points("deploy", title="Deploy") == 4
    assert points("deploy", description="when to deploy") == 3
    assert points("deploy", body="we deploy") == 1
    assert points("deploy", title="Deploy", description="deploy", body="deploy") == 8


def test_every_token_counts_once_however_often_it_stands_there() -> None:
    assert points("deploy gateway", title="Deploy gateway deploy gateway", body="deploy deploy") == 9


def test_a_token_counts_as_part_of_a_word() -> None:
    assert points("owner", title="Ownership") == 4
    assert points("ownership", title="Owner") == 0


def test_text_is_compared_in_nfkc_and_lower_case() -> None:
    assert points("ＤＥＰＬＯＹ", title="deploy") == 4
    assert points("データ", title="ﾃﾞｰﾀ") == 8
    assert points("café", title="CAFE\u0301") == 4


def test_chinese_counts_by_pairs() -> None:
    assert points("部署流程", title="部署", description="流程") == 7
    assert (
        points("上线、下线", body="上线，下线") == 2
    )  # 线、 and 、下 are tokens too and are not there (deviations V19)


def test_neither_path_nor_kind_is_searched() -> None:
    assert points("deploy project", path="deploy.md", type=MemoryType.PROJECT) == 0


def test_the_body_is_read_up_to_1200_characters() -> None:
    assert points("needle", body="x" * 1194 + "needle") == 1
    assert points("needle", body="x" * 1195 + "needle") == 0
    assert points("needle", body="👍" * 1194 + "needle") == 1  # code points, deviations V2


def test_the_cut_comes_before_normalising() -> None:
    assert points("needle", body="㍿" * 1194 + "needle") == 1


def test_a_placeholder_is_no_body() -> None:
    assert points("entries", body="_No entries yet._") == 0
    assert points("entries", body="_No entries yet._ really") == 1


@pytest.mark.parametrize(
    ("query", "kind", "bonus"),
    [
        ("deploy rule", MemoryType.FEEDBACK, 1),
        ("deploy rule rules avoid style", MemoryType.FEEDBACK, 2),
        ("deploy rule", MemoryType.PROJECT, 0),
        ("deploy rule", None, 0),
        ("deploy ruler", MemoryType.FEEDBACK, 0),
        ("deploy user preferences", MemoryType.USER, 2),
        ("deploy goals", MemoryType.PROJECT, 1),
        ("deploy docs", MemoryType.REFERENCE, 1),
        ("deploy link doc ticket", MemoryType.REFERENCE, 2),
    ],
)
def test_words_that_speak_for_the_kind_add_at_most_two(query: str, kind: MemoryType | None, bonus: int) -> None:
    assert points(query, title="Deploy", type=kind) == 4 + bonus


def test_words_that_speak_for_the_kind_alone_find_nothing() -> None:
    assert points("rule", title="Deploy", type=MemoryType.FEEDBACK) == 0
    assert points("", title="Deploy", type=MemoryType.FEEDBACK) == 0


def test_better_topics_come_first_then_newer_then_the_order_given() -> None:
    topics = [
        topic(path="old.md", title="deploy", mtime=1.0),
        topic(path="same1.md", title="deploy", mtime=2.0),
        topic(path="none.md", title="coffee", mtime=9.0),
        topic(path="best.md", title="deploy", body="deploy", mtime=0.0),
        topic(path="same2.md", title="deploy", mtime=2.0),
    ]
    hits = rank("deploy", topics, k=9)
    assert [(hit.topic.path, hit.score) for hit in hits] == [
        ("best.md", 5),
        ("same1.md", 4),
        ("same2.md", 4),
        ("old.md", 4),
    ]
    assert [hit.topic.path for hit in rank("deploy", topics, k=2)] == ["best.md", "same1.md"]


@pytest.mark.parametrize(("query", "k"), [("deploy", 0), ("deploy", -1), ("", 5), (" \n", 5), ("go", 5), ("部", 5)])
def test_nothing_is_found_without_tokens_or_room(query: str, k: int) -> None:
    assert rank(query, [topic(title="deploy go 部")], k=k) == []


def test_among_no_topics_nothing_is_found() -> None:
    assert rank("deploy", [], k=5) == []


# --- the same from postings

PIECES = [
    "部署", "流程", "上线", "、", "下线", "，", "「", "」", "中", "𠮷野", "ラーメン", "ﾗｰﾒﾝ", "배포", "deploy",
    "deployment", "Owner", "ownership", "rule", "style", "user", "project", "docs", "go", "k8s", "ＡＰＩ", "api",
    "café", "cafe\u0301", "\u0301", "\u0323", "Ⅷ", "①②③", "㍿", "İ", "ß", "ΟΔΟΣ", "οδος", "ระบบ", "👍", "👨‍👩‍👧",
    " ", " ", " ", "-", "_", ".", "'", "abc" * 300,
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=10).map("".join)
BODIES = st.tuples(
    TEXTS, st.sampled_from(["", " " * 1180, "x" * 1190, "部" * 1195, "👍" * 1198]), TEXTS
).map("".join)  # fmt: skip
NOTES = st.tuples(TEXTS, TEXTS, st.sampled_from(["", *MemoryType]), BODIES)
QUERIES = st.lists(TEXTS, min_size=1, max_size=4)

few = settings(max_examples=15, deadline=None)


def file(title: str, description: str = "", kind: str = "", body: str = "") -> str:
    return f"---\nname: {title}\ndescription: {description}\ntype: {kind}\n---\n{body}\n"


def files(notes: Sequence[tuple[str, str, str, str]]) -> dict[str, str]:
    return {f"{number}.md": file(*note) for number, note in enumerate(notes)}


def topics_of(snapshot: Snapshot) -> list[Topic]:
    found = snapshot.topics(range(len(snapshot)))
    return [found[at] for at in range(len(snapshot))]


def bm25(topics: Sequence[Topic], query: str) -> list[float]:
    """F by its formula (spec models.md section 4), straight from the texts."""
    counts = [terms(topic.title) + terms(topic.description) + terms(topic.body) for topic in topics]
    lengths = [count.total() for count in counts]
    average = sum(lengths) / len(lengths) if topics else 0
    having = {word: sum(word in count for count in counts) for word in terms(query)}
    rarity = {word: log(1 + (len(topics) - seen + 0.5) / (seen + 0.5)) for word, seen in having.items()}
    idf = {word: weight * (0.3 if word in FUNCTION_WORDS else 1) for word, weight in rarity.items()}
    greatest = 0.6 * 2.2 * sum(idf.values())
    return [
        sum(
            idf[word] * count[word] * 2.2 / (count[word] + 1.2 * (0.25 + 0.75 * length / average))
            for word in idf
            if count[word]
        )
        / (greatest or 1)
        for count, length in zip(counts, lengths, strict=True)
    ]


def check(snapshots: Sequence[Snapshot], query: str) -> None:
    """Postings say the same as texts."""
    topics = [topics_of(snapshot) for snapshot in snapshots]
    tokens = tokenize(query)
    assert [points.tolist() for points in heuristic_points(snapshots, query)] == [
        [score(tokens, topic) for topic in part] for part in topics
    ]
    coverage = np.concatenate(word_coverage(snapshots, query))
    np.testing.assert_allclose(coverage, bm25([topic for part in topics for topic in part], query), rtol=1e-9)


@few
@given(notes=st.lists(NOTES, max_size=5), queries=QUERIES)
@example(notes=[("Deployment", "", "", "x" * 1190 + "deployment")], queries=["deploy", "xxxxdep", "eploym", "loyment"])
@example(
    notes=[("", "", "", "部" * 1194 + "deployment"), ("deploy", "", "", "")], queries=["deploy zeppelin", "deployment"]
)
@example(notes=[("abc" * 300, "\u0301abc", "", "")], queries=["abc" * 300, "bca", "\u0301abc"])
@example(notes=[("上线、下线", "「灰度」", "", "")], queries=["线、下", "灰度」", "上线，下线"])
def test_postings_answer_like_the_texts(
    memory: Memory, notes: list[tuple[str, str, str, str]], queries: list[str]
) -> None:
    with memory(files(notes)) as collection:
        for query in queries:
            check([collection.snapshot()], query)


@few
@given(first=st.lists(NOTES, max_size=4), second=st.lists(NOTES, max_size=4), queries=QUERIES)
def test_two_memories_are_judged_by_the_statistics_of_both(
    memory: Memory, first: list[tuple[str, str, str, str]], second: list[tuple[str, str, str, str]], queries: list[str]
) -> None:
    with ExitStack() as stack:
        project = stack.enter_context(memory(files(first)))
        user = stack.enter_context(memory(files(second), scope=Scope.USER))
        for query in queries:
            check([project.snapshot(), user.snapshot()], query)


@few
@given(before=st.lists(NOTES, min_size=1, max_size=4), after=st.lists(NOTES, max_size=4), queries=QUERIES)
def test_changed_and_deleted_files_leave_no_trace(
    memory: Memory, before: list[tuple[str, str, str, str]], after: list[tuple[str, str, str, str]], queries: list[str]
) -> None:
    with memory(files(before)) as collection:
        for path in files(before):
            (collection.root / path).unlink()
        for path, text in files(after).items():
            (collection.root / path).write_bytes(text.encode("utf-8"))
        collection.sync_words(full=True)
        assert {topic.path for topic in topics_of(collection.snapshot())} == set(files(after))
        for query in queries:
            check([collection.snapshot()], query)


def test_topics_that_came_one_by_one_are_answered_like_those_that_came_together(memory: Memory) -> None:
    notes = [(f"note {number}", "deploy" * (number % 2), "", f"部署 number{number % 5}") for number in range(14)]
    with memory({}) as collection:
        collection.root.mkdir()
        for path, text in files(notes).items():
            (collection.root / path).write_text(text, encoding="utf-8")
            collection.sync_words()
        assert len(collection.snapshot()) == 14
        for query in ("deploy", "部署 number3", "note number1 number2"):
            check([collection.snapshot()], query)


def test_equal_topics_come_in_scan_order_whatever_order_they_were_indexed_in(memory: Memory) -> None:
    """Score, then time, then base name as a person would sort it; the cut falls between equals."""
    names = ["10.md", "9.md", "alpha.md", "b/beta.md", "a/beta_2.md", "Beta3.md", "é.md", "中文.md"]
    ordered = [source.path for source in scan_order(SourceFile(name, name, 0, 0, 0, 0) for name in names)]
    with memory({"newer.md": "---\nname: coffee\n---\n"}, mtimes={"newer.md": 2 * 10**18}) as collection:
        for name in [*ordered[4:], *reversed(ordered[:4])]:
            (collection.root / name).parent.mkdir(exist_ok=True)
            (collection.root / name).write_text("---\nname: coffee\n---\n", encoding="utf-8")
            os.utime(collection.root / name, (10**9, 10**9))
            collection.sync_words()
        for k in (1, 2, 5, 9, 99):
            hits = search_heuristic([collection.snapshot()], "coffee", k).hits
            assert [hit.topic.path for hit in hits] == ["newer.md", *ordered][:k]


def test_a_text_of_average_length_that_holds_every_word_once_is_covered_to_three_quarters(memory: Memory) -> None:
    notes = [("deploy gateway", "", "", ""), ("coffee sugar", "", "", "")]
    with memory(files(notes)) as collection:
        (coverage,) = word_coverage([collection.snapshot()], "gateway deploy")
    assert sorted(coverage.tolist()) == pytest.approx([0, 1 / (0.6 * 2.2)])


def test_a_word_that_no_topic_has_lowers_the_coverage(memory: Memory) -> None:
    with memory(files([("deploy", "", "", ""), ("coffee", "", "", "")])) as collection:
        snapshots = [collection.snapshot()]
        (known,), (partly,) = word_coverage(snapshots, "deploy"), word_coverage(snapshots, "deploy zeppelin")
    assert 0 < partly.max() < 0.6 * known.max()


@pytest.mark.parametrize("query", ["", " ", "👍", "、"])
def test_a_query_without_words_covers_nothing(memory: Memory, query: str) -> None:
    with memory(files([("deploy 、", "", "", "👍")])) as collection:
        snapshots = [collection.snapshot()]
        (points,), (coverage,) = heuristic_points(snapshots, query), word_coverage(snapshots, query)
    assert points.tolist() == [0]
    assert (coverage.tolist() == [0]) == (query != "、")  # a lone 、 is a term, as it is of the CJK class


def test_without_topics_there_is_nothing_to_score(memory: Memory) -> None:
    assert (heuristic_points([], "deploy"), word_coverage([], "deploy")) == ([], [])
    with memory({}) as collection:
        snapshots = [collection.snapshot()]
        (points,), (coverage,) = heuristic_points(snapshots, "deploy"), word_coverage(snapshots, "deploy")
    assert (points.tolist(), coverage.tolist()) == ([], [])
