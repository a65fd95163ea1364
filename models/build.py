"""`python models/build.py SOURCE OUT`: a model of sentence-transformers in recall's own form (docs/models.md)."""

import argparse
import logging
import sys
import warnings
from pathlib import Path

# This checkout, also where recall is not installed.
sys.path[0] = str(Path(__file__).resolve().parent.parent)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    line = argparse.ArgumentParser(prog="python models/build.py", description=__doc__)
    line.add_argument("source", help="a preset, a folder, or a model on the hub")
    line.add_argument("out", type=Path, help="folder that is made; its name is the model's")
    line.add_argument(
        "--languages", default="", help="whose pieces stay in the vocabulary, such as zh,en; all, if none"
    )
    line.add_argument("--text", type=Path, action="append", default=[], help="file whose pieces stay, one text a line")
    line.add_argument("--head", choices=["neutral", "mean", "none"], default="neutral")
    line.add_argument("--directions", type=int, default=3, help="that the neutral head projects out")
    line.add_argument("--bytes", type=int, choices=[1, 4], default=1, help="of a weight")
    line.add_argument("--licence", default="", help="of the weights, where no preset knows it")
    line.add_argument("--attribution", default="", help="whom the card names")
    line.add_argument(
        "--floor", type=float, default=0.205, help="how well the best topic must fit a query for anything to be found"
    )
    line.add_argument("--parity", type=float, default=0.98, help="cosine with the source that each text has to reach")
    return line


def main() -> int:
    """Builds, and says what came of it; 1 when it cannot be built."""
    said = parser().parse_args()
    # Torch and onnxruntime tell at length of their inner workings.
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    from models.building.refusal import Refusal
    from recall.errors import RecallError

    try:
        from models.building.builder import Order, build
        from recall.index.sbert import SbertEncoder

        texts = [line for file in said.text for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        order = Order(
            out=said.out,
            languages=[language for language in said.languages.split(",") if language],
            texts=texts,
            head=said.head,
            directions=said.directions,
            bytes_a_weight=said.bytes,
            licence=said.licence,
            attribution=said.attribution,
            floor=said.floor,
            parity=said.parity,
        )
        built = build(SbertEncoder(said.source), order)
    except ModuleNotFoundError as error:
        print(f"{error.name} is not installed; run: pip install -e '.[build]'", file=sys.stderr)
        return 1
    except (Refusal, RecallError, OSError) as error:
        print(f"not built: {error}", file=sys.stderr)
        return 1
    for file in sorted(built.folder.iterdir()):
        print(f"{file}: {file.stat().st_size:,} bytes")
    print(f"vocabulary: {built.pieces[0]:,} pieces, {built.pieces[1]:,} kept")
    like = built.parity
    print(f"cosine with the source, {like.count} texts: mean {like.mean:.4f}, least {like.least:.4f} ({like.worst})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
