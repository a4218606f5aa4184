"""CreateVectorBucket, GetVectorBucket, ListVectorBuckets, DeleteVectorBucket, their default mode, policies and tags."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from local_bedrock.faults import Conflict, InvalidRequest, NoVectorResource
from local_bedrock.operations.context import Answer, Context, Request
from local_bedrock.operations.paging import Listing
from local_bedrock.operations.s3_vectors_names import bucket_of, check_bucket_name, resource_of
from local_bedrock.operations.tags import MOST_TAGS, check_tags
from local_bedrock.store import vector_buckets
from local_bedrock.store.vector_buckets import Bucket

CLASSIC: Final = "CLASSIC"
ENHANCED: Final = "ENHANCED"

CLASSIC_UNTIL: Final = datetime(2026, 9, 30, tzinfo=UTC).timestamp()
"""Only indexes of buckets made before may be CLASSIC. Source: s3vectors, documentation of UpdateIndexMode."""

DEFAULT_PAGE: Final = 500
DEFAULT_ENCRYPTION: Final = {"sseType": "AES256"}


def create(context: Context, request: Request) -> Answer:
    """Create a vector bucket."""
    name, given = request["vectorBucketName"], request.get("tags", {})
    check_bucket_name(name)
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
        if vector_buckets.bucket_named(change.connection, name):
            raise Conflict("A vector bucket with the specified name already exists")
        vector_buckets.add_bucket(change, bucket)
        vector_buckets.put_tags(change, bucket.arn, given)
    return {"vectorBucketArn": bucket.arn}


def get(context: Context, request: Request) -> Answer:
    """Describe one."""
    with context.database.read() as view:
        found = bucket_of(view.connection, request)
    return {
        "vectorBucket": {
            **_summary(found),
            "encryptionConfiguration": found.encryption,
            "defaultIndexMode": found.default_mode,
        }
    }


def list_(context: Context, request: Request) -> Answer:
    """List them by name."""
    listing = Listing("ListVectorBuckets", request)
    after, size = listing.position(""), request.get("maxResults", DEFAULT_PAGE)
    with context.database.read() as view:
        found = vector_buckets.buckets(view.connection, prefix=request.get("prefix", ""), after=after, limit=size + 1)
    more = listing.token(found[size - 1].name) if len(found) > size else None
    return {"vectorBuckets": [_summary(bucket) for bucket in found[:size]], "nextToken": more}


def delete(context: Context, request: Request) -> Answer:
    """Delete one that has no index."""
    with context.database.write() as change:
        found = bucket_of(change.connection, request)
        if vector_buckets.indexes(change.connection, found.name, limit=1):
            raise Conflict("The specified vector bucket is not empty")
        vector_buckets.remove_bucket(change, found)
    return {}


def put_default_mode(context: Context, request: Request) -> Answer:
    """Set the mode of the indexes that will be made in a bucket."""
    with context.database.write() as change:
        found = bucket_of(change.connection, request)
        check_mode(found, request["defaultIndexMode"])
        vector_buckets.set_of_bucket(change, found.name, "default_mode", request["defaultIndexMode"])
    return {}


def put_policy(context: Context, request: Request) -> Answer:
    """Keep a policy; nothing is checked against it here."""
    try:
        document = json.loads(request["policy"])
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise InvalidRequest("The policy is not a JSON object")
    with context.database.write() as change:
        found = bucket_of(change.connection, request)
        vector_buckets.set_of_bucket(change, found.name, "policy", request["policy"])
    return {}


def get_policy(context: Context, request: Request) -> Answer:
    """Return the policy of a bucket."""
    with context.database.read() as view:
        found = bucket_of(view.connection, request)
    if found.policy is None:
        raise NoVectorResource("The specified vector bucket policy could not be found")
    return {"policy": found.policy}


def delete_policy(context: Context, request: Request) -> Answer:
    """Delete the policy of a bucket; none is no error."""
    with context.database.write() as change:
        vector_buckets.set_of_bucket(change, bucket_of(change.connection, request).name, "policy", None)
    return {}


def tag(context: Context, request: Request) -> Answer:
    """Add tags to a bucket or an index; a key that is there takes the new value."""
    check_tags(request["tags"])
    with context.database.write() as change:
        arn = resource_of(change.connection, request["resourceArn"]).arn
        together = {**vector_buckets.tags(change.connection, arn), **request["tags"]}
        if len(together) > MOST_TAGS:
            raise InvalidRequest(f"The resource would have {len(together)} tags; at most {MOST_TAGS} are possible")
        vector_buckets.put_tags(change, arn, request["tags"])
    return {}


def untag(context: Context, request: Request) -> Answer:
    """Remove tags from a bucket or an index; a key that is not there is no error."""
    with context.database.write() as change:
        arn = resource_of(change.connection, request["resourceArn"]).arn
        vector_buckets.remove_tags(change, arn, request["tagKeys"])
    return {}


def list_tags(context: Context, request: Request) -> Answer:
    """Return the tags of a bucket or an index."""
    with context.database.read() as view:
        arn = resource_of(view.connection, request["resourceArn"]).arn
        return {"tags": vector_buckets.tags(view.connection, arn)}


def check_mode(bucket: Bucket, mode: str) -> None:
    """Refuse a mode that an index of a bucket cannot have.

    Raises:
        InvalidRequest: It is CLASSIC, and the bucket is too young for it.
    """
    if mode == CLASSIC and bucket.created_at >= CLASSIC_UNTIL:
        raise InvalidRequest("CLASSIC is possible only in vector buckets that were created before September 30, 2026")


def checked_encryption(encryption: Mapping[str, Any]) -> dict[str, Any]:
    """Return an encryption with its type written out.

    Raises:
        InvalidRequest: It has a key that its type has no use for, or lacks one.
    """
    found = {**DEFAULT_ENCRYPTION, **encryption}
    if (found["sseType"] == "aws:kms") != ("kmsKeyArn" in found):
        raise InvalidRequest("kmsKeyArn is allowed if and only if sseType is aws:kms")
    return found


def _summary(bucket: Bucket) -> Answer:
    return {"vectorBucketName": bucket.name, "vectorBucketArn": bucket.arn, "creationTime": bucket.created_at}
