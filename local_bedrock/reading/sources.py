"""Read documents from S3."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from ragstack_common.core.uris import s3_uri, split_uri
from ragstack_common.reading.encodings import charset_of
from ragstack_common.reading.formats import UnreadableDocument

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_REASONS: Final = {
    "NoSuchBucket": "The bucket of {uri} does not exist.",
    "AccessDenied": "Access to {uri} was denied: give the knowledge base's role s3:GetObject on it.",
}


class ObjectTooLarge(UnreadableDocument):
    """An object is larger than the limit."""


class ListingFailed(Exception):  # noqa: N818 - named as it is reported
    """A bucket can't be listed; the message says why."""


@dataclass(frozen=True)
class Object:
    """An object in a listing."""

    uri: str
    tag: str
    size: int


@dataclass(frozen=True)
class Content:
    """An object's content, its ETag, and the charset of its Content-Type."""

    data: bytes
    tag: str
    charset: str | None = None


class ObjectStore:
    """Reads objects from S3 or a compatible service.

    Args:
        endpoint_url: None uses boto3's settings: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile, or AWS itself.
    """

    def __init__(self, endpoint_url: str | None = None) -> None:
        self._endpoint_url = endpoint_url

    def read(self, uri: str, limit: int) -> Content:
        """Read an object, ``s3://bucket/key``.

        Raises:
            ObjectTooLarge: It has more than ``limit`` bytes.
            UnreadableDocument: It doesn't exist, or access is denied.
        """
        bucket, key = split_uri(uri)
        if not bucket or not key:
            raise UnreadableDocument(f"{uri} is not the URI of an object: write s3://bucket/key.")
        try:
            answer = self._client.get_object(Bucket=bucket, Key=key)
            if answer["ContentLength"] > limit:
                answer["Body"].close()
                raise ObjectTooLarge(f"{uri} has {answer['ContentLength']:,} bytes; the maximum is {limit:,}.")
            return Content(answer["Body"].read(limit), answer["ETag"], charset_of(answer.get("ContentType")))
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in ("NoSuchKey", "404", "NotFound"):
                raise UnreadableDocument(f"{uri} does not exist in the bucket.") from None
            raise UnreadableDocument(_REASONS.get(code, f"{{uri}} cannot be read: {error}.").format(uri=uri)) from None
        except BotoCoreError as error:
            raise UnreadableDocument(f"{uri} cannot be read: {error}.") from None

    def list(self, bucket: str, prefix: str) -> Iterator[Object]:
        """List the objects under a prefix.

        Raises:
            ListingFailed: The bucket doesn't exist, or access is denied.
        """
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        try:
            for page in pages:
                for entry in page.get("Contents", ()):
                    yield Object(s3_uri(bucket, entry["Key"]), entry["ETag"], entry["Size"])
        except (ClientError, BotoCoreError) as error:
            raise ListingFailed(f"The bucket {bucket} cannot be listed: {error}") from None

    @cached_property
    def _client(self) -> "S3Client":
        session = boto3.Session()
        # Compatible services need some credentials, and don't support virtual hosts and newer checksums.
        credentials: dict[str, Any] = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
        return session.client(
            "s3",
            endpoint_url=self._endpoint_url,
            region_name=session.region_name or "us-east-1",
            config=Config(
                connect_timeout=5,
                read_timeout=30,
                retries={"mode": "standard", "max_attempts": 4},
                s3={"addressing_style": "path"},
                response_checksum_validation="when_required",
            ),
            **({} if session.get_credentials() else credentials),
        )
