"""New texts of memory files, made from old ones by structure: what is not meant to change stays byte for byte."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from recall.errors import TopicError
from recall.store.frontmatter import JS_SPACE, Frontmatter, parse
from recall.store.topics import Entry, body_of, js_trim, parse_entries, render_entries
from recall.text.patterns import pattern

_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16 and UTF-32
_LINE_END = pattern(r"\r\n|[\n\r]")
_HEADER_LINE = pattern(r"[^\r\n\u2028\u2029]*(?:\r\n|[\r\n\u2028\u2029]|\Z)")
_UNPRINTABLE = pattern(r"[^\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")  # of YAML
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
    def shown(self) -> list[Entry]:
        """The same as an index has it, where bytes that are no UTF-8 became U+FFFD."""
        return parse_entries(body_of(parse(self.data.decode("utf-8", "replace"))))

    @property
    def newline(self) -> str:
        """The line end that the file uses."""
        if "\r\n" in self.text:
            return "\r\n"
        return "\r" if "\r" in self.text and "\n" not in self.text else "\n"

    @property
    def _mark(self) -> str:
        """The byte order mark, where there is one."""
        return "\ufeff" if self.text.startswith("\ufeff") else ""

    def says(self, text: str) -> bool:
        """Whether it holds this text, whatever its line ends and byte order mark."""
        return _bare(self.text) == _bare(text)

    def saying(self, text: str) -> "Source":
        """The file with another text, in its own line ends, with its byte order mark."""
        return Source(self.path, self._mark + _bare(text).replace("\n", self.newline))

    def with_entries(self, entries: Sequence[Entry]) -> "Source":
        """The file with another list of facts below the same header and title.

        A comment above the header is read as the beginning of the body; it stays where it is.
        """
        front = parse(self.text)
        above = self._mark if _is_all_body(front) else front.header
        if above.strip("\ufeff") and not above.endswith(("\n", "\r")):
            above += self.newline
        files = [self._below(above, body) for body in _bodies(front, entries)]
        return next((file for file in files if file.entries == list(entries)), files[0])

    def _below(self, above: str, body: str) -> "Source":
        """The body below a header, from which a blank line sets it off."""
        blank = "\n" if body and above.strip("\ufeff") else ""
        return Source(self.path, above + (blank + body + "\n"[: len(body)]).replace("\n", self.newline))

    def with_fields(self, fields: Mapping[str, str]) -> "Source":
        """The file with some header fields set; a header is made where there is none."""
        front = parse(self.text)
        text = self.text
        if _is_all_body(front):
            text = f"{self._mark}---{self.newline}---{self.newline}{self.newline}{text.removeprefix(self._mark)}"
            front = parse(text)
        lines = [line for line in _HEADER_LINE.findall(front.header) if line]
        for key, value in fields.items():
            lines = list(_set(lines, key, f"{key}: {scalar(value)}{self.newline}"))
        return Source(self.path, "".join(lines) + text[len(front.header) :])


def rendered(entries: Sequence[Entry]) -> str:
    """The body that holds the entries, such that it is read as these and no others.

    What would be read as something else - as a heading, a number, a reason of the fact before - gets a bullet.
    """
    plain = render_entries(entries)
    if parse_entries(plain) == list(entries):
        return plain
    marked = _marked(entries)
    return marked if parse_entries(marked) == list(entries) else plain


def _marked(entries: Sequence[Entry]) -> str:
    return render_entries([replace(entry, summary=f"- {entry.summary}") for entry in entries])


def _bodies(front: Frontmatter, entries: Sequence[Entry]) -> Iterator[str]:
    """How a body may be written, the usual way first; one of them is read as the entries."""
    titles = _titles(front.body)
    plain = render_entries(entries)
    yield "\n\n".join([*titles, plain])
    if entries:
        yield "\n\n".join([*titles, _marked(entries)])
    for part in (front.preamble, *titles):  # of a document these are a part
        if part and plain.startswith(part):
            yield js_trim(plain.removeprefix(front.preamble))


def _bare(text: str) -> str:
    text = text.removeprefix("\ufeff")
    return text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")


def _is_all_body(front: Frontmatter) -> bool:
    """Whether the header is none: missing, or words without a field, which `body_of` takes for text."""
    return not front.has_header or (not front.fields and bool(front.header.strip(JS_SPACE + "-")))


def _titles(body: str) -> list[str]:
    """Titles and blank lines at the top of a body, which are no entries, as one text; nothing for none."""
    lines = takewhile(lambda line: not js_trim(line) or js_trim(line).startswith("# "), _LINE_END.split(body))
    titles = js_trim("\n".join(lines))
    return [titles] if titles else []


def _set(lines: Sequence[str], key: str, line: str) -> Iterator[str]:
    """Header lines with one field set: where it stands first, else before the closing line."""
    inner = [known for known in lines if known.strip(JS_SPACE) and not known.strip(JS_SPACE).startswith(("---", "#"))]
    indent = min((_indent(known) for known in inner), key=len, default="")
    named = re.compile(rf"""{indent}(?P<quote>["']?){re.escape(key)}(?P=quote)[ \t]*:(?P<value>.*)""", re.DOTALL)
    closing = max(number for number, known in enumerate(lines) if known.strip(JS_SPACE).startswith("---"))
    at, is_set = 0, False
    while at < len(lines):
        match = named.match(lines[at]) if at < closing else None
        if (match or at == closing) and not is_set:
            yield indent + line
            is_set = True
        if match:
            at = _end(lines, at, indent, match["value"].strip(JS_SPACE))
        else:
            yield lines[at]
            at += 1


def _end(lines: Sequence[str], at: int, indent: str, value: str) -> int:
    """Number of the line behind a field, where blank ones belong to nobody."""
    end = last = at + 1
    while end < len(lines) - 1:
        text = lines[end].strip(JS_SPACE)
        is_item = not value and re.match(r"-(?:\s|\Z)", text)
        is_bracket = value[:1] in {"[", "{"} and text in {"]", "}"}
        if text and len(_indent(lines[end])) <= len(indent) and not is_item and not is_bracket:
            break
        end += 1
        last = end if text else last
    return last


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t\xa0\u3000"))]


def scalar(value: str) -> str:
    """A value as a header holds it: plain where every reader understands that, else in double quotes."""
    text = " ".join(value.split())
    if _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS and not _UNPRINTABLE.search(text):
        return text
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + _UNPRINTABLE.sub(lambda match: f"\\U{ord(match[0]):08x}", quoted) + '"'


def without(entries: Sequence[Entry], indices: Collection[int]) -> list[Entry]:
    """The entries but those of some numbers."""
    return [entry for number, entry in enumerate(entries) if number not in indices]
