import json
import re
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError

from ragstack_local.bedrock import wire
from ragstack_local.bedrock.faults import UnknownRoute
from ragstack_local.bedrock.service import OPERATIONS
from ragstack_local.bedrock.validation import violations
from tests.local.support import (
    Bedrock,
    ask,
    client,
    custom_identifier,
    knowledge_base_request,
    text_document,
)


def test_health_names_the_embedding(bedrock: Bedrock) -> None:
    status, _headers, body = ask(bedrock.url, "GET", "/health")

    assert status == 200
    assert body == {"status": "ok", "embedding": "hashed", "dimension": 1024}


def test_every_operation_of_both_services_has_a_route() -> None:
    router = wire.Router()
    session = botocore.session.get_session()

    for service in wire.SERVICES:
        model = session.get_service_model(service)
        for name in model.operation_names:
            http = model.operation_model(name).http
            path = http["requestUri"].replace("{", "").replace("}", "").split("?")[0]

            operation, _labels = router.find(wire.Request(http["method"], path))

            # Two operations of the two services may share a path.
            assert _shape(operation.http["requestUri"]) == _shape(http["requestUri"])


def _shape(template: str) -> str:
    return re.sub(r"\{\w+\}", "{}", template).rstrip("/")


def test_the_members_in_a_path_are_decoded() -> None:
    operation, labels = wire.Router().find(wire.Request("GET", "/knowledgebases/a%2Fb"))

    assert operation.name == "GetKnowledgeBase"
    assert labels == {"knowledgeBaseId": "a/b"}


def test_an_unknown_path_is_no_operation() -> None:
    with pytest.raises(UnknownRoute, match="GET /nothing is no operation"):
        wire.Router().find(wire.Request("GET", "/nothing"))


def test_an_unknown_path_is_answered_with_404(bedrock: Bedrock) -> None:
    status, headers, body = ask(bedrock.url, "GET", "/nothing/here")

    assert status == 404
    assert headers["x-amzn-errortype"] == "UnknownOperationException"
    assert body["message"].startswith("GET /nothing/here is no operation")


def test_an_operation_that_is_missing_is_named_and_never_an_empty_success(bedrock: Bedrock) -> None:
    calls = {
        "ListAgents": bedrock.agent.list_agents,
        "CreateFlow": lambda: bedrock.agent.create_flow(
            name="flow", executionRoleArn="arn:aws:iam::123456789012:role/service-role/x"
        ),
        "RetrieveAndGenerate": lambda: bedrock.runtime.retrieve_and_generate(input={"text": "x"}),
    }

    for name, call in calls.items():
        assert name not in OPERATIONS
        with pytest.raises(ClientError) as caught:
            call()
        assert caught.value.response["Error"]["Code"] == "NotImplementedException"
        assert name in caught.value.response["Error"]["Message"]
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 501


@pytest.mark.parametrize("body", [b"{not json", b"[1, 2]", b'"text"', b"\xff\xfe", b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_refused(bedrock: Bedrock, body: bytes) -> None:
    status, headers, answer = ask(bedrock.url, "PUT", "/knowledgebases/", body)

    assert status == 400
    assert headers["x-amzn-errortype"] == "ValidationException"
    assert "JSON" in answer["message"]


def test_times_are_read_as_times(bedrock: Bedrock, knowledge_base: str) -> None:
    found = bedrock.agent.get_knowledge_base(knowledgeBaseId=knowledge_base)["knowledgeBase"]

    assert found["createdAt"].tzinfo is not None


def test_every_answer_fits_the_service_model(bedrock: Bedrock, bucket: str) -> None:
    agent, runtime = bedrock.agent, bedrock.runtime
    seen: dict[str, list[str]] = {}

    def note(model: Any, parsed: Any, **_more: Any) -> None:
        parsed = {key: value for key, value in parsed.items() if key != "ResponseMetadata"}
        seen[model.name] = list(violations(model.output_shape, parsed))

    for served in (agent, runtime):
        served.meta.events.register("after-call.*.*", note)
    source = bedrock.s3_source(bedrock.knowledge_base("every-answer"), bucket)
    custom = bedrock.custom_source(source.knowledge_base_id)
    source.synchronised()
    custom.ingested(text_document("heron", "Herons stand.", {"topic": "birds"}))
    custom.texts("herons")
    agent.get_knowledge_base(knowledgeBaseId=source.knowledge_base_id)
    agent.get_data_source(**source.ids)
    agent.list_knowledge_bases()
    agent.list_data_sources(knowledgeBaseId=source.knowledge_base_id)
    agent.list_knowledge_base_documents(**custom.ids)
    agent.list_ingestion_jobs(**source.ids)
    custom.delete(custom_identifier("heron"))
    agent.delete_data_source(**source.ids)
    agent.delete_knowledge_base(knowledgeBaseId=source.knowledge_base_id)
    for served in (agent, runtime):
        served.meta.events.unregister("after-call.*.*", note)

    assert set(seen) == set(OPERATIONS)
    assert {name: faults for name, faults in seen.items() if faults} == {}


def test_an_unknown_member_of_the_body_is_ignored(bedrock: Bedrock) -> None:
    body = json.dumps({**knowledge_base_request("unknown-member"), "somethingNew": 1}).encode()

    status, _headers, _answer = ask(bedrock.url, "PUT", "/knowledgebases/", body)

    assert status == 202


def test_an_error_has_the_status_of_its_model(bedrock: Bedrock) -> None:
    quiet = client("bedrock-agent", bedrock.url)

    with pytest.raises(quiet.exceptions.ResourceNotFoundException) as caught:
        quiet.get_knowledge_base(knowledgeBaseId="UNKNOWN123")

    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404
