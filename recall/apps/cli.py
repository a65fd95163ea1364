"""The command line: reads options, asks the library, prints what `render` or `payloads` make of the answer."""

import errno
import functools
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from recall import __version__
from recall.apps import demo as example
from recall.apps import payloads, render
from recall.apps.accounts import account
from recall.apps.evaluate import Ranking, Way, evaluate
from recall.apps.testset import read_queries, unpack_corpus
from recall.apps.turn import Turn, Watch, play
from recall.config import Config
from recall.errors import RecallError
from recall.index import sync
from recall.memory.memory import Memory, RootStatus
from recall.memory.opening import cache_root, find, load_config
from recall.search.types import Coverage
from recall.store.files import read_text
from recall.store.frontmatter import parse
from recall.store.layout import Layout, Located

Command = TypeVar("Command", bound=Callable[..., Any])

_JSON: Final = "recall.apps.cli.json"
_STDIN: Final = "-"


class Commands(click.Group):
    """Turns what the library raises on purpose, and what the system says, into one line and exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except (RecallError, OSError) as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # the reader of our output went home; click ends quietly
            message = render.clean(_told(error))
            if ctx.meta.get(_JSON):
                _emit({"error": message})
            Console(stderr=True, soft_wrap=True, highlight=False).print(render.safe(Text(f"recall: {message}")))
            ctx.exit(1)


def _told(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, RecallError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


# --- options


@dataclass(frozen=True, slots=True)
class Opening:
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
        return load_config(self.project, self.settings)

    def locate(self, config: Config) -> Located:
        """Where the memory lies."""
        found = find(self.root, project=self.project, layout=self.layout, config=config)
        if self.user_root is None:
            return found
        chosen = replace(found.chosen, user_root=self.user_root)
        others = (chosen if place is found.chosen else place for place in found.candidates)
        return replace(found, chosen=chosen, candidates=tuple(others))

    def memory(self, *, background: bool = False, watch: Watch | None = None) -> Memory:
        """Opens it; folders that were named have to be there."""
        config = self.config()
        if self.root is not None and not self.locate(config).chosen.exists:
            raise click.BadParameter(f"there is no folder {render.clean(self.root)}", param_hint="--root")
        if self.user_root is not None and not self.user_root.is_dir():
            raise click.BadParameter(f"there is no folder {render.clean(self.user_root)}", param_hint="--user-root")
        return Memory.open(
            self.root,
            project=self.project,
            layout=self.layout,
            user_root=self.user_root,
            config=config,
            background=background,
            on_event=watch,
        )


def _settings(_: click.Context, __: click.Parameter, pairs: Sequence[str]) -> dict[str, object]:
    settings: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"{pair!r} is no key=value, for instance search.k=8")
        settings[key.strip()] = value.strip()
    return settings


def _note_json(ctx: click.Context, _: click.Parameter, as_json: bool) -> bool:
    ctx.meta[_JSON] = as_json
    return as_json


_FOLDER: Final = click.Path(path_type=Path)
_set = click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", callback=_settings, help="A setting.")
_json = click.option("--json", "as_json", is_flag=True, callback=_note_json, help="One JSON object on stdout.")


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
        click.option("--root", type=_FOLDER, help="The folder of memory files itself."),
        click.option("--project", type=_FOLDER, help="A folder in the project; the working directory if not given."),
        click.option(
            "--layout", type=click.Choice([layout.value for layout in Layout]), help="The host whose folders to use."
        ),
        click.option("--user-root", type=_FOLDER, help="The folder of memory across projects."),
        _set,
        _json,
    )
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped


def _query(words: Sequence[str]) -> str:
    """The words as one query, or what stdin holds; bytes that are no UTF-8 are replaced."""
    if tuple(words) == (_STDIN,):
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    return " ".join(words).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


# --- output


def _emit(data: payloads.Payload) -> None:
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    click.echo(payloads.dumped(data, ascii_only=encoding != "utf8"))


def _print(lines: Iterable[Text]) -> None:
    console = Console(soft_wrap=True, highlight=False)
    for line in lines:
        console.print(render.safe(line))


@contextmanager
def _progress() -> Iterator[sync.Progress | None]:
    """A progress bar on stderr while the block runs, where stderr is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def on_progress(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                for last in tasks.values():
                    bars.update(last, visible=False)
                tasks[stage] = bars.add_task(render.clean(stage))
            bars.update(tasks[stage], completed=done, total=total)

        yield on_progress


# --- commands


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="recall")
@click.option("--verbose", is_flag=True, help="Log to stderr what goes on inside.")
def cli(verbose: bool) -> None:
    """Finds the memories that matter for a request, in folders of Markdown files, offline."""
    if verbose:
        logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    logging.getLogger("recall").addHandler(logging.NullHandler())  # otherwise Python prints warnings on its own


@cli.command()
@click.argument("words", nargs=-1, required=True, metavar="QUERY...")
@click.option("--k", type=click.IntRange(min=1), help="Most hits.")
@click.option("--exclude", multiple=True, metavar="ID", help="A topic that may not be found; repeatable.")
@click.option("--prompt", "only_prompt", is_flag=True, help="Print the Relevant Memory block and nothing else.")
@memory_options
def search(opening: Opening, words: Sequence[str], k: int | None, exclude: Sequence[str], only_prompt: bool) -> None:
    """Answer a query; `-` reads it from stdin."""
    start = time.perf_counter()
    with opening.memory() as memory:
        recall = memory.recall(_query(words), k=k, exclude=_ids(exclude))
        note = _note(memory, recall.coverage)
    total_s = time.perf_counter() - start
    if opening.as_json:
        _emit(payloads.search(recall, note=note, total_s=total_s))
    elif only_prompt:
        click.echo(recall.prompt, nl=False)
    else:
        _print(render.search(recall, note=note, total_s=total_s))


def _ids(names: Sequence[str]) -> frozenset[str]:
    """The ids with and without `.md`."""
    return frozenset(names) | {f"{name}.md" for name in names}


def _note(memory: Memory, coverage: Coverage | None = None) -> str:
    """What the user can do about an answer that is poorer than it need be, in a sentence; "" for nothing."""
    place = memory.located.chosen
    if not place.exists:
        return f"{place.root} does not exist; `recall where` explains the choice"
    bare = coverage.topics - coverage.embedded if coverage and not coverage.note else 0
    if bare and memory.config.encoder.model != "off":
        return f"topics without vectors: {bare}; `recall reindex` makes them"
    return ""


@cli.command()
@click.argument("words", nargs=-1, required=True, metavar="QUERY...")
@click.option("--tool-result", "tools", is_flag=True, help="Let tool results follow the first request.")
@memory_options
def prefetch(opening: Opening, words: Sequence[str], tools: bool) -> None:
    """Answer a query as a host gets it: cold and warm, in two phases, with timings."""
    query, note = _query(words), ""
    turns: dict[str, Turn] = {}
    for state in ("cold", "warm"):
        watch = Watch()  # a memory of its own for each: the first one has the query's vector at hand
        with opening.memory(background=state == "cold", watch=watch) as memory:
            if state == "warm":
                memory.recall("warm up")
            budget_s = memory.config.search.budget_ms / 1000
            turns[state] = play(memory, query, watch, budget_s=budget_s, tools=tools)
            note = _note(memory)
    if opening.as_json:
        turns_shown = [payloads.turn(state, turn) for state, turn in turns.items()]
        _emit({"query": query[: payloads.QUERY_SHOWN], "turns": turns_shown, "note": note})
    else:
        for state, turn in turns.items():
            _print(render.turn(state, turn, tools=tools))
        _print(render.notes(note, "" if query.strip() else "a blank query finds nothing"))


@cli.command()
@click.option("--full", is_flag=True, help="Throw all derived data away first.")
@memory_options
def reindex(opening: Opening, full: bool) -> None:
    """Bring the index up to date with the files, vectors and all."""
    with opening.memory() as memory:
        with _progress() as on_progress:
            report = memory.reindex(full=full, on_progress=on_progress)
        unfinished = any(_unfinished(root, memory.config) for root in memory.status())
    if opening.as_json:
        _emit(payloads.report(report))
    else:
        _print(render.report(report))
    if unfinished:
        sys.exit(1)


def _unfinished(root: RootStatus, config: Config) -> bool:
    """Whether vectors are missing that a model should have made, or the index goes when this process does."""
    is_embedded = config.encoder.model == "off" or root.coverage.embedded == root.coverage.topics
    return not is_embedded or not root.folder.is_relative_to(cache_root(config))


@cli.command()
@memory_options
def status(opening: Opening) -> None:
    """Account for every .md file of the memory, and for the derived data."""
    with opening.memory() as memory:
        accounts = [account(root) for root in memory.status()]
    if opening.as_json:
        _emit({"roots": [payloads.account(one) for one in accounts]})
    else:
        for one in accounts:
            _print(render.account(one))


@cli.command()
@memory_options
def where(opening: Opening) -> None:
    """Say which folder is the project's memory, and why; reads no memory."""
    found = opening.locate(opening.config())
    if opening.as_json:
        _emit(payloads.located(found))
    else:
        _print(render.located(found))


@cli.command()
@click.argument("name", metavar="ID")
@memory_options
def show(opening: Opening, name: str) -> None:
    """Show one topic as it was understood."""
    with opening.memory() as memory:
        topic = memory.topic(name)
        front = parse(read_text(topic.file, max_bytes=memory.config.index.max_file_bytes)[0])
    if opening.as_json:
        _emit(payloads.topic(topic, front))
    else:
        _print(render.topic(topic, front))


_EXISTING: Final = click.Path(exists=True, path_type=Path)


@cli.command("eval")
@click.argument("root", type=_EXISTING)
@click.argument("queries_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="QUERIES.jsonl")
@click.option("--delivered", is_flag=True, help="Judge what a prefetch injects instead of what a recall finds.")
@click.option("--no-floor", is_flag=True, help="Keep hits below the floor.")
@click.option(
    "--strategy",
    type=click.Choice([way.value for way in Ranking]),
    default=Ranking.HYBRID.value,
    help="What topics are ranked by.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Ask only the first questions.")
@_set
@_json
def evaluate_command(
    root: Path, queries_file: Path, settings: Mapping[str, object], as_json: bool, **chosen: Any
) -> None:
    """Ask the questions of a test set and judge the answers."""
    way = Way(Ranking(chosen["strategy"]), delivered=chosen["delivered"], with_floor=not chosen["no_floor"])
    if way.delivered and way.is_partial:
        raise click.UsageError("--delivered judges the hybrid or the heuristic ranking, not a part of the score")
    start = time.perf_counter()
    config = load_config(Path.cwd(), settings)
    folder = (root if root.is_dir() else unpack_corpus(root, cache_root(config))).absolute()
    queries = read_queries(queries_file, root=folder, limit=chosen["limit"])
    with _progress() as on_progress:
        done = evaluate(folder, queries, config=config, way=way, on_progress=on_progress)
    seconds = time.perf_counter() - start
    if as_json:
        _emit(payloads.evaluation(done, ranking=way.ranking, seconds=seconds))
    else:
        _print(render.evaluation(done, ranking=way.ranking, seconds=seconds))


def _empty(_: click.Context, __: click.Parameter, folder: Path | None) -> Path | None:
    if folder is not None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise click.BadParameter(f"{render.clean(folder)} is not an empty folder")
    return folder


@cli.command()
@click.option("--keep", type=_FOLDER, callback=_empty, help="Write the example memory here and leave it.")
@_json
def demo(keep: Path | None, as_json: bool) -> None:
    """Make a small bilingual memory, index it, and ask it questions."""
    with tempfile.TemporaryDirectory(prefix="recall-demo-", ignore_cleanup_errors=True) as scratch:
        folder, cache = (keep or Path(scratch, "memory")).absolute(), Path(scratch, "cache")
        example.write_memory(folder)
        with _progress() as on_progress:
            report = example.index(folder, cache, on_progress=on_progress)
        if not as_json:
            _print(render.example_indexed(report, folder=keep))
        answers = []
        for answer in example.ask(folder, cache):
            answers.append(answer)
            if not as_json:
                _print(render.answer(answer))
    if as_json:
        _emit(payloads.demo(answers, indexed=report, folder=keep))
    else:
        _print([render.summary(answers)])
    if not all(answer.is_right for answer in answers):
        sys.exit(1)


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    cli(prog_name="recall")
