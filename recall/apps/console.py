"""What the command line puts on stdout and stderr: lines, JSON, progress, and errors as one line each."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from recall.errors import RecallError

if TYPE_CHECKING:  # printing takes longer to load than many an answer takes
    from rich.progress import TaskID

    from recall.apps import payloads
    from recall.apps.lines import Line
    from recall.index import sync

JSON_WANTED = "recall.json"
"""Key in the click context's meta that says whether errors are wanted as JSON too."""


_INTERRUPTED: Final = 130  # as shells say it


class Commands(click.Group):
    """Turns what the library raises on purpose, and what the system says, into one line and exit code 1.

    Args:
        elsewhere: modules of commands that are loaded when they are wanted, by the command's name; each holds its
            commands in COMMANDS.
    """

    def __init__(self, *args: Any, elsewhere: Mapping[str, str], **own: Any) -> None:
        super().__init__(*args, **own)
        self._elsewhere = elsewhere

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return sorted({*super().list_commands(ctx), *self._elsewhere})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name in self._elsewhere:
            command: click.Command = import_module(self._elsewhere[cmd_name]).COMMANDS[cmd_name]
            return command
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.stderr.write("recall: interrupted; what was written whole stays\n")
            ctx.exit(_INTERRUPTED)
        except (RecallError, OSError) as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # the reader of our output went home; click ends quietly
            from recall.apps import render
            from recall.apps.lines import Line

            message = render.clean(_told(error))
            if ctx.meta.get(JSON_WANTED):
                emit({"error": message})
            show([Line.of(f"recall: {message}")], stderr=True)
            ctx.exit(1)


def _told(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, RecallError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def quiet() -> None:
    """Keeps Python from printing the library's warnings on its own."""
    import logging

    logging.getLogger("recall").addHandler(logging.NullHandler())


def emit(data: payloads.Payload) -> None:
    """Prints one JSON object; in ASCII where stdout takes nothing else."""
    from recall.apps import payloads

    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    click.echo(payloads.dumped(data, ascii_only=encoding != "utf8"))


def show(lines: Iterable[Line], *, stderr: bool = False) -> None:
    """Prints lines as they come, in colour on a terminal."""
    from recall.apps import render

    write = _styled(stderr) if _has_styles(sys.stderr if stderr else sys.stdout) else partial(_plain, stderr)
    for line in lines:
        write(render.safe(line))


def _has_styles(stream: TextIO | None) -> bool:
    """Whether rich would take the stream for a terminal."""
    return is_terminal(stream) or any(os.environ.get(name) for name in ("FORCE_COLOR", "TTY_COMPATIBLE"))


def is_terminal(stream: TextIO | None) -> bool:
    """Whether it is one; None is a stream that was closed when the process began."""
    return stream is not None and stream.isatty()


def _styled(stderr: bool) -> Callable[[Line], None]:
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=stderr, soft_wrap=True, highlight=False)
    return lambda line: console.print(Text.assemble(*line.parts))


def _plain(stderr: bool, line: Line) -> None:
    if (stream := sys.stderr if stderr else sys.stdout) is not None:
        stream.write(f"{line.plain}\n")


@contextmanager
def progress() -> Iterator[sync.Progress | None]:
    """A progress bar on stderr while the block runs; None where stderr is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from recall.apps import render

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def on_progress(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                for last in tasks.values():
                    bars.update(last, visible=False)
                tasks[stage] = bars.add_task(render.clean(stage), total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield on_progress
