"""Measure a cold start of the query function, with and without bytecode, each in new processes that take turns.

The processes import the layers of the local stack and nothing else, as functions do. A deployment has bytecode if its
layers were compiled, which `cdk synth` says if it cannot do it. Python's own modules are compiled in both cases.

All end with a client of bedrock-agent-runtime that is ready for its first call. Before that, the function imports its
handler, with routing, validation and structured logs, and builds its service from the environment. The function answers
is measured too, with its web server and its answers that quote.

Run: ``python benchmarks/cold_start.py [--starts 21]``. Reach: at most 1.6 times boto3 in processor time,
which other load on the machine affects less than elapsed time.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from parts.measuring import CREDENTIALS, table
from rich.console import Console
from rich.table import Table

from infra.layers import TRACING, common_layer, dependencies_layer, extra_layer, function_code
from infra.target import Target

REACH_RATIO = 1.6
MIN_STARTS = 15

QUERY = """
import os
from lambdas.query.handler import service
from ragstack_common.core.clients import retrieval_client
from ragstack_common.settings.search import QuerySettings
service(); retrieval_client(QuerySettings.from_env(os.environ).timeout_seconds)
"""
ANSWERS = """
import os
import uvicorn
from lambdas.answers.handler import service
from ragstack_common.core.clients import retrieval_client
from ragstack_common.settings.search import QuerySettings
service(); retrieval_client(QuerySettings.from_env(os.environ).timeout_seconds)
"""
PROGRAMS = {
    "python alone": "",
    "import boto3, client": "import boto3; boto3.client('bedrock-agent-runtime')",
    "query handler, service, client": QUERY,
    "the same, exporting spans": f"import os; os.environ['OTEL_EXPORTER_OTLP_ENDPOINT'] = 'http://127.0.0.1:9'\n{QUERY}",
    "answers server, service, client": ANSWERS,
}
ENVIRONMENT = {
    **CREDENTIALS,
    "KNOWLEDGE_BASE_ID": "KBCOLDSTRT",
    "POWERTOOLS_METRICS_NAMESPACE": "RAGStack",
    "POWERTOOLS_SERVICE_NAME": "query",
    # A layer is read-only.
    "PYTHONDONTWRITEBYTECODE": "1",
}

Times = tuple[float, float]
"""Elapsed and processor time in milliseconds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=21, help=f"processes of each kind, {MIN_STARTS} or more (21)")
    starts = parser.parse_args().starts
    if starts < MIN_STARTS:
        parser.error(f"--starts must be {MIN_STARTS} or more: the median of fewer says little")
    with tempfile.TemporaryDirectory() as temporary:
        kinds = {"bytecode": unpacked(Path(temporary, "compiled")), "no bytecode": Path(temporary, "sources")}
        shutil.copytree(kinds["bytecode"], kinds["no bytecode"], ignore=shutil.ignore_patterns("__pycache__"))
        runs = {(name, kind): (PROGRAMS[name], folder) for name in PROGRAMS for kind, folder in kinds.items()}
        samples: dict[tuple[str, str], list[Times]] = {run: [] for run in runs}
        for run in runs.values():
            started(*run)  # fills the disk cache
        for _ in range(starts):
            for key, run in runs.items():
                samples[key].append(started(*run))
    Console(width=120).print(report(samples, starts))


def unpacked(folder: Path) -> Path:
    """Put together what a function imports: its layers, `ragstack_common` and the functions' own code."""
    python = folder / "python"
    layers = [dependencies_layer(Target.LOCAL), *(extra_layer(name, Target.LOCAL) for name in ("answers", TRACING))]
    for layer in layers:
        with zipfile.ZipFile(layer) as archive:
            archive.extractall(folder)
    shutil.copytree(common_layer(Target.LOCAL), folder, dirs_exist_ok=True)
    shutil.copytree(function_code("query", Target.LOCAL).parent, python / "lambdas")
    return python


def started(program: str, folder: Path) -> Times:
    """Run a program in a new process, and time it until it is ready, without the shutdown."""
    start, start_processor = time.perf_counter(), processor_seconds()
    subprocess.run(
        [sys.executable, "-S", "-c", f"{program}\nimport os; os._exit(0)"],
        check=True,
        cwd=folder,
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": str(folder)},
    )
    return (time.perf_counter() - start) * 1000, (processor_seconds() - start_processor) * 1000


def processor_seconds() -> float:
    """Return the processor time of all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def report(samples: dict[tuple[str, str], list[Times]], starts: int) -> Table:
    rows = []
    for (name, kind), times in samples.items():
        base = statistics.median(processor for _, processor in samples["import boto3, client", kind])
        elapsed = [each for each, _ in times]
        processor = statistics.median(each for _, each in times)
        figures = (statistics.median(elapsed), min(elapsed), max(elapsed), processor)
        rows.append((name, kind, *(f"{figure:.0f}" for figure in figures), f"{processor / base:.2f}"))
    return table(
        f"Start of a process until it is ready, median of {starts}",
        ("", "compiled", "median ms", "fastest ms", "slowest ms", "processor ms", "/ boto3"),
        rows,
        f"Reach: the query handler at most {REACH_RATIO} times the processor time of boto3",
    )


if __name__ == "__main__":
    main()
