import json
from pathlib import Path
from typing import Any

from bench.report import latest, render

MACHINE = {
    "cores": 2, "cpu": "some CPU", "system": "Linux", "python": "3.11", "numpy": "2", "faiss-cpu": "1",
    "onnxruntime": "1", "tokenizers": "0",
}  # fmt: skip


def run_of(bench: str, topics: int, p50: float) -> dict[str, Any]:
    figure = {"name": "words", "unit": "ms", "values": {"p50": p50}, "against": "FTS5", "ratios": {"p50": p50 / 2}}
    head = {"bench": bench, "topics": topics, "quick": False, "seed": 3, "commit": "abc", "time": "2026-01-02T03:04:05"}
    return {**head, "machine": MACHINE, "figures": [figure]}


def test_the_last_line_of_each_benchmark_and_size_counts(tmp_path: Path) -> None:
    runs = [run_of("latency", 1000, 1.0), run_of("latency", 10, 2.0), run_of("latency", 1000, 3.0)]
    file = tmp_path / "latency.jsonl"
    file.write_text("".join(json.dumps(run) + "\n" for run in runs), encoding="utf-8")
    assert latest([file]) == [runs[1], runs[2]]


def test_quick_runs_give_way_to_full_ones_of_the_same_benchmark(tmp_path: Path) -> None:
    runs = [run_of("latency", 10, 1.0) | {"quick": True}, run_of("latency", 1000, 2.0)]
    other = run_of("prefetch", 10, 3.0) | {"quick": True}
    file = tmp_path / "all.jsonl"
    file.write_text("".join(json.dumps(run) + "\n" for run in [*runs, other]), encoding="utf-8")
    assert latest([file]) == [runs[1], other]


def test_the_page_has_a_row_a_figure_with_the_ratio_first_and_says_where_it_ran() -> None:
    page = render([run_of("latency", 1000, 3.0)])
    assert "| p50 1.5 | FTS5 | words | 1,000 | p50 3 ms | 1 |\n" in page
    assert "1. latency, 1,000 topics: 2026-01-02, commit abc, seed 3, 2 cores of some CPU, Linux, Python 3.11" in page
