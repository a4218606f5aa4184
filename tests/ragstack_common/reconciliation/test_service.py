"""Jobs: every job ends, and only one function at a time works on it."""

import json
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.config import Config

from ragstack_common.config import JOBS_NOT_COMPLETE
from ragstack_common.ingestion.messages import QueueMessage
from ragstack_common.reconciliation.service import MAX_FAILURES, ReconcileService
from ragstack_common.registry.coordination import Gate
from ragstack_common.registry.jobs import Job
from tests.local_bedrock.support import REGION
from tests.ragstack_common.reconciliation.clients import Death, KilledError
from tests.ragstack_common.reconciliation.stack import HOUR, LONG, Stack


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


def test_a_start_while_a_job_is_running_changes_nothing(stack: Stack) -> None:
    job = stack.jobs.create("reconcile", "an operator")
    assert stack.jobs.write(job, replace(job, status="RUNNING"))

    assert _give(stack.service(), {"start": "reconcile", "by": "schedule"}) == []

    assert [each.id for each in _jobs(stack)] == [job.id]
    assert stack.take("jobs") == []


def test_the_next_start_runs_a_job_whose_message_was_never_sent(stack: Stack) -> None:
    job = stack.jobs.create("reconcile", "a killed function")

    stack.send_job({"start": "reconcile", "by": "schedule"})
    stack.run_jobs()

    assert [(each.id, each.status) for each in _jobs(stack)] == [(job.id, "COMPLETE")]


@pytest.mark.parametrize(
    "body",
    ["", "x", "[]", "{}", '"job"', "null", '{"start": "other"}', '{"start": ["full"]}', '{"job": "a", "step": "x"}'],
)
def test_an_invalid_message_goes_back_to_the_queue(stack: Stack, body: str) -> None:
    assert _give(stack.service(), body) == ["message"]
    assert _jobs(stack) == []


@pytest.mark.parametrize("job_id", ["", "x", "20260101T000000000-01234567"])
def test_a_message_about_an_unknown_job_is_acknowledged(stack: Stack, job_id: str) -> None:
    assert _give(stack.service(), {"job": job_id}) == []
    assert stack.take("jobs") == []


def test_a_message_about_a_leased_job_waits(stack: Stack) -> None:
    job = stack.jobs.create("reconcile", "test")
    assert stack.jobs.write(job, replace(job, status="RUNNING", lease_until=stack.clock() + 500))
    before = stack.jobs.get(job.id)

    assert _give(stack.service(), {"job": job.id}, receives=2) == []

    assert stack.jobs.get(job.id) == before
    assert [json.loads(m.body) for m in stack.take("jobs")] == [{"job": job.id, "step": 0, "failures": 1}]


def test_a_reconciliation_ends_while_a_synchronisation_is_running(stack: Stack) -> None:
    gate = Gate(stack.aws.dynamodb, stack.bucket, clock=stack.clock)
    gate.close("another", stack.clock() + HOUR)

    job = stack.reconcile()

    assert job.status == "INCOMPLETE"
    assert "full synchronisation is running" in str(job.reason)
    assert stack.metrics.values[JOBS_NOT_COMPLETE] == ("Count", 1)
    assert gate.closed_until() is not None


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


def test_a_job_fails_if_its_function_is_killed_each_time(stack: Stack) -> None:
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
def test_a_job_fails_after_a_service_was_unreachable_three_times(stack: Stack, broken: str) -> None:
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


def test_a_message_is_redelivered_while_the_table_is_unreachable(stack: Stack) -> None:
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


def test_a_refused_message_is_sent_again(stack: Stack) -> None:
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
