"""The folders that a platform keeps for a program."""

import sys
from pathlib import Path

import pytest

from recall.store.folders import cache_folder, config_folder

pytestmark = pytest.mark.skipif(
    sys.platform in {"win32", "darwin"}, reason="the XDG folders are those of other systems"
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_they_lie_in_the_home_folder(home: Path) -> None:
    assert cache_folder({}) == str(home / ".cache" / "recall")
    assert config_folder({}) == str(home / ".config" / "recall")


def test_they_follow_the_variables_of_the_user() -> None:
    env = {"XDG_CACHE_HOME": "/var/mine", "XDG_CONFIG_HOME": "/etc/mine"}
    assert (cache_folder(env), config_folder(env)) == ("/var/mine/recall", "/etc/mine/recall")


@pytest.mark.parametrize("named", ["", "cache", "./cache", "~/cache"])
def test_a_folder_that_is_not_absolute_does_not_count(home: Path, named: str) -> None:
    """It would lie in whatever project is open."""
    env = {"XDG_CACHE_HOME": named, "XDG_CONFIG_HOME": named}
    assert cache_folder(env) == str(home / ".cache" / "recall")
    assert config_folder(env) == str(home / ".config" / "recall")
