"""What all benchmarks share: interleaved timing, statistics over it, and one JSON line a run in results/."""

import argparse
import importlib.metadata
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from bench.generate import SEED

REPOSITORY: Final = Path(__file__).resolve().parent.parent
RESULTS: Final = Path(__file__).resolve().parent / "results"
_LIBRARIES: Final = ("numpy", "faiss-cpu", "onnxruntime", "tokenizers")
_SHARES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing that was measured.

    Attributes:
        name: what.
        unit: of the values.
        values: by statistic (`min`, `p50` ... `max`, `n`), or a single one under `value`.
        against: what it is compared with, measured in the same run; "" for nothing.
        ratios: this over that, by statistic.
    """

    name: str
    unit: str
    values: Mapping[str, float]
    against: str = ""
    ratios: Mapping[str, float] = field(default_factory=dict)


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest measured value that at least this share of the values does not exceed (nearest rank)."""
    return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]


def summary(values: Iterable[float], *, scale: float = 1.0) -> dict[str, float]:
    """Number, least, median, p95, p99, p99.9 and greatest of the values, each times the scale."""
    ordered = sorted(value * scale for value in values)
    shares = {name: quantile(ordered, share) for name, share in _SHARES.items()}
    return {"n": len(ordered), "min": ordered[0], **shares, "max": ordered[-1]}


def timed(action: Callable[[], object]) -> float:
    """Wall seconds of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def interleaved(cases: Mapping[str, Callable[[T], float | None]], inputs: Iterable[T]) -> dict[str, list[float]]:
    """What each case gives for each input, case by case in turn, each round beginning with another one.

    Args:
        cases: give seconds measured by themselves, or None to have the whole call measured.
        inputs: one a round.
    """
    found: dict[str, list[float]] = {name: [] for name in cases}
    names = list(cases)
    for number, item in enumerate(inputs):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            start = time.perf_counter()
            own = cases[name](item)
            found[name].append(time.perf_counter() - start if own is None else own)
    return found


def compared(
    name: str,
    seconds: Sequence[float],
    *,
    against: str,
    baseline: Sequence[float],
    keys: Sequence[str] = ("p50", "p99"),
) -> Figure:
    """A figure in milliseconds with its ratios to a baseline."""
    values, base = summary(seconds, scale=1e3), summary(baseline, scale=1e3)
    return Figure(name, "ms", values, against, {key: values[key] / base[key] for key in keys})


def machine() -> dict[str, object]:
    """What the numbers depend on besides the code."""
    versions = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    return {
        "cores": os.cpu_count(),
        "cpu": _cpu_name(),
        "system": platform.system(),
        "python": platform.python_version(),
        **versions,
    }


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def commit() -> str:
    """Short hash of the checkout, with `+` when files differ from it; "" outside of one."""
    try:
        run = [
            subprocess.run(
                ["git", *words], cwd=REPOSITORY, capture_output=True, text=True, check=True, encoding="utf-8"
            )
            for words in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "recall"])
        ]
    except (OSError, subprocess.CalledProcessError):
        return ""
    return run[0].stdout.strip() + ("+" if run[1].stdout.strip() else "")


def record(bench: str, figures: Sequence[Figure], *, topics: int, quick: bool, results: Path = RESULTS) -> None:
    """Appends one run to results/<bench>.jsonl and prints its table, ratios first."""
    line = {
        "bench": bench,
        "topics": topics,
        "quick": quick,
        "seed": SEED,
        "commit": commit(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "figures": [asdict(figure) for figure in figures],
    }
    results.mkdir(parents=True, exist_ok=True)
    with (results / f"{bench}.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(f"\n{bench}, {topics:,} topics{', quick' if quick else ''}")
    for figure in figures:
        print(f"  {shown(figure.ratios, 'x'):>28} {figure.against or '':<24} {figure.name:<44} ", end="")
        print(shown(figure.values, figure.unit))
    sys.stdout.flush()


def shown(values: Mapping[str, float], unit: str) -> str:
    """The values in one line: `p50 1.2 · p99 3.4 ms`; a lone one without its name."""
    wanted = [key for key in values if key not in {"n", "min", "p95"}]
    parts = [number(values[key]) if key == "value" else f"{key} {number(values[key])}" for key in wanted]
    return f"{' · '.join(parts)} {unit}".strip() if parts else ""


def number(value: float) -> str:
    """Three digits that count, and thousands set apart."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def arguments(description: str | None) -> argparse.ArgumentParser:
    """What every benchmark can be told."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--work", type=Path, help="folder of notes and indexes, used again when it exists")
    return parser
