"""CreateIndex, GetIndex, ListIndexes, DeleteIndex, UpdateIndexMode, UpdateMetadataConfiguration."""

from collections.abc import Sequence
from typing import Final

from local_bedrock.faults import Conflict, InvalidRequest, NoVectorResource
from local_bedrock.operations.context import Answer, Context, Request
from local_bedrock.operations.paging import Listing
from local_bedrock.operations.s3_vectors_buckets import (
    DEFAULT_PAGE,
    ENHANCED,
    check_mode,
    checked_encryption,
)
from local_bedrock.operations.s3_vectors_names import bucket_of, check_index_name, index_of
from local_bedrock.operations.tags import check_tags
from local_bedrock.store import stored_vectors, vector_buckets
from local_bedrock.store.vector_buckets import Index, TextSearch

MOST_TEXT_SEARCHES: Final = 10
"""Source: s3vectors, shape MetadataConfigurationTextSearchConfigurationsList."""


def create(context: Context, request: Request) -> Answer:
    """Create a vector index, in the default mode of its bucket."""
    check_index_name(request["indexName"])
    check_tags(request.get("tags", {}))
    configuration = request.get("metadataConfiguration", {})
    hidden = configuration.get("nonFilterableMetadataKeys", [])
    _check_distinct("nonFilterableMetadataKeys", hidden)
    text_searches = configuration.get("textSearchConfigurations", [])
    _check_distinct("textSearchConfigurations", [each["metadataKey"] for each in text_searches])
    with context.database.write() as change:
        bucket = bucket_of(change.connection, request)
        if vector_buckets.index_named(change.connection, bucket.name, request["indexName"]):
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
        index_id = vector_buckets.add_index(change, index)
        for each in text_searches:
            vector_buckets.add_text_search(change, index_id, each["metadataKey"], each.get("language"))
        vector_buckets.put_tags(change, index.arn, request.get("tags", {}))
    return {"indexArn": index.arn}


def get(context: Context, request: Request) -> Answer:
    """Describe one."""
    with context.database.read() as view:
        return {"index": _described(index_of(view.connection, request))}


def list_(context: Context, request: Request) -> Answer:
    """List those of a bucket by name."""
    listing = Listing("ListIndexes", request)
    after, size = listing.position(""), request.get("maxResults", DEFAULT_PAGE)
    with context.database.read() as view:
        bucket = bucket_of(view.connection, request)
        found = vector_buckets.indexes(
            view.connection, bucket.name, prefix=request.get("prefix", ""), after=after, limit=size + 1
        )
    more = listing.token(found[size - 1].name) if len(found) > size else None
    return {"indexes": [_summary(index) for index in found[:size]], "nextToken": more}


def delete(context: Context, request: Request) -> Answer:
    """Delete one with its vectors."""
    with context.database.write() as change:
        vector_buckets.remove_index(change, index_of(change.connection, request))
    context.ingestion.wake()  # gives back the space
    return {}


def update_mode(context: Context, request: Request) -> Answer:
    """Change the mode of an index."""
    with context.database.write() as change:
        index = index_of(change.connection, request)
        check_mode(vector_buckets.find_bucket(change.connection, index.bucket), request["indexMode"])
        if index.text_searches and request["indexMode"] != ENHANCED:
            raise InvalidRequest("The index has textSearchConfigurations, which need the ENHANCED mode: delete them")
        vector_buckets.set_mode(change, index, request["indexMode"])
    return {}


def update_metadata(context: Context, request: Request) -> Answer:
    """Add or delete keys that are searched by words; what is there is indexed at once."""
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
            vector_buckets.remove_text_search(change, known[each["metadataKey"]])
        if len(known) + len(added) > MOST_TEXT_SEARCHES:
            raise InvalidRequest(f"An index has at most {MOST_TEXT_SEARCHES} text search configurations")
        for each in added:
            if each["metadataKey"] in known:
                raise Conflict(f"The metadata key {each['metadataKey']} has a text search configuration already")
            new = vector_buckets.add_text_search(change, index.id, each["metadataKey"], each.get("language"))
            stored_vectors.index_texts(change, index, new)
    return {"indexArn": index.arn}


def _check_distinct(name: str, keys: Sequence[str]) -> None:
    if len(set(keys)) < len(keys):
        raise InvalidRequest(f"The {name} name a metadata key twice")


def _described(index: Index) -> Answer:
    configuration = {
        "nonFilterableMetadataKeys": index.non_filterable,
        "textSearchConfigurations": [_text_search(each) for each in index.text_searches],
    }
    return {
        **_summary(index),
        "dataType": "float32",
        "dimension": index.dimension,
        "distanceMetric": index.metric,
        "metadataConfiguration": {name: value for name, value in configuration.items() if value} or None,
        "encryptionConfiguration": index.encryption,
        "indexMode": index.mode,
    }


def _summary(index: Index) -> Answer:
    return {
        "vectorBucketName": index.bucket,
        "indexName": index.name,
        "indexArn": index.arn,
        "creationTime": index.created_at,
    }


def _text_search(text_search: TextSearch) -> Answer:
    return {"metadataKey": text_search.key, "language": text_search.language, "status": "ACTIVE"}
