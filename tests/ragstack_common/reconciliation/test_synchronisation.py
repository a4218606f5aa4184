"""A full synchronisation: behind a closed gate, after the operations in progress, to a correct end."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from ragstack_common.registry.coordination import Gate
from ragstack_common.registry.jobs import Job
from ragstack_common.registry.records import Operation, OperationKind, Status
from ragstack_common.settings.ingestion import ReconcileSettings
from tests.ragstack_common.reconciliation.clients import Death, KilledError
from tests.ragstack_common.reconciliation.stack import HOUR, LONG, Stack
from tests.support.changed_client import changed_client


@pytest.fixture
def gate(stack: Stack) -> Gate:
    return Gate(stack.aws.dynamodb, stack.bucket, clock=stack.clock)


def _work_on(stack: Stack, key: str, status: Status, operation: Operation) -> None:
    stack.claim(key, status=status, counted=(), finished_at=None, operation=operation, updated_at=stack.clock())


def _ingestion_jobs(stack: Stack) -> list[dict[str, Any]]:
    return list(stack.source.bedrock.agent.list_ingestion_jobs(**stack.source.ids)["ingestionJobSummaries"])


def test_a_synchronisation_indexes_the_bucket_and_the_registry(stack: Stack, gate: Gate) -> None:
    stack.indexed("known.txt")
    stack.put("new.txt", "Something new.")
    stack.put("empty.txt", "")
    stack.clock.ahead += HOUR

    job = stack.reconcile("full")

    synchronisation = job.report["synchronisation"]
    assert job.status == "COMPLETE", job.reason
    assert synchronisation["status"] == "COMPLETE"
    assert synchronisation["statistics"]["numberOfDocumentsScanned"] == 3
    assert synchronisation["statistics"]["numberOfDocumentsFailed"] == 1
    assert "empty.txt" in synchronisation["failure_reasons"][0]
    assert job.ingestion_job_id == _ingestion_jobs(stack)[0]["ingestionJobId"]
    assert gate.closed_until() is None
    assert job.report["differences"]["not_in_registry"]["count"] == 2
    assert stack.requested() == ["empty.txt", "new.txt"]
    json.dumps(dict(job.report))


def test_an_upload_during_a_synchronisation_is_not_a_difference(stack: Stack) -> None:
    job = stack.jobs.create("full", "test")
    stack.send_job({"job": job.id})
    stack.service().process(stack.take("jobs"), lambda: LONG)
    assert stack.jobs.get(job.id).status == "RUNNING"
    stack.put("meanwhile.txt")  # its event waits behind the gate
    stack.clock.ahead += HOUR / 6

    stack.run_jobs()

    assert stack.jobs.get(job.id).status == "COMPLETE", stack.jobs.get(job.id).reason
    assert stack.jobs.get(job.id).report["differences"] == {}


def _first_steps(stack: Stack, number: int) -> Job:
    """Begin a synchronisation and take this many steps; the message of the next one stays in the queue."""
    job = stack.jobs.create("full", "test")
    stack.send_job({"job": job.id})
    for _ in range(number):
        (message,) = stack.take("jobs")
        assert stack.service().process([message], lambda: LONG) == []
    return stack.jobs.get(job.id)


@pytest.mark.parametrize(
    ("status", "operation"),
    [
        (Status.SUBMITTING, Operation("o", OperationKind.INGEST, 2.0**33)),
        (Status.INDEXING, Operation("o", OperationKind.INGEST, 0.0, 2.0**33)),
        (Status.DELETING, Operation("o", OperationKind.DELETE, 2.0**33)),
        (Status.DELETING, Operation("o", OperationKind.DELETE, 0.0, 2.0**33)),
    ],
    ids=["submitting", "indexing", "about to be deleted", "being deleted"],
)
def test_it_closes_the_gate_and_waits_for_operations_in_progress(
    stack: Stack, gate: Gate, status: Status, operation: Operation
) -> None:
    stack.indexed("a.txt")
    _work_on(stack, "a.txt", status, operation)

    waiting = _first_steps(stack, 5)

    assert (waiting.status, waiting.ingestion_job_id) == ("RUNNING", None)
    assert waiting.reason == f"The knowledge base is working on documents, such as {stack.uri('a.txt')}"
    assert gate.closed_until() is not None
    assert _ingestion_jobs(stack) == []

    stack.claim("a.txt", status=Status.INDEXED, finished_at=stack.clock())
    stack.run_jobs()
    assert stack.jobs.get(waiting.id).status == "COMPLETE"
    assert gate.closed_until() is None


@pytest.mark.parametrize(
    ("status", "operation"),
    [
        (Status.WAITING, None),
        (Status.SUBMITTING, Operation("o", OperationKind.INGEST, 1.0)),
        (Status.DELETING, Operation("o", OperationKind.DELETE, 1.0)),
    ],
    ids=["waiting", "abandoned submission", "abandoned deletion"],
)
def test_it_does_not_wait_for_documents_behind_the_gate(
    stack: Stack, status: Status, operation: Operation | None
) -> None:
    stack.indexed("a.txt")
    stack.claim("a.txt", status=status, counted=(), finished_at=None, operation=operation)

    assert stack.reconcile("full").status == "COMPLETE"


def test_it_fails_and_opens_the_gate_after_waiting_too_long(stack: Stack, gate: Gate) -> None:
    stack.indexed("a.txt")
    _work_on(stack, "a.txt", Status.INDEXING, Operation("o", OperationKind.INGEST, 0.0, 2.0**33))
    job = _first_steps(stack, 2)
    for _ in range(3):
        stack.clock.ahead += 50 * 60
        (message,) = stack.take("jobs")
        assert stack.service().process([message], lambda: LONG) == []

    ended = stack.jobs.get(job.id)

    assert ended.status == "FAILED"
    assert "could not start within 120 min: The knowledge base is working on documents" in str(ended.reason)
    assert gate.closed_until() is None
    assert stack.take("jobs") == []
    assert _ingestion_jobs(stack) == []


def _error(code: str, message: str = "no") -> ClientError:
    details: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": 400}}
    return ClientError(details, "Operation")


def _run_with(
    stack: Stack, name: str, answers: list[Any], between: Callable[[Job], None] = lambda _: None
) -> tuple[Job, int]:
    """Run a synchronisation whose Bedrock answers one operation so at first; also returns the number of its calls."""
    calls = []

    def answer(method: Any, **parameters: Any) -> Any:
        calls.append(parameters)
        if not answers:
            return method(**parameters)
        if isinstance(first := answers.pop(0), Exception):
            raise first
        return {"ingestionJob": {**method(**parameters)["ingestionJob"], **first}}

    service = stack.service()
    agent = changed_client(stack.agent, name, answer)
    service = replace(service, synchronisation=replace(service.synchronisation, agent=agent))
    job = stack.jobs.create("full", "test")
    stack.send_job({"job": job.id})
    while messages := stack.take("jobs"):
        for message in messages:
            assert service.process([message], lambda: LONG) == []
            between(stack.jobs.get(job.id))
    return stack.jobs.get(job.id), len(calls)


def test_it_waits_while_bedrock_reports_a_conflict(stack: Stack, gate: Gate) -> None:
    contention = [
        _error("ConflictException"),
        _error("ValidationException", "There are ongoing direct ingestions"),
        _error("ThrottlingException"),
    ]

    job, calls = _run_with(stack, "start_ingestion_job", [*contention, *contention])

    assert (job.status, calls) == ("COMPLETE", 7)
    assert job.step > 4
    assert gate.closed_until() is None


@pytest.mark.parametrize(
    ("operation", "reason"),
    [("start_ingestion_job", "not you"), ("get_ingestion_job", "Bedrock's job cannot be followed: ")],
)
def test_a_refusal_fails_the_job_and_opens_the_gate(stack: Stack, gate: Gate, operation: str, reason: str) -> None:
    job, _ = _run_with(stack, operation, [_error("AccessDeniedException", "not you")])

    assert job.status == "FAILED"
    assert reason in str(job.reason)
    assert gate.closed_until() is None
    assert stack.reconcile("full").status == "COMPLETE"


@pytest.mark.parametrize("status", ["FAILED", "STOPPED"])
def test_a_failed_ingestion_job_fails_a_compared_synchronisation(stack: Stack, gate: Gate, status: str) -> None:
    stack.put("new.txt")
    stack.clock.ahead += HOUR
    reasons = ["it broke" * 1000, *(f"and {number}" for number in range(30))]

    job, _ = _run_with(stack, "get_ingestion_job", [{"status": status, "failureReasons": reasons}])

    assert (job.status, job.reason) == ("FAILED", f"Bedrock's job is {status}")
    synchronisation = job.report["synchronisation"]
    assert synchronisation["status"] == status
    assert len(synchronisation["failure_reasons"]) == 20
    assert synchronisation["failure_reasons_in_all"] == 31
    assert max(map(len, synchronisation["failure_reasons"])) == 1000
    assert job.report["differences"]["not_in_registry"]["count"] == 1
    assert gate.closed_until() is None


def test_a_transient_error_does_not_end_the_following(stack: Stack) -> None:
    answers = [_error("ThrottlingException"), {"status": "IN_PROGRESS"}, _error("InternalServerException")]

    job, calls = _run_with(stack, "get_ingestion_job", answers)

    assert (job.status, calls) == ("COMPLETE", 4)


def test_an_ingestion_job_that_never_ends_fails_the_synchronisation(
    stack: Stack, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReconcileSettings, "follow_seconds", 2 * HOUR)

    def pass_time(job: Job) -> None:
        if job.is_running and "synchronisation" not in job.report:
            assert gate.closed_until() is not None
            stack.clock.ahead += 50 * 60

    ended, _ = _run_with(stack, "get_ingestion_job", [{"status": "IN_PROGRESS"}] * 100, pass_time)

    assert ended.status == "FAILED"
    assert ended.reason == "Bedrock's job is still IN_PROGRESS after 2 hours"
    assert gate.closed_until() is None


def test_it_waits_while_another_synchronisation_keeps_the_gate_closed(stack: Stack, gate: Gate) -> None:
    gate.close("another", stack.clock() + HOUR)

    job = _first_steps(stack, 3)

    assert job.reason == "Another synchronisation keeps the gate closed"
    assert _ingestion_jobs(stack) == []
    assert not gate.open(job.id)
    stack.clock.ahead += HOUR
    stack.run_jobs()
    assert stack.jobs.get(job.id).status == "COMPLETE"


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before a call", "after a call"])
def test_a_killed_function_starts_and_ends_one_ingestion_job(stack: Stack, gate: Gate, after: bool) -> None:
    stack.indexed("a.txt")
    deaths = 0

    # Every sixth call, and with the other parameter those three later: the steps repeat the same calls.
    for jobs in range(1, 100):
        stack.clock.ahead += HOUR
        death = Death(6 * jobs - 5 + 3 * after, after)
        job = stack.jobs.create("full", "test")
        stack.send_job({"job": job.id})
        run_and_die(stack, death)

        ended = stack.jobs.get(job.id)
        assert ended.status == "COMPLETE", (death, ended.reason)
        assert ended.report["synchronisation"]["status"] == "COMPLETE"
        assert gate.closed_until() is None
        assert stack.jobs.running("full") is None
        assert len(_ingestion_jobs(stack)) == jobs
        if death.calls < death.at:
            break
        deaths += 1

    assert deaths > 3


def run_and_die(stack: Stack, death: Death) -> None:
    """Let the function be killed once; its message is delivered again when the lease is over."""
    service = stack.service(death)
    while messages := stack.take("jobs"):
        for message in messages:
            try:
                assert service.process([message], lambda: LONG) == []
            except KilledError:
                others = stack.take("jobs")
                stack.clock.ahead += LONG + 1
                for each in (*others, replace(message, receives=2)):
                    assert stack.service().process([each], lambda: LONG) == []


def test_a_full_reconciliation_of_a_managed_knowledge_base_submits_every_document_again(managed_stack: Stack) -> None:
    stack = managed_stack
    stack.indexed("a.txt", "b.txt", corpus="x")
    stack.indexed("gone.txt")
    stack.remove("gone.txt")
    stack.request_check("gone.txt")
    stack.rest()
    before = {key: stack.record(key).operation for key in ("a.txt", "b.txt")}
    stack.delete_behind_the_back("b.txt")
    stack.clock.ahead += HOUR

    job = stack.reconcile("full")
    stack.rest()

    assert (job.status, job.ingestion_job_id) == ("COMPLETE", None)
    assert job.report["differences"]["read_before"]["count"] == 2
    assert job.report["differences_in_all"] == 0
    for key, operation in before.items():
        assert stack.record(key).operation != operation
        assert stack.in_knowledge_base(key) == "INDEXED"
        assert stack.record(key).observed.attributes == {"corpus": "x"}
    assert stack.record("gone.txt").status == "DELETED"
