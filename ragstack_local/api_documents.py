"""Documents through an API alone, without the bucket, the queues and the registry behind it."""

import mimetypes
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import typer
import urllib3

from ragstack_common.documents import DocumentStatus
from ragstack_common.errors import DocumentNotFoundError, InvalidDocumentError
from ragstack_common.ingestion.sidecars import parse_sidecar
from ragstack_common.registry.records import FINAL, Attributes, Status
from ragstack_local import display, ingestion_display
from ragstack_local.awaiting import DELETED, LONGEST_POLL_SECONDS, NOT_UPLOADED, POLL_SECONDS, Uploaded
from ragstack_local.ingest import Round
from ragstack_local.search import ApiError, Caller
from ragstack_local.targets import INTERRUPTED
from ragstack_local.uploads import LocalFile, shown

if TYPE_CHECKING:
    from ragstack_common.api.documents import DocumentDetail

DOCUMENTS: Final = "/api/documents"
UPLOAD_SECONDS: Final = 300.0
"""For 50 MB over a slow line; the permission to upload ends a little later."""

_FINAL: Final = frozenset(map(str, FINAL))
_UNDER_WAY: Final = (Status.WAITING, Status.SUBMITTING, Status.INDEXING, Status.DELETING)


def described(caller: Caller, names: Sequence[str]) -> Iterator["DocumentDetail"]:
    """Return everything about documents.

    Args:
        caller: The API.
        names: URIs, or keys in the documents bucket.

    Raises:
        DocumentNotFoundError: Neither the bucket nor the registry has one of them.
        ApiError: The API refused.
    """
    from ragstack_common.api.documents import DocumentDetail  # noqa: PLC0415 - slow to import

    for name in names:
        found = _summary(caller, name)
        if found is None:
            raise DocumentNotFoundError(f"Neither the bucket nor the registry has {name}; nothing was done")
        yield DocumentDetail.model_validate(caller.ask("GET", f"{DOCUMENTS}/{found['id']}", "status"))


def delete(
    caller: Caller, names: Sequence[str], timeout: float, *, wait: bool, beside: bool = False
) -> dict[str, DocumentStatus]:
    """Delete documents and their sidecars, and where wanted wait until no search finds them any more.

    Returns:
        The status of each document, by URI.

    Raises:
        DocumentNotFoundError: There is no such document; nothing was deleted.
        ApiError: The API refused.
    """
    documents = list(described(caller, names))
    statuses: dict[str, DocumentStatus] = {}
    try:
        with display.progress(beside=beside) as bars:
            deleting = bars.add_task("Deleting", total=len(documents), detail="")

            def show(found: Mapping[str, DocumentStatus]) -> None:
                statuses.update(found)
                ended = sum(status == DELETED for status in statuses.values())
                bars.update(deleting, completed=ended, detail=display.summary(statuses))

            for document in documents:
                answer = caller.ask("DELETE", f"{DOCUMENTS}/{document.id}", "status")
                show({document.uri: DocumentStatus(answer["status"], answer["waiting_for"])})
            if wait:
                _follow(caller, {document.uri for document in documents}, {DELETED}, show, timeout)
    except KeyboardInterrupt:
        (display.errors if beside else display.console).print(display.interrupted(statuses))
        raise typer.Exit(INTERRUPTED) from None
    return statuses


def upload(
    caller: Caller, files: Sequence[LocalFile], timeout: float, *, given: Attributes, beside: bool = False
) -> Round:
    """Upload files with permissions that the API gives, and follow them until they are in a final state.

    The API doesn't say whether the bucket has the same file already, so all are uploaded.

    Args:
        caller: The API.
        files: Each becomes a document.
        timeout: Seconds to become final, for all of them, from the end of the uploads.
        given: Attributes for documents whose own sidecar does not name them.
        beside: Whether progress goes to the error stream, beside what a program reads.

    Raises:
        ApiError: The API refused to return the status of documents.
        KeyboardInterrupt: The message says how far it got.
    """
    done = Round()
    try:
        with display.progress(beside=beside) as bars:
            uploading = bars.add_task("Uploading", total=len(files), detail="")
            for file in files:
                try:
                    uri, uploaded = _upload(caller, file, given)
                    done.uploaded[uri], done.statuses[uri] = uploaded, uploaded.until_then
                    done.paths[uri] = shown(file.path)
                except (ApiError, InvalidDocumentError, OSError) as error:
                    done.statuses[shown(file.path)] = DocumentStatus(NOT_UPLOADED, str(error))
                bars.advance(uploading)
            indexing = bars.add_task("Indexing ", total=len(done.uploaded), detail="")

            def show(found: Mapping[str, DocumentStatus]) -> None:
                done.statuses.update(found)
                ended = sum(done.statuses[uri] in _FINAL for uri in done.uploaded)
                bars.update(indexing, completed=ended, detail=display.summary(done.statuses))

            _follow(caller, done.uploaded, _FINAL, show, timeout)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(display.interrupted(done.statuses)) from None
    return done


def print_status(caller: Caller, *, failed: bool, as_json: bool) -> None:
    """Show how many documents are searchable, and each that failed or is under way; or everything that *failed*.

    Raises:
        ApiError: The API refused.
    """
    found: dict[str, Any] = {"failed": list(_listed(caller, Status.FAILED))}
    if not failed:
        searchable = caller.look_up("facets")["documents"]
        under_way = [document for status in _UNDER_WAY for document in _listed(caller, status)]
        found = {"searchable": searchable, "in_motion": under_way, **found}
    if as_json:
        display.print_json(found)
        return
    if not failed:
        display.console.print(f"{display.counted(found['searchable'], 'document')} can be searched")
    for document in [*found.get("in_motion", ()), *found["failed"]]:
        ingestion_display.print_summary(document)
    if failed and not found["failed"]:
        display.console.print("No document failed.")


def _upload(caller: Caller, file: LocalFile, given: Attributes) -> tuple[str, Uploaded]:
    content, own = file.path.read_bytes(), b""
    with suppress(FileNotFoundError):
        own = file.sidecar_path.read_bytes()
    body = {
        "key": file.key,
        "content_type": mimetypes.guess_type(file.key)[0] or "application/octet-stream",
        "size": len(content),
        "attributes": {**given, **(parse_sidecar(own).attributes if own else {})},
    }
    answer = caller.ask("POST", DOCUMENTS, "upload", body)
    form = {**answer["upload"]["fields"], "file": (file.path.name, content)}
    url = answer["upload"]["url"]
    try:
        response = urllib3.request("POST", url, fields=form, timeout=UPLOAD_SECONDS, retries=False)
    except urllib3.exceptions.HTTPError as error:
        raise ApiError(f"The upload failed: {error}") from error
    if response.status >= HTTPStatus.MULTIPLE_CHOICES:
        raise ApiError(f"The bucket answered {response.status}: {' '.join(response.data.decode().split()):.200}")
    return answer["uri"], Uploaded(response.headers.get("ETag", ""), response.headers.get("x-amz-version-id"))


def _follow(
    caller: Caller,
    uris: Collection[str],
    final: Collection[str],
    changed: Callable[[Mapping[str, DocumentStatus]], None],
    timeout: float,
) -> None:
    """Ask about documents until each has a final status, or the time is over."""
    deadline = time.monotonic() + timeout
    waiting, pause = list(uris), POLL_SECONDS
    while waiting:
        for uri in list(waiting):
            found = _summary(caller, uri)
            status = DocumentStatus(DELETED) if found is None else DocumentStatus(found["status"], found["reason"])
            changed({uri: status})
            if status in final:
                waiting.remove(uri)
        if not waiting or time.monotonic() > deadline:
            return
        time.sleep(pause)
        pause = min(pause * 1.2, LONGEST_POLL_SECONDS)


def _summary(caller: Caller, name: str) -> dict[str, Any] | None:
    parameter = {"uri" if name.startswith("s3://") else "key": name}
    found = caller.ask("GET", f"{DOCUMENTS}?{urlencode(parameter)}", "documents")["documents"]
    return found[0] if found else None


def _listed(caller: Caller, status: Status) -> Iterator[dict[str, Any]]:
    parameters = {"status": str(status), "limit": "100"}
    while True:
        page = caller.ask("GET", f"{DOCUMENTS}?{urlencode(parameters)}", "documents")
        yield from page["documents"]
        if not page["next_token"]:
            return
        parameters["next_token"] = page["next_token"]
