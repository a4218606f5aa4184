"""Show and delete documents, by name, by folder or by corpus."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ragstack_common.documents import SIDECAR_SUFFIX, DocumentStatus
from ragstack_common.errors import DocumentNotFoundError
from ragstack_common.registry.documents import MAX_LIMIT
from ragstack_common.registry.records import Status
from ragstack_local import api_documents, display
from ragstack_local.asking import NOTHING_FOUND
from ragstack_local.awaiting import DELETED, ENDED, Gone, follow, registry_of
from ragstack_local.bucket import Bucket
from ragstack_local.connection import DEFAULT_PREFIX, Connection
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
    not_blank,
)

if TYPE_CHECKING:
    from ragstack_common.api.documents import DocumentDetail

_PREVIEWED: Final = 10
"""Keys that are shown before a folder or a corpus is deleted."""


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
    from ragstack_common.api.documents import (  # noqa: PLC0415
        DocumentNow,
        DocumentsBucket,
        detail_of,
    )

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
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="URI", help="Documents, by URI or by key; a folder ends with a slash.", show_default=False
        ),
    ] = None,
    corpus: Annotated[
        str | None, typer.Option(callback=not_blank, help="Only documents of this corpus; without a URI, all of them.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before deleting a folder or a corpus.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Until no search finds them, or only until the bucket has them.")
    ] = True,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for all documents.", min=1)] = 900.0,
    as_json: AsJson = False,
    aws: OnAws = False,
    stack_prefix: Prefix = DEFAULT_PREFIX,
    api_url: ApiUrl = None,
    api_key: ApiKey = None,
    token: Token = None,
) -> None:
    """Delete documents and their sidecars from the bucket, and wait until no search finds them any more.

    Before it deletes a folder or a corpus, it shows the number of documents and asks for confirmation.

    Example:  ragstack delete s3://ragstack-documents/handbook/leave.md

    By key:  ragstack delete handbook/leave.md handbook/travel.md

    A folder:  ragstack delete handbook/drafts/

    A corpus, without being asked:  ragstack delete --corpus people --yes

    The documents of a corpus in a folder:  ragstack delete handbook/ --corpus people
    """
    if not names and corpus is None:
        raise typer.BadParameter("name documents or a folder, or give --corpus", param_hint="URI")
    if names_api(aws, api_url):
        if corpus is not None or any(name.endswith("/") for name in names or ()):
            raise typer.BadParameter(
                "folders and corpora need the stack's bucket and registry: name documents, or give --aws instead",
                param_hint="--api-url",
            )
        caller = api_of(aws, stack_prefix, api_url, api_key, token)
        statuses = api_documents.delete(caller, names or (), timeout, wait=wait, beside=as_json)
        _end(statuses, wait=wait, as_json=as_json)
        return
    connection = connect(aws, stack_prefix)
    bucket = Bucket.of(connection)
    chosen = _choose(connection, bucket, names or [], corpus)
    if corpus is not None or any(name.endswith("/") for name in names or []):
        _confirm(bucket, chosen.keys, yes=yes, beside=as_json)
    try:
        statuses = _delete(connection, bucket, chosen, timeout if wait else None, beside=as_json)
    except KeyboardInterrupt as interrupt:
        (display.errors if as_json else display.console).print(str(interrupt))
        raise typer.Exit(INTERRUPTED) from None
    _end(statuses, wait=wait, as_json=as_json)


def _end(statuses: Mapping[str, DocumentStatus], *, wait: bool, as_json: bool) -> None:
    """Show what became of documents, and end with 1 where searches may still find one."""
    left = {uri: status for uri, status in statuses.items() if status != DELETED}
    if as_json:
        rows = [{"uri": uri, "status": str(found), "reason": found.reason} for uri, found in sorted(statuses.items())]
        display.print_json({"documents": rows})
    else:
        if wait:
            display.print_unsearchable(left)
        display.console.print(display.summary(statuses))
    if wait and left:
        raise typer.Exit(NOTHING_FOUND)


@dataclass(frozen=True)
class _Chosen:
    """What is to be deleted.

    Attributes:
        keys: Of documents, in order.
        leftovers: Of other objects in the folders: sidecars without documents, and the console's folder markers.
    """

    keys: Sequence[str]
    leftovers: Sequence[str] = ()


def _delete(
    connection: Connection, bucket: Bucket, chosen: _Chosen, timeout_seconds: float | None, *, beside: bool
) -> dict[str, DocumentStatus]:
    """Delete documents, and follow them for a time; None does not follow them.

    Raises:
        KeyboardInterrupt: The message says how far it got.
    """
    statuses: dict[str, DocumentStatus] = {}
    try:
        with display.progress(beside=beside) as bars:
            deleting = bars.add_task("Deleting", total=len(chosen.keys), detail="")
            with closing(bucket.remove_all(chosen.keys)) as removed:
                for key in removed:
                    statuses[bucket.uri_of(key)] = Gone().until_then
                    bars.advance(deleting)
            for key in chosen.leftovers:
                bucket.s3.delete_object(Bucket=bucket.name, Key=key)
            if timeout_seconds is None:
                return statuses
            waiting = bars.add_task("Waiting ", total=len(chosen.keys), detail="")

            def show(found: Mapping[str, DocumentStatus]) -> None:
                statuses.update(found)
                ended = sum(status in ENDED for status in statuses.values())
                bars.update(waiting, completed=ended, detail=display.summary(statuses))

            awaited = dict.fromkeys(statuses, Gone())
            follow(registry_of(connection), awaited, show, timeout_seconds, current=bucket.current)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(display.interrupted(statuses)) from None
    return statuses


def _choose(connection: Connection, bucket: Bucket, names: Sequence[str], corpus: str | None) -> _Chosen:
    """Find the documents to delete.

    Raises:
        DocumentNotFoundError: There is no such document, or none in a folder, or none of the corpus.
        RegistryError: The registry answered for a part only.
        ClientError: The bucket or the registry cannot be read.
    """
    keys: set[str] = set()
    leftovers: set[str] = set()
    for name in names:
        if name.endswith("/"):
            documents, others = _in_folder(bucket, name)
            keys |= documents
            leftovers |= others
    keys |= {document.key for document in _named(connection, bucket, [each for each in names if each[-1:] != "/"])}
    if corpus is None:
        return _Chosen(sorted(keys), sorted(leftovers))
    uris = [bucket.uri_of(key) for key in keys] if names else _of_corpus(connection, corpus)
    of_corpus = []
    # The index follows the table a little later, so that the records decide.
    for uri, record in sorted(registry_of(connection).read(uris).items()):
        key = bucket.key_of(uri)
        if key is not None and record.corpus == corpus and record.status is not Status.DELETED:
            of_corpus.append(key)
    if not of_corpus:
        raise DocumentNotFoundError(f"No such document belongs to the corpus {corpus}; nothing was deleted")
    return _Chosen(of_corpus)


def _in_folder(bucket: Bucket, name: str) -> tuple[set[str], set[str]]:
    prefix = bucket.key_of(name) if name.startswith("s3://") else name
    found = set() if prefix is None else set(bucket.keys(prefix))
    documents = {key for key in found if not key.endswith(("/", SIDECAR_SUFFIX))}
    if not documents:
        raise DocumentNotFoundError(f"There is no document in the folder {name}; nothing was deleted")
    return documents, {key for key in found - documents if key.removesuffix(SIDECAR_SUFFIX) not in documents}


def _named(connection: Connection, bucket: Bucket, names: Sequence[str]) -> list["DocumentDetail"]:
    try:
        return list(described(connection, names))
    except DocumentNotFoundError as error:
        folders = [f"{name}/" for name in names if any(bucket.keys(f"{bucket.key_of(name) or name}/"))]
        if not folders:
            raise
        raise DocumentNotFoundError(f"{error}. Did you mean the folder {folders[0]}?") from None


def _of_corpus(connection: Connection, corpus: str) -> list[str]:
    registry, token, uris = registry_of(connection), None, []
    while True:
        page = registry.page(corpus=corpus, limit=MAX_LIMIT, token=token)
        uris += [record.uri for record in page.documents]
        token = page.next_token
        if token is None:
            return uris


def _confirm(bucket: Bucket, keys: Sequence[str], *, yes: bool, beside: bool) -> None:
    """Show what is about to be deleted, and ask.

    Raises:
        BadParameter: There is no terminal to ask on.
        Abort: The answer is no.
    """
    console = display.errors if beside else display.console
    count = display.counted(len(keys), "document")
    console.print(f"{count} in {bucket.uri_of('')} will be deleted", soft_wrap=True)
    for key in keys[:_PREVIEWED]:
        console.print(f"  {key}", soft_wrap=True)
    if len(keys) > _PREVIEWED:
        console.print(f"  ... and {len(keys) - _PREVIEWED:,} more", soft_wrap=True)
    if yes:
        return
    if not _is_asked():
        raise typer.BadParameter("there is no terminal to ask on: confirm with --yes", param_hint="--yes")
    typer.confirm(f"Delete {count}?", abort=True, err=True)


def _is_asked() -> bool:
    return sys.stdin.isatty()
