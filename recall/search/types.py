"""The vocabulary of recall: what a search returns and how a prefetch ends.

Words that the founding documents fix (strategies, phases, drop reasons) are the literal values of the enums.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from recall.store.topics import MemoryType, Scope, Topic

if TYPE_CHECKING:  # only an explanation needs it
    from recall.search.explanation import Evidence


class Strategy(StrEnum):
    """How the hits were chosen. `hybrid` is a word of ours: words and vectors together (deviations V26)."""

    NONE = "none"
    HEURISTIC = "heuristic"
    HYBRID = "hybrid"
    MODEL = "model"


class Phase(StrEnum):
    """Which of the two results of a prefetch: the quick one or the considered one."""

    FAST = "fast"
    REFINED = "refined"


class Point(StrEnum):
    """Where a result was handed over, or that it was not."""

    INITIAL = "initial"
    TOOL_RESULT = "tool_result"
    DISCARDED = "discarded"


class Drop(StrEnum):
    """Why a result was not delivered (spec qwen.md section 5)."""

    NO_SAFE_DELIVERY_POINT = "no_safe_delivery_point"
    NEW_QUERY = "new_query"
    RESET = "reset"
    ABORT = "abort"
    SHUTDOWN = "shutdown"
    NO_RELEVANT_RESULTS = "no_relevant_results"
    ALREADY_DELIVERED = "already_delivered"


@dataclass(frozen=True, slots=True)
class Filter:
    """Which topics may be found; an answer is filled up to k with those that may.

    Attributes:
        exclude: ids that may not.
        types: kinds of memory that may; empty for all, also those without a kind.
        scopes: whose memory may; empty for all.
    """

    exclude: frozenset[str] = frozenset()
    types: frozenset[MemoryType] = frozenset()
    scopes: frozenset[Scope] = frozenset()


@dataclass(frozen=True, slots=True)
class Hit:
    """One topic with the parts of its score; every number grows with relevance.

    Attributes:
        topic: the topic as it was when it was indexed.
        score: what the hits are ordered by; on the scale of the strategy that made it.
        cosine: best cosine of the query with a chunk of the topic, None where no vector took part.
        lexical: share of the query's information that the topic's words cover (F of the fusion), None likewise.
        chunk: number of the best chunk, 0 for a topic of one chunk.
        phrases: share of the query's information in words that stand together in the topic as they do in the query,
            among the best few; identifiers count threefold.
        alone: share of it in words that no better topic holds.
        fit: how well the topic fits the query, which the floor is compared with; None where words alone decide.
        evidence: the words and the text behind the score; None unless an explanation was asked for.
    """

    topic: Topic
    score: float
    cosine: float | None = None
    lexical: float | None = None
    chunk: int = 0
    phrases: float = 0.0
    alone: float = 0.0
    fit: float | None = None
    evidence: "Evidence | None" = None

    def explain(self) -> tuple[str, ...]:
        """Why it was found, in sentences; those of `Memory.explain` also name the words and quote the text."""
        from recall.search.explanation import sentences

        return sentences(self)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the memory took part in an answer.

    Attributes:
        topics: topics that the answer could have come from.
        embedded: how many of them have all their vectors.
        note: why the rest has none, in a sentence; empty when nothing is missing.
        behind: ids of topics whose files are known to have changed since the state that answered: new, edited or
            deleted ones; ten at most, those that fitted the query first.
        behind_count: how many are known.
    """

    topics: int = 0
    embedded: int = 0
    note: str = ""
    behind: tuple[str, ...] = ()
    behind_count: int = 0


@dataclass(frozen=True, slots=True)
class Recall:
    """The answer to one query; empty hits and Strategy.NONE when nothing fits.

    Attributes:
        query: the query as it was asked.
        hits: best first.
        strategy: how they were chosen.
        prompt: the Relevant Memory block for the model; empty without hits.
        coverage: how much of the memory took part.
        duration_s: wall time of the search in seconds.
    """

    query: str
    hits: tuple[Hit, ...] = ()
    strategy: Strategy = Strategy.NONE
    prompt: str = ""
    coverage: Coverage = field(default_factory=Coverage)
    duration_s: float = 0.0
