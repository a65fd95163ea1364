"""How old a memory is and what the model is told about it (seed 001, staleness story; spec wave.md W-STA)."""

import math

DAY_S = 86_400
STALE_FROM_DAYS = 2


def age_days(stamp: float, now: float) -> int:
    """Whole days of 86,400 s from `stamp` to `now` (both seconds since the epoch); a stamp in the future is 0 days old.

    No calendar takes part: 1.9 days are 1 day, whatever midnights lie between.
    """
    return max(0, math.floor((now - stamp) / DAY_S))


def saved_phrase(days: int) -> str:
    """The line under a topic's heading that says when it was saved."""
    match days:
        case 0:
            return "Saved today."
        case 1:
            return "Saved yesterday."
        case _:
            return f"Saved {days} days ago."


def stale_note(days: int) -> str | None:
    """The caveat for a memory of that age, None before it is two days old; the wording is fixed by seed 001."""
    if days < STALE_FROM_DAYS:
        return None
    return (
        f"This memory is {days} days old. Memories are point-in-time observations, not live state — "
        "claims about code behavior or file:line citations may be outdated. "
        "Verify against current code before asserting as fact."
    )


def freshness_reminder(days: int) -> str | None:
    """The caveat as a host puts it before the text of a memory file that was read, on a line of its own."""
    note = stale_note(days)
    return None if note is None else f"<system-reminder>{note}</system-reminder>"
