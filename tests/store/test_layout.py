"""Where the memory of a project lies: folders in the project, the choice between hosts, the explanation."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pytest

from recall.store.layout import Layout, Located, Place, describe, locate
from recall.store.projects import sanitise


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "work" / "app"
    (folder / ".git").mkdir(parents=True)
    return folder


@pytest.fixture
def tree(project: Path) -> Path:
    """A linked worktree of the project, as git writes it."""
    gitdir = project / ".git" / "worktrees" / "tree"
    gitdir.mkdir(parents=True)
    folder = project.parent / "tree"
    folder.mkdir()
    (folder / ".git").write_text(f"gitdir: {gitdir}\n", encoding="utf-8")
    (gitdir / "commondir").write_text("../..\n", encoding="utf-8")
    (gitdir / "gitdir").write_text(f"{folder / '.git'}\n", encoding="utf-8")
    return folder


def remember(folder: Path, *, at: float = 1_000.0, name: str = "MEMORY.md") -> Path:
    """A memory folder with one file of the given time."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text("- x\n", encoding="utf-8")
    os.utime(file, (at, at))
    return folder


def settle(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def find(
    start: Path,
    layout: Layout,
    home: Path | None,
    *,
    env: Mapping[str, str] | None = None,
    worktrees: Literal["shared", "separate"] | None = None,
) -> Place:
    return locate(start, layout=layout, env=env or {}, home=home, worktrees=worktrees).chosen


def told(place: Place, *words: str) -> bool:
    """Whether one sentence of the reasons holds all the words."""
    return any(all(word in reason for word in words) for reason in place.reasons)


# --- folders in the project -------------------------------------------------------------------------------------------


def test_workbuddy_memory_lies_in_the_project(project: Path, home: Path) -> None:
    assert find(project / "src", Layout.WORKBUDDY, home).root == project / ".workbuddy" / "memory"
    remember(project / "pkg" / ".workbuddy" / "memory")
    place = find(project / "pkg" / "src", Layout.WORKBUDDY, home)
    assert (place.root, place.exists) == (project / "pkg" / ".workbuddy" / "memory", True)


def test_workbuddy_worktrees_can_share(project: Path, tree: Path, home: Path) -> None:
    assert find(tree, Layout.WORKBUDDY, home).root == tree / ".workbuddy" / "memory"
    remember(tree / ".workbuddy" / "memory")
    assert find(tree, Layout.WORKBUDDY, home, worktrees="shared").root == project / ".workbuddy" / "memory"


def test_a_committed_claude_folder_is_a_candidate(project: Path, home: Path) -> None:
    folder = remember(project / ".claude" / "memory")
    located = locate(project / "src", layout=Layout.CLAUDE, env={}, home=home)
    assert located.chosen.root == folder
    assert len(located.candidates) == 2
    assert told(located.chosen, "lies in the project")


def test_the_users_own_claude_folder_goes_before_a_newer_committed_one(project: Path, home: Path) -> None:
    committed = remember(project / ".claude" / "memory", at=9_000.0)
    own = home / ".claude" / "projects" / sanitise(str(project)) / "memory"
    own.mkdir(parents=True)
    assert find(project, Layout.CLAUDE, home).root == committed, "an empty folder is no memory"
    remember(own, at=1_000.0)
    located = locate(project, layout=Layout.CLAUDE, env={}, home=home)
    assert located.chosen.root == own
    assert str(committed) in located.note


def test_a_host_folder_that_links_to_the_committed_one_is_the_same_memory(project: Path, home: Path) -> None:
    committed = remember(project / ".claude" / "memory")
    own = home / ".claude" / "projects" / sanitise(str(project)) / "memory"
    own.parent.mkdir(parents=True)
    own.symlink_to(committed)
    located = locate(project, env={}, home=home)
    assert located.chosen.root == own
    assert "only one" in located.note


@pytest.mark.parametrize("name", [".agents/memory", "memory"])
def test_a_plain_folder_in_the_project_is_found(project: Path, home: Path, name: str) -> None:
    folder = remember(project / name)
    located = locate(project / "src", env={}, home=home)
    assert (located.chosen.layout, located.chosen.root) == (Layout.PLAIN, folder)
    assert find(project, Layout.PLAIN, home).root == folder


def test_a_memory_folder_above_the_repository_is_not_the_projects(project: Path, home: Path) -> None:
    for name in (".agents/memory", "memory", ".claude/memory", ".workbuddy/memory"):
        remember(project.parent / name)
    assert not any(place.exists for place in locate(project / "src", env={}, home=home).candidates)


def test_a_source_folder_called_memory_is_no_memory(project: Path, home: Path) -> None:
    remember(project / "memory", name="README.md")
    assert locate(project, env={}, home=home).chosen.layout is Layout.QWEN
    assert find(project, Layout.PLAIN, home).root == project / ".agents" / "memory"


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        (".claude/memory", Layout.CLAUDE),
        (".agents/memory", Layout.PLAIN),
        ("memory", Layout.PLAIN),
        (".workbuddy/memory", Layout.WORKBUDDY),
        (".qwen/memory", Layout.QWEN),
    ],
)
def test_a_link_out_of_the_project_is_not_followed(
    project: Path, home: Path, tmp_path: Path, name: str, layout: Layout
) -> None:
    secret = remember(tmp_path / "secret")
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).symlink_to(secret)
    located = locate(project, layout=layout, env={"QWEN_CODE_MEMORY_LOCAL": "1"}, home=home)
    place = next(found for found in located.candidates if found.root == project / name)
    assert not place.exists
    assert not place.enabled
    assert told(place, "link out of the project", str(secret))
    assert locate(project, root=secret, env={}, home=home).chosen.exists


# --- the choice -------------------------------------------------------------------------------------------------------


def test_without_any_memory_it_is_qwen(project: Path, home: Path) -> None:
    located = locate(project, env={}, home=home)
    assert located.chosen.layout is Layout.QWEN
    assert "no memory folder" in located.note
    assert [place.layout for place in located.candidates] == ["qwen", "claude", "wave", "workbuddy"]


def test_the_only_memory_there_is_is_taken(project: Path, home: Path) -> None:
    remember(find(project, Layout.WAVE, home).root)
    located = locate(project, env={}, home=home)
    assert located.chosen.layout is Layout.WAVE
    assert (located.chosen.exists, located.chosen.newest) == (True, 1_000.0)


def test_of_several_memories_the_one_with_the_newest_file_is_taken_and_all_are_named(project: Path, home: Path) -> None:
    places = {layout: find(project, layout, home).root for layout in list(Layout)[:4]}
    for number, (layout, folder) in enumerate(places.items()):
        remember(folder / "project", at=1_000.0 + number % 3, name=f"{layout}.md")
    located = locate(project, env={}, home=home)
    assert located.chosen.layout is Layout.WAVE
    assert all(str(folder) in located.note for folder in places.values())


def test_an_empty_folder_is_taken_when_there_is_nothing_else(project: Path, home: Path) -> None:
    for layout in (Layout.CLAUDE, Layout.WAVE):
        find(project, layout, home).root.mkdir(parents=True)
    located = locate(project, env={}, home=home)
    assert (located.chosen.layout, located.chosen.exists, located.chosen.newest) == (Layout.CLAUDE, True, 0.0)
    assert "all are empty" in located.note


def test_committed_folders_do_not_displace_a_hosts_own(project: Path, home: Path) -> None:
    remember(project / ".agents" / "memory", at=9_000.0)
    own = remember(find(project, Layout.QWEN, home).root, at=1_000.0)
    located = locate(project, env={}, home=home)
    assert located.chosen.root == own
    assert "before committed" in located.note


def test_trash_and_other_hidden_folders_do_not_make_a_memory_newer(project: Path, home: Path) -> None:
    root = remember(find(project, Layout.QWEN, home).root, at=1_000.0)
    remember(root / ".trash" / "run", at=9_000.0, name="old.md")
    remember(root, at=8_000.0, name="notes.txt")
    (root / "dangling.md").symlink_to(root / "nowhere.md")
    assert find(project, Layout.QWEN, home).newest == 1_000.0


def test_a_project_never_sees_the_memory_of_another(tmp_path: Path, home: Path) -> None:
    remember(find(tmp_path / "b", Layout.QWEN, home).root)
    assert not any(place.exists for place in locate(tmp_path / "a", env={}, home=home).candidates)


def test_a_given_root_is_taken_as_it_is(project: Path, home: Path) -> None:
    folder = remember(project / "docs")
    located = locate(project, root=folder, env={}, home=home)
    assert located.candidates == (located.chosen,)
    place = located.chosen
    assert (place.layout, place.root, place.user_root, place.exists) == (Layout.PLAIN, folder, None, True)
    assert place.newest == 1_000.0
    place = locate(project, root=folder, layout=Layout.QWEN, env={}, home=home).chosen
    assert (place.layout, place.root, place.user_root) == (Layout.QWEN, folder, home / ".qwen" / "memories")
    assert locate(project, root=Path("~/x"), env={}, home=home).chosen.root == home / "x"


def test_a_given_root_keeps_the_switch_of_its_host(project: Path, home: Path) -> None:
    settle(home / ".wave" / "settings.json", {"autoMemoryEnabled": False})
    place = locate(project, root=project, layout=Layout.WAVE, env={}, home=home).chosen
    assert not place.enabled
    env = {"CLAUDE_CODE_SIMPLE": "1"}
    assert not locate(project, root=project, layout=Layout.CLAUDE, env=env, home=home).chosen.enabled
    assert locate(project, root=project, env=env, home=home).chosen.enabled


def test_a_memory_folder_given_as_the_start_is_only_a_project(home: Path) -> None:
    folder = remember(home / "notes")
    assert locate(folder, env={}, home=home).chosen.root != folder


# --- no home folder ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [Layout.QWEN, Layout.CLAUDE, Layout.WAVE])
def test_without_a_home_folder_a_host_is_unavailable_with_a_reason(project: Path, layout: Layout) -> None:
    place = find(project, layout, None)
    assert (place.exists, place.enabled, place.user_root) == (False, False, None)
    assert told(place, "unavailable", "no home folder")


def test_without_a_home_folder_what_lies_in_the_project_still_works(project: Path) -> None:
    assert not locate(project, env={}, home=None).chosen.enabled
    folder = remember(project / ".workbuddy" / "memory")
    assert locate(project, env={}, home=None).chosen.root == folder
    env = {"QWEN_CODE_MEMORY_LOCAL": "1"}
    place = find(project, Layout.QWEN, None, env=env)
    assert (place.root, place.enabled, place.user_root) == (project / ".qwen" / "memory", True, None)
    committed = remember(project / ".claude" / "memory")
    assert find(project, Layout.CLAUDE, None).root == committed


def test_without_a_home_folder_absolute_variables_still_work_and_a_tilde_does_not(
    project: Path, tmp_path: Path
) -> None:
    env = {"QWEN_HOME": str(tmp_path / "q"), "CLAUDE_CODE_REMOTE_MEMORY_DIR": str(tmp_path / "c")}
    assert find(project, Layout.QWEN, None, env=env).enabled
    assert find(project, Layout.CLAUDE, None, env=env).enabled
    tilde = {"QWEN_HOME": "~/q", "CLAUDE_CODE_REMOTE_MEMORY_DIR": "~/c", "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE": "~/o"}
    assert told(find(project, Layout.QWEN, None, env=tilde), "QWEN_HOME", "no home folder")
    assert told(find(project, Layout.CLAUDE, None, env=tilde), "CLAUDE_CODE_REMOTE_MEMORY_DIR", "no home folder")


# --- the explanation --------------------------------------------------------------------------------------------------


def test_the_description_names_folder_switch_reasons_and_the_others(project: Path, home: Path) -> None:
    root = remember(find(project, Layout.CLAUDE, home).root)
    located: Located = locate(project, env={"CLAUDE_CODE_SIMPLE": "1"}, home=home)
    lines = describe(located)
    assert lines[:5] == [
        "layout: claude",
        f"folder: {root} (newest file 1970-01-01 00:16 UTC)",
        "user folder: none",
        "enabled: no",
        "why: the claude folder is the only one that exists",
    ]
    text = "\n".join(lines)
    assert "  - disabled: CLAUDE_CODE_SIMPLE=1" in lines
    assert all(reason in text for place in located.candidates for reason in place.reasons)
    assert all(str(place.root) in text for place in located.candidates)
    assert "also looked at:" in lines


def test_the_description_of_a_given_root_mentions_no_others(project: Path, home: Path) -> None:
    lines = describe(locate(project, root=project / "x", layout=Layout.QWEN, env={}, home=home))
    assert lines[1:4] == [
        f"folder: {project / 'x'} (does not exist)",
        f"user folder: {home / '.qwen' / 'memories'}",
        "enabled: yes",
    ]
    assert "also looked at:" not in lines
