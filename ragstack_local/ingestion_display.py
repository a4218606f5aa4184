"""How ingestion is shown: documents in motion and failed ones, and jobs."""

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ragstack_common.registry.records import ABANDONED, DocumentRecord, Status
from ragstack_local import display
from ragstack_local.advice import advice
from ragstack_local.awaiting import DELETED, FOUND
from ragstack_local.display import console, counted
from ragstack_local.registry_view import Queues, seconds_since

if TYPE_CHECKING:
    from ragstack_common.api.documents import DocumentDetail
    from ragstack_local.ingest import Round
    from ragstack_local.watching import Outcome

SHOWN: Final = 10
"""Lines of a list that only gives an impression."""

INDENT: Final = 7
LABEL: Final = 16
STATUS_WIDTH: Final = 8

_CAPITAL: Final = re.compile("(?<=[a-z])[A-Z]")
_UNITS: Final = ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min"))


def duration(seconds: float) -> str:
    """Write a time span for people."""
    for length, unit in _UNITS:
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def print_counts(counts: Mapping[str, int], queues: Queues) -> None:
    """Show how many documents are in which state, and how many messages wait."""
    documents = ", ".join(f"{count:,} {status}" for status, count in counts.items())
    rows: Sequence[tuple[str, str]] = (
        ("Documents", documents or "none"),
        ("Waiting events", f"{queues.events:,}"),
        ("Being followed", f"{queues.followed:,}"),
        ("Waiting jobs", f"{queues.jobs:,}"),
        ("Dead letters", f"{queues.dead_letters:,}"),
    )
    for name, value in rows:
        console.print(Text.assemble((f"{name:{LABEL}}", "dim"), f" {value}"))
    if queues.dead_letters:
        console.print("`ragstack failures` lists the dead letters, `ragstack replay` sends them again.", style="yellow")


def print_in_motion(records: Sequence[DocumentRecord], count: int) -> None:
    """List what has been on its way the longest, of so many."""
    for record in records[:SHOWN]:
        text = Text.assemble((str(record.status), "cyan"), f" {record.uri} for {duration(seconds_since(record))}")
        if record.reason:
            text.append(f": {record.reason}")
        if record.is_abandoned(time.time()):
            text.append(f". It waits for: {ABANDONED}", "yellow")
        console.print(text, soft_wrap=True)
    if count > SHOWN:
        console.print(f"... and {count - SHOWN:,} more that have been waiting for less time", style="dim")


def print_failed_in_short(records: Iterable[DocumentRecord], count: int) -> None:
    """List the first of failed documents, a line each."""
    for record in islice(records, SHOWN):
        # The whole line, whatever the width: it is there to be copied.
        reason = record.reason or "no reason given"
        console.print(Text.assemble((str(record.status), "red"), f" {record.uri}: {reason}"), soft_wrap=True)
    if count > SHOWN:
        console.print(f"... and {count - SHOWN:,} more that failed before these", style="dim")
    if count:
        console.print("`ragstack status --failed` says what to do about each.", style="yellow")


def print_failed(record: DocumentRecord) -> None:
    """Show a failed document with all that helps to mend it."""
    console.print(Text.assemble((str(record.status), "red"), " ", (record.uri, "bold")), soft_wrap=True)
    below(record.reason or "no reason given")
    below(f"{counted(record.attempts, 'attempt')}, failed {duration(seconds_since(record))} ago", "dim")
    below(advice(record), "yellow")


def print_summary(document: Mapping[str, Any]) -> None:
    """Show a document as the API lists it, in one line: how it stands, and why."""
    style = "red" if document["status"] == Status.FAILED else "cyan"
    reason = f": {document['reason']}" if document["reason"] else ""
    console.print(Text.assemble((document["status"], style), f" {document['uri']}{reason}"), soft_wrap=True)


def print_document(document: "DocumentDetail") -> None:
    """Show everything about one document: whether searches find it, why not, what happens next, and its history."""
    style = "green" if document.searchable else "red" if document.status is Status.FAILED else "cyan"
    console.print(Text.assemble((str(document.status), style), " ", (document.uri, "bold")), soft_wrap=True)
    below("Searches find it as it is described here" if document.searchable else "Searches do not find it like this")
    if document.reason:
        below(document.reason)
    if document.waiting_for:
        below(f"Next: {document.waiting_for}", "yellow")
    size = "" if document.size is None else f"{counted(document.size, 'byte')}, "
    below(f"{size}{counted(document.attempts, 'attempt')}, id {document.id}", "dim")
    for name, value in document.attributes.items():
        below(f"{name} = {json.dumps(value, ensure_ascii=False)}", "dim")
    for line in document.history:
        below(f"{line.at}  {line.status}{': ' + line.reason if line.reason else ''}", "dim")


def print_round(done: "Round") -> None:
    """Show what became of files: each that searches do not find, and how many are in which state."""
    display.print_unsearchable(done.statuses)
    console.print(display.summary(done.statuses))
    if done.unchanged:
        console.print(f"{done.unchanged:,} unchanged, so not uploaded again (--force uploads them)", style="dim")
    if done.failed:
        console.print(
            f"Of these, {done.failed:,} failed in an earlier run: `ragstack status --failed` says what to do about"
            " each",
            style="yellow",
            soft_wrap=True,
        )


def print_outcome(outcome: "Outcome") -> None:
    """Show what became of a document, in one line."""
    good = outcome.status in FOUND or outcome.status == DELETED
    text = Text.assemble((f"{outcome.status:{STATUS_WIDTH}}", "green" if good else "red"), f" {outcome.uri}")
    if outcome.status.reason and not good:
        text.append(f": {outcome.status.reason}")
    text.append(f"  {outcome.seconds:.1f} s", "dim")
    console.print(text, soft_wrap=True)


def print_job(job: Mapping[str, Any]) -> None:
    """Show what a job compared, what differed, and what was done."""
    table = Table("What", "How many", "For example", box=None, pad_edge=False, header_style="dim")
    table.columns[0].no_wrap = True
    table.columns[1].justify = "right"
    table.columns[2].overflow = "fold"
    others = []
    for name, value in _rows(job.get("report") or {}):
        if isinstance(value, Mapping):
            table.add_row(name, f"{value['count']:,}", Text(_examples(value["samples"]), "dim"))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            table.add_row(name, f"{value:,}")
        elif name != "complete" and value not in (None, "", []):
            others.append((name, value))
    if table.row_count:
        console.print(table)
    for name, value in others:
        for one in value if isinstance(value, list) else [value]:
            console.print(Text.assemble((f"{name}: ", "dim"), str(one)), soft_wrap=True)


def _rows(report: Mapping[str, Any], above: str = "") -> Iterable[tuple[str, Any]]:
    """Name each figure of a report, in words; a count with samples stays together."""
    for name, value in report.items():
        words = f"{above}{_words(name)}"
        if isinstance(value, Mapping) and not {"count", "samples"} <= value.keys():
            yield from _rows(value, above if name == "statistics" else f"{words}: ")
        else:
            yield words, value


def _words(name: str) -> str:
    """Write a name of a program's as people would."""
    return _CAPITAL.sub(lambda found: f" {found[0].lower()}", name).replace("_", " ")


def _examples(samples: Sequence[object]) -> str:
    return f"{samples[0]}{' ...' if len(samples) > 1 else ''}" if samples else ""


def below(text: str, style: str = "") -> None:
    """Print what belongs to the line above."""
    console.print(Padding(Text(text, style), (0, 0, 0, INDENT), expand=False))
