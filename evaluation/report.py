"""Results as a table on the terminal, as files for other programs, and as pictures."""

import json
import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from evaluation.dataset import DataSet
from evaluation.measuring import Measured
from evaluation.metrics import CONFIDENCE, PRIMARY, SAMPLES, TITLES, Interval
from evaluation.searching import inferred_for
from ragstack_common import DISTRIBUTION
from ragstack_common.core.errors import needs_extra
from ragstack_common.embedding.protocol import cores
from ragstack_local.show import display

with needs_extra("evaluation", "The evaluation"):
    import matplotlib as mpl

mpl.use("Agg")  # works without a screen

from matplotlib.figure import Figure

PACKAGES: Final = (DISTRIBUTION, "apsw", "numpy", "onnxruntime", "ir-measures", "bm25s")
CONFIDENCE_HEADING: Final = "95 %"
NO_PACKAGE: Final = "not installed"

_NO_NAME: Final = re.compile(r"[^A-Za-z0-9.]+")

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
GREEN: Final = "#2f8f5b"
COLOURS: Final = (BLUE, ORANGE, GREEN, GREY)
SET_COLOURS: Final = (*COLOURS, "#7b4fa3", "#b8952b", "#2aa3a3")
METADATA: Final = {"Date": None, "Creator": "RAGStack"}


def print_table(data: DataSet, measured: Sequence[Measured]) -> None:
    """Show the table on the terminal."""
    names = headings(measured[0])
    # The mean's own interval is in the files: a terminal may have 80 columns.
    columns = [place for place, name in enumerate(names) if place != names.index(CONFIDENCE_HEADING)]
    title = f"{data.name}, {data.split}: {len(data.queries)} queries, {len(data.documents)} documents"
    shown = [[row[place] for place in columns] for row in rows(measured)]
    display.print_table(title, [names[place] for place in columns], shown)
    if any(one.setup.infer != "no" for one in measured):
        named = f"{inferred_for(data)} of {len(data.queries)}"
        display.console.print(f"Queries that name values of the collection:  {named}")


def markdown(data: DataSet, measured: Sequence[Measured]) -> str:
    """Return the table for a document."""
    lines = [f"{data.name}, {data.split}: {len(data.queries)} queries, {len(data.documents)} documents.", ""]
    names = headings(measured[0])
    lines += [f"| {' | '.join(names)} |", f"|---|{'---:|' * (len(names) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows(measured))]) + "\n"


def headings(of: Measured) -> list[str]:
    """Return the column titles of the table."""
    first, *others = (TITLES.get(name, name) for name in of.values)
    return ["setup", first, CONFIDENCE_HEADING, *others, "Δ", CONFIDENCE_HEADING, "p50 ms", "p95 ms"]


def rows(measured: Sequence[Measured]) -> list[list[str]]:
    """Return one row for each setup; the differences are to the first. A star is a difference beyond chance."""
    baseline = measured[0]
    found = []
    for one in measured:
        interval = one.interval(PRIMARY)
        row = [one.label, f"{interval.mean:.3f}", _between(interval)]
        row += [f"{float(values.mean()):.3f}" for name, values in one.values.items() if name != PRIMARY]
        if one is baseline:
            row += ["", ""]
        else:
            difference = one.difference(baseline, PRIMARY)
            row += [f"{difference.mean:+.3f}{'*' if difference.excludes_zero else ''}", _between(difference, "+")]
        found.append([*row, f"{one.milliseconds(50):.0f}", f"{one.milliseconds(95):.0f}"])
    return found


def write(folder: Path, data: DataSet, measured: Sequence[Measured]) -> None:
    """Write results.md, .json and .svg, and one run in TREC's form for each setup."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.md").write_text(markdown(data, measured), encoding="utf-8")
    (folder / "results.json").write_text(json.dumps(document(data, measured), indent=1), encoding="utf-8")
    for number, one in enumerate(measured):
        name = _NO_NAME.sub("-", one.label).strip("-")
        (folder / f"{number}-{name}.run").write_text("".join(f"{line}\n" for line in one.run.trec_lines()), "utf-8")
    title = f"{data.name}: {len(data.queries)} queries over {len(data.documents):,} documents"
    draw_bars(folder / "results.svg", title, PRIMARY, [(one.label, one.interval(PRIMARY)) for one in measured])


def document(data: DataSet, measured: Sequence[Measured]) -> dict[str, Any]:
    """Return all figures, as JSON."""
    baseline = measured[0]
    return {
        "dataset": {
            "name": data.name,
            "split": data.split,
            "documents": len(data.documents),
            "queries": [query.id for query in data.queries],
            "corpus_sha256": data.digest,
        },
        "made": circumstances(),
        "setups": [
            {
                "label": one.label,
                "options": one.setup.model_dump(),
                "measures": {name: as_json(one.interval(name)) for name in one.values},
                "difference_to_first": {name: as_json(one.difference(baseline, name)) for name in one.values},
                "milliseconds": {"p50": one.milliseconds(50), "p95": one.milliseconds(95)},
                "by_query": {name: [round(float(v), 6) for v in values] for name, values in one.values.items()},
            }
            for one in measured
        ],
    }


def circumstances() -> Mapping[str, Any]:
    """Return when, on which machine and with which versions the figures were measured."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": cores(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "machine": f"{platform.system()} {platform.machine()}",
        "python": sys.version.split()[0],
        "packages": {name: _version(name) for name in PACKAGES},
        "bootstrap": {"samples": SAMPLES, "confidence": CONFIDENCE},
    }


def _between(interval: Interval, sign: str = "") -> str:
    return f"{interval.low:{sign}.3f} to {interval.high:{sign}.3f}"


def as_json(interval: Interval) -> dict[str, float]:
    """Return the mean and its interval."""
    return {"mean": interval.mean, "low": interval.low, "high": interval.high}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return NO_PACKAGE


@dataclass(frozen=True)
class Curve:
    """One line of a picture."""

    name: str
    points: Sequence[Interval]


def draw_bars(path: Path, title: str, unit: str, rows: Sequence[tuple[str, Interval]]) -> None:
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
        save(figure, path)


def draw_curves(
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
        save(figure, path)


def draw_reliability(path: Path, title: str, panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]) -> None:
    """Draw how often passages of a relevance are relevant.

    Args:
        path: The file.
        title: Above the panels.
        panels: By title, a line for each set: predicted and observed of each bin.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(1 + 3.4 * len(panels), 3.9), layout="constrained")
        for axes, (name, lines) in zip(
            figure.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels.items(), strict=True
        ):
            axes.plot([0, 1], [0, 1], color="#333", linestyle="--", linewidth=0.8)
            for (line, points), colour in zip(lines.items(), SET_COLOURS, strict=False):
                axes.plot(*zip(*points, strict=True), marker="o", markersize=3.5, color=colour, label=line)
            axes.set(title=name, xlabel="relevance", xlim=(0, 1), ylim=(0, 1))
        figure.axes[0].set_ylabel("share that was judged relevant")
        figure.axes[-1].legend(frameon=False, fontsize=9)
        figure.suptitle(title, fontsize=11, fontweight="bold", x=0.01, ha="left")
        save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """Write a picture; the same picture is the same file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata=METADATA if path.suffix == ".svg" else None, dpi=150)
