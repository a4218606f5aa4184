"""S3 Vectors: vector buckets and vector indexes, with their modes and their text searches."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import apsw

from local_bedrock.http.errors import Conflict, InvalidRequest, NoVectorResource
from local_bedrock.operations.context import Answer, Context, Request
from local_bedrock.operations.paging import Listing
from local_bedrock.store import resources, vector_indexes
from local_bedrock.store.database import Transaction
from local_bedrock.store.vector_indexes import Bucket, Index, TextSearch

CLASSIC: Final = "CLASSIC"
ENHANCED: Final = "ENHANCED"
ENHANCED_SINCE: Final = datetime(2026, 9, 30, tzinfo=UTC).timestamp()
"""Only buckets from before this time have CLASSIC indexes. Source: s3vectors, UpdateIndexModeInput$indexMode."""

MAX_TEXT_SEARCHES: Final = 10
DEFAULT_PAGE: Final = 500
DEFAULT_ENCRYPTION: Final = {"sseType": "AES256"}

_BUCKET_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_INDEX_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
"""Source: user guide of Amazon S3, naming rules of vector buckets and vector indexes."""

_ARN: Final = re.compile(vector_indexes.ARN.format("([^/]*)") + "(?:/index/([^/]*))?")


def find_bucket(connection: apsw.Connection, request: Request) -> Bucket:
    """Return the bucket of a request, by its name or its ARN.

    Raises:
        InvalidRequest: The request has neither or both.
        NoVectorResource: The bucket doesn't exist.
    """
    name, arn = request.get("vectorBucketName"), request.get("vectorBucketArn")
    if (name is None) == (arn is None):
        raise InvalidRequest("Must specify either vectorBucketName or vectorBucketArn but not both")
    return vector_indexes.find_bucket(connection, name or _names_in(str(arn))[0])


def find_index(connection: apsw.Connection, request: Request) -> Index:
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
    return vector_indexes.find_index(connection, bucket, name)


def is_here(arn: str) -> bool:
    """Whether an index is of the account and the Region of the local Bedrock."""
    return _ARN.fullmatch(arn) is not None


def _names_in(arn: str) -> tuple[Any, ...]:
    match = _ARN.fullmatch(arn)
    if match is None:
        raise NoVectorResource("The specified resource could not be found")
    return match.groups()


def create_bucket(context: Context, request: Request) -> Answer:
    """Create a vector bucket."""
    name, now = request["vectorBucketName"], context.clock()
    if not _BUCKET_NAME.fullmatch(name):
        raise InvalidRequest("Invalid vector bucket name")
    encryption = {**DEFAULT_ENCRYPTION, **request.get("encryptionConfiguration", {})}
    bucket = Bucket(name, CLASSIC if now < ENHANCED_SINCE else ENHANCED, encryption, now)
    with context.database.write() as change:
        try:
            vector_indexes.add_bucket(change, bucket)
        except apsw.ConstraintError as error:
            raise Conflict("A vector bucket with the specified name already exists") from error
        resources.put_tags(change, bucket.arn, request.get("tags", {}))
    return {"vectorBucketArn": bucket.arn}


def get_bucket(context: Context, request: Request) -> Answer:
    """Describe a vector bucket."""
    with context.database.read() as view:
        found = find_bucket(view.connection, request)
    described = {"encryptionConfiguration": found.encryption, "defaultIndexMode": found.mode}
    return {"vectorBucket": {**_bucket_summary(found), **described}}


def list_buckets(context: Context, request: Request) -> Answer:
    """List vector buckets by name."""
    with context.database.read() as view:
        fetch = partial(vector_indexes.buckets, view.connection, request.get("prefix", ""))
        found, more = Listing("ListVectorBuckets", request).page("", "name", fetch, DEFAULT_PAGE)
    return {"vectorBuckets": [_bucket_summary(bucket) for bucket in found], "nextToken": more}


def put_default_mode(context: Context, request: Request) -> Answer:
    """Set the mode of new indexes of a bucket."""
    with context.database.write() as change:
        bucket = find_bucket(change.connection, request)
        _check_mode(bucket, request["defaultIndexMode"])
        vector_indexes.set_bucket_mode(change, bucket, request["defaultIndexMode"])
    return {}


def delete_bucket(context: Context, request: Request) -> Answer:
    """Delete a bucket without indexes."""
    with context.database.write() as change:
        found = find_bucket(change.connection, request)
        if vector_indexes.indexes(change.connection, found.name, limit=1):
            raise Conflict("The specified vector bucket is not empty")
        vector_indexes.remove_bucket(change, found)
        resources.remove_all_tags(change, found.arn)
    return {}


def create_index(context: Context, request: Request) -> Answer:
    """Create a vector index."""
    if not _INDEX_NAME.fullmatch(request["indexName"]):
        raise InvalidRequest("Invalid index name")
    configuration = request.get("metadataConfiguration", {})
    hidden = configuration.get("nonFilterableMetadataKeys", [])
    _check_distinct("nonFilterableMetadataKeys", hidden)
    text_searches = configuration.get("textSearchConfigurations", [])
    with context.database.write() as change:
        bucket = find_bucket(change.connection, request)
        index = Index(
            id=0,
            bucket=bucket.name,
            name=request["indexName"],
            dimension=request["dimension"],
            metric=request["distanceMetric"],
            mode=bucket.mode,
            non_filterable=hidden,
            encryption={**DEFAULT_ENCRYPTION, **request.get("encryptionConfiguration", bucket.encryption)},
            created_at=context.clock(),
        )
        try:
            index = vector_indexes.add_index(change, index)
        except apsw.ConstraintError as error:
            raise Conflict("An index with the specified name already exists") from error
        resources.put_tags(change, index.arn, request.get("tags", {}))
        _add_text_searches(context, change, index, text_searches)
    return {"indexArn": index.arn}


def get_index(context: Context, request: Request) -> Answer:
    """Describe a vector index."""
    with context.database.read() as view:
        index = find_index(view.connection, request)
        text_searches = vector_indexes.text_searches(view.connection, index)
    configuration = {
        "nonFilterableMetadataKeys": index.non_filterable,
        "textSearchConfigurations": [_described(each, context.clock()) for each in text_searches],
    }
    return {
        "index": {
            **_index_summary(index),
            "dataType": "float32",
            "dimension": index.dimension,
            "distanceMetric": index.metric,
            "metadataConfiguration": {name: value for name, value in configuration.items() if value} or None,
            "encryptionConfiguration": index.encryption,
            "indexMode": index.mode,
        }
    }


def list_indexes(context: Context, request: Request) -> Answer:
    """List the indexes of a bucket by name."""
    with context.database.read() as view:
        bucket = find_bucket(view.connection, request)
        fetch = partial(vector_indexes.indexes, view.connection, bucket.name, request.get("prefix", ""))
        found, more = Listing("ListIndexes", request).page("", "name", fetch, DEFAULT_PAGE)
    return {"indexes": [_index_summary(index) for index in found], "nextToken": more}


def update_index_mode(context: Context, request: Request) -> Answer:
    """Set the mode of an index."""
    with context.database.write() as change:
        index = find_index(change.connection, request)
        _check_mode(vector_indexes.find_bucket(change.connection, index.bucket), request["indexMode"])
        if request["indexMode"] == CLASSIC and vector_indexes.text_searches(change.connection, index):
            raise InvalidRequest(
                "The index has text search configurations, which need ENHANCED mode: delete them first"
            )
        vector_indexes.set_index_mode(change, index, request["indexMode"])
    return {}


def update_metadata_configuration(context: Context, request: Request) -> Answer:
    """Add or delete text searches of an index."""
    if ("add" in request) == ("delete" in request):
        raise InvalidRequest("Must specify either add or delete but not both")
    with context.database.write() as change:
        index = find_index(change.connection, request)
        known = {each.key: each for each in vector_indexes.text_searches(change.connection, index)}
        if any(each.active_at > context.clock() for each in known.values()):
            raise Conflict("The index has text search configurations in status BUILDING: wait until they are ACTIVE")
        _add_text_searches(context, change, index, request.get("add", {}).get("textSearchConfigurations", []))
        for each in request.get("delete", {}).get("textSearchConfigurations", []):
            if each["metadataKey"] not in known:
                raise InvalidRequest(f"The index has no text search configuration of {each['metadataKey']}")
            vector_indexes.remove_text_search(change, known[each["metadataKey"]])
    return {"indexArn": index.arn}


def delete_index(context: Context, request: Request) -> Answer:
    """Delete an index with its vectors."""
    with context.database.write() as change:
        index = find_index(change.connection, request)
        if index.knowledge_base_id is not None:
            raise InvalidRequest(
                f"The index holds the chunks of the knowledge base {index.knowledge_base_id}: delete that first"
            )
        vector_indexes.remove_index(change, index)
        resources.remove_all_tags(change, index.arn)
    context.ingestion.wake()  # gives back the space
    return {}


def _check_mode(bucket: Bucket, mode: str) -> None:
    if mode == CLASSIC and bucket.created_at >= ENHANCED_SINCE:
        raise InvalidRequest("CLASSIC can be specified only in a vector bucket created before September 30, 2026")


def _add_text_searches(context: Context, change: Transaction, index: Index, given: Sequence[Request]) -> None:
    if given and index.mode != ENHANCED:
        raise InvalidRequest("Text search configurations need an index in ENHANCED mode")
    known = [each.key for each in vector_indexes.text_searches(change.connection, index)]
    _check_distinct("textSearchConfigurations", [*known, *(each["metadataKey"] for each in given)])
    if len(known) + len(given) > MAX_TEXT_SEARCHES:
        raise InvalidRequest(
            f"The index would have {len(known) + len(given)} text search configurations; the maximum is"
            f" {MAX_TEXT_SEARCHES}"
        )
    active_at = context.clock() + context.options.pace.indexing_seconds
    for each in given:
        vector_indexes.add_text_search(change, index, each["metadataKey"], each.get("language"), active_at)


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


def _described(text_search: TextSearch, now: float) -> Answer:
    status = "ACTIVE" if text_search.active_at <= now else "BUILDING"
    return {"metadataKey": text_search.key, "language": text_search.language, "status": status}
