"""What was measured, as a table on the terminal and as files that other programs read."""

import csv
import json
import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from evaluation import pictures
from evaluation.bootstrap import CONFIDENCE, SAMPLES, Interval
from evaluation.dataset import DataSet
from evaluation.measuring import Measured
from evaluation.metrics import PRIMARY, TITLES
from ragstack_common import DISTRIBUTION
from ragstack_common.embedding.protocol import cores
from ragstack_local import display

PACKAGES: Final = (DISTRIBUTION, "apsw", "numpy", "onnxruntime", "ir-measures", "bm25s")
CONFIDENCE_HEADING: Final = "95 %"
NO_PACKAGE: Final = "not installed"

_NO_NAME: Final = re.compile(r"[^A-Za-z0-9.]+")


def print_table(data: DataSet, measured: Sequence[Measured]) -> None:
    """Show the table on the terminal."""
    names = headings(measured[0])
    # The mean's own interval is in the files: a terminal may have 80 columns.
    columns = [place for place, name in enumerate(names) if place != names.index(CONFIDENCE_HEADING)]
    title = f"{data.name}, {data.split}: {len(data.queries)} queries, {len(data.documents)} documents"
    shown = [[row[place] for place in columns] for row in rows(measured)]
    display.print_table(title, [names[place] for place in columns], shown)


def markdown(data: DataSet, measured: Sequence[Measured]) -> str:
    """Return the table for a document."""
    lines = [f"{data.name}, {data.split}: {len(data.queries)} queries, {len(data.documents)} documents.", ""]
    names = headings(measured[0])
    lines += [f"| {' | '.join(names)} |", f"|---|{'---:|' * (len(names) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows(measured))]) + "\n"


def headings(of: Measured) -> list[str]:
    """Name the columns."""
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
    """Write results.md, .csv, .json and .svg, queries.csv, and one run in TREC's form for each setup."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.md").write_text(markdown(data, measured), encoding="utf-8")
    (folder / "results.json").write_text(json.dumps(document(data, measured), indent=1), encoding="utf-8")
    _write_csv(folder / "results.csv", headings(measured[0]), rows(measured))
    queries = [
        [one.label, query.id, *(f"{values[place]:.6f}" for values in one.values.values())]
        for one in measured
        for place, query in enumerate(data.queries)
    ]
    _write_csv(folder / "queries.csv", ["setup", "query", *measured[0].values], queries)
    for number, one in enumerate(measured):
        name = _NO_NAME.sub("-", one.label).strip("-")
        (folder / f"{number}-{name}.run").write_text("".join(f"{line}\n" for line in one.run.trec_lines()), "utf-8")
    title = f"{data.name}: {len(data.queries)} queries over {len(data.documents):,} documents"
    pictures.bars(folder / "results.svg", title, PRIMARY, [(one.label, one.interval(PRIMARY)) for one in measured])


def document(data: DataSet, measured: Sequence[Measured]) -> dict[str, Any]:
    """Return everything that was found out, as JSON holds it."""
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
                "options": one.setup.as_json,
                "measures": {name: as_json(one.interval(name)) for name in one.values},
                "difference_to_first": {name: as_json(one.difference(baseline, name)) for name in one.values},
                "milliseconds": {"p50": one.milliseconds(50), "p95": one.milliseconds(95)},
                "by_query": {name: [round(float(v), 6) for v in values] for name, values in one.values.items()},
            }
            for one in measured
        ],
    }


def circumstances() -> Mapping[str, Any]:
    """Say when, on what and with which versions."""
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


def _write_csv(file: Path, names: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as output:
        csv.writer(output, lineterminator="\n").writerows([names, *lines])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return NO_PACKAGE
