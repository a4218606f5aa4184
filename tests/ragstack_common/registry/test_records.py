"""Records as items of the table, and back."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from ragstack_common.registry.catalogue import counted_under
from ragstack_common.registry.documents import DocumentRegistry, Listing, RecordChange
from ragstack_common.registry.records import (
    AttributeValue,
    DocumentRecord,
    Observation,
    Operation,
    OperationKind,
    Status,
    Transition,
    record_from_item,
    record_to_item,
)
from ragstack_common.registry.table import INVALID_ITEMS, LISTED, Item, document_id, document_key
from tests.ragstack_common.registry.strategies import RECORDS, TEXTS
from tests.support.registry_table import TABLE
from tests.support.soak import examples

STORED: Any = json.loads((Path(__file__).parent / "stored_items.json").read_text(encoding="utf-8"))
"""Items as the first release wrote them."""

ATTRIBUTES: dict[str, AttributeValue] = {
    "corpus": "handbook",
    "version": "2",
    "year": 2024,
    "score": 0.25,
    "public": True,
    "tags": ["a", "b"],
    "title": "Größe 日",
}
FULL = DocumentRecord(
    "s3://bucket/reports/2024.pdf",
    revision=7,
    status=Status.INDEXED,
    reason="some pages are images",
    observed=Observation(
        etag='"5d41402abc4b2a76b9719d911017c592"',
        version_id="v1",
        size=1234,
        last_modified=1700000000.0,
        sidecar_etag='"s"',
        sidecar_version_id="w1",
        sidecar_last_modified=1700000001.5,
        attributes=ATTRIBUTES,
        refusal="refused once",
    ),
    sequencer="0055AED6DCD90281E5",
    sidecar_sequencer="0055AED6DCD90281E6",
    operation=Operation("op-1", OperationKind.INGEST, 1700000100.123456, 1700000050.25),
    again=True,
    attempts=2,
    in_knowledge_base=True,
    knowledge_base_status="INDEXED",
    knowledge_base_updated_at=1700000060.125,
    counted=counted_under(ATTRIBUTES),
    created_at=1700000002.0,
    received_at=1700000003.75,
    updated_at=1700000061.0,
    finished_at=1700000061.0,
    expires_at=1702592061.0,
    history=(
        Transition(1700000003.75, Status.SUBMITTING),
        Transition(1700000061.0, Status.INDEXED, "some pages are images"),
    ),
)
NEW = DocumentRecord(
    "s3://bucket/a.txt", revision=1, created_at=1700000000.5, received_at=1700000000.5, updated_at=1700000000.5
)


@pytest.mark.parametrize(("name", "record"), [("full", FULL), ("new", NEW)])
def test_items_of_the_first_release_are_read_and_have_the_same_types(name: str, record: DocumentRecord) -> None:
    written = record_to_item(record, STORED[name]["write"]["S"])

    assert record_from_item(STORED[name]) == record
    assert {key: list(value) for key, value in written.items()} == {
        key: list(value) for key, value in STORED[name].items()
    }
    assert record_from_item(written) == record


@given(RECORDS, TEXTS)
@settings(max_examples=examples(200))
def test_every_record_survives_the_conversion_to_an_item(record: DocumentRecord, write: str) -> None:
    item = record_to_item(record, write)

    assert record_from_item(item) == record
    assert item["write"] == {"S": write}
    assert item.items() >= document_key(record.id).items()
    assert {"S": ""} not in item.values(), "an index refuses empty texts"


@given(RECORDS)
def test_an_item_of_an_index_holds_what_a_listing_shows(record: DocumentRecord) -> None:
    item = record_to_item(record, "write")
    listed = {name: value for name, value in item.items() if name in {*LISTED, "pk", "sk", "uri", "kind"}}

    read = record_from_item(listed)

    assert (read.uri, read.status, read.reason, read.attempts, read.corpus) == (
        record.uri,
        record.status,
        record.reason,
        record.attempts,
        record.corpus,
    )
    assert (read.observed.attributes, read.observed.etag, read.observed.size) == (
        record.observed.attributes,
        record.observed.etag,
        record.observed.size,
    )
    assert (read.operation, read.history, read.counted) == (None, (), ())


@pytest.mark.parametrize(
    ("corpus", "written"), [("handbook", {"S": "handbook"}), ("", None), (7, None), (["a"], None), (True, None)]
)
def test_only_a_corpus_that_is_a_text_is_a_key_of_the_index(corpus: Any, written: Any) -> None:
    record = DocumentRecord("s3://bucket/a", 1, observed=Observation('"e"', attributes={"corpus": corpus}))

    assert record_to_item(record, "write").get("corpus") == written
    assert record_from_item(record_to_item(record, "write")).observed.attributes == {"corpus": corpus}


def test_document_ids_equal_those_of_the_first_release() -> None:
    assert document_id("s3://documents/a.txt") == "205061731fc98f046f5d35000c143412"


class Measured:
    """Keeps metrics."""

    def __init__(self) -> None:
        self.values: list[tuple[str, str, float]] = []

    def add_metric(self, name: str, unit: str, value: float) -> None:
        self.values.append((name, unit, value))


@pytest.mark.parametrize(
    "damage",
    [
        {"status": {"S": "NO SUCH"}},
        {"attributes": {"S": "{"}},
        {"attributes": {"N": "1"}},
        {"history": {"S": "[1]"}},
        {"operation": {"S": '{"id": "7"}'}},
        {"updated_at": {"S": "yesterday"}},
        {"status": {"S": "NO SUCH"}, "revision": None},
    ],
    ids=str,
)
def test_an_invalid_item_reads_as_unknown_until_a_write_replaces_it(
    dynamodb: Any, damage: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged and counted."""
    item: Item = {**record_to_item(FULL, "write"), **damage}
    dynamodb.put_item(TableName=TABLE, Item={name: value for name, value in item.items() if value is not None})
    metrics = Measured()
    registry = DocumentRegistry(TABLE, dynamodb, metrics=metrics)

    read = registry.read([FULL.uri])[FULL.uri]
    lost = registry.write([RecordChange(read, NEW_VERSION)])

    assert (read.status, read.in_knowledge_base, read.observed) == (Status.WAITING, True, Observation())
    assert metrics.values == [(INVALID_ITEMS, "Count", 1)]
    assert FULL.uri in caplog.text
    assert lost == set()
    assert registry.read([FULL.uri])[FULL.uri].observed == NEW_VERSION.observed


NEW_VERSION = DocumentRecord(FULL.uri, status=Status.SUBMITTING, observed=Observation('"new"'))


def test_an_invalid_item_appears_in_listings_and_scans_as_waiting(dynamodb: Any) -> None:
    dynamodb.put_item(TableName=TABLE, Item={**record_to_item(FULL, "write"), "attributes": {"S": "{"}})
    registry = DocumentRegistry(TABLE, dynamodb)

    (listed,) = registry.page(Listing()).documents
    ((scanned,),) = registry.scan()

    assert (listed.uri, listed.status) == (scanned.uri, scanned.status) == (FULL.uri, Status.WAITING)
    assert registry.find(FULL.id) == scanned


def test_attributes_of_a_later_version_are_ignored() -> None:
    item = {**record_to_item(FULL, "write"), "noted": {"M": {"by": {"S": "hand"}}}}

    assert record_from_item(item) == FULL
