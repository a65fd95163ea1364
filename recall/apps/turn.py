"""One turn of a host, played through: the first request to the model, then tool results until the recall has ended."""

import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from recall.memory.events import Event
from recall.memory.memory import Memory
from recall.search.delivery import Delivery, PrefetchEvent
from recall.search.prefetch import Prefetch

_TOOL_EVERY_S: Final = 0.002
_PATIENCE_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Turn:
    """What a prefetch brought in one turn.

    Attributes:
        first: what the first request to the model carried.
        later: what a tool result carried.
        end: how the handle ended.
    """

    first: Delivery | None
    later: Delivery | None
    end: PrefetchEvent

    @property
    def deliveries(self) -> tuple[Delivery, ...]:
        """All that was delivered, in order."""
        return tuple(delivery for delivery in (self.first, self.later) if delivery is not None)


class Watch:
    """A listener for `Memory.open(on_event=...)` that knows whether the open handle has ended, and how."""

    def __init__(self) -> None:
        self.end: PrefetchEvent | None = None
        self._news = threading.Event()

    def __call__(self, event: Event) -> None:
        """Takes an event, on whatever thread it comes."""
        if isinstance(event, PrefetchEvent) and event.terminal:
            self.end = event
        self._news.set()

    def begin(self) -> None:
        """Forgets how the last handle ended."""
        self.end = None

    def wait(self, timeout_s: float) -> None:
        """Returns with the next event or after the time, whichever is first."""
        self._news.wait(timeout_s)
        self._news.clear()


def play(memory: Memory, query: str, watch: Watch, *, exclude: Collection[str] = (), tools: bool = True) -> Turn:
    """Asks, takes the first delivery within the budget of the settings, and lets tool results follow until the end.

    No model sees what is delivered, so it leaves no trace.

    Args:
        memory: opened with `watch` as its listener; no other handle may be open meanwhile.
        query: what the user asks.
        watch: the listener.
        exclude: ids of topics that may not be delivered.
        tools: whether the turn has tool results at all; without, it ends after the first request.
    """
    watch.begin()
    handle = memory.prefetch(query, exclude=exclude, origin=None)
    try:
        first = handle.first()
        later = _until_settled(handle, watch) if tools else None
    finally:
        handle.close()
    if watch.end is None:
        raise RuntimeError("a closed prefetch reported no end; was the memory opened with this listener?")
    return Turn(first, later, watch.end)


def _until_settled(handle: Prefetch, watch: Watch) -> Delivery | None:
    """Hands the handle one tool result after the other; every search of the memory wakes it up."""
    for _ in range(round(_PATIENCE_S / _TOOL_EVERY_S)):
        later = handle.on_tool_result()
        if later is not None or watch.end is not None:
            return later
        watch.wait(_TOOL_EVERY_S)
    return None
