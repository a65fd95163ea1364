"""Finding the memory of a project: every host's folder is looked at, one is chosen, and the choice is explained."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from recall.store import hosts
from recall.store.places import Finding, Layout, Place, Surroundings, Worktrees, inside, place
from recall.store.projects import absolute, find_project, real_path

__all__ = ["Layout", "Located", "Place", "Worktrees", "describe", "locate"]


class Located(NamedTuple):
    """The memory folder of a project.

    Attributes:
        chosen: the folder to use.
        candidates: every folder looked at, the chosen one among them.
        note: why this one, in a sentence.
        start: the opened folder.
    """

    chosen: Place
    candidates: tuple[Place, ...]
    note: str
    start: Path = Path()


def locate(
    start: Path,
    *,
    layout: Layout | None = None,
    root: Path | None = None,
    env: Mapping[str, str],
    home: Path | None,
    worktrees: Worktrees | None = None,
) -> Located:
    """Finds the memory folder for the project that `start` lies in; writes nothing and never raises for a bad file.

    A folder given as `root` is taken as it is. With a layout, that host's rules decide. With neither, the host whose
    folder holds the newest memory file is taken; folders committed to the project only when no host has any memory
    of it, because a checkout makes old files new and a stranger's text must not displace the user's own. Without
    any memory at all it is qwen-code's folder.

    Args:
        start: the opened folder; need not exist.
        layout: the host whose folders to use.
        root: the memory folder itself.
        env: environment variables.
        home: the user's home folder, None when there is none.
        worktrees: whether worktrees share one memory; None = the habit of each host (deviations V27).
    """
    around = Surroundings(find_project(start), env, home, worktrees)
    if root is not None:
        given = _given(root, layout or Layout.PLAIN, around)
        return Located(given, (given,), "the memory folder was given", start)
    own = [rule(around) for name, rule in _HOSTS.items() if layout in (None, name)]
    committed = [found for name, rule in _COMMITTED.items() if layout in (None, name) for found in rule(around)]
    if not own and not committed:
        why = ("there is no plain memory folder in the project yet",)
        own.append(inside(around.project.root, ".agents/memory", Finding(Layout.PLAIN, why)))
    chosen, note = _choose(own, committed)
    return Located(chosen, (*own, *committed), note, start)


def _given(root: Path, layout: Layout, around: Surroundings) -> Place:
    folder = hosts.expand(str(root), around.home) or absolute(root)
    off, user_root = hosts.switched_off(layout, around), hosts.user_folder(layout, around)
    return place(folder, Finding(layout, ("the folder was given as root",), off, user_root))


def _choose(own: Sequence[Place], committed: Sequence[Place]) -> tuple[Place, str]:
    """The place with the newest file, hosts before committed folders, filled ones before empty ones; and why."""
    there = _distinct([found for found in (*own, *committed) if found.exists])
    if not there:
        first = (*own, *committed)[0]
        return first, f"no memory folder of this project exists yet; the {first.layout} layout is taken"
    if len(there) == 1:
        return there[0], f"the {there[0].layout} folder is the only one that exists"
    newest = {found.root: found.newest for found in there}
    filled = [found for found in there if newest[found.root]]
    pool = [found for found in filled if found in own] or filled or there
    chosen = max(pool, key=lambda found: newest[found.root])
    names = "; ".join(f"{found.layout} {found.root} ({_age(newest[found.root])})" for found in there)
    if not filled:
        rule = "all are empty and it comes first"
    else:
        rule = "it has the newest file" if len(pool) == len(filled) else "hosts' own folders go before committed ones"
    return chosen, f"several folders exist: {names}; {chosen.layout} {chosen.root} is taken because {rule}"


def _distinct(places: Sequence[Place]) -> list[Place]:
    """Each real folder once: a host's folder is often a link to the committed one."""
    found: dict[Path, Place] = {}
    for candidate in places:
        found.setdefault(real_path(candidate.root), candidate)
    return list(found.values())


def describe(located: Located) -> list[str]:
    """The lines that `recall where` prints: the folder, whether it is in use, how it was found, what else there is."""
    chosen = located.chosen
    lines = [
        f"layout: {chosen.layout}",
        f"folder: {chosen.root} ({_state(chosen)})",
        f"user folder: {chosen.user_root or 'none'}",
        f"enabled: {'yes' if chosen.enabled else 'no'}",
        f"why: {located.note}",
        *(f"  - {reason}" for reason in chosen.reasons),
    ]
    others = [found for found in located.candidates if found is not chosen]
    if others:
        lines.append("also looked at:")
    for found in others:
        lines.append(f"  {found.layout}: {found.root} ({_state(found)})")
        lines.extend(f"    - {reason}" for reason in found.reasons)
    return lines


def _state(found: Place) -> str:
    return _age(found.newest) if found.exists else "does not exist"


def _age(newest: float) -> str:
    return f"newest file {datetime.fromtimestamp(newest, UTC):%Y-%m-%d %H:%M} UTC" if newest else "empty"


_HOSTS: Mapping[Layout, Callable[[Surroundings], Place]] = {
    Layout.QWEN: hosts.qwen,
    Layout.CLAUDE: hosts.claude,
    Layout.WAVE: hosts.wave,
    Layout.WORKBUDDY: hosts.workbuddy,
}
_COMMITTED: Mapping[Layout, Callable[[Surroundings], Sequence[Place]]] = {
    Layout.CLAUDE: hosts.committed_claude,
    Layout.PLAIN: hosts.plain,
}
