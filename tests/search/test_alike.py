"""One fact told many times does not crowd the others out."""

from pathlib import Path

import numpy as np
import pytest

from recall.index.base import Vector
from recall.search.alike import Apart, apart
from recall.search.types import Hit
from recall.store.topics import Scope, parse_topic

NEAR: Vector = np.asarray([1.0, 0.0], np.float32)
FAR: Vector = np.asarray([0.0, 1.0], np.float32)


def hit(name: str, body: str, *, title: str = "note", scope: Scope = Scope.PROJECT) -> Hit:
    text = f"---\nname: {title}\n---\n{body}\n"
    return Hit(parse_topic(text, path=name, scope=scope, mtime=0, file=Path("/m") / name), 1.0)


def told(*bodies: str, vectors: tuple[Vector | None, ...] = ()) -> Apart:
    """What becomes of notes a, b, c ..., whose vectors are all near each other unless told otherwise."""
    hits = [hit(chr(ord("a") + number), body) for number, body in enumerate(bodies)]
    return apart(hits, vectors or (NEAR,) * len(hits))


def names(found: Apart) -> tuple[list[str], list[str]]:
    """Ids of those shown, in their order, and of those set aside."""
    return [hit.topic.id for hit in found.shown], [hit.topic.id for hit in found.repeated]


RESTATED = (
    "Deploys go out on Fridays.",
    "The deploys go out on Fridays.",
    "We deploy on Friday.",
    "Friday is when releases are shipped.",
    "Deploy on Friday.",
    "Deploys go out on Friday, so please wait.",
)
NEGATION = "Deploys do not go out on Fridays."


def test_of_six_restatements_and_a_negation_one_and_the_negation_come_first_and_then_the_others() -> None:
    bodies = (*RESTATED, NEGATION, "The cache is flushed at noon.", "Logs are kept by the platform.")
    found = told(*bodies, vectors=(NEAR,) * 7 + (FAR, -FAR))
    shown, repeated = names(found)
    assert shown == ["f", "g", "h", "i", "d"]  # the fullest, the negation, what else there is, the same in other words
    assert repeated == ["b", "c", "e", "a"]
    assert found.like == {"a": "f", "b": "f", "c": "f", "d": "f", "e": "f"}


@pytest.mark.parametrize(
    "pair",
    [
        ("Deploys go out on Fridays.", NEGATION),
        ("The timeout is 30 seconds.", "The timeout is 45 seconds."),
        ("The freeze begins on 2026-03-01.", "The freeze begins on 2026-04-01."),
        ("Read the settings from `a.yaml`.", "Read the settings from `b.yaml`."),
        ("用户喜欢深色主题。", "用户不喜欢深色主题。"),
    ],
)
def test_what_differs_in_a_number_a_date_a_denial_or_a_code_word_is_another_fact(pair: tuple[str, str]) -> None:
    assert names(told(*pair)) == (["a", "b"], [])
    assert told(*pair).like == {}


def test_of_two_the_fuller_one_is_shown_in_the_place_of_the_better() -> None:
    found = told("Alice drinks coffee.", "Bob.", "Alice drinks black coffee.", vectors=(NEAR, FAR, NEAR))
    assert names(found) == (["c", "b"], ["a"])
    assert found.like == {"a": "c"}


def test_what_was_like_one_that_gave_way_is_like_the_one_that_came_in_its_place() -> None:
    found = told("The coffee is hot.", "Coffee is hot.", "The coffee of Alice is hot.")
    assert found.like == {"a": "c", "b": "c"}
    assert names(found) == (["c"], ["b", "a"])


def test_a_long_note_is_left_out_only_when_another_says_all_of_it() -> None:
    words = " ".join(f"word{chr(97 + number)}" for number in range(20))
    assert names(told(words, f"{words} and more")) == (["b"], ["a"])
    assert names(told(f"{words} yes", f"{words} nearly")) == (["a", "b"], [])
    assert told(f"{words} yes", f"{words} nearly").like == {}
    short = "worda wordb wordc"
    assert names(told(f"{short} yes", f"{short} nearly")) == (["a", "b"], [])
    assert told(f"{short} yes", f"{short} nearly").like == {"b": "a"}


def test_words_in_another_order_are_no_repetition() -> None:
    assert told("tabs are better than spaces", "spaces are better than tabs").like == {}
    assert names(told("black coffee for Alice", "for Alice black coffee")) == (["a", "b"], [])


def test_what_is_far_is_not_alike_whatever_its_words() -> None:
    assert told("Coffee is hot.", "The coffee is hot.", vectors=(NEAR, FAR)).like == {}


def test_of_topics_with_several_vectors_or_none_only_copies_are_left_out() -> None:
    assert told("Coffee is hot.", "The coffee is hot.", vectors=(None, None)).like == {}
    assert told("Coffee is hot.", "The coffee is hot.", vectors=(NEAR, None)).like == {}
    assert names(told("Coffee is hot.", "Coffee is hot.", vectors=(None, None))) == (["a"], ["b"])


def test_another_title_makes_another_note() -> None:
    hits = [hit("a", "It runs Debian.", title="staging"), hit("b", "It runs Debian.", title="production")]
    assert names(apart(hits, [NEAR, NEAR])) == (["a", "b"], [])
    assert names(apart(hits, [None, None])) == (["a", "b"], [])
    assert apart(hits, [None, None]).like == {}


@pytest.mark.parametrize("vector", [NEAR, None])
def test_the_same_note_of_project_and_user_is_shown_once_as_the_projects(vector: Vector | None) -> None:
    of_user, of_project = hit("a", "Coffee is hot.", scope=Scope.USER), hit("a", "Coffee is hot.")
    for hits in ([of_user, of_project], [of_project, of_user]):
        found = apart(hits, [vector, vector])
        assert names(found) == (["a"], ["user:a"])
        assert found.like == {"user:a": "a"}


def test_who_asks_for_very_many_gets_what_is_behind_the_first_as_it_is() -> None:
    hits = [hit(f"{number:03}", f"Coffee is hot {number}.") for number in range(64)]
    hits += [hit("x", "Tea."), hit("y", "Tea.")]
    found = apart(hits, [NEAR] * len(hits))
    assert [other.topic.id for other in found.shown[-2:]] == ["x", "y"]


def test_nothing_is_set_aside_of_nothing() -> None:
    assert apart([], []) == Apart()
