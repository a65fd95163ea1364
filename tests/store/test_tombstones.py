"""What was forgotten is recognised in its trivial respellings, named nowhere, and lifted by run or by text."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recall
from recall.errors import TopicError, UnsafePathError
from recall.store import tombstones
from recall.store.tombstones import Tombstones, folded, make_trash
from tests.power import Tape, put

NOW = 1_773_576_000.0
LONG_S = 60.0


@pytest.fixture
def graves(tmp_path: Path) -> Tombstones:
    return Tombstones(tmp_path / "memory" / ".trash")


def file_of(graves: Tombstones) -> Path:
    return graves.folder / "forgotten.jsonl"


def lines_of(graves: Tombstones) -> list[bytes]:
    return file_of(graves).read_bytes().splitlines()


# --- the same text in other spellings


@pytest.mark.parametrize(
    "again",
    [
        "Use pnpm, never npm",
        "use PNPM, never  npm.",
        "  「Use pnpm,\n never npm！」",
        "Ｕｓｅ　ｐｎｐｍ, never npm…",
        "**use pnpm, never npm**",
        "use\u200b pnpm, never npm",
        "“Use pnpm, never npm” .",
    ],
)
def test_a_trivially_changed_spelling_is_still_recognised(graves: Tombstones, again: str) -> None:
    graves.add(["Use pnpm, never npm"], run="r1", time=NOW)
    assert graves.holds(again)


@pytest.mark.parametrize(
    ("forgotten", "other"),
    [
        ("Use pnpm, never npm", "Use npm, never pnpm"),
        ("written in C#", "written in C"),
        ("coverage is 100%", "coverage is 100"),
        ("the limit is -1", "the limit is 1"),
        ("written in C++", "written in C"),
        ("-1 is no error", "1 is no error"),
        ("端口是 8080", "端口是 8081"),
        ("...", "?!"),
        ("", ""),
    ],
)
def test_another_text_is_not_taken_for_it(graves: Tombstones, forgotten: str, other: str) -> None:
    graves.add([forgotten, "something"], run="r1", time=NOW)
    assert not graves.holds(other)


@given(st.text("abC 中文-%#.,\u3000", min_size=1).filter(lambda text: any(map(str.isalnum, text))))
def test_quotes_case_and_blanks_around_a_text_change_nothing(text: str) -> None:
    plain = folded(text)
    assert folded(plain) == plain
    assert folded(f"  “{text.upper()}” 。\n") == plain
    assert folded(f"x{text}x") != plain


@pytest.mark.parametrize("text", ["half \ud800 a character", "nul \0 in it", "长" * 300_000, "!?"])
def test_any_text_can_be_forgotten(graves: Tombstones, text: str) -> None:
    graves.add([text], run="r1", time=NOW)
    assert graves.holds(text)
    assert not graves.holds("anything else")
    assert file_of(graves).stat().st_size < 1_000


# --- the file


def test_no_text_is_in_the_file_and_equal_texts_have_other_digests_elsewhere(tmp_path: Path) -> None:
    one, other = Tombstones(tmp_path / "one"), Tombstones(tmp_path / "other")
    for graves in (one, other):
        graves.add(["secret preference"], run="r1", time=NOW)
        assert b"secret" not in file_of(graves).read_bytes()
    digests = {json.loads(lines_of(graves)[1])["digest"] for graves in (one, other)}
    assert len(digests) == 2


def test_the_folder_is_made_for_this_user_alone_and_hidden_from_git(graves: Tombstones) -> None:
    graves.add(["x"], run="r1", time=NOW)
    assert graves.folder.stat().st_mode & 0o777 == 0o700
    assert file_of(graves).stat().st_mode & 0o777 == 0o600
    assert (graves.folder / ".gitignore").read_bytes() == b"*\n"
    (graves.folder / ".gitignore").write_bytes(b"own\n")
    make_trash(graves.folder)
    assert (graves.folder / ".gitignore").read_bytes() == b"own\n"


def test_asking_and_lifting_make_nothing(graves: Tombstones) -> None:
    assert not graves.holds("x")
    assert graves.lift("r1") == graves.lift_text("x") == 0
    graves.add(["", " \n"], run="r1", time=NOW)
    assert not graves.folder.exists()


def test_additions_are_appended_below_one_key_and_repeated_ones_are_not(graves: Tombstones) -> None:
    graves.add(["one", "One!"], run="r1", time=NOW)
    first = file_of(graves).read_bytes()
    graves.add(["one", "two"], run="r1", time=NOW + 1)
    assert file_of(graves).read_bytes().startswith(first)
    lines = [json.loads(line) for line in lines_of(graves)]
    assert [sorted(line) for line in lines] == [["key", "v"], ["digest", "run", "time"], ["digest", "run", "time"]]
    assert [line["time"] for line in lines[1:]] == ["2026-03-15T12:00:00.000Z", "2026-03-15T12:00:01.000Z"]


def test_a_run_is_lifted_and_what_another_run_forgot_too_stays(graves: Tombstones) -> None:
    graves.add(["one", "two"], run="r1", time=NOW)
    graves.add(["two", "three"], run="r2", time=NOW)
    assert graves.lift("r1") == 2
    assert [graves.holds(text) for text in ("one", "two", "three")] == [False, True, True]
    assert graves.lift("r1") == 0
    assert graves.lift("r2") == 2
    assert not any(graves.holds(text) for text in ("one", "two", "three"))
    graves.add(["one"], run="r3", time=NOW)
    assert graves.holds("one")


def test_a_text_is_lifted_in_any_spelling_from_all_runs(graves: Tombstones) -> None:
    graves.add(["one", "two"], run="r1", time=NOW)
    graves.add(["one"], run="r2", time=NOW)
    assert graves.lift_text(" ONE. ") == 2
    assert graves.lift_text("") == 0
    assert [graves.holds(text) for text in ("one", "two")] == [False, True]


def test_the_oldest_give_way_to_the_newest(graves: Tombstones, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tombstones, "MOST", 3)
    graves.add(["one", "two"], run="r1", time=NOW)
    graves.add(["three", "four"], run="r2", time=NOW)
    assert [graves.holds(text) for text in ("one", "two", "three", "four")] == [False, True, True, True]
    graves.add([f"x{number}" for number in range(5)], run="r3", time=NOW)
    assert [graves.holds(f"x{number}") for number in range(5)] == [False, False, True, True, True]
    assert len(lines_of(graves)) == 4


def test_ten_thousand_are_known(graves: Tombstones) -> None:
    graves.add((f"fact {number}" for number in range(10_001)), run="r1", time=NOW)
    known = graves.read()
    assert not known.holds("fact 0")
    assert all(known.holds(f"fact {number}") for number in (1, 5_000, 10_000))


# --- broken files


@pytest.mark.parametrize(
    "broken", [b"{", b"[]", b"null", b'{"digest": 1, "run": "r", "time": ""}', b"\0" * 40, b"\xff\xfe", b'{"v": 2}']
)
def test_a_broken_line_costs_nothing_else_and_is_told(graves: Tombstones, broken: bytes) -> None:
    graves.add(["one", "two"], run="r1", time=NOW)
    key, one, two = lines_of(graves)
    file_of(graves).write_bytes(b"\n".join([key, one, broken, two, broken]))  # torn: without a line end
    graves.add(["three"], run="r2", time=NOW)
    known = graves.read()
    assert all(known.holds(text) for text in ("one", "two", "three"))
    assert len(known.warnings) == 1
    assert f"{file_of(graves)}:3: 2 broken lines" in known.warnings[0]
    graves.lift("r2")
    assert graves.read().warnings == ()
    assert graves.holds("two")


@pytest.mark.parametrize(
    "key", [b"", b"{", b'{"v": 1, "key": "xyz"}', b'{"v": 1, "key": ""}', b'{"v": 9, "key": "00"}']
)
def test_without_its_key_the_file_starts_anew_and_tells(graves: Tombstones, key: bytes) -> None:
    graves.add(["one"], run="r1", time=NOW)
    file_of(graves).write_bytes(b"\n".join([key, *lines_of(graves)[1:]]))
    assert not graves.holds("one")
    assert graves.read().warnings
    graves.add(["two"], run="r2", time=NOW)
    assert graves.holds("two")
    assert graves.lift("r2") == 1
    assert not graves.holds("two")


def test_lines_below_two_keys_are_all_known_also_after_a_rewrite(tmp_path: Path) -> None:
    one, other = Tombstones(tmp_path / "one"), Tombstones(tmp_path / "other")
    one.add(["one", "gone"], run="r1", time=NOW)
    other.add(["two", "gone"], run="r2", time=NOW)
    file_of(one).write_bytes(file_of(one).read_bytes() + file_of(other).read_bytes())
    assert one.holds("one")
    assert one.holds("two")
    assert one.lift_text("gone") == 2
    assert [one.holds(text) for text in ("one", "two", "gone")] == [True, True, False]
    assert len(lines_of(one)) == 4


@pytest.mark.parametrize("name", ["forgotten.jsonl", "forgotten.lock"])
def test_a_link_out_of_the_folder_is_never_written_through(graves: Tombstones, tmp_path: Path, name: str) -> None:
    make_trash(graves.folder)
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (graves.folder / name).symlink_to(victim)
    with pytest.raises(UnsafePathError):
        graves.add(["one"], run="r1", time=NOW)
    assert victim.read_bytes() == b"precious"


def test_a_dangling_gitignore_is_not_written_through(graves: Tombstones, tmp_path: Path) -> None:
    graves.folder.mkdir(parents=True)
    (graves.folder / ".gitignore").symlink_to(tmp_path / "victim")
    make_trash(graves.folder)
    assert not (tmp_path / "victim").exists()


def test_what_is_no_file_is_an_error_that_names_it_and_no_hang(graves: Tombstones) -> None:
    make_trash(graves.folder)
    os.mkfifo(file_of(graves))
    with pytest.raises(TopicError, match=r"forgotten\.jsonl"):
        graves.holds("one")


# --- several processes, and stops

WRITER = """
import sys
from pathlib import Path
from recall.store.tombstones import Tombstones

for number in range(40):
    Tombstones(Path(sys.argv[1])).add([f"{sys.argv[2]} {number}"], run=f"{sys.argv[2]}{number % 2}", time=0.0)
Tombstones(Path(sys.argv[1])).lift(f"{sys.argv[2]}1")
"""


def test_two_processes_lose_nothing_and_make_one_key(graves: Tombstones) -> None:
    around = os.environ | {"PYTHONPATH": str(Path(recall.__file__).parents[1])}
    command = [sys.executable, "-c", WRITER, str(graves.folder)]
    processes = [subprocess.Popen([*command, name], env=around) for name in "ab"]
    assert [process.wait(LONG_S) for process in processes] == [0, 0]
    known = graves.read()
    assert known.warnings == ()
    assert len(known.digests) == 1
    for name in "ab":
        assert [known.holds(f"{name} {number}") for number in range(40)] == [True, False] * 20


@pytest.mark.parametrize("work", ["first", "add", "lift"])
def test_after_any_stop_what_was_known_is_known_and_the_next_addition_works(tmp_path: Path, work: str) -> None:
    graves = Tombstones(tmp_path / "base" / ".trash")
    graves.folder.parent.mkdir()
    before = [] if work == "first" else ["one", "two"]
    graves.add(before, run="r1", time=NOW)
    graves.add(before[1:], run="r2", time=NOW)
    tape = Tape(graves.folder.parent)
    with tape.recording():
        if work == "lift":
            graves.lift("r2")
        else:
            graves.add(["three"], run="r3", time=NOW)
    states = [state for moment in tape.moments for state in (moment.stopped(), *moment.without_power())]
    assert len(states) > 10
    for number, state in enumerate(states):
        again = Tombstones(put(state, tmp_path / str(number)) / ".trash")
        assert all(again.holds(text) for text in before)
        again.add(["four"], run="r4", time=NOW)
        assert all(again.holds(text) for text in (*before, "four"))
    last = Tombstones(put(states[-1], tmp_path / "last") / ".trash")
    assert last.holds("three") == (work != "lift")
    assert last.lift("r2") == (1 if work == "add" else 0)
