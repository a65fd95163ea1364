"""What `Memory.open` opens: settings, memory folder, model. The one place that looks at this process's environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from recall.config import Config, load
from recall.errors import ConfigError, EncoderError
from recall.store.folders import cache_folder, config_folder
from recall.store.layout import Layout, Located, Place, locate
from recall.store.topics import Scope

if TYPE_CHECKING:  # an answer by words alone loads no more than it needs
    from recall.index.base import Encoder, Products
    from recall.memory.instructing import Instructions
    from recall.memory.model import Model
    from recall.store.plan import Folder


def load_config(project: Path, arguments: Mapping[str, object] | None = None) -> Config:
    """Settings from all sources: the project's file, the environment, the user's file, the arguments.

    Raises:
        ConfigError: names the source and the key that cannot be used.
    """
    folder = _absolute(config_folder(os.environ))
    user_file = folder / "config.toml" if folder else None
    return load(project=project, user_file=user_file, env=os.environ, arguments=arguments)


def _absolute(folder: str) -> Path | None:
    """The folder; None for a user without a home, whose "~" would lie in the opened project and be anybody's."""
    return path if (path := Path(folder)).is_absolute() else None


def find(root: Path | str | None, *, project: Path, layout: Layout | str | None, config: Config) -> Located:
    """Where the memory of a project lies, and why there (`store.layout.locate` with this process's environment).

    Raises:
        ConfigError: no such layout.
    """
    wanted = layout or config.layout.host
    if wanted and wanted not in set(Layout):
        raise ConfigError(f"no such layout; known are {', '.join(Layout)}", source="arguments", key=str(wanted))
    return locate(
        project,
        layout=Layout(wanted) if wanted else None,
        root=Path(root) if root else None,
        env=os.environ,
        home=_home(),
        worktrees=config.layout.worktrees or None,
    )


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:
        return None


def scopes_of(place: Place, *, user_root: Path | None = None) -> dict[Scope, Path]:
    """The folders of a memory: the project's, and the user's where there is another one.

    Args:
        place: where the project's memory lies.
        user_root: the folder of memory across projects; None takes the host's, if any.
    """
    user = user_root or place.user_root
    return {Scope.PROJECT: place.root} | ({Scope.USER: user} if user and user != place.root else {})


def folders_of(place: Place, scopes: Mapping[Scope, Path], config: Config) -> dict[Scope, Folder]:
    """The folders of a memory as its write path sees them.

    Args:
        place: where the project's memory lies; its host has habits of its own.
        scopes: the folders, from `scopes_of`.
        config: settings.
    """
    from recall.store.plan import Folder, IndexMode

    is_qwen = place.layout is Layout.QWEN
    mode = IndexMode(config.index_file.mode or (IndexMode.GENERATED if is_qwen else IndexMode.CURATED))
    state = {Scope.PROJECT: place.root.parent / "meta.json"} if is_qwen else {}
    return {scope: Folder(root, scope, mode, state.get(scope), _keys()) for scope, root in scopes.items()}


def _keys() -> Path:
    """Where the user's secret lies; nowhere for a user without a home."""
    return _absolute(config_folder(os.environ)) or Path()


def instructions_of(located: Located, config: Config) -> Instructions:
    """The files of standing instructions that go with a memory.

    Args:
        located: where the memory lies.
        config: settings.
    """
    from recall.memory.instructing import Instructions
    from recall.store.instructions import instruction_files

    of_project, of_user = instruction_files(located.start, home=_home(), layout=located.chosen.layout)
    files = {Scope.PROJECT: of_project} | ({Scope.USER: of_user} if of_user else {})
    return Instructions(files, locks=cache_root(config) / "locks", key=_keys())


def cache_root(config: Config) -> Path:
    """Folder of all derived data; a relative one when there is no home, which an index does not take.

    Raises:
        ConfigError: the folder of the settings begins with ~ and there is no home.
    """
    if not config.index.cache:
        return _absolute(cache_folder(os.environ)) or Path()
    try:
        return Path(config.index.cache).expanduser().absolute()
    except RuntimeError as error:
        raise ConfigError(str(error), source="settings", key="index.cache") from error


def make_model(encoder: Encoder | None, config: Config, *, products: Products | None = None) -> Model:
    """The given encoder, else the one of the settings; without a usable one, a model that leaves words alone."""
    from recall.index.encoders import make_encoder
    from recall.memory.model import Model, logger

    if encoder is not None:
        return Model(encoder, products=products)
    try:
        return Model(make_encoder(config.encoder), products=products)
    except EncoderError as error:
        logger.warning("only words are searched: %s", error)
        return Model(None, problem=str(error))
