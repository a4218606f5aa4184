"""Judgments of results and answers: each caller's own, kept in the registry's table.

A judgment is what its caller wrote. Nothing is looked up for it, so that it says nothing about a document that the
caller may not see.
"""

import hashlib
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from ragstack_common.access.callers import Caller, Right
from ragstack_common.access.guard import Guard
from ragstack_common.api.documents import Time, iso
from ragstack_common.core.errors import InvalidRequestError
from ragstack_common.error_responses import reaching_the_registry
from ragstack_common.registry.table import JUDGMENT, MAX_KEY_BYTES, PARTITION_KEY, SORT_KEY, Item, to_item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MAX_GRADE: Final = 3
"""Source: the usual scale of judgments at TREC, 0 (irrelevant) to 3 (perfectly relevant)."""

MAX_QUERY_CHARACTERS: Final = 2000
MAX_REFERENCE_CHARACTERS: Final = 10_000
"""A page of a hundred judgments stays below the 6 MB of an answer of Lambda."""

_ANSWER: Final = "answer"
_BUILT_WHEN_USED: Final = ConfigDict(defer_build=True)
_DIGEST_CHARACTERS: Final = 32

# Files in BEIR's form have tabs between members.
_QueryId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:-]{1,100}$")]
_DocumentName = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,2048}$")]


class JudgmentChange(BaseModel):
    """A judgment of a document for a query, or of the answer to a question. Unknown names are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    query_id: _QueryId = Field(description="Names the query; judgments of one query have the same")
    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)
    document: _DocumentName | None = Field(
        default=None, description="The source of the result; without it, the judgment is of the answer"
    )
    grade: int | None = Field(
        default=None,
        ge=0,
        le=MAX_GRADE,
        strict=True,
        description="How relevant the document is, 0 for not at all; null deletes the judgment",
    )
    answer_grade: Literal[0, 1] | None = Field(
        default=None, description="Whether the answer is right; null deletes the judgment"
    )
    reference: str | None = Field(
        default=None, min_length=1, max_length=MAX_REFERENCE_CHARACTERS, description="What the answer should say"
    )

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        if self.document is None and self.grade is not None:
            raise PydanticCustomError("judgment", "A grade is of a document: name it, or give answer_grade")
        if self.document is not None and (self.answer_grade is not None or self.reference is not None):
            raise PydanticCustomError("judgment", "answer_grade and reference are of an answer: leave out document")
        return self


class Judgment(BaseModel):
    """A judgment as it is kept; without a grade, it is deleted."""

    model_config = _BUILT_WHEN_USED

    kind: Literal["document", "answer"]
    query_id: str
    query: str
    document: str | None
    grade: int | None
    answer_grade: int | None
    reference: str | None
    at: Time
    by: str


class JudgmentList(BaseModel):
    """A page of judgments, by caller and query."""

    model_config = _BUILT_WHEN_USED

    judgments: list[Judgment]
    next_token: str | None = Field(description="Requests the next page; null on the last page")


@dataclass(frozen=True)
class Judgments:
    """Reads and writes judgments. Each method raises RegistryError if the table fails.

    Attributes:
        client: The client.
        table: The registry's table.
        guard: Decides who reads the judgments of others.
        clock: Seconds since 1970.
    """

    client: "DynamoDBClient"
    table: str
    guard: Guard
    clock: Callable[[], float] = time.time

    def write(self, caller: Caller, change: JudgmentChange) -> Judgment:
        """Replace or delete the caller's judgment; the last write counts."""
        judgment = Judgment(
            kind=_ANSWER if change.document is None else "document",
            **change.model_dump(),
            at=iso(self.clock()),
            by=caller.name,
        )
        name = _ANSWER if change.document is None else _digest(change.document)
        key = _key(f"{_of(caller)}{change.query_id}#{name}")
        is_deleted = change.grade is None and change.answer_grade is None
        with reaching_the_registry():
            if is_deleted:
                self.client.delete_item(TableName=self.table, Key=key)
            else:
                item = {**key, **to_item({"judgment": judgment.model_dump_json()})}
                self.client.put_item(TableName=self.table, Item=item)
        return judgment

    def page(self, caller: Caller, *, of_all: bool, limit: int, token: str | None = None) -> JudgmentList:
        """List the caller's judgments, or those of all callers, 1 to 100 of them.

        Raises:
            InvalidRequestError: The token is from another listing.
            NotAllowedError: The caller asks for those of all, and is no operator.
        """
        if of_all:
            self.guard.require(caller, Right.OPERATE, "GET /api/judgments?all=true")
        beginning = "" if of_all else _of(caller)
        values = {":partition": JUDGMENT, **({":beginning": beginning} if beginning else {})}
        condition = f"{PARTITION_KEY} = :partition"
        query: dict[str, Any] = {
            "TableName": self.table,
            "KeyConditionExpression": condition + (f" AND begins_with({SORT_KEY}, :beginning)" if beginning else ""),
            "ExpressionAttributeValues": to_item(values),
            "ConsistentRead": True,
        }
        if token is not None:
            query["ExclusiveStartKey"] = _key(_read_token(token, beginning))
        with reaching_the_registry():
            pages = self.client.get_paginator("query").paginate(**query, PaginationConfig={"PageSize": limit + 1})
            items = [*islice((item for page in pages for item in page["Items"]), limit + 1)]
        judgments = [Judgment.model_validate_json(item["judgment"]["S"]) for item in items[:limit]]
        last = items[limit - 1][SORT_KEY]["S"] if len(items) > limit else None
        return JudgmentList(judgments=judgments, next_token=last and urlsafe_b64encode(last.encode()).decode())


def _of(caller: Caller) -> str:
    """Return the beginning of the sort keys of a caller's judgments."""
    return f"{_digest(caller.name)}#"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]


def _key(place: str) -> Item:
    return to_item({PARTITION_KEY: JUDGMENT, SORT_KEY: place})


def _read_token(token: str, beginning: str) -> str:
    try:
        place = urlsafe_b64decode(token).decode()
    except ValueError:
        place = ""
    if not place or not place.startswith(beginning) or len(place.encode()) > MAX_KEY_BYTES:
        raise InvalidRequestError("next_token does not belong to this listing: take it from the previous page")
    return place
