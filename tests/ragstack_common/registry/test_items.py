"""Records as items, and back."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_common.errors import RegistryError
from ragstack_common.registry.items import FORMAT, Item, item_of, listed_of, plain_of, record_of, uri_of
from ragstack_common.registry.records import DocumentRecord, Observation, Operation, OperationKind, Status
from ragstack_common.registry.table import LISTED, document_id, document_key
from tests.ragstack_common.registry.damage import damaged, damages
from tests.ragstack_common.registry.strategies import RECORDS, TEXTS
from tests.support.registry_table import TABLE
from tests.support.soak import examples

LONE = "\ud800"
WRITTEN = DocumentRecord(
    "s3://bucket/a",
    revision=3,
    status=Status.INDEXED,
    observed=Observation('"e"', attributes={"corpus": "x"}),
    counted=(("", "null"), ("corpus", '"x"')),
)


@given(RECORDS, TEXTS)
@settings(max_examples=examples(200))
def test_every_record_survives_the_way_through_an_item(record: DocumentRecord, write: str) -> None:
    item = item_of(record, write)

    assert record_of(item) == record
    assert item["write"] == {"S": write}
    assert {name: item[name] for name in ("pk", "sk")} == {
        name: {"S": value} for name, value in document_key(record.uri).items()
    }


@given(RECORDS)
@settings(max_examples=examples(200))
def test_an_item_can_be_sent_and_holds_no_empty_text_that_an_index_would_refuse(record: DocumentRecord) -> None:
    item = item_of(record, "write")

    json.dumps(item, ensure_ascii=False).encode()
    assert {"S": ""} not in item.values()
    assert all(len(value) == 1 for value in item.values())


def test_records_survive_the_table_itself(dynamodb: Any) -> None:
    @given(RECORDS)
    @settings(max_examples=25, deadline=None)
    def check(record: DocumentRecord) -> None:
        dynamodb.put_item(TableName=TABLE, Item=item_of(record, "write"))

        key = {name: {"S": value} for name, value in document_key(record.uri).items()}
        assert record_of(dynamodb.get_item(TableName=TABLE, Key=key)["Item"]) == record

    check()


@given(RECORDS)
def test_an_item_of_an_index_reads_as_far_as_it_goes(record: DocumentRecord) -> None:
    item = item_of(record, "write")
    listed = {name: value for name, value in item.items() if name in {*LISTED, "pk", "sk", "uri", "kind"}}

    read = listed_of(listed)

    assert (read.uri, read.status, read.reason, read.attempts) == (
        record.uri,
        record.status,
        record.reason,
        record.attempts,
    )
    assert (read.observed.attributes, read.observed.etag, read.observed.size, read.corpus) == (
        record.observed.attributes,
        record.observed.etag,
        record.observed.size,
        record.corpus,
    )
    assert (read.operation, read.history, read.counted) == (None, (), ())


@pytest.mark.parametrize(
    "change",
    [{"reason": LONE}, {"observed": Observation('"e"', attributes={"corpus": LONE})},
     {"observed": Observation('"e"', attributes={LONE: 1})}],
    ids=["reason", "value", "name"],
)  # fmt: skip
def test_half_a_character_makes_no_item_that_cannot_be_sent(change: dict[str, Any]) -> None:
    item = item_of(DocumentRecord("s3://bucket/a", **change), "write")

    json.dumps(item, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("corpus", "written"), [("handbook", "handbook"), ("", None), (7, None), (["a"], None), (True, None)]
)
def test_only_a_corpus_that_is_a_name_is_a_key_of_the_index(corpus: Any, written: str | None) -> None:
    record = DocumentRecord("s3://bucket/a", 1, observed=Observation('"e"', attributes={"corpus": corpus}))

    assert plain_of(item_of(record, "write")).get("corpus") == written
    assert record_of(item_of(record, "write")).observed.attributes == {"corpus": corpus}


def test_a_number_is_read_whole_where_it_is_whole() -> None:
    plain = plain_of({"a": {"N": "3"}, "b": {"N": "3.5"}, "c": {"N": "1e-07"}, "d": {"BOOL": True}, "e": {"S": "3"}})

    assert plain == {"a": 3, "b": 3.5, "c": 1e-07, "d": True, "e": "3"}
    assert isinstance(plain["a"], int)


def test_what_an_operation_was_is_kept_to_the_fraction_of_a_second() -> None:
    operation = Operation("7", OperationKind.DELETE, 1234567890.123456, 1234567891.0000001)
    record = DocumentRecord("s3://bucket/a", 1, status=Status.DELETING, operation=operation)

    assert record_of(item_of(record, "write")).operation == operation


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_document_has_one_id_for_ever_and_no_other_document_has_it(one: str, other: str) -> None:
    assert len(document_id(one)) == 32
    assert (document_id(one) == document_id(other)) == (one == other)


def test_a_documents_id_is_what_it_was_in_the_first_release() -> None:
    assert document_id("s3://documents/policies/travel guide.md") == document_id(
        replace(DocumentRecord("s3://documents/policies/travel guide.md"), attempts=9).uri
    )
    assert document_id("s3://documents/a.txt") == "205061731fc98f046f5d35000c143412"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"status": None}, "it has no status"),
        ({"revision": None}, "it has no revision"),
        ({"revision": {"N": "0"}}, "its revision is 0"),
        ({"revision": {"S": "3"}}, "its revision is of the type S, not N"),
        ({"revision": {"N": "2.5"}}, "its revision is 2.5"),
        ({"attempts": {"N": "-1"}}, "its attempts is -1"),
        ({"status": {"S": "NO SUCH"}}, "'NO SUCH' is not a valid Status"),
        ({"status": {"S": "UPLOADED"}}, "its status is UPLOADED"),
        ({"full_uri": {"S": "s3://bucket/b"}}, "its full_uri is not that of its key"),
        ({"uri": {"S": "s3://bucket/b"}}, "its uri is not that of the document"),
        ({"kind": {"S": "OTHER"}}, "its kind is not that of the document"),
        ({"corpus": {"S": "y"}}, "its corpus is not that of the document"),
        ({"updated_at": {"N": "1e60"}}, "which is no time"),
        ({"again": {"S": "no"}}, "its again is of the type S, not BOOL"),
        ({"attributes": {"S": "{"}}, "its attributes is no JSON"),
        ({"attributes": {"S": '{"x": null}'}}, "its attribute 'x' cannot have the value None"),
        ({"attributes": {"S": '{"x": NaN}'}}, "its attribute 'x' cannot have the value nan"),
        ({"counted": {"S": '[["corpus", "x"]]'}}, "its counted is [['corpus', 'x']]"),
        ({"counted": {"S": '[["", "null"], ["", "null"]]'}}, "its counted is"),
        ({"counted": {"S": f'[["{"k" * 1000}", "null"]]'}}, "its counted is [['kkk"),
        ({"counted": {"S": '["a1"]'}}, "its counted is ['a1']"),
        ({"history": {"S": '[[1, "NO SUCH", null]]'}}, "its history has the line [1, 'NO SUCH', None]"),
        ({"operation": {"S": '{"id": "7", "kind": "INGEST", "lease_until": "x"}'}}, "its operation is {'id': '7'"),
        ({"operation": {"S": '{"id": "7", "kind": "INGEST", "lease_until": 1, "new": 1}'}}, "its operation is {'id'"),
        ({"attributes": {"S": "null"}}, "its attributes is null"),
        ({"history": {"S": "[1]"}}, "its history has the line 1"),
        ({FORMAT: {"S": "2"}}, "its format is of the type S, not N"),
    ],
    ids=str,
)  # fmt: skip
def test_what_somebody_edited_is_refused_by_name_with_what_to_do(change: dict[str, Any], says: str) -> None:
    with pytest.raises(RegistryError) as raised:
        record_of(damaged(item_of(WRITTEN, "write"), change), "s3://bucket/a")

    told, key = str(raised.value), f"DOCUMENT#{WRITTEN.id}/DOCUMENT"
    assert told.startswith(f"The registry's record of s3://bucket/a (item {key}) cannot be read: ")
    assert says in told
    assert told.endswith("`ragstack reconcile` makes it anew from what lies in the bucket")
    assert "\n" not in told


def test_what_a_newer_version_wrote_is_refused_with_what_to_do() -> None:
    item: Item = {**item_of(WRITTEN, "write"), FORMAT: {"N": "2"}, "status": {"S": "NO SUCH"}}

    for read in (record_of, listed_of):
        with pytest.raises(RegistryError, match=r"by a newer version .* form 2, .* left alone. Deploy the newer"):
            read(item)


def test_attributes_that_nobody_knows_are_passed_over() -> None:
    item = {**item_of(WRITTEN, "write"), FORMAT: {"N": "1"}, "noted": {"M": {"by": {"S": "hand"}}}}

    assert record_of(item) == WRITTEN


@given(RECORDS, damages())
def test_an_item_is_read_soundly_or_refused_whatever_was_done_to_it(
    record: DocumentRecord, changes: dict[str, Any]
) -> None:
    item = damaged(item_of(record, "write"), changes)

    try:
        read = record_of(item)
    except RegistryError:
        assert uri_of(item) in (record.uri, None)
        return
    assert read.uri == record.uri
    assert read.revision > 0
    assert record_of(item_of(read, "another")) == read
