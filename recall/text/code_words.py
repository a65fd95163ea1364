"""Code words of a text: identifiers, paths, flags, file names, addresses; the words in which every character counts."""

import re
from typing import Final

from recall.text.patterns import pattern

# What stands between blanks or CJK characters; brackets and quotes around it are not part of it.
_RUN: Final = pattern(r"[!-~]+")
_QUOTED: Final = pattern(r"`([^`\n]{1,200})`")
_BEFORE: Final = "\"'([{<*,;:!?|`="
_BEHIND: Final = "\"')]}>*,;:!?|`.="
_SPLIT: Final = pattern(r"[,;|\"<>{}]|(?<=\w)\(|[:=]$")

_CODE: Final = pattern(
    r"[a-z][a-z+.-]*://\S+"  # an address
    r"|[\w.+-]*@[\w./-]+"  # mail, handle, scoped package
    r"|--?[A-Za-z][\w-]*(?:=\S*)?"  # flag
    r"|\$\{?[A-Za-z_]\w*\}?|%\w+%"  # variable of the environment
    r"|(?:~|\.{1,2})?/\S*\w\S*|[A-Za-z]:\\\S*"  # path from a root
    r"|[\w.@~*-]+(?:[/\\][\w.@*-]*){2,}|(?=\S*[\d_.*@-])[\w.@~*-]*[A-Za-z][\w.@~*-]*[/\\][\w.@*-]+|[a-z]\w+/"  # path
    r"|\.[A-Za-z][\w.-]*"  # hidden file
    r"|\w*[A-Za-z]\w*_\w*|\w*_\w*[A-Za-z]\w*"  # snake_case
    r"|[A-Za-z]\w*(?:(?:\.|::|->|#)\w*[A-Za-z_]\w*)+|[\w-]+\.[A-Za-z][A-Za-z0-9]{0,5}"  # attribute, file name
    r"|[A-Za-z]\w*(?:-[\w]+)*\.[A-Za-z][A-Za-z0-9]{0,5}(?:\.[A-Za-z0-9]+)*"
    r"|\w*[a-z0-9][A-Z]\w*"  # camelCase
    r"|[A-Za-z_][\w.-]*(?:=|:\d)\S*|[A-Za-z]\w*\(\)"  # setting, host and port, call
    r"|(?=(?:[0-9]*[a-f]+[0-9]+){2})[0-9a-f]{7,64}"  # hash
)
_PROSE: Final = frozenset({"e.g", "i.e", "a.m", "p.m", "a.k.a", "u.s", "ph.d"})
_LONGEST: Final = 160  # characters of a word that is looked at; a longer one is no prose
_MIXED: Final = pattern(r"[a-z0-9][A-Z]")
# Numbers with letters: a size, a time, an ordinal, a date with its time.
_NUMERIC: Final = pattern(r"v?\d[\d.,:-]*(?:[A-Za-z%]{0,4}|T[\d:.]+Z?)")


def code_words(text: str) -> tuple[frozenset[str], str]:
    """The code words of a text in NFKC, and the text without them.

    Case counts in mixed case alone (`userId`); other words are in lower case. A word in backticks that looks like any
    other word is code where it is quoted, and stays in the text as well.
    """
    codes: set[str] = set()

    def taken(run: re.Match[str]) -> str:
        kept = []
        for piece in _SPLIT.split(run[0]):
            word = piece.lstrip(_BEFORE).rstrip(_BEHIND)
            if word and _is_code(word):
                codes.add(folded(word.removesuffix("/") or word))
                kept.append(" ")
            else:
                kept.append(piece)
        return ",".join(kept)

    for quoted in _QUOTED.finditer(text):
        words = (word.strip(_BEFORE).rstrip(_BEHIND) for word in quoted[1].split())
        codes.update(folded(word) for word in words if word and word.isascii() and word[-1:].isalpha())
    rest = _RUN.sub(taken, text.replace("`", " "))
    return frozenset(codes), rest


def folded(word: str) -> str:
    """A code word as it is compared."""
    word = word.removesuffix("()")
    return word if _MIXED.search(word) else word.lower()


def _is_code(word: str) -> bool:
    if len(word) > _LONGEST:
        return True
    return (
        not word.isalpha()
        and _CODE.fullmatch(word) is not None
        and word.lower() not in _PROSE
        and _NUMERIC.fullmatch(word) is None
    ) or (word.isalpha() and _MIXED.search(word) is not None)
