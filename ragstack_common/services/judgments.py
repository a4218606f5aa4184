"""Judgments of results and answers: each caller's own, kept in the registry's table.

A judgment is what its caller wrote. Nothing is looked up for it, so that it says nothing about a document that the
caller may not see. Each caller has a partition of their own, a limit, and judgments that expire.
"""

import hashlib
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from ragstack_common.access.callers import Caller, Right
from ragstack_common.access.guard import Guard
from ragstack_common.core.errors import InvalidRequestError, LimitReachedError
from ragstack_common.core.names import canonical
from ragstack_common.core.reporting import reaching_the_registry
from ragstack_common.core.times import Time, iso
from ragstack_common.registry.reads import query_items
from ragstack_common.registry.table import EXPIRES_AT, JUDGMENT, MAX_KEY_BYTES, PARTITION_KEY, SORT_KEY, Item, to_item
from ragstack_common.registry.transactions import Transactions, Write, if_holds
from ragstack_common.services.gaps import Gaps
from ragstack_common.services.measures import DocumentName, Grade

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MAX_QUERY_CHARACTERS: Final = 2000
MAX_REFERENCE_CHARACTERS: Final = 10_000
"""A page of a hundred judgments stays below the 6 MB of a response of Lambda."""

MAX_NEW_IN_A_YEAR: Final = 5000
"""Limit of one caller. A judgment takes up to 12 KB; a pool of 50 queries with 100 documents each is as large."""

KEPT_SECONDS: Final = 2 * 365 * 86_400
"""Lifetime of a judgment after its last change."""

_ANSWER: Final = "answer"
_YEAR: Final = "year"

# Files in BEIR's form have tabs between members.
_QueryId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:-]{1,100}$")]


class JudgmentChange(BaseModel, extra="forbid", frozen=True, defer_build=True):
    """A judgment of a document for a query, or of the answer to a question. Unknown names are rejected."""

    query_id: _QueryId = Field(description="Names the query; judgments of one query have the same")
    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)
    document: DocumentName | None = Field(
        default=None, description="The source of the result; without it, the judgment is of the answer"
    )
    grade: Grade | None = Field(
        default=None, description="How relevant the document is, 0 for not at all; null deletes the judgment"
    )
    answer_grade: Literal[0, 1] | None = Field(
        default=None, description="Whether the answer is right; null deletes the judgment unless the question is kept"
    )
    reference: str | None = Field(
        default=None, min_length=1, max_length=MAX_REFERENCE_CHARACTERS, description="What the answer should say"
    )
    kept: bool = Field(
        default=False, description="Keeps a question whose answer has no grade, to ask it again: a regression question"
    )

    @model_validator(mode="after")
    def _has_one_kind(self) -> Self:
        if self.document is None and self.grade is not None:
            raise PydanticCustomError("judgment", "A grade needs a document: name it, or give answer_grade")
        if self.document is not None and (self.answer_grade is not None or self.reference is not None or self.kept):
            text = "answer_grade, reference and kept need an answer: leave out document"
            raise PydanticCustomError("judgment", text)
        return self


class Judgment(BaseModel, defer_build=True):
    """A judgment as it is stored; without a grade, it is deleted unless its question is kept."""

    kind: Literal["document", "answer"]
    query_id: str
    query: str
    document: str | None
    grade: int | None
    answer_grade: int | None
    reference: str | None
    kept: bool = False
    at: Time
    by: str


class JudgmentList(BaseModel, defer_build=True):
    """A page of judgments, by caller and query."""

    judgments: list[Judgment]
    next_token: str | None = Field(description="Requests the next page; null on the last page")


@dataclass(frozen=True)
class Judgments:
    """Reads and writes judgments. Each method raises RegistryError if the table fails."""

    client: "DynamoDBClient"
    table: str
    guard: Guard
    clock: Callable[[], float] = time.time
    gaps: Gaps | None = None

    def write(self, caller: Caller, change: JudgmentChange) -> Judgment:
        """Replace or delete the caller's judgment; the last write counts. A bad answer is a gap.

        Raises:
            LimitReachedError: The caller has made the maximum number of new ones this year.
        """
        now = self.clock()
        judgment = Judgment(
            kind=_ANSWER if change.document is None else "document",
            **change.model_dump(),
            at=iso(now),
            by=caller.name,
        )
        name = _ANSWER if change.document is None else _digest(canonical(change.document))
        key = _key(_digest(caller.name), f"{change.query_id}#{name}")
        with reaching_the_registry():
            if change.grade is None and change.answer_grade is None and not change.kept:
                self._delete(caller, key)
            else:
                self._replace(
                    caller, key, {"judgment": judgment.model_dump_json(), EXPIRES_AT: int(now) + KEPT_SECONDS}
                )
        if self.gaps is not None and change.document is None:
            if change.answer_grade == 0:
                self.gaps.add(caller, change.query, "bad")
            else:
                self.gaps.remove_bad(caller, change.query)
        return judgment

    def page(self, caller: Caller, *, of_all: bool, limit: int, token: str | None = None) -> JudgmentList:
        """List the caller's judgments, or those of all callers, 1 to 100 of them.

        Raises:
            InvalidRequestError: The token is from another listing.
            NotAllowedError: Only operators list the judgments of all callers.
        """
        self._check(caller, of_all=of_all)
        own = _digest(caller.name)
        digest, place = ("" if of_all else own), None
        if token is not None:
            digest, place = _read_token(token, "" if of_all else f"{own}#")
        with reaching_the_registry():
            found = self._all_items(digest, place) if of_all else self._items(own, place)
            items = [*islice(found, limit + 1)]
        judgments = [_judgment(item) for item in items[:limit]]
        following = None
        if len(items) > limit:
            last = items[limit - 1]
            digest = last[PARTITION_KEY]["S"].removeprefix(f"{JUDGMENT}#")
            following = urlsafe_b64encode(f"{digest}#{last[SORT_KEY]['S']}".encode()).decode()
        return JudgmentList(judgments=judgments, next_token=following)

    def every(self, caller: Caller, *, of_all: bool) -> list[Judgment]:
        """Return the caller's judgments, or those of all callers, oldest first.

        Raises:
            NotAllowedError: The caller asks for those of all, and is no operator.
        """
        self._check(caller, of_all=of_all)
        with reaching_the_registry():
            found = self._all_items("", None) if of_all else self._items(_digest(caller.name), None)
            return sorted(map(_judgment, found), key=lambda each: each.at)

    def _check(self, caller: Caller, *, of_all: bool) -> None:
        if of_all:
            self.guard.require(caller, Right.OPERATE, "GET /api/judgments?all=true")

    def _replace(self, caller: Caller, key: Item, content: Mapping[str, Any]) -> None:
        """Change a judgment; a new one counts in the year in which it is made."""
        if self._change(key, content):
            return
        now = int(self.clock())
        year = datetime.fromtimestamp(now, UTC).year
        count = self._counter(caller, year, 1)
        count["ConditionExpression"] = "attribute_not_exists(#year) OR #year < :limit"
        count["ExpressionAttributeValues"] |= to_item({":limit": MAX_NEW_IN_A_YEAR})
        put = {
            "Item": {**key, **to_item({**content, _YEAR: year})},
            "ConditionExpression": f"attribute_not_exists({PARTITION_KEY})",
        }
        failed = Transactions(self.client, self.table).write(
            [Write("count", {"Update": count}), Write("judgment", {"Put": put})]
        )
        if "count" in failed:
            text = (
                f"{caller.name} made {MAX_NEW_IN_A_YEAR:,} new judgments this year, which is the limit: change or"
                " delete earlier ones"
            )
            raise LimitReachedError(text, int(datetime(year + 1, 1, 1, tzinfo=UTC).timestamp()) - now)
        if failed:
            self._change(key, content)  # another request has made it meanwhile

    def _change(self, key: Item, content: Mapping[str, Any]) -> bool:
        """Change a judgment that exists; return whether it does. The year in which it was made stays."""
        answer = if_holds(
            lambda: self.client.update_item(
                TableName=self.table,
                Key=key,
                UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in content),
                ExpressionAttributeNames={f"#{name}": name for name in content},
                ExpressionAttributeValues=to_item({f":{name}": value for name, value in content.items()}),
                ConditionExpression=f"attribute_exists({PARTITION_KEY})",
            )
        )
        return answer is not None

    def _delete(self, caller: Caller, key: Item) -> None:
        """Delete a judgment, whose place another one can take."""
        old = self.client.delete_item(TableName=self.table, Key=key, ReturnValues="ALL_OLD").get("Attributes")
        if old:
            self.client.update_item(TableName=self.table, **self._counter(caller, int(old[_YEAR]["N"]), -1))

    def _counter(self, caller: Caller, year: int, number: int) -> Any:
        """Return an update of the number of judgments that a caller made in a year.

        The item does not expire: it is small, and the list of all judgments finds their callers by it.
        """
        return {
            "Key": to_item({PARTITION_KEY: JUDGMENT, SORT_KEY: _digest(caller.name)}),
            "UpdateExpression": "ADD #year :number",
            "ExpressionAttributeNames": {"#year": f"in_{year}"},
            "ExpressionAttributeValues": to_item({":number": number}),
        }

    def _items(self, digest: str, after: str | None) -> Iterator[Item]:
        """Yield the items of one caller, after one of them."""
        return self._queried(f"{JUDGMENT}#{digest}", None if after is None else _key(digest, after))

    def _all_items(self, digest: str, after: str | None) -> Iterator[Item]:
        """Yield the items of all callers, beginning with one."""
        if digest:
            yield from self._items(digest, after)
        first = to_item({PARTITION_KEY: JUDGMENT, SORT_KEY: digest}) if digest else None
        for caller in self._queried(JUDGMENT, first):
            yield from self._items(caller[SORT_KEY]["S"], None)

    def _queried(self, partition: str, after: Item | None) -> Iterator[Item]:
        start = {} if after is None else {"ExclusiveStartKey": after}
        condition, values = f"{PARTITION_KEY} = :partition", {":partition": partition}
        return query_items(self.client, self.table, condition, values, PaginationConfig={"PageSize": 101}, **start)


def _judgment(item: Item) -> Judgment:
    return Judgment.model_validate_json(item["judgment"]["S"])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _key(digest: str, place: str) -> Item:
    return to_item({PARTITION_KEY: f"{JUDGMENT}#{digest}", SORT_KEY: place})


def _read_token(token: str, beginning: str) -> tuple[str, str]:
    """Return the digest of a caller, and the place in their judgments."""
    try:
        place = urlsafe_b64decode(token).decode()
    except ValueError:
        place = ""
    digest, _, after = place.partition("#")
    if not digest or not after or not place.startswith(beginning) or len(place.encode()) > MAX_KEY_BYTES:
        raise InvalidRequestError("next_token does not belong to this listing: take it from the previous page")
    return digest, after
