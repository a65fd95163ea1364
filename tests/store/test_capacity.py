"""What whoever writes into the memory folder is told (wave.md W-CAP-02 to -06, -11, -12)."""

import ast
import os
import re
from pathlib import Path

import pytest

import recall
from recall.store.capacity import (
    ADVISED_CHARS,
    INDEX_CAPS,
    INDEX_CAPS_IN_BYTES,
    TOPIC_CAPS,
    Caps,
    Level,
    Occupancy,
    Overlong,
    Reminder,
    Unit,
    index_reminder,
    topic_reminder,
    write_reminder,
)
from recall.store.index_file import build_missing, truncate
from recall.store.topics import Scope, Topic

TOPIC = "---\nname: T\ndescription: {}\n---\n{}"


def told(memory: Path, path: object, *, tool: str = "Write", ok: bool = True, enabled: bool = True) -> Reminder | None:
    return write_reminder(tool, path, ok=ok, memory_dir=memory, workdir=memory.parent, enabled=enabled)


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    folder = tmp_path / "memory"
    folder.mkdir()
    (folder / "MEMORY.md").write_text("- [a](a.md)\n" * 300, encoding="utf-8")
    return folder


def lines(count: int) -> str:
    return "\n".join(f"- [t{number}](t{number}.md)" for number in range(count))


# --- the index


def test_below_four_fifths_nothing_is_said() -> None:
    assert index_reminder(lines(159)) is None
    assert index_reminder("") is None
    assert index_reminder(" \n" * 500) is None


@pytest.mark.parametrize(("count", "level"), [(160, "warn"), (200, "warn"), (201, "over")])
def test_near_the_limit_it_is_a_warning_and_beyond_it_an_error(count: int, level: str) -> None:
    reminder = index_reminder(f"\n\n{lines(count)}\n\n")
    assert reminder is not None
    assert reminder.occupancy == Occupancy(Level(level), Unit.LINES, count, 200, 140)
    assert ("the write succeeded" in reminder.text) == (level == "over") == reminder.text.startswith("ERROR")
    for part in (str(count), "200", "140 lines", "17500 characters"):
        assert part in reminder.text


def test_what_is_worse_off_is_named_and_characters_on_a_tie() -> None:
    tie = "\n".join(["x" * 124] * 179 + ["x" * 125])
    assert (len(tie), tie.count("\n") + 1) == (22_500, 180)
    reminder = index_reminder(tie)
    assert reminder is not None
    assert reminder.occupancy == Occupancy(Level.WARN, Unit.CHARS, 22_500, 25_000, 17_500)
    reminder = index_reminder(tie.replace("x", "", 1))
    assert reminder is not None
    assert reminder.occupancy is not None
    assert reminder.occupancy.unit is Unit.LINES


def test_a_host_that_counts_bytes_warns_of_a_chinese_index_earlier() -> None:
    text = "\n".join(["记" * 140] * 60)  # 8,459 characters, 25,259 bytes
    assert index_reminder(text) is None
    reminder = index_reminder(text, INDEX_CAPS_IN_BYTES)
    assert reminder is not None
    assert reminder.occupancy == Occupancy(Level.OVER, Unit.BYTES, 25_259, 25_000, 17_500)


def test_long_lines_are_named_as_the_file_counts_them() -> None:
    text = "\n\n# " + "h" * 150 + "\n" + ("x" * 150 + "\r\n") + ("x" * 151 + "\n") * 7
    reminder = index_reminder(text)
    assert reminder is not None
    assert (reminder.occupancy, reminder.overlong) == (None, Overlong(8, (3, 5, 6, 7, 8)))
    assert "3, 5, 6, 7, 8 and 3 more" in reminder.text
    one = index_reminder("x" * 151)
    assert one is not None
    assert one.text.startswith("Line 1 of MEMORY.md is longer than 150 characters")


# --- a topic


def test_a_short_topic_with_a_description_is_fine() -> None:
    assert topic_reminder(TOPIC.format("when it matters", "body")) is None


@pytest.mark.parametrize(("size", "level"), [(3276, None), (3277, "warn"), (4096, "warn"), (4097, "over")])
def test_a_topic_is_measured_in_bytes_with_its_header(size: int, level: str | None) -> None:
    head = TOPIC.format("d", "记")
    reminder = topic_reminder(head + "x" * (size - len(head.encode("utf-8"))))
    if level is None:
        assert reminder is None
    else:
        assert reminder is not None
        assert reminder.occupancy == Occupancy(Level(level), Unit.BYTES, size, 4096, 2867)
        assert "one matter per file" in reminder.text
        assert ("the write succeeded" in reminder.text) == (level == "over")


def test_a_topic_is_measured_in_lines_too() -> None:
    reminder = topic_reminder(TOPIC.format("d", "x\n" * 198 + "x"))
    assert reminder is not None
    assert reminder.occupancy == Occupancy(Level.OVER, Unit.LINES, 203, 200, 140)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("", 0), ("no header", 0), ("---\nname: x\n---\nb", 0), ("---\ndescription:\n---\nb", 0),
        ("---\ndescription:\n  - a\n  - b\n---\nb", 0), (TOPIC.format("d" * 301, "b"), 301),
        ("---\ndescription: >\n  " + "w" * 200 + "\n  " + "w" * 200 + "\n---\nb", 401),
    ],
)  # fmt: skip
def test_a_missing_or_long_description_is_told(text: str, length: int) -> None:
    reminder = topic_reminder(text)
    assert reminder is not None
    assert reminder.description == length
    assert "150 characters" in reminder.text or f"{length} characters" in reminder.text


def test_a_description_of_300_characters_is_fine() -> None:
    assert topic_reminder(TOPIC.format("记" * 300, "b")) is None


def test_size_and_description_are_told_together() -> None:
    reminder = topic_reminder("b" * 5000)
    assert reminder is not None
    assert (reminder.occupancy is not None, reminder.description) == (True, 0)
    assert len(reminder.text.splitlines()) == 2


# --- when anything is told at all


def test_a_written_index_is_judged_as_it_lies_on_the_disk_and_stays_as_it_is(memory: Path) -> None:
    before = (memory / "MEMORY.md").read_bytes()
    reminder = told(memory, "memory/MEMORY.md")
    assert reminder is not None
    assert reminder.occupancy == Occupancy(Level.OVER, Unit.LINES, 300, 200, 140)
    assert (memory / "MEMORY.md").read_bytes() == before
    assert told(memory, str(memory / "MEMORY.md"), tool="Edit") == reminder


@pytest.mark.parametrize("how", [{"tool": "Read"}, {"tool": "write"}, {"ok": False}, {"enabled": False}])
def test_nothing_is_said_unless_a_tool_wrote_while_memory_is_on(memory: Path, how: dict[str, object]) -> None:
    assert told(memory, "memory/MEMORY.md", **how) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "path",
    [None, 7, b"memory/MEMORY.md", "", "memory", "memory/a.txt", "memory/gone.md", "../MEMORY.md", "memory/../out.md",
     "memory-evil/MEMORY.md", "memory/linked/MEMORY.md", "memory/a\x00.md", "memory/" + "x" * 5000 + ".md",
     "memory/folder.md", "memory/binary.md"],
)  # fmt: skip
def test_nothing_is_said_of_other_files(memory: Path, path: object) -> None:
    for folder in (memory.parent, memory.parent / "memory-evil", memory / "folder.md", memory.parent.parent):
        folder.mkdir(exist_ok=True)
        (folder / "MEMORY.md").write_text("x\n" * 300, encoding="utf-8")
        (folder / "out.md").write_text("x\n" * 300, encoding="utf-8")
    (memory / "linked").symlink_to(memory.parent / "memory-evil")
    (memory / "a.txt").write_text("x\n" * 300, encoding="utf-8")
    (memory / "binary.md").write_bytes(bytes(9_000))
    assert told(memory, path) is None


def test_a_file_outside_is_not_even_opened(memory: Path) -> None:
    os.mkfifo(memory.parent / "pipe.md")
    assert told(memory, "pipe.md") is None


def test_names_that_begin_with_dots_and_links_inside_are_inside(memory: Path) -> None:
    (memory / "..notes.md").write_text("x", encoding="utf-8")
    (memory / "here").symlink_to(memory)
    reminder = told(memory, "memory/here/..notes.md")
    assert reminder is not None
    assert reminder.description == 0


def test_a_nested_index_is_judged_as_an_index(memory: Path) -> None:
    (memory / "sub").mkdir()
    (memory / "sub" / "MEMORY.md").write_text("x\n" * 300, encoding="utf-8")
    reminder = told(memory, "memory/sub/MEMORY.md")
    assert reminder is not None
    assert reminder.description is None


# --- one number


def test_the_advice_is_one_number_everywhere() -> None:
    """W-CAP-02: prompt, warning, reminder and generator."""
    warning = truncate("x" * 30_000).warning
    overlong = index_reminder("x" * 500)
    description = topic_reminder("")
    assert overlong is not None
    assert description is not None
    advice = [*re.findall(r"(?:about|than) (\d+) characters", f"{warning} {overlong.text} {description.text}")]
    assert advice == [str(ADVISED_CHARS)] * 3
    topic = Topic(Scope.PROJECT, "a.md", "a", "d" * 500, None, "", 0.0, 0.0, Path("/memory/a.md"))
    assert len(build_missing([topic])) == ADVISED_CHARS + 1


def test_the_number_is_written_down_once() -> None:
    package = Path(recall.__file__).parent
    found = [
        file.name
        for file in sorted([*(package / "store").glob("*.py"), *(package / "context").glob("*.py")])
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value == ADVISED_CHARS
    ]
    assert found == ["capacity.py"]


def test_the_aim_is_seven_tenths_of_the_limit() -> None:
    assert INDEX_CAPS.target == Caps(140, 17_500)
    assert TOPIC_CAPS.target == Caps(140, None, 2867)
