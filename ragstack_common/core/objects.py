"""Objects in S3 that may be absent, and writes that hold only if they have not changed."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from ragstack_common.core.uris import SIDECAR_SUFFIX, split_uri

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_ABSENT: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
"""S3 answers with either when the newest version of an object is a delete marker."""

_LOST_RACE: Final = (HTTPStatus.PRECONDITION_FAILED, HTTPStatus.CONFLICT)
"""S3 answers a conditional write with either when another writer was faster."""


def http_status(error: ClientError) -> int:
    """Return the HTTP status of an error of S3; 0 if the error has none."""
    status: int = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status


def unless_absent(read: Callable[[], Any]) -> Any | None:
    """Return S3's response, or None if there is no such object."""
    try:
        return read()
    except ClientError as error:
        if http_status(error) in _ABSENT:
            return None
        raise


def unchanged(etag: str | None) -> Mapping[str, str]:
    """Return the condition that an object still has an entity tag; for None, that it still does not exist."""
    return {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}


def get_if_changed(s3: "S3Client", bucket: str, key: str, etag: str | None) -> tuple[bytes | None, str | None] | None:
    """Return the body and the entity tag of an object, both None if it does not exist.

    Returns None in place of the pair if the object still has the tag *etag*.
    """
    condition: Any = {} if etag is None else {"IfNoneMatch": etag}
    try:
        answer = unless_absent(lambda: s3.get_object(Bucket=bucket, Key=key, **condition))
    except ClientError as error:
        if http_status(error) != HTTPStatus.NOT_MODIFIED:
            raise
        return None
    return (None, None) if answer is None else (answer["Body"].read(), answer["ETag"])


def put_if(condition: Mapping[str, Any], s3: "S3Client", **parameters: Any) -> str | None:
    """Write an object and return its entity tag; None if the condition does not hold: another writer was faster."""
    try:
        return s3.put_object(**parameters, **condition)["ETag"]
    except ClientError as error:
        # With IfMatch, S3 says that the object was deleted. Source: Amazon S3 user guide, conditional writes.
        if http_status(error) not in _LOST_RACE and error.response["Error"]["Code"] != "NoSuchKey":
            raise
        return None


def delete_if(etag: str, s3: "S3Client", bucket: str, key: str) -> bool:
    """Delete an object and return whether it is gone; False if it has another entity tag: another writer was faster.

    Source: Amazon S3 user guide, conditional deletes.
    """
    try:
        unless_absent(lambda: s3.delete_object(Bucket=bucket, Key=key, IfMatch=etag))
    except ClientError as error:
        if http_status(error) not in _LOST_RACE:
            raise
        return False
    return True


def find_sidecar(uri: str, s3: "S3Client") -> str | None:
    """Return the URI of a document's sidecar; None if it does not exist."""
    sidecar = uri + SIDECAR_SUFFIX
    bucket, key = split_uri(sidecar)
    return None if unless_absent(lambda: s3.head_object(Bucket=bucket, Key=key)) is None else sidecar
