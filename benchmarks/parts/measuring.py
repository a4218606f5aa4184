"""What the benchmarks share: tables, percentiles, credentials, and services in processes of their own."""

import asyncio
import json
import multiprocessing
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count, cycle, islice
from math import ceil
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import boto3
from rich.table import Table

from local_bedrock.creation import await_active, create_knowledge_base

CREDENTIALS: Final = {
    "AWS_REGION": "eu-west-1",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_ACCESS_KEY_ID": "benchmark",
    "AWS_SECRET_ACCESS_KEY": "benchmark",
}
"""Environment variables for clients of a local service."""


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], caption: str | None = None) -> Table:
    """Return a table whose first column has names and whose others have figures."""
    made = Table(title=title, caption=caption)
    for number, name in enumerate(columns):
        made.add_column(name, justify="right" if number else "left")
    for row in rows:
        made.add_row(*row)
    return made


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that *percent* of the values do not exceed."""
    return sorted(values)[max(0, ceil(len(values) * percent / 100) - 1)]


def passages(data: Path, number: int) -> list[str]:
    """Return texts of a data set in BEIR's form, repeated as needed and numbered so that no two are equal."""
    with (data / "corpus.jsonl").open(encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    texts = [f"{line.get('title', '')}\n{line['text']}" for line in lines if line["text"].strip()]
    return [f"{place}. {text}" for place, text in zip(count(1), islice(cycle(texts), number), strict=False)]


def mixed_documents(files: Path, data: Path, number: int, suffixes: Collection[str]) -> dict[str, bytes]:
    """Return documents by name: each fourth is a file of a folder, the others are texts of a data set."""
    paths = cycle(sorted(path for path in files.rglob("*") if path.suffix in suffixes))
    texts = iter(passages(data, number))
    mixed = {}
    for place in range(number):
        name, content = f"{place:05}.md", next(texts).encode()
        if place % 4 == 3:
            path = next(paths)
            name, content = f"{place:05}-{path.name}", path.read_bytes()
        mixed[name] = content
    return mixed


def new_knowledge_base(url: str) -> tuple[Any, str]:
    """Create a knowledge base in a local Bedrock; return a client of bedrock-agent and the id."""
    agent = boto3.client(
        "bedrock-agent",
        endpoint_url=url,
        region_name=CREDENTIALS["AWS_REGION"],
        aws_access_key_id="local",
        aws_secret_access_key="local",
    )
    base = create_knowledge_base(agent, "benchmark")
    await_active(agent, base)
    return agent, base


def indexed(agent: Any, ids: Mapping[str, str], poll_seconds: float) -> Counter[str]:
    """Wait until no document of a data source is under way; return the number of each status."""
    paginator = agent.get_paginator("list_knowledge_base_documents")
    while True:
        pages = paginator.paginate(**ids)
        statuses = Counter(detail["status"] for page in pages for detail in page["documentDetails"])
        if not {"STARTING", "PENDING", "IN_PROGRESS"}.intersection(statuses):
            return statuses
        time.sleep(poll_seconds)


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process and of its children that have ended. Source: proc(5), stat."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def processes_below(pid: int) -> dict[int, str]:
    """Return the command of a process and of all processes that it started, directly or not."""
    found, left = {}, [pid]
    while left:
        process = left.pop()
        with suppress(OSError):  # it ended meanwhile
            folder = Path(f"/proc/{process}")
            found[process] = (folder / "cmdline").read_text(errors="replace").replace("\0", " ")
            left += [
                int(child) for task in (folder / "task").iterdir() for child in (task / "children").read_text().split()
            ]
    return found


@contextmanager
def local_bedrock(folder: Path | str, *arguments: str) -> Iterator[tuple[str, int]]:
    """Run a local Bedrock in its own process; gives its URL and process id."""
    command = [sys.executable, "-m", "local_bedrock", "--port", "0", "--data-dir", str(folder), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield next(word.rstrip(",") for word in line.split() if word.startswith("http")), process.pid
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()


@contextmanager
def fixed_time_service(
    seconds: float, respond: Callable[[dict[str, Any]], bytes], spread: float = 0.0
) -> Iterator[str]:
    """Run a service in its own process that answers every request after a fixed time; gives its URL.

    Args:
        seconds: The fixed time, or the median of times with a spread.
        spread: Standard deviation of the logarithm of the times; .4 makes the 95th percentile twice the median.
        respond: Returns the body of the response to a request's body. It is a function of a module, and fast.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(seconds, respond, there, spread), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.terminate()
        process.join()


def _serve(seconds: float, respond: Callable[[dict[str, Any]], bytes], connection: Connection, spread: float) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                end = time.perf_counter() + seconds * random.lognormvariate(0.0, spread)
                length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                body = respond(json.loads(await reader.readexactly(length)))
                await asyncio.sleep(max(0.0, end - time.perf_counter()))
                head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
                writer.write(head + body)
                await writer.drain()
        writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        connection.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())
