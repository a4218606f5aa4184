"""The documents of a stack, changed through its bucket and registry, or through an API alone.

Uploads through the API need a request for each file and for each poll, and the API limits requests per second: 300
small files took 19 s through the bucket and 32 s through the API of the same local stack. So `ragstack ingest` uses the
bucket of a stack if it can reach it.
"""

import mimetypes
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import urlencode

import urllib3

from ragstack_common.documents import DocumentStatus
from ragstack_common.errors import DocumentNotFoundError, InvalidDocumentError
from ragstack_common.ingestion.sidecars import parse_sidecar
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.registry.records import Attributes
from ragstack_local.api_client import ApiClient
from ragstack_local.bucket import Bucket, NotUploaded, Result
from ragstack_local.connection import Connection
from ragstack_local.errors import ApiError
from ragstack_local.following import DELETED, ENDED, Awaited, Gone, Uploaded, follow, registry_of, statuses_of
from ragstack_local.uploads import LocalFile

UPLOAD_SECONDS: Final = 300.0
"""For 50 MB over a slow line; the permission to upload expires a little later."""

Statuses: TypeAlias = dict[str, DocumentStatus]
Changed: TypeAlias = Callable[[Mapping[str, DocumentStatus]], None]
Results: TypeAlias = Generator[tuple[LocalFile, str | None, Result]]


class Documents(Protocol):
    """Where `ragstack ingest` uploads."""

    def upload(self, files: Sequence[LocalFile], *, force: bool) -> Results:
        """Upload files; yield each when it is done, with its URI if it has one.

        Args:
            files: Each becomes a document.
            force: Whether files are uploaded that the bucket already has.
        """

    def follow(self, awaited: Mapping[str, Awaited], changed: Changed, timeout_seconds: float) -> Statuses:
        """Poll until documents have their awaited outcomes; see :func:`~ragstack_local.following.follow`."""


@dataclass(frozen=True)
class StackDocuments:
    """Documents in a stack's bucket and registry."""

    bucket: Bucket
    registry: DocumentRegistry

    @classmethod
    def of(cls, connection: Connection, given: Attributes | None = None) -> "StackDocuments":
        """Use a stack, with attributes for documents whose own sidecar does not set them."""
        return cls(Bucket.of(connection, given), registry_of(connection))

    def upload(self, files: Sequence[LocalFile], *, force: bool = False) -> Results:
        """Upload the files that differ; see :class:`Documents`."""
        known = {} if force else self.registry.read([self.bucket.uri(file) for file in files])
        for file, result in self.bucket.put_all(files, known):
            yield file, self.bucket.uri(file), result

    def follow(self, awaited: Mapping[str, Awaited], changed: Changed, timeout_seconds: float) -> Statuses:
        """Poll the registry; see :class:`Documents`."""
        ask = partial(statuses_of, self.registry)
        return follow(ask, awaited, changed, timeout_seconds, current=self.bucket.current)


@dataclass(frozen=True)
class ApiDocuments:
    """Documents behind an API."""

    api: ApiClient
    given: Attributes = field(default_factory=dict)  # for documents whose own sidecar does not set them

    def upload(self, files: Sequence[LocalFile], *, force: bool) -> Results:  # noqa: ARG002 - the API does not say which files the bucket already has
        """Upload every file, with permissions that the API grants; see :class:`Documents`."""
        for file in files:
            try:
                uri, uploaded = self._upload(file)
            except (ApiError, InvalidDocumentError, OSError) as error:
                yield file, None, NotUploaded(str(error))
            else:
                yield file, uri, uploaded

    def follow(self, awaited: Mapping[str, Awaited], changed: Changed, timeout_seconds: float) -> Statuses:
        """Poll each document, whose status is always about the bucket's newest object; see :class:`Documents`."""

        def ask(waiting: Mapping[str, Awaited]) -> dict[str, DocumentStatus]:
            return {uri: self._status(uri, outcome) for uri, outcome in waiting.items()}

        return follow(ask, awaited, changed, timeout_seconds)

    def delete(self, document: Mapping[str, Any]) -> DocumentStatus:
        """Delete a listed document and its sidecar from the bucket.

        Raises:
            ApiError: The API rejected the request.
        """
        deleted = self.api.request("DELETE", f"/api/documents/{document['id']}", "status")
        return DocumentStatus(deleted["status"], deleted["waiting_for"])

    def detail(self, name: str) -> dict[str, Any]:
        """Return a document with its history, by URI or by key.

        Raises:
            DocumentNotFoundError: There is no such document.
            ApiError: The API rejected a request.
        """
        return self.api.request("GET", f"/api/documents/{self.named(name)['id']}", "status")

    def listed(self, **filters: str) -> Iterator[dict[str, Any]]:
        """List the documents with a ``status`` or of a ``corpus``, or all that are not deleted, page by page."""
        parameters = {**filters, "limit": "100"}
        while True:
            page = self.api.request("GET", f"/api/documents?{urlencode(parameters)}", "documents")
            yield from page["documents"]
            if not page["next_token"]:
                return
            parameters["next_token"] = page["next_token"]

    def named(self, name: str) -> dict[str, Any]:
        """Find a document by URI or by key.

        Raises:
            DocumentNotFoundError: There is no such document.
        """
        found = self._summary(name)
        if found is None:
            raise DocumentNotFoundError(f"Neither the bucket nor the registry has {name}; nothing was done")
        return found

    def _status(self, uri: str, awaited: Awaited) -> DocumentStatus:
        found = self._summary(uri)
        if found is None:
            return DocumentStatus(DELETED)
        if isinstance(awaited, Gone) and found["status"] in ENDED - {DELETED}:
            return awaited.until_then
        return DocumentStatus(found["status"], found["reason"])

    def _summary(self, name: str) -> dict[str, Any] | None:
        parameter = {"uri" if name.startswith("s3://") else "key": name}
        found = self.api.request("GET", f"/api/documents?{urlencode(parameter)}", "documents")["documents"]
        return found[0] if found else None

    def _upload(self, file: LocalFile) -> tuple[str, Uploaded]:
        content, sidecar = file.path.read_bytes(), b""
        with suppress(FileNotFoundError):
            sidecar = file.sidecar_path.read_bytes()
        body = {
            "key": file.key,
            "content_type": mimetypes.guess_type(file.key)[0] or "application/octet-stream",
            "size": len(content),
            "attributes": {**self.given, **(parse_sidecar(sidecar).attributes if sidecar else {})},
        }
        answer = self.api.request("POST", "/api/documents", "upload", body)
        form = {**answer["upload"]["fields"], "file": (file.path.name, content)}
        try:
            response = urllib3.request(
                "POST", answer["upload"]["url"], fields=form, timeout=UPLOAD_SECONDS, retries=False
            )
        except urllib3.exceptions.HTTPError as error:
            raise ApiError(f"The upload failed: {error}") from error
        if response.status >= HTTPStatus.MULTIPLE_CHOICES:
            text = " ".join(response.data.decode(errors="replace").split())
            raise ApiError(f"The bucket answered {response.status}: {text:.200}")
        return answer["uri"], Uploaded(response.headers.get("ETag", ""), response.headers.get("x-amz-version-id"))
