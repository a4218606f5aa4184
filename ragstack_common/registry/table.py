"""Names in the registry's table: keys, attributes and indexes. The stacks make the table from the same names.

::

    partition key                sort key                  what
    DOCUMENT#<id>                DOCUMENT                  one document
    CATALOGUE                    <attribute> <type> <value>  how many searchable documents have that value
    JOB                          <id of the job>           a reconciliation or a synchronisation, and its report
    RATE#<operation>             RATE                      when the next call of that operation may be made
    GATE                         GATE                      a full synchronisation that direct ingestion waits for

A document's item is also in three indexes, each sorted by its URI: every document, the documents of one status, and
those of one corpus.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

PARTITION_KEY: Final = "pk"
SORT_KEY: Final = "sk"

EXPIRES_AT: Final = "expires_at"
"""Seconds since 1970 after which DynamoDB may remove an item."""

URI: Final = "uri"
"""Sort key of the indexes: a document's URI, or what of it a key may hold."""

FULL_URI: Final = "full_uri"
KIND: Final = "kind"
STATUS: Final = "status"
CORPUS: Final = "corpus"

BY_URI: Final = "by_uri"
BY_STATUS: Final = "by_status"
BY_CORPUS: Final = "by_corpus"

INDEXES: Final = {BY_URI: KIND, BY_STATUS: STATUS, BY_CORPUS: CORPUS}
"""Each index with its partition key; the sort key of all is :data:`URI`."""

LISTED: Final = (
    "attempts",
    "attributes",
    "corpus",
    "etag",
    "finished_at",
    "full_uri",
    "kind",
    "last_modified",
    "reason",
    "received_at",
    "size",
    "status",
    "updated_at",
    "version_id",
)
"""What an index repeats of an item beside the keys."""

DOCUMENT: Final = "DOCUMENT"
CATALOGUE: Final = "CATALOGUE"
JOB: Final = "JOB"
RATE: Final = "RATE"
GATE: Final = "GATE"

DIVIDER: Final = "\x1f"
"""Between attribute and value in the sort key of a count."""

VALUES_COUNTED: Final = 40
"""Of one document, at most: a transaction takes a hundred writes, and replacing a document takes two for each value."""

ID_CHARACTERS: Final = 32

LONGEST_KEY_BYTES: Final = 1000
"""A sort key takes 1,024. Source: DynamoDB developer guide, quotas."""


def document_id(uri: str) -> str:
    """Derive a document's id from its URI: 32 hexadecimal digits, the same for ever."""
    return hashlib.sha256(uri.encode("utf-8", "surrogatepass")).hexdigest()[:ID_CHARACTERS]


def uri_in_indexes(uri: str) -> str:
    """Write a URI as the indexes hold it: one that is too long for a key is cut, and told apart by its id."""
    encoded = uri.encode("utf-8", "surrogatepass")
    if len(encoded) <= LONGEST_KEY_BYTES:
        return uri
    cut = encoded[: LONGEST_KEY_BYTES - ID_CHARACTERS - 1].decode("utf-8", "ignore")
    return f"{cut}#{document_id(uri)}"


def document_key(uri: str) -> dict[str, str]:
    """Name a document's item."""
    return key_of_id(document_id(uri))


def key_of_id(identifier: str) -> dict[str, str]:
    """Name a document's item by the document's id."""
    return {PARTITION_KEY: f"{DOCUMENT}#{identifier}", SORT_KEY: DOCUMENT}


def id_in_key(item: Mapping[str, Any]) -> str:
    """Tell the id that an item of a document is kept under: that of the document, unless somebody made the item."""
    partition: str = item[PARTITION_KEY]["S"]
    return partition.removeprefix(f"{DOCUMENT}#")
