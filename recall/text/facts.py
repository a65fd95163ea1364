"""May two texts say one thing? Not when they differ in numbers, dates, negation or code words."""

import re
from typing import Final

_NUMBER: Final = re.compile(r"\d+(?:[.,:/-]\d+)*")
_NEGATION: Final = re.compile(r"\b(?:not|no|never|none|without|cannot|nor|neither)\b|n['’]t\b|[不没沒无無勿]|别[^的人处]", re.I)
_CODE: Final = re.compile(r"`[^`]+`|\b\w*[a-z][A-Z]\w*|\b[A-Z]{2,}\b|[\w-]+(?:[/_.][\w-]+)+|--[\w-]+")


def may_be_one(first: str, second: str) -> bool:
    """False when the two texts differ in numbers, dates, negation or code words."""
    return _facts(first) == _facts(second)


def _facts(text: str) -> tuple[frozenset[str], int, frozenset[str]]:
    negations = len(_NEGATION.findall(text))
    return frozenset(_NUMBER.findall(text)), negations, frozenset(_CODE.findall(text))
