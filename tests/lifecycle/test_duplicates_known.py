"""When a fact that is there says all that a new one says, so that nothing is to be written."""

import pytest

from recall.lifecycle.remember import Fact, _says_less
from recall.store.topics import Entry, MemoryType


@pytest.mark.parametrize(
    ("new", "known", "less"),
    [
        ("use tabs in Go code", "Always use tabs in Go code please", True),
        ("Ask before deleting", "Ask before deleting user files", False),
        ("Never store names", "Never store user names", False),
        ("use tabs in Go code", "use tabs in Go code", False),
    ],
)
def test_a_known_fact_covers_a_new_one_only_where_it_adds_function_words(new: str, known: str, less: bool) -> None:
    assert _says_less(Fact((Entry(new),), MemoryType.PROJECT), Entry(known)) is less


def test_a_new_reason_is_never_covered() -> None:
    fact = Fact((Entry("use tabs in Go code", why="gofmt"),), MemoryType.PROJECT)
    assert not _says_less(fact, Entry("Always use tabs in Go code"))
