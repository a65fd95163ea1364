"""What is wrong with MEMORY.md, in words.

Sources: seed 001 (capacity governance), wave.md W-CAP-01 to -05, complaints.md 44, data-oddities.md 28 to 41.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from recall.quality.findings import Finding, Kind, Severity
from recall.quality.links import Fate, Judged, Orphans, dropped_targets
from recall.quality.reading import Contents
from recall.store.capacity import (
    ADVISED_CHARS,
    INDEX_CAPS,
    INDEX_CAPS_IN_BYTES,
    INDEX_NAME,
    goals,
    occupancy_of,
    overlong_lines,
)
from recall.store.index_file import IndexView, truncate
from recall.store.index_links import Line, lines_of, marker_of
from recall.store.plan import IndexMode
from recall.store.topics import js_trim
from recall.text import secrets

_NAMED: Final = 5
_MAKE: Final = "make it from the topics"
_GIVE_LINE: Final = "give it a line"
_BARE: Final = "leave the words without the link"


def index_findings(contents: Contents, links: Sequence[Judged], orphans: Orphans) -> Iterator[Finding]:
    """What is wrong with MEMORY.md, and which topics it leaves out.

    Args:
        contents: of the folder.
        links: of its MEMORY.md, judged.
        orphans: topics that no link leads to.
    """
    index, mode = contents.index, contents.folder.index
    if index.problem:
        yield _of_index(Kind.INDEX_UNREADABLE, Severity.ERROR, f"{index.problem}; no host can load it")
        return
    if not index.exists:
        if contents.standing and mode is not IndexMode.OFF:
            message = "there is none, so that a host that loads it at the start of a session knows of no topic"
            yield _of_index(Kind.INDEX_MISSING, Severity.NOTE, message, fix=_MAKE)
        return
    for sentence in index.repairs:
        yield _of_index(Kind.ENCODING, Severity.WARNING, sentence)
    yield from _size(index.text)
    lines = lines_of(index.text)
    repeated = repeated_lines(lines)
    yield from (_repeated(number, first) for number, first in repeated.items())
    yield from _linked_twice(lines, repeated)
    dropped = dropped_targets(links)
    yield from (finding for judged in links if (finding := _link(judged, mode, dropped)))
    if away := sum(judged.fate is Fate.AWAY for judged in links):
        message = (
            f"{away:,} of {len(links):,} links lead to nothing: perhaps a part of the folder is missing here, so that "
            "no line is taken away"
        )
        yield _of_index(Kind.DEAD_LINK, Severity.NOTE, message)
    if mode is not IndexMode.OFF:
        yield from _orphans(orphans)


def _of_index(kind: Kind, severity: Severity, message: str, *, line: int = 1, fix: str = "") -> Finding:
    return Finding(kind, severity, INDEX_NAME, line, message, fix)


# --- its size


def _size(text: str) -> Iterator[Finding]:
    above = text[: text.find(js_trim(text)[:1])].count("\n") if js_trim(text) else 0
    view, in_bytes = truncate(text), truncate(text, INDEX_CAPS_IN_BYTES)
    if view.truncated:
        yield _loss(view, above, "", Severity.ERROR)
    elif in_bytes.truncated:
        yield _loss(in_bytes, above, " by hosts that count bytes", Severity.WARNING)
    elif near := occupancy_of(text, INDEX_CAPS):
        message = (
            f"nearly full: {near.size:,} of {near.cap:,} {near.unit.word}; what comes beyond is lost to the model. "
            f"Compact it below {goals(INDEX_CAPS)}"
        )
        yield _of_index(Kind.INDEX_FULL, Severity.WARNING, message)
    if long := overlong_lines(text):
        numbers = ", ".join(map(str, long.shown)) + (f" and {long.more} more" if long.more else "")
        which = f"line {numbers} is" if long.count == 1 else f"lines {numbers} are"
        message = f"{which} longer than {ADVISED_CHARS} characters; move detail into the topic"
        yield _of_index(Kind.LONG_LINE, Severity.NOTE, message, line=long.shown[0])


def _loss(view: IndexView, above: int, whom: str, severity: Severity) -> Finding:
    """What is not loaded of an index that is too large."""
    if view.first_dropped_line is None:
        line, lost = 1, f"only the first {view.line1_cut_at:,} characters of line 1 are"
    else:
        line = view.first_dropped_line + above
        snippet = secrets.mask(view.snippet or "")
        lost = f"{view.dropped_lines:,} are not, from line {line} on, beginning with: {snippet}"
    message = (
        f"too large: of {view.total_lines:,} lines, {view.total_chars:,} characters and {view.total_bytes:,} bytes "
        f"not all are loaded{whom}: {lost}. Compact it below {goals(INDEX_CAPS)}"
    )
    return _of_index(Kind.INDEX_FULL, severity, message, line=line)


# --- its lines


def repeated_lines(lines: Sequence[Line]) -> dict[int, int]:
    """Lines of the index that say again what another one says, by their numbers, each with that of the first."""
    first: dict[str, int] = {}
    again: dict[int, int] = {}
    for number, line in enumerate(lines, 1):
        if line.leads and first.setdefault(line.text.strip(), number) != number:
            again[number] = first[line.text.strip()]
    return again


def _repeated(number: int, first: int) -> Finding:
    message = f"the same as line {first}"
    return _of_index(Kind.REPEATED_LINE, Severity.WARNING, message, line=number, fix="remove this line")


def _linked_twice(lines: Sequence[Line], repeated: Iterable[int]) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        is_entry = line.owner and marker_of(line.text)  # and no line on which a sentence goes on
        if is_entry and number not in repeated and first.setdefault(line.owner, number) != number:
            message = f"{line.owner} has a line already: {first[line.owner]}"
            yield _of_index(Kind.REPEATED_LINK, Severity.NOTE, message, line=number)


def _link(judged: Judged, mode: IndexMode, dropped: Collection[str]) -> Finding | None:
    """What is wrong with a link; where the index is made anew each time, what is written by hand is not mended."""
    target, topic = judged.link.target, judged.topic
    kind, severity, fix = Kind.DEAD_LINK, Severity.WARNING, ""
    if judged.fate is Fate.MOVED and topic:
        message = f"there is no {target}; it is likely {topic.path} now"
        fix = f"lead the link to {topic.path}" if judged.leads or mode is IndexMode.CURATED else ""
    elif judged.fate is Fate.GONE:
        message = f"there is no {target}"
        fix = "remove this line" if judged.leads else _BARE if mode is IndexMode.CURATED else ""
    elif judged.fate in {Fate.ELSEWHERE, Fate.AWAY}:
        message = f"there is no {target} in the memory folder"
    elif judged.fate is Fate.SUPERSEDED and topic:
        kind = Kind.SUPERSEDED_LINK
        message = f"{target} holds no more; see {topic.superseded_by}"
        fix = "remove this line" if judged.leads and target in dropped else ""
    elif judged.fate is Fate.OUTSIDE:
        kind, severity = Kind.OUTSIDE_LINK, Severity.NOTE
        message = f"{target} lies outside the memory folder; recall does not follow it"
    elif judged.fate is Fate.UNWRITTEN:
        kind, severity = Kind.WIKI_LINK, Severity.NOTE
        message = f"[[{judged.link.title}]] means no topic yet"
    else:
        return None
    return _of_index(kind, severity, message, line=judged.number, fix=fix)


def _orphans(orphans: Orphans) -> Iterator[Finding]:
    for topic in orphans.housed:
        message = f"has no line in {INDEX_NAME}, so that a host that loads only that does not know of it"
        yield Finding(Kind.ORPHAN, Severity.WARNING, topic.path, 1, message, _GIVE_LINE)
    if not orphans.homeless:
        return
    names = ", ".join(topic.path for topic in orphans.homeless[:_NAMED])
    more = len(orphans.homeless) - _NAMED
    message = (
        f"{len(orphans.homeless):,} topics have no line and get none, which would bring it above {goals(INDEX_CAPS)}; "
        "recall finds them all the same: "
        f"{names}{f' and {more:,} more' if more > 0 else ''}"
    )
    yield _of_index(Kind.ORPHAN, Severity.NOTE, message)
