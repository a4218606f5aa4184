"""The part of ``ragstack doctor --aws`` that checks what the account has: data source, quotas, access to models."""

import json
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from botocore.exceptions import ClientError

from ragstack_common.settings.names import BEDROCK_RERANKER, CONNECTOR_SOURCE, DEFAULT_RERANKING_MODEL, MANAGED
from ragstack_local.account import model_access, quotas
from ragstack_local.account.quotas import Quota
from ragstack_local.connection.connection import Connection
from ragstack_local.show.checks import CheckError, Checks

NAMES: Final = ("models", "data source", "quotas", "model access")
"""The checks to report as skipped."""

MODELS: Final = {"answers": "ANSWER_MODEL", "fallback": "ANSWER_FALLBACK_MODEL", "support": "SUPPORT_MODEL"}
"""Variables of functions that name models, by what these are for."""

WANTED: Final = {quotas.REQUESTS: quotas.SLOW_REQUESTS, quotas.TOKENS: 300_000}
"""Values to request. Ten chunks of 400 tokens take 4,000 tokens."""

RIGHTS: Final = "It needs the permissions of an operator (docs/OPERATIONS.md#permissions)"


@dataclass
class _Deployment:
    """What the first check finds.

    Attributes:
        models: The models of the knowledge base and of functions, by what they are for.
        is_managed: Whether the knowledge base is of the type MANAGED; None if that could not be read.
    """

    models: dict[str, str] = field(default_factory=dict)
    is_managed: bool | None = None


def check_account(checks: Checks, connection: Connection, prefix: str, *, accepts: bool) -> None:
    """Check data source, quotas and access to models, and accept the agreements of models if the operator *accepts*."""
    deployment = _Deployment()
    checks.run("models", partial(_read_models, connection, prefix, deployment), RIGHTS)
    models, is_managed = deployment.models, deployment.is_managed
    if is_managed is None:
        checks.skip("the knowledge base could not be read", "data source")
    else:
        work = partial(_data_source, connection, is_managed=is_managed)
        checks.run("data source", work, "docs/CONFIGURATION.md#knowledge-bases")
    found: dict[str, list[Quota]] = {}
    if checks.run("quotas", partial(_read_quotas, connection, found), RIGHTS) and found:
        for purpose, model in models.items():
            for unit in WANTED:
                quota, name = quotas.model_quota(found["bedrock"], model_access.model_id_of(model), unit)
                checks.run(f"quota: {purpose}, {unit}", partial(_model_quota, quota, name, unit), "")
        for what, quota, name in quotas.knowledge_base_quotas(found["bedrock"], is_managed=bool(is_managed)):
            checks.run(f"quota: {what}", partial(_quota, quota, name), "")
        checks.run("quota: concurrent executions", partial(_concurrency, *quotas.concurrency(found["lambda"])), "")
    for purpose, model in models.items():
        work = partial(_model_access, connection, model, accepts=accepts)
        checks.run(f"model access: {purpose}", work, f"docs/OPERATIONS.md#access-to-models. {RIGHTS}")


def _read_models(connection: Connection, prefix: str, found: _Deployment) -> str:
    """Find the kind of a deployment's knowledge base, and its models."""
    agent = connection.client("bedrock-agent")
    own = agent.get_knowledge_base(knowledgeBaseId=connection.knowledge_base_id)["knowledgeBase"]
    configuration = own["knowledgeBaseConfiguration"]
    found.is_managed = configuration["type"] == MANAGED
    chosen = configuration.get(
        "managedKnowledgeBaseConfiguration" if found.is_managed else "vectorKnowledgeBaseConfiguration", {}
    )
    if "embeddingModelArn" in chosen:  # a managed one chooses its own by default
        found.models["embedding"] = chosen["embeddingModelArn"]
    pages = connection.client("lambda").get_paginator("list_functions").paginate()
    for function in (each for page in pages for each in page["Functions"]):
        if function["FunctionName"].startswith(prefix):
            variables = function.get("Environment", {}).get("Variables", {})
            found.models |= {purpose: variables[name] for purpose, name in MODELS.items() if variables.get(name)}
            kind, _, model = variables.get("RERANK", "").partition(":")
            if kind == BEDROCK_RERANKER:
                found.models["reranking"] = model or DEFAULT_RERANKING_MODEL
    named = (f"{purpose} {model_access.model_id_of(model)}" for purpose, model in found.models.items())
    return ", ".join(named) or "None"


def _data_source(connection: Connection, *, is_managed: bool) -> str:
    """Check that documents can be submitted to the data source in the form that functions choose by the store."""
    if is_managed and connection.vector_store != MANAGED:
        raise CheckError(
            "The knowledge base is managed, and functions submit documents as to an S3 data source",
            advice="Deploy with vector_store=MANAGED (docs/CONFIGURATION.md#knowledge-bases)",
        )
    if connection.vector_store == MANAGED and not is_managed:
        raise CheckError(
            "The knowledge base is not managed, and functions submit documents as to a managed one",
            advice="Deploy with its vector store as vector_store, or without vector_store",
        )
    source = connection.client("bedrock-agent").get_data_source(
        knowledgeBaseId=connection.knowledge_base_id, dataSourceId=connection.data_source_id
    )["dataSource"]["dataSourceConfiguration"]
    found = str(source["type"])
    if found == CONNECTOR_SOURCE:
        found = f"{CONNECTOR_SOURCE} {_connector_type(source)}"
    wanted = f"{CONNECTOR_SOURCE} CUSTOM" if is_managed else "S3"
    if found != wanted:
        raise CheckError(
            f"{connection.data_source_id} is of the type {found}: uploads need {wanted}",
            advice="Create such a data source, and deploy with its id as data_source_id"
            " (docs/CONFIGURATION.md#knowledge-bases)",
        )
    return found


def _connector_type(source: dict[str, Any]) -> str:
    """Return the type of a connector, whose parameters may be the text of a JSON object (source: third parties)."""
    parameters = source.get("managedKnowledgeBaseConnectorConfiguration", {}).get("connectorParameters") or {}
    parsed = json.loads(parameters) if isinstance(parameters, str) else parameters
    return str(parsed.get("type"))


def _read_quotas(connection: Connection, found: dict[str, list[Quota]]) -> str:
    client = connection.client("service-quotas")
    try:
        found |= {service: quotas.read_quotas(client, service) for service in ("bedrock", "lambda")}
    except ClientError as error:
        raise CheckError(f"Could not be read: {' '.join(str(error).split())}", "warning") from None
    return f"{len(found['bedrock'])} of Amazon Bedrock and {len(found['lambda'])} of AWS Lambda were read"


def _quota(quota: Quota | None, name: str) -> str:
    return str(_known(quota, name))


def _known(quota: Quota | None, name: str) -> Quota:
    if quota is None:
        raise CheckError(f"Not found: Service Quotas lists no quota named {name!r} in this Region", "skipped")
    return quota


def _model_quota(quota: Quota | None, name: str, unit: str) -> str:
    known = _known(quota, name)
    advice = known.how_to_raise(WANTED[unit])
    if known.value == 0:
        raise CheckError(f"{known}: every call of this model fails", advice=advice)
    if unit == quotas.REQUESTS and known.value < quotas.SLOW_REQUESTS:
        raise CheckError(f"{known}: too few to load many documents, or for many questions", "warning", advice)
    return str(known)


def _concurrency(quota: Quota | None, name: str) -> str:
    known = _known(quota, name)
    if known.value < quotas.FEW_EXECUTIONS:
        raise CheckError(f"{known}: too few, so functions throttle each other", "warning", known.how_to_raise(1000))
    return str(known)


def _model_access(connection: Connection, model: str, *, accepts: bool) -> str:
    def bedrock(region: str | None) -> Any:
        return connection.client("bedrock", region)

    try:
        found = model_access.read_access(bedrock, model)
    except ClientError as error:
        raise CheckError(f"Could not be read: {' '.join(str(error).split())}", "warning") from None
    if accepts and (missing := [access for access in found if access.needs_agreement]):
        try:
            terms = {each: model_access.accept_agreement(bedrock(each.region), each.model_id) for each in missing}
        except LookupError as error:
            raise CheckError(str(error)) from None
        accepted = "; ".join(f"{access.place} (terms: {url})" for access, url in terms.items())
        raise CheckError(f"Accepted: {accepted}", "warning", "Run `ragstack doctor --aws` again in a few minutes")
    if problems := [f"{access.place}: {problem}" for access in found for problem in access.problems]:
        can_accept = any(access.needs_agreement for access in found)
        advice = "`ragstack doctor --aws --accept-agreements` makes the agreement" if can_accept else None
        raise CheckError("; ".join(problems), advice=advice)
    return ", ".join(access.place for access in found)
