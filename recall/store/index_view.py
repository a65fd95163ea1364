"""The index as it goes into the prompt: the first 200 lines and 25,000 characters, and what was lost in words.

Sources: seed 001 (acceptance 2, capacity governance 1), wave.md W-AUT-02, W-CAP-01; DESIGN section 4.5.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from recall.store.capacity import ADVISED_CHARS, INDEX_CAPS, INDEX_NAME, Caps, Unit, goals, size_of
from recall.store.files import read_text
from recall.store.frontmatter import js_trim

MAX_BYTES: Final = 16 << 20
_SNIPPET_CHARS: Final = 80


@dataclass(frozen=True, slots=True)
class IndexView:
    """What is loaded of an index.

    Attributes:
        text: for the prompt, as it is in the file: data, to be quoted as such; "" = the prompt has no section for it.
        warning: what is missing from it and what to do, in words; "" when it is whole.
        truncated: whether anything is missing.
        reasons: which limits are exceeded.
        total_lines: lines of the whole index, without blank ones around it.
        total_chars: its characters (code points).
        total_bytes: its size in bytes of UTF-8.
        loaded_lines: how many lines are in `text`; a first line that was cut counts.
        dropped_lines: how many are not.
        first_dropped_line: number of the first of these, from 1 for the first that is not blank.
        snippet: up to 80 characters of the first text that is missing.
        line1_cut_at: how many characters of line 1 are in `text` when even that is cut; nothing is said of other lines.
    """

    text: str
    warning: str
    truncated: bool
    reasons: tuple[Unit, ...]
    total_lines: int
    total_chars: int
    loaded_lines: int
    dropped_lines: int
    first_dropped_line: int | None
    snippet: str | None
    line1_cut_at: int | None
    total_bytes: int = 0


def truncate(text: str, caps: Caps = INDEX_CAPS) -> IndexView:
    """What is loaded of an index: by lines first, then by characters at a line end.

    Args:
        text: the index.
        caps: what the host loads. The default counts lines and characters; `INDEX_CAPS_IN_BYTES` counts bytes as well,
            which makes a third of a Chinese index. The size in bytes is told in any case.
    """
    return _view(text, caps)


def _view(text: str, caps: Caps) -> IndexView:
    text = js_trim(text)
    size = size_of(text)
    lines = text.split("\n")
    reasons = {unit for unit, found, cap in size.measured(caps) if found > cap}
    body = _fitting("\n".join(lines[: caps.lines]), caps) if reasons else text
    loaded = body.count("\n") + 1
    is_cut_inside = len(body) < len(lines[0])
    dropped = 0 if is_cut_inside else len(lines) - loaded
    rest = (line.strip() for line in lines[loaded:])
    view = IndexView(
        text=body,
        warning="",
        truncated=bool(reasons),
        reasons=tuple(unit for unit in Unit if unit in reasons),
        total_lines=size.lines,
        total_chars=size.chars,
        total_bytes=size.bytes,
        loaded_lines=loaded,
        dropped_lines=dropped,
        first_dropped_line=loaded + 1 if dropped else None,
        snippet=next((line[:_SNIPPET_CHARS] for line in rest if line), None) if dropped else None,
        line1_cut_at=len(body) if is_cut_inside else None,
    )
    return replace(view, warning=_warning(view, caps)) if reasons else view


def load_index(folder: Path, caps: Caps = INDEX_CAPS) -> IndexView:
    """What is loaded of the folder's MEMORY.md; an empty view where it is missing, blank or a link to nothing.

    Raises:
        TopicError: it is binary, huge or a folder.
        OSError: it cannot be read.
    """
    try:
        text, _ = read_text(folder / INDEX_NAME, max_bytes=MAX_BYTES)
    except FileNotFoundError:
        text = ""
    return _view(text, caps)


def _fitting(text: str, caps: Caps) -> str:
    """The lines of a text that fit, or what fits of the first; a line end just behind the limit counts as fitting."""
    chars = len(text) if caps.chars is None else caps.chars
    if caps.bytes is not None:
        within = text.encode("utf-8", "surrogatepass")[: caps.bytes]
        chars = min(chars, len(within.decode("utf-8", "ignore")))
    if len(text) <= chars:
        return text
    end = text.rfind("\n", 0, chars + 1)
    return text[: end if end > 0 else chars]


def _warning(view: IndexView, caps: Caps) -> str:
    sizes = {Unit.LINES: view.total_lines, Unit.CHARS: view.total_chars, Unit.BYTES: view.total_bytes}
    limits = {Unit.LINES: caps.lines, Unit.CHARS: caps.chars, Unit.BYTES: caps.bytes}
    reasons = " and ".join(f"{sizes[unit]} {unit.word} where {limits[unit]} are loaded" for unit in view.reasons)
    if view.line1_cut_at is not None:
        loss = f"Everything after the first {view.line1_cut_at} characters of line 1 is missing here."
    else:
        loss = (
            f"Loaded are {view.loaded_lines} of {view.total_lines} lines; everything from line "
            f"{view.first_dropped_line} on is missing here, beginning with: {view.snippet}"
        )
    return (
        f"WARNING: {INDEX_NAME} is too large: {reasons}. {loss}\n"
        f"Keep each of its lines under about {ADVISED_CHARS} characters, move detail into topic files, and bring it "
        f"below {goals(caps)}."
    )
