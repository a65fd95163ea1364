"""Peak memory of processes that open a memory and recall, or make a first index, against one that loads the model."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.runner import REPOSITORY, Figure, arguments, record
from bench.workspace import Workspace, notes, workbench

_MEGABYTE = 1 << 20


def main() -> None:
    """Measures every size and records it."""
    parser = arguments(__doc__)
    parser.add_argument("--topics", type=int, action="append", help="1000 and 10000 unless given")
    options = parser.parse_args()
    with workbench(options.work) as work:
        for count in options.topics or ([1000] if options.quick else [1000, 10_000]):
            space = notes(work, count)
            space.index()
            record("memory_use", measure(space, 1 if options.quick else 3), topics=count, quick=options.quick)


def measure(space: Workspace, repeats: int) -> list[Figure]:
    """The greatest peak of a few runs of each action."""
    model, recall, index = 0, 0, 0
    for _ in range(repeats):
        model = max(model, _peak("model", space.root, space.cache))
        recall = max(recall, _peak("recall", space.root, space.cache))
        with tempfile.TemporaryDirectory(dir=space.root.parent) as cache:
            index = max(index, _peak("index", space.root, Path(cache)))
    return [
        Figure(name, "MB", {"value": peak / _MEGABYTE}, "loading the model", {"value": peak / model})
        for name, peak in (("peak of open and recall", recall), ("peak of a first index", index))
    ]


def _peak(action: str, root: Path, cache: Path) -> int:
    command = [sys.executable, "-m", "bench.probe", action, str(root), str(cache)]
    run = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True, encoding="utf-8")
    found: dict[str, Any] = json.loads(run.stdout)
    return int(found["peak_bytes"])


if __name__ == "__main__":
    main()
