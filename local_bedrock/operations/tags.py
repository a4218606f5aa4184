"""TagResource, UntagResource, ListTagsForResource."""

import re
from collections.abc import Mapping
from typing import Final

import apsw

from local_bedrock.faults import InvalidRequest, NotFound, QuotaExceeded
from local_bedrock.operations.context import Answer, Context, Request
from local_bedrock.store import resources, tags

ARN: Final = "arn:aws:bedrock:us-east-1:000000000000:knowledge-base/{}"
MOST_TAGS: Final = 50
"""Of one resource. Source: AWS General Reference, tag naming limits."""

RESERVED_PREFIX: Final = "aws:"

_KNOWLEDGE_BASE: Final = re.compile(r"arn:aws[a-z-]*:bedrock:[a-z0-9-]*:\d{12}:knowledge-base/([0-9a-zA-Z]{10})")


def tag(context: Context, request: Request) -> Answer:
    """Add tags to a knowledge base; a key that is there takes the new value."""
    check_tags(request["tags"])
    with context.database.write() as change:
        knowledge_base_id = _tagged(change.connection, request["resourceArn"])
        together = {**tags.of(change.connection, knowledge_base_id), **request["tags"]}
        if len(together) > MOST_TAGS:
            raise QuotaExceeded(
                f"The resource would have {len(together)} tags; at most {MOST_TAGS} are possible: remove some first"
            )
        tags.put(change, knowledge_base_id, request["tags"])
    return {}


def untag(context: Context, request: Request) -> Answer:
    """Remove tags from a knowledge base; a key that is not there is no error."""
    with context.database.write() as change:
        tags.remove(change, _tagged(change.connection, request["resourceArn"]), request["tagKeys"])
    return {}


def list_(context: Context, request: Request) -> Answer:
    """Return the tags of a knowledge base."""
    with context.database.read() as view:
        return {"tags": tags.of(view.connection, _tagged(view.connection, request["resourceArn"]))}


def check_tags(given: Mapping[str, str]) -> None:
    """Check the tags of a request.

    Raises:
        InvalidRequest: There are too many, or a key is reserved.
    """
    if len(given) > MOST_TAGS:
        raise InvalidRequest(f"The request has {len(given)} tags; a resource can have at most {MOST_TAGS}")
    reserved = [key for key in given if key.casefold().startswith(RESERVED_PREFIX)]
    if reserved:
        raise InvalidRequest(f"The tag key {reserved[0]!r} begins with {RESERVED_PREFIX}, which is reserved for AWS")


def _tagged(connection: apsw.Connection, arn: str) -> str:
    match = _KNOWLEDGE_BASE.fullmatch(arn)
    if match is None:
        raise NotFound(f"The resource {arn} does not exist: the local Bedrock has tags of knowledge bases only")
    return resources.find_knowledge_base(connection, match[1]).id
