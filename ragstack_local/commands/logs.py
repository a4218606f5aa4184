"""``ragstack logs``."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from ragstack_local.connection import running
from ragstack_local.connection.connection import Connection
from ragstack_local.connection_options import DeploymentOptions, with_options
from ragstack_local.errors import INTERRUPTED, NOTHING_FOUND
from ragstack_local.show import display

PROCESSES: Final = ("answers", "bedrock", "ministack")
"""Parts of the local stack that log to a file; a function streams answers on AWS."""

LATE_MILLISECONDS: Final = 60_000
"""How far before the newest line new ones are looked for: CloudWatch may take seconds to list one."""

_PLATFORM: Final = ("START RequestId", "END RequestId", "REPORT RequestId", "INIT_START", "EXTENSION")
_SHOWN_APART: Final = frozenset({"level", "message", "timestamp", "exception", "stack_trace"})
_UNSHOWN: Final = frozenset(
    {
        "location",
        "service",
        "name",
        "cold_start",
        "function_arn",
        "function_memory_size",
        "function_name",
        "exception_name",
    }
)

Line = tuple[float, str, str]
"""Time in seconds since 1970 (0 if unknown), name of the source, and text."""


@with_options
def logs(
    stack: DeploymentOptions,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[FUNCTION]",
            help="query, documents, answers, ingestion, ingestion_status, receipts or reconcile; for the local stack"
            " also bedrock and ministack. Default: all.",
            show_default=False,
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print new lines until Ctrl-C.")] = False,
    since: Annotated[
        float,
        typer.Option(
            help="Minutes to look back; a local process that logged in this time is shown from its start.", min=0
        ),
    ] = 30.0,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print lines as they were written, with metrics and Lambda's own lines.")
    ] = False,
) -> None:
    """Print what functions have logged, oldest line first.

    Example:  ragstack logs ingestion

    While you reproduce a problem:  ragstack logs --follow

    On AWS, as it was written:  ragstack logs query --aws --raw
    """
    sources = _sources(stack.connect(), stack.stack_prefix)
    names = sorted({source.name for source in sources})
    if name is not None and name not in names:
        raise typer.BadParameter(f"there is no function {name}: choose {', '.join(names)}", param_hint="FUNCTION")
    chosen = [source for source in sources if name in (None, source.name)]
    start = time.time() - since * 60
    count = 0
    try:
        while True:
            # Only by time: lines of one time stay in the order in which they were written.
            lines = sorted((line for source in chosen for line in source.read(start)), key=itemgetter(0))
            count += sum(_print(*line, raw=raw) for line in lines)
            if not follow:
                break
            time.sleep(2.0)
    except KeyboardInterrupt:
        if follow:
            return
        raise typer.Exit(INTERRUPTED) from None
    if not count:
        display.errors.print(f"Nothing was logged in the last {since:g} minutes: try --since or --raw", style="yellow")
        raise typer.Exit(NOTHING_FOUND)


@dataclass
class _LogGroup:
    """The log group of a function; yields each line once."""

    name: str
    group: str
    client: Any
    _seen: dict[str, int] = field(default_factory=dict)  # the times of the lines, by their ids

    def read(self, since: float) -> Iterator[Line]:
        start = max(int(since * 1000), max(self._seen.values(), default=0) - LATE_MILLISECONDS)
        pages = self.client.get_paginator("filter_log_events").paginate(logGroupName=self.group, startTime=start)
        for event in (event for page in pages for event in page["events"]):
            # MiniStack's functions log lines without an id.
            key = event.get("eventId") or f"{event['timestamp']} {event['message']}"
            if key not in self._seen:
                self._seen[key] = event["timestamp"]
                yield event["timestamp"] / 1000, self.name, event["message"].rstrip()


@dataclass
class _LogFile:
    """The log file of a process of the local stack; yields each line once."""

    name: str
    file: Path
    _offset: int = 0

    def read(self, since: float) -> Iterator[Line]:
        if not self.file.exists() or self.file.stat().st_mtime < since:
            return
        with self.file.open(encoding="utf-8", errors="replace") as lines:
            lines.seek(self._offset)
            for line in lines.read().splitlines():
                yield 0.0, self.name, line
            self._offset = lines.tell()


def _sources(connection: Connection, prefix: str) -> list[_LogGroup | _LogFile]:
    client = connection.client("logs")
    pages = connection.client("lambda").get_paginator("list_functions").paginate()
    found: list[_LogGroup | _LogFile] = []
    for function in (each for page in pages for each in page["Functions"]):
        name = function.get("Environment", {}).get("Variables", {}).get("POWERTOOLS_SERVICE_NAME")
        if name and function["FunctionName"].startswith(prefix):
            found.append(_LogGroup(name, function["LoggingConfig"]["LogGroup"], client))
    if connection.data:
        found += [_LogFile(name, Path(connection.data) / running.LOGS / f"{name}.log") for name in PROCESSES]
    return found


def _print(seconds: float, name: str, text: str, *, raw: bool) -> bool:
    entry = _entry(text)
    if raw or entry is None:
        if not raw and text.startswith(_PLATFORM):
            return False
        display.console.print(Text.assemble((f"{_clock(seconds)} {name} ", "dim"), text), soft_wrap=True)
        return True
    if "_aws" in entry:
        return False
    level = str(entry.get("level", ""))
    details = " ".join(
        f"{key}={value}" for key, value in entry.items() if key not in _SHOWN_APART | _UNSHOWN and value is not None
    )
    style = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}.get(level, "")
    head = Text.assemble((f"{_clock(seconds)} {name} ", "dim"), (level, style), " ")
    display.console.print(Text.assemble(head, str(entry.get("message", "")), (f"  {details}", "dim")), soft_wrap=True)
    if entry.get("exception"):
        display.console.print(Text(str(entry["exception"]), "red"), soft_wrap=True)
    return True


def _entry(text: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _clock(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds):%H:%M:%S}" if seconds else "        "  # noqa: DTZ006 - local time
