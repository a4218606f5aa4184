"""Repeated messages, bugs and dead letters: no step runs twice, and no job hangs."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.config import Config

from ragstack_common.api.jobs import Jobs
from ragstack_common.errors import InvalidRequestError
from ragstack_common.ingestion.messages import QueueMessage
from ragstack_common.reconciliation.messages import JobMessage, read_job_message
from ragstack_common.reconciliation.service import FAILURE_DELAY_SECONDS, MAX_FAILURES, ReconcileService
from ragstack_common.registry.coordination import Gate
from ragstack_common.registry.jobs import ABANDONED, FULL, RECONCILE, SILENT_SECONDS, JobKind
from tests.local_bedrock.support import REGION
from tests.ragstack_common.reconciliation.clients import KilledError
from tests.ragstack_common.reconciliation.stack import LONG, Stack

MOST_MESSAGES = 300
DELIVERIES = 6
"""As the stack's own queue has it."""


def _give(service: ReconcileService, body: str, receives: int = 1) -> list[str]:
    return service.process([QueueMessage("message", body, receives)], lambda: LONG)


@pytest.mark.parametrize("kind", [RECONCILE, FULL])
def test_a_repeated_message_changes_nothing(stack: Stack, kind: JobKind) -> None:
    stack.indexed("a.txt")
    job = stack.jobs.create(kind, "test")
    stack.send_job({"job": job.id})
    service = stack.service()
    given: list[str] = []

    while messages := stack.take("jobs"):
        for message in messages:
            # An operator sends the message of the current step again, while the queue still holds one.
            at_hand = stack.jobs.get(job.id)
            assert _give(service, JobMessage(job_id=job.id, step=at_hand.step).body) == []
            given.append(message.body)
            after_step = stack.jobs.get(job.id)
            for body in given[-5:]:
                assert _give(service, body) == []
            assert stack.jobs.get(job.id) == after_step
        assert len(given) < MOST_MESSAGES

    ended = stack.jobs.get(job.id)
    started = stack.source.bedrock.agent.list_ingestion_jobs(**stack.source.ids)["ingestionJobSummaries"]
    assert ended.status == "COMPLETE", ended.reason
    assert [each["ingestionJobId"] for each in started] == ([ended.ingestion_job_id] if kind == FULL else [])
    assert [each.id for each in stack.jobs.page(100)[0]] == [job.id]
    assert Gate(stack.aws.dynamodb, stack.bucket, clock=stack.clock).closed_until() is None
    assert stack.jobs.running(kind) is None


def test_a_repeated_message_waits_for_the_end_of_the_lease(stack: Stack) -> None:
    job = stack.jobs.create(RECONCILE, "test")
    service = stack.service()
    again: list[list[str]] = []
    run = service.reconciliation

    def clock() -> float:
        if not again:
            again.append(_give(stack.service(), JobMessage(job_id=job.id).body))
        return stack.clock()

    service = replace(service, reconciliation=replace(run, clock=clock))

    assert _give(service, JobMessage(job_id=job.id).body) == []

    ended = stack.jobs.get(job.id)
    assert ended.status == "COMPLETE"
    assert again == [[]]
    assert stack.run_jobs() == 1
    assert stack.jobs.get(job.id) == ended


def test_a_bug_is_raised_recorded_and_fails_the_job(stack: Stack) -> None:
    job = stack.jobs.create(RECONCILE, "test")
    service = stack.service()
    service = replace(service, reconciliation=_Faulty())  # type: ignore[arg-type]

    for receives in range(1, MAX_FAILURES + 1):
        with pytest.raises(ZeroDivisionError):
            _give(service, JobMessage(job_id=job.id).body, receives)
        between = stack.jobs.get(job.id)
        assert (between.status, between.reason) == ("RUNNING", "ZeroDivisionError: a fault in two lines")
    assert _give(service, JobMessage(job_id=job.id).body, MAX_FAILURES + 1) == []

    ended = stack.jobs.get(job.id)
    assert ended.status == "FAILED"
    assert ended.reason == "Given up after 3 attempts: ZeroDivisionError: a fault in two lines"
    assert stack.reconcile().status == "COMPLETE"


class _Faulty:
    def run(self, *_: Any) -> None:
        raise ZeroDivisionError("a fault\nin two lines")


def _with_visibility(service: ReconcileService, hidden: list[int]) -> ReconcileService:
    sqs: Any = SimpleNamespace(change_message_visibility=lambda **call: hidden.append(call["VisibilityTimeout"]))
    return replace(service, queue=replace(service.queue, sqs=sqs))


def test_after_a_bug_the_message_is_redelivered_soon(stack: Stack) -> None:
    job = stack.jobs.create(RECONCILE, "test")
    hidden: list[int] = []
    service = replace(_with_visibility(stack.service(), hidden), reconciliation=_Faulty())  # type: ignore[arg-type]

    with pytest.raises(ZeroDivisionError):
        service.process([QueueMessage("m", JobMessage(job_id=job.id).body, 1, "handle")], lambda: LONG)

    assert hidden == [FAILURE_DELAY_SECONDS]


def _receive_until_put_aside(stack: Stack, service: ReconcileService, gives_up: type[BaseException] | None) -> int:
    """Deliver the one message of the jobs queue until the queue itself puts it aside; tell how often it came."""
    url, sqs = stack.queues["jobs"], stack.aws.sqs
    arn = sqs.get_queue_attributes(QueueUrl=stack.queues["dead"], AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": DELIVERIES})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": redrive})
    for deliveries in range(MOST_MESSAGES):
        received = sqs.receive_message(QueueUrl=url, AttributeNames=["All"], VisibilityTimeout=0).get("Messages")
        if not received:
            return deliveries
        (message,) = received
        receives = int(message["Attributes"]["ApproximateReceiveCount"])
        if gives_up is None:
            assert _give(service, message["Body"], receives) == ["message"]
        else:
            with pytest.raises(gives_up):
                _give(service, message["Body"], receives)
    raise AssertionError("the message is never put aside")


@pytest.mark.parametrize("how", ["the registry does not answer", "the function is killed"])
def test_a_job_whose_message_is_dead_lettered_reads_as_failed(stack: Stack, how: str) -> None:
    job = stack.jobs.create(FULL, "test")
    stack.send_job({"job": job.id})
    if how == "the function is killed":
        deliveries = _receive_until_put_aside(stack, stack.service(_Killed), KilledError)
    else:
        unreachable = replace(stack.service(), jobs=_unreachable_jobs(stack))
        deliveries = _receive_until_put_aside(stack, unreachable, None)
    api = Jobs(stack.jobs, stack.queues["jobs"], stack.aws.sqs)

    before = api.get(job.id)
    stack.clock.ahead += SILENT_SECONDS + 1
    after = api.get(job.id)

    assert deliveries == DELIVERIES
    assert [read_job_message(message.body).job_id for message in stack.take("dead")] == [job.id]
    assert before.status == "QUEUED"
    assert (after.status, after.reason) == ("FAILED", ABANDONED)
    assert "dead-letter queue" in ABANDONED
    assert stack.reconcile(FULL).status == "COMPLETE"


class _Killed:
    """The clients of a function that is ended before it has read anything."""

    def __init__(self, _: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        def call(**_: Any) -> None:
            raise KilledError

        return call


def _unreachable_jobs(stack: Stack) -> Any:
    session: Any = boto3.Session("test", "test", region_name=REGION)
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=1)
    client = session.client("dynamodb", endpoint_url="http://127.0.0.1:9", config=config)
    return type(stack.jobs)(stack.bucket, client, clock=stack.clock, sleep=stack.slept.append)


def test_a_silent_job_keeps_its_last_reason(stack: Stack) -> None:
    job = stack.jobs.create(RECONCILE, "test")
    assert stack.jobs.write(job, replace(job, status="RUNNING", reason="Could not connect"))

    stack.clock.ahead += SILENT_SECONDS + 1

    assert stack.jobs.get(job.id).reason == f"{ABANDONED}. The last reason was: Could not connect"


@pytest.mark.parametrize(
    "message",
    [JobMessage(kind="full", by="schedule"), JobMessage(job_id="20260101T000000000-01234567", step=3, failures=2)],
    ids=["start", "go on"],
)
def test_a_job_message_is_read_as_it_was_written(message: JobMessage) -> None:
    assert read_job_message(message.body) == message


@pytest.mark.parametrize("job_id", [None, 1, ["x"]])
def test_a_job_id_must_be_a_text(job_id: Any) -> None:
    with pytest.raises(InvalidRequestError, match="not a request for a job"):
        read_job_message(json.dumps({"job": job_id}))
