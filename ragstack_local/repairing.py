"""The commands that set right what went wrong: failures, discard, reconcile; replay is in a module of its own."""

import time
from dataclasses import asdict
from typing import Annotated, Any, Final

import typer

from ragstack_local import display, failure_display
from ragstack_local.api_client import ApiClient
from ragstack_local.discard import Discard, Discardable
from ragstack_local.display import counted
from ragstack_local.errors import StackError
from ragstack_local.failures import find_failures
from ragstack_local.targets import INTERRUPTED, AsJson, StackTarget, Target, Timeout, Wait, with_target

JOBS: Final = "/api/ingestion-jobs"
JOB_POLL_SECONDS: Final = 0.5
LONGEST_JOB_POLL_SECONDS: Final = 5.0
UNDER_WAY: Final = ("QUEUED", "RUNNING")


@with_target
def failures(target: StackTarget, as_json: AsJson = False) -> None:
    """List what could not be carried out: failed documents, and the documents and jobs that dead letters are about.

    Each is listed once, with what to do next. The dead letters stay where they are.
    Messages that nobody can read are shown with the cause that they have.

    Example:  ragstack failures

    For a program:  ragstack failures --json
    """
    found = find_failures(target.connect())
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
        display.print_json(answer)
        return
    for document in found.documents:
        failure_display.print_failure(document)
    for job in found.jobs:
        failure_display.print_job_failure(job)
    for letter in found.unreadable:
        failure_display.print_unreadable(letter)
    if not found:
        display.console.print("Nothing failed, and there is no dead letter.")


@with_target
def discard(
    target: StackTarget,
    message_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="MESSAGE_ID", help="These dead letters, as `ragstack failures` names them."),
    ] = None,
    unreadable: Annotated[
        bool, typer.Option("--unreadable", help="All that nobody can read; asks first, unless --yes is given.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
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
    discarding = Discard(target.connect())
    chosen = discarding.find(message_ids or (), unreadable=unreadable)
    if as_json:
        answer = {"discarded": [_plain(found) for found in chosen]}
        display.print_json(answer)
    elif not chosen:
        display.console.print("There is no dead letter that nobody can read.")
    for found in () if as_json else chosen:
        failure_display.print_discardable(found)
    if not chosen:
        return
    if unreadable and not yes:
        typer.confirm(f"Discard {counted(len(chosen), 'dead letter')} for good?", abort=True, err=True)
    discarded = discarding.delete(chosen)
    failure_display.print_discarded(discarded, as_json=as_json)


@with_target
def reconcile(
    target: Target,
    full: Annotated[
        bool,
        typer.Option("--full", help="Have the knowledge base read the whole bucket, instead of comparing first."),
    ] = False,
    wait: Wait = True,
    timeout: Timeout = 3600.0,
    as_json: AsJson = False,
) -> None:
    """Compare bucket, registry and knowledge base, have what differs looked at again, and show what was found.

    The same happens every night by itself.

    Example:  ragstack reconcile

    A full synchronisation, in the background:  ragstack reconcile --full --no-wait
    """
    api = target.api()
    job = api.request("POST", JOBS, "status", {"kind": "full" if full else "reconcile"})
    if wait:
        try:
            job = _follow_job(api, job, timeout, as_json=as_json)
        except KeyboardInterrupt:
            out = display.errors if as_json else display.console
            out.print(f"Interrupted. The job {job['id']} goes on without us")
            raise typer.Exit(INTERRUPTED) from None
    if as_json:
        display.print_json(job)
    elif not wait:
        display.console.print(f"Job {job['id']} ({job['kind']}) is {job['status']}")
    else:
        failure_display.print_job(job)
    if wait:
        end_job(job["id"], job["status"], job.get("reason"), timeout)


def _plain(found: Discardable) -> dict[str, Any]:
    letter = found.letter
    return {
        "message_id": letter.message_id,
        "sent_at": letter.sent_at,
        "cause": letter.cause or letter.fault,
        "body": letter.body,
        "notes": found.notes,
    }


def end_job(job_id: str, status: str, reason: str | None, timeout: float) -> None:
    """End a command that followed a job with the code that says how it is.

    Raises:
        StackError: It did not do everything, or not in time.
    """
    if status in UNDER_WAY:
        raise StackError(f"The job {job_id} is still {status} after {timeout:g} s, and goes on without us")
    if status != "COMPLETE":
        raise StackError(f"The job {job_id} is {status}{f': {reason}' if reason else ''}")


def _follow_job(api: ApiClient, job: dict[str, Any], timeout: float, *, as_json: bool) -> dict[str, Any]:
    deadline = time.monotonic() + timeout
    pause = JOB_POLL_SECONDS
    with display.progress(as_json=as_json) as bars:
        bar = bars.add_task("Comparing", total=None, detail=f"{job['id']} {job['status']}")
        while job["status"] in UNDER_WAY and time.monotonic() < deadline:
            time.sleep(pause)
            pause = min(pause * 1.2, LONGEST_JOB_POLL_SECONDS)
            job = api.request("GET", f"{JOBS}/{job['id']}", "status")
            bars.update(bar, detail=f"{job['id']} {job['status']}")
        bars.update(bar, total=1, completed=int(job["status"] not in UNDER_WAY))
    return job
