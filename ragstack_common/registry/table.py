"""The registry's DynamoDB table: its keys, attributes and indexes, and plain values to items and back.

::

    partition key                sort key                  what
    DOCUMENT#<id>                DOCUMENT                  one document
    CATALOGUE                    <attribute><1F><value as JSON>  number of searchable documents with that value
    CATALOGUE#<label>            <attribute><1F><value as JSON>  the same, of one access label
    CATALOGUE##status            <status>                  number of documents with that status
    CATALOGUE##hour              <seconds since 1970>      number of documents indexed, and failed, in that hour
    CATALOGUE##entry             <id of a document>        its changed line of the directory of documents
    JOB                          <id of the job>           a reconciliation or a synchronisation, and its report
    JOB#LOCK                     <kind of job>             the job of that kind that is running
    RATE#<operation>             RATE                      when the next call of that operation may start
    GATE                         GATE                      the full synchronisation that blocks direct ingestion
    SNAPSHOT                     SNAPSHOT                  a snapshot of the catalogue that was requested
    BUDGET#<digest of a caller>  <day>                     number of questions of the caller on that day, in UTC
    BUDGET#<digest of a caller>  <day>#reports             number of reports of gaps, in the same way
    GAP                          <digest of words>#<digest of a caller>  what a caller asked without a good answer
    GAP                          <digest of words>         whether such questions are open, answered or dismissed
    JUDGMENT                     <digest of a caller>      a caller with judgments, and their numbers by year
    JUDGMENT#<digest of a caller>  <query>#<digest of a document>  a caller's judgment
    CONVERSATION#<digest of a person>  <id>                  a conversation: its title and questions
    CONVERSATION#<digest of a person>#<id>  <time and random>  a turn of it
    PERSON                       <name>                    a caller with their groups, and when they were seen last
    ACCESS                       VERSION                   number of the changes of the access rules
    ACCESS                       <length>#<label>#<principal>  a change: what a label does to a principal

A document's item is also in four indexes, each sorted by URI: all documents, the documents of one status, of one
corpus, and of one access label. The stacks create the table from the same names.
"""

import hashlib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

from ragstack_common.core.names import canonical
from ragstack_common.registry.attribute_values import from_attribute, to_attribute

Item: TypeAlias = dict[str, Any]
"""An item in the form of DynamoDB's low-level interface: ``{"size": {"N": "3"}}``."""

PARTITION_KEY: Final = "pk"
SORT_KEY: Final = "sk"

EXPIRES_AT: Final = "expires_at"
"""Seconds since 1970 after which DynamoDB may remove an item."""

URI: Final = "uri"
"""Sort key of the indexes, as :func:`uri_in_indexes` returns it."""

FULL_URI: Final = "full_uri"
KIND: Final = "kind"
STATUS: Final = "status"
CORPUS: Final = "corpus"
LABEL: Final = "label"

REVISION: Final = "revision"
WRITE: Final = "write"
"""Id of the write that made an item. A writer that lost the response recognises its own write by it."""

BY_URI: Final = "by_uri"
BY_STATUS: Final = "by_status"
BY_CORPUS: Final = "by_corpus"
BY_LABEL: Final = "by_label"

INDEXES: Final = {BY_URI: KIND, BY_STATUS: STATUS, BY_CORPUS: CORPUS, BY_LABEL: LABEL}
"""Each index with its partition key; the sort key of all is :data:`URI`."""

LISTED: Final = (
    *("attempts", "attributes", "corpus", "etag", "finished_at", "full_uri", "kind"),
    *("last_modified", "reason", "received_at", "size", "status", "updated_at", "version_id"),
)
"""The attributes that an index holds besides the keys."""

DOCUMENT: Final = "DOCUMENT"
CATALOGUE: Final = "CATALOGUE"
STATUSES: Final = f"{CATALOGUE}##status"
HOURS: Final = f"{CATALOGUE}##hour"
ENTRIES: Final = f"{CATALOGUE}##entry"
"""No label begins with a number sign."""

JOB: Final = "JOB"
RATE: Final = "RATE"
GATE: Final = "GATE"
SNAPSHOT: Final = "SNAPSHOT"
ACCESS: Final = "ACCESS"
BUDGET: Final = "BUDGET"
JUDGMENT: Final = "JUDGMENT"
GAP: Final = "GAP"
CONVERSATION: Final = "CONVERSATION"
PERSON: Final = "PERSON"

IRRECOVERABLE: Final = (ACCESS, BUDGET, JUDGMENT, GAP, CONVERSATION, PERSON)
"""Partitions whose items cannot be rebuilt from the documents bucket."""

RECOVERABLE: Final = (CATALOGUE, DOCUMENT)
"""Partitions whose items can be, by reading all documents again. The other items coordinate functions that run."""

_ID_CHARACTERS: Final = 32

MAX_KEY_BYTES: Final = 1000
"""A sort key takes 1,024. Source: DynamoDB developer guide, quotas."""

INVALID_ITEMS: Final = "InvalidRegistryItems"
"""Metric: items that failed validation when they were read."""


def to_item(values: Mapping[str, Any]) -> Item:
    """Serialize plain values. None and empty strings are left out: an index refuses them."""
    return {name: to_attribute(_storable(value)) for name, value in values.items() if value not in (None, "")}


def from_item(item: Mapping[str, Any]) -> dict[str, Any]:
    """Deserialize an item; numbers become Decimal."""
    return {name: from_attribute(value) for name, value in item.items()}


def document_id(uri: str) -> str:
    """Derive a document's permanent id from its URI: 32 hexadecimal digits."""
    return hashlib.sha256(uri.encode("utf-8", "surrogatepass")).hexdigest()[:_ID_CHARACTERS]


def uri_in_indexes(uri: str) -> str:
    """Return the URI as the indexes hold it: in the form in which names compare.

    One that is too long for a key, or has another form, is cut and ends in the document's id, so that no two are equal.
    """
    name = canonical(uri)
    if name == uri and len(uri.encode()) <= MAX_KEY_BYTES:
        return uri
    return f"{beginning_in_indexes(name)}{document_id(uri)}"


def beginning_in_indexes(name: str) -> str:
    """Return how the URIs of a name begin in the indexes that end in a document's id."""
    return name.encode()[: MAX_KEY_BYTES - _ID_CHARACTERS - 1].decode("utf-8", "ignore") + "#"


def document_key(identifier: str) -> Item:
    """Return the key of a document's item, given the document's id."""
    return to_item({PARTITION_KEY: f"{DOCUMENT}#{identifier}", SORT_KEY: DOCUMENT})


def _storable(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() else Decimal(repr(value))
    return value
