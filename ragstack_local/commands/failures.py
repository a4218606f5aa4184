"""``ragstack failures``, ``ragstack replay`` and ``ragstack discard``: clients of the API's operator routes."""

import asyncio
import shlex
import time
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.progress import Progress
from rich.text import Text

from ragstack_common.registry.document_status import DocumentStatus
from ragstack_local.api.calls import run
from ragstack_local.connection.following import DELETED, ENDED, FOUND, follow
from ragstack_local.connection_options import AsJson, ConnectionOptions, Timeout, Wait, with_options
from ragstack_local.errors import INTERRUPTED, NOTHING_FOUND, StackError
from ragstack_local.show import display
from ragstack_local.show.display import console, counted, print_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragstack_common.services.failure_models import FailedDocument, FailureList, ReplayAnswer, ReplayedDocument
    from ragstack_local.api.http_operations import HttpOperations

FAILURES: Final = "/api/failures"

EXCERPT_CHARACTERS: Final = 200
"""How much of an unreadable message is listed: two lines."""

_SETTLED: Final = frozenset({*FOUND, DELETED})
_NOT_READ: Final = DocumentStatus("WAITING", "Its message has not been read yet")


@with_options
def failures(stack: ConnectionOptions, as_json: AsJson = False) -> None:
    """List failed documents, and the documents in the dead-letter queue.

    Each is listed once; the reason and what to do next follow the documents that they are about. The dead letters stay
    in their queue.

    Example:  ragstack failures

    For a program:  ragstack failures --json
    """
    found = _list_failures(stack.api())
    if as_json:
        display.print_json(found)
        return
    for alike in _by_cause(found.documents):
        for document in alike:
            style = "green" if document.status in _SETTLED else "red"
            console.print(Text.assemble((document.status, style), " ", (document.uri, "bold")), soft_wrap=True)
            _print_letters(document)
        _print_cause(alike)
    for message in found.unreadable:
        heading = Text.assemble(("UNREADABLE", "magenta"), " message ", (message.message_id, "bold"))
        console.print(heading, soft_wrap=True)
        print_below(message.cause or "no cause given")
        body = " ".join(message.body.split())
        print_below(f"{body[:EXCERPT_CHARACTERS]}{' …' if len(body) > EXCERPT_CHARACTERS else ''}", "dim")
        print_below(f"If it is not needed: ragstack discard {message.message_id}", "yellow")
    if not found.complete:
        console.print("The dead-letter queue has more messages than these.", style="yellow")
    if not (found.documents or found.unreadable):
        console.print("Nothing failed, and there is no dead letter.")


@with_options
def replay(
    stack: ConnectionOptions,
    uris: Annotated[
        list[str] | None, typer.Argument(metavar="URI", help="Only these documents, as listed by `ragstack failures`.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every dead letter, and every failed document without one.")
    ] = False,
    wait: Wait = True,
    timeout: Timeout = 900.0,
    as_json: AsJson = False,
) -> None:
    """Send failed documents again, after their cause is removed.

    Without a URI, the documents of every dead letter.
    A dead letter is deleted after its documents were sent: an interruption never loses one.
    Unreadable messages stay: `ragstack discard --unreadable` deletes them.

    Example:  ragstack replay

    One document:  ragstack replay s3://ragstack-documents/handbook/leave.md

    Also failed documents without a dead letter:  ragstack replay --all

    For a program:  ragstack replay --json
    """
    if uris and everything:
        raise typer.BadParameter("give URIs, or --all, not both", param_hint="--all")
    api = stack.api()
    statuses: dict[str, DocumentStatus] = {}
    try:
        with display.progress(as_json=as_json) as bars:
            replayed = _send(api, {"documents": uris or [], "failed": everything})
            statuses.update(dict.fromkeys((document.uri for document in replayed.documents), _NOT_READ))
            if wait:
                _follow_documents(api, replayed.documents, bars, statuses, timeout)
    except KeyboardInterrupt:
        display.console_for(as_json=as_json).print(display.interrupted(statuses))
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        rows = [
            {"uri": uri, "status": str(status), "reason": status.reason, "sent": True}
            for uri, status in statuses.items()
        ]
        letters = {"deleted": replayed.deleted, "unreadable": replayed.unreadable, "shared": replayed.shared}
        display.print_json({"documents": rows, "letters": letters})
    else:
        _print_replayed(replayed)
        if wait:
            display.print_unsearchable({uri: status for uri, status in statuses.items() if status != DELETED})
            if statuses:
                console.print(display.summary(statuses))
    if not wait:
        return
    if any(status not in ENDED for status in statuses.values()):
        raise StackError(f"Not every document reached a final status within {timeout:g} s: see `ragstack status`")
    if any(status not in _SETTLED for status in statuses.values()):
        raise typer.Exit(NOTHING_FOUND)


@with_options
def discard(
    stack: ConnectionOptions,
    message_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="MESSAGE_ID", help="These dead letters, as listed by `ragstack failures`."),
    ] = None,
    unreadable: Annotated[
        bool, typer.Option("--unreadable", help="All unreadable messages; asks first, unless --yes is given.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete dead letters without replaying them.

    Each message is printed before it is deleted, with what stays wrong.

    Example:  ragstack discard 6f1d3c2e-95a4-4f0e-8c6f-0d1c9c6f6f10

    Unreadable messages, kept in a file:  ragstack discard --unreadable --yes --json > letters.json
    """
    from ragstack_common.services.failure_models import DiscardAnswer  # noqa: PLC0415 - help does without

    if not (message_ids or unreadable):
        raise typer.BadParameter("name messages, or give --unreadable", param_hint="MESSAGE_ID")
    api = stack.api()
    request = {"message_ids": message_ids or [], "unreadable": unreadable, "dry_run": True}
    chosen = run(api.request("POST", f"{FAILURES}/discard", DiscardAnswer, request)).messages
    if as_json:
        display.print_json({"discarded": chosen})
    elif not chosen:
        console.print("There is no unreadable dead letter.")
    for message in () if as_json else chosen:
        console.print(Text.assemble("message ", (message.message_id, "bold")), soft_wrap=True)
        print_below(message.cause or "no cause given")
        # Unbroken, so that users can copy it.
        console.print(message.body, no_wrap=True, overflow="ignore", crop=False)
        for note in message.notes:
            print_below(note, "yellow")
    if not chosen:
        return
    if unreadable and not yes:
        typer.confirm(f"Discard {counted(len(chosen), 'dead letter')} for good?", abort=True, err=True)
    # Exactly the messages that were shown.
    shown = {"message_ids": [message.message_id for message in chosen]}
    done = run(api.request("POST", f"{FAILURES}/discard", DiscardAnswer, shown))
    out = display.console_for(as_json=as_json)
    out.print(f"Discarded: {counted(len(done.messages), 'dead letter')}")


def _list_failures(api: "HttpOperations") -> "FailureList":
    """Read every page. A document with a dead letter is on the first page, and may be on another one too."""
    from ragstack_common.services.failure_models import FailureList  # noqa: PLC0415 - help does without

    found = run(api.request("GET", FAILURES, FailureList))
    documents = {document.uri: document for document in found.documents}
    token = found.next_token
    while token:
        page = run(api.request("GET", FAILURES, FailureList, parameters={"next_token": token}))
        documents = {document.uri: document for document in page.documents} | documents
        token = page.next_token
    return found.model_copy(update={"documents": [documents[uri] for uri in sorted(documents)], "next_token": None})


def _by_cause(documents: "Sequence[FailedDocument]") -> "list[list[FailedDocument]]":
    """Group documents that failed for the same reasons and need the same action; the largest group comes first."""
    groups: dict[tuple[Any, ...], list[FailedDocument]] = {}
    for document in documents:
        groups.setdefault((*document.reasons, document.advice, document.can_replay), []).append(document)
    return sorted(groups.values(), key=len, reverse=True)


def _print_cause(failures: "Sequence[FailedDocument]") -> None:
    """Print the reasons and what to do, once for all failures with the same cause."""
    first = failures[0]
    if len(failures) > 1:
        print_below(f"{len(failures)} documents failed for the same reason:")
    for reason in first.reasons:
        print_below(reason)
    command = shlex.join(["ragstack", "replay", *(each.uri for each in failures)])
    print_below(f"{first.advice}. Run: {command}" if first.can_replay else first.advice, "yellow")


def _print_letters(failure: "FailedDocument") -> None:
    messages = f"; message {', '.join(failure.message_ids)}" if failure.message_ids else ""
    letters = counted(len(failure.message_ids), "dead letter")
    age = display.duration(time.time() - datetime.fromisoformat(failure.since).timestamp())
    print_below(f"{letters}, {counted(failure.attempts, 'attempt')}, {age} ago{messages}", "dim")


def _send(api: "HttpOperations", request: Mapping[str, Any]) -> "ReplayAnswer":
    """Replay until the API has nothing more to send."""
    from ragstack_common.services.failure_models import ReplayAnswer  # noqa: PLC0415 - help does without

    path = f"{FAILURES}/replay"
    pages = [run(api.request("POST", path, ReplayAnswer, request))]
    while token := pages[-1].next_token:
        pages.append(run(api.request("POST", path, ReplayAnswer, {**request, "next_token": token})))
    return ReplayAnswer(
        documents=list({document.uri: document for page in pages for document in page.documents}.values()),
        deleted=sum(page.deleted for page in pages),
        # What stays is counted again by each request that reads the queue.
        unreadable=max(page.unreadable for page in pages),
        shared=max(page.shared for page in pages),
        next_token=None,
    )


def _follow_documents(
    api: "HttpOperations",
    documents: "Sequence[ReplayedDocument]",
    bars: Progress,
    statuses: dict[str, DocumentStatus],
    timeout: float,
) -> None:
    """Poll the documents until each has a final status that is newer than the replay, or the time is over."""
    if not documents:
        return
    bar = bars.add_task("Indexing  ", total=len(documents), detail="")
    replayed: dict[str, Any] = {document.uri: document for document in documents}

    def show(found: Mapping[str, DocumentStatus]) -> None:
        statuses.update(found)
        bars.update(bar, completed=sum(s in ENDED for s in found.values()), detail=display.summary(statuses))

    def ask(waiting: Mapping[str, Any]) -> dict[str, DocumentStatus]:
        return dict(zip(waiting, run(_statuses_since(api, waiting.values())), strict=True))

    follow(ask, replayed, show, timeout)


async def _statuses_since(api: "HttpOperations", replayed: "Iterable[ReplayedDocument]") -> list[DocumentStatus]:
    """Return the statuses of documents; not a final one that a document had before the replay."""
    from ragstack_common.services.document_models import DocumentDetail  # noqa: PLC0415 - help does without
    from ragstack_common.services.operations import DocumentStatusRequest  # noqa: PLC0415

    parallel = asyncio.Semaphore(8)

    async def status(document: "ReplayedDocument") -> DocumentStatus:
        async with parallel:
            found_by_name = (await api.document(DocumentStatusRequest(document=document.uri))).documents
            listed = [each for each in found_by_name if each.id == document.id]
            if not listed or listed[0].updated_at == document.updated_at:
                return _NOT_READ
            if listed[0].status not in ENDED:
                return DocumentStatus(listed[0].status, listed[0].reason)
            # Only the detail says whether the document will be processed again.
            found = await api.request("GET", f"/api/documents/{document.id}", DocumentDetail)
            if found.again:
                return DocumentStatus("WAITING", found.waiting_for)
            return DocumentStatus(found.status, found.reason)

    return await asyncio.gather(*map(status, replayed))


def _print_replayed(replayed: "ReplayAnswer") -> None:
    sent, deleted = counted(len(replayed.documents), "document"), counted(replayed.deleted, "dead letter")
    console.print(f"Sent again: {sent}; deleted: {deleted}")
    for count, why, command in (
        (replayed.unreadable, "they are unreadable", "`ragstack discard --unreadable` deletes them"),
        (replayed.shared, "they name other documents too", "`ragstack replay` replays them all"),
    ):
        if count:
            text = f"Kept because {why}: {counted(count, 'dead letter')}; {command}"
            console.print(text, style="yellow", soft_wrap=True)
