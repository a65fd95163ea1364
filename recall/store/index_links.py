"""The links of an index file, as people, hosts and models write them.

Targets come percent-encoded, in angle brackets, with `./` in front, with `#part` or a title behind, with spaces and
brackets that Markdown does not allow. Here all of them become the path that is meant, so that a line is found by its
exact target and never by a part of it (deviations V22: `a.md` is not `ba.md`).

Sources: DESIGN section 4.4, data-oddities.md 28 to 41.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import unquote

from recall.text.patterns import pattern


class Link(NamedTuple):
    """A link to a file in or near the memory folder; a web address is none.

    Attributes:
        start: where it starts in its line.
        end: where it ends.
        title: its text.
        target: the path that is meant, with `/`, relative to the memory folder; `..` in front when it climbs out.
        place: where in the line the target is written, without brackets, title and `#part`.
        is_wiki: whether it is a `[[target]]`, which leaves `.md` out.
    """

    start: int
    end: int
    title: str
    target: str
    place: slice
    is_wiki: bool = False


class Line(NamedTuple):
    """One line of an index.

    Attributes:
        text: the line with its end.
        leads: whether it begins with a link to a Markdown file of the folder, as lines of an index do; the next line of
            a paragraph may do so too and is none.
        links: all its links; none in code and comments.
    """

    text: str
    leads: bool = False
    links: tuple[Link, ...] = ()

    @property
    def owner(self) -> str:
        """The file whose line this is; "" for a line of nobody, or of several files in a row."""
        if not self.leads:
            return ""
        first, *others = self.links
        is_row = others and _BETWEEN.fullmatch(self.text, first.end, others[0].start)
        return "" if is_row else first.target


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A link of the index.

    Attributes:
        line: its line, from 1.
        title: what stands in its brackets.
        target: the file that is meant, relative to the memory folder, decoded; `..` in front when it climbs out.
        description: what follows it, up to the next link.
        leads: whether the line begins with it; else it stands among other words.
    """

    line: int
    title: str
    target: str
    description: str
    leads: bool


def entries(text: str) -> list[IndexEntry]:
    """All links of an index to files, in order; web addresses, code and comments are left out."""
    found: list[IndexEntry] = []
    for number, line in enumerate(lines_of(text), 1):
        ends = (*(link.start for link in line.links[1:]), len(line.text))
        for at, link in enumerate(line.links):
            description = _SEPARATOR.sub("", line.text[link.end : ends[at]], count=1).strip().rstrip("~*_")
            found.append(IndexEntry(number, link.title, link.target, description, line.leads and at == 0))
    return found


# --- lines

_BETWEEN = pattern(r"[\s,;，、；·•&+/]*(?:and|和|与|及)?\s*")  # no dash or colon: those begin a description
_LINE = pattern(r"[^\n]*\n|[^\n]+")
_FENCE = pattern(r"[ \t]{0,3}(?P<mark>`{3,}(?=[^`]*\Z)|~{3,})")
_COMMENT: Final = ("<!--", "-->")
_MARKER = pattern(  # of a list, a number, a heading, a box to tick; then ornament such as ★, ** or ~~
    r"\ufeff?(?P<marker>[ \t]*(?:(?:[-*+]|\d{1,9}[.)]|\#{1,6})(?:[ \t]+|(?=\[)))?(?:\[[ xX]\][ \t]+)?)"
    r"[^\w\s\[\]<>|!`#-]*[ \t]*"
)
_SEPARATOR = pattern(r"\A[\s*~_`]*(?:(?:—|–|--?|:|：)(?!\S)\s*|[:：—]\s*)?")


def lines_of(text: str) -> list[Line]:
    r"""The lines of an index; only \n ends one, as when the index is loaded. Joined they are the text again."""
    texts = _LINE.findall(text)
    hidden = _hidden(texts)
    lines: list[Line] = []
    in_prose = False
    for at, written in enumerate(texts):
        line = Line(written) if at in hidden else line_of(written)
        if line.leads and in_prose and not marker_of(written).strip():
            line = line._replace(leads=False)  # a paragraph that goes on
        lines.append(line)
        in_prose = not line.leads and bool(written.strip())
    return lines


def _hidden(texts: Sequence[str]) -> set[int]:
    """Which lines lie in code fences and comments; one that is never closed hides nothing."""
    hidden: set[int] = set()
    opened, closing = 0, ""
    for at, text in enumerate(texts):
        if not closing:
            opened, closing = at, _opens(text)
        elif _closes(text, closing):
            hidden.update(range(opened, at + 1))
            closing = ""
    return hidden


def _opens(text: str) -> str:
    """What will end the fence or comment that begins in this line and goes on; "" for none."""
    if fence := _FENCE.match(text):
        return fence["mark"]
    begin, end = _COMMENT
    return end if begin in text and end not in text.rpartition(begin)[2] else ""


def _closes(text: str, closing: str) -> bool:
    if closing == _COMMENT[1]:
        return closing in text
    text = text.strip()
    return text.startswith(closing) and not text.strip(closing[0])


def marker_of(text: str) -> str:
    """What stands before the link of a line of the index, without ornament: `- `, `### `, `- [ ] `."""
    match = _MARKER.match(text)
    return match["marker"] if match else ""


def line_of(text: str) -> Line:
    """Reads one line by itself."""
    if "](" not in text and "[[" not in text:
        return Line(text)
    marker = _MARKER.match(text)
    first = marker.end() if marker else 0
    links = tuple(_links(text, first))
    leads = bool(links) and links[0].start == first and _is_inside(links[0].target)
    return Line(text, leads, links)


def _is_inside(target: str) -> bool:
    return target.endswith(".md") and not target.startswith(("../", "/"))


# --- links

_WIKI = pattern(r"\[\[(?P<target>[^\[\]|#\n]+)(?:#[^\[\]|\n]*)?(?:\|(?P<title>[^\[\]\n]*))?\]\](?!\()")
_ADDRESS = pattern(r"[A-Za-z][A-Za-z0-9+.-]+:|//|#")  # two letters at least: C: is a disk
_ANGLED = pattern(r"[ \t]*<(?P<target>[^<>\n]*)>[ \t]*(?:\"[^\"\n]*\"|'[^'\n]*')?[ \t]*\)")
_BALANCED = pattern(  # up to the next link at most, so that many open ones cost no more than few
    r"[ \t]*(?P<target>(?:[^()\]\n\\]|\\.|\](?!\()|\((?:[^()\n]|\([^()\n]*\))*+\))*+)\)"
)
_PLAIN = pattern(r"[ \t]*(?P<target>(?:[^)\]\n]|\](?!\())*+)\)")
_TITLE = pattern(r"(?<![ \t])[ \t]++(?:\"[^\"\n]*\"|'[^'\n]*')[ \t]*+\Z")
_ESCAPED = pattern(r"\\([!-/:-@\[-`{-~])")
_PART = pattern(r"(?<=\.md)#.*", re.DOTALL)


def _links(text: str, first: int) -> Iterator[Link]:
    """The links of a line, one `[title](target)` or `[[target]]` after the other.

    A title may hold brackets: a link at `first`, where a line of the index has its link, goes from there to the first
    `](`; any other begins at the last bracket before it.
    """
    position = 0
    wiki = _WIKI.search(text)
    while True:
        middle = text.find("](", position)
        if wiki and (middle < 0 or wiki.end() <= middle):
            yield _wiki_link(wiki)
            position = wiki.end()
            wiki = _WIKI.search(text, position)
            continue
        if middle < 0:
            return
        begin = first if position <= first < middle and text[first] == "[" else text.rfind("[", position, middle)
        position = middle + 2
        if begin >= 0 and (link := _link(text, begin, middle)):
            position = link.end
            if link.target and text[begin - 1 : begin] != "!":
                yield link
        if wiki and wiki.start() < position:
            wiki = _WIKI.search(text, position)


def _wiki_link(wiki: re.Match[str]) -> Link:
    written = wiki["target"].strip()
    target = posixpath.normpath(written if written.endswith(".md") else f"{written}.md")
    return Link(wiki.start(), wiki.end(), wiki["title"] or written, target, slice(*wiki.span("target")), is_wiki=True)


def _link(text: str, begin: int, middle: int) -> Link | None:
    """The link whose title starts at `begin` and whose target follows `middle`; None when it never ends."""
    start = middle + 2
    angled = _ANGLED.match(text, start)
    match = angled or _BALANCED.match(text, start) or _PLAIN.match(text, start)
    if match is None:
        return None
    written = match["target"] if angled else _TITLE.sub("", match["target"]).rstrip(" \t")
    written = _PART.sub("", written)
    place = slice(match.start("target"), match.start("target") + len(written))
    return Link(begin, match.end(), text[begin + 1 : middle].strip("*~ "), _meant(written), place)


def read_target(written: str) -> str:
    """The path that a reader takes from the target of a link; "" for a web address or nothing."""
    link = _link(f"[]({written})", 0, 1)
    return link.target if link and link.end == len(written) + 4 else ""


def _meant(written: str) -> str:
    if not written or _ADDRESS.match(written):
        return ""
    return posixpath.normpath(unquote(_ESCAPED.sub(r"\1", written)))
