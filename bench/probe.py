"""One action in a process of its own: `python -m bench.probe ACTION ROOT CACHE`; prints seconds and peak memory.

Actions: `model` loads the real model and encodes one query; `words` gives the lexical answer of a fresh process;
`recall` gives the full answer; `index` makes a first index with the stand-in encoder.
"""

import json
import resource
import sys
import time
from pathlib import Path

QUERY = "why does the release of the payment service need a backup? 发布之前为什么要备份"


def main() -> None:
    """Runs the action and prints what it took as one JSON line."""
    action, root, cache = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    start = time.perf_counter()
    hits = _ACTIONS[action](root, cache)
    seconds = time.perf_counter() - start
    # Linux counts in kilobytes, macOS in bytes.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({"seconds": seconds, "peak_bytes": peak, "hits": hits}))


def _model(root: Path, cache: Path) -> int:
    from recall.index.onnx import OnnxEncoder

    return len(OnnxEncoder().encode_query(QUERY))


def _words(root: Path, cache: Path) -> int:
    from recall import Memory
    from recall.config import load

    config = load(arguments={"index.cache": str(cache), "encoder.model": "off"})
    with Memory.open(root, layout="plain", config=config) as memory:
        delivery = memory.prefetch(QUERY).first(5.0)
        return len(delivery.recall.hits) if delivery else 0


def _recall(root: Path, cache: Path) -> int:
    from bench.encoders import Standin
    from recall import Memory
    from recall.config import load

    config = load(arguments={"index.cache": str(cache)})
    with Memory.open(root, layout="plain", config=config, encoder=Standin(), background=False) as memory:
        return len(memory.recall(QUERY).hits)


def _index(root: Path, cache: Path) -> int:
    from bench.encoders import Standin
    from recall import Memory
    from recall.config import load

    config = load(arguments={"index.cache": str(cache)})
    with Memory.open(root, layout="plain", config=config, encoder=Standin(), background=False) as memory:
        return len(memory.reindex(full=True).added)


_ACTIONS = {"model": _model, "words": _words, "recall": _recall, "index": _index}

if __name__ == "__main__":
    main()
