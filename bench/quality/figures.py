"""From answers to figures: means by column, apart by language and kind, and differences with their intervals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from bench.bootstrap import paired
from bench.quality.columns import Answers
from recall.apps.evaluate import injection_stats
from recall.apps.metrics import Judged, measure, ndcg_at_10
from recall.apps.testset import Query

RIVALS: Final = ("bm25s", "dense")
OURS: Final = "recall"
_DIGITS: Final = 4
_SORTS: Final[Mapping[str, Callable[[Query], str | None]]] = {
    "lang": lambda query: query.lang,
    "kind": lambda query: query.kind,
}

Record = dict[str, Any]
"""A part of a line of results: what json writes and reads."""


def figures(answers: Answers, *, cluster: Callable[[Query], str], seed: int) -> Record:
    """All that a line of results says about one set.

    Args:
        answers: of every column.
        cluster: what a query is resampled with.
        seed: of the resampling.
    """
    everything = range(len(answers.queries))
    return {
        "whole": part(answers, everything),
        "parts": {sort: _apart(answers, key) for sort, key in _SORTS.items()},
        "differences": differences(answers, cluster=cluster, seed=seed),
        "injected": rounded(injection_stats(answers.injected)),
    }


def part(answers: Answers, numbers: Sequence[int]) -> Record:
    """The means of some queries: how many want an answer, how many want none, the measures by column."""
    relevant = [answers.queries[number].relevant for number in numbers]
    columns = {
        name: rounded(measure([judged[number] for number in numbers])) for name, judged in answers.columns.items()
    }
    return {"answerable": sum(map(bool, relevant)), "no_answer": sum(not ids for ids in relevant), "columns": columns}


def _apart(answers: Answers, key: Callable[[Query], str | None]) -> Record:
    names = [key(query) or "" for query in answers.queries]
    return {
        name: part(answers, [number for number, other in enumerate(names) if other == name])
        for name in sorted(set(names))
    }


def differences(answers: Answers, *, cluster: Callable[[Query], str], seed: int) -> Record:
    """nDCG@10 of recall minus that of each rival, over the queries that want an answer.

    The better rival is the one with the greater mean over the whole set, for every resample alike.

    Returns:
        By rival, and under `better` the name of the better one; no rivals where nothing wants an answer.
    """
    wanting = [number for number, query in enumerate(answers.queries) if query.relevant]
    scores = {name: _gains(answers.columns[name], wanting) for name in (OURS, *RIVALS)}
    clusters = [cluster(answers.queries[number]) for number in wanting]
    found: Record = {}
    for rival in RIVALS:
        gaps = [ours - theirs for ours, theirs in zip(scores[OURS], scores[rival], strict=True)]
        if (interval := paired(gaps, seed=seed, clusters=clusters)) is not None:
            found[rival] = rounded(asdict(interval))
    return {**found, "better": max(RIVALS, key=lambda rival: sum(scores[rival]))}


def _gains(judged: Sequence[Judged], numbers: Sequence[int]) -> list[float]:
    return [ndcg_at_10(judged[number].ranking, judged[number].relevant) for number in numbers]


def rounded(values: Mapping[str, float | int | None]) -> dict[str, float | int | None]:
    """The same numbers with four digits, which is more than any set can tell apart."""
    return {name: round(value, _DIGITS) if isinstance(value, float) else value for name, value in values.items()}
