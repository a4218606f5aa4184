"""What lies in the bucket for a document, at one moment."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.documents import MAX_SIDECAR_BYTES, SIDECAR_SUFFIX, fault_of_uri
from ragstack_common.errors import InvalidDocumentError
from ragstack_common.ingestion.sidecars import read_sidecar
from ragstack_common.registry.records import Attributes, Observation

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

LARGEST_DOCUMENT: Final = 50 * 1024**2
"""Bytes. Source: user guide of Knowledge Bases, formats and sizes of documents."""

THREADS: Final = 8

LOOKED_AT_TOGETHER: Final = 3 * THREADS
"""A reconciliation names fifty documents in a message, and a function is given up to a hundred messages."""

_NO_SUCH_OBJECT: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
"""Of an object whose newest version is a delete marker, S3 says either, depending on how it is asked for."""


@dataclass(frozen=True)
class _Sidecar:
    etag: str | None = None
    version_id: str | None = None
    last_modified: float | None = None
    attributes: Attributes = field(default_factory=dict)
    fault: str | None = None


class Observer:
    """Looks at documents and their sidecars."""

    def __init__(self, s3: "S3Client", vector_store: str) -> None:
        """Bind a client, and the kind of vector store whose limits a sidecar must keep."""
        self._s3 = s3
        self._vector_store = vector_store

    def observe_all(self, uris: Iterable[str]) -> dict[str, Observation | Exception]:
        """Look at several documents at once; what could not be looked at has the error in its place."""
        names = list(uris)
        if len(names) < 2:  # noqa: PLR2004 - one needs no threads
            return {uri: self._try(uri) for uri in names}
        with ThreadPoolExecutor(min(THREADS, len(names))) as threads:
            return dict(zip(names, threads.map(self._try, names), strict=True))

    def observe_while(self, has_time: Callable[[], bool], uris: Sequence[str]) -> dict[str, Observation | Exception]:
        """Look at the first documents for certain, and at the others in turn while there is time."""
        observed: dict[str, Observation | Exception] = {}
        for start in range(0, len(uris), LOOKED_AT_TOGETHER):
            if start and not has_time():
                break
            observed |= self.observe_all(uris[start : start + LOOKED_AT_TOGETHER])
        return observed

    def observe(self, uri: str) -> Observation:
        """Look at one document.

        Raises:
            ClientError: S3 refused, for another reason than that there is no such object.
            InvalidDocumentError: The URI names no object.
        """
        bucket, slash, key = uri.removeprefix("s3://").partition("/")
        if not (uri.startswith("s3://") and bucket and slash and key):
            raise InvalidDocumentError(f"{uri!r:.200} names no object: write s3://BUCKET/KEY")
        document = self._head(bucket, key)
        if document is None:
            return Observation()
        sidecar = self._sidecar(bucket, key + SIDECAR_SUFFIX)
        size = document["ContentLength"]
        return Observation(
            etag=document["ETag"],
            version_id=document.get("VersionId"),
            size=size,
            last_modified=document["LastModified"].timestamp(),
            sidecar_etag=sidecar.etag,
            sidecar_version_id=sidecar.version_id,
            sidecar_last_modified=sidecar.last_modified,
            attributes=sidecar.attributes,
            refusal=fault_of_uri(uri) or _fault_of_size(size) or sidecar.fault,
        )

    def _try(self, uri: str) -> Observation | Exception:
        try:
            return self.observe(uri)
        except (ClientError, BotoCoreError, InvalidDocumentError) as error:
            return error

    def _head(self, bucket: str, key: str) -> Any | None:
        try:
            return self._s3.head_object(Bucket=bucket, Key=key)
        except ClientError as error:
            if _is_absent(error):
                return None
            raise

    def _sidecar(self, bucket: str, key: str) -> _Sidecar:
        try:
            found = self._s3.get_object(Bucket=bucket, Key=key)
        except ClientError as error:
            if _is_absent(error):
                return _Sidecar()
            raise
        seen = _Sidecar(found["ETag"], found.get("VersionId"), found["LastModified"].timestamp())
        with found["Body"] as stream:
            if found["ContentLength"] > MAX_SIDECAR_BYTES:
                fault = f"The sidecar has {found['ContentLength']:,} bytes; at most {MAX_SIDECAR_BYTES:,} are taken"
                return replace(seen, fault=fault)
            body = stream.read()
        try:
            return replace(seen, attributes=read_sidecar(body, self._vector_store))
        except InvalidDocumentError as error:
            return replace(seen, fault=f"The sidecar cannot be used: {error}")


def _fault_of_size(size: int) -> str | None:
    if size > LARGEST_DOCUMENT:
        return f"The document has {size / 1024**2:.1f} MB; Bedrock takes 50 MB: divide it"
    return None


def _is_absent(error: ClientError) -> bool:
    return error.response["ResponseMetadata"]["HTTPStatusCode"] in _NO_SUCH_OBJECT
