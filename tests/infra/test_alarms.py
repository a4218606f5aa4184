"""Which alarms exist, and who is notified."""

import json
from typing import Any

import pytest

from .conftest import CHOSEN, ROOT

pytestmark = pytest.mark.xdist_group("synthesized stacks")

COPY = {"prefix": "Knowledge-Base-Of-Legal"}


def alarms(assembly: Any, metric: str = "") -> list[dict[str, Any]]:
    found = [alarm["Properties"] for alarm in assembly.resources("AWS::CloudWatch::Alarm").values()]
    return [alarm for alarm in found if metric in ("", alarm["MetricName"])]


def dimensions(alarm: dict[str, Any]) -> dict[str, Any]:
    return {each["Name"]: each["Value"] for each in alarm["Dimensions"]}


def services(assembly: Any) -> dict[str, str]:
    """The deployed functions' folders by logical id."""
    return {
        name: function["Properties"]["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"]
        for name, function in assembly.functions().items()
    }


def test_a_function_that_fails_or_is_throttled_raises_an_alarm(everything: Any) -> None:
    """The authorizer fails for each token that is not valid, so its errors say nothing."""
    deployed = services(everything)

    assert set(deployed.values()) == {folder.name for folder in (ROOT / "lambdas").iterdir() if folder.is_dir()} - {
        "__pycache__"
    }
    for function, service in deployed.items():
        for metric in ("Errors", "Throttles")[service == "authorizer" :]:
            (alarm,) = [each for each in alarms(everything, metric) if function in str(each["Dimensions"])]
            assert (alarm["Statistic"], alarm["Threshold"]) == ("Sum", 1)
            assert f"the function {service}" in alarm["AlarmDescription"].replace("The f", "the f")


def functions_of_the_api(assembly: Any) -> dict[str, str]:
    deployed = services(assembly)
    resources = assembly.templates["RagStackApi"]["Resources"]
    return {name: service for name, service in deployed.items() if name in resources}


def test_failures_behind_a_200_or_429_raise_an_alarm(aws: Any) -> None:
    """Each function of the API watches its permissions, and each that searches the searches too."""
    deployed = functions_of_the_api(aws)
    searching = {service for service in deployed.values() if "bedrock:Retrieve" in aws.rights(service)}
    expected = {
        "DeploymentFaults": (set(deployed.values()), 1),
        "UpstreamThrottles": (searching, 5),
        "SliceFailures": (searching, 5),
        "AnswersFailed": ({"answers"}, 5),
        "McpFailures": ({"answers"}, 5),
    }

    for metric, (watched, threshold) in expected.items():
        found = alarms(aws, metric)
        assert {dimensions(alarm)["service"] for alarm in found} == watched
        assert {(alarm["Statistic"], alarm["Threshold"]) for alarm in found} == {("Sum", threshold)}
        assert len(found) == len(watched)


def test_the_dashboards_show_every_function_queue_and_alarm(aws: Any) -> None:
    dashboards = aws.resources("AWS::CloudWatch::Dashboard")
    shown = json.dumps(dashboards)

    assert [each["Properties"]["DashboardName"] for each in dashboards.values()] == [
        {"Fn::Join": ["", [f"RagStack-{name}-", {"Ref": "AWS::Region"}]]} for name in ("api", "ingestion")
    ], "all Regions of an account share the names"
    for stack in ("RagStackApi", "RagStackIngestion"):
        for name, resource in aws.templates[stack]["Resources"].items():
            is_of_deployment = "ZipFile" in resource.get("Properties", {}).get("Code", {})
            if resource["Type"] in ("AWS::Lambda::Function", "AWS::CloudWatch::Alarm", "AWS::SQS::Queue"):
                assert is_of_deployment or name in shown, f"{name} is on no dashboard"


def test_errors_and_latency_of_each_copy_of_the_api_raise_alarms(aws: Any, synthesize: Any) -> None:
    for assembly, prefix in ((aws, "RagStack"), (synthesize(**COPY), COPY["prefix"])):
        (errors,) = alarms(assembly, "5XXError")
        (latency,) = alarms(assembly, "Duration")
        (answers,) = alarms(assembly, "AnswersFailed")

        assert assembly.only("AWS::ApiGateway::RestApi")["Name"] == prefix
        assert dimensions(errors)["ApiName"] == dimensions(answers)["stack"] == prefix
        assert "Query" in dimensions(latency)["FunctionName"]["Ref"]
        assert (latency["ExtendedStatistic"], latency["Threshold"], latency["EvaluationPeriods"]) == ("p95", 5000, 3)


def test_a_throttled_table_or_index_raises_an_alarm(aws: Any) -> None:
    (table,) = aws.resources("AWS::DynamoDB::Table")
    indexes = [index["IndexName"] for index in aws.only("AWS::DynamoDB::Table")["GlobalSecondaryIndexes"]]

    writes, reads = alarms(aws, "WriteThrottleEvents"), alarms(aws, "ReadThrottleEvents")

    assert {dimensions(alarm).get("GlobalSecondaryIndexName") for alarm in writes} == {None, *indexes}
    assert [dimensions(alarm)["TableName"] for alarm in (*writes, *reads)] == [{"Ref": table}] * (len(indexes) + 2)


def test_incomplete_jobs_and_batches_without_headers_raise_alarms(with_headers: Any) -> None:
    for metric, service in (("JobsNotComplete", "reconcile"), ("BatchesPassedThrough", "contextual_headers")):
        (alarm,) = alarms(with_headers, metric)
        assert dimensions(alarm) == {"service": service, "stack": "RagStack"}
        assert (alarm["Statistic"], alarm["Threshold"]) == ("Sum", 1)


def test_a_copy_of_the_stacks_alarms_only_on_its_own_metrics(aws: Any, synthesize: Any) -> None:
    copies = [aws, synthesize(**COPY)]

    own = [
        {json.dumps(alarm["Dimensions"]) for alarm in alarms(copy) if alarm["Namespace"] == "RAGStack"}
        for copy in copies
    ]

    assert own[0]
    assert own[0].isdisjoint(own[1])
    for copy, prefix in zip(copies, ("RagStack", COPY["prefix"]), strict=True):
        for service in services(copy).values():
            assert copy.environment(service)["RAGSTACK_STACK"] == prefix


def test_every_alarm_notifies_the_topic_that_the_deployer_names(chosen: Any) -> None:
    actions = [alarm["AlarmActions"] for alarm in alarms(chosen)]

    assert actions == [[CHOSEN["alarm_topic"]]] * len(alarms(chosen))
    assert not any("OKActions" in alarm for alarm in alarms(chosen)), "each new alarm would send a message"
    assert chosen.resources("AWS::SNS::Topic") == {}


def test_every_alarm_sends_email_to_the_configured_address(tuned: Any) -> None:
    (topic,) = tuned.resources("AWS::SNS::Topic")
    allowed = [
        statement
        for _, statement in tuned.statements()
        if statement["Effect"] == "Allow" and statement.get("Principal") == {"Service": "cloudwatch.amazonaws.com"}
    ]

    actions = {json.dumps(alarm["AlarmActions"]) for alarm in alarms(tuned)}

    assert len(actions) == 2, "the topic's stack refers to it, and the others to an output of that stack"
    assert all(topic in action for action in actions)
    assert all("AlarmActions" in alarm for alarm in alarms(tuned))
    assert tuned.only("AWS::SNS::Subscription")["Endpoint"] == "ops@example.com"
    assert [statement["Action"] for statement in allowed] == ["sns:Publish"]
    assert allowed[0]["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_the_topic_can_be_removed_again_because_no_stack_imports_it(tuned: Any) -> None:
    exports = [
        output
        for template in tuned.templates.values()
        for output in template["Outputs"].values()
        if "Export" in output and "Alarms" in str(output["Value"])
    ]

    assert exports == []


def test_each_alarm_says_what_to_do_and_any_cloudformation_knows_it(with_headers: Any) -> None:
    found = alarms(with_headers)

    assert found
    assert all(len(alarm["AlarmDescription"]) > 60 for alarm in found)
    assert all("Metrics" not in alarm and alarm["TreatMissingData"] == "notBreaching" for alarm in found)
    assert all("AlarmActions" not in alarm for alarm in found)
