"""The documents bucket: upload files that differ, and delete documents with their sidecars."""

import hashlib
import os
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeAlias

from botocore.exceptions import ClientError

from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.core.names import canonical
from ragstack_common.core.uris import SIDECAR_SUFFIX, fault_of_uri, s3_uri
from ragstack_common.ingestion.sidecars import with_attribute
from ragstack_common.registry.document_status import DocumentStatus
from ragstack_common.registry.records import SEARCHABLE, Attributes, DocumentRecord, Status
from ragstack_common.settings.limits import MAX_DOCUMENT_BYTES
from ragstack_local.connection.connection import TRANSFER_THREADS, Connection
from ragstack_local.connection.following import NO_SIDECAR, Gone, Uploaded
from ragstack_local.files.uploads import LocalFile, sidecar_for

_ATTEMPTS: Final = 5
"""Maximum attempts for a file that changes while it is read or uploaded."""

_KNOWN: Final = frozenset({*SEARCHABLE, Status.FAILED})
"""Final statuses that another upload of the same content would not change."""

_ABSENT: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
"""S3 answers with either for an object whose newest version is a delete marker, depending on the request."""


@dataclass(frozen=True)
class Unchanged:
    """A file that the bucket already has, and the document's status."""

    status: DocumentStatus


@dataclass(frozen=True)
class NotUploaded:
    """A file that could not be uploaded, and why."""

    reason: str


Result: TypeAlias = Uploaded | Unchanged | NotUploaded

State: TypeAlias = tuple[tuple[int, int, int] | None, tuple[int, int, int] | None]
"""Modification time, size and inode of a file and of its sidecar; None for a missing one."""


@dataclass(frozen=True)
class Bucket:
    """A stack's documents bucket."""

    name: str
    vector_store: str
    s3: Any
    given: Attributes = field(default_factory=dict)  # for documents whose own sidecar does not set them

    @classmethod
    def for_stack(cls, connection: Connection, given: Attributes | None = None) -> "Bucket":
        """Use the bucket of a stack."""
        return cls(connection.bucket, connection.vector_store, connection.client("s3"), given or {})

    def uri(self, key: str) -> str:
        """Return the URI of an object; of the bucket for the empty key."""
        return s3_uri(self.name, key)

    def put_all(
        self, files: Sequence[LocalFile], known: Mapping[str, DocumentRecord]
    ) -> Generator[tuple[LocalFile, Result]]:
        """Upload files in parallel, and yield each with its result when it is done.

        Args:
            files: Each becomes a document.
            known: The registry's records by URI; a file without a record is always uploaded.

        Raises:
            ClientError: The bucket rejected a request.
            BotoCoreError: The bucket could not be reached.
        """
        threads = ThreadPoolExecutor(TRANSFER_THREADS)
        try:
            started = {threads.submit(self.put, file, known.get(self.uri(file.key))): file for file in files}
            for ended in as_completed(started):
                yield started[ended], ended.result()
        finally:
            # After an error or Ctrl-C, files that have not started are dropped.
            threads.shutdown(cancel_futures=True)

    def put(self, file: LocalFile, known: DocumentRecord | None = None) -> Result:
        """Upload a file after its sidecar, unless the bucket has both and the registry has their final status.

        If the file no longer has a sidecar, the one in the bucket is deleted, and the document loses its attributes.

        An unchanged file that failed is not uploaded again: it would usually fail again and leave another dead letter.

        An upload is one consistent state of the file: if the file changes meanwhile, it is uploaded again.

        Raises:
            ClientError: The bucket rejected a request.
            BotoCoreError: The bucket could not be reached.
        """
        if fault := fault_of_uri(self.uri(file.key)):
            return NotUploaded(fault)
        for _ in range(_ATTEMPTS):
            before = file_state(file)
            try:
                if file.path.stat().st_size > MAX_DOCUMENT_BYTES:
                    return NotUploaded(f"It is larger than the {MAX_DOCUMENT_BYTES // 1024**2} MB that Bedrock accepts")
                content = file.path.read_bytes()
                sidecar = sidecar_for(file, self.given, self.vector_store)
            except FileNotFoundError:
                return NotUploaded("The file vanished before it was uploaded")
            except OSError as error:
                what = "Its sidecar" if error.filename == str(file.sidecar_path) else "The file"
                return NotUploaded(f"{what} cannot be read: {os.strerror(error.errno or 0)}")
            except InvalidDocumentError as error:
                return NotUploaded(str(error))
            if file_state(file) != before:
                continue
            result = self._put(file, content, sidecar, known)
            after = file_state(file)
            if after == before or after[0] is None:
                return result
        return NotUploaded("It kept changing while it was uploaded: upload it again when it is complete")

    def _put(self, file: LocalFile, content: bytes, sidecar: bytes | None, known: DocumentRecord | None) -> Result:
        sidecar_key = file.key + SIDECAR_SUFFIX
        # Uploading the same sidecar again would cause another event, and index the document twice.
        is_compared = sidecar is None or (known is not None and known.revision > 0)
        head = self._head(sidecar_key) if is_compared else None
        sidecar_etag = head["ETag"] if head else None
        is_same_sidecar = sidecar_etag in tags_of_sidecar(sidecar, known)
        if known is not None and _is_about(known, content) and (head := self._as_known(file.key, known)) is not None:
            if is_same_sidecar and sidecar_etag == known.observed.sidecar_etag:
                return Unchanged(DocumentStatus(known.status, known.reason))
            if not is_same_sidecar and sidecar is None:
                # Deleting the sidecar alone causes the document to be indexed without attributes.
                self.s3.delete_object(Bucket=self.name, Key=sidecar_key)
                return Uploaded(*_version(head), NO_SIDECAR)
        if not is_same_sidecar and sidecar is not None:
            sidecar_etag = self.s3.put_object(Bucket=self.name, Key=sidecar_key, Body=sidecar)["ETag"]
        answer = self.s3.put_object(Bucket=self.name, Key=file.key, Body=content)
        if not is_same_sidecar and sidecar is None:
            # After the document, so that the previous version is never indexed without its attributes.
            self.s3.delete_object(Bucket=self.name, Key=sidecar_key)
            sidecar_etag = None
        return Uploaded(answer["ETag"], answer.get("VersionId"), sidecar_etag or NO_SIDECAR)

    def current(self, uri: str) -> Uploaded | Gone:
        """Return what the bucket has now under a URI; nothing for a URI of another bucket."""
        here = self.uri("")
        head = self._head(uri.removeprefix(here)) if uri.startswith(here) and uri != here else None
        return Gone() if head is None else Uploaded(*_version(head))

    def entity_tags(self, prefix: str, limit: int | None = None) -> dict[str, str]:
        """List the entity tags of at most *limit* objects by key."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.name, Prefix=prefix, PaginationConfig={"MaxItems": limit}
        )
        return {each["Key"]: each["ETag"] for page in pages for each in page.get("Contents", [])}

    def entity_tags_of_name(self, prefix: str) -> dict[str, str]:
        """List those of the keys that begin with a name, in whatever form: S3 compares bytes."""
        name = canonical(prefix)
        # ASCII characters have one form, but a mark can follow the last one.
        ascii_characters = next((place for place, each in enumerate(name) if not each.isascii()), None)
        same = name if ascii_characters is None else name[: max(0, ascii_characters - 1)]
        return {key: tag for key, tag in self.entity_tags(same).items() if canonical(key).startswith(name)}

    def remove(self, key: str) -> None:
        """Delete a document, then its sidecar: in this order nothing is indexed without its attributes."""
        self.s3.delete_object(Bucket=self.name, Key=key)
        if self._head(key + SIDECAR_SUFFIX) is not None:
            self.s3.delete_object(Bucket=self.name, Key=key + SIDECAR_SUFFIX)

    def _as_known(self, key: str, known: DocumentRecord) -> Any | None:
        """Return an object's description; None if the bucket has another version than the registry."""
        head = self._head(key)
        if head is None or _version(head) != (known.observed.etag, known.observed.version_id):
            return None
        return head

    def _head(self, key: str) -> Any | None:
        try:
            return self.s3.head_object(Bucket=self.name, Key=key)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] in _ABSENT:
                return None
            raise


def file_state(file: LocalFile) -> State:
    """Return what changes with a file or its sidecar, without reading them."""
    return _stat(file.path), _stat(file.sidecar_path)


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def entity_tag(content: bytes) -> str:
    """Return S3's entity tag of an object that was uploaded in one part, without a customer's encryption key."""
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def tags_of_sidecar(sidecar: bytes | None, known: DocumentRecord | None) -> set[str | None]:
    """Return the entity tags of a sidecar: as it is, and with the access label that the stack has written into it.

    Args:
        sidecar: Its content; None for no sidecar.
        known: What the registry knows of the document.
    """
    label = known.label if known else None
    written = (
        [with_attribute(sidecar, name, label) for name, value in known.observed.attributes.items() if value == label]
        if known and label
        else []
    )
    return {None if sidecar is None else entity_tag(sidecar), *map(entity_tag, written)}


def _is_about(known: DocumentRecord, content: bytes) -> bool:
    """Whether the registry has the final status of this content."""
    return known.status in _KNOWN and not known.again and known.observed.etag == entity_tag(content)


def _version(head: Mapping[str, Any]) -> tuple[str, str | None]:
    return head["ETag"], head.get("VersionId")
