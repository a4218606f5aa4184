"""S3's notifications, read."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.document_events import DocumentEvent, newest, parse_message
from ragstack_common.errors import InvalidDocumentError
from tests.support.events import s3_notification, sample


def event(key: str, sequencer: str, *, of_sidecar: bool = False) -> DocumentEvent:
    return DocumentEvent("documents", key, sequencer, of_sidecar)


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
        parse_message(body)

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
def test_the_newest_change_of_a_document_is_kept_whatever_the_order_and_length_of_sequencers(
    older: str, newer: str, reverse: bool
) -> None:
    events = [event("a", older), event("a", newer)]

    assert newest(events[::-1] if reverse else events) == {"s3://documents/a": event("a", newer)}


@pytest.mark.parametrize("reverse", [False, True])
def test_a_change_of_the_document_itself_is_kept_over_one_of_its_sidecar(reverse: bool) -> None:
    events: list[Any] = [event("a", "1"), event("a", "9", of_sidecar=True), event("b", "2", of_sidecar=True)]

    kept = newest(events[::-1] if reverse else events)

    assert kept["s3://documents/a"] == event("a", "1")
    assert kept["s3://documents/b"].of_sidecar
