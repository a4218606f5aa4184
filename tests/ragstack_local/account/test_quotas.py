"""Names of quotas as Service Quotas had them in 2026; there is no mapping from the ids of models."""

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from ragstack_local.account.quotas import (
    REQUESTS,
    TOKENS,
    Quota,
    concurrency,
    knowledge_base_quotas,
    model_quota,
    read_quotas,
)

NAMES = (
    "On-demand model inference requests per minute for Amazon Titan Text Embeddings V2",
    "On-demand model inference tokens per minute for Amazon Titan Text Embeddings V2",
    "On-demand model inference requests per minute for Amazon Titan Text Embeddings",
    "On-demand model inference tokens per minute for Cohere Embed English",
    "On-demand model inference tokens per minute for Cohere Embed Multilingual",
    "Cross-region model inference requests per minute for Cohere Embed V4",
    "Global cross-region model inference requests per minute for Cohere Embed V4",
    "On-demand model inference requests per minute for Amazon Nova Lite",
    "Cross-region model inference requests per minute for Amazon Nova Lite",
    "Cross-region model inference requests per minute for Amazon Nova 2 Lite",
    "Global cross-region model inference requests per minute for Anthropic Claude Haiku 4.5",
    "Global cross-region model inference requests per minute for Anthropic Claude Sonnet 4.5 V1 1M Context Length",
    "Global cross-region model inference requests per minute for Anthropic Claude Sonnet 4.5 V1",
    "On-demand model inference requests per minute for Anthropic Claude 3.5 Sonnet V2",
    "On-demand model inference requests per minute for Anthropic Claude 3.5 Sonnet",
    "On-demand model inference requests per minute for Meta Llama 3.3 70B Instruct",
    "Batch inference job size (in GB) for Titan Text Embeddings V2",
)


def listed(*names: str) -> list[Quota]:
    return [Quota("bedrock", name, f"L-{number}", 60, is_adjustable=False) for number, name in enumerate(names)]


@pytest.mark.parametrize(
    ("model", "unit", "name"),
    [
        ("amazon.titan-embed-text-v2:0", REQUESTS, NAMES[0]),
        ("amazon.titan-embed-text-v2:0", TOKENS, NAMES[1]),
        ("cohere.embed-english-v3", TOKENS, NAMES[3]),
        ("cohere.embed-multilingual-v3", TOKENS, NAMES[4]),
        ("us.cohere.embed-v4:0", REQUESTS, NAMES[5]),
        ("global.cohere.embed-v4:0", REQUESTS, NAMES[6]),
        ("amazon.nova-lite-v1:0", REQUESTS, NAMES[7]),
        ("eu.amazon.nova-lite-v1:0", REQUESTS, NAMES[8]),
        ("us.amazon.nova-2-lite-v1:0", REQUESTS, NAMES[9]),
        ("global.anthropic.claude-haiku-4-5-20251001-v1:0", REQUESTS, NAMES[10]),
        ("global.anthropic.claude-sonnet-4-5-20250929-v1:0", REQUESTS, NAMES[12]),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", REQUESTS, NAMES[13]),
        ("anthropic.claude-3-5-sonnet-20240620-v1:0", REQUESTS, NAMES[14]),
        ("meta.llama3-3-70b-instruct-v1:0", REQUESTS, NAMES[15]),
    ],
)
def test_the_quota_of_a_model_is_found_by_its_name(model: str, unit: str, name: str) -> None:
    quota, _ = model_quota(listed(*NAMES), model, unit)

    assert quota is not None
    assert quota.name == name


def test_a_quota_that_is_not_listed_is_named() -> None:
    assert model_quota(listed(*NAMES), "amazon.titan-embed-text-v3:0", REQUESTS) == (
        None,
        "On-demand model inference requests per minute for amazon.titan-embed-text-v3:0",
    )
    assert model_quota(listed(*NAMES), "us.amazon.nova-lite-v1:0", TOKENS)[0] is None
    assert [quota for _, quota, _ in knowledge_base_quotas([], is_managed=False)] == [None, None, None]
    assert concurrency([]) == (None, "Concurrent executions")


def test_quotas_of_knowledge_bases_are_found_with_and_without_their_prefix() -> None:
    quotas = listed(
        "Retrieve requests per second",
        "(Knowledge Bases) IngestKnowledgeBaseDocuments requests per second",
        "(Knowledge Bases) Concurrent IngestKnowledgeBaseDocuments and DeleteKnowledgeBaseDocuments requests per"
        " account",
    )

    found = [
        (what, quota.name if quota else None) for what, quota, _ in knowledge_base_quotas(quotas, is_managed=False)
    ]

    assert found == [
        ("Retrieve a second", quotas[0].name),
        ("direct ingestion a second", quotas[1].name),
        ("concurrent direct ingestion", quotas[2].name),
    ]


def test_a_managed_knowledge_base_has_a_quota_of_its_own_for_searches() -> None:
    quotas = listed(
        "(Knowledge Bases) Maximum Retrieve requests per minute per knowledge base", "Retrieve requests per second"
    )

    what, quota, _ = next(knowledge_base_quotas(listed(*NAMES), is_managed=True))
    assert (what, quota) == ("Retrieve a minute", None)
    assert next(knowledge_base_quotas(quotas, is_managed=True))[1] == quotas[0]


def test_the_values_of_the_account_replace_the_defaults() -> None:
    client: Any = boto3.client("service-quotas", "eu-west-1")
    requests = {"QuotaCode": "L-26C560CE", "QuotaName": NAMES[0], "Adjustable": False}
    tokens = {"QuotaCode": "L-DE641971", "QuotaName": NAMES[1], "Adjustable": True, "Value": 300_000.0}
    with Stubber(client) as service:
        service.add_response(
            "list_aws_default_service_quotas",
            {"Quotas": [{**requests, "Value": 6000.0}], "NextToken": "more"},
            {"ServiceCode": "bedrock"},
        )
        service.add_response(
            "list_aws_default_service_quotas",
            {"Quotas": [tokens]},
            {"ServiceCode": "bedrock", "NextToken": "more"},
        )
        service.add_response(
            "list_service_quotas", {"Quotas": [{**requests, "Value": 60.0}]}, {"ServiceCode": "bedrock"}
        )
        quotas = read_quotas(client, "bedrock")

    assert {quota.code: (quota.value, quota.is_adjustable) for quota in quotas} == {
        "L-26C560CE": (60, False),
        "L-DE641971": (300_000, True),
    }
    assert str(quotas[0]) == f"60 ({NAMES[0]}, not adjustable)"
    assert "ask AWS Support" in quotas[0].how_to_raise(600)
    assert "--quota-code L-DE641971 --desired-value 600" in quotas[1].how_to_raise(600)
