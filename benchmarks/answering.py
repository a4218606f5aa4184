"""Measure streams of answers, next to plain ConverseStream on the same model of the same local Bedrock.

The server of answers is the one that ``ragstack up`` starts, without an API Gateway. The model is a small server with
the speed of a hosted model: the first token after 300 ms, then 50 tokens a second. ConverseStream gets the same
passages, so the difference is the search, the prompt, the verification of citations, and one more server.

Run: ``python benchmarks/answering.py [--questions 20] [--streams 50]``. Reach: the first event within 100 ms of the end
of the search, and the first token at most 100 ms after that of ConverseStream plus the search. Everything it starts
ends with it.
"""

import argparse
import asyncio
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import urllib3
from parts.measuring import CREDENTIALS, local_bedrock, table
from rich.console import Console
from rich.progress import track

from local_bedrock.creation import create_knowledge_base
from ragstack_common.search.engines.bedrock import BedrockBackend

REPOSITORY = Path(__file__).parent.parent
HANDBOOK = REPOSITORY / "samples" / "documents"
MODEL = "local.slow"
START_SECONDS = 30
REACH_MS = 100
QUESTIONS = (
    "How many days of leave can I carry over?",
    "How many requests a minute may one API key make?",
    "How long is parental leave?",
    "How long is the warranty?",
)


@dataclass(frozen=True)
class Streamed:
    """Milliseconds since the request; the answers' own figure for the search."""

    first_event: float
    first_token: float
    end: float
    search: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=20, help="questions to each (20)")
    parser.add_argument("--streams", type=int, default=50, help="streams that are open at once (50)")
    chosen = parser.parse_args()
    os.environ |= CREDENTIALS
    console = Console(width=120)
    with ExitStack() as running, tempfile.TemporaryDirectory(prefix="ragstack-benchmark-") as folder:
        llm_url = running.enter_context(slow_model())
        bedrock, _ = running.enter_context(local_bedrock(Path(folder), "--embedding", "hashed", "--llm-url", llm_url))
        env = {"KNOWLEDGE_BASE_ID": indexed(bedrock), **endpoints(bedrock)}
        answers, process_id = running.enter_context(server_of_answers(env | {"ANSWER_MODEL": MODEL}))
        quoting, _ = running.enter_context(server_of_answers(env))
        converse = boto3.client("bedrock-runtime", endpoint_url=bedrock)
        samples: dict[str, list[Streamed]] = {"answer": [], "quotations": [], "ConverseStream": []}
        for number in track(range(-2, chosen.questions), description="ask", console=console):
            question = QUESTIONS[number % len(QUESTIONS)]
            answer, passages = asked(answers, question)
            quoted, _ = asked(quoting, question)
            plain = conversed(converse, question, passages)
            if number >= 0:  # the first two warm up
                for name, streamed in zip(samples, (answer, quoted, plain), strict=True):
                    samples[name].append(streamed)
        memory = open_at_once(answers, process_id, chosen.streams, console)
    report(samples, memory, chosen.streams, console)


def report(samples: dict[str, list[Streamed]], memory: Sequence[float], streams: int, console: Console) -> None:
    def median(name: str, value: str) -> float:
        return statistics.median(getattr(each, value) for each in samples[name])

    labels = {
        "answer": "POST /api/ask/stream, with the model",
        "quotations": "the same, quoting without a model",
        "ConverseStream": "ConverseStream with the same passages",
    }
    rows = []
    for name, label in labels.items():
        after = [each.first_event - each.search for each in samples[name]]
        searched = name != "ConverseStream"
        rows.append(
            (
                label,
                f"{median(name, 'search'):.0f}" if searched else "",
                f"{statistics.median(after):.1f} ({max(after):.1f})" if searched else "",
                f"{median(name, 'first_event'):.0f}" if searched else "",
                f"{median(name, 'first_token'):.0f}",
                f"{median(name, 'end'):.0f}",
                f"{median(name, 'end') / median('ConverseStream', 'end'):.2f}",
            )
        )
    columns = ("", "search", "to event (max)", "first event", "first token", "end", "end / Converse")
    reach = f"Reach: at most {REACH_MS} ms from the end of the search to the first event, at the client"
    console.print(table(f"Median milliseconds of {len(samples['answer'])} questions", columns, rows, reach))
    before, during, after_all = memory
    console.print(
        f"Memory of the server of answers: {before:.0f} MiB, with {streams} open streams {during:.0f} MiB"
        f" ({(during - before) / streams:.2f} MiB each), afterwards {after_all:.0f} MiB"
    )


def asked(url: str, question: str) -> tuple[Streamed, list[str]]:
    """Stream an answer; return its times and its passages."""
    start = time.perf_counter()
    first_event = first_token = None
    passages: list[str] = []
    search = 0.0
    with closing(opened(url, question)) as connection:
        for name, data in events(connection):
            now = (time.perf_counter() - start) * 1000
            if name == "sources":
                first_event, search = now, data["retrieval_ms"]
                passages = [source["content"] for source in data["sources"]]
            elif name == "token":
                first_token = first_token or now
            elif name == "done":
                assert data["answered"], data
                assert first_event is not None
                assert first_token is not None
                return Streamed(first_event, first_token, now, search), passages
            assert name != "error", data
    raise AssertionError("the stream ended early")


def conversed(client: Any, question: str, passages: list[str]) -> Streamed:
    """Stream the model's own answer to a question about passages."""
    start = time.perf_counter()
    first_token = 0.0
    answer = client.converse_stream(
        modelId=MODEL,
        system=[{"text": "Answer from these passages:\n\n" + "\n\n".join(passages)}],
        messages=[{"role": "user", "content": [{"text": question}]}],
        inferenceConfig={"maxTokens": 1024, "temperature": 0},
    )
    for event in answer["stream"]:
        if "contentBlockDelta" in event and not first_token:
            first_token = (time.perf_counter() - start) * 1000
    return Streamed(0.0, first_token, (time.perf_counter() - start) * 1000)


def open_at_once(url: str, process_id: int, streams: int, console: Console) -> tuple[float, float, float]:
    """Return the memory of the server before, during and after many streams, all of which have begun to answer."""
    before = memory_mib(process_id)
    begun = threading.Barrier(streams + 1)
    finished: list[str] = []

    def read() -> None:
        with closing(opened(url, QUESTIONS[0] + " Answer slowly.")) as connection:
            for name, _ in events(connection):
                if name == "token" and not getattr(local, "has_begun", False):
                    local.has_begun = True
                    begun.wait()
                if name == "done":
                    finished.append(name)

    local = threading.local()
    readers = [threading.Thread(target=read) for _ in range(streams)]
    with console.status(f"{streams} streams at once"):
        for reader in readers:
            reader.start()
        begun.wait()
        during = memory_mib(process_id)
        for reader in readers:
            reader.join()
    assert len(finished) == streams, f"{len(finished)} of {streams} streams ended with an answer"
    return before, during, memory_mib(process_id)


def memory_mib(process_id: int) -> float:
    found = subprocess.run(["ps", "-o", "rss=", "-p", str(process_id)], capture_output=True, text=True, check=True)
    return int(found.stdout) / 1024


def opened(url: str, question: str) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
    body = json.dumps({"question": question, "top_k": 3})
    connection.request("POST", "/api/ask/stream", body, {"Content-Type": "application/json"})
    return connection


def events(connection: http.client.HTTPConnection) -> Iterator[tuple[str, Any]]:
    response = connection.getresponse()
    assert response.status == 200, response.read()
    name = ""
    while line := response.readline():
        field, _, value = line.decode().rstrip("\n").partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


@contextmanager
def slow_model() -> Iterator[str]:
    command = [sys.executable, str(Path(__file__).parent / "parts" / "slow_model.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


@contextmanager
def server_of_answers(env: dict[str, str]) -> Iterator[tuple[str, int]]:
    """Run the server as the local stack does; gives its URL and process id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "ragstack_local.stack.answers", str(port)]
    command.append(str(REPOSITORY / "lambdas" / "answers" / "handler.py"))
    settings = {"POWERTOOLS_METRICS_DISABLED": "true", "POWERTOOLS_SERVICE_NAME": "answers", "LOG_LEVEL": "WARNING"}
    with subprocess.Popen(command, cwd=REPOSITORY, env={**os.environ, **settings, **env}) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            urllib3.request("GET", f"{url}/health", retries=urllib3.Retry(START_SECONDS * 2, backoff_factor=0.1))
            yield url, process.pid
        finally:
            process.terminate()


def endpoints(bedrock: str) -> dict[str, str]:
    return {f"AWS_ENDPOINT_URL_{name}": bedrock for name in ("BEDROCK_AGENT_RUNTIME", "BEDROCK_RUNTIME")}


def indexed(bedrock: str) -> str:
    """Index the sample handbook; return the id of its knowledge base."""
    agent = boto3.client("bedrock-agent", endpoint_url=bedrock)
    knowledge_base_id = create_knowledge_base(agent, "benchmark")
    source = agent.create_data_source(
        knowledgeBaseId=knowledge_base_id, name="documents", dataSourceConfiguration={"type": "CUSTOM"}
    )["dataSource"]["dataSourceId"]
    backend = BedrockBackend(knowledge_base_id, source, agent_client=agent)
    files = sorted(HANDBOOK.rglob("*.md"))
    asyncio.run(backend.index([{"id": file.stem, "content": file.read_text(encoding="utf-8")} for file in files]))
    return knowledge_base_id


if __name__ == "__main__":
    main()
