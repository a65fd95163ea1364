"""Pictures of what bench/results holds, for notebooks/benchmark.ipynb; needs the extra `notebook`.

Each function takes the runs that count (bench.report, bench.quality.page) and draws them; where nothing has been
measured yet, the picture is a sentence that says how to measure it. Nothing depends on colour alone, nor on a font with
Chinese characters.
"""

import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, StrMethodFormatter

from bench.quality import page
from bench.quality.columns import COLUMNS, WAYS
from bench.quality.figures import OURS, Record
from bench.quality.sets import CROSS_LINGUAL, role
from bench.report import latest
from bench.runner import RESULTS, shown

_GREY: Final = "#6b6b6b"
_WIDTH: Final = 9.0  # inches
_ROW: Final = 0.27  # inches
_DPI: Final = 110
_LETTERS: Final = 120  # of the small type, in a line
_FARTHEST: Final = 0.3  # differences beyond it are written, so that the others can be seen
_MOST_ANSWERED: Final = 15.0  # per cent
_MOST_LOST: Final = 3.0  # points
_ANSWERED: Final = ("answered though nothing fits", "%")
_LOST: Final = ("recall@5 that the floor costs", "points")


@dataclass(frozen=True, slots=True)
class Look:
    """How one series is told from the others.

    Attributes:
        colour: of the Okabe-Ito palette, which the colour-blind can tell apart.
        marker: of matplotlib.
        label: in the legend.
    """

    colour: str
    marker: str
    label: str


_RANKINGS: Final[Mapping[str, Look]] = {
    "bm25s": Look("#0072B2", "s", "bm25s (words)"),
    "dense": Look("#009E73", "^", "dense (meaning)"),
    OURS: Look("#D55E00", "o", "recall (both, with its floor)"),
}
_VERDICTS: Final[Mapping[str, Look]] = {
    "above": Look("#0072B2", "^", "recall is better (whole interval above 0)"),
    "": Look(_GREY, "o", "neither"),
    "**below**": Look("#D55E00", "v", "worse (whole interval below 0)"),
}
_TIMES: Final[Mapping[str, Look]] = {
    "words, warm": Look("#0072B2", "s", "words, warm"),
    "words and meaning, warm": Look("#D55E00", "o", "words and meaning, warm"),
    "full answer, cold process": Look("#009E73", "^", "words and meaning, new process"),
}
_DASHES: Final = ("-", "--")
_APART: Final = 0.22  # between marks of one row, so that none hides another
_LANGUAGES: Final = {"en": "English", "zh": "Chinese", "ko": "Korean"}
_TYPE: Final = "Bold: headline sets; grey: sets that were tuned on; in brackets: questions"
_ACROSS: Final = "Across languages: questions in one, notes in the other"


# --- quality


def quality_by_set(results: Path = RESULTS) -> Figure:
    """nDCG@10 of recall and its rivals: a row a set, a panel a language of the questions, one for those across."""
    runs = page.latest(results / page.FILE)
    panels = _by_language(runs)
    if not panels:
        return _unmeasured("quality")
    sizes = [len(rows) for rows in panels.values()]
    figure = _canvas(sum(sizes) + 2.5 * len(sizes))
    ratios = [size + 0.5 for size in sizes]
    axes = figure.subplots(len(sizes), 1, sharex=True, squeeze=False, height_ratios=ratios)[:, 0]
    for axis, (title, rows) in zip(axes, panels.items(), strict=True):
        for shift, (name, look) in enumerate(_RANKINGS.items(), -1):
            values = [part["columns"][name]["ndcg@10"] for _, part in rows]
            places = [row + shift * _APART for row in range(len(rows))]
            axis.scatter(values, places, 30, color=look.colour, marker=look.marker, label=look.label)
        _rows(axis, {name: part["answerable"] for name, part in rows})
        axis.set_title(title, fontsize=10, loc="left")
        axis.set_xlim(0, 1.03)
    axes[-1].set_xlabel("nDCG@10 (0 to 1, more is better)")
    _legend(figure, axes[0])
    return _signed(figure, f"{_TYPE}. {_states(runs)}")


def _by_language(runs: Sequence[Record]) -> dict[str, list[tuple[str, Record]]]:
    """Names and figures of the parts of all sets by the title of their panel, the largest first, those across last."""
    panels: defaultdict[str, list[tuple[str, Record]]] = defaultdict(list)
    for run in runs:
        for language, part in run["parts"]["lang"].items():
            title = _ACROSS if run["set"] in CROSS_LINGUAL else f"Questions in {_LANGUAGES.get(language, language)}"
            if part["answerable"]:
                panels[title].append((run["set"], part))
    return dict(sorted(panels.items(), key=lambda panel: (panel[0] == _ACROSS, -len(panel[1]))))


def differences_by_set(results: Path = RESULTS) -> Figure:
    """nDCG@10 of recall minus that of its rivals, with the 95 % interval of the paired bootstrap."""
    runs = [run for run in page.latest(results / page.FILE) if run["whole"]["answerable"]]
    if not runs:
        return _unmeasured("quality")
    figure = _canvas(len(runs) + 5)
    axes = figure.subplots(1, 2, sharey=True)
    gaps = [run["differences"] for run in runs]
    _forest(axes[0], [gap.get("bm25s") for gap in gaps], "recall minus bm25s")
    _forest(axes[1], [gap.get(gap["better"]) for gap in gaps], "recall minus the better of bm25s and dense")
    _rows(axes[0], {run["set"]: run["whole"]["answerable"] for run in runs})
    _legend(figure, axes[0])
    return _signed(figure, f"Bars: 95 % intervals. {_TYPE}. {_states(runs)}")


def _forest(axis: Axes, gaps: Sequence[Record | None], title: str) -> None:
    """A row a difference with its interval; one that is too large to be drawn beside the others is written."""
    axis.axvline(0, color="black", linewidth=0.8)
    bounds = [0.05]
    for name, look in _VERDICTS.items():
        rows = [(at, gap) for at, gap in enumerate(gaps) if gap and page.verdict(gap) == name]
        near = {at: gap for at, gap in rows if abs(gap["mean"]) <= _FARTHEST}
        means = [gap["mean"] for gap in near.values()]
        reach = [[abs(gap["mean"] - gap[side]) for gap in near.values()] for side in ("low", "high")]
        axis.errorbar(means, list(near), xerr=reach, fmt=look.marker, color=look.colour, label=look.label, capsize=3)
        bounds += [abs(gap[side]) for gap in near.values() for side in ("low", "high")]
        for at, gap in rows:
            if at not in near:
                axis.text(0.0, at, f" {page.interval(gap)}", color=look.colour, fontsize=9, va="center")
    axis.set_xlim(-1.1 * max(bounds), 1.1 * max(bounds))
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("difference of nDCG@10")
    axis.grid(axis="x", alpha=0.3)


def parts_and_peers(results: Path = RESULTS) -> Figure:
    """Mean nDCG@10 over sets of every way to answer: the parts of recall one by one, and its peers."""
    runs = page.latest(results / page.FILE)
    chosen = page.averaged_sets(runs)
    groups = {
        "all": chosen,
        "headline": [name for name in chosen if role(name) == "headline"],
        "not tuned on": [name for name in chosen if role(name) != "tuned on"],
    }
    bars = {f"{name}: {len(sets)} sets": page.average(runs, "ndcg@10", sets) for name, sets in groups.items() if sets}
    if not all(bars.values()) or not bars:
        return _unmeasured("quality")
    figure = _canvas(len(COLUMNS) + 3)
    axes = figure.subplots(1, len(bars), sharey=True, sharex=True, squeeze=False)[0]
    for axis, (title, means) in zip(axes, bars.items(), strict=True):
        colours = ["#E69F00" if name in WAYS else "#56B4E9" for name in COLUMNS]
        drawn = axis.barh(range(len(COLUMNS)), [means[name] for name in COLUMNS], color=colours)
        axis.bar_label(drawn, labels=[page.number(means[name]) for name in COLUMNS], padding=3, fontsize=9)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("mean nDCG@10 (0 to 1)")
        axis.set_xlim(0, 1)
        axis.set_xticks([0, 0.25, 0.5, 0.75], ["0", ".25", ".5", ".75"])
    axes[0].set_yticks(range(len(COLUMNS)), [name if name in WAYS else f"{name} (peer)" for name in COLUMNS])
    axes[0].invert_yaxis()
    return _signed(figure, f"Each set counts alike. {_states(runs)}")


def _rows(axis: Axes, counts: Mapping[str, int]) -> None:
    """A row a set with the number of its questions."""
    axis.set_yticks(range(len(counts)), [f"{name} ({count:,})" for name, count in counts.items()], fontsize=9)
    _weigh(axis, counts)
    axis.grid(alpha=0.3)


def _weigh(axis: Axes, names: Iterable[str]) -> None:
    """Sets the names of the rows in the type that says what each is worth, the first at the top."""
    for name, label in zip(names, axis.get_yticklabels(), strict=True):
        label.set_fontweight("bold" if role(name) == "headline" else "normal")
        label.set_color(_GREY if role(name) == "tuned on" else "black")
    axis.set_ylim(len(axis.get_yticks()) - 0.4, -0.6)


def _states(runs: Sequence[Record]) -> str:
    """Which states of the code were measured: more than one, where only some sets have been asked again."""
    commits, floors = ({str(run[key]): None for run in runs} for key in ("commit", "floor"))
    return f"Commit {', '.join(commits)}; floor {', '.join(floors)}"


# --- silence


def silence_curve(results: Path = RESULTS) -> Figure:
    """What each floor holds back of what is wrong, and what it costs; the shipped one is marked."""
    run = _last_silence(results)
    if run is None:
        return _unmeasured("silence")
    found = _values(run)
    answered, lost = found["the same by floor", "%"], found["the same by floor", "points"]
    figure = _canvas(15)
    axis = figure.subplots()
    aim = f"aimed at: at most {_MOST_ANSWERED:g} % and {_MOST_LOST:g} points"
    axis.fill_between([0, _MOST_ANSWERED], 0, _MOST_LOST, color="#009E73", alpha=0.12, label=aim)
    axis.plot([answered[floor] for floor in lost], list(lost.values()), "o-", color="#0072B2", label="floor")
    for floor, cost in lost.items():
        axis.annotate(floor, (answered[floor], cost), xytext=(7, 5), textcoords="offset points", fontsize=9)
    shipped = (found[_ANSWERED]["all"], found[_LOST]["all"])
    axis.plot(*shipped, "*", color="#D55E00", markersize=18, label="shipped floor", zorder=3)
    axis.set_xlabel("answered though nothing fits (% of the questions without an answer; less is better)")
    axis.set_ylabel("lost recall@5 (points; less is better)")
    axis.set_xlim(0, 1.1 * max(_MOST_ANSWERED, *answered.values()))
    axis.set_ylim(0, 1.1 * max(_MOST_LOST, *lost.values()))
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
    return _signed(figure, f"{run['topics']:,} questions without an answer. Commit {run['commit']}")


def silence_by_kind(results: Path = RESULTS) -> Figure:
    """At the shipped floor: what is answered though nothing fits, by kind; what the floor costs, by set."""
    run = _last_silence(results)
    if run is None:
        return _unmeasured("silence")
    found = _values(run)
    answered, lost = found[_ANSWERED], found[_LOST]
    figure = _canvas(len(answered) + len(lost) + 6)
    axes = figure.subplots(2, 1, height_ratios=[len(answered), len(lost)])
    _bars(axes[0], answered, "answered though nothing fits (% of the questions; less is better)")
    _bars(axes[1], lost, "recall@5 lost to the floor (points; less is better)")
    session = (f"{name}: {shown(values, '')}" for (name, _), values in found.items() if "session" in name)
    return _signed(figure, ". ".join([*session, f"Commit {run['commit']}"]))


def _last_silence(results: Path) -> Record | None:
    return max(_runs(results, "silence"), key=itemgetter("time"), default=None)


def _values(run: Record) -> dict[tuple[str, str], Mapping[str, float]]:
    """By what was measured and its unit, which tells the two curves apart."""
    return {(figure["name"], figure["unit"]): figure["values"] for figure in run["figures"]}


def _bars(axis: Axes, values: Mapping[str, float], label: str) -> None:
    drawn = axis.barh(range(len(values)), list(values.values()), color="#56B4E9")
    axis.bar_label(drawn, labels=[f"{value:.1f}" for value in values.values()], padding=3, fontsize=9)
    axis.set_yticks(range(len(values)), list(values), fontsize=9)
    axis.set_xlim(0, 1.1 * max(1.0, *values.values()))
    axis.set_xlabel(label)
    _weigh(axis, values)


# --- latency


def latency_by_size(results: Path = RESULTS) -> Figure:
    """How long an answer takes by the number of notes, and how that compares with baselines of the same runs."""
    runs = _runs(results, "latency")
    if not runs:
        return _unmeasured("latency")
    figure = _canvas(18)
    times, ratios = figure.subplots(1, 2)
    for shift, (name, look) in enumerate(_TIMES.items(), -1):
        compared = list(_compared(runs, name))
        points = {topics * 1.08**shift: values for topics, values, *_ in compared}  # so that no bar hides another
        middle = [values["p50"] for values in points.values()]
        above = [values["p99"] - values["p50"] for values in points.values()]
        reach = [[0.0] * len(above), above]
        form = f"{look.marker}-"
        times.errorbar(list(points), middle, yerr=reach, fmt=form, color=look.colour, label=look.label, capsize=3)
        rivals = dict.fromkeys(against for *_, against, _ in compared)
        for rival, dashes in zip(rivals, _DASHES, strict=False):
            line = {topics: ratio for topics, _, against, ratio in compared if against == rival}
            form, label = f"{look.marker}{dashes}", f"{look.label} / {rival}"
            ratios.plot(list(line), list(line.values()), form, color=look.colour, label=label)
    times.axhline(100, color=_GREY, linestyle=":", label="budget of a turn, 100 ms")
    times.set_ylabel("time of an answer (ms): median, bar to p99")
    ratios.axhline(1, color="black", linewidth=0.8)
    ratios.set_ylabel("median / median of the baseline")
    for axis in (times, ratios):
        _logarithmic(axis, [run["topics"] for run in runs])
    machines = {f"{run['machine']['cores']} cores of {run['machine']['cpu']}": None for run in runs}
    commits = {run["commit"]: None for run in runs}
    return _signed(figure, f"Below 1: faster than the baseline. {', '.join(machines)}. Commit {', '.join(commits)}")


def _compared(runs: Sequence[Record], name: str) -> Iterator[tuple[int, Mapping[str, float], str, float]]:
    """Notes, times in milliseconds, baseline and ratio of the medians, of each run that measured this."""
    for run in runs:
        for one in run["figures"]:
            if one["name"] == name:
                yield run["topics"], one["values"], one["against"], one["ratios"]["p50"]


def _logarithmic(axis: Axes, sizes: Sequence[int]) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axis.set_xlabel("notes")
    axis.grid(alpha=0.3)
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, fontsize=9)


# --- canvas


def _runs(results: Path, bench: str) -> list[Record]:
    return latest(sorted(results.glob(f"{bench}.jsonl")))


def _canvas(rows: float) -> Figure:
    return Figure(figsize=(_WIDTH, rows * _ROW), dpi=_DPI, layout="constrained")


def _legend(figure: Figure, axis: Axes) -> None:
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False, fontsize=9)


def _signed(figure: Figure, said: str) -> Figure:
    """The picture with what it says below it."""
    figure.supxlabel(textwrap.fill(said, _LETTERS), fontsize=8, color=_GREY)
    return figure


def _unmeasured(bench: str) -> Figure:
    """The sentence that stands where a picture would."""
    figure = _canvas(2)
    figure.text(0.02, 0.5, f"Not measured yet; run: python -m bench.{bench}", va="center")
    return figure
