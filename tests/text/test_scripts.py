"""Kinds of characters agree with what a library of Unicode properties says of them."""

import sys
import unicodedata

import regex

from recall.text.scripts import CJK, MARK, OTHER, WORD, kinds

ALL = "".join(map(chr, [*range(0xD800), *range(0xE000, sys.maxunicode + 1)]))


def test_every_character_known_to_both_is_of_the_same_kind() -> None:
    """Which characters there are depends on the versions of Python and of the library."""
    cjk = r"\p{Han}\p{Hiragana}\p{Hangul}\p{Script_Extensions=Katakana}"
    assigned = "".join(char for char in ALL if unicodedata.category(char) not in {"Cn", "Co"})
    for kind, of in ((CJK, f"[{cjk}]"), (WORD, rf"[[\p{{L}}\p{{N}}]--[{cjk}]]"), (MARK, rf"[\p{{M}}--[{cjk}]]")):
        expected = set(regex.findall(f"(?V1){of}", assigned))
        assert {char for char, found in zip(assigned, kinds(assigned), strict=True) if found == kind} == expected


def test_a_kind_is_told_for_each_character() -> None:
    assert kinds("a1é\u0301 数\U00020000カ한-") == f"{WORD * 3}{MARK}{OTHER}{CJK * 4}{OTHER}"
    assert kinds("") == ""
    assert kinds("\ud800\u4dff\u4e00\u9fff\ua000") == f"{OTHER}{OTHER}{CJK}{CJK}{WORD}"
