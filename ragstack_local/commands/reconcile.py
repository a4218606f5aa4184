"""``ragstack reconcile``."""

import re
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.table import Table
from rich.text import Text

from ragstack_common.registry.records import WORKED_ON, Status
from ragstack_local.api.calls import run
from ragstack_local.api.jobs import JOBS, check_complete, follow_job, is_running
from ragstack_local.connection_options import AsJson, ConnectionOptions, Timeout, Wait, with_options
from ragstack_local.errors import INTERRUPTED, StackError
from ragstack_local.show import display
from ragstack_local.show.display import console

READ_BEFORE: Final = "read_before"
EVENTS: Final = "events"
WORKED_ON_OR_WAITING: Final = (Status.WAITING, *WORKED_ON)

if TYPE_CHECKING:
    from ragstack_common.services.jobs import JobAnswer
    from ragstack_local.api.http_operations import HttpOperations


@with_options
def reconcile(
    stack: ConnectionOptions,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Make the knowledge base read the whole bucket again instead of comparing first. With a managed one,"
            " every document is submitted again.",
        ),
    ] = False,
    wait: Wait = True,
    timeout: Timeout = 3600.0,
    as_json: AsJson = False,
) -> None:
    """Compare bucket, registry and knowledge base, repair the differences, and show what was found.

    Documents that an earlier version of RAGStack read, or that have no receipt, are read again. This also runs every
    night.

    Example:  ragstack reconcile

    A full synchronisation, in the background:  ragstack reconcile --full --no-wait
    """
    from ragstack_common.services.jobs import JobAnswer  # noqa: PLC0415 - help does without

    api = stack.api()
    job = run(api.request("POST", JOBS, JobAnswer, {"kind": "full" if full else "reconcile"}))
    if wait and is_running(job):
        try:
            job = _follow(api, job, timeout, as_json=as_json)
        except KeyboardInterrupt:
            out = display.console_for(as_json=as_json)
            out.print(f"Interrupted. The job {job.id} continues in the background")
            raise typer.Exit(INTERRUPTED) from None
    if as_json:
        display.print_json(job)
    elif not wait:
        console.print(f"Job {job.id} ({job.kind}) is {job.status}")
    else:
        print_report(job.report)
    if wait:
        check_complete(job, timeout)
        _follow_documents(api, job, timeout, as_json=as_json)


def _follow(api: "HttpOperations", job: "JobAnswer", timeout: float, *, as_json: bool) -> "JobAnswer":
    with display.progress(as_json=as_json) as bars:
        bar = bars.add_task("Comparing", total=None, detail=f"{job.id} {job.status}")
        job = follow_job(api, job, lambda now: bars.update(bar, detail=f"{now.id} {now.status}"), timeout)
        bars.update(bar, total=1, completed=int(not is_running(job)))
    return job


def _follow_documents(api: "HttpOperations", job: "JobAnswer", timeout: float, *, as_json: bool) -> None:
    """Wait until the documents that are read again have their final status, and show the progress."""
    from ragstack_common.services.status import StatusReport  # noqa: PLC0415 - help does without

    number = job.report.get("differences", {}).get(READ_BEFORE, {}).get("count", 0)
    if not number:
        return
    deadline = time.monotonic() + timeout
    with display.progress(as_json=as_json) as bars:
        bar = bars.add_task("Reading again", total=number, detail="")
        while True:
            now = run(api.request("GET", "/api/status", StatusReport))
            in_motion = sum(now.documents.get(status, 0) for status in WORKED_ON_OR_WAITING)
            # Each message is about up to fifty documents, whose status changes when it is read.
            waiting = sum(queue.waiting + queue.in_flight for queue in now.queues if queue.name == EVENTS)
            if not waiting:
                bars.update(bar, completed=max(0, number - in_motion), detail=f"{in_motion:,} in progress")
            if not (waiting or in_motion):
                return
            if time.monotonic() > deadline:
                raise StackError(
                    "Documents are still being read; this continues in the background: see `ragstack status`"
                )
            time.sleep(2.0)


def print_report(report: Mapping[str, Any]) -> None:
    """Show what a job compared, what differed, and what was done."""
    table = Table("What", "How many", "For example", box=None, pad_edge=False, header_style="dim")
    table.columns[0].no_wrap = True
    table.columns[1].justify = "right"
    table.columns[2].overflow = "fold"
    others = []
    # The snapshot of the catalogue is not a difference between bucket, registry and knowledge base.
    for name, value in _rows({name: value for name, value in report.items() if name != "snapshot"}):
        if isinstance(value, Mapping):
            example, *more = value["samples"] or [""]
            table.add_row(name, f"{value['count']:,}", Text(f"{example}{' ...' if more else ''}", "dim"))
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
    """Name each figure of a report in words; a count with samples stays together."""
    for name, value in report.items():
        words = f"{above}{_words(name)}"
        if isinstance(value, Mapping) and not {"count", "samples"} <= value.keys():
            yield from _rows(value, above if name == "statistics" else f"{words}: ")
        else:
            yield words, value


def _words(name: str) -> str:
    """Write ``camelCase`` or ``snake_case`` in words."""
    return re.sub("(?<=[a-z])[A-Z]", lambda found: f" {found[0].lower()}", name).replace("_", " ")
