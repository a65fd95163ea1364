"""What was asked of a segment lately: people use the same words again and again."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Slots = NDArray[np.int32] | slice
"""Places of documents in a segment, or a slice of all."""

_ENTRY: Final = 400  # bytes that a token and its arrays take beside what is in them


class Recent:
    """Where some tokens stand, up to so many bytes; beyond, all are forgotten. Safe to use from any thread.

    Args:
        most_bytes: that may be taken.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._taken = 0
        self._known: dict[str, tuple[Slots, NDArray[np.uint8]]] = {}

    def get(self, token: str) -> tuple[Slots, NDArray[np.uint8]] | None:
        """Slots and fields of the token; None when they are not known."""
        return self._known.get(token)

    def put(self, token: str, slots: Slots, fields: NDArray[np.uint8]) -> None:
        """Remembers them. Threads that do at once may count a little less or more than there is."""
        taken = _ENTRY + fields.nbytes + (0 if isinstance(slots, slice) else slots.nbytes)
        if self._taken + taken > self._most:
            self._known, self._taken = {}, 0
        if taken <= self._most:
            self._known[token] = slots, fields
            self._taken += taken
