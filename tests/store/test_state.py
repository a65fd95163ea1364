"""meta.json and extract-cursor.json: what is read, what a change leaves alone, and what becomes of a corrupt file."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import recall
from recall.store.projects import META_ROOT_KEY, recorded_root
from recall.store.state import (
    Cursor,
    Meta,
    Status,
    iso_time,
    read_cursor,
    read_meta,
    set_aside,
    update_meta,
    write_cursor,
)
from tests.power import Tape, put

NOW = 1_773_576_000.0  # 2026-03-15T12:00:00.000Z
LONG_S = 60.0

OF_QWEN = """{
  "version": 1,
  "createdAt": "2026-03-14T12:00:00.000Z",
  "zeta": {
    "b": 1.10,
    "a": [1e400, "\\ud83d", "é"]
  },
  "updatedAt": "2026-03-14T12:00:00.000Z",
  "lastDreamTouchedTopics": [
    "user"
  ],
  "alpha": null
}
"""


@pytest.fixture
def meta_file(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder / "meta.json"


def same(meta: Meta) -> Meta:
    return meta


def update(file: Path, change: Callable[[Meta], Meta] = same, *, now: float = NOW) -> Meta:
    return update_meta(file, change, lock=file.parents[1] / "cache" / "meta.lock", now=now)


def write_position(file: Path, cursor: Cursor, *, now: float = NOW) -> Cursor:
    return write_cursor(file, cursor, lock=file.parents[1] / "cache" / "cursor.lock", now=now)


# --- reading


def test_a_file_of_qwen_code_is_read_as_typed_values(meta_file: Path) -> None:
    meta_file.write_text(OF_QWEN, encoding="utf-8")
    day = NOW - 86_400
    assert read_meta(meta_file) == Meta(version=1, created_at=day, updated_at=day, last_dream_touched_topics=("user",))
    assert read_meta(meta_file).warnings == ()


def test_a_missing_file_says_nothing_and_is_not_made_by_reading(meta_file: Path) -> None:
    assert read_meta(meta_file) == Meta()
    assert read_meta(meta_file).warnings == ()
    assert not meta_file.exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("version", True),
        ("version", "1"),
        ("updatedAt", 1773576000),
        ("updatedAt", "yesterday"),
        ("updatedAt", "0001-01-01T00:00:00+23:59x"),
        ("lastDreamSessionId", 7),
        ("lastDreamTouchedTopics", "user"),
        ("lastDreamTouchedTopics", ["user", None]),
        ("lastDreamStatus", "done"),
        ("projectRoot", {}),
        ("createdAt", None),
    ],
)
def test_a_value_of_a_wrong_kind_counts_as_absent_and_stays(meta_file: Path, key: str, value: object) -> None:
    meta_file.write_text(json.dumps({key: value, "lastDreamAt": "2026-03-15T12:00:00.000Z"}), encoding="utf-8")
    assert read_meta(meta_file) == Meta(last_dream_at=NOW)
    update(meta_file, lambda meta: replace(meta, last_dream_at=NOW + 1))
    assert json.loads(meta_file.read_text(encoding="utf-8")) == {key: value, "lastDreamAt": "2026-03-15T12:00:01.000Z"}


@pytest.mark.parametrize(
    "written",
    ["2026-03-15T12:00:00Z", "2026-03-15T14:00:00.000+02:00", "2026-03-15 12:00:00", "2026-03-15T12:00:00.000000Z"],
)
def test_times_in_other_spellings_are_understood(meta_file: Path, written: str) -> None:
    meta_file.write_text(json.dumps({"lastDreamAt": written}), encoding="utf-8")
    assert read_meta(meta_file).last_dream_at == NOW


def test_a_byte_order_mark_does_no_harm(meta_file: Path) -> None:
    meta_file.write_bytes(b"\xef\xbb\xbf" + OF_QWEN.encode())
    assert read_meta(meta_file).version == 1
    update(meta_file, lambda meta: replace(meta, version=2))
    assert meta_file.read_bytes().startswith(b'{\n  "version": 2,\n')


# --- changing


def test_a_change_leaves_every_other_character_as_it_was(meta_file: Path) -> None:
    meta_file.write_text(OF_QWEN, encoding="utf-8")
    told = update(meta_file, lambda meta: replace(meta, updated_at=NOW, last_dream_touched_topics=()))
    expected = OF_QWEN.replace('"updatedAt": "2026-03-14', '"updatedAt": "2026-03-15').replace(
        '[\n    "user"\n  ]', "[]"
    )
    assert meta_file.read_text(encoding="utf-8") == expected
    assert told == read_meta(meta_file)


def test_what_was_not_there_comes_last_in_the_order_of_the_founding_document(meta_file: Path) -> None:
    meta_file.write_text('{"own": 1}', encoding="utf-8")
    update(
        meta_file,
        lambda meta: replace(
            meta, last_dream_status=Status.NOOP, last_extraction_touched_topics=("user", "project"), version=1
        ),
    )
    assert meta_file.read_text(encoding="utf-8") == (
        '{\n  "own": 1,\n  "version": 1,\n  "lastExtractionTouchedTopics": [\n    "user",\n    "project"\n  ],\n'
        '  "lastDreamStatus": "noop"\n}\n'
    )


def test_unknown_keys_survive_a_change_that_begins_from_nothing(meta_file: Path) -> None:
    meta_file.write_text('{"own": 1, "version": 1}', encoding="utf-8")
    update(meta_file, lambda _: Meta(last_dream_session_id="s"))
    assert json.loads(meta_file.read_text(encoding="utf-8")) == {"own": 1, "lastDreamSessionId": "s"}


def test_no_change_writes_nothing(meta_file: Path) -> None:
    meta_file.write_text('{"version":1,   "own" : [ ]}', encoding="utf-8")
    before = meta_file.stat().st_ino
    assert update(meta_file) == Meta(version=1)
    assert meta_file.stat().st_ino == before
    assert meta_file.read_text(encoding="utf-8") == '{"version":1,   "own" : [ ]}'


def test_a_missing_file_is_made_with_version_and_dates(meta_file: Path) -> None:
    meta_file.parent.rmdir()
    assert update(meta_file) == Meta(version=1, created_at=NOW, updated_at=NOW)
    assert meta_file.read_bytes() == (
        b'{\n  "version": 1,\n  "createdAt": "2026-03-15T12:00:00.000Z",\n'
        b'  "updatedAt": "2026-03-15T12:00:00.000Z"\n}\n'
    )
    assert [file.name for file in meta_file.parent.iterdir()] == ["meta.json"]


def test_an_empty_object_stays_one(meta_file: Path) -> None:
    meta_file.write_text(' { "version": 1 } ', encoding="utf-8")
    update(meta_file, lambda meta: replace(meta, version=None))
    assert meta_file.read_text(encoding="utf-8") == "{}\n"
    assert update(meta_file) == Meta()


@pytest.mark.parametrize("root", ["/srv/项目", "/srv/caf\udce9", '/srv/"x"\n'])
def test_the_root_of_a_project_is_recorded_where_the_layout_looks_for_it(meta_file: Path, root: str) -> None:
    update(meta_file, lambda meta: replace(meta, project_root=root))
    assert recorded_root(meta_file.parent / "memory") == root
    assert read_meta(meta_file).project_root == root
    assert META_ROOT_KEY in json.loads(meta_file.read_text(encoding="utf-8"))


def test_text_is_written_as_it_is_and_a_whole_second_as_a_time(meta_file: Path) -> None:
    meta_file.write_text("{}", encoding="utf-8")
    update(meta_file, lambda meta: replace(meta, updated_at=0, project_root="/srv/项目\ud800"))
    assert meta_file.read_text(encoding="utf-8") == (
        '{\n  "updatedAt": "1970-01-01T00:00:00.000Z",\n  "projectRoot": "/srv/项目\\ud800"\n}\n'
    )


def test_a_change_that_fails_leaves_the_file(meta_file: Path) -> None:
    meta_file.write_text(OF_QWEN, encoding="utf-8")

    def fail(_: Meta) -> Meta:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        update(meta_file, fail)
    assert meta_file.read_text(encoding="utf-8") == OF_QWEN


def test_a_link_is_followed_and_stays(meta_file: Path, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.json"
    real.write_text('{"own": 1}', encoding="utf-8")
    meta_file.symlink_to(real)
    update(meta_file, lambda meta: replace(meta, version=1))
    assert meta_file.is_symlink()
    assert json.loads(real.read_text(encoding="utf-8")) == {"own": 1, "version": 1}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (NOW + 0.123, "2026-03-15T12:00:00.123Z"),
        (NOW + 0.9996, "2026-03-15T12:00:01.000Z"),
        (-0.5, "1969-12-31T23:59:59.500Z"),
    ],
)
def test_times_are_written_in_utc_with_milliseconds(seconds: float, text: str) -> None:
    assert iso_time(seconds) == text


# --- corrupt files

CORRUPT = [
    b"",
    b"{not json",
    b"[]",
    b"null",
    b'{"version": 1,}',
    b'{"version": NaN}',
    b'{"version": 1} x',
    b'{"own": "caf\xe9"}',
    OF_QWEN.encode("utf-16"),
    bytes(400),
    b'{"a":' * 200_000,
]


@pytest.mark.parametrize("data", CORRUPT, ids=lambda data: repr(data[:16]))
def test_a_corrupt_file_counts_as_empty_is_kept_under_another_name_and_told(meta_file: Path, data: bytes) -> None:
    meta_file.write_bytes(data)
    read = read_meta(meta_file)
    assert read == Meta()
    assert len(read.warnings) == 1
    assert str(meta_file) in read.warnings[0]
    assert meta_file.read_bytes() == data  # reading changes nothing

    told = update(meta_file, lambda meta: replace(meta, version=3))
    assert told == Meta(version=3, created_at=NOW, updated_at=NOW)
    aside = meta_file.with_name("meta.json.corrupt-20260315T120000.000Z")
    assert aside.read_bytes() == data
    assert len(told.warnings) == 1
    assert aside.name in told.warnings[0]
    assert read_meta(meta_file) == told
    assert update(meta_file).warnings == ()


def test_two_corrupt_files_of_one_moment_are_both_kept(meta_file: Path) -> None:
    for data in (b"one", b"two", b"three"):
        meta_file.write_bytes(data)
        update(meta_file)
    kept = sorted(meta_file.parent.glob("meta.json.corrupt-*"))
    assert [file.read_bytes() for file in kept] == [b"one", b"two", b"three"]


def test_a_name_that_a_dangling_link_has_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "a.corrupt-20260315T120000.000Z").symlink_to(tmp_path / "missing")
    (tmp_path / "a").write_bytes(b"x")
    assert set_aside(tmp_path / "a", now=NOW).name == "a.corrupt-20260315T120000.000Z-2"


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_put_aside_too(meta_file: Path, kind: str) -> None:
    if kind == "folder":
        meta_file.mkdir()
        (meta_file / "kept").write_bytes(b"x")
    else:
        os.mkfifo(meta_file)
    assert len(update(meta_file).warnings) == 1
    assert meta_file.is_file()
    assert len(list(meta_file.parent.iterdir())) == 2


def test_behind_a_link_the_target_is_put_aside_and_made_anew(meta_file: Path, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.json"
    real.write_bytes(b"x")
    meta_file.symlink_to(real)
    update(meta_file)
    assert meta_file.is_symlink()
    assert json.loads(real.read_text(encoding="utf-8"))["version"] == 1
    assert real.with_name("elsewhere.json.corrupt-20260315T120000.000Z").read_bytes() == b"x"


# --- the cursor


def test_a_cursor_is_written_dated_and_read_back(tmp_path: Path) -> None:
    file = tmp_path / "project" / "extract-cursor.json"
    assert read_cursor(file) == Cursor()
    written = write_position(file, Cursor(session_id="s1", processed_offset=4))
    assert written == read_cursor(file) == Cursor(session_id="s1", processed_offset=4, updated_at=NOW)
    assert file.read_bytes() == (
        b'{\n  "sessionId": "s1",\n  "processedOffset": 4,\n  "updatedAt": "2026-03-15T12:00:00.000Z"\n}\n'
    )


def test_a_cursor_keeps_the_keys_of_others_and_drops_what_it_no_longer_says(tmp_path: Path) -> None:
    file = tmp_path / "project" / "extract-cursor.json"
    file.parent.mkdir()
    file.write_text('{"sessionId": "s1", "own": [], "processedOffset": -4}', encoding="utf-8")
    assert read_cursor(file) == Cursor(session_id="s1")
    write_position(file, Cursor(processed_offset=0))
    assert json.loads(file.read_text(encoding="utf-8")) == {
        "own": [], "processedOffset": 0, "updatedAt": "2026-03-15T12:00:00.000Z"
    }  # fmt: skip


def test_a_corrupt_cursor_does_not_stop_extraction_for_ever(tmp_path: Path) -> None:
    file = tmp_path / "project" / "extract-cursor.json"
    file.parent.mkdir()
    file.write_bytes(b"{not json")
    assert read_cursor(file).warnings
    assert write_position(file, replace(read_cursor(file), processed_offset=2)).warnings
    assert read_cursor(file) == Cursor(processed_offset=2, updated_at=NOW)
    assert file.with_name(f"{file.name}.corrupt-20260315T120000.000Z").read_bytes() == b"{not json"


@pytest.mark.vectors
def test_the_files_that_the_original_leaves_are_read_and_survive(shared: Path, tmp_path: Path) -> None:
    file = tmp_path / "project" / "meta.json"
    file.parent.mkdir()
    cases = [
        *json.loads((shared / "vectors/qwen/dream_gates/dev.json").read_text(encoding="utf-8"))["cases"],
        *json.loads((shared / "vectors/qwen/extract_cursor/dev.json").read_text(encoding="utf-8"))["cases"],
    ]
    metas = [meta for case in cases if (meta := case["expected"]["meta_after"] or case["input"].get("meta"))]
    assert len(metas) > 20
    for meta in metas:
        text = json.dumps(meta, ensure_ascii=False, indent=2) + "\n"
        file.write_text(text, encoding="utf-8")
        is_dated = meta.get("lastDreamAt", "").startswith("20")
        assert (read_meta(file).last_dream_at is not None) == is_dated
        update(file, lambda old: replace(old, project_root="/srv"))
        update(file, lambda old: replace(old, project_root=None))
        assert file.read_text(encoding="utf-8") == text


# --- several processes, and stops

WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from recall.store.state import update_meta

file, lock, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
for number in range(25):
    update_meta(
        file,
        lambda meta: replace(
            meta, recent_session_ids_since_dream=(*(meta.recent_session_ids_since_dream or ()), f"{name}{number}")
        ),
        lock=lock,
        now=0.0,
    )
"""


def test_two_processes_that_change_one_file_lose_nothing(meta_file: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(meta_file), str(tmp_path / "cache" / "meta.lock")]
    around = os.environ | {"PYTHONPATH": str(Path(recall.__file__).parents[1])}
    processes = [subprocess.Popen([*command, name], env=around) for name in "ab"]
    assert [process.wait(LONG_S) for process in processes] == [0, 0]
    kept = read_meta(meta_file).recent_session_ids_since_dream or ()
    assert sorted(kept) == sorted(f"{name}{number}" for name in "ab" for number in range(25))


@pytest.mark.parametrize("before", [None, OF_QWEN.encode(), b"{not json"], ids=["missing", "good", "corrupt"])
def test_after_any_stop_the_file_is_old_or_new_and_a_corrupt_one_still_there(
    tmp_path: Path, before: bytes | None
) -> None:
    file = tmp_path / "base" / "meta.json"
    file.parent.mkdir()
    if before is not None:
        file.write_bytes(before)
    tape = Tape(file.parent)
    with tape.recording():
        update(file, lambda meta: replace(meta, project_root="/srv"))
    after = file.read_bytes()
    states = [state for moment in tape.moments for state in (moment.stopped(), *moment.without_power())]
    assert len(states) > 10
    for number, state in enumerate(states):
        kept = {content for name, content in state.items() if not name.startswith(".")}
        assert kept <= {before, after}
        assert before is None or before in kept or before == OF_QWEN.encode()
        again = put(state, tmp_path / str(number)) / "meta.json"
        assert update(again, lambda meta: replace(meta, project_root="/srv")).project_root == "/srv"
    assert states[-1]["meta.json"] == after
