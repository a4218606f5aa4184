"""Whether an account may use models, and the agreements that some of them need."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError

AMAZON: Final = "amazon"
ANTHROPIC: Final = "anthropic"

FORM_REGION: Final = "us-east-1"
"""Where Anthropic's form is kept for all Regions. Source: third parties."""

WITHOUT_FORM: Final = (
    "Anthropic's form is missing, and calls fail with ResourceNotFoundException, \"Model use case details have not been"
    ' submitted for this account": submit it once for the account, in the model catalog of the Bedrock console, or with'
    f" `aws bedrock put-use-case-for-model-access --region {FORM_REGION}`"
)

GetClient = Callable[[str | None], Any]
"""Makes a client of ``bedrock`` for a Region; None for that of the deployment."""


@dataclass(frozen=True)
class Access:
    """Access to a model in one Region.

    Attributes:
        problems: What is missing, and what to do; empty if calls should succeed.
        needs_agreement: Whether an agreement is missing that the operator can make.
    """

    model_id: str
    region: str | None
    problems: tuple[str, ...] = ()
    needs_agreement: bool = False

    @property
    def place(self) -> str:
        """The model and the Region, for messages."""
        return self.model_id if self.region is None else f"{self.model_id} in {self.region}"


def model_id_of(model: str) -> str:
    """Return the id in an ARN of a foundation model or inference profile; return an id unchanged."""
    return model.rpartition("/")[2]


def provider_of(model_id: str) -> str:
    """Return the provider in the id of a model."""
    return model_id.split(".", maxsplit=1)[0]


def read_access(get_client: GetClient, model: str) -> list[Access]:
    """Return the access to a model; for an inference profile, to its model in each Region where it may run.

    Raises:
        ClientError: The caller lacks bedrock:GetFoundationModelAvailability or bedrock:GetInferenceProfile, or there is
            no such model.
    """
    found = [_access(get_client(region), model_id, region) for model_id, region in _models(get_client, model)]
    if found and provider_of(found[0].model_id) == ANTHROPIC and _lacks_form(get_client(FORM_REGION)):
        first = found[0]
        found[0] = Access(first.model_id, first.region, (*first.problems, WITHOUT_FORM), first.needs_agreement)
    return found


def accept_agreement(client: Any, model_id: str) -> str:
    """Accept the public offer of a model, with the rights of the caller; return the address of its terms.

    Raises:
        LookupError: There is no offer.
        ClientError: The caller lacks bedrock:ListFoundationModelAgreementOffers,
            bedrock:CreateFoundationModelAgreement, or the actions Subscribe and ViewSubscriptions of aws-marketplace.
    """
    offers = client.list_foundation_model_agreement_offers(modelId=model_id, offerType="PUBLIC")["offers"]
    if not offers:
        raise LookupError(f"Amazon Bedrock has no offer for {model_id} in this Region")
    client.create_foundation_model_agreement(modelId=model_id, offerToken=offers[0]["offerToken"])
    return str(offers[0]["termDetails"]["legalTerm"].get("url", "not named in the offer"))


def _models(get_client: GetClient, model: str) -> Iterator[tuple[str, str | None]]:
    """Yield the models behind an id or ARN, with their Regions."""
    model_id = model_id_of(model)
    if "inference-profile/" not in model and len(model_id.partition(":")[0].split(".")) == 2:  # noqa: PLR2004
        yield model_id, None
        return
    identifier = model if model.startswith("arn:") else model_id
    profile = get_client(None).get_inference_profile(inferenceProfileIdentifier=identifier)
    for each in profile["models"]:
        # A global profile names models without a Region.
        yield model_id_of(each["modelArn"]), each["modelArn"].split(":")[3] or None


def _access(client: Any, model_id: str, region: str | None) -> Access:
    found = client.get_foundation_model_availability(modelId=model_id)
    problems = []
    if found["regionAvailability"] != "AVAILABLE":
        problems.append("the Region does not have the model")
    if found["authorizationStatus"] != "AUTHORIZED":
        problems.append("the account may not use it: ask AWS Support, or the owner of the organization's policies")
    if provider_of(model_id) == AMAZON:  # its models need only bedrock:InvokeModel
        return Access(model_id, region, tuple(problems))
    agreement = found["agreementAvailability"]
    needs_agreement = agreement["status"] == "NOT_AVAILABLE"
    if needs_agreement:
        problems.append("its AWS Marketplace agreement is missing: calls fail, at once or within minutes")
    elif agreement["status"] != "AVAILABLE":
        message = agreement.get("errorMessage", "wait for it")
        problems.append(f"its AWS Marketplace agreement is {agreement['status']}: {message}")
    elif found["entitlementAvailability"] != "AVAILABLE":
        problems.append("the account is not entitled to it")
    return Access(model_id, region, tuple(problems), needs_agreement)


def _lacks_form(client: Any) -> bool:
    """Whether Anthropic's form was never submitted; False if that cannot be read."""
    try:
        client.get_use_case_for_model_access()
    except ClientError as error:
        return error.response["Error"]["Code"] == "ResourceNotFoundException"
    return False
