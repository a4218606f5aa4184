"""Jobs: every job ends, no step runs twice, and only one function at a time works on a job."""

from ragstack_common.function import metrics

import json
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.config import Config

from lambdas.reconcile import handler as module
from ragstack_common.ingestion.messages import QueueMessage
from ragstack_common.reconciliation.messages import JobMessage, read_job_message
from ragstack_common.reconciliation.service import FAILURE_DELAY_SECONDS, MAX_FAILURES, ReconcileService
from ragstack_common.registry.coordination import Gate
from ragstack_common.registry.jobs import ABANDONED, FULL, RECONCILE, SILENT_SECONDS, Job, JobKind
from ragstack_common.services.jobs import Jobs
from ragstack_common.settings.ingestion import JOBS_NOT_COMPLETE
from tests.local_bedrock.support import REGION
from tests.ragstack_common.reconciliation.clients import Death, KilledError
from tests.ragstack_common.reconciliation.stack import HOUR, LONG, Stack
from tests.support.changed_client import changed_client
from tests.support.events import Context, sqs_event

MAX_MESSAGES = 300
DELIVERIES = 6
"""The value of the deployed queue."""


def give(service: ReconcileService, body: Any, receives: int = 1) -> list[str]:
    text = body if isinstance(body, str) else json.dumps(body)
    return service.process([QueueMessage("message", text, receives)], lambda: LONG)


def all_jobs(stack: Stack) -> list[Job]:
    return stack.jobs.page(100)[0]


def unreachable(service: str) -> Any:
    session: Any = boto3.Session("test", "test", region_name=REGION)
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=1)
    return session.client(service, endpoint_url="http://127.0.0.1:9", config=config)


@pytest.fixture
def function(stack: Stack, aws_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    settings = stack.settings
    for name, value in {
        "KNOWLEDGE_BASE_ID": settings.knowledge_base_id,
        "DATA_SOURCE_ID": settings.data_source_id,
        "REGISTRY_TABLE": settings.registry_table,
        "DOCUMENTS_BUCKET": settings.documents_bucket,
        "INGESTION_QUEUE_URL": settings.ingestion_queue_url,
        "JOBS_QUEUE_URL": settings.jobs_queue_url,
        "SNAPSHOT_BUCKET": settings.snapshot_bucket,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": aws_url,
        "AWS_ENDPOINT_URL_BEDROCK_AGENT": stack.source.bedrock.url,
    }.items():
        monkeypatch.setenv(name, value)
    metrics.namespace, metrics.service = "RAGStack", "reconcile"
    module.service.cache_clear()
    yield module.handler
    module.service.cache_clear()


def context(seconds: float) -> Context:
    made = Context()
    made.get_remaining_time_in_millis = lambda: int(seconds * 1000)  # type: ignore[method-assign]
    return made


def test_the_function_runs_a_job_and_returns_an_invalid_message(
    function: Any, stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    job = stack.jobs.create("reconcile", "test")

    answer = function(sqs_event("what?", json.dumps({"job": job.id})), context(LONG))

    assert answer == {"batchItemFailures": [{"itemIdentifier": "message-0"}]}
    assert stack.jobs.get(job.id).status == "COMPLETE"
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    (measured,) = [line for line in lines if "_aws" in line]
    assert measured["ReconciliationDifferences"] == measured["DocumentsCompared"] == [0.0]


def test_a_job_without_time_ends_incomplete_and_frees_the_next(function: Any, stack: Stack) -> None:
    job = stack.jobs.create("reconcile", "test")

    function(sqs_event(json.dumps({"job": job.id})), context(10.0))

    ended = stack.jobs.get(job.id)
    assert ended.status == "INCOMPLETE"
    assert ended.reason == "The time ended while the registry was read, before its first page"
    assert ended.report["complete"] is False
    assert ended.report["catalogue"]["reason"] == "It was not compared"
    assert stack.reconcile().status == "COMPLETE"


def test_the_schedule_starts_a_job_that_runs_to_its_end(stack: Stack) -> None:
    stack.send_job({"start": "reconcile", "by": "schedule"})

    stack.run_jobs()

    (job,) = all_jobs(stack)
    assert (job.kind, job.status, job.by) == ("reconcile", "COMPLETE", "schedule")
    assert job.created_at <= (job.started_at or 0) <= (job.finished_at or 0)


def test_a_start_while_a_job_is_running_changes_nothing(stack: Stack) -> None:
    job = stack.jobs.create("reconcile", "an operator")
    assert stack.jobs.write(job, replace(job, status="RUNNING"))

    assert give(stack.service(), {"start": "reconcile", "by": "schedule"}) == []

    assert [each.id for each in all_jobs(stack)] == [job.id]
    assert stack.take("jobs") == []


def test_the_next_start_runs_a_job_whose_message_was_never_sent(stack: Stack) -> None:
    job = stack.jobs.create("reconcile", "a killed function")

    stack.send_job({"start": "reconcile", "by": "schedule"})
    stack.run_jobs()

    assert [(each.id, each.status) for each in all_jobs(stack)] == [(job.id, "COMPLETE")]


@pytest.mark.parametrize(
    "body",
    ["", "{}", '"job"', "null", '{"start": "other"}', '{"start": ["full"]}', '{"job": "a", "step": "x"}', '{"job": 1}'],
)
def test_an_invalid_message_goes_back_to_the_queue(stack: Stack, body: str) -> None:
    assert give(stack.service(), body) == ["message"]
    assert all_jobs(stack) == []


@pytest.mark.parametrize("job_id", ["", "20260101T000000000-01234567"])
def test_a_message_about_an_unknown_job_is_acknowledged(stack: Stack, job_id: str) -> None:
    assert give(stack.service(), {"job": job_id}) == []
    assert stack.take("jobs") == []


def test_a_message_about_a_leased_job_waits(stack: Stack) -> None:
    job = stack.jobs.create("reconcile", "test")
    assert stack.jobs.write(job, replace(job, status="RUNNING", lease_until=stack.clock() + 500))
    before = stack.jobs.get(job.id)

    assert give(stack.service(), {"job": job.id}, receives=2) == []

    assert stack.jobs.get(job.id) == before
    assert [json.loads(m.body) for m in stack.take("jobs")] == [{"job": job.id, "step": 0, "failures": 1}]


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
            assert give(service, JobMessage(job_id=job.id, step=at_hand.step).body) == []
            given.append(message.body)
            after_step = stack.jobs.get(job.id)
            for body in given[-5:]:
                assert give(service, body) == []
            assert stack.jobs.get(job.id) == after_step
        assert len(given) < MAX_MESSAGES

    ended = stack.jobs.get(job.id)
    started = stack.source.bedrock.agent.list_ingestion_jobs(**stack.source.ids)["ingestionJobSummaries"]
    assert ended.status == "COMPLETE", ended.reason
    assert [each["ingestionJobId"] for each in started] == ([ended.ingestion_job_id] if kind == FULL else [])
    assert [each.id for each in all_jobs(stack)] == [job.id]
    assert Gate(stack.aws.dynamodb, stack.bucket, clock=stack.clock).closed_until() is None
    assert stack.jobs.running(kind) is None


def test_a_reconciliation_ends_while_a_synchronisation_is_running(stack: Stack) -> None:
    gate = Gate(stack.aws.dynamodb, stack.bucket, clock=stack.clock)
    gate.close("another", stack.clock() + HOUR)

    job = stack.reconcile()

    assert job.status == "INCOMPLETE"
    assert "full synchronisation is running" in str(job.reason)
    assert stack.metrics.values[JOBS_NOT_COMPLETE] == ("Count", 1)
    assert gate.closed_until() is not None


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before a call", "after a call"])
def test_a_job_completes_after_its_function_was_killed_at_any_call(stack: Stack, after: bool) -> None:
    stack.indexed("a.txt", "lost.txt")
    stack.delete_behind_the_back("lost.txt")
    deaths = 0

    for at in range(1, 100):
        stack.clock.ahead += HOUR
        stack.take("jobs")
        stack.take("ingestion")
        job = stack.jobs.create("reconcile", "test")
        service = stack.service(Death(at, after))
        try:
            assert give(service, {"job": job.id}) == []
        except KilledError:
            deaths += 1
        else:
            break
        stack.clock.ahead += LONG + 1
        assert give(stack.service(), {"job": job.id}, receives=2) == []
        stack.run_jobs()

        ended = stack.jobs.get(job.id)
        assert ended.status == "COMPLETE", (at, ended.reason)
        assert set(stack.requested()) == {"lost.txt"}
        assert stack.jobs.running("reconcile") is None

    assert deaths > 8


def test_a_job_fails_if_its_function_is_killed_each_time(stack: Stack) -> None:
    job = stack.jobs.create("reconcile", "test")

    for receives in range(1, MAX_FAILURES + 1):
        with pytest.raises(KilledError):
            give(stack.service(Death(3)), {"job": job.id}, receives)
        stack.clock.ahead += LONG + 1
    assert give(stack.service(), {"job": job.id}, MAX_FAILURES + 1) == []

    ended = stack.jobs.get(job.id)
    assert (ended.status, ended.reason) == ("FAILED", "Given up after 3 attempts: its function was stopped")
    assert stack.reconcile().status == "COMPLETE"


def with_reconciliation(service: ReconcileService, **changes: Any) -> ReconcileService:
    return replace(service, reconciliation=replace(service.reconciliation, **changes))


@pytest.mark.parametrize("broken", ["s3", "bedrock-agent", "sqs"])
def test_a_job_fails_after_a_service_was_unreachable_three_times(stack: Stack, broken: str) -> None:
    stack.indexed("a.txt")
    stack.delete_behind_the_back("a.txt")
    job = stack.jobs.create("reconcile", "test")
    service, client = stack.service(), unreachable(broken)
    queue = replace(service.reconciliation.queue, sqs=client)
    parts = {"s3": {"s3": client}, "bedrock-agent": {"agent": client}, "sqs": {"queue": queue}}
    service = with_reconciliation(service, **parts[broken])

    stack.send_job({"job": job.id})
    failures = []
    while messages := stack.take("jobs"):
        for message in messages:
            failures.append(json.loads(message.body).get("failures", 0))
            assert service.process([message], lambda: LONG) == []

    ended = stack.jobs.get(job.id)
    assert failures == [0, 1, 2, 3]
    assert ended.status == "FAILED"
    assert "Given up after 3 attempts: Could not connect" in str(ended.reason)
    assert stack.metrics.values[JOBS_NOT_COMPLETE] == ("Count", 1)
    assert stack.reconcile().status == "COMPLETE"
    assert stack.metrics.values[JOBS_NOT_COMPLETE] == ("Count", 0)


def test_a_message_is_redelivered_while_the_table_is_unreachable(stack: Stack) -> None:
    job = stack.jobs.create("reconcile", "test")
    table = unreachable("dynamodb")
    service = stack.service(lambda client: table if client is stack.aws.dynamodb else client)

    assert give(service, {"job": job.id}) == ["message"]
    assert give(service, {"start": "full", "by": "test"}) == ["message"]

    stack.send_job({"job": job.id})
    stack.run_jobs()
    assert stack.jobs.get(job.id).status == "COMPLETE"


def test_a_refused_message_is_sent_again(stack: Stack) -> None:
    stack.put("x.txt")
    stack.clock.ahead += HOUR
    service = stack.service()
    refusals = [{"Failed": [{"Id": "0", "Code": "InternalError", "SenderFault": False, "Message": "not now"}]}]

    def refuse_once(method: Any, **parameters: Any) -> Any:
        return refusals.pop() if refusals else method(**parameters)

    queue = service.reconciliation.queue
    sqs = changed_client(queue.sqs, "send_message_batch", refuse_once)
    job = stack.jobs.create("reconcile", "test")

    assert give(with_reconciliation(service, queue=replace(queue, sqs=sqs)), {"job": job.id}) == []

    assert stack.jobs.get(job.id).status == "COMPLETE"
    assert stack.requested() == ["x.txt"]
    assert len(stack.slept) == 1


class Faulty:
    def run(self, *_: Any, **_settings: Any) -> None:
        raise ZeroDivisionError("a fault\nin two lines")


def test_a_bug_is_raised_and_at_last_fails_the_job(stack: Stack) -> None:
    """The job records it, and its message is redelivered soon."""
    job = stack.jobs.create(RECONCILE, "test")
    hidden: list[int] = []
    sqs: Any = SimpleNamespace(change_message_visibility=lambda **call: hidden.append(call["VisibilityTimeout"]))
    service = stack.service()
    faulty: Any = Faulty()
    service = replace(service, reconciliation=faulty, queue=replace(service.queue, sqs=sqs))
    body = JobMessage(job_id=job.id).body

    for receives in range(1, MAX_FAILURES + 1):
        with pytest.raises(ZeroDivisionError):
            service.process([QueueMessage("m", body, receives, "handle")], lambda: LONG)
        between = stack.jobs.get(job.id)
        assert (between.status, between.reason) == ("RUNNING", "ZeroDivisionError: a fault in two lines")
    assert give(service, body, MAX_FAILURES + 1) == []

    ended = stack.jobs.get(job.id)
    assert hidden == [FAILURE_DELAY_SECONDS] * MAX_FAILURES
    assert ended.status == "FAILED"
    assert ended.reason == "Given up after 3 attempts: ZeroDivisionError: a fault in two lines"
    assert stack.reconcile().status == "COMPLETE"


def receive_until_put_aside(stack: Stack, service: ReconcileService, gives_up: type[BaseException] | None) -> int:
    """Deliver the one message of the jobs queue until the queue itself puts it aside; tell how often it came."""
    url, sqs = stack.queues["jobs"], stack.aws.sqs
    arn = sqs.get_queue_attributes(QueueUrl=stack.queues["dead"], AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": DELIVERIES})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": redrive})
    for deliveries in range(MAX_MESSAGES):
        received = sqs.receive_message(QueueUrl=url, AttributeNames=["All"], VisibilityTimeout=0).get("Messages")
        if not received:
            return deliveries
        (message,) = received
        receives = int(message["Attributes"]["ApproximateReceiveCount"])
        if gives_up is None:
            assert give(service, message["Body"], receives) == ["message"]
        else:
            with pytest.raises(gives_up):
                give(service, message["Body"], receives)
    raise AssertionError("the message is never put aside")


def killed(_: Any) -> Any:
    """Make a client of a function that is ended before it has read anything."""

    def call(*_: Any, **__: Any) -> None:
        raise KilledError

    return SimpleNamespace(get_item=call, get_paginator=call)


@pytest.mark.parametrize("how", ["the registry does not answer", "the function is killed"])
def test_a_job_whose_message_is_dead_lettered_reads_as_failed(stack: Stack, how: str) -> None:
    job = stack.jobs.create(FULL, "test")
    stack.send_job({"job": job.id})
    if how == "the function is killed":
        deliveries = receive_until_put_aside(stack, stack.service(killed), KilledError)
    else:
        table = unreachable("dynamodb")
        service = stack.service(lambda client: table if client is stack.aws.dynamodb else client)
        deliveries = receive_until_put_aside(stack, service, None)
    api = Jobs(stack.jobs, stack.queues["jobs"], stack.aws.sqs)

    before = api.get(job.id)
    stack.clock.ahead += SILENT_SECONDS + 1
    after = api.get(job.id)

    assert deliveries == DELIVERIES
    assert [read_job_message(message.body).job_id for message in stack.take("dead")] == [job.id]
    assert before.status == "QUEUED"
    assert (after.status, after.reason) == ("FAILED", ABANDONED)
    assert stack.reconcile(FULL).status == "COMPLETE"


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
