"""Where each host keeps the memory of a project, and when it has it switched off."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pytest

from recall.store.layout import Layout, Place, locate
from recall.store.projects import sanitise, wave_key


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


# --- qwen -------------------------------------------------------------------------------------------------------------


def test_qwen_keeps_memory_below_its_folder_by_the_git_root(project: Path, home: Path) -> None:
    place = find(project / "src" / "deep", Layout.QWEN, home)
    assert place.root == home / ".qwen" / "projects" / sanitise(str(project)) / "memory"
    assert place.user_root == home / ".qwen" / "memories"
    assert place.project == project
    assert (place.exists, place.enabled, place.newest) == (False, True, 0.0)
    assert told(place, "git root", str(project))


def test_qwen_base_comes_from_the_first_variable_that_is_set(project: Path, home: Path, tmp_path: Path) -> None:
    env = {"QWEN_HOME": str(tmp_path / "c")}
    assert find(project, Layout.QWEN, home, env=env).root.is_relative_to(tmp_path / "c" / "projects")
    env["QWEN_RUNTIME_DIR"] = "~/b"
    assert find(project, Layout.QWEN, home, env=env).root.is_relative_to(home / "b" / "projects")
    env["QWEN_CODE_MEMORY_BASE_DIR"] = str(tmp_path / "a")
    place = find(project, Layout.QWEN, home, env=env)
    assert place.root.is_relative_to(tmp_path / "a" / "projects")
    assert place.user_root == tmp_path / "a" / "memories"
    assert told(place, "QWEN_CODE_MEMORY_BASE_DIR")
    env["QWEN_CODE_MEMORY_BASE_DIR"] = ""
    assert find(project, Layout.QWEN, home, env=env).root.is_relative_to(home / "b" / "projects")


@pytest.mark.parametrize(("value", "tail"), [("~", ""), ("~/x/../y", "y"), ("~\\z", "z")])
def test_a_tilde_in_the_qwen_base_is_the_home_folder(project: Path, home: Path, value: str, tail: str) -> None:
    place = find(project, Layout.QWEN, home, env={"QWEN_CODE_MEMORY_BASE_DIR": value})
    assert place.user_root == home / tail / "memories"


def test_a_relative_qwen_base_is_seen_from_the_working_folder(
    project: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = find(project, Layout.QWEN, home, env={"QWEN_CODE_MEMORY_BASE_DIR": "rel/base"})
    assert place.user_root == tmp_path / "rel" / "base" / "memories"


def test_qwen_workspace_scope_is_keyed_by_the_opened_folder(project: Path, home: Path) -> None:
    place = find(project / "pkg" / "a", Layout.QWEN, home, env={"QWEN_CODE_MEMORY_PROJECT_SCOPE": " Workspace "})
    assert place.root.parent.name == sanitise(str(project / "pkg" / "a"))
    assert place.project == project / "pkg" / "a"


@pytest.mark.parametrize(("scope", "warned"), [("", False), ("Git-Root", False), ("branch", True)])
def test_other_qwen_scopes_are_the_git_root(project: Path, home: Path, scope: str, *, warned: bool) -> None:
    place = find(project / "pkg", Layout.QWEN, home, env={"QWEN_CODE_MEMORY_PROJECT_SCOPE": scope})
    assert place.root.parent.name == sanitise(str(project))
    assert told(place, "branch", "ignored") is warned


def test_qwen_local_memory_lies_in_the_opened_folder_and_user_memory_stays(project: Path, home: Path) -> None:
    start = project / "pkg"
    remember(start / ".qwen" / "memory")
    place = find(start, Layout.QWEN, home, env={"QWEN_CODE_MEMORY_LOCAL": "1"})
    assert (place.root, place.exists) == (start / ".qwen" / "memory", True)
    assert place.user_root == home / ".qwen" / "memories"
    place = find(start, Layout.QWEN, home, env={"QWEN_CODE_MEMORY_LOCAL": "true"})
    assert place.root.is_relative_to(home)


def test_chinese_and_emoji_projects_are_found_where_the_host_puts_them(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "项目🧠"
    folder.mkdir()
    remember(home / ".qwen" / "projects" / f"{sanitise(str(tmp_path))}-----" / "memory")
    assert find(folder, Layout.QWEN, home).exists
    remember(home / ".wave" / "projects" / f"{wave_key(str(tmp_path))}-项目🧠" / "memory")
    assert find(folder, Layout.WAVE, home).exists


def test_a_key_longer_than_a_file_name_is_disabled_not_a_crash(home: Path) -> None:
    place = find(Path("/" + "/".join(["long"] * 60)), Layout.QWEN, home)
    assert (place.exists, place.enabled) == (False, False)
    assert told(place, "longer than a file name")


# --- collisions and spellings -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [Layout.QWEN, Layout.CLAUDE, Layout.WAVE])
def test_a_folder_recorded_for_another_project_is_a_collision(project: Path, home: Path, layout: Layout) -> None:
    meta = find(project, layout, home).root.parent / "meta.json"
    settle(meta, {"version": 1, "projectRoot": str(project)})
    assert not told(find(project, layout, home), "collision")
    settle(meta, {"version": 1, "projectRoot": "/srv/other"})
    assert told(find(project, layout, home), "collision", "/srv/other", str(project))


def test_a_recorded_root_behind_a_link_is_no_collision(project: Path, home: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(project)
    settle(find(project, Layout.QWEN, home).root.parent / "meta.json", {"projectRoot": str(tmp_path / "link")})
    assert not told(find(project, Layout.QWEN, home), "collision")


def test_a_second_folder_under_another_spelling_is_reported(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "One Drive" / "a.b_c"
    (folder / ".git").mkdir(parents=True)
    other = home / ".claude" / "projects" / str(folder).replace("/", "-")
    remember(other / "memory")
    place = find(folder, Layout.CLAUDE, home)
    assert place.root.parent.name == sanitise(str(folder))
    assert not place.exists
    assert told(place, "another spelling", str(other))


def test_a_project_opened_through_a_link_is_keyed_by_its_real_folder(project: Path, home: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(project)
    remember(home / ".claude" / "projects" / sanitise(str(link)) / "memory")
    for layout in (Layout.QWEN, Layout.CLAUDE, Layout.WAVE):
        assert find(link, layout, home).root == find(project, layout, home).root
    assert told(find(link, Layout.CLAUDE, home), str(link), str(project))
    assert told(find(link, Layout.CLAUDE, home), "another spelling")


# --- worktrees (deviations V27) ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("layout", "shares"), [(Layout.QWEN, False), (Layout.CLAUDE, True), (Layout.WAVE, True)])
def test_worktrees_follow_the_habit_of_the_host_unless_told_otherwise(
    project: Path, tree: Path, home: Path, layout: Layout, *, shares: bool
) -> None:
    main = find(project, layout, home).root
    place = find(tree / "pkg", layout, home)
    assert (place.root == main) is shares
    assert place.project == (project if shares else tree)
    assert told(place, "worktrees", "shared" if shares else "separate", "unless told otherwise")
    shared = find(tree, layout, home, worktrees="shared")
    assert shared.root == main
    assert told(shared, "shared", "as asked")
    separate = find(tree, layout, home, worktrees="separate")
    assert separate.root != main
    assert separate.project == tree


def test_qwen_workspace_scope_goes_before_shared_worktrees(tree: Path, home: Path) -> None:
    env = {"QWEN_CODE_MEMORY_PROJECT_SCOPE": "workspace"}
    assert find(tree / "a", Layout.QWEN, home, env=env, worktrees="shared").project == tree / "a"


# --- claude -----------------------------------------------------------------------------------------------------------


def test_claude_keeps_memory_below_its_folder(project: Path, home: Path) -> None:
    place = find(project / "src", Layout.CLAUDE, home)
    assert place.root == home / ".claude" / "projects" / sanitise(str(project)) / "memory"
    assert place.user_root is None
    assert place.enabled


def test_claude_base_is_the_remote_folder_then_the_config_folder(project: Path, home: Path, tmp_path: Path) -> None:
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
    assert find(project, Layout.CLAUDE, home, env=env).root.is_relative_to(tmp_path / "config" / "projects")
    env["CLAUDE_CODE_REMOTE_MEMORY_DIR"] = str(tmp_path / "remote")
    place = find(project, Layout.CLAUDE, home, env=env)
    assert place.root.is_relative_to(tmp_path / "remote" / "projects")
    assert told(place, "CLAUDE_CODE_REMOTE_MEMORY_DIR")


def test_claude_override_goes_before_the_setting_and_the_setting_before_the_default(
    project: Path, home: Path, tmp_path: Path
) -> None:
    settle(home / ".claude" / "settings.json", {"autoMemoryDirectory": "~/notes"})
    place = find(project, Layout.CLAUDE, home)
    assert place.root == home / "notes"
    assert place.project is None
    assert told(place, "autoMemoryDirectory")
    env = {"CLAUDE_COWORK_MEMORY_PATH_OVERRIDE": str(tmp_path / "over")}
    assert find(project, Layout.CLAUDE, home, env=env).root == tmp_path / "over"


@pytest.mark.parametrize("value", ["notes", "./x", "~", "~/", "~/a/..", "/", "", 3, None, ["/x"], "/a\0b", "~root/x"])
def test_a_claude_folder_that_is_no_safe_path_is_ignored_with_a_reason(
    project: Path, home: Path, value: object
) -> None:
    settle(home / ".claude" / "settings.json", {"autoMemoryDirectory": value})
    place = find(project, Layout.CLAUDE, home)
    assert place.root.is_relative_to(home / ".claude" / "projects")
    assert told(place, "autoMemoryDirectory", "ignored") is (value is not None)


def test_a_folder_above_the_home_folder_is_no_memory_folder(project: Path, home: Path) -> None:
    env = {"CLAUDE_COWORK_MEMORY_PATH_OVERRIDE": str(home.parent)}
    place = find(project, Layout.CLAUDE, home, env=env)
    assert place.root.is_relative_to(home / ".claude")
    assert told(place, "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE", "ignored")


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_a_setting_of_the_project_never_moves_the_memory(project: Path, home: Path, tmp_path: Path, name: str) -> None:
    before = find(project, Layout.CLAUDE, home).root
    settle(project / ".claude" / name, {"autoMemoryDirectory": str(tmp_path / "stolen"), "autoMemoryEnabled": False})
    place = find(project, Layout.CLAUDE, home)
    assert place.root == before
    assert place.enabled
    assert told(place, name, "ignored", "comes with the project")


def test_the_users_own_settings_count_when_the_home_folder_is_the_project(home: Path) -> None:
    (home / ".git").mkdir()
    settle(home / ".claude" / "settings.json", {"autoMemoryDirectory": "~/notes"})
    remember(home / ".claude" / "memory")
    located = locate(home, layout=Layout.CLAUDE, env={}, home=home)
    assert located.chosen.root == home / "notes"
    assert not told(located.chosen, "ignored")
    assert len(located.candidates) == 1


@pytest.mark.parametrize(
    "env",
    [
        {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1"},
        {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "true"},
        {"CLAUDE_CODE_SIMPLE": "1"},
        {"CLAUDE_CODE_REMOTE": "1"},
    ],
)
def test_claude_is_switched_off_by_the_environment(project: Path, home: Path, env: dict[str, str]) -> None:
    remember(find(project, Layout.CLAUDE, home).root)
    place = find(project, Layout.CLAUDE, home, env=env)
    assert not place.enabled
    assert place.exists
    assert told(place, "disabled", next(iter(env)))


@pytest.mark.parametrize(
    "env",
    [
        {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "0"},
        {"CLAUDE_CODE_SIMPLE": ""},
        {"CLAUDE_CODE_REMOTE": "1", "CLAUDE_CODE_REMOTE_MEMORY_DIR": "~/remote"},
    ],
)
def test_claude_stays_on_otherwise(project: Path, home: Path, env: dict[str, str]) -> None:
    assert find(project, Layout.CLAUDE, home, env=env).enabled


def test_claude_is_switched_off_by_the_users_settings(project: Path, home: Path, tmp_path: Path) -> None:
    settle(home / ".claude" / "settings.json", {"autoMemoryEnabled": False})
    assert not find(project, Layout.CLAUDE, home).enabled
    settle(tmp_path / "config" / "settings.json", {"autoMemoryEnabled": True})
    assert find(project, Layout.CLAUDE, home, env={"CLAUDE_CONFIG_DIR": str(tmp_path / "config")}).enabled


@pytest.mark.parametrize("content", ["{ broken", "[1]", '{"a":', "[" * 100_000, " " * 1_000_001])
@pytest.mark.parametrize(("layout", "folder"), [(Layout.CLAUDE, ".claude"), (Layout.WAVE, ".wave")])
def test_a_broken_settings_file_is_a_reason_not_a_crash(
    project: Path, home: Path, content: str, layout: Layout, folder: str
) -> None:
    settle(home / folder / "settings.json", content)
    place = find(project, layout, home)
    assert place.enabled
    assert told(place, "settings.json", "ignored")


@pytest.mark.parametrize("content", ["", "\n", '\ufeff{"autoMemoryEnabled": true}'])
def test_an_empty_settings_file_or_one_with_a_bom_is_fine(project: Path, home: Path, content: str) -> None:
    settle(home / ".claude" / "settings.json", content)
    assert not told(find(project, Layout.CLAUDE, home), "ignored")


# --- wave -------------------------------------------------------------------------------------------------------------


def test_wave_keeps_memory_below_its_folder(project: Path, home: Path) -> None:
    place = find(project / "src", Layout.WAVE, home)
    assert place.root == home / ".wave" / "projects" / wave_key(str(project)) / "memory"
    assert (place.user_root, place.enabled) == (None, True)


def test_wave_outside_a_repository_is_keyed_by_the_folder_itself(tmp_path: Path, home: Path) -> None:
    assert find(tmp_path / "a", Layout.WAVE, home).root != find(tmp_path / "a" / "b", Layout.WAVE, home).root


@pytest.mark.parametrize(
    ("setting", "value", "enabled"),
    [
        (None, None, True),
        (None, "1", False),
        (None, "true", False),
        (None, "0", True),
        (None, "", True),
        (False, None, False),
        (False, "0", False),
        (True, "1", True),
        ("false", None, True),
        ("false", "1", False),
    ],
)
def test_the_wave_settings_file_goes_before_the_environment(
    project: Path, home: Path, setting: object, value: str | None, *, enabled: bool
) -> None:
    if setting is not None:
        settle(home / ".wave" / "settings.json", {"autoMemoryEnabled": setting})
    env = {} if value is None else {"WAVE_DISABLE_AUTO_MEMORY": value}
    place = find(project, Layout.WAVE, home, env=env)
    assert place.enabled is enabled
    assert told(place, "disabled") is not enabled
