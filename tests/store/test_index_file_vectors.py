"""Vectors of both hosts on MEMORY.md; where a row of deviations.md or DESIGN differs, the row is asserted."""

import hashlib
import importlib.util
import json
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from recall.store.capacity import Occupancy, Overlong, Reminder, write_reminder
from recall.store.files import read_text
from recall.store.index_file import build_missing, entries, generated, load_index, publish_index, truncate
from recall.store.scan import scan
from recall.store.topics import Scope, Topic, parse_topic

pytestmark = pytest.mark.vectors

Case = dict[str, Any]


@pytest.fixture(scope="module")
def wave(shared: Path) -> ModuleType:
    """The loader that comes with the vectors."""
    file = shared / "vectors" / "wave" / "wave_vectors.py"
    spec = importlib.util.spec_from_file_location("wave_vectors", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def settled(cases: Iterable[Case]) -> set[str]:
    """The cases that the vectors do not leave open."""
    return {case["id"] for case in cases if not case.get("ambiguous")}


# --- what is loaded


def test_an_index_is_loaded_and_its_loss_named_as_wave_does(wave: ModuleType) -> None:
    cases = wave.load("truncation")
    assert len(cases) > 25
    found = {case["id"]: why for case in cases if (why := wrong_view(wave.expand(case["text"]), case["expected"]))}
    assert {name: why for name, why in found.items() if name in settled(cases)} == {}


def wrong_view(text: str, expected: Case) -> str:
    view = truncate(text)
    wanted = {
        key: expected[key] for key in expected if key not in ("body_chars", "body_sha256", "warning_must_contain")
    }
    got = {key: getattr(view, key) for key in wanted} | {"reasons": [*view.reasons]}
    missing = [part for part in expected["warning_must_contain"] if part not in view.warning]
    if got != wanted or missing or bool(view.warning) != view.truncated:
        return f"{ {key: (got[key], wanted[key]) for key in wanted if got[key] != wanted[key]} } {missing}"
    return "" if (len(view.text), sha(view.text)) == (expected["body_chars"], expected["body_sha256"]) else "the text"


# --- what a writer is told


def test_whoever_writes_is_reminded_as_wave_does(wave: ModuleType, tmp_path: Path) -> None:
    cases = wave.load("write_reminder")
    assert len(cases) > 35
    found = {}
    for number, case in enumerate(cases):
        base = tmp_path / str(number)
        if why := wrong_reminder(wave, case, base):
            found[case["id"]] = why
    assert {name: why for name, why in found.items() if name in settled(cases)} == {}


def wrong_reminder(wave: ModuleType, case: Case, base: Path) -> str:
    memory, outside, work = base / "memory", base / "outside", base / "work"
    for folder in (memory, base / "memory-evil", outside, work):
        folder.mkdir(parents=True)
    (memory / "link-out").symlink_to(outside)
    (work / "link-to-mem").symlink_to(memory)

    def placed(path: str) -> str:
        return path.replace("${MEM}", str(memory)).replace("${WORK}", str(work))

    workdir = Path(placed(case.get("workdir", "${WORK}")))
    path = None if case["path"] is None else placed(case["path"])
    text = wave.expand(case["text"])
    if path is not None and text is not None:
        wave.write_file(workdir / path, text)
    reminder = write_reminder(
        case["tool"], path, ok=case["success"], memory_dir=memory, workdir=workdir, enabled=case["enabled"]
    )
    if path is not None and text is not None and (workdir / path).read_bytes() != text.encode("utf-8"):
        return "the file was touched"
    return wrong_findings(reminder, case["expected"])


def wrong_findings(reminder: Reminder | None, expected: Case) -> str:
    if reminder is None:
        return "no reminder" if expected["reminder"] else ""
    wanted = expected["occupancy"] and Occupancy(**expected["occupancy"])
    overlong = expected["overlong"]
    lines = overlong and Overlong(overlong["count"], tuple(overlong["shown"]))
    described = expected["description"] and (
        0 if expected["description"] == "missing" else expected["description"]["too_long"]
    )
    got = (reminder.occupancy, reminder.overlong, reminder.description)
    if got != (wanted, lines, described):
        return f"{got} instead of {(wanted, lines, described)}"
    named = [wanted.size, wanted.cap, wanted.target] if wanted else []
    named += [*lines.shown, *([lines.more] if lines.more else [])] if lines else []
    missing = [number for number in named if str(number) not in reminder.text]
    told = wanted is None or wanted.level != "over" or "succeeded" in reminder.text
    return "" if told and not missing else f"not named: {missing}, {told}"


# --- what is made where there is none

GENERATION_ROWS = {
    "WI-010": "DESIGN 4.3: nothing of a header is lost; a description that is a list is its items in a row",
    "WI-040": "V4: the index says how many lines it left out",
    "WI-041": "V4: the same, and all files are looked at",
}

GENERATION_OPEN = {
    "WI-026": "left open; here the title gives way where the link alone is too long, as wave.md section 7 proposes",
}


def test_a_missing_index_is_made_as_wave_does(wave: ModuleType, tmp_path: Path) -> None:
    cases = [case for case in wave.load("index_generation") if "files" in case]
    assert len(cases) > 25
    found = {}
    for number, case in enumerate(cases):
        base = wave.materialise(tmp_path / str(number), case["files"])
        base.mkdir(exist_ok=True)
        if case["existing"] is not None:
            wave.write_file(base / "MEMORY.md", case["existing"])
        if why := wrong_index(base, case):
            found[case["id"]] = why
    assert {name: why for name, why in found.items() if name in settled(cases) - GENERATION_ROWS.keys()} == {}
    assert found.keys() >= GENERATION_ROWS.keys() | GENERATION_OPEN.keys()


def wrong_index(base: Path, case: Case) -> str:
    expected, file = case["expected"], base / "MEMORY.md"
    created = case["enabled"] and publish_index(base, build_missing(topics_in(base)))
    text = file.read_bytes().decode("utf-8") if file.exists() else None
    shown = bool(load_index(base).text)
    got = {"created": created, "index_sha256": None if text is None else sha(text), "section_shown": shown}
    return "" if got == {key: expected[key] for key in got} else f"{got} {text}"


def topics_in(base: Path) -> list[Topic]:
    return [
        parse_topic(
            read_text(source.file, max_bytes=1_000_000)[0],
            path=source.path,
            scope=Scope.PROJECT,
            mtime=source.mtime_ns / 1e9,
            file=source.file,
        )
        for source in scan(base, Scope.PROJECT).files
    ]


def test_of_200_files_140_are_listed_and_60_named_as_left_out(wave: ModuleType, tmp_path: Path) -> None:
    """V4, instead of WI-040 and WI-041."""
    for case in wave.load("index_generation"):
        if case["id"] in {"WI-040", "WI-041"}:
            base = wave.materialise(tmp_path / case["id"], case["files"])
            *lines, note = build_missing(topics_in(base)).splitlines()
            assert sha("".join(f"{line}\n" for line in lines)) == case["expected"]["index_sha256"]
            assert str(len(topics_in(base)) - 140) in note


def test_paths_that_are_not_in_their_shortest_form_get_no_line(wave: ModuleType) -> None:
    cases = [case for case in wave.load("index_generation") if "headers" in case]
    assert cases
    for case in cases:
        topics = [
            topic(head["filename"], description=head["description"] or "", mtime=head["mtime_ms"] / 1000)
            for head in case["headers"]
        ]
        assert build_missing(topics) == case["expected"]["index_on_disk"], case["id"]


def topic(path: str, *, description: str, mtime: float) -> Topic:
    return Topic(Scope.PROJECT, path, path, description, None, "", mtime, mtime, Path("/memory") / path)


# --- what qwen-code makes anew

QWEN_ROWS = {
    "emoji-cut": "V2: code points, no half emoji",
    "skips-invalid": "V1 keeps the file without a header; DESIGN 4.4 keeps the hand-written line",
    "201-files": "V4: the index says how many lines it left out",
    "bytes-cap": "V4: the same, in our words",
    "bytes-cap-cjk": "V4: the same",
}


def qwen_cases(shared: Path) -> list[Case]:
    found: list[Case] = json.loads((shared / "vectors/qwen/index/dev.json").read_text(encoding="utf-8"))["cases"]
    return found


def rebuilt(case: Case) -> str:
    topics = [
        parse_topic(
            text, path=path, scope=Scope.PROJECT, mtime=case["mtimes_ms"][path] / 1000, file=Path("/memory") / path
        )
        for path, text in case["files"].items()
        if path.endswith(".md") and not path.endswith("MEMORY.md")
    ]
    return generated(topics, case["files"].get("MEMORY.md", ""))


def test_an_index_is_made_anew_as_qwen_code_does(shared: Path) -> None:
    cases = qwen_cases(shared)
    assert len(cases) > 10
    differ = {case["id"] for case in cases if rebuilt(case) != case["expected"]["memory_md"]}
    assert differ == QWEN_ROWS.keys()


def test_where_qwen_code_loses_something_the_row_holds(shared: Path) -> None:
    """V1, V2, V4 and DESIGN 4.4, case by case."""
    made = {case["id"]: (rebuilt(case), case) for case in qwen_cases(shared) if case["id"] in QWEN_ROWS}
    emoji, _ = made["emoji-cut"]
    assert emoji == f"- [T](project/a.md) — {'🚀' * 80}"
    kept, _ = made["skips-invalid"]
    assert kept.splitlines() == ["- old line", "", "- [bad](user/bad.md) — user", "- [OK](user/ok.md) — ok"]
    for name in ("201-files", "bytes-cap", "bytes-cap-cjk"):
        text, case = made[name]
        *lines, note = text.splitlines()
        assert case["expected"]["memory_md"].startswith("\n".join(lines))
        assert str(len(case["files"]) - len(lines)) in note
        assert len(lines) == {"201-files": 199}.get(name, 165)
        assert truncate(text).truncated is False
        assert len(entries(text)) == len(lines)
