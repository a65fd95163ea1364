"""Traces of recalls as values: what was handed over, to whom, and what that adds up to a topic.

A trace is about one memory root; a recall that found topics in two roots leaves a trace in each, with the same id.
"""

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from typing import Annotated, Final, NoReturn

import msgspec

from recall.text.secrets import mask

VERSION: Final = 1
MOST_HITS: Final = 32
"""Hits of one recall that are kept, best first: who takes more reads the whole memory rather than recalls."""

_QUERY_CHARS: Final = 300
_SESSION_CHARS: Final = 200
_LONGEST_SESSION: Final = 4096
_KEY_CHARS: Final = 16


@dataclass(frozen=True, slots=True)
class Origin:
    """Who asks.

    Attributes:
        surface: the way that the question came: `library`, `cli`, `hook`, or a host's own word.
        session: the host's name for the conversation; "" when there is none.
        interactive: whether a person's request is behind it, and not a timer or a subagent.
    """

    surface: str = "library"
    session: str = ""
    interactive: bool = True


LIBRARY: Final = Origin()
"""A host that does not say more."""


class TracedHit(msgspec.Struct, frozen=True, array_like=True):
    """One topic that was handed over.

    Attributes:
        path: the topic's position below the memory root.
        relevance: 1 to 10 (search.relevance), calibrated when it was retrieved.
        score: the raw score, on the scale of the strategy.
    """

    path: str
    relevance: Annotated[float, msgspec.Meta(ge=1, le=10)]
    score: float


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """One recall that was handed over; a line of the log.

    Attributes:
        v: format of the line; others are skipped.
        id: the same for all that one handle delivered, and for all roots that it found something in.
        time: when, in seconds since the epoch.
        key: hash of the normalised query; equal keys are the same question.
        query: the question with credentials masked, cut; "" when it was purged.
        surface: as of its origin.
        session: as of its origin.
        interactive: as of its origin.
        phase: `fast` or `refined` for a prefetch, "" for a recall that waited.
        strategy: how the hits were chosen.
        hits: best first, 32 at most.
    """

    id: str
    time: Annotated[float, msgspec.Meta(ge=0, lt=2e11)]  # a calendar can hold it
    key: str
    query: str
    surface: str
    strategy: str
    hits: tuple[TracedHit, ...]
    session: str = ""
    interactive: bool = True
    phase: str = ""
    v: int = VERSION

    @property
    def context(self) -> str:
        """Where it was asked; without a name for the conversation the question is its own context."""
        return f"{self.surface}:{self.session or self.key}"


@dataclass(frozen=True, slots=True)
class Summary:
    """What the traces say of one topic. Sets, not counts, so that they can be joined with what notes say.

    Attributes:
        recalls: recalls that handed it over, each once whatever its phases.
        queries: keys of the distinct questions that were not blank.
        days: on which it was recalled.
        contexts: distinct conversations.
        first: time of the first recall, seconds since the epoch.
        last: time of the last.
        relevance: mean, 1 to 10.
    """

    recalls: int
    queries: frozenset[str]
    days: frozenset[date]
    contexts: frozenset[str]
    first: float
    last: float
    relevance: float


def asked(query: str) -> tuple[str, str]:
    """The key of a query and the text of it that is kept, both without its credentials.

    Args:
        query: as it was searched, so of a bounded length.

    Source: spec dreaming.md section 3 (query key).
    """
    masked = mask(query)
    return query_key(masked), masked.strip()[:_QUERY_CHARS]


def query_key(query: str) -> str:
    """Hash of the query in NFKC, lower case, with single blanks; "" for a blank one."""
    plain = " ".join(unicodedata.normalize("NFKC", query).lower().split())
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_CHARS] if plain else ""


def session_name(name: str) -> str:
    """A host's name for a conversation as it is kept."""
    return mask(name[:_LONGEST_SESSION])[:_SESSION_CHARS]


def to_line(trace: Trace) -> bytes:
    """The trace as one line with its end."""
    plain = json.dumps(msgspec.to_builtins(trace), ensure_ascii=False, separators=(",", ":"))
    return plain.encode("utf-8", "surrogatepass") + b"\n"  # a file name may hold half characters


def from_line(line: bytes) -> Trace | None:
    """The trace of a line; None when it is damaged or of another version."""
    try:
        plain = json.loads(line.decode("utf-8", "surrogatepass"), parse_constant=_not_a_number)
        trace = msgspec.convert(plain, Trace)
    except (ValueError, RecursionError, msgspec.ValidationError):
        return None
    return trace if trace.v == VERSION else None


def _not_a_number(name: str) -> NoReturn:
    raise ValueError(name)


def summarise(traces: Iterable[Trace], *, zone: tzinfo | None = None) -> dict[str, Summary]:
    """What the traces of one root say of every topic in them, by path.

    Args:
        traces: in any order; leave out those that are not to count.
        zone: where days begin; None takes this machine's zone.
    """
    found: dict[str, dict[str, tuple[Trace, float]]] = {}
    for trace in sorted(traces, key=lambda trace: trace.time):
        for hit in trace.hits:
            found.setdefault(hit.path, {}).setdefault(trace.id, (trace, hit.relevance))
    return {path: _summary(recalls, zone) for path, recalls in found.items()}


def _summary(recalls: Mapping[str, tuple[Trace, float]], zone: tzinfo | None) -> Summary:
    traces = [trace for trace, _ in recalls.values()]
    return Summary(
        recalls=len(traces),
        queries=frozenset(trace.key for trace in traces if trace.key),
        days=frozenset(datetime.fromtimestamp(trace.time, UTC).astimezone(zone).date() for trace in traces),
        contexts=frozenset(trace.context for trace in traces),
        first=traces[0].time,
        last=traces[-1].time,
        relevance=sum(relevance for _, relevance in recalls.values()) / len(traces),
    )
