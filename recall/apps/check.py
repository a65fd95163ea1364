"""`recall check`: what is wrong with the memory files, as lines or as JSON, and mends what can be mended safely."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from recall.apps.console import emit, quiet, show
from recall.apps.options import Opening, memory_options

if TYPE_CHECKING:  # help needs none of it
    from recall.apps.lines import Line
    from recall.apps.payloads import Payload
    from recall.quality.findings import Finding
    from recall.store.plan import Folder

_STYLES: Final = {"error": "red", "warning": "yellow", "note": "dim"}


class Checked(NamedTuple):
    """One memory folder as it is now.

    Attributes:
        folder: which one.
        topics: how many it has.
        findings: what is wrong with it.
        done: what was mended, a sentence each.
        run: the run that did it; "" for none.
        note: why it could not be mended; "" for nothing.
    """

    folder: Folder
    topics: int
    findings: Sequence[Finding]
    done: Sequence[str] = ()
    run: str = ""
    note: str = ""


@click.command("check")
@click.option("--fix", is_flag=True, help="Mend MEMORY.md where that is safe; `recall restore` undoes it.")
@memory_options
def check_command(opening: Opening, fix: bool) -> None:
    """Say what is wrong with the memory files; topics are never changed.

    Exit code 0 when nothing is wrong, or nothing but notes, 1 with warnings or errors (with --fix: that are left), for
    CI. What is wrong with derived data is said by `recall doctor`.
    """
    quiet()
    roots = [_checked(folder, most, fix=fix) for folder, most in _folders(opening)]
    if opening.as_json:
        emit(payload(roots))
    else:
        show(lines(roots))
    sys.exit(1 if _counts(roots)["error"] or _counts(roots)["warning"] else 0)


def _folders(opening: Opening) -> list[tuple[Folder, int]]:
    """The folders to look at, each with the size of the largest topic; a user's folder that nobody named may lack."""
    from recall.memory.opening import folders_of, scopes_of

    config = opening.config()
    place = opening.place(config)
    folders = folders_of(place, scopes_of(place, user_root=opening.user_root), config)
    return [
        (folder, config.index.max_file_bytes)
        for folder in folders.values()
        if folder.root == place.root or folder.root == opening.user_root or folder.root.is_dir()
    ]


def _checked(folder: Folder, max_file_bytes: int, *, fix: bool) -> Checked:
    from recall.errors import RecallError
    from recall.quality.check import check
    from recall.quality.mending import mend
    from recall.quality.reading import read_contents

    note = ""
    if fix:
        try:
            mended = mend(folder, max_file_bytes=max_file_bytes)
            done = [f"{one.path}:{one.line}: {one.message}" for one in mended.mended]
            counts = len(mended.contents.files)
            return Checked(folder, counts, mended.findings, done, mended.run, "; ".join(mended.notes))
        except (RecallError, OSError) as error:  # what is wrong is said all the same
            note = f"could not be mended: {error}"
    contents = read_contents(folder, max_file_bytes=max_file_bytes)
    return Checked(folder, len(contents.files), check(contents), note=note)


def _counts(roots: Iterable[Checked]) -> dict[str, int]:
    counts = dict.fromkeys(_STYLES, 0)
    for root in roots:
        for finding in root.findings:
            counts[finding.severity] += 1
    return counts


# --- as lines


def lines(roots: Sequence[Checked]) -> Iterator[Line]:
    """One line a finding, `path:line: severity: message`, then how many there are."""
    from recall.apps.lines import Line
    from recall.apps.render import clean

    for root in roots:
        for sentence in root.done:
            yield Line.of(("mended: ", "green"), clean(sentence))
        if root.run:
            yield Line.of(("mended: ", "green"), f"`recall restore {clean(root.run)}` undoes it")
        for finding in root.findings:
            fix = f" [--fix: {finding.fix}]" if finding.fix else ""
            severity = (f"{finding.severity}: ", _STYLES[finding.severity])
            yield Line.of(
                (f"{clean(_shown(root, finding))}:{finding.line}: ", "bold"), severity, clean(finding.message + fix)
            )
        if root.note:
            yield Line.of(("note: ", "yellow"), clean(root.note))
    yield Line.of((_summary(roots), "bold"))


def _shown(root: Checked, finding: Finding) -> Path:
    """The file as somebody who stands in the working directory names it."""
    file = (root.folder.root / finding.path).absolute()
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file


def _summary(roots: Sequence[Checked]) -> str:
    topics = sum(root.topics for root in roots)
    counts = _counts(roots)
    said = ", ".join(f"{count:,} {name}{'s'[: count != 1]}" for name, count in counts.items() if count)
    return f"{topics:,} topic{'s'[: topics != 1]}: {said or 'nothing is wrong'}"


# --- as data


def payload(roots: Sequence[Checked]) -> Payload:
    """The answer of `recall check --json`."""
    counts = _counts(roots)
    return {
        "sound": not counts["error"] and not counts["warning"],
        "errors": counts["error"],
        "warnings": counts["warning"],
        "notes": counts["note"],
        "roots": [
            {
                "root": root.folder.root,
                "scope": root.folder.scope,
                "topics": root.topics,
                "findings": [_finding(finding) for finding in root.findings],
                "done": list(root.done),
                "run": root.run or None,
                "note": root.note,
            }
            for root in roots
        ],
    }


def _finding(finding: Finding) -> Payload:
    return {
        "kind": finding.kind,
        "severity": finding.severity,
        "path": finding.path,
        "line": finding.line,
        "message": finding.message,
        "fix": finding.fix or None,
    }


COMMANDS: Final[Mapping[str, click.Command]] = {"check": check_command}
