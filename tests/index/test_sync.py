"""Topics and words in step with the folder: whatever happened in between, the index is that of a rebuild."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall import Config, Memory, SyncReport
from recall.config import EncoderConfig, IndexConfig, SearchConfig
from recall.index.catalog import Catalog
from recall.index.collection import Collection
from recall.index.known import Known
from recall.index.sync import apply_difference, apply_words, plan, worth_merging
from recall.store.look import Difference
from recall.store.scan import Scan, SourceFile, scan
from recall.store.topics import Scope, Topic
from tests.aging import age

NAMED = "---\nname: {name}\ndescription: {about}\n---\n{body}\n"


def write(root: Path, path: str, text: str) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file


def named(name: str, body: str) -> str:
    return NAMED.format(name=name, about=f"about {name}", body=body)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "memory"
    folder.mkdir()
    return folder


def collection(root: Path, cache: Path) -> Collection:
    return Collection(root, Scope.PROJECT, cache=cache, max_file_bytes=1 << 20)


def sees_everything(cache: Path) -> Config:
    """Hashing vectors and no floor, so that every topic with a score is a hit."""
    return Config(
        search=SearchConfig(k=100, floor=-10.0),
        index=IndexConfig(cache=str(cache)),
        encoder=EncoderConfig(model="hashing"),
    )


# --- the plan


def seen(path: str, *, mtime_ns: int = 5, size: int = 3, inode: int = 9) -> SourceFile:
    return SourceFile(path, f"/memory/{path}", mtime_ns, size, inode, 1)


KNOWN = Known(1, mtime_ns=5, size=3, inode=9, digest=b"")


def test_an_untouched_file_is_not_read_again() -> None:
    found = plan({"a.md": KNOWN}, [seen("a.md")])
    assert (found.read, found.gone, found.kept) == ((), (), 1)


@pytest.mark.parametrize("touched", [seen("a.md", mtime_ns=6), seen("a.md", size=4), seen("a.md", inode=8)])
def test_another_time_size_or_inode_has_a_file_read_again(touched: SourceFile) -> None:
    found = plan({"a.md": KNOWN}, [touched])
    assert (found.read, found.kept) == ((touched,), 0)


def test_new_files_are_read_and_missing_ones_are_gone() -> None:
    found = plan({"old.md": KNOWN}, [seen("new.md")])
    assert (found.read, found.gone, found.kept) == ((seen("new.md"),), ("old.md",), 0)


def test_a_full_look_reads_untouched_files_as_well() -> None:
    assert plan({"a.md": KNOWN}, [seen("a.md")], full=True).read == (seen("a.md"),)


# --- step by step as from nothing

FOLDERS = ("", "notes/", "notes/deep/", "feedback/", "项目/")
NAMES = ("alpha.md", "Alpha.md", "user_beta.md", "2024-05-06-gamma.md", "德尔塔.md")
PATHS = st.builds(lambda folder, name: folder + name, st.sampled_from(FOLDERS), st.sampled_from(NAMES))
TEXTS = st.sampled_from(
    [
        named("cats", "cats eat fish every morning"),
        named("cats", "cats eat fish, and now mice as well"),
        named("部署", "周二发布上线，周五回滚"),
        "---\ndescription: no name of its own\ntype: reference\n---\nthe dashboard is behind the proxy",
        "a note without any header, see [[cats]]",
        "# Long\n\n" + "\n\n".join(f"paragraph {number} tells of thing{number} " * 20 for number in range(6)),
        "",
    ]
)
STEPS = st.one_of(
    st.tuples(st.just("write"), PATHS, TEXTS),
    st.tuples(st.just("replace"), PATHS, TEXTS),
    st.tuples(st.just("binary"), PATHS, st.just("")),
    st.tuples(st.just("move"), PATHS, PATHS),
    st.tuples(st.just("copy"), PATHS, PATHS),
    st.tuples(st.just("swap"), PATHS, PATHS),
    st.tuples(st.just("delete"), PATHS, st.just("")),
    st.tuples(st.just("touch"), PATHS, st.just("")),
    st.tuples(st.just("move folder"), st.sampled_from(FOLDERS[1:]), st.sampled_from(FOLDERS[1:])),
    st.tuples(st.just("look"), st.just(""), st.just("")),
)


def _write(root: Path, path: str, text: str) -> None:
    write(root, path, text)


def _replace(root: Path, path: str, text: str) -> None:
    """What editors do: a new file takes the name of the old one."""
    write(root, "new.tmp", text).replace(write(root, path, ""))


def _move(root: Path, old: str, new: str) -> None:
    if (root / old).is_file():
        (root / new).parent.mkdir(parents=True, exist_ok=True)
        (root / old).rename(root / new)


def _copy(root: Path, old: str, new: str) -> None:
    if (root / old).is_file() and old != new:
        (root / new).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / old, root / new)


def _swap(root: Path, one: str, other: str) -> None:
    if (root / one).is_file() and (root / other).is_file():
        _move(root, one, "aside.tmp")
        _move(root, other, one)
        _move(root, "aside.tmp", other)


def _move_folder(root: Path, old: str, new: str) -> None:
    if (root / old).is_dir() and not (root / new).exists() and not new.startswith(old):
        (root / new).parent.mkdir(parents=True, exist_ok=True)
        (root / old).rename(root / new)


def _touch(root: Path, path: str, _: str) -> None:
    if (root / path).is_file():
        os.utime(root / path, (2e9, 2e9))


DEEDS: dict[str, Callable[[Path, str, str], None]] = {
    "write": _write,
    "replace": _replace,
    "binary": lambda root, path, _: (write(root, path, "").write_bytes(b"\0\1\2" * 99), None)[1],
    "move": _move,
    "copy": _copy,
    "swap": _swap,
    "delete": lambda root, path, _: (root / path).unlink(missing_ok=True),
    "touch": _touch,
    "move folder": _move_folder,
}


def what_it_knows(memory: Memory) -> dict[str, Topic]:
    return {topic.id: topic for topic in memory.topics()}


def answers(memory: Memory) -> list[list[tuple[str, float, float | None, int]]]:
    """Hits of several queries with the parts of their scores; equal ones by name, because their order is history."""
    asked = ("cats eat fish", "周二部署上线", "dashboard proxy", "thing4 paragraph", "alpha", "user note")
    return [
        sorted(
            (hit.topic.id, round(hit.score, 5), hit.cosine and round(hit.cosine, 5), hit.chunk)
            for hit in memory.recall(query).hits
        )
        for query in asked
    ]


def assert_accounts_for(report: SyncReport, root: Path) -> None:
    """Every file is in exactly one group."""
    groups = [*report.added, *report.changed, *report.moved, *(path for path, _ in report.failed)]
    assert len(groups) == len(set(groups))
    assert len(groups) + report.kept == len(scan(root, Scope.PROJECT).files)


@settings(max_examples=15, deadline=None)
@given(steps=st.lists(STEPS, min_size=1, max_size=14))
def test_any_history_of_a_folder_ends_in_the_index_of_a_rebuild(steps: Sequence[tuple[str, str, str]]) -> None:
    with TemporaryDirectory() as base:
        root, config = Path(base, "memory"), sees_everything(Path(base, "cache"))
        root.mkdir()
        with Memory.open(root, config=config, background=False) as memory:
            for deed, one, other in steps:
                if deed == "look":
                    memory.recall("cats")
                else:
                    DEEDS[deed](root, one, other)
            assert_accounts_for(memory.reindex(), root)
            fresh_config = sees_everything(Path(base, "other cache"))
            with Memory.open(root, config=fresh_config, background=False) as fresh:
                fresh.reindex()
                assert what_it_knows(memory) == what_it_knows(fresh)
                assert memory.status()[0].problems == fresh.status()[0].problems
                assert answers(memory) == answers(fresh)


def test_a_file_that_is_looked_at_once_more_and_is_as_before_is_kept(root: Path, tmp_path: Path) -> None:
    for name in ("a.md", "b.md", "c.md"):
        write(root, name, name)
    catalog, found = Catalog(tmp_path, root), scan(age(root), Scope.PROJECT)
    before = apply_words(catalog, found, max_bytes=1 << 20)
    write(root, "c.md", "another text")
    again = Difference(scan(root, Scope.PROJECT).files[:2], ())
    report = apply_difference(catalog, again, scope=Scope.PROJECT, max_bytes=1 << 20, before=before)
    assert (report.kept, report.changed) == (2, ("c.md",))
    catalog.close()


def test_what_came_changed_moved_or_stayed_is_kept_the_next_time(root: Path, tmp_path: Path) -> None:
    index = collection(root, tmp_path / "cache")
    for name in ("moved", "changed", "stays"):
        write(root, f"{name}.md", named(name, "text"))
    age(root)
    assert len(index.sync_words().added) == 3
    (root / "moved.md").rename(root / "elsewhere.md")
    write(root, "changed.md", named("changed", "another text"))
    write(root, "added.md", named("added", "text"))
    report = index.sync_words()
    assert (report.moved, report.changed, report.added) == (("elsewhere.md",), ("changed.md",), ("added.md",))
    assert report.kept == 1
    assert index.sync_words().kept == len(index.snapshot()) == 4
    index.close()


@settings(max_examples=30, deadline=None)
@given(steps=st.lists(STEPS, max_size=12))
def test_each_report_of_a_history_accounts_for_every_file_and_every_topic(
    steps: Sequence[tuple[str, str, str]],
) -> None:
    with TemporaryDirectory() as base:
        (root := Path(base, "memory")).mkdir()
        index = collection(root, Path(base, "cache"))
        for deed, one, other in steps:
            if deed != "look":
                DEEDS[deed](root, one, other)
            report = index.sync_words()
            assert_accounts_for(report, root)
            topics = len(report.added) + len(report.changed) + len(report.moved) + report.kept
            assert topics == len(index.snapshot())
        index.close()


# --- one thing at a time


def test_both_of_two_equal_files_are_forgotten_when_both_are_deleted(root: Path, tmp_path: Path) -> None:
    for name in ("one.md", "two.md"):
        write(root, name, named("same", "equal words"))
    index = collection(root, tmp_path / "cache")
    index.sync_words()
    for file in root.iterdir():
        file.unlink()
    assert set(index.sync_words().removed) == {"one.md", "two.md"}
    assert len(index.snapshot()) == 0
    index.close()


def test_both_of_two_equal_files_are_known_where_they_moved(root: Path, tmp_path: Path) -> None:
    for name in ("one.md", "two.md"):
        write(root, name, named("same", "equal words"))
    index = collection(root, tmp_path / "cache")
    index.sync_words()
    (root / "sub").mkdir()
    for name in ("one.md", "two.md"):
        (root / name).rename(root / "sub" / name)
    report = index.sync_words()
    assert (sorted(report.moved), report.added, report.removed) == (["sub/one.md", "sub/two.md"], (), ())
    assert sorted(index.snapshot().paths) == ["sub/one.md", "sub/two.md"]
    index.close()


def test_a_file_whose_title_is_its_name_is_another_text_under_another_name(root: Path, tmp_path: Path) -> None:
    write(root, "alpha.md", "no header")
    index = collection(root, tmp_path / "cache")
    index.sync_words()
    (root / "alpha.md").rename(root / "omega.md")
    report = index.sync_words()
    assert (report.added, report.moved, report.removed) == (("omega.md",), (), ("alpha.md",))
    assert [topic.title for topic in index.snapshot().topics([0]).values()] == ["omega"]
    index.close()


def test_the_kind_that_a_folder_suggests_follows_the_file(root: Path, tmp_path: Path) -> None:
    write(root, "notes/tone.md", named("tone", "be brief"))
    index = collection(root, tmp_path / "cache")
    index.sync_words()
    (root / "notes").rename(root / "feedback")
    assert index.sync_words().moved == ("feedback/tone.md",)
    assert [topic.type for topic in index.snapshot().topics([0]).values()] == ["feedback"]
    (root / "feedback").rename(root / "notes")
    index.sync_words()
    assert [topic.type for topic in index.snapshot().topics([0]).values()] == [None]
    index.close()


def test_a_warning_goes_with_its_cause_though_the_text_stays(root: Path, tmp_path: Path) -> None:
    file = write(root, "a.md", "")
    file.write_text("cats eat fish", encoding="utf-16")
    index = collection(root, tmp_path / "cache")
    assert [path for path, _ in index.sync_words().warnings] == ["a.md"]
    file.write_text("cats eat fish", encoding="utf-8")
    assert index.sync_words().warnings == ()
    assert index.warnings() == {}
    index.close()


def test_a_file_that_becomes_binary_leaves_and_comes_back_when_it_is_text_again(root: Path, tmp_path: Path) -> None:
    file = write(root, "a.md", named("a", "cats"))
    index = collection(root, tmp_path / "cache")
    index.sync_words()
    file.write_bytes(b"\0" * 500)
    report = index.sync_words()
    assert [path for path, _ in report.failed] == ["a.md"]
    assert "NUL" in index.problems()["a.md"]
    assert len(index.snapshot()) == 0
    file.write_bytes(named("a", "dogs").encode())
    assert index.sync_words().added == ("a.md",)
    assert index.problems() == {}
    index.close()


def test_a_file_that_failed_and_is_deleted_is_no_problem_any_more(root: Path, tmp_path: Path) -> None:
    file = write(root, "a.md", "")
    file.write_bytes(b"\0" * 500)
    index = collection(root, tmp_path / "cache")
    index.sync_words()
    file.unlink()
    index.sync_words()
    assert index.problems() == {}
    index.close()


def test_a_file_that_vanishes_between_scan_and_reading_is_gone(root: Path, tmp_path: Path) -> None:
    file = write(root, "a.md", named("a", "cats"))
    catalog = Catalog(tmp_path, root)
    apply_words(catalog, scan(root, Scope.PROJECT), max_bytes=999)
    file.write_text("something else", encoding="utf-8")
    found = scan(root, Scope.PROJECT)
    file.unlink()
    assert apply_words(catalog, found, max_bytes=999).removed == ("a.md",)
    assert catalog.known() == {}
    catalog.close()


def test_dates_and_file_numbers_beyond_what_the_catalog_holds_are_taken(root: Path, tmp_path: Path) -> None:
    file = write(root, "a.md", named("a", "cats"))
    os.utime(file, ns=(13_570_000_000_000_000_000,) * 2)  # the year 2400
    status = file.stat()
    source = SourceFile("a.md", str(file), status.st_mtime_ns, status.st_size, 2**64 - 1, status.st_dev)
    catalog = Catalog(tmp_path, root)
    apply_words(catalog, Scan((source,)), max_bytes=999)
    report = apply_words(catalog, Scan((source,)), max_bytes=999)
    assert (report.kept, report.changed) == (1, ())
    assert len(plan(catalog.known(), [source]).read) == 0
    catalog.close()


def test_many_small_changes_leave_few_postings_files_and_none_without_owner(root: Path, tmp_path: Path) -> None:
    index = collection(root, tmp_path / "cache")
    for number in range(40):
        write(root, f"{number % 7}.md", named(f"t{number % 7}", f"edit number{number}"))
        index.sync_words()
    files = {file.stem for file in index.folder.glob("*.postings")}
    snapshot = index.snapshot()
    assert files == {segment.name for segment, _ in snapshot.segments}
    assert len(files) <= 8
    places = np.concatenate([positions for _, positions in snapshot.segments])
    assert sorted(places[places >= 0].tolist()) == list(range(7))
    index.close()


@pytest.mark.parametrize(
    ("sizes", "alive", "merged"),
    [
        ([], 0, 0),
        ([5], 5, 0),
        ([1] * 8, 8, 0),
        ([1] * 9, 9, 9),
        ([*[1] * 8, 10_000], 10_008, 8),
        ([*[1] * 7, 15, 10_000], 10_022, 7),
        ([16, 2002, 2003, 6003], 10_024, 4),
        ([900, 900, 10_000], 11_800, 0),
        ([1000, 1000, 10_000], 12_000, 2),
        ([2000, 2000, 10_000], 14_000, 2),
        ([2000, 3100, 10_000], 15_100, 3),
        ([3, 4000], 1000, 2),
    ],
)
def test_postings_are_merged_when_they_are_many_or_much_of_them_is_small(
    sizes: list[int], alive: int, merged: int
) -> None:
    assert worth_merging(sizes, alive=alive) == merged


def test_a_document_is_rewritten_a_few_times_only_however_many_come_one_by_one() -> None:
    sizes: list[int] = []
    rewritten = 0
    for _ in range(5000):
        sizes = sorted([*sizes, 1])
        merged = worth_merging(sizes, alive=sum(sizes))
        rewritten += sum(sizes[:merged])
        sizes = sorted([*sizes[merged:], *([sum(sizes[:merged])] if merged else [])])
        assert len(sizes) <= 12
    assert rewritten < 8 * 5000


def test_progress_is_told_up_to_the_end(root: Path, tmp_path: Path) -> None:
    for number in range(5):
        write(root, f"{number}.md", "x")
    told: list[tuple[str, int, int]] = []
    index = collection(root, tmp_path / "cache")
    index.sync_words(on_progress=lambda *step: told.append(step))
    assert told[-1] == ("words", 5, 5)
    index.close()
