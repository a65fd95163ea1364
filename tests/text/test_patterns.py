"""Patterns that are compiled when they are first used."""

import re

import pytest

from recall.text.patterns import pattern


def test_it_does_what_the_compiled_pattern_does() -> None:
    lazy, eager = pattern(r"(?P<word>[a-z]+)", re.IGNORECASE), re.compile(r"(?P<word>[a-z]+)", re.IGNORECASE)
    for _ in range(2):
        assert lazy.findall("One 2 three") == eager.findall("One 2 three") == ["One", "three"]
    assert lazy.sub(r"<\g<word>>", "a 1") == "<a> 1"
    assert (lazy.pattern, lazy.flags, lazy.groups) == (eager.pattern, eager.flags, eager.groups)


def test_nothing_is_compiled_before_it_is_used() -> None:
    broken = pattern("(")
    with pytest.raises(re.error, match="unterminated"):
        broken.match("x")
