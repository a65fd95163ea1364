"""The folders that a platform keeps for a program: where `platformdirs` has them, which takes long to load."""

# Strings, for the hook, which does without pathlib:
# ruff: noqa: PTH111, PTH117, PTH118

import os
import sys
from collections.abc import Mapping

_NAME = "recall"


def cache_folder(env: Mapping[str, str]) -> str:
    """The folder of derived data; relative for a user without a home.

    Args:
        env: environment variables; an XDG folder that is not absolute does not count.
    """
    if sys.platform == "win32":
        return os.path.join(_local(env), "Cache")
    if sys.platform == "darwin":
        return os.path.join(_home(), "Library", "Caches", _NAME)
    return _xdg(env, "XDG_CACHE_HOME", ".cache")


def config_folder(env: Mapping[str, str]) -> str:
    """The folder of the user's own settings; relative for a user without a home.

    Args:
        env: environment variables; an XDG folder that is not absolute does not count.
    """
    if sys.platform == "win32":
        return _local(env)
    if sys.platform == "darwin":
        return os.path.join(_home(), "Library", "Application Support", _NAME)
    return _xdg(env, "XDG_CONFIG_HOME", ".config")


def _xdg(env: Mapping[str, str], name: str, usual: str) -> str:
    named = env.get(name, "")
    return os.path.join(named if os.path.isabs(named) else os.path.join(_home(), usual), _NAME)


def _local(env: Mapping[str, str]) -> str:
    return os.path.join(env.get("LOCALAPPDATA") or os.path.join(_home(), "AppData", "Local"), _NAME, _NAME)


def _home() -> str:
    return os.path.expanduser("~")
