"""An index that people and agents keep: which lines are touched and which are not (DESIGN 4.4, deviations V22)."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.store.index_file import Put, build_missing, curated, entries
from recall.store.index_lines import QWEN, WAVE
from recall.store.topics import MemoryType, Scope, Topic


def topic(path: str, title: str = "", description: str = "", type: MemoryType | None = None) -> Topic:
    file = Path("/memory") / path
    return Topic(Scope.PROJECT, path, title or file.stem, description, type, "", 0.0, 0.0, file)


INDEX = (
    "# Memory\n\nRead [the guide](guide.md) first.\n\n"
    "- [A](a.md) — about a\n- [BA](ba.md) — about ba\n  - more of ba\n\n## Elsewhere\n\n- [Docs](https://a.example/a.md)\n"
)

# --- new topics


def test_a_new_topic_gets_a_line_behind_the_last_one_and_what_is_indented_below_it() -> None:
    text = curated(INDEX, put=[Put(topic("new.md", "New", "fresh"))])
    assert text == INDEX.replace("more of ba\n", "more of ba\n- [New](new.md) — fresh\n")


def test_an_empty_index_gets_its_first_line() -> None:
    assert curated("", put=[Put(topic("a.md", "A", "d"))]) == "- [A](a.md) — d\n"


def test_behind_text_without_any_line_the_first_stands_apart() -> None:
    assert curated("# Memory\n", put=[Put(topic("a.md"))]) == "# Memory\n\n- [a](a.md)\n"
    assert curated("# Memory\n\n", put=[Put(topic("a.md"))]) == "# Memory\n\n- [a](a.md)\n"
    assert curated("# Memory", put=[Put(topic("a.md"))]) == "# Memory\n\n- [a](a.md)"


def test_line_ends_are_those_of_the_file_and_a_missing_last_one_stays_missing() -> None:
    put = [Put(topic("b.md")), Put(topic("c.md"))]
    assert curated("- [a](a.md)\r\n", put=put) == "- [a](a.md)\r\n- [b](b.md)\r\n- [c](c.md)\r\n"
    assert curated("x\r\n- [a](a.md)", put=put) == "x\r\n- [a](a.md)\r\n- [b](b.md)\r\n- [c](c.md)"
    assert curated("- [a](a.md)\nx", put=put) == "- [a](a.md)\n- [b](b.md)\n- [c](c.md)\nx"


@pytest.mark.parametrize(
    "line",
    ["- [Mine](<./n%65w.md#part>): by hand", "See [it](new.md).", "- [A](a.md), [N](new.md)", "* [[new]]",
     "| [n](new.md) |"],
)  # fmt: skip
def test_a_new_topic_that_has_a_link_already_gets_no_other(line: str) -> None:
    assert curated(f"{line}\n", put=[Put(topic("new.md", "New", "fresh"))]) == f"{line}\n"


def test_a_new_topic_that_no_link_can_lead_to_gets_no_line() -> None:
    assert curated(INDEX, put=[Put(topic("../a.md")), Put(topic("b[1].md"))], dialect=WAVE) == INDEX


def test_an_example_in_a_fence_is_no_line() -> None:
    text = "```\n- [A](a.md)\n```\n"
    assert curated(text, put=[Put(topic("a.md"))]) == f"{text}\n- [a](a.md)\n"
    assert curated(text, gone=["a.md"]) == text


# --- deleted topics


def test_only_the_line_of_exactly_this_file_goes() -> None:
    assert curated(INDEX, gone=["a.md"]) == INDEX.replace("- [A](a.md) — about a\n", "")
    assert curated(INDEX, gone=["md", "A", "a", ".md", "sub/a.md", "A.md", "./a.md"]) == INDEX


@pytest.mark.parametrize(
    "line",
    ["* [x](./a.md)", "1. [x](%61.md#p) - d", "- [x](<a.md>)", "### [x](a.md 't')", "- ~~[x](a.md)~~",
     "- [ ] [x](a.md)", "- ★ [**x**](a.md)", "- [[a]]", "  - [x](sub/../a.md)", "- [x](a.md) — see also [[b]]"],
)  # fmt: skip
def test_the_line_goes_however_its_link_is_written(line: str) -> None:
    assert curated(f"top\r\n{line}\r\n- [b](b.md)\r\n", gone=["a.md"]) == "top\r\n- [b](b.md)\r\n"


def test_a_file_that_is_linked_twice_goes_twice() -> None:
    assert curated("- [a](a.md)\n- [b](b.md)\n- [a again](a.md)\n", gone=["a.md"]) == "- [b](b.md)\n"


def test_a_link_among_other_words_becomes_the_words() -> None:
    assert curated(INDEX, gone=["guide.md"]) == INDEX.replace("[the guide](guide.md)", "the guide")
    assert curated("- [A](a.md), [B](b.md)\n", gone=["a.md"]) == "- A, [B](b.md)\n"
    assert curated("- [A](a.md), [B](b.md)\n", gone=["b.md"]) == "- [A](a.md), B\n"


def test_a_description_that_begins_with_a_link_goes_with_its_line() -> None:
    line = curated("", put=[Put(topic("a.md", "A", "[[b]] and [[c]] replaced it"))])
    assert line == "- [A](a.md) — [[b]] and [[c]] replaced it\n"
    assert curated(line, gone=["a.md"]) == ""
    assert curated("- [A](a.md) and [B](b.md)\n- [A](a.md)、[B](b.md)\n", gone=["a.md"]) == (
        "- A and [B](b.md)\n- A、[B](b.md)\n"
    )


def test_a_paragraph_that_goes_on_with_a_link_keeps_its_words() -> None:
    assert curated("More is in\n[A](a.md) as well.\n", gone=["a.md"]) == "More is in\nA as well.\n"
    assert curated("More:\n\n[A](a.md) d\n[B](b.md) e\n", gone=["a.md", "b.md"]) == "More:\n\n"


def test_what_goes_at_an_edge_leaves_mark_and_end_as_they_were() -> None:
    assert curated("\ufeff- [a](a.md)\n- [b](b.md)", gone=["a.md"]) == "\ufeff- [b](b.md)"
    assert curated("- [a](a.md)\r\n- [b](b.md)", gone=["b.md"]) == "- [a](a.md)"
    assert curated("- [a](a.md)\n", gone=["a.md"]) == ""
    assert curated("\ufeff- [a](a.md)\n", put=[Put(topic("b.md"))]) == "\ufeff- [a](a.md)\n- [b](b.md)\n"


# --- changed topics

OLD = topic("a.md", "A", "old words")


@pytest.mark.parametrize("line", ["- [A](a.md) — old words", "* [My A](./a.md): my words", "- ★ [A](a.md)"])
def test_a_line_that_still_fits_stays_as_people_wrote_it(line: str) -> None:
    assert curated(f"{line}\n", put=[Put(OLD, OLD)]) == f"{line}\n"


def test_a_new_description_replaces_the_old_one_behind_marker_and_title() -> None:
    new = topic("a.md", "A", "new words")
    assert curated("- [A](a.md) — old words\r\nx", put=[Put(new, OLD)]) == "- [A](a.md) — new words\r\nx"
    assert curated("  * [My A](./a.md): my words", put=[Put(new, OLD)]) == "  * [My A](a.md) — new words"
    assert curated("### [A](a.md)\n", put=[Put(topic("a.md", "A"), OLD)]) == "### [A](a.md)\n"


def test_a_new_title_replaces_the_whole_line() -> None:
    assert curated("1. [My A](a.md) mine\n", put=[Put(topic("a.md", "B", "old words"), OLD)]) == (
        "1. [B](a.md) — old words\n"
    )


def test_a_line_anew_is_no_longer_than_any_other() -> None:
    text = curated("      - [A](a.md)\n", put=[Put(topic("a.md", "A", "w" * 500), OLD)])
    assert len(text) == 151
    assert text.startswith("      - [A](a.md) — www")


def test_a_row_of_links_is_left_to_its_writer() -> None:
    text = "- [A](a.md) · [B](b.md)\n"
    assert curated(text, put=[Put(topic("a.md", "B", "new"), OLD)]) == text


def test_a_changed_topic_without_a_link_gets_a_line_and_an_unchanged_one_none() -> None:
    assert curated("- [b](b.md)\n", put=[Put(topic("a.md", "A", "new"), OLD)]) == "- [b](b.md)\n- [A](a.md) — new\n"
    assert curated("- [b](b.md)\n", put=[Put(OLD, OLD)]) == "- [b](b.md)\n"


def test_the_hosts_own_dialect_is_kept() -> None:
    old = topic("user.md", "U", "", MemoryType.USER)
    new = topic("user.md", "U", "", MemoryType.USER)
    assert curated("", put=[Put(new)], dialect=QWEN) == "- [U](user.md) — user\n"
    assert curated("- [U](user.md) — user\n", put=[Put(new, old)], dialect=QWEN) == "- [U](user.md) — user\n"


# --- topics that moved


def test_where_only_the_place_changed_only_the_target_does() -> None:
    moved = topic("sub/b c.md", "A", "old words")
    text = "- [My A](<./a.md#part> 'hover') — my words\n* [[a]], see [it](a.md)\n- [BA](ba.md)\n"
    assert curated(text, put=[Put(moved, OLD)], gone=["a.md"]) == (
        "- [My A](<sub/b%20c.md#part> 'hover') — my words\n* [[sub/b c]], see [it](sub/b%20c.md)\n- [BA](ba.md)\n"
    )


def test_a_line_of_ours_follows_a_move_in_title_and_target() -> None:
    old, new = topic("a.md", "N", "d"), topic("b.md", "N", "d")
    assert curated("- [a](a.md) — d\n", put=[Put(new, old)], dialect=WAVE) == "- [b](b.md) — d\n"


def test_two_topics_that_change_places_keep_their_lines() -> None:
    a, b = topic("a.md", "A", "d"), topic("b.md", "B", "e")
    put = [Put(topic("b.md", "A", "d"), a), Put(topic("a.md", "B", "e"), b)]
    assert curated("- [A](a.md) — d\n- [B](b.md) — e\n", put=put) == "- [A](b.md) — d\n- [B](a.md) — e\n"


def test_a_topic_that_comes_back_is_not_dropped() -> None:
    assert curated("- [A](a.md) — d\n", put=[Put(OLD)], gone=["a.md"]) == "- [A](a.md) — d\n"


# --- all of it

PATHS = ["a.md", "ba.md", "sub/a.md", "项目.md", "a b.md"]
WRITTEN = st.sampled_from(
    [
        "- [A](a.md) — x", "* [B](ba.md)", "- [C](sub/a.md), [D](a.md)", "- [[项目]]", "- [E](a%20b.md): y",
        "see [A](a.md)", "# Memory", "", "  - below", "> 引用 🧠", "```", "- [U](../a.md)", "\ufeff", "a\rb",
        "- [W](https://x.example/a.md)",
    ]
)  # fmt: skip


def is_in_order(lines: list[str], within: list[str]) -> bool:
    rest = iter(within)
    return all(any(line.rstrip("\r") == other.rstrip("\r") for other in rest) for line in lines if line.strip("\r"))


@given(st.lists(st.tuples(WRITTEN, st.sampled_from(["\n", "\r\n"])), max_size=8), st.sampled_from(PATHS), st.booleans())
def test_every_other_line_stays_byte_for_byte(lines: list[tuple[str, str]], path: str, is_whole: bool) -> None:
    text = "".join(line + end for line, end in lines)
    text = text if is_whole else text.removesuffix("\n").removesuffix("\r")
    assert curated(text) == text
    without = curated(text, gone=[path])
    assert path not in {entry.target for entry in entries(without)}
    touched = {entry.line for entry in entries(text) if entry.target == path}
    untouched = [line for number, line in enumerate(text.split("\n"), 1) if number not in touched]
    assert is_in_order(untouched, without.split("\n"))
    assert touched or without == text
    fresh = topic("new.md", "New", "d")
    added = curated(text, put=[Put(fresh)])
    assert curated(added, put=[Put(fresh)]) == added
    assert [entry.target for entry in entries(added)].count("new.md") == 1 or "```" in text
    assert curated(added, gone=["new.md"]).replace("\r\n", "\n").rstrip("\n") == text.replace("\r\n", "\n").rstrip("\n")


def test_an_index_that_was_built_can_be_kept_up() -> None:
    topics = [topic(f"t{number}.md", description="d") for number in range(150)]
    text = build_missing(topics)
    changed = curated(text, put=[Put(topic("new.md"))], gone=["t0.md"])
    lines = [line for line in text.splitlines() if "(t0.md)" not in line]
    assert changed.splitlines() == [*lines[:-1], "- [new](new.md)", lines[-1]]


def test_many_topics_cost_no_more_than_their_number() -> None:
    topics = [topic(f"t{number}.md") for number in range(20_000)]
    text = curated("", put=[Put(one) for one in topics])
    assert text.count("\n") == 20_000
    assert curated(text, gone=[one.path for one in topics]) == ""
