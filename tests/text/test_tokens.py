"""The founding tokenizer and the terms of the index (founding document 000, spec qwen.md section 4.1)."""

import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recall.text.tokens import HEAD_TOKENS, TAIL_TOKENS, normalise, terms, tokenize

# Pieces of every script and oddity that the rules name; joined they give runs that touch in all ways.
PIECES = [
    "部署", "流", "発布かな", "ラーメン", "ﾗｰﾒﾝ", "배포", "\u1112\u1161\u11ab", "、", "「", "」", "。", "，", "：",
    "々", "ー", "〆", "𠮷野", "deploy", "ci", "go", "k8", "C++", "42", "2024", "Ⅷ", "①②③", "㈱", "ＡＰＩ", "İstanbul",
    "Straße", "café", "cafe\u0301", "\u0301", "\u0323", "привет", "ระบบ", "مرحبا", "👍", "👨‍👩‍👧", "_", "-", ".",
    "'", " ", "\n", "\t", "\u200b", "\x00",
]  # fmt: skip
few = settings(max_examples=50, deadline=None)
TEXTS = st.one_of(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.text(max_size=60))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("生产环境", ["生产", "产环", "环境"]),
        ("中", []),
        ("我 想 改", []),
        ("Deploy the API", ["deploy", "the", "api"]),
        ("go ci k8 42 C++", []),
        ("snake_case kebab-case it's v1.2.345", ["snake", "case", "kebab", "345"]),
        ("部署deploy脚本", ["部署", "deploy", "脚本"]),
        ("漢abc字", ["abc"]),
        ("重新部署 k8s 集群", ["重新", "新部", "部署", "k8s", "集群"]),
    ],
)
def test_cjk_gives_pairs_and_other_scripts_give_runs_of_three_or_more(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("上线、下线", ["上线", "线、", "、下", "下线"]),
        ("「灰度」", ["「灰", "灰度", "度」"]),
        ("上线，下线", ["上线", "下线"]),
        ("上线：下线；好吗？", ["上线", "下线", "好吗"]),
    ],
)
def test_ideographic_marks_join_words_and_full_width_ones_part_them(text: str, tokens: list[str]) -> None:
    """Deviations V19: kept as it is in the founding scorer."""
    assert tokenize(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("ＡＰＩ　Ｋ８Ｓ", ["api", "k8s"]),
        ("ﾃﾞｰﾀ", ["デー", "ータ"]),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af", ["한글"]),
        ("①②③", ["123"]),
        ("Straße", ["straße"]),
        ("İstanbul", ["i\u0307stanbul"]),
        ("cafe\u0301", ["café"]),
        ("𠮷野家", ["𠮷野", "野家"]),
        ("人々の", ["人々", "々の"]),
        ("〆切", []),
        ("👍 部署 👨‍👩‍👧", ["部署"]),
        ("ระบบจ่าย", ["ระบบจ่าย"]),
    ],
)
def test_text_is_compared_in_nfkc_and_lower_case(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


def test_marks_belong_to_a_run_but_do_not_begin_one() -> None:
    assert tokenize("\u0301abc") == ["abc"]
    assert tokenize("x\u0301y\u0301") == ["x\u0301ý"]
    assert tokenize("\u0301\u0301ab") == []


def words(count: int, prefix: str = "word") -> list[str]:
    return [f"{prefix}{number:03}" for number in range(count)]


def test_up_to_sixty_four_tokens_are_kept_in_order() -> None:
    assert tokenize(" ".join(words(64))) == words(64)


def test_of_more_the_first_and_the_last_thirty_two_are_kept() -> None:
    assert tokenize(" ".join(words(200))) == words(200)[:HEAD_TOKENS] + words(200)[-TAIL_TOKENS:]


def test_a_repeated_head_token_changes_nothing() -> None:
    assert tokenize(" ".join([*words(40), "word000", "word031"])) == words(40)


def test_a_repeated_tail_token_moves_to_the_end() -> None:
    found = tokenize(" ".join([*words(40), "word032"]))
    assert found == [*words(40)[:32], *words(40)[33:], "word032"]


def test_a_repeated_tail_token_outlives_older_ones() -> None:
    found = tokenize(" ".join([*words(64), "word032", "fresh"]))
    assert found[32:] == [*words(64)[34:], "word032", "fresh"]


def test_a_token_that_was_pushed_out_comes_back_at_the_end() -> None:
    found = tokenize(" ".join([*words(65), "word032"]))
    assert "word032" in found
    assert found[-1] == "word032"
    assert "word033" not in found


@few
@given(TEXTS)
def test_tokens_are_unique_and_at_most_sixty_four(text: str) -> None:
    found = tokenize(text)
    assert len(found) == len(set(found)) <= HEAD_TOKENS + TAIL_TOKENS


@few
@given(TEXTS)
def test_every_token_occurs_in_the_normalised_text_and_is_long_enough(text: str) -> None:
    whole = normalise(text)
    for token in tokenize(text):
        assert token in whole
        assert len(token) >= 2


@few
@given(st.text(string.ascii_letters + " \n", max_size=80))
def test_latin_words_are_the_ones_between_blanks(text: str) -> None:
    expected = [word for word in text.lower().split() if len(word) >= 3]
    assert set(tokenize(text)) <= set(expected)
    assert tokenize(text)[:32] == list(dict.fromkeys(expected))[:32]


@few
@given(TEXTS)
def test_normalising_keeps_tokens_as_they_are(text: str) -> None:
    for token in tokenize(text):
        assert normalise(token) == token


def test_terms_count_pairs_lone_characters_and_runs_of_any_length() -> None:
    assert terms("部署部署 中 go C++ 42 go") == {"部署": 2, "署部": 1, "中": 1, "go": 2, "c": 1, "42": 1}


def test_terms_of_a_text_without_letters_are_none() -> None:
    assert terms("") == terms(" 👍 --- !?") == {}


def test_a_run_without_end_becomes_a_few_overlapping_terms() -> None:
    run = "".join(chr(ord("a") + at % 26) + chr(ord("a") + at // 26 % 26) for at in range(700)) + "deployment"
    found = list(terms(run))
    assert len(found) == 2
    assert all(len(term) <= 1200 for term in found)
    assert found[0][-200:] == found[1][:200]
    assert "deployment" in found[1]


def test_a_run_of_megabytes_gives_no_more_terms_than_one_of_thousands() -> None:
    assert len(list(terms("x1" * 1_000_000))) <= 8


@few
@given(document=TEXTS, query=TEXTS)
@example(document="Deployment", query="ploy deploy")
@example(document="\u0301abc", query="abc")
@example(document="上线、下线", query="线、下")
@example(document="ΟΔΟΣ ὈΔΥΣΣΕΎΣ", query="ΟΔΟΣ σσε")
def test_a_token_is_in_the_text_exactly_when_it_is_in_a_term(document: str, query: str) -> None:
    whole, found = normalise(document), terms(document)
    for token in tokenize(query):
        in_terms = token in found if len(token) == 2 else any(token in term for term in found)
        assert (token in whole) == in_terms
