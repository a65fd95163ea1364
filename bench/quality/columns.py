"""Every way to answer a set, asked the same questions: the peers, the parts of the score, what a user gets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Final

from bench.quality.peers import ask_peers
from recall.apps.evaluate import Injected, Ranking, Way, evaluate
from recall.apps.metrics import Judged
from recall.apps.testset import Query
from recall.config import Config

WAYS: Final[Mapping[str, Way]] = {
    "heuristic": Way(Ranking.HEURISTIC, with_floor=False),
    "words": Way(Ranking.WORDS),
    "dense": Way(Ranking.DENSE),
    "hybrid": Way(with_floor=False),
    "recall": Way(),
    "delivered": Way(delivered=True),
}
"""The project's own ways: the founding document's scorer, our words, our vectors, both without and with the floor that
is shipped, and what a turn with tools puts in front of the model (`search.k` topics, not ten)."""

COLUMNS: Final = ("heuristic", "words", "bm25s", "fts5", "dense", "hybrid", "recall", "delivered")


@dataclass(frozen=True, slots=True)
class Answers:
    """What every column answered to the questions of one set.

    Attributes:
        queries: in the order of all that follows.
        columns: one judged answer a query, by column.
        injected: what each turn of `delivered` injected.
        topics: topics of the set.
        unknown: right answers that no topic has the id of.
        floor: fused score that a hit of `recall` and `delivered` had to reach.
    """

    queries: tuple[Query, ...]
    columns: Mapping[str, tuple[Judged, ...]]
    injected: tuple[Injected, ...]
    topics: int
    unknown: tuple[str, ...]
    floor: float | None


def ask(
    root: Path, queries: Sequence[Query], *, config: Config, told: Callable[[str], None] = lambda _: None
) -> Answers:
    """Asks all columns.

    Args:
        root: the folder that ids and scopes are below.
        queries: from `testset.read_queries`.
        config: settings of the project's own ways.
        told: hears the name of each way when it begins.

    Raises:
        EncoderError: the model does not work.
    """
    ordered = sorted(queries, key=attrgetter("scope"))
    told("peers")
    columns = ask_peers(root, ordered)
    done = {}
    for name, way in WAYS.items():
        told(name)
        done[name] = evaluate(root, ordered, config=config, way=way)
        columns[name] = done[name].judged
    return Answers(
        queries=tuple(ordered),
        columns={name: columns[name] for name in COLUMNS},
        injected=done["delivered"].injected,
        topics=done["recall"].topics,
        unknown=done["recall"].unknown,
        floor=done["recall"].floor,
    )
