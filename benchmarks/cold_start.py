"""Measure a cold start of the functions, with and without bytecode, and their first requests.

Each start is a new process, and all kinds take turns. The processes import the layers of the local stack and nothing
else, as functions do. A deployment has bytecode if its layers were compiled, which `cdk synth` says if it cannot do it.
Python's own modules are compiled in both cases.

The starts of query and answers end with a client of bedrock-agent-runtime that is ready for its first call, as that of
boto3 alone does: the function has imported its handler, with routing, validation and structured logs, and built its
service from the environment. Other functions have imported their handlers.

The requests are events of API Gateway: searches by words and vectors of 200 documents in a local Bedrock, without TLS,
and a list of documents from an empty registry. Their function is deployed, so its start prepares the first request.
On AWS, each connection also loads the certificates of the authorities that botocore trusts; this is the last table.

Run: ``python benchmarks/cold_start.py [--starts 21]``. Reach: at most 1.6 times boto3 in processor time,
which other load on the machine affects less than elapsed time, and a first search at most twice a warm one.
"""

import argparse
import json
import os
import resource
import shutil
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import botocore
from local_server import Corpus
from parts.measuring import CREDENTIALS, fixed_time_service, local_bedrock, table
from rich.console import Console
from rich.table import Table

from infra.layers import TRACING, common_layer, dependencies_layer, extra_layer, function_code
from infra.target import Target
from local_bedrock.creation import create_knowledge_base, create_vector_index
from ragstack_common.ingestion.requests import text_document

REACH_RATIO = 1.6
MIN_STARTS = 15

DOCUMENTS = 200
DOCUMENTS_IN_CALL = 10
WARM_REQUESTS = 12

READY = """
import os
from ragstack_common.core.clients import retrieval_client
from ragstack_common.settings.search import QuerySettings
service(); retrieval_client(QuerySettings.from_env(os.environ).timeout_seconds)
"""
QUERY = f"from lambdas.query.handler import service\n{READY}"
PROGRAMS = {
    "python alone": "",
    "import boto3, client": "import boto3; boto3.client('bedrock-agent-runtime')",
    "query handler, service, client": QUERY,
    "the same, exporting spans": f"import os; os.environ['OTEL_EXPORTER_OTLP_ENDPOINT'] = 'http://127.0.0.1:9'\n{QUERY}",
    "answers server, service, client": f"import uvicorn\nfrom lambdas.answers.handler import service\n{READY}",
    "documents handler": "import lambdas.documents.handler",
    "authorizer handler": "import lambdas.authorizer.handler",
    "ingestion handler": "import lambdas.ingestion.handler",
    "ingestion_status handler": "import lambdas.ingestion_status.handler",
}
REQUESTS = {"query": ("POST", "/api/retrieve"), "documents": ("GET", "/api/documents")}

REQUEST = """
import json, os, sys, time
from contextlib import redirect_stdout
from importlib import import_module
from types import SimpleNamespace

function, method, path, *questions = json.loads(sys.argv[1])
context = SimpleNamespace(function_name="f", memory_limit_in_mb=1, invoked_function_arn="arn", aws_request_id="r")
identity = {"userArn": "arn:aws:iam::123456789012:role/callers", "sourceIp": "127.0.0.1"}

def timed(work):
    start, processor = time.perf_counter(), time.process_time()
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        done = work()
    return ((time.perf_counter() - start) * 1000, (time.process_time() - processor) * 1000), done

def request(question):
    body = json.dumps({"query": question}) if method == "POST" else None
    event = {"httpMethod": method, "path": path, "resource": path, "body": body, "isBase64Encoded": False,
             "headers": {"Content-Type": "application/json"}, "requestContext": {"identity": identity}}
    times, answer = timed(lambda: module.handler(event, context))
    assert answer["statusCode"] == 200, answer
    return times

times, module = timed(lambda: import_module(f"lambdas.{function}.handler"))
print(json.dumps([times, *map(request, questions)]))
"""
ENVIRONMENT = {
    **CREDENTIALS,
    "KNOWLEDGE_BASE_ID": "KBCOLDSTRT",
    "POWERTOOLS_METRICS_NAMESPACE": "RAGStack",
    "POWERTOOLS_SERVICE_NAME": "query",
    # A layer is read-only.
    "PYTHONDONTWRITEBYTECODE": "1",
    "VECTOR_STORE": "S3_VECTORS",
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
        requests = measured_requests(kinds["bytecode"], starts)
        files = (Path(botocore.__file__).with_name("cacert.pem"), kinds["bytecode"] / "botocore" / "cacert.pem")
        certificates = certificate_report(dict(zip(("botocore", "layer of functions"), files, strict=True)))
    console = Console(width=120)
    console.print(report(samples, starts))
    console.print(request_report(requests, starts))
    console.print(certificates)


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


@contextmanager
def knowledge_base() -> Iterator[tuple[dict[str, str], list[str]]]:
    """Run a local Bedrock with an index of S3 Vectors; gives the environment of functions that search it, and queries.

    DynamoDB is a service that finds nothing.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        local_bedrock(folder, "--embedding", "hashed") as (url, _),
        fixed_time_service(0, nothing) as dynamodb,
    ):
        session = boto3.Session("benchmark", "benchmark", region_name=CREDENTIALS["AWS_REGION"])
        agent, vectors = (session.client(name, endpoint_url=url) for name in ("bedrock-agent", "s3vectors"))
        index = create_vector_index(vectors, "benchmark")
        base = create_knowledge_base(agent, "benchmark", index)
        source = agent.create_data_source(
            knowledgeBaseId=base, name="documents", dataSourceConfiguration={"type": "CUSTOM"}
        )["dataSource"]["dataSourceId"]
        ids, corpus = {"knowledgeBaseId": base, "dataSourceId": source}, Corpus()
        for first in range(0, DOCUMENTS, DOCUMENTS_IN_CALL):
            numbers = range(first, first + DOCUMENTS_IN_CALL)
            batch: Any = [text_document(str(number), corpus.text(300), {}) for number in numbers]
            details = agent.ingest_knowledge_base_documents(**ids, documents=batch)["documentDetails"]
        last = [detail["identifier"] for detail in details]  # documents are indexed in order
        while any(
            detail["status"] != "INDEXED"
            for detail in agent.get_knowledge_base_documents(**ids, documentIdentifiers=last)["documentDetails"]
        ):
            time.sleep(0.05)
        endpoints = {"BEDROCK_AGENT_RUNTIME": url, "S3VECTORS": url, "DYNAMODB": dynamodb}
        queues = ("INGESTION", "STATUS", "CONVERSION", "LARGE_CONVERSION", "RECEIPTS", "JOBS", "DEAD_LETTER")
        yield (
            {
                **{f"AWS_ENDPOINT_URL_{name}": endpoint for name, endpoint in endpoints.items()},
                **{f"{name}_QUEUE_URL": f"https://sqs.eu-west-1.amazonaws.com/1/{name}" for name in queues},
                "API_AUTH": "iam",
                "AWS_LAMBDA_FUNCTION_NAME": "benchmark",
                "DATA_SOURCE_ID": source,
                "DOCUMENTS_BUCKET": "documents",
                "KNOWLEDGE_BASE_ID": base,
                "REGISTRY_TABLE": "registry",
                "VECTOR_INDEX_ARN": index,
            },
            [corpus.query() for _ in range(1 + WARM_REQUESTS)],
        )


def nothing(_: dict[str, Any]) -> bytes:
    """Answer every query and scan of DynamoDB: the table is empty."""
    return b'{"Items": [], "Count": 0, "ScannedCount": 0}'


def measured_requests(folder: Path, starts: int) -> dict[str, list[list[Times]]]:
    """Return, for each function and each of its starts, the times of the start and of each request."""
    samples: dict[str, list[list[Times]]] = {name: [] for name in REQUESTS}
    with knowledge_base() as (environment, questions):
        for _ in range(starts):
            for name, route in REQUESTS.items():
                samples[name].append(requested(name, route, questions, folder, environment))
    return samples


def requested(
    name: str, route: tuple[str, str], questions: list[str], folder: Path, environment: dict[str, str]
) -> list[Times]:
    """Start a function in a new process, which sends itself requests; return the times of the start and of each."""
    finished = subprocess.run(
        [sys.executable, "-S", "-c", REQUEST, json.dumps([name, *route, *questions])],
        check=True,
        cwd=folder,
        env={**os.environ, **ENVIRONMENT, **environment, "PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE,
    )
    return [(elapsed, processor) for elapsed, processor in json.loads(finished.stdout)]


def processor_seconds() -> float:
    """Return the processor time of all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def request_report(samples: dict[str, list[list[Times]]], starts: int) -> Table:
    """Write the medians of the starts, and of their first and later requests."""
    rows = []
    for name, runs in samples.items():
        parts = {
            "start": [run[0] for run in runs],
            "first request": [run[1] for run in runs],
            # The second one is not warm yet.
            "warm request": [times for run in runs for times in run[3:]],
        }
        medians = {
            part: [statistics.median(each) for each in zip(*times, strict=True)] for part, times in parts.items()
        }
        warm = medians["warm request"][1]
        rows += [
            (name, part, f"{elapsed:.0f}", f"{processor:.1f}", f"{processor / warm:.1f}")
            for part, (elapsed, processor) in medians.items()
        ]
    return table(
        f"Requests of a deployed function, median of {starts} starts",
        ("function", "", "elapsed ms", "processor ms", "/ warm"),
        rows,
        "Reach: a first search at most twice the processor time of a warm one",
    )


def certificate_report(files: dict[str, Path]) -> Table:
    """Measure what each connection of a client does first: botocore has urllib3 load the file again for each."""
    rows = []
    for name, file in files.items():
        times = []
        for _ in range(MIN_STARTS):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            start = time.process_time()
            context.load_verify_locations(file)
            times.append((time.process_time() - start) * 1000)
        rows.append((name, str(len(context.get_ca_certs())), f"{statistics.median(times):.1f}"))
    title = f"Certificates loaded for each connection, median of {MIN_STARTS}"
    return table(title, ("file of", "authorities", "processor ms"), rows, ssl.OPENSSL_VERSION)


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
