"""The name and the description of a topic, as they follow from what it says."""

from collections.abc import Sequence
from typing import Final

from recall.store.frontmatter import parse

_SIZES: Final = {"name": 72, "description": 150}  # characters
_CUT: Final = "…"
_TELLING: Final = 8  # characters of a fact that a field holds by chance no more


def heading(summary: str) -> dict[str, str]:
    """Name and description of a topic that says this."""
    return {key: cut(summary, size) for key, size in _SIZES.items()}


def retold(text: str, gone: Sequence[str], instead: str) -> dict[str, str]:
    """The fields of a file's header that tell what it says no more, as they follow from what it says instead.

    Args:
        text: of the whole file.
        gone: what it says no more.
        instead: what it says.
    """
    known = parse(text)
    anew = heading(instead)
    return {key: anew[key] for key in _SIZES if any(_tells(known.first(key), summary) for summary in gone)}


def _tells(field: str, summary: str) -> bool:
    """Whether a field is a fact, the beginning of it, or holds it."""
    said, fact = (" ".join(text.split()).casefold() for text in (field, summary))
    if not said:
        return False
    if said.endswith(_CUT):
        return fact.startswith(said.removesuffix(_CUT).rstrip())
    return said == fact or (len(fact) >= _TELLING and fact in said)


def cut(text: str, size: int) -> str:
    """The text on one line, at most so many characters of it."""
    line = " ".join(text.split())
    return line if len(line) <= size else line[: size - 1].rstrip() + _CUT
