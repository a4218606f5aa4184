"""Terminal output: safe text, steps, progress, tables, and the status of documents."""

import json
import os
import re
import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import typer
from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
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

from ragstack_common.core.uris import s3_uri
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.settings.ingestion import DOLLARS_PER_1000_PAGES, OFF, TEXTRACT
from ragstack_common.settings.names import DEFAULT_EMBEDDING, MANAGED
from ragstack_local.connection.connection import Connection
from ragstack_local.connection.following import ENDED, FOUND

PROGRAM: Final = "ragstack"

INDENT: Final = 7

_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters (but not tab and line feed), separators of lines, bidirectional overrides, and lone surrogates."""


def printable(text: str) -> str:
    r"""Write control characters as escapes such as \x1b, so that untrusted text can't control the terminal."""
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)


class Console(RichConsole):
    """A terminal that text from documents, keys and servers can't control.

    Every string goes through :func:`printable`, and none is read as markup: pass ``style``, or a Text.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, emoji=False, markup=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as rich does, with control characters as escapes."""
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


def console_for(*, as_json: bool) -> Console:
    """Return the console for people: the error stream if the standard output is JSON for programs."""
    return errors if as_json else console


def print_json(value: Any, *, in_one_line: bool = False) -> None:
    """Print JSON, in which models are objects, on the standard output; every control character is an escape."""
    text = json.dumps(
        value,
        indent=None if in_one_line else 2,
        ensure_ascii=False,
        default=lambda model: model.model_dump(mode="json"),
    )
    # Outside strings, line feeds are the only control characters in JSON.
    typer.echo(_CONTROLS.sub(lambda found: json.dumps(found[0])[1:-1], text))


@contextmanager
def step(name: str) -> Iterator[None]:
    """Show a step while it runs, and how long it took."""
    start = time.monotonic()
    with console.status(Text(f"{name} ...")):
        yield
    console.print(Text.assemble(("✓", "green"), f" {name} ", (f"{time.monotonic() - start:.1f} s", "dim")))


class _ShortenedColumn(TextColumn):
    """A text that is cut if the terminal is narrow."""

    def render(self, task: Task) -> Text:
        text = super().render(task)
        text.no_wrap, text.overflow = True, "ellipsis"
        return text


@contextmanager
def progress(*, as_json: bool = False) -> Iterator[Progress]:
    """Show bars for long work; on the error stream if the standard output is JSON."""
    shown_on = console_for(as_json=as_json)

    def whole() -> Column:
        return Column(no_wrap=True)

    columns = (
        SpinnerColumn(table_column=whole()),
        _ShortenedColumn("{task.description}", markup=False, table_column=Column()),
        BarColumn(min(40, shown_on.width // 4), table_column=whole()),
        MofNCompleteColumn(table_column=whole()),
        TimeElapsedColumn(table_column=whole()),
        _ShortenedColumn("{task.fields[detail]}", style="dim", markup=False, table_column=Column()),
    )
    with Progress(*columns, console=shown_on) as bars:
        yield bars


def summary(statuses: Mapping[str, DocumentStatus]) -> str:
    """Count documents by status, in one line."""
    counts = Counter(map(str, statuses.values()))
    return ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))


def counted(count: int, what: str) -> str:
    """Write a count with its noun: 1 document, 1,234 documents."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def duration(seconds: float) -> str:
    """Write a time span for people: 90 s, 3 min, 5 h, 2 days."""
    for length, unit in ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def minute(time: str) -> str:
    """Write a time of the API for people, in UTC: 2026-11-28 20:18."""
    return time[:16].replace("T", " ")


def print_indented(cells: int, *parts: str | tuple[str, str]) -> None:
    """Print parts, each a text or a text and its style, as one text in indented lines, wrapped between words."""
    styled = (part if isinstance(part, tuple) else (part, "") for part in parts)
    # Control characters become escapes before the text is wrapped, because escapes are longer.
    text = Text.assemble(*((printable(words), style) for words, style in styled))
    for line in text.wrap(console, max(1, console.width - cells)):
        line.rstrip()
        console.print(Text(" " * cells).append_text(line), soft_wrap=True)


def print_below(text: str, style: str = "") -> None:
    """Print details of the line above, indented."""
    print_indented(INDENT, (text, style))


def interrupted(statuses: Mapping[str, DocumentStatus], not_started: int = 0) -> str:
    """Describe the work that continues after Ctrl-C, and what was not begun."""
    said = "Interrupted."
    if left := sum(status not in ENDED for status in statuses.values()):
        said += f" {counted(left, 'document')} continuing in the background: see `ragstack status`."
    if not_started:
        said += f" {counted(not_started, 'document')} not confirmed: run the same command again."
    return said


def print_unsearchable(statuses: Mapping[str, DocumentStatus]) -> None:
    """List the documents that searches can't find, and why."""
    for uri, status in statuses.items():
        if status not in FOUND:
            reason = status.reason or ("no reason given" if status in ENDED else "in progress")
            console.print(Text.assemble((status, "red"), f" {uri}: {reason}"), soft_wrap=True)


def program() -> str:
    """Return how the user's shell starts this command line: by its name if that is on the PATH, else by its path."""
    own = Path(sys.argv[0])
    if own.name != PROGRAM:
        own = Path(sys.executable).with_name(PROGRAM)
    on_path = shutil.which(PROGRAM)
    # make puts the project's commands on its own PATH only.
    if on_path and "MAKELEVEL" not in os.environ and Path(on_path).resolve() == own.resolve():
        return PROGRAM
    below = os.path.relpath(own)
    return shlex.quote(str(own.absolute()) if below.startswith(os.pardir) else below)


def print_urls(connection: Connection, data: Path | None = None) -> None:
    """Show the URLs and ids of a stack, and the folder of its documents and index if given."""
    managed = ", managed" if connection.vector_store == MANAGED else ""
    rows: Sequence[tuple[str, str | Path | None]] = (
        ("Console", connection.console_url),
        ("API", connection.api_url),
        ("OpenAPI", connection.api_url + "/openapi.json"),
        ("API of people", connection.people_url),
        ("Answers stream", connection.answers_url),
        ("Documents", s3_uri(connection.bucket, "")),
        ("Knowledge base", f"{connection.knowledge_base_id}, data source {connection.data_source_id}{managed}"),
        ("AWS endpoint", connection.aws_endpoint),
        ("Bedrock endpoint", connection.bedrock_endpoint),
        ("Issuer", connection.oidc_issuer),
        ("Embedding", embedding_line(connection.embedding())),
        ("Text recognition", recognition_line(connection.recognition)),
        ("Data", data),
    )
    for name, value in rows:
        if value:
            # Never wrapped: users copy it.
            console.print(Text.assemble((f"{name:16}", "dim"), f" {value}"), soft_wrap=True)


def recognition_line(setting: str) -> str:
    """Describe what recognizes text in pictures, and what it costs."""
    if setting == OFF:
        return "off: pictures, and pages that are pictures, are not read"
    if setting == TEXTRACT:
        return f"Amazon Textract, about {DOLLARS_PER_1000_PAGES:.2f} US dollars per 1,000 pages that are pictures"
    return setting


def embedding_line(found: Mapping[str, Any] | None) -> str:
    """Describe the embedding of a local Bedrock."""
    if found is None:
        return ""
    line, progress = f"{found['embedding']}, {found['dimension']} dimensions", found["reembedding"]
    if found["embedding"] == DEFAULT_EMBEDDING:
        line += "; a model knows synonyms: `ragstack model add minilm`, then start again"
    if progress:
        line += f"; {progress['done']:,} of {progress['total']:,} stored chunks embedded, searches use the earlier one"
    return line


def print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Show figures in a table without breaking words; if the terminal is too narrow for that, row by row."""
    console.print(title, style="italic")
    columns = list(zip(headings, *rows, strict=True))
    widths = [max(len(word) for text in column for word in text.split() or [""]) for column in columns]
    spare = console.width - sum(widths) - (len(widths) - 1)
    if spare < 0:
        for name, *values in rows:
            console.print(name, style="bold")
            for heading, value in zip(headings[1:], values, strict=True):
                console.print(f"  {heading}: {value or '-'}")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    for place in (*range(1, len(columns)), 0):  # names get what figures leave
        wider = min(spare, max(len(line) for text in columns[place] for line in text.split("\n")) - widths[place])
        widths[place] += wider
        spare -= wider
    for width, (heading, *texts) in zip(widths, columns, strict=True):
        is_figure = all(text[:1] in "+-0123456789" for text in texts)
        table.add_column(heading, width=width, justify="right" if is_figure else "left")
    for row in rows:
        table.add_row(*row)
    console.print(table)
