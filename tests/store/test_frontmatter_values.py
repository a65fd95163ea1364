import pytest

from recall.store.frontmatter import Frontmatter, parse


def header(*lines: str) -> Frontmatter:
    """The parsed header of a file with these lines between its delimiters."""
    front = parse("\n".join(["---", *lines, "---", "Body"]))
    assert front.body == "Body"
    return front


def field(*lines: str) -> object:
    return header(*lines).fields["k"]


# --- plain values


@pytest.mark.parametrize(
    "value",
    [
        "Note: use pnpm, see http://x.y:80/z",
        "issue #12 is open",
        "2026-08-14 #1131 closed",
        "#1 rule",
        "@scope/pkg",
        "`pnpm test` first",
        "%d & *.ts ! x",
        "*.ts",
        "&a !b",
        "{src,lib}/**/*.ts",
        "<type>(<scope>): <description>",
        'say "hi" to all',
        '"quoted" and more',
        "'quoted' and 'more'",
        "'open",
        '"open',
        "[unclosed",
        "[link](a.md) and [two](b.md)",
        "[[wiki-link]]",
        "[WIP] #123 fixed",
        '"WIP" #123',
        "- dash",
        "42",
        "010",
        "true",
        "no",
        "null",
        "2026-03-05",
        "a\0b",
        "N\x1c",
        "🚀 go",
        "> 5 items",
        "| a | b |",
    ],
)
def test_a_plain_value_is_kept_as_written(value: str) -> None:
    assert field(f"k: {value}", "z: 1") == value


@pytest.mark.parametrize("lines", [("k:",), ("k:   ",), ("k: ''",), ('k: ""',), ("k: >-",), ("k:", "# comment")])
def test_an_empty_value_is_an_empty_string(lines: tuple[str, ...]) -> None:
    assert field(*lines, "z: 1") == ""


def test_blanks_around_a_value_are_cut_off_as_javascript_does() -> None:
    assert field("k: \u3000\ufeff v\u200b \xa0\t") == "v\u200b"


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        (("k: one", "  two"), "one two"),
        (("k:", "  one", "  two"), "one two"),
        (("k:", "\tone", "\ttwo"), "one two"),
        (("k: one", "", "  two"), "one\ntwo"),
        (("k: one", "  # comment", "  two"), "one two"),
        (("k: one", "  z: 2"), "one z: 2"),
        (("k: 一", "  二"), "一 二"),
    ],
)
def test_indented_lines_continue_a_value(lines: tuple[str, ...], value: str) -> None:
    front = header(*lines, "z: 1")
    assert dict(front.fields) == {"k": value, "z": "1"}


# --- quoted values


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('"A b"', "A b"),
        ("'A b'", "A b"),
        ("'it''s'", "it's"),
        ('"it\'s"', "it's"),
        (r'"a \"b\" c"', 'a "b" c'),
        (r'"a\tb\u4e2d"', "a\tb中"),
        (r'"\ud83d\ude80"', "🚀"),
        (r'"\ud83d"', "\ufffd"),
        (r'"C:\Users\me"', r"C:\Users\me"),
        (r'"C:\Users\"me\""', r'C:\Users"me"'),
        ('"project" # comment', "project"),
        ("'project'   # comment", "project"),
        ('"a # b"', "a # b"),
        ('""', ""),
    ],
)
def test_balanced_quotes_are_removed(written: str, value: str) -> None:
    assert field(f"k: {written}", "z: 1") == value


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        (('k: "one', '  two"'), "one two"),
        (("k: 'one", "", "  it''s'"), "one\nit's"),
        (('k: "one', '  #2 two"'), "one #2 two"),
        (('k: "one\\', '  \\ two"'), "one two"),
        (('k: "one"', "  # comment"), "one"),
        (('k: "one" and', "  two"), '"one" and two'),
    ],
)
def test_quotes_may_span_lines(lines: tuple[str, ...], value: str) -> None:
    assert field(*lines, "z: 1") == value


# --- block scalars


@pytest.mark.parametrize("mark", [">", ">-", ">+", ">2", ">2-", ">-2", "> # comment", ">- # comment"])
def test_a_folded_block_is_one_line(mark: str) -> None:
    assert field(f"k: {mark}", "  one", "  two", "", "z: 1") == "one two"


@pytest.mark.parametrize("mark", ["|", "|-", "|+", "|2", "|+ # comment"])
def test_a_literal_block_keeps_its_lines(mark: str) -> None:
    assert field(f"k: {mark}", "  one", "    two", "", "  three", "", "", "z: 1") == "one\n  two\n\nthree"


def test_the_lines_of_a_block_are_no_keys_items_or_comments() -> None:
    front = header("k: |-", "  - one", "  x: 2", "  # three", "  ---", "type: user")
    assert dict(front.fields) == {"k": "- one\nx: 2\n# three\n---", "type": "user"}


def test_blank_lines_in_a_folded_block_are_line_breaks() -> None:
    assert field("k: >-", "  a", "", "", "  b") == "a\n\nb"


def test_an_indentation_indicator_keeps_further_blanks() -> None:
    assert field("k: |1", "   one", " two", "   three") == "one\ntwo\n  three"
    assert field("k: |1", " zero", "  one") == "zero\n one"


# --- lists


@pytest.mark.parametrize(
    "lines",
    [
        ("k:", "- a", "- b"),
        ("k:", "  - a", "  - b"),
        ("k:", "  - a", "", "  # comment", "  - 'b'"),
        ("k:", "\t- a", '\t- "b"'),
        ("k: [a, b]",),
        ("k: [ 'a' , \"b\" ]  # comment",),
        ("k: [a,", "  b,", "]"),
    ],
)
def test_a_list_is_a_tuple_of_strings(lines: tuple[str, ...]) -> None:
    front = header(*lines, "z: 1")
    assert dict(front.fields) == {"k": ("a", "b"), "z": "1"}
    assert front.warnings == ()


@pytest.mark.parametrize(
    ("lines", "items"),
    [
        (("k: []",), ()),
        (("k: [src/**, '*.{ts,tsx}', lib/{a,b}/*]",), ("src/**", "*.{ts,tsx}", "lib/{a,b}/*")),
        (("k: ['a, b', \"c, d\"]",), ("a, b", "c, d")),
        (("k: [don't, 1, [x, y]]",), ("don't", "1", "[x, y]")),
        (("k:", "  - one", "    two", "  - three"), ("one two", "three")),
        (("k:", "  - x: 1", "  -", "  - >-", "      a", "      b"), ("x: 1", "a b")),
    ],
)
def test_items_keep_commas_braces_and_continuations(lines: tuple[str, ...], items: tuple[str, ...]) -> None:
    assert field(*lines) == items
