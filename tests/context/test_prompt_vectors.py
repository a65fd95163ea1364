"""The block's layout against the shared vectors; their `<...>` placeholders stand for wording of our own."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from recall.context.freshness import stale_note
from recall.context.prompt import CAUTION, EMPTY_BODY, relevant_memory
from recall.search.types import Hit
from recall.store.topics import Scope, Topic

pytestmark = pytest.mark.vectors

# The peer cuts at UTF-16 units, in the middle of an emoji; counted in code points that body is not too long.
OVERRIDDEN = {"body-emoji-cut": "V2"}
CUT_NOTE = re.compile(r"^> NOTE: Cut here; characters left out: \d+\.$", re.MULTILINE)


def load(shared: Path, kind: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((shared / "vectors/qwen" / kind / "dev.json").read_text(encoding="utf-8"))
    return loaded


def worded(expected: str) -> str:
    """The vector's text with our wording; what is said about a cut differs from body to body and stays open."""
    text = expected.replace("<caution>", CAUTION).replace("<empty body>", EMPTY_BODY)
    return re.sub(r"<stale (\d+)>", lambda match: str(stale_note(int(match[1]))), text)


def opened(block: str) -> str:
    return CUT_NOTE.sub("> NOTE: <truncated>", block)


def make_hit(*, title: str, description: str, body: str, path: str, mtime_ms: float) -> Hit:
    mtime = mtime_ms / 1_000
    return Hit(Topic(Scope.PROJECT, path, title, description, None, body, mtime, mtime, Path("/m") / path), 1.0)


def read_hit(folder: Path, scoped: str, mtime_ms: float) -> Hit:
    """A file of the ranking corpora: `key: value` between dashes, then the body."""
    _, header, body = re.split(r"^---\n", (folder / scoped).read_text(encoding="utf-8"), maxsplit=2, flags=re.MULTILINE)
    fields = {key: value.strip() for key, _, value in (line.partition(":") for line in header.splitlines())}
    return make_hit(
        title=fields.get("name") or fields["title"],
        description=fields["description"],
        body=body.strip(),
        path=scoped.partition("/")[2],
        mtime_ms=mtime_ms,
    )


def test_prompt_vectors(shared: Path) -> None:
    vectors = load(shared, "prompt")
    for case in vectors["cases"]:
        hits = [
            make_hit(
                title=doc["title"],
                description=doc["description"],
                body=doc["body"],
                path=doc["relative_path"],
                mtime_ms=doc["mtime_ms"],
            )
            for doc in case["docs"]
        ]
        block = relevant_memory(hits, now=vectors["now_ms"] / 1_000)
        if OVERRIDDEN.get(case["id"]) == "V2":
            assert block.endswith(f"\n\n{case['docs'][0]['body']}\n"), case["id"]
        else:
            assert opened(block) == worded(case["expected"]["prompt"]), case["id"]


def test_the_prompts_of_the_ranking_vectors(shared: Path) -> None:
    checked = 0
    for case in load(shared, "ranking")["cases"]:
        if not case.get("with_prompt"):
            continue
        folder = shared / "vectors/qwen/corpora" / case["corpus"]
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        hits = []
        for ranked in case["expected"]["ranked"]:
            scope, _, path = ranked["path"].partition("/")
            hits.append(read_hit(folder, ranked["path"], manifest["scopes"][scope][path]))
        block = relevant_memory(hits, now=manifest["now_ms"] / 1_000)
        assert opened(block) == worded(case["expected"]["prompt"]), case["id"]
        checked += 1
    assert checked > 0
