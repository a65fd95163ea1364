"""Which encoder the settings name, and whether another process can make one that is given."""

from functools import lru_cache
from pathlib import Path

from recall.config import EncoderConfig
from recall.errors import EncoderError
from recall.index.base import Encoder


@lru_cache(maxsize=4)
def make_encoder(config: EncoderConfig) -> Encoder | None:
    """The encoder that the settings name, loaded on first use; None for `off`.

    Every memory of the process shares it: a model takes tens of megabytes that the allocator does not give back.

    Raises:
        ModelNotFoundError: the named folder holds no model.
    """
    if config.model == "off":
        return None
    if config.model == "hashing":
        from recall.index.hashing import HashingEncoder

        return HashingEncoder()
    from recall.index.onnx import OnnxEncoder

    folder = None if config.model == "onnx" else Path(config.model).expanduser()
    return OnnxEncoder(folder, threads=config.threads)


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
    except EncoderError:
        return None
    return recipe if made is not None and made.fingerprint == encoder.fingerprint else None
