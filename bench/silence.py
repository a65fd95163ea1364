"""Does it stay silent where nothing fits? Questions that a memory cannot answer, beside those that it can.

    python -m bench.silence --cache FOLDER

Each memory of the shared sets is asked questions of other sets, in its own language and in the other one, and what
people say to an agent that needs no memory (bench/small_talk.tsv, written without sight of the code). All hits are
looked at without a floor, so that one pass gives the whole curve: how many are answered all the same at a floor, and
how much of recall@5 the floor costs on the questions that have an answer. A mixed session says what a user would see.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Final

from bench.generate import SEED
from bench.quality.sets import QualitySet, find_sets, shared_folder
from bench.runner import Figure, arguments, record
from bench.workspace import workbench
from recall import Config, Memory
from recall.apps.evaluate import seq_of
from recall.apps.metrics import mean
from recall.apps.testset import Query, bare, read_queries, unpack_corpus
from recall.config import load
from recall.index.encoders import make_encoder
from recall.memory.opening import cache_root
from recall.search.retriever import fitting
from recall.search.types import Hit
from recall.text.budget import estimate_tokens
from recall.text.scripts import is_cjk

_SMALL_TALK: Final = Path(__file__).with_name("small_talk.tsv")
_NO_FLOOR: Final = -1e9
_K: Final = 5
_SCOPES: Final = 4  # of a set that has more, real_memories apart
_FOREIGN: Final = 4  # questions of each other set, asked of one memory
_TALK: Final = 24
_TURNS: Final = 100
_NOTES: Final = "real_memories"


@dataclass(frozen=True, slots=True)
class Asked:
    """One question and what was found without a floor.

    Attributes:
        kind: what sort of question it is.
        hits: the first five.
        right: which of them are right answers.
        wanted: how many right answers there are; 0 for a question without one.
    """

    kind: str
    hits: tuple[Hit, ...]
    right: tuple[bool, ...] = ()
    wanted: int = 0

    def shown(self, floor: float) -> list[bool]:
        """Of each hit that is shown at that floor, whether it is right (search.retriever)."""
        rights = self.right or (False,) * len(self.hits)
        shown = {hit.topic.id for hit in fitting(self.hits, floor)}
        return [right for hit, right in zip(self.hits, rights, strict=True) if hit.topic.id in shown]

    def recall(self, floor: float) -> float:
        """Share of the right answers that are shown."""
        return sum(self.shown(floor)) / self.wanted


@dataclass(frozen=True, slots=True)
class _Scope:
    """One memory of a set with its questions."""

    name: str
    folder: Path
    queries: tuple[Query, ...]


def main(words: Sequence[str] | None = None) -> None:
    """Asks everything, shows the curve and records it."""
    parser = arguments(__doc__)
    parser.add_argument("--shared", type=Path, metavar="FOLDER", help="shared data; else $RECALL_SHARED or ../shared")
    options = parser.parse_args(words)
    with workbench(options.work) as cache:
        config = load(arguments={"index.cache": str(cache)})
        scopes = list(_scopes(find_sets(shared_folder(options.shared)), config))
        encoder = make_encoder(config.encoder)
        assert encoder is not None
        answerable, unanswerable = _ask_all(scopes, config, quick=options.quick)
        session = _session(scopes, config)
    floor = encoder.floor
    _show_curve(answerable, unanswerable, floor)
    figures = [
        Figure("answered though nothing fits", "%", answered(unanswerable, floor)),
        Figure("the same by floor", "%", {f"{at:.3f}": answered(unanswerable, at)["all"] for at in _around(floor)}),
        Figure("recall@5 that the floor costs", "points", lost(answerable, floor)),
        Figure("the same by floor", "points", {f"{at:.3f}": lost(answerable, at)["all"] for at in _around(floor)}),
        Figure(f"{_TURNS} turns of a mixed session", "", session),
    ]
    record("silence", figures, topics=sum(map(len, unanswerable.values())), quick=options.quick)


def _around(floor: float) -> list[float]:
    return [floor + step / 100 for step in range(-6, 7, 2)]


# --- questions


def _scopes(sets: Sequence[QualitySet], config: Config) -> Iterator[_Scope]:
    for one in sets:
        root = one.corpus if one.corpus.is_dir() else unpack_corpus(one.corpus, cache_root(config))
        queries: defaultdict[str, list[Query]] = defaultdict(list)
        for query in read_queries(one.queries, root=root):
            queries[query.scope or ""].append(query)
        for scope, asked in queries.items():
            yield _Scope(one.name, root / scope, tuple(asked))


def small_talk() -> list[tuple[str, str, str]]:
    """Language, kind and text of each line."""
    lines = _SMALL_TALK.read_text(encoding="utf-8").splitlines()
    return [(language, kind, text) for language, kind, text in (line.split("\t") for line in lines)]


def _ask_all(
    scopes: Sequence[_Scope], config: Config, *, quick: bool
) -> tuple[dict[str, list[Asked]], dict[str, list[Asked]]]:
    """What was found of everything: of each set its own questions, of each kind the others."""
    chance, talk = Random(SEED), small_talk()
    own: defaultdict[str, list[Asked]] = defaultdict(list)
    others: defaultdict[str, list[Asked]] = defaultdict(list)
    targets = _targets(scopes, chance)
    for scope in scopes[:3] if quick else scopes:
        with _opened(scope.folder, config, floor=_NO_FLOOR) as memory:
            for query in scope.queries[:10] if quick else scope.queries:
                asked = _ask(memory, query)
                if asked.wanted:
                    own[scope.name].append(asked)
                else:
                    others[f"{scope.name}, without an answer"].append(asked)
            if scope in targets:
                for kind, text in _foreign(scope, scopes, talk, chance):
                    others[kind].append(Asked(kind, memory.recall(text, k=_K, origin=None).hits))
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return own, others


def _targets(scopes: Sequence[_Scope], chance: Random) -> list[_Scope]:
    """Memories that are asked foreign questions: all real ones, some of each other set."""
    by_set: defaultdict[str, list[_Scope]] = defaultdict(list)
    for scope in scopes:
        by_set[scope.name].append(scope)
    return [
        scope
        for name, part in by_set.items()
        for scope in (part if name == _NOTES else chance.sample(part, min(_SCOPES, len(part))))
    ]


def _foreign(
    scope: _Scope, scopes: Sequence[_Scope], talk: Sequence[tuple[str, str, str]], chance: Random
) -> Iterator[tuple[str, str]]:
    """Kind and text of questions that have no answer in this memory."""
    by_set: defaultdict[str, list[Query]] = defaultdict(list)
    for other in scopes:
        # Questions about the same passages in another language would have an answer.
        if other.name[:5] != scope.name[:5] or (scope.name == _NOTES and other.folder != scope.folder):
            by_set[other.name] += [query for query in other.queries if query.relevant]
    in_cjk = is_cjk(" ".join(query.text for query in scope.queries))
    for pool in by_set.values():
        for query in chance.sample(pool, min(_FOREIGN, len(pool))):
            language = "same" if is_cjk(query.text) == in_cjk else "other"
            yield f"of another memory, {language} language", query.text
    yield from ((kind.replace("_", " "), text) for _, kind, text in chance.sample(talk, min(_TALK, len(talk))))


def _opened(folder: Path, config: Config, *, floor: float | None) -> Memory:
    settings = load(arguments={"index.cache": config.index.cache, **({} if floor is None else {"search.floor": floor})})
    memory = Memory.open(folder, project=folder, layout="plain", config=settings, background=False)
    memory.reindex()
    return memory


def _ask(memory: Memory, query: Query) -> Asked:
    found = memory.recall(query.text, k=_K, exclude=_excluded(memory, query), origin=None)
    right = tuple(_name(hit.topic.path, query) in query.relevant for hit in found.hits)
    return Asked(query.kind or "", found.hits, right, len(query.relevant))


def _excluded(memory: Memory, query: Query) -> frozenset[str]:
    prefix = f"{query.scope}/" if query.scope else ""
    excluded = {f"{name.removeprefix(prefix)}.md" for name in query.exclude or ()}
    if query.asof is not None:
        excluded |= {name for name, seq in _sequence(memory).items() if not seq <= query.asof}
    return frozenset(excluded)


@lru_cache(maxsize=1)
def _sequence(memory: Memory) -> Mapping[str, float]:
    return {topic.id: seq_of(topic, memory.config.index.max_file_bytes) for topic in memory.topics()}


def _name(path: str, query: Query) -> str:
    return bare(f"{query.scope}/{path}" if query.scope else path)


# --- figures


def answered(unanswerable: Mapping[str, Sequence[Asked]], floor: float) -> dict[str, float]:
    """Per cent of the questions that are answered at that floor; `all` without the sets' own, which are few."""
    shares = {kind: _percent([bool(one.shown(floor)) for one in asked]) for kind, asked in unanswerable.items()}
    every = [bool(one.shown(floor)) for kind, asked in unanswerable.items() if "without" not in kind for one in asked]
    return {"all": _percent(every), **dict(sorted(shares.items()))}


def lost(answerable: Mapping[str, Sequence[Asked]], floor: float) -> dict[str, float]:
    """Points of recall@5 that the floor costs: over all questions, as the mean of all sets, and of each set."""
    lost = {name: [one.recall(_NO_FLOOR) - one.recall(floor) for one in asked] for name, asked in answerable.items()}
    means = {name: 100 * (mean(values) or 0.0) for name, values in lost.items()}
    every = [value for values in lost.values() for value in values]
    return {"all": 100 * (mean(every) or 0.0), "mean of sets": mean(list(means.values())) or 0.0, **means}


def _percent(flags: Sequence[bool]) -> float:
    return 100 * (mean([float(flag) for flag in flags]) or 0.0)


def _show_curve(
    answerable: Mapping[str, Sequence[Asked]], unanswerable: Mapping[str, Sequence[Asked]], shipped: float
) -> None:
    print("  floor   answered though nothing fits   recall@5 lost (all questions, mean of sets)")
    for floor in _around(shipped):
        cost, share = lost(answerable, floor), answered(unanswerable, floor)["all"]
        mark = " <- shipped" if floor == shipped else ""
        print(f"  {floor:.3f}   {share:5.1f} %   {cost['all']:.1f}   {cost['mean of sets']:.1f} points{mark}")


def _session(scopes: Sequence[_Scope], config: Config) -> dict[str, float]:
    """A hundred turns in one real memory: a third has an answer, a third needs none, a third is about something else.

    Returns:
        Turns with an injection, those of them that the turn needed, share of the injected topics that are right,
        estimated tokens injected; the means over all real memories with enough questions.
    """
    chance, talk = Random(SEED), small_talk()
    rows = []
    for scope in scopes:
        mine = [query for query in scope.queries if query.relevant]
        if scope.name != _NOTES or len(mine) < 10:
            continue
        others = [query.text for other in scopes if other.name != scope.name for query in other.queries]
        with _opened(scope.folder, config, floor=None) as memory:
            rows.append(_turns(memory, mine, others, [text for *_, text in talk], chance))
    return {key: mean([row[key] for row in rows]) or 0.0 for key in rows[0]} if rows else {}


def _turns(
    memory: Memory, mine: Sequence[Query], others: Sequence[str], talk: Sequence[str], chance: Random
) -> dict[str, float]:
    third = _TURNS // 3
    injections = needed = right = topics = tokens = 0
    for query in chance.choices(mine, k=_TURNS - 2 * third):
        found = memory.recall(query.text, exclude=_excluded(memory, query), origin=None)
        rights = [_name(hit.topic.path, query) in query.relevant for hit in found.hits]
        injections, needed = injections + bool(rights), needed + any(rights)
        right, topics, tokens = right + sum(rights), topics + len(rights), tokens + estimate_tokens(found.prompt)
    for text in [*chance.sample(list(others), third), *chance.choices(list(talk), k=third)]:
        found = memory.recall(text, origin=None)
        injections, topics = injections + bool(found.hits), topics + len(found.hits)
        tokens += estimate_tokens(found.prompt)
    return {
        "injections": injections,
        "of them right": needed,
        "right topics %": 100 * right / max(topics, 1),
        "tokens": tokens,
    }


if __name__ == "__main__":
    main()
