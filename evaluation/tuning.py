"""Values of a parameter of the ranking, compared on judged queries, and what may be concluded."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaluation.dataset import DataSet, EvaluationError
from evaluation.metrics import PRIMARY, SEED, Clusters, Difference, Values, difference_interval
from evaluation.searching import Engines, filter_of, measured
from evaluation.setups import Setup
from evaluation.table import Cell, Table
from ragstack_common import embedding
from ragstack_common.settings import base as settings

COSINE_SHARE: Final = "cosine_share"
BOOST: Final = "filtered_score_boost"
VECTOR: Final = "reranker.vector"
RERANKING_WEIGHTS: Final = "reranking_weights"
ALL: Final = "all"
RIGHT: Final = "right"

GRID: Final[Mapping[str, tuple[float, ...]]] = {
    COSINE_SHARE: (0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0),
    BOOST: (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0),
    VECTOR: (0.0, 0.3, 1.0, 2.0, 5.0),
}
"""Default values for each sweep, in the order of the sweeps."""


@dataclass(frozen=True)
class Sweep:
    """One parameter and the figures for each of its values.

    Attributes:
        parameter: Its name.
        default: The value of the setup.
        lines: By name and value nDCG@10 of every query. The first line chooses the best value.
    """

    parameter: str
    default: float
    lines: Mapping[str, Mapping[float, Values]]

    @property
    def figures(self) -> Mapping[float, Values]:
        """The line that chooses."""
        return next(iter(self.lines.values()))


@dataclass(frozen=True)
class Verdict:
    """The best value of one parameter.

    Attributes:
        sweep: The values tried.
        best: The value with the highest mean over all queries; of equals the one next to the default.
        gain: Its difference to the default over the queries that chose it, which flatters it.
        choices: The values that each half of the queries chooses.
        held_out: Difference to the default where each query is judged by the value that the other half chose. This is
            what new queries can expect.
    """

    sweep: Sweep
    best: float
    gain: Difference
    choices: tuple[float, float]
    held_out: Difference

    @classmethod
    def of(cls, sweep: Sweep, clusters: Clusters, *, seed: int = SEED) -> "Verdict":
        """Choose the best value, and judge the choice on queries that had no part in it.

        Args:
            sweep: The values tried.
            clusters: Queries with the same number are in the same half, and are drawn together.
            seed: Of the division into halves.
        """
        figures, baseline = sweep.figures, sweep.figures[sweep.default]
        numbers = np.unique(clusters)
        half = np.isin(clusters, np.random.default_rng(seed).permutation(numbers)[: len(numbers) // 2])

        def best(of: npt.NDArray[np.bool_]) -> float:
            if not of.any():
                return sweep.default
            return max(
                figures, key=lambda value: (round(float(figures[value][of].mean()), 9), -abs(value - sweep.default))
            )

        choices = best(half), best(~half)
        unseen = np.where(half, figures[choices[1]], figures[choices[0]])
        chosen = best(np.ones(len(baseline), dtype=np.bool_))
        gain = difference_interval(figures[chosen], baseline, clusters)
        return cls(sweep, chosen, gain, choices, difference_interval(unseen, baseline, clusters))

    @property
    def is_better(self) -> bool:
        """Whether the best value is better than the default also for queries that had no part in its choice."""
        return self.best != self.sweep.default and self.held_out.low > 0


@dataclass(frozen=True)
class Tuning:
    """A tuning run.

    Attributes:
        engines: What is searched, with the data set.
        setup: The search whose parameters vary.
        parameters: Names in GRID, tuned one after the other.
        values: The values of the only parameter; empty for the grid.
        wrong_share: Share of the filters that are assumed to be wrong, 0 to 1.
        takes_best: Whether a parameter keeps its best value for the sweeps after it, even if the gain may be chance.
    """

    engines: Engines
    setup: Setup
    parameters: Sequence[str]
    values: Sequence[float] = ()
    wrong_share: float = 0.2
    takes_best: bool = False

    def verdicts(self) -> Iterator[Verdict]:
        """Sweep one parameter after the other; a value that is taken counts for the sweeps after it."""
        setup = self.setup
        for parameter in self.parameters:
            verdict = Verdict.of(self._sweep(parameter, setup), self.engines.data.clusters)
            yield verdict
            if self.takes(verdict):
                setup = _changed(setup, parameter, verdict.best)

    def takes(self, verdict: Verdict) -> bool:
        """Whether the best value replaces the default."""
        return verdict.is_better or (self.takes_best and verdict.best != verdict.sweep.default)

    def settings(self, verdicts: Sequence[Verdict]) -> dict[str, Any]:
        """Return the values that are taken, by the names of context values."""
        taken = {verdict.sweep.parameter: verdict.best for verdict in verdicts if self.takes(verdict)}
        vector = {RERANKING_WEIGHTS: {"vector": taken.pop(VECTOR)}} if VECTOR in taken else {}
        return taken | vector

    def _sweep(self, parameter: str, setup: Setup) -> Sweep:
        default = self._default(parameter, setup)
        values = sorted({*(self.values or GRID[parameter]), default})
        variants = {value: _changed(setup, parameter, value) for value in values}
        if parameter != BOOST:
            return Sweep(parameter, default, {PRIMARY: self._figures(variants)})
        kinds = _kinds(self.engines.data)
        by_kind = {
            kind: self._figures({value: each.model_copy(update={"filter": kind}) for value, each in variants.items()})
            for kind in kinds
        }
        right, *wrong = by_kind.values()
        share = self.wrong_share
        mixed = {
            value: (1 - share) * right[value] + share * np.mean([line[value] for line in wrong], axis=0)
            for value in values
        }
        lines = {f"{share:.0%} of the filters wrong": mixed} | {f"{kind} filter": by_kind[kind] for kind in kinds}
        return Sweep(parameter, default, lines)

    def _figures(self, variants: Mapping[float, Setup]) -> dict[float, Values]:
        found = measured(self.engines, [*variants.values()])
        return {value: each.values[PRIMARY] for value, each in zip(variants, found, strict=True)}

    def _default(self, parameter: str, setup: Setup) -> float:
        if parameter == BOOST:
            return setup.boost
        if parameter == VECTOR:
            return setup.vector
        if setup.cosine_share is not None:
            return setup.cosine_share
        model = embedding.load(setup.embedding, self.engines.cache)
        try:
            return float(model.cosine_share)
        finally:
            model.close()


def _changed(setup: Setup, parameter: str, value: float) -> Setup:
    changes = {COSINE_SHARE: f"cosine_share={value}", BOOST: f"merge=boost,boost={value}"}
    return setup.changed(changes.get(parameter, f"rerank=lexical,vector={value}"))


def _kinds(data: DataSet) -> list[str]:
    return [RIGHT, *(sorted({kind for query in data.queries for kind in query.filters} - {RIGHT}) or ["wrong"])]


def chosen(data: DataSet, names: Sequence[str], values: str | None, setup: Setup) -> tuple[list[str], list[float]]:
    """Read which parameters are tuned, and over which values.

    Raises:
        EvaluationError: A parameter or a value is invalid, or cannot be tuned on this data set.
    """
    has_filters = any(filter_of(data, query, RIGHT) for query in data.queries)
    unusable = {
        **({} if setup.search == "HYBRID" else {COSINE_SHARE: f"it has no part in a {setup.search} search"}),
        **({} if has_filters else {BOOST: "no query has a metadata.filter"}),
    }
    parameters = [name for name in GRID if name not in unusable] if ALL in names else [*dict.fromkeys(names)]
    for name in parameters:
        if name not in GRID:
            raise EvaluationError(f"There is no parameter {name}: choose {ALL}, {', '.join(GRID)}")
        if name in unusable:
            raise EvaluationError(f"{name} cannot be tuned on {data.name}: {unusable[name]}")
    if values is None:
        return parameters, []
    if len(parameters) != 1:
        raise EvaluationError("--values needs one parameter: name one with --parameter")
    try:
        numbers = [float(part) for part in values.split(",")]
    except ValueError:
        raise EvaluationError(f"--values must be numbers with commas between, not {values!r}") from None
    for number in numbers:
        _changed(setup, parameters[0], number)
    return parameters, numbers


def tables(data: DataSet, verdicts: Sequence[Verdict]) -> list[Table]:
    """Return a row for each parameter, and the curve of each."""
    headings = ["parameter", "default", PRIMARY, "best", "gain", "held out", "better"]
    rows = [
        [
            each.sweep.parameter,
            f"{each.sweep.default:g}",
            float(each.sweep.figures[each.sweep.default].mean()),
            f"{each.best:g}",
            each.gain,
            each.held_out,
            "yes" if each.is_better else "no",
        ]
        for each in verdicts
    ]
    note = (
        "gain: on the queries that chose the value. held out: each query judged by the value that the other half chose,"
        " which is what new queries can expect."
    )
    return [Table(data.title, headings, rows, notes=[note]), *(_curve(data, verdict.sweep) for verdict in verdicts)]


def _curve(data: DataSet, sweep: Sweep) -> Table:
    rows: list[list[Cell]] = [
        [
            value,
            *(difference_interval(line[value], line[sweep.default], data.clusters) for line in sweep.lines.values()),
        ]
        for value in sweep.figures
    ]
    title = f"{PRIMARY}, difference to {sweep.parameter} of {sweep.default:g}"
    return Table(title, [sweep.parameter, *sweep.lines], rows, [*sweep.lines])


def write_settings(file: Path, tuning: Tuning, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Write the values that are taken into a file of settings; other settings in it stay.

    Returns:
        The values.

    Raises:
        EvaluationError: The file exists, and is not a file of settings.
    """
    found = tuning.settings(verdicts)
    data = tuning.engines.data
    comment = f"ragstack tune {data.name}: {len(data.queries)} queries, {tuning.setup.label}"
    try:
        settings.write_settings(file, dict.fromkeys((RERANKING_WEIGHTS, COSINE_SHARE, BOOST)) | found, comment)
    except ValueError as error:
        raise EvaluationError(str(error)) from error
    return found
