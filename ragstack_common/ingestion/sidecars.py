"""Attributes of documents: what a sidecar may say, and what the vector store behind a knowledge base can keep.

The local Bedrock reads sidecars with this module as well, so that what is refused here is what it refuses. The message
of a refusal is one line that names the attribute and says what is wrong with it, to be put after the name of the file.

A sidecar is JSON in one of two forms, which may stand side by side::

    {"metadataAttributes": {"topic": "leave", "year": 2026, "internal": true, "audience": ["engineers"]}}
    {"metadataAttributes": {"topic": {"value": {"type": "STRING", "stringValue": "x"}, "includeForEmbedding": true}}}

The sidecar of a CSV file may say that each row is a record, with one column as its text and others as its attributes.
It then needs no ``metadataAttributes``::

    {"documentStructureConfiguration": {"type": "RECORD_BASED_STRUCTURE_METADATA", "recordBasedStructureMetadata": {
        "contentFields": [{"fieldName": "description"}],
        "metadataFieldsSpecification": {"fieldsToInclude": [{"fieldName": "city"}], "fieldsToExclude": []}}}}

Sources: Amazon Bedrock User Guide, metadata files of an S3 data source; the same, kb-metadata, for CSV files.
"""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ragstack_common.config import ALL_CORPORA, S3_VECTORS
from ragstack_common.documents import MAX_SIDECAR_BYTES
from ragstack_common.errors import InvalidDocumentError
from ragstack_common.registry.records import Attributes, AttributeValue

LARGEST_ON_S3_VECTORS: Final = 1024
KEYS_ON_S3_VECTORS: Final = 35
"""Bytes of JSON and keys of one document. Source: Amazon Bedrock User Guide, S3 Vectors as a vector store."""

MOST_LIST_MEMBERS: Final = 10
"""Source: bedrock-agent, shape MetadataAttributeValueStringListValueList. Members of a
longer list in a sidecar are reportedly dropped silently, and filters on them find nothing."""

RESERVED_PREFIX: Final = "x-amz-bedrock-kb-"
"""Bedrock's own attributes begin with it."""

_CORPUS: Final = "corpus"
_ENTRIES: Final = "metadataAttributes"
_STRUCTURE: Final = "documentStructureConfiguration"
_RECORDS: Final = "RECORD_BASED_STRUCTURE_METADATA"
_FORM: Final = '{"metadataAttributes": {"name": value, ...}}'

_TYPED_MEMBERS: Final = {
    "STRING": ("stringValue", str),
    "NUMBER": ("numberValue", int | float),
    "BOOLEAN": ("booleanValue", bool),
    "STRING_LIST": ("stringListValue", list),
}
"""Source: bedrock-agent, shape MetadataAttributeValue."""

# Half of a UTF-16 pair: JSON can name one, but it is no character.
_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class RecordStructure:
    """How the rows of a CSV file become records.

    Attributes:
        content: The column that is a record's text.
        included: The columns that are its attributes; empty for all other columns.
        excluded: Columns that are not.
    """

    content: str
    included: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sidecar:
    """What a sidecar says.

    Attributes:
        attributes: Name to string, number, boolean or list of strings.
        embedded: Names of those that are embedded with every chunk.
        records: How the rows of a CSV file become records; None where it is one text.
    """

    attributes: Attributes = field(default_factory=dict)
    embedded: tuple[str, ...] = ()
    records: RecordStructure | None = None


def read_sidecar(body: bytes, vector_store: str) -> dict[str, AttributeValue]:
    """Read the attributes that a sidecar gives its document.

    Args:
        body: The file, whole.
        vector_store: One of ``settings.VECTOR_STORES``.

    Raises:
        InvalidDocumentError: Bedrock would refuse it.
    """
    attributes = parse_sidecar(body).attributes
    check_size(attributes, vector_store)
    return dict(attributes)


def write_sidecar(attributes: Attributes) -> bytes:
    """Write the sidecar of a document that is to have these attributes.

    Raises:
        InvalidDocumentError: An attribute has a name or a value that no sidecar can hold, or they are too long.
    """
    _check_values(attributes)
    body = json.dumps({_ENTRIES: dict(attributes)}, ensure_ascii=False).encode()
    _check_length(body)
    return body


def check_attributes(attributes: Attributes, vector_store: str) -> None:
    """Check that a document can have these attributes, before they are in a sidecar.

    Raises:
        InvalidDocumentError: It cannot, or nobody could ask for its corpus.
    """
    write_sidecar(attributes)
    check_size(attributes, vector_store)
    check_corpus(attributes)


def check_corpus(attributes: Attributes) -> None:
    """Check that a search can choose the corpus that a document is to belong to.

    Raises:
        InvalidDocumentError: It is no text, an empty one, or the word that asks for every corpus.
    """
    if _CORPUS not in attributes:
        return
    corpus = attributes[_CORPUS]
    if not isinstance(corpus, str) or not corpus.strip():
        raise InvalidDocumentError(f"the attribute {_CORPUS!r} is the name of a corpus, a text, not {_shown(corpus)}")
    if corpus == ALL_CORPORA:
        raise InvalidDocumentError(f"no corpus can be called {ALL_CORPORA}, which asks for every corpus")


def check_size(attributes: Attributes, vector_store: str) -> None:
    """Check that the vector store can keep that much about one document.

    Raises:
        InvalidDocumentError: It is too much.
    """
    if vector_store != S3_VECTORS:
        return
    size = len(_compact(attributes))
    if size > LARGEST_ON_S3_VECTORS or len(attributes) > KEYS_ON_S3_VECTORS:
        longest = max(attributes, key=lambda key: len(_compact({key: attributes[key]})))
        raise InvalidDocumentError(
            f"the metadata has {size:,} bytes in {len(attributes)} keys; a knowledge base on S3 Vectors takes at most"
            f" {LARGEST_ON_S3_VECTORS:,} bytes (1 KB) and {KEYS_ON_S3_VECTORS} keys of custom metadata a document:"
            f" shorten it (the longest attribute is {_shown(longest)})"
        )


def parse_sidecar(body: bytes) -> Sidecar:
    """Read a sidecar, whatever the vector store can keep of it.

    Raises:
        InvalidDocumentError: It is too long, no JSON, or has an attribute of a wrong type.
    """
    _check_length(body)
    try:
        document = json.loads(body.decode("utf-8-sig"), object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise InvalidDocumentError(f"it is not JSON: {error}") from None
    records = None
    if isinstance(document, dict) and _STRUCTURE in document:
        records = _structure(document[_STRUCTURE])
        document.setdefault(_ENTRIES, {})
    entries = document.get(_ENTRIES) if isinstance(document, dict) else None
    if not isinstance(entries, dict):
        raise InvalidDocumentError(f"it must be {_FORM}")
    attributes, embedded = {}, []
    for key, entry in entries.items():
        check_key(key)
        attributes[key] = _entry(key, entry)
        if isinstance(entry, dict) and entry.get("includeForEmbedding") is True:
            embedded.append(key)
    return Sidecar(attributes, tuple(embedded), records)


def merged_sidecar(own: bytes, given: Attributes) -> bytes:
    """Add attributes to a sidecar that :func:`parse_sidecar` takes, where it does not name them itself."""
    document = json.loads(own.decode("utf-8-sig"))
    # Merged as it is, because an entry may say more than its value, and the sidecar more than attributes.
    return json.dumps({**document, _ENTRIES: {**given, **document.get(_ENTRIES, {})}}, ensure_ascii=False).encode()


def check_key(key: str) -> None:
    """Check the name of an attribute.

    Raises:
        InvalidDocumentError: It is empty, or one of Bedrock's own.
    """
    if not key or key.startswith(RESERVED_PREFIX):
        raise InvalidDocumentError(f"the attribute name {_shown(key)} is empty or begins with {RESERVED_PREFIX}")


def typed_value(key: str, value: Mapping[str, Any]) -> AttributeValue:
    """Read a value that says its type. Source: bedrock-agent, shape MetadataAttributeValue.

    Raises:
        InvalidDocumentError: It has no such type, or no value of it.
    """
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in _TYPED_MEMBERS:
        known = ", ".join(_TYPED_MEMBERS)
        raise InvalidDocumentError(f"the attribute {_shown(key)} has the type {_shown(kind)}, not one of {known}")
    member, expected = _TYPED_MEMBERS[kind]
    found = value.get(member)
    if not isinstance(found, expected) or (isinstance(found, bool) and expected is not bool):
        raise InvalidDocumentError(f"the attribute {_shown(key)} of type {kind} needs a fitting {member}")
    return _plain_value(key, found)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that stands twice: which of the two values the service would take is not documented."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidDocumentError(f"the name {_shown(key)} stands there twice")
        found[key] = value
    return found


def _entry(key: str, entry: Any) -> AttributeValue:
    if not isinstance(entry, dict):
        return _plain_value(key, entry)
    value = entry.get("value")
    if not isinstance(value, dict) or not isinstance(entry.get("includeForEmbedding", False), bool):
        raise InvalidDocumentError(
            f'the attribute {_shown(key)} must be a value or {{"value": {{...}}, "includeForEmbedding": false}}'
        )
    return typed_value(key, value)


def _structure(found: Any) -> RecordStructure:
    """Read how a CSV file is made up. Source: Amazon Bedrock User Guide, kb-metadata."""
    if not isinstance(found, dict) or found.get("type") != _RECORDS:
        raise InvalidDocumentError(f'{_STRUCTURE} must be {{"type": "{_RECORDS}", ...}}')
    records = found.get("recordBasedStructureMetadata")
    fields = records.get("metadataFieldsSpecification", {}) if isinstance(records, dict) else None
    if not isinstance(records, dict) or not isinstance(fields, dict):
        raise InvalidDocumentError(f"{_STRUCTURE} needs recordBasedStructureMetadata, an object")
    content = _fields(records, "contentFields")
    if len(content) != 1:
        raise InvalidDocumentError(f"contentFields must name one column, not {len(content)}: Bedrock takes one")
    included, excluded = _fields(fields, "fieldsToInclude"), _fields(fields, "fieldsToExclude")
    for name in (*included, *excluded):
        check_key(name)
    if both := sorted({*included} & {*excluded}):
        raise InvalidDocumentError(f"the column {_shown(both[0])} is both in fieldsToInclude and in fieldsToExclude")
    return RecordStructure(content[0], included, excluded)


def _fields(parent: Mapping[str, Any], member: str) -> tuple[str, ...]:
    found = parent.get(member, [])
    if isinstance(found, list) and all(isinstance(each, dict) for each in found):
        names = [each.get("fieldName") for each in found]
        if all(isinstance(name, str) and name for name in names):
            return tuple(names)
    raise InvalidDocumentError(f'{member} must be a list of {{"fieldName": "column"}}')


def _check_values(attributes: Attributes) -> None:
    for key, value in attributes.items():
        check_key(key)
        _plain_value(key, value)


def _plain_value(key: str, value: Any) -> AttributeValue:
    for text in (key, *(value if isinstance(value, list) else [value])):
        if isinstance(text, str) and _HALF_CHARACTER.search(text):
            raise InvalidDocumentError(f"the attribute {_shown(key)} is not valid Unicode")
    if isinstance(value, list) and all(isinstance(member, str) for member in value):
        if len(value) > MOST_LIST_MEMBERS:
            raise InvalidDocumentError(
                f"the attribute {_shown(key)} is a list of {len(value)} strings, and a knowledge base keeps at most"
                f" {MOST_LIST_MEMBERS}: shorten it, or divide it into two attributes"
            )
        return list(value)
    if isinstance(value, str | bool) or (isinstance(value, int | float) and abs(value) <= sys.float_info.max):
        return value
    raise InvalidDocumentError(f"the attribute {_shown(key)} is neither string, number, boolean nor list of strings")


def _check_length(body: bytes) -> None:
    if len(body) > MAX_SIDECAR_BYTES:
        raise InvalidDocumentError(f"it has {len(body):,} bytes, at most {MAX_SIDECAR_BYTES:,} are allowed")


def _compact(attributes: Attributes) -> bytes:
    return json.dumps(dict(attributes), ensure_ascii=False, separators=(",", ":")).encode()


def _shown(name: object) -> str:
    """Write a name so that it stays on one line of bearable length."""
    return f"{name!r:.100}"
