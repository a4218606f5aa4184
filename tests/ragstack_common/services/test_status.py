"""The state of a deployment, on moto's DynamoDB, SQS and CloudWatch."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from ragstack_common.registry.jobs import JobStore
from ragstack_common.registry.records import Observation, Status
from ragstack_common.services.status import WITHOUT_ALARMS, WITHOUT_CLOUDWATCH
from tests.ragstack_common.services.conftest import Aws, Call
from tests.support.registry_table import TABLE

HOUR = 3600
PREFIX = "RagStack"

Report = Callable[[], Any]


@pytest.fixture
def report(call: Call, monkeypatch: pytest.MonkeyPatch) -> Report:
    monkeypatch.setenv("RAGSTACK_STACK", PREFIX)

    def ask() -> Any:
        code, answer = call("GET", "/api/status")
        assert code == 200, answer
        return answer

    return ask


def alarm(aws: Aws, name: str, state: str) -> None:
    metric = {"Namespace": "RAGStack", "MetricName": "Faults", "Statistic": "Sum", "Period": 300}
    condition = {"EvaluationPeriods": 1, "Threshold": 1.0, "ComparisonOperator": "GreaterThanOrEqualToThreshold"}
    aws.cloudwatch.put_metric_alarm(AlarmName=name, AlarmDescription=f"What {name} says", **metric, **condition)
    aws.cloudwatch.set_alarm_state(AlarmName=name, StateValue=state, StateReason="test")


def test_an_empty_deployment_has_nothing_to_report(report: Report) -> None:
    found = report()

    assert (found["documents"], found["dead_letters"], found["last_reconciliation"]) == ({}, 0, None)
    assert [each["name"] for each in found["queues"]] == ["events", "status checks", "jobs", "dead letters"]
    assert {(each["waiting"], each["in_flight"], each["oldest_seconds"]) for each in found["queues"]} == {(0, 0, None)}
    assert len(found["throughput"]) == 24
    assert (found["alarms"], found["notes"]) == (None, [WITHOUT_ALARMS])


def test_documents_are_counted_by_status_and_hour(aws: Aws, report: Report) -> None:
    now = datetime.now(UTC).timestamp()
    for key, state, age in (
        ("a.md", Status.INDEXED, 0),
        ("b.md", Status.INDEXED, 5 * HOUR),
        ("c.md", Status.PARTIALLY_INDEXED, 5 * HOUR),
        ("d.md", Status.INDEXED, 25 * HOUR),
        ("e.md", Status.FAILED, 5 * HOUR),
        ("f.md", Status.DELETED, 0),
    ):
        aws.record(key, state, Observation(etag=f'"{key}"'), finished_at=now - age)
    aws.record("g.md", Status.WAITING, Observation(etag='"g"'))

    found = report()

    assert found["documents"] == {
        "INDEXED": 3,
        "PARTIALLY_INDEXED": 1,
        "FAILED": 1,
        "WAITING": 1,
    }
    hours = [(each["indexed"], each["failed"]) for each in found["throughput"]]
    assert hours[23] == (1, 0)
    assert hours[18] == (2, 1)
    assert sum(indexed + failed for indexed, failed in hours) == 4
    assert found["throughput"][23]["hour"] == f"{datetime.fromtimestamp(now, UTC):%Y-%m-%dT%H}:00:00.000Z"


@pytest.mark.parametrize("status", [Status.INDEXED, Status.WAITING, Status.DELETING])
def test_a_report_reads_no_index_whatever_the_documents_are_doing(aws: Aws, report: Report, status: Status) -> None:
    """Each visible console asks again and again."""
    calls: list[tuple[str, bool]] = []

    def note(model: Any, params: Any, **_: Any) -> None:
        calls.append((model.name, b"IndexName" in params["body"]))

    aws.dynamodb.meta.events.register("before-call.dynamodb", note)
    aws.record("0.md", status, Observation(etag='"e"'))
    calls.clear()
    report()
    few = [*calls]
    for number in range(1, 60):
        large = Observation(etag=f'"{number}"', attributes={"text": "x" * 20_000})
        aws.record(f"{number}.md", status, large)
    calls.clear()

    found = report()

    assert found["documents"] == {status: 60}
    assert calls == few
    assert not any(reads_index for _, reads_index in calls)


def test_a_report_reads_few_jobs(aws: Aws, report: Report) -> None:
    jobs = JobStore(TABLE, aws.dynamodb)
    for _ in range(40):
        job = jobs.create("reconcile", "schedule")
        jobs.write(job, replace(job, status="COMPLETE", report={"text": "x" * 20_000}))
    read: list[int] = []
    aws.dynamodb.meta.events.register("after-call.dynamodb.Query", lambda parsed, **_: read.append(parsed["Count"]))

    assert report()["last_reconciliation"]["id"] == job.id
    assert sum(read) < 10


def test_messages_are_counted_by_queue(aws: Aws, report: Report) -> None:
    for number in range(3):
        aws.sqs.send_message(QueueUrl=aws.dead_letter_url, MessageBody=f"{number}")
    aws.sqs.send_message(QueueUrl=aws.status_url, MessageBody="later", DelaySeconds=600)
    aws.sqs.send_message(QueueUrl=aws.ingestion_url, MessageBody="now")
    aws.sqs.receive_message(QueueUrl=aws.ingestion_url)

    found = report()

    depths = {each["name"]: (each["waiting"], each["in_flight"]) for each in found["queues"]}
    assert depths == {"events": (0, 1), "status checks": (1, 0), "jobs": (0, 0), "dead letters": (3, 0)}
    assert found["dead_letters"] == 3


def age(aws: Aws, url: str, seconds: float, minutes_ago: int) -> None:
    metric = {
        "MetricName": "ApproximateAgeOfOldestMessage",
        "Dimensions": [{"Name": "QueueName", "Value": url.rpartition("/")[2]}],
        "Timestamp": datetime.now(UTC) - timedelta(minutes=minutes_ago),
        "Value": seconds,
    }
    aws.cloudwatch.put_metric_data(Namespace="AWS/SQS", MetricData=[metric])


def test_a_queue_in_which_something_waits_has_the_age_of_its_oldest_message(aws: Aws, report: Report) -> None:
    age(aws, aws.ingestion_url, 30, 9)
    age(aws, aws.ingestion_url, 90, 2)
    age(aws, aws.status_url, 40, 2)
    aws.sqs.send_message(QueueUrl=aws.ingestion_url, MessageBody="now")

    found = report()

    ages = {each["name"]: each["oldest_seconds"] for each in found["queues"]}
    assert ages == {"events": 90, "status checks": None, "jobs": None, "dead letters": None}


def test_ages_are_read_only_of_queues_in_which_something_waits(aws: Aws, report: Report) -> None:
    """CloudWatch bills each metric of a request."""
    asked: list[str] = []
    aws.cloudwatch.meta.events.register(
        "before-call.cloudwatch.GetMetricData", lambda model, **_: asked.append(model.name)
    )

    report()
    assert asked == []
    aws.sqs.send_message(QueueUrl=aws.ingestion_url, MessageBody="now")
    found = report()

    assert asked == ["GetMetricData"]
    assert {each["oldest_seconds"] for each in found["queues"]} == {None}


def test_firing_alarms_of_this_deployment_come_first(aws: Aws, report: Report) -> None:
    alarm(aws, "RagStackApi-A", "OK")
    alarm(aws, "RagStackStorage-B", "ALARM")
    alarm(aws, "RagStackTwoApi-C", "ALARM")
    alarm(aws, "OtherApi-D", "ALARM")

    found = report()

    assert [(each["name"], each["state"], each["reason"]) for each in found["alarms"]] == [
        ("RagStackStorage-B", "ALARM", "What RagStackStorage-B says"),
        ("RagStackApi-A", "OK", "What RagStackApi-A says"),
    ]
    assert all(each["since"].endswith("Z") for each in found["alarms"])
    assert found["notes"] == []


def test_alarms_are_unknown_without_cloudwatch(aws: Aws, report: Report) -> None:
    def refuse(**_: Any) -> None:
        raise EndpointConnectionError(endpoint_url="https://monitoring")

    aws.cloudwatch.meta.events.register("before-call.cloudwatch.DescribeAlarms", refuse)
    try:
        found = report()
    finally:
        aws.cloudwatch.meta.events.unregister("before-call.cloudwatch.DescribeAlarms", refuse)

    assert (found["alarms"], found["notes"]) == (None, [WITHOUT_CLOUDWATCH])


def test_the_last_reconciliation_is_shown_and_no_other_job(aws: Aws, report: Report) -> None:
    jobs = JobStore(TABLE, aws.dynamodb)
    reconciliation = jobs.create("reconcile", "schedule")
    jobs.create("full", "api")

    found = report()

    assert found["last_reconciliation"]["id"] == reconciliation.id
    assert found["last_reconciliation"]["status"] == "QUEUED"
