"""How failures and dead letters are shown, and what was done with them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from ragstack_common.registry.jobs import Job
from ragstack_local import display
from ragstack_local.dead_letters import DeadLetter
from ragstack_local.discard import Discardable, Discarded
from ragstack_local.display import console, counted, duration
from ragstack_local.display import print_below as below
from ragstack_local.failures import Failure, JobFailure
from ragstack_local.job_letters import FORGOTTEN, JobLetter
from ragstack_local.replay import Replayed

EXCERPT_CHARACTERS: Final = 200
"""Of a body that is only to be recognised: two lines."""

IDS_SHOWN: Final = 3

_CAPITAL: Final = re.compile("(?<=[a-z])[A-Z]")


def print_failure(failure: Failure) -> None:
    """Show a document that was put aside, or failed, or both."""
    style = "red" if failure.is_failed else "green"
    console.print(Text.assemble((failure.status, style), " ", (failure.uri, "bold")), soft_wrap=True)
    for reason in failure.reasons:
        below(reason)
    counts = f"{counted(failure.letters, 'dead letter')}, {counted(failure.attempts, 'attempt')}"
    below(f"{counts}, {duration(failure.age_seconds)} ago{_messages(failure.message_ids)}", "dim")
    below(failure.advice, "yellow")


def print_job_failure(failure: JobFailure) -> None:
    """Show a job that dead letters are about."""
    name = f"job {failure.job_id}" if failure.job_id else "a job that was to be started"
    kind = f" ({failure.kind})" if failure.kind else ""
    asked = f", asked for by {failure.by}" if failure.by else ""
    style = "green" if failure.status == "COMPLETE" else "red"
    console.print(Text.assemble((failure.status, style), " ", (name, "bold"), kind, asked), soft_wrap=True)
    for reason in failure.reasons:
        below(reason)
    age = duration(failure.age_seconds)
    below(f"{counted(failure.letters, 'dead letter')}, {age} ago{_messages(failure.message_ids)}", "dim")
    below(failure.advice, "yellow")


def print_unreadable(letter: DeadLetter) -> None:
    """Show a message that is about no document, and no job."""
    console.print(Text.assemble(("UNREADABLE", "magenta"), " message ", (letter.message_id, "bold")), soft_wrap=True)
    below(letter.cause or letter.fault or "no cause given")
    body = " ".join(letter.body.split())
    below(f"{body[:EXCERPT_CHARACTERS]}{' …' if len(body) > EXCERPT_CHARACTERS else ''}", "dim")
    below(f"Once nobody needs it: ragstack discard {letter.message_id}", "yellow")


def print_discardable(found: Discardable) -> None:
    """Show the whole of a letter that is about to be deleted."""
    letter = found.letter
    console.print(Text.assemble("message ", (letter.message_id, "bold")), soft_wrap=True)
    below(letter.cause or letter.fault or "no cause given")
    # As it is, and unbroken: it is there to be kept.
    console.print(letter.body, no_wrap=True, overflow="ignore", crop=False)
    for note in found.notes:
        below(note, "yellow")


def print_discarded(discarded: Discarded, *, as_json: bool = False) -> None:
    """Say what was deleted, and which jobs that ended; on the error stream if the standard output is JSON."""
    console = display.console_for(as_json=as_json)
    console.print(f"Discarded: {counted(len(discarded.deleted), 'dead letter')}")
    for found in discarded.ended:
        console.print(f"{found.name} is FAILED: {found.starts_another} starts another", soft_wrap=True)
    for letter in discarded.missing:
        console.print(
            f"Not in the queue any more, so left alone: message {letter.message_id}", style="yellow", soft_wrap=True
        )


def print_replayed(replayed: Replayed) -> None:
    """Say what was sent again, what could not be, and why."""
    sent = [counted(len(replayed.awaited), "document")]
    if jobs := [found for found in replayed.jobs if found.to_send]:
        sent.append(counted(len(jobs), "job"))
    console.print(f"Sent again: {', '.join(sent)}; deleted: {counted(replayed.deleted, 'dead letter')}")
    for found in replayed.jobs:
        if found.to_send is None:
            console.print(Text(_of_no_use(found), "yellow"), soft_wrap=True)
    if replayed.unreadable:
        console.print(
            f"Kept, because they cannot be read: {counted(replayed.unreadable, 'dead letter')};"
            " see `ragstack failures`, and `ragstack discard --unreadable`",
            style="yellow",
        )
    if replayed.shared:
        console.print(
            f"Kept, because they are about other documents too: {counted(replayed.shared, 'dead letter')};"
            " `ragstack replay` replays them all",
            style="yellow",
        )


def print_jobs(jobs: Iterable[Job]) -> None:
    """Say how jobs stand that were sent again, a line each."""
    for job in jobs:
        style = {"COMPLETE": "green", "FAILED": "red"}.get(job.status, "yellow")
        reason = f": {job.reason}" if job.reason else ""
        console.print(Text.assemble((job.status, style), f" job {job.id} ({job.kind}){reason}"), soft_wrap=True)


def _of_no_use(found: JobLetter) -> str:
    if found.status == FORGOTTEN:
        return (
            f"{found.name} is not in the registry, so it was not sent. `ragstack reconcile` compares everything again"
        )
    if found.is_start:
        return f"{found.name} is {found.status}, so it was not started again"
    reason = f": {found.job.reason}" if found.job and found.job.reason else ""
    another = "" if found.status == "COMPLETE" else f". `{found.starts_another}` starts another"
    return f"{found.name} has ended and was not sent. It is {found.status}{reason}{another}"


def _messages(message_ids: Sequence[str]) -> str:
    if not message_ids:
        return ""
    more = f" and {len(message_ids) - IDS_SHOWN:,} more" if len(message_ids) > IDS_SHOWN else ""
    return f"; message {', '.join(message_ids[:IDS_SHOWN])}{more}"


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
