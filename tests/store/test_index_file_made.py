"""Indexes made from all topics: order, limits, the loss named, hand-written text (DESIGN 4.4, 4.5, deviations V4)."""

import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from recall.store.capacity import INDEX_CAPS_IN_BYTES, Caps
from recall.store.index_file import build_missing, entries, generated, truncate
from recall.store.topics import MemoryType, Scope, Topic


def topic(path: str, title: str = "", description: str = "", mtime: float = 0.0) -> Topic:
    file = Path("/memory") / path
    return Topic(Scope.PROJECT, path, title or file.stem, description, MemoryType.USER, "", mtime, mtime, file)


def topics(count: int, description: str = "d") -> list[Topic]:
    return [topic(f"t{number}.md", description=description, mtime=float(-number)) for number in range(count)]


# --- generated


def test_without_topics_there_is_no_index() -> None:
    assert generated([], "") == ""
    assert generated([], "\ufeff- [gone](gone.md)\n") == ""


def test_the_newest_come_first_and_equal_times_go_by_name_then_path() -> None:
    found = [topic("z.md", mtime=1.0), topic("b.md"), topic("sub/B.md"), topic("a.md"), topic("中.md"), topic("b/a.md")]
    random.Random(7).shuffle(found)
    paths = [entry.target for entry in entries(generated(found, ""))]
    assert paths == ["z.md", "a.md", "b/a.md", "b.md", "sub/B.md", "中.md"]


def test_all_lines_are_made_anew_and_the_old_ones_forgotten() -> None:
    old = "- [gone](gone.md) — x\n* [T](./t0.md) — by hand\n"
    assert generated(topics(1), old) == "- [t0](t0.md) — d"


def test_what_people_wrote_stays_above_and_below() -> None:
    old = (
        "\ufeff# Memory\r\nRead [the guide](guide.md).\r\n\r\n- [A](a.md)\r\n- [B](b.md)\r\n\r\n## Later\r\n\r\n"
        "- [C](c.md)\r\n\r\n- a note\r\n- [Docs](https://a.example)\r\n- [Up](../CLAUDE.md)\r\n"
    )
    text = generated(topics(1), old)
    assert text == (
        "# Memory\nRead [the guide](guide.md).\n\n- [t0](t0.md) — d\n\n"
        "## Later\n\n- a note\n- [Docs](https://a.example)\n- [Up](../CLAUDE.md)"
    )
    assert generated(topics(1), text) == text


def test_an_example_in_a_fence_is_hand_written() -> None:
    old = "```\n- [A](a.md) — how a line looks\n```"
    assert generated(topics(1), old) == f"{old}\n\n- [t0](t0.md) — d"


def test_two_hundred_topics_fit_and_of_more_the_number_left_out_is_named() -> None:
    assert generated(topics(200), "").count("\n") == 199
    text = generated(topics(260), "")
    *lines, note = text.split("\n")
    assert (len(lines), note) == (199, "> Memories left out for lack of room, yet still recalled: 61")
    assert truncate(text).truncated is False


def test_characters_are_limited_with_the_note_counted() -> None:
    text = generated(topics(200, "d" * 300), "")
    *lines, note = text.split("\n")
    assert note.endswith(f": {200 - len(lines)}")
    assert 25_000 - 150 < len(text) <= 25_000
    in_bytes = generated(topics(200, "记" * 300), "", caps=INDEX_CAPS_IN_BYTES)
    assert 25_000 - 500 < len(in_bytes.encode("utf-8")) <= 25_000


def test_a_note_of_an_earlier_time_and_the_warning_of_the_host_are_not_hand_written() -> None:
    text = generated(topics(260), "")
    assert generated(topics(3), text + "\n\n> WARNING: MEMORY.md is too large; only a part was written.") == (
        "- [t0](t0.md) — d\n- [t1](t1.md) — d\n- [t2](t2.md) — d"
    )
    assert generated(topics(260), text) == text


def test_hand_written_text_counts_and_its_loss_is_never_silent() -> None:
    notes = "\n".join(f"- fact {number}" for number in range(90))
    text = generated(topics(200), f"{notes}\n\n- [old](old.md)")
    assert text.startswith(f"{notes}\n\n- [t0](t0.md)")
    assert text.endswith(f": {200 - len(entries(text))}")
    assert truncate(text).truncated is False


def test_a_long_log_in_the_index_is_kept_below_the_lines() -> None:
    log = "\n".join(f"{number}: what happened" for number in range(386))
    text = generated(topics(150), log)
    assert text.endswith(f"\n\n{log}")
    assert [entry.line for entry in entries(text)] == [*range(1, 100)]
    assert text.split("\n")[99].endswith(": 51")
    assert generated(topics(150), text) == text


LINES = st.sampled_from(
    ["# Memory", "", "text", "- [A](a.md)", "* [[b]] c", "- [U](../u.md)", "```", "1. [T](t0.md), [x](x.md)",
     "### [H](h.md)", "\r"]
)  # fmt: skip


@given(st.lists(LINES, max_size=12), st.integers(0, 4), st.integers(2, 12))
def test_made_twice_it_is_the_same_and_no_hand_written_line_is_lost(old: list[str], count: int, lines: int) -> None:
    caps = Caps(lines, 400)
    text = generated(topics(count), "\n".join(old), caps=caps)
    assert generated(topics(count), text, caps=caps) == text
    ours = {entry.line for entry in entries("\n".join(old)) if entry.leads and old[entry.line - 1][:1] in "-*1"}
    by_hand = [line.strip() for number, line in enumerate(old, 1) if number not in ours and line.strip()]
    made = text.split("\n")
    assert [line for line in made if line.strip() in by_hand] == by_hand or len(by_hand) != len({*by_hand})
    listed = [entry for entry in entries(text) if entry.target.startswith("t") and entry.description == "d"]
    left_out = [int(line.rpartition(" ")[2]) for line in made if line.startswith("> Memories left out")]
    assert len(listed) + sum(left_out) == count


# --- built where it is missing


def test_a_missing_index_has_a_line_of_each_topic_and_a_last_line_end() -> None:
    found = [topic("b.md", "B", "second"), topic("sub/a.md", "A", "", mtime=1.0)]
    assert build_missing(found) == "- [a](sub/a.md)\n- [b](b.md) — second\n"
    assert build_missing([]) == ""


def test_a_missing_index_is_filled_to_seven_tenths_and_says_what_is_left_out() -> None:
    *lines, note = build_missing(topics(250)).splitlines()
    assert (len(lines), note.rpartition(" ")[2]) == (140, "110")
    text = build_missing(topics(140, "d" * 300))
    *lines, note = text.splitlines()
    assert sum(len(line) + 1 for line in lines) <= 17_500 < sum(len(line) + 1 for line in lines) + 151
    assert note.endswith(f": {140 - len(lines)}")


def test_a_host_that_counts_bytes_gets_a_shorter_one() -> None:
    text = build_missing(topics(140, "记" * 300), caps=INDEX_CAPS_IN_BYTES)
    assert 17_000 < len(text.encode("utf-8")) <= 17_600
    assert truncate(text, INDEX_CAPS_IN_BYTES).truncated is False


def test_files_that_cannot_be_linked_take_no_room() -> None:
    found = [topic("b[1].md", mtime=1.0), *topics(140)]
    assert build_missing(found) == build_missing(topics(140))
    assert build_missing([topic("(x).md")]) == ""


def test_of_very_many_topics_only_the_listed_lines_are_made() -> None:
    text = generated(topics(100_000), "")
    assert text.endswith(f": {100_000 - 199}")
