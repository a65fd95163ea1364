"""New texts of memory files, made from old ones by structure: what is not meant to change stays byte for byte."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from recall.errors import TopicError
from recall.store.frontmatter import parse
from recall.store.topics import Entry, body_of, js_trim, parse_entries, render_entries
from recall.text.patterns import pattern

_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16 and UTF-32
_TITLE = pattern(r"[ \t]*(?:#[ \t][^\r\n]*|-{3,}|\*{3,}|_{3,})?[ \t]*(?:\r\n|\n|\r|\Z)")
_PLAIN = pattern(r"""(?![\s\-?:,\[\]{}#&*!|>'"%@`~=<])(?!.*(?::\s|\s#|:$)).*\S""")
_YAML_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null"})


@dataclass(frozen=True, slots=True)
class Source:
    """A memory file as a text that can be edited and written back.

    Attributes:
        path: place below the memory root, for messages.
        text: what it holds; bytes that are no UTF-8 are kept as lone surrogates.
    """

    path: str
    text: str

    @classmethod
    def of(cls, path: str, data: bytes) -> "Source":
        """The file that holds these bytes.

        Raises:
            TopicError: it is in an encoding that cannot be edited without changing all of it.
        """
        if data.startswith(_WIDE_MARKS):
            raise TopicError("is not UTF-8; save it as UTF-8, then it can be changed", path=path)
        return cls(path, data.decode("utf-8", "surrogateescape"))

    @property
    def data(self) -> bytes:
        """The bytes to write."""
        return self.text.encode("utf-8", "surrogateescape")

    @property
    def entries(self) -> list[Entry]:
        """What the body remembers."""
        return parse_entries(body_of(parse(self.text)))

    @property
    def newline(self) -> str:
        """The line end that the file uses."""
        return "\r\n" if "\r\n" in self.text else "\n"

    def says(self, text: str) -> bool:
        """Whether it holds this text, whatever its line ends and byte order mark."""
        return _bare(self.text) == _bare(text)

    def saying(self, text: str) -> "Source":
        """The file with another text, in its own line ends, with its byte order mark."""
        mark = "\ufeff" if self.text.startswith("\ufeff") else ""
        return Source(self.path, mark + _bare(text).replace("\n", self.newline))

    def with_entries(self, entries: Sequence[Entry]) -> "Source":
        """The file with another list of facts below the same header and title."""
        front = parse(self.text)
        above = front.header
        if above and not above.endswith(("\n", "\r")):
            above += self.newline
        titles = js_trim(_titles(front.body))
        parts = [*([titles.replace("\r\n", "\n")] if titles else []), render_entries(entries)]
        body = "\n\n".join(parts) + "\n"
        blank = "\n" if above.strip("\ufeff \t\r\n") else ""
        return Source(self.path, above + (blank + body).replace("\n", self.newline))

    def with_fields(self, fields: Mapping[str, str]) -> "Source":
        """The file with some header fields set; a header is made where there is none."""
        front = parse(self.text)
        text = self.text
        if not front.has_header:
            mark = "\ufeff" if text.startswith("\ufeff") else ""
            text = f"{mark}---{self.newline}---{self.newline}{self.newline}{text.removeprefix(mark)}"
            front = parse(text)
        lines = front.header.splitlines(keepends=True)
        for key, value in fields.items():
            lines = _set(lines, key, f"{key}: {scalar(value)}{self.newline}")
        return Source(self.path, "".join(lines) + text[len(front.header) :])


def _bare(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _titles(body: str) -> str:
    """Blank lines, titles and rules at the top of a body, which are no entries."""
    end = 0
    while (match := _TITLE.match(body, end)) and match.end() > end:
        end = match.end()
    return body[:end]


def _set(lines: Sequence[str], key: str, line: str) -> list[str]:
    """Header lines with one field set: in its place, or before the closing line."""
    at = next((n for n, known in enumerate(lines) if re.match(rf"{re.escape(key)}[ \t]*:", known)), None)
    if at is None:
        closing = max(n for n, known in enumerate(lines) if known.strip().startswith("---"))
        return [*lines[:closing], line, *lines[closing:]]
    end = at + 1
    while end < len(lines) - 1 and (lines[end][:1] in " \t" or not lines[end].strip()):
        end += 1
    return [*lines[:at], line, *lines[end:]]


def scalar(value: str) -> str:
    """A value as a header holds it: plain where every reader understands that, else in double quotes."""
    text = " ".join(value.split())
    if _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS:
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def without(entries: Sequence[Entry], indices: Collection[int]) -> list[Entry]:
    """The entries but those of some numbers."""
    return [entry for number, entry in enumerate(entries) if number not in indices]
