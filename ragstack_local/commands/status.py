"""``ragstack status``."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from ragstack_common.registry.records import ABANDONED, DocumentRecord, Status
from ragstack_local import display
from ragstack_local.display import console, counted, print_below
from ragstack_local.documents import ApiDocuments
from ragstack_local.following import registry_of
from ragstack_local.registry_view import IN_MOTION, Queues, RegistryView, advice, seconds_since
from ragstack_local.targets import NOTHING_FOUND, AsJson, Target, with_target

SHOWN: Final = 10
"""Maximum lines of the lists of documents."""

LABEL: Final = 16

_UNDER_WAY: Final = (Status.WAITING, Status.SUBMITTING, Status.INDEXING, Status.DELETING)


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
        view = RegistryView(connection)
        if as_json:
            display.print_json(_as_json(view, failed=failed))
        elif failed:
            # The index is eventually consistent, so the records decide.
            uris = [record.uri for record in view.documents(Status.FAILED)]
            _print_failed([r for r in registry_of(connection).read(uris).values() if r.status is Status.FAILED])
        else:
            display.print_urls(connection)
            _print_overview(view)


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
        under_way = [document for each in _UNDER_WAY for document in documents.listed(each)]
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


def _as_json(view: RegistryView, *, failed: bool) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "documents": view.counts(),
        "queues": asdict(view.queues()),
        "in_motion": [_plain(record) for record in view.in_motion()],
    }
    if failed:
        answer["failed"] = [{**_plain(record), "advice": advice(record)} for record in view.documents(Status.FAILED)]
    return answer


def _plain(record: DocumentRecord) -> dict[str, Any]:
    return {
        "uri": record.uri,
        "status": str(record.status),
        "reason": record.reason,
        "attempts": record.attempts,
        "seconds": round(seconds_since(record), 1),
    }


def _print_overview(view: RegistryView) -> None:
    with console.status("Reading the registry ...") as progress:

        def read(count: int) -> None:
            progress.update(f"Reading the registry: {count:,} documents ...")

        counts = view.counts()
        in_progress, failed = view.in_motion(SHOWN, read), view.failed(SHOWN, read)
    _print_counts(counts, view.queues())
    _print_in_progress(in_progress, sum(counts.get(each, 0) for each in IN_MOTION))
    for record in failed:
        # Never wrapped: users copy it.
        reason = record.reason or "no reason given"
        console.print(Text.assemble((str(record.status), "red"), f" {record.uri}: {reason}"), soft_wrap=True)
    if count := counts.get(Status.FAILED, 0):
        if count > SHOWN:
            console.print(f"... and {count - SHOWN:,} more that failed earlier", style="dim")
        console.print("`ragstack status --failed` says what to do about each.", style="yellow")


def _print_counts(counts: Mapping[str, int], queues: Queues) -> None:
    documents = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    rows = {
        "Documents": documents or "none",
        "Waiting events": f"{queues.events:,}",
        "Being followed": f"{queues.followed:,}",
        "Waiting jobs": f"{queues.jobs:,}",
        "Dead letters": f"{queues.dead_letters:,}",
    }
    for name, value in rows.items():
        console.print(Text.assemble((f"{name:{LABEL}}", "dim"), f" {value}"))
    if queues.dead_letters:
        console.print("`ragstack failures` lists the dead letters, `ragstack replay` sends them again.", style="yellow")


def _print_in_progress(records: Sequence[DocumentRecord], count: int) -> None:
    for record in records:
        age = display.duration(seconds_since(record))
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
        age = display.duration(seconds_since(record))
        print_below(f"{counted(record.attempts, 'attempt')}, failed {age} ago", "dim")
        print_below(advice(record), "yellow")
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
