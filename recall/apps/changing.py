"""The commands that change memory files. Each shows its plan and asks, unless `--yes` was said."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from recall.apps.console import emit, show
from recall.apps.options import KINDS, SCOPES, Opening, memory_options, query_argument, query_of

if TYPE_CHECKING:  # each command loads what it needs
    from recall.store.plan import Plan, Run

ORIGINS: Final = ("owner", "agent", "tool", "web", "repo")
"""Values of lifecycle.remember.Origin, which `--help` has no need to load."""

_yes = click.option("--yes", "-y", is_flag=True, help="Do it without asking.")
_purge = click.option("--purge", is_flag=True, help="Keep no copy of it, in .trash or anywhere; cannot be restored.")


@click.command()
@query_argument
@click.option("--type", "kind", type=click.Choice(KINDS), default="project", show_default=True, help="What kind it is.")
@click.option("--scope", type=click.Choice(SCOPES), help="Whose memory; user and feedback go to the user's.")
@click.option("--instructions", is_flag=True, help="Write a line in AGENTS.md instead of a memory.")
@click.option("--origin", type=click.Choice(ORIGINS), default="owner", show_default=True, help="Who says it.")
@memory_options
def remember(opening: Opening, words: Sequence[str], kind: str, instructions: bool, **chosen: Any) -> None:
    """Write one fact down, unless it is known; `-` reads it from stdin."""
    from recall.apps import plans

    with opening.memory(creates=True) as memory:
        target = "instructions" if instructions else "topic"
        done = memory.remember(query_of(words), type=kind, target=target, **chosen)
    if opening.as_json:
        emit(plans.remembered_data(done))
    else:
        show(plans.remembered(done))


@click.command()
@query_argument
@click.option("--limit", type=click.IntRange(min=1), help="Most entries; 5 if not given.")
@click.option("--scope", "scopes", multiple=True, type=click.Choice(SCOPES), help="Whose memory; repeatable.")
@_yes
@_purge
@memory_options
def forget(opening: Opening, words: Sequence[str], yes: bool, purge: bool, **chosen: Any) -> None:
    """Remove what a request means: an id, words that it holds, or what it is about."""
    with opening.memory() as memory:
        _carry_out(opening, memory.forget(query_of(words), **chosen), yes=yes, purge=purge)


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@_yes
@_purge
@memory_options
def delete(opening: Opening, ids: Sequence[str], yes: bool, purge: bool) -> None:
    """Remove topics or entries by their ids."""
    with opening.memory() as memory:
        _carry_out(opening, memory.delete(*ids), yes=yes, purge=purge)


@click.command()
@click.argument("name", metavar="ID")
@click.option("--from-stdin", is_flag=True, help="Read the new text from stdin instead of starting an editor.")
@memory_options
def edit(opening: Opening, name: str, from_stdin: bool) -> None:
    """Change a topic in your editor ($VISUAL, $EDITOR); the old text is kept in .trash."""
    from recall.store.files import read_text

    with opening.memory() as memory:
        topic = memory.topic(name)
        before = read_text(topic.file, max_bytes=memory.config.index.max_file_bytes)[0]
        if from_stdin:
            after = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
        else:
            edited = click.edit(before, extension=".md")
            after = before if edited is None else edited
        _carry_out(opening, memory.edit(topic.id, after, seen=before), yes=True)


@click.command()
@click.argument("run", required=False, default="", metavar="[RUN]")
@click.option("--list", "lists", is_flag=True, help="Say what can be restored, and do nothing.")
@_yes
@memory_options
def restore(opening: Opening, run: str, lists: bool, yes: bool) -> None:
    """Undo a run that changed memory files; the last one if none is named."""
    from recall.apps import plans

    with opening.memory() as memory:
        if not lists:
            _carry_out(opening, memory.restore(run), yes=yes)
        elif opening.as_json:
            emit(plans.runs_data(memory.runs()))
        else:
            show(plans.runs(memory.runs()))


def _carry_out(opening: Opening, plan: Plan, *, yes: bool, purge: bool = False) -> None:
    """Shows the plan, asks, and does it."""
    from recall.apps import plans

    done: Run | None = None
    if not opening.as_json:
        show(plans.plan(plan))
    if plan and (yes or (not opening.as_json and _agreed(purge))):
        done = plan.apply(purge=purge)
    if opening.as_json:
        emit(plans.plan_data(plan, done))
    elif done:
        show(plans.run(done))


def _agreed(purge: bool) -> bool:
    if not sys.stdin.isatty():
        click.echo("nothing was done; --yes does it without asking", err=True)
        return False
    return click.confirm("Do it, and keep no copy?" if purge else "Do it?", err=True)


COMMANDS: Final = (remember, forget, delete, edit, restore)
