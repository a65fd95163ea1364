"""Search by codes against reading every vector: time, what it misses, what making and keeping codes costs.

The shipped model encodes notes and requests that are made up. Further vectors are such ones moved by the difference of
two others that are near to each other, so that they crowd as those of more notes would. Times are of the calling
thread's processor; the catalog, the files and the search are those of a memory.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

from bench.generate import SEED, queries, topics
from bench.runner import Figure, arguments, compared, interleaved, record
from recall.index import faiss
from recall.index.approximate import Tier, refresh_codes
from recall.index.base import Vector, Vectors, check_vectors
from recall.index.catalog import Catalog, set_meta
from recall.index.onnx import OnnxEncoder
from recall.index.vectors import VectorFile
from recall.text.chunks import chunk_topic

_MEGABYTE: Final = 1 << 20
_BLOCK: Final = 4096
_BEGINNING: Final = 60  # estimated tokens; whole chunks take the model five times as long
_NEAR: Final = 10
_DEPTHS: Final = (10, 64)


def main() -> None:
    """Measures every size and records it."""
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, action="append", help="15000, 50000, 150000 and 500000 unless given")
    options = parser.parse_args()
    found, asked = encoded(options)
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        for rows in options.rows or ([15_000] if options.quick else [15_000, 50_000, 150_000, 500_000]):
            with stored(Path(work) / str(rows), found, rows) as catalog:
                record("approximate", measure(catalog, asked), topics=rows, quick=options.quick)


def encoded(options: argparse.Namespace) -> tuple[Vectors, Vectors]:
    """Vectors of the beginnings of notes, and of requests of which half are about the notes."""
    notes, requests = (300, 20) if options.quick else (3000, 200)
    encoder = OnnxEncoder()
    texts = [chunk_topic("", "", text, budget=_BEGINNING)[0].text for _, text in topics(notes)]
    rows = np.vstack([encoder.encode_documents([text]) for text in texts])
    vectors = [encoder.encode_query(text) for text in islice(queries(requests, among=notes), requests)]
    return rows, np.vstack(vectors)


def grown(rows: Vectors, count: int) -> Iterator[Vectors]:
    """As many vectors as wanted, block by block: the given ones, then given ones moved by differences of near ones."""
    random = np.random.default_rng(SEED)
    products = rows @ rows.T
    near = np.argsort(-products, axis=1, kind="stable")[:, 1 : _NEAR + 1]
    yield rows[:count]
    for at in range(len(rows), count, _BLOCK):
        size = min(_BLOCK, count - at)
        start, one = random.integers(0, len(rows), (2, size))
        other = near[one, random.integers(0, near.shape[1], size)]
        moved = rows[start] + random.uniform(0.5, 1.0, (size, 1)) * (rows[one] - rows[other])
        yield check_vectors(moved, rows=size, dim=rows.shape[1])


@contextmanager
def stored(folder: Path, rows: Vectors, count: int) -> Iterator[Catalog]:
    """A catalog with so many vectors."""
    folder.mkdir()
    catalog = Catalog(folder, folder)
    try:
        dim, first = rows.shape[1], 0
        catalog.switch_encoder("measured", dim=dim, vectors="measured.vectors")
        for block in grown(rows, count):
            VectorFile(folder / "measured.vectors", dim).append(block, at=first)
            first += len(block)
        with catalog.transaction() as write:
            set_meta(write, {"rows": str(first)})
        yield catalog
    finally:
        catalog.close()


def measure(catalog: Catalog, asked: Vectors) -> list[Figure]:
    """Making codes, then searches by them in turn with exact ones."""
    making = busy(lambda: refresh_codes(catalog, exact_rows=1))
    meta, folder = catalog.meta(), catalog.file.parent
    rows, tier = VectorFile(folder / meta["vectors"], int(meta["dim"])).view(int(meta["rows"])), Tier.open(folder, meta)
    if tier is None:
        raise SystemExit("no codes were made")
    faiss.products(rows, asked[0])  # reads the file
    reading = busy(lambda: tier.nearest(rows, asked[0], 1, exact=faiss.nearest))
    size = tier.file.stat().st_size
    return [
        *(figure for k in _DEPTHS for figure in searches(tier, rows, asked, k)),
        Figure("making codes, processor time", "s", {"value": making}),
        Figure("first search of a process, processor time", "ms", {"value": reading * 1e3}),
        Figure("file of codes", "MB", {"value": size / _MEGABYTE}, "vectors", {"value": size / rows.nbytes}),
    ]


def searches(tier: Tier, rows: Vectors, asked: Vectors, k: int) -> list[Figure]:
    """Time and share of the nearest that are found, over all requests."""
    shares: list[float] = []

    def by_codes(vector: Vector) -> float:
        return busy(lambda: tier.nearest(rows, vector, k, exact=faiss.nearest))

    def by_rows(vector: Vector) -> float:
        return busy(lambda: faiss.nearest(rows, vector, k))

    seconds = interleaved({"codes": by_codes, "rows": by_rows}, asked)
    for vector in asked:
        (_, found), (_, right) = tier.nearest(rows, vector, k, exact=faiss.nearest), faiss.nearest(rows, vector, k)
        shares.append(len(np.intersect1d(found, right)) / len(right))
    name = f"{k} nearest of as many vectors by codes"
    return [
        compared(name, seconds["codes"], against="reading every vector", baseline=seconds["rows"]),
        Figure(f"{name}: found of them", "", {"mean": float(np.mean(shares)), "worst": min(shares)}),
    ]


def busy(action: Callable[[], object]) -> float:
    """Seconds of the calling thread's processor."""
    start = time.thread_time()
    action()
    return time.thread_time() - start


if __name__ == "__main__":
    main()
