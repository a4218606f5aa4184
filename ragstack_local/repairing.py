"""The commands that set right what went wrong: failures, replay, discard, reconcile."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Final

import typer
from rich.progress import Progress

from ragstack_common.documents import DocumentStatus
from ragstack_common.registry.jobs import Job, is_job_id
from ragstack_local import display, failure_display, ingestion_display
from ragstack_local.awaiting import DELETED, ENDED, follow, registry_of
from ragstack_local.connection import DEFAULT_PREFIX, Connection
from ragstack_local.discard import Discard, Discardable
from ragstack_local.display import counted
from ragstack_local.failures import find_failures
from ragstack_local.ingesting import end
from ragstack_local.job_letters import JobLetters, follow_jobs
from ragstack_local.registry_view import RegistryView
from ragstack_local.replay import Replay, Replayed
from ragstack_local.search import Caller
from ragstack_local.stack.errors import StackError
from ragstack_local.targets import INTERRUPTED, ApiKey, AsJson, OnAws, Prefix, connect

JOBS: Final = "/api/ingestion-jobs"
JOB_POLL_SECONDS: Final = 0.5
LONGEST_JOB_POLL_SECONDS: Final = 5.0
UNDER_WAY: Final = ("QUEUED", "RUNNING")

Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Follow until it is final, or only start it.")]
Timeout = Annotated[float, typer.Option(help="Seconds to wait at most.", min=1)]


def failures(as_json: AsJson = False, aws: OnAws = False, stack_prefix: Prefix = DEFAULT_PREFIX) -> None:
    """List what could not be carried out: failed documents, and the documents and jobs that dead letters are about.

    Each is listed once, with what to do next. The dead letters stay where they are.
    Messages that nobody can read are shown with the cause that they have.

    Example:  ragstack failures

    For a program:  ragstack failures --json
    """
    found = find_failures(connect(aws, stack_prefix))
    if as_json:
        unreadable = [
            {"message_id": letter.message_id, "cause": letter.cause or letter.fault, "body": letter.body}
            for letter in found.unreadable
        ]
        answer = {
            "documents": [asdict(failure) for failure in found.documents],
            "jobs": [asdict(failure) for failure in found.jobs],
            "unreadable": unreadable,
        }
        typer.echo(json.dumps(answer, indent=2, ensure_ascii=False))
        return
    for document in found.documents:
        failure_display.print_failure(document)
    for job in found.jobs:
        failure_display.print_job_failure(job)
    for letter in found.unreadable:
        failure_display.print_unreadable(letter)
    if not found:
        display.console.print("Nothing failed, and there is no dead letter.")


def replay(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="URI_OR_JOB", help="Only these documents and jobs, as `ragstack failures` names them."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every dead letter, and every failed document for which there is none.")
    ] = False,
    wait: Wait = True,
    timeout: Timeout = 900.0,
    aws: OnAws = False,
    stack_prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """Send again what could not be carried out, once its cause is removed.

    Without a name, the documents and jobs of every dead letter.
    A dead letter is deleted after what it is about was sent: an interruption never loses one.
    That of a job that has ended, or that the registry does not know, is deleted, and it is said what to do instead.
    Messages that nobody can read stay: `ragstack discard --unreadable` deletes them.

    Example:  ragstack replay

    One document:  ragstack replay s3://ragstack-documents/handbook/leave.md

    Failed ones that have no dead letter too:  ragstack replay --all
    """
    chosen = _chosen(names, everything)
    connection = connect(aws, stack_prefix)
    replaying = Replay(connection)
    if chosen is not None:
        replaying.check(chosen)
    statuses: dict[str, DocumentStatus] = {}
    jobs: dict[str, Job] = {}
    try:
        with display.progress() as bars:
            letters = RegistryView(connection).queues().dead_letters
            reading = bars.add_task("Reading   ", total=letters, detail="dead letters")
            replayed = replaying.send(chosen, failed=everything, done=lambda count: bars.advance(reading, count))
            bars.update(reading, total=bars.tasks[0].completed)
            if wait:
                deadline = time.monotonic() + timeout
                _follow_documents(connection, replayed, bars, statuses, timeout)
                _follow_jobs(connection, replayed, bars, jobs, deadline - time.monotonic())
    except KeyboardInterrupt:
        display.console.print(display.interrupted(statuses))
        raise typer.Exit(INTERRUPTED) from None
    failure_display.print_replayed(replayed)
    # What is gone from the bucket is as it should be.
    unsettled = {uri: status for uri, status in statuses.items() if status != DELETED}
    display.print_unsearchable(unsettled)
    if statuses:
        display.console.print(display.summary(statuses))
    failure_display.print_jobs(jobs.values())
    for job in jobs.values():
        _end_job(job.id, job.status, job.reason, timeout)
    end(unsettled, timeout)


def discard(
    message_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="MESSAGE_ID", help="These dead letters, as `ragstack failures` names them."),
    ] = None,
    unreadable: Annotated[
        bool, typer.Option("--unreadable", help="All that nobody can read; asks first, unless --yes is given.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
    aws: OnAws = False,
    stack_prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """Delete dead letters for good that nobody wants any more, or that nobody can read.

    Each is printed whole before, with what it is about and what stays as it is: discarding mends nothing.
    A job that only waits for its message ends FAILED with it, so that another can begin.
    What is to be carried out after all: ragstack replay

    Example:  ragstack discard 6f1d3c2e-95a4-4f0e-8c6f-0d1c9c6f6f10

    What nobody can read, kept in a file:  ragstack discard --unreadable --yes --json > letters.json
    """
    if not (message_ids or unreadable):
        raise typer.BadParameter("name messages, or give --unreadable", param_hint="MESSAGE_ID")
    discarding = Discard(connect(aws, stack_prefix))
    chosen = discarding.find(message_ids or (), unreadable=unreadable)
    if as_json:
        answer = {"discarded": [_plain(found) for found in chosen]}
        typer.echo(json.dumps(answer, indent=2, ensure_ascii=False))
    elif not chosen:
        display.console.print("There is no dead letter that nobody can read.")
    for found in () if as_json else chosen:
        failure_display.print_discardable(found)
    if not chosen:
        return
    if unreadable and not yes:
        typer.confirm(f"Discard {counted(len(chosen), 'dead letter')} for good?", abort=True, err=True)
    discarded = discarding.delete(chosen)
    failure_display.print_discarded(discarded, beside=as_json)


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
    if wait:
        _end_job(job["id"], job["status"], job.get("reason"), timeout)


def _chosen(names: list[str] | None, everything: bool) -> list[str] | None:
    if names and everything:
        raise typer.BadParameter("give URIs and jobs, or --all, not both", param_hint="--all")
    for name in names or ():
        is_uri = name.startswith("s3://") and name.encode(errors="replace").decode() == name
        if not is_uri and not is_job_id(name):
            raise typer.BadParameter(
                f"{name!a} names no document and no job: write s3://BUCKET/KEY, or a job's id", param_hint="URI_OR_JOB"
            )
    return list(dict.fromkeys(names)) if names else None


def _follow_documents(
    connection: Connection,
    replayed: Replayed,
    bars: Progress,
    statuses: dict[str, DocumentStatus],
    timeout: float,
) -> None:
    if not replayed.awaited:
        return
    bar = bars.add_task("Indexing  ", total=len(replayed.awaited), detail="")

    def show(found: Mapping[str, DocumentStatus]) -> None:
        statuses.update(found)
        ended = sum(status in ENDED for status in found.values())
        bars.update(bar, completed=ended, detail=display.summary(found))

    follow(registry_of(connection), replayed.awaited, show, timeout)


def _follow_jobs(
    connection: Connection, replayed: Replayed, bars: Progress, jobs: dict[str, Job], timeout: float
) -> None:
    if not replayed.job_ids:
        return
    bar = bars.add_task("Jobs      ", total=len(replayed.job_ids), detail="")

    def show(found: Mapping[str, Job]) -> None:
        jobs.update(found)
        bars.update(bar, completed=sum(not job.is_running for job in found.values()))

    follow_jobs(JobLetters(connection).store, replayed.job_ids, show, timeout)


def _plain(found: Discardable) -> dict[str, Any]:
    letter = found.letter
    return {
        "message_id": letter.message_id,
        "sent_at": letter.sent_at,
        "cause": letter.cause or letter.fault,
        "body": letter.body,
        "notes": found.notes,
    }


def _end_job(job_id: str, status: str, reason: str | None, timeout: float) -> None:
    """End a command that followed a job with the code that says how it is.

    Raises:
        StackError: It did not do everything, or not in time.
    """
    if status in UNDER_WAY:
        raise StackError(f"The job {job_id} is still {status} after {timeout:g} s, and goes on without us")
    if status != "COMPLETE":
        raise StackError(f"The job {job_id} is {status}{f': {reason}' if reason else ''}")


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
