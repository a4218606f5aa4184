"""The JSON schemas of the retriever, and the check of its input."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ragstack_common.settings.limits import MAX_QUERY_CHARACTERS
from ragstack_common.tools.registry import ToolError

DEFAULT_TOP_K: Final = 10
MAX_TOP_K: Final = 100
MAX_TEXTS: Final = 100
"""Each is one search vector. Milvus takes 16,384; a hundred keep an answer under a second."""

MAX_NAME_CHARACTERS: Final = 255
"""Source: Milvus, limits of collection and partition names."""

NAME_PATTERN: Final = rf"^[A-Za-z0-9_][A-Za-z0-9_.-]{{0,{MAX_NAME_CHARACTERS - 1}}}$"
"""Covers the names of Milvus and Chroma, and Bedrock's ids, but no path and no address."""

_NAME: Final = re.compile(NAME_PATTERN.removesuffix("$") + r"\Z")
_NAME_FORM: Final = f"must be 1 to {MAX_NAME_CHARACTERS} letters, digits, '_', '-' or '.', not starting with '-' or '.'"

INPUT_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "collection_name": {
            "type": "string",
            "pattern": NAME_PATTERN,
            "description": "Name of the collection to query",
        },
        "partition_name": {
            "type": "string",
            "description": "Name of the partition to query (searches all partitions if omitted)",
        },
        "texts": {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": MAX_QUERY_CHARACTERS},
            "minItems": 1,
            "maxItems": MAX_TEXTS,
            "description": "Array of text strings to embed and search",
        },
        "top_k": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_TOP_K,
            "default": DEFAULT_TOP_K,
            "description": "Number of top results to return, for all texts together",
        },
    },
    "required": ["collection_name", "texts"],
    "additionalProperties": False,
}

OUTPUT_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "results": {
            "type": "array",
            "description": "Array of retrieved documents, best first",
            "items": {
                "type": "object",
                "properties": {
                    "id": {
                        "type": ["integer", "string", "null"],
                        "description": "Unique document identifier: an integer where the collection's ids are "
                        "integers, else a string; null where the store has none",
                    },
                    "text": {"type": "string", "description": "The retrieved document text content"},
                    "score": {
                        "type": "number",
                        "minimum": 0,
                        "maximum": 1,
                        "description": "Similarity score (higher = more relevant)",
                    },
                    "metadata": {"type": "object", "description": "Document metadata (source, timestamp, etc.)"},
                },
                "required": ["id", "text", "score", "metadata"],
                "additionalProperties": False,
            },
        },
        "count": {"type": "integer", "minimum": 0, "description": "Total number of results returned"},
    },
    "required": ["results", "count"],
    "additionalProperties": False,
}


def build_input_schema(collections: Sequence[str] | None) -> Mapping[str, Any]:
    """Return the input schema for the configured collections; None allows any name, as with a whole database."""
    if not collections:
        return INPUT_SCHEMA
    name = {**INPUT_SCHEMA["properties"]["collection_name"], "enum": sorted(collections)}
    return {**INPUT_SCHEMA, "properties": {**INPUT_SCHEMA["properties"], "collection_name": name}}


@dataclass(frozen=True)
class RetrieverRequest:
    """A valid input.

    Attributes:
        texts: Normalized and distinct, in their order.
        partition_name: Part of the collection; None searches all of it.
    """

    collection_name: str
    texts: tuple[str, ...]
    top_k: int = DEFAULT_TOP_K
    partition_name: str | None = None

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "RetrieverRequest":
        """Check an input.

        Raises:
            ToolError: A member is not valid. Members are checked in the order of the specification's table.
        """
        if not isinstance(data, Mapping):
            raise ToolError("input must be an object")
        collection = _name(data, "collection_name", "collection_name field is required and must be a string")
        partition = None
        if data.get("partition_name", "") != "":
            partition = _name(data, "partition_name", "partition_name field must be a string")
        texts = _texts(data.get("texts"))
        top_k = _top_k(data.get("top_k", DEFAULT_TOP_K))
        unknown = sorted(str(name) for name in data if name not in INPUT_SCHEMA["properties"])
        if unknown:
            raise ToolError(f"unknown field: {unknown[0]:.80}")
        return cls(collection, texts, top_k, partition)


def is_name(text: str) -> bool:
    """Check the name of a collection or partition."""
    return _NAME.match(text) is not None


def _name(data: Mapping[str, Any], field: str, missing: str) -> str:
    name = data.get(field)
    if not isinstance(name, str) or not name:
        raise ToolError(missing)
    if not is_name(name):
        raise ToolError(f"{field} field {_NAME_FORM}")
    return name


def _texts(texts: object) -> tuple[str, ...]:
    if not isinstance(texts, list | tuple):
        raise ToolError("texts field must be an array of strings")
    if not texts:
        raise ToolError("texts field must contain at least one string")
    if len(texts) > MAX_TEXTS:
        raise ToolError(f"texts field must contain at most {MAX_TEXTS} strings")
    return tuple(dict.fromkeys(_text(number, text) for number, text in enumerate(texts)))


def _text(number: int, text: object) -> str:
    if not isinstance(text, str):
        raise ToolError(f"texts[{number}] must be a string")
    if len(text) > MAX_QUERY_CHARACTERS:
        raise ToolError(f"texts[{number}] must have at most {MAX_QUERY_CHARACTERS} characters")
    cleaned = clean(text)
    if not cleaned:
        raise ToolError(f"texts[{number}] must not be empty")
    return cleaned


def clean(text: str) -> str:
    """Normalize a query: composed characters, single spaces, no control characters and no lone surrogates."""
    readable = "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in text)
    return " ".join(unicodedata.normalize("NFC", readable).split())


def _top_k(top_k: object) -> int:
    if isinstance(top_k, float) and top_k.is_integer():  # JSON's 5.0 is an integer
        top_k = int(top_k)
    if isinstance(top_k, bool) or not isinstance(top_k, int):
        raise ToolError("top_k field must be an integer")
    if not 1 <= top_k <= MAX_TOP_K:
        raise ToolError(f"top_k field must be between 1 and {MAX_TOP_K}")
    return top_k
