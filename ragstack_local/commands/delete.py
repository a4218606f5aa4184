"""``ragstack delete``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ragstack_common.core.errors import DocumentNotFoundError
from ragstack_common.core.names import canonical
from ragstack_common.core.uris import is_s3_uri
from ragstack_local.connection.following import DELETED
from ragstack_local.connection_options import AsJson, ConnectionOptions, Timeout, Wait, confirm, not_blank, with_options
from ragstack_local.errors import INTERRUPTED, NOTHING_FOUND
from ragstack_local.files.documents import ApiDocuments
from ragstack_local.files.ingestion import remove
from ragstack_local.show import display

if TYPE_CHECKING:
    from ragstack_common.services.document_models import DocumentSummary

_PREVIEWED: Final = 10
"""Documents that are shown before a folder or a corpus is deleted."""


@with_options
def delete(
    stack: ConnectionOptions,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="URI", help="Documents and folders, by URI, key or id.", show_default=False),
    ] = None,
    corpus: Annotated[
        str | None, typer.Option(callback=not_blank, help="Only documents of this corpus; without a URI, all of them.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete a folder or a corpus without confirmation.")] = False,
    wait: Wait = True,
    timeout: Timeout = 900.0,
    as_json: AsJson = False,
) -> None:
    """Delete documents and their sidecars from the bucket, and wait until no search finds them any more.

    Before it deletes a folder or a corpus, it shows the number of documents and asks for confirmation.

    Example:  ragstack delete s3://ragstack-documents/handbook/leave.md

    By key:  ragstack delete handbook/leave.md handbook/travel.md

    A folder:  ragstack delete handbook/drafts

    A corpus, without confirmation:  ragstack delete --corpus people --yes

    The documents of a corpus in a folder:  ragstack delete handbook/ --corpus people
    """
    names = names or []
    if not names and corpus is None:
        raise typer.BadParameter("name documents or a folder, or give --corpus", param_hint="URI")
    documents = ApiDocuments(stack.api())
    names = [_folder_or_document(documents, name) for name in names]
    chosen = _choose(documents, names, corpus)
    if corpus is not None or any(name.endswith("/") for name in names):
        _confirm(chosen, yes=yes, as_json=as_json)
    try:
        statuses = remove(documents, chosen, timeout if wait else None, as_json=as_json)
    except KeyboardInterrupt as interrupt:
        display.console_for(as_json=as_json).print(str(interrupt))
        raise typer.Exit(INTERRUPTED) from None
    left = {uri: status for uri, status in statuses.items() if status != DELETED}
    if as_json:
        rows = [{"uri": uri, "status": str(found), "reason": found.reason} for uri, found in statuses.items()]
        display.print_json({"documents": rows})
    else:
        if wait:
            display.print_unsearchable(left)
        display.console.print(display.summary(statuses))
    if wait and left:
        raise typer.Exit(NOTHING_FOUND)


def _folder_or_document(documents: ApiDocuments, name: str) -> str:
    """Add the slash to the name of a folder."""
    if name.endswith("/"):
        return name
    try:
        documents.named(name)
    except DocumentNotFoundError:
        if any(_is_in(each, f"{name}/") for each in documents.listed()):
            return f"{name}/"
    return name


def _is_in(document: "DocumentSummary", folder: str) -> bool:
    name = document.uri if is_s3_uri(folder) else document.key
    return canonical(name).startswith(canonical(folder))


def _choose(documents: ApiDocuments, names: Sequence[str], corpus: str | None) -> list[str]:
    """Return the URIs of the documents to delete.

    Raises:
        DocumentNotFoundError: There is no such document, or none in a folder, or none of the corpus.
    """
    folders = [name for name in names if name.endswith("/")]
    listed = list(documents.listed(corpus=corpus)) if folders or not names else []
    chosen = [documents.named(name) for name in names if name not in folders] if names else listed
    for folder in folders:
        found = [each for each in listed if _is_in(each, folder)]
        if not found:
            raise DocumentNotFoundError(f"There is no document in the folder {folder}; nothing was deleted")
        chosen += found
    chosen = [each for each in chosen if corpus is None or each.corpus == corpus]
    if not chosen:
        raise DocumentNotFoundError(f"No such document belongs to the corpus {corpus}; nothing was deleted")
    return sorted({each.uri for each in chosen})


def _confirm(uris: Sequence[str], *, yes: bool, as_json: bool) -> None:
    """Show what is about to be deleted, and ask.

    Raises:
        BadParameter: There is no terminal to ask on.
        Abort: The answer is no.
    """
    console = display.console_for(as_json=as_json)
    count = display.counted(len(uris), "document")
    console.print(f"{count} will be deleted")
    for uri in uris[:_PREVIEWED]:
        console.print(f"  {uri}", soft_wrap=True)
    if len(uris) > _PREVIEWED:
        console.print(f"  ... and {len(uris) - _PREVIEWED:,} more")
    if yes:
        return
    confirm(f"Delete {count}?")
