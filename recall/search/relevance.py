"""How relevant a hit is on a scale that can be averaged over searches of different kinds: 1 to 10.

The founding document 003 rates what was retrieved from 1 to 10; where nobody rates, the strength of the match at the
moment of the recall stands in (spec dreaming.md section 2.16).
"""

import math
from typing import Final

from recall.text.tokens import tokenize

LEAST: Final = 1.0
MOST: Final = 10.0

# How far above the model's floor, where this scale begins, a fused score is two thirds of the way to certain. Right
# answers across languages lie about .1 to .3 above it and right answers that share words up to .8, which gives 4 to 7
# and more than 9.
_FUSED_SCALE: Final = 0.25
# The same for the share of the query that words alone found: weaker evidence, so it rises more slowly.
_WORDS_SCALE: Final = 0.5
# What one query token adds when it stands in a title, by the founding heuristic.
_POINTS_A_TOKEN: Final = 4


def fused_relevance(score: float, floor: float) -> float:
    """Relevance of a fused score; grows with it, 1 at the floor and below, near 10 where words and meaning agree.

    Args:
        score: cosine + 0.5 F, or its stand-in for a topic without a vector.
        floor: the model's own, not that of the settings: what a score means does not change with what is shown. It is
            made for `Hit.fit`, and lies where fused scores of unrelated topics end.
    """
    return _risen((score - floor) / _FUSED_SCALE)


def words_relevance(points: float, query: str) -> float:
    """Relevance of a score of the founding heuristic: the share of the query's tokens that it stands for.

    Args:
        points: the score, which grows with the length of the query.
        query: what was asked.
    """
    return _risen(points / (_POINTS_A_TOKEN * max(1, len(tokenize(query)))) / _WORDS_SCALE)


def _risen(strength: float) -> float:
    return LEAST + (MOST - LEAST) * -math.expm1(-max(0.0, strength))
