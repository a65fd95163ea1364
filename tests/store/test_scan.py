import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recall.store.scan import Reason, Scan, Skipped, SourceFile, collation_key, scan, scan_key, scan_order
from recall.store.topics import Scope

Folder = Callable[..., Path]
NOBODY = 65534
_DAY_NS = 86_400_000_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "memory"
    folder.mkdir()
    return folder


def put(root: Path, *paths: str, text: str = "x") -> None:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        os.utime(file, ns=(_DAY_NS, _DAY_NS))


def found(root: Path, *allow: Path) -> tuple[list[str], dict[str, str]]:
    """Paths of the topics, and what is said of the rest."""
    result = scan(root, Scope.PROJECT, allow=allow)
    assert result.root_problem == ""
    return [file.path for file in result.files], {skip.path: skip.describe() for skip in result.skipped}


# --- what is a topic


def test_every_md_file_is_a_topic_at_any_depth(root: Path) -> None:
    put(root, "b.md", "archive/old.md", "a/b/c/deep.md", "memory.md", "README.md", "spaces in name.md", "项目.md")
    put(root, "x.md/inside.md")
    topics, skipped = found(root)
    assert topics == [
        "b.md",
        "a/b/c/deep.md",
        "x.md/inside.md",
        "memory.md",
        "archive/old.md",
        "README.md",
        "spaces in name.md",
        "项目.md",
    ]
    assert skipped == {}


def test_a_topic_carries_what_the_system_knows_of_it(root: Path) -> None:
    put(root, "a/b.md", text="four")
    status = (root / "a/b.md").stat()
    (file,) = scan(root, Scope.USER).files
    assert file == SourceFile("a/b.md", str(root / "a/b.md"), _DAY_NS, 4, status.st_ino, status.st_dev)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("MEMORY.md", "index file"),
        ("sub/MEMORY.md", "index file"),
        ("DREAMS.md", "dream diary"),
        ("2026-06-08.md", "daily note"),
        ("notes/2026-12-31.md", "daily note"),
        ("UPPER.MD", "not a topic by its ending"),
        ("note.markdown", "not a topic by its ending"),
        (".hidden.md", "hidden file"),
        ("a/.md", "hidden file"),
    ],
)
def test_what_is_no_topic_is_reported(root: Path, path: str, said: str) -> None:
    put(root, path, "ok.md")
    assert found(root) == (["ok.md"], {path: said})


@pytest.mark.parametrize("name", ["2026-13-01.md", "2026-06-32.md", "2026-06-08-standup.md", "dreams.md", "Memory.md"])
def test_names_that_only_resemble_those_are_topics(root: Path, name: str) -> None:
    put(root, name)
    assert found(root) == ([name], {})


@pytest.mark.parametrize("start", ["---\n", "\ufeff---\r\n", "\n\n---\n"])
def test_a_memory_that_is_named_after_its_day_is_a_topic(root: Path, start: str) -> None:
    put(root, "2026-06-08.md", text=f"{start}name: A\n---\nBody")
    assert found(root) == (["2026-06-08.md"], {})


def test_other_files_are_not_mentioned(root: Path) -> None:
    put(root, "a.txt", "md", "x.md.bak", "b.json", ".cache/x.json")
    assert found(root) == ([], {})


def test_an_empty_folder_holds_nothing(root: Path) -> None:
    assert scan(root, Scope.USER) == Scan(scope=Scope.USER)


# --- hidden folders


def test_a_hidden_folder_is_one_line_with_its_number_of_files(root: Path) -> None:
    put(root, "ok.md", ".trash/a.md", ".trash/run-1/b.md", ".trash/run-1/c.md", ".trash/x.txt", "sub/.obsidian/y.md")
    assert found(root) == (
        ["ok.md"],
        {".trash": "hidden folder, 3 .md files", "sub/.obsidian": "hidden folder, 1 .md files"},
    )


def test_the_root_itself_may_be_hidden(tmp_path: Path) -> None:
    put(tmp_path / ".claude/memory", "a.md")
    assert found(tmp_path / ".claude/memory") == (["a.md"], {})


def test_links_in_a_hidden_folder_are_not_followed(root: Path) -> None:
    put(root, "ok.md", ".trash/a.md")
    (root / ".trash/up").symlink_to(root)
    assert found(root)[1] == {".trash": "hidden folder, 1 .md files"}


# --- the root


def test_a_missing_root_is_told_not_raised(tmp_path: Path) -> None:
    result = scan(tmp_path / "none", Scope.PROJECT)
    assert result == Scan(root_problem=f"{tmp_path / 'none'} does not exist")


def test_a_root_that_is_a_file_is_told_not_raised(tmp_path: Path) -> None:
    put(tmp_path, "a.md")
    assert scan(tmp_path / "a.md", Scope.PROJECT).root_problem == f"{tmp_path / 'a.md'} is a file, not a folder"


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_an_impossible_root_is_told_not_raised(tmp_path: Path, name: str) -> None:
    assert "cannot be read" in scan(tmp_path / name, Scope.PROJECT).root_problem


def test_a_relative_root_gives_absolute_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(root, "a.md")
    monkeypatch.chdir(root.parent)
    assert scan(Path("memory"), Scope.PROJECT).files[0].file == root / "a.md"


def test_a_root_that_is_a_link_is_scanned(root: Path) -> None:
    put(root, "a.md")
    (root / "in.md").symlink_to("a.md")
    alias = root.parent / "alias"
    alias.symlink_to(root)
    result = scan(alias, Scope.PROJECT)
    assert [(file.path, file.file) for file in result.files] == [("a.md", alias / "a.md")]
    assert [skip.path for skip in result.skipped] == ["in.md"]


# --- links


def test_a_link_to_a_topic_is_the_same_document_and_the_real_file_wins(root: Path) -> None:
    put(root, "sub/real.md")
    (root / "a.md").symlink_to("sub/real.md")
    (root / "again.md").symlink_to("a.md")
    said = "link to a topic that is already indexed, sub/real.md"
    assert found(root) == (["sub/real.md"], {"a.md": said, "again.md": said})


def test_a_link_to_a_folder_inside_adds_nothing(root: Path) -> None:
    put(root, "sub/real.md")
    (root / "alias").symlink_to("sub")
    (root / "sub/self").symlink_to(".")
    (root / "sub/up").symlink_to("..")
    assert found(root) == (
        ["sub/real.md"],
        {
            "alias": "link to a topic that is already indexed, folder sub",
            "sub/self": "link to a topic that is already indexed, folder sub",
            "sub/up": "link to a topic that is already indexed, folder .",
        },
    )


def test_of_two_links_to_a_file_that_is_no_topic_itself_one_is_indexed(root: Path) -> None:
    put(root, "notes.txt", ".drafts/x.md")
    for name in ("b.md", "a.md"):
        (root / name).symlink_to("notes.txt")
    (root / "draft.md").symlink_to(".drafts/x.md")
    topics, skipped = found(root)
    assert topics == ["a.md", "draft.md"]
    assert skipped == {
        ".drafts": "hidden folder, 1 .md files",
        "b.md": "link to a topic that is already indexed, notes.txt",
    }


def test_a_link_to_an_index_or_a_daily_note_is_no_topic_either(root: Path) -> None:
    put(root, "MEMORY.md", "2026-06-08.md")
    (root / "index.md").symlink_to("MEMORY.md")
    (root / "today.md").symlink_to("2026-06-08.md")
    topics, skipped = found(root)
    assert topics == []
    assert (skipped["index.md"], skipped["today.md"]) == ("index file", "daily note")


def test_links_out_of_the_root_are_reported_with_where_they_lead(root: Path) -> None:
    put(root.parent, "elsewhere/x.md", "memory-2/y.md")
    (root / "x.md").symlink_to("../elsewhere/x.md")
    (root / "folder").symlink_to("../memory-2")
    (root / "parent").symlink_to("..")
    parent = os.path.realpath(root.parent)
    outside = "link to a place outside the memory folder"
    assert found(root) == (
        [],
        {
            "x.md": f"{outside}, {parent}/elsewhere/x.md",
            "folder": f"{outside}, {parent}/memory-2",
            "parent": f"{outside}, {parent}",
        },
    )


def test_links_into_an_allowed_folder_are_followed_once(root: Path) -> None:
    put(root.parent, "rules/x.md", "rules/deep/y.md", "rules/.git/z.md")
    (root / "b").symlink_to("../rules")
    (root / "c").symlink_to("../rules/deep")
    (root / "x.md").symlink_to("../rules/x.md")
    topics, skipped = found(root, root.parent / "rules")
    assert topics == ["b/x.md", "b/deep/y.md"]
    rules = os.path.realpath(root.parent / "rules")
    assert skipped == {
        "b/.git": "hidden folder, 1 .md files",
        "c": f"link to a topic that is already indexed, folder {rules}/deep",
        "x.md": f"link to a topic that is already indexed, {rules}/x.md",
    }


def test_an_allowed_folder_around_the_root_does_not_double_the_root(root: Path) -> None:
    put(root, "a.md")
    put(root.parent, "other/b.md")
    (root / "up").symlink_to("..")
    topics, skipped = found(root, root.parent)
    assert topics == ["a.md", "up/other/b.md"]
    assert skipped == {"up/memory": "link to a topic that is already indexed, folder ."}


def test_dangling_and_circular_links_are_reported_and_hide_nothing(root: Path) -> None:
    put(root, "z.md")
    (root / "dangling.md").symlink_to("gone.md")
    (root / "dangling").symlink_to("gone/deeper")
    (root / "through.md").symlink_to("z.md/x.md")
    (root / "loop.md").symlink_to("loop.md")
    (root / "ping").symlink_to("pong")
    (root / "pong").symlink_to("ping")
    topics, skipped = found(root)
    assert topics == ["z.md"]
    reasons = {path: said.partition(",")[0] for path, said in skipped.items()}
    assert reasons == {
        "dangling.md": Reason.DANGLING,
        "dangling": Reason.DANGLING,
        "through.md": Reason.DANGLING,
        "loop.md": Reason.LOOP,
        "ping": Reason.LOOP,
        "pong": Reason.LOOP,
    }


def test_a_link_to_a_file_that_nobody_would_read_is_not_mentioned(root: Path) -> None:
    put(root, "a.txt")
    (root / "b.txt").symlink_to("a.txt")
    assert found(root) == ([], {})


# --- what cannot be read


def test_pipes_and_the_like_are_reported_and_not_opened(root: Path) -> None:
    for name in ("pipe.md", "2026-06-08.md"):
        os.mkfifo(root / name)
    (root / "link.md").symlink_to("pipe.md")
    said = "not a regular file"
    assert found(root) == ([], {"pipe.md": said, "2026-06-08.md": said, "link.md": said})


@pytest.fixture
def guarded() -> Iterator[Path]:
    """A folder that an unprivileged user can enter; permissions mean nothing to root, so it is left aside meanwhile."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def as_nobody(work: Callable[[], Scan]) -> Scan:
    if os.geteuid() != 0:
        return work()
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        return work()
    finally:
        os.setresuid(0, 0, 0)


def test_unreadable_folders_are_reported_and_files_left_to_who_reads_them(guarded: Path) -> None:
    put(guarded, "ok.md", "secret.md", "2026-06-08.md", "closed/x.md", "listed/y.md")
    for path, mode in (("secret.md", 0), ("2026-06-08.md", 0), ("closed", 0), ("listed", 0o444)):
        (guarded / path).chmod(mode)
    (guarded / "link.md").symlink_to("closed/x.md")
    result = as_nobody(lambda: scan(guarded, Scope.PROJECT))
    for path in ("closed", "listed"):
        (guarded / path).chmod(0o755)
    assert sorted(file.path for file in result.files) == ["ok.md", "secret.md"]
    assert {skip.path: skip.reason for skip in result.skipped} == dict.fromkeys(
        ["2026-06-08.md", "closed", "listed/y.md", "link.md"], Reason.UNREADABLE
    )


def test_an_unreadable_root_is_told_not_raised(guarded: Path) -> None:
    (guarded / "memory").mkdir(mode=0)
    result = as_nobody(lambda: scan(guarded / "memory", Scope.PROJECT))
    assert result.root_problem == f"{guarded / 'memory'} cannot be read: Permission denied"


# --- names


def test_names_that_are_not_utf8_are_reported_in_a_spelling_that_can_be_printed(root: Path) -> None:
    raw = os.fsencode(root)
    os.mkdir(raw + b"/d\xff")  # noqa: PTH102 - a name that only bytes can spell
    for name in (b"/caf\xe9.md", b"/d\xff/a.md", b"/d\xff/b.md", b"/caf\xe9.txt"):
        with open(raw + name, "wb"):  # noqa: PTH123 - likewise
            pass
    topics, skipped = found(root)
    assert topics == []
    assert skipped == {"caf\\xe9.md": "name is not UTF-8", "d\\xff": "name is not UTF-8, 2 .md files"}
    assert "".join(skipped).encode("utf-8")


def test_a_link_to_a_name_that_is_not_utf8_is_a_topic(root: Path) -> None:
    with open(os.fsencode(root) + b"/caf\xe9.md", "wb"):  # noqa: PTH123 - a name that only bytes can spell
        pass
    (root / "cafe.md").symlink_to("caf\udce9.md")
    assert found(root) == (["cafe.md"], {"caf\\xe9.md": "name is not UTF-8"})


def test_names_that_differ_by_case_or_unicode_form_are_all_kept(root: Path) -> None:
    names = ["a.md", "A.md", "caf\u00e9.md", "cafe\u0301.md", "new\nline.md"]
    put(root, *names)
    if len(os.listdir(root)) < len(names):  # noqa: PTH208 - names only
        pytest.skip("the file system takes some of these names for one")
    assert sorted(found(root)[0]) == sorted(names)


# --- order


def source(path: str, mtime_ns: int = 0) -> SourceFile:
    return SourceFile(path, f"/m/{path}", mtime_ns, 0, 0, 0)


def in_order(paths: list[str]) -> list[str]:
    shuffled = [source(path) for path in random.Random(7).sample(paths, len(paths))]
    return [file.path for file in scan_order(shuffled)]


def test_the_newest_comes_first_to_the_nanosecond() -> None:
    files = [source("a", 1_000), source("b", 1_001), source("c", 999)]
    assert [file.path for file in scan_order(files)] == ["b", "a", "c"]


def test_equal_times_are_ordered_by_base_name_then_by_path() -> None:
    paths = ["a/one.md", "b/one.md", "z/one.md", "a/two.md", "b/two.md"]
    assert in_order(paths) == paths
    assert in_order(["z/a.md", "a/b.md"]) == ["z/a.md", "a/b.md"]
    assert scan_key("\U0001f680/a.md") < scan_key("\uff21/a.md")  # by UTF-16 unit, not by code point


@pytest.mark.parametrize(
    "names",
    [
        ["_x", "-x", ",x", ".x", "(x", "@x", "&x", "+x", "~x", "$x", "0x", "ax"],
        ["—x", "0x"],
        ["🚀x", "1x", "ax"],
        ["10", "9", "a"],
        ["alpha 2", "alpha_2", "alpha-2", "alpha10", "alpha2"],
        ["beta", "Beta", "BETA", "beta2"],
        ["Apple pie", "apple tart", "banana"],
        ["resume", "Resume", "résumé", "resumes"],
        ["eclair", "éclair", "Éclair", "eclairs"],
        ["cafe\u0301-a", "caf\u00e9-b"],
        ["straße", "strasze"],
        ["oslo", "øst", "pa"],
        ["ABC narrow", "ＡＢＣ wide"],
        ["latin", "Ωmega", "ключ", "한글", "かな", "カナ", "きな", "漢字"],
        ["中文", "文中"],
        ["か", "が", "き"],
        ["٣", "4"],
    ],
)
def test_names_are_ordered_as_a_person_would(names: list[str]) -> None:
    assert sorted(random.Random(3).sample(names, len(names)), key=collation_key) == names


def test_skipped_paths_are_in_order(root: Path) -> None:
    put(root, "b/MEMORY.md", "MEMORY.md", "a.MD", "c/.x.md")
    assert [skip.path for skip in scan(root, Scope.PROJECT).skipped] == ["MEMORY.md", "a.MD", "b/MEMORY.md", "c/.x.md"]
    assert Skipped("a.MD", Reason.ENDING).describe() == "not a topic by its ending"
