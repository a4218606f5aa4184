"""Measure a cold start of the query function, compared with boto3 alone, each in new processes that take turns.

All end with a client of bedrock-agent-runtime that is ready for its first call. Before that, the function imports its
handler, with routing, validation and structured logs, and builds its service from the environment. The function answers
is measured too, with its web server and its answers that quote.

Run: ``python benchmarks/cold_start.py [--starts 21]``. Reach: at most 1.6 times boto3 in processor time, which other
load on the machine affects less than elapsed time.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from parts.measuring import CREDENTIALS, table
from rich.console import Console
from rich.table import Table

REPOSITORY = Path(__file__).parent.parent
REACH_RATIO = 1.6
LEAST_STARTS = 15

QUERY = """
import os
from lambdas.query.handler import service
from ragstack_common.clients import retrieval_client
from ragstack_common.config import QuerySettings
service(); retrieval_client(QuerySettings.from_env(os.environ).timeout_seconds)
"""
ANSWERS = """
import os
import uvicorn
from lambdas.answers.handler import service
from ragstack_common.clients import retrieval_client
from ragstack_common.config import QuerySettings
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
    # As on AWS: modules are compiled, and pydantic has no plugins. Looking for plugins takes longer here, where two
    # hundred packages are installed, than there with a dozen.
    "PYTHONDONTWRITEBYTECODE": "",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
}

Times = tuple[float, float]
"""Elapsed and processor time in milliseconds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=21, help=f"processes of each kind, {LEAST_STARTS} or more (21)")
    starts = parser.parse_args().starts
    if starts < LEAST_STARTS:
        parser.error(f"--starts must be {LEAST_STARTS} or more: the median of fewer says little")
    samples: dict[str, list[Times]] = {name: [] for name in PROGRAMS}
    for program in PROGRAMS.values():
        started(program)  # fills the disk cache and compiles modules
    for _ in range(starts):
        for name, program in PROGRAMS.items():
            samples[name].append(started(program))
    Console(width=120).print(report(samples, starts))


def started(program: str) -> Times:
    """Run a program in a new process, and time it until it is ready, without the shutdown."""
    start, start_processor = time.perf_counter(), processor_seconds()
    subprocess.run(
        [sys.executable, "-c", f"{program}\nimport os; os._exit(0)"],
        check=True,
        cwd=REPOSITORY,
        env={**os.environ, **ENVIRONMENT},
    )
    return (time.perf_counter() - start) * 1000, (processor_seconds() - start_processor) * 1000


def processor_seconds() -> float:
    """Return the processor time of all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def report(samples: dict[str, list[Times]], starts: int) -> Table:
    base = statistics.median(processor for _, processor in samples["import boto3, client"])
    rows = []
    for name, times in samples.items():
        elapsed = [each for each, _ in times]
        processor = statistics.median(each for _, each in times)
        figures = (statistics.median(elapsed), min(elapsed), max(elapsed), processor)
        rows.append((name, *(f"{figure:.0f}" for figure in figures), f"{processor / base:.2f}"))
    return table(
        f"Start of a process until it is ready, median of {starts}",
        ("", "median ms", "fastest ms", "slowest ms", "processor ms", "/ boto3"),
        rows,
        f"Reach: the query handler at most {REACH_RATIO} times the processor time of boto3",
    )


if __name__ == "__main__":
    main()
