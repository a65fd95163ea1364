"""An explanation is of the answer that a recall gives, and costs nothing unless it is asked for."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import recall
from recall import Config, Explanation, Memory, Recall, RecallEvent, Strategy
from recall.config import EncoderConfig
from recall.memory.events import Event
from recall.search.explanation import Silence, Why

Write = Callable[..., Path]
Open = Callable[..., Memory]


def same(explained: Recall, plain: Recall) -> bool:
    """But for the evidence and the time."""
    hits = tuple(replace(hit, evidence=None) for hit in explained.hits)
    return replace(explained, hits=hits, duration_s=0.0) == replace(plain, duration_s=0.0)


@pytest.mark.parametrize("model", ["hashing", "off"])
def test_it_is_of_the_answer_that_a_recall_gives(opened: Open, write: Write, config: Config, model: str) -> None:
    for number, text in enumerate(("zebra crossing", "tiger in the garden", "zebra and tiger", "数据库迁移")):
        write(f"{number}.md", text)
    memory = opened(config=replace(config, encoder=EncoderConfig(model=model)))
    memory.reindex()
    for query in ("zebra crossing", "数据库怎么迁移", "qqq"):
        plain, found = memory.recall(query, k=1, exclude=["2.md"]), memory.explain(query, k=1, exclude=["2.md"])
        assert same(found.recall, plain)
        assert all(hit.evidence and hit.evidence.words for hit in found.recall.hits)
        assert (found.silence is None) == bool(plain.hits)
    named = {other.hit.topic.id: other.why for other in memory.explain("zebra tiger", exclude=["2.md"]).rejected}
    assert named["2.md"] is Why.EXCLUDED


def test_kinds_and_scopes_go_by_their_names_as_in_a_recall(opened: Open, write: Write) -> None:
    write("a.md", "zebra crossing")
    memory = opened()
    assert memory.explain("zebra", types=["project"]).rejected[0].why is Why.TYPE
    assert memory.explain("zebra", scopes=["user"]).rejected[0].why is Why.SCOPE
    with pytest.raises(ValueError, match="nonsense"):
        memory.explain("zebra", types=["nonsense"])


def test_it_reads_what_changed_and_leaves_no_trace(opened: Open, write: Write) -> None:
    heard: list[Event] = []
    memory = opened(on_event=heard.append)
    assert memory.explain("zebra").silence is Silence.EMPTY
    write("a.md", "zebra crossing")
    assert [hit.topic.id for hit in memory.explain("zebra").recall.hits] == ["a.md"]
    assert memory.traces() == []
    assert len([event for event in heard if isinstance(event, RecallEvent)]) == 2
    memory.recall("zebra")
    assert len(memory.traces()) == 1


def test_a_file_that_goes_between_the_look_and_the_answer_is_named(
    opened: Open, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write("a.md", "zebra crossing")
    memory = opened()
    memory.reindex()

    def look(**_: object) -> str:
        file.unlink()
        return "looked before it went"

    monkeypatch.setattr(memory._keeper, "look", look)
    found = memory.explain("zebra")
    assert (found.recall.strategy, found.silence) == (Strategy.NONE, Silence.CHANGED)
    assert [(other.hit.topic.id, other.why) for other in found.rejected] == [("a.md", Why.CHANGED)]
    assert found.recall.coverage.behind == ("a.md",)


@pytest.mark.parametrize(("query", "k"), [("  ", 5), ("zebra", 0)])
def test_where_nothing_was_asked_it_says_so(opened: Open, write: Write, query: str, k: int) -> None:
    write("a.md", "zebra crossing")
    found: Explanation = opened().explain(query, k=k)
    assert (found.recall.hits, found.silence) == ((), Silence.NOT_ASKED)
    assert "nothing was asked" in found.why_nothing()


def test_a_query_longer_than_what_is_searched_is_explained_by_what_was_searched(opened: Open, write: Write) -> None:
    write("a.md", "zebra crossing")
    memory = opened()
    query = "zebra " + "x" * 20_000 + " crossing"
    found = memory.explain(query)
    assert found.recall.query == query
    (hit,) = memory.explain(query, k=1).recall.hits or [other.hit for other in found.rejected]
    assert hit.evidence is not None
    assert {word.text for word in hit.evidence.words} == {"zebra", "crossing"}


def test_a_recall_that_nobody_wants_explained_loads_none_of_it(root: Path, write: Write) -> None:
    write("a.md", "zebra crossing")
    script = """
import sys
from recall import Memory
with Memory.open(sys.argv[1], background=False) as memory:
    hit, = memory.recall("zebra crossing").hits
    print(hit.evidence, [name for name in sys.modules if name.startswith("recall.search.expla")])
    print(len(hit.explain()), len(memory.explain("zebra crossing").recall.hits[0].explain()))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(root)],
        env=os.environ | {"PYTHONPATH": str(Path(recall.__file__).parents[1]), "RECALL_ENCODER__MODEL": "hashing"},
        capture_output=True,
        encoding="utf-8",
        timeout=100,
    )
    assert done.stdout == "None []\n1 4\n", done.stderr
