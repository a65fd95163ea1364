"""Which project a folder belongs to, and the name that each host gives to it.

Git is read from its own files, no process is started: `.git` -> `gitdir` -> `commondir`. The names (keys) are the
hosts' own, faults included, because under another name the host would not find the memory (deviations V14).
"""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import NamedTuple

_GIT_FILE_LIMIT = 4096  # characters; a path is shorter, and the file belongs to a repository that nobody has vetted
_NAME_BYTES = 255  # longest file name of the usual file systems
_WAVE_UNITS = 200  # longest name that Wave builds, in UTF-16 units, of which 9 are the hash
_CLAUDE_UNITS = 200  # Claude Code cuts here and appends a hash of its own

META_ROOT_KEY = "projectRoot"
"""Key of meta.json under which the real root of a project is recorded (deviations V14)."""


class Project(NamedTuple):
    """Where a folder stands.

    Attributes:
        spelled: the folder as it was named, absolute.
        start: the same with links resolved; hosts see this one, because a process knows its real folder only.
        root: nearest folder upward that holds something called `.git`; start itself when there is none.
        shared: the folder that all worktrees of the repository have in common; root outside linked worktrees.
        git: whether a `.git` was found.
        note: one sentence on how root and shared were found.
    """

    spelled: Path
    start: Path
    root: Path
    shared: Path
    git: bool
    note: str


def find_project(start: Path) -> Project:
    """Looks upward from `start`, which need not exist, for its repository."""
    spelled = absolute(start)
    real = real_path(spelled)
    for folder in (real, *real.parents):
        if not is_there(folder / ".git"):
            continue
        shared, detail = _shared_root(folder)
        return Project(spelled, real, folder, shared, True, f"git root: {folder}, {detail}")
    return Project(
        spelled, real, real, real, False, f"no git repository above {real}: the folder itself is the project"
    )


def absolute(path: Path) -> Path:
    """The path seen from the working folder, without `.` and `..`, links kept."""
    return Path(os.path.normpath(path.absolute()))


def real_path(path: Path) -> Path:
    """The path with links resolved as far as it exists; loops and missing parts stay as they are."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return path


def is_folder(path: Path) -> bool:
    """Whether a folder is there and may be looked at; never raises."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def is_there(path: Path) -> bool:
    """Whether anything is there; never raises."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _shared_root(root: Path) -> tuple[Path, str]:
    """The folder that stands for the whole repository, and how it was found.

    A linked worktree is believed only when the repository that it points at knows it too. Otherwise a downloaded
    folder could name somebody's repository in a `.git` file and be handed that repository's memory.
    """
    marker = root / ".git"
    if is_folder(marker):
        return root, "an ordinary checkout"
    gitdir = _pointer(marker, marker="gitdir:")
    if gitdir is None:
        return root, "whose .git file is unreadable or names no gitdir, so it stands for itself"
    if not is_folder(gitdir):
        return root, f"whose .git file points at {gitdir}, which does not exist, so it stands for itself"
    common = _pointer(gitdir / "commondir")
    if common is None:
        return root, "a submodule or a checkout with its git folder elsewhere, which stands for itself"
    if gitdir.parent != common / "worktrees" or not is_folder(common):
        return root, f"whose git folder {gitdir} is no worktree of {common}, so it stands for itself"
    known = _pointer(gitdir / "gitdir")
    if known is not None and known != real_path(marker):
        return root, f"which {common} knows as a worktree at {known.parent}, not here, so it stands for itself"
    shared = common.parent if common.name == ".git" else common
    return shared, f"a linked worktree of {shared}"


def _pointer(file: Path, *, marker: str = "") -> Path | None:
    """The path that a one-line git file names, relative to the file's folder; None when there is none."""
    try:
        if not file.is_file():
            return None
        with file.open(encoding="utf-8", errors="surrogateescape") as stream:
            text = stream.read(_GIT_FILE_LIMIT)
    except (OSError, ValueError):
        return None
    line = text.rstrip("\r\n")
    value = line.removeprefix(marker).strip(" ")
    if not line.startswith(marker) or not value or "\n" in value or "\0" in value:
        return None
    return real_path(file.parent / value)


def sanitise(path: str, *, fold_case: bool = False) -> str:
    """The name that qwen-code gives to a project (spec qwen.md section 1).

    Every UTF-16 unit outside A-Z, a-z, 0-9 becomes one dash, so an emoji becomes two. Nothing is collapsed, cut or
    hashed: `app_1` and `app-1` share a name.

    Args:
        path: the absolute path.
        fold_case: lower-case first; qwen-code does so on Windows only.
    """
    text = path.lower() if fold_case else path
    return re.sub(r"[^A-Za-z0-9]", lambda match: "--" if match[0] > "\uffff" else "-", text)


def claude_key(path: str, projects: Path) -> tuple[str, tuple[str, ...]]:
    """The name that Claude Code gives to a project (seed 004 section 2.2), and a sentence when it is a guess.

    Beyond 200 units it appends a hash that depends on how the host was built. Then the only folder of `projects`
    that begins with the same 200 units is taken.
    """
    name = sanitise(path)
    if len(name) <= _CLAUDE_UNITS:
        return name, ()
    prefix = f"{name[:_CLAUDE_UNITS]}-"
    try:
        found = [entry.name for entry in projects.iterdir() if entry.name.startswith(prefix)]
    except OSError:
        found = []
    guess = f"the host cuts the key at {_CLAUDE_UNITS} characters and appends a hash of its own"
    if len(found) == 1:
        return found[0], (f"{guess}: the only folder that begins so is taken",)
    return prefix + _digest(path), (f"{guess}, ours may differ: {len(found)} folders begin so",)


def wave_key(path: str, *, forbidden: str = "") -> str:
    r"""The name that Wave gives to a project (spec wave.md section 5).

    The drive letter and the first slash go, `/` and `\` become `-`, a run of white space becomes `_`. Over 200 UTF-16
    units: the first 191, a dash and 8 hex digits of the path's SHA-256. Names over 255 bytes, which Wave cannot
    create, are cut at a character until they fit.

    Args:
        path: the absolute path.
        forbidden: characters that the platform forbids in names, each becoming `_`.
    """
    name = re.sub(r"^[A-Za-z]:", "", path)
    name = re.sub(r"^[/\\]", "", name)
    name = re.sub(r"[/\\]", "-", name)
    # White space as JavaScript has it: Python's \s adds 1C-1F and 85 and lacks FEFF.
    name = re.sub("[\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+", "_", name)
    name = "".join("_" if character in forbidden else character for character in name)
    units = name.encode("utf-16-le", "surrogatepass")
    if len(units) > 2 * _WAVE_UNITS:
        # Half an emoji at the cut becomes U+FFFD, as it does when node writes the name.
        head = units[: 2 * (_WAVE_UNITS - 9)].decode("utf-16-le", "replace")
        name = f"{head}-{_digest(path)}"
    if not fits(name):
        head = name.encode("utf-8", "surrogatepass")[: _NAME_BYTES - 9].decode("utf-8", "ignore")
        name = f"{head}-{_digest(path)}"
    return name


def _digest(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def fits(name: str) -> bool:
    """Whether a file system can hold the name."""
    return len(name.encode("utf-8", "surrogatepass")) <= _NAME_BYTES


def other_spellings(project: Project, root: Path, key: str) -> tuple[str, ...]:
    """Names under which other tools may have filed the same project (complaints 43): links kept, fewer dashes."""
    path = str(root)
    names = (sanitise(str(project.spelled)), re.sub(r"[/\\]", "-", path), re.sub(r"[/\\.]", "-", path))
    return tuple(dict.fromkeys(name for name in names if name != key))


def recorded_root(memory: Path) -> str | None:
    """The project that meta.json, beside the memory folder, says it belongs to; None when it says nothing."""
    try:
        meta = json.loads((memory.parent / "meta.json").read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None
    value = meta.get(META_ROOT_KEY) if isinstance(meta, dict) else None
    return value if isinstance(value, str) and value else None
