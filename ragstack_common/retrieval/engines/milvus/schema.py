"""What a Milvus collection is made of, read from its description."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pymilvus import DataType, MilvusClient

from ragstack_common.errors import ConfigurationError
from ragstack_common.filters.milvus import Attributes, Column
from ragstack_common.retrieval import scores

EMBEDDING_PROPERTY: Final = "ragstack.embedding"
"""Property of a collection: the name of the embedding that its vectors are of."""

TEXT_NAMES: Final = ("text", "content", "page_content", "chunk", "document", "body")
SOURCE_NAMES: Final = ("source", "source_uri", "uri", "url", "file", "path", "file_path", "doc_id")
METADATA_NAME: Final = "metadata"

SCORES: Final[Mapping[str, Callable[[float], float]]] = {
    "COSINE": lambda similarity: scores.from_cosine_distance(1.0 - similarity),
    "IP": scores.from_inner_product,
    "L2": scores.from_squared_distance,
}
"""From what Milvus calls the distance, which is a similarity of COSINE and IP. Source: Milvus, "Metric Types"."""

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


@dataclass(frozen=True)
class Fields:
    """Names of fields that the caller gave; None is found out."""

    vector: str | None = None
    text: str | None = None
    id: str | None = None
    source: str | None = None
    metadata: str | None = None


@dataclass(frozen=True)
class Layout:
    """Where a collection has what.

    Attributes:
        id: Its primary key.
        integer_ids: Whether that is a number; otherwise a string.
        vector: The field that is searched.
        dimension: Length of its vectors.
        metric: COSINE, IP or L2.
        text: The content.
        sources: Where the source of a chunk is, the first that has one.
        json_field: Whose members are metadata, or None.
        attributes: What can be filtered by.
        output_fields: What a search returns.
        embedding: Name of the embedding that the collection was made with, where it is recorded.
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
        """Return the attributes of an entity; one that is null is absent."""
        inside = entity.get(self.json_field) if self.json_field else None
        outside = {
            name: list(value) if _is_list(value) else value
            for name, value in entity.items()
            if name not in (self.id, self.text, self.vector, self.json_field)
        }
        found = {**inside, **outside} if isinstance(inside, Mapping) else outside
        return {name: value for name, value in found.items() if value is not None}


def read_layout(client: MilvusClient, collection: str, fields: Fields, timeout_seconds: float) -> Layout:
    """Find out how a collection is made.

    Raises:
        ConfigurationError: It has no vectors, no text or no index that could be used, or several; the message names
            the option that chooses.
        MilvusException: It is not there, or Milvus cannot be asked.
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
        + (f"it may be {', '.join(candidates)}" if candidates else f"none of {', '.join(columns)} looks like it")
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
