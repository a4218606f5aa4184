"""Requirements of a retrieval engine: packages in the layer, and rights."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_

from infra.acknowledgements import acknowledge
from ragstack_common.core.errors import ConfigurationError
from ragstack_common.core.uris import resource_id
from ragstack_common.settings.names import (
    BEDROCK_ENGINE,
    BEDROCK_RERANKER,
    DEFAULT_EMBEDDING,
    DEFAULT_RERANKING_MODEL,
    MILVUS_ENGINE,
    OTHER_STORE,
    RERANKERS,
)
from ragstack_common.settings.retriever_tool import RetrieverToolSettings
from ragstack_common.settings.search import QuerySettings

IN_THE_LAYER: Final = frozenset(
    {BEDROCK_ENGINE, "balanced", "cached", "federated", "metered", "multislice", "reranked"}
)
"""Engines and wrappers that need nothing but boto3. The others embed queries themselves, which takes numpy at least."""

BY_CONNECTION_STRING: Final = "vector_store"

EXTRA_LAYERS: Final = frozenset({MILVUS_ENGINE})
"""Engines whose packages are an extra layer of the same name, which has numpy, for embeddings."""

REQUIRED_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "federated": ("backends",),
    **dict.fromkeys(("cached", "metered", "multislice", "reranked"), ("backend",)),
}
"""Options that permissions are derived from. The engine bedrock searches the stacks' own knowledge base by default."""

EMBEDDINGS: Final = frozenset({"hashed", "fastembed", "onnx", "openai", "bedrock"})
"""The kinds of :data:`ragstack_common.embedding.kinds.FORMS` that need no model of a user's cache.

That module is not imported here, because it needs numpy.
"""

BEDROCK_EMBEDDINGS: Final = (
    "amazon.titan-embed-text-v1",
    "amazon.titan-embed-text-v2",
    "cohere.embed-english-v3",
    "cohere.embed-multilingual-v3",
    "cohere.embed-v4",
)
"""The families of models whose requests :mod:`ragstack_common.embedding.bedrock` knows; importing it needs numpy."""

_FOUNDATION_MODEL: Final = re.compile(r"arn:aws(-[^:]+)?:bedrock:[a-z0-9-]{1,20}::foundation-model/.+")
"""Source: bedrock-agent-runtime, shape BedrockModelArn."""

_PROFILE: Final = re.compile(
    r"(?:arn:[^/]+:inference-profile/)?((?:us|us-gov|eu|apac|au|ca|jp|global)\.)([a-z0-9-]+\.[a-z0-9.:-]+)"
)
"""An inference profile of AWS: a geography, a dot, and the id of the model that it invokes in several Regions.

Source: Bedrock user guide, inference-profiles-support.
"""

_OTHER_MODEL: Final = re.compile(
    r"arn:[^:]+:bedrock:[a-z0-9-]+:\d{12}:"
    r"(application-inference-profile|custom-model-deployment|imported-model|provisioned-model)/.+"
)
"""Source: bedrock-runtime, shape ConversationalModelId."""

_ANY_REGION: Final = ":bedrock:*:"

_MODEL_ID: Final = re.compile(r"[a-z0-9-]+\.[a-z0-9.:-]+")


@dataclass(frozen=True)
class EngineConfig:
    """An engine, or wrappers around some.

    Attributes:
        config: Arguments of the factory, ``type`` included.
    """

    config: Mapping[str, Any]

    @property
    def lacking(self) -> list[str]:
        """Name the engines, rerankers and embeddings whose packages are in no layer of this project."""
        parts = [*_parts(self.config)]
        engines = {str(part.get("type")) for part in parts} - IN_THE_LAYER - {BY_CONNECTION_STRING} - EXTRA_LAYERS
        rerankers = {name for part in parts for name, _ in _reranker(part)}
        rerankers -= {name for name, entry in RERANKERS.items() if entry.in_layer}
        embeddings = {_embedding(part) for part in parts if part.get("type") in EXTRA_LAYERS}
        embeddings -= {"hashed", "bedrock"}  # need only numpy
        return [
            *(f"the engine {name}" for name in sorted(engines)),
            *(f"the reranker {name}" for name in sorted(rerankers)),
            *(f"the embedding {name}" for name in sorted(embeddings)),
        ]

    @property
    def extra_layers(self) -> set[str]:
        """Name the layers that a function needs next to the shared ones."""
        return {str(part.get("type")) for part in _parts(self.config)} & EXTRA_LAYERS

    @property
    def lacks_address(self) -> bool:
        """Whether a collection of Milvus names no server."""
        return any(part.get("type") == MILVUS_ENGINE and not part.get("uri") for part in _parts(self.config))

    @property
    def problem(self) -> str | None:
        """The reason why this engine cannot be deployed: its permissions cannot be derived; None if they can."""
        for part in _parts(self.config):
            kind = str(part.get("type"))
            if kind == BY_CONNECTION_STRING:
                return "its permissions are derived from the options of the engine: name the engine itself as type"
            if missing := [name for name in REQUIRED_OPTIONS.get(kind, ()) if not part.get(name)]:
                return f"{kind} needs {' and '.join(missing)} in its configuration"
            for name, model in _reranker(part):
                unknown = _options(part["reranker"]).keys() - {"type", "model", "timeout_seconds"}
                if name == BEDROCK_RERANKER and unknown:
                    return f"the reranker {name} has no option {', '.join(sorted(unknown))}"
                if name == BEDROCK_RERANKER and model and not _FOUNDATION_MODEL.fullmatch(model):
                    return f"the reranker {name} needs the ARN of a foundation model, not {model!r}"
            embedding = part.get("embedding")
            if embedding is None:
                continue
            form, _, model = str(embedding).partition(":")
            if form not in EMBEDDINGS:
                return f"unknown embedding {embedding!r}: choose one of {', '.join(sorted(EMBEDDINGS))}"
            if form == "bedrock" and not _is_known_model(model):
                return (
                    f"the embedding {embedding!r} needs the id or ARN of a foundation model or of an AWS inference"
                    f" profile of one of {', '.join(BEDROCK_EMBEDDINGS)}"
                )
        return None

    def grant(self, function: lambda_.Function, stack: Stack) -> None:
        """Allow *function*, of *stack*, to use the knowledge bases, indexes and models that the configuration names."""
        for part in _parts(self.config):
            for actions, arn in _rights(part, stack):
                _grant(function, actions, arn)


def creation_problem(query: QuerySettings, tool: RetrieverToolSettings) -> str | None:
    """Return why the functions could not create their engines; None if they can.

    The engines check their options themselves, if their packages are those of every deployment.
    """
    from ragstack_common.search import create_retrieval_backend  # noqa: PLC0415 - imports the engines
    from ragstack_common.services.search import check_engine  # noqa: PLC0415 - the same

    try:
        if _is_in_layer({**(query.retrieval_engine_config or {}), "type": query.retrieval_engine}):
            check_engine(query)
        for backend in filter(_is_in_layer, tool.backends(tool.shared_options()).values()):
            create_retrieval_backend(backend)
    except ConfigurationError as error:
        return str(error)
    return None


def _is_in_layer(config: Mapping[str, Any]) -> bool:
    return {str(part.get("type")) for part in _parts(config)} <= IN_THE_LAYER


def is_answer_model(model: str) -> bool:
    """Return whether permissions to generate answers with a model can be derived from its id or ARN."""
    return any(form.fullmatch(model) for form in (_FOUNDATION_MODEL, _PROFILE, _MODEL_ID, _OTHER_MODEL))


def grant_model(function: lambda_.Function, model: str, actions: Sequence[str]) -> None:
    """Allow *function* to invoke a model of Amazon Bedrock, given its id or ARN.

    An inference profile needs the models behind it too. Source: Bedrock user guide, inference-profiles-prereq.
    """
    stack = Stack.of(function)
    for arn in _models(model, stack):
        _grant(function, actions, arn)
    if "application-inference-profile/" in model:  # which does not name its model
        profile = {"StringEquals": {"bedrock:InferenceProfileArn": model}}
        _grant(function, actions, _foundation_model(stack, "*", region="*"), profile)


def _grant(
    function: lambda_.Function, actions: Sequence[str], arn: str, conditions: Mapping[str, Any] | None = None
) -> None:
    iam.Grant.add_to_principal(actions=[*actions], conditions=conditions, grantee=function, resource_arns=[arn])
    if _ANY_REGION in arn:
        assert function.role is not None, "each of the stacks' functions has its own role"
        finding = f"Resource::arn:<AWS::Partition>{arn[arn.index(_ANY_REGION) :]}"
        acknowledge(function.role, "IAM5", "A profile invokes its model in several Regions", finding=finding)


def parse_engines(query: QuerySettings, tool: RetrieverToolSettings) -> list[EngineConfig]:
    """Return the engines that searches and the retriever tool use, without the knowledge base of the stacks.

    The function may search that one in any case.
    """
    options = query.retrieval_engine_config or {}
    engines = []
    if query.retrieval_engine != BEDROCK_ENGINE or options:
        engines.append(EngineConfig({**options, "type": query.retrieval_engine}))
    shared = tool.shared_options()
    backends = [*tool.backends(shared).values()]
    if not backends and shared["type"] != BEDROCK_ENGINE:
        backends = [shared]
    return engines + [EngineConfig(backend) for backend in backends]


def _parts(backend: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield backend
    several = backend.get("backends") or ()
    inner = several.values() if isinstance(several, Mapping) else several
    for part in (backend.get("backend"), *inner):
        if isinstance(part, Mapping):
            yield from _parts(part)


def _reranker(part: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Read the name and the model of a part's reranker, in the forms that ``load_reranker`` takes."""
    choice = part.get("reranker")
    if choice is None:
        return
    options = _options(choice)
    name, _, model = str(options.get("type", "")).partition(":")
    yield name, model or str(options.get("model") or "")


def _embedding(part: Mapping[str, Any]) -> str:
    return str(part.get("embedding") or DEFAULT_EMBEDDING).partition(":")[0]


def _options(choice: Any) -> Mapping[str, Any]:
    return choice if isinstance(choice, Mapping) else {"type": choice}


def _rights(part: Mapping[str, Any], stack: Stack) -> Iterator[tuple[tuple[str, ...], str]]:
    if part.get("type") == BEDROCK_ENGINE and part.get("knowledge_base_id"):
        name = resource_id(str(part["knowledge_base_id"]))
        discover = ("bedrock:GetKnowledgeBase",) if part.get("vector_store", OTHER_STORE) == OTHER_STORE else ()
        yield (
            ("bedrock:Retrieve", *discover),
            stack.format_arn(service="bedrock", resource="knowledge-base", resource_name=name),
        )
    for name, model in _reranker(part):
        if name == BEDROCK_RERANKER:
            # Rerank has no resources that a policy could name. Source: Bedrock user guide, rerank-prereq.
            yield ("bedrock:Rerank",), "*"
            yield ("bedrock:InvokeModel",), model or _foundation_model(stack, DEFAULT_RERANKING_MODEL)
    kind, _, model = str(part.get("embedding") or "").partition(":")
    if kind == "bedrock":
        for arn in _models(model, stack):
            yield ("bedrock:InvokeModel",), arn


def _is_known_model(model: str) -> bool:
    forms = (_FOUNDATION_MODEL, _PROFILE, _MODEL_ID)
    return any(form.fullmatch(model) for form in forms) and any(family in model for family in BEDROCK_EMBEDDINGS)


def _models(model: str, stack: Stack) -> list[str]:
    """Resources that InvokeModel needs rights to. Source: Bedrock user guide, inference-profiles-prereq."""
    if profile := _PROFILE.fullmatch(model):
        geography, invoked = profile.groups()
        named = stack.format_arn(service="bedrock", resource="inference-profile", resource_name=geography + invoked)
        return [model if model.startswith("arn:") else named, _foundation_model(stack, invoked, region="*")]
    return [model if model.startswith("arn:") else _foundation_model(stack, model)]


def _foundation_model(stack: Stack, model: str, region: str | None = None) -> str:
    return stack.format_arn(
        account="", region=region, service="bedrock", resource="foundation-model", resource_name=model
    )
