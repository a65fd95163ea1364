"""Which encoder the settings name, and whether another process can make one that is given."""

import os
from functools import lru_cache
from pathlib import Path

from recall.config import SBERT, EncoderConfig
from recall.errors import EncoderError
from recall.index.base import Encoder


@lru_cache(maxsize=4)
def make_encoder(config: EncoderConfig) -> Encoder | None:
    """The encoder that the settings name, loaded on first use; None for `off`.

    Every memory of the process shares it: a model takes tens of megabytes that the allocator does not give back.

    Raises:
        ModelNotFoundError: the named folder holds no model.
        MissingExtraError: a model of sentence-transformers is named, which is not installed.
    """
    if config.model == "off":
        return None
    if config.model == "hashing":
        from recall.index.hashing import HashingEncoder

        return HashingEncoder()
    if config.model.startswith(SBERT) or _is_preset(config.model):
        from recall.index.sbert import SbertEncoder

        return SbertEncoder(config.model.removeprefix(SBERT), threads=config.threads)
    from recall.index.onnx import OnnxEncoder

    folder = None if config.model == "onnx" else Path(config.model).expanduser()
    return OnnxEncoder(folder, threads=config.threads)


# A thread of the parent may have been loading one of them: in the child nobody would ever come to an end with it.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=make_encoder.cache_clear)


def _is_preset(model: str) -> bool:
    """Whether it names a preset; `./NAME` is a folder of that name."""
    if model == "onnx" or Path(model).name != model:
        return False
    from recall.index.presets import presets

    return model in presets()


def recipe_of(encoder: Encoder | None) -> EncoderConfig | None:
    """The settings from which any process makes vectors of the same space; None when there are none.

    Believed only where what they name has the fingerprint of the given one: a wrapper may pass on a recipe and still
    make vectors of its own.
    """
    recipe = getattr(encoder, "recipe", None)
    if encoder is None or not isinstance(recipe, EncoderConfig):
        return None
    try:
        made = make_encoder(recipe)
        return recipe if made is not None and made.fingerprint == encoder.fingerprint else None
    except EncoderError:  # one that has to fetch its model to know what it is raises it as late as this
        return None
