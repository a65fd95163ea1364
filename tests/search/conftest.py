"""Real memories for the tests of search: files on the disk, read by a Collection."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from recall.index.collection import Collection
from recall.store.topics import Scope

Memory = Callable[..., AbstractContextManager[Collection]]


@pytest.fixture(scope="session")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    """Opens a memory of the given files (text by path), words in step; mtimes in nanoseconds by path."""

    @contextmanager
    def opened(
        files: Mapping[str, str], *, scope: Scope = Scope.PROJECT, mtimes: Mapping[str, int] | None = None
    ) -> Iterator[Collection]:
        base = tmp_path_factory.mktemp("memory")
        for path, text in files.items():
            file = base / "root" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode("utf-8"))
            if mtimes:
                os.utime(file, ns=(mtimes[path], mtimes[path]))
        collection = Collection(base / "root", scope, cache=base / "cache", max_file_bytes=1 << 24)
        try:
            collection.sync_words()
            yield collection
        finally:
            collection.close()
            shutil.rmtree(base)

    return opened


@pytest.fixture
def scopes(tmp_path: Path) -> Iterator[list[Collection]]:
    """The empty memory of a project and of its user."""
    found = []
    for scope in Scope:
        (tmp_path / scope).mkdir()
        found.append(Collection(tmp_path / scope, scope, cache=tmp_path / "cache", max_file_bytes=1 << 20))
    yield found
    for index in found:
        index.close()
