"""Every kind of difference is found, reported and repaired."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from ragstack_common.core.artefacts import text_of
from ragstack_common.ingestion.submit import IngestionService
from ragstack_common.registry.catalogue import Catalogue
from ragstack_common.registry.receipts import READERS, NotRead, Receipt
from ragstack_common.registry.records import Operation, OperationKind, Status
from ragstack_common.registry.table import INVALID_ITEMS, document_id, document_key
from ragstack_common.settings.names import MANAGED, OTHER_STORE
from tests.ragstack_common.reconciliation.stack import HOUR, LONG, Stack

PLAIN: dict[str, Any] = {}
OLD = {"corpus": "old"}
NEW = {"corpus": "new"}


@dataclass(frozen=True)
class Case:
    """How a document that was indexed with attributes, or never, comes to differ, and what then becomes of it."""

    make: Callable[[Stack, str], object]
    kind: str
    before: dict[str, Any] | None = None
    status: str = "INDEXED"
    in_knowledge_base: str = "INDEXED"


def _said_to_be_deleted(stack: Stack, key: str) -> None:
    stack.claim(key, status=Status.DELETED, counted=(), in_knowledge_base=False)


def _said_to_have_failed(stack: Stack, key: str) -> None:
    stack.claim(key, status=Status.FAILED, counted=(), reason="of old")


def _ingested_and_removed(stack: Stack, key: str) -> None:
    stack.put(key)
    stack.ingest_behind_the_back(key)
    stack.remove(key)


def _failed_in_the_knowledge_base(stack: Stack, key: str) -> None:
    stack.remove(key)
    stack.ingest_behind_the_back(key)  # nothing is there to be read
    stack.put(key, f"The text of {key}.")
    assert stack.in_knowledge_base(key) == "FAILED"


def _abandoned_submission(stack: Stack, key: str) -> None:
    _work_on(stack, key, Status.SUBMITTING, Operation("dead", OperationKind.INGEST, stack.clock() - HOUR))


def _abandoned_deletion(stack: Stack, key: str) -> None:
    stack.remove(key)
    _work_on(stack, key, Status.DELETING, Operation("dead", OperationKind.DELETE, stack.clock() - HOUR))


def _following_without_a_message(stack: Stack, key: str) -> None:
    accepted_at = stack.clock() - 7 * HOUR
    _work_on(stack, key, Status.INDEXING, Operation("dead", OperationKind.INGEST, 0.0, accepted_at))


def _work_on(stack: Stack, key: str, status: Status, operation: Operation) -> None:
    stack.claim(key, status=status, counted=(), finished_at=None, operation=operation)


def _said_to_have_failed_and_removed(stack: Stack, key: str) -> None:
    _said_to_have_failed(stack, key)
    stack.remove(key)


def _said_to_be_deleted_and_removed(stack: Stack, key: str) -> None:
    _said_to_be_deleted(stack, key)
    stack.remove(key)


CASES = {
    "new": Case(lambda s, k: s.put(k, attributes=NEW), "not_in_registry"),
    "deleted, as the registry says": Case(_said_to_be_deleted, "not_in_registry", PLAIN),
    "overwritten": Case(lambda s, k: s.put(k, "Another text."), "content", PLAIN),
    "sidecar changed": Case(lambda s, k: s.put(k, f"The text of {k}.", NEW), "content", OLD),
    "sidecar came": Case(lambda s, k: s.put(k, f"The text of {k}.", NEW), "content", PLAIN),
    "sidecar went": Case(lambda s, k: s.remove(f"{k}.metadata.json"), "content", OLD),
    "not in the bucket": Case(lambda s, k: s.remove(k), "not_in_bucket", OLD, "DELETED", "NOT_FOUND"),
    "failed, not in the bucket": Case(_said_to_have_failed_and_removed, "not_in_bucket", PLAIN, "DELETED", "NOT_FOUND"),
    "in the knowledge base alone": Case(
        _ingested_and_removed, "unknown_in_knowledge_base", None, "DELETED", "NOT_FOUND"
    ),
    "lost by the knowledge base": Case(lambda s, k: s.delete_behind_the_back(k), "not_searchable", PLAIN),
    "failed in the knowledge base": Case(_failed_in_the_knowledge_base, "not_searchable", PLAIN),
    "failed, and searchable": Case(_said_to_have_failed, "searchable", PLAIN),
    "deleted, and searchable": Case(_said_to_be_deleted_and_removed, "searchable", PLAIN, "DELETED", "NOT_FOUND"),
    "waiting without a message": Case(
        lambda s, k: s.claim(k, status=Status.WAITING, counted=(), finished_at=None), "stuck", PLAIN
    ),
    "abandoned submission": Case(_abandoned_submission, "stuck", PLAIN),
    "abandoned deletion": Case(_abandoned_deletion, "stuck", PLAIN, "DELETED", "NOT_FOUND"),
    "following without a message": Case(_following_without_a_message, "stuck", PLAIN),
}
KEYS = {case: f"{case}.txt" for case in CASES}


@pytest.mark.parametrize("vector_store", [OTHER_STORE, MANAGED])
def test_each_difference_is_found_reported_once_and_repaired(
    new_stack: Callable[..., Stack], vector_store: str
) -> None:
    stack = new_stack(vector_store)
    stack.indexed("agreeing.txt", *(KEYS[case] for case in CASES if CASES[case].before == PLAIN))
    stack.indexed(*(KEYS[case] for case in CASES if CASES[case].before == OLD), **OLD)
    for case, key in KEYS.items():
        CASES[case].make(stack, key)
    stack.clock.ahead += HOUR

    found = stack.reconcile()
    stack.rest()
    stack.clock.ahead += HOUR
    left = stack.reconcile()

    report = found.report
    for case, key in KEYS.items():
        reported = [kind for kind, each in report["differences"].items() if stack.uri(key) in each["samples"]]
        assert reported == [CASES[case].kind], case
        assert stack.record(key).status == CASES[case].status, stack.record(key).reason
        assert stack.in_knowledge_base(key) == CASES[case].in_knowledge_base, case

    # The registry was made to say of some that they are not searchable, and the catalogue with it.
    assert report["catalogue"]["differences"] == 0
    assert report["differences_in_all"] == report["looked_at"] == len(CASES)
    assert sum(each["count"] for each in report["differences"].values()) == len(CASES)
    assert found.status == left.status == "COMPLETE"
    assert left.report["differences"] == {}
    assert left.report["catalogue"]["differences"] == 0
    assert stack.take("ingestion") == []


def test_an_object_that_cannot_be_a_document_fails_with_a_reason(stack: Stack) -> None:
    key = f"{'x' * 200}.txt"
    stack.put(key)
    stack.clock.ahead += HOUR

    job = stack.reconcile()
    stack.rest()
    stack.clock.ahead += HOUR
    afterwards = stack.reconcile()

    assert job.report["differences"] == {"not_in_registry": {"count": 1, "samples": [stack.uri(key)]}}
    assert stack.record(key).status == "FAILED"
    assert "shorter key" in str(stack.record(key).reason)
    assert afterwards.report["differences"] == {}


def test_program_files_differ_only_after_they_were_documents(stack: Stack) -> None:
    stack.indexed("~$earlier.txt")
    stack.remove("~$earlier.txt")
    stack.put("~$report.txt")
    _failed_in_the_knowledge_base(stack, "~$damaged.txt")
    stack.clock.ahead += HOUR

    job = stack.reconcile()

    assert job.report["differences"] == {"not_in_bucket": {"count": 1, "samples": [stack.uri("~$earlier.txt")]}}


def test_a_document_whose_event_was_late_is_not_submitted_twice(stack: Stack) -> None:
    stack.put("late.txt")
    stack.clock.ahead += HOUR
    stack.reconcile()
    stack.request_check("late.txt")  # what its event does, before the look of the reconciliation is read

    first, second = stack.take("ingestion")
    services = stack.services()
    IngestionService(services).process([second], LONG)
    stack.rest()
    operation = stack.record("late.txt").operation
    IngestionService(services).process([first], LONG)
    stack.rest()

    assert stack.record("late.txt").status == "INDEXED"
    assert stack.record("late.txt").operation == operation


@pytest.mark.parametrize("receipt", [None, Receipt(0.0, READERS - 1, chunks=1)], ids=["never compared", "earlier"])
def test_a_document_that_an_earlier_version_read_is_read_again_and_is_no_fault(
    stack: Stack, receipt: Receipt | None
) -> None:
    stack.indexed("old.txt", "new.txt")
    stack.claim("old.txt", receipt=receipt)
    before = stack.record("old.txt").operation

    job = stack.reconcile()
    stack.rest()

    assert job.report["differences"] == {"read_before": {"count": 1, "samples": [stack.uri("old.txt")]}}
    assert job.report["differences_in_all"] == 0, "or an alarm would fire"
    after = stack.record("old.txt")
    assert after.operation != before
    assert after.receipt is not None
    assert after.receipt.readers == READERS
    stack.clock.ahead += HOUR
    assert stack.reconcile().report["differences"] == {}


def test_a_document_only_a_synchronisation_removes_is_out_of_reach(stack: Stack) -> None:
    key = f"{'x' * 200}.txt"
    stack.put(key)
    stack.request_check(key)
    stack.rest()
    stack.clock.ahead += HOUR
    stack.reconcile("full")
    stack.clock.ahead += HOUR

    job = stack.reconcile()

    assert stack.record(key).status == "FAILED"
    assert job.report["differences"] == {}
    assert job.report["out_of_reach"] == {"count": 1, "samples": [stack.uri(key)]}
    assert stack.requested() == []


@pytest.mark.parametrize(
    ("status", "operation"),
    [
        (Status.SUBMITTING, Operation("alive", OperationKind.INGEST, 2.0**33)),
        (Status.DELETING, Operation("alive", OperationKind.DELETE, 2.0**33)),
        (Status.INDEXING, Operation("alive", OperationKind.INGEST, 0.0, 2.0**33)),
    ],
    ids=["submitting", "deleting", "indexing"],
)
def test_a_document_on_its_way_is_not_a_difference(stack: Stack, status: Status, operation: Operation) -> None:
    stack.indexed("x.txt", "y.txt")
    _work_on(stack, "x.txt", status, operation)
    stack.remove("x.txt")
    stack.delete_behind_the_back("x.txt")

    assert stack.reconcile().report["differences"] == {}


def test_new_objects_folders_and_orphaned_sidecars_do_not_differ(stack: Stack) -> None:
    for key in ("folder/", "folder/.metadata.json", "nothing.txt.metadata.json"):
        stack.put(key)
    stack.clock.ahead += HOUR
    assert stack.reconcile().report["differences"] == {}

    stack.clock.ahead = 0.0
    stack.put("x.txt", attributes={"corpus": "new"})
    assert stack.reconcile().report["differences"] == {}
    assert stack.take("ingestion") == []


def test_documents_of_another_bucket_are_left_alone(stack: Stack) -> None:
    other = f"{stack.bucket}-other"
    stack.indexed("x.txt")
    stack.aws.s3.create_bucket(Bucket=other)

    job = stack.reconcile(documents_bucket=other)

    assert job.report["differences"] == {}
    assert job.report["elsewhere"] == 2
    assert stack.take("ingestion") == []


def test_a_document_whose_record_is_not_valid_is_submitted_again(stack: Stack) -> None:
    stack.indexed("x.txt", "gone.txt", corpus="x")
    for key in ("x.txt", "gone.txt"):
        stack.aws.dynamodb.update_item(
            TableName=stack.bucket,
            Key=document_key(document_id(stack.uri(key))),
            UpdateExpression="SET attributes = :invalid",
            ExpressionAttributeValues={":invalid": {"S": "{"}},
        )
    stack.remove("gone.txt")
    stack.remove("gone.txt.metadata.json")

    job = stack.reconcile()
    stack.rest()
    stack.clock.ahead += HOUR
    afterwards = stack.reconcile()

    assert job.report["differences"] == {"stuck": {"count": 2, "samples": [stack.uri("gone.txt"), stack.uri("x.txt")]}}
    assert stack.metrics.values[INVALID_ITEMS] == ("Count", 1)
    assert (stack.record("x.txt").status, stack.record("gone.txt").status) == (Status.INDEXED, Status.DELETED)
    assert afterwards.report["differences_in_all"] == 0
    assert [facet.documents for facet in Catalogue(stack.aws.dynamodb, stack.bucket).facets()] == [1]


def test_a_converted_text_that_is_lost_is_made_again(stack: Stack) -> None:
    stack.indexed("notes.org")
    assert stack.record("notes.org").is_converted
    assert (stack.in_knowledge_base("notes.org"), stack.in_knowledge_base(text_of("notes.org"))) == (
        "NOT_FOUND",
        "INDEXED",
    )
    etag = stack.etag(text_of("notes.org"))
    stack.remove(text_of("notes.org"))

    job = stack.reconcile()
    stack.rest()
    stack.clock.ahead += HOUR

    assert job.report["differences"] == {"converted_text": {"count": 1, "samples": [stack.uri("notes.org")]}}
    assert stack.etag(text_of("notes.org")) == etag
    assert stack.record("notes.org").status == "INDEXED"
    assert stack.reconcile().report["differences"] == {}


def test_what_was_made_of_a_document_that_is_gone_is_deleted(stack: Stack) -> None:
    stack.put(text_of("gone.org"))
    stack.put(f"{text_of('gone.org')}.metadata.json", "{}")
    stack.put("gone.org.ragstack.json", "[]")
    stack.clock.ahead += HOUR

    job = stack.reconcile()
    stack.rest()

    assert job.report["differences"] == {"converted_text": {"count": 1, "samples": [stack.uri("gone.org")]}}
    assert stack.aws.s3.list_objects_v2(Bucket=stack.bucket).get("Contents", []) == []


def test_a_document_is_in_the_knowledge_base_in_one_form(stack: Stack) -> None:
    stack.indexed("b.txt")
    stack.put(text_of("b.txt"), "An earlier text.")
    stack.ingest_behind_the_back(text_of("b.txt"))
    stack.clock.ahead += HOUR

    job = stack.reconcile()
    stack.source.settled(stack.identifier(text_of("b.txt")))

    assert job.report["differences"]["other_knowledge_base"]["samples"] == [stack.uri(text_of("b.txt"))]
    assert stack.in_knowledge_base(text_of("b.txt")) == "NOT_FOUND"
    assert stack.in_knowledge_base("b.txt") == "INDEXED"


def test_a_document_that_failed_before_its_format_was_converted_is_converted(stack: Stack) -> None:
    stack.put("old.org", "The text of old.org.")
    stack.claim("old.org", status=Status.FAILED, knowledge_base_status="FAILED", reason="The type is not supported")
    observed = replace(stack.record("old.org").observed, etag=stack.etag("old.org"))
    stack.claim("old.org", observed=observed)
    stack.clock.ahead += HOUR

    job = stack.reconcile()
    stack.rest()

    assert job.report["differences"] == {"read_before": {"count": 1, "samples": [stack.uri("old.org")]}}
    assert stack.record("old.org").status == "INDEXED"


def test_another_setting_of_text_recognition_reads_what_depends_on_it_again(stack: Stack) -> None:
    stack.indexed("plain.org", "scan.org", "pages.org")
    conversion = stack.record("scan.org").observed.conversion
    assert conversion is not None
    of_pictures = replace(conversion, recognition="off")
    stack.claim("scan.org", observed=replace(stack.record("scan.org").observed, conversion=of_pictures))
    unread = NotRead("page 2", 0, 0, "a picture")
    receipt = stack.record("pages.org").receipt
    assert receipt is not None
    stack.claim("pages.org", receipt=replace(receipt, not_read=(unread,), parts_not_read=1))

    report = stack.reconcile(recognition="tesseract").report

    assert report["differences"]["read_before"]["samples"] == [stack.uri("pages.org"), stack.uri("scan.org")]
    assert stack.reconcile().report["differences"] == {}
