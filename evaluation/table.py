"""Figures as tables: on the terminal, in Markdown, as JSON, and as a picture."""

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from evaluation.metrics import CONFIDENCE, SAMPLES, Difference, Interval
from ragstack_common import DISTRIBUTION
from ragstack_common.core.errors import needs_extra
from ragstack_common.embedding.protocol import cores
from ragstack_local.show import display

with needs_extra("evaluation", "The evaluation"):
    import matplotlib as mpl

mpl.use("Agg")  # works without a screen

from matplotlib.axes import Axes
from matplotlib.figure import Figure

PACKAGES: Final = (DISTRIBUTION, "apsw", "numpy", "onnxruntime")
STYLE: Final[Any] = {
    "svg.fonttype": "none",  # text stays text: searchable, and the same on every machine
    "svg.hashsalt": "ragstack",  # the same figures are the same file
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
}
COLOURS: Final = ("#2563ab", "#c2571a", "#2f8f5b", "#8a94a3", "#7b4fa3", "#b8952b", "#2aa3a3")

Cell: TypeAlias = str | int | float | Interval | None


@dataclass(frozen=True)
class Table:
    """Named rows of figures.

    Attributes:
        title: What was measured.
        headings: Of the names, and of each column of figures; all are different.
        rows: A name, and a cell for each further heading. Numbers as names make the picture a curve.
        drawn: Headings of the columns that the picture shows.
        notes: Sentences below the table.
        is_printed: Whether the terminal shows it; the files always have it.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    drawn: Sequence[str] = ()
    notes: Sequence[str] = ()
    is_printed: bool = True

    def print(self) -> None:
        """Show the table on the terminal, which may have 80 columns: without the intervals."""
        display.print_table(self.title, self.headings, [self._cells(row) for row in self.rows])
        for note in self.notes:
            display.console.print(note)

    @property
    def is_curve(self) -> bool:
        """Whether the names are numbers."""
        return all(isinstance(row[0], float) for row in self.rows)

    @property
    def markdown(self) -> str:
        """The table with its intervals, for a document."""
        lines = [
            f"{self.title}.",
            "",
            f"| {' | '.join(self.headings)} |",
            "|---" + "|---:" * (len(self.headings) - 1) + "|",
        ]
        lines += [f"| {' | '.join(_written(cell, intervals=True) for cell in row)} |" for row in self.rows]
        return "\n".join([*lines, "", *(f"{note}\n" for note in self.notes)])

    @property
    def json(self) -> dict[str, Any]:
        """The table as JSON, with every digit."""
        rows = [dict(zip(self.headings, map(_as_json, row), strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": list(self.notes)}

    def _cells(self, row: Sequence[Cell], *, intervals: bool = False) -> list[str]:
        name = f"{row[0]:.3g}" if isinstance(row[0], float) else str(row[0])
        return [name, *(_written(cell, intervals=intervals) for cell in row[1:])]


def show(folder: Path, tables: Sequence[Table], **details: Any) -> None:
    """Print tables, and write all of them as results.md, results.json and results.svg.

    Args:
        folder: Where to; it is created.
        tables: At least one.
        details: Further members of results.json.
    """
    for table in tables:
        if table.is_printed:
            table.print()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.md").write_text("\n".join(table.markdown for table in tables), encoding="utf-8")
    document = {"made": _circumstances(), **details, "tables": [table.json for table in tables]}
    (folder / "results.json").write_text(json.dumps(document, indent=1, ensure_ascii=False), encoding="utf-8")
    draw(folder / "results.svg", [table for table in tables if table.drawn])
    display.console.print(f"Every figure, with its interval, and a picture:  {folder}", soft_wrap=True)


def draw(path: Path, tables: Sequence[Table]) -> None:
    """Draw a panel for each table; the same figures are the same file."""
    if not tables:
        return
    heights = [3.4 if each.is_curve else 0.9 + 0.22 * len(each.rows) * (1 + len(each.drawn) / 3) for each in tables]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.5, sum(heights)), layout="constrained")
        panels = figure.subplots(len(tables), squeeze=False, height_ratios=heights)[:, 0]
        for axes, table in zip(panels, tables, strict=True):
            for number, heading in enumerate(table.drawn):
                _draw_column(axes, table, number, heading)
            if table.is_curve:
                axes.set_xlabel(table.headings[0])
            else:
                axes.set_yticks(range(len(table.rows)), [str(row[0]) for row in table.rows])
                axes.invert_yaxis()
            axes.set_title(table.title)
            axes.legend(frameon=False, fontsize=9)
        figure.savefig(path, metadata={"Date": None, "Creator": "RAGStack"} if path.suffix == ".svg" else None)


def _draw_column(axes: Axes, table: Table, number: int, heading: str) -> None:
    column = list(table.headings).index(heading)
    offset = 0.6 * ((number + 0.5) / len(table.drawn) - 0.5)
    places: list[Any] = []
    points: list[Interval] = []
    for place, row in enumerate(table.rows):
        cell = row[column]
        if isinstance(cell, float | Interval):  # counts have another scale
            places.append(row[0] if table.is_curve else place + offset)
            points.append(cell if isinstance(cell, Interval) else Interval(cell, cell, cell))
    means, lows, highs = ([getattr(point, name) for point in points] for name in ("mean", "low", "high"))
    colour = COLOURS[number % len(COLOURS)]
    if table.is_curve:
        axes.plot(places, means, marker="o", markersize=3.5, color=colour, label=heading)
        axes.fill_between(places, lows, highs, color=colour, alpha=0.15, linewidth=0)
    else:
        errors = [np.subtract(means, lows), np.subtract(highs, means)]
        axes.errorbar(means, places, xerr=errors, fmt="o", capsize=2, color=colour, label=heading)


def _written(cell: Cell, *, intervals: bool = False) -> str:
    match cell:
        case None:
            return ""
        case Interval():
            sign = "+" if isinstance(cell, Difference) else ""
            star = "*" if isinstance(cell, Difference) and cell.excludes_zero else ""
            limits = f" ({cell.low:{sign}.3f} to {cell.high:{sign}.3f})" if intervals else ""
            return f"{cell.mean:{sign}.3f}{star}{limits}"
        case float():
            return f"{cell:.3f}"
        case int():
            return f"{cell:,}"
    return cell


def _as_json(cell: Cell) -> Any:
    return {"mean": cell.mean, "low": cell.low, "high": cell.high} if isinstance(cell, Interval) else cell


def _circumstances() -> Mapping[str, Any]:
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


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
