"""What `check` says about MEMORY.md."""

from collections.abc import Callable
from pathlib import Path

import pytest

from recall.quality.findings import Kind, Severity
from recall.store.plan import IndexMode
from tests.quality.conftest import Looked, topic

Look = Callable[..., Looked]


def test_a_sound_folder_has_no_findings(looked: Look) -> None:
    sound = looked(
        {
            "MEMORY.md": "# Memory\n\n- [A](a.md) — one\n- [B](sub/b%20c.md) — two, see [[a]]\n- [Site](https://a.b)\n",
            "a.md": topic("See [[B c]] and [[sub/b c]].", name="A"),
            "sub/b c.md": topic("Another fact.", name="B"),
        }
    )
    assert sound.findings == []
    assert not sound.plan


def test_what_is_not_loaded_of_a_full_index_is_named_with_its_first_line(looked: Look) -> None:
    lines = "".join(f"- entry {number}\n" for number in range(1, 239))
    (full,) = looked({"MEMORY.md": f"\n\n{lines}"}).of(Kind.INDEX_FULL)
    assert full.severity is Severity.ERROR
    assert full.line == 203
    assert "38 are not, from line 203 on, beginning with: - entry 201." in full.message
    assert "below 140 lines and 17500 characters" in full.message


def test_an_index_that_only_hosts_which_count_bytes_cut_is_a_warning(looked: Look) -> None:
    lines = "".join(f"- {'记' * 100}\n" for _ in range(100))
    (full,) = looked({"MEMORY.md": lines}).of(Kind.INDEX_FULL)
    assert full.severity is Severity.WARNING
    assert "hosts that count bytes" in full.message
    assert full.line == 83


def test_an_index_whose_first_line_is_cut_says_where(looked: Look) -> None:
    (full,) = looked({"MEMORY.md": "x" * 26_000}).of(Kind.INDEX_FULL)
    assert "only the first 25,000 characters of line 1 are" in full.message


def test_an_index_is_called_nearly_full_before_anything_is_lost(looked: Look) -> None:
    (full,) = looked({"MEMORY.md": "- x\n" * 170}).of(Kind.INDEX_FULL)
    assert full.severity is Severity.WARNING
    assert "170 of 200 lines" in full.message
    assert looked({"MEMORY.md": "- x\n" * 150}).of(Kind.INDEX_FULL) == []


def test_a_credential_in_what_is_lost_is_not_repeated(looked: Look) -> None:
    secret = "ghp_" + "aB3dE6gH9kL2nP5rS8uV1xY4zA7cF0" + "iJ2lM5"
    found = looked({"MEMORY.md": "- x\n" * 200 + f"- token {secret}\n"})
    assert [finding.kind for finding in found.findings] == [Kind.INDEX_FULL, Kind.SECRET]
    assert all(secret not in finding.message for finding in found.findings)
    assert found.places(Kind.SECRET) == [("MEMORY.md", 201)]


def test_long_lines_are_one_note_at_the_first_of_them(looked: Look) -> None:
    (long,) = looked({"MEMORY.md": f"# M\n- {'x' * 150}\n- y\n- {'z' * 150}\n"}).of(Kind.LONG_LINE)
    assert (long.severity, long.line) == (Severity.NOTE, 2)
    assert "lines 2, 4 are" in long.message


@pytest.mark.parametrize(
    "link",
    ["[A](gone.md)", "[A](./gone.md#part)", "[A](<gone.md>)", "[[gone]]", "[A](%67one.md)"],
)
def test_a_link_to_nothing_is_found_however_it_is_written(looked: Look, link: str) -> None:
    found = looked({"MEMORY.md": f"- {link} — a\n- [B](b.md) — b\n", "b.md": topic()})
    assert found.places(Kind.DEAD_LINK) == [("MEMORY.md", 1)]
    assert "there is no gone.md" in found.of(Kind.DEAD_LINK)[0].message
    assert found.after == "- [B](b.md) — b\n"


def test_the_likely_new_place_of_a_moved_file_is_said(looked: Look) -> None:
    found = looked({"MEMORY.md": "- [A](old/a.md) — a\n", "new/A.md": topic()})
    (dead,) = found.of(Kind.DEAD_LINK)
    assert "likely new/A.md now" in dead.message
    assert found.of(Kind.ORPHAN) == []
    assert found.after == "- [A](new/A.md) — a\n"


def test_where_two_files_have_the_name_nobody_guesses(looked: Look) -> None:
    files = {"new/a.md": topic("One."), "other/a.md": topic("Two.")}
    found = looked({"MEMORY.md": "- [A](a.md) — a\n- [N](new/a.md)\n- [O](other/a.md)\n", **files})
    assert "likely" not in found.of(Kind.DEAD_LINK)[0].message
    assert found.after == "- [N](new/a.md)\n- [O](other/a.md)\n"


def test_links_to_other_things_that_are_there_are_fine(looked: Look) -> None:
    text = "- [S](scripts/run.sh)\n- [F](scripts/)\n- [P](pic.png) ![x](gone.png)\n- `[x](y.md)` shows how\n"
    found = looked({"MEMORY.md": text, "scripts/run.sh": "x", "pic.png": b"x", "a.md": topic()})
    assert found.of(Kind.DEAD_LINK) == []


def test_brackets_that_are_no_links_are_none(looked: Look) -> None:
    text = "- call f[x](y) or `[[ ]]` or [[ ]]\n- see [x](#part)\n```\n- [x](gone.md)\n```\n<!-- [x](gone.md) -->\n"
    assert looked({"MEMORY.md": text}).findings == []


def test_a_link_out_of_the_folder_is_a_note_and_is_not_followed(looked: Look, root: Path) -> None:
    (root.parent / "outside.md").write_text("x", encoding="utf-8")
    text = "- [O](../outside.md)\n- [N](../../nothing.md)\n- [E](/etc/passwd)\n- [H](~/x.md)\n- [D](C:/x.md)\n"
    found = looked({"MEMORY.md": f"{text}- [B](../memory-2/x.md)\n"})
    assert found.places(Kind.OUTSIDE_LINK) == [("MEMORY.md", number) for number in range(1, 7)]
    assert {finding.severity for finding in found.findings} == {Severity.NOTE}
    assert not found.plan


def test_a_link_that_leaves_the_folder_and_comes_back_is_fine(looked: Look) -> None:
    assert looked({"MEMORY.md": "- [A](../memory/a.md)\n", "a.md": topic()}).findings == []


def test_a_name_that_an_index_mentions_before_there_is_a_topic_is_a_note(looked: Look) -> None:
    found = looked({"MEMORY.md": "- [A](a.md) — see [[later]]\n", "a.md": topic()})
    (unwritten,) = found.findings
    assert (unwritten.kind, unwritten.severity) == (Kind.WIKI_LINK, Severity.NOTE)
    assert not found.plan


def test_a_line_of_a_superseded_topic_is_found_and_goes(looked: Look) -> None:
    found = looked(
        {
            "MEMORY.md": "- [Old](old.md) — a\n- [New](new.md) — b\n",
            "old.md": topic("Port 80.", superseded_by="new.md"),
            "new.md": topic("Port 81."),
        }
    )
    (superseded,) = found.findings
    assert (superseded.kind, superseded.line) == (Kind.SUPERSEDED_LINK, 1)
    assert "see new.md" in superseded.message
    assert found.after == "- [New](new.md) — b\n"


def test_a_superseded_topic_that_a_sentence_speaks_of_keeps_its_link(looked: Look) -> None:
    found = looked(
        {
            "MEMORY.md": "- [New](new.md) — was [old](old.md)\n",
            "old.md": topic("Port 80.", superseded_by="new.md"),
            "new.md": topic("Port 81."),
        }
    )
    assert [finding.fix for finding in found.findings] == [""]
    also = looked({"MEMORY.md": "- [Old](old.md) — a\n- [New](new.md) — was [old](old.md), not [gone](gone.md)\n"})
    assert [finding.fix for finding in also.of(Kind.SUPERSEDED_LINK)] == ["", ""]
    assert also.after == "- [Old](old.md) — a\n- [New](new.md) — was [old](old.md), not gone\n"


def test_a_line_that_is_there_twice_goes_once(looked: Look) -> None:
    found = looked({"MEMORY.md": "# M\n- [A](a.md) — a\n\n- x\n- x\n- [A](a.md) — a\n", "a.md": topic()})
    assert found.places(Kind.REPEATED_LINE) == [("MEMORY.md", 6)]
    assert found.after == "# M\n- [A](a.md) — a\n\n- x\n- x\n"


def test_two_lines_of_one_topic_that_say_different_things_are_a_note(looked: Look) -> None:
    text = "- [A](a.md) — a\n- [Also A](a.md) — b\n- [B](b.md) — on and\n[a.md](a.md).\n"
    found = looked({"MEMORY.md": text, "a.md": topic("One."), "b.md": topic("Two.")})
    assert found.places(Kind.REPEATED_LINK) == [("MEMORY.md", 2)]
    assert not found.plan


def test_a_topic_that_the_index_neither_links_nor_names_is_an_orphan_and_gets_a_line(looked: Look) -> None:
    found = looked(
        {
            "MEMORY.md": "- [A](a.md) — a\n- `dir/b.md`, c_d and [folder](all/)\n\nBye.\n",
            "a.md": topic("1."),
            "dir/b.md": topic("2."),
            "c_d.md": topic("3."),
            "all/e.md": topic("4."),
            "README.md": "# For people\n",
            "old.md": topic("5.", superseded_by="a.md"),
            "lost.md": topic("6.", name="Lost"),
        }
    )
    assert found.places(Kind.ORPHAN) == [("lost.md", 1)]
    assert found.after.splitlines()[1] == "- [Lost](lost.md) — When it matters."


def test_a_common_word_does_not_name_a_topic(looked: Look) -> None:
    assert looked({"MEMORY.md": "- style matters\n", "style.md": topic()}).places(Kind.ORPHAN) == [("style.md", 1)]


def test_orphans_that_there_is_no_room_for_are_one_note(looked: Look) -> None:
    files = {f"t{number:03}.md": topic(f"Fact {number}.") for number in range(20)}
    found = looked({"MEMORY.md": "- x\n" * 130, **files})
    housed = [finding for finding in found.of(Kind.ORPHAN) if finding.fix]
    (note,) = [finding for finding in found.of(Kind.ORPHAN) if not finding.fix]
    assert len(housed) == 9
    assert note.severity is Severity.NOTE
    assert "11 topics have no line" in note.message
    assert "and 6 more" in note.message
    assert len(found.after.splitlines()) == 140
    assert looked({"MEMORY.md": found.after}).of(Kind.INDEX_FULL) == []


def test_topics_without_an_index_are_a_note_and_it_can_be_made(looked: Look) -> None:
    found = looked({"a.md": topic(name="A")})
    assert [(finding.kind, finding.severity) for finding in found.findings] == [(Kind.INDEX_MISSING, Severity.NOTE)]
    assert found.after == "- [a](a.md) — When it matters.\n"
    assert looked({}, IndexMode.OFF).findings == []


def test_where_the_index_is_off_its_lines_are_checked_and_nothing_is_changed(looked: Look) -> None:
    found = looked({"MEMORY.md": "- [X](x.md)\n", "a.md": topic()}, IndexMode.OFF)
    assert [finding.kind for finding in found.findings] == [Kind.DEAD_LINK]
    assert not found.plan


def test_an_index_that_is_no_text_is_an_error(looked: Look, root: Path) -> None:
    (binary,) = looked({"MEMORY.md": b"\x00\xff" * 200, "a.md": topic()}).findings
    assert (binary.kind, binary.severity) == (Kind.INDEX_UNREADABLE, Severity.ERROR)
    (root / "MEMORY.md").unlink()
    (root / "MEMORY.md").symlink_to(root / "nothing")
    assert "link to nothing" in looked({}).of(Kind.INDEX_UNREADABLE)[0].message
    (root / "MEMORY.md").unlink()
    (root / "MEMORY.md").mkdir()
    assert "is a folder" in looked({}).of(Kind.INDEX_UNREADABLE)[0].message


def test_an_index_that_is_not_utf8_is_checked_and_left_alone(looked: Look) -> None:
    found = looked({"MEMORY.md": b"- [X](x.md) caf\xe9\n", "a.md": topic()})
    assert [finding.kind for finding in found.of(Kind.ENCODING)] == [Kind.ENCODING]
    assert found.places(Kind.DEAD_LINK) == [("MEMORY.md", 1)]
    assert not found.plan
    assert "save it as UTF-8" in found.plan.notes[0]


def test_most_links_dead_means_that_a_part_is_missing_and_no_line_is_taken_away(looked: Look) -> None:
    text = "".join(f"- [{number}](gone{number}.md) — a rule\n" for number in range(5)) + "- [A](a.md)\n"
    found = looked({"MEMORY.md": text, "a.md": topic()})
    assert len([finding for finding in found.of(Kind.DEAD_LINK) if finding.severity is Severity.WARNING]) == 5
    assert "5 of 6 links lead to nothing" in found.of(Kind.DEAD_LINK)[0].message
    assert not found.plan
    few = looked({"MEMORY.md": text.replace("- [4](gone4.md) — a rule\n", "- [A](a.md)\n").replace("gone3", "a")})
    assert len([finding for finding in few.of(Kind.DEAD_LINK) if finding.fix]) == 3
    assert looked({"MEMORY.md": text}, IndexMode.GENERATED).after == "- [project](a.md) — When it matters."


def test_a_dead_link_into_a_folder_that_the_memory_lacks_stays(looked: Look) -> None:
    """It may be a path of the project, and the line still worth having."""
    found = looked({"MEMORY.md": "- [X](docs/adr/x.md) — a\n- [Y](src/y.py)\n", "a.md": topic()})
    assert [finding.fix for finding in found.of(Kind.DEAD_LINK)] == ["", ""]
