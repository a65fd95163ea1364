"""Header, entry and scan vectors of the two hosts; where a row of deviations.md differs, the row is asserted."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from recall.store.files import read_text
from recall.store.frontmatter import Value, parse
from recall.store.scan import Scan, scan
from recall.store.topics import Entry, Scope, Topic, parse_entries, parse_topic, render_entries, search_text

pytestmark = pytest.mark.vectors


def cases(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["cases"]
    assert found
    return found


def topic_of(text: str, path: str = "note.md") -> Topic:
    return parse_topic(text, path=path, scope=Scope.PROJECT, mtime=0.0, file=Path("/memory") / path)


# --- headers as Wave reads them

HEADER_ROWS = {
    "WF-008": "V1: blank lines before the header are accepted",
}


def plain(value: Value) -> str | list[str] | None:
    return (value if isinstance(value, str) else list(value)) or None


def test_headers_are_read_as_wave_reads_them(shared: Path) -> None:
    differing = {}
    for case in cases(shared / "vectors/wave/dev/frontmatter.json"):
        front = parse(case["text"])
        assert front.header + front.body == case["text"], case["id"]
        got = {
            "has_header": front.has_header,
            "fields": {key: plain(value) for key, value in front.fields.items()},
            "body": front.body,
        }
        if got != case["expected"]:
            differing[case["id"]] = (case.get("ambiguous"), got)
    settled = {name for name, (ambiguous, _) in differing.items() if not ambiguous}
    assert settled == set(HEADER_ROWS)
    assert differing["WF-008"][1] == {"has_header": True, "fields": {"name": "A"}, "body": "Body"}
    assert set(differing) - settled == {"WF-091"}, "ambiguous: a lone leading quote stays here, nothing is lost"
    assert differing["WF-091"][1] == {
        "has_header": True,
        "fields": {"name": "[unclosed", "description": "'open", "type": "user"},
        "body": "Body\n",
    }


# --- headers as qwen-code reads them

KEPT = {  # V1: the original drops these files; (type, title, description, body) here, the file being note.md
    "no-frontmatter-md": (None, "note", "", "widget ledger without any header"),
    "missing-type-md": (None, "Widget", "widget ledger", "widget body"),
    "bad-type-md": (None, "Widget", "widget ledger", "widget body"),
    "type-case-md": ("project", "Widget", "widget ledger", "widget body"),
    "type-quoted-md": ("project", "Widget", "widget ledger", "widget body"),
    "bom-md": ("project", "Widget BOM", "widget bom", "body"),
    "leading-blank-md": ("project", "Widget blank", "widget blank", "body"),
    "MEMORY-md": (None, "note", "", "- [Widget](ok.md) — widget index"),
    "empty-frontmatter": (None, "note", "", "b"),
    "only-fence": (None, "note", "", ""),
    "type-pinned": (None, "N", "", "b"),
    "space-before-colon": ("user", "N", "", "b"),
}


def test_topics_are_read_as_qwen_code_reads_them(shared: Path) -> None:
    dropped = set()
    for case in cases(shared / "vectors/qwen/frontmatter/dev.json"):
        topic = topic_of(case["content"])
        got = (topic.type, topic.title, topic.description, topic.body)
        if case["expected"] is None:
            dropped.add(case["id"])
            assert got == KEPT[case["id"]], case["id"]
        else:
            expected = case["expected"]
            assert got == tuple(expected[key] for key in ("type", "title", "description", "body")), case["id"]
    assert dropped == set(KEPT)


# --- entries

ENTRY_ROWS = {
    "entries-017": "V10: the asterisks belong to the key",
    "entries-033": "V9: sub-headings",
    "entries-035": "V9: a quote",
    "entries-036": "V9: a fence",
    "entries-037": "V9: a table",
}


def test_entries_are_read_as_qwen_code_reads_them(shared: Path) -> None:
    differing = set()
    for case in cases(shared / "vectors/qwen/entries/dev.json"):
        entries = parse_entries(case["body"])
        rendered = render_entries(entries)
        got = {
            "entries": [
                {"summary": entry.summary, "why": entry.why, "how_to_apply": entry.how_to_apply} for entry in entries
            ],
            "rendered": rendered,
            "search_texts": [search_text(entry) for entry in entries],
            "reparse_stable": parse_entries(rendered) == entries,
        }
        if got != case["expected"]:
            differing.add(case["id"])
            whole = entries == [Entry(case["body"])] and rendered == case["body"]
            assert whole or entries == [Entry("Fact", "r", "h")], case["id"]
    assert differing == set(ENTRY_ROWS)


# --- folders

CORPORA = ["broken", "bulk", "en-web", "polyglot", "ties", "zh-ops"]


def laid_out(corpus: Path, target: Path) -> dict[str, Scan]:
    """The corpus scanned as a copy that has the times of its manifest, by scope folder, project first."""
    manifest = json.loads((corpus / "manifest.json").read_text(encoding="utf-8"))
    scans = {}
    for scope, times in manifest["scopes"].items():
        shutil.copytree(corpus / scope, target / scope, copy_function=shutil.copyfile)
        for folder in (target / scope, *(target / scope).rglob("*/")):
            folder.chmod(0o755)
        for path, ms in times.items():
            os.utime(target / scope / path, ns=(ms * 1_000_000, ms * 1_000_000))
        scans[scope] = scan(target / scope, Scope.PROJECT if scope == "memory" else Scope.USER)
    return scans


def named(scans: dict[str, Scan]) -> list[str]:
    return [f"{scope}/{file.path}" for scope, result in scans.items() for file in result.files]


ADDED = {  # V1: read here, dropped by the original
    "memory/bad-type.md",
    "memory/bom.md",
    "memory/comment-type.md",
    "memory/dash4.md",
    "memory/fence-spaces.md",
    "memory/indented-keys.md",
    "memory/leading-blank.md",
    "memory/missing-type.md",
    "memory/no-frontmatter.md",
    "memory/type-case.md",
    "memory/type-quoted.md",
    "memory/unterminated.md",
}
REMOVED = {"memory/.hidden/secret.md": "V29"}
READ_BETTER = {  # V1, wave.md section 4: quotes are removed, a block scalar is its text
    "memory/quoted-name.md": ("Widget quoted", "widget in quotes"),
    "memory/multiline-desc.md": ("Widget folded", "folded widget text second line"),
}


def test_a_folder_is_listed_in_the_order_of_qwen_code(shared: Path, tmp_path: Path) -> None:
    listed = named(laid_out(shared / "vectors/qwen/corpora/broken", tmp_path))
    (case,) = (case for case in cases(shared / "vectors/qwen/scan/dev.json") if case["corpus"] == "broken")
    assert set(listed) - set(case["scan_order"]) == ADDED
    assert set(case["scan_order"]) - set(listed) == set(REMOVED)
    assert [path for path in listed if path not in ADDED] == [path for path in case["scan_order"] if path in listed]


def test_every_file_of_a_folder_is_listed_or_reported(shared: Path, tmp_path: Path) -> None:
    result = laid_out(shared / "vectors/qwen/corpora/broken", tmp_path)["memory"]
    assert {skip.path: skip.describe() for skip in result.skipped} == {
        ".hidden": "hidden folder, 1 .md files",
        "MEMORY.md": "index file",
        "sub/MEMORY.md": "index file",
        "UPPER.MD": "not a topic by its ending",
        "note.markdown": "not a topic by its ending",
    }


def test_the_files_of_a_folder_are_read_as_qwen_code_reads_them(shared: Path, tmp_path: Path) -> None:
    root = shared / "vectors/qwen/corpora/broken"
    (case,) = (case for case in cases(shared / "vectors/qwen/scan/dev.json") if case["corpus"] == "broken")
    for expected in case["parsed"]:
        text, warnings = read_text(root / expected["path"], max_bytes=100_000)
        topic = topic_of(text, Path(expected["path"]).name)
        title, description = READ_BETTER.get(expected["path"], (expected["title"], expected["description"]))
        assert (topic.type, topic.title, topic.description) == (expected["type"], title, description)
        assert topic.body.startswith(expected["body"].partition("…")[0])
        assert (len(topic.body), warnings) == (expected["body_len_utf16"], ())


@pytest.mark.parametrize("name", CORPORA)
def test_the_scan_order_is_the_one_that_the_rankings_were_made_from(shared: Path, tmp_path: Path, name: str) -> None:
    listed = named(laid_out(shared / f"vectors/qwen/corpora/{name}", tmp_path))
    compared = 0
    for case in cases(shared / "vectors/qwen/ranking/dev.json"):
        if case["corpus"] == name:  # the scores are written down in scan order
            scored = [path for path in case["expected"]["all_positive_scores"] if path not in REMOVED]
            assert scored == [path for path in listed if path in scored], case["id"]
            compared += len(scored) > 1
    assert compared


# --- real folders


def test_every_file_of_real_memory_folders_is_accounted_for_and_read(shared: Path) -> None:
    folder = shared / "bench/real_memories"
    if not folder.is_dir():
        pytest.skip(f"no real memory folders: {folder} does not exist")
    roots = {memory.parent for memory in folder.rglob("MEMORY.md")}
    assert roots
    for root in roots:
        result = scan(root, Scope.PROJECT)
        assert len(result.files) + len(result.skipped) == len(list(root.rglob("*.md")))
        for file in result.files:
            text, _ = read_text(file.file, max_bytes=1_000_000)
            front = parse(text)
            topic = topic_of(text, file.path)
            assert front.header + front.body == text
            assert bool(topic.description) is front.has_header, file.path
            assert topic.type or not front.has_header, file.path
            assert topic.body
