"""What filters gain and cost: each way to filter, with right, nearly right and wrong filters."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from evaluation.dataset import DataSet, EvaluationError
from evaluation.measuring import Measured
from evaluation.metrics import PRIMARY, Clusters, Interval, Values, between, mean_interval, resampled
from evaluation.report import BLUE, GREEN, GREY, ORANGE, STYLE, as_json, save
from evaluation.searching import KEYWORD, PRIVATE, STACK, Setup, filter_of
from ragstack_local.show import display

NONE: Final = "none"
RIGHT: Final = "right"
WRONG: Final = "wrong"
NO_FILTER: Final = "no filter"
INFERRED: Final = "inferred, no filter"
ALONE: Final = "filter alone"

COLOURS_OF_WAYS: Final = (GREY, GREEN, ORANGE, BLUE)
BAR_WIDTH: Final = 0.2

LEAST_GAIN: Final = 0.05
"""Of the figure without a filter; a share of less is noise."""

EXPLANATION: Final = (
    "Below each figure: with the right filter, the share kept of the gain of the filter alone; otherwise the change"
    f" against no filter. If that gain is within chance or below {LEAST_GAIN * 100:g} %: the difference to no filter."
)


@dataclass(frozen=True)
class Cell:
    """The figure of one way to filter with one kind of filter.

    Attributes:
        figure: nDCG@10 of the queries that have such a filter.
        change: Against no filter: the share of the right filter's gain that is kept, or a relative change, or a
            difference; None for no filter itself.
        unit: kept, change or difference.
    """

    figure: float
    change: Interval | None = None
    unit: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The figure, and below it the change and its interval."""
        if self.change is None:
            return (f"{self.figure:.3f}",)
        mean, low, high = self.change.mean, self.change.low, self.change.high
        if self.unit == "difference":
            return f"{self.figure:.3f}", f"{mean:+.3f}", f"({low:+.3f} to {high:+.3f})"
        sign = "" if self.unit == "kept" else "+"
        shares = (_percent(mean, sign), _percent(low, sign), _percent(high, sign))
        return f"{self.figure:.3f}", f"{shares[0]} %{' kept' * (not sign)}", f"({shares[1]} to {shares[2]})"


@dataclass(frozen=True)
class FilterTable:
    """One table: a row for each way to filter, a column for each kind of filter.

    Attributes:
        label: The setup without filters.
        kinds: How many queries have a filter, by kind.
        rows: Cells by kind, by way.
    """

    label: str
    kinds: Mapping[str, int]
    rows: Mapping[str, Mapping[str, Cell]]


def setups(data: DataSet, bases: Sequence[Setup]) -> list[Setup]:
    """Return what is measured: each base without a filter, and in each way with each kind of filter.

    Raises:
        EvaluationError: A base has a filter or merges in its own way, or the queries have no filters.
    """
    for base in bases:
        if base.filter != NONE or base.infer != "no" or base.search == KEYWORD or base.engine not in (PRIVATE, STACK):
            raise EvaluationError(
                "The table of filters is for HYBRID and SEMANTIC searches of a knowledge base, and varies filter,"
                " slices, merge and infer itself: leave them out"
            )
    _kinds(data)
    return [setup for base in bases for setup in _ways(data, base)]


def tables(data: DataSet, bases: Sequence[Setup], measured: Sequence[Measured]) -> list[FilterTable]:
    """Arrange the figures of :func:`setups`; bases that were not measured completely are left out."""
    known = {one.setup: one for one in measured}
    complete = [base for base in bases if all(setup in known for setup in _ways(data, base))]
    return [_table(data, base, known) for base in complete]


def show(folder: Path, found: Sequence[FilterTable]) -> None:
    """Show the tables on the terminal, and write them as filters.md, .json and .svg."""
    for table in found:
        rows = [
            [way, *("\n".join(cells[kind].lines) if kind in cells else "" for kind in table.kinds)]
            for way, cells in table.rows.items()
        ]
        display.print_table(table.label, ["", *_headings(table)], rows)
        display.console.print()
    display.console.print(EXPLANATION)
    (folder / "filters.md").write_text(markdown(found), encoding="utf-8")
    (folder / "filters.json").write_text(json.dumps(document(found), indent=1), encoding="utf-8")
    if found:
        draw(folder / "filters.svg", found)


def draw(path: Path, found: Sequence[FilterTable]) -> None:
    """Draw a panel for each table: nDCG@10 of each way to filter, by kind of filter."""
    ways = [way for way in found[0].rows if way != ALONE]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.5, 0.8 + 2.3 * len(found)), layout="constrained")
        panels = figure.subplots(len(found), sharey=True, squeeze=False)[:, 0]
        for axes, table in zip(panels, found, strict=True):
            for place, kind in enumerate(table.kinds):
                shown = [way for way in ways if kind in table.rows[way]]
                places = [place + (number - (len(shown) - 1) / 2) * BAR_WIDTH for number in range(len(shown))]
                heights = [table.rows[way][kind].figure for way in shown]
                colours = [COLOURS_OF_WAYS[ways.index(way)] for way in shown]
                bars = axes.bar(places, heights, BAR_WIDTH * 0.92, color=colours)
                axes.bar_label(bars, [f"{height:.2f}" for height in heights], fontsize=8, padding=2)
            axes.set_xticks(range(len(table.kinds)), _headings(table))
            axes.set_ylabel(PRIMARY)
            axes.set_title(table.label)
            axes.margins(y=0.12)
        panels[-1].set_xlabel("filter (questions)")
        handles = [Patch(color=colour, label=way) for way, colour in zip(ways, COLOURS_OF_WAYS, strict=True)]
        figure.legend(handles=handles, frameon=False, ncols=len(ways), loc="outside upper center")
        save(figure, path)


def markdown(found: Sequence[FilterTable]) -> str:
    """Return one table for a document."""
    if not found:
        return ""
    headings = ["setup", "filter", *_headings(found[0])]
    lines = [EXPLANATION, "", f"| {' | '.join(headings)} |", f"|---|---|{'---:|' * (len(headings) - 2)}"]
    for table in found:
        for number, (way, cells) in enumerate(table.rows.items()):
            row = [table.label if number == 0 else "", way]
            row += [_in_one_line(cells[kind].lines) if kind in cells else "" for kind in table.kinds]
            lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def document(found: Sequence[FilterTable]) -> list[dict[str, Any]]:
    """Return the tables as JSON."""
    return [
        {
            "label": table.label,
            "queries": dict(table.kinds),
            "rows": {
                way: {kind: _cell_as_json(cell) for kind, cell in cells.items()} for way, cells in table.rows.items()
            },
        }
        for table in found
    ]


def _kinds(data: DataSet) -> dict[str, list[int]]:
    """Return the places of the queries that have a filter, by kind: right, those of filters.jsonl, wrong."""
    others = sorted({kind for query in data.queries for kind in query.filters} - {RIGHT, WRONG})
    found = {
        kind: [place for place, query in enumerate(data.queries) if filter_of(data, query, kind)]
        for kind in (RIGHT, *others, WRONG)
    }
    if not found[RIGHT]:
        raise EvaluationError(f"No query of {data.name} has a metadata.filter: there is nothing to compare")
    return {kind: places for kind, places in found.items() if places}


def _ways(data: DataSet, base: Setup) -> Iterator[Setup]:
    yield base
    yield _inferred(base)
    for way in _with_filter(base).values():
        yield from (way.model_copy(update={"filter": kind}) for kind in _kinds(data))


def _inferred(base: Setup) -> Setup:
    return base.model_copy(update={"infer": "yes"})


def _with_filter(base: Setup) -> dict[str, Setup]:
    return {
        ALONE: base.model_copy(update={"slices": "filtered"}),
        f"boost {base.boost:g}": base.model_copy(update={"slices": "multislice", "merge": "boost"}),
        "trust": base.model_copy(update={"slices": "multislice", "merge": "trust"}),
    }


def _table(data: DataSet, base: Setup, known: Mapping[Setup, Measured]) -> FilterTable:
    kinds = _kinds(data)
    numbers = known[base].clusters
    clusters = np.arange(len(data.queries)) if numbers is None else np.array(numbers)

    def figures(setup: Setup, kind: str) -> Values:
        return known[setup.model_copy(update={"filter": kind})].values[PRIMARY][kinds.get(kind, slice(None))]

    without = {kind: known[base].values[PRIMARY][places] for kind, places in kinds.items()}
    ways = _with_filter(base)
    alone = figures(ways[ALONE], RIGHT)
    inferred = known[_inferred(base)].values[PRIMARY][kinds[RIGHT]]
    rows = {
        NO_FILTER: {kind: Cell(float(without[kind].mean())) for kind in kinds},
        INFERRED: {RIGHT: cell(inferred, without[RIGHT], alone, clusters[kinds[RIGHT]])},
    }
    for name, way in ways.items():
        rows[name] = {
            kind: cell(
                figures(way, kind),
                without[kind],
                alone if kind == RIGHT and name != ALONE else None,
                clusters[places],
            )
            for kind, places in kinds.items()
        }
    return FilterTable(known[base].label, {kind: len(places) for kind, places in kinds.items()}, rows)


def cell(figures: Values, without: Values, alone: Values | None, clusters: Clusters) -> Cell:
    """Compare the figures of one way with those of no filter.

    Args:
        figures: Of each query.
        without: Without a filter.
        alone: With the right filter alone, to get the share of its gain; None for the change.
        clusters: As :func:`~evaluation.metrics.resampled` takes them.
    """
    mean = float(figures.mean())
    if alone is not None:
        gain = mean_interval(alone - without, clusters)
        if gain.low <= 0 or gain.mean < LEAST_GAIN * without.mean():
            return Cell(mean, mean_interval(figures - without, clusters), "difference")
        change, whole = resampled(np.array([figures - without, alone - without]), clusters)
        unit, share = "kept", float((figures - without).mean()) / gain.mean
    elif without.any():
        change, whole = resampled(np.array([figures - without, without]), clusters)
        unit, share = "change", float((figures - without).mean() / without.mean())
    else:
        return Cell(mean, mean_interval(figures - without, clusters), "difference")
    possible = whole > 0
    return Cell(mean, Interval(share, *between(change[possible] / whole[possible])), unit)


def _headings(table: FilterTable) -> list[str]:
    return [f"{kind.replace('_', ' ')} ({queries})" for kind, queries in table.kinds.items()]


def _in_one_line(lines: Sequence[str]) -> str:
    return lines[0] if len(lines) == 1 else f"{lines[0]}, {' '.join(lines[1:])}"


def _percent(share: float, sign: str) -> str:
    percent = round(share * 100)
    return f"{percent:{sign}d}" if percent else "0"


def _cell_as_json(cell: Cell) -> dict[str, Any]:
    return {"figure": cell.figure} | ({} if cell.change is None else {cell.unit: as_json(cell.change)})
