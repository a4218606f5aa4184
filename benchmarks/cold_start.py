"""What a cold start of the query function costs, beside boto3 alone, each in fresh processes that take turns.

Both ends are the same: a client of bedrock-agent-runtime that is ready for its first call. On the way, the function
imports its handler, with routing, validation and structured logs, and builds its service from the environment.

Run: ``python benchmarks/cold_start.py [--starts 21]``. Reach: at most 1.6 times boto3, in time of the processor, which
unlike the wall's does not count what else the machine does.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

REPOSITORY = Path(__file__).parent.parent
REACH_RATIO = 1.6
LEAST_STARTS = 15

PROGRAMS = {
    "python alone": "",
    "import boto3, client": "import boto3; boto3.client('bedrock-agent-runtime')",
    "query handler, service, client": (
        "import os\nfrom lambdas.query.handler import service\n"
        "from ragstack_common.clients import retrieval_client\n"
        "from ragstack_common.config import QuerySettings\n"
        "service(); retrieval_client(QuerySettings.from_env(os.environ).timeout_seconds)"
    ),
}
ENVIRONMENT = {
    "AWS_REGION": "eu-west-1",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_ACCESS_KEY_ID": "benchmark",
    "AWS_SECRET_ACCESS_KEY": "benchmark",
    "KNOWLEDGE_BASE_ID": "KBCOLDSTRT",
    "POWERTOOLS_METRICS_NAMESPACE": "RAGStack",
    "POWERTOOLS_SERVICE_NAME": "query",
    # As on AWS: modules are compiled, and no package of the layer is a plugin of pydantic. To find that out it would
    # read here what two hundred packages say of themselves, and there what a dozen do.
    "PYTHONDONTWRITEBYTECODE": "",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
}

Times = tuple[float, float]
"""Milliseconds of the wall's clock, and of the processor."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=21, help=f"processes of each kind, {LEAST_STARTS} or more (21)")
    starts = parser.parse_args().starts
    if starts < LEAST_STARTS:
        parser.error(f"--starts must be {LEAST_STARTS} or more: the median of fewer says little")
    samples: dict[str, list[Times]] = {name: [] for name in PROGRAMS}
    for program in PROGRAMS.values():
        started(program)  # fills the caches of the disk and of compiled modules
    for _ in range(starts):
        for name, program in PROGRAMS.items():
            samples[name].append(started(program))
    Console(width=120).print(table(samples, starts))


def started(program: str) -> Times:
    """Run a program in a fresh process, and time it from its start until it is ready: the clearing up is left out."""
    start, start_processor = time.perf_counter(), processor_seconds()
    subprocess.run(
        [sys.executable, "-c", f"{program}\nimport os; os._exit(0)"],
        check=True,
        cwd=REPOSITORY,
        env={**os.environ, **ENVIRONMENT},
    )
    return (time.perf_counter() - start) * 1000, (processor_seconds() - start_processor) * 1000


def processor_seconds() -> float:
    """Tell what all processes that have ended took together."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def table(samples: dict[str, list[Times]], starts: int) -> Table:
    base = statistics.median(processor for _, processor in samples["import boto3, client"])
    result = Table(title=f"Start of a process until it is ready, median of {starts}")
    result.caption = f"Reach: the query handler at most {REACH_RATIO} times the processor's time of boto3"
    result.add_column("")
    for name in ("median ms", "fastest ms", "slowest ms", "processor ms", "/ boto3"):
        result.add_column(name, justify="right")
    for name, times in samples.items():
        wall = [each for each, _ in times]
        processor = statistics.median(each for _, each in times)
        figures = (statistics.median(wall), min(wall), max(wall), processor)
        result.add_row(name, *(f"{figure:.0f}" for figure in figures), f"{processor / base:.2f}")
    return result


if __name__ == "__main__":
    main()
