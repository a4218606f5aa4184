"""Documents on their way from the bucket to the index, and out of it again."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from ragstack_common.ingestion.advice import advice_for
from ragstack_common.registry.records import Status
from tests.ingestion.services import Killed, lost, raising
from tests.ingestion.world import World
from tests.support.sidecars import record_sidecar

GET, INGEST, DELETE = (f"{verb}KnowledgeBaseDocuments" for verb in ("Get", "Ingest", "Delete"))
STONES = {"corpus": "stones", "hardness": 7, "tags": ["grey", "old"], "igneous": True}


def types(world: World, name: str) -> list[str]:
    return [event["type"] for event in world.outcomes(name)]


def at_the_call(world: World, act: Callable[[], None]) -> None:
    """Have something happen once, just before the knowledge base is called."""

    def intercept(moment: str, operation: str, _data: Any) -> None:
        if (moment, operation) == ("before", INGEST):
            world.aws.intercept = lambda *_: None
            act()

    world.aws.intercept = intercept


def facets(world: World) -> dict[tuple[str, Any], int]:
    return {(facet.key, facet.value): facet.documents for facet in world.catalogue.facets()}


@pytest.mark.parametrize("name", ["a b+ü.txt", "100%.txt", "日本/a&b=c#d?.md"])
def test_a_document_with_any_key_is_indexed_and_deleted(world: World, name: str) -> None:
    world.put(name, "granite is hard")
    world.put_sidecar(name, STONES)
    world.run()
    world.check()

    world.delete(name)
    world.run()


def test_the_rows_of_a_csv_file_are_indexed_with_their_own_attributes(make_world: Callable[..., World]) -> None:
    world = make_world()
    world.put("stones.csv", "text,hardness\ngranite,7\ntalc,1\n")
    world.put_sidecar("stones.csv", record_sidecar(attributes={"corpus": "stones"}))

    world.run()

    record = world.record("stones.csv")
    assert (record.status, record.observed.attributes) == (Status.INDEXED, {"corpus": "stones"})
    assert {
        (chunk["content"]["text"], chunk["metadata"]["corpus"], chunk["metadata"]["hardness"])
        for chunk in world.chunks("stones.csv")
    } == {("granite", "stones", "7"), ("talc", "stones", "1")}


def test_a_data_source_of_another_type_fails_documents_with_the_cause(make_world: Callable[..., World]) -> None:
    world = make_world(vector_store="MANAGED")
    world.settings = world.settings.model_copy(update={"vector_store": "OTHER"})
    world.put("a.txt")

    world.run()

    record = world.record("a.txt")
    assert record.status is Status.FAILED
    assert "dataSourceType" in str(record.reason)
    assert advice_for(record.reason)[0].startswith("Deploy with the knowledge base's vector_store (MANAGED")


def test_many_documents_cost_one_call_for_ten(world: World) -> None:
    for number in range(20):
        world.put(f"{number}.txt", f"granite number {number}")

    world.run()

    assert (world.count(INGEST), world.count(GET)) == (2, 2)


def test_repeated_events_cause_no_call_of_the_knowledge_base(world: World) -> None:
    event = world.put("a.txt")
    sidecar = world.put_sidecar("a.txt", STONES)
    world.run()
    world.aws.calls.clear()

    for _ in range(3):
        world.announce(event, sidecar)
        world.run()

    assert not [call for call in world.aws.calls if "KnowledgeBase" in call]
    assert types(world, "a.txt") == ["DocumentIndexed"]


def test_overwrites_during_indexing_cause_one_more_submission(world: World) -> None:
    world.put("a.txt", "first")
    world.announce()
    world.ingest()
    for number in range(8):
        world.put("a.txt", f"granite version {number}")
        world.announce()
        world.ingest()

    world.run()

    assert world.count(INGEST) == 2


def test_an_event_older_than_the_record_changes_nothing(world: World) -> None:
    created = world.put("a.txt", "granite")
    removed = world.delete("a.txt")
    world.put("a.txt", "granite is back")
    world.announce(world.events.pop())
    world.events.clear()
    world.run()
    world.aws.calls.clear()

    world.announce(removed, created)
    world.run()

    assert not [call for call in world.aws.calls if "KnowledgeBase" in call or call.endswith("Object")]


def test_the_deletion_of_an_unknown_document_is_carried_out_once(world: World) -> None:
    world.put("a.txt")
    world.delete("a.txt")

    world.run()

    assert (world.count(DELETE), len(world.outcomes("a.txt"))) == (1, 1)


# The index holds what lay in the bucket between two events. -----------------------------------------------------------


@pytest.mark.parametrize("when", ["while it is worked on", "after it was indexed"])
@pytest.mark.parametrize("between", ["overwritten", "deleted", "sidecar"])
def test_a_version_between_two_equal_ones_is_not_what_searches_find(world: World, between: str, when: str) -> None:
    world.put("a.txt", "granite is hard")
    world.put_sidecar("a.txt", {"corpus": "stones"})
    world.announce()

    def change_before_it_is_read() -> None:
        match between:
            case "overwritten":
                world.put("a.txt", "other text")
            case "deleted":
                world.delete("a.txt")
            case _:
                world.put_sidecar("a.txt", {"corpus": "woods"})

    at_the_call(world, change_before_it_is_read)
    world.ingest()
    world.settle()
    if when == "after it was indexed":
        world.follow()
        world.aws.clock.now += 5
        world.follow()
    world.put("a.txt", "granite is hard")
    world.put_sidecar("a.txt", {"corpus": "stones"})

    world.run()


# Sidecars. ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["before", "with", "after", "while it is worked on"])
def test_a_sidecar_is_applied_whenever_it_arrives(world: World, order: str) -> None:
    if order == "before":
        world.put_sidecar("a.txt", STONES)
        world.run()
    world.put("a.txt", "granite is hard")
    if order == "after":
        world.run()
    if order == "while it is worked on":
        world.announce()
        world.ingest()
    if order != "before":
        world.put_sidecar("a.txt", STONES)

    world.run()

    assert world.chunks("a.txt")[0]["metadata"].items() >= STONES.items()
    assert facets(world) == {
        ("corpus", "stones"): 1,
        ("hardness", 7): 1,
        ("igneous", True): 1,
        ("tags", "grey"): 1,
        ("tags", "old"): 1,
    }
    assert world.record("a.txt").corpus == "stones"


def test_a_sidecar_without_its_document_does_not_bring_it_back(world: World) -> None:
    world.put("a.txt")
    world.put_sidecar("a.txt", STONES)
    world.run()
    world.delete("a.txt")
    world.run()

    world.put_sidecar("a.txt", {"corpus": "woods"})
    world.run()


@pytest.mark.parametrize("indexed_before", [False, True], ids=["new", "indexed before"])
def test_an_invalid_sidecar_removes_its_document_from_the_index(world: World, indexed_before: bool) -> None:
    world.put("a.txt", "granite is hard")
    if indexed_before:
        world.put_sidecar("a.txt", STONES)
        world.run()
        assert world.chunks("a.txt")

    world.put_sidecar("a.txt", b"no JSON")
    world.run()

    record = world.record("a.txt")
    assert record.status is Status.FAILED
    assert "it is not JSON" in str(record.reason)
    assert world.chunks("a.txt") == []
    assert facets(world) == {}
    assert types(world, "a.txt")[-1] == "DocumentFailed"

    world.put_sidecar("a.txt", {"corpus": "woods"})
    world.run()

    assert world.record("a.txt").status is Status.INDEXED


def test_the_limits_of_s3_vectors_apply_to_that_store(make_world: Callable[..., World]) -> None:
    world = make_world(vector_store="S3_VECTORS")
    world.put("a.txt")
    world.put_sidecar("a.txt", {"text": "x" * 1100})

    world.run()

    assert world.record("a.txt").status is Status.FAILED
    assert "1 KB" in str(world.record("a.txt").reason)


# Failure. -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("indexed_before", [False, True], ids=["new", "indexed before"])
def test_an_unreadable_document_fails_and_leaves_the_index(world: World, indexed_before: bool) -> None:
    if indexed_before:
        world.put("a.txt", "granite is hard")
        world.run()

    world.put("a.txt", "\n")
    world.run()

    record = world.record("a.txt")
    assert "empty" in str(record.reason) or "no text" in str(record.reason).lower()
    [letter] = world.dead()
    assert letter["MessageAttributes"]["Cause"]["StringValue"] == record.reason


def test_replaying_a_dead_letter_indexes_the_document(world: World) -> None:
    world.put("a.txt", "granite is hard")
    world.announce()

    def deny(moment: str, operation: str, data: dict[str, Any]) -> None:
        if (moment, operation) == ("after", INGEST):
            data["documentDetails"] = [
                {**detail, "status": "FAILED", "statusReason": "No permission"} for detail in data["documentDetails"]
            ]

    with world.aws.intercepted(deny):
        world.run()
    [letter] = world.dead()
    assert world.record("a.txt").status is Status.FAILED
    assert "No permission" in str(world.record("a.txt").reason)

    world.announce(letter["Body"])
    world.run()

    assert world.record("a.txt").status is Status.INDEXED


def fail(operation: str, code: str, message: str, times: int) -> Any:
    """Make the service refuse this many calls before it does anything."""
    left = [None] * times

    def intercept(moment: str, called: str, _data: Any) -> None:
        if moment == "before" and called == operation and left:
            left.pop()
            status = {"ThrottlingException": 429, "AccessDenied": 403, "SlowDown": 503}.get(code, 400)
            response: Any = {
                "Error": {"Code": code, "Message": message},
                "ResponseMetadata": {"HTTPStatusCode": status},
            }
            raise ClientError(response, called)

    return intercept


@pytest.mark.parametrize("operation", [INGEST, DELETE, GET, "TransactWriteItems", "BatchGetItem", "PutEvents"])
def test_a_transient_failure_of_any_service_loses_nothing(world: World, operation: str) -> None:
    world.put("a.txt", "granite is hard")
    world.put_sidecar("a.txt", STONES)

    with world.aws.intercepted(fail(operation, "ThrottlingException", "Rate exceeded", 3)):
        world.run()
    with world.aws.intercepted(fail(operation, "ThrottlingException", "Rate exceeded", 3)):
        world.delete("a.txt")
        world.run()

    assert types(world, "a.txt") == ["DocumentIndexed", "DocumentDeleted"]
    assert world.dead() == []


def test_waiting_for_an_ingestion_job_uses_up_no_deliveries(world: World) -> None:
    world.put("a.txt", "granite is hard")
    busy = fail(INGEST, "ValidationException", "There is an ongoing ingestion job ABC on the data source.", 40)

    with world.aws.intercepted(busy):
        world.run(rounds=1000)

    assert world.ingestion_queue.latest < world.settings.max_receives
    assert world.dead() == []
    assert types(world, "a.txt") == ["DocumentIndexed"]


def test_a_document_failing_at_every_delivery_can_be_replayed(world: World) -> None:
    world.put("a.txt", "granite is hard")

    with world.aws.intercepted(fail(INGEST, "ThrottlingException", "Rate exceeded", 10**6)):
        world.run()

    record = world.record("a.txt")
    assert record.status is Status.FAILED
    assert "Rate exceeded" in str(record.reason)
    assert world.ingestion_queue.latest == world.settings.max_receives
    [letter] = world.dead()
    assert json.loads(letter["Body"])["failed"]["uri"] == world.uri("a.txt")
    assert types(world, "a.txt") == ["DocumentFailed"]

    world.announce(letter["Body"])
    world.run()


@pytest.mark.parametrize(
    ("code", "at_once"),
    [("ValidationException", True), ("AccessDeniedException", False), ("ResourceNotFoundException", False)],
)
def test_only_a_validation_error_fails_a_document_at_once(
    make_world: Callable[..., World], code: str, at_once: bool
) -> None:
    world = make_world()
    world.put("a.txt", "granite is hard")

    with world.aws.intercepted(fail(INGEST, code, "This is why.", 10**6)):
        world.run()

    record = world.record("a.txt")
    assert record.status is Status.FAILED
    assert "This is why." in str(record.reason)
    assert world.count(INGEST) == 0
    assert world.ingestion_queue.latest == (1 if at_once else world.settings.max_receives)
    assert [json.loads(letter["Body"])["failed"]["uri"] for letter in world.dead()] == [record.uri]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("x" * 140 + ".txt", "shorter key"), ("two\nlines.txt", "line break"), ("a\u2028b.txt", "line break")],
)
def test_a_refused_document_does_not_delay_others(world: World, name: str, reason: str) -> None:
    for other in ("a.txt", "b.txt", "c.txt"):
        world.put(other, f"granite {other}")
    world.put(name, "granite")

    world.run()

    assert [world.record(other).status for other in ("a.txt", "b.txt", "c.txt")] == [Status.INDEXED] * 3
    assert world.record(name).status is Status.FAILED
    assert reason in str(world.record(name).reason)
    world.delete(name)
    world.run()
    assert world.record(name).status is Status.DELETED


@pytest.mark.parametrize(
    "body",
    [
        "not json",
        '{"check": ["nonsense"]}',
        '{"check": ["s3://bucket"]}',
    ],
)
def test_a_malformed_message_is_dead_lettered_and_delays_no_other(world: World, body: str) -> None:
    world.put("a.txt", "granite is hard")
    world.announce(body, *world.events)
    world.events.clear()

    world.run()

    bodies = [letter["Body"] for letter in world.dead()]
    assert len(bodies) == 1
    assert bodies[0] == body or "failed" in json.loads(bodies[0])
    assert "Cause" in world.dead()[0]["MessageAttributes"]


@pytest.mark.parametrize("code", ["AccessDenied", "SlowDown"])
def test_an_error_of_the_bucket_does_not_count_as_a_deletion(world: World, code: str) -> None:
    world.put("a.txt", "granite is hard")
    world.run()
    world.put("a.txt", "granite is grey")
    world.announce()

    with world.aws.intercepted(fail("HeadObject", code, ".", 10)):
        world.ingest()

    assert world.chunks("a.txt")
    assert world.count(DELETE) == 0
    assert len(world.ingestion_queue.held) == 1
    assert world.dead() == []
    world.request_check("a.txt")
    world.run()


# Two functions and one document. --------------------------------------------------------------------------------------


def test_a_claimed_document_is_left_to_its_invocation(world: World) -> None:
    """Another event at its last delivery does not give it up."""
    event = world.put("a.txt", "granite is hard")
    world.announce(event)
    world.events.clear()
    [first] = world.ingestion_queue.collect()

    def deliver_another_event() -> None:
        world.put("a.txt", "granite is grey")
        world.announce()
        second = world.ingestion_queue.collect()[-1]
        second.receives = world.settings.max_receives - 1
        world.ingest([second])

    began = world.aws.clock()
    at_the_call(world, deliver_another_event)
    world.ingest([first])
    world.run()

    assert "DocumentFailed" not in types(world, "a.txt")
    assert world.aws.clock() < began + 30, "it was left for a moment, not until the other's lease is over"


@pytest.mark.parametrize("queue_fails", [False, True])
def test_a_check_resumes_a_document_without_its_status_message(world: World, queue_fails: bool) -> None:
    world.put("a.txt", "granite is hard")
    world.announce()
    world.ingest()
    world.status_queue.collect()
    world.status_queue.held.clear()
    assert world.record("a.txt").status is Status.INDEXING
    failures = [queue_fails]

    def fail_once(moment: str, operation: str, _data: dict[str, Any]) -> None:
        if moment == "before" and operation == "SendMessageBatch" and failures[0]:
            failures[0] = False
            raise lost()

    world.aws.intercept = fail_once
    world.request_check("a.txt")
    world.run()

    assert world.record("a.txt").status is Status.INDEXED
    assert world.count(INGEST) == 1


def test_an_accepted_document_that_cannot_be_followed_fails(world: World) -> None:
    """It has the reason of the refused message."""
    world.put("a.txt", "granite is hard")

    def refuse(moment: str, operation: str, data: dict[str, Any]) -> None:
        if moment == "before" and operation == "SendMessageBatch" and "follow" in str(data):
            raise lost()

    with world.aws.intercepted(refuse):
        world.run()

    record = world.record("a.txt")
    assert record.status is Status.FAILED
    assert "searches may still find a version of it" in (record.reason or "")
    assert world.dead()
    world.request_check("a.txt")
    world.run()
    assert world.record("a.txt").status is Status.INDEXED


def test_the_lease_of_a_killed_function_is_waited_for(world: World) -> None:
    world.put("a.txt", "granite is hard")
    world.announce()

    with world.aws.intercepted(raising("before", INGEST, Killed)), pytest.raises(Killed):
        world.ingest()
    died = world.aws.clock()
    assert world.record("a.txt").status is Status.SUBMITTING
    world.put("a.txt", "granite is grey")
    world.announce()
    world.ingest()
    assert world.count(INGEST) == 0

    world.run()

    assert world.aws.clock() > died + 60
    assert world.count(INGEST) == 1
