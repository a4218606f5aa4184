"""What each vector store behind a Bedrock knowledge base takes, in one place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ragstack_common.filters.tree import Operator
from ragstack_common.settings.names import MANAGED, OPENSEARCH_SERVERLESS, OTHER_STORE, S3_VECTORS


@dataclass(frozen=True)
class StoreRules:
    """The rules of one vector store.

    Attributes:
        has_hybrid: Whether Retrieve takes the search type HYBRID.
        ignored: Operators that the store refuses, or accepts although every document then matches.
        why: Why, in the message of an error.
        unproven: Operators that are not documented for the store, which filters that restrict access must not use.
        doubt: Why, in the message of an error.
        metadata_bytes: Maximum of a document's attributes as JSON; None if only the sidecar's own limit counts.
        metadata_keys: Maximum number of a document's attributes; None if there is none.
        reserved: How names begin that only the service's own attributes have, besides ``x-amz-bedrock-kb-``.
        max_constraints: Maximum constraints of a filter (``filters.constraints``); None if none is documented.
    """

    has_hybrid: bool = True
    ignored: frozenset[Operator] = frozenset()
    why: str = ""
    unproven: frozenset[Operator] = frozenset()
    doubt: str = ""
    metadata_bytes: int | None = None
    metadata_keys: int | None = None
    reserved: str | None = None
    max_constraints: int | None = None


_PARTS_OF_STRINGS: Final = frozenset({Operator.STARTS_WITH, Operator.STRING_CONTAINS})
_ONLY_ON_OPENSEARCH: Final = _PARTS_OF_STRINGS | {Operator.LIST_CONTAINS}
"""Documented only for OpenSearch Serverless, or as best supported there. Source: shape RetrievalFilter."""

S3_VECTORS_BYTES: Final = 1024

MAX_CONSTRAINTS: Final = 100
"""Source: Amazon S3 user guide, S3 Vectors, metadata filtering. A filter with more is a validation error."""

STORE_RULES: Final[Mapping[str, StoreRules]] = {
    # Sources: Amazon Bedrock User Guide, S3 Vectors as a vector store; AWS's agent toolkit for the ignored operators.
    S3_VECTORS: StoreRules(
        has_hybrid=False,
        ignored=_PARTS_OF_STRINGS,
        why="the knowledge base is on Amazon S3 Vectors, which ignores the operator and matches everything",
        unproven=_ONLY_ON_OPENSEARCH,
        doubt="it is not documented that S3 Vectors supports this operator, and this filter restricts access",
        metadata_bytes=S3_VECTORS_BYTES,
        metadata_keys=35,
        max_constraints=MAX_CONSTRAINTS,
    ),
    OPENSEARCH_SERVERLESS: StoreRules(),
    # Source: Amazon Bedrock User Guide, managed knowledge bases, query configurations.
    MANAGED: StoreRules(
        ignored=_PARTS_OF_STRINGS,
        why="the knowledge base is of type MANAGED, whose search does not support the operator",
        reserved="_",
    ),
    OTHER_STORE: StoreRules(
        unproven=_ONLY_ON_OPENSEARCH,
        doubt="the vector store is not known and may ignore the operator: set vector_store=OPENSEARCH_SERVERLESS"
        " if the knowledge base is on OpenSearch Serverless",
    ),
}
"""By the names of vector stores in ``settings.names``."""
