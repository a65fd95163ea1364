"""What kind of character each one is, for telling words apart: CJK, letter or number, mark, anything else.

A table of our own instead of a library's scripts: it loads at once, and what counts as CJK does not change with the
version of a library.
"""

import unicodedata
from bisect import bisect_right
from typing import Final

CJK: Final = "c"
WORD: Final = "w"
MARK: Final = "m"
OTHER: Final = " "

_LOOKED_AT: Final = 2000  # characters
_CJK_SHARE: Final = 0.3

# Scripts Han, Hiragana and Hangul, and what is used with Katakana (Unicode 17): first and last code point of a range.
_CJK_RANGES: Final = """
    305-305 323-323 1100-11ff 2e80-2e99 2e9b-2ef3 2f00-2fd5 3001-3003 3005-3005 3007-3011 3013-301f 3021-3029 302e-3035
    3037-303d 3041-3096 3099-30ff 3131-318e 31f0-321e 3260-327e 32d0-32fe 3300-3357 3400-4dbf 4e00-9fff a960-a97c
    ac00-d7a3 d7b0-d7c6 d7cb-d7fb f900-fa6d fa70-fad9 fe45-fe46 ff61-ffbe ffc2-ffc7 ffca-ffcf ffd2-ffd7 ffda-ffdc
    16fe2-16fe3 16ff0-16ff6 1aff0-1aff3 1aff5-1affb 1affd-1affe 1b000-1b128 1b132-1b132 1b150-1b152 1b155-1b155
    1b164-1b168 1f200-1f200 20000-2a6df 2a700-2b81e 2b820-2cead 2ceb0-2ebe0 2ebf0-2ee5d 2f800-2fa1d 30000-3134a
    31350-33479
"""
_ENDS: Final = [int(end, 16) + last for pair in _CJK_RANGES.split() for last, end in enumerate(pair.split("-"))]


def kinds(text: str) -> str:
    """The kind of each character, one after the other: a string of CJK, WORD, MARK and OTHER."""
    return text.translate(_KINDS)


def is_cjk(text: str) -> bool:
    """Whether a text is mostly in Chinese, Japanese or Korean: such a character says about as much as three letters."""
    found = kinds(text[:_LOOKED_AT])
    cjk, other = found.count(CJK), found.count(WORD)
    return cjk > _CJK_SHARE * (cjk + other)


class _Kinds(dict[int, str]):
    """The kind of a character, worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        category = unicodedata.category(chr(code))[0]
        other = WORD if category in "LN" else MARK if category == "M" else OTHER
        # Behind an odd number of ends, a code point lies inside of a range.
        kind = self[code] = CJK if bisect_right(_ENDS, code) % 2 else other
        return kind


_KINDS: Final = _Kinds()
