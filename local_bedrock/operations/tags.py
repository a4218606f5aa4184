"""TagResource, UntagResource and ListTagsForResource of every service."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import apsw

from local_bedrock.errors import InvalidRequest, ServiceError
from local_bedrock.operations.context import Answer, Context, Request
from local_bedrock.store import tags

MOST_TAGS: Final = 50
"""Tags of one resource. Source: AWS General Reference, tag naming limits."""

RESERVED_PREFIX: Final = "aws:"


def check_tags(given: Mapping[str, str]) -> None:
    """Check the tags of a request.

    Raises:
        InvalidRequest: There are too many, or a key is reserved.
    """
    if len(given) > MOST_TAGS:
        raise InvalidRequest(f"The request has {len(given)} tags; the maximum is {MOST_TAGS}")
    reserved = [key for key in given if key.casefold().startswith(RESERVED_PREFIX)]
    if reserved:
        raise InvalidRequest(f"The tag key {reserved[0]!r} begins with {RESERVED_PREFIX}, which is reserved for AWS")


@dataclass(frozen=True)
class Tagging:
    """The operations of one service.

    Attributes:
        arn_of: Returns the stored form of an ARN; raises an error unless its resource exists.
        too_many: The error for more than 50 tags, by the service's model.
    """

    arn_of: Callable[[apsw.Connection, str], str]
    too_many: type[ServiceError]

    def tag(self, context: Context, request: Request) -> Answer:
        """Add tags to a resource, or replace their values."""
        added = request["tags"]
        check_tags(added)
        with context.database.write() as change:
            arn = self.arn_of(change.connection, request["resourceArn"])
            count = len({**tags.tags_of(change.connection, arn), **added})
            if count > MOST_TAGS:
                raise self.too_many(
                    f"The resource would have {count} tags; the maximum is {MOST_TAGS}: remove some tags first"
                )
            tags.put(change, arn, added)
        return {}

    def untag(self, context: Context, request: Request) -> Answer:
        """Remove tags from a resource; unknown keys are ignored."""
        with context.database.write() as change:
            tags.remove(change, self.arn_of(change.connection, request["resourceArn"]), request["tagKeys"])
        return {}

    def list_tags(self, context: Context, request: Request) -> Answer:
        """Return the tags of a resource."""
        with context.database.read() as view:
            return {"tags": tags.tags_of(view.connection, self.arn_of(view.connection, request["resourceArn"]))}
