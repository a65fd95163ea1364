"""What is printed is safe to print, and says what there is."""

import json
from pathlib import Path

import pytest

from recall.apps import payloads, render
from recall.apps.accounts import count_files, skipped_files
from recall.apps.lines import Line
from recall.index.sync import SyncReport
from recall.search.types import Coverage, Hit, Recall, Strategy
from recall.store.topics import Scope, parse_topic

EVIL = "\x1b[31mred\x07 \x9b5m \u202egnp\r\n\x00"


def plain(lines: render.Lines) -> str:
    return "\n".join(line.plain for line in lines)


def evil_recall() -> Recall:
    text = f'---\nname: "{EVIL}"\ndescription: d {EVIL}\n---\n{EVIL}'
    topic = parse_topic(text, path=f"a{EVIL}.md", scope=Scope.PROJECT, mtime=0, file=Path("/m/a.md"))
    return Recall("q", (Hit(topic, 0.5, cosine=0.4, lexical=0.1),), Strategy.HYBRID, coverage=Coverage(2, 1, EVIL))


def test_no_control_character_of_a_memory_is_printed() -> None:
    lines = plain(render.search(evil_recall(), note=EVIL, total_s=0.1))
    assert not set(lines) & set("\x1b\x07\x9b\u202e\r\x00")
    assert "red" in lines


def test_json_loses_nothing_and_holds_nothing_that_a_terminal_acts_on() -> None:
    text = payloads.dumped({"text": EVIL, "half": "\udcff", "sign": "\u00e9 好"})
    assert not set(text) & set("\x1b\x07\x9b\u202e\r\x00\udcff")
    assert "é 好" in text
    assert json.loads(text) == {"text": EVIL, "half": "\udcff", "sign": "é 好"}
    assert payloads.dumped({"a": "好"}, ascii_only=True).isascii()


def test_the_last_guard_drops_styles_rather_than_print_a_control_character() -> None:
    harmless, harmful = Line.of(("fine", "bold")), Line.of("a\x1b", ("[2Jb", "bold"))
    assert render.safe(harmless) is harmless
    assert render.safe(harmful).plain == "a[2Jb"


def test_bytes_of_a_path_that_are_no_text_show_as_replacement_characters() -> None:
    assert render.clean(Path("/m/\udcff.md")) == "/m/\ufffd.md"


def test_a_blank_query_is_called_blank_and_an_empty_answer_empty() -> None:
    assert "blank query" in plain(render.search(Recall("  "), note="", total_s=0))
    assert render.NOTHING_FITS in plain(render.search(Recall("q"), note="", total_s=0))


def test_a_note_is_said_once() -> None:
    assert [line.plain for line in render.notes("a", "", "a", "b")] == ["note: a", "note: b"]


def test_long_lists_are_cut_but_failures_never() -> None:
    paths = tuple(f"{number}.md" for number in range(30))
    report = SyncReport(added=paths, failed=tuple((path, "broken") for path in paths))
    lines = plain(render.report(report))
    assert "added: and 20 more" in lines
    assert lines.count("  failed: ") == 30


def test_dates_that_no_calendar_has_are_shown_as_unknown() -> None:
    topic = parse_topic("x", path="a.md", scope=Scope.PROJECT, mtime=1e30, file=Path("/m/a.md"))
    hit = payloads.hit(1, Hit(topic, 1.0))
    assert hit["modified"] is None


# --- accounts


def test_files_are_counted_in_hidden_folders_too(tmp_path: Path) -> None:
    for name in ("a.md", "b.MD", "c.txt", ".hidden/d.md", "sub/.e.md"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x", encoding="utf-8")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert count_files(tmp_path) == 3
    assert count_files(tmp_path / "nowhere") == 0


@pytest.mark.parametrize(
    ("skipped", "files"),
    [
        (("MEMORY.md", "index file"), 1),
        ((".trash", "hidden folder, 12 .md files"), 12),
        ((".git", "hidden folder, at least 7 .md files"), 7),
        (("a.markdown", "not a topic by its ending"), 0),
        (("link", "link to a place outside the memory folder, /elsewhere"), 0),
        (("again.md", "link to a topic that is already indexed, a.md"), 1),
    ],
)
def test_a_reason_stands_for_as_many_files_as_it_says(skipped: tuple[str, str], files: int) -> None:
    assert skipped_files([skipped]) == files


def test_what_an_answer_is_behind_by_is_said_with_names() -> None:
    covered = Coverage(20, 20, behind=("a.md", "b\x1b[2J.md"), behind_count=12)
    lines = plain(render.search(Recall("q", coverage=covered), note="", total_s=0))
    assert "behind by 12 files that changed since it was indexed: a.md, b [2J.md and 10 more" in lines
    assert "behind" not in plain(render.search(Recall("q", coverage=Coverage(20, 20)), note="", total_s=0))
