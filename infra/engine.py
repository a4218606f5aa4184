"""What a configured retrieval engine needs of a deployment: packages in the layer, and rights."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from aws_cdk import Stack
from aws_cdk import aws_iam as iam

from ragstack_common import settings

IN_THE_LAYER: Final = frozenset(
    {settings.BEDROCK_ENGINE, "balanced", "cached", "federated", "metered", "multislice", "reranked"}
)
"""Engines and wrappers that need nothing but boto3. The others embed queries themselves, which takes numpy at least."""

COLLECTION_OPTION: Final[Mapping[str, str]] = {settings.BEDROCK_ENGINE: "knowledge_base_id", "s3_vectors": "index_name"}
"""What the engines that take rights call a collection of the retriever tool."""

EVERY_COLLECTION: Final = "*"

S3_VECTORS_ACTIONS: Final = ("s3vectors:GetIndex", "s3vectors:GetVectors", "s3vectors:QueryVectors")
"""Source: S3 Vectors API reference, QueryVectors: one that returns metadata or has a filter needs GetVectors too."""

_MODEL: Final = "bedrock:"


@dataclass(frozen=True)
class Engine:
    """An engine, or wrappers around some.

    Attributes:
        config: What the factory is told, ``type`` included.
    """

    config: Mapping[str, Any]

    @property
    def lacking(self) -> list[str]:
        """Name the engines whose packages are not in the layer of this project."""
        return sorted({str(part.get("type")) for part in _parts(self.config)} - IN_THE_LAYER)

    def grant(self, function: iam.IGrantable, stack: Stack) -> None:
        """Let *function*, of *stack*, use the knowledge bases, indexes and models that the configuration names."""
        for part in _parts(self.config):
            for actions, arn in _rights(part, stack):
                iam.Grant.add_to_principal(actions=[*actions], grantee=function, resource_arns=[arn])


def engines_of(variables: Mapping[str, str]) -> list[Engine]:
    """Describe the engines that variables of the query function configure: of searches, and of the retriever tool.

    The knowledge base of the stacks is none of them: the function may search it anyway.
    """
    kind = variables.get(settings.RETRIEVAL_ENGINE, settings.BEDROCK_ENGINE)
    config = settings.json_object(variables.get(settings.RETRIEVAL_ENGINE_CONFIG, "{}"))
    own = [] if kind == settings.BEDROCK_ENGINE and not config else [Engine({**config, "type": kind})]
    return own + _engines_of_the_tool(variables)


def _engines_of_the_tool(variables: Mapping[str, str]) -> list[Engine]:
    shared = {
        "type": variables.get(settings.RETRIEVER_TOOL_ENGINE, settings.BEDROCK_ENGINE),
        "embedding": variables.get(settings.RETRIEVER_TOOL_EMBEDDING),
        **settings.json_object(variables.get(settings.RETRIEVER_TOOL_ENGINE_CONFIG, "{}")),
    }
    collections = collections_of(variables.get(settings.RETRIEVER_TOOL_COLLECTIONS, ""))
    engines = []
    for name, options in collections.items():
        config = {**options} if "type" in options else {**shared, **options}
        if config["type"] in COLLECTION_OPTION:
            config.setdefault(COLLECTION_OPTION[config["type"]], name)
        engines.append(Engine(config))
    if not collections and shared["type"] != settings.BEDROCK_ENGINE:
        engines.append(Engine(shared))
    return engines


def collections_of(text: str) -> dict[str, dict[str, Any]]:
    """Read the collections of the retriever tool: names with commas between them, or an object by name.

    Raises:
        ValueError: The text is neither.
    """
    if not text.startswith("{"):
        return {name.strip(): {} for name in text.split(",") if name.strip()}
    collections = settings.json_object(text)
    if not all(isinstance(options, dict) for options in collections.values()):
        raise ValueError("each collection has an object: the options of its engine, or {}")
    return collections


def _parts(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield config
    several = config.get("backends") or ()
    inner = several.values() if isinstance(several, Mapping) else several
    for part in (config.get("backend"), *inner):
        if isinstance(part, Mapping):
            yield from _parts(part)


def _rights(part: Mapping[str, Any], stack: Stack) -> Iterator[tuple[tuple[str, ...], str]]:
    if part.get("type") == settings.BEDROCK_ENGINE and part.get("knowledge_base_id"):
        name = str(part["knowledge_base_id"]).rpartition("/")[2]
        yield (
            ("bedrock:Retrieve",),
            stack.format_arn(service="bedrock", resource="knowledge-base", resource_name=name),
        )
    if part.get("type") == "s3_vectors":
        index = f"{part.get('vector_bucket_name')}/index/{part.get('index_name')}"
        yield S3_VECTORS_ACTIONS, stack.format_arn(service="s3vectors", resource="bucket", resource_name=index)
    embedding = str(part.get("embedding") or "")
    if embedding.startswith(_MODEL):
        model = embedding.removeprefix(_MODEL)
        arn = stack.format_arn(account="", service="bedrock", resource="foundation-model", resource_name=model)
        yield ("bedrock:InvokeModel",), model if model.startswith("arn:") else arn
