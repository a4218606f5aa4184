"""Access to models, with requests and answers that botocore compares with its model of Amazon Bedrock."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from ragstack_local.account.model_access import FORM_REGION, Access, accept_agreement, model_id_of, read_access

TITAN = "amazon.titan-embed-text-v2:0"
COHERE = "cohere.embed-v4:0"
CLAUDE = "anthropic.claude-haiku-4-5-20251001-v1:0"
PROFILE = f"us.{CLAUDE}"


def availability(model: str, agreement: str = "AVAILABLE", **more: str) -> dict[str, Any]:
    return {
        "modelId": model,
        "agreementAvailability": {"status": agreement},
        "authorizationStatus": "AUTHORIZED",
        "entitlementAvailability": "AVAILABLE" if agreement == "AVAILABLE" else "NOT_AVAILABLE",
        "regionAvailability": "AVAILABLE",
        **more,
    }


class Regions:
    """Clients of Amazon Bedrock by Region; None is the Region of the deployment."""

    def __init__(self) -> None:
        self.services: dict[str | None, tuple[Any, Stubber]] = {}

    def __getitem__(self, region: str | None) -> Stubber:
        if region not in self.services:
            client: Any = boto3.client("bedrock", region or "eu-west-1")
            self.services[region] = client, Stubber(client)
            self.services[region][1].activate()
        return self.services[region][1]

    def client(self, region: str | None) -> Any:
        assert region in self.services, f"no answers for {region}"
        return self.services[region][0]

    def has(self, region: str | None, found: Mapping[str, Any]) -> None:
        parameters = {"modelId": found["modelId"]}
        self[region].add_response("get_foundation_model_availability", dict(found), parameters)


@pytest.fixture
def regions() -> Iterator[Regions]:
    regions = Regions()
    yield regions
    for _, service in regions.services.values():
        service.assert_no_pending_responses()


@contextmanager
def offers(*tokens: str) -> Iterator[tuple[Any, Stubber]]:
    client: Any = boto3.client("bedrock", "eu-west-1")
    terms = {"usageBasedPricingTerm": {"rateCard": []}, "supportTerm": {}, "legalTerm": {"url": "https://terms"}}
    listed = [{"offerToken": token, "termDetails": terms} for token in tokens]
    with Stubber(client) as service:
        service.add_response(
            "list_foundation_model_agreement_offers",
            {"modelId": COHERE, "offers": listed},
            {"modelId": COHERE, "offerType": "PUBLIC"},
        )
        yield client, service
        service.assert_no_pending_responses()


def test_a_model_of_amazon_needs_no_agreement(regions: Regions) -> None:
    regions.has(None, availability(TITAN, "NOT_AVAILABLE"))

    assert read_access(regions.client, f"arn:aws:bedrock:eu-west-1::foundation-model/{TITAN}") == [Access(TITAN, None)]


def test_a_model_of_the_marketplace_needs_an_agreement(regions: Regions) -> None:
    regions.has(None, availability(COHERE, "NOT_AVAILABLE"))
    regions.has(None, availability(COHERE, "PENDING"))

    (missing,), (pending,) = read_access(regions.client, COHERE), read_access(regions.client, COHERE)

    assert missing.needs_agreement
    assert "AWS Marketplace agreement is missing" in missing.problems[0]
    assert not pending.needs_agreement
    assert "is PENDING" in pending.problems[0]


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ({"authorizationStatus": "NOT_AUTHORIZED"}, "may not use it"),
        ({"regionAvailability": "NOT_AVAILABLE"}, "does not have the model"),
        ({"entitlementAvailability": "NOT_AVAILABLE"}, "not entitled"),
    ],
)
def test_what_else_is_missing_is_named(regions: Regions, state: dict[str, str], problem: str) -> None:
    regions.has(None, {**availability(COHERE), **state})

    (access,) = read_access(regions.client, COHERE)

    assert len(access.problems) == 1
    assert problem in access.problems[0]


def test_a_profile_is_checked_in_each_of_its_regions(regions: Regions) -> None:
    arns = [f"arn:aws:bedrock:{region}::foundation-model/{CLAUDE}" for region in ("us-east-1", "us-west-2")]
    regions[None].add_response("get_inference_profile", profile(*arns), {"inferenceProfileIdentifier": PROFILE})
    regions.has("us-east-1", availability(CLAUDE))
    regions.has("us-west-2", availability(CLAUDE, "NOT_AVAILABLE"))
    regions[FORM_REGION].add_response("get_use_case_for_model_access", {"formData": b"{}"}, {})

    found = read_access(regions.client, PROFILE)

    assert [(access.place, access.needs_agreement) for access in found] == [
        (f"{CLAUDE} in us-east-1", False),
        (f"{CLAUDE} in us-west-2", True),
    ]


def test_a_global_profile_is_checked_in_the_region_of_the_deployment(regions: Regions) -> None:
    arn = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc123"
    regions[None].add_response(
        "get_inference_profile",
        profile(f"arn:aws:bedrock:::foundation-model/{COHERE}"),
        {"inferenceProfileIdentifier": arn},
    )
    regions.has(None, availability(COHERE))

    assert read_access(regions.client, arn) == [Access(COHERE, None)]


def test_the_missing_form_of_anthropic_is_named_with_its_error(regions: Regions) -> None:
    regions.has(None, availability(CLAUDE))
    regions[FORM_REGION].add_client_error("get_use_case_for_model_access", "ResourceNotFoundException")
    regions.has(None, availability(CLAUDE))
    regions[FORM_REGION].add_client_error("get_use_case_for_model_access", "AccessDeniedException")

    (access,), (unknown,) = read_access(regions.client, CLAUDE), read_access(regions.client, CLAUDE)

    assert "use case details have not been submitted" in access.problems[0]
    assert "put-use-case-for-model-access --region us-east-1" in access.problems[0]
    assert unknown.problems == ()


def test_the_agreement_is_made_with_the_token_of_the_offer() -> None:
    with offers("token") as (client, service):
        service.add_response(
            "create_foundation_model_agreement", {"modelId": COHERE}, {"modelId": COHERE, "offerToken": "token"}
        )

        assert accept_agreement(client, COHERE) == "https://terms"


def test_a_model_without_an_offer_is_named() -> None:
    with offers() as (client, _), pytest.raises(LookupError, match=COHERE):
        accept_agreement(client, COHERE)


def test_ids_are_read_from_arns() -> None:
    assert model_id_of(f"arn:aws:bedrock:us-east-1::foundation-model/{TITAN}") == TITAN
    assert model_id_of(f"arn:aws:bedrock:us-east-1:123456789012:inference-profile/{PROFILE}") == PROFILE
    assert model_id_of(TITAN) == TITAN


def profile(*models: str) -> dict[str, Any]:
    return {
        "inferenceProfileName": "A profile",
        "inferenceProfileArn": f"arn:aws:bedrock:eu-west-1:123456789012:inference-profile/{PROFILE}",
        "models": [{"modelArn": model} for model in models],
        "inferenceProfileId": PROFILE,
        "status": "ACTIVE",
        "type": "SYSTEM_DEFINED",
    }
