"""The commands that set right what went wrong: failures, replay, reconcile."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Final

import typer

from ragstack_common.documents import DocumentStatus
from ragstack_local import display, ingestion_display
from ragstack_local.awaiting import DELETED, ENDED, follow, registry_of
from ragstack_local.connection import DEFAULT_PREFIX
from ragstack_local.display import counted
from ragstack_local.failures import find_failures
from ragstack_local.ingesting import INTERRUPTED, end
from ragstack_local.registry_view import RegistryView
from ragstack_local.replay import Replay, Replayed
from ragstack_local.search import Caller
from ragstack_local.stack.errors import StackError
from ragstack_local.targets import ApiKey, AsJson, OnAws, Prefix, connect

JOBS: Final = "/api/ingestion-jobs"
JOB_POLL_SECONDS: Final = 0.5
LONGEST_JOB_POLL_SECONDS: Final = 5.0
UNDER_WAY: Final = ("QUEUED", "RUNNING")

Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Follow until it is final, or only start it.")]
Timeout = Annotated[float, typer.Option(help="Seconds to wait at most.", min=1)]


def failures(as_json: AsJson = False, aws: OnAws = False, stack_prefix: Prefix = DEFAULT_PREFIX) -> None:
    """List what could not be ingested, each document once: failed ones, and those that dead letters are about.

    The dead letters stay where they are. Messages that are about no document are shown with the cause that they have.

    Example:  ragstack failures

    For a program:  ragstack failures --json
    """
    found = find_failures(connect(aws, stack_prefix))
    if as_json:
        unreadable = [
            {"message_id": letter.message_id, "cause": letter.cause or letter.fault, "body": letter.body}
            for letter in found.unreadable
        ]
        answer = {"documents": [asdict(failure) for failure in found.documents], "unreadable": unreadable}
        typer.echo(json.dumps(answer, indent=2, ensure_ascii=False))
        return
    for failure in found.documents:
        ingestion_display.print_failure(failure)
    for letter in found.unreadable:
        ingestion_display.print_unreadable(letter)
    if not (found.documents or found.unreadable):
        display.console.print("Nothing failed, and there is no dead letter.")


def replay(
    uris: Annotated[
        list[str] | None,
        typer.Argument(metavar="URI", help="Only these documents, as `ragstack failures` names them."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every dead letter, and every failed document for which there is none.")
    ] = False,
    wait: Wait = True,
    timeout: Timeout = 600.0,
    aws: OnAws = False,
    stack_prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """Send again what could not be ingested, once its cause is removed.

    Without a URI, the documents of every dead letter.
    A dead letter is deleted after its documents were sent: an interruption never loses one.
    Messages that are about no document stay.

    Example:  ragstack replay

    One document:  ragstack replay s3://ragstack-documents/handbook/leave.md

    Failed ones that have no dead letter too:  ragstack replay --all
    """
    chosen = _chosen(uris, everything)
    connection = connect(aws, stack_prefix)
    replaying = Replay(connection)
    if chosen is not None:
        replaying.check(chosen)
    statuses: dict[str, DocumentStatus] = {}
    try:
        with display.progress() as bars:
            letters = RegistryView(connection).queues().dead_letters
            sending = bars.add_task("Sending   ", total=letters, detail="dead letters")
            replayed = replaying.send(chosen, failed=everything, done=lambda count: bars.advance(sending, count))
            bars.update(sending, total=bars.tasks[0].completed)
            if wait and replayed.awaited:
                indexing = bars.add_task("Indexing  ", total=len(replayed.awaited), detail="")

                def show(found: Mapping[str, DocumentStatus]) -> None:
                    statuses.update(found)
                    ended = sum(status in ENDED for status in found.values())
                    bars.update(indexing, completed=ended, detail=display.summary(found))

                follow(registry_of(connection), replayed.awaited, show, timeout)
    except KeyboardInterrupt:
        display.console.print(display.interrupted(statuses))
        raise typer.Exit(INTERRUPTED) from None
    _print_replayed(replayed)
    # What is gone from the bucket is as it should be.
    unsettled = {uri: status for uri, status in statuses.items() if status != DELETED}
    display.print_unsearchable(unsettled)
    if statuses:
        display.console.print(display.summary(statuses))
    end(connection, unsettled, timeout)


def reconcile(
    full: Annotated[
        bool,
        typer.Option("--full", help="Have the knowledge base read the whole bucket, instead of comparing first."),
    ] = False,
    wait: Wait = True,
    timeout: Timeout = 3600.0,
    as_json: AsJson = False,
    aws: OnAws = False,
    stack_prefix: Prefix = DEFAULT_PREFIX,
    api_key: ApiKey = None,
) -> None:
    """Compare bucket, registry and knowledge base, have what differs looked at again, and show what was found.

    The same happens every night by itself.

    Example:  ragstack reconcile

    A full synchronisation, in the background:  ragstack reconcile --full --no-wait
    """
    caller = Caller.of(connect(aws, stack_prefix), api_key)
    job = caller.ask("POST", JOBS, "status", {"kind": "full" if full else "reconcile"})
    if wait:
        try:
            job = _follow_job(caller, job, timeout, beside=as_json)
        except KeyboardInterrupt:
            display.console.print(f"Interrupted. The job {job['id']} goes on without us")
            raise typer.Exit(INTERRUPTED) from None
    if as_json:
        typer.echo(json.dumps(job, indent=2, ensure_ascii=False))
    elif not wait:
        display.console.print(f"Job {job['id']} ({job['kind']}) is {job['status']}")
    else:
        ingestion_display.print_job(job)
    if wait and job["status"] != "COMPLETE":
        if job["status"] in UNDER_WAY:
            raise StackError(
                f"The job {job['id']} is still {job['status']} after {timeout:g} s, and goes on without us"
            )
        reason = f": {job['reason']}" if job.get("reason") else ""
        raise StackError(f"The job {job['id']} is {job['status']}{reason}")


def _chosen(uris: list[str] | None, everything: bool) -> list[str] | None:
    if uris and everything:
        raise typer.BadParameter("give URIs, or --all, not both", param_hint="--all")
    for uri in uris or ():
        if not uri.startswith("s3://") or uri.encode(errors="replace").decode() != uri:
            raise typer.BadParameter(f"{uri!a} names no document: write s3://BUCKET/KEY", param_hint="URI")
    return list(dict.fromkeys(uris)) if uris else None


def _print_replayed(replayed: Replayed) -> None:
    display.console.print(
        f"Sent again: {counted(len(replayed.awaited), 'document')}; deleted: {counted(replayed.deleted, 'dead letter')}"
    )
    if replayed.unreadable:
        display.console.print(
            f"[yellow]Kept, because about no document: {counted(replayed.unreadable, 'dead letter')};"
            " see `ragstack failures`[/]"
        )
    if replayed.shared:
        display.console.print(
            f"[yellow]Kept, because about other documents too: {counted(replayed.shared, 'dead letter')};"
            " `ragstack replay` takes all[/]"
        )


def _follow_job(caller: Caller, job: dict[str, Any], timeout: float, *, beside: bool) -> dict[str, Any]:
    deadline = time.monotonic() + timeout
    pause = JOB_POLL_SECONDS
    with display.progress(beside=beside) as bars:
        bar = bars.add_task("Comparing", total=None, detail=f"{job['id']} {job['status']}")
        while job["status"] in UNDER_WAY and time.monotonic() < deadline:
            time.sleep(pause)
            pause = min(pause * 1.2, LONGEST_JOB_POLL_SECONDS)
            job = caller.ask("GET", f"{JOBS}/{job['id']}", "status")
            bars.update(bar, detail=f"{job['id']} {job['status']}")
        bars.update(bar, total=1, completed=int(job["status"] not in UNDER_WAY))
    return job
