"""What people see: tables, steps and progress."""

import json
import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import typer
from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from ragstack_common.documents import DocumentStatus
from ragstack_local import explanation
from ragstack_local.awaiting import ENDED, FOUND
from ragstack_local.connection import Connection

PROGRAM: Final = "ragstack"

EXCERPT_WORDS: Final = 36
SHORT_WORD: Final = 3
"""Letters; shorter words say little about a passage."""

RESULT_INDENT: Final = 12
BAR_CELLS: Final = 40

NAME_CELLS: Final = 16
"""Cells that the names in a table keep, however wide the figures beside them are."""

_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters (but not tab and line feed), separators of lines, bidirectional overrides, and lone surrogates."""

_RULE_CHARACTERS: Final = frozenset("|:+=- \t")
_DEEPEST_HEADING: Final = 6
_SEPARATOR: Final = " · "


def printable(text: str) -> str:
    r"""Write control characters as escapes such as \x1b, so that untrusted text can't control the terminal."""
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)


class Console(RichConsole):
    """A terminal that text from documents, keys and servers can't control.

    Every string that is printed goes through :func:`printable`, and none is read as markup: pass ``style``, or a Text.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, emoji=False, markup=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render what rich does, with control characters as escapes."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def print(self, *objects: Any, soft_wrap: bool | None = None, **options: Any) -> None:
        """Print; with *soft_wrap* line breaks within a text are indented, so that they can't pass for another line."""
        shown = [_indented(text) for text in objects] if soft_wrap else objects
        super().print(*shown, soft_wrap=soft_wrap, **options)


def _indented(text: Any) -> Any:
    if isinstance(text, Text):
        return Text("\n    ").join(text.split("\n", allow_blank=True))
    return text.replace("\n", "\n    ") if isinstance(text, str) else text


console = Console()
errors = Console(stderr=True)


def print_json(value: Any) -> None:
    """Print JSON for a program on the standard output, with every control character as an escape of JSON."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    # Outside of strings JSON has no control character but line feeds.
    typer.echo(_CONTROLS.sub(lambda found: json.dumps(found[0])[1:-1], text))


@contextmanager
def step(name: str) -> Iterator[None]:
    """Show a step while it runs, and how long it took."""
    start = time.monotonic()
    with console.status(Text(f"{name} ...")):
        yield
    console.print(Text.assemble(("✓", "green"), f" {name} ", (f"{time.monotonic() - start:.1f} s", "dim")))


class _ShortenedColumn(TextColumn):
    """A text that is cut where the terminal is narrow."""

    def render(self, task: Task) -> Text:
        text = super().render(task)
        text.no_wrap, text.overflow = True, "ellipsis"
        return text


@contextmanager
def progress(*, beside: bool = False) -> Iterator[Progress]:
    """Show bars for long work; *beside* what a program reads, they go to the error stream."""
    shown_on = errors if beside else console

    def whole() -> Column:
        return Column(no_wrap=True)

    columns = (
        SpinnerColumn(table_column=whole()),
        _ShortenedColumn("{task.description}", markup=False, table_column=Column()),
        BarColumn(min(BAR_CELLS, shown_on.width // 4), table_column=whole()),
        MofNCompleteColumn(table_column=whole()),
        TimeElapsedColumn(table_column=whole()),
        _ShortenedColumn("{task.fields[detail]}", style="dim", markup=False, table_column=Column()),
    )
    with Progress(*columns, console=shown_on) as bars:
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
        head = Text.assemble(f"{rank:>3}  {result['score']:.3f}  ", (result["source"] or "(no source)", "bold"))
        attributes = Text(_attributes(result["metadata"]), "dim")
        is_one_line = head.cell_len + 2 + attributes.cell_len <= console.width
        # A source stands on one line, whatever the width: it is there to be copied.
        console.print(Text.assemble(head, "  ", attributes) if is_one_line else head, soft_wrap=True)
        if attributes and not is_one_line:
            console.print(Padding(attributes, (0, 0, 0, RESULT_INDENT)))
        if result.get("context"):
            context = " · ".join(result["context"].splitlines())
            console.print(Padding(Text(context, "italic"), (0, 0, 0, RESULT_INDENT)))
        console.print(Padding(Text(excerpt(result["content"], query)), (0, 0, 0, RESULT_INDENT)))
    slices = ", ".join(f"{s['name']} {s['status']} {s['milliseconds']:.0f} ms" for s in answer["slices"])
    found = counted(len(answer["results"]), "result")
    console.print(f"{found} in {answer['milliseconds']:.0f} ms ({slices})", style="dim")
    if answer.get("corpora"):
        counts = ", ".join(f"{c['name']} {c['results']} of {c['candidates']}" for c in answer["corpora"])
        console.print(f"Corpora, results of candidates: {counts}", style="dim")
    for note in answer.get("notes", ()):
        console.print(note, style="yellow")
    if not answer["complete"]:
        console.print("Incomplete: a slice failed or timed out, and its results are missing.", style="yellow")
        for part in answer["slices"]:
            if part["error"]:
                console.print(f"  {part['name']}: {part['error']}", style="yellow")


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
        line = Text.assemble(corpus["name"], *(Text.assemble("  ", mark) for mark in marks))
        console.print(line, soft_wrap=True)
    _say_if_more(answer)


def print_versions(answer: Mapping[str, Any]) -> None:
    """List versions as they are to be written: a text, or a number."""
    if not answer["versions"]:
        console.print("No searchable document names a version: `ragstack ingest FOLDER --version NAME`")
    counts = answer.get("documents") or [None] * len(answer["versions"])
    for version, documents in zip(answer["versions"], counts, strict=True):
        kind = "" if isinstance(version, str) else f"  ({'boolean' if isinstance(version, bool) else 'number'})"
        count = f"  {counted(documents, 'document')}" if documents else ""
        console.print(Text.assemble(str(version), (kind + count, "dim")), soft_wrap=True)
    _say_if_more(answer)


def print_facets(answer: Mapping[str, Any], key: str | None = None) -> None:
    """Show how many documents have each value of each attribute, or of one, the most frequent value first."""
    console.print(f"{counted(answer['documents'], 'document')} can be searched", style="dim")
    for facet in answer["facets"]:
        console.print(Text(facet["key"], "bold"), soft_wrap=True)
        for value in sorted(facet["values"], key=lambda each: -each["documents"]):
            text = value["value"] if isinstance(value["value"], str) else json.dumps(value["value"])
            console.print(Text.assemble(f"{value['documents']:>7,}  ", text), soft_wrap=True)
    if key is not None and not answer["facets"]:
        console.print(f"None of them has the attribute {key}. `ragstack facets` lists all attributes.", soft_wrap=True)


def _say_if_more(answer: Mapping[str, Any]) -> None:
    if not answer["complete"]:
        console.print("There are more than these.", style="yellow")


def program() -> str:
    """Return what starts this command line in the user's shell: its name where the PATH has it, else its path."""
    own = Path(sys.argv[0])
    if own.name != PROGRAM:
        own = Path(sys.executable).with_name(PROGRAM)
    on_path = shutil.which(PROGRAM)
    # make puts the project's commands on the PATH, for itself alone.
    if on_path and "MAKELEVEL" not in os.environ and Path(on_path).resolve() == own.resolve():
        return PROGRAM
    below = os.path.relpath(own)
    return shlex.quote(str(own.absolute()) if below.startswith(os.pardir) else below)


def print_urls(connection: Connection, data: Path | None = None) -> None:
    """Show where everything is: the services, and where given the folder that keeps the documents and the index."""
    rows: Sequence[tuple[str, str | Path | None]] = (
        ("API", connection.api_url),
        ("OpenAPI", connection.api_url + "/openapi.json"),
        ("Documents", f"s3://{connection.bucket}/"),
        ("Knowledge base", f"{connection.knowledge_base_id}, data source {connection.data_source_id}"),
        ("AWS endpoint", connection.aws_endpoint),
        ("Bedrock endpoint", connection.bedrock_endpoint),
        ("Data", data),
    )
    for name, value in rows:
        if value:
            # Whole, whatever the width: it is there to be copied.
            console.print(Text.assemble((f"{name:16}", "dim"), f" {value}"), soft_wrap=True)


def print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Show figures in a table that fits the terminal, without breaking a word; where none fits, row by row.

    Args:
        title: Printed above it.
        headings: The first one is of the rows' names.
        rows: A name, then a text for each other heading.
    """
    console.print(title, style="italic")
    columns = list(zip(headings, *rows, strict=True))
    for gap in (2, 1):
        if widths := _widths(columns, console.width - gap * (len(columns) - 1)):
            break
    else:
        longest = max(map(len, headings))
        for name, *values in rows:
            console.print(name, style="bold")
            for heading, value in zip(headings[1:], values, strict=True):
                console.print(f"  {heading:{longest}}  {value or '-'}")
        return
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    for width, (heading, *texts) in zip(widths, columns, strict=True):
        is_figure = all(text[:1] in "+-0123456789" for text in texts)
        table.add_column(heading, width=width, justify="right" if is_figure else "left")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _widths(columns: Sequence[Sequence[str]], cells: int) -> list[int] | None:
    """Fold the texts of columns as little as they fit; None where they do not in two lines, or names in NAME_CELLS."""
    whole = [max(map(len, column)) for column in columns]
    least = [max(map(_width_of_two_lines, column)) for column in columns]
    least[0] = max(max(map(len, text.split() or [""])) for text in columns[0])
    widths = [max(least[0], min(whole[0], NAME_CELLS)), *whole[1:]]
    # Names get what the figures leave, and figures are folded from the widest on.
    for place in sorted(range(1, len(columns)), key=lambda place: -whole[place]):
        widths[place] = max(least[place], widths[place] - max(0, sum(widths) - cells))
    left = cells - sum(widths)
    widths[0] = min(whole[0], widths[0] + left) if left >= 0 else widths[0]
    return widths if left >= 0 else None


def _width_of_two_lines(text: str) -> int:
    words = text.split()
    cuts = range(1, len(words) + 1)
    return min((max(len(" ".join(words[:cut])), len(" ".join(words[cut:]))) for cut in cuts), default=0)


def excerpt(text: str, query: str) -> str:
    """Cut out the passage, of whole words, that holds most of the query's words, without the marks of Markdown."""
    words = _without_marks(text).split()
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


def _without_marks(text: str) -> str:
    """Take rules, the borders of tables and the marks of headings out of Markdown; a dot parts cells and headings."""
    lines = []
    for row in map(str.strip, text.splitlines()):
        words = row.lstrip("#")
        if _RULE_CHARACTERS.issuperset(row) and ("--" in row or "==" in row):
            continue
        if row.startswith("|") or row.endswith("|"):
            cells = [cell for cell in map(str.strip, row.split("|")) if cell]
            lines.append("".join(cell + _SEPARATOR for cell in cells))
        elif words[:1].isspace() and 0 < len(row) - len(words) <= _DEEPEST_HEADING:
            lines.append(words.strip() + _SEPARATOR)
        else:
            lines.append(row)
    return "\n".join(lines).strip(_SEPARATOR + "\n")


def _bare(word: str) -> str:
    return word.casefold().strip(".,;:!?()[]{}\"'`*|#")


def _attributes(metadata: Mapping[str, Any]) -> str:
    shown = [f"{name}={metadata[name]}" for name in ("corpus", "version", "topic") if name in metadata]
    return " ".join(shown)
