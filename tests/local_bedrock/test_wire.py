import json
import re
import uuid
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError

from local_bedrock import wire
from local_bedrock.service import OPERATIONS
from local_bedrock.validation import violations
from tests.local_bedrock.support import (
    Bedrock,
    ask,
    client,
    custom_identifier,
    text_document,
)


def test_health_names_the_embedding(bedrock: Bedrock) -> None:
    status, _headers, body = ask(bedrock.url, "GET", "/health")

    assert status == 200
    assert body == {"status": "ok", "embedding": "hashed", "dimension": 1024}


def test_every_operation_of_the_services_has_a_route() -> None:
    router = wire.Router()
    session = botocore.session.get_session()

    for service in wire.SERVICES:
        model = session.get_service_model(service)
        for name in model.operation_names:
            http = model.operation_model(name).http
            path = http["requestUri"].replace("{", "").replace("}", "").split("?")[0]

            operation, _labels = router.find(wire.Request(http["method"], path))

            # Operations of two services may share a path.
            assert _shape(operation.http["requestUri"]) == _shape(http["requestUri"])


def _shape(template: str) -> str:
    return re.sub(r"\{\w+\+?\}", "{}", template).rstrip("/")


def test_the_members_in_a_path_are_decoded() -> None:
    operation, labels = wire.Router().find(wire.Request("GET", "/knowledgebases/a%2Fb"))

    assert operation.name == "GetKnowledgeBase"
    assert labels == {"knowledgeBaseId": "a/b"}


def test_an_operation_that_is_missing_is_named_and_never_an_empty_success(bedrock: Bedrock) -> None:
    calls = {
        "ListAgents": bedrock.agent.list_agents,
        "CreateFlow": lambda: bedrock.agent.create_flow(
            name="flow", executionRoleArn="arn:aws:iam::123456789012:role/service-role/x"
        ),
        "GenerateQuery": lambda: bedrock.runtime.generate_query(
            queryGenerationInput={"type": "TEXT", "text": "x"},
            transformationConfiguration={"mode": "TEXT_TO_SQL"},
        ),
        "CountTokens": lambda: client("bedrock-runtime", bedrock.url).count_tokens(
            modelId="anthropic.claude-3-haiku-20240307-v1:0", input={"converse": {}}
        ),
    }

    for name, call in calls.items():
        assert name not in OPERATIONS
        with pytest.raises(ClientError) as caught:
            call()
        assert caught.value.response["Error"]["Code"] == "NotImplementedException"
        assert name in caught.value.response["Error"]["Message"]
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 501


DEEP = 300
GROUPS = '{"andAll": [' * DEEP + '{"equals": {"key": "k", "value": 1}}' + "]}" * DEEP


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (f'{{"retrievalConfiguration": {{"vectorSearchConfiguration": {{"filter": {GROUPS}}}}}}}', "100 levels deep"),
        ('{"unknown": ' + "[" * 500 + "]" * 500 + "}", "100 levels deep"),
        ('{"unknown": ' + '{"a": ' * 500 + "1" + "}" * 500 + "}", "100 levels deep"),
        ("[" * 100_000, "100 levels deep"),
        (f'{{"nextToken": {"9" * 400}}}', "a number in the request has 400 digits"),
        (f'{{"nextToken": -{"9" * 4300}}}', "a number in the request has 4301 digits"),
        (f'{{"nextToken": {"9" * 100_000}}}', "a number in the request has 100000 digits"),
        (f'{{"nextToken": "{"a" * 5000}"}}', "length less than or equal to 2048"),
    ],
)
def test_deep_nesting_and_long_numbers_are_refused_without_a_log_entry(
    bedrock: Bedrock, caplog: pytest.LogCaptureFixture, body: str, words: str
) -> None:
    status, headers, answer = ask(bedrock.url, "POST", "/knowledgebases/ABCDEFGHIJ/retrieve", body.encode())

    assert status == 400
    assert headers["x-amzn-errortype"] == "ValidationException"
    assert words in answer["message"].lower()
    assert len(answer["message"]) < 1000
    assert caplog.records == []


def test_ids_of_five_thousand_characters_are_not_valid(bedrock: Bedrock) -> None:
    long = "a" * 5000
    document = json.dumps({"documentIdentifiers": [{"dataSourceType": "CUSTOM", "custom": {"id": long}}]}).encode()
    here = "/knowledgebases/ABCDEFGHIJ/datasources"
    requests = [
        ("GET", f"/knowledgebases/{long}", b""),
        ("GET", f"{here}/{long}", b""),
        ("GET", f"{here}/ABCDEFGHIJ/ingestionjobs/{long}", b""),
        ("POST", f"{here}/ABCDEFGHIJ/documents/getDocuments", document),
        ("POST", f"/model/{long}/invoke", b"{}"),
        ("GET", f"/tags/{long}", b""),
    ]

    answers = [ask(bedrock.url, *request) for request in requests]

    assert [(status, headers["x-amzn-errortype"]) for status, headers, _ in answers] == [
        (400, "ValidationException")
    ] * len(requests)


def test_thousands_of_mistakes_are_not_all_listed(bedrock: Bedrock) -> None:
    body = json.dumps({"documentIdentifiers": [{}] * 10_000}).encode()

    _status, _headers, answer = ask(
        bedrock.url, "POST", "/knowledgebases/ABCDEFGHIJ/datasources/ABCDEFGHIJ/documents/getDocuments", body
    )

    assert answer["message"].startswith("More than 50 validation errors detected: ")
    assert len(answer["message"]) < 10_000


@pytest.mark.parametrize(("method", "path"), [("GET", "/nothing"), ("POST", "/knowledgebases/"), ("PUT", "/rerank")])
def test_every_answer_has_a_request_id_of_its_own(bedrock: Bedrock, method: str, path: str) -> None:
    found = {ask(bedrock.url, method, path, b"{}")[1]["x-amzn-requestid"] for _ in range(3)}

    assert {uuid.UUID(each).version for each in found} == {4}
    assert len(found) == 3


def test_boto3_finds_the_request_id(bedrock: Bedrock) -> None:
    answer = bedrock.agent.list_knowledge_bases()

    assert uuid.UUID(answer["ResponseMetadata"]["RequestId"])


def test_the_first_service_wins_where_two_share_a_route() -> None:
    operation, _labels = wire.Router().find(wire.Request("GET", "/tags/arn"))

    assert operation.service_model.service_name == "bedrock-agent"


def test_a_body_that_is_a_payload_is_read_as_it_came() -> None:
    request = wire.Request(
        "POST", "/model/a.b/invoke", headers={"content-type": "text/x", "accept": "*/*"}, body=b"\x00not json"
    )
    operation, labels = wire.Router().find(request)

    members = wire.read_input(operation, labels, request)

    assert members == {"modelId": "a.b", "contentType": "text/x", "accept": "*/*", "body": b"\x00not json"}


def test_a_payload_and_what_belongs_into_headers_are_written_raw() -> None:
    operation, _labels = wire.Router().find(wire.Request("POST", "/model/a.b/invoke"))

    response = wire.write_output(operation, wire.HeadedAnswer({"body": b"\x00", "contentType": "a/b"}, {"x-y": "z"}))

    assert response.body == b"\x00"
    assert (response.headers["Content-Type"], response.headers["x-y"]) == ("a/b", "z")


def test_an_answer_with_a_member_that_its_model_lacks_is_an_error() -> None:
    operation, _labels = wire.Router().find(wire.Request("POST", "/rerank"))

    with pytest.raises(ValueError, match="results2"):
        wire.write_output(operation, {"results2": []})


def test_times_are_read_as_times(bedrock: Bedrock, knowledge_base: str) -> None:
    found = bedrock.agent.get_knowledge_base(knowledgeBaseId=knowledge_base)["knowledgeBase"]

    assert found["createdAt"].tzinfo is not None


def test_every_answer_fits_the_service_model(bedrock: Bedrock, bucket: str) -> None:
    bedrock = Bedrock.at(bedrock.url)  # whose clients are no other test's
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

    assert set(seen) <= set(OPERATIONS)
    assert {name: faults for name, faults in seen.items() if faults} == {}


def test_an_error_has_the_status_of_its_model(bedrock: Bedrock) -> None:
    quiet = client("bedrock-agent", bedrock.url)

    with pytest.raises(quiet.exceptions.ResourceNotFoundException) as caught:
        quiet.get_knowledge_base(knowledgeBaseId="UNKNOWN123")

    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404
