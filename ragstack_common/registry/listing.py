"""Documents in pages, by status and corpus, and one document by its id."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.errors import InvalidRequestError, RegistryError
from ragstack_common.registry.items import Item, listed_of, record_of
from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_common.registry.table import (
    BY_CORPUS,
    BY_STATUS,
    BY_URI,
    CORPUS,
    DOCUMENT,
    ID_CHARACTERS,
    INDEXES,
    STATUS,
    URI,
    id_in_key,
    key_of_id,
    uri_in_indexes,
)
from ragstack_common.telemetry import LOGGER

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 100

ITEMS_PER_CALL: Final = 1000
"""Where most do not pass the filter. One call reads 1 MB at most, which is about two thousand items of an index."""

ITEMS_PER_PAGE: Final = 20_000
"""Read for one page at most, so that a caller who asks for what hardly any document is does not wait for ever."""

_CHECK_CHARACTERS: Final = 8


@dataclass(frozen=True)
class DocumentPage:
    """Some of the documents that were asked for, by URI.

    Attributes:
        documents: What the index repeats of each: no history, and no operation.
        next_token: Asks for what comes after; None at the end.
        unreadable: What is wrong with records that came between these and cannot be read, and what to do. The log has
            it too.
    """

    documents: list[DocumentRecord]
    next_token: str | None
    unreadable: tuple[str, ...] = ()


class Listing:
    """Reads documents without writing any. Pages come from indexes, which follow the table within a second or so."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        """Bind the registry's table."""
        self._client = client
        self._table = table

    def page(
        self,
        status: Status | None = None,
        corpus: str | None = None,
        limit: int = DEFAULT_LIMIT,
        token: str | None = None,
    ) -> DocumentPage:
        """List documents by URI.

        Args:
            status: Of all of them. Without it, those that were deleted are left out.
            corpus: Of all of them.
            limit: Documents at most, 1 to 100. A page has fewer at the end, and where very many had to be passed over:
                only the token tells whether there are more.
            token: From the page before, of the same status and corpus.

        Raises:
            InvalidRequestError: The limit is out of range, or the token is none of this listing.
            ClientError: The table cannot be read.
        """
        if isinstance(limit, bool) or not 1 <= limit <= MAX_LIMIT:
            raise InvalidRequestError(f"limit must be 1 to {MAX_LIMIT}, not {limit!r}")
        index, query = self._query(status, corpus)
        partition = query["ExpressionAttributeValues"][":partition"]
        found: list[DocumentRecord] = []
        unreadable: list[str] = []
        at_once, read = limit + 1, 0
        if token is not None:
            query["ExclusiveStartKey"] = _position(*_place_of(token, status, corpus), index, partition)
        while True:
            answer = self._client.query(**query, Limit=at_once)
            _sort_out(answer["Items"], found, unreadable)
            read += answer["ScannedCount"]
            if len(found) > limit:
                last_one = found[limit - 1]
                token = _token(last_one.id, uri_in_indexes(last_one.uri), status, corpus)
                return DocumentPage(found[:limit], token, tuple(unreadable))
            if not (last := answer.get("LastEvaluatedKey")):
                return DocumentPage(found, None, tuple(unreadable))
            if read >= ITEMS_PER_PAGE:
                return DocumentPage(found, _token(id_in_key(last), last[URI]["S"], status, corpus), tuple(unreadable))
            query["ExclusiveStartKey"] = last
            at_once = min(4 * at_once, ITEMS_PER_CALL)

    def find(self, identifier: str) -> DocumentRecord | None:
        """Read one document whole, as it is now; None where the registry does not know it.

        Raises:
            ClientError: The table cannot be read.
            RegistryError: Its record cannot be read; the message names it and says what to do.
        """
        key: Any = {name: {"S": value} for name, value in key_of_id(identifier).items()}
        item = self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True).get("Item")
        return record_of(item) if item else None

    def _query(self, status: Status | None, corpus: str | None) -> tuple[str, dict[str, Any]]:
        """Choose the index that has the fewest other documents, and leave those out by a filter."""
        query: dict[str, Any] = {"TableName": self._table}
        values: dict[str, Any] = {}
        if status is not None:
            index, partition = BY_STATUS, str(status)
            if corpus is not None:
                query |= {
                    "FilterExpression": "#filtered = :filtered",
                    "ExpressionAttributeNames": {"#filtered": CORPUS},
                }
                values[":filtered"] = {"S": corpus}
        else:
            index, partition = (BY_CORPUS, corpus) if corpus is not None else (BY_URI, DOCUMENT)
            query |= {"FilterExpression": "#filtered <> :filtered", "ExpressionAttributeNames": {"#filtered": STATUS}}
            values[":filtered"] = {"S": str(Status.DELETED)}
        query.setdefault("ExpressionAttributeNames", {})["#partition"] = INDEXES[index]
        return index, {
            **query,
            "IndexName": index,
            "KeyConditionExpression": "#partition = :partition",
            "ExpressionAttributeValues": {**values, ":partition": {"S": partition}},
        }


def _sort_out(items: Iterable[Item], found: list[DocumentRecord], unreadable: list[str]) -> None:
    """Add records to those that were found; one that cannot be read is in nobody's way, and never silently."""
    for item in items:
        try:
            found.append(listed_of(item))
        except RegistryError as error:
            LOGGER.error("%s", error)
            unreadable.append(str(error))


def _position(identifier: str, uri: str, index: str, partition: Any) -> dict[str, Any]:
    """Name a place in an index. What the caller handed in names a document, so no place outside can be named."""
    key = {name: {"S": value} for name, value in key_of_id(identifier).items()}
    return {**key, INDEXES[index]: partition, URI: {"S": uri}}


def _token(identifier: str, uri: str, status: Status | None, corpus: str | None) -> str:
    place = f"{identifier}{uri}"
    return urlsafe_b64encode(f"{_check(place, status, corpus)}{place}".encode()).decode().rstrip("=")


def _place_of(token: str, status: Status | None, corpus: str | None) -> tuple[str, str]:
    """Read a token: a document's id, and its URI as the indexes have it.

    Raises:
        InvalidRequestError: It was made for other filters, or not by us.
    """
    try:
        text = urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4)).decode()
    except ValueError:
        text = ""
    check, place = text[:_CHECK_CHARACTERS], text[_CHECK_CHARACTERS:]
    identifier, uri = place[:ID_CHARACTERS], place[ID_CHARACTERS:]
    if not uri or check != _check(place, status, corpus):
        raise InvalidRequestError("next_token is none of this listing: take it from the page before, with its filters")
    return identifier, uri


def _check(place: str, status: Status | None, corpus: str | None) -> str:
    parts = json.dumps(["documents", status, corpus, place])
    return sha256(parts.encode()).hexdigest()[:_CHECK_CHARACTERS]
