"""One line of an index: `- [title](file.md) — description`, at most 150 characters, its link always whole.

Hosts write such lines and differ in small things; so do people. A `Dialect` says how.

Sources: wave.md section 1 and W-CAP-08, qwen.md section 9, deviations V2 (code points), V15 (the link is never cut).
"""

import re
import unicodedata
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import quote

from recall.store.capacity import ADVISED_CHARS
from recall.store.index_links import line_of, read_target
from recall.store.topics import Topic
from recall.text.markup import one_line
from recall.text.patterns import pattern

_SEPARATOR: Final = " — "
_NO_ROOM: Final = 1  # a description of so few characters says nothing
_HIDDEN: Final = r"\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
_CONTROL: Final = r"\x00-\x1f\x7f-\x9f\u2028\u2029"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the lines of an index are written.

    Attributes:
        encoded: what is percent-encoded in a path; more is where the link would not lead back to its file.
        refused: what no path may hold; such a file gets no line.
        by_stem: the title is the file's name without `.md`; else it is the topic's title.
        names_type: the type stands in for a description that is missing.
        field_chars: how long title and description may be each.
        mark: what shows that something was cut off; "" for nothing.
        keeps_code: backticks in descriptions stay; else they become quotes.
    """

    encoded: re.Pattern[str]
    refused: re.Pattern[str]
    by_stem: bool = False
    names_type: bool = False
    field_chars: int = ADVISED_CHARS
    mark: str = "…"
    keeps_code: bool = False


_LONE = pattern("[\ud800-\udfff]")

QWEN: Final = Dialect(pattern(r"[^A-Za-z0-9._~/-]"), _LONE, names_type=True, field_chars=120)
"""Of qwen-code, which makes its index anew each time."""
WAVE: Final = Dialect(
    pattern(rf"[`<>{_HIDDEN}]"), pattern(rf"[\[\](){_CONTROL}\ud800-\udfff]"), by_stem=True, mark="", keeps_code=True
)
"""Of Wave, which makes an index only where there is none."""
CURATED: Final = Dialect(pattern(rf"[\[\]()`<>\\\s{_CONTROL}{_HIDDEN}]"), _LONE)
"""Of a line that joins those which people and agents wrote."""


def topic_line(topic: Topic, dialect: Dialect, *, title: str = "", marker: str = "- ") -> str | None:
    """The line of a topic; None where no safe link can be made.

    Args:
        topic: as it is now.
        dialect: how the line is written.
        title: another title than the topic's own.
        marker: what the line begins with.
    """
    described = topic.description or (topic.type if dialect.names_type and topic.type else "")
    return index_line(title or title_of(topic, dialect), topic.path, described, dialect=dialect, marker=marker)


def title_of(topic: Topic, dialect: Dialect) -> str:
    """What stands in the brackets of a topic's line; a type says less than the name of the file."""
    is_type = topic.title == topic.type and not dialect.names_type
    return PurePosixPath(topic.path).stem if dialect.by_stem or is_type else topic.title


def index_line(
    title: str, path: str, description: str, *, dialect: Dialect = CURATED, marker: str = "- "
) -> str | None:
    """The line of a file in the index, without its end.

    It has at most 150 characters: the description gives way to the link, then the title. A link that is longer than
    that by its target alone stays whole and makes the line longer (deviations V15).

    Args:
        title: anything; cleaned and cut.
        path: the file, relative to the memory folder, with `/`.
        description: anything; cleaned and cut; "" for the link alone.
        dialect: how the host writes it.
        marker: what the line begins with.

    Returns:
        The line; None for a path that leaves the folder, is not in its shortest form, has another ending than `.md`, or
        cannot be linked.
    """
    written = written_target(path, dialect)
    if written is None:
        return None
    line = ""
    title = _title(title) or _title(PurePosixPath(path).stem)
    for name in (title, _BRACKETS.sub("", title), ""):  # brackets may make another link of it
        line = _line(name or "…", written, description, dialect, marker)
        read = line_of(line)
        if read.leads and read.links[0].target == path:
            break
    return line


def written_target(path: str, dialect: Dialect) -> str | None:
    """A path as the target of a link from which every reader takes that path; None where there is none."""
    if not path.endswith(".md") or path.startswith(("/", "../")) or dialect.refused.search(path):
        return None
    ways = (dialect.encoded.sub(lambda match: quote(match[0], safe=""), path), quote(path))
    return next((way for way in ways if read_target(way) == path), None)


_BRACKETS = pattern(r"[\[\]]+")


def _line(title: str, written: str, description: str, dialect: Dialect, marker: str) -> str:
    room = ADVISED_CHARS - len(marker) - len(f"[]({written})")
    name = _cut(title, min(dialect.field_chars, max(room, 1)), dialect.mark)
    described = _clean(description) if dialect.keeps_code else _clean(description).replace("`", "'")
    room -= len(name) + len(_SEPARATOR)
    link = f"{marker}[{name}]({written})"
    if not described or room <= _NO_ROOM:
        return link
    described = _cut(described, dialect.field_chars, dialect.mark)
    return f"{link}{_SEPARATOR}{_cut(described, room, dialect.mark)}"


def _title(text: str) -> str:
    return _clean(text).replace("`", "'").rstrip("\\ ")


def _clean(text: str) -> str:
    """One line without anything invisible that opens no link of its own."""
    return " ".join(one_line(text).split()).replace("](", "] (")


def _cut(text: str, chars: int, mark: str) -> str:
    """At most so many characters of a text, never half of what is seen as one."""
    if len(text) <= chars:
        return text
    end = max(chars - len(mark), 0)
    while end and _extends(text[end]):
        end -= 1
    return text[:end].rstrip() + mark if mark else text[:end]


def _extends(char: str) -> bool:
    """Whether a character belongs to the one before it: an accent, the style or skin of an emoji."""
    return unicodedata.combining(char) > 0 or "\ufe00" <= char <= "\ufe0f" or "🏻" <= char <= "🏿"
