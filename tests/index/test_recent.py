"""What was asked lately is remembered within its bytes."""

import numpy as np

from recall.index.recent import Recent

FIELDS = np.ones(100, np.uint8)


def test_what_was_put_is_got_and_other_tokens_are_not_known() -> None:
    recent = Recent(10_000)
    slots = np.arange(100, dtype=np.int32)
    recent.put("backup", slots, FIELDS)
    recent.put("release", slice(None), FIELDS)
    assert recent.get("backup") == (slots, FIELDS)
    assert recent.get("release") == (slice(None), FIELDS)
    assert recent.get("rollback") is None


def test_beyond_its_bytes_all_is_forgotten_and_it_goes_on() -> None:
    recent = Recent(10_000)
    for number in range(1000):
        recent.put(f"token{number}", slice(None), FIELDS)
    known = [number for number in range(1000) if recent.get(f"token{number}") is not None]
    assert known == list(range(min(known), 1000))
    assert 1 <= len(known) * FIELDS.nbytes <= 10_000


def test_tokens_that_nothing_holds_take_memory_as_well() -> None:
    recent = Recent(100_000)
    nothing = np.zeros(0, np.uint8)
    for number in range(10_000):
        recent.put(f"token{number}", np.zeros(0, np.int32), nothing)
    assert sum(recent.get(f"token{number}") is not None for number in range(10_000)) < 1000


def test_what_is_larger_than_all_of_it_is_not_remembered() -> None:
    recent = Recent(1000)
    recent.put("small", slice(None), np.zeros(10, np.uint8))
    recent.put("large", slice(None), np.zeros(2000, np.uint8))
    assert recent.get("large") is None
