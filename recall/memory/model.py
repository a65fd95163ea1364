"""The encoder in a running memory: warmed up in the background, and never in the way when it cannot be had."""

import logging
import threading
from collections import OrderedDict
from typing import Final

from recall.index.base import Encoder, Products, Vector, check_vectors
from recall.index.native import NATIVE
from recall.text.chunks import encoder_tokens

logger = logging.getLogger(__name__)

_REMEMBERED: Final = 64


def readable(query: str, budget: float) -> str:
    """Beginning and end of a query, where people ask, together about as long as a model reads.

    Args:
        query: of any length.
        budget: estimated tokens (text.chunks).
    """
    tokens = encoder_tokens(query)
    if tokens <= budget:
        return query
    half = max(1, int(len(query) * budget / tokens / 2))
    return f"{query[:half]}\n{query[-half:]}"


class Model:
    """An encoder with its state, and the arithmetic over its vectors. Thread-safe.

    Args:
        encoder: what encodes; None when only words are to be searched.
        products: of rows and a vector; None takes FAISS.
        problem: why there is no encoder.

    Attributes:
        encoder: as given; None from the moment it turns out not to work.
        problem: why only words are searched, "" while the encoder works or none is wanted.
    """

    def __init__(self, encoder: Encoder | None, *, products: Products | None = None, problem: str = "") -> None:
        self.encoder = encoder
        self.problem = problem
        self._products = products
        self._warm = threading.Event()
        self._lock = threading.Lock()
        self._recent: OrderedDict[str, Vector] = OrderedDict()
        if encoder is None:
            self._warm.set()

    @property
    def is_warm(self) -> bool:
        """Whether a query can be encoded and searched without loading anything."""
        return self._warm.is_set() and self.encoder is not None

    @property
    def products(self) -> Products:
        """Inner products of rows and a vector; loads FAISS on first use."""
        if self._products is None:
            with NATIVE.call():  # to load it as well
                from recall.index.faiss import products
            self._products = products
        return self._products

    def warm_up(self) -> None:
        """Loads the model and the search library; notes the problem when that fails, and words alone remain."""
        with self._lock:
            if self.encoder is not None and not self._warm.is_set():
                try:
                    self.encoder.encode_query("warm-up")
                    _ = self.products
                except Exception as error:  # an encoder of the host's may raise anything
                    logger.warning("only words are searched: %s", error)
                    self.encoder, self.problem = None, str(error) or repr(error)
            self._warm.set()

    def query(self, text: str) -> Vector | None:
        """The query's vector, shape (dim,), loading the model if need be; None when only words can be searched."""
        self.warm_up()
        encoder = self.encoder
        if encoder is None:
            return None
        text = readable(text, encoder.chunk_tokens)
        if (known := self._recent.get(text)) is not None:
            return known
        try:
            vector: Vector = check_vectors(encoder.encode_query(text)[None], rows=1, dim=encoder.dim)[0]
        except Exception as error:  # an encoder of the host's may raise anything
            logger.warning("a query is searched by its words only: %s", error)
            return None
        with self._lock:
            self._recent[text] = vector
            while len(self._recent) > _REMEMBERED:
                self._recent.popitem(last=False)
        return vector
