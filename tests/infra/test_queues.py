"""The queues: who reads them, how often a message is delivered, and its alarms."""

from typing import Any

import pytest

from infra.options import Options
from ragstack_common.reconciliation.service import MAX_FAILURES
from ragstack_common.registry.jobs import SILENT_SECONDS
from ragstack_common.settings.ingestion import IngestionSettings

from .conftest import LOCAL

pytestmark = pytest.mark.xdist_group("synthesized stacks")

READERS = {
    "ChangesEvents": ("ingestion", 6),
    "StatusQueue": ("ingestion_status", 6),
    "ConversionQueue": ("converter", 6),
    "LargeFilesQueue": ("converter", 6),
    "ReceiptsQueue": ("receipts", 6),
    "JobsQueue": ("reconcile", 2),
}
"""Each queue with its function, and for how many of that function's timeouts a delivered message stays hidden."""

HOUR = 3600

queues = pytest.mark.parametrize("queue", sorted(READERS))


def properties_of(assembly: Any, queue: str) -> dict[str, Any]:
    (found,) = [
        resource["Properties"]
        for name, resource in assembly.resources("AWS::SQS::Queue").items()
        if name.startswith(queue)
    ]
    return dict(found)


def mapping_of(assembly: Any, queue: str) -> dict[str, Any]:
    (found,) = [
        resource["Properties"]
        for resource in assembly.resources("AWS::Lambda::EventSourceMapping").values()
        if queue in str(resource["Properties"]["EventSourceArn"])
    ]
    return dict(found)


def alarms(assembly: Any, metric: str) -> dict[str, dict[str, Any]]:
    return {
        str(alarm["Properties"]["Dimensions"]): alarm["Properties"]
        for alarm in assembly.resources("AWS::CloudWatch::Alarm").values()
        if alarm["Properties"]["MetricName"] == metric
    }


def age_alarm(assembly: Any, queue: str) -> dict[str, Any]:
    (found,) = [alarm for on, alarm in alarms(assembly, "ApproximateAgeOfOldestMessage").items() if queue in on]
    return found


@queues
def test_a_message_stays_hidden_until_its_function_has_surely_ended(aws: Any, queue: str) -> None:
    service, timeouts = READERS[queue]

    assert properties_of(aws, queue)["VisibilityTimeout"] == timeouts * aws.function(service)["Timeout"]


def test_a_killed_job_continues_before_it_counts_as_abandoned(aws: Any) -> None:
    """The message becomes visible again before the job counts as abandoned."""
    assert properties_of(aws, "JobsQueue")["VisibilityTimeout"] < HOUR < SILENT_SECONDS


@queues
def test_each_queue_feeds_its_function_which_fails_single_messages(aws: Any, queue: str) -> None:
    mapping = mapping_of(aws, queue)
    function = aws.resources("AWS::Lambda::Function")[mapping["FunctionName"]["Ref"]]["Properties"]

    assert function == aws.function(READERS[queue][0])
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 2 if queue == "JobsQueue" else 10}


@pytest.mark.parametrize(
    ("calls_per_second", "at_once"), [("0.1", 2), ("5", 2), ("5.1", 3), ("20", 8), ("25", 10), ("1000", 10)]
)
def test_concurrent_invocations_follow_the_rate_of_calls(calls_per_second: str, at_once: int) -> None:
    options = Options.from_context(
        {"ingestion_calls_per_second": calls_per_second, "ingestion_seconds_per_call": "0.4"}
    )

    assert options.invocations_at_once == at_once


def test_without_a_measured_call_invocations_adapt_to_any_duration() -> None:
    assert Options.from_context({}).invocations_at_once == 10
    assert Options.from_context({"ingestion_seconds_per_call": "1.5"}).invocations_at_once == 8
    assert Options.from_context({**LOCAL}).invocations_at_once == 2


def test_a_raised_quota_reaches_the_queues_of_documents_only(tuned: Any) -> None:
    at_once = {queue: mapping_of(tuned, queue)["ScalingConfig"]["MaximumConcurrency"] for queue in READERS}

    assert at_once == {**dict.fromkeys(READERS, 8), "JobsQueue": 2}


def test_documents_come_by_the_hundred_and_jobs_one_by_one(aws: Any) -> None:
    batches = {
        queue: (mapping["BatchSize"], mapping.get("MaximumBatchingWindowInSeconds"))
        for queue in READERS
        for mapping in [mapping_of(aws, queue)]
    }

    many = (100, 1)
    assert batches == {
        "ChangesEvents": many,
        "StatusQueue": many,
        "ConversionQueue": (1, None),
        "LargeFilesQueue": (1, None),
        "ReceiptsQueue": (10, None),
        "JobsQueue": (1, None),
    }


def test_the_redrive_comes_one_delivery_after_the_function_gives_up(aws: Any, tuned: Any) -> None:
    for assembly in (aws, tuned):
        max_receives = IngestionSettings.from_env(assembly.environment("ingestion")).max_receives
        assert properties_of(assembly, "ChangesEvents")["RedrivePolicy"]["maxReceiveCount"] == max_receives + 1


def test_status_checks_and_jobs_have_enough_deliveries(aws: Any) -> None:
    """The function of status checks never gives up on a message, and that of jobs seldom does."""
    assert properties_of(aws, "StatusQueue")["RedrivePolicy"]["maxReceiveCount"] == 100
    assert properties_of(aws, "JobsQueue")["RedrivePolicy"]["maxReceiveCount"] > MAX_FAILURES + 1


@queues
def test_messages_about_documents_are_kept_for_two_weeks(aws: Any, queue: str) -> None:
    """A dead message about a job is dropped after a day: its job reads FAILED, and another can start."""
    dead_letters, days = ("DeadJobs", 1) if queue == "JobsQueue" else ("ChangesDeadLetters", 14)
    properties = properties_of(aws, queue)

    assert dead_letters in str(properties["RedrivePolicy"]["deadLetterTargetArn"])
    assert properties["MessageRetentionPeriod"] == 14 * 24 * HOUR
    assert properties_of(aws, dead_letters)["MessageRetentionPeriod"] == days * 24 * HOUR


@queues
def test_a_message_becomes_a_dead_letter_days_before_it_expires(aws: Any, queue: str) -> None:
    properties = properties_of(aws, queue)

    longest = properties["RedrivePolicy"]["maxReceiveCount"] * properties["VisibilityTimeout"]

    assert longest <= (12 if queue == "JobsQueue" else 24) * HOUR


@pytest.mark.parametrize(
    ("queue", "command"), [("DeadLetters", "ragstack failures"), ("DeadJobs", "ragstack reconcile")]
)
def test_one_dead_message_raises_the_alarm_of_its_queue(aws: Any, queue: str, command: str) -> None:
    found = alarms(aws, "ApproximateNumberOfMessagesVisible")

    (alarm,) = [alarm for dimensions, alarm in found.items() if queue in dimensions]
    assert len(found) == 2
    assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (1, "GreaterThanOrEqualToThreshold")
    assert command in alarm["AlarmDescription"]


def test_a_message_that_waits_too_long_raises_the_alarm_of_its_queue(aws: Any) -> None:
    hours = {queue: age_alarm(aws, queue)["Threshold"] / HOUR for queue in READERS}

    assert hours == {**dict.fromkeys(READERS, 1), "StatusQueue": 7}
