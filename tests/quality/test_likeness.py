"""What `check` says about files that cannot be told apart or say the same."""

from collections.abc import Callable

from recall.quality.findings import Kind, Severity
from tests.quality.conftest import Looked, topic

Look = Callable[..., Looked]
FACT = "Releases go out on Tuesday mornings only."


def test_names_that_differ_by_case_or_form_of_letters_are_told(looked: Look) -> None:
    found = looked(
        {"Note.md": topic("1."), "note.md": topic("2."), "caf\u00e9.md": topic("3."), "cafe\u0301.md": topic("4.")}
    )
    assert found.places(Kind.CASE) == [("caf\u00e9.md", 1), ("note.md", 1)]


def test_one_title_of_two_topics_is_a_note_and_a_kind_is_no_title(looked: Look) -> None:
    found = looked(
        {
            "a.md": topic("1.", name="Style"), "b.md": topic("2.", name="STYLE."), "c.md": topic("3."),
            "d.md": topic("4."), "old.md": topic("5.", name="Style", superseded_by="a.md"),
        }
    )  # fmt: skip
    (finding,) = found.of(Kind.TITLE)
    assert (finding.path, finding.severity) == ("b.md", Severity.NOTE)
    assert "the title of a.md" in finding.message


def test_identical_bodies_are_told_once_for_each_copy(looked: Look) -> None:
    body = f"{FACT}\n\nWhy: the warehouse is closed."
    found = looked({"a.md": topic(body), "b.md": topic(body.upper()), "c.md": topic(f"  {body} "), "d.md": topic("x")})
    assert [(finding.path, finding.message) for finding in found.of(Kind.SAME_BODY)] == [
        ("b.md", "says the same as a.md"),
        ("c.md", "says the same as a.md"),
    ]
    assert found.of(Kind.SAME_ENTRY) == []


def test_an_entry_that_stands_in_two_topics_is_told_with_both_places(looked: Look) -> None:
    found = looked(
        {"a.md": topic(f"- One thing.\n- {FACT}"), "b.md": topic(f"- Another.\n- {FACT.lower()}\n- One thing.")}
    )
    (finding,) = found.of(Kind.SAME_ENTRY)
    assert (finding.path, finding.line) == ("b.md", 7)
    assert finding.message == "says the same as a.md:7"


def test_an_entry_that_stands_in_one_topic_twice_is_told(looked: Look) -> None:
    (finding,) = looked({"a.md": topic(f"- {FACT}\n- x\n- {FACT} ")}).of(Kind.SAME_ENTRY)
    assert finding.message == "says the same as line 6"


def test_chinese_statements_count_by_what_they_say_not_by_their_length(looked: Look) -> None:
    found = looked({"a.md": topic("- 发布只在周二上午进行\n- 好的"), "b.md": topic("- 发布只在周二上午进行。\n- 好的")})
    assert len(found.of(Kind.SAME_ENTRY)) == 1


def test_entries_that_differ_in_a_number_or_a_negation_are_two_facts(looked: Look) -> None:
    found = looked(
        {
            "a.md": topic(f"- The service listens on port 8080.\n- {FACT}\n- Use -1 for the timeout of all calls."),
            "b.md": topic(
                "- The service listens on port 8081.\n- Use 1 for the timeout of all calls.\n- Do not do it."
            ),
        }
    )
    assert found.of(Kind.SAME_ENTRY) == []


def test_what_was_superseded_may_say_the_same_as_before(looked: Look) -> None:
    found = looked({"a.md": topic(FACT), "b.md": topic(FACT, superseded_by="a.md")})
    assert found.of(Kind.SAME_BODY) == []


def test_empty_bodies_say_nothing_twice(looked: Look) -> None:
    assert looked({"a.md": topic(""), "b.md": topic("")}).of(Kind.SAME_BODY) == []
