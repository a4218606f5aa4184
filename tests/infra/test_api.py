"""The HTTP interface."""

import json
from typing import Any

import pytest

from ragstack_common.http.route_table import ROUTES
from ragstack_local.stack import api_queue

pytestmark = pytest.mark.xdist_group("synthesized stacks")

FUNCTIONS = {(route.method, route.path): route.function for route in ROUTES.values()}


def methods(assembly: Any) -> list[dict[str, Any]]:
    return [method["Properties"] for method in assembly.resources("AWS::ApiGateway::Method").values()]


def test_the_local_stack_queues_each_route_for_its_function() -> None:
    found = {route: api_queue.find_function(f"/_aws/execute-api/b4e4899f/prod{route[1]}") for route in FUNCTIONS}

    assert found == FUNCTIONS


def test_each_route_of_the_design_is_answered_by_its_function(aws: Any) -> None:
    services = {
        name: function["Properties"]["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"]
        for name, function in aws.functions().items()
    }
    parts = {name: each["Properties"] for name, each in aws.resources("AWS::ApiGateway::Resource").items()}

    def path(reference: dict[str, Any]) -> str:
        resource = parts.get(reference.get("Ref", ""))
        return "" if resource is None else f"{path(resource['ParentId'])}/{resource['PathPart']}"

    def service(method: dict[str, Any]) -> str:
        uri = json.dumps(method["Integration"]["Uri"])
        (name,) = [service for function, service in services.items() if f'"{function}"' in uri]
        return str(name)

    routes = {(method["HttpMethod"], path(method["ResourceId"])): service(method) for method in methods(aws)}

    assert routes == FUNCTIONS


def test_api_gateway_waits_as_long_as_its_functions_may_take(aws: Any) -> None:
    for service in ("documents", "query"):
        assert aws.function(service)["Timeout"] <= 29


def test_answers_stream_for_as_long_as_their_function_may_take(aws: Any, chosen: Any) -> None:
    for assembly, seconds in ((aws, 65), (chosen, 895)):
        assert assembly.function("answers")["Timeout"] == seconds
        (streamed, *others) = [
            method["Integration"] for method in methods(assembly) if "ResponseTransferMode" in method["Integration"]
        ]
        assert len(others) + 1 == list(FUNCTIONS.values()).count("answers")
        for integration in (streamed, *others):
            assert integration["ResponseTransferMode"] == "STREAM"
            assert integration["TimeoutInMillis"] == seconds * 1000
            assert "/response-streaming-invocations" in json.dumps(integration["Uri"])


def test_the_stage_is_traced_and_throttled_as_the_deployer_says(aws: Any, tuned: Any) -> None:
    for assembly, rate in ((aws, 20), (tuned, 50)):
        stage = assembly.only("AWS::ApiGateway::Stage")

        (settings,) = [each for each in stage["MethodSettings"] if each["ResourcePath"] == "/*"]

        assert stage["StageName"] == "prod"
        assert (settings["ThrottlingRateLimit"], settings["ThrottlingBurstLimit"]) == (rate, 2 * rate)
        assert stage["TracingEnabled"]


@pytest.mark.parametrize(
    ("stacks", "is_logged", "sets_role"), [("aws", False, False), ("chosen", True, False), ("tuned", True, True)]
)
def test_the_accounts_logging_role_is_set_on_request_only(
    request: pytest.FixtureRequest, stacks: str, is_logged: bool, sets_role: bool
) -> None:
    assembly = request.getfixturevalue(stacks)

    stage = assembly.only("AWS::ApiGateway::Stage")
    assert {each.get("LoggingLevel") == "ERROR" for each in stage["MethodSettings"]} == {is_logged}
    assert ("requestId" in str(stage.get("AccessLogSetting"))) == is_logged
    assert bool(assembly.resources("AWS::ApiGateway::Account")) == sets_role
    assert assembly.violations == []


@pytest.mark.parametrize(("chosen", "rate"), [({}, 2), ({"api_requests_per_second": "1"}, 1)])
def test_questions_have_a_lower_limit_than_searches(synthesize: Any, chosen: dict[str, str], rate: int) -> None:
    stage = synthesize(**chosen).only("AWS::ApiGateway::Stage")

    limits = {
        (each["HttpMethod"], each["ResourcePath"]): (each["ThrottlingRateLimit"], each["ThrottlingBurstLimit"])
        for each in stage["MethodSettings"]
        if each["ResourcePath"] != "/*"
    }
    paths = ("/~1api~1ask", "/~1api~1ask~1stream", "/~1mcp")
    assert limits == {("POST", path): (rate, 2 * rate) for path in paths}


def test_the_outputs_have_the_names_that_the_command_line_reads(
    aws: Any, managed: Any, existing: Any, local: Any
) -> None:
    for assembly in (aws, managed, existing, local):
        outputs = {
            name
            for template in assembly.templates.values()
            for name in template.get("Outputs", {})
            if not name.startswith(("ExportsOutput", "PublishOutput"))
        }

        of_its_own = {"EmbeddingModel", "FirstSync", "TextSearch"} if assembly is aws else set()
        assert outputs == of_its_own | {
            "AnswersFunctionName",
            "ApiUrl",
            "ConversionQueueUrl",
            "DataSourceId",
            "DeadLetterQueueUrl",
            "DocumentsBucketName",
            "IngestionQueueUrl",
            "JobsQueueUrl",
            "KnowledgeBaseId",
            "LargeConversionQueueUrl",
            "ReceiptsQueueUrl",
            "RegistryTableName",
            "StatusQueueUrl",
            "TextRecognition",
            "VectorStore",
        }


def test_an_error_of_api_gateway_looks_like_every_other(aws: Any) -> None:
    responses = {
        each["Properties"]["ResponseType"]: each["Properties"]
        for each in aws.resources("AWS::ApiGateway::GatewayResponse").values()
    }

    errors = {
        kind: json.loads(each["ResponseTemplates"]["application/json"].replace("$context.error.messageString", '"why"'))
        for kind, each in responses.items()
    }

    assert errors.keys() == {"DEFAULT_4XX", "DEFAULT_5XX", "ACCESS_DENIED", "THROTTLED"}
    assert all(body["error"].keys() == {"code", "message", "details", "requestId"} for body in errors.values())
    assert errors["ACCESS_DENIED"]["error"]["message"] != "why", "API Gateway's own message names accounts"
    assert errors["THROTTLED"]["error"]["code"] == "Throttled"
    assert responses["THROTTLED"]["ResponseParameters"] == {"gatewayresponse.header.Retry-After": "'1'"}
