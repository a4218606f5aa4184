"""Documents in pages, by status and corpus, and one document by its id."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from ragstack_common.errors import InvalidRequestError
from ragstack_common.registry.items import record_of
from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_common.registry.table import (
    BY_CORPUS,
    BY_STATUS,
    BY_URI,
    CORPUS,
    DOCUMENT,
    INDEXES,
    STATUS,
    URI,
    document_key,
    key_of_id,
)

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
    """

    documents: list[DocumentRecord]
    next_token: str | None


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
        at_once, read = limit + 1, 0
        if token is not None:
            query["ExclusiveStartKey"] = _position(_uri_of(token, status, corpus), index, partition)
        while True:
            answer = self._client.query(**query, Limit=at_once)
            found.extend(map(record_of, answer["Items"]))
            read += answer["ScannedCount"]
            if len(found) > limit:
                return DocumentPage(found[:limit], _token(found[limit - 1].uri, status, corpus))
            if not (last := answer.get("LastEvaluatedKey")):
                return DocumentPage(found, None)
            if read >= ITEMS_PER_PAGE:
                return DocumentPage(found, _token(last[URI]["S"], status, corpus))
            query["ExclusiveStartKey"] = last
            at_once = min(4 * at_once, ITEMS_PER_CALL)

    def find(self, identifier: str) -> DocumentRecord | None:
        """Read one document whole, as it is now; None where the registry does not know it.

        Raises:
            ClientError: The table cannot be read.
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


def _position(uri: str, index: str, partition: Any) -> dict[str, Any]:
    """Name a place in an index. What the caller handed in is the URI alone, so no place outside can be named."""
    key = {name: {"S": value} for name, value in document_key(uri).items()}
    return {**key, INDEXES[index]: partition, URI: {"S": uri}}


def _token(uri: str, status: Status | None, corpus: str | None) -> str:
    return urlsafe_b64encode(f"{_check(uri, status, corpus)}{uri}".encode()).decode().rstrip("=")


def _uri_of(token: str, status: Status | None, corpus: str | None) -> str:
    """Read a token.

    Raises:
        InvalidRequestError: It was made for other filters, or not by us.
    """
    try:
        text = urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4)).decode()
    except ValueError:
        text = ""
    check, uri = text[:_CHECK_CHARACTERS], text[_CHECK_CHARACTERS:]
    if not uri or check != _check(uri, status, corpus):
        raise InvalidRequestError("next_token is none of this listing: take it from the page before, with its filters")
    return uri


def _check(uri: str, status: Status | None, corpus: str | None) -> str:
    parts = json.dumps(["documents", status, corpus, uri])
    return sha256(parts.encode()).hexdigest()[:_CHECK_CHARACTERS]
