"""The index made from all topics, for hosts that own it (`generated`) and for folders that lack one (`build_missing`).

Sources: DESIGN sections 4.4 and 4.5, wave.md W-CAP-08, qwen.md section 9, deviations V4.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from recall.store.capacity import INDEX_CAPS, Caps, Size, size_of
from recall.store.index_lines import QWEN, WAVE, Dialect, topic_line
from recall.store.index_links import lines_of
from recall.store.scan import scan_key
from recall.store.topics import Topic
from recall.text.patterns import pattern

_NOTE: Final = "> Memories left out for lack of room, yet still recalled: {}"
_OURS = pattern(r"> (?:Memories left out for lack of room, yet still recalled: \d+\Z|WARNING: .*MEMORY\.md)")
_LIST_ITEM = pattern(r"[ \t]*(?:[-*+]|\d{1,9}[.)])")


def generated(topics: Iterable[Topic], old_text: str, *, caps: Caps = INDEX_CAPS, dialect: Dialect = QWEN) -> str:
    r"""The index of all topics, newest first, with what was written by hand into the old one.

    Lines without room are left out, and a note says how many (deviations V4). What people wrote stays: above the first
    line of the old index what stood there, all else below the new lines. Hand-written text that takes more than half of
    the room gives way to them and moves below.

    Args:
        topics: of the whole folder.
        old_text: MEMORY.md as it is; "" when there is none.
        caps: what the host reads of it.
        dialect: how the host writes lines.

    Returns:
        The text with \n and without a final line end; "" without topics and hand-written lines.
    """
    above, below = _handwritten(old_text)
    by_hand = "\n\n".join(part for part in (above, below) if part)
    size = size_of(by_hand)
    if any(found * 2 > cap for _, found, cap in size.measured(caps)):
        above, below = "", by_hand
    room = _room(caps, size if by_hand else None)
    lines = _listed(topics, dialect, room, noted=room)
    return "\n\n".join(part for part in (above, "\n".join(lines), below) if part)


def build_missing(topics: Iterable[Topic], *, caps: Caps = INDEX_CAPS) -> str:
    """The index for a folder that has topics and no MEMORY.md (W-CAP-08); "" when there is nothing to list.

    It is filled to seven tenths of what is read, so that there is room to go on writing.

    Args:
        topics: of the whole folder.
        caps: what the host reads of it.
    """
    return "".join(f"{line}\n" for line in _listed(topics, WAVE, caps.target, noted=caps))


def _listed(topics: Iterable[Topic], dialect: Dialect, caps: Caps, *, noted: Caps) -> list[str]:
    """The lines of the newest topics that fit, then the note of how many did not, for which more may have to go."""
    order = _newest_first(topics)
    lines: list[str] = []
    size = Size(0, 0, 0)
    for count, topic in enumerate(order):
        line = topic_line(topic, dialect)
        if line is None:
            continue
        if not _fits(larger := _plus(size, line), caps):
            return _with_note(lines, len(order) - count, size, noted)
        lines.append(line)
        size = larger
    return lines


def _with_note(lines: list[str], left_out: int, size: Size, caps: Caps) -> list[str]:
    while lines and not _fits(_plus(size, _NOTE.format(left_out)), caps):
        size = _plus(size, lines.pop(), sign=-1)
        left_out += 1
    return [*lines, _NOTE.format(left_out)]


def _plus(size: Size, line: str, *, sign: int = 1) -> Size:
    """The size with one line more, or less, and its end."""
    return Size(
        size.lines + sign,
        size.chars + sign * (len(line) + 1),
        size.bytes + sign * (len(line.encode("utf-8", "surrogatepass")) + 1),
    )


def _fits(size: Size, caps: Caps) -> bool:
    return all(found <= cap for _, found, cap in size.measured(caps))


def _room(caps: Caps, used: Size | None) -> Caps:
    """What hand-written text leaves, at least half; the last line has no end to count."""
    if used is None:
        return Caps(caps.lines, *(None if cap is None else cap + 1 for cap in (caps.chars, caps.bytes)))
    pairs = ((caps.lines, used.lines + 2), (caps.chars, used.chars + 3), (caps.bytes, used.bytes + 3))
    return Caps(*(None if cap is None else max(cap - taken, cap // 2) for cap, taken in pairs))


def _newest_first(topics: Iterable[Topic]) -> list[Topic]:
    """In the order of a scan."""
    ordered: list[Topic] = []
    for _, group in groupby(sorted(topics, key=lambda topic: -topic.mtime), key=lambda topic: topic.mtime):
        same = list(group)
        ordered += sorted(same, key=lambda topic: scan_key(topic.path)) if len(same) > 1 else same
    return ordered


def _handwritten(text: str) -> tuple[str, str]:
    """What people wrote above the first line of the index, and everything else of theirs."""
    parts: tuple[list[str], list[str]] = ([], [])
    part, follows_link = 0, False
    for line in lines_of(text.removeprefix("\ufeff")):
        written = line.text.rstrip("\r\n")
        if (line.leads and _LIST_ITEM.match(line.text)) or _OURS.match(written):
            part, follows_link = 1, True
        elif written.strip() or not follows_link:  # of the blank lines around a link, one set stays
            parts[part].append(written)
            follows_link = False
    above, below = ("\n".join(lines).strip("\n") for lines in parts)
    return above, below
