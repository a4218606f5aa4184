"""Figures as pictures: bars with their intervals, and curves with their bands."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evaluation.bootstrap import Interval
from ragstack_common.errors import needs_extra

with needs_extra("evaluation", "The evaluation"):
    import matplotlib as mpl

mpl.use("Agg")  # there may be no screen

from matplotlib.figure import Figure

STYLE: Final[Any] = {
    "svg.fonttype": "none",  # text stays text: searchable, and the same on every machine
    "svg.hashsalt": "ragstack",  # the same figures are the same file
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
}
BLUE: Final = "#2563ab"
GREY: Final = "#8a94a3"
ORANGE: Final = "#c2571a"
COLOURS: Final = (BLUE, ORANGE, "#2f8f5b", GREY)
METADATA: Final = {"Date": None, "Creator": "RAGStack"}


@dataclass(frozen=True)
class Curve:
    """One line of a picture.

    Attributes:
        name: For the legend.
        points: In the order of the values of the picture.
    """

    name: str
    points: Sequence[Interval]


def bars(path: Path, title: str, unit: str, rows: Sequence[tuple[str, Interval]]) -> None:
    """Draw a bar for each row, from the top down, with its mean and interval; the first is the baseline."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.5, 1.1 + 0.42 * len(rows)), layout="constrained")
        axes = figure.add_subplot()
        means = [interval.mean for _, interval in rows]
        errors = [[i.mean - i.low for _, i in rows], [i.high - i.mean for _, i in rows]]
        places = range(len(rows))
        colours = [GREY, *[BLUE] * (len(rows) - 1)]
        axes.barh(places, means, xerr=errors, color=colours, height=0.62, error_kw={"ecolor": "#333", "capsize": 3})
        axes.set_yticks(places, [name for name, _ in rows])
        axes.invert_yaxis()
        for place, (_, interval) in enumerate(rows):
            axes.annotate(
                f"{interval.mean:.3f}", (0, place), (5, 0), textcoords="offset points", va="center", color="w"
            )
        axes.set_xlim(0, max(interval.high for _, interval in rows) * 1.05 or 1)
        axes.set_xlabel(f"{unit}, mean and 95 % interval")
        axes.set_title(title)
        _save(figure, path)


def curves(
    path: Path, title: str, axis: str, unit: str, values: Sequence[float], lines: Sequence[Curve], default: float
) -> None:
    """Draw how a figure changes with a parameter, with bands, and where the default is."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 3.8), layout="constrained")
        axes = figure.add_subplot()
        places = range(len(values))
        for line, colour in zip(lines, COLOURS, strict=False):
            axes.plot(places, [point.mean for point in line.points], marker="o", color=colour, label=line.name)
            lows, highs = [point.low for point in line.points], [point.high for point in line.points]
            axes.fill_between(places, lows, highs, color=colour, alpha=0.15, linewidth=0)
        if default in values:
            axes.axvline(list(values).index(default), color=GREY, linestyle="--", linewidth=1, label="default")
        axes.axhline(0, color="#333", linewidth=0.8)
        axes.set_xticks(places, [f"{value:g}" for value in values])
        axes.set_xlabel(axis)
        axes.set_ylabel(f"{unit}, difference to the default")
        axes.set_title(title)
        axes.legend(frameon=False, fontsize=9)
        _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata=METADATA if path.suffix == ".svg" else None, dpi=150)
