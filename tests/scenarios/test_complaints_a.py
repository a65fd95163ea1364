"""Complaints from the field, group A: an index and the words that it was made of."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from recall import Memory
from recall.index import catalog, postings


def test_a06_an_index_of_another_tokenizer_version_is_made_anew_and_never_mixed(
    opened: Callable[..., Memory], write: Callable[..., Path]
) -> None:
    write("a.md", "今天玩成语接龙游戏")
    with pytest.MonkeyPatch.context() as older:
        older.setattr(catalog, "FORMAT", catalog.FORMAT - 1)
        older.setattr(postings, "terms", lambda text: Counter(f"v1-{word}" for word in text.split()))
        assert opened().reindex().added == ("a.md",)
    memory = opened()
    assert memory.reindex().added == ("a.md",)
    write("b.md", "另一个文件说成语接龙")
    found = memory.recall("成语接龙")
    assert sorted(hit.topic.id for hit in found.hits) == ["a.md", "b.md"]
    assert all(hit.lexical for hit in found.hits)
