"""What `check` says about topics and the files beside them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from recall.quality.findings import Kind, Severity
from tests.quality.conftest import MAX_BYTES, Looked, topic

Look = Callable[..., Looked]


def alone(looked: Look, text: str | bytes, name: str = "a.md") -> Looked:
    return looked({"MEMORY.md": f"- [x](<{name}>)\n", name: text})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Just a fact.\n", "has no header"),
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("---\nname: A\ndescription: B\ntype: user\n\nNever closed.\n", "never closed"),
        ("---\nname: A\ndescription: B\ntype: user\nwhat is this\n---\nx\n", "was left out"),
    ],
)
def test_a_header_that_is_missing_or_broken_is_one_warning(looked: Look, text: str, said: str) -> None:
    (finding,) = alone(looked, text).findings
    assert (finding.kind, finding.severity) == (Kind.HEADER, Severity.WARNING)
    assert said in finding.message


def test_a_readme_needs_no_header(looked: Look) -> None:
    assert alone(looked, "# For people\n", "sub/README.md").findings == []


@pytest.mark.parametrize("value", ["", "[a, b]", "''"])
def test_a_description_that_cannot_be_used_is_missing(looked: Look, value: str) -> None:
    (finding,) = alone(looked, f"---\nname: A\ndescription: {value}\ntype: user\n---\nx\n").findings
    assert (finding.kind, finding.severity) == (Kind.DESCRIPTION, Severity.WARNING)
    assert "no description" in finding.message


def test_a_description_of_more_than_300_characters_is_too_long(looked: Look) -> None:
    assert alone(looked, topic(description="d" * 300)).findings == []
    (finding,) = alone(looked, topic(name="A", description="d" * 301)).findings
    assert (finding.kind, finding.line) == (Kind.DESCRIPTION, 3)
    assert "301 characters" in finding.message


def test_a_type_that_is_missing_or_unknown_is_a_note(looked: Look) -> None:
    (missing,) = alone(looked, topic(type="")).findings
    (unknown,) = alone(looked, topic(type="pitfall")).findings
    assert (missing.kind, missing.severity, unknown.kind) == (Kind.TYPE, Severity.NOTE, Kind.TYPE)
    assert "has no type" in missing.message
    assert '"pitfall" is none of user, feedback, project, reference' in unknown.message
    assert alone(looked, topic(type=""), "feedback_a.md").places(Kind.TYPE) == [("a.md", 3)]


def test_a_topic_that_hosts_cut_off_is_told_with_the_line_of_the_cut(looked: Look) -> None:
    (in_bytes,) = alone(looked, topic("记" * 1000 + "\n" + "忆" * 400)).findings
    assert (in_bytes.kind, in_bytes.severity, in_bytes.line) == (Kind.SIZE, Severity.WARNING, 7)
    assert "bytes where hosts show 4,096" in in_bytes.message
    (in_lines,) = alone(looked, topic("\n".join("x" * 3 for _ in range(210)))).findings
    assert (in_lines.kind, in_lines.line) == (Kind.SIZE, 201)
    assert alone(looked, topic("x" * 3900)).findings == []


def test_files_that_cannot_be_read_are_errors(looked: Look, root: Path) -> None:
    found = looked({"MEMORY.md": "", "big.md": b"x" * (MAX_BYTES + 1), "bin.md": b"\x00" * 99, "dir.md/x": ""})
    assert found.places(Kind.UNREADABLE) == [("big.md", 1), ("bin.md", 1)]
    assert all(finding.severity is Severity.ERROR for finding in found.findings)
    assert str(root) not in found.findings[0].message


def test_a_topic_that_is_not_utf8_is_told(looked: Look) -> None:
    (wide,) = alone(looked, topic().encode("utf-16")).findings
    assert (wide.kind, wide.severity) == (Kind.ENCODING, Severity.WARNING)


def test_what_the_scan_skips_is_told_with_its_reason_but_for_what_lies_there_on_purpose(
    looked: Look, root: Path
) -> None:
    (root / "gone.md").symlink_to(root / "nothing.md")
    (root / "out.md").symlink_to(root.parent / "elsewhere.md")
    (root.parent / "elsewhere.md").write_text("x", encoding="utf-8")
    found = looked(
        {
            "MEMORY.md": "", "DREAMS.md": "x", "2026-03-01.md": "x", "sub/MEMORY.md": "x", ".trash/x/a.md": "x",
            ".hidden.md": "x", ".archive/a.md": "x", "b.markdown": "x",
        }
    )  # fmt: skip
    told = {finding.path: (finding.severity, finding.message) for finding in found.of(Kind.SKIPPED)}
    assert set(told) == {"gone.md", "out.md", ".hidden.md", ".archive", "b.markdown"}
    assert told[".archive"] == (Severity.NOTE, "not recalled: hidden folder, 1 .md files")
    assert told["gone.md"][0] is told["out.md"][0] is told["b.markdown"][0] is Severity.WARNING
    assert len(found.findings) == 5


@pytest.mark.parametrize(
    "link",
    [
        "feedback_run_it.md", "feedback_run_it", "feedback-run-it", "run-it", "Run It Yourself", "run it yourself",
        "sub/feedback_run_it", "user:run-it", "2026-03-01", "feedback_run_it#part", "run-it|this one",
        "FEEDBACK_RUN_IT",
    ],
)  # fmt: skip
def test_a_wiki_link_may_mean_a_path_a_file_or_a_title_however_spaced(looked: Look, link: str) -> None:
    found = looked(
        {
            "MEMORY.md": "- [a](a.md)\n- [b](sub/feedback_run_it.md)\n",
            "a.md": topic(f"See [[{link}]]."),
            "sub/feedback_run_it.md": topic("x", name="Run it yourself"),
            "2026-03-01.md": "x",
        }
    )
    assert found.findings == []


def test_a_wiki_link_that_means_nothing_is_a_note_at_its_line(looked: Look) -> None:
    (finding,) = alone(looked, topic("x\n`[[code]]`\n\nSee [[no such thing|this]].")).findings
    assert (finding.kind, finding.severity, finding.line) == (Kind.WIKI_LINK, Severity.NOTE, 9)
    assert finding.message == "[[no such thing]] means no topic yet"


def test_a_successor_that_is_not_there_is_told(looked: Look) -> None:
    (finding,) = looked({"MEMORY.md": "", "a.md": topic(superseded_by="b.md")}).findings
    assert (finding.kind, finding.severity, finding.line) == (Kind.SUPERSEDED_BY, Severity.WARNING, 4)
    (finding,) = looked({"a.md": topic(superseded_by="a.md")}).findings
    assert "superseded by a.md, itself" in finding.message
    assert looked({"a.md": topic(superseded_by="sub/b"), "sub/b.md": topic("x")}).of(Kind.SUPERSEDED_BY) == []


def test_a_credential_is_told_by_kind_and_line_and_never_shown(looked: Look) -> None:
    secret = "ghp_" + "aB3dE6gH9kL2nP5rS8uV1xY4zA7cF0" + "iJ2lM5"
    found = alone(looked, topic(f"Push with it:\n\n{secret}\n"))
    (finding,) = found.findings
    assert (finding.kind, finding.severity, finding.line) == (Kind.SECRET, Severity.WARNING, 8)
    assert secret[4:12] not in repr(found.findings)
    assert not found.plan
