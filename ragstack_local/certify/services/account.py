"""Checks of the account: names of quotas, access to models, and the models themselves."""

import json
import math
from typing import Any, Final

from botocore.exceptions import ClientError

from ragstack_local.account import model_access, quotas
from ragstack_local.certify import documents
from ragstack_local.certify.check import INVALID, Json, NotTried, Source, Topic
from ragstack_local.certify.fixtures import DIMENSION, EMBEDDING
from ragstack_local.certify.site import Site, error_code

ON: Final = Topic("account", "`ragstack doctor --aws`", "")
ON_MODELS: Final = Topic("models", "answers and embeddings", "local_bedrock.operations.converse")

NO_ACCOUNT: Final = "the local stack has no quotas and no agreements"
TEXT_MODEL: Final = "amazon.nova-micro-v1:0"
"""The cheapest text model of Amazon, which needs no agreement."""

AGREEMENT_MODEL: Final = "anthropic.claude-3-haiku-20240307-v1:0"


def bedrock_quotas(site: Site) -> list[quotas.Quota]:
    """The quotas of Amazon Bedrock."""
    return quotas.read_quotas(site.client("service-quotas"), "bedrock")


@ON.check(
    "quota_names",
    "Service Quotas lists the quotas of knowledge bases under the names that `ragstack doctor` looks for",
    Source.DOCUMENTATION,
    [],
    aws_only=NO_ACCOUNT,
)
def _quota_names(site: Site) -> Json:
    """What is not found."""
    found = site.shared(bedrock_quotas)
    return [
        what
        for is_managed in (False, True)
        for what, quota, _ in quotas.knowledge_base_quotas(found, is_managed=is_managed)
        if quota is None
    ]


@ON.check(
    "model_quota_names",
    "Service Quotas lists the embedding model's quotas under names that follow from the model's id",
    Source.THIRD_PARTY,
    {quotas.REQUESTS: "found", quotas.TOKENS: "found"},
    aws_only=NO_ACCOUNT,
)
def _model_quota_names(site: Site) -> Json:
    found = site.shared(bedrock_quotas)
    return {
        unit: "found" if quotas.model_quota(found, EMBEDDING, unit)[0] else "not found"
        for unit in (quotas.REQUESTS, quotas.TOKENS)
    }


@ON.check(
    "concurrency_name",
    "Service Quotas lists Lambda's quota under the name Concurrent executions",
    Source.DOCUMENTATION,
    "found",
    aws_only=NO_ACCOUNT,
)
def _concurrency_name(site: Site) -> Json:
    found = quotas.read_quotas(site.client("service-quotas"), "lambda")
    return "found" if quotas.concurrency(found)[0] else "not found"


@ON.check(
    "amazon_model",
    "Amazon's own models are available without an agreement",
    Source.DOCUMENTATION,
    {"region": "AVAILABLE", "authorization": "AUTHORIZED"},
    aws_only=NO_ACCOUNT,
)
def _amazon_model(site: Site) -> Json:
    found = site.client("bedrock").get_foundation_model_availability(modelId=EMBEDDING)
    return {"region": found["regionAvailability"], "authorization": found["authorizationStatus"]}


@ON.check(
    "agreement",
    "GetFoundationModelAvailability reports whether a model still needs an agreement",
    Source.MODEL,
    "known",
    aws_only=NO_ACCOUNT,
)
def _agreement(site: Site) -> Json:
    found = site.client("bedrock").get_foundation_model_availability(modelId=AGREEMENT_MODEL)
    status = found["agreementAvailability"]["status"]
    return "known" if status in ("AVAILABLE", "NOT_AVAILABLE", "PENDING") else status


@ON.check(
    "form",
    "Before Anthropic's use-case form is submitted, GetUseCaseForModelAccess answers ResourceNotFoundException",
    Source.THIRD_PARTY,
    {"error": "ResourceNotFoundException"},
    aws_only=NO_ACCOUNT,
)
def _form(site: Site) -> Json:
    client = site.client("bedrock", region=model_access.FORM_REGION)
    answer = error_code(client.get_use_case_for_model_access)
    if answer == "accepted":
        raise NotTried("the account has submitted the form")
    return answer


@ON.check(
    "accepting",
    "CreateFoundationModelAgreement with the first public offer creates the agreement",
    Source.MODEL,
    "accepted",
    used_by="`ragstack doctor --accept-agreements`",
    aws_only=NO_ACCOUNT,
)
def _accepting(_: Site) -> Json:
    raise NotTried("the agreement would bind the account")


@ON.check(
    "embedding_rate",
    "Service Quotas lists a limit for the embedding model's requests a minute, which is 0 or 60 in new accounts",
    Source.THIRD_PARTY,
    "limited",
    aws_only=NO_ACCOUNT,
)
def _embedding_rate(site: Site) -> Json:
    quota, _ = quotas.model_quota(site.shared(bedrock_quotas), EMBEDDING, quotas.REQUESTS)
    if quota is not None and quota.value >= quotas.SLOW_REQUESTS:
        raise NotTried("this account has a higher quota, which says nothing about new accounts")
    return "not found" if quota is None else "limited"


@ON_MODELS.check(
    "textract",
    "Amazon Textract recognizes the lines and words of a page of a PDF file",
    Source.DOCUMENTATION,
    {"lines": True, "words": True},
    used_by="recognition=textract",
    held_in="",
    aws_only="there is no local Textract",
)
def _textract(site: Site) -> Json:
    page = documents.pdf(["The crane lifts forty tonnes."])
    blocks = site.client("textract").detect_document_text(Document={"Bytes": page})["Blocks"]
    texts = {kind: [each["Text"] for each in blocks if each["BlockType"] == kind] for kind in ("LINE", "WORD")}
    return {"lines": "The crane lifts forty tonnes." in texts["LINE"], "words": "crane" in texts["WORD"]}


@ON_MODELS.check(
    "embedding",
    "Titan Text Embeddings V2 returns vectors of 1,024 dimensions and unit length",
    Source.DOCUMENTATION,
    {"dimensions": DIMENSION, "length": 1.0},
    held_in="local_bedrock.operations.invoke_model",
)
def _embedding(site: Site) -> Json:
    body = json.dumps({"inputText": "A harbour crane.", "dimensions": DIMENSION, "normalize": True})
    answer = site.client("bedrock-runtime").invoke_model(modelId=EMBEDDING, body=body)
    vector = json.loads(answer["body"].read())["embedding"]
    return {"dimensions": len(vector), "length": round(math.hypot(*vector), 2)}


@ON_MODELS.check(
    "embedding_dimensions",
    "Titan Text Embeddings V2 refuses 384 dimensions",
    Source.DOCUMENTATION,
    INVALID,
    held_in="local_bedrock.operations.invoke_model",
)
def _embedding_dimensions(site: Site) -> Json:
    body = json.dumps({"inputText": "A harbour crane.", "dimensions": 384})
    return error_code(lambda: site.client("bedrock-runtime").invoke_model(modelId=EMBEDDING, body=body))


def _model_id(site: Site) -> str:
    """Return the text model, or its inference profile in Regions that have only that."""
    if not site.is_aws or site.region == "us-east-1":
        return TEXT_MODEL
    areas = {"us": "us", "eu": "eu", "ap": "apac"}
    area = areas.get(site.region.partition("-")[0])
    if area is None:
        raise NotTried(f"there is no inference profile of {TEXT_MODEL} for this Region")
    return f"{area}.{TEXT_MODEL}"


def _request(site: Site) -> dict[str, Any]:
    content = [
        {"document": {"name": "notes", "format": "txt", "source": {"bytes": b"The crane lifts forty tonnes."}}},
        {"text": "How much does the crane lift?"},
    ]
    return {
        "modelId": _model_id(site),
        "messages": [{"role": "user", "content": content}],
        "inferenceConfig": {"maxTokens": 60},
    }


def _unless_missing(error: ClientError) -> NotTried:
    """Return why a model cannot be tried, or raise the error."""
    if error.response["Error"]["Code"] in ("AccessDeniedException", "ResourceNotFoundException"):
        return NotTried("the account has no access to the model")
    raise error


@ON_MODELS.check(
    "converse",
    "Converse accepts a text document, and returns a text and the number of tokens",
    Source.MODEL,
    {"role": "assistant", "content": ["text"], "tokens": True},
    used_by="answers (docs/ANSWERS.md)",
)
def _converse(site: Site) -> Json:
    try:
        answer = site.client("bedrock-runtime").converse(**_request(site))
    except ClientError as error:
        raise _unless_missing(error) from None
    message = answer["output"]["message"]
    return {
        "role": message["role"],
        "content": sorted({name for block in message["content"] for name in block}),
        "tokens": {"inputTokens", "outputTokens"} <= set(answer["usage"]),
    }


@ON_MODELS.check(
    "converse_stream",
    "ConverseStream sends its events in the documented order",
    Source.MODEL,
    {"order": ["messageStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"]},
    used_by="answers that stream (docs/ANSWERS.md)",
)
def _converse_stream(site: Site) -> Json:
    try:
        stream = site.client("bedrock-runtime").converse_stream(**_request(site))["stream"]
        names = [next(iter(event)) for event in stream]
    except ClientError as error:
        raise _unless_missing(error) from None
    return {"order": [name for name in dict.fromkeys(names) if name != "contentBlockStart"]}


@ON_MODELS.check(
    "unknown_model",
    "Calling a model that does not exist is a ValidationException or a ResourceNotFoundException",
    Source.GUESS,
    "refused",
    used_by="answers (docs/ANSWERS.md)",
    aws_only="the local Bedrock has one model, whatever its name",
)
def _unknown_model(site: Site) -> Json:
    request = {**_request(site), "modelId": "amazon.never-v1:0"}
    answer = error_code(lambda: site.client("bedrock-runtime").converse(**request))
    codes = [{"error": each} for each in ("ValidationException", "ResourceNotFoundException")]
    return "refused" if answer in codes else answer


CHECKS: Final = (*ON.checks, *ON_MODELS.checks)
