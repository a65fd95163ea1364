"""Plans and runs as lines and as plain data: what the commands print that change memory files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from recall.apps.lines import Line
from recall.apps.render import clean

if TYPE_CHECKING:  # each command loads what it needs
    from recall.memory.stored import Remembered
    from recall.store.plan import Change, Item, Plan, Run
    from recall.store.trash import Kept

_TEXT_SHOWN = 160  # characters


def plan(made: Plan) -> Iterator[Line]:
    """What would change."""
    if not made:
        yield Line.of((f"nothing to {made.kind}", "yellow"))
    for item in made.items if made else ():
        yield _item(item)
    for change in made.changes:
        yield Line.of(f"  {_verb(change)} ", (clean(change.path), "cyan"))
    for note in made.notes:
        yield Line.of((f"  {clean(note)}", "yellow"))


def _item(item: Item) -> Line:
    text = clean(item.text)
    return Line.of((clean(item.id), "bold cyan"), "  ", text[:_TEXT_SHOWN] + ("…" if len(text) > _TEXT_SHOWN else ""))


def _verb(change: Change) -> str:
    if change.after is None:
        return "removes"
    return "rewrites" if change.before else "writes"


def run(done: Run) -> Iterator[Line]:
    """What was done."""
    if not done.id:
        return
    yield Line.of((f"{done.kind}: {len(done.paths)} files changed", "green"), f"; `recall restore {done.id}` undoes it")
    for path in done.skipped:
        yield Line.of((f"  {clean(path)} was changed by somebody else at this moment, and left alone", "yellow"))
    for note in done.notes:
        yield Line.of((f"  {clean(note)}", "yellow"))


def runs(found: Sequence[Kept]) -> Iterator[Line]:
    """What can be restored."""
    if not found:
        yield Line.of(("nothing can be restored", "yellow"))
    for one in found:
        about = ", ".join(clean(item.id) for item in one.run.items[:3])
        yield Line.of((one.run.id, "bold cyan"), f"  {one.run.kind}  {about}", (f"  {clean(one.folder.root)}", "dim"))


def remembered(done: Remembered) -> Iterator[Line]:
    """What became of a fact."""
    style = {"known": "yellow", "forgotten": "red"}.get(done.outcome, "green")
    yield Line.of((f"{done.outcome}  ", style), (clean(done.id), "bold cyan"))
    if done.other:
        yield Line.of((f"  before: {clean(done.other)[:_TEXT_SHOWN]}", "dim"))
    if done.run:
        yield Line.of((f"  `recall restore {done.run}` undoes it", "dim"))
    for note in done.notes:
        yield Line.of((f"  {clean(note)}", "yellow"))


def plan_data(made: Plan, done: Run | None) -> dict[str, Any]:
    """A plan, and the run if it was applied, for `--json`."""
    return {
        "kind": made.kind,
        "items": [{"id": item.id, "text": item.text} for item in made.items],
        "changes": [
            {"scope": change.folder.scope, "path": change.path, "action": _verb(change)} for change in made.changes
        ],
        "notes": list(made.notes),
        "run": run_data(done) if done else None,
    }


def run_data(done: Run) -> dict[str, Any]:
    """A run for `--json`."""
    return {
        "id": done.id,
        "kind": done.kind,
        "time": datetime.fromtimestamp(done.time, UTC).isoformat(timespec="seconds"),
        "paths": list(done.paths),
        "skipped": list(done.skipped),
        "notes": list(done.notes),
    }


def runs_data(found: Sequence[Kept]) -> dict[str, Any]:
    """What can be restored, for `--json`."""
    return {
        "runs": [
            {
                **run_data(one.run),
                "scope": one.folder.scope,
                "root": one.folder.root,
                "items": [{"id": item.id, "text": item.text} for item in one.run.items],
            }
            for one in found
        ]
    }


def remembered_data(done: Remembered) -> dict[str, Any]:
    """What became of a fact, for `--json`."""
    return {
        "outcome": done.outcome,
        "id": done.id,
        "file": done.file,
        "run": done.run,
        "other": done.other,
        "notes": list(done.notes),
    }
