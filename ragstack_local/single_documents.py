"""Documents that are named: everything about each, and their deletion."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ragstack_common.documents import DocumentStatus
from ragstack_common.errors import DocumentNotFoundError
from ragstack_local import api_documents, display
from ragstack_local.asking import NOTHING_FOUND
from ragstack_local.awaiting import DELETED, Gone, follow, registry_of
from ragstack_local.bucket import Bucket
from ragstack_local.connection import DEFAULT_PREFIX, Connection
from ragstack_local.targets import INTERRUPTED, ApiKey, ApiUrl, OnAws, Prefix, Token, api_of, connect, names_api

if TYPE_CHECKING:
    from ragstack_common.document_api.models import DocumentDetail


def described(connection: Connection, names: Sequence[str]) -> Iterator["DocumentDetail"]:
    """Tell everything about documents, with what changed in the bucket that the registry has not heard of yet.

    Args:
        connection: The stack.
        names: URIs, or keys in the documents bucket.

    Raises:
        DocumentNotFoundError: Neither the bucket nor the registry has one of them.
        RegistryError: The registry cannot be read.
        ServiceUnavailableError: The bucket cannot be looked into.
    """
    # They are slow to import, and the other commands start without them.
    from ragstack_common.document_api.answers import DocumentNow, detail_of  # noqa: PLC0415
    from ragstack_common.document_api.bucket import DocumentsBucket  # noqa: PLC0415

    bucket = DocumentsBucket(connection.bucket, connection.client("s3"))
    uris = [name if name.startswith("s3://") else bucket.uri(name) for name in names]
    for uri, record in registry_of(connection).read(uris).items():
        key = bucket.key(uri)
        if key is None:
            raise DocumentNotFoundError(f"{uri} is no document of this stack, whose documents lie in {bucket.uri('')}")
        document = DocumentNow(record, bucket.look(key))
        if record.revision == 0 and not document.is_newer:
            raise DocumentNotFoundError(f"Neither the bucket nor the registry has {uri}; nothing was done")
        yield detail_of(document)


def delete(
    names: Annotated[list[str], typer.Argument(metavar="URI", help="Documents, by URI or by key.", show_default=False)],
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Until no search finds them, or only until the bucket has them.")
    ] = True,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for all documents.", min=1)] = 900.0,
    aws: OnAws = False,
    stack_prefix: Prefix = DEFAULT_PREFIX,
    api_url: ApiUrl = None,
    api_key: ApiKey = None,
    token: Token = None,
) -> None:
    """Delete documents and their sidecars from the bucket, and wait until no search finds them any more.

    Example:  ragstack delete s3://ragstack-documents/handbook/leave.md

    By key:  ragstack delete handbook/leave.md handbook/travel.md
    """
    if names_api(aws, api_url):
        caller = api_of(aws, stack_prefix, api_url, api_key, token)
        _end(api_documents.delete(caller, names, timeout, wait=wait), wait=wait)
        return
    connection = connect(aws, stack_prefix)
    documents = list(described(connection, names))
    bucket, statuses = Bucket.of(connection), {}
    try:
        with display.progress() as bars:
            deleting = bars.add_task("Deleting", total=len(documents), detail="")
            for document in documents:
                bucket.remove(document.key)
                statuses[document.uri] = Gone().until_then
                if not wait:
                    bars.advance(deleting)

            def show(found: Mapping[str, DocumentStatus]) -> None:
                statuses.update(found)
                ended = sum(status == DELETED for status in found.values())
                bars.update(deleting, completed=ended, detail=display.summary(found))

            if wait:
                awaited = {document.uri: Gone() for document in documents}
                follow(registry_of(connection), awaited, show, timeout, current=bucket.current)
    except KeyboardInterrupt:
        display.console.print(display.interrupted(statuses))
        raise typer.Exit(INTERRUPTED) from None
    _end(statuses, wait=wait)


def _end(statuses: Mapping[str, DocumentStatus], *, wait: bool) -> None:
    left = {uri: status for uri, status in statuses.items() if status != DELETED}
    if wait:
        display.print_unsearchable(left)
    display.console.print(display.summary(statuses))
    if wait and left:
        raise typer.Exit(NOTHING_FOUND)
