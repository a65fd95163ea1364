"""Git roots, worktrees and the names that hosts give to projects."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.store.projects import claude_key, find_project, other_spellings, recorded_root, sanitise, wave_key


def link_worktree(main: Path, tree: Path, *, name: str = "tree") -> Path:
    """The files that `git worktree add` writes; returns the worktree's git folder."""
    gitdir = main / ".git" / "worktrees" / name
    gitdir.mkdir(parents=True)
    tree.mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {gitdir}\n", encoding="utf-8")
    (gitdir / "commondir").write_text("../..\n", encoding="utf-8")
    (gitdir / "gitdir").write_text(f"{tree / '.git'}\n", encoding="utf-8")
    return gitdir


def test_a_folder_without_git_is_its_own_project(tmp_path: Path) -> None:
    folder = tmp_path / "plain" / "sub"
    found = find_project(folder)
    assert (found.root, found.shared, found.git) == (folder, folder, False)
    assert str(folder) in found.note


def test_the_nearest_git_wins_and_a_nested_repository_is_its_own_project(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "inner" / ".git").mkdir(parents=True)
    assert find_project(tmp_path / "src" / "deep").root == tmp_path
    assert find_project(tmp_path / "inner" / "a").root == tmp_path / "inner"


def test_dots_in_the_start_are_resolved(tmp_path: Path) -> None:
    assert find_project(tmp_path / "a" / ".." / "b" / ".").start == tmp_path / "b"


def test_a_project_behind_a_link_is_the_real_one(tmp_path: Path) -> None:
    (tmp_path / "real" / ".git").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    found = find_project(tmp_path / "link" / "src")
    assert found.root == tmp_path / "real"
    assert found.spelled == tmp_path / "link" / "src"


def test_a_loop_of_links_does_not_hang_or_raise(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert not find_project(tmp_path / "a" / "x").git


def test_a_path_that_cannot_exist_is_a_project_without_git() -> None:
    assert not find_project(Path("/a\0b")).git
    assert not find_project(Path("/") / ("x" * 5_000)).git


def test_a_linked_worktree_has_its_own_root_and_shares_the_main_checkout(tmp_path: Path) -> None:
    link_worktree(tmp_path / "main", tmp_path / "tree")
    found = find_project(tmp_path / "tree" / "pkg" / "a")
    assert (found.root, found.shared) == (tmp_path / "tree", tmp_path / "main")
    assert "linked worktree" in found.note


def test_a_worktree_with_relative_paths_is_followed(tmp_path: Path) -> None:
    gitdir = link_worktree(tmp_path / "main", tmp_path / "tree")
    (tmp_path / "tree" / ".git").write_text("gitdir: ../main/.git/worktrees/tree\n", encoding="utf-8")
    (gitdir / "gitdir").write_text("../../../../tree/.git\n", encoding="utf-8")
    assert find_project(tmp_path / "tree").shared == tmp_path / "main"


def test_a_worktree_of_a_bare_repository_shares_the_repository_folder(tmp_path: Path) -> None:
    bare, tree = tmp_path / "bare.git", tmp_path / "tree"
    (bare / "worktrees" / "t").mkdir(parents=True)
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {bare}/worktrees/t\n", encoding="utf-8")
    (bare / "worktrees" / "t" / "commondir").write_text("../..\n", encoding="utf-8")
    assert find_project(tree).shared == bare


def test_a_submodule_stands_for_itself(tmp_path: Path) -> None:
    (tmp_path / ".git" / "modules" / "sub").mkdir(parents=True)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".git").write_text("gitdir: ../.git/modules/sub\n", encoding="utf-8")
    found = find_project(tmp_path / "sub")
    assert (found.root, found.shared) == (tmp_path / "sub", tmp_path / "sub")
    assert "submodule" in found.note


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "names no gitdir"),
        (b"gitdir:\n", "names no gitdir"),
        (b"nonsense\n", "names no gitdir"),
        (b"\xff\xfe\x00\n", "names no gitdir"),
        (b"gitdir: /nowhere/at/all\n", "does not exist"),
        (b"gitdir: a\nb\n", "names no gitdir"),
    ],
)
def test_a_broken_git_file_degrades_with_a_reason(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / ".git").write_bytes(content)
    found = find_project(tmp_path)
    assert (found.root, found.shared) == (tmp_path, tmp_path)
    assert told in found.note


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the platform has no named pipes")
def test_a_git_file_that_is_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".git")
    assert find_project(tmp_path).shared == tmp_path


def test_a_folder_that_claims_to_be_a_worktree_of_a_stranger_is_not_believed(tmp_path: Path) -> None:
    gitdir = link_worktree(tmp_path / "victim", tmp_path / "tree")
    thief = tmp_path / "thief"
    thief.mkdir()
    (thief / ".git").write_text(f"gitdir: {gitdir}\n", encoding="utf-8")
    found = find_project(thief)
    assert found.shared == thief
    assert "not here" in found.note


def test_a_forged_git_folder_that_points_at_a_stranger_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "victim" / ".git" / "worktrees").mkdir(parents=True)
    forged = tmp_path / "thief" / "fake"
    forged.mkdir(parents=True)
    (tmp_path / "thief" / ".git").write_text("gitdir: fake\n", encoding="utf-8")
    (forged / "commondir").write_text(f"{tmp_path}/victim/.git\n", encoding="utf-8")
    found = find_project(tmp_path / "thief")
    assert found.shared == tmp_path / "thief"
    assert "no worktree of" in found.note


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_what_git_itself_writes_is_understood(tmp_path: Path) -> None:
    main, tree, outer = tmp_path / "主 仓库", tmp_path / "tree-🧠", tmp_path / "outer"

    def git(*words: str, at: Path) -> None:
        settings = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always")
        subprocess.run(["git", *settings, *words], cwd=at, check=True, capture_output=True)

    for folder in (main, outer):
        folder.mkdir()
        git("init", at=folder)
        git("commit", "--allow-empty", "-m", "x", at=folder)
    git("worktree", "add", str(tree), at=main)
    git("submodule", "add", str(main), "sub", at=outer)
    git("worktree", "add", str(tmp_path / "subtree"), at=outer / "sub")

    assert find_project(main).shared == main
    assert (find_project(tree).root, find_project(tree).shared) == (tree, main)
    assert find_project(outer / "sub").shared == outer / "sub"
    assert find_project(tmp_path / "subtree").shared == outer / ".git" / "modules" / "sub"


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/srv/team/shop", "-srv-team-shop"),
        ("/srv/app_1", "-srv-app-1"),
        ("/srv/app.1", "-srv-app-1"),
        ("/srv/项目", "-srv---"),
        ("/srv/🧠x", "-srv---x"),
        ("C:\\Users\\x\\One Drive\\a.b_c", "C--Users-x-One-Drive-a-b-c"),
    ],
)
def test_qwen_names_a_project_by_utf16_units(path: str, key: str) -> None:
    assert sanitise(path) == key


def test_qwen_lowers_the_case_only_when_asked() -> None:
    assert sanitise("/Srv/API", fold_case=True) == "-srv-api"
    assert sanitise("/Srv/API") == "-Srv-API"


@given(st.text())
def test_a_sanitised_name_stays_as_it_is(path: str) -> None:
    once = sanitise(path)
    assert sanitise(once) == once
    assert len(once) == len(path.encode("utf-16-le")) // 2
    assert once.isascii()


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/srv/team/shop", "srv-team-shop"),
        ("/srv/my  odd\tname", "srv-my_odd_name"),
        ("/srv/a\u3000b\ufeffc", "srv-a_b_c"),
        ("/仓库/甲", "仓库-甲"),
        ("C:\\Users\\x", "Users-x"),
        ("/srv/.dot", "srv-.dot"),
    ],
)
def test_wave_names_a_project_readably(path: str, key: str) -> None:
    assert wave_key(path) == key


def test_wave_replaces_what_the_platform_forbids() -> None:
    assert wave_key("/a?b:c", forbidden="?:") == "a_b_c"


def test_wave_hashes_a_long_name_and_two_long_names_differ() -> None:
    one, two = wave_key("/" + "x" * 300 + "/1"), wave_key("/" + "x" * 300 + "/2")
    assert one != two
    assert len(one) == len(two) == 200
    assert one[:191] == "x" * 191
    assert one[191] == "-"


def test_wave_keeps_a_name_of_exactly_two_hundred_units() -> None:
    assert wave_key("/" + "x" * 200) == "x" * 200
    assert wave_key("/" + "🧠" * 50 + "x" * 101) != "🧠" * 50 + "x" * 101


@given(st.text(max_size=400))
def test_a_wave_name_always_fits_a_file_system(path: str) -> None:
    assert len(wave_key("/" + path).encode("utf-8")) <= 255


def test_a_long_chinese_wave_name_is_cut_between_characters_and_stays_unique() -> None:
    one, two = wave_key("/" + "项" * 190 + "甲"), wave_key("/" + "项" * 190 + "乙")
    assert one != two
    assert one.startswith("项" * 82 + "-")


def test_claude_takes_the_only_folder_that_begins_with_a_cut_key(tmp_path: Path) -> None:
    path = "/" + "x" * 250
    own, told = claude_key(path, tmp_path / "missing")
    assert claude_key(path, tmp_path) == (own, told)
    assert own.startswith("-" + "x" * 199 + "-")
    assert told
    (tmp_path / ("-" + "x" * 199 + "-1abc")).mkdir()
    assert claude_key(path, tmp_path)[0] == "-" + "x" * 199 + "-1abc"
    (tmp_path / ("-" + "x" * 199 + "-2def")).mkdir()
    assert claude_key(path, tmp_path)[0] == own


def test_claude_names_a_short_project_without_a_word(tmp_path: Path) -> None:
    assert claude_key("/srv/One Drive/a.b_c", tmp_path) == ("-srv-One-Drive-a-b-c", ())


def test_other_spellings_are_those_of_tools_that_replace_less(tmp_path: Path) -> None:
    project = find_project(tmp_path / "a.b_c")
    root = Path("/srv/a.b_c")
    names = other_spellings(project, root, sanitise(str(root)))
    assert "-srv-a.b_c" in names
    assert "-srv-a-b_c" in names
    assert "-srv-a-b-c" not in names


@pytest.mark.parametrize("content", ["", "{", "[]", '{"projectRoot": 3}', '{"projectRoot": ""}', '{"version": 1}'])
def test_a_meta_file_that_names_no_project_records_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "meta.json").write_text(content, encoding="utf-8")
    assert recorded_root(tmp_path / "memory") is None


def test_a_meta_file_records_the_real_root(tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text(json.dumps({"version": 1, "projectRoot": "/srv/项目"}), encoding="utf-8")
    assert recorded_root(tmp_path / "memory") == "/srv/项目"
