"""Results as lines for people. What comes from memory is cleaned first: no control character reaches a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from recall.apps.lines import Line
from recall.search.types import Drop
from recall.store.frontmatter import Frontmatter, joined
from recall.store.layout import Located, describe
from recall.store.topics import Topic, parse_entries
from recall.text.markup import one_line, visible

if TYPE_CHECKING:  # each command loads what it needs
    from recall.apps.accounts import Account
    from recall.apps.demo import Answer
    from recall.apps.evaluate import Evaluation
    from recall.apps.turn import Turn
    from recall.index.sync import SyncReport
    from recall.memory.stored import Stored
    from recall.search.delivery import Delivery, PrefetchEvent
    from recall.search.explanation import Explanation
    from recall.search.types import Coverage, Hit, Recall

Lines = Iterator[Line]

NOTHING_FITS: Final = "nothing fits"
_SHOWN: Final = 10
_LISTED: Final = 120  # characters of a description
_DROPS: Final = {
    Drop.NO_SAFE_DELIVERY_POINT: "the turn ended before there was a place to deliver to",
    Drop.NO_RELEVANT_RESULTS: "nothing relevant was found",
    Drop.ALREADY_DELIVERED: "everything it found was delivered already",
}


def clean(text: str | Path) -> str:
    """One line that is safe to print; bytes that are no UTF-8 show as replacement characters."""
    return one_line(os.fspath(text).encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def safe(line: Line) -> Line:
    """The line, without its styles if anything in it could still act on a terminal: the last guard before printing."""
    shown = visible(line.plain)
    return line if shown == line.plain else Line.of(shown)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def count(number: int, one: str, many: str = "") -> str:
    """A number of things, with the word for them."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def search(recall: Recall, *, note: str, total_s: float, explanation: Explanation | None = None) -> Lines:
    """What `recall search` prints."""
    if not recall.query.strip():
        yield Line.of(("blank query: nothing was searched", "yellow"))
        return
    for rank, hit in enumerate(recall.hits, start=1):
        yield from _hit(rank, hit)
        for sentence in hit.explain() if explanation else ():
            yield Line.of(" " * 11, (clean(sentence), "dim"))
    if not recall.hits:
        yield Line.of((NOTHING_FITS, "yellow"))
    if explanation:
        yield from _beside(explanation)
    times = f"{_ms(recall.duration_s)} search, {_ms(total_s)} in all"
    yield Line.of((f"{recall.strategy}; {_covered(recall.coverage)}; {times}", "dim"))
    yield from notes(_behind(recall.coverage), recall.coverage.note, note)


def _hit(rank: int, hit: Hit) -> Lines:
    topic = hit.topic
    yield Line.of((f"{rank:>2}  {hit.score:.3f}  ", "dim"), (clean(topic.id), "bold cyan"))
    parts = [f"cosine {hit.cosine:.3f}" if hit.cosine is not None else ""]
    parts += [f"words {hit.lexical:.3f}" if hit.lexical is not None else "", topic.type or ""]
    about = [(topic.title, "bold"), (topic.description, ""), (", ".join(filter(None, parts)), "dim")]
    for text, style in about:
        if text:
            yield Line.of(" " * 11, (clean(text), style))


def _beside(explanation: Explanation) -> Lines:
    """Why nothing came, and what came close."""
    if explanation.silence:
        yield Line.of(("why: ", "yellow"), clean(explanation.why_nothing()))
    for other in explanation.rejected:
        yield Line.of((f" -  {other.hit.score:.3f}  ", "dim"), clean(other.hit.topic.id), f": {clean(other.reason)}")
        yield Line.of(" " * 11, (clean("; ".join(other.hit.explain()[:2])), "dim"))
    if words := explanation.unmatched[:_SHOWN]:
        more = len(explanation.unmatched) - len(words)
        named = ", ".join(map(clean, words)) + (f" and {more:,} more" if more else "")
        yield Line.of((f"in no topic: {named}", "dim"))


def _covered(coverage: Coverage) -> str:
    return f"{coverage.embedded} of {count(coverage.topics, 'topic')} with vectors"


def _behind(coverage: Coverage) -> str:
    """What the answer does not know yet, in a sentence; "" for nothing."""
    if not coverage.behind_count:
        return ""
    more = coverage.behind_count - len(coverage.behind)
    names = ", ".join(coverage.behind) + (f" and {more:,} more" if more else "")
    return f"behind by {count(coverage.behind_count, 'file')} that changed since it was indexed: {names}"


def notes(*sentences: str) -> Lines:
    """What else there is to say, each sentence once; empty ones are left out."""
    for note in dict.fromkeys(filter(None, sentences)):
        yield Line.of(("note: ", "yellow"), clean(note))


# --- prefetch


def turn(state: str, played: Turn, *, tools: bool) -> Lines:
    """What `recall prefetch` prints of one turn."""
    yield Line.of((state, "bold"))
    yield _delivery("first()", played.first)
    if played.later is not None or (tools and played.end.drop is not None):
        yield _delivery("on_tool_result()", played.later)
    yield Line.of("  ", (_ended(played.end), "dim"))


def _delivery(call: str, given: Delivery | None) -> Line:
    if given is None:
        return Line.of(f"  {call:<17}", ("nothing", "yellow"))
    names = ", ".join(clean(hit.topic.id) for hit in given.recall.hits)
    timed = f"{given.phase:<8} {_ms(given.latency_s):>10}  "
    return Line.of(f"  {call:<17}", (timed, "green"), count(len(given.recall.hits), "hit"), f": {names}")


def _ended(event: PrefetchEvent) -> str:
    spent = [("words", event.fast_s), ("hybrid", event.refined_s)]
    times = ", ".join(f"{name} {_ms(seconds)}" if seconds is not None else f"{name} not in" for name, seconds in spent)
    ended = "ended with the refined result" if event.drop is None else f"{event.drop}: {_DROPS.get(event.drop, '')}"
    return f"{ended} ({times})"


# --- reindex, status, where, show


def report(done: SyncReport) -> Lines:
    """What `recall reindex` prints."""
    counts = {"added": done.added, "changed": done.changed, "moved": done.moved, "removed": done.removed}
    numbers = ", ".join(f"{name} {len(paths)}" for name, paths in counts.items())
    yield Line.of(f"{numbers}, kept {done.kept}, skipped {len(done.skipped)}, failed {len(done.failed)}")
    for name, paths in counts.items():
        yield from _listed(name, [(path, "") for path in paths], style="green")
    yield from _listed("skipped", done.skipped, style="dim")
    yield from _listed("failed", done.failed, style="red", limit=None)
    yield from _listed("no vectors", done.unembedded, style="red", limit=None)
    yield from _listed("warning", done.warnings, style="yellow")
    chunks = f"{count(done.embedded, 'chunk')} embedded, {done.reused:,} reused"
    yield Line.of((f"{chunks}; {done.duration_s:.2f} s", "dim"))
    yield from notes(done.note)


def _listed(name: str, pairs: Sequence[tuple[str, str]], *, style: str, limit: int | None = _SHOWN) -> Lines:
    """One line a file, of long lists the first ones."""
    for path, reason in pairs[:limit]:
        yield Line.of(f"  {name}: ", (clean(path), style), f" ({clean(reason)})" if reason else "")
    if limit is not None and len(pairs) > limit:
        yield Line.of(f"  {name}: and {len(pairs) - limit} more; --json lists all")


def account(one: Account) -> Lines:
    """What `recall status` prints of one root."""
    status, covered = one.status, one.status.coverage
    yield Line.of((clean(status.root), "bold"), f" ({status.scope})")
    sum_ = f"{count(covered.topics, 'topic')} + {one.skipped} skipped + {one.failed} failed"
    yield Line.of(f"  {count(one.files, '.md file')} = {sum_}")
    if one.missing:
        yield Line.of((f"  {one.missing} unaccounted for: files changed meanwhile, or links lead to some twice", "red"))
    yield from _listed("skipped", status.report.skipped, style="dim", limit=None)
    yield from _listed("problem", sorted(status.problems.items()), style="red", limit=None)
    yield from _listed("warning", status.report.warnings, style="yellow", limit=None)
    yield Line.of(f"  vectors: {covered.embedded} of {count(covered.topics, 'topic')}")
    yield Line.of(f"  encoder: {clean(status.encoder) or 'none yet'}")
    yield Line.of(f"  derived data: {clean(status.folder)} ({status.bytes / 2**20:.1f} MiB)")
    since = f" since {_date(status.traced_since)}" if status.traced_since is not None else ""
    yield Line.of(f"  recalls traced: {status.traced:,}{since}")
    yield from notes(status.note)


def located(found: Located) -> Lines:
    """What `recall where` prints."""
    for line in describe(found):
        indent = len(line) - len(line.lstrip())
        yield Line.of(" " * indent + clean(line))


def topic(shown: Topic, front: Frontmatter) -> Lines:
    """What `recall show` prints: facts about the topic, its header as written, its body."""
    facts = {
        "file": clean(shown.file),
        "title": shown.title,
        "description": shown.description,
        "type": shown.type or "none",
        "scope": shown.scope,
        "modified": _date(shown.modified),
        "file changed": _date(shown.mtime),
        "entries": str(len(parse_entries(shown.body))),
        "links": ", ".join(shown.links) or "none",
    }
    yield Line.of((clean(shown.id), "bold cyan"))
    yield from _table(facts)
    stated = {f"header {key}": joined(value) for key, value in front.fields.items() if joined(value)}
    stated |= {f"header metadata.{key}": value for key, value in front.metadata.items()}
    yield from _table(stated)
    yield Line()
    yield Line.of(visible(shown.body))


def _table(facts: Mapping[str, str]) -> Lines:
    for name, value in facts.items():
        yield Line.of((f"  {clean(name)}: ", "dim"), clean(value))


def _date(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):
        return "unknown"


# --- eval, demo


def evaluation(done: Evaluation, *, ranking: str, seconds: float) -> Lines:
    """What `recall eval` prints: one row a kind of question, the last for all."""
    from recall.apps.evaluate import injection_stats
    from recall.apps.metrics import NAMES, by_kind, measure

    rows = [("kind", "queries", *NAMES)]
    for kind, judged in (*by_kind(done.judged).items(), ("all", done.judged)):
        rows.append((clean(kind), str(len(judged)), *map(_figure, measure(judged).values())))
    yield from _aligned(rows)
    if done.injected:
        stats = injection_stats(done.injected)
        yield Line.of(", ".join(f"{name} {_figure(value)}" for name, value in stats.items()))
    floor = "no floor" if done.floor is None else f"floor {done.floor:g}"
    yield Line.of((f"{ranking}, {floor}; {count(done.topics, 'topic')}; {seconds:.1f} s", "dim"))
    if done.unknown:
        some = ", ".join(done.unknown[:_SHOWN])
        yield from notes(f"{count(len(done.unknown), 'relevant id')} without a topic: {some}")


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if value < 10 else f"{value:,.0f}"  # shares, or tokens


def _aligned(rows: Sequence[Sequence[str]]) -> Lines:
    """Columns under their headings, the first to the left, the others to the right."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        cells = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        first, *others = zip(row, cells, strict=True)
        line = first[0] + first[1] + "".join(f"  {space}{cell}" for cell, space in others)
        yield Line.of((line, "bold" if number in {0, len(rows) - 1} else ""))


def example_indexed(done: SyncReport, *, folder: Path | None) -> Lines:
    """What `recall demo` prints before its questions."""
    place = f"; they lie in {clean(folder)}" if folder else ""
    yield Line.of(
        f"{count(len(done.added), 'example memory', 'example memories')} indexed in ", _ms(done.duration_s), place
    )


def answer(given: Answer) -> Lines:
    """What `recall demo` prints of one question."""
    mark = ("ok   ", "green") if given.is_right else ("WRONG", "bold red")
    state = "just opened, the model is not loaded" if given.is_cold else given.question.about
    yield Line.of(mark, " ", (given.question.text, "bold"), (f"  ({state})", "dim"))
    for call, delivery in (("first()", given.turn.first), ("on_tool_result()", given.turn.later)):
        if delivery is not None:
            yield Line.of("    ", _delivery(call, delivery))
    if not given.turn.deliveries:
        reason = "" if given.question.expected is None else f", expected {given.question.expected}"
        yield Line.of(f"      {NOTHING_FITS}{reason} ({_ms(given.turn.end.latency_s)})")
    if not given.is_right and given.turn.deliveries:
        yield Line.of(
            (f"      found {given.found or 'nothing'}, expected {given.question.expected or 'nothing'}", "red")
        )


def summary(answers: Sequence[Answer]) -> Line:
    """The last line of `recall demo`."""
    right = sum(given.is_right for given in answers)
    firsts = [given.turn.first.latency_s for given in answers if given.turn.first is not None]
    from recall.apps.demo import BUDGET_S

    in_time = sum(seconds <= BUDGET_S for seconds in firsts)
    timed = f"{in_time} of {count(len(firsts), 'first delivery', 'first deliveries')} within {BUDGET_S * 1000:.0f} ms"
    return Line.of((f"{right} of {len(answers)} questions answered rightly; {timed}", "bold"))


def topics(listed: Sequence[Topic]) -> Lines:
    """What `recall list` prints."""
    for one in listed:
        about = clean(one.description or one.title)[:_LISTED]
        kind = "superseded" if one.superseded_by else one.type or ""
        yield Line.of((clean(one.id), "bold cyan"), (f"  {kind:<10}  " if kind else "  ", "dim"), about)
    yield Line.of((count(len(listed), "topic"), "dim"))


def stored(listed: Sequence[Stored]) -> Lines:
    """What `recall list --entries` prints."""
    for one in listed:
        lines = str(one.first) if one.first == one.last else f"{one.first}-{one.last}"
        yield Line.of((clean(one.id), "bold cyan"), (f"  {lines}  ", "dim"), clean(one.text)[:_LISTED])
    yield Line.of((count(len(listed), "entry", "entries"), "dim"))
