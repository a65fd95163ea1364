"""Where each host keeps the memory of a project, and whether the host has it switched on.

One function a host, all of one form: Surroundings -> Place. They look at the file system and at the user's settings
files. Settings files of the project are never followed: they come with the opened repository and could point the
memory folder anywhere.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from recall.store.places import (
    Finding,
    Layout,
    Place,
    Surroundings,
    inside,
    keyed,
    nearest,
    owner_of,
    place,
    unavailable,
)
from recall.store.projects import absolute, claude_key, real_path, sanitise, wave_key

Settings = Mapping[str, object]

_NO_HOME = "there is no home folder"
_SETTINGS_BYTES = 1_000_000  # a project's file may be anything
_WAVE_FORBIDDEN = {"win32": '<>:"|?*', "darwin": ":"}


def qwen(around: Surroundings) -> Place:
    """qwen-code: BASE/projects/KEY/memory, or .qwen/memory in the opened folder (spec qwen.md section 1)."""
    base, why = _qwen_base(around)
    user_root = user_folder(Layout.QWEN, around)
    if around.env.get("QWEN_CODE_MEMORY_LOCAL") == "1":
        local = ("QWEN_CODE_MEMORY_LOCAL=1: memory lies in the opened folder",)
        return inside(around.project.start, ".qwen/memory", Finding(Layout.QWEN, local, user_root=user_root))
    if base is None:
        return unavailable(Finding(Layout.QWEN), around.project, why)
    owner, steps = _qwen_owner(around)
    key = sanitise(str(owner), fold_case=sys.platform == "win32")
    finding = Finding(Layout.QWEN, (why, *steps), user_root=user_root)
    return keyed(base / "projects", key, finding, owner=owner, project=around.project)


def _qwen_base(around: Surroundings) -> tuple[Path | None, str]:
    for name in ("QWEN_CODE_MEMORY_BASE_DIR", "QWEN_RUNTIME_DIR", "QWEN_HOME"):
        if value := around.env.get(name, ""):
            base = expand(value, around.home)
            return base, f"{name}={value}: base folder {base}" if base else f"{name}={value}, but {_NO_HOME}"
    if around.home is None:
        return None, f"{_NO_HOME}; QWEN_CODE_MEMORY_BASE_DIR can name another base folder"
    return around.home / ".qwen", f"base folder {around.home / '.qwen'}"


def _qwen_owner(around: Surroundings) -> tuple[Path, tuple[str, ...]]:
    """The folder that the key is made of."""
    scope = around.env.get("QWEN_CODE_MEMORY_PROJECT_SCOPE", "").strip().lower()
    if scope == "workspace":
        return around.project.start, ("QWEN_CODE_MEMORY_PROJECT_SCOPE=workspace: keyed by the opened folder itself",)
    owner, steps = owner_of(around, Layout.QWEN, "separate")
    if scope not in ("", "git-root"):
        steps = (f"QWEN_CODE_MEMORY_PROJECT_SCOPE={scope} is ignored: neither workspace nor git-root", *steps)
    return owner, steps


def claude(around: Surroundings) -> Place:
    """Claude Code: an override, a user's setting, or BASE/projects/KEY/memory (seed 004 sections 2.2 and 2.3)."""
    settings, broken = _claude_settings(around)
    off = _claude_off(around.env, settings)
    fixed, notes = _claude_fixed(around, settings)
    steps = (*broken, *_claude_project_settings(around), *notes)
    if fixed:
        return place(fixed, Finding(Layout.CLAUDE, steps, off))
    base, why = _claude_base(around)
    if base is None:
        return unavailable(Finding(Layout.CLAUDE), around.project, why)
    owner, found = owner_of(around, Layout.CLAUDE, "shared")
    key, guess = claude_key(str(owner), base / "projects")
    finding = Finding(Layout.CLAUDE, (*steps, why, *found, *guess), off)
    return keyed(base / "projects", key, finding, owner=owner, project=around.project)


def _claude_config(around: Surroundings) -> Path | None:
    """The user's folder of settings: CLAUDE_CONFIG_DIR (spec quality.md section 1), else ~/.claude."""
    return expand(around.env.get("CLAUDE_CONFIG_DIR") or "~/.claude", around.home)


def _claude_settings(around: Surroundings) -> tuple[Settings, tuple[str, ...]]:
    config = _claude_config(around)
    return read_settings(config / "settings.json") if config else ({}, ())


def _claude_base(around: Surroundings) -> tuple[Path | None, str]:
    for name in ("CLAUDE_CODE_REMOTE_MEMORY_DIR", "CLAUDE_CONFIG_DIR"):
        if value := around.env.get(name, ""):
            base = expand(value, around.home)
            return base, f"{name}={value}: base folder {base}" if base else f"{name}={value}, but {_NO_HOME}"
    base = _claude_config(around)
    return base, f"base folder {base}" if base else _NO_HOME


def _claude_fixed(around: Surroundings, settings: Settings) -> tuple[Path | None, tuple[str, ...]]:
    """The folder that the environment or the user's settings name outright, the same for every project."""
    steps: tuple[str, ...] = ()
    wishes = (
        ("CLAUDE_COWORK_MEMORY_PATH_OVERRIDE", around.env.get("CLAUDE_COWORK_MEMORY_PATH_OVERRIDE") or None),
        ("autoMemoryDirectory in the user's settings.json", settings.get("autoMemoryDirectory")),
    )
    for source, value in wishes:
        if value is None:
            continue
        folder, problem = _named_folder(value, around.home)
        if folder:
            return folder, (*steps, f"{source} names the folder, the same for every project")
        steps += (f"{source} is ignored: {problem}",)
    return None, steps


def _named_folder(value: object, home: Path | None) -> tuple[Path | None, str]:
    """The folder that the user named, or what is wrong with it."""
    if not isinstance(value, str) or not value or "\0" in value:
        return None, "it is no path"
    if not value.startswith("~/") and not Path(value).is_absolute():
        return None, f"{value} would be another folder in every place; only an absolute path or ~/ will do"
    folder = expand(value, home)
    if folder is None:
        return None, _NO_HOME
    if folder == Path(folder.anchor) or (home is not None and home.is_relative_to(folder)):
        return None, f"{value} is the home folder or lies above it"
    return folder, ""


def _claude_off(env: Mapping[str, str], settings: Settings) -> str:
    """Why Claude Code's memory is switched off; empty when it is on."""
    for name in ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "CLAUDE_CODE_SIMPLE"):
        if _is_on(env.get(name, "")):
            return f"disabled: {name}={env[name]}"
    if _is_on(env.get("CLAUDE_CODE_REMOTE", "")) and not env.get("CLAUDE_CODE_REMOTE_MEMORY_DIR"):
        return "disabled: CLAUDE_CODE_REMOTE is set and CLAUDE_CODE_REMOTE_MEMORY_DIR is not"
    if settings.get("autoMemoryEnabled") is False:
        return "disabled: autoMemoryEnabled is false in the user's settings.json"
    return ""


def _claude_project_settings(around: Surroundings) -> tuple[str, ...]:
    """A word on the project's own wish for a folder, so that nobody wonders why nothing came of it."""
    folder = around.project.root / ".claude"
    config = _claude_config(around)
    if config is not None and real_path(folder) == real_path(config):
        return ()  # the home folder is under version control
    files = [folder / name for name in ("settings.json", "settings.local.json")]
    return tuple(
        f"autoMemoryDirectory in {file} is ignored: the file comes with the project"
        for file in files
        if "autoMemoryDirectory" in read_settings(file)[0]
    )


def wave(around: Surroundings) -> Place:
    """Wave: ~/.wave/projects/ID/memory, one for all worktrees (spec wave.md W-AUT-03 and section 5)."""
    if around.home is None:
        return unavailable(Finding(Layout.WAVE), around.project, _NO_HOME)
    base = around.home / ".wave"
    settings, broken = read_settings(base / "settings.json")
    owner, found = owner_of(around, Layout.WAVE, "shared")
    key = wave_key(str(owner), forbidden=_WAVE_FORBIDDEN.get(sys.platform, "\0"))
    finding = Finding(Layout.WAVE, (*broken, f"base folder {base}", *found), _wave_off(around.env, settings))
    return keyed(base / "projects", key, finding, owner=owner, project=around.project)


def _wave_off(env: Mapping[str, str], settings: Settings) -> str:
    """Why Wave's memory is switched off; the user's file goes before the environment (W-TOG-06)."""
    setting = settings.get("autoMemoryEnabled")
    if isinstance(setting, bool):
        return "" if setting else "disabled: autoMemoryEnabled is false in ~/.wave/settings.json"
    value = env.get("WAVE_DISABLE_AUTO_MEMORY")
    return f"disabled: WAVE_DISABLE_AUTO_MEMORY={value}" if value in ("1", "true") else ""


def workbuddy(around: Surroundings) -> Place:
    """WorkBuddy: .workbuddy/memory in the project (seed 003)."""
    top, steps = owner_of(around, Layout.WORKBUDDY, "separate")
    owner = nearest(around.project, ".workbuddy") if top == around.project.root else None
    return inside(owner or top, ".workbuddy/memory", Finding(Layout.WORKBUDDY, steps))


def committed_claude(around: Surroundings) -> tuple[Place, ...]:
    """The .claude/memory that teams commit; empty when there is none."""
    return _in_project(around, ".claude/memory", Finding(Layout.CLAUDE, off=switched_off(Layout.CLAUDE, around)))


def plain(around: Surroundings) -> tuple[Place, ...]:
    """The memory folders of no host that lie in the project; empty when there are none."""
    agents = _in_project(around, ".agents/memory", Finding(Layout.PLAIN))
    holder = nearest(around.project, "memory/MEMORY.md")  # `memory` without an index is as often source code
    return agents if holder is None else (*agents, inside(holder, "memory", Finding(Layout.PLAIN)))


def _in_project(around: Surroundings, name: str, finding: Finding) -> tuple[Place, ...]:
    owner = nearest(around.project, name)
    if owner is None or (around.home is not None and owner == real_path(around.home)):
        return ()  # ~/.claude and ~/.agents belong to the user, not to a project
    return (inside(owner, name, finding),)


def switched_off(layout: Layout, around: Surroundings) -> str:
    """Why the host of a layout has its memory switched off; empty when it is on, or when it has no switch."""
    if layout is Layout.CLAUDE:
        return _claude_off(around.env, _claude_settings(around)[0])
    if layout is Layout.WAVE:
        return _wave_off(around.env, read_settings(around.home / ".wave" / "settings.json")[0] if around.home else {})
    return ""


def user_folder(layout: Layout, around: Surroundings) -> Path | None:
    """The folder for memory across projects; only qwen-code has one."""
    base = _qwen_base(around)[0] if layout is Layout.QWEN else None
    return base / "memories" if base else None


def read_settings(file: Path) -> tuple[Settings, tuple[str, ...]]:
    """A settings file, and a sentence when it cannot be used; a missing or empty one is an empty one."""
    try:
        if not file.is_file():
            return {}, ()
        if file.stat().st_size > _SETTINGS_BYTES:
            return {}, (f"{file} is ignored: it is larger than {_SETTINGS_BYTES} bytes",)
        text = file.read_text(encoding="utf-8-sig")
        values = json.loads(text) if text.strip() else {}
    except (OSError, ValueError, RecursionError) as error:
        return {}, (f"{file} is ignored: {error}",)
    if not isinstance(values, dict):
        return {}, (f"{file} is ignored: it holds no object",)
    return values, ()


def expand(value: str, home: Path | None) -> Path | None:
    """A path as users write it, absolute; None when it begins at a home folder that is not there."""
    if value != "~" and not value.startswith(("~/", "~\\")):
        return absolute(Path(value))
    return absolute(home / value[2:].lstrip("/\\")) if home is not None else None


def _is_on(value: str) -> bool:
    return value.strip().lower() in ("1", "true", "yes", "on")
