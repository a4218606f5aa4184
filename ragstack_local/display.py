"""What people see: tables, steps and progress."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from ragstack_common.documents import DocumentStatus
from ragstack_local import explanation
from ragstack_local.awaiting import ENDED, FOUND
from ragstack_local.connection import Connection

EXCERPT_WORDS: Final = 36
SHORT_WORD: Final = 3
"""Letters; shorter words say little about a passage."""

RESULT_INDENT: Final = 12

console = Console(highlight=False, emoji=False)
errors = Console(stderr=True, highlight=False, emoji=False)


@contextmanager
def step(name: str) -> Iterator[None]:
    """Show a step while it runs, and how long it took."""
    start = time.monotonic()
    with console.status(f"{name} ..."):
        yield
    console.print(f"[green]✓[/] {name} [dim]{time.monotonic() - start:.1f} s[/]")


@contextmanager
def progress(*, beside: bool = False) -> Iterator[Progress]:
    """Show bars for long work; *beside* what a program reads, they go to the error stream."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[detail]}[/]"),
    )
    with Progress(*columns, console=errors if beside else console) as bars:
        yield bars


def summary(statuses: Mapping[str, DocumentStatus]) -> str:
    """Count documents by status, in one line."""
    counts: dict[str, int] = {}
    for status in statuses.values():
        counts[str(status)] = counts.get(str(status), 0) + 1
    return ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))


def counted(count: int, what: str) -> str:
    """Write a number of things."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def interrupted(statuses: Mapping[str, DocumentStatus]) -> str:
    """Say what goes on without us."""
    under_way = sum(status not in ENDED for status in statuses.values())
    if not under_way:
        return "Interrupted."
    return f"Interrupted. {counted(under_way, 'document')} on the way without us: `ragstack status` shows how it goes"


def print_unsearchable(statuses: Mapping[str, DocumentStatus]) -> None:
    """List the documents that cannot be found, and why."""
    for uri, status in statuses.items():
        if status not in FOUND:
            reason = status.reason or ("no reason given" if status in ENDED else "on its way")
            console.print(Text.assemble((status, "red"), f" {uri}: {reason}"), soft_wrap=True)


def print_results(answer: Mapping[str, Any], query: str) -> None:
    """Show ranked results, each with the passage that has most of the query's words, and how the search went."""
    for rank, result in enumerate(answer["results"], start=1):
        source = (result["source"] or "(no source)", "bold")
        head = Text.assemble(
            f"{rank:>3}  {result['score']:.3f}  ", source, "  ", (_attributes(result["metadata"]), "dim")
        )
        # A source stands on one line, whatever the width: it is there to be copied.
        console.print(head, soft_wrap=True)
        if result.get("context"):
            context = " · ".join(result["context"].splitlines())
            console.print(Padding(Text(context, "italic"), (0, 0, 0, RESULT_INDENT)))
        console.print(Padding(Text(excerpt(result["content"], query)), (0, 0, 0, RESULT_INDENT)))
    slices = ", ".join(f"{s['name']} {s['status']} {s['milliseconds']:.0f} ms" for s in answer["slices"])
    console.print(f"[dim]{counted(len(answer['results']), 'result')} in {answer['milliseconds']:.0f} ms ({slices})[/]")
    if answer.get("corpora"):
        counts = ", ".join(f"{c['name']} {c['results']} of {c['candidates']}" for c in answer["corpora"])
        console.print(f"[dim]Corpora, results of candidates: {escape(counts)}[/]")
    for note in answer.get("notes", ()):
        console.print(f"[yellow]{escape(note)}[/]")
    if not answer["complete"]:
        console.print("[yellow]Incomplete: a slice failed or came too late, and its results are missing.[/]")
        for part in answer["slices"]:
            if part["error"]:
                console.print(f"[yellow]  {part['name']}: {escape(part['error'])}[/]")


def print_explanation(answer: Mapping[str, Any]) -> None:
    """Show how the results came to their places."""
    if answer["results"]:
        console.print()
        console.print(explanation.table(answer["results"]))


def print_corpora(answer: Mapping[str, Any]) -> None:
    """List corpora, and what is known of each."""
    if not answer["corpora"]:
        console.print("No searchable document names a corpus: `ragstack ingest FOLDER --corpus NAME`")
    for corpus in answer["corpora"]:
        marks = [("configured", "green")] if corpus["configured"] else []
        marks += [] if corpus["searchable"] else [("no document of it was found", "yellow")]
        if corpus["searchable"] and corpus.get("documents"):
            marks.append((counted(corpus["documents"], "document"), "dim"))
        console.print(Text.assemble(corpus["name"], *(Text.assemble("  ", mark) for mark in marks)))
    _say_if_more(answer)


def print_versions(answer: Mapping[str, Any]) -> None:
    """List versions as they are to be written: a text, or a number."""
    if not answer["versions"]:
        console.print("No searchable document names a version: `ragstack ingest FOLDER --version NAME`")
    counts = answer.get("documents") or [None] * len(answer["versions"])
    for version, documents in zip(answer["versions"], counts, strict=True):
        kind = "" if isinstance(version, str) else f"  ({'boolean' if isinstance(version, bool) else 'number'})"
        count = f"  {counted(documents, 'document')}" if documents else ""
        console.print(Text.assemble(str(version), (kind + count, "dim")))
    _say_if_more(answer)


def print_facets(answer: Mapping[str, Any]) -> None:
    """Show how many documents have each value of each attribute, the most frequent value first."""
    console.print(f"[dim]{counted(answer['documents'], 'document')} can be searched[/]")
    for facet in answer["facets"]:
        console.print(Text(facet["key"], "bold"))
        for value in sorted(facet["values"], key=lambda each: -each["documents"]):
            text = value["value"] if isinstance(value["value"], str) else json.dumps(value["value"])
            console.print(Text.assemble(f"{value['documents']:>7,}  ", text), soft_wrap=True)


def _say_if_more(answer: Mapping[str, Any]) -> None:
    if not answer["complete"]:
        console.print("[yellow]There are more than these.[/]")


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


def excerpt(text: str, query: str) -> str:
    """Cut out the passage, of whole words, that holds most of the query's words."""
    words = text.split()
    wanted = {_bare(word) for word in query.split()}
    telling = [len(_bare(word)) > SHORT_WORD and _bare(word) in wanted for word in words]
    before = EXCERPT_WORDS // 4
    scored = EXCERPT_WORDS - before
    # Of equally good passages the last, which begins with a word that was asked for; then some words before it.
    best = (
        max(range(len(words)), key=lambda first: (sum(telling[first : first + scored]), first)) if any(telling) else 0
    )
    start = max(0, best - before)
    cut = " ".join(words[start : start + EXCERPT_WORDS])
    return ("… " if start else "") + cut + (" …" if start + EXCERPT_WORDS < len(words) else "")


def _bare(word: str) -> str:
    return word.casefold().strip(".,;:!?()[]{}\"'`*|#")


def _attributes(metadata: Mapping[str, Any]) -> str:
    shown = [f"{name}={metadata[name]}" for name in ("corpus", "version", "topic") if name in metadata]
    return " ".join(shown)
