"""Lines for people: text in parts, each with a style that only a terminal shows."""

from __future__ import annotations

from typing import NamedTuple


class Line(NamedTuple):
    """One line.

    Attributes:
        parts: text with its style as rich names it, "" for none.
    """

    parts: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, *parts: str | tuple[str, str] | Line) -> Line:
        """The parts one after the other; bare text has no style."""
        flat: list[tuple[str, str]] = []
        for part in parts:
            flat += part.parts if isinstance(part, Line) else [(part, "") if isinstance(part, str) else part]
        return cls(tuple(flat))

    @property
    def plain(self) -> str:
        """The text without styles."""
        return "".join(text for text, _ in self.parts)
