"""``ragstack status``."""

import json
import shlex
import time
from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer
from rich.text import Text

from ragstack_common.ingestion.advice import advice_for
from ragstack_common.registry.records import FINAL, Status
from ragstack_local.api.calls import run
from ragstack_local.connection.connection import Connection
from ragstack_local.connection_options import AsJson, ConnectionOptions, with_options
from ragstack_local.errors import NOTHING_FOUND
from ragstack_local.files.documents import ApiDocuments
from ragstack_local.show import display
from ragstack_local.show.display import console, counted, print_below

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ragstack_common.services.document_models import DocumentDetail, DocumentReceipt, DocumentSummary

SummaryT = TypeVar("SummaryT", bound="DocumentSummary")

SHOWN: Final = 10
"""Maximum lines of the list of documents with a status."""

MAX_READ: Final = 100
"""Documents of a status that are read, one page of the API."""

IN_MOTION: Final = tuple(status for status in Status if status not in FINAL and status is not Status.UPLOADED)


@with_options
def status(
    stack: ConnectionOptions,
    documents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="URI", help="Show the details of these documents, by URI, key or id.", show_default=False
        ),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="List each document that failed, with the reason and what to do.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show how many documents can be searched, which are in progress, indexed in part or failed, and the stack's URLs.

    Example:  ragstack status

    What to do about failed documents:  ragstack status --failed

    All details of a document, and whether searches find it:  ragstack status handbook/leave.md
    """
    connection = None if stack.is_api else stack.connect()
    of_api = ApiDocuments(stack.api(connection))
    if documents:
        details = [detail for name in documents for detail in of_api.details(name)]
        _print(details, details, _print_document, as_json=as_json)
        if not all(each.searchable for each in details):
            raise typer.Exit(NOTHING_FOUND)
    elif failed:
        found = list(of_api.listed(status=Status.FAILED))
        in_json = [{**each.model_dump(mode="json"), "advice": _advice(each)} for each in found]
        _print(found, {"failed": in_json}, _print_failed, as_json=as_json)
        if not (found or as_json):
            console.print("No document failed.")
    else:
        overview = _overview(of_api, connection)
        if as_json:
            display.print_json(overview)
            return
        if connection:
            display.print_urls(connection)
        _print_overview(overview)


def _print(documents: "Sequence[SummaryT]", in_json: Any, each: "Callable[[SummaryT], None]", *, as_json: bool) -> None:
    if as_json:
        display.print_json(in_json)
        return
    for document in documents:
        each(document)


def _overview(documents: ApiDocuments, connection: Connection | None) -> dict[str, Any]:
    from ragstack_common.services.document_models import Facets  # noqa: PLC0415 - help does without

    def some(status: Status) -> "list[DocumentSummary]":
        return list(islice(documents.listed(status=status), MAX_READ))

    found: dict[str, Any] = {
        "searchable": run(documents.api.request("GET", "/api/facets", Facets, parameters={"limit": 1})).documents,
        "partial": some(Status.PARTIALLY_INDEXED),
        "in_motion": [document for each in IN_MOTION for document in some(each)],
        "failed": some(Status.FAILED),
    }
    if connection is None:
        return found
    return {**found, "queues": queues(connection), "embedding": connection.embedding()}


def _print_overview(found: Mapping[str, Any]) -> None:
    console.print(f"{counted(found['searchable'], 'document')} can be searched")
    if waiting := found.get("queues"):
        counts = ", ".join(f"{count:,} {name}" for name, count in waiting.items())
        console.print(f"Messages in queues: {counts}")
        if waiting["dead letters"]:
            console.print(
                "`ragstack failures` lists the dead letters, `ragstack replay` sends them again.", style="yellow"
            )
    _print_some(sorted(found["in_motion"], key=lambda each: str(each.received_at)), "cyan")
    _print_some(sorted(found["partial"], key=lambda each: str(each.finished_at), reverse=True), "yellow")
    _print_some(sorted(found["failed"], key=lambda each: str(each.finished_at), reverse=True), "red")
    if found["failed"]:
        console.print("`ragstack status --failed` says what to do about each.", style="yellow")


def _print_some(documents: "Sequence[DocumentSummary]", style: str) -> None:
    for document in documents[:SHOWN]:
        reason = f": {document.reason}" if document.reason else ""
        console.print(Text.assemble((document.status, style), f" {document.uri}{reason}"), soft_wrap=True)
    if len(documents) > SHOWN:
        least = "at least " if len(documents) >= MAX_READ else ""
        console.print(f"... and {least}{len(documents) - SHOWN:,} more", style="dim")


def _print_failed(document: "DocumentSummary") -> None:
    console.print(Text.assemble((document.status, "red"), " ", (document.uri, "bold")), soft_wrap=True)
    print_below(document.reason or "no reason given")
    age = display.duration(time.time() - datetime.fromisoformat(str(document.finished_at)).timestamp())
    print_below(f"{counted(document.attempts, 'attempt')}, failed {age} ago", "dim")
    print_below(_advice(document), "yellow")


def _print_document(document: "DocumentDetail") -> None:
    style = "green" if document.searchable else "red" if document.status == Status.FAILED else "cyan"
    console.print(Text.assemble((document.status, style), " ", (document.uri, "bold")), soft_wrap=True)
    receipt = document.receipt
    is_partial = document.status == Status.PARTIALLY_INDEXED and not (receipt and receipt.unreadable)
    found = "find only a part of" if is_partial else "find" if document.searchable else "do not find"
    print_below(f"Searches {found} this version")
    # The lines of the receipt say more than its summary.
    if document.reason and not (is_partial and receipt and document.knowledge_base_status == Status.INDEXED):
        print_below(document.reason)
    if document.waiting_for:
        print_below(f"Next: {document.waiting_for}", "yellow")
    size = "" if document.size is None else f"{counted(document.size, 'byte')}, "
    print_below(f"{size}{counted(document.attempts, 'attempt')}, id {document.id}", "dim")
    if receipt:
        _print_receipt(receipt)
    for name, value in document.attributes.items():
        print_below(f"{name} = {json.dumps(value, ensure_ascii=False)}", "dim")
    for line in document.history:
        reason = f": {line.reason}" if line.reason and line.reason != document.reason else ""
        print_below(f"{line.at}  {line.status}{reason}", "dim")


def _print_receipt(receipt: "DocumentReceipt") -> None:
    """Print what the file has and what of it is in the index; parts that are missing are printed first."""
    missing: dict[str, list[str]] = {}
    for part in receipt.not_read:
        example = f", such as “{part.example}”" if part.example else ""
        missing.setdefault(f"{part.why}{example}", []).append(part.part)
    for why, parts in missing.items():
        print_below(f"Not read: {', '.join(parts)}: {why}", "yellow")
    if (more := receipt.parts_not_read - len(receipt.not_read)) > 0:
        print_below(f"Not read: {counted(more, 'more part')}", "yellow")
    # Otherwise the lines above say why.
    is_explained = not receipt.not_read or receipt.compared < receipt.words
    for line in receipt.counted:
        if line.number:
            why = f" ({line.why})" if line.why and is_explained else ""
            print_below(f"{line.what}: {line.read:,} of {line.number:,} in the index{why}", "dim")
    if receipt.recognized:
        least = ", ".join(f"{each.part} {each.confidence:.0%}" for each in receipt.recognized[:3])
        print_below(f"read from images (OCR); least certain: {least}", "dim")
    for left in receipt.left_out:
        print_below(f"{left.what}: {left.number:,} left out ({left.why})", "dim")


def queues(connection: Connection) -> dict[str, int]:
    """Count the messages of each queue, including delayed ones and those in flight; SQS counts approximately."""
    from ragstack_common.services.status import read_depth  # noqa: PLC0415 - help does without

    sqs = connection.client("sqs")
    urls = {
        "events": connection.queue_url,
        "status checks": connection.status_queue_url,
        "conversions": connection.conversion_queue_url,
        "large conversions": connection.large_conversion_queue_url,
        "receipts": connection.receipts_queue_url,
        "jobs": connection.jobs_queue_url,
        "dead letters": connection.dead_letter_queue_url,
    }
    depths = [read_depth(sqs, name, url) for name, url in urls.items()]
    return {each.name: each.waiting + each.in_flight for each in depths}


def _advice(document: "DocumentSummary") -> str:
    advice, can_replay = advice_for(document.reason)
    return f"{advice}. Run: {shlex.join(['ragstack', 'replay', document.uri])}" if can_replay else advice
