"""Whose job it is to go on with a job, and that there always is somebody, and never two."""

import json
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.config import Config

from ragstack_common.config import JOBS_NOT_COMPLETE, ReconcileSettings
from ragstack_common.errors import ConfigurationError, JobConflictError
from ragstack_common.ingestion.messages import QueueMessage
from ragstack_common.reconciliation.service import MAX_FAILURES, ReconcileService
from ragstack_common.registry.coordination import Gate
from ragstack_common.registry.jobs import Job
from tests.local_bedrock.support import REGION
from tests.ragstack_common.reconciliation.clients import Death, KilledError
from tests.ragstack_common.reconciliation.stack import HOUR, LONG, Stack

ENV = {
    "KNOWLEDGE_BASE_ID": "ABCDEFGHIJ",
    "DATA_SOURCE_ID": "KLMNOPQRST",
    "REGISTRY_TABLE": "registry",
    "DOCUMENTS_BUCKET": "bucket",
    "INGESTION_QUEUE_URL": "http://queue/ingestion",
    "JOBS_QUEUE_URL": "http://queue/jobs",
}


def _message(body: Any, receives: int = 1) -> QueueMessage:
    return QueueMessage("message", body if isinstance(body, str) else json.dumps(body), receives)


def _give(service: ReconcileService, body: Any, receives: int = 1) -> list[str]:
    return service.process([_message(body, receives)], lambda: LONG)


def _jobs(stack: Stack) -> list[Job]:
    return stack.jobs.page(100)[0]


def test_the_schedule_starts_a_job_that_runs_to_its_end(stack: Stack) -> None:
    stack.send_job({"start": "reconcile", "by": "schedule"})

    stack.run_jobs()

    (job,) = _jobs(stack)
    assert (job.kind, job.status, job.by) == ("reconcile", "COMPLETE", "schedule")
    assert job.created_at <= (job.started_at or 0) <= (job.finished_at or 0)


def test_a_start_while_one_is_running_is_acknowledged_and_changes_nothing(stack: Stack) -> None:
    job = stack.jobs.create("reconcile", "somebody")
    assert stack.jobs.write(job, replace(job, status="RUNNING"))

    assert _give(stack.service(), {"start": "reconcile", "by": "schedule"}) == []

    assert [each.id for each in _jobs(stack)] == [job.id]
    assert stack.take("jobs") == []


def test_a_job_whose_creator_died_before_it_was_sent_is_taken_up_by_the_next_start(stack: Stack) -> None:
    job = stack.jobs.create("reconcile", "somebody who died")

    stack.send_job({"start": "reconcile", "by": "schedule"})
    stack.run_jobs()

    assert [(each.id, each.status) for each in _jobs(stack)] == [(job.id, "COMPLETE")]


@pytest.mark.parametrize(
    "body",
    ["", "x", "[]", "{}", '"job"', "null", '{"start": "other"}', '{"start": ["full"]}', '{"job": "a", "step": "x"}'],
)
def test_a_message_that_nobody_can_read_goes_back_to_the_queue_which_puts_it_aside(stack: Stack, body: str) -> None:
    assert _give(stack.service(), body) == ["message"]
    assert _jobs(stack) == []


@pytest.mark.parametrize("job_id", ["", "x", "20260101T000000000-01234567"])
def test_a_message_about_no_job_is_acknowledged(stack: Stack, job_id: str) -> None:
    assert _give(stack.service(), {"job": job_id}) == []
    assert stack.take("jobs") == []


def test_a_message_of_a_job_that_has_ended_does_nothing(stack: Stack) -> None:
    job = stack.reconcile()

    assert _give(stack.service(), {"job": job.id}) == []
    assert stack.jobs.get(job.id) == job


def test_a_message_of_a_step_that_is_done_does_nothing(stack: Stack) -> None:
    job = stack.jobs.create("full", "test")
    assert stack.jobs.write(job, replace(job, status="RUNNING", step=3))
    before = stack.jobs.get(job.id)

    assert _give(stack.service(), {"job": job.id, "step": 2}) == []

    assert stack.jobs.get(job.id) == before
    assert stack.take("jobs") == []


def test_while_a_function_works_on_a_job_another_delivery_of_its_message_waits(stack: Stack) -> None:
    job = stack.jobs.create("reconcile", "test")
    assert stack.jobs.write(job, replace(job, status="RUNNING", lease_until=stack.clock() + 500))
    before = stack.jobs.get(job.id)

    assert _give(stack.service(), {"job": job.id}, receives=2) == []

    assert stack.jobs.get(job.id) == before
    assert [json.loads(m.body) for m in stack.take("jobs")] == [{"job": job.id, "step": 0, "failures": 1}]


def test_a_reconciliation_leaves_the_field_to_a_synchronisation(stack: Stack) -> None:
    gate = Gate(stack.aws.dynamodb, stack.bucket, clock=stack.clock)
    gate.close("another", stack.clock() + HOUR)

    job = stack.reconcile()

    assert job.status == "INCOMPLETE"
    assert "full synchronisation is running" in str(job.reason)
    assert stack.metrics.values[JOBS_NOT_COMPLETE] == ("Count", 1)
    assert gate.closed_until() is not None


@pytest.mark.parametrize("after", [False, True], ids=["before a call", "after a call"])
def test_a_function_that_is_killed_anywhere_leaves_a_job_that_comes_to_its_end(stack: Stack, after: bool) -> None:
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
            assert _give(service, {"job": job.id}) == []
        except KilledError:
            deaths += 1
        else:
            break
        stack.clock.ahead += LONG + 1
        assert _give(stack.service(), {"job": job.id}, receives=2) == []
        stack.run_jobs()

        ended = stack.jobs.get(job.id)
        assert ended.status == "COMPLETE", (at, ended.reason)
        assert set(stack.looks()) == {"lost.txt"}
        assert stack.jobs.running("reconcile") is None

    assert deaths > 8


def test_a_job_whose_function_is_killed_every_time_is_given_up(stack: Stack) -> None:
    job = stack.jobs.create("reconcile", "test")

    for receives in range(1, MAX_FAILURES + 1):
        with pytest.raises(KilledError):
            _give(stack.service(Death(3)), {"job": job.id}, receives)
        stack.clock.ahead += LONG + 1
    assert _give(stack.service(Death(0)), {"job": job.id}, MAX_FAILURES + 1) == []

    ended = stack.jobs.get(job.id)
    assert ended.status == "FAILED"
    assert ended.reason == "Given up after 3 attempts: its function was stopped"
    assert stack.reconcile().status == "COMPLETE"


def _unreachable(service: str) -> Any:
    session: Any = boto3.Session("test", "test", region_name=REGION)
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=1)
    return session.client(service, endpoint_url="http://127.0.0.1:9", config=config)


@pytest.mark.parametrize("broken", ["s3", "bedrock-agent", "sqs"])
def test_a_service_that_cannot_be_reached_is_tried_again_and_then_the_job_has_failed(stack: Stack, broken: str) -> None:
    stack.indexed("a.txt")
    stack.delete_behind_the_back("a.txt")
    job = stack.jobs.create("reconcile", "test")
    service = stack.service()
    run = service.reconciliation
    parts = {"s3": {"s3": _unreachable("s3")}, "bedrock-agent": {"agent": _unreachable("bedrock-agent")}}
    parts["sqs"] = {"queue": replace(run.queue, sqs=_unreachable("sqs"))}
    service = replace(service, reconciliation=replace(run, **parts[broken]))

    failures = []
    while (messages := stack.take("jobs")) or not failures:
        for message in messages or [_message({"job": job.id})]:
            failures.append(json.loads(message.body).get("failures", 0))
            assert service.process([message], lambda: LONG) == []

    ended = stack.jobs.get(job.id)
    assert failures == [0, 1, 2, 3]
    assert ended.status == "FAILED"
    assert "Given up after 3 attempts: Could not connect" in str(ended.reason)
    assert stack.metrics.values[JOBS_NOT_COMPLETE] == ("Count", 1)
    assert stack.reconcile().status == "COMPLETE"
    assert stack.metrics.values[JOBS_NOT_COMPLETE] == ("Count", 0)


def test_while_the_table_cannot_be_reached_the_message_comes_again(stack: Stack) -> None:
    job = stack.jobs.create("reconcile", "test")
    service = ReconcileService.of(
        stack.settings,
        agent=stack.source.bedrock.agent,
        dynamodb=_unreachable("dynamodb"),
        s3=stack.aws.s3,
        sqs=stack.aws.sqs,
        sleep=stack.slept.append,
    )

    assert _give(service, {"job": job.id}) == ["message"]
    assert _give(service, {"start": "full", "by": "test"}) == ["message"]

    stack.send_job({"job": job.id})
    stack.run_jobs()
    assert stack.jobs.get(job.id).status == "COMPLETE"


def test_looks_that_the_queue_does_not_take_are_sent_again(stack: Stack) -> None:
    stack.put("x.txt")
    stack.clock.ahead += HOUR
    service = stack.service()
    refusing = _RefusesOnce(service.reconciliation.queue.sqs)
    queue = replace(service.reconciliation.queue, sqs=refusing)
    service = replace(service, reconciliation=replace(service.reconciliation, queue=queue))
    job = stack.jobs.create("reconcile", "test")

    assert _give(service, {"job": job.id}) == []

    assert stack.jobs.get(job.id).status == "COMPLETE"
    assert stack.looks() == ["x.txt"]
    assert refusing.refused == 1
    assert len(stack.slept) == 1


class _RefusesOnce:
    def __init__(self, sqs: Any) -> None:
        self._sqs = sqs
        self.refused = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sqs, name)

    def send_message_batch(self, **parameters: Any) -> Any:
        if self.refused:
            return self._sqs.send_message_batch(**parameters)
        self.refused += 1
        return {"Failed": [{"Id": "0", "Code": "InternalError", "SenderFault": False, "Message": "not now"}]}


def test_two_jobs_of_a_kind_cannot_be_made(stack: Stack) -> None:
    stack.jobs.create("reconcile", "one")

    with pytest.raises(JobConflictError):
        stack.jobs.create("reconcile", "two")


def test_the_settings_come_from_the_environment() -> None:
    settings = ReconcileSettings.from_env(ENV)
    other = ReconcileSettings.from_env(
        {
            **ENV,
            "INGESTION_CALLS_PER_SECOND": "2.5",
            "STATUS_GIVE_UP_SECONDS": "60",
            "RECONCILE_SETTLE_SECONDS": "0",
            "RECONCILE_POLL_SECONDS": "1",
        }
    )

    assert (settings.knowledge_base_id, settings.documents_bucket) == ("ABCDEFGHIJ", "bucket")
    assert (settings.calls_per_second, settings.settle_seconds, settings.poll_seconds) == (5.0, 60.0, 15.0)
    assert (other.calls_per_second, other.give_up_seconds) == (2.5, 60.0)
    assert (other.settle_seconds, other.poll_seconds) == (0.0, 1.0)


@pytest.mark.parametrize("name", ENV)
def test_a_setting_that_is_missing_is_named(name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        ReconcileSettings.from_env({**ENV, name: " "})


@pytest.mark.parametrize(
    ("name", "value"),
    [("INGESTION_CALLS_PER_SECOND", "0"), ("RECONCILE_SETTLE_SECONDS", "-1"), ("RECONCILE_POLL_SECONDS", "soon")],
)
def test_a_setting_that_is_unusable_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        ReconcileSettings.from_env({**ENV, name: value})
