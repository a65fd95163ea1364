"""The commands that change memory files. Each shows its plan and asks, unless `--yes` was said."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from recall.apps.console import emit, is_terminal, show
from recall.apps.options import KINDS, SCOPES, Opening, memory_options, no_memory, query_argument, query_of
from recall.errors import RecallError, TopicError

if TYPE_CHECKING:  # each command loads what it needs
    from pathlib import Path

    from recall.memory.memory import Memory
    from recall.store.plan import Plan
    from recall.store.topics import Topic

ORIGINS: Final = ("owner", "agent", "tool", "web", "repo")
"""Values of lifecycle.remember.Origin, which `--help` has no need to load."""

_EDITORS: Final = ("VISUAL", "EDITOR")

_yes = click.option("--yes", "-y", is_flag=True, help="Do it without asking.")
_purge = click.option("--purge", is_flag=True, help="Keep no copy of it, in .trash or anywhere; cannot be restored.")


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="TEXT...")
@click.option("--type", "kind", type=click.Choice(KINDS), default="project", show_default=True, help="What kind it is.")
@click.option("--scope", type=click.Choice(SCOPES), help="Whose memory; user and feedback go to the user's.")
@click.option("--instructions", is_flag=True, help="Write a line in AGENTS.md instead of a memory.")
@click.option("--origin", type=click.Choice(ORIGINS), default="owner", show_default=True, help="Who says it.")
@memory_options
def remember(opening: Opening, words: Sequence[str], kind: str, instructions: bool, **chosen: Any) -> None:
    """Write one fact down, unless it is known; `-` reads it from stdin."""
    from recall.apps import plans

    try:
        text = query_of(words, errors="strict")
    except UnicodeDecodeError as error:
        raise TopicError("the text is not UTF-8; nothing was written", path="remember") from error
    with opening.memory(creates=True) as memory:
        target = "instructions" if instructions else "topic"
        done = memory.remember(text, type=kind, target=target, **chosen)
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
    """Remove what a request means: an id, words that it holds, or what it is about; `-` reads it from stdin."""
    with opening.memory() as memory:
        _carry_out(opening, memory, memory.forget(query_of(words), **chosen), yes=yes, purge=purge)


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@_yes
@_purge
@memory_options
def delete(opening: Opening, ids: Sequence[str], yes: bool, purge: bool) -> None:
    """Remove topics, entries or instructions by the ids that `recall list` shows."""
    with opening.memory() as memory:
        _carry_out(opening, memory, memory.delete(*ids), yes=yes, purge=purge)


@click.command()
@click.argument("name", metavar="ID")
@click.option("--from-stdin", is_flag=True, help="Read the new text from stdin instead of starting an editor.")
@memory_options
def edit(opening: Opening, name: str, from_stdin: bool) -> None:
    """Change a topic in your editor ($VISUAL, $EDITOR); the old text is kept in .trash."""
    with opening.memory() as memory:
        topic = memory.topic(name)
        before = topic.file.read_bytes()
        after = sys.stdin.buffer.read() if from_stdin else _edited(topic, before)
        if _is_text(before) and not _is_text(after):
            raise TopicError("the new text is not UTF-8; nothing was written", path=topic.file)
        try:
            plan = memory.edit(topic.id, _decoded(after), seen=_decoded(before))
            _carry_out(opening, memory, plan, yes=True)
        except (RecallError, OSError) as error:
            if from_stdin or after == before:
                raise
            raise RecallError(f"{error} (your text is kept in {_kept(after)})") from error


def _edited(topic: Topic, before: bytes) -> bytes:
    """What the user's editor makes of it, byte for byte."""
    if not (is_terminal(sys.stdin) or any(map(os.environ.get, _EDITORS))):
        raise TopicError("there is no terminal to edit it in; --from-stdin takes the new text", path=topic.file)
    try:
        after = click.edit(before, extension=".md")
    except click.ClickException as error:
        raise TopicError(
            f"not changed: {error.message}; $VISUAL or $EDITOR names your editor", path=topic.file
        ) from error
    return before if after is None else bytes(after)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _kept(text: bytes) -> Path:
    """A file for what somebody wrote and could not save."""
    import tempfile
    from pathlib import Path

    with tempfile.NamedTemporaryFile(prefix="recall-", suffix=".md", delete=False) as stream:
        stream.write(text)
    return Path(stream.name)


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
            _carry_out(opening, memory, memory.restore(run), yes=yes)
        elif opening.as_json:
            emit(plans.runs_data(memory.runs()))
        else:
            show(plans.runs(memory.runs()))


def _carry_out(opening: Opening, memory: Memory, plan: Plan, *, yes: bool, purge: bool = False) -> None:
    """Shows the plan, asks, and does it; exit code 1 when not all of it is done. Data without `--yes` is a dry run."""
    from recall.apps import plans, render

    if purge and yes and plan.is_guess:
        raise TopicError("chosen by meaning: look at the plan without --yes, then purge by id", path="forget --purge")
    if not opening.as_json:
        show(plans.plan(plan))
        show(render.notes(no_memory(memory)))
    is_wanted = yes or (bool(plan) and not opening.as_json and _agreed(purge))
    done = plan.apply(purge=purge) if plan and is_wanted else None
    if done:
        is_kept = not purge or any(one.run.id == done.id for one in memory.runs())
        if opening.as_json:
            emit(plans.plan_data(plan, plans.run_data(done, restorable=is_kept)))
        else:
            show(plans.run(done, restorable=is_kept))
    elif opening.as_json:
        emit(plans.plan_data(plan, None))
    is_refused = bool(plan) and not (is_wanted or opening.as_json)
    if is_refused or (done and done.skipped) or (plan.notes and not plan):
        sys.exit(1)


def _agreed(purge: bool) -> bool:
    if not is_terminal(sys.stdin):
        click.echo("recall: nothing was done; --yes does it without asking", err=True)
        return False
    return click.confirm("Do it, and keep no copy?" if purge else "Do it?", err=True)


COMMANDS: Final[Mapping[str, click.Command]] = {
    command.name: command for command in (remember, forget, delete, edit, restore) if command.name
}
