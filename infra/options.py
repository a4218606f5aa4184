"""What a deployer chooses with ``cdk --context NAME=VALUE``, checked once and then frozen."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from infra import option_checks
from infra.engine import Engine, engines_of
from infra.option_checks import OFF, OptionError, checked, choice, number
from infra.target import KNOWLEDGE_BASE_REGIONS, LEFT_OUT_LOCALLY, LOCAL_VARIABLES, Target
from infra.variables import INGESTION_CHECKS, QUERY_CHECKS, RECONCILE_CHECKS, UPLOAD_CHECKS, variables
from ragstack_common import config

DEFAULT_RETRIEVAL_TIMEOUT_SECONDS: Final = 5.0
DEFAULT_MAX_RECEIVES: Final = 20
DEFAULT_CALLS_PER_SECOND: Final = 5.0
DEFAULT_GIVE_UP_SECONDS: Final = 6 * 3600.0
DEFAULT_RECONCILE_SCHEDULE: Final = "cron(0 3 * * ? *)"

SECONDS_PER_CALL: Final = 0.4
"""Between two calls of one invocation, with what it asks the bucket and the registry: two invocations make five calls a
second (benchmarks/ingestion.py)."""

MOST_CALLS_AT_ONCE: Final = 10
"""Source: Bedrock's quotas, concurrent IngestKnowledgeBaseDocuments and DeleteKnowledgeBaseDocuments requests."""

MOST_REQUESTS_PER_SECOND: Final = 10_000
"""Source: API Gateway developer guide, quotas: the requests of an account and Region."""

LONGEST_BATCH_WINDOW_SECONDS: Final = 300
"""Source: Lambda API reference, MaximumBatchingWindowInSeconds."""


class Auth(StrEnum):
    """Who may call the API."""

    IAM = "iam"
    API_KEY = "api_key"
    NONE = "none"


class Switch(StrEnum):
    """Whether a part is deployed."""

    ON = "on"
    OFF = "off"


class ApiLogging(StrEnum):
    """Whether API Gateway logs requests, for which the account's settings must name a role in each Region."""

    OFF = "off"
    ON = "on"
    WITH_ACCOUNT_ROLE = "with_account_role"


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
        vector_store: The store behind it; OTHER if the deployer does not name it.
    """

    knowledge_base_id: str
    data_source_id: str
    vector_store: str = config.OTHER_STORE


@dataclass(frozen=True)
class Options:
    """Everything that a deployer can choose.

    Attributes:
        target: AWS, or the local stack.
        prefix: First part of every stack's name.
        auth: Who may call the API.
        api_logging: Whether API Gateway writes logs, and whether the stacks set the account's role for that.
        api_requests_per_second: Rate limit for all callers together, 1 to 10,000; bursts may be twice as large.
        existing_knowledge_base: None creates a knowledge base on S3 Vectors.
        contextual_headers: Whether the chunks of the knowledge base that is created get contextual headers.
        bedrock_endpoint: Base URL of the local Bedrock, as the functions reach it.
        aws_endpoint: Base URL of the local AWS services, as callers of the API reach it.
        dependencies_layer: A zip file to use in place of the layer that ``python -m infra.layers`` builds.
        alarm_topic: ARN of an SNS topic that every alarm notifies.
        alarm_email: An address that every alarm notifies, through a topic that is created.
        event_bus_name: An event bus that exists, on which outcomes are published.
        reconcile_schedule: When bucket, registry and knowledge base are compared; None never does it by itself.
        batch_window_seconds: How long messages are collected for one invocation, 0 to 300.
        query_variables: Environment variables of the query function that differ from its defaults.
        ingestion_variables: The same for the functions that submit and follow documents.
        reconcile_variables: The same for the function that compares, beside what it has of the settings above.
        upload_variables: The same for the function behind the routes for documents.
    """

    target: Target = Target.AWS
    prefix: str = "RagStack"
    auth: Auth = Auth.IAM
    api_logging: ApiLogging = ApiLogging.OFF
    api_requests_per_second: int = 20
    existing_knowledge_base: ExistingKnowledgeBase | None = None
    contextual_headers: bool = True
    bedrock_endpoint: str | None = None
    aws_endpoint: str = "http://localhost:4566"
    dependencies_layer: Path | None = None
    alarm_topic: str | None = None
    alarm_email: str | None = None
    event_bus_name: str = "default"
    reconcile_schedule: str | None = DEFAULT_RECONCILE_SCHEDULE
    batch_window_seconds: int = 1
    query_variables: Mapping[str, str] = field(default_factory=dict)
    ingestion_variables: Mapping[str, str] = field(default_factory=dict)
    reconcile_variables: Mapping[str, str] = field(default_factory=dict)
    upload_variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def retrieval_timeout_seconds(self) -> float:
        """The deadline of one search."""
        return float(self.query_variables.get(config.RETRIEVAL_TIMEOUT_SECONDS, DEFAULT_RETRIEVAL_TIMEOUT_SECONDS))

    @property
    def engines(self) -> list[Engine]:
        """What the query function searches beside the knowledge base of the stacks."""
        return engines_of(self.query_variables)

    @property
    def max_receives(self) -> int:
        """Deliveries of a message before the function that reads it gives it up."""
        return int(self.ingestion_variables.get(config.INGESTION_MAX_RECEIVES, DEFAULT_MAX_RECEIVES))

    @property
    def invocations_at_once(self) -> int:
        """Concurrent invocations of a function that calls the knowledge base, 2 to 10: just enough for the call rate.

        An invocation makes one call at a time. Amazon takes 10 requests to ingest or delete at the same time.
        """
        text = self.ingestion_variables.get(config.INGESTION_CALLS_PER_SECOND, DEFAULT_CALLS_PER_SECOND)
        return min(MOST_CALLS_AT_ONCE, max(2, math.ceil(float(text) * SECONDS_PER_CALL)))

    @property
    def give_up_seconds(self) -> float:
        """How long a document is followed."""
        return float(self.ingestion_variables.get(config.STATUS_GIVE_UP_SECONDS, DEFAULT_GIVE_UP_SECONDS))

    @classmethod
    def from_context(cls, context: Mapping[str, Any], region: str | None = None) -> "Options":
        """Read the options.

        Args:
            context: All of the app's context; names that belong to the CDK itself are ignored.
            region: Where the stacks are deployed; None if that is not known yet, and then not checked.

        Raises:
            OptionError: A value is missing, unknown or unusable.
        """
        values = {name: _text(value) for name, value in context.items() if _OUR_NAME.fullmatch(name)}
        _refuse_unknown(values)
        target = choice(values, "target", Target, Target.AWS)
        auth = choice(values, "auth", Auth, Auth.NONE if target is Target.LOCAL else Auth.IAM)
        if auth is Auth.NONE and target is not Target.LOCAL:
            raise OptionError("auth=none is for target=local only: choose auth=iam or auth=api_key")
        bedrock_endpoint = checked(values, "bedrock_endpoint", option_checks.url)
        if bedrock_endpoint and target is not Target.LOCAL:
            raise OptionError("bedrock_endpoint is for target=local only: on AWS the functions use Amazon Bedrock")
        existing = _existing_knowledge_base(values)
        if existing is None and target is Target.LOCAL:
            raise OptionError(
                "target=local needs knowledge_base=existing, knowledge_base_id and data_source_id:"
                f" the local CloudFormation has no {LEFT_OUT_LOCALLY[0]}"
            )
        if target is Target.AWS:
            _refuse_region_without_knowledge_bases(values, region)
        query_variables = variables(values, QUERY_CHECKS)
        if existing is None and query_variables.get(config.SEARCH_TYPE) == "HYBRID":
            raise OptionError("search_type=HYBRID is not available on S3 Vectors: leave search_type out")
        _refuse_unusable_engines(values, query_variables)
        layer = checked(values, "dependencies_layer", option_checks.existing_file)
        schedule = checked(values, "reconcile_schedule", option_checks.schedule) or DEFAULT_RECONCILE_SCHEDULE
        window = checked(values, "ingestion_batch_window_seconds", number(0, LONGEST_BATCH_WINDOW_SECONDS, whole=True))
        alarm_topic = checked(values, "alarm_topic", option_checks.topic_arn)
        alarm_email = checked(values, "alarm_email", option_checks.email)
        if alarm_topic and alarm_email:
            raise OptionError("alarm_topic and alarm_email exclude each other: subscribe the address to the topic")
        rate = checked(values, "api_requests_per_second", number(1, MOST_REQUESTS_PER_SECOND, whole=True))
        local_variables = LOCAL_VARIABLES if target is Target.LOCAL else {}
        return cls(
            target=target,
            prefix=checked(values, "prefix", option_checks.prefix) or cls.prefix,
            auth=auth,
            api_logging=choice(values, "api_logging", ApiLogging, ApiLogging.OFF),
            api_requests_per_second=cls.api_requests_per_second if rate is None else int(rate),
            existing_knowledge_base=existing,
            contextual_headers=_contextual_headers(values, existing),
            bedrock_endpoint=bedrock_endpoint,
            aws_endpoint=checked(values, "aws_endpoint", option_checks.url) or cls.aws_endpoint,
            dependencies_layer=Path(layer) if layer else None,
            alarm_topic=alarm_topic,
            alarm_email=alarm_email,
            event_bus_name=checked(values, "event_bus_name", option_checks.event_bus_name) or cls.event_bus_name,
            reconcile_schedule=None if schedule == OFF else schedule,
            batch_window_seconds=cls.batch_window_seconds if window is None else int(window),
            query_variables=query_variables,
            ingestion_variables={**local_variables, **variables(values, INGESTION_CHECKS)},
            reconcile_variables=variables(values, RECONCILE_CHECKS),
            upload_variables=variables(values, UPLOAD_CHECKS),
        )


def _refuse_unknown(values: Mapping[str, str]) -> None:
    checks = (*QUERY_CHECKS, *INGESTION_CHECKS, *RECONCILE_CHECKS, *UPLOAD_CHECKS)
    known = {*_NAMES, *(variable.lower() for variable in checks)}
    for name in values:
        if name not in known:
            raise OptionError(f"context value {name!r} is unknown: choose from {', '.join(sorted(known))}")


def _text(value: Any) -> str:
    """Write a value as the command line would give it; cdk.json may hold an object."""
    return json.dumps(value) if isinstance(value, Mapping) else str(value).strip()


def _refuse_region_without_knowledge_bases(values: Mapping[str, str], region: str | None) -> None:
    is_checked = choice(values, "region_check", Switch, Switch.ON) is Switch.ON
    if is_checked and region and region not in KNOWLEDGE_BASE_REGIONS:
        raise OptionError(
            f"Amazon Bedrock has no knowledge bases in {region}: set AWS_REGION to another Region, such as us-east-1 or"
            " eu-central-1; or add --context region_check=off if they are new there"
        )


def _refuse_unusable_engines(values: Mapping[str, str], query_variables: Mapping[str, str]) -> None:
    engines = engines_of(query_variables)
    lacking = sorted({name for engine in engines for name in engine.lacking})
    if lacking and not values.get("dependencies_layer"):
        raise OptionError(
            f"the engine {' and '.join(lacking)} needs packages that the layer lacks: build a layer with them, and give"
            " its zip file as dependencies_layer"
        )
    for engine in engines:
        if engine.problem:
            raise OptionError(f"the engine {engine.config['type']} cannot be deployed: {engine.problem}")


def _existing_knowledge_base(values: Mapping[str, str]) -> ExistingKnowledgeBase | None:
    kind = choice(values, "knowledge_base", KnowledgeBaseKind, KnowledgeBaseKind.S3_VECTORS)
    if kind is KnowledgeBaseKind.S3_VECTORS:
        for name in ("knowledge_base_id", "data_source_id", "vector_store"):
            if values.get(name):
                raise OptionError(f"{name} is given without knowledge_base=existing: add it, or leave {name} out")
        return None
    vector_store = checked(values, "vector_store", option_checks.one_of(*config.VECTOR_STORES))
    return ExistingKnowledgeBase(
        _id_of_existing(values, "knowledge_base_id"),
        _id_of_existing(values, "data_source_id"),
        vector_store or ExistingKnowledgeBase.vector_store,
    )


def _id_of_existing(values: Mapping[str, str], name: str) -> str:
    identifier = checked(values, name, option_checks.bedrock_id)
    if identifier is None:
        raise OptionError(f"knowledge_base=existing needs {name}: add --context {name}=...")
    return identifier


def _contextual_headers(values: Mapping[str, str], existing: ExistingKnowledgeBase | None) -> bool:
    if existing and values.get("contextual_headers"):
        raise OptionError(
            "contextual_headers is for a knowledge base that is created: leave it out with knowledge_base=existing"
        )
    return choice(values, "contextual_headers", Switch, Switch.ON) is Switch.ON


_OUR_NAME: Final = re.compile(r"[a-z][a-z_]*")
"""Names of the CDK's own context hold a colon, a hyphen, an at sign or an upper case letter."""

_NAMES: Final = (
    "target",
    "prefix",
    "auth",
    "api_logging",
    "api_requests_per_second",
    "knowledge_base",
    "knowledge_base_id",
    "data_source_id",
    "vector_store",
    "contextual_headers",
    "bedrock_endpoint",
    "aws_endpoint",
    "dependencies_layer",
    "alarm_topic",
    "alarm_email",
    "event_bus_name",
    "region_check",
    "reconcile_schedule",
    "ingestion_batch_window_seconds",
)
