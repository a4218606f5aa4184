"""S3 Vectors: vector buckets and vector indexes.

Every index is ENHANCED, as in all buckets of AWS since 30 September 2026. Tags are accepted without effect.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import apsw

from local_bedrock.http.errors import Conflict, InvalidRequest, NoVectorResource
from local_bedrock.operations.context import Answer, Context, Request
from local_bedrock.operations.paging import Listing
from local_bedrock.store import s3_vectors, vectors
from local_bedrock.store.database import View
from local_bedrock.store.s3_vectors import Bucket, Index, TextSearch

_BUCKET_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_INDEX_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
"""Source: user guide of Amazon S3, naming rules of vector buckets and vector indexes."""

_ARN: Final = re.compile(s3_vectors.ARN.format("([^/]*)") + "(?:/index/([^/]*))?")
DEFAULT_PAGE: Final = 500
DEFAULT_ENCRYPTION: Final = {"sseType": "AES256"}


def bucket_of(connection: apsw.Connection, request: Request) -> Bucket:
    """Return the bucket of a request, by its name or its ARN.

    Raises:
        InvalidRequest: The request has neither or both.
        NoVectorResource: The bucket doesn't exist.
    """
    name, arn = request.get("vectorBucketName"), request.get("vectorBucketArn")
    if (name is None) == (arn is None):
        raise InvalidRequest("Must specify either vectorBucketName or vectorBucketArn but not both")
    return s3_vectors.find_bucket(connection, name or _names_in(str(arn))[0])


def index_of(connection: apsw.Connection, request: Request) -> Index:
    """Return the index of a request, by the names of bucket and index or by its ARN.

    Raises:
        InvalidRequest: The request has neither or both.
        NoVectorResource: The bucket or index doesn't exist.
    """
    bucket, name, arn = (request.get(member) for member in ("vectorBucketName", "indexName", "indexArn"))
    if arn is not None and bucket is None and name is None:
        bucket, name = _names_in(arn)
    elif arn is not None or bucket is None or name is None:
        raise InvalidRequest("Must specify either indexArn or both vectorBucketName and indexName")
    return s3_vectors.find_index(connection, bucket, name)


def _names_in(arn: str) -> tuple[Any, ...]:
    match = _ARN.fullmatch(arn)
    if match is None:
        raise NoVectorResource("The specified resource could not be found")
    return match.groups()


@contextmanager
def reading(context: Context, request: Request) -> Iterator[tuple[View, Index]]:
    """Hold a snapshot of the index of a request, with its vectors.

    Raises:
        As :func:`index_of`.
    """
    with context.database.read() as view:
        index = index_of(view.connection, request)
    with context.database.read(vectors.name_of_index(index.id)) as view:
        again = index_of(view.connection, request)
        if again.id != index.id:  # it was deleted, and another index has its name now
            raise NoVectorResource("The specified index could not be found")
        yield view, again


def create_bucket(context: Context, request: Request) -> Answer:
    """Create a vector bucket."""
    name = request["vectorBucketName"]
    if not _BUCKET_NAME.fullmatch(name):
        raise InvalidRequest("Invalid vector bucket name")
    encryption = {**DEFAULT_ENCRYPTION, **request.get("encryptionConfiguration", {})}
    bucket = Bucket(name, encryption, context.clock())
    with context.database.write() as change:
        if s3_vectors.bucket_named(change.connection, name):
            raise Conflict("A vector bucket with the specified name already exists")
        s3_vectors.add_bucket(change, bucket)
    return {"vectorBucketArn": bucket.arn}


def get_bucket(context: Context, request: Request) -> Answer:
    """Describe one."""
    with context.database.read() as view:
        found = bucket_of(view.connection, request)
    described = {"encryptionConfiguration": found.encryption, "defaultIndexMode": s3_vectors.ENHANCED}
    return {"vectorBucket": {**_bucket_summary(found), **described}}


def list_buckets(context: Context, request: Request) -> Answer:
    """List them by name."""
    with context.database.read() as view:
        fetch = partial(s3_vectors.buckets, view.connection, prefix=request.get("prefix", ""))
        found, more = Listing("ListVectorBuckets", request).page("", "name", fetch, DEFAULT_PAGE)
    return {"vectorBuckets": [_bucket_summary(bucket) for bucket in found], "nextToken": more}


def delete_bucket(context: Context, request: Request) -> Answer:
    """Delete a bucket without indexes."""
    with context.database.write() as change:
        found = bucket_of(change.connection, request)
        if s3_vectors.indexes(change.connection, found.name, limit=1):
            raise Conflict("The specified vector bucket is not empty")
        s3_vectors.remove_bucket(change, found)
    return {}


def create_index(context: Context, request: Request) -> Answer:
    """Create a vector index."""
    if not _INDEX_NAME.fullmatch(request["indexName"]):
        raise InvalidRequest("Invalid index name")
    configuration = request.get("metadataConfiguration", {})
    hidden = configuration.get("nonFilterableMetadataKeys", [])
    _check_distinct("nonFilterableMetadataKeys", hidden)
    text_searches = configuration.get("textSearchConfigurations", [])
    _check_distinct("textSearchConfigurations", [each["metadataKey"] for each in text_searches])
    with context.database.write() as change:
        bucket = bucket_of(change.connection, request)
        if s3_vectors.index_named(change.connection, bucket.name, request["indexName"]):
            raise Conflict("An index with the specified name already exists")
        index = Index(
            id=0,
            bucket=bucket.name,
            name=request["indexName"],
            dimension=request["dimension"],
            metric=request["distanceMetric"],
            non_filterable=hidden,
            encryption={**DEFAULT_ENCRYPTION, **request.get("encryptionConfiguration", bucket.encryption)},
            created_at=context.clock(),
        )
        index_id = s3_vectors.add_index(change, index)
        for each in text_searches:
            s3_vectors.add_text_search(change, index_id, each["metadataKey"], each.get("language"))
    return {"indexArn": index.arn}


def get_index(context: Context, request: Request) -> Answer:
    """Describe one."""
    with context.database.read() as view:
        index = index_of(view.connection, request)
    configuration = {
        "nonFilterableMetadataKeys": index.non_filterable,
        "textSearchConfigurations": [_text_search(each) for each in index.text_searches],
    }
    return {
        "index": {
            **_index_summary(index),
            "dataType": "float32",
            "dimension": index.dimension,
            "distanceMetric": index.metric,
            "metadataConfiguration": {name: value for name, value in configuration.items() if value} or None,
            "encryptionConfiguration": index.encryption,
            "indexMode": s3_vectors.ENHANCED,
        }
    }


def list_indexes(context: Context, request: Request) -> Answer:
    """List those of a bucket by name."""
    with context.database.read() as view:
        bucket = bucket_of(view.connection, request)
        fetch = partial(s3_vectors.indexes, view.connection, bucket.name, prefix=request.get("prefix", ""))
        found, more = Listing("ListIndexes", request).page("", "name", fetch, DEFAULT_PAGE)
    return {"indexes": [_index_summary(index) for index in found], "nextToken": more}


def delete_index(context: Context, request: Request) -> Answer:
    """Delete one with its vectors."""
    with context.database.write() as change:
        s3_vectors.remove_index(change, index_of(change.connection, request))
    context.ingestion.wake()  # gives back the space
    return {}


def _check_distinct(name: str, keys: Sequence[str]) -> None:
    if len(set(keys)) < len(keys):
        raise InvalidRequest(f"The {name} contain a metadata key twice")


def _bucket_summary(bucket: Bucket) -> Answer:
    return {"vectorBucketName": bucket.name, "vectorBucketArn": bucket.arn, "creationTime": bucket.created_at}


def _index_summary(index: Index) -> Answer:
    return {
        "vectorBucketName": index.bucket,
        "indexName": index.name,
        "indexArn": index.arn,
        "creationTime": index.created_at,
    }


def _text_search(text_search: TextSearch) -> Answer:
    return {"metadataKey": text_search.key, "language": text_search.language, "status": "ACTIVE"}
