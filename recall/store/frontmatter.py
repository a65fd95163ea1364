"""The header of a memory or rule file, read leniently: nothing raises and nothing is lost.

Header files of the field are YAML by name only: values hold unquoted colons, ` #`, `@`, globs and half quotes, keys
come twice, whole headers come twice, are indented or written with CR. A line parser of our own is therefore the only
reading; YAML itself is asked about the escapes of a double-quoted value and nothing else. Values are strings or tuples
of strings, never numbers, dates or booleans.

Sources: DESIGN section 4.3, deviations V1, wave.md section 4 (dialect), qwen.md section 3, data-oddities.md section 5.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from recall.text.patterns import pattern

Value = str | tuple[str, ...]

# What JavaScript's trim() removes (qwen.md section 3); Python's strip() adds U+001C-001F and U+0085 and lacks U+FEFF.
JS_SPACE = "\t\n\v\f\r \xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"

_EOL = r"(?:\r\n|[\n\r\u2028\u2029])"
_BLANK = r"[ \t\v\f\xa0\u3000\ufeff]"
_LINE_END = pattern(_EOL)
_OPENING = pattern(  # blank lines and whole comments may stand above
    rf"(?P<preamble>\ufeff*(?:{_BLANK}*+(?>(?:<!--.*?-->{_BLANK}*)?){_EOL})*+)(?P<indent>[ \t]*+)---{_BLANK}*{_EOL}",
    re.DOTALL,
)
_FENCE = pattern(rf"(?:\A|(?<=[\n\r\u2028\u2029]))(?P<indent>[ \t]*)---(?P<rest>[^\n\r\u2028\u2029]*)(?:{_EOL}|\Z)")
_KEY = pattern(r"""(?P<key>"[^":]*"|'[^':]*'|[^:]+):(?!//)(?P<value>.*)""", re.DOTALL)
_PLAUSIBLE_KEY = pattern(r"""["']?[^\W\d][\w.$/-]*(?: [\w.$/-]+){0,2}["']?""")
_BLOCK = pattern(r"(?P<style>[>|])(?:(?P<a>[1-9])?[+-]?|[+-](?P<b>[1-9]))(?:\s+#.*)?")
_ITEM = pattern(r"-(?:\s+|\Z)")
_COMMENT = r"(?:\s+#\s.*)?"  # behind a closing mark only, and never "#123"
_DOUBLE = pattern(rf'"((?:[^"\\]|\\.)*)"{_COMMENT}', re.DOTALL)
_SINGLE = pattern(rf"'((?:[^']|'')*)'{_COMMENT}", re.DOTALL)
_FLOW = pattern(rf"\[(?!\[)(.*?)\]{_COMMENT}", re.DOTALL)
_SURROGATE = pattern("[\ud800-\udfff]")

# A second block is taken for a header, and not for a rule in the body, only when it holds one of these.
_TOPIC_KEYS = frozenset({"name", "title", "description", "type", "metadata"})
_MAX_KEY = 60  # characters; longer text before a colon is a sentence


def js_trim(text: str) -> str:
    """Cut white space off both ends as JavaScript does; zero-width spaces and U+001C-001F stay."""
    return text.strip(JS_SPACE)


class Frontmatter(NamedTuple):
    """A text split into header and body. `header + body` is the text that was parsed, character for character.

    Attributes:
        has_header: whether the text starts with a header; an empty one counts.
        fields: top-level keys; of a repeated key the last one (wave.md section 4). An empty value is "".
        metadata: the keys inside the nested `metadata:` map.
        header: everything before the body with its delimiter lines, as written; "" without a header.
        body: exactly what follows the closing line.
        warnings: sentences about what had to be guessed or left out.
        pairs: every top-level key with its value in the order of the file, repeated ones too.
        preamble: HTML comments that stand above the header; part of `header`.
    """

    has_header: bool
    fields: Mapping[str, Value]
    metadata: Mapping[str, str]
    header: str
    body: str
    warnings: tuple[str, ...] = ()
    pairs: tuple[tuple[str, Value], ...] = ()
    preamble: str = ""

    def first(self, key: str) -> str:
        """The first value of `key` that is not empty (qwen.md section 3), list items joined by ", "; else ""."""
        values = (joined(value) for name, value in self.pairs if name == key)
        return next((value for value in values if value), "")


def joined(value: Value) -> str:
    """The value as one string, list items separated by ", "."""
    return value if isinstance(value, str) else ", ".join(value)


def parse(text: str) -> Frontmatter:
    """Split `text` into header and body and read the header's fields.

    A file without a header, or whose header never closes, or that merely starts with a `---` rule above prose, is all
    body. Two headers one after the other are read as one (data-oddities 7).
    """
    opening = _OPENING.match(text)
    blocks = _blocks(text, opening) if opening else []
    if not opening or not blocks:
        unclosed = (
            ("the header is never closed; all of the file was read as body",) if _is_unclosed(text, opening) else ()
        )
        return Frontmatter(False, {}, {}, "", text, unclosed)
    warnings = ["two headers one after the other were read as one"] if len(blocks) > 1 else []
    pairs: list[tuple[str, Value]] = []
    metadata: dict[str, str] = {}
    for block in blocks:
        groups, stray = _groups(block.lines)
        warnings += [f'the header line "{line}" is no "key: value" and was left out' for line in stray]
        if any(map(_is_plausible, groups)):  # a header without one is broken and has no fields
            pairs += ((group.key, _value(group)) for group in groups)
            metadata |= {key: value for group in groups if group.key == "metadata" for key, value in _inner(group)}
    end = blocks[-1].end
    return Frontmatter(
        has_header=True,
        fields=dict(pairs),
        metadata=metadata,
        header=text[:end],
        body=text[end:],
        warnings=tuple(warnings),
        pairs=tuple(pairs),
        preamble=js_trim(opening["preamble"]),
    )


class _Line(NamedTuple):
    indent: int
    text: str  # without the indent and trailing blanks; "" for a blank line


class _Block(NamedTuple):
    lines: tuple[_Line, ...]
    end: int  # offset of the first character of the body


class _Group(NamedTuple):
    """A key with the lines that belong to it."""

    key: str
    inline: str
    lines: list[_Line]


# --- where the header starts and ends


def _blocks(text: str, opening: re.Match[str]) -> list[_Block]:
    """The header, or the headers that follow each other; empty when the text has none."""
    block = _block(text, opening)
    if block is None or not _is_header(block.lines):
        return []
    blocks = [block]
    while again := _following(text, blocks[-1].end):
        blocks.append(again)
    if len(blocks) == 1 and not block.lines and (doubled := _doubled_opening(text, opening.end())):
        return [doubled]
    return blocks


def _block(text: str, opening: re.Match[str]) -> _Block | None:
    closing = _closing(text, opening.end(), len(opening["indent"]))
    if closing is None:
        return None
    end = closing.start("rest") if js_trim(closing["rest"]) else closing.end()
    return _Block(_lines(text[opening.end() : closing.start()]), end)


def _closing(text: str, start: int, indent: int) -> re.Match[str] | None:
    """The line that closes the header: the first exact `---`, or a `--- text` before it that ends it in fact.

    qwen-code lets any line that starts with `---` close, Wave only an exact one. Both hold: `--- text` does not close
    when everything from there to the next exact `---` still reads as a header.
    """
    early: re.Match[str] | None = None
    for fence in _FENCE.finditer(text, start):
        if len(fence["indent"]) > indent:
            continue
        if js_trim(fence["rest"]):
            early = early or fence
        elif early is None or _is_strict_header(_lines(text[early.end() : fence.start()])):
            return fence
        else:
            return early
    return early


def _following(text: str, start: int) -> _Block | None:
    """A further header that comes right after the one before, with nothing but blank lines between."""
    opening = _OPENING.match(text, start)
    block = _block(text, opening) if opening and not js_trim(opening["preamble"]) else None
    return block if block and _is_topic_header(block.lines) else None


def _doubled_opening(text: str, start: int) -> _Block | None:
    """The header of a file that begins with two `---` lines instead of one."""
    second = _FENCE.match(text, start)
    block = _block(text, second) if second else None
    return block if block and _is_topic_header(block.lines) else None


def _lines(text: str) -> tuple[_Line, ...]:
    return tuple(_line(line) for line in _LINE_END.split(text)[:-1]) if text else ()


def _line(text: str) -> _Line:
    stripped = text.lstrip(" \t\xa0\u3000")
    return _Line(len(text) - len(stripped), js_trim(stripped))


def _is_header(lines: Sequence[_Line]) -> bool:
    """Whether lines between two rules are a header; prose is not, even with a colon here and there."""
    groups, stray = _groups(lines)
    keys = sum(map(_is_plausible, groups))
    if keys:
        is_topic = groups[0].key in _TOPIC_KEYS
        return not _ends_in_prose(lines, groups, stray) and (is_topic or keys >= len(stray) + len(groups) - keys)
    # No key at all: nothing but blank lines is an empty header, closely set lines a broken one, paragraphs are text.
    return len({bool(line.text) for line in lines}) <= 1


def _ends_in_prose(lines: Sequence[_Line], groups: Sequence[_Group], stray: Sequence[str]) -> bool:
    """Whether a blank line and then text come after the last key: the rule below closes that text, not the header."""
    keys = {group.key for group in groups}
    anchors, strays = keys & _TOPIC_KEYS or keys, set(stray)
    blank = prose = False
    for line in lines:
        group = _key(line.text)
        if group and group.key in anchors:
            blank = prose = False
        blank = blank or not line.text
        prose = prose or (blank and line.text in strays)
    return prose


def _is_unclosed(text: str, opening: re.Match[str] | None) -> bool:
    rest = _LINE_END.split(text[opening.end() :], maxsplit=1)[0] if opening else ""
    return _is_topic_header([_line(rest)])


def _is_strict_header(lines: Sequence[_Line]) -> bool:
    groups, stray = _groups(lines)
    return bool(groups) and not stray and all(_is_plausible(group) for group in groups)


def _is_topic_header(lines: Sequence[_Line]) -> bool:
    return _is_strict_header(lines) and any(group.key in _TOPIC_KEYS for group in _groups(lines)[0])


def _is_plausible(group: _Group) -> bool:
    return len(group.key) <= _MAX_KEY and _PLAUSIBLE_KEY.fullmatch(group.key) is not None


# --- keys and the lines that belong to them


def _groups(lines: Sequence[_Line]) -> tuple[list[_Group], list[str]]:
    """The keys with their lines, and the lines that belong to no key."""
    base = min((line.indent for line in lines if line.text and line.text[0] != "#"), default=0)
    groups: list[_Group] = []
    stray: list[str] = []
    for line in lines:
        current = groups[-1] if groups else None
        if current and (not line.text or line.indent > base or _goes_on(current, line)):
            current.lines.append(line)
        elif not line.text or line.text[0] == "#":
            continue
        elif group := _key(line.text):
            groups.append(group)
        else:
            stray.append(line.text)
    return groups, stray


def _goes_on(group: _Group, line: _Line) -> bool:
    """Whether an unindented line belongs to the key: an item of its list, or the end of its brackets."""
    closes = line.text in ("]", "}") and group.inline[:1] in ("[", "{")
    return closes or (not group.inline and _ITEM.match(line.text) is not None)


def _key(text: str) -> _Group | None:
    match = _KEY.match(text)
    if match is None or _ITEM.match(text):
        return None
    key = js_trim(match["key"])
    if len(key) > 1 and key[0] == key[-1] and key[0] in "\"'":
        key = key[1:-1]
    return _Group(key, js_trim(match["value"]), []) if key else None


# --- values


def _value(group: _Group) -> Value:
    if not group.inline and (items := _list(group.lines)) is not None:
        return items
    if group.inline[:1] == "[" and (items := _flow_list(_plain(group.inline, group.lines))) is not None:
        return items
    return _text(group.inline, group.lines)


def _list(lines: Sequence[_Line]) -> tuple[str, ...] | None:
    """The items of a block list; None when the lines are none."""
    content = [line for line in lines if line.text and line.text[0] != "#"]
    if not content or not _ITEM.match(content[0].text):
        return None
    dash = content[0].indent
    items: list[tuple[str, list[_Line]]] = []
    for line in lines:
        mark = _ITEM.match(line.text) if line.indent <= dash else None
        if mark:
            items.append((line.text[mark.end() :], []))
        elif items:
            items[-1][1].append(line)
    return tuple(text for inline, rest in items if (text := _text(inline, rest)))


def _text(inline: str, lines: Sequence[_Line]) -> str:
    """The text of one value: what stands behind the key and what is indented below it."""
    if block := _BLOCK.fullmatch(inline):
        return _block_text(block, lines)
    if lines and inline[:1] in ("'", '"'):  # a line of a quoted text may start with "#"
        whole = js_trim("\n".join([inline, *(line.text for line in lines)]))
        if (unquoted := _unquote(whole)) != whole:
            return unquoted
    return _unquote(_plain(inline, lines))


def _plain(inline: str, lines: Sequence[_Line]) -> str:
    return js_trim(_folded([inline, *(line.text for line in lines if line.text[:1] != "#")])) if lines else inline


def _block_text(block: re.Match[str], lines: Sequence[_Line]) -> str:
    given = block["a"] or block["b"]
    first = next((line.indent for line in lines if line.text), 0)
    margin = int(given) if given else first
    texts = [" " * (line.indent - margin) + line.text if line.text else "" for line in lines]
    return js_trim(_folded(texts) if block["style"] == ">" else "\n".join(texts))


def _folded(texts: Iterable[str]) -> str:
    """Lines joined by a blank; a blank line is a line break (wave.md section 4)."""
    result = ""
    for text in texts:
        if not text:
            result += "\n"
        else:
            result += text if not result or result.endswith("\n") else f" {text}"
    return result


def _refolded(quoted: str) -> str:
    return _folded(quoted.split("\n")) if "\n" in quoted else quoted


def _inner(group: _Group) -> Iterator[tuple[str, str]]:
    """The keys of a nested map, written below its key or as `{a: b, c: d}`."""
    text = _plain(group.inline, group.lines)
    if text.startswith("{") and text.endswith("}"):
        groups = [inner for part in _flow_parts(text[1:-1]) if (inner := _key(part))]
    else:
        groups = [] if group.inline else _groups(group.lines)[0]
    return ((inner.key, joined(_value(inner))) for inner in groups)


def _flow_list(text: str) -> tuple[str, ...] | None:
    """The items of `[a, "b"]`; None for other text, such as a Markdown link or a [[wiki link]]."""
    flow = _FLOW.fullmatch(text)
    if flow is None or _closes_early(flow[1]):
        return None
    return tuple(item for part in _flow_parts(flow[1]) if (item := _unquote(part)))


def _closes_early(inner: str) -> bool:
    depth = 0
    for char in inner:
        depth += (char in "[{") - (char in "]}")
        if depth < 0:
            return True
    return False


def _flow_parts(inner: str) -> Iterator[str]:
    """Split at the commas outside quotes, brackets and braces; a quote counts only where an item starts."""
    depth, quote, part = 0, "", ""
    for char in inner:
        if quote:
            quote = "" if char == quote and not part.endswith("\\") else quote
        elif char in "\"'" and not js_trim(part):
            quote = char
        depth += 0 if quote else (char in "[{(") - (char in "]})")
        if char == "," and not quote and depth <= 0:
            yield js_trim(part)
            part = ""
        else:
            part += char
    yield js_trim(part)


def _unquote(text: str) -> str:
    """Remove balanced quotes; text behind the closing quote (data-oddities 14) keeps the value as it is."""
    if single := _SINGLE.fullmatch(text):
        return _refolded(single[1]).replace("''", "'")
    double = _DOUBLE.fullmatch(text)
    if double is None:
        return text
    return _unescape(double[1]) if "\\" in double[1] else _refolded(double[1])


def _unescape(inner: str) -> str:
    import yaml  # a slow import that few headers need

    try:
        value = str(yaml.safe_load(f'"{inner}"'))
    except yaml.YAMLError:  # "C:\Users": no escape that YAML knows
        return _refolded(inner).replace('\\"', '"')
    if _SURROGATE.search(value):  # JSON writes an emoji as two escapes
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value
