from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.store.topics import (
    PLACEHOLDER,
    Entry,
    MemoryType,
    Scope,
    Topic,
    entry_ids,
    js_trim,
    parse_entries,
    parse_topic,
    render_entries,
    search_text,
)

MTIME = 1_700_000_000.5


def topic(text: str, path: str = "notes/some-note.md", scope: Scope = Scope.PROJECT) -> Topic:
    return parse_topic(text, path=path, scope=scope, mtime=MTIME, file=Path("/memory") / path)


def with_header(*lines: str, path: str = "notes/some-note.md") -> Topic:
    return topic("\n".join(["---", *lines, "---", "Body"]), path)


# --- title, description, body


def test_an_ordinary_file_gives_an_ordinary_topic() -> None:
    text = "---\nname: Release window\ndescription: when to ship\ntype: project\n---\n\nNot on Fridays.\n"
    assert topic(text) == Topic(
        scope=Scope.PROJECT,
        path="notes/some-note.md",
        title="Release window",
        description="when to ship",
        type=MemoryType.PROJECT,
        body="Not on Fridays.",
        mtime=MTIME,
        modified=MTIME,
        file=Path("/memory/notes/some-note.md"),
        links=(),
    )


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        (("name: N", "title: T", "type: user"), "N"),
        (("name: First", "name: Second"), "First"),
        (('name: ""', "title: T"), "T"),
        (("title: T", "type: user"), "T"),
        (("type: user",), "user"),
        (("metadata:", "  type: User"), "user"),
        (("type: team",), "some-note"),
        (("description: d",), "some-note"),
        (("name: |-", "  two", "  lines"), "two lines"),
        (("name: a  b",), "a  b"),
    ],
)
def test_the_title_is_name_else_title_else_type_else_the_file_stem(lines: tuple[str, ...], title: str) -> None:
    assert with_header(*lines).title == title


def test_a_type_that_only_the_file_name_suggests_is_no_title() -> None:
    found = topic("Body", "feedback_short-answers.md")
    assert (found.title, found.type) == ("feedback_short-answers", MemoryType.FEEDBACK)


@pytest.mark.parametrize(
    ("line", "description"),
    [
        ("description: fixes #123 and more", "fixes #123 and more"),
        ("description: 2026-08-14 #1131 closed", "2026-08-14 #1131 closed"),
        ("description: [a, b]", "a, b"),
        ("description: '用 pnpm: 不用 npm'", "用 pnpm: 不用 npm"),
        ("description:", ""),
    ],
)
def test_the_description_is_whole(line: str, description: str) -> None:
    assert with_header(line).description == description


def test_a_file_without_a_header_is_a_topic_without_description() -> None:
    found = topic("# Checklist\n\nFirst do this.\n", "guide.md")
    assert (found.title, found.description, found.type) == ("guide", "", None)
    assert found.body == "# Checklist\n\nFirst do this."


def test_an_empty_file_is_a_topic() -> None:
    assert (topic("").title, topic("").body) == ("some-note", "")


def test_the_body_is_trimmed_as_javascript_does() -> None:
    assert topic("---\ntype: user\n---\n\u3000\ufeff \u200bb\x1c\n\n").body == "\u200bb\x1c"


def test_line_ends_of_the_body_become_lf() -> None:
    assert topic("---\r\ntype: user\r\n---\r\none\r\ntwo\r\n").body == "one\ntwo"
    assert topic("---\rtype: user\r---\rone\rtwo\r").body == "one\ntwo"
    assert topic("---\ntype: user\n---\none\rstill one\ntwo").body == "one\rstill one\ntwo"


def test_text_between_two_rules_at_the_top_stays_in_the_body() -> None:
    assert topic("---\njust words\n---\nBody").body == "---\njust words\n---\n\nBody"
    assert topic("---\n# Title\n---\nBody").body == "---\n# Title\n---\n\nBody"
    assert topic("---\n\n---\nBody").body == "Body"


def test_comments_above_the_header_stay_in_the_body() -> None:
    found = topic("<!-- mind this -->\n---\nname: A\n---\n\nBody\n")
    assert (found.title, found.body) == ("A", "<!-- mind this -->\n\nBody")


# --- type


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        (("type: project",), MemoryType.PROJECT),
        (('type: "Feedback"',), MemoryType.FEEDBACK),
        (("type: USER # who",), MemoryType.USER),
        (("type: reference#x",), MemoryType.REFERENCE),
        (("type:user",), MemoryType.USER),
        (("type: user", "type: project"), MemoryType.USER),
        (("metadata:", "  node_type: memory", "  type: feedback"), MemoryType.FEEDBACK),
        (("metadata:", "  type: feedback", "type: user"), MemoryType.USER),
        (("metadata:", "  type: feedback", "type: pitfall"), MemoryType.FEEDBACK),
        (("type: pitfall",), None),
        (("type: users",), None),
        (("metadata:", "  node_type: memory"), None),
        (("Type: user",), None),
    ],
)
def test_the_type_comes_from_the_header(lines: tuple[str, ...], kind: MemoryType | None) -> None:
    assert with_header(*lines).type is kind


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("feedback_x.md", MemoryType.FEEDBACK),
        ("Project-x.md", MemoryType.PROJECT),
        ("user.name.md", MemoryType.USER),
        ("reference/x.md", MemoryType.REFERENCE),
        ("project/archive/x.md", MemoryType.PROJECT),
        ("project/user/x.md", MemoryType.USER),
        ("project/feedback_x.md", MemoryType.FEEDBACK),
        ("projects/x.md", None),
        ("users_guide.md", None),
        ("user.md", MemoryType.USER),
        ("my_feedback_x.md", None),
    ],
)
def test_without_any_stated_type_the_name_suggests_it(path: str, kind: MemoryType | None) -> None:
    assert topic("Body", path).type is kind


def test_a_stated_but_unknown_type_is_not_overruled_by_the_name() -> None:
    assert with_header("type: pitfall", path="feedback/feedback_x.md").type is None


# --- modified


def seconds(*moment: int) -> float:
    return datetime(*moment, tzinfo=UTC).timestamp()  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("lines", "modified"),
    [
        (("metadata:", "  modified: 2026-07-26T22:07:01.779Z"), seconds(2026, 7, 26, 22, 7, 1, 779_000)),
        (("metadata:", "  date: '2026-07-26'", "modified: 2020-01-01"), seconds(2026, 7, 26)),
        (("metadata:", "  updated: 2026-07-26 10:30"), seconds(2026, 7, 26, 10, 30)),
        (("modified: 2026-07-26T10:00:00+08:00",), seconds(2026, 7, 26, 2)),
        (("date: 2026-07-26",), seconds(2026, 7, 26)),
        (("updated: 2026/7/26 (Sun) 10:30",), seconds(2026, 7, 26, 10, 30)),
        (("last_updated: 2026年7月26日",), seconds(2026, 7, 26)),
        (("lastUpdated: 2026-07-26",), seconds(2026, 7, 26)),
        (("modified: soon", "date: 2026-07-26"), seconds(2026, 7, 26)),
    ],
)
def test_the_date_that_the_header_states_is_the_modification(lines: tuple[str, ...], modified: float) -> None:
    found = with_header(*lines)
    assert (found.modified, found.mtime) == (modified, MTIME)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "yesterday",
        "2026-13-45",
        "0001-01-01",
        "9999-12-31",
        "1989-12-31",
        "2201-01-01",
        "12026-01-01",
        "2026",
        "[]",
    ],
)
def test_a_date_that_is_none_leaves_the_time_of_the_file(value: str) -> None:
    assert with_header(f"date: {value}").modified == MTIME


def test_the_years_1990_to_2200_are_believed() -> None:
    assert with_header("date: 1990-01-01").modified == seconds(1990, 1, 1)
    assert with_header("date: 2200-12-31").modified == seconds(2200, 12, 31)


def test_without_a_stated_date_the_one_in_the_file_name_counts() -> None:
    assert topic("Body", "session_2026-03-15.md").modified == seconds(2026, 3, 15)
    assert topic("Body", "2026-03-15/session.md").modified == MTIME
    assert topic("Body", "x-2026-99-15-2026-03-15.md").modified == seconds(2026, 3, 15)
    assert topic("---\ndate: 2020-02-02\n---\n", "session_2026-03-15.md").modified == seconds(2020, 2, 2)


# --- links


@pytest.mark.parametrize(
    ("body", "links"),
    [
        ("see [[a]] and [[b-c]], again [[a]]", ("a", "b-c")),
        ("[[a|shown]] [[b#part]] [[c#part|shown]] [[ d e ]]", ("a", "b", "c", "d e")),
        ("| [[a\\|shown]] |", ("a",)),
        ("![[picture.png]] [[发布窗口]]", ("picture.png", "发布窗口")),
        ("[[]] [[#part]] [[ ]] [a] [[a\nb]] if [[ -f x ]]; then", ()),
        ("`[[a]]` ``x ` [[b]]`` [[c]]", ("c",)),
        ("```\n[[a]]\n```\n[[b]]\n~~~ sh\n[[c]]\n~~~\n", ("b",)),
        ("- x\n  ```py\n  [[a]]\n  ```\n[[b]]", ("b",)),
        ("````\n```\n[[a]]\n````\n[[b]]", ("b",)),
        ("```\n[[never closed]]\n", ("never closed",)),
        ("```x``` [[a]]\n```y``` [[b]]", ("a", "b")),
        ("[[a`x`]]", ()),
    ],
)
def test_wiki_links_outside_code_are_found(body: str, links: tuple[str, ...]) -> None:
    assert topic(body).links == links


# --- entries


def summaries(body: str) -> list[str]:
    return [entry.summary for entry in parse_entries(body)]


@pytest.mark.parametrize(
    "body", ["", " \n\t\n", PLACEHOLDER, f"# Title\n\n{PLACEHOLDER}\n", "# Title", "Why: orphan", "原因：没有"]
)
def test_a_body_that_says_nothing_has_no_entries(body: str) -> None:
    assert parse_entries(body) == []


def test_each_line_is_an_entry_without_its_bullet_and_with_single_blanks() -> None:
    assert summaries("# Title\n\nOne   fact\n- two\n*\tthree\n  - four\r\n-- five\n-six\n\n七\u3000八") == [
        "One fact",
        "two",
        "three",
        "four",
        "-- five",
        "-six",
        "七 八",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "Why: r",
        "why: r",
        "   Why: r",
        "\u3000WHY:r",
        "  - Why: r",
        "\t\t*  Why: r",
        "**Why**: r",
        "**Why:** r",
        "**Why：** r",
        "**Why**：r",
        "**Why: r**",
        "Why： r",
        "原因：r",
        "**原因**: r",
        "**原因：** r",
        "为什么: r",
        "為什麼：r",
        "왜: r",
        "**왜:** r",
        "  - **왜**: r",
    ],
)
def test_a_reason_belongs_to_the_entry_above(line: str) -> None:
    assert parse_entries(f"Fact\n{line}") == [Entry("Fact", why="r")]


@pytest.mark.parametrize(
    "line",
    [
        "How to apply: h",
        "HOW_TO_APPLY: h",
        "**How to apply:** h",
        "**How to apply**: h",
        "  - How to apply: h",
        "如何应用：h",
        "**应用**：h",
        "應用: h",
        "**적용:** h",
        "적용：h",
    ],
)
def test_the_use_belongs_to_the_entry_above(line: str) -> None:
    assert parse_entries(f"Fact\n\n{line}") == [Entry("Fact", how_to_apply="h")]


@pytest.mark.parametrize(
    ("line", "summary"),
    [
        ("Why:", "Why:"),
        ("Why：\u3000", "Why："),
        ("**Why:**", "**Why:**"),
        ("Why r", "Why r"),
        ("Whys: r", "Whys: r"),
        ("Reason: r", "Reason: r"),
        ("How to apply : h", "How to apply : h"),
        ("- Why: r", "Why: r"),
        (" - Why: r", "Why: r"),
    ],
)
def test_other_lines_are_entries_of_their_own(line: str, summary: str) -> None:
    assert parse_entries(f"Fact\n{line}\n") == [Entry("Fact"), Entry(summary)]


def test_of_two_reasons_the_last_counts_and_bold_inside_a_value_stays() -> None:
    assert parse_entries("Fact\nWhy: one\nWhy: **two** three") == [Entry("Fact", why="**two** three")]
    assert parse_entries("Fact\n**Why: a **b** c**") == [Entry("Fact", why="a **b** c**")]


def test_fields_go_to_the_nearest_entry_above() -> None:
    assert parse_entries("- a\n  - Why: r\n- b\n  How to apply: h\n") == [
        Entry("a", why="r"),
        Entry("b", how_to_apply="h"),
    ]


@pytest.mark.parametrize(
    "body",
    [
        "Fact\n## Part\nmore",
        "###\nmore",
        "> quote\n\ntext",
        "Fact\n```\ncode\n```",
        "~~~\ncode\n~~~\nzeta\nalpha",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "a | b\n--- | ---\n1 | 2",
        "1. first\n2. second",
        "Steps\n  1) first",
        "1、先\n2、后",
        "一、先\n二、后",
        "one\n# Second title\ntwo",
        "one\n\n---\n\ntwo",
        "one\n***\ntwo",
        "Title\n=====\ntext",
        "<!-- keep\nme -->\nFact",
    ],
)
def test_a_body_with_structure_is_one_entry_and_is_never_rewritten(body: str) -> None:
    assert parse_entries(f"\n{body}\n\n") == [Entry(body)]
    assert render_entries(parse_entries(body)) == body


@pytest.mark.parametrize(
    ("body", "count"),
    [("#NoSpace", 1), ("---\nafter a rule", 2), ("v1.2\n3.14 is pi", 2), ("a | b\nb->c", 2)],
)
def test_what_only_looks_like_structure_is_none(body: str, count: int) -> None:
    assert len(parse_entries(body)) == count


def test_entries_are_rendered_with_blank_lines_and_english_keys() -> None:
    assert render_entries([Entry("a", "r", "h"), Entry("b", how_to_apply="k"), Entry("c")]) == (
        "a\n\nWhy: r\n\nHow to apply: h\n\nb\n\nHow to apply: k\n\nc"
    )
    assert render_entries([]) == PLACEHOLDER


def test_search_text_is_everything_in_lower_case() -> None:
    assert search_text(Entry("Fact A", "Reason", "Use")) == "fact a reason use"
    assert search_text(Entry("事实")) == "事实"


def test_the_only_entry_of_a_topic_has_the_topics_id() -> None:
    assert entry_ids(topic("One fact")) == ["notes/some-note.md"]
    assert entry_ids(topic("a\nb\n")) == ["notes/some-note.md:0", "notes/some-note.md:1"]
    assert entry_ids(topic("a\nb\n", scope=Scope.USER)) == ["user:notes/some-note.md:0", "user:notes/some-note.md:1"]
    assert entry_ids(topic("")) == []


_WORDS = st.text(st.characters(codec="utf-8", categories=["Ll", "Lo", "Nd"]), min_size=1, max_size=8).map("x".__add__)


@given(st.lists(st.builds(Entry, _WORDS, st.none() | _WORDS, st.none() | _WORDS), min_size=1))
def test_what_is_rendered_is_read_back(entries: list[Entry]) -> None:
    assert parse_entries(render_entries(entries)) == entries


@given(st.text(), st.text(st.characters(exclude_characters="\0"), min_size=1))
def test_no_text_makes_a_topic_raise(text: str, path: str) -> None:
    for content in (text, f"---\n{text}\n---\n{text}", f"---\ndate: {text}\ntype: {text}\n---\n"):
        found = topic(content, path)
        assert found.body == js_trim(found.body)
        render_entries(parse_entries(found.body))


def test_prose_that_was_broken_for_its_length_is_one_entry() -> None:
    prose = (
        "We deploy from the release branch because the main branch\n"
        "may hold work that nobody has reviewed. The person on duty\n"
        "starts the deploy by hand.\n\nThe board is in Grafana."
    )
    assert parse_entries(prose) == [Entry(prose)]
    bullets = "- Kafka retention is seven days since the consumers lag behind\n  every Monday\n- another fact"
    assert parse_entries(bullets) == [Entry(bullets)]


def test_facts_in_lower_case_one_below_the_other_are_entries() -> None:
    assert len(parse_entries("keep replies short\navoid emoji\nuse tabs")) == 3
    long = "the release train leaves every second Monday at nine."
    assert len(parse_entries(f"{long}\nthe board is in Grafana")) == 2
