"""The documents bucket, as far as documents are uploaded, looked at and deleted through the interface."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from ragstack_common.api.documents.failures import failing_as
from ragstack_common.documents import s3_uri
from ragstack_common.errors import ServiceUnavailableError
from ragstack_common.registry.records import Observation

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mypy_boto3_s3 import S3Client

SIDECAR_TYPE: Final = "application/json"

_ABSENT: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
"""S3 says either of an object whose newest version is a delete marker."""


@dataclass(frozen=True)
class DocumentsBucket:
    """One bucket. Each call raises ServiceUnavailableError where S3 does not do as asked."""

    name: str
    s3: "S3Client"

    def uri(self, key: str) -> str:
        """Name an object."""
        return s3_uri(self.name, key)

    def key(self, uri: str) -> str | None:
        """Return the key of an object of this bucket; None where the URI names none."""
        prefix = self.uri("")
        return uri.removeprefix(prefix) or None if uri.startswith(prefix) else None

    def look(self, key: str) -> Observation:
        """Look whether there is an object, and which; its sidecar is not read."""
        with _reaching():
            try:
                head = self.s3.head_object(Bucket=self.name, Key=key)
            except ClientError as error:
                if error.response["ResponseMetadata"]["HTTPStatusCode"] in _ABSENT:
                    return Observation()
                raise
        return Observation(
            etag=head["ETag"],
            version_id=head.get("VersionId"),
            size=head["ContentLength"],
            last_modified=head["LastModified"].timestamp(),
        )

    def write_sidecar(self, key: str, body: bytes) -> None:
        """Write a sidecar."""
        with _reaching():
            self.s3.put_object(Bucket=self.name, Key=key, Body=body, ContentType=SIDECAR_TYPE)

    def delete_if_present(self, key: str) -> bool:
        """Delete an object, and tell whether there was one; where there is none, no delete marker is added."""
        if not self.look(key).is_present:
            return False
        with _reaching():
            self.s3.delete_object(Bucket=self.name, Key=key)
        return True

    def sign_upload(self, key: str, content_type: str, size: int, seconds: int) -> tuple[str, dict[str, str]]:
        """Permit the upload of so many bytes of one type, by a form that is posted: its address, and its fields.

        The address is that of the bucket's region. What botocore gives is the global one, which S3 redirects until the
        name of a new bucket is known everywhere, and not every client follows with the file.
        """
        conditions: list[Any] = [["content-length-range", size, size], {"Content-Type": content_type}]
        with _reaching():
            signed = self.s3.generate_presigned_post(
                self.name,
                key,
                Fields={"Content-Type": content_type},
                Conditions=conditions,
                ExpiresIn=seconds,
            )
        return f"{self.s3.meta.endpoint_url.rstrip('/')}/{self.name}", signed["fields"]


def _reaching() -> "AbstractContextManager[None]":
    return failing_as(ServiceUnavailableError, "The documents bucket could not be reached")
