"""Reading, checking and writing sidecars. Whether the local Bedrock accepts the same ones: tests/local_bedrock."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.filters.store_rules import STORE_RULES
from ragstack_common.ingestion.sidecars import (
    RecordStructure,
    canonical_attributes,
    check_attributes,
    merged_sidecar,
    parse_sidecar,
    read_sidecar,
    write_sidecar,
)
from ragstack_common.settings.limits import MAX_SIDECAR_BYTES
from tests.support.sidecars import (
    ALL_TYPED,
    OTHER,
    REFUSED,
    TAKEN,
    record_sidecar,
    sidecar,
    typed,
)

texts = st.text(st.characters(codec="utf-8"), max_size=60)
values = st.one_of(
    texts,
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(texts, max_size=12),
)
names = texts.filter(lambda name: name and not name.startswith("x-amz-bedrock-kb-"))
attribute_sets = st.dictionaries(names, values, max_size=45)


def outcome(body: bytes, vector_store: str) -> Any:
    try:
        return read_sidecar(body, vector_store)
    except InvalidDocumentError:
        return "refused"


@pytest.mark.parametrize("name", TAKEN)
def test_a_sidecar_is_accepted_for_the_vector_stores_that_can_keep_it(name: str) -> None:
    body, taken_by = TAKEN[name]

    assert tuple(store for store in STORE_RULES if outcome(body, store) != "refused") == taken_by


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("vector_store", STORE_RULES)
def test_the_error_of_an_invalid_sidecar_is_one_line_with_the_problem(name: str, vector_store: str) -> None:
    body, words = REFUSED[name]

    with pytest.raises(InvalidDocumentError) as refusal:
        read_sidecar(body, vector_store)

    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 400


def test_typed_values_are_read_as_plain_values() -> None:
    read = parse_sidecar(sidecar(ALL_TYPED))

    assert read.attributes == {"topic": "leave", "year": 2026, "internal": False, "audience": ["engineers", "people"]}
    assert read.embedded == ("topic",)


@given(attribute_sets)
@example({f"key{number}": "ü" * 20 for number in range(35)})
def test_written_attributes_are_read_back(attributes: dict[str, Any]) -> None:
    for vector_store in STORE_RULES:
        try:
            check_attributes(attributes, vector_store)
        except InvalidDocumentError:
            body = json.dumps({"metadataAttributes": attributes}, ensure_ascii=False).encode()
            assert outcome(body, vector_store) == "refused"
        else:
            assert read_sidecar(write_sidecar(attributes), vector_store) == canonical_attributes(attributes)


@pytest.mark.parametrize(
    "attributes",
    [
        {"a": None},
        {"a": {"b": 1}},
        {"a": ("x",)},
        {"a": [1]},
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": "\ud800"},
        {"": 1},
        {"x-amz-bedrock-kb-data-source-id": "x"},
        {"a": "x" * MAX_SIDECAR_BYTES},
        {"a": ["x"] * 11},
    ],
    ids=lambda attributes: f"{attributes!r:.40}",
)
def test_invalid_attributes_are_not_written(attributes: Any) -> None:
    with pytest.raises(InvalidDocumentError):
        write_sidecar(attributes)
    with pytest.raises(InvalidDocumentError):
        check_attributes(attributes, OTHER)


def test_the_sidecar_of_a_csv_file_declares_its_columns() -> None:
    read = parse_sidecar(record_sidecar(["description"], ["city", "price"], ["id"], {"source": "listings"}))
    alone = parse_sidecar(b"""{"documentStructureConfiguration": {"type": "RECORD_BASED_STRUCTURE_METADATA",
        "recordBasedStructureMetadata": {"contentFields": [{"fieldName": "description"}]}}}""")

    assert read.attributes == {"source": "listings"}
    assert read.records == RecordStructure("description", ("city", "price"), ("id",))
    assert (alone.attributes, alone.records) == ({}, RecordStructure("description"))


def test_merging_attributes_keeps_all_other_content() -> None:
    own = record_sidecar(attributes={"topic": typed("STRING", "stringValue", "own", includeForEmbedding=True)})

    merged = parse_sidecar(merged_sidecar(own, {"topic": "given", "corpus": "people"}))
    alone = parse_sidecar(merged_sidecar(record_sidecar(), {"corpus": "people"}))

    assert (merged.attributes, merged.embedded) == ({"topic": "own", "corpus": "people"}, ("topic",))
    assert merged.records == alone.records == RecordStructure("text")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (record_sidecar(type="OTHER"), "documentStructureConfiguration must be"),
        (record_sidecar(recordBasedStructureMetadata=None), "needs recordBasedStructureMetadata"),
        (record_sidecar(recordBasedStructureMetadata={}), "contentFields must name one column, not 0"),
        (record_sidecar(["a", "b"]), "contentFields must name one column, not 2"),
        (record_sidecar([""]), "contentFields must be a list of"),
        (record_sidecar([1]), "contentFields must be a list of"),
        (record_sidecar(recordBasedStructureMetadata={"contentFields": None}), "contentFields must be a list of"),
        (record_sidecar(recordBasedStructureMetadata={"contentFields": ["a"]}), "contentFields must be a list of"),
        (record_sidecar(include=["a", "b"], exclude=["b"]), "'b' is both in fieldsToInclude and in fieldsToExclude"),
        (record_sidecar(include=["x-amz-bedrock-kb-x"]), "begins with x-amz-bedrock-kb-"),
        (b'{"documentStructureConfiguration": []}', "documentStructureConfiguration must be"),
        (record_sidecar(attributes=[]), "it must be"),
    ],
)
def test_an_invalid_record_structure_is_refused(body: bytes, words: str) -> None:
    with pytest.raises(InvalidDocumentError) as refusal:
        read_sidecar(body, OTHER)

    assert words in str(refusal.value)
