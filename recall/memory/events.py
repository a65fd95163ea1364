"""What a memory tells its host: numbers for telemetry, never the text of a memory or a query."""

from dataclasses import dataclass

from recall.index.sync import SyncReport
from recall.search.delivery import PrefetchEvent
from recall.search.types import Strategy


@dataclass(frozen=True, slots=True)
class RecallEvent:
    """One search (spec qwen.md section 10).

    Attributes:
        query_chars: length of the query.
        scanned: topics that could be found.
        selected: topics that were.
        strategy: how.
        duration_s: wall time in seconds.
    """

    query_chars: int
    scanned: int
    selected: int
    strategy: Strategy
    duration_s: float


Event = RecallEvent | PrefetchEvent | SyncReport
"""A search, a delivery or its drop, a synchronisation."""
