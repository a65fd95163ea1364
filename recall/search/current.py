"""Keeps an answer true: no text that the disk no longer has, what still holds first, and a mark for what is unknown."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from recall.search.types import Coverage, Hit
from recall.store.topics import Scope, Topic

_NAMED: Final = 10


class Index(Protocol):
    """What is asked of an index."""

    @property
    def scope(self) -> Scope:
        """Whose memory it is."""
        ...

    def changed(self, topics: Sequence[Topic]) -> set[str]:
        """Paths of those topics whose text is another by now, or that are gone; at the cost of a `stat` each."""
        ...


class WholeIndex(Index, Protocol):
    """One that can look at its folder."""

    def behind(self) -> list[str]:
        """Paths that changed since the state that it answers from."""
        ...


def current(hits: Sequence[Hit], indexes: Iterable[Index]) -> tuple[tuple[Hit, ...], list[str]]:
    """The hits whose files say what they said when they were indexed, and the ids of the others.

    Args:
        hits: of one search; each costs a `stat`.
        indexes: where they come from, one a scope.
    """
    stale: list[str] = []
    for index in indexes:
        topics = [hit.topic for hit in hits if hit.topic.scope is index.scope]
        if topics:
            stale += (public_id(path, index.scope) for path in sorted(index.changed(topics)))
    return tuple(hit for hit in hits if hit.topic.id not in stale), stale


def standing_first(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The hits with those behind all others that a newer fact has superseded."""
    return tuple(sorted(hits, key=lambda hit: bool(hit.topic.superseded_by)))


def behind(indexes: Iterable[WholeIndex]) -> list[str]:
    """Ids of all topics that changed since the indexes were last brought up to date; looks at the folders."""
    return [public_id(path, index.scope) for index in indexes for path in index.behind()]


def public_id(path: str, scope: Scope) -> str:
    """The public name of the topic at the path (deviations V20)."""
    return path if scope is Scope.PROJECT else f"{scope}:{path}"


def marked(coverage: Coverage, ids: Iterable[str]) -> Coverage:
    """The coverage with the ids that it is behind, each once, and no more of them than anybody reads."""
    every = tuple(dict.fromkeys(ids))
    return replace(coverage, behind=every[:_NAMED], behind_count=len(every))
