"""Comparisons that find nothing, run out of time, or meet documents that change in the meantime."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from ragstack_common.access.tenants import KnowledgeBaseIds
from ragstack_common.reconciliation import run
from ragstack_common.reconciliation.compare import (
    SAMPLES_PER_KIND,
    BucketObject,
    Difference,
    Tally,
)
from ragstack_common.reconciliation.run import RESERVE_SECONDS
from ragstack_common.registry.records import Status
from tests.ragstack_common.reconciliation.stack import HOUR, LONG, Stack
from tests.support.changed_client import changed_client

KEYS = tuple(f"{number}.txt" for number in range(7))


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "DOCUMENTS_PER_PAGE", 3)


def test_pages_smaller_than_the_data_give_the_same_report(stack: Stack, small_pages: None) -> None:
    stack.indexed(*KEYS, corpus="x")
    agreeing = stack.reconcile()
    stack.remove("0.txt")
    stack.remove("3.txt.metadata.json")
    stack.delete_behind_the_back("6.txt")
    stack.put("new.txt")
    stack.clock.ahead += HOUR

    job = stack.reconcile()

    assert agreeing.report["compared"] == {"documents": 7, "registry": 7, "bucket": 14, "knowledge_base": 7}
    assert agreeing.report["differences"] == {}
    assert {kind: found["count"] for kind, found in job.report["differences"].items()} == {
        "not_in_registry": 1,
        "content": 1,
        "not_in_bucket": 1,
        "not_searchable": 1,
    }
    assert stack.requested() == ["0.txt", "3.txt", "6.txt", "new.txt"]


def test_deleted_documents_that_the_service_still_lists_are_no_difference(stack: Stack) -> None:
    stack.indexed("a.txt", "deleted.txt")
    stack.remove("deleted.txt")
    stack.request_check("deleted.txt")
    stack.rest()
    stack.clock.ahead += HOUR
    updated_at = datetime.fromtimestamp(0, UTC)
    names = ("deleted.txt", "forgotten.txt")
    deleted = [{"identifier": stack.identifier(key), "status": "NOT_FOUND", "updatedAt": updated_at} for key in names]

    def add(method: Any, **parameters: Any) -> Any:
        page = method(**parameters)
        return {**page, "documentDetails": [*page["documentDetails"], *deleted]}

    reconciliation = stack.service().reconciliation
    agent = changed_client(stack.agent, "list_knowledge_base_documents", add)
    report, _ = replace(reconciliation, agent=agent).run(lambda: LONG)

    assert report["differences"] == {}
    assert report["compared"]["knowledge_base"] == 1


def test_a_service_that_lists_fewer_documents_at_once_is_asked_for_fewer(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "DOCUMENTS_PER_SMALL_PAGE", 3)
    stack.indexed(*KEYS)
    sizes: list[int] = []

    def refuse(method: Any, **parameters: Any) -> Any:
        sizes.append(parameters["maxResults"])
        if parameters["maxResults"] > 3:
            message = "maxResults must be less than or equal to 3"
            raise ClientError({"Error": {"Code": "ValidationException", "Message": message}}, "List")
        return method(**parameters)

    agent = changed_client(stack.agent, "list_knowledge_base_documents", refuse)
    pages = run.knowledge_base_pages(
        agent, KnowledgeBaseIds(stack.source.knowledge_base_id, stack.source.id), stack.slept.append
    )
    found = [document.uri for page in pages for document in page]

    assert sorted(found) == [stack.uri(key) for key in KEYS]
    assert sizes == [1000, 3, 3, 3]


def _running_out(after: int) -> Iterator[float]:
    """Time for this many looks at the clock."""
    return itertools.chain(itertools.repeat(900.0, after), itertools.repeat(RESERVE_SECONDS - 1))


def test_a_run_without_time_reports_where_and_checks_differences(stack: Stack, small_pages: None) -> None:
    stack.indexed(*KEYS)
    stack.remove("0.txt")
    stack.delete_behind_the_back("1.txt")
    stack.put("new.txt")
    stack.clock.ahead += HOUR
    seen: list[tuple[str | None, int]] = []

    for looks_at_the_clock in range(200):
        times = _running_out(looks_at_the_clock)
        report, reason = stack.service().reconciliation.run(lambda times=times: next(times))  # type: ignore[misc]
        looked_at = stack.requested()
        assert report["complete"] is (reason is None)
        assert report["looked_at"] == report["differences_in_all"] == len(looked_at)
        assert set(looked_at) <= {"0.txt", "1.txt", "new.txt"}
        if seen[-1:] != [(reason, len(looked_at))]:
            seen.append((reason, len(looked_at)))
        if reason is None:
            break

    reasons = [reason or "complete" for reason, _ in seen]
    assert reasons[0] == "The time ended while the registry was read, before its first page"
    assert reasons[-1] == "complete"
    assert any("the bucket was read, after 3 entries" in reason for reason in reasons)
    assert any("the knowledge base was read, after 3 entries" in reason for reason in reasons)
    numbers = [number for _, number in seen]
    assert numbers == sorted(numbers)
    assert (numbers[0], numbers[-1]) == (0, 3)


def test_a_snapshot_that_fails_loses_no_difference(stack: Stack) -> None:
    stack.indexed("a.txt")
    stack.remove("a.txt")
    stack.clock.ahead += HOUR

    with pytest.raises(ClientError, match="NoSuchBucket"):
        stack.service(snapshot_bucket="absent").reconciliation.run(lambda: 900.0)

    assert stack.requested() == ["a.txt"]


def test_a_document_written_during_the_comparison_is_not_reported(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.indexed("removed.txt", "overwritten.txt", "lost.txt", "other.txt")
    stack.clock.ahead += HOUR
    real = run.bucket_pages

    def bucket_pages(*args: Any) -> Iterator[list[BucketObject]]:
        # As if the events of these had come just after the registry was read.
        stack.remove("removed.txt")
        stack.put("overwritten.txt", "Another text.")
        stack.delete_behind_the_back("lost.txt")
        stack.claim("removed.txt", status=Status.DELETING, updated_at=stack.clock())
        stack.claim("overwritten.txt", status=Status.SUBMITTING, updated_at=stack.clock())
        stack.claim("lost.txt", status=Status.WAITING, updated_at=stack.clock())
        stack.remove("other.txt")
        yield from real(*args)

    monkeypatch.setattr(run, "bucket_pages", bucket_pages)

    job = stack.reconcile(settle_seconds=0.0)

    assert job.report["differences"] == {"not_in_bucket": {"count": 1, "samples": [stack.uri("other.txt")]}}
    assert stack.requested() == ["other.txt"]


def test_a_message_has_at_most_fifty_documents(stack: Stack) -> None:
    keys = [f"{number:03}.txt" for number in range(101)]
    for key in keys:
        stack.put(key)
    stack.clock.ahead += HOUR

    stack.reconcile()

    messages = [json.loads(message.body)["check"] for message in stack.take("ingestion")]
    assert sorted(uri for check in messages for uri in check) == [stack.uri(key) for key in keys]
    assert max(map(len, messages)) == 50


def test_a_report_of_any_findings_stays_small() -> None:
    differences = Tally()

    for kind in Difference:
        for number in range(1000):
            differences.add(kind, f"s3://bucket/{'é' * 500}{number}")

    report = differences.report()
    assert differences.total == 1000 * len(Difference)
    assert {found["count"] for found in report.values()} == {1000}
    assert max(len(found["samples"]) for found in report.values()) == SAMPLES_PER_KIND
    assert len(json.dumps(report, ensure_ascii=False).encode()) < 250_000, "an item takes 400 KB"


def test_a_consistent_stack_has_no_differences(stack: Stack) -> None:
    stack.indexed("a.txt", "b/c d.txt", "é+.txt")
    stack.indexed("e.txt", corpus="x", tags=["one", "two"])

    job = stack.reconcile()

    assert (job.status, job.reason) == ("COMPLETE", None)
    assert job.report["differences"] == {}
    assert job.report["differences_in_all"] == 0
    assert job.report["catalogue"] == {"values": 5, "differences": 0, "repaired": 0}
    assert job.report["compared"] == {"documents": 4, "registry": 4, "bucket": 5, "knowledge_base": 4}
    assert job.report["complete"] is True
    assert stack.take("ingestion") == []
    assert stack.metrics.values["ReconciliationDifferences"] == ("Count", 0)
    assert stack.metrics.values["DocumentsCompared"] == ("Count", 4)
    assert stack.metrics.values["ReconciliationSeconds"][0] == "Seconds"
