"""Milvus collections: finding out the layout of an existing one, creating one, and making its rows."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from pymilvus import DataType, MilvusClient

from ragstack_common.embedding import Embedding
from ragstack_common.errors import ConfigurationError, InvalidDocumentError
from ragstack_common.filters.evaluation import kind_of
from ragstack_common.filters.milvus import Attributes, Column
from ragstack_common.retrieval import scores

EMBEDDING_PROPERTY: Final = "ragstack.embedding"
"""Property of a collection: the name of the embedding of its vectors."""

TEXT_NAMES: Final = ("text", "content", "page_content", "chunk", "document", "body")
SOURCE_NAMES: Final = ("source", "source_uri", "uri", "url", "file", "path", "file_path", "doc_id")
METADATA_NAME: Final = "metadata"

SCORES: Final[Mapping[str, Callable[[float], float]]] = {
    "COSINE": lambda similarity: scores.from_cosine_distance(1.0 - similarity),
    "IP": scores.from_inner_product,
    "L2": scores.from_squared_distance,
}
"""Convert a distance to a score. For COSINE and IP it is a similarity. Source: Milvus, "Metric Types"."""

_KINDS: Final = {
    DataType.VARCHAR: Column("string"),
    DataType.BOOL: Column("boolean"),
    DataType.INT8: Column("number", 8),
    DataType.INT16: Column("number", 16),
    DataType.INT32: Column("number", 32),
    DataType.INT64: Column("number", 64),
    DataType.FLOAT: Column("number", 32, floating=True),
    DataType.DOUBLE: Column("number", 64, floating=True),
}
_VECTORS: Final = frozenset(kind for kind in DataType if "VECTOR" in kind.name)


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
class Fields:
    """Names of fields that the caller gave; None for fields to find out."""

    vector: str | None = None
    text: str | None = None
    id: str | None = None
    source: str | None = None
    metadata: str | None = None


@dataclass(frozen=True)
class Layout:
    """The fields of a collection.

    Attributes:
        id: The primary key.
        integer_ids: Whether ids are integers; otherwise strings.
        vector: The field that is searched.
        dimension: Length of its vectors.
        metric: COSINE, IP or L2.
        text: The content.
        sources: Attributes that may hold a chunk's source; the first one present counts.
        json_field: Field whose members are metadata, or None.
        attributes: Attributes for filters.
        output_fields: Fields that a search returns.
        embedding: Name of the collection's embedding, if recorded.
    """

    id: str
    integer_ids: bool
    vector: str
    dimension: int
    metric: str
    text: str
    sources: tuple[str, ...]
    json_field: str | None
    attributes: Attributes
    output_fields: tuple[str, ...]
    embedding: str | None

    def metadata_of(self, entity: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes of an entity without nulls."""
        inside = entity.get(self.json_field) if self.json_field else None
        outside = {
            name: list(value) if _is_list(value) else value
            for name, value in entity.items()
            if name not in (self.id, self.text, self.vector, self.json_field)
        }
        found = {**inside, **outside} if isinstance(inside, Mapping) else outside
        return {name: value for name, value in found.items() if value is not None}


def read_layout(client: MilvusClient, collection: str, fields: Fields, timeout_seconds: float) -> Layout:
    """Read the layout of a collection.

    Raises:
        ConfigurationError: It has no suitable vector field, text field or index, or several; the message names the
            option that chooses one.
        MilvusException: The collection does not exist, or the call failed.
    """
    description = client.describe_collection(collection, timeout=timeout_seconds)
    columns = {column["name"]: column for column in description["fields"]}
    dynamic = bool(description.get("enable_dynamic_field"))
    vector = _chosen(
        collection, "vector_field", fields.vector, columns, _of_type(columns.values(), {DataType.FLOAT_VECTOR})
    )
    primary = next(name for name, column in columns.items() if column.get("is_primary"))
    if fields.id not in (None, primary):
        raise ConfigurationError(f"{collection}: id_field must be the primary key {primary!r}, not {fields.id!r}")
    text = _text_field(collection, fields, columns, primary, dynamic=dynamic)
    json_field = _json_field(collection, fields, columns)
    dynamic = dynamic and json_field is None
    plain = [name for name, column in columns.items() if column["type"] not in _VECTORS and name != primary]
    filtered = {name: _column(columns[name]) for name in plain if name not in (text, json_field)}
    metric = _metric(client, collection, vector, timeout_seconds)
    return Layout(
        id=primary,
        integer_ids=columns[primary]["type"] == DataType.INT64,
        vector=vector,
        dimension=int(columns[vector]["params"]["dim"]),
        metric=metric,
        text=text,
        sources=SOURCE_NAMES if fields.source is None else (fields.source,),
        json_field=json_field,
        attributes=Attributes(filtered, json_field, dynamic),
        output_fields=(*plain, *(["$meta"] if dynamic else [])),
        embedding=description.get("properties", {}).get(EMBEDDING_PROPERTY),
    )


def _text_field(collection: str, fields: Fields, columns: Mapping[str, Any], primary: str, *, dynamic: bool) -> str:
    if fields.text is not None and (fields.text in columns or dynamic):
        return fields.text
    strings = [name for name in _of_type(columns.values(), {DataType.VARCHAR}) if name != primary]
    usual: list[str] = [name for name in TEXT_NAMES if name in strings]
    if fields.text is None and not usual and not strings and dynamic:
        return TEXT_NAMES[0]
    return _chosen(collection, "text_field", fields.text, columns, usual[:1] or strings)


def _json_field(collection: str, fields: Fields, columns: Mapping[str, Any]) -> str | None:
    candidates = _of_type(columns.values(), {DataType.JSON})
    if fields.metadata is not None:
        return _chosen(collection, "metadata_field", fields.metadata, columns, candidates)
    return METADATA_NAME if METADATA_NAME in candidates else None


def _chosen(collection: str, option: str, given: str | None, columns: Mapping[str, Any], candidates: list[str]) -> str:
    if given is not None and given not in columns:
        raise ConfigurationError(f"{collection} has no field {given!r} for {option}; it has {', '.join(columns)}")
    if given is not None:
        return given
    if len(candidates) == 1:
        return candidates[0]
    raise ConfigurationError(
        f"{collection}: name its field with {option}; "
        + (f"candidates are {', '.join(candidates)}" if candidates else f"none of {', '.join(columns)} is suitable")
    )


def _of_type(columns: Iterable[Mapping[str, Any]], kinds: set[DataType]) -> list[str]:
    return [column["name"] for column in columns if column["type"] in kinds]


def _column(column: Mapping[str, Any]) -> Column:
    listed = column["type"] == DataType.ARRAY
    kind = _KINDS.get(column.get("element_type") if listed else column["type"], Column("other"))
    return Column(kind.kind, kind.bits, kind.floating, bool(column.get("nullable")), listed)


def _metric(client: MilvusClient, collection: str, vector: str, timeout_seconds: float) -> str:
    names = client.list_indexes(collection, field_name=vector, timeout=timeout_seconds)
    described = client.describe_index(collection, names[0], timeout=timeout_seconds) if names else None
    metric = str((described or {}).get("metric_type", "")).upper()
    if metric not in SCORES:
        raise ConfigurationError(
            f"{collection} needs an index on {vector} of one of the metrics {', '.join(SCORES)}, and has "
            f"{metric or 'none'}"
        )
    return metric


def _is_list(value: Any) -> bool:
    return not isinstance(value, str | bytes | Mapping) and hasattr(value, "__iter__")


@dataclass(frozen=True)
class MilvusDocument:
    """A chunk to store.

    Attributes:
        id: The primary key, of the collection's type.
        text: The content.
        source: The chunk's document.
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
    """Create a collection of texts with source and metadata, and an index of Milvus's *index_type*.

    Raises:
        ConfigurationError: The metric is unknown, or a column is not valid.
        MilvusException: The call failed.
    """
    if metric not in SCORES:
        raise ConfigurationError(f"metric must be one of {', '.join(SCORES)}, not {metric!r}")
    for column, kind in columns.items():
        if column in _OWN or not _COLUMN_NAME.match(column) or kind not in _COLUMN_KINDS:
            raise ConfigurationError(
                f"The column {column!r:.80} of {kind!r:.80} is not valid: use letters, digits and _ for its "
                f"name, but not {', '.join(sorted(_OWN))}; its kind is one of {', '.join(_COLUMN_KINDS)}"
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
        consistency_level="Session",  # a caller finds its own documents
        properties={EMBEDDING_PROPERTY: embedding.name},
    )


def rows_of(documents: Sequence[MilvusDocument], layout: Layout, embedding: Embedding) -> list[dict[str, Any]]:
    """Convert documents to rows.

    Raises:
        InvalidDocumentError: A document cannot be stored; the message names it.
        ConfigurationError: The collection has other fields, because it was not made by :func:`create_collection`.
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
                    f"Document {document.id!r}: the metadata {name!r} is not a {column.kind} that its column can hold"
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
        raise InvalidDocumentError(f"Document {identity!r}: give its source as source, not in the metadata")
    for name, value in document.metadata.items():
        members = value if isinstance(value, list | tuple) else [value]
        if not isinstance(name, str) or not name or not all(_is_plain(member) for member in members):
            raise InvalidDocumentError(
                f"Document {identity!r}: the metadata {name!r:.80} must be a string, a finite number, a boolean, or a "
                "list of them"
            )


def _fits(value: Any, column: Column) -> bool:
    if kind_of(value) != column.kind:
        return False
    return column.kind != "number" or column.floating or (isinstance(value, int) and -LARGEST_ID <= value < LARGEST_ID)


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return _bytes(value) >= 0
    return isinstance(value, int | float) and math.isfinite(value)


def _bytes(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise InvalidDocumentError("The text is not valid Unicode") from None
