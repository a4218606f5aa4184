"""What a deployer chooses with ``cdk --context NAME=VALUE``, checked once and then frozen."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar

from infra.engine import EVERY_COLLECTION, Engine, collections_of, engines_of
from infra.target import LEFT_OUT_LOCALLY, Target
from ragstack_common import settings

E = TypeVar("E", bound=StrEnum)

DEFAULT_RETRIEVAL_TIMEOUT_SECONDS: Final = 5.0

LONGEST_RETRIEVAL_SECONDS: Final = 24.0
"""What leaves the function time to answer within API Gateway's 29 seconds."""

MOST_CANDIDATES: Final = 1_000
"""Ten pages of Retrieve, one after the other: more would not come before the deadline."""

DEFAULT_MAX_RECEIVES: Final = 5


class OptionError(ValueError):
    """A context value is missing, unknown or unusable; the message is one line that says what to write."""


class Auth(StrEnum):
    """Who may call the API."""

    IAM = "iam"
    API_KEY = "api_key"
    NONE = "none"


class Switch(StrEnum):
    """Whether a part is deployed."""

    ON = "on"
    OFF = "off"


class KnowledgeBaseKind(StrEnum):
    """Where the knowledge base comes from."""

    S3_VECTORS = "s3_vectors"
    EXISTING = "existing"


@dataclass(frozen=True)
class ExistingKnowledgeBase:
    """A knowledge base that somebody else owns.

    Attributes:
        knowledge_base_id: Ten alphanumeric characters.
        data_source_id: Ten alphanumeric characters: an S3 data source that reads the documents bucket.
    """

    knowledge_base_id: str
    data_source_id: str


@dataclass(frozen=True)
class Options:
    """Everything that a deployer can choose.

    Attributes:
        target: AWS, or the local stack.
        prefix: First part of every stack's name.
        auth: Who may call the API.
        existing_knowledge_base: None creates a knowledge base on S3 Vectors.
        contextual_headers: Whether the chunks of the knowledge base that is created get contextual headers.
        bedrock_endpoint: Base URL of the local Bedrock, as the functions reach it.
        aws_endpoint: Base URL of the local AWS services, as callers of the API reach it.
        dependencies_layer: A zip file to use in place of the layer that ``python -m infra.layers`` builds.
        query_variables: Environment variables of the query function that differ from its defaults.
        ingestion_variables: The same for the ingestion function.
    """

    target: Target = Target.AWS
    prefix: str = "RagStack"
    auth: Auth = Auth.IAM
    existing_knowledge_base: ExistingKnowledgeBase | None = None
    contextual_headers: bool = True
    bedrock_endpoint: str | None = None
    aws_endpoint: str = "http://localhost:4566"
    dependencies_layer: Path | None = None
    query_variables: Mapping[str, str] = field(default_factory=dict)
    ingestion_variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def retrieval_timeout_seconds(self) -> float:
        """The deadline of one search."""
        return float(self.query_variables.get(settings.RETRIEVAL_TIMEOUT_SECONDS, DEFAULT_RETRIEVAL_TIMEOUT_SECONDS))

    @property
    def engines(self) -> list[Engine]:
        """What the query function searches beside the knowledge base of the stacks."""
        return engines_of(self.query_variables)

    @property
    def max_receives(self) -> int:
        """Deliveries of a message before the ingestion function gives it up."""
        return int(self.ingestion_variables.get(settings.INGESTION_MAX_RECEIVES, DEFAULT_MAX_RECEIVES))

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> "Options":
        """Read the options.

        Args:
            context: All of the app's context; names that belong to the CDK itself are passed over.

        Raises:
            OptionError: A value is missing, unknown or unusable.
        """
        values = {name: _text(value) for name, value in context.items() if _OUR_NAME.fullmatch(name)}
        _refuse_unknown(values)
        target = _choice(values, "target", Target, Target.AWS)
        auth = _choice(values, "auth", Auth, Auth.NONE if target is Target.LOCAL else Auth.IAM)
        if auth is Auth.NONE and target is not Target.LOCAL:
            raise OptionError("auth=none is for target=local only: choose auth=iam or auth=api_key")
        bedrock_endpoint = _url(values, "bedrock_endpoint")
        if bedrock_endpoint and target is not Target.LOCAL:
            raise OptionError("bedrock_endpoint is for target=local only: on AWS the functions use Amazon Bedrock")
        existing = _existing_knowledge_base(values)
        if existing is None and target is Target.LOCAL:
            raise OptionError(
                "target=local needs knowledge_base=existing, knowledge_base_id and data_source_id:"
                f" the local CloudFormation has no {LEFT_OUT_LOCALLY[0]}"
            )
        query_variables = _variables(values, _QUERY_CHECKS)
        if existing is None and query_variables.get(settings.SEARCH_TYPE) == "HYBRID":
            raise OptionError("search_type=HYBRID is not available on S3 Vectors: leave search_type out")
        _refuse_engines_without_packages(values, query_variables)
        return cls(
            target=target,
            prefix=_prefix(values),
            auth=auth,
            existing_knowledge_base=existing,
            contextual_headers=_contextual_headers(values, existing),
            bedrock_endpoint=bedrock_endpoint,
            aws_endpoint=_url(values, "aws_endpoint") or cls.aws_endpoint,
            dependencies_layer=_file(values, "dependencies_layer"),
            query_variables=query_variables,
            ingestion_variables=_variables(values, _INGESTION_CHECKS),
        )


def _refuse_unknown(values: Mapping[str, str]) -> None:
    known = {*_NAMES, *(variable.lower() for variable in (*_QUERY_CHECKS, *_INGESTION_CHECKS))}
    for name in values:
        if name not in known:
            raise OptionError(f"context value {name!r} is unknown: choose from {', '.join(sorted(known))}")


def _text(value: Any) -> str:
    """Write a value as the command line would give it; cdk.json may hold an object."""
    return json.dumps(value) if isinstance(value, Mapping) else str(value).strip()


def _refuse_engines_without_packages(values: Mapping[str, str], variables: Mapping[str, str]) -> None:
    lacking = sorted({name for engine in engines_of(variables) for name in engine.lacking})
    if lacking and not values.get("dependencies_layer"):
        raise OptionError(
            f"the engine {' and '.join(lacking)} needs packages that the layer lacks: build a layer with them, and give"
            " its zip file as dependencies_layer"
        )


def _choice(values: Mapping[str, str], name: str, kind: type[E], default: E) -> E:
    text = values.get(name)
    if not text:
        return default
    try:
        return kind(text)
    except ValueError:
        raise OptionError(f"{name}={text} is unknown: choose {' or '.join(kind)}") from None


def _prefix(values: Mapping[str, str]) -> str:
    prefix = values.get("prefix") or Options.prefix
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,39}", prefix):
        raise OptionError(f"prefix={prefix} is unusable: write a letter, then at most 39 letters, digits or hyphens")
    return prefix


def _existing_knowledge_base(values: Mapping[str, str]) -> ExistingKnowledgeBase | None:
    kind = _choice(values, "knowledge_base", KnowledgeBaseKind, KnowledgeBaseKind.S3_VECTORS)
    if kind is KnowledgeBaseKind.S3_VECTORS:
        for name in ("knowledge_base_id", "data_source_id"):
            if values.get(name):
                raise OptionError(f"{name} is given without knowledge_base=existing: add it, or leave {name} out")
        return None
    return ExistingKnowledgeBase(_bedrock_id(values, "knowledge_base_id"), _bedrock_id(values, "data_source_id"))


def _contextual_headers(values: Mapping[str, str], existing: ExistingKnowledgeBase | None) -> bool:
    if existing and values.get("contextual_headers"):
        raise OptionError(
            "contextual_headers is for a knowledge base that is created: leave it out with knowledge_base=existing"
        )
    return _choice(values, "contextual_headers", Switch, Switch.ON) is Switch.ON


def _bedrock_id(values: Mapping[str, str], name: str) -> str:
    """Check an id the way the service does. Source: bedrock-agent, shape Id."""
    text = values.get(name, "")
    if not text:
        raise OptionError(f"knowledge_base=existing needs {name}: add --context {name}=...")
    if not re.fullmatch(r"[0-9a-zA-Z]{10}", text):
        raise OptionError(f"{name}={text} is unusable: an id has ten letters or digits")
    return text


def _url(values: Mapping[str, str], name: str) -> str | None:
    text = values.get(name)
    if not text:
        return None
    if not re.fullmatch(r"https?://[^/\s]+/?", text):
        raise OptionError(f"{name}={text} is unusable: write it as http://HOST:PORT")
    return text.rstrip("/")


def _file(values: Mapping[str, str], name: str) -> Path | None:
    text = values.get(name)
    if not text:
        return None
    path = Path(text).resolve()
    if not path.is_file():
        raise OptionError(f"{name}={text} is unusable: there is no such file")
    return path


def _variables(values: Mapping[str, str], checks: Mapping[str, Callable[[str], str]]) -> dict[str, str]:
    """Collect the context values that become environment variables of the same name in upper case."""
    variables = {}
    for variable, check in checks.items():
        name = variable.lower()
        if text := values.get(name):
            try:
                variables[variable] = check(text)
            except ValueError as error:
                raise OptionError(f"{name}={text} is unusable: {error}") from None
    return variables


def _number(low: float, high: float, *, whole: bool = False) -> Callable[[str], str]:
    """A check that a text is a number from *low* to *high*."""

    def check(text: str) -> str:
        explanation = f"write a {'whole ' if whole else ''}number from {low:g} to {high:g}"
        try:
            number = int(text) if whole else float(text)
        except ValueError:
            raise ValueError(explanation) from None
        if not low <= number <= high:
            raise ValueError(explanation)
        return text

    return check


def _one_of(*choices: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        for choice in choices:
            if text.lower() == choice.lower():
                return choice
        raise ValueError(f"choose {' or '.join(choices)}")

    return check


def _as_written(check: Callable[[str], object]) -> Callable[[str], str]:
    """A check by a setting's own reader; the text stays as it is."""

    def checked(text: str) -> str:
        check(text)
        return text

    return checked


def _engine_name(text: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", text):
        raise ValueError("write the name of an engine, such as bedrock")
    return text


def _collections(text: str) -> str:
    if text == EVERY_COLLECTION:
        raise ValueError("name the collections: the function gets rights to those that are named")
    if not collections_of(text):
        raise ValueError("name a collection")
    return text


_OUR_NAME: Final = re.compile(r"[a-z][a-z_]*")
"""Names of the CDK's own context hold a colon, a hyphen, an at sign or an upper case letter."""

_NAMES: Final = (
    "target",
    "prefix",
    "auth",
    "knowledge_base",
    "knowledge_base_id",
    "data_source_id",
    "contextual_headers",
    "bedrock_endpoint",
    "aws_endpoint",
    "dependencies_layer",
)

_QUERY_CHECKS: Final[Mapping[str, Callable[[str], str]]] = {
    settings.RETRIEVAL_TIMEOUT_SECONDS: _number(0.1, LONGEST_RETRIEVAL_SECONDS),
    settings.MULTISLICE_ENABLED: _one_of("true", "false"),
    settings.MULTISLICE_MAX_SLICES: _number(1, 10, whole=True),
    settings.FILTERED_SCORE_BOOST: _number(0.01, 100),
    settings.SEARCH_TYPE: _one_of(*settings.SEARCH_TYPES),
    settings.RETRIEVAL_ENGINE: _engine_name,
    settings.RETRIEVAL_ENGINE_CONFIG: _as_written(settings.json_object),
    settings.RERANK: _one_of(*settings.RERANKERS),
    settings.MULTI_CORPUS_METADATA: _as_written(settings.corpus_names),
    settings.LARGE_RETRIEVAL_SIZE_ALL_CORPUS: _number(1, MOST_CANDIDATES, whole=True),
    settings.LARGE_RETRIEVAL_SIZE_SINGLE_CORPUS: _number(1, MOST_CANDIDATES, whole=True),
    settings.SEARCH_K: _number(1, settings.MAX_RESULTS, whole=True),
    settings.RETRIEVER_TOOL_ENGINE: _engine_name,
    settings.RETRIEVER_TOOL_ENGINE_CONFIG: _as_written(settings.json_object),
    settings.RETRIEVER_TOOL_COLLECTIONS: _collections,
    settings.RETRIEVER_TOOL_EMBEDDING: _as_written(str),
}

_INGESTION_CHECKS: Final[Mapping[str, Callable[[str], str]]] = {
    settings.INGESTION_MAX_RECEIVES: _number(1, 100, whole=True),
    settings.INGESTION_MAX_RETRIES: _number(0, 10, whole=True),
    settings.INGESTION_BASE_DELAY_SECONDS: _number(0, 30),
    settings.INGESTION_DOCUMENTS_PER_CALL: _number(1, 25, whole=True),
}
