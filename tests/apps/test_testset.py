"""Reading test sets: lenient in what they hold besides, strict and precise in what they must hold."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from recall.apps.testset import read_queries, unpack_corpus
from recall.errors import TopicError
from recall.store.scan import scan
from recall.store.topics import MemoryType, Scope, parse_topic

Lines = Callable[..., Path]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    (folder / "app" / ".claude" / "memory").mkdir(parents=True)
    return folder


def query(**other: object) -> dict[str, object]:
    return {"id": "q", "text": "when?", "relevant": ["a"]} | other


def test_a_question_is_read_with_clean_ids_and_scope(json_lines: Lines, root: Path) -> None:
    file = json_lines(
        "q.jsonl",
        query(relevant=["x/a.md", "b"], exclude=["c.md"], scope="app/.claude//memory/", asof=7, split="dev", kind="k"),
    )
    (read,) = read_queries(file, root=root)
    assert (read.relevant, read.exclude) == (frozenset({"x/a", "b"}), frozenset({"c"}))
    assert (read.scope, read.asof, read.kind, read.line) == ("app/.claude/memory", 7, "k", 1)


def test_what_a_question_leaves_out_gets_a_plain_value(json_lines: Lines, root: Path) -> None:
    (read,) = read_queries(json_lines("q.jsonl", query(scope=None, exclude=None, kind=None, line=99)), root=root)
    assert (read.scope, read.exclude, read.asof, read.kind, read.line) == ("", frozenset(), None, "other", 1)


def test_a_byte_order_mark_and_blank_lines_are_no_questions(tmp_path: Path, root: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_bytes(b'\xef\xbb\xbf\r\n\n{"id":"q","text":"t","relevant":[]}\r\n\n')
    (read,) = read_queries(file, root=root)
    assert read.line == 3


def test_only_the_first_questions_are_read_when_there_is_a_limit(json_lines: Lines, root: Path) -> None:
    file = json_lines("q.jsonl", query(), query(), "broken")
    assert len(read_queries(file, root=root, limit=2)) == 2


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{", "is no question"),
        ('{"id": "q", "relevant": []}', "`text`"),
        ('{"id": "q", "text": "t", "relevant": "a"}', r"\$\.relevant"),
        ('{"id": 7, "text": "t", "relevant": []}', r"\$\.id"),
        ('{"id": "q", "text": "t", "relevant": [], "scope": "../x"}', "outside"),
        ('{"id": "q", "text": "t", "relevant": [], "scope": "/etc"}', "outside"),
        ('{"id": "q", "text": "t", "relevant": [], "scope": "nowhere"}', "no folder nowhere"),
        ('{"id": "q", "text": "t", "relevant": [], "asof": "soon"}', r"\$\.asof"),
        ("[]", "is no question"),
    ],
)
def test_a_bad_line_is_named_with_what_is_wrong(json_lines: Lines, root: Path, line: str, what: str) -> None:
    file = json_lines("q.jsonl", query(), "", line)
    with pytest.raises(TopicError, match=what) as caught:
        read_queries(file, root=root)
    assert str(caught.value).startswith(f"{file}:3: ")


def test_a_scope_may_not_lead_out_through_a_link(json_lines: Lines, root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (root / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TopicError, match=r"q\.jsonl:1: scope: .*outside"):
        read_queries(json_lines("q.jsonl", query(scope="link")), root=root)


def test_a_file_without_questions_is_an_error(json_lines: Lines, root: Path) -> None:
    with pytest.raises(TopicError, match="holds no questions"):
        read_queries(json_lines("q.jsonl", ""), root=root)


def test_invalid_utf8_is_named_with_its_line(tmp_path: Path, root: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_bytes(b'{"id":"q","text":"\xff","relevant":[]}\n')
    with pytest.raises(TopicError, match=r"q\.jsonl:1"):
        read_queries(file, root=root)


# --- packed corpora

AWKWARD = {
    "id": "user/a: b",
    "name": 'Quotes " and: colons # here',
    "description": "第一行\n第二行\\",
    "type": "user",
    "seq": 12,
    "tags": ["a, b", "c"],
    "nested": {"left": "out"},
    "bad key!": "left out",
    "body": "First --- line\n\n最后一行",
}


def topic_of(folder: Path, path: str) -> tuple[str, str, MemoryType | None, str]:
    file = folder / path
    parsed = parse_topic(file.read_text(encoding="utf-8"), path=path, scope=Scope.PROJECT, mtime=0, file=file)
    return parsed.title, parsed.description, parsed.type, parsed.body


def test_a_packed_topic_reads_back_as_it_was(json_lines: Lines, tmp_path: Path) -> None:
    folder = unpack_corpus(json_lines("c.jsonl", AWKWARD), tmp_path / "cache")
    title, description, kind, body = topic_of(folder, "user/a: b.md")
    assert title == AWKWARD["name"]
    assert description.splitlines() == ["第一行", "第二行\\"]
    assert (kind, body) == (MemoryType.USER, AWKWARD["body"])
    text = (folder / "user/a: b.md").read_text(encoding="utf-8")
    assert "seq: 12\n" in text
    assert "left" not in text


def test_unpacking_again_touches_nothing_and_carries_the_time_of_the_corpus(json_lines: Lines, tmp_path: Path) -> None:
    corpus = json_lines("c.jsonl", {"id": "a", "body": "x"}, {"id": "b/c", "body": "y"})
    os.utime(corpus, (1_000, 1_000))
    folder = unpack_corpus(corpus, tmp_path / "cache")
    before = {file.path: (file.mtime_ns, file.inode) for file in scan(folder, Scope.PROJECT).files}
    assert unpack_corpus(corpus, tmp_path / "cache") == folder
    after = {file.path: (file.mtime_ns, file.inode) for file in scan(folder, Scope.PROJECT).files}
    assert before == after
    assert {mtime for mtime, _ in before.values()} == {1_000 * 10**9}


def test_a_half_unpacked_corpus_is_unpacked_anew(json_lines: Lines, tmp_path: Path) -> None:
    corpus = json_lines("c.jsonl", {"id": "a", "body": "x"}, {"id": "b", "body": "y"})
    folder = unpack_corpus(corpus, tmp_path / "cache")
    (folder / "b.md").unlink()
    assert (unpack_corpus(corpus, tmp_path / "cache") / "b.md").is_file()
    assert sorted(path.name for path in (tmp_path / "cache" / "eval").iterdir()) == [folder.name]


def test_another_corpus_gets_another_folder(json_lines: Lines, tmp_path: Path) -> None:
    one = unpack_corpus(json_lines("c.jsonl", {"id": "a", "body": "x"}), tmp_path / "cache")
    two = unpack_corpus(json_lines("c.jsonl", {"id": "a", "body": "y"}), tmp_path / "cache")
    assert one != two


@pytest.mark.parametrize(
    "name",
    ["../a", "/etc/a", "a/../../b", "a//b", "./a", "", "a/", "a/.md", "a\\..\\b", "a\0b", "x" * 300, "\ud800"],
)
def test_an_id_that_could_leave_the_folder_is_refused_with_its_line(
    json_lines: Lines, tmp_path: Path, name: str
) -> None:
    file = json_lines("c.jsonl", {"id": "good", "body": ""})
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"id": name, "body": ""}) + "\n")
    with pytest.raises(TopicError, match=r"c\.jsonl:2: (the id .* cannot be|is no topic)"):
        unpack_corpus(file, tmp_path / "cache")
    assert not list(tmp_path.glob("cache/eval/*"))


@pytest.mark.parametrize(
    ("record", "what"),
    [
        ({"body": "x"}, "`id`"),
        ({"id": "a", "body": 7}, "`body`"),
        ("[1]", "is no topic"),
        ({"id": "good.md", "body": ""}, "used before"),
    ],
)
def test_a_line_that_is_no_topic_is_named(json_lines: Lines, tmp_path: Path, record: object, what: str) -> None:
    with pytest.raises(TopicError, match=what) as caught:
        unpack_corpus(json_lines("c.jsonl", {"id": "good", "body": ""}, record), tmp_path / "cache")
    assert ":2: " in str(caught.value)
