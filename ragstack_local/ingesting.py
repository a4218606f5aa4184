"""The commands that put documents in, and show how they stand."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragstack_common.documents import DocumentStatus
from ragstack_common.errors import InvalidDocumentError
from ragstack_common.registry.records import Attributes, DocumentRecord, Status
from ragstack_local import api_documents, display, ingestion_display
from ragstack_local.advice import advice
from ragstack_local.asking import NOTHING_FOUND
from ragstack_local.attributes import read_options
from ragstack_local.awaiting import ENDED, FOUND, registry_of
from ragstack_local.bucket import Bucket
from ragstack_local.connection import DEFAULT_PREFIX, Connection
from ragstack_local.ingest import SHOW_SKIPPED, Round, note_passed_over
from ragstack_local.ingest import ingest as upload_and_follow
from ragstack_local.registry_view import IN_MOTION, RegistryView, seconds_since
from ragstack_local.single_documents import described
from ragstack_local.stack.errors import StackError
from ragstack_local.targets import (
    INTERRUPTED,
    ApiKey,
    ApiUrl,
    AsJson,
    OnAws,
    Prefix,
    Token,
    api_of,
    connect,
    names_api,
)
from ragstack_local.uploads import FOLLOW_LINKS, Selection, select, shown

if TYPE_CHECKING:
    from ragstack_common.api.documents import DocumentDetail
    from ragstack_local.watching import Watch


def ingest(
    paths: Annotated[
        list[Path], typer.Argument(help="Files, or folders: everything in them that is not hidden.", show_default=False)
    ],
    prefix: Annotated[str, typer.Option(help="Put before every key in the bucket.")] = "",
    corpus: Annotated[str | None, typer.Option(help="The corpus that the documents belong to.")] = None,
    version: Annotated[str | None, typer.Option(help="The version of the documents, a text.")] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option(
            "--metadata",
            metavar="NAME=VALUE",
            help="Another attribute of every document. Repeatable. A value that is JSON is read as such: a number, "
            'true, false, or a list of texts like \'["a", "b"]\'; every other one is a text.',
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Upload also what is in the bucket already just as it is here.")
    ] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Then go on: upload what changes, and delete from the bucket what is deleted, until Ctrl-C.",
        ),
    ] = False,
    follow_links: Annotated[
        bool, typer.Option(FOLLOW_LINKS, help="Follow symbolic links that leave the folder, instead of skipping them.")
    ] = False,
    show_skipped: Annotated[
        bool, typer.Option(SHOW_SKIPPED, help="List every skipped file with the reason, not only how many.")
    ] = False,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for all documents.", min=1)] = 900.0,
    as_json: AsJson = False,
    aws: OnAws = False,
    stack_prefix: Prefix = DEFAULT_PREFIX,
    api_url: ApiUrl = None,
    api_key: ApiKey = None,
    token: Token = None,
) -> None:
    """Upload documents and wait until each is searchable, or it is known why not.

    A file NAME.metadata.json next to a document holds its attributes:  {"metadataAttributes": {"topic": "travel"}}

    The attributes of --corpus, --version and --metadata are added to every document.
    If a document's sidecar names the same attribute, the sidecar wins.

    A file that cannot be uploaded does not stop the others. It is listed at the end with its reason, and the exit
    code is 1.

    A document whose content and attributes are unchanged is not uploaded again, even if it failed.
    An attribute that neither the sidecar nor an option gives any more is removed from the document.
    With --watch, documents that you delete here are deleted from the bucket. Otherwise no document is deleted.

    Example:  ragstack ingest handbook/ prices.csv --prefix company

    With attributes:  ragstack ingest handbook/ --corpus people --version 2026 --metadata 'audience=["staff", "hr"]'

    Follow a folder while you work in it:  ragstack ingest notes/ --watch

    For a program:  ragstack ingest handbook/ --json

    With --api-url every file is uploaded, changed or not, by permissions that the API gives.
    """
    by_api = names_api(aws, api_url)
    if by_api and watch:
        raise typer.BadParameter("this needs the stack's bucket and registry: give --aws", param_hint="--watch")
    if as_json and watch:
        raise typer.BadParameter("--watch runs until Ctrl-C, so there is no result to print", param_hint="--json")
    given = _attributes(corpus, version, metadata or [])
    selection = select(paths, prefix, follow_links=follow_links)
    note_passed_over(selection, every=show_skipped, hints=True, beside=as_json)
    if not selection.files and not selection.faults and not watch:
        raise StackError("There is no document below these paths")
    watched, done = None, Round()
    try:
        if by_api and selection.files:
            caller = api_of(aws, stack_prefix, api_url, api_key, token)
            done = api_documents.upload(caller, selection.files, timeout, given=given, beside=as_json)
        elif selection.files or watch:
            connection = connect(aws, stack_prefix)
            watched = _watch(connection, paths, prefix, given, follow_links=follow_links) if watch else None
            if watched:
                watched.note(selection)
            done = upload_and_follow(connection, selection.files, timeout, given=given, force=force, beside=as_json)
    except KeyboardInterrupt as interrupt:
        (display.errors if as_json else display.console).print(str(interrupt))
        raise typer.Exit(INTERRUPTED) from None
    done.add_faults(selection.faults)
    if as_json:
        display.print_json(_round(done, selection))
    else:
        ingestion_display.print_round(done)
    if watched:
        _keep_watching(watched)
    else:
        end(done.statuses, timeout)


def status(
    documents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="URI", help="These documents, by URI or by key: everything about each.", show_default=False
        ),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Each document that failed: why, since when, and what to do.")
    ] = False,
    as_json: AsJson = False,
    aws: OnAws = False,
    stack_prefix: Prefix = DEFAULT_PREFIX,
    api_url: ApiUrl = None,
    api_key: ApiKey = None,
    token: Token = None,
) -> None:
    """Show where the stack is, how many documents are in which state and why, and what waits in the queues.

    Example:  ragstack status

    What to do about what failed:  ragstack status --failed

    Everything about one document, and whether searches find it:  ragstack status handbook/leave.md

    With --api-url: how many documents can be searched, and each that failed or is on its way.
    """
    if names_api(aws, api_url):
        caller = api_of(aws, stack_prefix, api_url, api_key, token)
        if documents:
            _show_documents(api_documents.described(caller, documents), as_json)
        else:
            api_documents.print_status(caller, failed=failed, as_json=as_json)
        return
    connection = connect(aws, stack_prefix)
    if documents:
        _show_documents(described(connection, documents), as_json)
        return
    view = RegistryView(connection)
    if as_json:
        display.print_json(_status(view, failed))
        return
    if failed:
        _print_failed(connection, view)
        return
    display.print_urls(connection)
    with display.console.status("Reading the registry ...") as shown:

        def read(count: int) -> None:
            shown.update(f"Reading the registry: {count:,} documents ...")

        counts = view.counts()
        moving, last_failed = (find(ingestion_display.SHOWN, read) for find in (view.in_motion, view.failed))
    ingestion_display.print_counts(counts, view.queues())
    ingestion_display.print_in_motion(moving, sum(counts.get(status, 0) for status in IN_MOTION))
    ingestion_display.print_failed_in_short(last_failed, counts.get(Status.FAILED, 0))


def end(statuses: Mapping[str, DocumentStatus], timeout: float) -> None:
    """End a command that followed documents with the code that says how they are.

    Raises:
        StackError: Some did not get to a final state in time.
        Exit: With 1 where one is not searchable.
    """
    if any(status not in ENDED for status in statuses.values()):
        raise StackError(
            f"Not every document got to a final state within {timeout:g} s; `ragstack status` shows how it goes on"
        )
    if any(status not in FOUND for status in statuses.values()):
        raise typer.Exit(NOTHING_FOUND)


def _attributes(corpus: str | None, version: str | None, metadata: Sequence[str]) -> Attributes:
    try:
        return read_options(corpus, version, metadata)
    except InvalidDocumentError as error:
        option, _, words = str(error).partition(": ")
        raise typer.BadParameter(words, param_hint=option) from None


def _watch(connection: Connection, paths: list[Path], prefix: str, given: Attributes, *, follow_links: bool) -> "Watch":
    from ragstack_local.watching import Watch  # noqa: PLC0415 - the other commands start without the library

    return Watch(
        paths,
        prefix,
        Bucket.of(connection, given),
        registry_of(connection),
        tell=ingestion_display.print_outcome,
        warn=lambda text: display.console.print(text, style="yellow", soft_wrap=True),
        follow_links=follow_links,
    )


def _keep_watching(watched: "Watch") -> None:
    display.console.print("\nWatching. Ctrl-C ends it.")
    try:
        watched.run()
    except KeyboardInterrupt:
        left = watched.on_their_way
        more = f" {display.counted(left, 'document')} on the way without us." if left else ""
        display.console.print(f"\nNo longer watching.{more}")


def _round(done: Round, selection: Selection) -> dict[str, Any]:
    return {
        "documents": [
            {
                "uri": name if name in done.paths else None,
                "path": done.paths.get(name, name),
                "status": str(status),
                "reason": status.reason,
                "uploaded": name in done.uploaded,
            }
            for name, status in done.statuses.items()
        ],
        "skipped": [{"path": shown(each.path), "reason": str(each.why)} for each in selection.skipped],
    }


def _status(view: RegistryView, failed: bool) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "documents": view.counts(),
        "queues": asdict(view.queues()),
        "in_motion": [_plain(record) for record in view.in_motion()],
    }
    if failed:
        answer["failed"] = [{**_plain(record), "advice": advice(record)} for record in view.documents(Status.FAILED)]
    return answer


def _show_documents(documents: Iterable["DocumentDetail"], as_json: bool) -> None:
    found = list(documents)
    if as_json:
        display.print_json([each.model_dump(mode="json") for each in found])
    for each in () if as_json else found:
        ingestion_display.print_document(each)
    if not all(each.searchable for each in found):
        raise typer.Exit(NOTHING_FOUND)


def _plain(record: DocumentRecord) -> dict[str, Any]:
    return {
        "uri": record.uri,
        "status": str(record.status),
        "reason": record.reason,
        "attempts": record.attempts,
        "seconds": round(seconds_since(record), 1),
    }


def _print_failed(connection: Connection, view: RegistryView) -> None:
    found = list(view.documents(Status.FAILED))
    # As they are now: the index follows the table a little later.
    for record in registry_of(connection).read(record.uri for record in found).values():
        if record.status is Status.FAILED:
            ingestion_display.print_failed(record)
    if not found:
        display.console.print("No document failed.")
