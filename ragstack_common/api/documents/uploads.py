"""Permission to upload a document, and the attributes that it is to have."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from ragstack_common.api.documents.answers import iso
from ragstack_common.api.documents.bucket import DocumentsBucket
from ragstack_common.api.documents.models import PresignedPost, UploadAnswer, UploadRequest
from ragstack_common.api.documents.settings import DocumentApiSettings
from ragstack_common.config import MAX_URI_CHARACTERS
from ragstack_common.documents import SIDECAR_SUFFIX, fault_of_uri
from ragstack_common.errors import InvalidDocumentError
from ragstack_common.ingestion.sidecars import check_attributes, write_sidecar
from ragstack_common.registry.table import document_id


class Uploads:
    """Checks what is to be uploaded and permits it.

    The sidecar is written here and not by the caller. A permission can bind the length of what is uploaded but not
    what it says, so only what is written here is what was checked; the caller has one upload to make instead of two;
    and the sidecar lies there before its document does, so that a new document is read once, with its attributes, and
    not a second time for them. What it costs: attributes take effect when they are asked for, whether the upload
    follows or not. For a document that is not there yet this is a sidecar without a document, which nothing is done
    about.
    """

    def __init__(
        self, settings: DocumentApiSettings, bucket: DocumentsBucket, *, clock: Callable[[], float] = time.time
    ) -> None:
        """Bind the bucket.

        Args:
            settings: Bounds of size and time, and the kind of the vector store.
            bucket: Where documents lie.
            clock: Seconds since 1970.
        """
        self._settings = settings
        self._bucket = bucket
        self._clock = clock

    def permit(self, request: UploadRequest) -> UploadAnswer:
        """Write the attributes, and permit one upload of the document.

        Raises:
            InvalidDocumentError: The document is too large, its name too long, or it cannot have the attributes.
            ServiceUnavailableError: S3 did not take the sidecar.
        """
        settings, key = self._settings, request.name
        uri = self._bucket.uri(key)
        self._check(uri, request)
        sidecar = self._set_attributes(key, request.attributes) if request.attributes is not None else None
        until = self._clock() + settings.upload_seconds
        url, fields = self._bucket.sign_upload(key, request.content_type, request.size, settings.upload_seconds)
        upload = PresignedPost(url=url, fields=fields, size=request.size, expires_at=iso(until))
        return UploadAnswer(id=document_id(uri), uri=uri, key=key, upload=upload, sidecar_uri=sidecar)

    def _check(self, uri: str, request: UploadRequest) -> None:
        if len(uri) > MAX_URI_CHARACTERS:
            member = "key" if request.key is not None else "prefix and filename"
            most = MAX_URI_CHARACTERS - len(self._bucket.uri(""))
            raise InvalidDocumentError(
                f"{member}: {len(request.name)} characters are too long a name; in this bucket it may have {most}"
            )
        if fault := fault_of_uri(uri):
            raise InvalidDocumentError(f"key: {fault}")
        if request.size > self._settings.upload_max_bytes:
            most = self._settings.upload_max_bytes
            raise InvalidDocumentError(f"size: {request.size:,} bytes are too many; a document may have {most:,}")
        if request.attributes is not None:
            try:
                check_attributes(request.attributes, self._settings.vector_store)
            except InvalidDocumentError as error:
                raise InvalidDocumentError(f"attributes: {error}") from error

    def _set_attributes(self, key: str, attributes: Mapping[str, Any]) -> str | None:
        sidecar = key + SIDECAR_SUFFIX
        if not attributes:
            self._bucket.delete_if_present(sidecar)
            return None
        self._bucket.write_sidecar(sidecar, write_sidecar(attributes))
        return self._bucket.uri(sidecar)
