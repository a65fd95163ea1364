"""Words of a text: the founding tokenizer for queries, and the terms that an index keeps of a document.

Both see text the same way: NFKC, lower case, then two kinds of run. A CJK run gives its neighbouring pairs, any other
run of letters, marks and numbers gives itself. Source: founding document 000, spec qwen.md section 4.1.
"""

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import Final

from recall.text.scripts import kinds

_ASCII_RUN: Final = re.compile(r"[a-z0-9]+")
# In the kinds of the characters (text.scripts).
_QUERY_RUN: Final = re.compile("(c+)|w[wm]{2,}")
_CJK_RUN: Final = re.compile("c+")
_WORD_RUN: Final = re.compile("[wm]+")
_SHORTEST_WORD: Final = 3

HEAD_TOKENS: Final = 32
TAIL_TOKENS: Final = 32

# A longer run without a blank, such as base64 text, becomes several terms that overlap, so that a word of up to the
# overlap is part of one; behind the last character that counts nobody asks, and trigrams would fill the index.
_LONGEST_TERM: Final = 1200
_OVERLAP: Final = 200
_LONGEST_RUN: Final = 8000


LONGEST_QUERY: Final = 8000
"""Characters of a query that are searched."""


def bounded(query: str) -> str:
    """The query cut to a length that costs no time: its beginning and its end, where people ask."""
    if len(query) <= LONGEST_QUERY:
        return query
    half = LONGEST_QUERY // 2
    return f"{query[:half]}\n{query[-half:]}"


def normalise(text: str) -> str:
    """The text in NFKC and lower case, the form that every comparison of words uses."""
    return unicodedata.normalize("NFKC", text).lower()


def tokenize(text: str) -> list[str]:
    """Query tokens: CJK bigrams and other runs of three or more, each once, at most 64.

    The first 32 distinct tokens are kept in order; of the others the 32 seen last, in the order of their last sight.

    Source: founding document 000 (64 tokens), spec qwen.md section 4.1 (head and tail).
    """
    head: dict[str, None] = {}
    tail: dict[str, None] = {}
    for token in _tokens(normalise(text)):
        if token in head:
            continue
        if len(head) < HEAD_TOKENS:
            head[token] = None
            continue
        tail.pop(token, None)
        tail[token] = None
        if len(tail) > TAIL_TOKENS:
            del tail[next(iter(tail))]
    return [*head, *tail]


def _tokens(normalised: str) -> Iterator[str]:
    if normalised.isascii():
        yield from (run for run in _ASCII_RUN.findall(normalised) if len(run) >= _SHORTEST_WORD)
        return
    for run in _QUERY_RUN.finditer(kinds(normalised)):
        text = normalised[run.start() : run.end()]
        if run[1]:
            yield from _pairs(text)
        else:
            yield text


def _found(run: re.Pattern[str], kind: str, text: str) -> Iterator[str]:
    """The parts of the text whose kinds are such a run."""
    return (text[match.start() : match.end()] for match in run.finditer(kind))


def _pairs(run: str) -> Iterator[str]:
    return map("".join, itertools.pairwise(run))


def _pieces(run: str) -> list[str]:
    starts = range(0, min(len(run), _LONGEST_RUN) - _OVERLAP, _LONGEST_TERM - _OVERLAP)
    return [run[at : at + _LONGEST_TERM] for at in starts]


def terms(text: str) -> Counter[str]:
    """How often each index term occurs: CJK bigrams, lone CJK characters, other runs of any length.

    A query token occurs in `normalise(text)` exactly when it is one of these terms (a bigram) or part of one (a run),
    so that a search over terms finds what a search through the text would; only what lies far behind the beginning of
    a run of thousands of characters, and tokens of hundreds of them, can be missed.
    """
    normalised = normalise(text)
    plain = normalised.isascii()
    kind = "" if plain else kinds(normalised)
    counts = Counter(_ASCII_RUN.findall(normalised) if plain else _found(_WORD_RUN, kind, normalised))
    for run in [term for term in counts if len(term) > _LONGEST_TERM]:
        times = counts.pop(run)
        for piece in _pieces(run):
            counts[piece] += times
    if not plain:
        runs = list(_found(_CJK_RUN, kind, normalised))
        counts.update(run for run in runs if len(run) == 1)
        counts.update(itertools.chain.from_iterable(map(_pairs, runs)))
    return counts
