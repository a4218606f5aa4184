"""S3 Vectors: vector buckets with their policies, and vector indexes."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import apsw

from local_bedrock.errors import Conflict, InvalidRequest, NoVectorResource
from local_bedrock.operations.context import Answer, Context, Request
from local_bedrock.operations.paging import Listing
from local_bedrock.operations.tags import check_tags
from local_bedrock.store import s3_vectors, tags, vectors
from local_bedrock.store.database import View
from local_bedrock.store.s3_vectors import Bucket, Index, TextSearch

_BUCKET_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_INDEX_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
"""Source: user guide of Amazon S3, naming rules of vector buckets and vector indexes."""

_ARN: Final = re.compile(r"arn:[^:]*:s3vectors:[^:]*:\d*:bucket/([^/]*)(?:/index/([^/]*))?")


def bucket_of(connection: apsw.Connection, request: Request) -> Bucket:
    """Return the bucket of a request, by its name or its ARN.

    Raises:
        InvalidRequest: The request has neither or both.
        NoVectorResource: The bucket doesn't exist.
    """
    name, arn = request.get("vectorBucketName"), request.get("vectorBucketArn")
    if (name is None) == (arn is None):
        raise InvalidRequest("Must specify either vectorBucketName or vectorBucketArn but not both")
    if name is not None:
        return s3_vectors.find_bucket(connection, name)
    found = resource_of(connection, str(arn))
    assert isinstance(found, Bucket)  # by the model's pattern of the ARN
    return found


def index_of(connection: apsw.Connection, request: Request) -> Index:
    """Return the index of a request, by the names of bucket and index or by its ARN.

    Raises:
        InvalidRequest: The request has neither or both.
        NoVectorResource: The bucket or index doesn't exist.
    """
    bucket, name, arn = (request.get(member) for member in ("vectorBucketName", "indexName", "indexArn"))
    if arn is None and bucket is not None and name is not None:
        return s3_vectors.find_index(connection, bucket, name)
    if arn is None or bucket is not None or name is not None:
        raise InvalidRequest("Must specify either indexArn or both vectorBucketName and indexName")
    found = resource_of(connection, arn)
    assert isinstance(found, Index)  # by the model's pattern of the ARN
    return found


def resource_of(connection: apsw.Connection, arn: str) -> Bucket | Index:
    """Return the bucket or index of an ARN.

    Raises:
        NoVectorResource: It doesn't exist in this account and region.
    """
    match = _ARN.fullmatch(arn)
    if match is None:
        raise NoVectorResource("The specified resource could not be found")
    bucket, index = match.groups()
    found: Bucket | Index = (
        s3_vectors.find_bucket(connection, bucket)
        if index is None
        else s3_vectors.find_index(connection, bucket, index)
    )
    if found.arn != arn:
        raise NoVectorResource("The specified resource could not be found")
    return found


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


CLASSIC: Final = "CLASSIC"
ENHANCED: Final = "ENHANCED"

CLASSIC_UNTIL: Final = datetime(2026, 9, 30, tzinfo=UTC).timestamp()
"""Only indexes of earlier buckets can be CLASSIC. Source: s3vectors, documentation of UpdateIndexMode."""

DEFAULT_PAGE: Final = 500
DEFAULT_ENCRYPTION: Final = {"sseType": "AES256"}


def create_bucket(context: Context, request: Request) -> Answer:
    """Create a vector bucket."""
    name, given = request["vectorBucketName"], request.get("tags", {})
    if not _BUCKET_NAME.fullmatch(name):
        raise InvalidRequest("Invalid vector bucket name")
    check_tags(given)
    now = context.clock()
    bucket = Bucket(
        name=name,
        default_mode=CLASSIC if now < CLASSIC_UNTIL else ENHANCED,
        encryption=checked_encryption(request.get("encryptionConfiguration", DEFAULT_ENCRYPTION)),
        policy=None,
        created_at=now,
    )
    with context.database.write() as change:
        if s3_vectors.bucket_named(change.connection, name):
            raise Conflict("A vector bucket with the specified name already exists")
        s3_vectors.add_bucket(change, bucket)
        tags.put(change, bucket.arn, given)
    return {"vectorBucketArn": bucket.arn}


def get_bucket(context: Context, request: Request) -> Answer:
    """Describe one."""
    with context.database.read() as view:
        found = bucket_of(view.connection, request)
    return {
        "vectorBucket": {
            **_bucket_summary(found),
            "encryptionConfiguration": found.encryption,
            "defaultIndexMode": found.default_mode,
        }
    }


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


def put_default_mode(context: Context, request: Request) -> Answer:
    """Set the mode of future indexes of a bucket."""
    with context.database.write() as change:
        found = bucket_of(change.connection, request)
        check_mode(found, request["defaultIndexMode"])
        s3_vectors.set_of_bucket(change, found.name, "default_mode", request["defaultIndexMode"])
    return {}


def put_policy(context: Context, request: Request) -> Answer:
    """Store a policy, which is not enforced."""
    try:
        document = json.loads(request["policy"])
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise InvalidRequest("The policy is not a JSON object")
    with context.database.write() as change:
        found = bucket_of(change.connection, request)
        s3_vectors.set_of_bucket(change, found.name, "policy", request["policy"])
    return {}


def get_policy(context: Context, request: Request) -> Answer:
    """Return the policy of a bucket."""
    with context.database.read() as view:
        found = bucket_of(view.connection, request)
    if found.policy is None:
        raise NoVectorResource("The specified vector bucket policy could not be found")
    return {"policy": found.policy}


def delete_policy(context: Context, request: Request) -> Answer:
    """Delete the policy of a bucket, if there is one."""
    with context.database.write() as change:
        s3_vectors.set_of_bucket(change, bucket_of(change.connection, request).name, "policy", None)
    return {}


def check_mode(bucket: Bucket, mode: str) -> None:
    """Check the mode of an index in a bucket.

    Raises:
        InvalidRequest: It is CLASSIC, and the bucket is too new for it.
    """
    if mode == CLASSIC and bucket.created_at >= CLASSIC_UNTIL:
        raise InvalidRequest("CLASSIC is possible only in vector buckets that were created before September 30, 2026")


def checked_encryption(encryption: Mapping[str, Any]) -> dict[str, Any]:
    """Return an encryption configuration with its default type.

    Raises:
        InvalidRequest: The type and the key don't match.
    """
    found = {**DEFAULT_ENCRYPTION, **encryption}
    if (found["sseType"] == "aws:kms") != ("kmsKeyArn" in found):
        raise InvalidRequest("kmsKeyArn is allowed if and only if sseType is aws:kms")
    return found


def _bucket_summary(bucket: Bucket) -> Answer:
    return {"vectorBucketName": bucket.name, "vectorBucketArn": bucket.arn, "creationTime": bucket.created_at}


MOST_TEXT_SEARCHES: Final = 10
"""Source: s3vectors, shape MetadataConfigurationTextSearchConfigurationsList."""


def create_index(context: Context, request: Request) -> Answer:
    """Create a vector index in the default mode of its bucket."""
    if not _INDEX_NAME.fullmatch(request["indexName"]):
        raise InvalidRequest("Invalid index name")
    check_tags(request.get("tags", {}))
    configuration = request.get("metadataConfiguration", {})
    hidden = configuration.get("nonFilterableMetadataKeys", [])
    _check_distinct("nonFilterableMetadataKeys", hidden)
    text_searches = configuration.get("textSearchConfigurations", [])
    _check_distinct("textSearchConfigurations", [each["metadataKey"] for each in text_searches])
    with context.database.write() as change:
        bucket = bucket_of(change.connection, request)
        if s3_vectors.index_named(change.connection, bucket.name, request["indexName"]):
            raise Conflict("An index with the specified name already exists")
        if text_searches and bucket.default_mode != ENHANCED:
            raise InvalidRequest("textSearchConfigurations need an index in ENHANCED mode")
        index = Index(
            id=0,
            bucket=bucket.name,
            name=request["indexName"],
            dimension=request["dimension"],
            metric=request["distanceMetric"],
            mode=bucket.default_mode,
            non_filterable=hidden,
            encryption=checked_encryption(request.get("encryptionConfiguration", bucket.encryption)),
            created_at=context.clock(),
        )
        index_id = s3_vectors.add_index(change, index)
        for each in text_searches:
            s3_vectors.add_text_search(change, index_id, each["metadataKey"], each.get("language"))
        tags.put(change, index.arn, request.get("tags", {}))
    return {"indexArn": index.arn}


def get_index(context: Context, request: Request) -> Answer:
    """Describe one."""
    with context.database.read() as view:
        return {"index": _described_index(index_of(view.connection, request))}


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


def update_mode(context: Context, request: Request) -> Answer:
    """Change the mode of an index."""
    with context.database.write() as change:
        index = index_of(change.connection, request)
        check_mode(s3_vectors.find_bucket(change.connection, index.bucket), request["indexMode"])
        if index.text_searches and request["indexMode"] != ENHANCED:
            raise InvalidRequest("The textSearchConfigurations of the index need the ENHANCED mode: delete them first")
        s3_vectors.set_mode(change, index, request["indexMode"])
    return {}


def update_metadata(context: Context, request: Request) -> Answer:
    """Add or delete keys with full-text search; stored texts are indexed at once."""
    added = request.get("add", {}).get("textSearchConfigurations", [])
    deleted = request.get("delete", {}).get("textSearchConfigurations", [])
    if bool(added) == bool(deleted):
        raise InvalidRequest("Specify either add or delete, but not both, with at least one text search configuration")
    _check_distinct("textSearchConfigurations", [each["metadataKey"] for each in added or deleted])
    with context.database.write() as change:
        index = index_of(change.connection, request)
        if index.mode != ENHANCED:
            raise InvalidRequest("The vector index must be in ENHANCED mode")
        known = {each.key: each for each in index.text_searches}
        for each in deleted:
            if each["metadataKey"] not in known:
                raise NoVectorResource(f"The metadata key {each['metadataKey']} has no text search configuration")
            s3_vectors.remove_text_search(change, known[each["metadataKey"]])
        if len(known) + len(added) > MOST_TEXT_SEARCHES:
            raise InvalidRequest(f"An index has at most {MOST_TEXT_SEARCHES} text search configurations")
        for each in added:
            if each["metadataKey"] in known:
                raise Conflict(f"The metadata key {each['metadataKey']} has a text search configuration already")
            new = s3_vectors.add_text_search(change, index.id, each["metadataKey"], each.get("language"))
            s3_vectors.index_texts(change, index, new)
    return {"indexArn": index.arn}


def _check_distinct(name: str, keys: Sequence[str]) -> None:
    if len(set(keys)) < len(keys):
        raise InvalidRequest(f"The {name} contain a metadata key twice")


def _described_index(index: Index) -> Answer:
    configuration = {
        "nonFilterableMetadataKeys": index.non_filterable,
        "textSearchConfigurations": [_text_search(each) for each in index.text_searches],
    }
    return {
        **_index_summary(index),
        "dataType": "float32",
        "dimension": index.dimension,
        "distanceMetric": index.metric,
        "metadataConfiguration": {name: value for name, value in configuration.items() if value} or None,
        "encryptionConfiguration": index.encryption,
        "indexMode": index.mode,
    }


def _index_summary(index: Index) -> Answer:
    return {
        "vectorBucketName": index.bucket,
        "indexName": index.name,
        "indexArn": index.arn,
        "creationTime": index.created_at,
    }


def _text_search(text_search: TextSearch) -> Answer:
    return {"metadataKey": text_search.key, "language": text_search.language, "status": "ACTIVE"}
