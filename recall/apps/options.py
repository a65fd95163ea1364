"""Options that commands share, and what they say together: which memory to open, and how."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from recall.apps.console import JSON_WANTED, quiet
from recall.store.places import Layout

if TYPE_CHECKING:  # each command loads what it needs
    from recall.apps.turn import Watch
    from recall.config import Config
    from recall.memory.memory import Memory
    from recall.search.types import Recall
    from recall.store.layout import Located
    from recall.store.places import Place

_STDIN: Final = "-"

KINDS: Final = ("user", "feedback", "project", "reference")
"""Values of store.topics.MemoryType, which `--help` has no need to load."""
SCOPES: Final = ("project", "user")
"""Values of store.topics.Scope, likewise."""


class Opening(NamedTuple):
    """What the common options say about the memory to open.

    Attributes:
        root: --root.
        project: --project, else the working directory.
        layout: --layout.
        user_root: --user-root.
        settings: --set, by dotted key.
        as_json: --json.
    """

    root: Path | None
    project: Path
    layout: str | None
    user_root: Path | None
    settings: Mapping[str, object]
    as_json: bool

    def config(self) -> Config:
        """The settings from all sources."""
        from recall.memory.opening import load_config

        return load_config(self.project, self.settings)

    def locate(self, config: Config) -> Located:
        """Where the memory lies."""
        from recall.memory.opening import find

        found = find(self.root, project=self.project, layout=self.layout, config=config)
        if self.user_root is None:
            return found
        chosen = replace(found.chosen, user_root=self.user_root)
        candidates = (chosen if place is found.chosen else place for place in found.candidates)
        return found._replace(chosen=chosen, candidates=tuple(candidates))

    def place(self, config: Config) -> Place:
        """Where the memory lies; folders that were named have to be there."""
        place = self.locate(config).chosen
        if self.root is not None and not place.exists:
            raise _missing(self.root, "--root")
        if self.user_root is not None and not self.user_root.is_dir():
            raise _missing(self.user_root, "--user-root")
        return place

    def quick(self, query: str, *, k: int | None, exclude: Collection[str], with_prompt: bool) -> Recall | None:
        """An answer by words, where no more is wanted and no index has to be brought up to date; else None."""
        config = self.config()
        if config.encoder.model != "off":
            return None
        from recall.apps.words import recall

        place = self.place(config)
        if not place.exists:
            return None
        wanted = config.search.k if k is None else k
        return recall(query, place, config=config, k=wanted, exclude=exclude, with_prompt=with_prompt)

    def memory(self, *, background: bool = False, watch: Watch | None = None, creates: bool = False) -> Memory:
        """Opens it; folders that were named have to be there, unless the command may make them."""
        from recall.memory.memory import Memory

        quiet()
        config = self.config()
        if not creates:
            self.place(config)
        return Memory.open(
            self.root,
            project=self.project,
            layout=self.layout,
            user_root=self.user_root,
            config=config,
            background=background,
            on_event=watch,
        )


def _missing(folder: Path, option: str) -> click.BadParameter:
    from recall.apps.render import clean

    return click.BadParameter(f"there is no folder {clean(folder)}", param_hint=option)


def _settings(_: click.Context, __: click.Parameter, pairs: Sequence[str]) -> dict[str, object]:
    settings: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"{pair!r} is no key=value, for instance search.k=8")
        settings[key.strip()] = value.strip()
    return settings


def _note_json(ctx: click.Context, _: click.Parameter, as_json: bool) -> bool:
    ctx.meta[JSON_WANTED] = as_json
    return as_json


FOLDER: Final = click.Path(path_type=Path)
set_option = click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", callback=_settings, help="A setting; repeatable."
)
json_option = click.option("--json", "as_json", is_flag=True, callback=_note_json, help="One JSON object on stdout.")
query_argument = click.argument("words", nargs=-1, required=True, metavar="QUERY...")

_HOSTS: Final = click.Choice([layout.value for layout in Layout])


def memory_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of every command that opens a memory, which gets them as its first argument, an Opening."""

    @functools.wraps(command)
    def wrapped(
        root: Path | None,
        project: Path | None,
        layout: str | None,
        user_root: Path | None,
        settings: Mapping[str, object],
        as_json: bool,
        **own: object,
    ) -> None:
        command(Opening(root, project or Path.cwd(), layout, user_root, settings, as_json), **own)

    options = (
        click.option("--root", type=FOLDER, help="The folder of memory files itself."),
        click.option("--project", type=FOLDER, help="A folder in the project; the working directory if not given."),
        click.option("--layout", type=_HOSTS, help="The host whose folders to use."),
        click.option("--user-root", type=FOLDER, help="The folder of memory across projects."),
        set_option,
        json_option,
    )
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped


def query_of(words: Sequence[str], *, errors: str = "replace") -> str:
    """The words as one text, or for `-` what stdin holds.

    Args:
        words: as they were given.
        errors: what becomes of bytes that are no UTF-8, as `bytes.decode` takes it.

    Raises:
        UnicodeDecodeError: there are some, and `errors` is `strict`.
    """
    is_from_stdin = tuple(words) == (_STDIN,)
    data = sys.stdin.buffer.read() if is_from_stdin else " ".join(words).encode("utf-8", "surrogateescape")
    return data.decode("utf-8", errors)


def no_memory(memory: Memory) -> str:
    """That there is no memory folder, in a sentence; "" where there is one."""
    place = memory.located.chosen
    if place.exists:
        return ""
    return f"this project has no memory folder yet; `recall where` explains the choice of {place.root}"
