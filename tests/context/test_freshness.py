"""Ages and the caveat that goes with them (seed 001, staleness story; W-STA; complaint 55)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.context.freshness import age_days, freshness_reminder, saved_phrase, stale_note

NOW = 1_773_576_000.0
DAY = 86_400.0


@pytest.mark.parametrize(
    ("elapsed_days", "age"),
    [(-3.0, 0), (0.0, 0), (0.99, 0), (1.0, 1), (1.9, 1), (1.99999, 1), (2.0, 2), (47.0, 47), (400.5, 400)],
)
def test_an_age_is_the_whole_days_elapsed_and_the_future_is_today(elapsed_days: float, age: int) -> None:
    assert age_days(NOW - elapsed_days * DAY, NOW) == age


@given(st.floats(min_value=0, max_value=4e9), st.floats(min_value=0, max_value=4e9))
def test_an_age_is_never_negative_and_grows_with_time(stamp: float, now: float) -> None:
    assert 0 <= age_days(stamp, now) <= age_days(stamp, now + DAY)


@pytest.mark.parametrize(
    ("days", "phrase"),
    [(0, "Saved today."), (1, "Saved yesterday."), (2, "Saved 2 days ago."), (400, "Saved 400 days ago.")],
)
def test_the_age_is_told_in_words(days: int, phrase: str) -> None:
    assert saved_phrase(days) == phrase


@pytest.mark.parametrize("days", [0, 1])
def test_a_memory_younger_than_two_days_carries_no_caveat(days: int) -> None:
    assert stale_note(days) is None
    assert freshness_reminder(days) is None


def test_from_two_days_on_the_reminder_is_the_sentence_of_the_founding_document_word_for_word() -> None:
    assert freshness_reminder(60) == (
        "<system-reminder>This memory is 60 days old. Memories are point-in-time observations, not live state — claims "
        "about code behavior or file:line citations may be outdated. Verify against current code before asserting as "
        "fact.</system-reminder>"
    )
    assert freshness_reminder(2) == f"<system-reminder>{stale_note(2)}</system-reminder>"
    assert str(stale_note(2)).startswith("This memory is 2 days old. ")
