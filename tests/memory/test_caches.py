"""Caches of memory roots that are gone: which are listed, which go, and that nothing else does."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from recall import Config, Memory
from recall.index.folder import CATALOG_FILE, cache_folder
from recall.memory.caches import UNUSED_DAYS, abandoned, remove_abandoned
from recall.store.locks import exclusive

DAY_S = 86_400.0
Make = Callable[[str], Path]


@pytest.fixture
def cached(tmp_path: Path, config: Config) -> Make:
    """Indexes a memory folder of that name and gives its folder of derived data."""

    def made(name: str) -> Path:
        root = tmp_path / name
        root.mkdir()
        (root / "a.md").write_text("something to remember", encoding="utf-8")
        with Memory.open(root, config=config, background=False) as memory:
            memory.reindex()
        return cache_folder(tmp_path / "cache", root)

    return made


def used(folder: Path) -> float:
    """When the folder was last used."""
    return max(file.stat().st_mtime for file in folder.iterdir() if not file.name.endswith(("-shm", "-wal")))


def test_caches_of_roots_that_are_there_are_not_listed(cached: Make, config: Config) -> None:
    folder = cached("there")
    assert abandoned(config, now=used(folder) + 999 * DAY_S) == []


def test_a_cache_of_a_root_that_is_gone_is_listed_with_its_size_and_goes_after_thirty_days(
    cached: Make, config: Config, tmp_path: Path
) -> None:
    folder, other = cached("gone"), cached("there")
    shutil.rmtree(tmp_path / "gone")
    size = sum(file.stat().st_size for file in folder.iterdir())
    (young,) = abandoned(config, now=used(folder) + (UNUSED_DAYS - 0.1) * DAY_S)
    assert (young.folder, young.root, young.bytes) == (folder, str(tmp_path / "gone"), size)
    assert remove_abandoned([young]) == []
    assert folder.exists()
    (old,) = abandoned(config, now=used(folder) + (UNUSED_DAYS + 0.1) * DAY_S)
    assert remove_abandoned([old]) == [old]
    assert not folder.exists()
    assert other.exists()


def test_the_age_is_an_argument_and_counts_from_the_last_use_which_a_look_is_not(
    cached: Make, config: Config, tmp_path: Path
) -> None:
    folder = cached("gone")
    shutil.rmtree(tmp_path / "gone")
    now = used(folder)
    for file in folder.iterdir():
        os.utime(file, (now - 40 * DAY_S, now - 40 * DAY_S))
    assert [abandoned(config, now=now)[0].unused_days for _ in range(2)] == [pytest.approx(40)] * 2
    os.utime(folder / "words.lock", (now, now))
    found = abandoned(config, now=now)
    assert found[0].unused_days == pytest.approx(0)
    assert remove_abandoned(found, unused_days=1) == []
    assert remove_abandoned(found, unused_days=0) == found


def test_a_root_that_comes_back_has_its_cache(cached: Make, config: Config, tmp_path: Path) -> None:
    cached("disk")
    (tmp_path / "disk").rename(tmp_path / "away")
    assert len(abandoned(config, now=0)) == 1
    (tmp_path / "away").rename(tmp_path / "disk")
    assert abandoned(config, now=0) == []


def test_a_catalog_that_cannot_be_read_belongs_to_nobody_and_goes_by_the_same_rule(
    cached: Make, config: Config
) -> None:
    folder = cached("there")
    (folder / CATALOG_FILE).write_bytes(b"nonsense" * 999)
    (young,) = abandoned(config, now=used(folder))
    assert (young.root, young.is_removable()) == ("", False)
    (old,) = abandoned(config, now=used(folder) + 31 * DAY_S)
    assert remove_abandoned([old]) == [old]


def test_a_root_whose_name_is_no_text_is_known_all_the_same(config: Config, tmp_path: Path) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/m\xff\xfe"))
    root.mkdir()
    with Memory.open(root, config=config, background=False) as memory:
        memory.reindex()
    assert abandoned(config, now=0) == []
    root.rmdir()
    assert abandoned(config, now=0)[0].root == str(root)


def test_what_others_have_put_there_stays(cached: Make, config: Config, tmp_path: Path) -> None:
    folder = cached("gone")
    shutil.rmtree(tmp_path / "gone")
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    found = abandoned(config, now=used(folder) + 31 * DAY_S)
    assert remove_abandoned(found) == []
    assert [file.name for file in folder.iterdir()] == ["notes.txt"]


def test_folders_and_links_that_are_no_caches_are_never_looked_at(cached: Make, config: Config, tmp_path: Path) -> None:
    roots = cached("there").parent
    (roots / "something else").mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (roots / ("a" * 24)).symlink_to(elsewhere)
    (roots / ("b" * 24)).write_text("a file", encoding="utf-8")
    assert abandoned(config, now=1e12) == []


def test_a_cache_that_is_in_use_or_to_be_kept_stays(cached: Make, config: Config, tmp_path: Path) -> None:
    folder = cached("gone")
    shutil.rmtree(tmp_path / "gone")
    now = used(folder) + 31 * DAY_S
    found = abandoned(config, now=now)
    with exclusive(folder / "vectors.lock", timeout_s=0):
        assert remove_abandoned(found) == []
    assert (folder / CATALOG_FILE).exists()
    assert abandoned(config, now=now, keep=[folder]) == []


def test_without_a_cache_nothing_is_abandoned(config: Config) -> None:
    assert abandoned(config, now=0) == []
