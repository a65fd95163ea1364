"""Is the result like its source? Texts through both, compared one by one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.building.head import Matrix
from recall.index.base import Encoder, Vectors


@dataclass(frozen=True, slots=True)
class Parity:
    """Cosines between source and result.

    Attributes:
        count: texts that were compared.
        mean: of all.
        least: of the text that came out worst.
        worst: that text.
    """

    count: int
    mean: float
    least: float
    worst: str


def vectors(encoder: Encoder, texts: Sequence[str]) -> Vectors:
    """Each other text as a query, the rest as documents; shape (n, dim)."""
    return np.vstack(
        [
            encoder.encode_documents([text]) if at % 2 else encoder.encode_query(text)[None]
            for at, text in enumerate(texts)
        ]
    )


def compare(wanted: Matrix | Vectors, found: Vectors, texts: Sequence[str]) -> Parity:
    """How like they are.

    Args:
        wanted: what `vectors` gives for the source, after its head.
        found: the same for the result.
        texts: what was encoded.
    """
    cosines = (wanted * found).sum(axis=1)
    at = int(cosines.argmin())
    return Parity(len(cosines), float(cosines.mean()), float(cosines[at]), texts[at])
