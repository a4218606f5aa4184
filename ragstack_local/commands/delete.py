"""``ragstack delete``."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Annotated, Final

import typer

from ragstack_common.documents import SIDECAR_SUFFIX, DocumentStatus
from ragstack_common.errors import DocumentNotFoundError
from ragstack_common.registry.documents import MAX_LIMIT, DocumentRegistry
from ragstack_common.registry.records import Status
from ragstack_local import display
from ragstack_local.documents import ApiDocuments, Documents, StackDocuments
from ragstack_local.following import DELETED, ENDED, Gone
from ragstack_local.targets import INTERRUPTED, NOTHING_FOUND, AsJson, Target, not_blank, with_target

_PREVIEWED: Final = 10
"""Keys that are shown before a folder or a corpus is deleted."""


@with_target
def delete(
    target: Target,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="URI", help="Documents, by URI or by key; a folder ends with a slash.", show_default=False
        ),
    ] = None,
    corpus: Annotated[
        str | None, typer.Option(callback=not_blank, help="Only documents of this corpus; without a URI, all of them.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete a folder or a corpus without confirmation.")] = False,
    wait: Annotated[
        bool,
        typer.Option("--wait/--no-wait", help="Wait until no search finds them, or only delete them from the bucket."),
    ] = True,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for all documents.", min=1)] = 900.0,
    as_json: AsJson = False,
) -> None:
    """Delete documents and their sidecars from the bucket, and wait until no search finds them any more.

    Before it deletes a folder or a corpus, it shows the number of documents and asks for confirmation.

    Example:  ragstack delete s3://ragstack-documents/handbook/leave.md

    By key:  ragstack delete handbook/leave.md handbook/travel.md

    A folder:  ragstack delete handbook/drafts/

    A corpus, without confirmation:  ragstack delete --corpus people --yes

    The documents of a corpus in a folder:  ragstack delete handbook/ --corpus people
    """
    names = names or []
    is_selection = corpus is not None or any(name.endswith("/") for name in names)
    if not names and corpus is None:
        raise typer.BadParameter("name documents or a folder, or give --corpus", param_hint="URI")
    documents: Documents
    leftovers: set[str] = set()
    if target.is_api:
        if is_selection:
            raise typer.BadParameter(
                "folders and corpora need the stack's bucket and registry: name documents, or give --aws instead",
                param_hint="--api-url",
            )
        documents = ApiDocuments(target.api())
        uris = documents.find(names)
    else:
        documents = stack = StackDocuments.of(target.connect())
        uris, leftovers = _choose(stack, names, corpus)
        if is_selection:
            _confirm(stack, uris, yes=yes, as_json=as_json)
    statuses: dict[str, DocumentStatus] = {}
    try:
        _delete(documents, uris, statuses, timeout if wait else None, as_json=as_json)
    except KeyboardInterrupt:
        display.console_for(as_json=as_json).print(display.interrupted(statuses))
        raise typer.Exit(INTERRUPTED) from None
    for key in leftovers:
        stack.bucket.s3.delete_object(Bucket=stack.bucket.name, Key=key)
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


def _delete(
    documents: Documents,
    uris: Sequence[str],
    statuses: dict[str, DocumentStatus],
    timeout_seconds: float | None,
    *,
    as_json: bool,
) -> None:
    """Delete documents and follow them; don't follow if the timeout is None. *statuses* has what is known so far."""
    with display.progress(as_json=as_json) as bars:
        deleting = bars.add_task("Deleting", total=len(uris), detail="")
        with closing(documents.delete(uris)) as deleted:
            for uri, status in deleted:
                statuses[uri] = status
                bars.advance(deleting)
        if timeout_seconds is None:
            return
        waiting = bars.add_task("Waiting ", total=len(uris), detail="")

        def show(found: Mapping[str, DocumentStatus]) -> None:
            statuses.update(found)
            ended = sum(status in ENDED for status in statuses.values())
            bars.update(waiting, completed=ended, detail=display.summary(statuses))

        documents.follow(dict.fromkeys(statuses, Gone()), show, timeout_seconds)


def _choose(documents: StackDocuments, names: Sequence[str], corpus: str | None) -> tuple[list[str], set[str]]:
    """Return the URIs to delete, and the keys of other objects in the folders: sidecars without documents, markers.

    Raises:
        DocumentNotFoundError: There is no such document, or none in a folder, or none of the corpus.
        RegistryError: The registry answered only in part.
        ClientError: The bucket or the registry cannot be read.
    """
    bucket = documents.bucket
    leftovers: set[str] = set()
    keys: set[str] = set()
    for name in names:
        if name.endswith("/"):
            in_folder, others = _in_folder(documents, name)
            keys |= in_folder
            leftovers |= others
    uris = {bucket.uri_of(key) for key in keys} | set(_named(documents, [n for n in names if not n.endswith("/")]))
    if corpus is None:
        return sorted(uris), leftovers
    candidates = sorted(uris) if names else _of_corpus(documents.registry, corpus)
    # The index is eventually consistent, so the records decide.
    of_corpus = [
        uri
        for uri, record in sorted(documents.registry.read(candidates).items())
        if bucket.key_of(uri) is not None and record.corpus == corpus and record.status is not Status.DELETED
    ]
    if not of_corpus:
        raise DocumentNotFoundError(f"No such document belongs to the corpus {corpus}; nothing was deleted")
    return of_corpus, set()


def _in_folder(documents: StackDocuments, name: str) -> tuple[set[str], set[str]]:
    prefix = documents.bucket.key_of(name) if name.startswith("s3://") else name
    found = set() if prefix is None else set(documents.bucket.keys(prefix))
    keys = {key for key in found if not key.endswith(("/", SIDECAR_SUFFIX))}
    if not keys:
        raise DocumentNotFoundError(f"There is no document in the folder {name}; nothing was deleted")
    return keys, {key for key in found - keys if key.removesuffix(SIDECAR_SUFFIX) not in keys}


def _named(documents: StackDocuments, names: Sequence[str]) -> list[str]:
    try:
        return documents.find(names)
    except DocumentNotFoundError as error:
        bucket = documents.bucket
        folders = [f"{name}/" for name in names if any(bucket.keys(f"{bucket.key_of(name) or name}/"))]
        if not folders:
            raise
        raise DocumentNotFoundError(f"{error}. Did you mean the folder {folders[0]}?") from None


def _of_corpus(registry: DocumentRegistry, corpus: str) -> list[str]:
    token, uris = None, []
    while True:
        page = registry.page(corpus=corpus, limit=MAX_LIMIT, token=token)
        uris += [record.uri for record in page.documents]
        token = page.next_token
        if token is None:
            return uris


def _confirm(documents: StackDocuments, uris: Sequence[str], *, yes: bool, as_json: bool) -> None:
    """Show what is about to be deleted, and ask.

    Raises:
        BadParameter: There is no terminal to ask on.
        Abort: The answer is no.
    """
    console = display.console_for(as_json=as_json)
    count = display.counted(len(uris), "document")
    console.print(f"{count} in {documents.bucket.uri_of('')} will be deleted", soft_wrap=True)
    for uri in uris[:_PREVIEWED]:
        console.print(f"  {documents.bucket.key_of(uri)}", soft_wrap=True)
    if len(uris) > _PREVIEWED:
        console.print(f"  ... and {len(uris) - _PREVIEWED:,} more", soft_wrap=True)
    if yes:
        return
    if not _is_terminal():
        raise typer.BadParameter("there is no terminal to ask on: confirm with --yes", param_hint="--yes")
    typer.confirm(f"Delete {count}?", abort=True, err=True)


def _is_terminal() -> bool:
    return sys.stdin.isatty()
