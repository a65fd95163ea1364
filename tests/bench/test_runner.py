import json
from pathlib import Path

import pytest

from bench.runner import Figure, compared, interleaved, number, quantile, record, shown, summary


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([5.0], 0.5, 5.0),
        ([1.0, 2.0], 0.5, 1.0),
        ([1.0, 2.0, 3.0], 0.5, 2.0),
        ([float(value) for value in range(1, 101)], 0.99, 99.0),
        ([float(value) for value in range(1, 101)], 0.999, 100.0),
        ([float(value) for value in range(1, 1001)], 0.999, 999.0),
        ([1.0, 2.0, 3.0], 0.0, 1.0),
        ([1.0, 2.0, 3.0], 1.0, 3.0),
    ],
)
def test_a_quantile_is_the_smallest_value_that_enough_values_do_not_exceed(
    values: list[float], share: float, expected: float
) -> None:
    assert quantile(values, share) == expected


def test_a_summary_orders_and_scales() -> None:
    found = summary([3.0, 1.0, 2.0], scale=1000)
    assert found == {"n": 3, "min": 1000, "p50": 2000, "p95": 3000, "p99": 3000, "p99.9": 3000, "max": 3000}


def test_cases_take_turns_and_each_round_begins_with_another() -> None:
    calls: list[str] = []

    def case(name: str) -> float:
        calls.append(name)
        return float(len(calls))

    found = interleaved({"a": lambda _: case("a"), "b": lambda _: case("b")}, range(3))
    assert "".join(calls) == "abbaab"
    assert found == {"a": [1.0, 4.0, 5.0], "b": [2.0, 3.0, 6.0]}


def test_a_case_that_does_not_measure_itself_is_measured() -> None:
    found = interleaved({"a": lambda _: None}, range(2))
    assert len(found["a"]) == 2
    assert all(value >= 0 for value in found["a"])


def test_a_ratio_is_the_statistic_over_that_of_the_baseline() -> None:
    figure = compared("a", [0.002, 0.004, 0.009], against="b", baseline=[0.001, 0.002, 0.003])
    assert figure.ratios == {"p50": 2.0, "p99": 3.0}
    assert figure.values["max"] == 9.0


@pytest.mark.parametrize(("value", "text"), [(1.2345, "1.23"), (99.96, "100"), (1234.5, "1,234"), (0.0123, "0.0123")])
def test_numbers_show_three_digits_that_count(value: float, text: str) -> None:
    assert number(value) == text


def test_a_lone_value_is_shown_without_a_name_and_nothing_as_nothing() -> None:
    assert shown({"value": 3.0}, "MB") == "3 MB"
    assert shown({"n": 5, "min": 1.0, "p50": 2.0, "p99": 3.0}, "ms") == "p50 2 · p99 3 ms"
    assert shown({}, "x") == ""


def test_a_run_is_appended_as_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure = Figure("words", "ms", {"p50": 1.0}, "FTS5", {"p50": 0.5})
    for _ in range(2):
        record("latency", [figure], topics=7, quick=True, results=tmp_path)
    lines = (tmp_path / "latency.jsonl").read_text(encoding="utf-8").splitlines()
    run = json.loads(lines[1])
    assert len(lines) == 2
    assert (run["topics"], run["quick"], run["figures"][0]["ratios"]) == (7, True, {"p50": 0.5})
    assert {"cores", "cpu", "python", "numpy", "faiss-cpu"} <= run["machine"].keys()
    assert "p50 0.5 x FTS5" in capsys.readouterr().out
