"""What the benchmarks share: tables, percentiles, credentials, and services in processes of their own."""

import asyncio
import json
import multiprocessing
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import ceil
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from rich.table import Table

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
