"""The documents of a stack, changed through its bucket and registry, or through an API alone.

Uploads through the API need a request for each file and for each poll, and the API limits requests per second: 300
small files took 19 s through the bucket and 32 s through the API of the same local stack. So `ragstack ingest` uses the
bucket of a stack if it can reach it.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from ragstack_common.core.artefacts import is_reserved
from ragstack_common.core.errors import DocumentNotFoundError, InvalidDocumentError
from ragstack_common.core.uris import SIDECAR_SUFFIX
from ragstack_common.ingestion.sidecars import canonical_attributes, parse_sidecar, read_structure
from ragstack_common.reading import formats
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.registry.documents import DocumentRegistry, ambiguous_name
from ragstack_common.registry.records import Attributes, DocumentRecord
from ragstack_common.services.operations import DocumentStatusRequest
from ragstack_common.settings.limits import MAX_DOCUMENT_BYTES
from ragstack_local.api.calls import run
from ragstack_local.connection.connection import TRANSFER_THREADS, Connection
from ragstack_local.connection.following import (
    DELETED,
    ENDED,
    Awaited,
    Gone,
    Uploaded,
    follow,
    open_registry,
    read_statuses,
)
from ragstack_local.connection.roots import is_below
from ragstack_local.errors import ApiError
from ragstack_local.files.bucket import Bucket, NotUploaded, Result, entity_tag, tags_of_sidecar
from ragstack_local.files.uploads import LocalFile, sidecar_for

if TYPE_CHECKING:
    from ragstack_common.services.document_models import DocumentDetail, DocumentSummary, Download
    from ragstack_local.api.http_operations import HttpOperations

_ID: Final = re.compile("[0-9a-f]{32}")
"""A document's id. No key looks like it, because documents have a file type."""

Statuses: TypeAlias = dict[str, DocumentStatus]
Changed: TypeAlias = Callable[[Mapping[str, DocumentStatus]], None]
Results: TypeAlias = Generator[tuple[LocalFile, str | None, Result]]


@dataclass(frozen=True)
class Present:
    """A document that a stack has.

    Attributes:
        etag: ETag of its content.
        status: Its final status; None while it is in progress.
        attributes: What the bucket or the API says about them: the entity tag of its sidecar, or the attributes.
        record: What the registry knows, if it was read.
    """

    uri: str
    etag: str
    status: DocumentStatus | None
    attributes: str | Mapping[str, Any] | None
    record: DocumentRecord | None = None


class Documents(Protocol):
    """Where `ragstack ingest` uploads."""

    def present(self, key: str) -> dict[str, Present]:
        """List the documents with a key, or with keys below it, by key."""

    def is_current(self, file: LocalFile, present: Present) -> bool:
        """Whether a document has a file's content and attributes, and a final status.

        Raises:
            InvalidDocumentError: The document cannot have these attributes.
            OSError: The file cannot be read.
        """

    def attributes(self, file: LocalFile) -> Mapping[str, Any]:
        """Return the attributes of a file's sidecar, and those of the command line that it does not set.

        Raises:
            InvalidDocumentError: The sidecar is invalid.
            OSError: It cannot be read.
        """

    def copies(self, uploaded: Mapping[str, Uploaded]) -> list[list[str]]:
        """Return groups of URIs with the same content, each with an upload; a large stack is searched in part."""

    def remove(self, uris: Sequence[str]) -> Iterator[tuple[str, DocumentStatus]]:
        """Delete documents with their sidecars; yield the URI and the status of each."""

    def upload(self, files: Sequence[LocalFile], *, force: bool) -> Results:
        """Upload files; yield each when it is done, with its URI if it has one.

        Args:
            files: Each becomes a document.
            force: Whether files are uploaded that the bucket already has.
        """

    def follow(self, awaited: Mapping[str, Awaited], changed: Changed, timeout_seconds: float) -> Statuses:
        """Poll until documents have their awaited outcomes; see :func:`~ragstack_local.connection.following.follow`."""


@dataclass(frozen=True)
class StackDocuments:
    """Documents in a stack's bucket and registry."""

    bucket: Bucket
    registry: DocumentRegistry

    @classmethod
    def for_stack(cls, connection: Connection, given: Attributes | None = None) -> "StackDocuments":
        """Use a stack, with attributes for documents whose own sidecar does not set them."""
        return cls(Bucket.for_stack(connection, given), open_registry(connection))

    def upload(self, files: Sequence[LocalFile], *, force: bool = False) -> Results:
        """Upload the files that differ; see :class:`Documents`."""
        known = {} if force else self.registry.read([self.bucket.uri(file.key) for file in files])
        for file, result in self.bucket.put_all(files, known):
            yield file, self.bucket.uri(file.key), result

    def present(self, key: str) -> dict[str, Present]:
        """List the objects, and read their records; see :class:`Documents`."""
        tags = self.bucket.entity_tags_of_name(f"{key}/" if key and not formats.is_supported(key) else key)
        keys = {each: self.bucket.uri(each) for each in tags if is_below(each, key) and _is_uploaded(each)}
        records = self.registry.read(keys.values())
        return {each: _present(records[uri], tags[each], tags.get(each + SIDECAR_SUFFIX)) for each, uri in keys.items()}

    def is_current(self, file: LocalFile, present: Present) -> bool:
        """Compare entity tags; see :class:`Documents`."""
        if present.status is None or not _has_content(file, present):
            return False
        sidecar = sidecar_for(file, self.bucket.given, self.bucket.vector_store)
        return present.attributes in tags_of_sidecar(sidecar, present.record)

    def attributes(self, file: LocalFile) -> Mapping[str, Any]:
        """Read the sidecar; see :class:`Documents`."""
        return _attributes(file, self.bucket.given)

    def copies(self, uploaded: Mapping[str, Uploaded]) -> list[list[str]]:
        """Compare entity tags; see :class:`Documents`."""
        # Twenty requests.
        tags = self.bucket.entity_tags("", 20_000) if uploaded else {}
        return _copies({self.bucket.uri(key): tag for key, tag in tags.items() if _is_uploaded(key)}, uploaded)

    def remove(self, uris: Sequence[str]) -> Iterator[tuple[str, DocumentStatus]]:
        """Delete from the bucket, in parallel; see :class:`Documents`."""

        def remove(uri: str) -> tuple[str, DocumentStatus]:
            self.bucket.remove(uri.removeprefix(self.bucket.uri("")))
            return uri, Gone().until_then

        with ThreadPoolExecutor(TRANSFER_THREADS) as threads:
            yield from threads.map(remove, uris)

    def follow(self, awaited: Mapping[str, Awaited], changed: Changed, timeout_seconds: float) -> Statuses:
        """Poll the registry; see :class:`Documents`."""
        ask = partial(read_statuses, self.registry)
        return follow(ask, awaited, changed, timeout_seconds, current=self.bucket.current)


@dataclass(frozen=True)
class ApiDocuments:
    """Documents behind an API."""

    api: "HttpOperations"
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

    def present(self, key: str) -> dict[str, Present]:
        """List the documents; see :class:`Documents`."""
        return {
            each.key: Present(
                each.uri,
                each.etag or "",
                DocumentStatus(each.status, each.reason) if each.status in ENDED else None,
                each.attributes,
            )
            for each in self.listed()
            if is_below(each.key, key) and not is_reserved(each.key)
        }

    def is_current(self, file: LocalFile, present: Present) -> bool:
        """Compare entity tags and attributes; see :class:`Documents`."""
        return (
            present.status is not None and _has_content(file, present) and present.attributes == self.attributes(file)
        )

    def attributes(self, file: LocalFile) -> Mapping[str, Any]:
        """Read the sidecar; see :class:`Documents`."""
        return _attributes(file, self.given)

    def copies(self, uploaded: Mapping[str, Uploaded]) -> list[list[str]]:
        """Compare entity tags; see :class:`Documents`."""
        # Ten requests.
        listed = islice(self.listed(), 1_000) if uploaded else ()
        return _copies({each.uri: each.etag for each in listed}, uploaded)

    def remove(self, uris: Sequence[str]) -> Iterator[tuple[str, DocumentStatus]]:
        """Delete one after the other; see :class:`Documents`."""
        from ragstack_common.services.document_models import DocumentDetail  # noqa: PLC0415 - help does without

        for uri in uris:
            path = f"/api/documents/{DocumentRecord(uri).id}"
            deleted = run(self.api.request("DELETE", path, DocumentDetail))
            yield uri, DocumentStatus(deleted.status, deleted.waiting_for)

    def follow(self, awaited: Mapping[str, Awaited], changed: Changed, timeout_seconds: float) -> Statuses:
        """Poll each document, whose status is always about the bucket's newest object; see :class:`Documents`."""

        def ask(waiting: Mapping[str, Awaited]) -> dict[str, DocumentStatus]:
            return {uri: self._status(uri, outcome) for uri, outcome in waiting.items()}

        return follow(ask, awaited, changed, timeout_seconds)

    def details(self, name: str) -> "list[DocumentDetail]":
        """Return the documents of a name with their histories, by URI, key or id.

        There are several if their keys differ only in form, such as the composed and the decomposed one.

        Raises:
            DocumentNotFoundError: There is no such document.
            ApiError: The API rejected a request.
        """
        found = [name] if _ID.fullmatch(name) else [each.id for each in self._known(name)]
        return [self._detail(identifier) for identifier in found]

    def _detail(self, identifier: str) -> "DocumentDetail":
        from ragstack_common.services.document_models import DocumentDetail  # noqa: PLC0415 - as above

        return run(self.api.request("GET", f"/api/documents/{identifier}", DocumentDetail))

    def listed(self, **filters: str | None) -> "Iterator[DocumentSummary]":
        """List the documents with a ``status`` or of a ``corpus``, or all that are not deleted, page by page."""
        from ragstack_common.services.document_models import DocumentList  # noqa: PLC0415 - as above

        token: str | None = ""
        while token is not None:
            parameters = {**filters, "limit": 100, "next_token": token or None}
            page = run(self.api.request("GET", "/api/documents", DocumentList, parameters=parameters))
            yield from page.documents
            token = page.next_token

    def named(self, name: str) -> "DocumentSummary":
        """Find a document by URI, key or id.

        Raises:
            DocumentNotFoundError: There is no such document.
            InvalidRequestError: Several documents have the name; the message names their ids.
        """
        if _ID.fullmatch(name):
            return self._detail(name)
        found = self._known(name)
        if len(found) > 1:
            raise ambiguous_name(name, [each.uri for each in found], "by its id")
        return found[0]

    def download(self, name: str) -> "Download":
        """Return an address for the file of a document, by URI, key or id; see :meth:`named` for errors."""
        from ragstack_common.services.document_models import Download  # noqa: PLC0415 - as above

        identifier = name if _ID.fullmatch(name) else self.named(name).id
        return run(self.api.request("GET", f"/api/documents/{identifier}/download", Download))

    def _status(self, uri: str, awaited: Awaited) -> DocumentStatus:
        found = next((each for each in self._summaries(uri) if each.uri == uri), None)
        if found is None:
            return DocumentStatus(DELETED)
        if isinstance(awaited, Gone) and found.status in ENDED - {DELETED}:
            return awaited.until_then
        return DocumentStatus(found.status, found.reason)

    def _summaries(self, name: str) -> "list[DocumentSummary]":
        return run(self.api.document(DocumentStatusRequest(document=name))).documents

    def _known(self, name: str) -> "list[DocumentSummary]":
        if found := self._summaries(name):
            return found
        raise DocumentNotFoundError(f"Neither the bucket nor the registry has {name}")

    def _upload(self, file: LocalFile) -> tuple[str, Uploaded]:
        content = file.path.read_bytes()
        body: dict[str, Any] = {
            "key": file.key,
            "content_type": formats.media_type(file.key),
            "size": len(content),
            "attributes": self.attributes(file),
        }
        if file.path.suffix.lower() == ".csv":
            sidecar = _read_sidecar(file)
            body["document_structure_configuration"] = read_structure(sidecar) if sidecar else {}
        from ragstack_common.services.uploads import UploadAnswer  # noqa: PLC0415 - as above

        answer = run(self.api.request("POST", "/api/documents", UploadAnswer, body))
        headers = run(self.api.upload(answer.upload.url, answer.upload.fields, file.path.name, content))
        return answer.uri, Uploaded(headers.get("ETag", ""), headers.get("x-amz-version-id"))


def _attributes(file: LocalFile, given: Attributes) -> dict[str, Any]:
    sidecar = _read_sidecar(file)
    own = parse_sidecar(sidecar).attributes if sidecar else {}
    return {**canonical_attributes(given), **canonical_attributes(own)}


def _read_sidecar(file: LocalFile) -> bytes:
    """Return a file's sidecar; empty if it has none."""
    with suppress(FileNotFoundError):
        return file.sidecar_path.read_bytes()
    return b""


def _has_content(file: LocalFile, present: Present) -> bool:
    is_large = file.path.stat().st_size > MAX_DOCUMENT_BYTES
    return not is_large and entity_tag(file.path.read_bytes()) == present.etag


def _is_uploaded(key: str) -> bool:
    """Whether an object is a document that somebody uploaded, not one that was made of another."""
    return formats.may_be_read(key) and not key.endswith(SIDECAR_SUFFIX) and not is_reserved(key)


def _present(record: DocumentRecord, etag: str, sidecar_etag: str | None) -> Present:
    is_about = (record.observed.etag, record.observed.sidecar_etag) == (etag, sidecar_etag)
    is_final = is_about and record.is_final and not record.again
    status = DocumentStatus(record.status, record.reason) if is_final else None
    return Present(record.uri, etag, status, sidecar_etag, record)


def _copies(tags: Mapping[str, str | None], uploaded: Mapping[str, Uploaded]) -> list[list[str]]:
    """Group URIs by entity tag, and return the groups of several with an upload."""
    groups: dict[str | None, set[str]] = defaultdict(set)
    for uri, tag in (*tags.items(), *((uri, each.etag) for uri, each in uploaded.items())):
        groups[tag].add(uri)
    return [sorted(uris) for uris in groups.values() if len(uris) > 1 and not uris.isdisjoint(uploaded)]
