"""Words of a query that stand together in a text."""

import pytest

from recall.search.phrases import Phrases, telling
from recall.text.tokens import terms


def of(query: str, **information: float) -> Phrases:
    """Every word says one, unless told otherwise."""
    return Phrases.of(query, dict.fromkeys(terms(query), 1.0) | information)


def test_neighbouring_words_weigh_what_they_say_on_average() -> None:
    found = of("blue green deployment", blue=0.2, green=0.4, deployment=0.4).weights
    assert found == {("green", "deployment"): pytest.approx(0.4), ("blue", "green"): pytest.approx(0.3)}
    assert list(found) == [("green", "deployment"), ("blue", "green")]


@pytest.mark.parametrize("query", ["ERR-404", "src/deploy", "v2.1", "a_b", "c:d", r"e\f", "user@host", "f#g"])
def test_words_of_an_identifier_weigh_three_times_as_much(query: str) -> None:
    assert list(of(query).weights.values()) == [3.0]


@pytest.mark.parametrize("query", ["error 404", "deploy, then", "user's", "a (b", "end. Begin"])
def test_words_with_a_blank_or_an_apostrophe_between_them_are_no_identifier(query: str) -> None:
    assert list(of(query).weights.values()) == [1.0]


def test_a_phrase_that_stands_twice_in_the_query_weighs_what_it_weighs_most() -> None:
    assert of("error 404 or error-404").weights[("error", "404")] == 3.0


def test_threes_of_cjk_characters_are_phrases_and_a_pair_is_a_word() -> None:
    assert of("微信读书 书架").weights == {("微信读",): 1.0, ("信读书",): 1.0}


def test_words_of_two_kinds_are_no_phrase() -> None:
    assert of("使用pytest测试").weights == {}


def test_words_that_say_nothing_make_no_phrase() -> None:
    assert of("a b", a=0.0, b=0.0).weights == {}
    assert Phrases.of("a b", {}).weights == {}


def test_of_an_endless_query_the_phrases_that_say_most_are_looked_for() -> None:
    query = " ".join(f"w{number}" for number in range(500))
    found = of(query, w498=9.0, w499=9.0)
    assert len(found.weights) == 128
    assert next(iter(found.weights)) == ("w498", "w499")


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("the blue green deployment", True),
        ("Blue-Green", True),
        ("**blue** green", True),
        ("blue.\nGreen", True),
        ("ＢＬＵＥ　ｇｒｅｅｎ", True),
        ("用blue green来", True),
        ("blue, then green; blue green", True),
        ("blues green", False),
        ("skyblue green", False),
        ("blue greenish", False),
        ("bluegreen", False),
        ("blue and green", False),
        ("green blue", False),
        ("blue 和 green", False),
        ("blue" + " " * 40 + "green", False),
        ("blue\u0301 green", False),
        ("", False),
    ],
)
def test_words_stand_together_when_nothing_but_a_few_signs_is_between_them(text: str, stands: bool) -> None:
    assert of("blue green").found(text) == ([("blue", "green")] if stands else [])


def test_a_run_of_cjk_characters_stands_anywhere() -> None:
    phrases = of("阅读偏好")
    assert phrases.found("他的阅读偏好是科幻") == [("阅读偏",), ("读偏好",)]
    assert phrases.found("阅读的偏好") == []


def test_the_share_is_the_sum_of_what_stands_in_the_text() -> None:
    assert of("one two three four").share("two three. four") == 2.0
    assert of("one two").share("nothing") == 0


def test_what_tells_is_neither_a_function_word_nor_holds_a_chinese_comma() -> None:
    assert telling(["zebra", "with", "书架", "架、"], [0.2, 0.3, 0.2, 0.3]) == pytest.approx([0.5, 0, 0.5, 0])
    assert telling(["with"], [1.0]) == [0.0]
    assert telling([], []) == []
