"""The command that sends again what could not be carried out."""

import time
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import typer
from rich.progress import Progress

from ragstack_common.documents import DocumentStatus
from ragstack_common.registry.jobs import Job, is_job_id
from ragstack_local import display, failure_display
from ragstack_local.connection import Connection
from ragstack_local.errors import StackError
from ragstack_local.following import DELETED, ENDED, FOUND, follow, registry_of, statuses_of
from ragstack_local.job_letters import JobLetter, JobLetters, follow_jobs
from ragstack_local.registry_view import RegistryView
from ragstack_local.repairing import end_job
from ragstack_local.replay import Replay, Replayed
from ragstack_local.targets import INTERRUPTED, NOTHING_FOUND, AsJson, StackTarget, Timeout, Wait, with_target


@with_target
def replay(
    target: StackTarget,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="URI_OR_JOB", help="Only these documents and jobs, as `ragstack failures` names them."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every dead letter, and every failed document for which there is none.")
    ] = False,
    wait: Wait = True,
    timeout: Timeout = 900.0,
    as_json: AsJson = False,
) -> None:
    """Send again what could not be carried out, once its cause is removed.

    Without a name, the documents and jobs of every dead letter.
    A dead letter is deleted after what it is about was sent: an interruption never loses one.
    That of a job that has ended, or that the registry does not know, is deleted, and it is said what to do instead.
    Messages that nobody can read stay: `ragstack discard --unreadable` deletes them.
    So do those about a document whose record cannot be read: `ragstack reconcile` makes it anew.

    Example:  ragstack replay

    One document:  ragstack replay s3://ragstack-documents/handbook/leave.md

    Failed ones that have no dead letter too:  ragstack replay --all

    For a program:  ragstack replay --json
    """
    chosen = _chosen(names, everything)
    connection = target.connect()
    replaying = Replay(connection)
    if chosen is not None:
        replaying.check(chosen)
    statuses: dict[str, DocumentStatus] = {}
    jobs: dict[str, Job] = {}
    try:
        with display.progress(as_json=as_json) as bars:
            letters = RegistryView(connection).queues().dead_letters
            reading = bars.add_task("Reading   ", total=letters, detail="dead letters")
            replayed = replaying.send(chosen, failed=everything, done=lambda count: bars.advance(reading, count))
            bars.update(reading, total=bars.tasks[0].completed)
            if wait:
                deadline = time.monotonic() + timeout
                _follow_documents(connection, replayed, bars, statuses, timeout)
                _follow_jobs(connection, replayed, bars, jobs, deadline - time.monotonic())
    except KeyboardInterrupt:
        (display.errors if as_json else display.console).print(display.interrupted(statuses))
        raise typer.Exit(INTERRUPTED) from None
    # What is gone from the bucket is as it should be.
    unsettled = {uri: status for uri, status in statuses.items() if status != DELETED}
    if as_json:
        display.print_json(_plain(replayed, statuses, jobs))
    else:
        failure_display.print_replayed(replayed)
        display.print_unsearchable(unsettled)
        if statuses:
            display.console.print(display.summary(statuses))
        failure_display.print_jobs(jobs.values())
    for job in jobs.values():
        end_job(job.id, job.status, job.reason, timeout)
    if any(status not in ENDED for status in unsettled.values()):
        raise StackError(f"Not every document reached a final status within {timeout:g} s: see `ragstack status`")
    if any(status not in FOUND for status in unsettled.values()):
        raise typer.Exit(NOTHING_FOUND)


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

    follow(partial(statuses_of, registry_of(connection)), replayed.awaited, show, timeout)


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


def _plain(replayed: Replayed, statuses: Mapping[str, DocumentStatus], jobs: Mapping[str, Job]) -> dict[str, Any]:
    """Say what became of everything: of what nobody waited for, that it was sent."""
    until_then = {uri: awaited.until_then for uri, awaited in replayed.awaited.items()}
    documents = {**until_then, **statuses}
    return {
        "documents": [
            {"uri": uri, "status": str(status), "reason": status.reason, "sent": uri in replayed.awaited}
            for uri, status in documents.items()
        ],
        "jobs": [_plain_job(found, jobs) for found in replayed.jobs],
        "letters": {"deleted": replayed.deleted, "unreadable": replayed.unreadable, "shared": replayed.shared},
    }


def _plain_job(found: JobLetter, jobs: Mapping[str, Job]) -> dict[str, Any]:
    job_id = found.job.id if found.job else found.message.job_id or None
    job = jobs.get(job_id or "", found.job)
    return {
        "job_id": job_id,
        "kind": found.kind,
        "status": job.status if job else found.status,
        "reason": job.reason if job else None,
        "sent": found.to_send is not None,
    }
