"""How good are the answers? Every retrieval set of the shared folder, every way to answer it, beside two peers."""

import argparse
import json
import sqlite3
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from bench.bootstrap import RESAMPLES
from bench.generate import SEED
from bench.quality.columns import Answers, ask
from bench.quality.figures import Record, figures
from bench.quality.page import FILE
from bench.quality.sets import QualitySet, find_sets, shared_folder
from bench.runner import RESULTS, commit
from bench.workspace import workbench
from recall.apps.testset import read_queries, unpack_corpus
from recall.config import Config, load
from recall.index.encoders import make_encoder
from recall.memory.opening import cache_root

_QUICK: Final = 20


def main(words: Sequence[str] | None = None) -> None:
    """Measures the chosen sets; one line of results each."""
    options = _parser().parse_args(words)
    try:
        sets = _chosen(find_sets(shared_folder(options.shared)), options.sets)
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    with workbench(options.cache) as cache:
        config = load(arguments={"index.cache": str(cache)})
        for one in sets:
            start = time.perf_counter()
            answers = answer(one, config, limit=_QUICK if options.quick else None)
            line = described(one, config) | figures(answers, cluster=one.cluster, seed=SEED) | _extent(answers)
            show(line, time.perf_counter() - start)
            if options.answers:
                keep_answers(answers, options.answers / f"{one.name}.jsonl")
            if not options.quick:
                append(line, options.results / FILE)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__)
    parser.add_argument("--set", action="append", dest="sets", metavar="NAME", help="only this set; may be repeated")
    parser.add_argument("--shared", type=Path, metavar="FOLDER", help="shared data; else $RECALL_SHARED or ../shared")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="indexes, used again; else a temporary folder")
    parser.add_argument("--answers", type=Path, metavar="FOLDER", help="write what each query got, a file a set")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="where the lines go")
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK} queries a set, nothing noted: does it work?")
    return parser


def _chosen(sets: Sequence[QualitySet], names: Sequence[str] | None) -> list[QualitySet]:
    if unknown := set(names or ()) - {one.name for one in sets}:
        raise ValueError(f"no such set: {', '.join(sorted(unknown))}; there are {', '.join(one.name for one in sets)}")
    return [one for one in sets if not names or one.name in names]


def answer(one: QualitySet, config: Config, *, limit: int | None = None) -> Answers:
    """Asks every column the questions of a set, the first few where there is a limit."""
    root = one.corpus if one.corpus.is_dir() else unpack_corpus(one.corpus, cache_root(config))
    queries = read_queries(one.queries, root=root, limit=limit)
    return ask(root, queries, config=config, told=lambda way: _say(f"{one.name}: {way}"))


def described(one: QualitySet, config: Config) -> Record:
    """Of what the figures are: set, code, data, model and chance."""
    encoder = make_encoder(config.encoder)
    return {
        "bench": "quality",
        "set": one.name,
        "commit": commit(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": one.digest(),
        "seed": SEED,
        "resamples": RESAMPLES,
        "encoder": encoder.fingerprint if encoder else "",
        "peers": {"bm25s": version("bm25s"), "sqlite": sqlite3.sqlite_version},
    }


def _extent(answers: Answers) -> Record:
    return {"topics": answers.topics, "unknown": len(answers.unknown), "floor": answers.floor}


def append(line: Record, file: Path) -> None:
    """Notes one run."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(line, ensure_ascii=False) + "\n")


def keep_answers(answers: Answers, file: Path) -> None:
    """Writes what every column answered, one line a query, to look into single questions."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as stream:
        for number, query in enumerate(answers.queries):
            got = {name: judged[number].ranking for name, judged in answers.columns.items()}
            line = {"id": query.id, "kind": query.kind, "lang": query.lang, "relevant": sorted(query.relevant), **got}
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")


def show(line: Record, seconds: float) -> None:
    """Prints the means of one set."""
    whole = line["whole"]
    print(f"\n{line['set']}, {whole['answerable']} answerable, {whole['no_answer']} not, {seconds:.0f} s")
    for name, means in whole["columns"].items():
        cells = (f"{key} {value:.3f}" for key, value in means.items() if value is not None)
        print(f"  {name:<10} {'  '.join(cells)}")
    sys.stdout.flush()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
