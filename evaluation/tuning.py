"""A tuning run: what is retrieved, what is swept over it, and what is written."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evaluation import metrics, report
from evaluation.dataset import DataSet, EvaluationError
from evaluation.index import Index, Indexing, serving
from evaluation.measuring import Progress
from evaluation.metrics import PRIMARY
from evaluation.report import Curve
from evaluation.searching import LocalRankings
from evaluation.sweeps import (
    BOOST,
    CANDIDATES,
    COSINE_SHARE,
    DEFAULT_CANDIDATES,
    GRID,
    OF_HITS,
    UNFILTERED,
    HitFile,
    HitSweeps,
    Sweep,
    Verdict,
    of_cosine_share,
    values_of,
)
from ragstack_local import display

ALL: Final = "all"
HEADINGS: Final = ("parameter", "default", PRIMARY, "best", "gain", "95 %", "held out", "95 %", "verdict")


@dataclass(frozen=True)
class Tuning:
    """What is tuned."""

    data: DataSet
    indexing: Indexing
    search: str
    parameters: tuple[str, ...]
    values: tuple[float, ...]  # instead of those of the grid; empty for the grid
    wrong_share: float  # of the filters, 0 to 1
    cache: Path

    def verdicts(self, progress: Progress) -> Iterator[Verdict]:
        """Sweep one parameter after the other."""
        with serving(self.data, self.indexing, self.cache, progress.indexing) as index:
            hits = HitFile.of(index.folder, self.search)
            if any(name in OF_HITS for name in self.parameters):
                kinds = (UNFILTERED, "right", "wrong") if BOOST in self.parameters else (UNFILTERED,)
                client = index.client("bedrock-agent-runtime")
                with progress.bar(f"retrieval, {self.search}", len(self.data.queries)) as advance:
                    hits.fill(self.data, kinds, client, index, self.search, advance)
        of_hits = HitSweeps(self.data, hits, self.wrong_share)
        for parameter in self.parameters:
            if parameter == COSINE_SHARE:
                yield Verdict.of(self._of_cosine_share(index, progress))
                continue
            with progress.bar(parameter, 1) as advance:
                yield Verdict.of(self._sweep(parameter, of_hits))
                advance()

    def _sweep(self, parameter: str, of_hits: HitSweeps) -> Sweep:
        if parameter == BOOST:
            return of_hits.boost(self.values)
        if parameter == CANDIDATES:
            return of_hits.candidates(self.values)
        return of_hits.weight(parameter, self.values)

    def _of_cosine_share(self, index: Index, progress: Progress) -> Sweep:
        found = {}
        with LocalRankings.of(self.indexing, index) as rankings:
            default = rankings.embedding.cosine_share
            shares = values_of(COSINE_SHARE, self.values, default)
            with progress.bar(COSINE_SHARE, len(self.data.queries)) as advance:
                for query in self.data.queries:
                    ranked = rankings.by_share(query.text, shares)
                    found[query.id] = {
                        share: rankings.documents(chunks[:DEFAULT_CANDIDATES]) for share, chunks in ranked.items()
                    }
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
            why = "no query has a metadata.filter" if name == BOOST else f"it has no part in a {search} search"
            raise EvaluationError(f"{name} cannot be tuned on {data.name}: {why}")
    if values is None:
        return parameters, ()
    if len(parameters) != 1:
        raise EvaluationError("--values needs one parameter: name one with --parameter")
    return parameters, _numbers(parameters[0], values)


def data_set_parameters(data: DataSet, search: str) -> list[str]:
    """Return the parameters that can be tuned on a data set."""
    has_filters = any(query.attributes for query in data.queries)
    unusable = {*(() if has_filters else (BOOST,)), *(() if search == "HYBRID" else (COSINE_SHARE,))}
    return [name for name in GRID if name not in unusable]


def _numbers(parameter: str, values: str) -> tuple[float, ...]:
    least = 1.0 if parameter == CANDIDATES else 0.0
    most = 1.0 if parameter == COSINE_SHARE else sys.float_info.max
    try:
        numbers = tuple(float(part) for part in values.split(","))
    except ValueError:
        raise EvaluationError(f"--values must be numbers with commas between, not {values!r}") from None
    if not all(least <= number <= most for number in numbers) or (parameter == BOOST and 0 in numbers):
        raise EvaluationError(f"A value of {values!r} is out of range for {parameter}")
    return numbers


def print_table(data: DataSet, verdicts: Sequence[Verdict]) -> None:
    """Show the table on the terminal."""
    # The interval of the gain is in the files: a terminal may have 80 columns.
    headings = [*HEADINGS[:5], *HEADINGS[6:]]
    shown = []
    for verdict in verdicts:
        *figures, _interval, held_out, between, _text = _row(verdict)
        shown.append([*figures, held_out, between, verdict.word])
    display.print_table(f"{data.name}, {data.split}: {len(data.queries)} queries", headings, shown)


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
