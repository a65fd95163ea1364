"""How well it is told whether a new fact repeats, changes or leaves alone an old one, on pairs written for it.

Pairs are split by the old fact, so that what was tuned on one half has not seen the facts of the other.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from bench.runner import Figure, arguments, record
from recall.index.onnx import OnnxEncoder
from recall.lifecycle.duplicates import Verdict, judge

PAIRS: Final = Path(__file__).resolve().parent / "fact_pairs.tsv"
LANGUAGES: Final = ("en", "zh", "cross")

Judge = Callable[[str, str, float], Verdict]


@dataclass(frozen=True, slots=True)
class Pair:
    """A new fact, the old one, what the new one is to it, and in which languages they are."""

    new: str
    old: str
    verdict: Verdict
    language: str

    @property
    def checked(self) -> bool:
        """Whether it is in the half that nothing was tuned on."""
        return hashlib.sha256(self.old.encode()).digest()[-1] % 2 == 1


def read_pairs(file: Path = PAIRS) -> list[Pair]:
    """The pairs of a file with a line each: new, old, verdict, language, set apart by tabs."""
    lines = (line.split("\t") for line in file.read_text(encoding="utf-8").splitlines())
    return [Pair(new, old, Verdict(verdict), language) for new, old, verdict, language in lines]


def cosines(pairs: Sequence[Pair]) -> list[float]:
    """Of the shipped model's vectors."""
    encoder = OnnxEncoder()
    texts = sorted({text for pair in pairs for text in (pair.new, pair.old)})
    vectors = dict(zip(texts, encoder.encode_documents(texts), strict=True))
    return [_cosine(vectors[pair.new], vectors[pair.old]) for pair in pairs]


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


def by_cosine(pairs: Sequence[Pair], found: Sequence[float]) -> Judge:
    """What a cosine alone can do: the least one at which 95 of 100 restatements of the tuned half are right."""
    known = sorted(
        (
            (cosine, pair.verdict is Verdict.RESTATED)
            for pair, cosine in zip(pairs, found, strict=True)
            if not pair.checked
        ),
        reverse=True,
    )
    right, least = 0, 1.0
    for number, (cosine, restated) in enumerate(known, 1):
        right += restated
        if right >= 0.95 * number:
            least = cosine
    return lambda _new, _old, cosine: Verdict.RESTATED if cosine >= least else Verdict.OTHER


def measured(judging: Judge, pairs: Sequence[Pair], found: Sequence[float], *, name: str) -> Iterator[Figure]:
    """Precision and recall of each verdict in each language, of the checked half."""
    counts = Counter(
        (pair.language, pair.verdict, judging(pair.new, pair.old, cosine))
        for pair, cosine in zip(pairs, found, strict=True)
        if pair.checked
    )
    for languages in (LANGUAGES, *((language,) for language in LANGUAGES)):
        for verdict in Verdict:
            of = [(true, given, n) for (language, true, given), n in counts.items() if language in languages]
            right = sum(n for true, given, n in of if true is given is verdict)
            given = sum(n for _, given, n in of if given is verdict)
            true = sum(n for true, _, n in of if true is verdict)
            if true:
                label = "all" if len(languages) > 1 else languages[0]
                values = {
                    "precision": right / given if given else 1.0,
                    "recall": right / true,
                    "given": given,
                    "n": true,
                }
                yield Figure(f"{name}, {verdict}, {label}", "", values)


def main() -> None:
    """Measures and records."""
    arguments(__doc__).parse_args()
    pairs = read_pairs()
    found = cosines(pairs)
    judges: dict[str, Judge] = {
        "judge": judge,
        "judge without vectors": lambda new, old, _cosine: judge(new, old, 1.0),
        "cosine alone": by_cosine(pairs, found),
    }
    figures = [figure for name, judging in judges.items() for figure in measured(judging, pairs, found, name=name)]
    record("duplicates", figures, topics=len(pairs), quick=False)


if __name__ == "__main__":
    main()
