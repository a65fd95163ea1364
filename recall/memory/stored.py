"""What is told of single memories: where an entry stands, and what became of a fact."""

from dataclasses import dataclass
from pathlib import Path

from recall.lifecycle.remember import Outcome
from recall.store.topics import Scope


@dataclass(frozen=True, slots=True)
class Stored:
    """One entry of a topic, or one item of a file of instructions (W-MNG-01).

    Attributes:
        id: its public name, for `Memory.delete`.
        scope: whose it is.
        file: where it stands.
        first: its first line, from 1.
        last: its last line.
        text: what it says.
    """

    id: str
    scope: Scope
    file: Path
    first: int
    last: int
    text: str


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of a fact.

    Attributes:
        outcome: created, updated, superseded, known (nothing was written) or forgotten (it may not come back).
        id: of the topic or entry that says it; "" for a forgotten one.
        file: where it stands; None for a forgotten one.
        run: the run that wrote it, for `restore`; "" when nothing was written.
        other: what the entry said before, or says already; "" for a new one.
        notes: what else is to be said, in sentences.
    """

    outcome: Outcome
    id: str
    file: Path | None
    run: str = ""
    other: str = ""
    notes: tuple[str, ...] = ()
