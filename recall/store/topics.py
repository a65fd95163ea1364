"""One memory file as a value: Topic and its Entries.

Reading a folder is the business of `store.scan`, header text that of `store.frontmatter`. Everything here is a pure
function of text: `parse_topic` never raises, whatever the file holds.

Sources: qwen.md sections 3 and 7, DESIGN section 4.2-4.3, deviations V1, V9, V10, V20, data-oddities.md.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path, PurePosixPath

from recall.store.frontmatter import JS_SPACE, Frontmatter, parse
from recall.store.frontmatter import js_trim as js_trim  # noqa: PLC0414 - part of this module's surface
from recall.text.patterns import pattern

PLACEHOLDER = "_No entries yet._"  # what qwen-code writes into a topic without entries


class Scope(StrEnum):
    """Whose memory a topic belongs to."""

    PROJECT = "project"
    USER = "user"


class MemoryType(StrEnum):
    """The four kinds of memory that the founding documents know."""

    USER = "user"
    FEEDBACK = "feedback"
    PROJECT = "project"
    REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Entry:
    """One remembered thing inside a topic.

    Attributes:
        summary: the fact itself, on one line when the topic is in entry form; otherwise the whole body.
        why: the reason behind it, None when not stated.
        how_to_apply: when and how to use it, None when not stated.
    """

    summary: str
    why: str | None = None
    how_to_apply: str | None = None


@dataclass(frozen=True, slots=True)
class Topic:
    """One memory file, parsed leniently; nothing of the body is lost.

    Attributes:
        scope: project or user memory.
        path: position below the memory root, with `/`.
        title: the header's name, else its title, else its type, else the file stem.
        description: one sentence that says when the memory matters; "" when there is none.
        type: one of the four kinds, None when the file names none of them.
        body: text after the header, trimmed, with LF line ends.
        mtime: modification time of the file, seconds since the epoch.
        modified: the date that the header states, else mtime; seconds since the epoch.
        file: the file itself, absolute.
        links: targets of [[wiki links]] in the body, in order, each once.
        superseded_by: path of the topic that says by now what holds instead; "" while this one holds.
        superseded_on: the date since when, as the header has it; "" when it has none.
    """

    scope: Scope
    path: str
    title: str
    description: str
    type: MemoryType | None
    body: str
    mtime: float
    modified: float
    file: Path
    links: tuple[str, ...] = ()
    superseded_by: str = ""
    superseded_on: str = ""

    @property
    def id(self) -> str:
        """The public name: the path, prefixed by `user:` in the user scope (deviations V20)."""
        return self.path if self.scope is Scope.PROJECT else f"{self.scope}:{self.path}"


# --- a file as a topic

_DATE_KEYS = ("modified", "date", "updated", "last_updated", "lastUpdated", "last_modified", "updated_at")
_DATE = pattern(
    r"(?<!\d)(?P<year>\d{4})[-/.年](?P<month>\d{1,2})[-/.月](?P<day>\d{1,2})(?!\d)日?"
    r"(?:\D{0,12}?(?P<hour>\d{1,2}):(?P<minute>\d{2}))?"
)
_DATE_IN_NAME = pattern(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
_YEARS = range(1990, 2201)  # anything else is a typing error or no date at all
_TYPE_PREFIX = pattern(r"(user|feedback|project|reference)[ _.-]", re.IGNORECASE)


def parse_topic(text: str, *, path: str, scope: Scope, mtime: float, file: Path) -> Topic:
    """Read one memory file; whatever its header lacks is found elsewhere or left empty (deviations V1).

    Args:
        text: content of the file.
        path: position below the memory root, with `/`.
        scope: whose memory the file belongs to.
        mtime: modification time of the file, seconds since the epoch.
        file: the file itself, absolute.
    """
    return topic_of(parse(text), path=path, scope=scope, mtime=mtime, file=file)


def topic_of(front: Frontmatter, *, path: str, scope: Scope, mtime: float, file: Path) -> Topic:
    """The same as `parse_topic`, of a text whose header has been parsed."""
    stated = _stated_type(front)
    title = front.first("name") or front.first("title") or stated or PurePosixPath(path).stem
    body = body_of(front)
    return Topic(
        scope=scope,
        path=path,
        title=_LINES.sub(" ", title),
        description=front.first("description"),
        type=_memory_type(front, path),
        body=body,
        mtime=mtime,
        modified=_modified(front, path, mtime),
        file=file,
        links=wiki_links(body),
        superseded_by=front.first("superseded_by"),
        superseded_on=front.first("superseded_on"),
    )


def body_of(front: Frontmatter) -> str:
    """The text of a topic, trimmed, with LF; words that stand in the header without being a field belong to it."""
    is_text = front.has_header and not front.fields and front.header.strip(JS_SPACE + "-")
    above = front.header if is_text else front.preamble
    body = js_trim(front.body)
    whole = js_trim(f"{js_trim(above)}\n\n{body}") if above else body
    return whole.replace("\r\n", "\n") if "\n" in whole else whole.replace("\r", "\n")


def _type(word: str) -> MemoryType | None:
    """The kind that `word` names; case and a comment behind it do not matter."""
    try:
        return MemoryType(js_trim(word.split("#", maxsplit=1)[0]).lower())
    except ValueError:
        return None


def _stated_type(front: Frontmatter) -> MemoryType | None:
    return _type(front.first("type")) or _type(front.metadata.get("type", ""))


def _memory_type(front: Frontmatter, path: str) -> MemoryType | None:
    """The stated kind; where the header states none at all, the one that file or folder name suggests."""
    if front.first("type") or front.metadata.get("type"):
        return _stated_type(front)
    pure = PurePosixPath(path)
    prefix = _TYPE_PREFIX.match(pure.name)
    folders = (_type(folder) for folder in reversed(pure.parts[:-1]))
    return _type(prefix[1]) if prefix else next((kind for kind in folders if kind), None)


def _modified(front: Frontmatter, path: str, mtime: float) -> float:
    stated = [front.metadata.get(key, "") for key in _DATE_KEYS] + [front.first(key) for key in _DATE_KEYS]
    named = _DATE_IN_NAME.findall(PurePosixPath(path).name)
    times = (_timestamp(text) for text in [*stated, *named] if text)
    return next((time for time in times if time is not None), mtime)


def _timestamp(text: str) -> float | None:
    """Seconds since the epoch of a date, or of a date and time, in UTC where no zone is given; None for other text."""
    moment: datetime | None
    try:
        moment = datetime.fromisoformat(js_trim(text))
    except ValueError:
        moment = _loose_date(js_trim(text))
    if moment is None or moment.year not in _YEARS:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _loose_date(text: str) -> datetime | None:
    """A date that is written with slashes, without leading zeros, with a weekday before the time or 年月日."""
    match = _DATE.match(text)
    if match is None:
        return None
    year, month, day, hour, minute = (int(part or 0) for part in match.groups())
    try:
        return datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        return None


# --- links

_CODE = pattern(  # a fence that is never closed hides nothing; marks have a longest length to keep the search linear
    r"^[ \t]*(?P<fence>`{3,12}(?=[^`\n]*\n)|~{3,12}(?!~))[^\n]*\n(?:.*?\n)??[ \t]*(?P=fence)[`~]*[ \t]*$"
    r"|(?<!`)(?P<ticks>`{1,8})(?!`)[^\n]*?(?<!`)(?P=ticks)(?!`)",
    re.DOTALL | re.MULTILINE,
)
_LINK = pattern(r"\[\[([^\[\]|#\n]+)(?:#[^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]")


def wiki_links(body: str) -> tuple[str, ...]:
    """Targets of `[[target]]`, `[[target|alias]]` and `[[target#part]]` outside code, in order, each once."""
    if "[[" not in body:
        return ()
    targets = (js_trim(match[1].rstrip("\\")) for match in _LINK.finditer(_CODE.sub("\n", body)))
    return tuple(dict.fromkeys(target for target in targets if target and not target.startswith("-")))


# --- entries

_SPACES = pattern(f"[{JS_SPACE}]+")
_LINES = pattern(r"\r\n|[\n\r]")
_WHY = r"why|原因|为什么|為什麼|理由|왜|이유|なぜ"
_HOW = r"how[ _]to[ _]apply|如何应用|如何應用|应用|應用|适用|適用|적용(?: 방법)?"
_FIELD = pattern(
    rf"(?P<bold>\*\*)?(?:(?P<why>{_WHY})|(?:{_HOW}))(?P<closed>\*\*)?[:：](?P<value>.*)", re.IGNORECASE | re.DOTALL
)
_BULLET = pattern(rf"\A[-*][{JS_SPACE}]+")
_INDENTED_BULLET = pattern(r"[ \t]{2,}[-*][ \t]+")
_STRUCTURE = pattern(  # what a list of facts does not hold: headings, quotes, fences, tables, numbers, comments
    r"^[ \t]*(?:\#{2,6}(?:[ \t]|$)|>|```|~~~|\||<!--|={3,}[ \t]*$|\d{1,9}[.)][ \t]|\d{1,3}[、．])"
    r"|^[ \t]*[一二三四五六七八九十]{1,3}、|^[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+\|?[ \t]*$",
    re.MULTILINE,
)
_WRAPPED = 40  # characters from which on a line may have been broken for its length
_SECTION = pattern(r"(?:#[ \t].*|-{3,}|\*{3,}|_{3,})")  # a title or rule; above all text it cuts nothing in two


def parse_entries(body: str) -> list[Entry]:
    """Split a body into what is remembered, one entry a line with its Why and How to apply (qwen.md section 7).

    A body that is no list of facts - with sub-headings, quotes, fences, tables, numbered lists, or sentences that were
    broken over several lines - is one entry with the whole trimmed body as its summary (deviations V9); an empty body
    has none.
    """
    text = js_trim(body)
    lines = _LINES.split(text)
    if _is_document(lines):
        return [Entry(text)]
    entries: list[Entry] = []
    for line in lines:
        _take(line, entries)
    return entries


def entry_lines(text: str) -> list[tuple[int, int]]:
    """First and last line of each entry in a file, from 1, in the order of `parse_entries`."""
    front = parse(text)
    body = body_of(front)
    lines = _LINES.split(text)
    # The body is the end of the file, trimmed.
    last = len(_LINES.split(text.rstrip(JS_SPACE)))
    start = max(0, last - len(_LINES.split(body)))
    if not body:
        return []
    if _is_document(_LINES.split(body)):
        return [(start + 1, last)]
    found: list[tuple[int, int]] = []
    entries: list[Entry] = []
    for number, line in enumerate(lines[start:last], start + 1):
        count, newest = len(entries), entries[-1:]
        _take(line, entries)
        if len(entries) > count:
            found.append((number, number))
        elif entries[-1:] != newest:
            found[-1] = (found[-1][0], number)
    return found


def render_entries(entries: Sequence[Entry]) -> str:
    """The body that holds `entries`; a single entry that is a whole document is written as it is."""
    return "\n\n".join("\n\n".join(_paragraphs(entry)) for entry in entries) or PLACEHOLDER


def search_text(entry: Entry) -> str:
    """Everything an entry says, in lower case, on one line when the entry is."""
    return " ".join(part for part in (entry.summary, entry.why, entry.how_to_apply) if part).lower()


def entry_ids(topic: Topic) -> list[str]:
    """Public names of the topic's entries: its id when it has exactly one, else `id:index` from 0 (deviations V20)."""
    count = len(parse_entries(topic.body))
    return [topic.id] if count == 1 else [f"{topic.id}:{index}" for index in range(count)]


def _is_document(lines: Sequence[str]) -> bool:
    text = "\n".join(lines)
    if _STRUCTURE.search(text):
        return True
    started = False
    for line in map(js_trim, lines):
        section = _SECTION.fullmatch(line) is not None
        if section and started:
            return True
        started = started or (bool(line) and not section)
    return any(_goes_on(line, following) for line, following in itertools.pairwise(lines))


def _goes_on(line: str, following: str) -> bool:
    """Whether a sentence was broken over two lines: the first is long and has no end, the second begins small."""
    above, text = js_trim(line), js_trim(following)
    is_open = len(above) >= _WRAPPED and (above[-1].isalnum() or above[-1] in ",-–—(/`)'\"")
    return is_open and text[:1].islower() and _FIELD.fullmatch(text) is None


def _take(line: str, entries: list[Entry]) -> None:
    """Add what `line` says to `entries`: a new entry, or a field of the last one."""
    text = js_trim(line)
    if not text or text == PLACEHOLDER or text.startswith("# "):
        return
    bullet = _INDENTED_BULLET.match(line)
    field = _FIELD.fullmatch(js_trim(line[bullet.end() :]) if bullet else text)
    value = _field_value(field) if field else ""
    if not field or not value:
        entries.append(Entry(_one_line(_BULLET.sub("", text, count=1))))
    elif entries:
        entries[-1] = replace(entries[-1], **{"why" if field["why"] else "how_to_apply": value})


def _field_value(field: re.Match[str]) -> str:
    """The value without the asterisks that belong to the key (deviations V10)."""
    value = js_trim(field["value"])
    if field["bold"] and not field["closed"]:
        if value.startswith("**"):
            value = value[2:]
        elif value.endswith("**") and value.count("**") == 1:
            value = value[:-2]
    return _one_line(value)


def _paragraphs(entry: Entry) -> Iterator[str]:
    yield entry.summary
    if entry.why:
        yield f"Why: {entry.why}"
    if entry.how_to_apply:
        yield f"How to apply: {entry.how_to_apply}"


def _one_line(text: str) -> str:
    return js_trim(_SPACES.sub(" ", text))
