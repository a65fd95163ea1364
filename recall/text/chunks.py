"""Cuts a long body into pieces that a model can read whole; together they hold every character of it.

A model reads a bounded number of its own tokens. Sizes are estimated without the model: on prose, notes and Chinese the
estimate stays under the true count by a sixth at most; on capitals, camelCase or base64 it can be half of it, and an
encoder then has to read such a piece in parts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import regex

_LETTERS_PER_TOKEN: Final = 4
_PIECE: Final = regex.compile(r"[A-Za-z]+|\S")
_SENTENCE: Final = regex.compile(r".*?(?:[。！？；!?;]+|\.(?=\s)|$)\s*", regex.DOTALL)
# Title and description are repeated in every chunk; past this share they would crowd out the body.
_HEAD_SHARE: Final = 4


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of a topic as the encoder gets it.

    Attributes:
        text: title, description and the piece of the body.
        start: first character of the piece in the body.
        stop: first character after it.
    """

    text: str
    start: int
    stop: int


def encoder_tokens(text: str) -> float:
    """Model tokens that the text will take, estimated: four Latin letters each, any other visible character one."""
    return sum(max(1.0, len(piece) / _LETTERS_PER_TOKEN) for piece in _PIECE.findall(text))


def chunk_topic(title: str, description: str, body: str, *, budget: int) -> list[Chunk]:
    """The topic in pieces of at most `budget` estimated tokens, at least one, covering the whole body.

    Args:
        title: repeated at the head of each chunk, so that a piece from the middle still says what it is about.
        description: likewise; cut when it is long.
        body: cut at line ends, else at sentence ends, else anywhere.
        budget: estimated tokens a chunk may have.
    """
    head = _clip("\n".join(part for part in (title, description) if part), budget / _HEAD_SHARE)
    room = budget - encoder_tokens(head)
    return [Chunk(f"{head}\n{body[start:stop].strip()}".strip(), start, stop) for start, stop in _spans(body, room)]


def _spans(body: str, room: float) -> list[tuple[int, int]]:
    """Borders of pieces of at most `room` estimated tokens that join to the whole body."""
    spans: list[tuple[int, int]] = []
    start = stop = 0
    used = 0.0
    for atom in _atoms(body, room):
        cost = encoder_tokens(atom)
        if used and used + cost > room:
            spans.append((start, stop))
            start, used = stop, 0.0
        stop += len(atom)
        used += cost
    if used or not spans:
        spans.append((start, stop))
    else:
        spans[-1] = (spans[-1][0], stop)
    return spans


def _atoms(body: str, room: float) -> Iterator[str]:
    """Lines, where they fit; else sentences; else runs of characters that fit for certain."""
    for line in body.splitlines(keepends=True):
        if len(line) <= room or encoder_tokens(line) <= room:
            yield line
            continue
        for sentence in _SENTENCE.findall(line):
            if len(sentence) <= room or encoder_tokens(sentence) <= room:
                yield sentence
            else:
                step = max(1, int(room))
                yield from (sentence[at : at + step] for at in range(0, len(sentence), step))


def _clip(text: str, limit: float) -> str:
    """The longest beginning of whole words that stays under the limit, or the bare cut when no word ends in it."""
    if encoder_tokens(text) <= limit:
        return text
    used = 0.0
    for piece in _PIECE.finditer(text):
        used += max(1.0, len(piece[0]) / _LETTERS_PER_TOKEN)
        if used > limit:
            return text[: piece.start()].rstrip() or text[: int(limit) * _LETTERS_PER_TOKEN]
    return text
