"""S3's notifications and the project's own messages, read."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.errors import InvalidDocumentError
from ragstack_common.ingestion.events import DocumentEvent, parse_notification
from ragstack_common.ingestion.messages import (
    Follow,
    QueueMessage,
    failure,
    follow,
    look,
    messages_of,
    read_follow,
    read_looks,
)
from ragstack_common.registry.life import Seen
from ragstack_common.registry.records import DocumentRecord, Operation, OperationKind, Status
from tests.support.events import s3_notification, sample, sqs_event

A, B = "s3://documents/a", "s3://documents/b"


def event(key: str, sequencer: str, *, of_sidecar: bool = False) -> DocumentEvent:
    return DocumentEvent("documents", key, sequencer, of_sidecar)


def parse_message(body: str) -> list[DocumentEvent]:
    return parse_notification(json.loads(body), body)


def test_a_sample_of_the_service_is_read() -> None:
    [read] = parse_message(sample("sqs_s3_created")["Records"][0]["body"])

    assert read == event("policies/travel guide.md", "0055AED6DCD90281E5")
    assert read.uri == "s3://documents/policies/travel guide.md"


@pytest.mark.parametrize(
    ("quoted", "key"),
    [
        ("a+b.txt", "a b.txt"),
        ("a%2Bb.txt", "a+b.txt"),
        ("100%25.txt", "100%.txt"),
        ("%2541.txt", "%41.txt"),
        ("Gr%C3%B6%C3%9Fe/%E6%97%A5%E6%9C%AC.txt", "Größe/日本.txt"),
        ("a%26b%3Dc%23d%3F.txt", "a&b=c#d?.txt"),
        ("a/b%2Fc.txt", "a/b/c.txt"),
    ],
)
def test_a_key_is_unquoted_as_s3_quoted_it(quoted: str, key: str) -> None:
    body = s3_notification(("KEY", "1")).replace('"KEY"', json.dumps(quoted))

    assert [read.key for read in parse_message(body)] == [key]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda key: not key.endswith("/")))
def test_every_key_survives_the_way_through_a_notification(key: str) -> None:
    assert [read.key for read in parse_message(s3_notification((f"x{key}", "1")))] in (
        [f"x{key}"],
        [f"x{key}".removesuffix(".metadata.json")],
    )


def test_a_sidecar_is_a_change_of_its_document() -> None:
    [read] = parse_message(s3_notification(("a b.pdf.metadata.json", "1")))

    assert read == event("a b.pdf", "1", of_sidecar=True)


@pytest.mark.parametrize("key", ["folder/", ".metadata.json", "folder/.metadata.json"])
def test_folder_markers_and_sidecars_of_no_document_are_no_documents(key: str) -> None:
    assert parse_message(s3_notification((key, "1"))) == []


def test_the_test_event_of_s3_carries_no_change() -> None:
    assert parse_message(json.dumps(sample("s3_test_event"))) == []


def test_several_changes_in_one_message_are_all_read() -> None:
    assert [read.key for read in parse_message(s3_notification(("a", "1"), ("b", "2")))] == ["a", "b"]


@pytest.mark.parametrize(
    "body",
    ["", "not json", "[]", "null", "7", '"text"', "{}", '{"Records": null}', '{"Records": [{}]}', '{"Records": [7]}',
     '{"Records": [{"s3": {"bucket": {"name": "b"}, "object": {}}}]}',
     '{"Records": [{"s3": {"bucket": {"name": "b"}, "object": {"key": 7}}}]}'],
)  # fmt: skip
def test_a_message_that_is_no_notification_is_refused_with_its_beginning(body: str) -> None:
    with pytest.raises(InvalidDocumentError, match="no S3 event notification") as caught:
        read_looks(body)

    assert len(str(caught.value)) < 300


def test_a_change_without_a_sequencer_is_read_too() -> None:
    body = json.loads(s3_notification(("a", "1")))
    del body["Records"][0]["s3"]["object"]["sequencer"]

    assert parse_message(json.dumps(body)) == [event("a", "")]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("0055AED6DCD90281E5", "0055AED6DCD90281E6"),
        ("0055", "0056AA"),
        ("0055AA", "0056"),
        ("", "0001"),
        ("00A", "00B0"),
    ],
)
def test_the_newest_change_of_a_document_counts_whatever_the_order_and_length_of_sequencers(
    older: str, newer: str, reverse: bool
) -> None:
    changes = [("a", older), ("a", newer)]

    assert read_looks(s3_notification(*(changes[::-1] if reverse else changes))) == {A: Seen(newer)}


@pytest.mark.parametrize("reverse", [False, True])
def test_changes_of_a_document_and_of_its_sidecar_are_told_apart(reverse: bool) -> None:
    changes = [("a", "1"), ("a.metadata.json", "9"), ("b.metadata.json", "2")]

    looks = read_looks(s3_notification(*(changes[::-1] if reverse else changes)))

    assert looks == {A: Seen("1", "9"), B: Seen("", "2")}


def followed(uri: str, operation: str) -> DocumentRecord:
    return DocumentRecord(
        uri, status=Status.INDEXING, operation=Operation(operation, OperationKind.INGEST, 0.0), reason="why", attempts=3
    )


@pytest.mark.parametrize("forced", [True, False])
def test_a_request_to_look_is_read_as_it_was_written(forced: bool) -> None:
    assert read_looks(look([A, B], forced=forced)) == {A: Seen(forced=forced), B: Seen(forced=forced)}


def test_a_look_without_a_word_about_force_is_not_forced() -> None:
    assert read_looks(json.dumps({"look": [A]})) == {A: Seen()}


def test_what_lies_in_the_dead_letter_queue_is_a_request_to_look() -> None:
    record = followed(A, "op")

    assert read_looks(failure(record)) == {A: Seen(forced=True)}
    assert read_looks(follow([record], checks=4)) == {A: Seen(forced=True)}
    assert json.loads(failure(record))["failed"] == {"uri": A, "operation": "op", "reason": "why", "attempts": 3}


def test_what_is_followed_is_read_as_it_was_written() -> None:
    written = follow([followed(A, "op1"), followed(B, "op2"), DocumentRecord("s3://documents/c")], checks=2)

    assert read_follow(written) == Follow({A: "op1", B: "op2"}, 2)


@pytest.mark.parametrize(
    "body",
    ["", "7", "[]", "{}", '{"follow": null}', '{"follow": [["s3://documents/a"]], "checks": 0}',
     '{"follow": [["s3://documents/a", "x"]]}', '{"follow": [["s3://documents/a", "x"]], "checks": "often"}',
     '{"follow": [["s3://documents/\\ud800", "x"]], "checks": 0}', '{"look": ["s3://documents/a"]}'],
)  # fmt: skip
def test_a_status_message_that_is_none_is_refused(body: str) -> None:
    with pytest.raises(InvalidDocumentError):
        read_follow(body)


@pytest.mark.parametrize(
    "body",
    ['{"look": null}', '{"look": 7}', '{"look": ["s3://documents/\\udfff"]}', '{"failed": {}}', '{"failed": null}',
     '{"failed": {"uri": "s3://documents/\\ud800"}}', '{"follow": [7], "checks": 0}'],
)  # fmt: skip
def test_a_request_of_ours_that_is_malformed_is_refused(body: str) -> None:
    with pytest.raises(InvalidDocumentError):
        read_looks(body)


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
REQUESTS = st.dictionaries(st.sampled_from(["look", "failed", "follow", "Records", "checks", "forced", "Event"]), JSON)


@given(REQUESTS)
def test_no_message_whatever_is_met_with_another_error(message: dict[str, Any]) -> None:
    for read in (read_looks, read_follow):
        try:
            found = read(json.dumps(message))
        except InvalidDocumentError:
            continue
        for uri in found if isinstance(found, dict) else found.operations:
            uri.encode()


def test_the_records_of_an_invocation_are_read() -> None:
    read = messages_of(sqs_event("one", "two", receives=3))

    assert [(m.message_id, m.body, m.receives) for m in read] == [("message-0", "one", 3), ("message-1", "two", 3)]
    assert all(isinstance(m, QueueMessage) and m.receipt_handle for m in read)
