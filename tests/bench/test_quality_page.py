import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.quality.columns import COLUMNS
from bench.quality.page import average, averaged_sets, interval, latest, number, render, signed, verdict
from bench.report import main, pages

MARKED = "before\n<!-- quality:begin -->\nold\n<!-- quality:end -->\nafter\n"
MEANS = {"hit@1": 0.1, "recall@5": 0.2, "mrr": 0.3, "ndcg@10": 0.4, "no_answer_answered": None}


def run_of(name: str, *, no_answer: int = 0, **gains: float) -> dict[str, Any]:
    """A line of results in which the named columns have these nDCG@10."""
    share = {"no_answer_answered": 0.75 if no_answer else None}
    columns = {column: MEANS | share | {"ndcg@10": gains.get(column, 0.4)} for column in COLUMNS}
    whole = {"answerable": 1_234, "no_answer": no_answer, "columns": columns}
    gap = {"mean": -0.02, "low": -0.03, "high": -0.01}
    injected = dict.fromkeys(("first_refined", "first_fast", "first_nothing", "with_tool_result"), 0.25)
    return {
        "bench": "quality",
        "set": name,
        "commit": "abc",
        "time": "2026-01-02T03:04:05",
        "data": "d" * 64,
        "seed": 3,
        "resamples": 5_000,
        "encoder": "model-1",
        "peers": {"bm25s": "1.2"},
        "topics": 77,
        "unknown": 0,
        "floor": 0.25,
        "whole": whole,
        "parts": {"lang": {"zh": whole, "en": whole}, "kind": {"plain": whole}},
        "differences": {"bm25s": gap | {"high": 0.01}, "dense": gap, "better": "dense"},
        "injected": {"tokens_mean": 1_234.4, "tokens_max": 5_000, **injected},
    }


def write(folder: Path, runs: Sequence[dict[str, Any]], name: str = "quality") -> Path:
    file = folder / f"{name}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(run) + "\n" for run in runs), encoding="utf-8")
    return file


def rows(page: str, section: str) -> dict[str, list[str]]:
    """The cells of a section's table, by the first one."""
    text = page.partition(f"## {section}\n")[2].partition("\n## ")[0]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    return {row[0]: row[1:] for row in cells[2:]}


def test_the_last_line_of_each_set_counts_and_headline_sets_come_first(tmp_path: Path) -> None:
    runs = [run_of("cmrc2018_zh"), run_of("realmem"), run_of("a"), run_of("cmrc2018_zh", recall=0.9)]
    assert latest(write(tmp_path, runs)) == [runs[1], runs[2], runs[3]]
    assert latest(tmp_path / "none.jsonl") == []


def test_each_measure_has_a_table_with_all_columns_and_what_the_set_is_worth() -> None:
    page = render([run_of("realmem", recall=0.5), run_of("drcd_zhtw"), run_of("dureader_zh")])
    found = rows(page, "nDCG@10")
    assert found["realmem"] == ["headline", "1,234", ".400", ".400", ".400", ".400", ".400", ".400", ".500", ".400"]
    assert [found[name][0] for name in ("drcd_zhtw", "dureader_zh")] == ["tuned on", ""]
    assert rows(page, "Recall@5")["realmem"][2:] == [".200"] * len(COLUMNS)
    assert rows(page, "Hit@1")["realmem"][2:] == [".100"] * len(COLUMNS)
    assert rows(page, "MRR")["realmem"][2:] == [".300"] * len(COLUMNS)


def test_differences_stand_with_their_intervals_and_on_which_side_they_are() -> None:
    found = rows(render([run_of("realmem")]), "Recall against its rivals")["realmem"]
    assert found[1:] == [
        "1,234", "-.020 [-.030, +.010]", "", "-.020 [-.030, -.010]", "dense", "**below**",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("low", "high", "word"), [(-0.2, -0.1, "**below**"), (-0.1, 0.0, ""), (0.0, 0.1, ""), (0.1, 0.2, "above")]
)
def test_a_difference_that_touches_zero_is_on_neither_side(low: float, high: float, word: str) -> None:
    assert verdict({"mean": 0.0, "low": low, "high": high}) == word


def test_averages_leave_out_the_cross_lingual_sets_and_those_at_their_ceiling() -> None:
    out = ["xquad_en2zh", "xquad_zh2en", "xquad_en", "xquad_zh", "cmrc2018_zh", "drcd_zhtw"]
    runs = [run_of("realmem", recall=0.3), run_of("memorybank_zh", recall=0.5), run_of("dureader_zh", recall=1.0)]
    runs += [run_of(name, recall=0.9) for name in out]
    assert averaged_sets(runs) == ["realmem", "memorybank_zh", "dureader_zh"]
    assert average(runs, "ndcg@10", ["realmem", "memorybank_zh"])["recall"] == 0.4
    found = rows(render(runs), "Averages over sets")
    assert found["all 3, nDCG@10"][-3:] == [".600", ".400", "+.200"]
    assert found["headline, nDCG@10"][-3:] == [".300", ".400", "-.100"]
    assert found["not tuned on, nDCG@10"][-3:] == [".650", ".400", "+.250"]


def test_questions_without_an_answer_have_a_table_of_their_own() -> None:
    found = rows(render([run_of("realmem"), run_of("qwen_recall", no_answer=4)]), "Questions without an answer")
    assert found == {"qwen_recall": ["4", *[".750"] * len(COLUMNS)]}


def test_sets_of_several_languages_or_kinds_are_shown_apart() -> None:
    page = render([run_of("realmem")])
    assert page.count("| realmem | zh |") == page.count("| realmem | en |") == 2
    assert "| realmem | plain |" not in page


def test_the_page_says_what_was_delivered_and_what_each_run_depends_on() -> None:
    page = render([run_of("realmem")])
    assert rows(page, "What was delivered")["realmem"] == ["1,234", "5,000", ".250", ".250", ".250", ".250"]
    assert "- realmem: 2026-01-02, commit abc, data dddddddddddd, 77 topics, model-1, floor 0.25, seed 3, " in page
    assert "5,000 resamples, bm25s 1.2\n" in page
    assert "2 right answers that are no topic" in render([run_of("realmem") | {"unknown": 2}])


def test_numbers_have_three_digits_after_the_point_and_no_zero_before() -> None:
    assert [number(value) for value in (0.0004, 0.1236, 1.0, None)] == [".000", ".124", "1.000", ""]
    assert [signed(value) for value in (0.0312, -0.0312, 1.0, None)] == ["+.031", "-.031", "+1.000", ""]
    assert interval(None) == ""


# --- the report


@pytest.fixture
def results(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    write(tmp_path / "results", [run_of("realmem", recall=0.5), run_of("dureader_zh")])
    return tmp_path / "results"


def report(results: Path, *words: str) -> None:
    main(words, repository=results.parent, results=results)


def test_a_written_page_passes_the_check_and_a_drifted_one_fails_it(results: Path) -> None:
    with pytest.raises(SystemExit, match=r"docs/quality\.md: not what bench/results says"):
        report(results, "--check")
    report(results)
    report(results, "--check")
    page = results.parent / "docs" / "quality.md"
    page.write_text(page.read_text(encoding="utf-8").replace(".500", ".501"), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"^docs/quality\.md: not what"):
        report(results, "--check")


def test_a_new_line_of_results_makes_the_page_drift(results: Path) -> None:
    report(results)
    write(results, [run_of("realmem", recall=0.6), run_of("dureader_zh")])
    with pytest.raises(SystemExit, match=r"^docs/quality\.md: not what"):
        report(results, "--check")


def test_a_readme_with_marks_gets_a_short_table_between_them_in_its_language(results: Path) -> None:
    for name in ("README.md", "README.zh.md"):
        (results.parent / name).write_text(MARKED, encoding="utf-8")
    report(results)
    english, chinese = ((results.parent / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md"))
    assert english == (
        "before\n<!-- quality:begin -->\n"
        "| nDCG@10 | bm25s | dense | recall | more than bm25s |\n| --- | --- | --- | --- | --- |\n"
        "| realmem | .400 | .400 | .500 | +.100 |\n| mean of 2 sets | .400 | .400 | .450 | +.050 |\n"
        "<!-- quality:end -->\nafter\n"
    )
    assert "| 2 个测试集的平均 | .400 |" in chinese
    report(results, "--check")
    (results.parent / "README.zh.md").write_text(MARKED, encoding="utf-8")
    with pytest.raises(SystemExit, match=r"^README\.zh\.md: not what"):
        report(results, "--check")


def test_a_readme_without_marks_is_left_alone(results: Path) -> None:
    readme = results.parent / "README.md"
    readme.write_text("no marks <!-- quality:end -->\n", encoding="utf-8")
    report(results)
    assert readme.read_text(encoding="utf-8") == "no marks <!-- quality:end -->\n"


def test_lines_of_quality_are_none_of_the_timed_benchmarks(results: Path) -> None:
    machine = dict.fromkeys(
        ("numpy", "faiss-cpu", "onnxruntime", "tokenizers", "cores", "cpu", "system", "python"), "1"
    )
    figure = {"name": "words", "unit": "ms", "values": {"p50": 3.0}, "against": "", "ratios": {}}
    timed = {"bench": "latency", "topics": 10, "quick": False, "seed": 3, "commit": "", "time": "2026-01-02"}
    write(results, [timed | {"machine": machine, "figures": [figure]}], "latency")
    page = pages(results.parent, results)["docs/benchmarks.md"]
    assert "| words | 10 | p50 3 ms |" in page
    assert "realmem" not in page
