"""AGENTS.md and its kin: files of people, in which an instruction is one item of a list.

What people wrote there stays as it is, byte for byte: an item is put in, or taken out, as whole lines. Lists are read
as Markdown has them, closely enough to know where an item ends: items hold items, text that goes on, fenced code; no
item begins in a fence, a comment or the header.

Source: spec wave.md W-PRJ, W-USR, W-MNG, W-EDG-01 and -02.
"""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from recall.errors import LockedError, TopicError
from recall.store import disk
from recall.store.files import confine, read_text, replace_exactly
from recall.store.locks import exclusive
from recall.store.places import Layout
from recall.store.projects import absolute, is_there, real_path
from recall.text.markup import escape, one_line
from recall.text.patterns import pattern
from recall.text.tokens import normalise

LONGEST_ITEM: Final = 4096
"""Characters of an instruction, which is part of every request from then on."""

_LARGEST: Final = 4 * 1024 * 1024
_WAIT_S: Final = 10.0
_TRIES: Final = 20  # somebody may save the file in an editor
_ID_CHARS: Final = 12
_BOM: Final = "\ufeff"
_USER_FILES: Final = {Layout.CLAUDE: ".claude/CLAUDE.md", Layout.QWEN: ".qwen/QWEN.md"}
_USER_FILE: Final = ".wave/AGENTS.md"

_LINE: Final = pattern(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_BULLET: Final = pattern(r"\A(?:[-*+]|(?P<number>\d{1,9})[.)])(?:[ \t]+|$)")
_BULLETS: Final = pattern(r"\A(?:[-*+](?:[ \t]+|$))+")
_HEADING: Final = pattern(r"#{1,6}(?:[ \t]|$)")
_RULE: Final = pattern(r"(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}")
_UNDERLINE: Final = pattern(r"=+|-+")
_FENCE: Final = pattern(r"`{3,}(?=[^`]*$)|~{3,}")
_CODE_INDENT: Final = 4
_BLANK: Final = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of an instruction.

    Attributes:
        file: where it is.
        line: its line, counted from 1.
        created: whether the file was made for it.
        duplicate: whether it was there already, so that nothing was written.
    """

    file: Path
    line: int
    created: bool
    duplicate: bool


@dataclass(frozen=True, slots=True)
class Item:
    """One list item with everything that is indented below it, other items too.

    Attributes:
        id: hash of the text, the same as long as the text is; equal items are told apart by `-2`, `-3` behind it.
        text: without its bullet, on one line.
        first: its first line, counted from 1.
        last: its last line that is not blank.
    """

    id: str
    text: str
    first: int
    last: int


def instruction_files(workdir: Path, *, home: Path | None, layout: Layout) -> tuple[Path, Path | None]:
    """The files that instructions are written to, that of the project and that of the user; neither need exist.

    Args:
        workdir: the opened folder.
        home: the user's home folder; without one there is no file of the user.
        layout: Claude Code and qwen-code have a user's file of their own, all others that of Wave.
    """
    user = home / _USER_FILES.get(layout, _USER_FILE) if home else None
    return absolute(workdir) / "AGENTS.md", user


def to_read(file: Path) -> Path | None:
    """The file that is read for a project's AGENTS.md: itself, else the CLAUDE.md beside it, else none (W-PRJ-02)."""
    return next((one for one in (file, file.with_name("CLAUDE.md")) if is_there(one)), None)


def append_instruction(file: Path, text: str, *, lock: Path, root: Path | None = None) -> Appended:
    """Writes the text as one item of the last list of the last section, or below that section when it has none.

    Args:
        file: where to; made with its folder when missing.
        text: made one line, without bullets; what would be structure of the file is escaped.
        lock: lock file of this file, made with its folder when missing, so best in a folder of caches.
        root: the project, which a link must not lead out of; None for a file of the user.

    Raises:
        TopicError: there is no text, or too much of it; or the file is no UTF-8 text, so that writing would harm it.
        UnsafePathError: the file lies outside `root`; nothing was read or written.
        LockedError: another process kept the lock.
        OSError: the file cannot be read or written; it is untouched.
    """
    if root is not None:
        confine(file, root)
    plain = _plain(text, file)
    disk.make_folder(lock.parent, mode=0o700)
    disk.make_folder(real_path(file).parent)
    with exclusive(lock, timeout_s=_WAIT_S):
        for _ in range(_TRIES):
            before = _exact(file)
            content, item = before or "", _escaped(plain)
            wanted = {_folded(plain), _folded(item)}
            same = next((one for one in items_of(content) if _folded(one.text) in wanted), None)
            if same:
                return Appended(file, same.first, created=False, duplicate=True)
            after, line = _with_item(content, item)
            old = None if before is None else before.encode()
            if replace_exactly(real_path(file), old, after.encode()):
                return Appended(file, line, created=before is None, duplicate=False)
    raise LockedError(file, "an editor that goes on saving it")


def items(file: Path) -> list[Item]:
    """The items of a file, in order; none when it is missing (W-MNG-01).

    Raises:
        TopicError: it is too large or no text.
        OSError: it cannot be read.
    """
    try:
        return items_of(read_text(file, max_bytes=_LARGEST)[0])
    except FileNotFoundError:
        return []


def items_of(text: str) -> list[Item]:
    """The items of a text, in order."""
    lines = _lines(text)
    seen: Counter[str] = Counter()
    found: list[Item] = []
    for span in _scan(lines).spans:
        own = [_BULLET.sub("", lines[span.first].strip(_BLANK), count=1), *lines[span.first + 1 : span.last + 1]]
        said = " ".join(" ".join(own).split())
        if not said:
            continue
        name = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:_ID_CHARS]
        seen[name] += 1
        number = f"-{seen[name]}" if seen[name] > 1 else ""
        found.append(Item(f"{name}{number}", said, span.first + 1, span.last + 1))
    return found


def without_item(text: str, id: str, *, file: Path) -> str:
    """The text without the lines of one item (W-MNG-02).

    Args:
        text: content of the file, with its byte order mark if it has one.
        id: of the item.
        file: whose content it is, for the message.

    Raises:
        TopicError: there is no such item, or no longer.
    """
    item = next((item for item in items_of(text) if item.id == id), None)
    if item is None:
        raise TopicError(f"has no item {id} (any more); list the items again", path=file)
    mark, lines = text[: text.startswith(_BOM)], _lines(text)
    return mark + "".join([*lines[: item.first - 1], *lines[item.last :]])


# --- writing


def _plain(text: str, file: Path) -> str:
    plain = _BULLETS.sub("", " ".join(one_line(text).split()), count=1)
    if not plain:
        raise TopicError("an instruction needs some text", path=file)
    if len(plain) > LONGEST_ITEM:
        advice = "say it shorter, or remember it as a topic"
        raise TopicError(
            f"an instruction may have {LONGEST_ITEM:,} characters, not {len(plain):,}; {advice}", path=file
        )
    return plain


def _escaped(plain: str) -> str:
    """The text as the content of an item: no heading, rule, fence, open comment or tag of a host."""
    if _HEADING.match(plain) or _RULE.fullmatch(plain):
        plain = f"\\{plain}"
    return escape(f"- {plain}").removeprefix("- ")


def _folded(text: str) -> str:
    return " ".join(normalise(text).split())


def _exact(file: Path) -> str | None:
    """The content with its byte order mark, such that writing it changes nothing; None when the file is missing."""
    try:
        read_text(file, max_bytes=_LARGEST)  # refuses what is no text
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise TopicError("is not UTF-8; save it as UTF-8, so that nothing of it is lost", path=file) from error


def _with_item(text: str, item: str) -> tuple[str, int]:
    """The text with one more item, and the line of it, from 1."""
    mark, lines = text[: text.startswith(_BOM)], _lines(text)
    at, model, in_list = _place(lines)
    head, tail = lines[:at], lines[at:]
    line_end = _line_end("".join(head[-1:])) or _line_end("".join(lines[:1])) or "\n"
    if head and not _line_end(head[-1]):
        head[-1] += line_end
    if head and not in_list and head[-1].strip(_BLANK):
        head.append(line_end)
    if tail and tail[0].strip(_BLANK):
        tail.insert(0, line_end)
    indent = model[: len(model) - len(model.lstrip(" "))]
    return mark + "".join([*head, f"{indent}- {item}{line_end}", *tail]), len(head) + 1


def _place(lines: list[str]) -> tuple[int, str, bool]:
    """Number of lines above a new item, a line as far in as it has to be, and whether a list ends there.

    Were it further out than its neighbour, what follows and is no part of that one could become part of it.
    """
    scan = _scan(lines)
    end = len(lines) if scan.hidden_from is None else scan.hidden_from
    last = [span for span in scan.spans if span.first > scan.section and span.last < end]
    if not last:
        return end, "".join(lines[end : end + 1]), False
    at = max(span.last for span in last) + 1
    outer = next(span for span in last if span.last + 1 == at)
    return at, lines[outer.first], True


# --- reading lists


def _lines(text: str) -> list[str]:
    """The lines with their ends, without the byte order mark."""
    return _LINE.findall(text.removeprefix(_BOM))


def _line_end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


@dataclass(slots=True)
class _Span:
    """Lines of an item, from 0, and the indent from which on a line belongs to it."""

    first: int
    last: int
    inside: int


@dataclass(slots=True)
class _Scan:
    """What was found while going through the lines.

    Attributes:
        spans: of all items, in order.
        section: the line, from 0, of the last heading; -1 without any.
        closing: what ends the fence or comment that is open now.
        opened: the line where that began.
        open: the items that the next line may belong to, the outermost first.
        in_text: whether the last line was text, which the next one may go on with whatever its indent.
    """

    spans: list[_Span] = field(default_factory=list)
    section: int = -1
    closing: str = ""
    opened: int = 0
    open: list[_Span] = field(default_factory=list)
    in_text: bool = False

    @property
    def hidden_from(self) -> int | None:
        """The line from which on everything is code or comment; an item's own code ends with the item."""
        return self.opened if self.closing and not self.open else None

    def take(self, number: int, line: str) -> None:
        text = line.strip(_BLANK)
        indent = _indent(line)
        if not text:
            self.in_text = False
        elif self.closing and (not self.open or indent >= self.open[-1].inside):
            self.closing = "" if self._closes(text) else self.closing
            self._extend(number)
        else:
            self.closing = ""
            self._take_visible(number, text, indent)

    def _closes(self, text: str) -> bool:
        if self.closing == "-->":
            return self.closing in text
        return text.startswith(self.closing) and not text.strip(self.closing[0])

    def _take_visible(self, number: int, text: str, indent: int) -> None:
        bullet = self._bullet(text, indent)
        is_deep = not bullet and indent >= self._floor(indent) + _CODE_INDENT  # code, or text that goes on
        content = text[bullet.end() :] if bullet else text
        opening = "" if is_deep else _opening(content)
        is_heading = not is_deep and bool(_HEADING.match(content))
        is_rule = not is_deep and bool(_RULE.fullmatch(content))
        is_text = not (bullet or opening or is_heading or is_rule)
        is_underline = self.in_text and not self.open and not is_deep and bool(_UNDERLINE.fullmatch(text))
        while self.open and indent < self.open[-1].inside and not (is_text and self.in_text):
            self.open.pop()
        if bullet:
            self.spans.append(_Span(number, number, indent + 2))
            self.open.append(self.spans[-1])
        if is_underline or (is_heading and not self.open):
            self.section = number
        if opening:
            self.closing, self.opened = opening, number
        self.in_text = bool(content) and not (opening or is_heading or is_rule or is_underline)
        self._extend(number)

    def _floor(self, indent: int) -> int:
        """The indent of the content that a line of this indent belongs to."""
        return max((span.inside for span in self.open if span.inside <= indent), default=0)

    def _bullet(self, text: str, indent: int) -> re.Match[str] | None:
        found = _BULLET.match(text)
        if not found or _RULE.fullmatch(text) or (not self.open and indent >= _CODE_INDENT):
            return None
        is_year = self.in_text and not self.open and found["number"] not in (None, "1")
        return None if is_year else found

    def _extend(self, number: int) -> None:
        for span in self.open:
            span.last = number


def _scan(lines: list[str]) -> _Scan:
    scan = _Scan()
    for number in range(_header_length(lines), len(lines)):
        scan.take(number, lines[number])
    return scan


def _header_length(lines: list[str]) -> int:
    """Lines of a header between two `---`, if the text begins with one."""
    rules = [number for number, line in enumerate(lines) if line.rstrip() == "---"][:2]
    return rules[1] + 1 if len(rules) > 1 and rules[0] == 0 else 0


def _opening(text: str) -> str:
    """What ends the fence or comment that the line begins and does not end."""
    fence = _FENCE.match(text)
    if fence:
        return fence[0]
    return "-->" if text.startswith("<!--") and "-->" not in text else ""


def _indent(line: str) -> int:
    wide = line.expandtabs(_CODE_INDENT)
    return len(wide) - len(wide.lstrip(" "))
