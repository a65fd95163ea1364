"""What `Memory.open` opens: settings, memory folder, model. The one place that looks at this process's environment."""

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import platformdirs

from recall.config import Config, load
from recall.errors import ConfigError, EncoderError
from recall.index.base import Encoder
from recall.index.encoders import make_encoder
from recall.memory.model import Model
from recall.search.dense import Nearest
from recall.store.layout import Layout, Located, locate

logger = logging.getLogger(__name__)


def load_config(project: Path, arguments: Mapping[str, object] | None = None) -> Config:
    """Settings from all sources: the project's file, the environment, the user's file, the arguments.

    Raises:
        ConfigError: names the source and the key that cannot be used.
    """
    folder = _platform_folder(platformdirs.user_config_dir)
    user_file = folder / "config.toml" if folder else None
    return load(project=project, user_file=user_file, env=os.environ, arguments=arguments)


def _platform_folder(of: Callable[[str], str]) -> Path | None:
    """The folder that the platform has for recall; None for a user without a home."""
    try:
        folder = Path(of("recall"))
    except RuntimeError:
        return None
    # Older libraries say "~/.config" then, which would lie in the opened project and be anybody's.
    return folder if folder.is_absolute() else None


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


def cache_root(config: Config) -> Path:
    """Folder of all derived data; a relative one when there is no home, which an index does not take.

    Raises:
        ConfigError: the folder of the settings begins with ~ and there is no home.
    """
    if not config.index.cache:
        return _platform_folder(platformdirs.user_cache_dir) or Path()
    try:
        return Path(config.index.cache).expanduser().absolute()
    except RuntimeError as error:
        raise ConfigError(str(error), source="settings", key="index.cache") from error


def make_model(encoder: Encoder | None, config: Config, *, nearest: Nearest | None = None) -> Model:
    """The given encoder, else the one of the settings; without a usable one, a model that leaves words alone."""
    if encoder is not None:
        return Model(encoder, nearest=nearest)
    try:
        return Model(make_encoder(config.encoder), nearest=nearest)
    except EncoderError as error:
        logger.warning("only words are searched: %s", error)
        return Model(None, problem=str(error))
