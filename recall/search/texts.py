"""The best few topics of a search: their texts, and what the words of the query bring beside F."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from recall.index.base import Vector
from recall.index.snapshot import Snapshot
from recall.search.dense import only_vector
from recall.search.fusion import Scored
from recall.search.lexical import Words
from recall.search.phrases import Phrases, telling
from recall.search.types import Hit
from recall.store.topics import Topic

Place = tuple[int, Scored]
"""Number of the snapshot, and the topic."""


class Texts:
    """Topics of some snapshots, each read once."""

    def __init__(self, snapshots: Sequence[Snapshot]) -> None:
        self._snapshots = snapshots
        self._topics: dict[tuple[int, int], Topic | None] = {}

    def topics(self, places: Sequence[Place]) -> Iterator[tuple[Place, Topic]]:
        """The topics, whole; those that are gone by now are left out."""
        for number, snapshot in enumerate(self._snapshots):
            wanted = {item.position for at, item in places if at == number}
            positions = [position for position in wanted if (number, position) not in self._topics]
            found = snapshot.topics(positions) if positions else {}
            self._topics.update({(number, position): found.get(position) for position in positions})
        for place in places:
            if (topic := self._topics[place[0], place[1].position]) is not None:
                yield place, topic

    def holding(self, places: Sequence[Place], phrases: Phrases) -> list[Place]:
        """The same with what the phrases that they hold bring; those that hold no word of the query are not read."""
        read = self.topics([place for place in places if place[1].matched]) if phrases.weights else ()
        shares = {place: phrases.share(f"{topic.title}\n{topic.description}\n{topic.body}") for place, topic in read}
        return [(place[0], place[1].holding(shares[place])) if shares.get(place) else place for place in places]

    def vectors(self, hits: Iterable[Hit]) -> list[Vector | None]:
        """The vector of each hit whose topic has only one."""
        by_scope = {snapshot.scope: snapshot for snapshot in self._snapshots}
        found: list[Vector | None] = []
        for hit in hits:
            snapshot = by_scope[hit.topic.scope]
            at = snapshot.position_of(hit.topic.id)
            found.append(None if at is None else only_vector(snapshot, at))
        return found


@dataclass(frozen=True, slots=True)
class Asked:
    """The words of a query and where they stand.

    Attributes:
        words: in the order of `text.tokens.terms`.
        matches: what they say of each snapshot.
    """

    words: Sequence[str]
    matches: Sequence[Words]

    @property
    def information(self) -> list[float]:
        """Share of each word in what the query says."""
        found: list[float] = self.matches[0].shares.information.tolist()
        return found

    def phrases(self, query: str) -> Phrases:
        """Those of its words that stand together."""
        return Phrases.of(query, dict(zip(self.words, self.information, strict=True)))

    def alone(self, places: Sequence[Place]) -> list[Place]:
        """The topics, best first, each with the share of the query in words that no better one holds."""
        told = telling(self.words, self.information)
        held = [
            words.shares.held([item.position for number, item in places if number == at], len(words.coverage))
            for at, words in enumerate(self.matches)
        ]
        seen: set[int] = set()
        found: list[Place] = []
        for number, item in places:
            its_own = held[number].get(item.position, set()) - seen
            seen |= its_own
            alone = sum(told[word] for word in its_own)
            found.append((number, replace(item, alone=alone) if alone else item))
        return found
