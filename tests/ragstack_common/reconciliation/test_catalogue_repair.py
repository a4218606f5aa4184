"""The catalogue's counts are repaired, unless documents change."""

from collections.abc import Iterator
from typing import Any

import pytest

from ragstack_common.registry.catalogue import Catalogue, SharedValues
from ragstack_common.registry.documents import DocumentRegistry
from ragstack_common.registry.records import DocumentRecord, Status
from ragstack_common.registry.snapshot import SNAPSHOT_MESSAGE, read_if_changed
from ragstack_common.registry.table import STATUSES
from tests.ragstack_common.reconciliation.stack import Stack


def _spoil(stack: Stack, value: str, count: int | None, partition: str = "CATALOGUE") -> None:
    key = {"pk": {"S": partition}, "sk": {"S": value}}
    if count is None:
        stack.aws.dynamodb.delete_item(TableName=stack.bucket, Key=key)
        return
    item = {**key, "documents": {"N": str(count)}}
    stack.aws.dynamodb.put_item(TableName=stack.bucket, Item=item)


def _counts(stack: Stack) -> dict[tuple[str, Any], int]:
    catalogue = Catalogue(stack.aws.dynamodb, stack.bucket)
    return {("", None): catalogue.documents()} | {(f.key, f.value): f.documents for f in catalogue.facets()}


def test_wrong_counts_are_repaired_and_reported(stack: Stack) -> None:
    stack.indexed("a.txt", "b.txt", corpus="x", tags=["one", "two"])
    right = _counts(stack)
    _spoil(stack, 'corpus\x1f"x"', 7)
    _spoil(stack, 'tags\x1f"one"', None)
    _spoil(stack, 'tags\x1f"two"', -1)
    _spoil(stack, 'gone\x1f"for ever"', 3)
    _spoil(stack, "INDEXED", 9, STATUSES)

    job = stack.reconcile()
    afterwards = stack.reconcile()

    assert right == {("", None): 2, ("corpus", "x"): 2, ("tags", "one"): 2, ("tags", "two"): 2}
    assert _counts(stack) == right
    assert job.status == "COMPLETE"
    assert job.report["differences_in_all"] == 5
    assert job.report["catalogue"] == {
        "values": 5,
        "differences": 5,
        "repaired": 5,
        "samples": [
            {"value": 'corpus\x1f"x"', "was": 7, "is": 2},
            {"value": 'gone\x1f"for ever"', "was": 3, "is": 0},
            {"value": 'tags\x1f"one"', "was": 0, "is": 2},
            {"value": 'tags\x1f"two"', "was": -1, "is": 2},
            {"value": "INDEXED", "was": 9, "is": 2},
        ],
    }
    assert afterwards.report["catalogue"] == {"values": 5, "differences": 0, "repaired": 0}


def _snapshot(stack: Stack) -> SharedValues | None:
    found = read_if_changed(stack.aws.s3, stack.settings.snapshot_bucket, None)
    assert found is not None
    return found[0]


def test_documents_that_are_indexed_have_a_snapshot_written(stack: Stack) -> None:
    stack.indexed("a.txt", "b.txt", corpus="x")
    stack.indexed("c.txt", "d.txt", corpus="y")

    messages = stack.take("snapshots")
    again = stack.service().process(messages, lambda: 60.0)

    assert [message.body for message in messages] == [SNAPSHOT_MESSAGE] * 2, "an hour passed between them"
    assert again == []
    assert _snapshot(stack) == SharedValues(4, {"corpus": {"x": 2, "y": 2}}, left_out=0)


def test_a_snapshot_that_cannot_be_requested_delays_no_document(stack: Stack) -> None:
    stack.aws.sqs.delete_queue(QueueUrl=stack.queues["snapshots"])

    stack.indexed("a.txt", corpus="x")

    assert _snapshot(stack) is None


def test_a_reconciliation_writes_a_snapshot_that_was_lost(stack: Stack) -> None:
    stack.indexed("a.txt", "b.txt", corpus="x")
    stack.indexed("c.txt", "d.txt", corpus="y")
    stack.take("snapshots")

    report = stack.reconcile().report["snapshot"]

    assert (report["attributes"], report["values"], report["left_out"]) == (1, 2, 0)
    assert _snapshot(stack) == SharedValues(4, {"corpus": {"x": 2, "y": 2}}, left_out=0)


def test_a_snapshot_is_written_again_after_s3_failed(stack: Stack) -> None:
    stack.indexed("a.txt", corpus="x")
    (message,) = stack.take("snapshots")

    assert stack.service(snapshot_bucket="absent").process([message], lambda: 60.0) == [message.message_id]
    assert stack.service().process([message], lambda: 60.0) == []
    assert _snapshot(stack) == SharedValues(1, {}, left_out=0)


def test_counts_are_not_repaired_while_documents_change(stack: Stack) -> None:
    stack.indexed("a.txt", corpus="x")
    _spoil(stack, 'corpus\x1f"x"', 7)
    stack.claim("b.txt", status=Status.SUBMITTING, updated_at=stack.clock())

    report = stack.reconcile().report

    assert report["catalogue"]["differences"] == 0
    assert report["catalogue"]["reason"] == "Documents changed during the comparison: not compared"
    assert _counts(stack)["corpus", "x"] == 7


def test_a_count_that_changed_before_its_repair_is_left_alone(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    stack.indexed("a.txt", corpus="x")
    _spoil(stack, 'corpus\x1f"x"', 7)
    real = Catalogue._has_changed

    def has_moved(self: Any, since: float) -> bool:
        moved = real(self, since)
        _spoil(stack, 'corpus\x1f"x"', 8)
        return moved

    monkeypatch.setattr(Catalogue, "_has_changed", has_moved)

    report = stack.reconcile().report

    assert (report["catalogue"]["differences"], report["catalogue"]["repaired"]) == (1, 0)
    assert _counts(stack)["corpus", "x"] == 8


def test_a_deletion_during_the_recount_does_not_corrupt_counts(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    stack.indexed("a.txt", "b.txt", corpus="x")
    real = DocumentRegistry.scan

    def scan(registry: DocumentRegistry) -> Iterator[list[DocumentRecord]]:
        yield from real(registry)
        # Deleted by another function after it was counted.
        stack.claim("a.txt", status=Status.DELETED, counted=(), updated_at=stack.clock())

    monkeypatch.setattr(DocumentRegistry, "scan", scan)

    report = stack.reconcile().report

    assert report["catalogue"]["differences"] == 0
    assert _counts(stack)["corpus", "x"] == 1
