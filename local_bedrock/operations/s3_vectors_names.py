"""Which vector bucket or vector index a request of S3 Vectors means."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import apsw

from local_bedrock.faults import InvalidRequest, NoVectorResource
from local_bedrock.operations.context import Context, Request
from local_bedrock.store import searched_vectors, vector_buckets
from local_bedrock.store.database import View
from local_bedrock.store.vector_buckets import Bucket, Index

_BUCKET_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_INDEX_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
"""Source: user guide of Amazon S3, naming rules of vector buckets and vector indexes."""

_ARN: Final = re.compile(r"arn:[^:]*:s3vectors:[^:]*:\d*:bucket/([^/]*)(?:/index/([^/]*))?")


def check_bucket_name(name: str) -> None:
    """Refuse a name that no bucket can have.

    Raises:
        InvalidRequest: It is none.
    """
    if not _BUCKET_NAME.fullmatch(name):
        raise InvalidRequest("Invalid vector bucket name")


def check_index_name(name: str) -> None:
    """Refuse a name that no index can have.

    Raises:
        InvalidRequest: It is none.
    """
    if not _INDEX_NAME.fullmatch(name):
        raise InvalidRequest("Invalid index name")


def bucket_of(connection: apsw.Connection, request: Request) -> Bucket:
    """Return the bucket that a request names, by its name or its ARN.

    Raises:
        InvalidRequest: It names none, or names it twice.
        NoVectorResource: There is no such bucket.
    """
    name, arn = request.get("vectorBucketName"), request.get("vectorBucketArn")
    if (name is None) == (arn is None):
        raise InvalidRequest("Must specify either vectorBucketName or vectorBucketArn but not both")
    if name is not None:
        return vector_buckets.find_bucket(connection, name)
    found = resource_of(connection, str(arn))
    assert isinstance(found, Bucket)  # the model's pattern lets no other ARN through
    return found


def index_of(connection: apsw.Connection, request: Request) -> Index:
    """Return the index that a request names, by the names of bucket and index or by its ARN.

    Raises:
        InvalidRequest: It names none, or names it twice.
        NoVectorResource: There is no such bucket or index.
    """
    bucket, name, arn = (request.get(member) for member in ("vectorBucketName", "indexName", "indexArn"))
    if arn is None and bucket is not None and name is not None:
        return vector_buckets.find_index(connection, bucket, name)
    if arn is None or bucket is not None or name is not None:
        raise InvalidRequest("Must specify either indexArn or both vectorBucketName and indexName")
    found = resource_of(connection, arn)
    assert isinstance(found, Index)  # as above
    return found


def resource_of(connection: apsw.Connection, arn: str) -> Bucket | Index:
    """Return the bucket or index of an ARN.

    Raises:
        NoVectorResource: There is none of this account and region.
    """
    match = _ARN.fullmatch(arn)
    if match is None:
        raise NoVectorResource("The specified resource could not be found")
    bucket, index = match.groups()
    found: Bucket | Index = (
        vector_buckets.find_bucket(connection, bucket)
        if index is None
        else vector_buckets.find_index(connection, bucket, index)
    )
    if found.arn != arn:
        raise NoVectorResource("The specified resource could not be found")
    return found


@contextmanager
def reading(context: Context, request: Request) -> Iterator[tuple[View, Index]]:
    """Hold a state of the index that a request names, with its vectors.

    Raises:
        As :func:`index_of`.
    """
    with context.database.read() as view:
        index = index_of(view.connection, request)
    with context.database.read(searched_vectors.name_of(index.id)) as view:
        again = index_of(view.connection, request)
        if again.id != index.id:  # another index has taken its name in this moment
            raise NoVectorResource("The specified index could not be found")
        yield view, again
