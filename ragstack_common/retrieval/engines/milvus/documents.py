"""How a Milvus collection is made and filled."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from pymilvus import DataType, MilvusClient

from ragstack_common.embedding.protocol import Embedding
from ragstack_common.errors import ConfigurationError, InvalidDocumentError
from ragstack_common.filters.evaluation import kind_of
from ragstack_common.filters.milvus import Column
from ragstack_common.retrieval.engines.milvus.schema import EMBEDDING_PROPERTY, METADATA_NAME, SCORES, Layout

ID_FIELD: Final = "id"
VECTOR_FIELD: Final = "vector"
TEXT_FIELD: Final = "text"
SOURCE_FIELD: Final = "source"

MAX_TEXT_BYTES: Final = 65_535
"""Source: Milvus, the longest VARCHAR."""

MAX_ID_BYTES: Final = 512
MAX_SOURCE_BYTES: Final = 4_096
LARGEST_ID: Final = 2**63

NO_COLUMNS: Final[Mapping[str, str]] = MappingProxyType({})

_OWN: Final = frozenset({ID_FIELD, VECTOR_FIELD, TEXT_FIELD, SOURCE_FIELD, METADATA_NAME})
_COLUMN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}\Z")
_COLUMN_KINDS: Final = {
    "string": DataType.VARCHAR,
    "integer": DataType.INT64,
    "number": DataType.DOUBLE,
    "boolean": DataType.BOOL,
}


@dataclass(frozen=True)
class MilvusDocument:
    """A chunk to be stored.

    Attributes:
        id: Its primary key, of the kind that the collection has.
        text: Its content.
        source: The document that it is from.
        metadata: Strings, numbers, booleans, and lists of them, by name.
    """

    id: str | int
    text: str
    source: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


def create_collection(
    client: MilvusClient,
    name: str,
    embedding: Embedding,
    *,
    metric: str,
    integer_ids: bool,
    columns: Mapping[str, str],
    index_type: str,
) -> None:
    """Create a collection of texts with their source and metadata, and an index of Milvus's *index_type*.

    Raises:
        ConfigurationError: There is no such metric, or a column cannot be made.
        MilvusException: Milvus refused.
    """
    if metric not in SCORES:
        raise ConfigurationError(f"metric must be one of {', '.join(SCORES)}, not {metric!r}")
    for column, kind in columns.items():
        if column in _OWN or not _COLUMN_NAME.match(column) or kind not in _COLUMN_KINDS:
            raise ConfigurationError(
                f"The column {column!r:.80} of {kind!r:.80} cannot be made: its name has letters, digits, _, and is "
                f"none of {', '.join(sorted(_OWN))}, and its kind one of {', '.join(_COLUMN_KINDS)}"
            )
    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    if integer_ids:
        schema.add_field(ID_FIELD, DataType.INT64, is_primary=True)
    else:
        schema.add_field(ID_FIELD, DataType.VARCHAR, is_primary=True, max_length=MAX_ID_BYTES)
    schema.add_field(VECTOR_FIELD, DataType.FLOAT_VECTOR, dim=embedding.dimension)
    schema.add_field(TEXT_FIELD, DataType.VARCHAR, max_length=MAX_TEXT_BYTES)
    schema.add_field(SOURCE_FIELD, DataType.VARCHAR, max_length=MAX_SOURCE_BYTES)
    schema.add_field(METADATA_NAME, DataType.JSON)
    for column, kind in columns.items():
        length = {"max_length": MAX_TEXT_BYTES} if kind == "string" else {}
        schema.add_field(column, _COLUMN_KINDS[kind], nullable=True, **length)
    index = client.prepare_index_params(VECTOR_FIELD, index_type=index_type, metric_type=metric)
    client.create_collection(
        name,
        schema=schema,
        index_params=index,
        consistency_level="Session",  # who adds a document finds it
        properties={EMBEDDING_PROPERTY: embedding.name},
    )


def rows_of(documents: Sequence[MilvusDocument], layout: Layout, embedding: Embedding) -> list[dict[str, Any]]:
    """Make rows of documents.

    Raises:
        InvalidDocumentError: One cannot be stored; the message names it.
        ConfigurationError: The collection has other fields than those that are filled here.
    """
    columns = {name: column for name, column in layout.attributes.columns.items() if name != SOURCE_FIELD}
    fields = {layout.id, layout.vector, layout.text, *layout.attributes.columns, layout.json_field}
    if fields - columns.keys() != _OWN:
        raise ConfigurationError("The collection was not made by create: fill it with pymilvus")
    for document in documents:
        _check(document, layout)
        for name, column in columns.items():
            if name in document.metadata and not _fits(document.metadata[name], column):
                raise InvalidDocumentError(
                    f"Document {document.id!r}: the metadata {name!r} is no {column.kind} that its column could hold"
                )
    vectors = embedding.embed([document.text for document in documents])
    return [
        {
            ID_FIELD: document.id,
            VECTOR_FIELD: vector.tolist(),
            TEXT_FIELD: document.text,
            SOURCE_FIELD: document.source,
            METADATA_NAME: {name: value for name, value in document.metadata.items() if name not in columns},
            **{name: document.metadata.get(name) for name in columns},
        }
        for document, vector in zip(documents, vectors, strict=True)
    ]


def _check(document: MilvusDocument, layout: Layout) -> None:
    identity = document.id
    if layout.integer_ids:
        fits = isinstance(identity, int) and not isinstance(identity, bool) and -LARGEST_ID <= identity < LARGEST_ID
    else:
        fits = isinstance(identity, str) and bool(identity) and _bytes(identity) <= MAX_ID_BYTES
    if not fits:
        kind = "a 64-bit integer" if layout.integer_ids else f"a string of 1 to {MAX_ID_BYTES} bytes"
        raise InvalidDocumentError(f"The id {identity!r:.80} is not {kind}, as the collection's ids are")
    for name, text, most in (("text", document.text, MAX_TEXT_BYTES), ("source", document.source, MAX_SOURCE_BYTES)):
        if not isinstance(text, str) or _bytes(text) > most:
            raise InvalidDocumentError(f"Document {identity!r}: {name} must be a string of at most {most} bytes")
    if SOURCE_FIELD in document.metadata and document.metadata[SOURCE_FIELD] != document.source:
        raise InvalidDocumentError(f"Document {identity!r}: give its source as source, not among the metadata")
    for name, value in document.metadata.items():
        members = value if isinstance(value, list | tuple) else [value]
        if not isinstance(name, str) or not name or not all(_plain(member) for member in members):
            raise InvalidDocumentError(
                f"Document {identity!r}: the metadata {name!r:.80} must be a string, a finite number, a boolean, or a "
                "list of them"
            )


def _fits(value: Any, column: Column) -> bool:
    if kind_of(value) != column.kind:
        return False
    return column.kind != "number" or column.floating or (isinstance(value, int) and -LARGEST_ID <= value < LARGEST_ID)


def _plain(value: Any) -> bool:
    if isinstance(value, str):
        return _bytes(value) >= 0
    return isinstance(value, int | float) and math.isfinite(value)


def _bytes(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise InvalidDocumentError("The text is not valid Unicode") from None
