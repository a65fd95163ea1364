"""A memory file is edited by structure: what was not meant to change is afterwards what it was before."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recall.errors import TopicError
from recall.store.editing import Source, rendered, scalar, without
from recall.store.frontmatter import parse
from recall.store.topics import PLACEHOLDER, Entry, parse_entries


def source(text: str) -> Source:
    return Source.of("x.md", text.encode("utf-8", "surrogateescape"))


HEADERS = {
    "plain": "---\nname: N\ntype: user\n---\n",
    "block scalar": "---\nname: N\ndescription: >-\n  a long\n\n  text\ntype: user\n---\n",
    "literal block": "---\ndescription: |\n  name: not a key\n  b\n\nname: N\n---\n",
    "repeated keys": "---\nname: N\ndescription: one\nother: x\ndescription: two\n---\n",
    "empty and repeated": "---\nname: N\ndescription:\ndescription: two\n---\n",
    "nested map": "---\nname: N\nmetadata:\n  description: inner\n  type: user\n---\n",
    "flow map": "---\nname: N\nmetadata: {type: user, description: inner}\n---\n",
    "indented": "  ---\n  name: N\n  description: x\n  ---\n",
    "comments": "---\n# above\nname: N # behind\n# between\ndescription: x\n---\n",
    "comment above": "<!-- generated -->\n\n---\nname: N\n---\n",
    "byte order mark": "\ufeff---\nname: N\n---\n",
    "CRLF": "---\r\nname: N\r\ndescription: x\r\n---\r\n",
    "CR only": "---\rname: N\rdescription: x\r---\r",
    "line separators": "---\nname: N\u2028description: x\u2029---\n",
    "two headers": "---\nname: N\n---\n\n---\ndescription: x\n---\n",
    "doubled opening": "---\n---\nname: N\n---\n",
    "quoted keys": "---\n\"name\": N\n'description': x\n---\n",
    "blank before colon": "---\nname : N\ndescription : x\n---\n",
    "list": "---\nname: N\ndescription:\n- a\n- b\ntype: user\n---\n",
    "indented list": "---\nname: N\ndescription:\n  - a\n  - b\ntype: user\n---\n",
    "brackets": "---\nname: N\ndescription: [\n  a,\n]\ntype: user\n---\n",
    "quoted over lines": '---\nname: N\ndescription: "long\n\n  text"\ntype: user\n---\n',
    "Chinese": "---\nname: 名字\ndescription: 描述：带冒号\n标签: 甲\n---\n",
    "empty": "---\n---\n",
    "none": "",
    "blank lines above": "\n\n---\nname: N\n---\n",
    "odd characters": "---\nname: a\x0bb\x85c\ndescription: x\n---\n",
}
UNCLOSED = "---\nname: A\ndescription: x\n\nfact one\n"
FACTS = "fact one\n\nWhy: because\n\nfact two\n"


def put(header: str, body: str = FACTS) -> str:
    """The body below the header, in its line ends."""
    end = "\r\n" if "\r\n" in header else "\r" if "\r" in header else "\n"
    return header + body.replace("\n", end)


# --- entries


@pytest.mark.parametrize("name", HEADERS)
def test_one_fact_goes_and_header_and_the_others_stay(name: str) -> None:
    before = source(put(HEADERS[name]))
    if name == "comment above":  # which makes it one document
        assert before.with_entries(before.entries).text == put(HEADERS[name], f"\n{FACTS}")
        return
    after = before.with_entries(without(before.entries, {1}))
    assert after.entries == [Entry("fact one", why="because")]
    assert after.text.startswith(HEADERS[name])
    assert parse(after.text).fields == parse(before.text).fields
    assert after.newline == before.newline
    assert after.with_entries(after.entries) == after
    assert before.with_entries(before.entries).entries == before.entries


def test_a_header_that_never_closes_is_body_and_nothing_of_it_doubles() -> None:
    before = source(UNCLOSED)
    after = before.with_entries([*before.entries, Entry("added")])
    assert after.entries == [*before.entries, Entry("added")]
    assert after.text.count("---") == 1


def test_titles_stay_above_the_facts() -> None:
    text = "---\nname: N\n---\n\n# Title\n\n　# Another\n\n- one\n- two\n"
    after = source(text).with_entries([Entry("two")])
    assert after.text == "---\nname: N\n---\n\n# Title\n\n　# Another\n\ntwo\n"


def test_rules_above_the_facts_are_facts_as_for_every_reader_and_are_not_doubled() -> None:
    before = source("---\nname: N\n---\n\n---\n\none\n")
    assert [entry.summary for entry in before.entries] == ["---", "one"]
    assert before.with_entries(before.entries).text.count("---") == 3


def test_a_file_without_its_last_fact_says_that_it_has_none() -> None:
    empty = source("---\nname: N\n---\none\n").with_entries([])
    assert empty.text == f"---\nname: N\n---\n\n{PLACEHOLDER}\n"
    assert empty.entries == []
    assert empty.with_entries([Entry("one")]).text == "---\nname: N\n---\n\none\n"


def test_a_byte_order_mark_stays_also_without_a_header() -> None:
    assert source("\ufeffone\ntwo\n").with_entries([Entry("two")]).text == "\ufefftwo\n"


def test_a_header_without_a_line_end_gets_one() -> None:
    assert source("---\nname: N\n---").with_entries([Entry("one")]).text == "---\nname: N\n---\n\none\n"


def test_bytes_that_are_no_text_survive() -> None:
    before = Source.of("x.md", b"---\nname: \xff\n---\none \xfe\n\ntwo\n")
    assert before.with_entries(without(before.entries, {1})).data == b"---\nname: \xff\n---\n\none \xfe\n"


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_other_encodings_are_refused_with_advice(mark: bytes) -> None:
    with pytest.raises(TopicError, match="UTF-8"):
        Source.of("x.md", mark + b"o\0n\0e\0")


MEANT_LITERALLY = [
    "# is a comment in YAML",
    "- is the range operator",
    "* matches everything",
    "Why: is a word",
    "How to apply: read it",
    "原因：是一个词",
    "1. is a number",
    "> is a quote",
    "``` is a fence",
    "| is a pipe",
    "## two marks",
    "---",
    "***",
    PLACEHOLDER,
    "一、第一",
]


@pytest.mark.parametrize("text", MEANT_LITERALLY)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_fact_that_looks_like_something_else_stays_a_fact(text: str, at: int) -> None:
    entries = [Entry("one", why="so"), Entry("two")]
    entries.insert(at, Entry(text, how_to_apply="always"))
    assert parse_entries(rendered(entries)) == entries
    assert parse_entries(rendered([Entry(text)])) == [Entry(text)]


def test_bullets_are_only_written_where_they_are_needed() -> None:
    assert rendered([Entry("one"), Entry("-1 is allowed")]) == "one\n\n-1 is allowed"


LINES = st.one_of(
    st.sampled_from(
        ["fact", "- fact", "* - x", "- # no title", "# Title", "Why: so", "  - Why: so", "- Why: so", "---"]
    ),
    st.sampled_from(
        ["1. one", "- 1. one", "> q", "", "原因：因为", "How to apply: **x**", "**Why:** y", "-", "- ", "\u3000"]
    ),
    st.text(max_size=12),
)
BODIES = st.lists(LINES, max_size=6).map("\n".join)


@given(st.sampled_from(sorted(HEADERS)), BODIES)
def test_what_is_not_meant_to_change_survives_whatever_the_file_holds(name: str, body: str) -> None:
    before = source(put(HEADERS[name], body))
    again = before.with_entries(before.entries)
    assert again.entries == before.entries or not before.entries
    assert again.with_entries(again.entries).entries == again.entries
    assert parse(again.text).fields == parse(before.text).fields or not parse(before.text).fields
    assert again.text.startswith(parse(before.text).header)


@given(BODIES, st.data())
def test_all_other_facts_survive_when_some_go(body: str, data: st.DataObject) -> None:
    before = source("---\nname: N\n---\n" + body)
    if parse(before.text).fields != {"name": "N"} or not before.entries:
        return
    gone = data.draw(st.sets(st.integers(0, len(before.entries) - 1)))
    left = without(before.entries, gone)
    assert before.with_entries(left).entries == left


# --- header fields


@pytest.mark.parametrize("name", [*HEADERS, "unclosed"])
@pytest.mark.parametrize(("key", "value"), [("description", 'new: "said" # so'), ("name", "New"), ("origin", "agent")])
def test_a_field_is_set_and_everything_else_stays(name: str, key: str, value: str) -> None:
    before = source(put(HEADERS[name]) if name in HEADERS else UNCLOSED)
    after = before.with_fields({key: value})
    was, now = parse(before.text), parse(after.text)
    assert now.first(key) == now.fields[key] == value
    assert [pair for pair in now.pairs if pair[0] != key] == [pair for pair in was.pairs if pair[0] != key]
    assert now.metadata == was.metadata
    assert (now.body, now.preamble) == (was.body, was.preamble) or not was.has_header
    assert after.entries == before.entries
    assert after.newline == before.newline
    assert after.text.startswith("\ufeff") == before.text.startswith("\ufeff")
    assert after.with_fields({key: value}) == after


@pytest.mark.parametrize("name", ["comments", "block scalar", "nested map", "indented", "CRLF"])
def test_all_other_header_lines_stay_to_the_letter(name: str) -> None:
    before = source(put(HEADERS[name]))
    after = before.with_fields({"description": "new"})
    inserted = [line for line in after.text.splitlines() if line not in before.text.splitlines()]
    assert [line.strip() for line in inserted] == ["description: new"]
    kept = [line for line in parse(before.text).header.splitlines() if "---" in line or "#" in line or "name" in line]
    assert [line for line in parse(after.text).header.splitlines() if line in kept] == kept


def test_words_between_rules_are_no_header_and_stay_text() -> None:
    after = source("---\nJust words\n---\nfact\n").with_fields({"name": "N"})
    assert parse(after.text).fields == {"name": "N"}
    assert after.text.endswith("---\nJust words\n---\nfact\n")


def test_of_a_repeated_field_one_is_left_so_that_every_reader_sees_the_same() -> None:
    after = source(HEADERS["repeated keys"]).with_fields({"description": "new"})
    assert after.text == "---\nname: N\ndescription: new\nother: x\n---\n"


def test_several_fields_are_set_in_their_order() -> None:
    assert source("one\n").with_fields({"name": "N", "type": "user"}).text == "---\nname: N\ntype: user\n---\n\none\n"


@given(st.text(max_size=40))
@example("true")
@example("\x7f \\ \ufffe")
@example('"')
@example("a\x00b\\")
@example("{a: b}")
@example("- x")
@example("😀：# ' ---")
@example("--- x")
def test_every_value_is_read_as_it_was_written_but_for_blanks(value: str) -> None:
    text = f"---\nkey: {scalar(value)}\nother: x\n---\nbody\n"
    found = parse(text)
    assert found.fields == {"key": " ".join(value.split()), "other": "x"}
    assert found.body == "body\n"


@given(st.sampled_from(sorted(HEADERS)), st.text(max_size=30), BODIES)
def test_setting_a_field_changes_nothing_else_whatever_it_is(name: str, value: str, body: str) -> None:
    before = source(put(HEADERS[name], body))
    was = parse(before.text)
    after = before.with_fields({"description": value})
    now = parse(after.text)
    assert now.first("description") == " ".join(value.split())
    assert {key: text for key, text in now.fields.items() if key != "description"} == {
        key: text for key, text in was.fields.items() if key != "description"
    }
    assert after.with_fields({"description": value}) == after


# --- whole texts


def test_a_new_text_takes_the_line_ends_of_the_file() -> None:
    assert source("\ufeffone\r\ntwo\r\n").saying("a\nb\r\n").text == "\ufeffa\r\nb\r\n"
    assert source("one\rtwo\r").saying("a\nb\n").text == "a\rb\r"
    assert source("one\n").saying("\ufeffa\r\nb").text == "a\nb"


def test_a_text_is_the_same_in_other_line_ends() -> None:
    assert source("\ufeffone\r\ntwo\r\n").says("one\ntwo\n")
    assert source("one\rtwo\r").says("one\ntwo\n")
    assert not source("one\ntwo\n").says("one\ntwo")
