"""A tuning run: what is retrieved, what is swept over it, and what is written."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from evaluation import metrics, report
from evaluation.dataset import DataSet, EvaluationError
from evaluation.index import Indexing, serving
from evaluation.measuring import Progress
from evaluation.metrics import PRIMARY
from evaluation.report import Curve
from evaluation.searching import LocalRankings
from evaluation.sweeps import (
    BOOST,
    COSINE_SHARE,
    DEFAULTS,
    GRID,
    OF_FILTERS,
    OF_HITS,
    RIGHT,
    SLICE,
    VECTOR,
    AskedFilters,
    HitFile,
    HitSweeps,
    Sweep,
    Verdict,
    filters_of,
    of_cosine_share,
    values_of,
)
from ragstack_common.core import settings
from ragstack_common.core.errors import ConfigurationError
from ragstack_common.reranking_weights import RerankingWeights
from ragstack_local.show import display

RERANKING_WEIGHTS: Final = "reranking_weights"

ALL: Final = "all"
HEADINGS: Final = ("parameter", "default", PRIMARY, "best", "gain", "95 %", "held out", "95 %", "verdict")


@dataclass(frozen=True)
class Tuning:
    """What is tuned.

    Attributes:
        data: The judged queries.
        indexing: How the documents are indexed.
        search: HYBRID or SEMANTIC.
        parameters: What is varied, one after the other.
        values: What is tried of the only parameter; empty for the grid.
        wrong_share: Share of the filters that are assumed to be wrong, 0 to 1.
        cache: Folder of the indexes.
        cluster: An attribute: queries with the same value are divided and drawn together.
        takes_best: Whether a parameter keeps its best value for the sweeps after it, even if the gain may be chance.
    """

    data: DataSet
    indexing: Indexing
    search: str
    parameters: tuple[str, ...]
    values: tuple[float, ...]
    wrong_share: float
    cache: Path
    cluster: str | None = None
    takes_best: bool = False

    def verdicts(self, progress: Progress) -> Iterator[Verdict]:
        """Sweep one parameter after the other; a value that is taken counts for the sweeps after it."""
        share: float | None = None
        if COSINE_SHARE in self.parameters:
            verdict = self._verdict(self._of_cosine_share(progress))
            share = verdict.best if self.takes(verdict) else None
            yield verdict
        of_hits = [name for name in self.parameters if name in OF_HITS]
        if not of_hits:
            return
        asked = filters_of(self.data) if {*OF_FILTERS} & {*of_hits} else {}
        sweeps = HitSweeps(self.data, self._retrieved(progress, asked, share), asked, self.wrong_share)
        tried = {name: values_of(name, self.values, DEFAULTS[name]) for name in of_hits}
        with progress.bar(f"sweeps of {len(tried)} parameters", sum(map(len, tried.values()))) as advance:
            for name, values in tried.items():
                yield self._verdict(sweeps.sweep(name, values, advance))

    def takes(self, verdict: Verdict) -> bool:
        """Whether the best value replaces the default."""
        return verdict.is_better or (self.takes_best and verdict.best != verdict.sweep.default)

    def settings(self, verdicts: Sequence[Verdict]) -> dict[str, Any]:
        """Return the values that are taken, by the names of context values."""
        taken = {verdict.sweep.parameter: verdict.best for verdict in verdicts if self.takes(verdict)}
        found: dict[str, Any] = {name: taken.pop(name) for name in (COSINE_SHARE, BOOST) if name in taken}
        if VECTOR in taken:
            found[RERANKING_WEIGHTS] = {"vector": taken[VECTOR]}
        return found

    def _verdict(self, sweep: Sweep) -> Verdict:
        return Verdict.of(sweep, None if self.cluster is None else np.array(self.data.clusters(self.cluster)))

    def _retrieved(self, progress: Progress, asked: AskedFilters, share: float | None) -> HitFile:
        with serving(self.data, self.indexing, self.cache, progress.indexing, share) as index:
            hits = HitFile.of(index.folder, self.search, share)
            client = index.client("bedrock-agent-runtime")
            with progress.bar(f"retrieval, {self.search}", len(self.data.queries)) as advance:
                hits.fill(self.data, asked, client, index, self.search, advance)
        return hits

    def _of_cosine_share(self, progress: Progress) -> Sweep:
        with serving(self.data, self.indexing, self.cache, progress.indexing) as index:
            pass  # the documents are ingested
        found = {}
        with LocalRankings.of(self.indexing, index) as rankings:
            default = rankings.embedding.cosine_share
            shares = values_of(COSINE_SHARE, self.values, default)
            with progress.bar(COSINE_SHARE, len(self.data.queries)) as advance:
                for query in self.data.queries:
                    ranked = rankings.by_share(query.text, shares)
                    found[query.id] = {share: rankings.documents(chunks[:SLICE]) for share, chunks in ranked.items()}
                    advance()
        return of_cosine_share(self.data, default, found)


def chosen(
    data: DataSet, names: Sequence[str], values: str | None, search: str
) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Read which parameters are tuned, and over which values.

    Raises:
        EvaluationError: A parameter or a value is invalid, or cannot be tuned on this data set.
    """
    known = set(data_set_parameters(data, search))
    parameters = tuple(name for name in GRID if name in known) if ALL in names else tuple(dict.fromkeys(names))
    for name in parameters:
        if name not in GRID:
            raise EvaluationError(f"There is no parameter {name}: choose {ALL}, {', '.join(GRID)}")
        if name not in known:
            why = f"it has no part in a {search} search" if name == COSINE_SHARE else "no query has such a filter"
            raise EvaluationError(f"{name} cannot be tuned on {data.name}: {why}")
    if values is None:
        return parameters, ()
    if len(parameters) != 1:
        raise EvaluationError("--values needs one parameter: name one with --parameter")
    return parameters, _numbers(parameters[0], values)


def data_set_parameters(data: DataSet, search: str) -> list[str]:
    """Return the parameters that can be tuned on a data set."""
    kinds = {kind for found in filters_of(data).values() for kind in found}
    unusable = {
        *(() if RIGHT in kinds else OF_FILTERS),
        *(() if search == "HYBRID" else (COSINE_SHARE,)),
    }
    return [name for name in GRID if name not in unusable]


def _numbers(parameter: str, values: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in values.split(","))
    except ValueError:
        raise EvaluationError(f"--values must be numbers with commas between, not {values!r}") from None
    try:
        for number in numbers:
            _check(parameter, number)
    except (ValueError, ConfigurationError) as error:
        raise EvaluationError(f"A value of {values!r} is out of range for {parameter}: {error}") from error
    return numbers


def _check(parameter: str, value: float) -> None:
    if parameter == BOOST and not 0 < value < math.inf:
        raise ValueError("it must be over 0")
    if parameter == COSINE_SHARE and not 0 <= value <= 1:
        raise ValueError("it must be 0 to 1")
    if parameter not in (BOOST, COSINE_SHARE):
        RerankingWeights(vector=value)


def print_table(data: DataSet, verdicts: Sequence[Verdict]) -> None:
    """Show the table on the terminal, which may have 80 columns: the gain that flatters is in the files."""
    headings = ["parameter", "default", "best", PRIMARY, "held out", "95 %", "better"]
    shown = []
    for verdict in verdicts:
        name, default, mean, best, _gain, _interval, held_out, between, _text = _row(verdict)
        shown.append([name, default, best, mean, held_out, between, "yes" if verdict.is_better else "no"])
    display.print_table(f"{data.name}, {data.split}: {len(data.queries)} queries", headings, shown)


def write_settings(file: Path, tuning: Tuning, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Write the values that are taken into a file of settings; other settings in it stay.

    Returns:
        The values.

    Raises:
        EvaluationError: The file exists, and is not a file of settings.
    """
    found = tuning.settings(verdicts)
    setup = f"{tuning.search}, {tuning.indexing.embedding}, {report.circumstances()['at'][:10]}"
    comment = f"ragstack tune {tuning.data.name}: {len(tuning.data.queries)} queries, {setup}"
    try:
        settings.write_settings(file, dict.fromkeys((RERANKING_WEIGHTS, COSINE_SHARE, BOOST)) | found, comment)
    except ValueError as error:
        raise EvaluationError(str(error)) from error
    return found


def write(folder: Path, tuning: Tuning, verdicts: Sequence[Verdict]) -> None:
    """Write tuning.md, tuning.json and a picture of each curve."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        f"| {' | '.join(HEADINGS)} |",
        f"|---|{'---:|' * 7}---|",
        *(f"| {' | '.join(_row(v))} |" for v in verdicts),
    ]
    (folder / "tuning.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "tuning.json").write_text(json.dumps(_document(tuning, verdicts), indent=1), encoding="utf-8")
    for verdict in verdicts:
        sweep = verdict.sweep
        curves = [_curve(sweep, name) for name in sweep.lines]
        title = f"{tuning.data.name}: {sweep.parameter}"
        file = folder / f"{sweep.parameter}.svg"
        report.draw_curves(file, title, sweep.parameter, PRIMARY, sweep.values, curves, sweep.default)


def _curve(sweep: Sweep, name: str) -> Curve:
    baseline = sweep.baseline_of(name)
    return Curve(name, [metrics.difference_interval(sweep.lines[name][value], baseline) for value in sweep.values])


def _row(verdict: Verdict) -> list[str]:
    sweep = verdict.sweep
    mean = float(sweep.figures[sweep.default].mean())
    return [
        sweep.parameter,
        f"{sweep.default:g}",
        f"{mean:.3f}",
        f"{verdict.best:g}",
        f"{verdict.gain.mean:+.3f}",
        f"{verdict.gain.low:+.3f} to {verdict.gain.high:+.3f}",
        f"{verdict.held_out.mean:+.3f}",
        f"{verdict.held_out.low:+.3f} to {verdict.held_out.high:+.3f}",
        verdict.text,
    ]


def _document(tuning: Tuning, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    return {
        "dataset": {"name": tuning.data.name, "split": tuning.data.split, "queries": len(tuning.data.queries)},
        "indexing": {"embedding": tuning.indexing.embedding, "headers": tuning.indexing.contextual_headers},
        "search": tuning.search,
        "wrong_share": tuning.wrong_share,
        "made": report.circumstances(),
        "parameters": [
            {
                "name": verdict.sweep.parameter,
                "default": verdict.sweep.default,
                "best": verdict.best,
                "choices_of_halves": verdict.choices,
                "gain": report.as_json(verdict.gain),
                "held_out": report.as_json(verdict.held_out),
                "verdict": verdict.text,
                "lines": {
                    name: {f"{value:g}": float(figures.mean()) for value, figures in line.items()}
                    for name, line in verdict.sweep.lines.items()
                },
            }
            for verdict in verdicts
        ],
    }
