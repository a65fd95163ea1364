"""Pictures: what they show of the results, that they say where it comes from, and that one can read them."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the extra `notebook` is not installed")

from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from bench import charts
from bench.quality.columns import COLUMNS

ALL: Final[Sequence[Callable[..., Figure]]] = (
    charts.quality_by_set, charts.differences_by_set, charts.parts_and_peers, charts.silence_curve,
    charts.silence_by_kind, charts.latency_by_size,
)  # fmt: skip
MACHINE: Final = {"cores": 2, "cpu": "some CPU"}


def quality_of(name: str, *, languages: Sequence[str] = ("en",), gap: float = 0.1, **gains: float) -> dict[str, Any]:
    """A line of results: the named columns have these nDCG@10, all others .4; the interval is .05 to both sides."""
    part = {"answerable": 1_234, "columns": {column: {"ndcg@10": gains.get(column, 0.4)} for column in COLUMNS}}
    interval = {"mean": gap, "low": gap - 0.05, "high": gap + 0.05}
    return {
        "set": name,
        "commit": "abc",
        "floor": 0.2,
        "whole": part,
        "parts": {"lang": dict.fromkeys(languages, part)},
        "differences": {"bm25s": interval, "dense": {"mean": 0.0, "low": -0.05, "high": 0.05}, "better": "dense"},
    }


def silence_of(time: str, *, commit: str = "abc", quick: bool = False) -> dict[str, Any]:
    figures = [
        ("answered though nothing fits", "%", {"all": 12.0, "small talk": 7.0}),
        ("the same by floor", "%", {"0.1": 30.0, "0.2": 12.0, "0.3": 4.0}),
        ("recall@5 that the floor costs", "points", {"all": 2.0, "mean of sets": 3.0, "realmem": 4.0}),
        ("the same by floor", "points", {"0.1": 0.5, "0.2": 2.0, "0.3": 6.0}),
        ("100 turns of a mixed session", "", {"injections": 37.0, "tokens": 1234.0}),
    ]
    head = {"bench": "silence", "topics": 4_321, "quick": quick, "commit": commit, "time": time}
    return head | {"figures": [dict(zip(("name", "unit", "values"), figure, strict=True)) for figure in figures]}


def latency_of(topics: int, p50: float, *, quick: bool = False) -> dict[str, Any]:
    pairs = [
        ("words, warm", "FTS5"),
        ("words and meaning, warm", "numpy scan"),
        ("words and meaning, warm", "encoding alone"),
        ("full answer, cold process", "loading the model"),
    ]
    values = {"p50": p50, "p99": 3 * p50}
    figures = [{"name": name, "against": rival, "values": values, "ratios": {"p50": p50 / 4}} for name, rival in pairs]
    head = {"bench": "latency", "topics": topics, "quick": quick, "commit": "abc", "machine": MACHINE}
    return head | {"figures": figures}


def write(folder: Path, bench: str, *runs: dict[str, Any]) -> Path:
    (folder / f"{bench}.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs), encoding="utf-8")
    return folder


def names(axis: Axes) -> list[str]:
    return [label.get_text() for label in axis.get_yticklabels()]


def legend(axis: Axes) -> dict[str, Any]:
    """What is drawn, by its label."""
    handles, labels = axis.get_legend_handles_labels()
    return dict(zip(labels, handles, strict=True))


def said(figure: Figure) -> str:
    return " ".join(text.get_text() for text in figure.findobj(Text))


# --- what they show


@pytest.mark.parametrize("draw", ALL)
def test_where_nothing_was_measured_a_sentence_says_how_to(draw: Callable[..., Figure], tmp_path: Path) -> None:
    figure = draw(tmp_path)
    bench = {"silence": "silence", "latency": "latency"}.get(draw.__name__.partition("_")[0], "quality")
    assert figure.axes == []
    assert said(figure).strip() == f"Not measured yet; run: python -m bench.{bench}"


def test_each_language_has_a_panel_and_those_across_the_last_one(tmp_path: Path) -> None:
    runs = [
        quality_of("xquad_en2zh", recall=0.7),
        quality_of("drcd_zhtw", languages=["zh"]),
        quality_of("realmem", languages=["en", "zh"], recall=0.9, bm25s=0.2),
    ]
    figure = charts.quality_by_set(write(tmp_path, "quality", *runs))
    assert {axis.get_title(loc="left"): names(axis) for axis in figure.axes} == {
        "Questions in Chinese": ["realmem (1,234)", "drcd_zhtw (1,234)"],
        "Questions in English": ["realmem (1,234)"],
        "Across languages: questions in one, notes in the other": ["xquad_en2zh (1,234)"],
    }
    assert figure.axes[-1].get_title(loc="left").startswith("Across")
    drawn = legend(figure.axes[0])
    assert [x for x, _ in drawn["recall (both, with its floor)"].get_offsets()] == [0.9, 0.4]
    assert [x for x, _ in drawn["bm25s (words)"].get_offsets()] == [0.2, 0.4]
    assert "Commit abc; floor 0.2" in said(figure)


def test_the_type_of_a_name_says_what_the_set_is_worth(tmp_path: Path) -> None:
    runs = [quality_of("realmem"), quality_of("locomo_sessions"), quality_of("dureader_zh")]
    figure = charts.quality_by_set(write(tmp_path, "quality", *runs))
    labels = {label.get_text().split()[0]: label for label in figure.axes[0].get_yticklabels()}
    assert {name: label.get_fontweight() for name, label in labels.items()} == {
        "realmem": "bold", "dureader_zh": "normal", "locomo_sessions": "normal",
    }  # fmt: skip
    assert labels["locomo_sessions"].get_color() != labels["dureader_zh"].get_color() == "black"


def test_what_is_said_below_stays_within_the_picture_however_many_states_were_measured(tmp_path: Path) -> None:
    runs = [quality_of(f"set_{number}") | {"commit": f"{number:08}"} for number in range(17)]
    figure = charts.quality_by_set(write(tmp_path, "quality", *runs))
    figure.draw_without_rendering()
    last = figure.findobj(lambda one: isinstance(one, Text) and "Commit" in one.get_text())[0]
    assert "00000000, 00000001" in " ".join(last.get_text().split())
    assert figure.bbox.x0 <= last.get_window_extent().x0 < last.get_window_extent().x1 <= figure.bbox.x1


def test_parts_without_a_right_answer_are_left_out(tmp_path: Path) -> None:
    run = quality_of("realmem", languages=["en"])
    run["parts"]["lang"]["zh"] = run["whole"] | {"answerable": 0}
    figure = charts.quality_by_set(write(tmp_path, "quality", run))
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["Questions in English"]


def test_a_difference_has_its_interval_and_the_mark_of_its_side(tmp_path: Path) -> None:
    runs = [quality_of("realmem"), quality_of("vehiclemem", gap=-0.2), quality_of("qwen_recall", gap=0.04)]
    minus_words, minus_better = charts.differences_by_set(write(tmp_path, "quality", *runs)).axes
    sides = {label: drawn.lines[0].get_xydata().tolist() for label, drawn in legend(minus_words).items()}
    assert sides == {
        "recall is better (whole interval above 0)": [[0.1, 0.0]],
        "worse (whole interval below 0)": [[-0.2, 1.0]],
        "neither": [[0.04, 2.0]],
    }
    bar = legend(minus_words)["neither"].lines[2][0].get_segments()[0]
    assert bar[:, 0].tolist() == pytest.approx([-0.01, 0.09])
    assert [x for x, _ in legend(minus_better)["neither"].lines[0].get_xydata()] == [0.0, 0.0, 0.0]


def test_a_difference_too_large_to_be_drawn_beside_others_is_written(tmp_path: Path) -> None:
    runs = [quality_of("realmem"), quality_of("xquad_en2zh", gap=0.6)]
    axis = charts.differences_by_set(write(tmp_path, "quality", *runs)).axes[0]
    assert [(text.get_text().strip(), text.get_position()[1]) for text in axis.texts] == [("+.600 [+.550, +.650]", 1)]
    assert axis.get_xlim()[1] < 0.3


def test_a_set_too_small_for_an_interval_has_an_empty_row(tmp_path: Path) -> None:
    run = quality_of("realmem") | {"differences": {"better": "dense"}}
    figure = charts.differences_by_set(write(tmp_path, "quality", run))
    assert names(figure.axes[0]) == ["realmem (1,234)"]
    assert sum(len(drawn.lines[0].get_xdata()) for drawn in legend(figure.axes[0]).values()) == 0


def test_parts_and_peers_are_means_over_the_sets_that_say_something(tmp_path: Path) -> None:
    runs = [
        quality_of("realmem", recall=0.5),
        quality_of("locomo_sessions", recall=0.9),
        quality_of("xquad_zh", recall=0),
    ]
    figure = charts.parts_and_peers(write(tmp_path, "quality", *runs))
    bars = {axis.get_title(): [bar.get_width() for bar in axis.containers[0]] for axis in figure.axes}
    assert bars["all: 2 sets"][COLUMNS.index("recall")] == pytest.approx(0.7)
    assert bars["headline: 1 sets"] == bars["not tuned on: 1 sets"]
    assert bars["headline: 1 sets"][COLUMNS.index("recall")] == 0.5
    assert [name for name in names(figure.axes[0]) if "peer" in name] == ["bm25s (peer)", "fts5 (peer)"]
    colours = {bar.get_facecolor() for bar in figure.axes[0].containers[0]}
    assert len(colours) == 2


def test_the_curve_of_silence_goes_through_its_floors_and_marks_the_shipped_one(tmp_path: Path) -> None:
    figure = charts.silence_curve(write(tmp_path, "silence", silence_of("2026-01-02")))
    (axis,) = figure.axes
    drawn = legend(axis)
    assert drawn["floor"].get_xydata().tolist() == [[30.0, 0.5], [12.0, 2.0], [4.0, 6.0]]
    assert drawn["shipped floor"].get_xydata().tolist() == [[12.0, 2.0]]
    assert [text.get_text() for text in axis.texts] == ["0.1", "0.2", "0.3"]
    assert axis.get_xlim()[0] == axis.get_ylim()[0] == 0
    assert "4,321 questions" in said(figure)


def test_the_latest_run_of_silence_counts_and_a_quick_one_only_alone(tmp_path: Path) -> None:
    new, old = silence_of("2026-02-02", commit="new"), silence_of("2026-01-01", commit="old") | {"topics": 9_999}
    quick = silence_of("2026-03-03", commit="quick", quick=True) | {"topics": 5}
    figure = charts.silence_curve(write(tmp_path, "silence", old, new, quick))
    assert said(figure).endswith("Commit new")
    assert said(charts.silence_curve(write(tmp_path, "silence", quick))).endswith("Commit quick")


def test_silence_by_kind_has_a_bar_a_kind_and_a_bar_a_set(tmp_path: Path) -> None:
    figure = charts.silence_by_kind(write(tmp_path, "silence", silence_of("2026-01-02")))
    kinds, sets = figure.axes
    assert names(kinds) == ["all", "small talk"]
    assert [bar.get_width() for bar in kinds.containers[0]] == [12.0, 7.0]
    assert names(sets) == ["all", "mean of sets", "realmem"]
    assert [bar.get_width() for bar in sets.containers[0]] == [2.0, 3.0, 4.0]
    assert "100 turns of a mixed session: injections 37 · tokens 1,234" in said(figure)


def test_latency_goes_over_the_sizes_beside_ratios_to_each_baseline(tmp_path: Path) -> None:
    runs = [latency_of(1_000, 2.0), latency_of(100_000, 8.0), latency_of(10_000, 99.0, quick=True)]
    figure = charts.latency_by_size(write(tmp_path, "latency", *runs))
    times, ratios = figure.axes
    warm = legend(times)["words and meaning, warm"]
    assert warm.lines[0].get_ydata().tolist() == [2.0, 8.0]
    assert [segment[:, 1].tolist() for segment in warm.lines[2][0].get_segments()] == [[2.0, 6.0], [8.0, 24.0]]
    assert [label.get_text() for label in ratios.get_xticklabels()] == ["1,000", "100,000"]
    lines = legend(ratios)
    assert {label.partition(" / ")[2] for label in lines} == {
        "FTS5", "numpy scan", "encoding alone", "loading the model",
    }  # fmt: skip
    assert all(line.get_xydata().tolist() == [[1_000, 0.5], [100_000, 2.0]] for line in lines.values())
    assert "2 cores of some CPU" in said(figure)


# --- that one can read them, with the results that are in the repository


def visible_texts(figure: Figure) -> Iterator[Text]:
    ticks = {id(text) for axis in figure.axes for one in (axis.xaxis, axis.yaxis) for text in one.findobj(Text)}
    yield from (text for text in figure.findobj(Text) if id(text) not in ticks and text.get_text())
    for axis in figure.axes:
        for one in (axis.xaxis, axis.yaxis):
            low, high = sorted(one.get_view_interval())
            yield one.label
            if one.get_tick_params()["labelleft" if one is axis.yaxis else "labelbottom"]:
                yield from (tick.label1 for tick in one.get_major_ticks() if low <= tick.get_loc() <= high)


@pytest.mark.parametrize("draw", ALL)
def test_no_text_lies_on_another_nor_outside(draw: Callable[..., Figure]) -> None:
    figure = draw()
    figure.draw_without_rendering()
    boxes = [(text.get_text(), text.get_window_extent()) for text in visible_texts(figure) if text.get_text()]
    assert len(boxes) > 10
    overlaps = [(one, other) for (one, box), (other, its) in combinations(boxes, 2) if box.padded(-1).overlaps(its)]
    assert overlaps == []
    whole = figure.bbox.padded(1)
    assert [text for text, box in boxes if not (whole.contains(*box.min) and whole.contains(*box.max))] == []


@pytest.mark.parametrize("draw", ALL)
def test_every_axis_says_what_it_counts_or_names_its_rows(draw: Callable[..., Figure]) -> None:
    for axis in draw().axes:
        assert axis.get_xlabel() or not axis.xaxis.get_tick_params()["labelbottom"]
        named = any(name[:1].isalpha() for name in names(axis))
        assert axis.get_ylabel() or named or not axis.yaxis.get_tick_params()["labelleft"]


def shape(drawn: Any) -> object:
    """All of a series' look but its colour."""
    if isinstance(drawn, Patch):
        return "area"
    if isinstance(drawn, Collection):
        return np.shape(drawn.get_paths()[0].vertices)
    line = drawn if isinstance(drawn, Line2D) else drawn.lines[0]
    return line.get_marker(), line.get_linestyle()


@pytest.mark.parametrize("draw", ALL)
def test_series_differ_by_more_than_colour(draw: Callable[..., Figure]) -> None:
    for axis in draw().axes:
        shapes = [shape(drawn) for drawn in legend(axis).values()]
        assert len(set(shapes)) == len(shapes)
