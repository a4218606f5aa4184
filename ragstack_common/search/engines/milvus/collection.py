"""Milvus collections: finding out the layout of an existing one, creating one, and making its rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pymilvus import DataType, MilvusClient

from ragstack_common.core.errors import ConfigurationError, InvalidDocumentError
from ragstack_common.embedding import Embedding
from ragstack_common.filters.milvus import Attributes, Column
from ragstack_common.search.engine import similarity_score, squared_distance_score

EMBEDDING_PROPERTY: Final = "ragstack.embedding"
"""Property of a collection: the name of the embedding of its vectors."""

TEXT_NAMES: Final = ("text", "content", "page_content", "chunk", "document", "body")
SOURCE_NAMES: Final = ("source", "source_uri", "uri", "url", "file", "path", "file_path", "doc_id")
METADATA_NAME: Final = "metadata"

SCORES: Final[Mapping[str, Callable[[float], float]]] = {
    "COSINE": similarity_score,
    "IP": similarity_score,
    "L2": squared_distance_score,
}
"""Convert a distance to a score. For COSINE and IP it is a similarity. Source: Milvus, "Metric Types"."""

MAX_TEXT_BYTES: Final = 65_535
"""Source: Milvus, the longest VARCHAR."""

_KINDS: Final = {
    DataType.VARCHAR: "string",
    DataType.BOOL: "boolean",
    **dict.fromkeys((DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64), "integer"),
    DataType.FLOAT: "single",
    DataType.DOUBLE: "double",
}
_COLUMN_KINDS: Final = {
    "string": DataType.VARCHAR,
    "integer": DataType.INT64,
    "number": DataType.DOUBLE,
    "boolean": DataType.BOOL,
}


@dataclass(frozen=True)
class Fields:
    """Names of fields that the caller gave; None for fields to find in the schema."""

    vector: str | None = None
    text: str | None = None
    source: str | None = None
    metadata: str | None = None


@dataclass(frozen=True)
class Layout:
    """The fields of a collection.

    Attributes:
        integer_ids: Whether ids are integers; otherwise strings.
        metric: COSINE, IP or L2.
        sources: Attributes that may hold a chunk's source; the first one present counts.
        json_field: Field whose members are metadata, or None.
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

    def to_metadata(self, entity: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes of an entity without nulls."""
        inside = entity.get(self.json_field) if self.json_field else None
        outside = {
            name: value if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__") else list(value)
            for name, value in entity.items()
            if name not in (self.id, self.text, self.vector, self.json_field)
        }
        found = {**inside, **outside} if isinstance(inside, Mapping) else outside
        return {name: value for name, value in found.items() if value is not None}


def read_layout(client: MilvusClient, collection: str, fields: Fields, timeout_seconds: float) -> Layout:
    """Read the layout of a collection.

    Raises:
        ConfigurationError: A field or index is missing or ambiguous; the message names the option that chooses one.
    """
    description = client.describe_collection(collection, timeout=timeout_seconds)
    columns = {column["name"]: column for column in description["fields"]}
    dynamic = bool(description.get("enable_dynamic_field"))

    def fields_of_type(kind: DataType) -> list[str]:
        return [name for name, column in columns.items() if column["type"] == kind]

    primary = next(name for name, column in columns.items() if column.get("is_primary"))
    strings = [name for name in fields_of_type(DataType.VARCHAR) if name != primary]
    usual = [name for name in TEXT_NAMES if name in strings]
    outside = [TEXT_NAMES[0]] if dynamic and not strings else []
    vector = _chosen(collection, "vector_field", fields.vector, columns, fields_of_type(DataType.FLOAT_VECTOR))
    text = (
        fields.text
        if dynamic and fields.text
        else _chosen(collection, "text_field", fields.text, columns, usual[:1] or strings or outside)
    )
    json_fields = fields_of_type(DataType.JSON)
    json_field: str | None = METADATA_NAME if METADATA_NAME in json_fields else None
    if fields.metadata is not None:
        json_field = _chosen(collection, "metadata_field", fields.metadata, columns, json_fields)
    dynamic = dynamic and json_field is None
    plain = [name for name, column in columns.items() if "VECTOR" not in column["type"].name and name != primary]
    return Layout(
        id=primary,
        integer_ids=columns[primary]["type"] == DataType.INT64,
        vector=vector,
        dimension=int(columns[vector]["params"]["dim"]),
        metric=_metric(client, collection, vector, timeout_seconds),
        text=text,
        sources=SOURCE_NAMES if fields.source is None else (fields.source,),
        json_field=json_field,
        attributes=Attributes(
            {name: _column(columns[name]) for name in plain if name not in (text, json_field)}, json_field, dynamic
        ),
        output_fields=(*plain, *(["$meta"] if dynamic else [])),
        embedding=description.get("properties", {}).get(EMBEDDING_PROPERTY),
    )


def _chosen(
    collection: str, option: str, name: str | None, columns: Mapping[str, Any], candidates: Sequence[str]
) -> str:
    if name is not None:
        if name not in columns:
            raise ConfigurationError(f"{collection} has no field {name!r} for {option}; it has {', '.join(columns)}")
        return name
    if len(candidates) == 1:
        return candidates[0]
    raise ConfigurationError(
        f"{collection}: name its field with {option}; "
        + (f"candidates are {', '.join(candidates)}" if candidates else f"none of {', '.join(columns)} is suitable")
    )


def _column(column: Mapping[str, Any]) -> Column:
    listed = column["type"] == DataType.ARRAY
    kind = _KINDS.get(column["element_type"] if listed else column["type"], "other")
    return Column(kind, bool(column.get("nullable")), listed)


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


@dataclass(frozen=True)
class MilvusDocument:
    """A chunk to store.

    Attributes:
        id: The primary key, of the collection's type.
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
    integer_ids: bool,
    columns: Mapping[str, str],
    index_type: str,
) -> None:
    """Create a collection of texts with source and metadata, and an index of Milvus's *index_type*."""
    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    if integer_ids:
        schema.add_field("id", DataType.INT64, is_primary=True)
    else:
        schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=512)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=embedding.dimension)
    schema.add_field("text", DataType.VARCHAR, max_length=MAX_TEXT_BYTES)
    schema.add_field("source", DataType.VARCHAR, max_length=4_096)
    schema.add_field(METADATA_NAME, DataType.JSON)
    for column, kind in columns.items():
        if kind not in _COLUMN_KINDS:
            raise ConfigurationError(f"The column {column} is one of {', '.join(_COLUMN_KINDS)}, not {kind!r:.80}")
        length = {"max_length": MAX_TEXT_BYTES} if kind == "string" else {}
        schema.add_field(column, _COLUMN_KINDS[kind], nullable=True, **length)
    client.create_collection(
        name,
        schema=schema,
        index_params=client.prepare_index_params("vector", index_type=index_type, metric_type="COSINE"),
        consistency_level="Session",  # a caller finds its own documents
        properties={EMBEDDING_PROPERTY: embedding.name},
    )


def to_rows(documents: Sequence[MilvusDocument], layout: Layout, embedding: Embedding) -> list[dict[str, Any]]:
    """Convert documents to rows of a collection."""
    vectors = embedding.embed([document.text for document in documents])
    return [_row(document, layout, vector.tolist()) for document, vector in zip(documents, vectors, strict=True)]


def _row(document: MilvusDocument, layout: Layout, vector: list[float]) -> dict[str, Any]:
    columns = layout.attributes.columns.keys()
    source = next((name for name in layout.sources if name in columns), layout.sources[0])
    attributes = {**document.metadata, source: document.source}
    others = {name: value for name, value in attributes.items() if name not in columns}
    has_place = layout.json_field is not None or layout.attributes.dynamic
    if not has_place and document.source in ("", str(document.id)):
        others.pop(source, None)  # a chunk without a source is its own document
    if layout.json_field is not None:
        others = {layout.json_field: others}
    elif others and not has_place:
        raise InvalidDocumentError(
            f"The collection has no field for the attribute {next(iter(others))!r:.100}, and neither a JSON field nor "
            "dynamic fields: leave the attribute out, or add a field"
        )
    return {
        **others,
        **{name: attributes.get(name) for name in columns},
        layout.id: document.id,
        layout.vector: vector,
        layout.text: document.text,
    }
