from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from bench.generate import distinct_runs, edits, queries, topics, write
from bench.lexicon import english, han, identifier, person
from recall.store.frontmatter import parse
from recall.text.chunks import chunk_topic

NOTES = list(topics(300))


def test_the_same_seed_gives_the_same_notes_and_another_seed_others() -> None:
    assert list(topics(5)) == NOTES[:5]
    assert not {text for _, text in topics(5, seed=1)} & {text for _, text in NOTES}


def test_paths_are_distinct_relative_and_partly_in_folders() -> None:
    paths = [path for path, _ in NOTES]
    depths = Counter(path.count("/") for path in paths)
    assert len(set(paths)) == len(paths)
    assert all(path.endswith(".md") and not path.startswith((".", "/")) and ".." not in path for path in paths)
    assert depths[0] > 30
    assert depths[1] > 30
    assert sum(count for depth, count in depths.items() if depth > 1) > 30


def test_every_note_has_a_header_that_parses_without_a_warning() -> None:
    for _, text in NOTES:
        front = parse(text)
        assert not front.warnings
        assert {"name", "description", "type"} <= front.fields.keys()


def test_sizes_are_those_of_real_notes_with_a_long_tail() -> None:
    sizes = sorted(len(text.encode()) for _, text in NOTES)
    chunks = [len(chunk_topic("a title", "what it says", parse(text).body, budget=430)) for _, text in NOTES]
    assert 1500 < sizes[150] < 2500
    assert sizes[0] < 700
    assert sizes[-1] > 6000
    assert sum(chunks) / len(chunks) >= 1.5


def test_notes_are_chinese_english_and_mixed() -> None:
    shares = [sum("一" <= char <= "鿿" for char in text) / len(text) for _, text in NOTES]
    assert sum(share > 0.4 for share in shares) > 50
    assert sum(share == 0 for share in shares) > 50
    assert sum(0.05 < share < 0.4 for share in shares) > 30


def test_new_words_keep_coming_but_ever_more_slowly() -> None:
    curve = dict(distinct_runs(400))
    assert curve[100] < curve[200] < curve[400]
    assert 0.6 < (curve[400] - curve[200]) / curve[200] < 1


@pytest.mark.parametrize("word", [english, identifier, person])
def test_latin_words_of_different_ranks_differ(word) -> None:  # type: ignore[no-untyped-def]
    assert len({word(rank) for rank in range(60_000)}) > 59_000


def test_han_words_differ_and_never_end() -> None:
    assert len({han(rank) for rank in range(20_000)}) > 19_000
    assert len(han(10_000_000)) == 3


def test_requests_differ_and_half_of_them_are_about_notes() -> None:
    asked = list(queries(200, among=300))
    assert asked == list(queries(200, among=300))
    assert len(asked) == len(set(asked)) == 200
    assert sum(any("一" <= char <= "鿿" for char in query) for query in asked) > 60
    assert sum(len(query) > 80 for query in asked) > 10
    assert list(islice(queries(200, among=5), 3)) != asked[:3]


def test_edits_change_rename_and_delete_what_they_say(tmp_path: Path) -> None:
    write(tmp_path, 100)
    before = {file.relative_to(tmp_path).as_posix(): file.read_bytes() for file in tmp_path.rglob("*.md")}
    done = edits(tmp_path, share=0.05)
    after = {file.relative_to(tmp_path).as_posix(): file.read_bytes() for file in tmp_path.rglob("*.md")}
    assert {kind: len(paths) for kind, paths in done.items()} == {"edit": 5, "rename": 5, "delete": 5}
    assert len(after) == 95
    for path in done["edit"]:
        assert after[path].startswith(before[path])
        assert len(after[path]) > len(before[path])
    assert not set(done["rename"] + done["delete"]) & after.keys()
    assert sorted(before[path] for path in done["rename"]) == sorted(
        after[path] for path in after.keys() - before.keys()
    )


def test_written_notes_are_those_given_with_times_that_do_not_depend_on_the_clock(tmp_path: Path) -> None:
    total = write(tmp_path / "one", 20)
    write(tmp_path / "two", 20)
    for path, text in topics(20):
        assert (tmp_path / "one" / path).read_text(encoding="utf-8") == text
        assert (tmp_path / "one" / path).stat().st_mtime == (tmp_path / "two" / path).stat().st_mtime
    assert total == sum(len(text.encode()) for _, text in topics(20))
