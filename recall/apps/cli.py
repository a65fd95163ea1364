"""The command line: reads options, asks the library, prints what `render` or `payloads` make of the answer."""

from __future__ import annotations

import atexit
import gc
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from recall import __version__
from recall.apps.console import Commands, emit, progress, quiet, show
from recall.apps.options import (
    FOLDER,
    KINDS,
    SCOPES,
    Opening,
    json_option,
    memory_options,
    no_memory,
    query_argument,
    query_of,
    set_option,
)

if TYPE_CHECKING:  # each command loads what it needs, so that help comes at once
    from recall.apps.turn import Turn
    from recall.config import Config
    from recall.memory.memory import Memory
    from recall.memory.status import RootStatus
    from recall.search.types import Recall
    from recall.store.traces import Origin


_CHANGING: Final = ("remember", "forget", "delete", "edit", "restore")
_ELSEWHERE: Final = {"check": "recall.apps.check", **dict.fromkeys(_CHANGING, "recall.apps.changing")}


@click.group(cls=Commands, elsewhere=_ELSEWHERE, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="recall")
@click.option("--verbose", is_flag=True, help="Log to stderr what goes on inside.")
def cli(verbose: bool) -> None:
    """Finds the memories that matter for a request, in folders of Markdown files, offline."""
    if verbose:
        import logging

        logging.basicConfig(level=logging.INFO, stream=sys.stderr)


@cli.command()
@query_argument
@click.option("--k", type=click.IntRange(min=1), help="Most hits.")
@click.option("--exclude", multiple=True, metavar="ID", help="A topic that may not be found; repeatable.")
@click.option("--type", "types", multiple=True, type=click.Choice(KINDS), help="A kind that is wanted; repeatable.")
@click.option("--scope", "scopes", multiple=True, type=click.Choice(SCOPES), help="Whose memory; repeatable.")
@click.option("--prompt", "only_prompt", is_flag=True, help="Print the Relevant Memory block and nothing else.")
@click.option("--explain", "explained", is_flag=True, help="Say why these, why others not, and why nothing.")
@memory_options
def search(
    opening: Opening, words: Sequence[str], only_prompt: bool, explained: bool, exclude: Sequence[str], **asked: Any
) -> None:
    """Answer a query; `-` reads it from stdin."""
    start = time.perf_counter()
    query, note, explanation = query_of(words), "", None
    asked["exclude"] = _ids(exclude)
    recall = None
    if not (explained or asked["types"] or asked["scopes"]):
        with_prompt = only_prompt or opening.as_json
        recall = opening.quick(query, k=asked["k"], exclude=asked["exclude"], with_prompt=with_prompt)
    if recall is None:
        with opening.memory() as memory:
            if explained:
                explanation = memory.explain(query, **asked)
                recall = explanation.recall
            else:
                recall = memory.recall(query, **asked, origin=_origin())
            note = _note(memory, recall)
    total_s = time.perf_counter() - start
    if opening.as_json:
        from recall.apps import payloads

        emit(payloads.search(recall, note=note, total_s=total_s, explanation=explanation))
    elif only_prompt:
        click.echo(recall.prompt, nl=False)
    else:
        from recall.apps import render

        show(render.search(recall, note=note, total_s=total_s, explanation=explanation))


def _origin() -> Origin:
    from recall.store.traces import Origin

    return Origin("cli")


def _ids(names: Sequence[str]) -> frozenset[str]:
    """The ids with and without `.md`."""
    return frozenset(names) | {f"{name}.md" for name in names}


def _note(memory: Memory, recall: Recall | None = None) -> str:
    """What the user can do about an answer that is poorer than it need be, in a sentence; "" for nothing."""
    from recall.search.types import Strategy

    if absent := no_memory(memory):
        return absent
    with_model = memory.config.encoder.model != "off" and recall and recall.strategy is not Strategy.HEURISTIC
    bare = recall.coverage.topics - recall.coverage.embedded if recall and with_model else 0
    return f"topics without vectors: {bare}; `recall reindex` makes them" if bare else ""


@cli.command()
@query_argument
@click.option("--tool-result", "tools", is_flag=True, help="Let tool results follow the first request.")
@memory_options
def prefetch(opening: Opening, words: Sequence[str], tools: bool) -> None:
    """Answer a query as a host gets it: cold and warm, in two phases, with timings."""
    from recall.apps import payloads, render
    from recall.apps.turn import Watch, play

    query, note = query_of(words), ""
    turns: dict[str, Turn] = {}
    for state in ("cold", "warm"):
        watch = Watch()  # a memory of its own for each: the first one has the query's vector at hand
        with opening.memory(background=state == "cold", watch=watch) as memory:
            if state == "warm":
                memory.recall("warm up", origin=None)
            turns[state] = play(memory, query, watch, tools=tools)
            note = _note(memory)
    if opening.as_json:
        turns_shown = [payloads.turn(state, turn) for state, turn in turns.items()]
        emit({"query": query[: payloads.QUERY_SHOWN], "turns": turns_shown, "note": note})
    else:
        for state, turn in turns.items():
            show(render.turn(state, turn, tools=tools))
        show(render.notes(note, "" if query.strip() else "a blank query finds nothing"))


@cli.command()
@click.option("--full", is_flag=True, help="Throw all derived data away first.")
@click.option("--workers", type=click.IntRange(1, 64), help="Texts to encode at once; index.workers if not given.")
@memory_options
def reindex(opening: Opening, full: bool, workers: int | None) -> None:
    """Bring the index up to date with the files, vectors and all."""
    from recall.apps import payloads, render

    if workers is not None:
        opening = opening._replace(settings={**opening.settings, "index.workers": workers})
    with opening.memory() as memory:
        with progress() as on_progress:
            report = memory.reindex(full=full, on_progress=on_progress)
        unfinished = any(_unfinished(root, memory.config) for root in memory.status())
    if opening.as_json:
        emit(payloads.report(report))
    else:
        show(render.report(report))
    if unfinished:
        sys.exit(1)


def _unfinished(root: RootStatus, config: Config) -> bool:
    """Whether vectors are missing that a model should have made, or the index goes when this process does."""
    from recall.memory.opening import cache_root

    is_embedded = config.encoder.model == "off" or root.coverage.embedded == root.coverage.topics
    return not is_embedded or not root.folder.is_relative_to(cache_root(config))


@cli.command()
@click.option("--check", is_flag=True, help="Examine the derived data instead; exit code 1 when something is wrong.")
@memory_options
def status(opening: Opening, check: bool) -> None:
    """Account for every .md file of the memory, and for the derived data."""
    if check:
        from recall.apps import doctor as checkup

        sys.exit(checkup.check(opening))
    from recall.apps import payloads, render
    from recall.apps.accounts import account

    with opening.memory() as memory:
        accounts = [account(root) for root in memory.status()]
    if opening.as_json:
        emit({"roots": [payloads.account(one) for one in accounts]})
    else:
        for one in accounts:
            show(render.account(one))


@cli.command()
@click.option("--fix", is_flag=True, help="Mend what can be mended; memory files are never touched.")
@memory_options
def doctor(opening: Opening, fix: bool) -> None:
    """Say what is wrong with the derived data, and mend it."""
    from recall.apps import doctor as checkup

    sys.exit((checkup.fix if fix else checkup.diagnose)(opening))


@cli.command()
@memory_options
def where(opening: Opening) -> None:
    """Say which folder is the project's memory, and why; reads no memory."""
    from recall.apps import payloads, render

    found = opening.locate(opening.config())
    if opening.as_json:
        emit(payloads.located(found))
    else:
        show(render.located(found))


@cli.command("list")
@click.option("--type", "types", multiple=True, type=click.Choice(KINDS), help="A kind that is wanted; repeatable.")
@click.option("--scope", "scopes", multiple=True, type=click.Choice(SCOPES), help="Whose memory; repeatable.")
@click.option("--entries", "by_entry", is_flag=True, help="List each entry and each instruction of AGENTS.md.")
@memory_options
def list_command(opening: Opening, types: Sequence[str], scopes: Sequence[str], by_entry: bool) -> None:
    """List all topics, with the ids that other commands take."""
    from recall.apps import payloads, render

    with opening.memory() as memory:
        topics = [
            topic
            for topic in memory.topics()
            if (not types or topic.type in types) and (not scopes or topic.scope in scopes)
        ]
        files = {topic.file for topic in topics}
        entries = [
            entry
            for entry in (memory.entries() if by_entry else ())
            if entry.file in files or (not types and (not scopes or entry.scope in scopes))
        ]
        note = no_memory(memory)
    if opening.as_json:
        emit(payloads.stored(entries) if by_entry else payloads.topics(topics))
    else:
        show(render.stored(entries) if by_entry else render.topics(topics))
        show(render.notes(note))


@cli.command("show")
@click.argument("name", metavar="ID")
@memory_options
def show_command(opening: Opening, name: str) -> None:
    """Show one topic as it was understood."""
    from recall.apps import payloads, render
    from recall.store.files import read_text
    from recall.store.frontmatter import parse

    with opening.memory() as memory:
        topic = memory.topic(name)
        front = parse(read_text(topic.file, max_bytes=memory.config.index.max_file_bytes)[0])
    if opening.as_json:
        emit(payloads.topic(topic, front))
    else:
        show(render.topic(topic, front))


_EXISTING: Final = click.Path(exists=True, path_type=Path)


@cli.command("eval")
@click.argument("root", type=_EXISTING)
@click.argument("queries_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="QUERIES.jsonl")
@click.option("--delivered", is_flag=True, help="Judge what a prefetch injects instead of what a recall finds.")
@click.option("--no-floor", is_flag=True, help="Keep what does not fit, as if every question had an answer.")
@click.option(
    "--strategy",
    type=click.Choice(["hybrid", "dense", "words", "heuristic"]),
    default="hybrid",
    help="What topics are ranked by.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Ask only the first questions.")
@set_option
@json_option
def evaluate_command(
    root: Path, queries_file: Path, settings: Mapping[str, object], as_json: bool, **chosen: Any
) -> None:
    """Ask the questions of a test set and judge the answers."""
    from recall.apps import payloads, render
    from recall.apps.evaluate import Ranking, Way, evaluate
    from recall.apps.testset import read_queries, unpack_corpus
    from recall.memory.opening import cache_root, load_config

    quiet()
    way = Way(Ranking(chosen["strategy"]), delivered=chosen["delivered"], with_floor=not chosen["no_floor"])
    if way.delivered and way.is_partial:
        raise click.UsageError("--delivered judges the hybrid or the heuristic ranking, not a part of the score")
    start = time.perf_counter()
    config = load_config(Path.cwd(), settings)
    folder = (root if root.is_dir() else unpack_corpus(root, cache_root(config))).absolute()
    queries = read_queries(queries_file, root=folder, limit=chosen["limit"])
    with progress() as on_progress:
        done = evaluate(folder, queries, config=config, way=way, on_progress=on_progress)
    seconds = time.perf_counter() - start
    if as_json:
        emit(payloads.evaluation(done, ranking=way.ranking, seconds=seconds))
    else:
        show(render.evaluation(done, ranking=way.ranking, seconds=seconds))


def _empty(_: click.Context, __: click.Parameter, folder: Path | None) -> Path | None:
    if folder is not None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        from recall.apps import render

        raise click.BadParameter(f"{render.clean(folder)} is not an empty folder")
    return folder


@cli.command()
@click.option("--keep", type=FOLDER, callback=_empty, help="Write the example memory here and leave it.")
@json_option
def demo(keep: Path | None, as_json: bool) -> None:
    """Make a small bilingual memory, index it, and ask it questions."""
    import tempfile

    from recall.apps import demo as example
    from recall.apps import payloads, render

    quiet()
    with tempfile.TemporaryDirectory(prefix="recall-demo-", ignore_cleanup_errors=True) as scratch:
        folder, cache = (keep or Path(scratch, "memory")).absolute(), Path(scratch, "cache")
        example.write_memory(folder)
        with progress() as on_progress:
            report = example.index(folder, cache, on_progress=on_progress)
        if not as_json:
            show(render.example_indexed(report, folder=keep))
        answers = []
        for answer in example.ask(folder, cache):
            answers.append(answer)
            if not as_json:
                show(render.answer(answer))
    if as_json:
        emit(payloads.demo(answers, indexed=report, folder=keep))
    else:
        show([render.summary(answers)])
    if not all(answer.is_right for answer in answers):
        sys.exit(1)


@cli.command()
@click.option(
    "--idle-exit", type=click.FloatRange(min=0), default=1800.0, metavar="SECONDS", help="Exit after so long unasked."
)
@click.option("--socket", "file", type=FOLDER, metavar="FILE", help="Where to listen.")
def serve(idle_exit: float, file: Path | None) -> None:
    """Stay resident and answer `recall hook`: one model for all sessions of this user."""
    from recall.apps.serve import serve, usual_socket

    quiet()
    serve((file or usual_socket()).absolute(), idle_s=idle_exit, on_ready=lambda at: click.echo(f"ready {at}"))


@cli.command()
@click.argument("event", type=click.Choice(["prompt", "session"]))
@click.option("--root", help="The folder of memory files itself.")
@click.option("--project", help="A folder in the project; the host's working directory if not given.")
@click.option("--layout", help="The host whose folders to use.")
@click.option("--user-root", help="The folder of memory across projects.")
@click.option("--format", type=click.Choice(["text", "json"]), help="The bare block, or as hosts take it.")
@click.option("--timeout-ms", type=click.FloatRange(min=0), help="What the whole may take.")
@click.option("--socket", help="Where the resident process listens.")
@click.option("--no-start", is_flag=True, help="Start no resident process.")
def hook(event: str, no_start: bool, **given: str | float | None) -> None:
    """Answer a host's hook from stdin; never fails. `recall-hook` does the same, and quicker."""
    from recall.apps import hooks

    words = [f"--{name.replace('_', '-')}={value}" for name, value in given.items() if value is not None]
    hooks.main([event, *words, *(["--no-start"] if no_start else [])])


def main() -> None:
    """Runs the command that the process was started with, and ends the process."""
    atexit.register(gc.freeze)  # or the end of the process would look through all that goes with it anyway
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    cli(prog_name="recall")
