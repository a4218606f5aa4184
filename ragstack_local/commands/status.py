"""``ragstack status``."""

import heapq
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from ragstack_common.ingestion.advice import advice_for
from ragstack_common.registry.documents import MAX_LIMIT
from ragstack_common.registry.records import ABANDONED, FINAL, DocumentRecord, Status
from ragstack_common.registry.table import BY_STATUS, STATUS
from ragstack_local import display
from ragstack_local.connection import Connection
from ragstack_local.display import console, counted, print_below
from ragstack_local.documents import ApiDocuments
from ragstack_local.following import registry_of
from ragstack_local.targets import NOTHING_FOUND, AsJson, Target, with_target

SHOWN: Final = 10
"""Maximum lines of the lists of documents."""

MOST_NAMED: Final = 2000
"""Documents in progress that the JSON names, however many there are."""

IN_MOTION: Final = tuple(status for status in Status if status not in FINAL and status is not Status.UPLOADED)
COUNTED: Final = (*(status for status in Status if status in FINAL and status is not Status.DELETED), *IN_MOTION)

_DEPTH: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


@with_target
def status(
    target: Target,
    documents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="URI", help="Show the details of these documents, by URI or by key.", show_default=False
        ),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="List each document that failed, with the reason and what to do.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the URLs of the stack, the number of documents by status, recent failures, and the length of the queues.

    Example:  ragstack status

    What to do about failed documents:  ragstack status --failed

    All details of a document, and whether searches find it:  ragstack status handbook/leave.md

    With --api-url: how many documents can be searched, and each that failed or is in progress.
    """
    if documents:
        _show_documents(ApiDocuments(target.api()), documents, as_json=as_json)
    elif target.is_api:
        _show_api(ApiDocuments(target.api()), failed=failed, as_json=as_json)
    else:
        connection = target.connect()
        if as_json:
            display.print_json(_overview(connection, failed=failed))
        elif failed:
            # The index is eventually consistent, so the records decide.
            uris = [record.uri for record in documents_of(connection, Status.FAILED)]
            _print_failed([r for r in registry_of(connection).read(uris).values() if r.status is Status.FAILED])
        else:
            display.print_urls(connection)
            _print_overview(connection)


def _show_documents(documents: ApiDocuments, names: Sequence[str], *, as_json: bool) -> None:
    found = list(documents.details(names))
    if as_json:
        display.print_json(found)
    for each in () if as_json else found:
        _print_document(each)
    if not all(each["searchable"] for each in found):
        raise typer.Exit(NOTHING_FOUND)


def _show_api(documents: ApiDocuments, *, failed: bool, as_json: bool) -> None:
    found: dict[str, Any] = {"failed": list(documents.listed(Status.FAILED))}
    if not failed:
        searchable = documents.api.look_up("facets")["documents"]
        under_way = [document for each in IN_MOTION for document in documents.listed(each)]
        found = {"searchable": searchable, "in_motion": under_way, **found}
    if as_json:
        display.print_json(found)
        return
    if not failed:
        console.print(f"{counted(found['searchable'], 'document')} can be searched")
    for document in [*found.get("in_motion", ()), *found["failed"]]:
        style = "red" if document["status"] == Status.FAILED else "cyan"
        reason = f": {document['reason']}" if document["reason"] else ""
        console.print(Text.assemble((document["status"], style), f" {document['uri']}{reason}"), soft_wrap=True)
    if failed and not found["failed"]:
        console.print("No document failed.")


def _overview(connection: Connection, *, failed: bool) -> dict[str, Any]:
    in_motion = longest_in_motion(connection, MOST_NAMED)
    found: dict[str, Any] = {
        "documents": counts(connection),
        "queues": queues(connection),
        "in_motion": [_plain(record) for record in in_motion],
    }
    if failed:
        found["failed"] = [
            {**_plain(record), "advice": _advice(record)} for record in documents_of(connection, Status.FAILED)
        ]
    return found


def _plain(record: DocumentRecord) -> dict[str, Any]:
    return {
        "uri": record.uri,
        "status": str(record.status),
        "reason": record.reason,
        "attempts": record.attempts,
        "seconds": round(_age(record), 1),
    }


def _print_overview(connection: Connection) -> None:
    with console.status("Reading the registry ..."):
        found = counts(connection)
        in_motion = longest_in_motion(connection, SHOWN)
        failed = heapq.nlargest(SHOWN, documents_of(connection, Status.FAILED), key=_since)
        waiting = queues(connection)
    rows = {
        "Documents": ", ".join(f"{count:,} {name}" for name, count in found.items()) or "none",
        "Waiting events": f"{waiting['events']:,}",
        "Being followed": f"{waiting['followed']:,}",
        "Waiting jobs": f"{waiting['jobs']:,}",
        "Dead letters": f"{waiting['dead_letters']:,}",
    }
    for name, value in rows.items():
        console.print(Text.assemble((f"{name:16}", "dim"), f" {value}"))
    if waiting["dead_letters"]:
        console.print("`ragstack failures` lists the dead letters, `ragstack replay` sends them again.", style="yellow")
    _print_in_progress(in_motion, sum(found.get(each, 0) for each in IN_MOTION))
    for record in failed:
        # Never wrapped: users copy it.
        reason = record.reason or "no reason given"
        console.print(Text.assemble((str(record.status), "red"), f" {record.uri}: {reason}"), soft_wrap=True)
    if count := found.get(Status.FAILED, 0):
        if count > SHOWN:
            console.print(f"... and {count - SHOWN:,} more that failed earlier", style="dim")
        console.print("`ragstack status --failed` says what to do about each.", style="yellow")


def _print_in_progress(records: Sequence[DocumentRecord], count: int) -> None:
    for record in records:
        age = display.duration(_age(record))
        text = Text.assemble((str(record.status), "cyan"), f" {record.uri} for {age}")
        if record.reason:
            text.append(f": {record.reason}")
        if record.is_abandoned(time.time()):
            text.append(f". It waits for: {ABANDONED}", "yellow")
        console.print(text, soft_wrap=True)
    if count > SHOWN:
        console.print(f"... and {count - SHOWN:,} more that have been waiting for less time", style="dim")


def _print_failed(records: Sequence[DocumentRecord]) -> None:
    for record in records:
        console.print(Text.assemble((str(record.status), "red"), " ", (record.uri, "bold")), soft_wrap=True)
        print_below(record.reason or "no reason given")
        age = display.duration(_age(record))
        print_below(f"{counted(record.attempts, 'attempt')}, failed {age} ago", "dim")
        print_below(_advice(record), "yellow")
    if not records:
        console.print("No document failed.")


def _print_document(document: Mapping[str, Any]) -> None:
    """Show a document: whether searches find it, why not, what happens next, and its history."""
    style = "green" if document["searchable"] else "red" if document["status"] == Status.FAILED else "cyan"
    console.print(Text.assemble((document["status"], style), " ", (document["uri"], "bold")), soft_wrap=True)
    print_below("Searches find this version" if document["searchable"] else "Searches do not find this version")
    if document["reason"]:
        print_below(document["reason"])
    if document["waiting_for"]:
        print_below(f"Next: {document['waiting_for']}", "yellow")
    size = "" if document["size"] is None else f"{counted(document['size'], 'byte')}, "
    print_below(f"{size}{counted(document['attempts'], 'attempt')}, id {document['id']}", "dim")
    for name, value in document["attributes"].items():
        print_below(f"{name} = {json.dumps(value, ensure_ascii=False)}", "dim")
    for line in document["history"]:
        print_below(f"{line['at']}  {line['status']}{': ' + line['reason'] if line['reason'] else ''}", "dim")


def counts(connection: Connection) -> dict[str, int]:
    """Count documents by status, without statuses that no document has."""
    dynamodb = connection.client("dynamodb")

    def count(status: Status) -> int:
        pages = dynamodb.get_paginator("query").paginate(
            TableName=connection.registry_table,
            IndexName=BY_STATUS,
            KeyConditionExpression="#status = :status",
            ExpressionAttributeNames={"#status": STATUS},
            ExpressionAttributeValues={":status": {"S": str(status)}},
            Select="COUNT",
        )
        return sum(page["Count"] for page in pages)

    with ThreadPoolExecutor(len(COUNTED)) as threads:
        found = zip(COUNTED, threads.map(count, COUNTED), strict=True)
        return {str(status): number for status, number in found if number}


def documents_of(connection: Connection, status: Status) -> Iterator[DocumentRecord]:
    """List the documents of one status by URI, page by page."""
    registry = registry_of(connection)
    page = registry.page(status=status, limit=MAX_LIMIT)
    yield from page.documents
    while page.next_token is not None:
        page = registry.page(status=status, limit=MAX_LIMIT, token=page.next_token)
        yield from page.documents


def longest_in_motion(connection: Connection, most: int) -> list[DocumentRecord]:
    """Return the documents that have been in progress for the longest time, oldest first."""
    # The index is sorted by URI, so all are read, and *most* are kept.
    found = (record for status in IN_MOTION for record in documents_of(connection, status))
    return heapq.nsmallest(most, found, key=_since)


def queues(connection: Connection) -> dict[str, int]:
    """Count the messages of each queue, including delayed ones and those in flight; SQS counts approximately."""
    sqs = connection.client("sqs")
    urls = {
        "events": connection.queue_url,
        "followed": connection.status_queue_url,
        "jobs": connection.jobs_queue_url,
        "dead_letters": connection.dead_letter_queue_url,
    }
    found = {}
    for name, url in urls.items():
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=_DEPTH)["Attributes"]
        found[name] = sum(int(value) for value in attributes.values())
    return found


def _advice(record: DocumentRecord) -> str:
    advice, can_replay = advice_for(record.reason)
    return f"{advice}. Run: ragstack replay '{record.uri}'" if can_replay else advice


def _since(record: DocumentRecord) -> float:
    return (record.finished_at if record.is_final else record.received_at) or record.updated_at


def _age(record: DocumentRecord) -> float:
    return max(0.0, time.time() - _since(record))
