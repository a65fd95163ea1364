"""How much of a memory file its readers see, and what to tell somebody who has just written too much.

The index is loaded up to so many lines and characters at the start of every session, a topic is read up to so many
bytes. What lies beyond is silently not seen, and since new lines are written at the end, the newest go first. Whoever
writes is therefore told as soon as a limit comes near.

Sources: seed 001 (capacity governance), wave.md sections 1 and W-CAP-01 to -06, -11, -12; DESIGN section 4.5.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from recall.errors import TopicError, UnsafePathError
from recall.store.files import confine, read_text
from recall.store.frontmatter import js_trim, parse

INDEX_NAME: Final = "MEMORY.md"
ADVISED_CHARS: Final = 150
"""How long a line of the index, and a description, should be: the one number that everybody is told (W-CAP-02)."""

_LONGEST_DESCRIPTION: Final = 300  # characters; more is told, with `ADVISED_CHARS` as the aim
_NAMED_LINES: Final = 5
_MAX_BYTES: Final = 32 << 20  # of a file that is read again after it was written
_WRITING_TOOLS: Final = frozenset({"Write", "Edit"})


class Unit(StrEnum):
    """What a limit counts."""

    LINES = "lines"
    CHARS = "chars"
    BYTES = "bytes"

    @property
    def word(self) -> str:
        """The unit in a sentence."""
        return "characters" if self is Unit.CHARS else str(self)


class Level(StrEnum):
    """How full a file is."""

    WARN = "warn"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Caps:
    """What is read of a file at most; None = no limit.

    Attributes:
        lines: how many lines.
        chars: how many characters (code points).
        bytes: how many bytes of UTF-8.
    """

    lines: int | None
    chars: int | None = None
    bytes: int | None = None

    @property
    def target(self) -> "Caps":
        """What to come down to once a limit is near: seven tenths of each."""
        return Caps(*(None if cap is None else cap * 7 // 10 for cap in (self.lines, self.chars, self.bytes)))


INDEX_CAPS: Final = Caps(lines=200, chars=25_000)
"""Of the index in hosts that count characters (seed 001, qwen-code)."""
INDEX_CAPS_IN_BYTES: Final = Caps(lines=200, chars=25_000, bytes=25_000)
"""Of the index in hosts that count bytes (seed 004): a Chinese index is full at a third of the characters."""
TOPIC_CAPS: Final = Caps(lines=200, bytes=4096)
"""Of a topic file, its header included."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a text is, without the white space around it."""

    lines: int
    chars: int
    bytes: int

    def measured(self, caps: Caps) -> "list[tuple[Unit, int, int]]":
        """Unit, size and limit for each limit there is; characters and bytes before lines."""
        found = (
            (Unit.CHARS, self.chars, caps.chars),
            (Unit.BYTES, self.bytes, caps.bytes),
            (Unit.LINES, self.lines, caps.lines),
        )
        return [(unit, size, cap) for unit, size, cap in found if cap is not None]


def size_of(text: str) -> Size:
    """How large `text` is; what surrounds it is cut off as JavaScript does."""
    text = js_trim(text)
    return Size(text.count("\n") + 1, len(text), len(text.encode("utf-8", "surrogatepass")))


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How full a file is in the unit that is worst off.

    Attributes:
        level: near the limit, or beyond it.
        unit: what is counted.
        size: how much there is.
        cap: how much is read.
        target: what to come down to.
    """

    level: Level
    unit: Unit
    size: int
    cap: int
    target: int


@dataclass(frozen=True, slots=True)
class Overlong:
    """Lines of the index that are longer than advised.

    Attributes:
        count: how many.
        shown: numbers of the first of them, from 1, as the file counts.
    """

    count: int
    shown: tuple[int, ...]

    @property
    def more(self) -> int:
        """How many are not in `shown`."""
        return self.count - len(self.shown)


@dataclass(frozen=True, slots=True)
class Reminder:
    """What to append to the result of a tool that wrote a memory file; the result stays a success.

    Attributes:
        text: all of it in words.
        occupancy: None while there is room.
        overlong: None without such lines; for the index only.
        description: length of the description in characters when it needs attention, 0 when there is none, else None;
            for topics only.
    """

    text: str
    occupancy: Occupancy | None = None
    overlong: Overlong | None = None
    description: int | None = None


def write_reminder(
    tool: str, path: object, *, ok: bool, memory_dir: Path, workdir: Path, enabled: bool
) -> Reminder | None:
    """What to tell after a tool wrote into the memory folder; None for nothing (W-CAP-03 to -06, -11, -12).

    The file is judged as it lies on the disk. One outside the folder is not even opened.

    Args:
        tool: name of the tool, as the host gives it.
        path: the file as the tool was given it; anything but a string is no file.
        ok: whether the tool succeeded.
        memory_dir: the memory folder.
        workdir: what a relative path starts from.
        enabled: whether automatic memory is switched on.
    """
    if not ok or not enabled or tool not in _WRITING_TOOLS or not isinstance(path, str) or not path.endswith(".md"):
        return None
    try:
        file = confine(workdir / path, memory_dir)
        text, _ = read_text(file, max_bytes=_MAX_BYTES)
    except (UnsafePathError, TopicError, OSError):
        return None
    return index_reminder(text) if Path(path).name == INDEX_NAME else topic_reminder(text)


def index_reminder(text: str, caps: Caps = INDEX_CAPS) -> Reminder | None:
    """What to tell whoever wrote this index; None for nothing.

    Args:
        text: the index as it lies on the disk.
        caps: what the host reads of it.
    """
    occupancy, overlong = occupancy_of(text, caps), overlong_lines(text)
    parts = [_full_index(occupancy, caps) if occupancy else "", _too_long(overlong) if overlong else ""]
    return _reminder(parts, occupancy=occupancy, overlong=overlong)


def topic_reminder(text: str) -> Reminder | None:
    """What to tell whoever wrote this topic file; None for nothing."""
    occupancy, description = occupancy_of(text, TOPIC_CAPS), _doubtful_description(text)
    parts = [_full_topic(occupancy) if occupancy else "", "" if description is None else _describe(description)]
    return _reminder(parts, occupancy=occupancy, description=description)


def occupancy_of(text: str, caps: Caps) -> Occupancy | None:
    """How full the file is; None below four fifths of every limit."""
    unit, size, cap = max(size_of(text).measured(caps), key=lambda measured: measured[1] / measured[2])
    if size * 5 < cap * 4:
        return None
    return Occupancy(Level.OVER if size > cap else Level.WARN, unit, size, cap, cap * 7 // 10)


def overlong_lines(text: str) -> Overlong | None:
    """Lines that are longer than advised, headings too; None without any."""
    trimmed = js_trim(text)
    first = text.count("\n", 0, text.find(trimmed)) + 1
    lines = enumerate(trimmed.split("\n"), first)
    numbers = [number for number, line in lines if len(line.removesuffix("\r")) > ADVISED_CHARS]
    return Overlong(len(numbers), tuple(numbers[:_NAMED_LINES])) if numbers else None


def _doubtful_description(text: str) -> int | None:
    """Length of a description that is too long, 0 for none that can be used (a list cannot), None for a good one."""
    stated = parse(text).fields.get("description", "")
    length = len(js_trim(stated)) if isinstance(stated, str) else 0
    return length if not length or length > _LONGEST_DESCRIPTION else None


# --- in words


def _reminder(
    parts: list[str],
    *,
    occupancy: Occupancy | None,
    overlong: Overlong | None = None,
    description: int | None = None,
) -> Reminder | None:
    text = "\n".join(part for part in parts if part)
    return Reminder(text, occupancy, overlong, description) if text else None


def _full_index(found: Occupancy, caps: Caps) -> str:
    goal = f"Bring it below {goals(caps)}: merge lines that belong together, move detail into topic files."
    if found.level is Level.WARN:
        return f"{INDEX_NAME} is nearly full: {_share(found)}. {goal}"
    return (
        f"ERROR: the write succeeded, but {INDEX_NAME} is too large: {_share(found)}. What is beyond the limit is "
        "dropped without a word each time the index is loaded; its last entries are invisible already. Rewrite it now. "
        f"{goal}"
    )


def _full_topic(found: Occupancy) -> str:
    goal = (
        f"Bring it below {found.target} {found.unit.word}: one matter per file, summarise instead of appending, put "
        "different matters into different files."
    )
    if found.level is Level.WARN:
        return f"This memory file is nearly full: {_share(found)}. {goal}"
    return (
        f"ERROR: the write succeeded, but this memory file is too large: {_share(found)}. What is beyond the limit is "
        f"invisible to whoever reads it. Rewrite it now. {goal}"
    )


def _share(found: Occupancy) -> str:
    return f"{found.size} of {found.cap} {found.unit.word} ({found.size * 100 // found.cap} %)"


def goals(caps: Caps) -> str:
    """What to come down to, in words: `140 lines and 17500 characters`."""
    target = caps.target
    wanted = ((target.lines, Unit.LINES), (target.chars, Unit.CHARS), (target.bytes, Unit.BYTES))
    return " and ".join(f"{cap} {unit.word}" for cap, unit in wanted if cap is not None)


def _too_long(found: Overlong) -> str:
    numbers = ", ".join(map(str, found.shown)) + (f" and {found.more} more" if found.more else "")
    which = f"Line {numbers} of {INDEX_NAME} is" if found.count == 1 else f"Lines {numbers} of {INDEX_NAME} are"
    return f"{which} longer than {ADVISED_CHARS} characters; keep entries to one short line, their detail in the topic."


def _describe(length: int) -> str:
    if not length:
        return (
            "This memory file has no description. Add `description:` to its header: one sentence of about "
            f"{ADVISED_CHARS} characters that says when the memory matters; the index is made from it."
        )
    return (
        f"The description of this memory file has {length} characters; shorten it to about {ADVISED_CHARS}, so that it "
        "fits a line of the index."
    )
