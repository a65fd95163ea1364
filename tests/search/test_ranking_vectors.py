"""The founding tokenizer and scorer, case by case: on topics in memory and through the postings."""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from recall.index.collection import Collection
from recall.index.snapshot import Snapshot
from recall.search.lexical import heuristic_points, rank, score
from recall.search.retriever import search_heuristic
from recall.search.types import Filter, Hit
from recall.store.files import read_text
from recall.store.scan import scan
from recall.store.topics import MemoryType, Scope, Topic, parse_topic
from recall.text.tokens import tokenize

pytestmark = pytest.mark.vectors

OVERRIDDEN: dict[str, str] = {}
"""Case id -> row of deviations that is followed instead; none, since `broken` is fed as the founding scan parsed it."""

CORPORA = ("zh-ops", "en-web", "polyglot", "ties", "bulk")
"""All but `broken`, whose files are parsed otherwise on purpose (deviations V1, V29)."""

FOLDERS = {Scope.PROJECT: "memory", Scope.USER: "memories"}

Ranked = list[tuple[str, int]]


def cases(shared: Path, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((shared / "vectors/qwen" / kind / "dev.json").read_text(encoding="utf-8"))[
        "cases"
    ]
    assert found
    return found


def ranking_cases(shared: Path, *corpora: str) -> list[dict[str, Any]]:
    found = [case for case in cases(shared, "ranking") if case["corpus"] in corpora]
    assert {case["corpus"] for case in found} == set(corpora)
    return found


def manifest(shared: Path, corpus: str) -> dict[str, dict[str, int]]:
    """Modification times in milliseconds by path, by folder."""
    file = shared / "vectors/qwen/corpora" / corpus / "manifest.json"
    found: dict[str, dict[str, int]] = json.loads(file.read_text(encoding="utf-8"))["scopes"]
    return found


def vector_path(topic: Topic) -> str:
    return f"{FOLDERS[topic.scope]}/{topic.path}"


def topic_id(path: str) -> str:
    """A path of the vectors as an id of ours."""
    folder, _, rest = path.partition("/")
    return rest if folder == "memory" else f"user:{rest}"


def expected(case: dict[str, Any]) -> tuple[Ranked, dict[str, int]]:
    """Ranked paths with their scores, and the positive scores of all topics, excluded ones too."""
    ranked = [(entry["path"], entry["score"]) for entry in case["expected"]["ranked"]]
    assert case["expected"]["strategy"] == ("heuristic" if ranked else "none")
    return ranked, case["expected"]["all_positive_scores"]


def ranked(hits: Sequence[Hit]) -> Ranked:
    return [(vector_path(hit.topic), int(hit.score)) for hit in hits]


@pytest.fixture(scope="module")
def corpora(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the corpora with the modification times that their manifests name."""
    base = tmp_path_factory.mktemp("corpora")
    for corpus in CORPORA:
        shutil.copytree(shared / "vectors/qwen/corpora" / corpus, base / corpus)
        for folder, mtimes in manifest(shared, corpus).items():
            for path, mtime_ms in mtimes.items():
                os.utime(base / corpus / folder / path, ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))
    return base


@pytest.fixture(scope="module")
def snapshots(corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Snapshot]]]:
    """Snapshots of every corpus: project, then user."""
    cache = tmp_path_factory.mktemp("cache")
    found: dict[str, list[Snapshot]] = {}
    with ExitStack() as stack:
        for corpus in CORPORA:
            for scope, folder in FOLDERS.items():
                collection = Collection(corpora / corpus / folder, scope, cache=cache, max_file_bytes=1 << 24)
                stack.callback(collection.close)
                collection.sync_words()
                found.setdefault(corpus, []).append(collection.snapshot())
        yield found


def topics_of(root: Path, scope: Scope) -> list[Topic]:
    """All topics in scan order, read without any index."""
    return [
        parse_topic(
            read_text(file.file, max_bytes=1 << 24)[0],
            path=file.path,
            scope=scope,
            mtime=file.mtime_ns / 1e9,
            file=file.file,
        )
        for file in scan(root, scope).files
    ]


def broken_topics(shared: Path) -> list[Topic]:
    """The corpus `broken` as the founding system parsed it, in its scan order."""
    mtimes = manifest(shared, "broken")["memory"]
    (seen,) = cases(shared, "scan")
    topics = []
    for parsed in seen["parsed"]:
        path = parsed["path"].removeprefix("memory/")
        body = parsed["body"]
        if len(body) < parsed["body_len_utf16"]:  # long ones are only shown in part
            file = shared / "vectors/qwen/corpora/broken" / parsed["path"]
            whole = parse_topic(
                read_text(file, max_bytes=1 << 24)[0], path=path, scope=Scope.PROJECT, mtime=0, file=file
            )
            body = whole.body
            assert len(body) == parsed["body_len_utf16"]
        topics.append(
            Topic(
                scope=Scope.PROJECT,
                path=path,
                title=parsed["title"],
                description=parsed["description"],
                type=MemoryType(parsed["type"]),
                body=body,
                mtime=mtimes[path] / 1e3,
                modified=0.0,
                file=Path("/memory") / path,
            )
        )
    assert [vector_path(topic) for topic in topics] == seen["scan_order"]
    return topics


def wrong_on_topics(topics: Sequence[Topic], case: dict[str, Any]) -> list[object]:
    """What `rank` and `score` say otherwise than the case; nothing when all is right."""
    best, positive = expected(case)
    barred = set(case.get("excluded", ()))
    allowed = [topic for topic in topics if vector_path(topic) not in barred]
    found = ranked(rank(case["query"], allowed, k=case.get("limit", 5)))
    tokens = tokenize(case["query"])
    points = {vector_path(topic): value for topic in topics if (value := score(tokens, topic))}
    return [(case["id"], part) for part in ((best, found), (positive, points)) if part[0] != part[1]]


def test_every_query_is_cut_into_the_founding_tokens(shared: Path) -> None:
    """Lone surrogates are no input here: they are not text."""
    found = [case for case in cases(shared, "tokenize") if "lone-surrogate-input" not in case["tags"]]
    assert len(found) > 200
    wrong = [
        (case["id"], case["tokens"], tokens)
        for case in found
        if (tokens := tokenize(case["text"])) != case["tokens"] and case["id"] not in OVERRIDDEN
    ]
    assert wrong == []


@pytest.mark.parametrize("corpus", CORPORA)
def test_topics_in_memory_are_ranked_as_the_founding_system_does(shared: Path, corpora: Path, corpus: str) -> None:
    topics = [topic for scope, folder in FOLDERS.items() for topic in topics_of(corpora / corpus / folder, scope)]
    found = ranking_cases(shared, corpus)
    assert [part for case in found if case["id"] not in OVERRIDDEN for part in wrong_on_topics(topics, case)] == []


def test_topics_as_the_founding_system_parsed_them_are_ranked_alike(shared: Path) -> None:
    topics = broken_topics(shared)
    found = ranking_cases(shared, "broken")
    assert [part for case in found if case["id"] not in OVERRIDDEN for part in wrong_on_topics(topics, case)] == []


@pytest.mark.parametrize("corpus", CORPORA)
def test_postings_rank_as_the_founding_system_does(
    shared: Path, snapshots: dict[str, list[Snapshot]], corpus: str
) -> None:
    wrong: list[object] = []
    for case in ranking_cases(shared, corpus):
        if case["id"] in OVERRIDDEN:
            continue
        best, positive = expected(case)
        excluded = [topic_id(path) for path in case.get("excluded", ())]
        found = search_heuristic(
            snapshots[corpus], case["query"], case.get("limit", 5), wanted=Filter(frozenset(excluded))
        )
        points = {
            f"{FOLDERS[snapshot.scope]}/{snapshot.paths[at]}": int(value)
            for snapshot, points in zip(
                snapshots[corpus], heuristic_points(snapshots[corpus], case["query"]), strict=True
            )
            for at, value in enumerate(points)
            if value
        }
        parts = ((best, ranked(found.hits)), (positive, points))
        wrong += [(case["id"], part) for part in parts if part[0] != part[1]]
    assert wrong == []
