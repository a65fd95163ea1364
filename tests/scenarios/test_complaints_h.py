"""Complaints from the field, group H: MEMORY.md."""

from pathlib import Path

from recall.store.capacity import write_reminder
from recall.store.index_file import build_missing, entries, generated, load_index, publish_index
from recall.store.topics import Scope, Topic


def memories(root: Path, count: int) -> list[Topic]:
    """The newest last."""
    return [
        Topic(Scope.PROJECT, f"fact-{at}.md", f"Fact {at}", f"about {at}", None, "", at, at, root / f"fact-{at}.md")
        for at in range(1, count + 1)
    ]


def test_h44_past_200_lines_the_loss_is_named_and_compaction_offered(root: Path) -> None:
    text = "".join(f"- [Fact {at}](fact-{at}.md) — about {at}\n" for at in range(1, 239))
    (root / "MEMORY.md").write_text(text, encoding="utf-8")
    view = load_index(root)
    assert (view.loaded_lines, view.dropped_lines, view.first_dropped_line) == (200, 38, 201)
    for part in ("200 of 238 lines", "line 201", "- [Fact 201](fact-201.md) — about 201", "below 140 lines"):
        assert part in view.warning
    reminder = write_reminder("Edit", "MEMORY.md", ok=True, memory_dir=root, workdir=root, enabled=True)
    assert reminder is not None
    for part in ("238 of 200 lines", "below 140 lines", "the write succeeded"):
        assert part in reminder.text


def test_h44_an_index_that_recall_makes_has_the_newest_and_says_how_many_it_left_out(root: Path) -> None:
    topics = memories(root, 238)
    text = generated(topics, "")
    assert [entry.target for entry in entries(text)] == [f"fact-{at}.md" for at in range(238, 39, -1)]
    assert text.endswith(": 39")
    assert publish_index(root, build_missing(topics)) is True
    view = load_index(root)
    assert (view.truncated, len(entries(view.text))) == (False, 140)
    assert view.text.endswith(": 98")
