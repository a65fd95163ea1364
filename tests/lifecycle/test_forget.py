"""A request to forget names exact entries; the plan removes these and leaves everything else as it was."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from recall.lifecycle.forget import by_phrase, candidates, forgetting, named
from recall.store.applying import apply
from recall.store.plan import Folder, IndexMode
from recall.store.scan import scan, scan_order
from recall.store.topics import Scope, Topic, parse_topic

NOW = 1_790_000_000.0


def topics(folder: Folder) -> list[Topic]:
    """The topics of a folder, newest first."""
    found = scan(folder.root, folder.scope)
    return [
        parse_topic(
            file.file.read_bytes().decode("utf-8"),
            path=file.path,
            scope=folder.scope,
            mtime=file.mtime_ns / 1e9,
            file=file.file,
        )
        for file in scan_order(found.files)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "memory", index=IndexMode.OFF)


def put(folder: Folder, path: str, text: str) -> Path:
    file = folder.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file


def forget(folder: Folder, query: str) -> list[str]:
    chosen = by_phrase(query, candidates(topics(folder)))
    apply(forgetting(chosen, {folder.scope: folder}), now=NOW)
    return [one.id for one in chosen]


def test_the_last_entry_takes_its_file_along(folder: Folder) -> None:
    file = put(folder, "one.md", "---\nname: One\n---\n\nships on Friday\n")
    assert forget(folder, "ships") == ["one.md"]
    assert not file.exists()


def test_the_other_entries_of_a_file_stay_with_their_reasons(folder: Folder) -> None:
    file = put(
        folder,
        "many.md",
        "---\nname: Many\nkept: as # it is\n---\n- first\n  - Why: because\n- second\n- third\n  - How to apply: so\n",
    )
    assert forget(folder, "second") == ["many.md:1"]
    assert file.read_text(encoding="utf-8") == (
        "---\nname: Many\nkept: as # it is\n---\n\nfirst\n\nWhy: because\n\nthird\n\nHow to apply: so\n"
    )


def test_line_ends_byte_order_mark_and_title_stay(folder: Folder) -> None:
    file = put(folder, "w.md", "\ufeff---\r\nname: W\r\n---\r\n\r\n# Rules\r\n\r\n- one\r\n- two\r\n")
    forget(folder, "one")
    assert file.read_bytes() == "\ufeff---\r\nname: W\r\n---\r\n\r\n# Rules\r\n\r\ntwo\r\n".encode()


def test_bytes_that_are_no_utf8_stay(folder: Folder) -> None:
    file = put(folder, "raw.md", "")
    file.write_bytes(b"---\nname: raw\n---\n\nfirst\n\ncaf\xe9 opens at nine\n")
    topic = parse_topic(
        file.read_bytes().decode("utf-8", "replace"), path="raw.md", scope=Scope.PROJECT, mtime=0, file=file
    )
    apply(forgetting(by_phrase("first", candidates([topic])), {Scope.PROJECT: folder}), now=NOW)
    assert file.read_bytes() == b"---\nname: raw\n---\n\ncaf\xe9 opens at nine\n"


def test_a_document_is_one_entry_and_goes_whole(folder: Folder) -> None:
    file = put(folder, "doc.md", "---\nname: Doc\n---\n\n## Setup\n\n1. do this\n2. do that\n")
    assert forget(folder, "do that") == ["doc.md"]
    assert not file.exists()


def test_an_entry_that_moved_in_its_file_is_still_the_one_that_goes(folder: Folder) -> None:
    file = put(folder, "many.md", "first\n\nsecond\n")
    chosen = by_phrase("second", candidates(topics(folder)))
    put(folder, "many.md", "zeroth\n\nfirst\n\nsecond\n")
    apply(forgetting(chosen, {Scope.PROJECT: folder}), now=NOW)
    assert file.read_text(encoding="utf-8") == "zeroth\n\nfirst\n"


def test_an_entry_that_says_something_else_by_now_is_left_alone_and_told(folder: Folder) -> None:
    file = put(folder, "many.md", "first\n\nsecond\n")
    chosen = by_phrase("second", candidates(topics(folder)))
    put(folder, "many.md", "first\n\nsecond, but on Monday\n")
    plan = forgetting(chosen, {Scope.PROJECT: folder})
    assert not plan
    assert plan.notes == ("many.md:1 has been changed or removed by somebody else",)
    assert "Monday" in file.read_text(encoding="utf-8")


def test_the_same_path_in_both_scopes_is_two_files(tmp_path: Path) -> None:
    folders = {scope: Folder(tmp_path / scope, scope, IndexMode.OFF) for scope in Scope}
    for one in folders.values():
        put(one, "feedback/short.md", "Keep replies short\n")
    found = candidates([topic for scope in (Scope.USER, Scope.PROJECT) for topic in topics(folders[scope])])
    plan = forgetting(by_phrase("replies", found), folders)
    assert [item.id for item in plan.items] == ["user:feedback/short.md", "feedback/short.md"]
    apply(plan, now=NOW)
    assert not any(one.root.joinpath("feedback/short.md").exists() for one in folders.values())


@pytest.mark.parametrize("query", ["", "   ", ".", "a", "。", "\n"])
def test_a_request_that_says_nothing_selects_nothing(folder: Folder, query: str) -> None:
    put(folder, "a.md", "a . 。 fact\n")
    assert by_phrase(query, candidates(topics(folder))) == []


def test_an_id_names_an_entry_or_a_whole_topic(folder: Folder) -> None:
    put(folder, "sub/many.md", "first\n\nsecond\n")
    found = candidates(topics(folder))
    assert [one.id for one in named("sub/many.md:1", found)] == ["sub/many.md:1"]
    assert [one.id for one in named("sub/many", found)] == ["sub/many.md:0", "sub/many.md:1"]
    assert named("many", found) == []


# --- cases from running qwen-code 0.24.4

DEFECTS: Mapping[str, list[str]] = {  # V12: a request without a word selects nothing
    "forget-028": [],
    "forget-033": [],
    "forget-034": [],
    "forget-035": [],
}


@pytest.mark.vectors
def test_requests_select_and_remove_what_the_founding_system_does(shared: Path, tmp_path: Path) -> None:
    sets = json.loads((shared / "vectors/qwen/forget/sets.json").read_text(encoding="utf-8"))["sets"]
    cases = json.loads((shared / "vectors/qwen/forget/dev.json").read_text(encoding="utf-8"))["cases"]
    assert cases
    for case in cases:
        base = tmp_path / case["id"]
        folders = _laid_out(sets[case["set"]], base)
        found = candidates([topic for scope in (Scope.USER, Scope.PROJECT) for topic in topics(folders[scope])])
        ids = [one.id for one in by_phrase(case["query"], found, limit=case.get("limit") or 5)]
        expected = [one["id"].removeprefix("project:") for one in case["expected"]["select"]["selected"]]
        assert ids == DEFECTS.get(case["id"], expected), case["id"]
        if case["id"] not in DEFECTS:
            apply(forgetting(by_phrase(case["query"], found, limit=400), folders), now=NOW)
            for path, text in case["expected"]["apply_all"]["changed_files"].items():
                assert path.endswith("MEMORY.md") or _text(base / path) == text, f"{case['id']}: {path}"


def _laid_out(files: Mapping[str, Any], base: Path) -> dict[Scope, Folder]:
    folders = {
        Scope.PROJECT: Folder(base / "memory", Scope.PROJECT, IndexMode.OFF),
        Scope.USER: Folder(base / "memories", Scope.USER, IndexMode.OFF),
    }
    for scope, folder in folders.items():
        folder.root.mkdir(parents=True)
        for path, text in files.get(f"{scope}_files", {}).items():
            file = put(folder, path, text)
            mtime_ns = int(files[f"{scope}_mtimes_ms"][path]) * 1_000_000
            os.utime(file, ns=(mtime_ns, mtime_ns))
    return folders


def _text(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.exists() else None
