"""What ``ragstack doctor --aws`` says of an account, with botocore's stubs in the place of AWS."""

from collections.abc import Callable, Mapping
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from ragstack_local.account.checks import check_account
from ragstack_local.connection.connection import Connection
from ragstack_local.show.checks import Check, Checks
from tests.ragstack_local.account.test_model_access import COHERE, TITAN, availability
from tests.ragstack_local.support import MODEL, ROLE, stack_at

REQUESTS = "On-demand model inference requests per minute for Amazon Titan Text Embeddings V2"
TOKENS = "On-demand model inference tokens per minute for Amazon Titan Text Embeddings V2"

Program = Callable[[str], Stubber]


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    """Return the answers of a service, which are given in their order."""
    services: dict[str, tuple[Any, Stubber]] = {}

    def make(service: str) -> Stubber:
        if service not in services:
            client: Any = boto3.client(service, "eu-west-1")  # type: ignore[call-overload]
            services[service] = client, Stubber(client)
            services[service][1].activate()
        return services[service][1]

    monkeypatch.setattr(Connection, "client", lambda _self, service, _region=None: services[service][0])
    return make


S3 = {"type": "S3", "s3Configuration": {"bucketArn": "arn:aws:s3:::documents"}}
VECTORS = {"type": "VECTOR", "vectorKnowledgeBaseConfiguration": {"embeddingModelArn": MODEL}}
MANAGED = {"type": "MANAGED", "managedKnowledgeBaseConfiguration": {"embeddingModelType": "MANAGED"}}


def connector(parameters: Any) -> dict[str, Any]:
    return {
        "type": "MANAGED_KNOWLEDGE_BASE_CONNECTOR",
        "managedKnowledgeBaseConnectorConfiguration": {"connectorParameters": parameters},
    }


def has_source(program: Program, configuration: Mapping[str, Any]) -> None:
    """Program the data source of the documents."""
    time = "2026-11-28T00:00:00Z"
    ids = {"knowledgeBaseId": "ABCDEFGHIJ", "dataSourceId": "KLMNOPQRST"}
    source = {
        **ids,
        "name": "documents",
        "status": "AVAILABLE",
        "dataSourceConfiguration": configuration,
        "createdAt": time,
        "updatedAt": time,
    }
    program("bedrock-agent").add_response("get_data_source", {"dataSource": source}, ids)


def deployed(
    program: Program,
    *,
    quotas: Mapping[str, float] | None,
    configuration: Mapping[str, Any] = VECTORS,
    source: Mapping[str, Any] | None = S3,
    **variables: str,
) -> None:
    """Program a deployment whose functions have these variables, in an account with these quotas, or unknown ones."""
    time = "2026-11-28T00:00:00Z"
    knowledge_base = {
        "knowledgeBaseId": "ABCDEFGHIJ",
        "name": "kb",
        "knowledgeBaseArn": "arn:aws:bedrock:x:1:knowledge-base/A",
        "roleArn": ROLE,
        "knowledgeBaseConfiguration": configuration,
        "status": "ACTIVE",
        "createdAt": time,
        "updatedAt": time,
    }
    program("bedrock-agent").add_response("get_knowledge_base", {"knowledgeBase": knowledge_base})
    if source is not None:
        has_source(program, source)
    functions = [
        {"FunctionName": "RagStackApi-Answers", "Environment": {"Variables": variables}},
        {"FunctionName": "Another", "Environment": {"Variables": {"ANSWER_MODEL": "not ours"}}},
    ]
    program("lambda").add_response("list_functions", {"Functions": functions})
    if quotas is None:
        program("service-quotas").add_client_error("list_aws_default_service_quotas", "AccessDeniedException")
        return
    listed = [
        {"QuotaCode": f"L-{number}", "QuotaName": name, "Value": value, "Adjustable": name != REQUESTS}
        for number, (name, value) in enumerate(quotas.items())
    ]
    for _service in ("bedrock", "lambda"):
        program("service-quotas").add_response("list_aws_default_service_quotas", {"Quotas": listed})
        program("service-quotas").add_response("list_service_quotas", {"Quotas": []})


def has_access(program: Program, model: str, agreement: str = "AVAILABLE") -> None:
    program("bedrock").add_response(
        "get_foundation_model_availability", availability(model, agreement), {"modelId": model}
    )


def checked(*, accepts: bool = False, **stack: Any) -> dict[str, Check]:
    checks = Checks(show=lambda _check: None)
    check_account(checks, stack_at(aws_endpoint=None, **stack), "RagStack", accepts=accepts)
    return {check.name: check for check in checks.done}


def test_a_quota_of_zero_fails_and_a_small_one_warns(program: Program) -> None:
    deployed(program, quotas={REQUESTS: 0, TOKENS: 300_000, "Concurrent executions": 10})
    has_access(program, TITAN)

    found = checked()

    requests, tokens = found["quota: embedding, requests per minute"], found["quota: embedding, tokens per minute"]
    assert (requests.status, tokens.status) == ("failed", "ok")
    assert f"0 ({REQUESTS}, not adjustable): every call of this model fails" in requests.found
    assert "ask AWS Support" in str(requests.advice)
    executions = found["quota: concurrent executions"]
    assert executions.status == "warning"
    assert "--service-code lambda --quota-code L-2 --desired-value 1000" in str(executions.advice)
    assert found["quota: Retrieve a second"].status == "skipped"
    assert "'(Knowledge Bases) Retrieve requests per second'" in found["quota: Retrieve a second"].found
    assert found["model access: embedding"].status == "ok"


def test_sixty_requests_a_minute_are_few(program: Program) -> None:
    deployed(program, quotas={REQUESTS: 60})
    has_access(program, TITAN)

    assert checked()["quota: embedding, requests per minute"].status == "warning"


def test_quotas_that_cannot_be_read_are_a_warning(program: Program) -> None:
    deployed(program, quotas=None)
    has_access(program, TITAN)

    found = checked()

    assert found["quotas"].status == "warning"
    assert "OPERATIONS.md#permissions" in str(found["quotas"].advice)


def test_an_agreement_is_made_only_with_the_consent_of_the_operator(program: Program) -> None:
    deployed(program, quotas={}, ANSWER_MODEL=COHERE)
    has_access(program, TITAN)
    has_access(program, COHERE, "NOT_AVAILABLE")

    found = checked()["model access: answers"]

    assert found.status == "failed"
    assert found.advice == "`ragstack doctor --aws --accept-agreements` makes the agreement"

    deployed(program, quotas={}, ANSWER_MODEL=COHERE)
    has_access(program, TITAN)
    has_access(program, COHERE, "NOT_AVAILABLE")
    terms = {"usageBasedPricingTerm": {"rateCard": []}, "supportTerm": {}, "legalTerm": {"url": "https://terms"}}
    offer = {"offerToken": "token", "termDetails": terms}
    program("bedrock").add_response("list_foundation_model_agreement_offers", {"modelId": COHERE, "offers": [offer]})
    program("bedrock").add_response(
        "create_foundation_model_agreement", {"modelId": COHERE}, {"modelId": COHERE, "offerToken": "token"}
    )

    accepted = checked(accepts=True)["model access: answers"]

    assert (accepted.status, accepted.found) == ("warning", f"Accepted: {COHERE} (terms: https://terms)")
    program("bedrock").assert_no_pending_responses()


def test_the_models_of_a_deployment_are_those_that_its_functions_name(program: Program) -> None:
    deployed(program, quotas={}, ANSWER_MODEL=TITAN, RERANK="bedrock")
    for model in (TITAN, TITAN, "cohere.rerank-v3-5:0"):
        has_access(program, model)

    found = checked()

    assert found["models"].found == f"embedding {TITAN}, answers {TITAN}, reranking cohere.rerank-v3-5:0"
    assert found["model access: reranking"].status == "ok"


def test_a_managed_knowledge_base_has_a_quota_of_its_own_and_no_embedding(program: Program) -> None:
    name = "(Knowledge Bases) Maximum Retrieve requests per minute, per knowledge base"
    source = connector({"type": "CUSTOM", "version": "1"})
    deployed(program, quotas={name: 600}, configuration=MANAGED, source=source)

    found = checked(vector_store="MANAGED")

    assert found["models"].found == "None"
    assert found["quota: Retrieve a minute"].found == f"600 ({name}, adjustable)"
    assert "quota: Retrieve a second" not in found
    assert (found["data source"].status, found["data source"].found) == (
        "ok",
        "MANAGED_KNOWLEDGE_BASE_CONNECTOR CUSTOM",
    )


def test_a_managed_knowledge_base_with_a_model_of_the_account_needs_access_to_it(program: Program) -> None:
    own = {"embeddingModelType": "CUSTOM", "embeddingModelArn": MODEL}
    custom = {"type": "MANAGED", "managedKnowledgeBaseConfiguration": own}
    deployed(program, quotas={}, configuration=custom, source=connector({"type": "CUSTOM", "version": "1"}))
    has_access(program, TITAN)

    assert checked(vector_store="MANAGED")["model access: embedding"].status == "ok"


@pytest.mark.parametrize("parameters", [{"type": "CUSTOM"}, '{"type": "CUSTOM", "version": "1"}'])
def test_the_parameters_of_a_connector_can_be_an_object_or_its_text(program: Program, parameters: Any) -> None:
    deployed(program, quotas={}, configuration=MANAGED, source=connector(parameters))

    assert checked(vector_store="MANAGED")["data source"].status == "ok"


@pytest.mark.parametrize(
    ("store", "configuration", "source", "says"),
    [
        (
            "MANAGED",
            MANAGED,
            connector({"type": "S3", "version": "1"}),
            "is of the type MANAGED_KNOWLEDGE_BASE_CONNECTOR S3: uploads need MANAGED_KNOWLEDGE_BASE_CONNECTOR CUSTOM",
        ),
        ("S3_VECTORS", VECTORS, {"type": "CUSTOM"}, "KLMNOPQRST is of the type CUSTOM: uploads need S3"),
        ("OTHER", MANAGED, None, "The knowledge base is managed, and functions submit documents as to an S3"),
        ("MANAGED", VECTORS, None, "The knowledge base is not managed"),
    ],
)
def test_a_data_source_that_takes_no_uploads_fails_the_check(
    program: Program, store: str, configuration: Mapping[str, Any], source: Mapping[str, Any] | None, says: str
) -> None:
    deployed(program, quotas={}, configuration=configuration, source=source)
    if configuration is VECTORS:
        has_access(program, TITAN)

    found = checked(vector_store=store)["data source"]

    assert found.status == "failed"
    assert says in found.found
    assert "deploy with" in str(found.advice).lower()


def test_a_knowledge_base_that_cannot_be_read_leaves_its_checks_out(program: Program) -> None:
    program("bedrock-agent").add_client_error("get_knowledge_base", "AccessDeniedException")
    program("service-quotas").add_client_error("list_aws_default_service_quotas", "AccessDeniedException")

    found = checked()

    assert (found["models"].status, found["data source"].status) == ("failed", "skipped")
