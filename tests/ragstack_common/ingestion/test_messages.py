"""Reading and writing the messages of the queues."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.core.errors import InvalidDocumentError
from ragstack_common.ingestion.messages import (
    Follow,
    check,
    failure,
    follow,
    read_checks,
    read_follow,
)
from ragstack_common.registry.lifecycle import EventMarks
from ragstack_common.registry.records import DocumentRecord, Operation, OperationKind, Status
from tests.support.documents import PROGRAM_FILES
from tests.support.events import s3_notification, sample

A, B = "s3://documents/a", "s3://documents/b"


def test_a_sample_event_of_s3_is_read() -> None:
    checks = read_checks(sample("sqs_s3_created")["Records"][0]["body"])

    assert checks == {"s3://documents/policies/travel guide.md": EventMarks("0055AED6DCD90281E5")}


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

    assert [*read_checks(body)] == [f"s3://documents/{key}"]


@pytest.mark.parametrize("key", ["folder/", ".metadata.json", "folder/.metadata.json"])
def test_folders_and_sidecars_without_a_document_are_skipped(key: str) -> None:
    assert read_checks(s3_notification((key, "1"))) == {}


@pytest.mark.parametrize("name", PROGRAM_FILES)
@pytest.mark.parametrize("suffix", ["", ".metadata.json"])
def test_program_files_are_skipped_until_they_are_deleted(name: str, suffix: str) -> None:
    key = f"people/{name}{suffix}"

    assert read_checks(s3_notification((key, "1"), ("people/report.docx", "2"))).keys() == {
        "s3://documents/people/report.docx"
    }
    assert read_checks(s3_notification((key, "1"), name="ObjectRemoved:Delete")).keys() == {
        f"s3://documents/people/{name}"
    }


def test_the_test_event_of_s3_names_no_document() -> None:
    assert read_checks(json.dumps(sample("s3_test_event"))) == {}


@pytest.mark.parametrize(
    "body",
    ["", "not json", "[]", "null", "7", '"text"', "{}", '{"Records": null}', '{"Records": [{}]}', '{"Records": [7]}',
     '{"Records": [{"s3": {"bucket": {"name": "b"}, "object": {}}}]}',
     '{"Records": [{"s3": {"bucket": {"name": "b"}, "object": {"key": 7}}}]}'],
)  # fmt: skip
def test_a_malformed_notification_is_refused_and_quoted_in_part(body: str) -> None:
    with pytest.raises(InvalidDocumentError, match="neither an S3 event notification") as caught:
        read_checks(body)

    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("reverse", [False, True])
def test_the_newest_change_counts_for_a_document_and_for_its_sidecar(reverse: bool) -> None:
    changes = [("a", "1"), ("a", "02"), ("a", "3"), ("a.metadata.json", "9"), ("b.metadata.json", "2")]

    checks = read_checks(s3_notification(*(changes[::-1] if reverse else changes)))

    assert checks == {A: EventMarks("3", "9"), B: EventMarks("", "2")}


def followed(uri: str, operation: str) -> DocumentRecord:
    return DocumentRecord(
        uri, status=Status.INDEXING, operation=Operation(operation, OperationKind.INGEST, 0.0), reason="why", attempts=3
    )


@pytest.mark.parametrize("forced", [True, False])
def test_a_requested_check_is_read_as_it_was_written(forced: bool) -> None:
    assert read_checks(check([A, B], forced=forced)) == {A: EventMarks(forced=forced), B: EventMarks(forced=forced)}


def test_a_dead_letter_is_read_as_a_forced_check() -> None:
    record = followed(A, "op")

    assert read_checks(failure(record)) == {A: EventMarks(forced=True)}
    assert read_checks(follow([record], checks=4)) == {A: EventMarks(forced=True)}
    assert json.loads(failure(record))["failed"] == {"uri": A, "operation": "op", "reason": "why", "attempts": 3}


def test_a_status_message_is_read_as_it_was_written() -> None:
    written = follow([followed(A, "op1"), followed(B, "op2"), DocumentRecord("s3://documents/c")], checks=2)

    assert read_follow(written) == Follow({A: "op1", B: "op2"}, 2)


@pytest.mark.parametrize(
    "body",
    ["", "7", "[]", "{}", '{"follow": null}', '{"follow": [["s3://documents/a"]], "checks": 0}', '{"check": null}',
     '{"check": ["s3://documents/\\udfff"]}', '{"failed": {}}', '{"follow": [7], "checks": 0}'],
)  # fmt: skip
def test_a_malformed_message_is_refused(body: str) -> None:
    for read in (read_follow, read_checks):
        with pytest.raises(InvalidDocumentError):
            read(body)


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
REQUESTS = st.dictionaries(st.sampled_from(["check", "failed", "follow", "Records", "checks", "forced", "Event"]), JSON)


@given(REQUESTS)
def test_no_message_causes_another_error(message: dict[str, Any]) -> None:
    for read in (read_checks, read_follow):
        try:
            found = read(json.dumps(message))
        except InvalidDocumentError:
            continue
        for uri in found if isinstance(found, dict) else found.operations:
            uri.encode()
