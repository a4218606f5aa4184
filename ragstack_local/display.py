"""What people see: tables, steps and progress."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from ragstack_common.documents import DocumentStatus
from ragstack_local.connection import Connection
from ragstack_local.uploads import SEARCHABLE

EXCERPT_CHARACTERS: Final = 180

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


@contextmanager
def step(name: str) -> Iterator[None]:
    """Show a step while it runs, and how long it took."""
    start = time.monotonic()
    with console.status(f"{name} ..."):
        yield
    console.print(f"[green]✓[/] {name} [dim]{time.monotonic() - start:.1f} s[/]")


@contextmanager
def progress() -> Iterator[Progress]:
    """Show bars for long work."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[detail]}[/]"),
    )
    with Progress(*columns, console=console) as bars:
        yield bars


def summary(statuses: Mapping[str, DocumentStatus]) -> str:
    """Count documents by status, in one line."""
    counts: dict[str, int] = {}
    for status in statuses.values():
        counts[str(status)] = counts.get(str(status), 0) + 1
    return ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))


def print_unsearchable(statuses: Mapping[str, DocumentStatus]) -> None:
    """List the documents that cannot be found, and why."""
    for uri, status in statuses.items():
        if status not in SEARCHABLE:
            console.print(f"[red]{status}[/] {escape(uri)}: {escape(status.reason or 'no reason given')}")


def print_results(answer: Mapping[str, Any]) -> None:
    """Show ranked results and how the search went."""
    table = Table(box=None, pad_edge=False, show_header=True, header_style="dim")
    table.add_column("#", justify="right")
    table.add_column("score", justify="right")
    table.add_column("source and text", overflow="fold")
    for rank, result in enumerate(answer["results"], start=1):
        text = " ".join(result["content"].split())
        excerpt = text[:EXCERPT_CHARACTERS] + ("…" if len(text) > EXCERPT_CHARACTERS else "")
        table.add_row(str(rank), f"{result['score']:.3f}", f"[bold]{escape(_source(result))}[/]\n{escape(excerpt)}")
    console.print(table)
    slices = ", ".join(f"{s['name']} {s['status']} {s['milliseconds']:.0f} ms" for s in answer["slices"])
    console.print(f"[dim]{len(answer['results'])} results in {answer['milliseconds']:.0f} ms ({slices})[/]")
    if not answer["complete"]:
        console.print("[yellow]Incomplete: a slice failed or came too late, and its results are missing.[/]")
        for part in answer["slices"]:
            if part["error"]:
                console.print(f"[yellow]  {part['name']}: {escape(part['error'])}[/]")


def print_urls(connection: Connection) -> None:
    """Show where everything is."""
    rows: Sequence[tuple[str, str | None]] = (
        ("API", connection.api_url),
        ("OpenAPI", connection.api_url + "/openapi.json"),
        ("Documents", f"s3://{connection.bucket}/"),
        ("Knowledge base", f"{connection.knowledge_base_id}, data source {connection.data_source_id}"),
        ("AWS endpoint", connection.aws_endpoint),
        ("Bedrock endpoint", connection.bedrock_endpoint),
    )
    for name, value in rows:
        if value:
            # Whole, whatever the width: it is there to be copied.
            console.print(f"[dim]{name:16}[/] {escape(value)}", soft_wrap=True)


def _source(result: Mapping[str, Any]) -> str:
    attributes = result["metadata"]
    shown = [f"{name}={attributes[name]}" for name in ("corpus", "version", "topic") if name in attributes]
    source = result["source"] or "(no source)"
    return f"{source}  ({', '.join(shown)})" if shown else source
