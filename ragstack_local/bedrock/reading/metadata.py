"""Attributes of documents: sidecar files, and attributes that come with the request."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ragstack_local.bedrock.reading.formats import UnreadableDocument
from ragstack_local.bedrock.store.content import AttributeValue

SIDECAR_SUFFIX: Final = ".metadata.json"
LARGEST_SIDECAR: Final = 10 * 1024
"""Bytes. Source: Amazon Bedrock User Guide, metadata files of an S3 data source."""

LARGEST_ON_S3_VECTORS: Final = 1024
KEYS_ON_S3_VECTORS: Final = 35
"""Bytes of JSON and keys of one document. Source: Amazon Bedrock User Guide, S3 Vectors as a vector store."""

RESERVED_PREFIX: Final = "x-amz-bedrock-kb-"
SOURCE_URI: Final = RESERVED_PREFIX + "source-uri"
DATA_SOURCE_ID: Final = RESERVED_PREFIX + "data-source-id"

_TYPED_MEMBERS: Final = {
    "STRING": ("stringValue", str),
    "NUMBER": ("numberValue", int | float),
    "BOOLEAN": ("booleanValue", bool),
    "STRING_LIST": ("stringListValue", list),
}


# Half of a UTF-16 pair: JSON can name one, but it is no character.
_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")


class InvalidAttributes(Exception):  # noqa: N818 - named as it is reported
    """Attributes cannot be used; the message says which and why."""


class UnusableMetadata(UnreadableDocument):
    """A document's metadata cannot be used; the document itself may be fine."""


@dataclass(frozen=True)
class Metadata:
    """A document's attributes.

    Attributes:
        attributes: Name to string, number, boolean or list of strings.
        embedded: Names of those that are embedded with every chunk.
    """

    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    embedded: tuple[str, ...] = ()


def of_sidecar(data: bytes, name: str) -> Metadata:
    """Read a sidecar file.

    Args:
        data: Its content.
        name: Its S3 URI, for the message.

    Raises:
        UnusableMetadata: It is too large, no JSON, or has an attribute of a wrong type.
    """
    try:
        return _sidecar(data)
    except InvalidAttributes as error:
        raise UnusableMetadata(f"The metadata file {name} cannot be used: {error}.") from None


def of_inline(attributes: Sequence[Mapping[str, Any]]) -> Metadata:
    """Read the attributes of a request, which the service model has checked.

    Raises:
        InvalidAttributes: A value does not fit its type, or a name is reserved or stands twice.
    """
    read: dict[str, AttributeValue] = {}
    for attribute in attributes:
        key = attribute["key"]
        if key in read:
            raise InvalidAttributes(f"the attribute {key!r} stands there twice")
        read[_checked_key(key)] = _typed(key, attribute["value"])
    return Metadata(read)


def check_for_s3_vectors(attributes: Mapping[str, AttributeValue]) -> None:
    """Check what a knowledge base on S3 Vectors can keep of a document.

    Raises:
        UnusableMetadata: It is too much.
    """
    size = len(json.dumps(dict(attributes), ensure_ascii=False, separators=(",", ":")).encode())
    if size > LARGEST_ON_S3_VECTORS or len(attributes) > KEYS_ON_S3_VECTORS:
        raise UnusableMetadata(
            f"The metadata has {size:,} bytes in {len(attributes)} keys; a knowledge base on S3 Vectors takes at most"
            f" {LARGEST_ON_S3_VECTORS:,} bytes (1 KB) and {KEYS_ON_S3_VECTORS} keys of custom metadata a document:"
            " shorten it."
        )


def _sidecar(data: bytes) -> Metadata:
    if len(data) > LARGEST_SIDECAR:
        raise InvalidAttributes(f"it has {len(data):,} bytes, at most {LARGEST_SIDECAR:,} are allowed")
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InvalidAttributes(f"it is not JSON: {error}") from None
    entries = document.get("metadataAttributes") if isinstance(document, dict) else None
    if not isinstance(entries, dict):
        raise InvalidAttributes('it must be {"metadataAttributes": {"name": value, ...}}')
    attributes, embedded = {}, []
    for key, entry in entries.items():
        attributes[_checked_key(key)] = _entry(key, entry)
        if isinstance(entry, dict) and entry.get("includeForEmbedding") is True:
            embedded.append(key)
    return Metadata(attributes, tuple(embedded))


def _checked_key(key: str) -> str:
    if not key or key.startswith(RESERVED_PREFIX):
        raise InvalidAttributes(f"the attribute name {key!r} is empty or begins with {RESERVED_PREFIX}")
    return key


def _entry(key: str, entry: Any) -> AttributeValue:
    if not isinstance(entry, dict):
        return _value(key, entry)
    value = entry.get("value")
    if not isinstance(value, dict) or not isinstance(entry.get("includeForEmbedding", False), bool):
        raise InvalidAttributes(
            f'the attribute {key!r} must be a value or {{"value": {{...}}, "includeForEmbedding": false}}'
        )
    return _typed(key, value)


def _typed(key: str, value: Mapping[str, Any]) -> AttributeValue:
    kind = value.get("type")
    if kind not in _TYPED_MEMBERS:
        raise InvalidAttributes(f"the attribute {key!r} has the type {kind!r}, not one of {', '.join(_TYPED_MEMBERS)}")
    member, expected = _TYPED_MEMBERS[kind]
    found = value.get(member)
    if not isinstance(found, expected) or (isinstance(found, bool) and expected is not bool):
        raise InvalidAttributes(f"the attribute {key!r} of type {kind} needs a fitting {member}")
    return _value(key, found)


def _value(key: str, value: Any) -> AttributeValue:
    for text in (key, *(value if isinstance(value, list) else [value])):
        if isinstance(text, str) and _HALF_CHARACTER.search(text):
            raise InvalidAttributes(f"the attribute {key!r} is not valid Unicode")
    if isinstance(value, list) and all(isinstance(member, str) for member in value):
        return list(value)
    if isinstance(value, str | bool) or (isinstance(value, int | float) and abs(value) <= sys.float_info.max):
        return value
    raise InvalidAttributes(f"the attribute {key!r} is neither string, number, boolean nor list of strings")
