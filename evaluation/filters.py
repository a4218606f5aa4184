"""What filters gain and cost: each way to filter, with right, nearly right and wrong filters."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from evaluation.dataset import DataSet, EvaluationError
from evaluation.metrics import PRIMARY, difference_interval
from evaluation.searching import Measured, filter_of
from evaluation.setups import Setup
from evaluation.table import Cell, Table

RIGHT: Final = "right"
WRONG: Final = "wrong"
ALONE: Final = "filter alone"
KEPT: Final = "kept"

MIN_GAIN: Final = 0.05
"""Gain of the right filter alone, as a share of the figure without a filter, for which shares are shown."""


def setups(data: DataSet, bases: Sequence[Setup]) -> list[Setup]:
    """Return what is measured: each base without a filter, and in each way with each kind of filter.

    Raises:
        EvaluationError: A base has a filter or merges in its own way, or the queries have no filters.
    """
    for base in bases:
        if base.filter != "none" or base.infer or not base.is_bedrock:
            raise EvaluationError(
                "The table of filters is for searches of a knowledge base, and varies filter, filter_mode, merge and"
                " infer itself: leave them out"
            )
    kinds = _kinds(data)
    return [
        setup
        for base in bases
        for setup in (base, _inferred(base), *(_with(way, kind) for way in _ways(base).values() for kind in kinds))
    ]


def tables(data: DataSet, bases: Sequence[Setup], measured: Sequence[Measured]) -> list[Table]:
    """Arrange the figures of :func:`setups`: a row for each way, columns for each kind of filter.

    Bases that were not measured completely are left out.
    """
    known = {one.setup: one for one in measured}
    return [_table(data, base, known) for base in bases if all(setup in known for setup in setups(data, [base]))]


def _table(data: DataSet, base: Setup, known: Mapping[Setup, Measured]) -> Table:
    kinds = _kinds(data)
    clusters = np.array(data.clusters)
    without = known[base].values[PRIMARY]
    gain = known[_with(_ways(base)[ALONE], RIGHT)].values[PRIMARY][kinds[RIGHT]] - without[kinds[RIGHT]]
    whole = difference_interval(gain, np.zeros_like(gain), clusters[kinds[RIGHT]])
    has_gain = whole.low > 0 and whole.mean >= MIN_GAIN * without[kinds[RIGHT]].mean()

    def cells(setup: Setup, kind: str) -> list[Cell]:
        places = kinds[kind]
        figures = known[setup].values[PRIMARY][places]
        change = difference_interval(figures, without[places], clusters[places])
        share = f"{round(change.mean / whole.mean * 100)} %" if has_gain else ""
        return [float(figures.mean()), change, *([share] if kind == RIGHT else [])]

    headings = ["way"]
    for kind, places in kinds.items():
        name = kind.replace("_", " ")
        headings += [f"{name} ({len(places)})", f"Δ {name}", *([KEPT] if kind == RIGHT else [])]
    plain: list[Cell] = ["no filter"]
    for kind, places in kinds.items():
        plain += [float(without[places].mean()), None, *([None] if kind == RIGHT else [])]
    inferred: list[Cell] = ["inferred, no filter", *cells(_inferred(base), RIGHT)]
    rows = [plain, inferred + [None] * (len(headings) - len(inferred))]
    rows += [
        [name, *(cell for kind in kinds for cell in cells(_with(way, kind), kind))] for name, way in _ways(base).items()
    ]
    drawn = [heading for heading in headings[1:] if heading.endswith(")")]
    note = (
        f"Δ: difference to no filter. {KEPT}: share of the gain of the right filter alone, unless that gain is within"
        f" chance or below {MIN_GAIN * 100:g} % of the figure without a filter."
    )
    return Table(f"{data.name}, {PRIMARY}: {base.label}", headings, rows, drawn, [note])


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


def _inferred(base: Setup) -> Setup:
    return base.model_copy(update={"infer": True})


def _ways(base: Setup) -> dict[str, Setup]:
    return {
        ALONE: base.model_copy(update={"filter_mode": "strict"}),
        f"boost {base.boost:g}": base.model_copy(update={"merge": "boost"}),
        "trust": base.model_copy(update={"merge": "trust"}),
    }


def _with(way: Setup, kind: str) -> Setup:
    return way.model_copy(update={"filter": kind})
