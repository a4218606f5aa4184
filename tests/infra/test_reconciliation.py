"""When bucket, registry and knowledge base are compared, and who hears of differences."""

import json
from typing import Any

import pytest

pytestmark = pytest.mark.xdist_group("synthesized stacks")


def senders(assembly: Any, service: str) -> list[dict[str, Any]]:
    return [
        statement
        for _, statement in assembly.statements()
        if statement["Effect"] == "Allow" and statement.get("Principal") == {"Service": service}
    ]


def test_a_rule_starts_a_reconciliation_every_night(aws: Any) -> None:
    rule = aws.only("AWS::Events::Rule")

    (target,) = rule["Targets"]

    assert (rule["ScheduleExpression"], rule["State"]) == ("cron(0 3 * * ? *)", "ENABLED")
    assert "JobsQueue" in str(target["Arn"])
    assert json.loads(target["Input"]) == {"start": "reconcile", "by": "schedule"}


def test_the_queue_accepts_messages_of_that_rule_only(aws: Any) -> None:
    (rule,) = aws.resources("AWS::Events::Rule")

    (sender,) = senders(aws, "events.amazonaws.com")

    assert sender["Condition"] == {"ArnEquals": {"aws:SourceArn": {"Fn::GetAtt": [rule, "Arn"]}}}
    assert "sqs:SendMessage" in sender["Action"]
    assert "JobsQueue" in str(sender["Resource"])


def test_a_deployer_can_do_without_it(tuned: Any) -> None:
    assert tuned.resources("AWS::Events::Rule") == {}
    assert senders(tuned, "events.amazonaws.com") == []
    assert tuned.environment("reconcile"), "a request can still start one"


def test_differences_raise_an_alarm(aws: Any) -> None:
    (alarm,) = [
        alarm["Properties"]
        for alarm in aws.resources("AWS::CloudWatch::Alarm").values()
        if alarm["Properties"]["MetricName"] == "ReconciliationDifferences"
    ]

    assert alarm["Dimensions"] == [{"Name": "service", "Value": "reconcile"}, {"Name": "stack", "Value": "RagStack"}]
    assert aws.environment("reconcile")["POWERTOOLS_SERVICE_NAME"] == "reconcile"
    assert aws.environment("reconcile")["POWERTOOLS_METRICS_NAMESPACE"] == alarm["Namespace"]
    assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (1, "GreaterThanOrEqualToThreshold")
