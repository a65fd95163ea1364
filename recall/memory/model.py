"""The encoder in a running memory: warmed up in the background, and never in the way when it cannot be had."""

import logging
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Final

from recall.config import EncoderConfig
from recall.errors import EncoderError
from recall.index.base import Encoder, Vector

logger = logging.getLogger(__name__)

_REMEMBERED: Final = 64
# The model reads no more than 512 tokens of a query; whatever lies behind this many characters is beyond them.
_LONGEST: Final = 3000


def make_encoder(config: EncoderConfig) -> Encoder | None:
    """The encoder that the settings name, not loaded yet; None for `off`.

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


class Model:
    """An encoder with its state. Thread-safe.

    Args:
        encoder: what encodes; None when only words are to be searched.
        problem: why there is none.
    """

    def __init__(self, encoder: Encoder | None, problem: str = "") -> None:
        self.encoder = encoder
        self.problem = problem
        self._warm = threading.Event()
        self._lock = threading.Lock()
        self._recent: OrderedDict[str, Vector] = OrderedDict()
        if encoder is None:
            self._warm.set()

    @property
    def is_warm(self) -> bool:
        """Whether a query can be encoded without waiting for the model to load."""
        return self._warm.is_set() and self.encoder is not None

    @property
    def floor(self) -> float:
        """Fused score below which a hit of this model is taken for chance."""
        return self.encoder.floor if self.encoder else 0.0

    def warm_up(self) -> None:
        """Loads the model; notes the problem when that fails, after which only words are searched."""
        with self._lock:
            encoder = self.encoder
            if encoder is not None and not self._warm.is_set():
                try:
                    encoder.encode_query("warm-up")
                except EncoderError as error:
                    self._give_up(error)
            self._warm.set()

    def query(self, text: str, *, wait: bool = True) -> Vector | None:
        """The query's vector, shape (dim,); None when only words can be searched.

        Args:
            text: the query.
            wait: load the model now if it is not loaded yet.
        """
        if not self._warm.is_set():
            if not wait:
                return None
            self.warm_up()
        encoder = self.encoder
        if encoder is None:
            return None
        text = text[:_LONGEST]
        if (known := self._recent.get(text)) is not None:
            return known
        try:
            vector = encoder.encode_query(text)
        except EncoderError as error:
            logger.warning("the query is searched by its words only: %s", error)
            return None
        with self._lock:
            self._recent[text] = vector
            while len(self._recent) > _REMEMBERED:
                self._recent.popitem(last=False)
        return vector

    def _give_up(self, error: EncoderError) -> None:
        logger.warning("only words are searched: %s", error)
        self.encoder, self.problem = None, str(error)
