"""The bucket of documents: what is in it, their sidecars, and signed uploads."""

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from botocore.exceptions import ClientError

from ragstack_common.core.artefacts import WORDS_SUFFIX
from ragstack_common.core.clients import s3_signer
from ragstack_common.core.errors import DocumentNotFoundError, ServiceUnavailableError
from ragstack_common.core.objects import delete_if, http_status, put_if, unchanged, unless_absent
from ragstack_common.core.reporting import failing_as
from ragstack_common.core.uris import s3_uri, saved_name
from ragstack_common.registry.records import Observation
from ragstack_common.settings.limits import MAX_SIDECAR_BYTES

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mypy_boto3_s3 import S3Client

_NOT_PLAIN: Final = re.compile(r'[^ -~]|["\\%]')


@dataclass(frozen=True)
class FoundSidecar:
    """A sidecar's content, up to one byte more than the limit, and its entity tag; None without a sidecar."""

    body: bytes | None = None
    etag: str | None = None


@dataclass(frozen=True)
class DocumentsBucket:
    """One bucket. Each call raises ServiceUnavailableError if S3 fails."""

    name: str
    s3: "S3Client"

    def uri(self, key: str) -> str:
        """Return the ``s3://`` URI of a key."""
        return s3_uri(self.name, key)

    def key(self, uri: str) -> str | None:
        """Return the key of an object in this bucket; None for any other URI."""
        prefix = self.uri("")
        return uri.removeprefix(prefix) or None if uri.startswith(prefix) else None

    def observe(self, key: str) -> Observation:
        """Return which object is there, if any; its sidecar is not read."""
        with _reaching_the_bucket():
            head = unless_absent(lambda: self.s3.head_object(Bucket=self.name, Key=key))
        return Observation() if head is None else Observation.from_head(head)

    def read_sidecar(self, key: str) -> FoundSidecar:
        """Return a sidecar, if there is one."""
        with _reaching_the_bucket():
            found = unless_absent(lambda: self.s3.get_object(Bucket=self.name, Key=key))
            if found is None:
                return FoundSidecar()
            with found["Body"] as stream:
                return FoundSidecar(stream.read(MAX_SIDECAR_BYTES + 1), found["ETag"])

    def read(self, key: str, etag: str) -> tuple[bytes, str | None]:
        """Return an object's content and its Content-Type.

        Raises:
            DocumentNotFoundError: There is no such object.
            ServiceUnavailableError: The object is of another version.
        """
        with _reaching_the_bucket():
            try:
                found = unless_absent(lambda: self.s3.get_object(Bucket=self.name, Key=key, IfMatch=etag))
            except ClientError as error:
                if http_status(error) != HTTPStatus.PRECONDITION_FAILED:
                    raise
                raise replaced_error(key) from error
            if found is None:
                raise DocumentNotFoundError(f"{key!r:.100} was deleted")
            with found["Body"] as stream:
                return stream.read(), found.get("ContentType")

    def read_words(self, key: str) -> bytes:
        """Return the words that were recognized in a document's pictures, in JSON; no pages without any."""
        with _reaching_the_bucket():
            found = unless_absent(lambda: self.s3.get_object(Bucket=self.name, Key=key + WORDS_SUFFIX))
            if found is None:
                return b"[]"
            with found["Body"] as stream:
                body: bytes = stream.read()
                return body

    def change_sidecar(self, key: str, body: bytes | None, etag: str | None) -> None:
        """Write a sidecar, or delete it if there is no body, on condition that it still has an entity tag.

        Raises:
            ServiceUnavailableError: Another writer was faster.
        """
        with _reaching_the_bucket():
            if body is not None:
                written = {"Bucket": self.name, "Key": key, "Body": body, "ContentType": "application/json"}
                is_changed = put_if(unchanged(etag), self.s3, **written) is not None
            else:
                is_changed = etag is None or delete_if(etag, self.s3, self.name, key)
        if not is_changed:
            raise ServiceUnavailableError("Somebody else changed the document at the same time: try again")

    def delete_if_present(self, key: str) -> bool:
        """Delete an object and return whether it existed; without an object, no delete marker is added."""
        if not self.observe(key).is_present:
            return False
        with _reaching_the_bucket():
            self.s3.delete_object(Bucket=self.name, Key=key)
        return True

    def sign_upload(self, key: str, content_type: str, size: int, seconds: int) -> tuple[str, dict[str, str]]:
        """Sign the upload of exactly *size* bytes of one type as a POST form: its URL and its fields."""
        conditions: list[Any] = [["content-length-range", size, size], {"Content-Type": content_type}]
        with _reaching_the_bucket():
            signed = s3_signer().generate_presigned_post(
                self.name,
                key,
                Fields={"Content-Type": content_type},
                Conditions=conditions,
                ExpiresIn=seconds,
            )
        return signed["url"], signed["fields"]

    def sign_new(self, key: str, content_type: str, size: int, seconds: int) -> tuple[str, dict[str, str]]:
        """Sign the upload of a new object as a PUT request: its URL, and the headers that it must have.

        S3 answers 412 if there is an object by then, also if it was created a moment before. Forms cannot say that.
        Source: Amazon S3 user guide, conditional writes.
        """
        headers = {"Content-Type": content_type, "If-None-Match": "*"}
        with _reaching_the_bucket():
            url = s3_signer().generate_presigned_url(
                "put_object",
                Params={
                    "Bucket": self.name,
                    "Key": key,
                    "ContentType": content_type,
                    "ContentLength": size,
                    "IfNoneMatch": "*",
                },
                ExpiresIn=seconds,
            )
        return url, headers

    def sign_download(self, key: str, version_id: str | None, seconds: int) -> str:
        """Sign the download of one version of an object, which browsers save under its own name."""
        version = {} if version_id is None else {"VersionId": version_id}
        with _reaching_the_bucket():
            url: str = s3_signer().generate_presigned_url(
                "get_object",
                Params={"Bucket": self.name, "Key": key, "ResponseContentDisposition": attachment(key), **version},
                ExpiresIn=seconds,
            )
        return url


def attachment(key: str) -> str:
    """Return the Content-Disposition with which an object is saved, in ASCII and in UTF-8.

    Source: RFC 6266, appendix D.
    """
    name = saved_name(key)
    return f"attachment; filename=\"{_NOT_PLAIN.sub('_', name)}\"; filename*=UTF-8''{quote(name, safe='')}"


def replaced_error(key: str) -> ServiceUnavailableError:
    """Return the error for an object that is newer than what the registry knows."""
    return ServiceUnavailableError(f"{key!r:.100} was replaced, and its new version is not processed yet: try again")


def _reaching_the_bucket() -> "AbstractContextManager[None]":
    return failing_as(ServiceUnavailableError, "The documents bucket could not be reached")
