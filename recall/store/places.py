"""A memory folder as a value, and the three ways in which one comes about.

Named outright (`place`), by a key below a folder of the host (`keyed`), or lying in the project (`inside`).
Nothing here writes.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal, NamedTuple

from recall.store.projects import Project, fits, is_folder, is_there, other_spellings, real_path, recorded_root

Worktrees = Literal["shared", "separate"]


class Layout(StrEnum):
    """Whose folders are used; PLAIN is any other folder of memory files."""

    QWEN = "qwen"
    CLAUDE = "claude"
    WAVE = "wave"
    WORKBUDDY = "workbuddy"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class Place:
    """One folder that holds, or would hold, the memory of a project.

    Attributes:
        layout: whose folder it is.
        root: the memory folder of the project; need not exist.
        user_root: the folder for memory across projects, None where the host has none.
        exists: whether root is a folder that may be used.
        enabled: whether the host's memory is switched on; what lies in a folder may be read all the same.
        reasons: how the folder was found, one plain sentence a step.
        project: the real folder that root belongs to, None when it is the same for every project.
    """

    layout: Layout
    root: Path
    user_root: Path | None
    exists: bool
    enabled: bool
    reasons: tuple[str, ...]
    project: Path | None = None

    @property
    def newest(self) -> float:
        """Modification time of the newest memory file in it now, seconds since the epoch; 0 without any.

        Walks the folder, so that who names a folder outright does not pay for it.
        """
        return newest_file(self.root) if self.exists else 0.0


class Surroundings(NamedTuple):
    """What the rules of a host look at.

    Attributes:
        project: the opened folder.
        env: environment variables.
        home: the user's home folder, None when there is none.
        worktrees: whether worktrees share one memory; None = the habit of each host (deviations V27).
    """

    project: Project
    env: Mapping[str, str]
    home: Path | None
    worktrees: Worktrees | None = None


class Finding(NamedTuple):
    """What a host says about a folder before anybody looks whether it is there.

    Attributes:
        layout: the host.
        steps: how it was found, one sentence a step.
        off: why the host's memory is switched off; empty when it is on.
        user_root: the host's folder for memory across projects.
    """

    layout: Layout
    steps: tuple[str, ...] = ()
    off: str = ""
    user_root: Path | None = None


def place(root: Path, finding: Finding, *, project: Path | None = None) -> Place:
    """The folder itself, looked at."""
    return Place(
        layout=finding.layout,
        root=root,
        user_root=finding.user_root,
        exists=is_folder(root),
        enabled=not finding.off,
        reasons=(*finding.steps, *([finding.off] if finding.off else [])),
        project=project,
    )


def keyed(folder: Path, key: str, finding: Finding, *, owner: Path, project: Project) -> Place:
    """FOLDER/KEY/memory. Tells of another project under the same key and of the same project under another one.

    Args:
        folder: the host's folder of projects.
        key: the host's name for the project.
        finding: what is known so far.
        owner: the real folder that the key was made of.
        project: the opened folder.
    """
    root = folder / key / "memory"
    steps = [*finding.steps, f"key {key}"]
    recorded = recorded_root(root)
    if recorded is not None and real_path(Path(recorded)) != owner:
        steps.append(f"collision: meta.json beside the folder belongs to {recorded}, this is {owner}; both share it")
    others = [folder / name for name in other_spellings(project, owner, key) if is_folder(folder / name / "memory")]
    steps += [f"another spelling of this project has a memory too, which is not read: {other}" for other in others]
    off = finding.off or ("" if fits(key) else "disabled: the key is longer than a file name can be")
    return place(root, finding._replace(steps=tuple(steps), off=off), project=owner)


def inside(owner: Path, name: str, finding: Finding) -> Place:
    """OWNER/NAME, a folder in the project. A link may not lead out of it: in a cloned project it is a stranger's."""
    root = owner / name
    target = real_path(root)
    if not target.is_relative_to(real_path(owner)):
        steps = (*finding.steps, f"disabled: {root} is a link out of the project; name {target} as root to use it")
        return Place(finding.layout, root, finding.user_root, False, False, steps, owner)
    steps = (*finding.steps, f"{root} lies in the project: its text comes with it")
    return place(root, finding._replace(steps=steps), project=owner)


def unavailable(finding: Finding, project: Project, why: str) -> Place:
    """A host without a place of its own; the folder named is where memory would lie inside the project."""
    root = project.root / f".{finding.layout}" / "memory"
    return Place(finding.layout, root, None, False, False, (f"unavailable: {why}",), project.root)


def owner_of(around: Surroundings, layout: Layout, habit: Worktrees) -> tuple[Path, tuple[str, ...]]:
    """The folder that owns the memory, by the habit of the host or the wish of the caller, and how it was found."""
    project, mode = around.project, around.worktrees or habit
    source = "as asked" if around.worktrees else f"as the {layout} layout does unless told otherwise"
    steps = [project.note]
    if project.start != project.spelled:
        steps.insert(0, f"{project.spelled} is {project.start} once links are followed")
    if project.git:
        steps.append(f"worktrees: {mode}, {source}")
    return (project.shared if mode == "shared" else project.root), tuple(steps)


def nearest(project: Project, name: str) -> Path | None:
    """The folder, from the opened one up to the project's root, that holds `name`."""
    for folder in (project.start, *project.start.parents):
        if is_there(folder / name):
            return folder
        if folder == project.root:
            break
    return None


def newest_file(folder: Path) -> float:
    """Modification time of the newest Markdown file, hidden folders (.trash) left out; 0 without any."""
    newest, pending = 0.0, [os.fspath(folder)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending += [] if entry.name.startswith(".") else [entry.path]
                    elif entry.name.endswith(".md"):
                        newest = max(newest, _changed(entry))
        except OSError:
            continue  # may not be listed, or deleted a moment ago
    return newest


def _changed(entry: os.DirEntry[str]) -> float:
    try:
        return 0.0 if entry.is_dir() else entry.stat().st_mtime
    except OSError:
        return 0.0  # a dangling link, or deleted since the folder was listed
