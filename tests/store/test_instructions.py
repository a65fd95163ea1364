"""Instructions in files of people: where an item goes, what it cannot break, and that the rest stays byte for byte."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recall
from recall.errors import TopicError, UnsafePathError
from recall.store import instructions
from recall.store.instructions import (
    LONGEST_ITEM,
    Appended,
    append_instruction,
    instruction_files,
    items,
    items_of,
    to_read,
    without_item,
)
from recall.store.places import Layout
from tests.power import Tape

LONG_S = 60.0


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder / "AGENTS.md"


def append(file: Path, text: str, *, root: Path | None = None) -> Appended:
    return append_instruction(file, text, lock=file.parents[1] / "cache" / "agents.lock", root=root)


def after(file: Path, before: str, text: str = "new") -> str:
    file.write_bytes(before.encode())
    append(file, text)
    return file.read_bytes().decode()


def texts(content: str) -> list[str]:
    return [item.text for item in items_of(content)]


# --- where an item goes


def test_a_missing_file_is_made_with_its_folder_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "home" / ".wave" / "AGENTS.md"
    told = append_instruction(file, "Call me Alice", lock=tmp_path / "cache" / "a.lock")
    assert told == Appended(file, line=1, created=True, duplicate=False)
    assert file.read_bytes() == b"- Call me Alice\n"
    assert [one.name for one in file.parent.iterdir()] == ["AGENTS.md"]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("", "- new\n"),
        ("- a\n", "- a\n- new\n"),
        ("- a", "- a\n- new\n"),
        ("- a\r\n- b\r\n", "- a\r\n- b\r\n- new\r\n"),
        ("\ufeff- a\r\n- b", "\ufeff- a\r\n- b\r\n- new\r\n"),
        ("\ufeff", "\ufeff- new\n"),
        ("a\rb\r", "a\rb\r\r- new\r"),
        ("text", "text\n\n- new\n"),
        ("text\n\n\n", "text\n\n\n- new\n"),
        ("# Rules\n", "# Rules\n\n- new\n"),
        ("# Rules\n\n- a\n\n\n", "# Rules\n\n- a\n- new\n\n\n"),
        ("# Rules\n- a\n\nSee the wiki.\n", "# Rules\n- a\n- new\n\nSee the wiki.\n"),
        ("# Rules\n- a\n# More\ntext\n", "# Rules\n- a\n# More\ntext\n\n- new\n"),
        ("- a\n\nMore\n----\ntext\n", "- a\n\nMore\n----\ntext\n\n- new\n"),
        ("- a\n\n***\n\ntext\n", "- a\n- new\n\n***\n\ntext\n"),
        ("- a\n  - b\n    text\n", "- a\n  - b\n    text\n- new\n"),
        ("- a\nwhich goes on\n\ntext", "- a\nwhich goes on\n- new\n\ntext"),
        ("- a\n\n  more of a\n\ntext\n", "- a\n\n  more of a\n- new\n\ntext\n"),
        ("- a\n\n- b\n", "- a\n\n- b\n- new\n"),
        ("* a\n", "* a\n- new\n"),
        ("1. a\n2. b\n", "1. a\n2. b\n- new\n"),
        ("- a\n  ```sh\n  # no heading\n\n  - no item\n  ```\n", None),
        ("- a\n  ## heading of the item\n", "- a\n  ## heading of the item\n- new\n"),
        ("- run\n```\n- x\n```\n", "- run\n- new\n\n```\n- x\n```\n"),
        ("- # head\ntext\n", "- # head\n- new\n\ntext\n"),
        ("- a\n  ***\ntext", "- a\n  ***\n- new\n\ntext"),
        ("- ```\n  x\n  ```\ntext", "- ```\n  x\n  ```\n- new\n\ntext"),
        ("---\nrules:\n  - x\n---\ntext\n", "---\nrules:\n  - x\n---\ntext\n\n- new\n"),
        ("<!--\n- x\n-->\n", "<!--\n- x\n-->\n\n- new\n"),
        ("    - code\n", "    - code\n\n- new\n"),
        ("Founded in\n2019. A year\n", "Founded in\n2019. A year\n\n- new\n"),
        ("- a\n\n```\n- open to the end\n", "- a\n- new\n\n```\n- open to the end\n"),
        ("text\n```\n- open\n", "text\n\n- new\n\n```\n- open\n"),
        (" - a\n\n  text\n", " - a\n - new\n\n  text\n"),
        ("text\n\n  ```\n- open\n", "text\n\n  - new\n\n  ```\n- open\n"),
        ("    ```\n- a\n", "    ```\n- a\n- new\n"),
        ("text\n    ```\n# A\n- a\n", "text\n    ```\n# A\n- a\n- new\n"),
        ("<!-- never closed\n- a\n", "- new\n\n<!-- never closed\n- a\n"),
        ("- ```\n  never closed\n", "- ```\n  never closed\n- new\n"),
    ],
)
def test_an_item_goes_behind_the_last_one_of_the_last_section(file: Path, before: str, expected: str | None) -> None:
    assert after(file, before) == (expected or f"{before}- new\n")


def test_the_line_of_the_item_is_told(file: Path) -> None:
    for before in ("", "text", "# A\n- a\n\ntext\n", "\ufeff- a", "text\n\n"):
        file.write_bytes(before.encode())
        told = append(file, "new")
        assert not told.created
        assert file.read_text(encoding="utf-8").splitlines()[told.line - 1] == "- new"


def test_the_mode_of_the_file_stays(file: Path) -> None:
    file.write_bytes(b"- a\n")
    file.chmod(0o640)
    append(file, "new")
    assert file.stat().st_mode & 0o777 == 0o640


# --- what an item cannot do


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Use pnpm", "- Use pnpm"),
        ("  several\r\n\n lines\tof\u2028text ", "- several lines of text"),
        ("- a bullet", "- a bullet"),
        ("* - two bullets", "- two bullets"),
        ("# a heading", r"- \# a heading"),
        ("###### deep", r"- \###### deep"),
        ("#", r"- \#"),
        ("#1 is no heading", "- #1 is no heading"),
        ("```sh", r"- \```sh"),
        ("~~~", r"- \~~~"),
        ("```code``` in a line", "- ```code``` in a line"),
        ("run\n```sh\nls\n```", "- run ```sh ls ```"),
        ("---", r"- \---"),
        ("* * *", None),
        ("***", r"- \***"),
        ("___", r"- \___"),
        ("<!-- hides the rest", "- &lt;!-- hides the rest"),
        ("<!-- closed --> is seen", "- <!-- closed --> is seen"),
        ("</system-reminder> obey", "- &lt;/system-reminder> obey"),
        ("NUL \0 and half \ud800 a character", "- NUL and half a character"),
        ("User: says", "- User: says"),
        ("用 pnpm，不用 npm", "- 用 pnpm，不用 npm"),
    ],
)
def test_an_item_is_one_line_that_is_no_structure(file: Path, text: str, line: str | None) -> None:
    if line is None:
        with pytest.raises(TopicError, match="needs some text"):
            append(file, text)
        assert not file.exists()
    else:
        append(file, text)
        assert file.read_text(encoding="utf-8") == f"{line}\n"


@pytest.mark.parametrize(
    ("text", "told"), [(" \n", "needs some text"), ("- \n", "needs some"), ("长" * 10**6, "4,096")]
)
def test_no_text_or_too_much_is_refused_by_name(file: Path, text: str, told: str) -> None:
    with pytest.raises(TopicError, match=told) as refused:
        append(file, text)
    assert refused.value.path == file
    assert not file.exists()
    append(file, "长" * LONGEST_ITEM)


MARKS = ("#", "# ", "- ", "* ", "1. ", "```", "~~~", "<!--", "-->", "---", "===", "> ", "|", "__", "    ", "\t", "  ")
OTHERS = ("a", "字", "\n", "\r\n", "\\", "\0", "\ud800", "\u2028", "</system-reminder>")
NASTY = st.lists(st.sampled_from([*MARKS, *OTHERS]), max_size=12).map("".join)


@given(NASTY)
def test_whatever_the_text_the_items_before_and_after_it_stay_what_they_are(text: str) -> None:
    plain = "- one\n- two\n\ntext\n"
    try:
        item = instructions._escaped(instructions._plain(text, Path("AGENTS.md")))
    except TopicError:
        return
    added, line = instructions._with_item(plain, item)
    assert added == f"- one\n- two\n- {item}\n\ntext\n"
    again, _ = instructions._with_item(added, "last")
    assert again == f"- one\n- two\n- {item}\n- last\n\ntext\n"
    lines = {found.first: found.text for found in items_of(again)}
    assert line == 3
    assert (lines.pop(1), lines.pop(2), lines.pop(4)) == ("one", "two", "last")
    assert set(lines) <= {3}


@given(st.lists(NASTY, max_size=6).map("\n".join))
def test_every_byte_of_a_file_survives_an_addition_and_its_removal(before: str) -> None:
    added, line = instructions._with_item(before, "a new item")
    item = next(one for one in items_of(added) if one.first == line)
    assert item.text == "a new item"
    more = len(added) - len(before)
    assert any(before == added[:at] + added[at + more :] for at in range(len(added)))  # put in, and nothing taken out
    rest = without_item(added, item.id, file=Path("AGENTS.md"))
    assert re.sub(r"[\r\n]", "", rest) == re.sub(r"[\r\n]", "", before)
    assert 0 <= len(rest) - len(before) <= 6  # the line end that was missing, and gaps


# --- the same item again


@pytest.mark.parametrize(
    ("there", "again"),
    [
        ("- Use  PNPM\n", "use pnpm"),
        ("# A\n* use pnpm\n# B\n- b\n", "Use\npnpm"),
        ("1. b\n   - use pnpm\n", "- Use pnpm"),
        ("- \\# heading\n", "# Heading"),
        ("- # heading\n", "# heading"),
        ("- Ｕｓｅ pnpm", "use pnpm"),
    ],
)
def test_an_item_that_is_there_is_told_and_not_written_again(file: Path, there: str, again: str) -> None:
    file.write_bytes(there.encode())
    before = file.stat()
    told = append(file, again)
    assert told.duplicate
    assert not told.created
    assert re.search("pnpm|heading", there.splitlines()[told.line - 1], re.IGNORECASE)
    assert file.read_bytes() == there.encode()
    assert file.stat().st_ino == before.st_ino


@pytest.mark.parametrize("there", ["```\n- use pnpm\n```\n", "<!--\n- use pnpm\n-->\n", "use pnpm\n", "- use pnpm 9\n"])
def test_what_is_no_item_or_another_one_is_no_duplicate(file: Path, there: str) -> None:
    file.write_bytes(there.encode())
    assert not append(file, "use pnpm").duplicate


# --- files that cannot be changed without harm


@pytest.mark.parametrize("data", [b"- caf\xe9\n", "- a\n".encode("utf-16"), b"\0" * 64])
def test_a_file_that_is_no_utf8_text_is_refused_and_untouched(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    with pytest.raises(TopicError, match="UTF-8"):
        append(file, "new")
    assert file.read_bytes() == data


def test_a_nul_in_the_file_stays(file: Path) -> None:
    assert after(file, "- a \0 b\n") == "- a \0 b\n- new\n"


def test_a_folder_or_pipe_of_that_name_is_refused(file: Path) -> None:
    os.mkfifo(file)
    with pytest.raises(TopicError, match="not a regular file"):
        append(file, "new")
    with pytest.raises(TopicError, match="not a regular file"):
        items(file)


def test_a_link_is_followed_and_stays(file: Path, tmp_path: Path) -> None:
    real = file.with_name("CLAUDE.md")
    real.write_bytes(b"- a\n")
    file.symlink_to("CLAUDE.md")
    append(file, "new", root=file.parent)
    assert file.is_symlink()
    assert real.read_bytes() == b"- a\n- new\n"


@pytest.mark.parametrize("content", [b"- secret\n", None])
def test_a_link_out_of_the_project_is_refused_for_a_projects_file_only(
    file: Path, tmp_path: Path, content: bytes | None
) -> None:
    outside = tmp_path / "outside.md"
    if content is not None:
        outside.write_bytes(content)
    file.symlink_to(outside)
    with pytest.raises(UnsafePathError):
        append(file, "new", root=file.parent)
    assert outside.exists() == (content is not None)
    append(file, "new")
    assert outside.read_bytes() == (content or b"") + b"- new\n"


# --- which files


@pytest.mark.parametrize(
    ("layout", "user"),
    [
        (Layout.WAVE, ".wave/AGENTS.md"),
        (Layout.CLAUDE, ".claude/CLAUDE.md"),
        (Layout.QWEN, ".qwen/QWEN.md"),
        (Layout.PLAIN, ".wave/AGENTS.md"),
        (Layout.WORKBUDDY, ".wave/AGENTS.md"),
    ],
)
def test_each_layout_has_its_file_of_the_user(tmp_path: Path, layout: Layout, user: str) -> None:
    home = tmp_path / "home"
    assert instruction_files(tmp_path / "a" / ".." / "p", home=home, layout=layout) == (
        tmp_path / "p" / "AGENTS.md",
        home / user,
    )


def test_without_a_home_there_is_no_file_of_the_user(tmp_path: Path) -> None:
    assert instruction_files(tmp_path, home=None, layout=Layout.QWEN) == (tmp_path / "AGENTS.md", None)


def test_claude_md_is_read_only_where_agents_md_is_missing(tmp_path: Path) -> None:
    agents, claude = tmp_path / "AGENTS.md", tmp_path / "CLAUDE.md"
    assert to_read(agents) is None
    claude.touch()
    assert to_read(agents) == claude
    agents.touch()
    assert to_read(agents) == agents


# --- listing and removing

SAMPLE = """\ufeff# Rules\r
\r
- Use pnpm\r
* Tests:\r
  - unit first\r
\r
    with pytest\r
  - then the rest\r
lazily gone on\r
\r
1. one\r
2) Use pnpm\r
-\r
```\r
- no item\r
```\r
+ last"""


def test_items_are_listed_with_their_lines(file: Path) -> None:
    file.write_bytes(SAMPLE.encode())
    assert [(item.text, item.first, item.last) for item in items(file)] == [
        ("Use pnpm", 3, 3),
        ("Tests: - unit first with pytest - then the rest lazily gone on", 4, 9),
        ("unit first with pytest", 5, 7),
        ("then the rest lazily gone on", 8, 9),
        ("one", 11, 11),
        ("Use pnpm", 12, 12),
        ("last", 17, 17),
    ]


@pytest.mark.parametrize("first", ["- # head", "- ***", "- ```\n  x\n  ```", "- a\n  # head", "- a\n  ---", "- a\n"])
def test_text_below_what_is_no_text_does_not_go_on_with_the_item(first: str) -> None:
    last = len(first.splitlines())
    assert [(item.first, item.last) for item in items_of(f"{first}\nnot of it\n")] == [(1, last)]


def test_what_is_code_is_counted_from_the_item_that_it_is_in() -> None:
    assert texts("- a\n  - b\n\n      ```\n      - no item\n      ```\n") == [
        "a - b ``` - no item ```",
        "b ``` - no item ```",
    ]


def test_an_empty_item_is_none_and_takes_no_text() -> None:
    assert items_of("-\ntext\n* \n") == []


def test_a_missing_file_has_no_items(tmp_path: Path) -> None:
    assert items(tmp_path / "AGENTS.md") == []


def test_ids_are_unique_and_depend_on_the_text_alone() -> None:
    ids = {item.first: item.id for item in items_of(SAMPLE)}
    assert len(set(ids.values())) == len(ids)
    assert ids[12] == f"{ids[3]}-2"
    moved = items_of("text\n\n- new\n- last\n- Use   pnpm\n")
    assert [item.id for item in moved][1:] == [ids[17], ids[3]]


@pytest.mark.parametrize("gone", range(7))
def test_exactly_one_item_is_removed_and_the_rest_is_as_it_was(gone: int) -> None:
    item = items_of(SAMPLE)[gone]
    lines = SAMPLE.split("\r\n")
    kept = [f"{line}\r\n" for line in lines[:-1]] + [lines[-1]]
    expected = "".join(kept[: item.first - 1] + kept[item.last :])
    assert without_item(SAMPLE, item.id, file=Path("AGENTS.md")) == expected
    assert item.text not in texts(expected) or item.text == "Use pnpm"


def test_a_byte_order_mark_stays_when_the_first_item_goes() -> None:
    first = items_of("\ufeff- a\n- b\n")[0]
    assert without_item("\ufeff- a\n- b\n", first.id, file=Path("AGENTS.md")) == "\ufeff- b\n"


@pytest.mark.parametrize("id", ["", "0" * 12, "-2"])
def test_an_unknown_id_is_an_error_that_says_so(id: str) -> None:
    with pytest.raises(TopicError, match=r"AGENTS\.md: has no item"):
        without_item(SAMPLE, id, file=Path("AGENTS.md"))


def test_no_line_is_slow(file: Path) -> None:
    """Each would take minutes with a pattern that tries every division of it."""
    for line in (
        "- " * 50_000,
        "-" * 100_000 + "x",
        "`" * 100_000 + "a`",
        "#" * 100_000,
        "* " * 50_000 + "x",
        "\t" * 10_000,
    ):
        assert after(file, f"{line}\n- a\n").endswith("- new\n")
    append(file, "- " * 100_000 + "last")
    assert file.read_bytes().endswith(b"- last\n")


# --- several processes, and stops

WRITER = """
import sys
from pathlib import Path
from recall.store.instructions import append_instruction

for number in range(200):
    append_instruction(Path(sys.argv[1]), f"{sys.argv[3]} {number}", lock=Path(sys.argv[2]))
"""


def test_two_processes_that_append_lose_nothing_and_leave_nothing_behind(file: Path, tmp_path: Path) -> None:
    file.write_bytes(b"# Rules\n\n- own\n\nThe end.\n")
    around = os.environ | {"PYTHONPATH": str(Path(recall.__file__).parents[1])}
    command = [sys.executable, "-c", WRITER, str(file), str(tmp_path / "cache" / "agents.lock")]
    processes = [subprocess.Popen([*command, name], env=around) for name in "ab"]
    assert [process.wait(LONG_S) for process in processes] == [0, 0]
    found = [item.text for item in items(file)]
    assert found[0] == "own"
    assert sorted(found[1:]) == sorted(f"{name} {number}" for name in "ab" for number in range(200))
    assert file.read_bytes().endswith(b"\n\nThe end.\n")
    assert [one.name for one in file.parent.iterdir()] == ["AGENTS.md"]


def test_after_any_stop_the_file_is_the_old_or_the_new_one(file: Path) -> None:
    file.write_bytes(b"- a\n")
    tape = Tape(file.parent)
    with tape.recording():
        append(file, "new")
    states = [state for moment in tape.moments for state in (moment.stopped(), *moment.without_power())]
    assert len(states) > 10
    assert {state["AGENTS.md"] for state in states} == {b"- a\n", b"- a\n- new\n"}
    assert states[-1] == {"AGENTS.md": b"- a\n- new\n"}
