"""Plans and runs as lines and as plain data: what the commands print that change memory files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from recall.apps.lines import Line
from recall.apps.payloads import date
from recall.apps.render import clean, count
from recall.store.topics import Scope

if TYPE_CHECKING:  # each command loads what it needs
    from recall.memory.stored import Remembered
    from recall.store.plan import Change, Item, Plan, Run
    from recall.store.trash import Kept

_TEXT_SHOWN: Final = 160  # characters
_ITEMS_SHOWN: Final = 3
_OUTCOMES: Final = {"known": ("yellow", "says"), "forgotten": ("red", ""), "superseded": ("green", "before")}
"""Colour of an outcome, and what the other text is; an update says in a note what was there."""


def plan(made: Plan) -> Iterator[Line]:
    """What would change."""
    if not made:
        yield Line.of((f"nothing to {made.kind}", "yellow"))
    for item in made.items if made else ():
        yield _item(item)
    for change in made.changes:
        whose = f"{Scope.USER}:" if change.folder.scope is Scope.USER else ""
        yield Line.of(f"  {_verb(change)} ", (whose + clean(change.path), "cyan"))
    yield from _notes(made.notes)


def _item(item: Item) -> Line:
    return Line.of((clean(item.id), "bold cyan"), "  ", _cut(item.text))


def _cut(text: str) -> str:
    line = clean(text)
    return line[:_TEXT_SHOWN] + ("…" if len(line) > _TEXT_SHOWN else "")


def _verb(change: Change) -> str:
    if change.after is None:
        return "removes"
    return "rewrites" if change.before else "writes"


def _notes(sentences: Sequence[str]) -> Iterator[Line]:
    for note in sentences:
        yield Line.of((f"  {clean(note)}", "yellow"))


def run(done: Run, *, restorable: bool) -> Iterator[Line]:
    """What was done."""
    if not done.id:
        return
    changed = f"{done.kind}: {count(len(done.paths), 'file')} changed"
    yield Line.of((changed, "green"), f"; `recall restore {done.id}` undoes it" if restorable else "")
    yield from _notes([f"{path} was changed by somebody else at this moment, and left alone" for path in done.skipped])
    yield from _notes(done.notes)


def runs(found: Sequence[Kept]) -> Iterator[Line]:
    """What can be restored."""
    if not found:
        yield Line.of(("nothing can be restored", "yellow"))
    for one in found:
        about = ", ".join(clean(item.id) for item in one.run.items[:_ITEMS_SHOWN])
        more = len(one.run.items) - _ITEMS_SHOWN
        about += f" and {more:,} more" if more > 0 else ""
        yield Line.of(
            (clean(one.run.id), "bold cyan"),
            f"  {clean(one.run.kind)}  {about}",
            (f"  {clean(one.folder.root)}", "dim"),
        )


def remembered(done: Remembered) -> Iterator[Line]:
    """What became of a fact."""
    style, told = _OUTCOMES.get(done.outcome, ("green", ""))
    yield Line.of((done.outcome, style), (f"  {clean(done.id)}" if done.id else "", "bold cyan"))
    if told:
        yield Line.of((f"  {told}: {_cut(done.other)}", "dim"))
    yield from _notes(done.notes)
    if done.run:
        yield Line.of((f"  `recall restore {done.run}` undoes it", "dim"))
    elif done.outcome == "created":  # an instruction
        yield Line.of((f"  `recall delete {clean(done.id)}` takes it out", "dim"))


def plan_data(made: Plan, done: dict[str, Any] | None) -> dict[str, Any]:
    """A plan, and the run if it was applied, for `--json`."""
    return {
        "kind": made.kind,
        "items": _items(made.items),
        "changes": [
            {"scope": change.folder.scope, "path": change.path, "action": _verb(change)} for change in made.changes
        ],
        "notes": list(made.notes),
        "run": done,
    }


def _items(items: Sequence[Item]) -> list[dict[str, Any]]:
    return [{"id": item.id, "text": item.text} for item in items]


def run_data(done: Run, *, restorable: bool) -> dict[str, Any]:
    """A run that was just applied, for `--json`."""
    return {
        "id": done.id,
        "time": date(done.time),
        "paths": list(done.paths),
        "skipped": list(done.skipped),
        "notes": list(done.notes),
        "restorable": restorable,
    }


def runs_data(found: Sequence[Kept]) -> dict[str, Any]:
    """What can be restored, for `--json`."""
    return {
        "runs": [
            {
                "id": one.run.id,
                "kind": one.run.kind,
                "time": date(one.run.time),
                "scope": one.folder.scope,
                "root": one.folder.root,
                "items": _items(one.run.items),
            }
            for one in found
        ]
    }


def remembered_data(done: Remembered) -> dict[str, Any]:
    """What became of a fact, for `--json`."""
    return {
        "outcome": done.outcome,
        "id": done.id or None,
        "file": done.file,
        "run": done.run or None,
        "other": done.other or None,
        "notes": list(done.notes),
    }
