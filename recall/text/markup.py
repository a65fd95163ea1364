"""Putting text from memory into a block that the model reads, so that it stays data.

A memory may hold anything, also text that somebody planted. Inside a block it must not look like the block's own
structure, like a message of the host or of another speaker, nor swallow what follows it. Only such spots are touched,
each with the smallest visible mark (a backslash, or `&lt;`); ordinary Markdown and code pass unchanged.

Most texts hold nothing of the kind, and every recall waits for this: a substring or two tells whether a pattern can
match at all, and patterns are compiled by `re` when the first text needs them.
"""

import re

_LINE_BREAK = r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]"
_CONTROL = r"[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]"
_JOINERS = "\u00ad\u200b-\u200f\u2060\ufeff"
# What can turn letters round, or carry letters that nobody sees; a flag of a region is the one honest use of tags.
_DECEPTIVE = (
    r"(\U0001f3f4[\U000e0030-\U000e007a]{1,6}\U000e007f)"
    r"|[\u061c\u180e\u202a-\u202e\u2061-\u206f\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# Zero-width characters belong between letters of Persian, Thai or Hindi and inside emoji; beside ASCII they only hide.
_STRAY_JOINER = rf"(?<![^\x00-\x7f])[{_JOINERS}]++|(?<![{_JOINERS}])[{_JOINERS}]++(?![^\x00-\x7f])"
_HIDDEN = rf"[{_JOINERS}\u061c\u180e\u202a-\u202e\u2061-\u206f\ufff9-\ufffb\U000e0000-\U000e007f]"

# Lines of the block itself (its heading, a topic's heading, the age below it, a note) and of instruction formats.
_OWN_LINE = r"""(?imx)
    ^(?P<indent>[^\S\n]*+)(?=
          \#{1,6}+[^\S\n]*+relevant[ _-]?memor(?:y|ies)
        | \#{3}(?!\#)[^\n]*[(（][^()（）\n]*\.md[)）]
        | \#{3}(?!\#)[^\n]*[(（][^\s()（）/]*+(?:/[^\s()（）/]*+)++[)）][^\S\n]*+\#*+[^\S\n]*+$
        | \#{1,6}+[^\S\n]*+(?:instructions?|input|response|human|user|assistant|system)[^\S\n]*+[:：]
        | >[^\S\n]*+note\b
        | saved[ ](?:today|yesterday|\d+[ ]days?[ ]ago)\.?[^\S\n]*+$
    )"""
# A turn of the conversation. `User:` and `System:` begin honest notes, so those count in capitals only.
_SPEAKER = r"(?m)^([^\S\n]*+(?:(?i:human|assistant)|USER|SYSTEM|DEVELOPER|TOOL)[^\S\n]*+)(?=[:：])"

# Tags that agent hosts and chat templates give a meaning to; names with `recall-` in front are kept for our own blocks.
_HOST_TAGS = r"""
    system (?: [-_] (?: reminder | message | prompt | instruction | warning | notification | notice ) s? )?
  | assistant | human | think | thinking
  | (?: user | human | assistant ) [-_] (?: query | message | input | instructions | rules | turn )
  | (?: user-prompt-submit | session-start | pre-tool-use | post-tool-use | stop ) -hook
  | (?: start | end ) _of_ (?: turn | text | image )
  | (?: relevant | recalled | retrieved | auto | agent | user | project | persistent ) [-_] memor (?: y | ies )
  | memor (?: y | ies ) [-_] (?: block | context | data | instructions )
  | recall (?: ed )? [-_] [a-z_-]{1,40}
  | antml:[a-z_]{1,40} | invoke
  | function [-_] (?: call | response | result ) s?
  | tool [-_] (?: call | use | result | response | output | use_error ) s?
  | tools | available_tools | functions | custom_instructions | instructions | turn_aborted
  | command- (?: name | message | args | contents )
  | (?: local-command | bash ) - (?: input | stdout | stderr | caveat )
  | environment_ (?: context | details ) | task-notification | persisted-output | new-diagnostics
  | ide_ (?: selection | opened_file | diagnostics ) | attached_files | untrusted [-_] [a-z_-]{1,40}
"""
# With attributes, or with spaces that a lenient reader forgives; `a < system` is no tag.
_HOST_TAG = rf"(?ix)<(?=/?(?:{_HOST_TAGS})(?![\w-])|\s*+(?:/\s*+)?(?:{_HOST_TAGS})(?:\s[^<>]{{0,200}})?/?>)"
_TEMPLATE_TOKEN = r"(?i)<(?=[|｜][^\s|｜<>]{1,40}[|｜]?>|[^\s|｜<>]{1,40}[|｜]>|</?SYS>>|/?(?:s|bos|eos|sop)>)"  # noqa: S105 - no password
_BRACKET_TOKEN = r"(?i)\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|gMASK|sop)\])"  # noqa: S105 - same

_BREAKING = r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+"
_FENCE = r"(?P<lead>[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)(?P<mark>`{3,}|~{3,})(?P<info>[^\n]*)"


def one_line(text: str) -> str:
    """Flatten a text to one line: breaks and control characters become a space, invisible characters go.

    Spaces that were typed stay as they are. The line is not escaped.
    """
    if text.isprintable():
        return text.strip()
    pieces = (piece.strip() for piece in re.split(_BREAKING, re.sub(_HIDDEN, "", text)))
    return " ".join(piece for piece in pieces if piece)


def visible(text: str) -> str:
    r"""Keep what a reader can see: line breaks become `\n`, control and deceptive invisible characters go."""
    # Python counts everything that could have to go among what cannot be printed, and a little more.
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    text = re.sub(_CONTROL, "", re.sub(_LINE_BREAK, "\n", text))
    return re.sub(_STRAY_JOINER, "", re.sub(_DECEPTIVE, r"\1", text))


def escape(text: str) -> str:
    """Make a text safe to stand inside a block of ours, as `visible` text.

    Afterwards no line of it is a line of the block's own structure or opens a turn of the conversation, no tag of a
    host or chat template is whole, and no code fence or comment stays open. Escaping twice changes nothing more.
    A text of one line stays one line.
    """
    text = visible(text)
    # Not "saved ": a pattern that ignores case also takes the long s for one.
    if "#" in text or ">" in text or "aved " in text.lower():
        text = re.sub(_OWN_LINE, r"\g<indent>\\", text)
    if ":" in text or "：" in text:
        text = re.sub(_SPEAKER, r"\1\\", text)
    if "<" in text:
        text = re.sub(_HOST_TAG, "&lt;", text)
        text = re.sub(_TEMPLATE_TOKEN, "&lt;", text)
    if "[" in text:
        text = re.sub(_BRACKET_TOKEN, r"[\\", text)  # inside, because tokenizers do not know about escapes
    return _close_fence(_disarm_comment(text))


def _disarm_comment(text: str) -> str:
    """Escape every `<!--` that no `-->` follows: the rest of the block would vanish into it."""
    closed = text.rfind("-->") + 1
    return text[:closed] + text[closed:].replace("<!--", "&lt;!--")


def _close_fence(text: str) -> str:
    """Close a code fence that is still open at the end; one with nothing behind it is escaped instead."""
    if "```" not in text and "~~~" not in text:
        return text
    opened: tuple[int, str, str] | None = None
    position = 0
    for line in text.split("\n"):
        fence = re.match(_FENCE, line)
        if fence is not None:
            opened = _after_fence(opened, fence, position)
        position += len(line) + 1
    if opened is None:
        return text
    at, indent, mark = opened
    if not text[at:].partition("\n")[2].strip():
        return f"{text[:at]}\\{text[at:]}"
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}{indent}{mark}"


def _after_fence(
    opened: tuple[int, str, str] | None, fence: re.Match[str], position: int
) -> tuple[int, str, str] | None:
    """The open fence after one more line of fence marks: where its marks start, its indent, its marks."""
    lead, mark, info = fence["lead"], fence["mark"], fence["info"]
    if opened is not None:
        closes = mark.startswith(opened[2]) and not info.strip() and not lead.strip()
        return None if closes else opened
    if mark[0] == "`" and "`" in info:
        return None  # code within a line, not a fence
    return position + len(lead), re.sub(r"\S", " ", lead), mark
