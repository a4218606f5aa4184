"""The figures of answers as tables, files and pictures."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure

from evaluation import report
from evaluation.answers import MEASURES, Asked, token_f1, token_recall
from evaluation.asking import MeasuredAnswers
from evaluation.dataset import DataSet
from evaluation.metrics import Interval
from evaluation.report import COLOURS, GREY, STYLE, as_json
from ragstack_local.show import display

THRESHOLDS: Final = (0.0, 0.02, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5)
"""Of ``ANSWERABLE_RELEVANCE``."""

RELIABLE_JUDGE: Final = 0.9
"""Share of the control answers below which the judge's figures mean little."""

UNANSWERABLE: Final = {
    "unanswerable": "abstained",
    "foreign": "abstained, foreign",
    "removed": "abstained, removed",
}


def show(folder: Path, data: DataSet, measured: Sequence[MeasuredAnswers]) -> None:
    """Print the tables, and write answers.md, .json and .svg, abstention.svg, and every answer of each setup."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = [(title_of(data, measured[0]), *figures(measured))]
    thresholds = {one.label: list(abstention(one)) for one in measured}
    for label, rows in thresholds.items():
        if rows:
            headings = ["ANSWERABLE_RELEVANCE", *rows[0][1]]
            shown = [[f"{value:g}", *(f"{share:.0%}" for share in shares.values())] for value, shares in rows]
            tables.append((f"{label}: the least relevance at which there is an answer", headings, shown))
    for title, headings, rows_ in tables:
        display.print_table(title, headings, rows_)
    below = list(notes(measured))
    for note in below:
        display.console.print(note)
    markdown = "\n".join([*(_markdown(*table) for table in tables), *(f"{note}\n" for note in below)])
    (folder / "answers.md").write_text(markdown, encoding="utf-8")
    (folder / "answers.json").write_text(json.dumps(_document(data, measured, thresholds), indent=1), encoding="utf-8")
    for number, one in enumerate(measured):
        lines = (json.dumps(_line(each), ensure_ascii=False) + "\n" for each in one.asked)
        (folder / f"{number}-answers.jsonl").write_text("".join(lines), encoding="utf-8")
    _draw_figures(folder / "answers.svg", title_of(data, measured[0]), measured)
    if any(thresholds.values()):
        _draw_abstention(folder / "abstention.svg", f"{data.name}: questions with and without an answer", thresholds)


def title_of(data: DataSet, measured: MeasuredAnswers) -> str:
    """Describe the questions."""
    counts = {kind: sum(each.kind == kind for each in measured.asked) for kind in ("answerable", *UNANSWERABLE)}
    others = "".join(f", {count} {kind}" for kind, count in counts.items() if count and kind != "answerable")
    return f"{data.name}: {counts['answerable']} questions{others}, {len(data.documents):,} documents"


def figures(measured: Sequence[MeasuredAnswers]) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of the table: a row for each measure, and columns for each setup.

    A further setup is called by what differs from the first, and differences are to it, with a star beyond chance.
    """
    baseline = measured[0]
    headings = ["measure", baseline.label, report.CONFIDENCE_HEADING]
    for one in measured[1:]:
        changed = [part for part in one.label.split(", ") if part not in baseline.label.split(", ")]
        headings += [", ".join(changed) or one.label, "Δ"]
    rows = []
    for name in (name for name in MEASURES if any(name in one.figures for one in measured)):
        first = baseline.figures.get(name)
        row = [name, *(("", "") if first is None else (f"{first.value:.3f}", _between(first.interval())))]
        for one in measured[1:]:
            ratio = one.figures.get(name)
            difference = None if ratio is None or first is None else ratio.difference(first)
            star = "*" if difference is not None and difference.excludes_zero else ""
            row += ["" if ratio is None else f"{ratio.value:.3f}"]
            row += ["" if difference is None else f"{difference.mean:+.3f}{star}"]
        rows.append(row)
    for name, figure in _COSTS.items():
        costs = [f"{figure(one):.0f}" for one in measured]
        rows.append([name, costs[0], "", *(cell for cost in costs[1:] for cell in (cost, ""))])
    return headings, rows


_COSTS: Final[Mapping[str, Callable[[MeasuredAnswers], float]]] = {
    "median ms": lambda one: one.milliseconds(50),
    "95th percentile ms": lambda one: one.milliseconds(95),
    "tokens read": lambda one: one.tokens[0],
    "tokens written": lambda one: one.tokens[1],
}


def abstention(one: MeasuredAnswers) -> Iterator[tuple[float, Mapping[str, float]]]:
    """Yield which shares of the questions would have an answer or none, by threshold of the relevance.

    Thresholds below that of the setup would need other answers. There are none without a calibration, or without
    questions that cannot be answered.
    """
    kinds = [kind for kind, name in UNANSWERABLE.items() if name in one.figures]
    if not kinds or any(each.best_relevance is None for each in one.asked if each.found):
        return
    for threshold in sorted({*THRESHOLDS, one.setup.answerable_relevance}):
        if threshold >= one.setup.answerable_relevance:
            shares = {"answered": _share(one, "answerable", threshold, answered=True)}
            yield (
                threshold,
                shares | {UNANSWERABLE[kind]: _share(one, kind, threshold, answered=False) for kind in kinds},
            )


def _share(one: MeasuredAnswers, kind: str, threshold: float, *, answered: bool) -> float:
    """Return the share of the questions of a kind that get an answer, or none; those that failed got neither."""
    asked = [each for each in one.asked if each.kind == kind]
    has_answer = [each.answered and (each.best_relevance or 0) >= threshold for each in asked]
    succeeded = [each.answer is not None for each in asked]
    return sum(has == answered and done for has, done in zip(has_answer, succeeded, strict=True)) / len(asked)


def notes(measured: Sequence[MeasuredAnswers]) -> Iterator[str]:
    """Yield what a reader must know about the judge."""
    for one in measured:
        judge = one.judge
        if judge is None:
            continue
        unread = (
            f"of {judge.verdicts} verdicts of {judge.model}, {judge.unparsable} could not be read and"
            f" {judge.failed} failed"
        )
        if not judge.controls:
            yield f"{one.label}: {unread}"
            continue
        yield f"{one.label}: {unread}; it judged {judge.controls_right} of {judge.controls} control answers right"
        if judge.controls_right < RELIABLE_JUDGE * judge.controls:
            yield "The judge is wrong about more than one control answer in ten: its figures mean little"


def _markdown(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"{title}.", "", f"| {' | '.join(headings)} |", f"|---|{'---:|' * (len(headings) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows), ""])


def _between(interval: Interval) -> str:
    return f"{interval.low:.3f} to {interval.high:.3f}"


def _document(
    data: DataSet,
    measured: Sequence[MeasuredAnswers],
    thresholds: Mapping[str, Sequence[tuple[float, Mapping[str, float]]]],
) -> dict[str, Any]:
    baseline = measured[0]
    return {
        "dataset": {"name": data.name, "split": data.split, "corpus_sha256": data.digest},
        "made": report.circumstances(),
        "measures": {name: measure.of for name, measure in MEASURES.items()},
        "setups": [
            {
                "label": one.label,
                "options": one.setup.model_dump(),
                "measures": {
                    name: as_json(ratio.interval()) | {"of": ratio.total} for name, ratio in one.figures.items()
                },
                "difference_to_first": {
                    name: as_json(ratio.difference(baseline.figures[name]))
                    for name, ratio in one.figures.items()
                    if name in baseline.figures
                },
                **{name: figure(one) for name, figure in _COSTS.items()},
                "judge": None if one.judge is None else one.judge.as_json(),
                "thresholds": [{"answerable_relevance": value, **shares} for value, shares in thresholds[one.label]],
            }
            for one in measured
        ],
    }


def _line(asked: Asked) -> dict[str, Any]:
    """Return an answer with its figures, to look for what went wrong."""
    answer = asked.answer
    line: dict[str, Any] = {
        "_id": asked.query.id,
        "kind": asked.kind,
        "question": asked.query.text,
        "answered": asked.answered,
        "closest_passages": asked.answer is not None and asked.answer.closest_passages,
        "answer": None if answer is None else answer.answer,
        "references": list(asked.query.answers),
        "cited": list(asked.cited),
        "found": list(asked.found),
        "relevant": sorted(asked.relevant),
        "best_relevance": asked.best_relevance,
        "verdict": asked.verdict,
        "total_ms": None if answer is None else answer.timings.total_ms,
    }
    if asked.query.answers and asked.kind == "answerable":
        line["token F1"] = round(token_f1(asked.text, asked.query.answers), 3)
        line["token recall"] = round(token_recall(asked.text, asked.query.answers), 3)
    return line


def _draw_figures(path: Path, title: str, measured: Sequence[MeasuredAnswers]) -> None:
    """Draw a bar for each measure that is a share, with a colour for each setup."""
    names = [name for name in measured[0].figures if name != "removed citations"]
    height = 0.8 / len(measured)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.5, 1.4 + 0.3 * len(names) * max(1.2, len(measured))), layout="constrained")
        axes = figure.add_subplot()
        for number, one in enumerate(measured):
            intervals = [
                (place, one.figures[name].interval()) for place, name in enumerate(names) if name in one.figures
            ]
            axes.barh(
                [place + height * number for place, _ in intervals],
                [interval.mean for _, interval in intervals],
                xerr=[
                    [interval.mean - interval.low for _, interval in intervals],
                    [interval.high - interval.mean for _, interval in intervals],
                ],
                height=height * 0.9,
                color=COLOURS[number % len(COLOURS)],
                error_kw={"ecolor": "#333", "capsize": 2},
                label=one.label,
            )
        axes.set_yticks([place + height * (len(measured) - 1) / 2 for place in range(len(names))], names)
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.set_xlabel("mean and 95 % interval")
        axes.set_title(title)
        figure.legend(loc="outside lower center", frameon=False, fontsize=9)
        report.save(figure, path)


def _draw_abstention(
    path: Path, title: str, thresholds: Mapping[str, Sequence[tuple[float, Mapping[str, float]]]]
) -> None:
    """Draw, for each kind of question without an answer, what it costs to recognize them."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 4.2), layout="constrained")
        axes = figure.add_subplot()
        lines = [
            (label, kind, [(shares["answered"], shares[kind]) for _, shares in rows], [value for value, _ in rows])
            for label, rows in thresholds.items()
            if rows
            for kind in rows[0][1]
            if kind != "answered"
        ]
        for number, (label, kind, points, values) in enumerate(lines):
            colour = COLOURS[number % len(COLOURS)]
            name = kind if len(thresholds) == 1 else f"{kind}: {label}"
            axes.plot(*zip(*points, strict=True), marker="o", markersize=3.5, color=colour, label=name)
            for point, value in zip(points, values, strict=True):
                axes.annotate(f"{value:g}", point, (4, 4), textcoords="offset points", fontsize=8, color=GREY)
        axes.set(
            xlim=(0, 1.05), ylim=(0, 1.05), xlabel="answerable questions with an answer", ylabel="others without one"
        )
        axes.set_title(title)
        axes.legend(frameon=False, fontsize=9, loc="lower left")
        report.save(figure, path)
