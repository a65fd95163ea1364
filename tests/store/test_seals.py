"""A seal tells this user's journals from everybody else's, and the secret behind it is made once and kept."""

import multiprocessing
import os
from pathlib import Path

import pytest

from recall.store.seals import is_sealed, key_in, sealed

RECORD = {"run": "r", "items": [{"id": "a.md", "text": "一件事 🎉 \ud800"}], "time": 1.5}


def test_only_the_holder_of_the_key_can_seal_a_record(tmp_path: Path) -> None:
    whole = sealed(RECORD, tmp_path, b"k")
    assert is_sealed(whole, tmp_path, b"k")
    assert not is_sealed(whole, tmp_path, b"other")
    assert not is_sealed(RECORD, tmp_path, b"k")
    assert not is_sealed(whole | {"seal": 7}, tmp_path, b"k")
    assert not is_sealed(whole | {"seal": "é"}, tmp_path, b"k")
    assert not is_sealed(whole | {"seal": "\ud800"}, tmp_path, b"k")


def test_nothing_is_anybodys_without_a_key(tmp_path: Path) -> None:
    assert not is_sealed(RECORD, tmp_path, b"")
    assert not is_sealed(sealed(RECORD, tmp_path, b""), tmp_path, b"")
    assert not is_sealed(RECORD, tmp_path, Path())


def test_a_key_in_a_folder_is_made_by_who_seals_not_by_who_looks(tmp_path: Path) -> None:
    keys = tmp_path / "config"
    assert not is_sealed(sealed(RECORD, tmp_path, b"k"), tmp_path, keys)
    assert not keys.exists()
    whole = sealed(RECORD, tmp_path, keys)
    assert is_sealed(whole, tmp_path, keys)
    assert is_sealed(whole, tmp_path, key_in(keys))
    assert is_sealed(sealed(RECORD, tmp_path, Path()), tmp_path, Path())


def test_a_seal_holds_for_one_folder_and_for_every_word(tmp_path: Path) -> None:
    whole = sealed(RECORD, tmp_path, b"k")
    assert not is_sealed(whole, tmp_path / "other", b"k")
    assert not is_sealed(whole | {"time": 1.6}, tmp_path, b"k")
    assert not is_sealed(whole | {"more": None}, tmp_path, b"k")
    (tmp_path / "link").symlink_to(tmp_path)
    assert is_sealed(whole, tmp_path / "link", b"k")


def test_the_key_is_made_once_for_the_user_alone(tmp_path: Path) -> None:
    key = key_in(tmp_path / "cache/locks")
    assert len(key) == 32
    assert key_in(tmp_path / "cache/locks") == key
    assert key_in(tmp_path / "other") != key
    (file,) = (tmp_path / "cache/locks").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_broken_key_is_made_anew(tmp_path: Path) -> None:
    key_in(tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"torn")
    assert len(key_in(tmp_path)) == 32
    assert key_in(tmp_path) == file.read_bytes()


def test_without_a_place_of_its_own_the_key_is_the_processs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert key_in(Path("locks")) == key_in(Path())
    (tmp_path / "file").write_bytes(b"")
    assert key_in(tmp_path / "file") == key_in(Path())
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def _key(folder: Path) -> bytes:
    return key_in(folder)


def test_processes_that_begin_at_once_agree_on_the_key(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(min(4, os.cpu_count() or 1)) as pool:
        assert len(set(pool.map(_key, [tmp_path / "new"] * 8, chunksize=1))) == 1
    assert len(list((tmp_path / "new").iterdir())) == 1
