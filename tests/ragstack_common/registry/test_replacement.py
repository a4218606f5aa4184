"""Items that cannot be read are replaced as they were read, or not at all."""

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ConnectionError as LostConnection

from ragstack_common.errors import RegistryError
from ragstack_common.registry.catalogue import Catalogue, counted_under
from ragstack_common.registry.documents import Change, DocumentRegistry
from ragstack_common.registry.items import ATTRIBUTES, Item, item_of
from ragstack_common.registry.records import DocumentRecord, Observation, Operation, OperationKind, Status
from ragstack_common.registry.replacement import made_anew
from ragstack_common.registry.table import INDEXES, URI
from tests.support.registry_table import TABLE

NOW = 1_800_000_000.0
WHOLE = DocumentRecord(
    "s3://bucket/a",
    revision=7,
    status=Status.INDEXED,
    reason="r",
    observed=Observation('"e"', "v", 3, 1.0, '"s"', "w", 2.0, {"corpus": "x"}, "refused"),
    sequencer="01",
    sidecar_sequencer="02",
    operation=Operation("7", OperationKind.INGEST, 1.0),
    knowledge_base_status="INDEXED",
    knowledge_base_updated_at=1.0,
    counted=counted_under({"corpus": "x"}),
    finished_at=1.0,
    expires_at=1.0,
)
"""A record that has everything."""


@pytest.fixture
def registry(dynamodb: Any) -> DocumentRegistry:
    """Knows one document, whose item says nothing of how often it was written."""
    registry = DocumentRegistry(TABLE, dynamodb)
    assert registry.write([Change(DocumentRecord(WHOLE.uri), WHOLE)]) == set()
    edit(registry, revision=None)
    return registry


def edit(registry: DocumentRegistry, **changes: Any) -> None:
    item = {**the_item(registry), **changes}
    registry.client.put_item(TableName=TABLE, Item={name: value for name, value in item.items() if value is not None})


def the_item(registry: DocumentRegistry) -> Item:
    return registry.items([WHOLE.id])[WHOLE.id]


def counts(registry: DocumentRegistry) -> dict[str, int]:
    return {str(f.value): f.documents for f in Catalogue(registry.client, TABLE).facets("corpus")}


def test_one_record_that_cannot_be_read_is_an_error_of_its_own(registry: DocumentRegistry) -> None:
    other = DocumentRecord("s3://bucket/b", status=Status.WAITING)
    registry.write([Change(DocumentRecord(other.uri), other)])

    found = registry.read_each([WHOLE.uri, other.uri, "s3://bucket/new"])

    error = found.pop(WHOLE.uri)
    assert isinstance(error, RegistryError)
    assert "s3://bucket/a" in str(error)
    assert "ragstack reconcile" in str(error)
    assert found == {other.uri: replace(other, revision=1), "s3://bucket/new": DocumentRecord("s3://bucket/new")}
    with pytest.raises(RegistryError, match="it has no revision"):
        registry.read([other.uri, WHOLE.uri])


def test_an_error_names_the_document_that_was_asked_for_where_the_item_does_not(registry: DocumentRegistry) -> None:
    edit(registry, full_uri={"N": "1"})

    with pytest.raises(RegistryError, match=r"The registry's record of s3://bucket/a \(item DOCUMENT#"):
        registry.read([WHOLE.uri])


def test_what_is_put_there_says_that_somebody_must_look_and_is_counted_as_before(registry: DocumentRegistry) -> None:
    item = the_item(registry)

    assert registry.replace(item, made_anew(item, WHOLE.uri, "why", NOW))

    record = registry.read([WHOLE.uri])[WHOLE.uri]
    assert (record.status, record.reason, record.counted) == (Status.WAITING, "why", WHOLE.counted)
    assert record.in_knowledge_base
    assert not record.observed.is_present
    assert record.revision > WHOLE.revision, "who read it before has lost"
    assert counts(registry) == {"x": 1}
    assert registry.write([Change(WHOLE, WHOLE)]) == {WHOLE.uri}


def test_a_revision_that_can_be_read_goes_on(registry: DocumentRegistry) -> None:
    edit(registry, revision={"N": "7"}, status={"S": "NO SUCH"})
    item = the_item(registry)

    assert registry.replace(item, made_anew(item, WHOLE.uri, "why", NOW))
    assert registry.read([WHOLE.uri])[WHOLE.uri].revision == 8


def test_what_is_removed_is_no_longer_counted(registry: DocumentRegistry) -> None:
    assert registry.replace(the_item(registry), None)

    assert registry.items([WHOLE.id]) == {}
    assert counts(registry) == {}


def test_what_cannot_be_read_of_the_counts_changes_none(registry: DocumentRegistry) -> None:
    edit(registry, counted={"S": '[["corpus", "x"]]'})

    assert registry.replace(the_item(registry), None)
    assert counts(registry) == {"x": 1}


def test_whoever_changes_any_attribute_meanwhile_is_not_written_over(registry: DocumentRegistry) -> None:
    read = the_item(registry)
    record = made_anew(read, WHOLE.uri, "why", NOW)

    for number, name in enumerate(sorted(ATTRIBUTES)):
        for value in ({"S": "changed"}, None) if name in read else ({"S": "new"},):
            edit(registry, **{name: value})
            assert not registry.replace(read, record if number % 2 else None), (name, value)
        edit(registry, **{name: read.get(name)})
    assert the_item(registry) == read
    assert registry.replace(read, record)


def test_whatever_an_item_holds_it_can_be_compared_and_replaced(registry: DocumentRegistry) -> None:
    values: list[Any] = [
        {"B": b"\x00"},
        {"NULL": True},
        {"L": [{"M": {"x": {"N": "1"}}}]},
        {"SS": ["b", "a"]},
        {"S": ""},
    ]
    for number, value in enumerate(values):
        edit(registry, **dict.fromkeys(ATTRIBUTES - {URI, *INDEXES.values()}, value), extra=values[number - 1])
        item = the_item(registry)

        assert registry.replace(item, made_anew(item, WHOLE.uri, "why", NOW))
        assert registry.read([WHOLE.uri])[WHOLE.uri].status is Status.WAITING


def test_an_item_with_nothing_but_its_key_is_replaced_and_none_that_is_gone(registry: DocumentRegistry) -> None:
    key = {name: value for name, value in the_item(registry).items() if name in ("pk", "sk")}
    registry.client.put_item(TableName=TABLE, Item=key)
    item = the_item(registry)

    registry.client.delete_item(TableName=TABLE, Key=key)
    assert not registry.replace(item, made_anew(item, WHOLE.uri, "why", NOW))
    assert not registry.replace(item, None)
    assert registry.items([WHOLE.id]) == {}

    registry.client.put_item(TableName=TABLE, Item=key)
    assert registry.replace(item, made_anew(item, WHOLE.uri, "why", NOW))


def test_a_replacement_whose_answer_was_lost_is_known_as_ones_own(dynamodb: Any, registry: DocumentRegistry) -> None:
    class Twice:
        def transact_write_items(self, **parameters: Any) -> Any:
            dynamodb.transact_write_items(**parameters)
            return dynamodb.transact_write_items(**parameters)

        def __getattr__(self, name: str) -> Any:
            return getattr(dynamodb, name)

    item = the_item(registry)
    assert DocumentRegistry(TABLE, Twice()).replace(item, made_anew(item, WHOLE.uri, "why", NOW))  # type: ignore[arg-type]
    assert counts(registry) == {"x": 1}


def test_a_table_that_does_not_answer_is_an_error(registry: DocumentRegistry) -> None:
    class Lost:
        def transact_write_items(self, **_: Any) -> Any:
            raise LostConnection(error="gone")

    with pytest.raises(LostConnection):
        DocumentRegistry(TABLE, Lost()).replace(the_item(registry), None)  # type: ignore[arg-type]


def test_a_record_has_every_attribute_that_is_compared() -> None:
    assert {*item_of(WHOLE, "write"), "format"} - {"pk", "sk"} == ATTRIBUTES
