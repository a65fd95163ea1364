"""Cutting a topic into pieces that a model reads whole."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recall.text.chunks import Chunk, chunk_topic, encoder_tokens

ENGLISH = "The reconciliation service rereads the entire clearing table on every nightly run. "
CHINESE = "生产环境每周二、周四可以发布，周五下午不发布；值班人数减半，回滚来不及。"

few = settings(max_examples=40, deadline=None)
BODIES = st.one_of(
    st.text(max_size=300),
    st.lists(
        st.sampled_from([ENGLISH, CHINESE, "word ", "x" * 70, "部" * 40, "\n", "\r\n", "\u2028", "。", "👍🎉", "  "]),
        max_size=25,
    ).map("".join),
)  # fmt: skip


def pieces(chunks: list[Chunk], body: str) -> list[str]:
    return [body[chunk.start : chunk.stop] for chunk in chunks]


def test_a_short_topic_is_one_chunk_with_its_title_and_description() -> None:
    assert chunk_topic("Deploys", "when to deploy", "Tuesdays.", budget=100) == [
        Chunk("Deploys\nwhen to deploy\nTuesdays.", 0, 9)
    ]


@pytest.mark.parametrize(
    ("title", "description", "body", "text"),
    [
        ("Deploys", "", "", "Deploys"),
        ("", "when to deploy", "", "when to deploy"),
        ("", "", "Tuesdays.", "Tuesdays."),
        ("", "", "", ""),
        ("Deploys", "", " \n\n ", "Deploys"),
    ],
)
def test_missing_parts_leave_no_blank_lines(title: str, description: str, body: str, text: str) -> None:
    assert chunk_topic(title, description, body, budget=100) == [Chunk(text, 0, len(body))]


def test_every_chunk_begins_with_title_and_description() -> None:
    chunks = chunk_topic("Deploys", "when to deploy", ENGLISH * 40, budget=100)
    assert len(chunks) > 5
    assert all(chunk.text.startswith("Deploys\nwhen to deploy\nThe reconciliation") for chunk in chunks)


@few
@given(title=st.text(max_size=40), description=st.text(max_size=200), body=BODIES, budget=st.integers(8, 120))
@example(title="", description="", body="a\n" * 50, budget=8)
@example(title="", description="", body="字" * 500, budget=8)
@example(title="", description="", body="word\n" + " " * 300 + "\n", budget=8)
def test_chunks_join_to_the_whole_body_and_none_is_over_budget(
    title: str, description: str, body: str, budget: int
) -> None:
    chunks = chunk_topic(title, description, body, budget=budget)
    assert "".join(pieces(chunks, body)) == body
    assert [chunk.start for chunk in chunks] == [0, *(chunk.stop for chunk in chunks[:-1])]
    for chunk, piece in zip(chunks, pieces(chunks, body), strict=True):
        assert encoder_tokens(chunk.text) <= budget
        assert chunk.text.endswith(piece.strip())


@few
@given(body=BODIES)
def test_only_a_body_that_says_nothing_has_an_empty_piece(body: str) -> None:
    found = pieces(chunk_topic("title", "", body, budget=20), body)
    assert all(piece.strip() for piece in found) or (len(found) == 1 and not body.strip())


def test_lines_stay_whole_where_they_fit() -> None:
    body = "\n".join(f"- line {number} about deploys" for number in range(40))
    found = pieces(chunk_topic("Deploys", "", body, budget=60), body)
    assert len(found) > 3
    assert [line for piece in found for line in piece.splitlines()] == body.splitlines()


@pytest.mark.parametrize(
    ("sentence", "ends"), [(ENGLISH, ". "), (CHINESE, "。"), ("Is it v1.2.3 or not? ", "? "), ("慢！", "！")]
)
def test_a_line_that_is_too_long_is_cut_behind_sentences(sentence: str, ends: str) -> None:
    body = sentence * 100
    found = pieces(chunk_topic("", "", body, budget=80), body)
    assert len(found) > 2
    assert all(piece.endswith(ends) for piece in found)


def test_a_sentence_without_end_is_cut_anywhere() -> None:
    body = "部" * 1000
    found = pieces(chunk_topic("", "", body, budget=100), body)
    assert [len(piece) for piece in found] == [100] * 10


def test_a_long_description_leaves_three_quarters_to_the_body() -> None:
    chunks = chunk_topic("Deploys", CHINESE * 50, "body " * 10, budget=100)
    (chunk,) = chunks
    assert chunk.text.startswith("Deploys\n生产环境")
    assert chunk.text.endswith("body body")
    assert encoder_tokens(chunk.text.removesuffix("body " * 9 + "body")) <= 25


def test_a_clipped_head_ends_with_a_whole_word() -> None:
    (chunk,) = chunk_topic("deployment " * 50, "", "", budget=100)
    assert set(chunk.text.split()) == {"deployment"}


def test_a_title_of_one_endless_word_is_clipped_not_lost() -> None:
    (chunk,) = chunk_topic("x" * 4000, "", "body", budget=100)
    assert chunk.text.startswith("xxx")
    assert encoder_tokens(chunk.text) <= 100


def test_an_estimate_counts_letters_by_four_and_other_characters_singly() -> None:
    assert encoder_tokens("deployment") == 2.5
    assert encoder_tokens("to go") == 2
    assert encoder_tokens("部署 42！") == 5
    assert encoder_tokens(" \n") == 0


@few
@given(st.text(max_size=80), st.text(max_size=80))
def test_an_estimate_of_two_lines_is_the_sum(one: str, other: str) -> None:
    assert encoder_tokens(f"{one}\n{other}") == pytest.approx(encoder_tokens(one) + encoder_tokens(other))
