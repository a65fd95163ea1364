"""An encoder without a model: signed hashing of words, CJK characters and pairs, and Latin trigrams.

It crosses no languages and knows no synonyms; it is there for machines without the model files and for tests that need
a real, deterministic encoder in microseconds.
"""

from collections.abc import Iterator, Sequence
from typing import Final
from zlib import crc32

import numpy as np

from recall.config import EncoderConfig
from recall.index.base import Vector, Vectors, check_vectors
from recall.text.tokens import terms

_DIM: Final = 512


class HashingEncoder:
    """Bag of hashed features, weighted by the root of their count."""

    def __init__(self, dim: int = _DIM) -> None:
        self.dim = dim
        self.name = "hashing"
        self.fingerprint = f"hashing-2-{dim}"
        self.chunk_tokens = 430
        self.floor = 0.25
        self.recipe = EncoderConfig(model="hashing") if dim == _DIM else None

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text, shape (n, dim); a text without letters or numbers gives a zero row."""
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for feature, weight in _features(text):
                code = crc32(feature.encode("utf-8", "surrogatepass"))
                row[code % self.dim] += weight if code & 0x8000_0000 else -weight
        return check_vectors(rows, rows=len(texts), dim=self.dim)

    def encode_query(self, text: str) -> Vector:
        """The query's vector, shape (dim,)."""
        vector: Vector = self.encode_documents([text])[0]
        return vector


def _features(text: str) -> Iterator[tuple[str, float]]:
    for term, count in terms(text).items():
        weight = count**0.5
        yield term, weight
        if ord(term[0]) < 0x2E80:
            marked = f"^{term[:32]}$"
            yield from ((marked[at : at + 3], weight / len(marked)) for at in range(len(marked) - 2))
        elif len(term) > 1:
            yield term[0], weight / 2
