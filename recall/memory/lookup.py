"""Finds the entries that a request or a fact means, in the memory of all scopes; reads no more topics than it must."""

import re
from collections.abc import Collection, Sequence
from typing import Final

import numpy as np

from recall.index.collection import Collection as Index
from recall.lifecycle.forget import Candidate, by_phrase, candidates, likely, named
from recall.lifecycle.remember import Fact, Neighbour, comparable
from recall.memory.answers import Answers
from recall.memory.keeper import Keeper
from recall.memory.model import Model
from recall.search.types import Filter
from recall.store.topics import Entry, Scope, Topic

_NEIGHBOURS: Final = 8  # topics that may say the same as a new fact
_AS_GOOD: Final = 0.8
_NUMBERED: Final = re.compile(r"(?P<topic>.+):\d+")


class Lookup:
    """Looks topics and entries up, in the files as they are now.

    Args:
        keeper: the indexes.
        model: what compares texts.
        answers: what finds topics by meaning.
    """

    def __init__(self, keeper: Keeper, model: Model, answers: Answers) -> None:
        self._keeper = keeper
        self._model = model
        self._answers = answers

    def topics(self, scopes: Collection[Scope] = ()) -> list[Topic]:
        """All topics, user before project, newest first."""
        found = []
        for index in self._indexes(scopes):
            snapshot = index.snapshot()
            topics = snapshot.topics(range(len(snapshot)))
            found += sorted(topics.values(), key=lambda topic: (-topic.mtime, topic.path))
        return found

    def named(self, name: str, scopes: Collection[Scope] = ()) -> list[Candidate]:
        """The entries that an id means: one entry, or all of a topic, with or without `.md`."""
        numbered = _NUMBERED.fullmatch(name)
        return named(name, candidates(self._at([name, *([numbered["topic"]] if numbered else [])], scopes)))

    def topic(self, name: str) -> Topic | None:
        """The topic of that id, with or without `.md`; None when there is none."""
        return next(iter(self._at([name], ())), None)

    def _at(self, names: Sequence[str], scopes: Collection[Scope]) -> list[Topic]:
        topics: list[Topic] = []
        for index in self._indexes(scopes):
            snapshot = index.snapshot()
            spellings = [spelled for name in names for spelled in (name, f"{name}.md")]
            places = {at for one in spellings if (at := snapshot.position_of(one)) is not None}
            topics += snapshot.topics(sorted(places)).values()
        return topics

    def holding(self, query: str, scopes: Collection[Scope]) -> list[Candidate]:
        """The entries that hold the whole request, word for word."""
        among = candidates(likely(query, self.topics(scopes)))
        return by_phrase(query, among, limit=len(among))

    def meant(self, query: str, limit: int, scopes: Collection[Scope]) -> list[Candidate]:
        """The entries that fit the request by words and meaning, best topic first; of each topic the nearest.

        What is found by chance does no harm in a prompt, but here: so only what is nearly as good as the best.
        """
        if not query.strip():
            return []
        recall = self._answers.full(query, limit, Filter(scopes=frozenset(scopes)))
        chosen = []
        for hit in recall.hits:
            entries = candidates([hit.topic])
            if entries and hit.score >= _AS_GOOD * recall.hits[0].score:
                nearest = self._cosines(query, [one.entry for one in entries]) if len(entries) > 1 else [1.0]
                chosen.append(max(zip(nearest, entries, strict=True), key=lambda pair: pair[0])[1])
        return chosen

    def neighbours(self, fact: Fact) -> list[Neighbour]:
        """The entries that may say the same as a fact, or change it."""
        topics = [topic for topic in self._answers.nearest(fact.summary, _NEIGHBOURS) if not topic.superseded_by]
        found = comparable(fact, candidates(topics))
        cosines = self._cosines(fact.summary, [one.entry for one in found])
        return [Neighbour(one, cosine) for one, cosine in zip(found, cosines, strict=True)]

    def _cosines(self, text: str, entries: Sequence[Entry]) -> list[float]:
        """How near each entry is to the text; 0 without a model."""
        encoder = self._model.encoder
        if encoder is None or not entries:
            return [0.0] * len(entries)
        vectors = encoder.encode_documents([text, *(entry.summary for entry in entries)])
        return [float(value) for value in np.nan_to_num(vectors[1:] @ vectors[0])]

    def _indexes(self, scopes: Collection[Scope]) -> list[Index]:
        """The indexes of these scopes, of all if none is given, in step with the files; the user's first."""
        wanted = [index for index in self._keeper.indexes if not scopes or index.scope in scopes]
        for index in wanted:
            index.sync_words()
        return sorted(wanted, key=lambda index: index.scope is Scope.PROJECT)
