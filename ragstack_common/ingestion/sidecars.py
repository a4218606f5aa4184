"""The attributes of documents: what a sidecar can contain, and what the vector store of a knowledge base can keep.

The local Bedrock reads sidecars with this module too, so both refuse the same files. An error message is one line that
names the attribute and the problem; callers put the name of the file before it.

A sidecar is JSON. Attributes have one of two forms, which can be mixed::

    {"metadataAttributes": {"topic": "leave", "year": 2026, "internal": true, "audience": ["engineers"]}}
    {"metadataAttributes": {"topic": {"value": {"type": "STRING", "stringValue": "x"}, "includeForEmbedding": true}}}

The sidecar of a CSV file can declare that each row is a record, with one column as its text and others as its
attributes. It then needs no ``metadataAttributes``::

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

from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.core.json_text import parse_json
from ragstack_common.core.names import canonical, canonical_if_text
from ragstack_common.filters.store_rules import STORE_RULES
from ragstack_common.registry.records import Attributes, AttributeValue
from ragstack_common.settings.limits import MAX_SIDECAR_BYTES
from ragstack_common.settings.names import ALL_CORPORA, RESERVED_PREFIX

MAX_LIST_MEMBERS: Final = 10
"""Source: bedrock-agent, shape MetadataAttributeValueStringListValueList. Bedrock reportedly drops members of a longer
list in a sidecar without an error, so that filters on them find nothing."""

_ENTRIES: Final = "metadataAttributes"
_STRUCTURE: Final = "documentStructureConfiguration"

_TYPED_MEMBERS: Final = {
    "STRING": ("stringValue", str),
    "NUMBER": ("numberValue", int | float),
    "BOOLEAN": ("booleanValue", bool),
    "STRING_LIST": ("stringListValue", list),
}
"""Source: bedrock-agent, shape MetadataAttributeValue."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""JSON can contain half of a UTF-16 pair, which UTF-8 cannot."""


@dataclass(frozen=True)
class RecordStructure:
    """How the rows of a CSV file become records: the column of the text, and those of the attributes (empty: all)."""

    content: str
    included: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sidecar:
    """The content of a sidecar; *embedded* are the names of attributes that are embedded with every chunk."""

    attributes: Attributes = field(default_factory=dict)
    embedded: tuple[str, ...] = ()
    records: RecordStructure | None = None


def read_sidecar(body: bytes, vector_store: str) -> dict[str, AttributeValue]:
    """Return the attributes in a sidecar, for one of ``STORE_RULES``; raises InvalidDocumentError."""
    attributes = parse_sidecar(body).attributes
    check_for_store(attributes, vector_store)
    return dict(attributes)


def canonical_attributes(attributes: Attributes) -> dict[str, AttributeValue]:
    """Return attributes with their names and texts in the form in which names compare."""
    return {canonical(key): canonical_if_text(value) for key, value in attributes.items()}


def canonical_sidecar(body: bytes) -> bytes:
    """Return a valid sidecar with its attributes in the form in which names compare, or as it is if they have it.

    Knowledge bases compare the characters of filters and attributes.
    """
    document = json.loads(body.decode("utf-8-sig"))
    entries = document.get(_ENTRIES, {})
    written = {canonical(key): _canonical_entry(entry) for key, entry in entries.items()}
    if written == entries:
        return body
    return json.dumps({**document, _ENTRIES: written}, ensure_ascii=False).encode()


def write_sidecar(attributes: Attributes) -> bytes:
    """Return the sidecar of a document with these attributes.

    Raises:
        InvalidDocumentError: A name or a value cannot be in a sidecar, or the sidecar is too long.
    """
    for key, value in attributes.items():
        check_key(key)
        _plain_value(key, value)
    body = json.dumps({_ENTRIES: canonical_attributes(attributes)}, ensure_ascii=False).encode()
    _check_length(body)
    return body


def check_attributes(attributes: Attributes, vector_store: str) -> None:
    """Check that a document can have these attributes; raises InvalidDocumentError."""
    write_sidecar(attributes)
    check_for_store(canonical_attributes(attributes), vector_store)
    check_corpus(attributes)


def check_corpus(attributes: Attributes) -> None:
    """Check that searches can be restricted to the corpus of a document; raises InvalidDocumentError."""
    if "corpus" not in attributes:
        return
    corpus = attributes["corpus"]
    if not isinstance(corpus, str) or not corpus.strip():
        raise InvalidDocumentError(f"the attribute 'corpus' must be the name of a corpus, not {_shown(corpus)}")
    if corpus == ALL_CORPORA:
        raise InvalidDocumentError(f"a corpus cannot be called {ALL_CORPORA}, which means every corpus")


def check_for_store(attributes: Attributes, vector_store: str) -> None:
    """Check that the vector store can keep all attributes of a document; raises InvalidDocumentError."""
    rules = STORE_RULES[vector_store]
    for key in attributes:
        # A document must not name another one as its source.
        if rules.reserved and key.startswith(rules.reserved):
            raise InvalidDocumentError(
                f"the attribute name {_shown(key)} begins with {rules.reserved}, which a managed knowledge base keeps"
                " for its own attributes: choose another name"
            )
    if rules.metadata_bytes is None or rules.metadata_keys is None:
        return
    size = len(_compact(attributes))
    if size > rules.metadata_bytes or len(attributes) > rules.metadata_keys:
        longest = max(attributes, key=lambda key: len(_compact({key: attributes[key]})))
        raise InvalidDocumentError(
            f"the metadata has {size:,} bytes in {len(attributes)} keys; a knowledge base on S3 Vectors takes at most"
            f" {rules.metadata_bytes:,} bytes (1 KB) in {rules.metadata_keys} keys of a document: shorten"
            f" {_shown(longest)}, the longest attribute"
        )


def parse_sidecar(body: bytes) -> Sidecar:
    """Return the content of a sidecar, without regard to the limits of a vector store.

    Raises:
        InvalidDocumentError: It is too long, is not JSON, or has an attribute of a wrong type.
    """
    _check_length(body)
    try:
        document = parse_json(body.decode("utf-8-sig"), object_pairs_hook=_distinct)
    except ValueError as error:
        raise InvalidDocumentError(f"it is not JSON: {error}") from None
    records = None
    if isinstance(document, dict) and _STRUCTURE in document:
        records = _structure(document[_STRUCTURE])
        document.setdefault(_ENTRIES, {})
    entries = document.get(_ENTRIES) if isinstance(document, dict) else None
    if not isinstance(entries, dict):
        raise InvalidDocumentError('it must be {"metadataAttributes": {"name": value, ...}}')
    attributes, embedded = {}, []
    for key, entry in entries.items():
        check_key(key)
        attributes[key] = _entry(key, entry)
        if isinstance(entry, dict) and entry.get("includeForEmbedding") is True:
            embedded.append(key)
    return Sidecar(attributes, tuple(embedded), records)


def merged_sidecar(own: bytes, given: Attributes) -> bytes:
    """Add attributes to a valid sidecar; its own values win. All other content is kept."""
    document = json.loads(own.decode("utf-8-sig"))
    entries = {**canonical_attributes(given), **document.get(_ENTRIES, {})}
    return json.dumps({**document, _ENTRIES: entries}, ensure_ascii=False).encode()


def with_attribute(body: bytes | None, name: str, value: str | None) -> bytes:
    """Set one attribute in a valid sidecar, or in a new one; None removes it. All other content is kept."""
    document = {} if body is None else json.loads(body.decode("utf-8-sig"))
    others = {key: entry for key, entry in document.get(_ENTRIES, {}).items() if key != name}
    entries = others if value is None else {**others, name: value}
    return json.dumps({**document, _ENTRIES: entries}, ensure_ascii=False).encode()


def replaced_sidecar(
    body: bytes | None, attributes: Attributes | None, structure: Mapping[str, Any] | None
) -> bytes | None:
    """Replace the attributes of a sidecar, its row settings (``documentStructureConfiguration``), or both.

    None keeps them, and {} removes them. Attributes that stay are embedded as before, also with other values. An
    unreadable sidecar is not kept.

    Returns:
        The new sidecar; None if nothing is left.

    Raises:
        InvalidDocumentError: The new content cannot be in a sidecar.
    """
    try:
        document = json.loads(body.decode("utf-8-sig")) if body and parse_sidecar(body) else {}
    except InvalidDocumentError:
        document = {}
    if attributes is not None:
        earlier = {canonical(key): entry for key, entry in document.get(_ENTRIES, {}).items()}
        document[_ENTRIES] = {
            key: {**earlier[key], "value": to_typed(value)} if isinstance(earlier.get(key), dict) else value
            for key, value in canonical_attributes(attributes).items()
        }
    if structure is not None:
        document[_STRUCTURE] = structure
    if not document.get(_STRUCTURE):
        document.pop(_STRUCTURE, None)
        if not document.get(_ENTRIES):
            return None
    written = json.dumps(document, ensure_ascii=False).encode()
    parse_sidecar(written)
    return written


def read_structure(body: bytes) -> dict[str, Any]:
    """Return the ``documentStructureConfiguration`` of a sidecar, {} without one; raises InvalidDocumentError."""
    parse_sidecar(body)
    found: dict[str, Any] = json.loads(body.decode("utf-8-sig")).get(_STRUCTURE, {})
    return found


def check_structure(structure: Mapping[str, Any]) -> None:
    """Check a ``documentStructureConfiguration``, which can be {}; raises InvalidDocumentError."""
    if structure:
        _structure(structure)


def check_key(key: str) -> None:
    """Check the name of an attribute; raises InvalidDocumentError."""
    if not key or key.startswith(RESERVED_PREFIX):
        raise InvalidDocumentError(f"the attribute name {_shown(key)} is empty or begins with {RESERVED_PREFIX}")


def typed_value(key: str, value: Mapping[str, Any]) -> AttributeValue:
    """Return the value of an attribute with a type. Source: bedrock-agent, shape MetadataAttributeValue.

    Raises:
        InvalidDocumentError: The type is unknown, or the value does not have it.
    """
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in _TYPED_MEMBERS:
        known = ", ".join(_TYPED_MEMBERS)
        raise InvalidDocumentError(f"the attribute {_shown(key)} has the type {_shown(kind)}, not one of {known}")
    member, expected = _TYPED_MEMBERS[kind]
    found = value.get(member)
    if not isinstance(found, expected) or (isinstance(found, bool) and expected is not bool):
        raise InvalidDocumentError(f"the attribute {_shown(key)} of type {kind} needs a {member} of that type")
    return _plain_value(key, found)


def to_typed(value: AttributeValue) -> dict[str, Any]:
    """Return the value of an attribute with its type. Source: bedrock-agent, shape MetadataAttributeValue."""
    match value:
        case bool():
            return {"type": "BOOLEAN", "booleanValue": value}
        case str():
            return {"type": "STRING", "stringValue": value}
        case list():
            return {"type": "STRING_LIST", "stringListValue": value}
    return {"type": "NUMBER", "numberValue": value}


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse duplicate names: which of the values the service takes is not documented."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidDocumentError(f"the name {_shown(key)} is given twice")
        found[key] = value
    return found


def _canonical_entry(entry: Any) -> Any:
    """Return the value of an attribute, or the object with its type, in the form in which names compare."""
    if not isinstance(entry, dict):
        return canonical_if_text(entry)
    return {name: _canonical_entry(value) for name, value in entry.items()}


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
    """Return which columns of a CSV file are what. Source: Amazon Bedrock User Guide, kb-metadata."""
    kind = "RECORD_BASED_STRUCTURE_METADATA"
    if not isinstance(found, dict) or found.get("type") != kind:
        raise InvalidDocumentError(f'{_STRUCTURE} must be {{"type": "{kind}", ...}}')
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


def _plain_value(key: str, value: Any) -> AttributeValue:
    for text in (key, *(value if isinstance(value, list) else [value])):
        if isinstance(text, str) and _SURROGATE.search(text):
            raise InvalidDocumentError(f"the attribute {_shown(key)} is not valid Unicode")
    if isinstance(value, list) and all(isinstance(member, str) for member in value):
        if len(value) > MAX_LIST_MEMBERS:
            raise InvalidDocumentError(
                f"the attribute {_shown(key)} is a list of {len(value)} strings, and a knowledge base keeps at most"
                f" {MAX_LIST_MEMBERS}: shorten it"
            )
        return list(value)
    if isinstance(value, str | bool) or (isinstance(value, int | float) and abs(value) <= sys.float_info.max):
        return value
    raise InvalidDocumentError(f"the attribute {_shown(key)} is neither string, number, boolean nor list of strings")


def _check_length(body: bytes) -> None:
    if len(body) > MAX_SIDECAR_BYTES:
        raise InvalidDocumentError(f"it is too long: at most {MAX_SIDECAR_BYTES:,} bytes are allowed")


def _compact(attributes: Attributes) -> bytes:
    return json.dumps(dict(attributes), ensure_ascii=False, separators=(",", ":")).encode()


def _shown(name: object) -> str:
    """Return a value's representation on one line, shortened."""
    return f"{name!r:.100}"
