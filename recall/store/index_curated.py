"""The index that people and agents keep: only the lines of topics that were written or deleted are touched.

Sources: DESIGN section 4.4, deviations V22 (exact targets), data-oddities.md 28 to 41.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from recall.store.index_lines import CURATED, Dialect, title_of, topic_line, written_target
from recall.store.index_links import Line, Link, lines_of, marker_of
from recall.store.topics import Topic

_BOM: Final = "\ufeff"


class Put(NamedTuple):
    """A topic that was written.

    Attributes:
        topic: as it is now.
        old: as it was, perhaps under another path; None when it is new.
    """

    topic: Topic
    old: Topic | None = None

    @property
    def path(self) -> str:
        """Where it was, or is when it is new."""
        return (self.old or self.topic).path

    @property
    def is_renamed(self) -> bool:
        """Whether it has another path now."""
        return self.path != self.topic.path

    @property
    def is_changed(self) -> bool:
        """Whether its line has to say something else, not counting where it leads."""
        old = self.old or self.topic
        return (old.title, old.description) != (self.topic.title, self.topic.description)


def curated(old_text: str, *, put: Iterable[Put] = (), gone: Iterable[str] = (), dialect: Dialect = CURATED) -> str:
    r"""The index with the lines of some topics brought up to date and everything else as it is, byte for byte.

    A line is a topic's own when it begins with the link to exactly this file. Of a deleted topic it goes; of one whose
    title or description changed it is written anew, behind its marker and with its hand-written title where only the
    description changed; of one that only moved, the target alone changes. A link among other words or in a row of links
    is led to the new place, or becomes the plain words that it was. A new topic, and a changed one that has no link
    yet, gets a line behind the last line of the index, and behind what is indented below that; where there is none, at
    the end. A new topic that has a link already - an agent wrote it first - gets no other.

    Args:
        old_text: MEMORY.md as it is, from `read_index`.
        put: topics that were written.
        gone: paths of topics that were deleted.
        dialect: how lines are written.
    """
    changes = {change.path: change for change in put}
    dropped = set(gone) - changes.keys() - {change.topic.path for change in changes.values()}
    mark = _BOM if old_text.startswith(_BOM) else ""
    lines = lines_of(old_text.removeprefix(_BOM))
    kept = [Line(text, line.leads) for line in lines if (text := _kept(line, changes, dropped, dialect))]
    linked = {link.target for line in lines for link in line.links}
    missing = [
        line
        for change in changes.values()
        if not linked & {change.path, change.topic.path}
        and (change.old is None or change.is_changed or change.is_renamed)
        and (line := topic_line(change.topic, dialect))
    ]
    end = "\r\n" if "\r\n" in old_text else "\n"
    texts = _joined(kept, missing, end)
    text = "".join(texts)
    if old_text and not old_text.endswith("\n") and text.endswith("\n"):  # the last line went, or another came
        text = text.removesuffix("\n").removesuffix("\r")
    return mark + text


def _kept(line: Line, changes: Mapping[str, Put], dropped: set[str], dialect: Dialect) -> str:
    """What becomes of a line; "" when it goes."""
    if line.owner in dropped:
        return ""
    if line.owner in changes and (text := _anew(line, changes[line.owner], dialect)):
        return text
    text = line.text
    for link in reversed(line.links):
        if link.target in dropped:
            text = text[: link.start] + link.title + text[link.end :]
        elif link.target in changes and changes[link.target].is_renamed:
            text = _led(text, link, changes[link.target].topic.path, dialect)
    return text


def _anew(line: Line, change: Put, dialect: Dialect) -> str:
    """The line of a topic that changed; "" when what it says still fits."""
    old, topic, link = change.old, change.topic, line.links[0]
    is_ours = old is not None and line.text.strip() == topic_line(old, dialect)
    if old is None or not (change.is_changed or (change.is_renamed and is_ours)):
        return ""
    title = link.title if title_of(old, dialect) == title_of(topic, dialect) else ""
    text = topic_line(topic, dialect, title=title, marker=marker_of(line.text))
    return text + line.text[len(line.text.rstrip("\r\n")) :] if text else ""


def _led(text: str, link: Link, path: str, dialect: Dialect) -> str:
    """The line with the link leading to another file, whose ending a wiki link leaves out."""
    written = path.removesuffix(".md") if link.is_wiki else written_target(path, dialect)
    return text if written is None else text[: link.place.start] + written + text[link.place.stop :]


def _joined(kept: Sequence[Line], missing: Sequence[str], end: str) -> list[str]:
    """The texts of the lines with the missing ones behind the last line of the index."""
    texts = [line.text for line in kept]
    if not missing:
        return texts
    at = max((number for number, line in enumerate(kept, 1) if line.leads), default=0)
    while 0 < at < len(texts) and _is_indented(texts[at]):
        at += 1
    gap = [end] if not at and texts and texts[-1].strip() else []
    at = at or len(texts)
    if at and not texts[at - 1].endswith("\n"):
        texts[at - 1] += end
    return [*texts[:at], *gap, *(f"{line}{end}" for line in missing), *texts[at:]]


def _is_indented(text: str) -> bool:
    return text.startswith((" ", "\t")) and bool(text.strip())
