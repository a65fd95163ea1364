import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from recall.store.frontmatter import JS_SPACE, Frontmatter, js_trim, parse


def header(*lines: str) -> Frontmatter:
    """The parsed header of a file with these lines between its delimiters."""
    front = parse("\n".join(["---", *lines, "---", "Body"]))
    assert front.body == "Body"
    return front


# --- where the header is


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: A\n---\nBody",
        "---\r\nname: A\r\n---\r\nBody",
        "---\rname: A\r---\rBody",
        "\ufeff---\nname: A\n---\nBody",
        "\n \t\n---\nname: A\n---\nBody",
        "\ufeff\n---\nname: A\n---\nBody",
        "--- \t\nname: A\n---  \nBody",
        "---\n  name: A\n---\nBody",
        "  ---\n  name: A\n  ---\nBody",
        "---\u2028name: A\u2028---\u2028Body",
        "---\n---\nname: A\n---\nBody",
    ],
    ids=[
        "plain",
        "CRLF",
        "CR",
        "BOM",
        "leading blank lines",
        "BOM and blank line",
        "blanks behind the delimiters",
        "indented keys",
        "all indented",
        "U+2028",
        "doubled opening",
    ],
)
def test_a_header_is_found_however_it_is_written(text: str) -> None:
    front = parse(text)
    assert front.has_header
    assert (dict(front.fields), front.body) == ({"name": "A"}, "Body")
    assert front.header + front.body == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "# Heading\n\nBody",
        "----\nname: A\n----\nBody",
        "Text\n---\nname: A\n---\nBody",
        "---\nOne sentence, and more.\n\nAnother paragraph: with a colon.\n\nAnd so on.\n\n---\nBody",
        "---\n\n# Heading\n\nProse\n\n---\nBody",
        "---\n\nWe decided this, after long talks: yes.\n\n---\nBody",
        "---\n\n- a list\n- note: of things\n\n---\nBody",
        "---",
        "---\n",
    ],
)
def test_a_text_without_a_header_is_all_body(text: str) -> None:
    front = parse(text)
    assert not front.has_header
    assert (front.header, front.body, dict(front.fields), front.warnings) == ("", text, {}, ())


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: A\ntype: project\n\nBody\n",
        "---\nname: A\ntype: project\n\nBody\n\n---\n\nmore",
        "---\nname: A\n\nBody\n\nNote: x\n\n---\n\nmore",
    ],
    ids=["no rule", "a rule in the body", "a colon in the body"],
)
def test_a_header_that_never_closes_is_body_with_a_warning(text: str) -> None:
    front = parse(text)
    assert not front.has_header
    assert front.body == text
    assert front.warnings == ("the header is never closed; all of the file was read as body",)


def test_the_body_is_exactly_what_follows_the_closing_line() -> None:
    assert parse("---\nname: A\n---\n\n  x\r\n\n---\ny ").body == "\n  x\r\n\n---\ny "
    assert parse("---\nname: A\n---").body == ""


@pytest.mark.parametrize("block", ["---\n---\n", "---\n\n---\n", "---\n# a comment\n---\n"])
def test_a_header_without_keys_has_no_fields(block: str) -> None:
    front = parse(f"{block}Body")
    assert front.has_header
    assert (dict(front.fields), front.body) == ({}, "Body")


def test_a_broken_header_has_no_fields_and_is_reported() -> None:
    front = header("[never: closed", "just words")
    assert front.has_header
    assert dict(front.fields) == {}
    assert "just words" in front.warnings[0]


def test_a_delimiter_with_text_closes_when_text_follows() -> None:
    front = parse("---\ntype: user\n--- end\nprose\n---\nmore")
    assert (dict(front.fields), front.body) == ({"type": "user"}, " end\nprose\n---\nmore")


def test_a_delimiter_with_text_does_not_close_when_the_header_goes_on() -> None:
    for line in ("--- end", "----"):
        front = parse(f"---\nname: A\n{line}\nx: 1\nlist:\n  - a\n\n---\nBody")
        assert dict(front.fields) == {"name": "A", "x": "1", "list": ("a",)}
        assert front.body == "Body"


def test_a_delimiter_with_text_closes_a_header_that_has_no_other_end() -> None:
    assert parse("---\ntype: user\n--- end\nx: 1").body == " end\nx: 1"


def test_a_rule_in_the_body_stays_there() -> None:
    front = parse("---\nname: A\n---\n---\nprose\n---\nname: B\n")
    assert (dict(front.fields), front.body) == ({"name": "A"}, "---\nprose\n---\nname: B\n")


def test_an_example_header_in_the_body_is_body() -> None:
    body = "Text\n```\n---\nname: B\n---\n```\n"
    front = parse(f"---\nname: A\n---\n{body}")
    assert (dict(front.fields), front.body) == ({"name": "A"}, body)


def test_two_headers_one_after_the_other_are_read_as_one() -> None:
    text = "---\nname: A\ntype: user\n---\n\n---\nname: B\ndescription: d\n---\nBody"
    front = parse(text)
    assert dict(front.fields) == {"name": "B", "type": "user", "description": "d"}
    assert front.first("name") == "A"
    assert (front.header + front.body, front.body) == (text, "Body")
    assert front.warnings == ("two headers one after the other were read as one",)


def test_comments_may_stand_above_the_header() -> None:
    text = "<!-- one\n--- -->\n<!-- two -->\n\n---\nname: A\n---\nBody"
    front = parse(text)
    assert (dict(front.fields), front.body) == ({"name": "A"}, "Body")
    assert front.preamble == "<!-- one\n--- -->\n<!-- two -->"
    assert front.header + front.body == text


# --- keys


def test_of_a_repeated_key_fields_has_the_last_and_first_the_first() -> None:
    front = header("type: user", "type: feedback")
    assert front.fields["type"] == "feedback"
    assert front.first("type") == "user"


def test_first_passes_over_empty_values_and_joins_lists() -> None:
    front = header("name:", "name:   ", "name: A", "tags: [a, b]")
    assert front.first("name") == "A"
    assert front.first("tags") == "a, b"
    assert front.first("missing") == ""


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("name:tight", "name", "tight"),
        ("name:\ttab", "name", "tab"),
        ("name:\vvertical", "name", "vertical"),
        ("name : spaced", "name", "spaced"),
        ('"name": quoted', "name", "quoted"),
        ("my key: v", "my key", "v"),
        ("allowed-tools: v", "allowed-tools", "v"),
        ("名称: 记忆", "名称", "记忆"),
        ("Name: v", "Name", "v"),
    ],
)
def test_keys_are_read_leniently_and_keep_their_case(line: str, key: str, value: str) -> None:
    assert dict(header(line).fields) == {key: value}


@pytest.mark.parametrize("line", ["just words", "name：full-width", "- item", "http://x.y:80/z", ": v"])
def test_a_line_without_a_key_is_left_out_with_a_warning(line: str) -> None:
    front = header("name: A", line, "type: user")
    assert dict(front.fields) == {"name": "A", "type": "user"}
    assert line in front.warnings[0]


def test_comment_lines_are_left_out_silently() -> None:
    front = header("# one", "name: A", "  # two", "# three: x", "type: user")
    assert dict(front.fields) == {"name": "A", "type": "user"}
    assert front.warnings == ()


def test_a_blank_and_a_stray_line_between_keys_do_not_end_a_header() -> None:
    front = header("name: A", "", "stray", "", "type: user", "")
    assert dict(front.fields) == {"name": "A", "type": "user"}


def test_more_stray_lines_than_keys_do_not_undo_a_header_that_starts_with_a_topic_key() -> None:
    front = header("name: A", "stray one", "stray two", "stray three")
    assert (dict(front.fields), len(front.warnings)) == ({"name": "A"}, 3)


# --- metadata


@pytest.mark.parametrize(
    "lines",
    [
        ("metadata:", "  type: user", "  modified: 2026-01-02T03:04:05Z"),
        ("metadata: ", "", "    type: 'user'", "    # comment", "    modified: 2026-01-02T03:04:05Z"),
        ("metadata: {type: user, modified: '2026-01-02T03:04:05Z'}",),
        ("metadata: {", "  type: user,", '  "modified": 2026-01-02T03:04:05Z,', "}"),
        ("metadata:", "\ttype: user", "\tmodified:2026-01-02T03:04:05Z"),
    ],
)
def test_the_inner_keys_of_metadata_are_kept_apart(lines: tuple[str, ...]) -> None:
    front = header("name: A", *lines, "description: d")
    assert dict(front.metadata) == {"type": "user", "modified": "2026-01-02T03:04:05Z"}
    assert "type" not in front.fields
    assert front.first("description") == "d"


def test_metadata_may_hold_lists_and_deeper_maps() -> None:
    front = header("metadata:", "  tags:", "    - a", "    - b", "  more:", "    type: x", "  type: user")
    assert dict(front.metadata) == {"tags": "a, b", "more": "type: x", "type": "user"}


def test_metadata_that_is_a_plain_text_has_no_keys() -> None:
    front = header("metadata: some text")
    assert (dict(front.metadata), front.fields["metadata"]) == ({}, "some text")


# --- for all texts

_LINES = st.sampled_from(
    [
        "---",
        "--- ",
        "----",
        "--- x",
        "name: A",
        "k:",
        "  - a",
        "- b",
        "k: >-",
        "  t",
        "",
        "# c",
        "'",
        'q: "a',
        "{",
        "[x",
    ]
)


@given(st.one_of(st.text(), st.lists(st.one_of(_LINES, st.text(max_size=8)), max_size=12).map("\n".join)))
def test_nothing_raises_and_nothing_is_lost(text: str) -> None:
    front = parse(text)
    assert front.header + front.body == text
    assert front.has_header or not front.fields
    assert set(front.fields) == {key for key, _ in front.pairs}
    for value in front.fields.values():
        assert isinstance(value, str) or all(isinstance(item, str) for item in value)


_PLAIN = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=150)


@given(st.dictionaries(st.sampled_from(["name", "description", "type", "my key"]), _PLAIN, min_size=1))
def test_what_yaml_writes_is_read_back(fields: dict[str, str]) -> None:
    dumped = yaml.safe_dump(fields, allow_unicode=True, sort_keys=False)
    read = parse(f"---\n{dumped}---\nBody").fields
    assert {key: js_trim(str(value)) for key, value in read.items()} == {k: js_trim(v) for k, v in fields.items()}


def test_trim_is_that_of_javascript() -> None:
    assert js_trim(f"{JS_SPACE}x{JS_SPACE}") == "x"
    assert js_trim("\x1cx\x85") == "\x1cx\x85"
    assert js_trim("\u200bx") == "\u200bx"
