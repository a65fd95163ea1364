"""Encoders for measuring: one that makes large indexes affordable, one that hangs, one that keeps its own accounts."""

import threading
import time
from collections.abc import Sequence
from functools import cached_property
from random import Random
from typing import Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from recall import Encoder
from recall.index.base import Vector, Vectors, check_vectors
from recall.index.onnx import OnnxEncoder

_FEATURES: Final = 4096


class Standin:
    """Documents by random projection of hashed words, queries by the real model.

    It measures time, not quality: a search with it does the work that a search with the real model does, query encoding
    included, but the vectors of documents and queries have nothing to do with each other, so that what it finds by
    meaning is chance. The floor is zero, so that every answer has hits to read and to render.
    """

    name = "standin"
    floor = 0.0

    def __init__(self) -> None:
        self._queries = OnnxEncoder()
        self.dim = self._queries.dim
        self.chunk_tokens = self._queries.chunk_tokens
        self.fingerprint = f"standin-1-{self._queries.fingerprint}"

    @cached_property
    def _projection(self) -> NDArray[np.float32]:
        """One random direction a feature, shape (features, dim)."""
        return np.random.default_rng(1).standard_normal((_FEATURES, self.dim), dtype=np.float32)

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text, shape (n, dim)."""
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            features = [crc32(word.encode("utf-8", "replace")) % _FEATURES for word in text.split()]
            row[:] = self._projection[features].sum(axis=0)
        return check_vectors(rows, rows=len(texts), dim=self.dim)

    def encode_query(self, text: str) -> Vector:
        """The query's vector by the real model, shape (dim,)."""
        return self._queries.encode_query(text)


class _Wrapped:
    """What every wrapper passes on."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.name = encoder.name
        self.fingerprint = encoder.fingerprint
        self.dim = encoder.dim
        self.chunk_tokens = encoder.chunk_tokens
        self.floor = encoder.floor


class Hanging(_Wrapped):
    """The given encoder, which now and then does not come back for long; the first call, which loads it, always does.

    It passes on the recipe of the other, so that long work, which another process does, does not hang.

    Args:
        encoder: what encodes.
        share: of the calls that hang.
        longest_s: a call hangs for up to that long, half of them for less than half of it.
        seed: of the choice.
    """

    def __init__(self, encoder: Encoder, *, share: float, longest_s: float, seed: int) -> None:
        super().__init__(encoder)
        self.recipe = getattr(encoder, "recipe", None)
        self._share, self._longest_s = share, longest_s
        self._rng = Random(seed)
        self._never = threading.Event()
        self.hung = 0

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text, shape (n, dim), sooner or later."""
        self._perhaps_hang()
        return self._encoder.encode_documents(texts)

    def encode_query(self, text: str) -> Vector:
        """The query's vector, shape (dim,), sooner or later."""
        if text != "warm-up":
            self._perhaps_hang()
        return self._encoder.encode_query(text)

    def _perhaps_hang(self) -> None:
        if self._rng.random() < self._share:
            self.hung += 1
            self._never.wait(self._rng.uniform(0, self._longest_s))


class Metered(_Wrapped):
    """The given encoder with the processor time and the number of its documents.

    Attributes:
        cpu_s: processor seconds of the process while documents were encoded.
        texts: how many there were.
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self.cpu_s = 0.0
        self.texts = 0

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text, shape (n, dim)."""
        start = time.process_time()
        vectors = self._encoder.encode_documents(texts)
        self.cpu_s += time.process_time() - start
        self.texts += len(texts)
        return vectors

    def encode_query(self, text: str) -> Vector:
        """The query's vector, shape (dim,)."""
        return self._encoder.encode_query(text)
