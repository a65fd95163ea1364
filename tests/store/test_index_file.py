"""Lines of an index, its links, and what is loaded of it (wave.md W-AUT-02, W-CAP-01, W-CAP-08, deviations V15)."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recall.errors import TopicError
from recall.store.capacity import ADVISED_CHARS, INDEX_CAPS_IN_BYTES, Caps, Unit
from recall.store.index_file import IndexEntry, entries, index_line, load_index, truncate
from recall.store.index_lines import CURATED, QWEN, WAVE, Dialect, topic_line
from recall.store.topics import MemoryType, Scope, Topic

DIALECTS = {"qwen": QWEN, "wave": WAVE, "curated": CURATED}


def topic(path: str = "a.md", *, title: str = "A", description: str = "", type: MemoryType | None = None) -> Topic:
    return Topic(Scope.PROJECT, path, title, description, type, "", 0.0, 0.0, Path("/memory") / path)


# --- one line


def test_a_line_is_a_link_and_a_description() -> None:
    assert index_line("Reply style", "feedback/style.md", "Keep it short") == (
        "- [Reply style](feedback/style.md) — Keep it short"
    )
    assert index_line("Reply style", "style.md", "") == "- [Reply style](style.md)"


def test_hosts_differ_in_title_and_missing_description() -> None:
    bare = topic("feedback_style.md", title="Reply style", type=MemoryType.FEEDBACK)
    assert topic_line(bare, QWEN) == "- [Reply style](feedback_style.md) — feedback"
    assert topic_line(bare, WAVE) == "- [feedback_style](feedback_style.md)"
    assert topic_line(bare, CURATED) == "- [Reply style](feedback_style.md)"


def test_a_topic_that_is_called_after_its_type_is_listed_by_its_file() -> None:
    assert topic_line(topic("net.md", title="project", type=MemoryType.PROJECT), CURATED) == "- [net](net.md)"


@pytest.mark.parametrize(("dialect", "end"), [(QWEN, "d…"), (WAVE, "dd"), (CURATED, "d…")], ids=DIALECTS)
def test_the_description_gives_way_to_the_link(dialect: Dialect, end: str) -> None:
    path = f"{'p' * 60}.md"
    line = index_line("Title", path, "d" * 500, dialect=dialect)
    assert line is not None
    assert line.startswith(f"- [Title]({path}) — ddd")
    assert line.endswith(end)
    assert len(line) == 150


def test_the_title_gives_way_when_the_link_alone_is_too_long() -> None:
    line = index_line("t" * 200, f"{'p' * 120}.md", "lost")
    assert line is not None
    assert line.endswith(f"…]({'p' * 120}.md)")
    assert len(line) == 150


def test_a_target_that_is_too_long_by_itself_stays_whole() -> None:
    path = f"{'项目' * 20}.md"
    line = index_line("项目", path, "描述", dialect=QWEN)
    assert line is not None
    assert unquote(line).endswith(f"]({path})")
    assert "描述" not in line


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize(
    "path",
    ["", ".", "..", "../a.md", "/a.md", "a//b.md", "./a.md", "b/../a.md", "b/../../a.md", "a/", "a.txt", "a.MD",
     "\ud83e.md"],
)  # fmt: skip
def test_no_line_is_made_of_a_path_that_no_reader_would_follow_safely(path: str, dialect: Dialect) -> None:
    assert index_line("A", path, "d", dialect=dialect) is None


@pytest.mark.parametrize("path", ["b[1].md", "(x).md", "a\nb.md", "a\rb.md", "bell\x07.md", "ls\u2028.md"])
def test_wave_leaves_out_what_others_encode(path: str) -> None:
    assert index_line("A", path, "d", dialect=WAVE) is None
    line = index_line("A", path, "d")
    assert line is not None
    assert [entry.target for entry in entries(line)] == [path]


def test_names_stay_readable_where_the_host_does_not_ask_for_more() -> None:
    assert index_line("约定", "项目/约定.md", "") == "- [约定](项目/约定.md)"
    assert index_line("约定", "项目 约定.md", "", dialect=WAVE) == "- [约定](项目 约定.md)"
    assert index_line("约定", "项目 约定.md", "") == "- [约定](项目%20约定.md)"
    assert index_line("约定", "约定.md", "", dialect=QWEN) == "- [约定](%E7%BA%A6%E5%AE%9A.md)"


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_nothing_in_title_or_description_makes_another_link(dialect: Dialect) -> None:
    line = index_line("a](evil.md) b", "a.md", "see [x](evil.md)\nand \u202emore\u200b\x00\ud800", dialect=dialect)
    assert line == "- [a] (evil.md) b](a.md) — see [x] (evil.md) and more"
    assert [(entry.target, entry.description) for entry in entries(line)] == [("a.md", "see [x] (evil.md) and more")]


@pytest.mark.parametrize(
    ("title", "shown"),
    [("[[x]]", "x"), ("x] done", "x done"), ("", "a"), ("\u200b", "a"), ("back\\", "back"), ("`make` it", "'make' it")],
)  # fmt: skip
def test_titles_that_would_break_the_link_are_mended(title: str, shown: str) -> None:
    assert index_line(title, "a.md", "") == f"- [{shown}](a.md)"


def test_a_cut_never_leaves_half_of_what_is_seen_as_one() -> None:
    room = ADVISED_CHARS - len("- [a](a.md) — …")
    for one in ("e\u0301", "👍🏽", "❤\ufe0f", "か\u3099"):
        line = index_line("a", "a.md", "x" * (room - 1) + one + "y" * 9)
        assert line == f"- [a](a.md) — {'x' * (room - 1)}…"
    assert index_line("a", "a.md", "x" * (room - 1) + "🧠🧠🧠") == f"- [a](a.md) — {'x' * (room - 1)}🧠…"


INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1, max_size=40)


@given(st.text(max_size=200), st.lists(NAMES, min_size=1, max_size=3), st.text(max_size=200))
@example("[", ["](x"], "](y.md)")
@example("x] ", ["<a> b"], "")
@example("t", ["a.md#b"], "")
@example("t", ["%41 %zz"], "")
@example("t", ["c:"], "")
def test_every_line_leads_back_to_its_file_and_holds_only_what_can_be_seen(
    title: str, parts: list[str], description: str
) -> None:
    path = "/".join(parts) + ".md"
    for dialect in DIALECTS.values():
        line = index_line(title, path, description, dialect=dialect)
        if line is None:
            continue
        first, *others = entries(line)
        assert (first.target, first.leads, others) == (path, True, [])
        assert "\n" not in line
        assert len(line) <= ADVISED_CHARS or line.endswith(")")
        assert INVISIBLE.search(line) is None


# --- links


@pytest.mark.parametrize(
    ("line", "title", "target", "description"),
    [
        ("- [A](a.md) — one fact", "A", "a.md", "one fact"),
        ("* [A](./a.md) - one fact\r\n", "A", "a.md", "one fact"),
        ("1. [A](sub/a%20b.md#part): one fact", "A", "sub/a b.md", "one fact"),
        ("- [A](<a b.md>) one fact", "A", "a b.md", "one fact"),
        ('- [A](a.md "hover") – one fact', "A", "a.md", "one fact"),
        ("- [A](a(b).md) — one fact", "A", "a(b).md", "one fact"),
        ("- [A](a\\(b.md) — one fact", "A", "a(b.md", "one fact"),
        ("- [A](a(b.md) — one fact", "A", "a(b.md", "one fact"),
        ("- [约定](项目 约定.md)：一条", "约定", "项目 约定.md", "一条"),
        ("### [A](a.md)", "A", "a.md", ""),
        ("- ~~[A](a.md)~~ — gone", "A", "a.md", "gone"),
        ("- ★★ [**`A-1` shipped**](a.md)", "`A-1` shipped", "a.md", ""),
        ("- [x] [A](a.md)", "A", "a.md", ""),
        ("- [[a]] — one fact", "a", "a.md", "one fact"),
        ("- [[a#part|A]] — one fact", "A", "a.md", "one fact"),
        ("- [[draft] A]](a.md) — d", "[draft] A]", "a.md", "d"),
        ("\ufeff- [A](a.md)", "A", "a.md", ""),
        ("- [c#](c#.md)", "c#", "c#.md", ""),
        ("- [A](100%.md)", "A", "100%.md", ""),
    ],
)
def test_links_are_read_however_they_are_written(line: str, title: str, target: str, description: str) -> None:
    assert entries(f"# Memory\n\n{line}") == [IndexEntry(3, title, target, description, leads=True)]


@pytest.mark.parametrize(
    "line",
    [
        "- [A](https://a.example/b.md)", "- [A](//a.example/b.md)", "- [A](mailto:a@b.md)", "- [A](#part)", "- [A]()",
        "- ![A](a.png)", "- [A]", "- [A](a.md", "plain", "", "- [ ](\n",
    ],
)  # fmt: skip
def test_what_leads_to_no_file_is_no_entry(line: str) -> None:
    assert entries(line) == []


def test_a_link_among_other_words_or_out_of_the_folder_is_no_line_of_the_index() -> None:
    found = entries(
        "See [A](a.md) first.\n- [Up](../CLAUDE.md)\n- [A](a.md), [B](b.md)\n| [T](t.md) | x |\n> [Q](q.md)"
    )
    assert [(entry.target, entry.leads) for entry in found] == [
        ("a.md", False), ("../CLAUDE.md", False), ("a.md", True), ("b.md", False), ("t.md", False), ("q.md", False),
    ]  # fmt: skip


def test_links_in_code_and_comments_are_examples() -> None:
    text = "```md\n- [A](a.md)\n```\n<!--\n- [B](b.md)\n-->\n- [C](c.md)\n~~~~\n- [D](d.md)\n~~~\n~~~~\n"
    text += "<!-- x --> [E](e.md)"
    assert [entry.target for entry in entries(text)] == ["c.md", "e.md"]


def test_a_fence_that_is_never_closed_hides_nothing() -> None:
    assert [entry.target for entry in entries("- [A](a.md)\n```\n- [B](b.md)")] == ["a.md", "b.md"]


def test_only_a_line_feed_ends_a_line() -> None:
    assert [entry.line for entry in entries("a\u2028b\x0b\n- [A](a.md)\r- x\n\n- [B](b.md)")] == [2, 4]


@pytest.mark.parametrize(
    "text",
    [
        "[[" * 20_000, "](" * 20_000, "[a](" * 20_000, "[a](x " * 20_000, "- [a](a.md" + "(" * 40_000,
        "- [a]( " + " " * 40_000 + ")", '[a](b "' * 20_000, "[[x|" * 20_000, "~~~\n" * 20_001, "<!--\n" * 20_000,
        " " * 40_000 + "[a](a.md)",
    ],
)  # fmt: skip
def test_hostile_lines_cost_no_more_than_their_length(text: str) -> None:
    assert len(entries(text)) <= 1  # a quadratic search does not come back within the time limit of a test


# --- what is loaded


def test_an_index_that_fits_is_loaded_whole_without_a_word() -> None:
    view = truncate("\n\n- [A](a.md)\r\n- [B](b.md)\n\n")
    assert (view.text, view.warning, view.truncated) == ("- [A](a.md)\r\n- [B](b.md)", "", False)
    assert (view.total_lines, view.loaded_lines, view.dropped_lines, view.reasons) == (2, 2, 0, ())


def test_the_loss_is_named_by_lines_and_first_lost_text() -> None:
    view = truncate("\n".join(f"- [t{number}](t{number}.md) — fact {number}" for number in range(1, 239)))
    assert (view.loaded_lines, view.dropped_lines, view.first_dropped_line) == (200, 38, 201)
    assert view.snippet == "- [t201](t201.md) — fact 201"
    for part in ("238", "200", "201", view.snippet, "150", "140 lines", "17500 characters"):
        assert part in view.warning
    assert view.text.endswith("fact 200")


def test_a_very_large_index_is_cut_at_a_line_end() -> None:
    view = truncate("\n".join("x" * 509 for _ in range(431)))
    assert view.reasons == (Unit.LINES, Unit.CHARS)
    assert (view.total_chars, view.loaded_lines, len(view.text)) == (219_809, 49, 49 * 510 - 1)


def test_a_line_end_just_behind_the_limit_counts_as_fitting() -> None:
    assert truncate("abcde\nfghij\nk", Caps(9, chars=11)).text == "abcde\nfghij"
    assert truncate("abcde\nfghij\nk", Caps(9, chars=10)).text == "abcde"
    assert truncate("abcde\nfghij\nk", Caps(9, bytes=11)).text == "abcde\nfghij"


def test_the_smaller_of_two_limits_counts() -> None:
    assert truncate("ab\ncd\nef", Caps(9, chars=3, bytes=7)).text == "ab"
    assert truncate("ab\ncd\nef", Caps(9, chars=7, bytes=3)).text == "ab"


def test_a_first_line_that_is_too_long_is_cut_inside_and_that_is_said() -> None:
    view = truncate(f"{'记' * 25_001}\n- [A](a.md)")
    assert (view.line1_cut_at, view.loaded_lines, view.first_dropped_line, view.snippet) == (25_000, 1, None, None)
    assert "first 25000 characters of line 1" in view.warning


def test_bytes_are_always_told_and_cut_only_where_the_host_counts_them() -> None:
    text = "\n".join("记" * 99 for _ in range(150))  # 14,999 characters, 44,699 bytes
    assert truncate(text).truncated is False
    assert truncate(text).total_bytes == 44_699
    view = truncate(text, INDEX_CAPS_IN_BYTES)
    assert view.reasons == (Unit.BYTES,)
    assert view.loaded_lines == 83
    assert len(view.text.encode("utf-8")) <= 25_000 < len(view.text.encode("utf-8")) + 298
    assert "44699 bytes" in view.warning


def test_a_cut_by_bytes_leaves_no_half_character() -> None:
    view = truncate("x" + "🧠" * 7_000, INDEX_CAPS_IN_BYTES)
    assert view.text == "x" + "🧠" * 6_249
    assert view.line1_cut_at == 6_250


@given(st.text(st.sampled_from("a记\n\r \ud800🧠"), max_size=60), st.integers(1, 5), st.integers(1, 20))
def test_what_is_loaded_is_the_beginning_and_nothing_is_lost_unnamed(text: str, lines: int, size: int) -> None:
    view = truncate(text, Caps(lines, size, size))
    assert text.strip("\n\r \ufeff").startswith(view.text)
    assert view.truncated == (len(view.text) < len(text.strip("\n\r ")))
    assert bool(view.warning) == view.truncated == bool(view.reasons)
    assert view.line1_cut_at is not None or view.loaded_lines + view.dropped_lines == view.total_lines
    assert len(view.text) <= size
    assert view.loaded_lines <= lines


def test_a_missing_or_blank_index_is_an_empty_view(tmp_path: Path) -> None:
    assert load_index(tmp_path).text == ""
    assert load_index(tmp_path / "missing").text == ""
    (tmp_path / "MEMORY.md").write_bytes(b"\xef\xbb\xbf \r\n\n")
    assert (load_index(tmp_path).text, load_index(tmp_path).truncated) == ("", False)


def test_an_index_is_read_whatever_its_encoding(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_bytes("\ufeff- [A](a.md) — 一条".encode("utf-16-le"))
    assert load_index(tmp_path).text == "- [A](a.md) — 一条"


def test_an_index_that_is_no_text_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_bytes(bytes(range(256)) * 10)
    with pytest.raises(TopicError, match=r"MEMORY\.md: holds 10 NUL bytes and looks binary"):
        load_index(tmp_path)
    (tmp_path / "MEMORY.md").unlink()
    (tmp_path / "MEMORY.md").mkdir()
    with pytest.raises(TopicError, match=r"MEMORY\.md: is a folder"):
        load_index(tmp_path)


def test_a_link_to_nothing_is_an_empty_view(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").symlink_to(tmp_path / "nowhere")
    assert load_index(tmp_path).text == ""
