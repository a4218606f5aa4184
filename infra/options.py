"""What a deployer chooses with ``cdk --context NAME=VALUE``, checked once and then frozen."""

import math
import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from pydantic import Field, model_validator

from infra.access_options import AccessValues, access_problems, groups_of_people, tenant_prefixes, tenant_problem
from infra.context_types import (
    BedrockId,
    BucketName,
    LayerArn,
    LayerFile,
    Prefix,
    Schedule,
    SecurityGroupIds,
    SettingsFile,
    SubnetIds,
    Switch,
    TableName,
    Url,
)
from infra.engine import Engine, is_answer_model, parse_engines
from infra.layers import TRACING, extra_layer
from infra.target import LEFT_OUT_LOCALLY, LOCAL_SECONDS_PER_CALL, LOCAL_VARIABLES, Target
from ragstack_common.access.policy import AccessPolicy, read_policy
from ragstack_common.core.errors import ConfigurationError
from ragstack_common.settings.access import NO_ACCESS_FILE, TOKEN_KINDS, AccessSettings, AuthKind
from ragstack_common.settings.answers import AnswerSettings
from ragstack_common.settings.base import BusName, Settings, as_text, read_settings
from ragstack_common.settings.ingestion import FUNCTION_SETTINGS, IngestionSettings
from ragstack_common.settings.names import EVERY_COLLECTION, MILVUS_ENGINE, OTHER_STORE
from ragstack_common.settings.retriever_tool import RetrieverToolSettings
from ragstack_common.settings.search import QuerySettings, VectorStore
from ragstack_common.settings.tracing import TraceSettings

S = TypeVar("S", bound=Settings)

SET_BY_STACKS: Final = frozenset(
    {
        "ACCESS_FILE",
        "API_AUTH",
        "API_KEYS",
        "DATA_SOURCE_ID",
        "DEAD_LETTER_QUEUE_URL",
        "DOCUMENTS_BUCKET",
        "EVENT_BUS_NAME",
        "INGESTION_QUEUE_URL",
        "JOBS_QUEUE_URL",
        "KNOWLEDGE_BASE_ID",
        "REGISTRY_TABLE",
        "SNAPSHOT_BUCKET",
        "STATUS_QUEUE_URL",
        "VECTOR_STORE",
    }
)
"""Variables of functions that no context value sets directly."""

MAX_CALLS_AT_ONCE: Final = 10
"""Source: Bedrock's quotas, concurrent IngestKnowledgeBaseDocuments and DeleteKnowledgeBaseDocuments requests."""

SETTINGS: Final = "settings"

CONSOLE_FILES: Final = Path(__file__).parents[1] / "ragstack_local" / "console" / "static"
"""What `make setup` builds from ``web/``."""

CONSOLE_KINDS: Final = frozenset({*TOKEN_KINDS, AuthKind.API_KEY})
"""How callers with a browser prove who they are."""


class OptionError(ValueError):
    """Context values are missing, unknown or invalid; the message is one line that says what is allowed."""


class ApiLogging(StrEnum):
    """Whether API Gateway logs requests, for which the account's settings must name a role in each Region."""

    OFF = "off"
    ON = "on"
    WITH_ACCOUNT_ROLE = "with_account_role"


class KnowledgeBaseKind(StrEnum):
    """Where the knowledge base comes from."""

    S3_VECTORS = "s3_vectors"
    EXISTING = "existing"


class ContextValues(AccessValues):
    """The context values of the stacks themselves; those of the functions are in :mod:`ragstack_common.settings`."""

    target: Target = Field(Target.AWS, description="where the stacks go; `local` is what `ragstack up` uses")
    prefix: Prefix = Field(
        "RagStack",
        description="first part of every stack's name, different for each deployment in an account; a long one leaves"
        " less room for the keys of documents",
    )
    api_logging: ApiLogging = Field(
        ApiLogging.OFF,
        description="logs of API Gateway. `on` needs a role for them in the account's settings; `with_account_role`"
        " creates it, for every API of the account in the Region",
    )
    documents_bucket: BucketName | None = Field(
        None,
        description="[an existing bucket](#existing-resources) for the documents, also one that an earlier deployment"
        " left; versioning must be on",
    )
    registry_table: TableName | None = Field(
        None, description="the [document registry](#existing-resources) that an earlier deployment left"
    )
    knowledge_base: KnowledgeBaseKind = Field(
        KnowledgeBaseKind.S3_VECTORS, description="create a knowledge base on S3 Vectors, or use an existing one"
    )
    knowledge_base_id: BedrockId | None = Field(None, description="required with `knowledge_base=existing`")
    data_source_id: BedrockId | None = Field(
        None,
        description="required with `knowledge_base=existing`: an S3 data source that reads the documents bucket",
    )
    vector_store: VectorStore = Field(
        OTHER_STORE,
        description="with `knowledge_base=existing`: its vector store",
    )
    contextual_headers: Switch = Field(
        default=False,
        description="add contextual headers and sections to the chunks of a knowledge base that the stacks create. Not"
        " yet tried with direct ingestion on AWS; the local stack always adds them",
    )
    bedrock_endpoint: Url | None = Field(
        None, description="with `target=local`: where the functions reach the local Bedrock"
    )
    aws_endpoint: Url = Field(
        "http://localhost:4566", description="with `target=local`: where callers reach the local AWS services"
    )
    answers_endpoint: Url = Field(
        "http://localhost:4568", description="with `target=local`: where the local stack runs the function `answers`"
    )
    dependencies_layer: LayerFile | None = Field(
        None, description="a layer to deploy instead of the one that `python -m infra.layers` builds"
    )
    answers_layer: LayerFile | None = Field(
        None, description="the same for the packages that only the function `answers` has"
    )
    viewer_layer: LayerFile | None = Field(
        None, description="the same for the packages that only the function `viewer` has"
    )
    milvus_layer: LayerFile | None = Field(
        None, description="the same for the packages of Milvus, which are deployed if a collection is in Milvus"
    )
    tracing_layer: LayerFile | None = Field(
        None, description="the same for OpenTelemetry, which is deployed with `otel_exporter_otlp_endpoint`"
    )
    web_adapter_layer: LayerArn | None = Field(
        None,
        description="a Lambda Web Adapter for arm64 of your own, for me-south-1 and partitions other than `aws`, where"
        " AWS publishes none; elsewhere, by default, the layer of AWS",
    )
    vpc_subnet_ids: SubnetIds | None = Field(
        None,
        description="run the functions that search in these subnets, for a Milvus server in a VPC; with"
        " `vpc_security_group_ids`",
    )
    vpc_security_group_ids: SecurityGroupIds | None = Field(None, description="their security groups")
    alarm_topic: str | None = Field(None, description="every alarm notifies this SNS topic, given its ARN")
    alarm_email: str | None = Field(None, description="every alarm sends e-mail to this address, after you confirm")
    console: Switch | None = Field(
        None,
        description="deploy [the console](CONSOLE.md) behind CloudFront. By default `on` if people or API keys are"
        " among `auth` and `make setup` has built it; browsers cannot sign requests, so it needs more than"
        " `auth=iam`. A `documents_bucket` of your own needs a CORS rule that allows POST and PUT from the console",
    )
    console_client_id: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        description="with `auth=oidc`: the console's client id at the issuer, which must let it go back to `ConsoleUrl`"
        " and its token endpoint be called from there; by default the first of `oidc_audience`",
    )
    event_bus_name: BusName = Field("default", description="where outcomes are published; the bus must exist")
    reconcile_schedule: Schedule = Field(
        "cron(0 3 * * ? *)", description="when bucket, registry and knowledge base are compared, in UTC"
    )
    settings: SettingsFile | None = Field(
        None,
        description="[a file of settings](#files-of-settings); the command line wins",
    )
    cosine_share: float | None = Field(
        None,
        ge=0,
        le=1,
        description="share of the cosine in HYBRID searches of the local Bedrock, only for `ragstack up`",
    )
    ingestion_batch_window_seconds: int = Field(
        1, ge=0, le=300, description="how long the queues collect messages; 0 delivers at once, ten at most"
    )

    ingestion_seconds_per_call: float | None = Field(
        None,
        ge=0.01,
        le=60,
        description="duration of a call to ingest, with a margin (the metric `SecondsPerCall` has the call alone); it"
        " limits concurrent invocations to as many as `ingestion_calls_per_second` needs. By default, up to 10 run",
    )

    @classmethod
    def _variable(cls, field_name: str) -> str:
        return field_name

    @property
    def uses_existing_knowledge_base(self) -> bool:
        """Whether the deployer named a knowledge base."""
        return self.knowledge_base is KnowledgeBaseKind.EXISTING

    @model_validator(mode="before")
    @classmethod
    def _local_target_has_defaults_of_its_own(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Need no authentication, and start no more processes than a measured call needs."""
        own = {"auth": (AuthKind.NONE,), "ingestion_seconds_per_call": LOCAL_SECONDS_PER_CALL}
        return {**own, **values} if values.get("target") == Target.LOCAL else values

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        given, on_aws, existing = self.model_fields_set, self.target is Target.AWS, self.uses_existing_knowledge_base
        of_existing = ("knowledge_base_id", "data_source_id", "vector_store")
        rules = [
            (
                self.bedrock_endpoint and on_aws,
                "bedrock_endpoint is for target=local: on AWS the functions use Amazon Bedrock",
            ),
            (
                on_aws and "answers_endpoint" in given,
                "answers_endpoint is for target=local: on AWS the function answers itself",
            ),
            (
                self.vpc_subnet_ids and not on_aws,
                "vpc_subnet_ids is for target=aws: local functions run on this machine",
            ),
            (
                bool(self.vpc_subnet_ids) is not bool(self.vpc_security_group_ids),
                "vpc_subnet_ids and vpc_security_group_ids belong together: give both",
            ),
            (
                self.alarm_topic and self.alarm_email,
                "alarm_topic and alarm_email exclude each other: subscribe the address to the topic",
            ),
            *(
                (getattr(self, name) and not on_aws, f"{name} is for target=aws: local data is in --data-dir")
                for name in ("documents_bucket", "registry_table")
            ),
            (
                self.registry_table and not self.documents_bucket,
                "registry_table needs documents_bucket: a registry describes the documents of one bucket",
            ),
            (
                existing and "contextual_headers" in given,
                "contextual_headers cannot be combined with knowledge_base=existing: leave it out",
            ),
            (
                not existing and not on_aws,
                f"target=local needs knowledge_base=existing: the local CloudFormation has no {LEFT_OUT_LOCALLY[0]}",
            ),
            *(
                (
                    existing and not getattr(self, name),
                    f"knowledge_base=existing needs {name}: add --context {name}=...",
                )
                for name in of_existing
            ),
            *(
                (
                    on_aws and not existing and name in given,
                    f"{name} needs knowledge_base=existing: add it, or leave {name} out",
                )
                for name in of_existing
            ),
        ]
        if broken := [message for is_broken, message in rules if is_broken]:
            raise ValueError("; ".join(broken))
        return self


class Options(ContextValues):
    """Everything that a deployer can choose."""

    variables_of_functions: Mapping[str, str] = Field({}, description="environment variables that differ from defaults")

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> "Options":
        """Read the options.

        Args:
            context: All of the app's context; names that belong to the CDK itself are ignored.

        Raises:
            OptionError: Values are missing, unknown or invalid; the message names all of them.
        """
        values = {name: as_text(value) for name, value in context.items() if _OUR_NAME.fullmatch(name)}
        if values.get("access") == "":
            raise OptionError(
                f"access is empty: give the access file, or access={NO_ACCESS_FILE}, which lets every caller do and see"
                " everything"
            )
        values = {name: text for name, text in values.items() if text}
        if SETTINGS in values:
            values = {**_of_file(values[SETTINGS]), **values}
        known = context_names()
        if unknown := sorted(values.keys() - known):
            raise OptionError(
                f"context value {' and '.join(map(repr, unknown))} is unknown: choose from {', '.join(sorted(known))}"
            )
        own = {name: text for name, text in values.items() if name in ContextValues.model_fields}
        variables = {name.upper(): text for name, text in values.items() if name not in ContextValues.model_fields}
        problems = ContextValues.problems(own)
        for model in FUNCTION_SETTINGS:
            given = {name: text for name, text in variables.items() if name in model.variables()}
            found = model.problems(given)
            problems |= {name.lower(): problem for name, problem in found.items() if name}
        if problems:
            raise OptionError("; ".join(f"{name}{problem}" for name, problem in problems.items()))
        local = LOCAL_VARIABLES if own.get("target") == Target.LOCAL else {}
        options = cls.model_validate({**own, "variables_of_functions": {**local, **variables}})
        if broken := access_problems(options, options.access_settings, options.target):
            raise OptionError("; ".join(broken))
        _check_policy(options)
        tenants = options.query.tenant_knowledge_bases
        if problem := tenant_problem(options, options.policy, tenants, existing=options.uses_existing_knowledge_base):
            raise OptionError(problem)
        _check_engines(options)
        _check_console(options)
        return options

    def environment(self, *models: type[Settings]) -> dict[str, str]:
        """Return the variables that the deployer chose for a function with these settings."""
        names = {name for model in models for name in model.variables()}
        return {name: text for name, text in self.variables_of_functions.items() if name in names}

    @property
    def console_files(self) -> Path | None:
        """The built console to deploy; None to deploy none."""
        is_useful = self.target is Target.AWS and bool(CONSOLE_KINDS.intersection(self.auth))
        is_wanted = is_useful and _is_built() if self.console is None else self.console
        return CONSOLE_FILES if is_wanted else None

    @cached_property
    def query(self) -> QuerySettings:
        """The settings of the query function; what the stacks set has stand-in values."""
        return self._read(QuerySettings)

    @cached_property
    def access_settings(self) -> AccessSettings:
        """The settings of access; what the stacks set has its defaults."""
        return self._read(AccessSettings)

    @cached_property
    def policy(self) -> AccessPolicy | None:
        """The access file.

        Raises:
            ConfigurationError: It cannot be read, or is invalid.
        """
        return None if self.access_file is None else read_policy(self.access_file)

    @property
    def tenant_prefixes(self) -> dict[str, str]:
        """The prefixes of the tenants that have knowledge bases of their own, by name."""
        return tenant_prefixes(self, self.policy)

    @cached_property
    def answers(self) -> AnswerSettings:
        """The settings of answers."""
        return self._read(AnswerSettings)

    @cached_property
    def ingestion(self) -> IngestionSettings:
        """The settings of the functions that submit and follow documents; what the stacks set has stand-in values."""
        return self._read(IngestionSettings)

    @cached_property
    def retriever_tool(self) -> RetrieverToolSettings:
        """The settings of the retriever tool."""
        return self._read(RetrieverToolSettings)

    @cached_property
    def tracing(self) -> TraceSettings:
        """Where the functions that search and answer send spans."""
        return self._read(TraceSettings)

    @cached_property
    def engines(self) -> list[Engine]:
        """Engines of the query function other than the knowledge base of the stacks."""
        return parse_engines(self.query, self.retriever_tool)

    @property
    def extra_layers(self) -> dict[str, Path]:
        """The layers that engines and the export of spans need next to the shared ones, by name.

        A layer of the deployer's own, instead of the shared one, has the packages of engines too.
        """
        own = {path: name for name in self.extras if (path := self._own_layers[name])}
        built = "-".join(name for name in self.extras if not self._own_layers[name])
        layers = {name: path for path, name in own.items()}
        return layers | ({built: extra_layer(built, self.target)} if built else {})

    @property
    def extras(self) -> list[str]:
        """The names of what is in those layers."""
        of_engines = {name for engine in self.engines for name in engine.extra_layers}
        names = {name for name in of_engines if self._own_layers[name] or not self.dependencies_layer}
        return sorted(names | ({TRACING} if self.tracing.otel_exporter_otlp_endpoint else set()))

    @property
    def _own_layers(self) -> dict[str, Path | None]:
        return {MILVUS_ENGINE: self.milvus_layer, TRACING: self.tracing_layer}

    @property
    def invocations_at_once(self) -> int:
        """Concurrent invocations of a function that calls the knowledge base, 2 to 10: enough for the call rate.

        An invocation makes one call at a time, and waits for its turn if the others make enough of them: without a
        measured duration, as many as Amazon allows adapt to any duration that the service has.
        """
        seconds = self.ingestion_seconds_per_call
        if seconds is None:
            return MAX_CALLS_AT_ONCE
        return min(MAX_CALLS_AT_ONCE, max(2, math.ceil(self.ingestion.calls_per_second * seconds)))

    def _read(self, model: type[S]) -> S:
        required = [name for name, field in model.variables().items() if field.is_required()]
        stand_ins = dict.fromkeys(required, "STANDINVAL")
        if model is QuerySettings:
            stand_ins["KNOWLEDGE_BASE_ID"] = "STANDINVAL"
        return model.from_env({**stand_ins, **self.environment(model)})


def context_names() -> set[str]:
    """Return the names of all context values."""
    variables = {name for model in FUNCTION_SETTINGS for name in model.variables()} - SET_BY_STACKS
    return {*ContextValues.model_fields, *(name.lower() for name in variables)}


def _is_built() -> bool:
    return (CONSOLE_FILES / "index.html").is_file()


def _check_console(options: Options) -> None:
    rules = (
        (options.target is Target.LOCAL, "console=on is for target=aws: `ragstack up` serves the console itself"),
        (
            not CONSOLE_KINDS.intersection(options.auth),
            "console=on needs auth=cognito, oidc or api_key: a browser cannot sign requests with AWS credentials",
        ),
        (not _is_built(), "console=on needs the built console: run `make setup`"),
    )
    if options.console and (problem := next((message for is_broken, message in rules if is_broken), None)):
        raise OptionError(problem)
    if options.console_client_id and AuthKind.OIDC not in options.auth:
        raise OptionError("console_client_id needs auth=oidc: leave it out")


def _check_policy(options: Options) -> None:
    try:
        if options.policy is not None and AuthKind.COGNITO in options.auth:
            groups_of_people(options.policy)
    except (ConfigurationError, ValueError) as error:
        raise OptionError(f"access={options.access} is invalid: {error}") from error


def _check_engines(options: Options) -> None:
    if options.query.search_type == "HYBRID" and not options.uses_existing_knowledge_base:
        raise OptionError("search_type=HYBRID is not available on S3 Vectors: leave search_type out")
    _check_retriever_tool(options.retriever_tool, options.target)
    lacking = sorted({name for engine in options.engines for name in engine.lacking})
    if lacking and not options.dependencies_layer:
        raise OptionError(
            f"{' and '.join(lacking)} needs packages that the layer lacks: build a layer with them, and give its zip"
            " file as dependencies_layer"
        )
    if len(options.extras) > 1 and options.milvus_layer != options.tracing_layer:
        raise OptionError(
            "milvus_layer and tracing_layer must be the same zip file, with the packages of both: a function has at"
            " most five layers, and answers needs four"
        )
    for name, model in {
        "answer_model": options.answers.answer_model,
        "answer_fallback_model": options.answers.answer_fallback_model,
        "support_model": options.answers.support_model,
    }.items():
        if model and options.target is Target.AWS and not is_answer_model(model):
            raise OptionError(
                f"{name}={model} is invalid: it must be the id or ARN of a foundation model, an inference profile or"
                " another model of Amazon Bedrock, because the function gets permissions for it"
            )
    has_server = options.retriever_tool.milvus_address or options.target is Target.LOCAL
    for engine in options.engines:
        if engine.lacks_address and not has_server:
            raise OptionError("the engine milvus needs milvus_address, such as milvus.example.com:19530")
        if engine.problem:
            raise OptionError(f"the engine {engine.config['type']} cannot be deployed: {engine.problem}")


def _check_retriever_tool(tool: RetrieverToolSettings, target: Target) -> None:
    is_milvus = tool.engine == MILVUS_ENGINE
    if EVERY_COLLECTION in tool.retriever_tool_collections and not is_milvus:
        raise OptionError(
            f"retriever_tool_collections={EVERY_COLLECTION} is invalid: it must name the collections, because the"
            " function gets permissions for these"
        )
    if is_milvus and not tool.retriever_tool_collections:
        raise OptionError(
            f"milvus_address needs retriever_tool_collections: name the collections, or write {EVERY_COLLECTION} for"
            " all collections of the database"
        )
    if tool.milvus_address and target is Target.AWS and not _SERVER.match(tool.milvus_address):
        raise OptionError(
            f"milvus_address={tool.milvus_address} is invalid: a deployed function needs the address of a server, such"
            " as milvus.example.com:19530"
        )


def _of_file(name: str) -> dict[str, str]:
    try:
        return {key: as_text(value) for key, value in read_settings(Path(name)).items()}
    except ValueError as error:
        raise OptionError(f"{SETTINGS}={name} is invalid: {error}") from error


_SERVER: Final = re.compile(r"(https?|tcp)://.|[^/:]+:\d+$", re.IGNORECASE)
"""An address of Milvus that other machines reach: no file, and no socket of this machine."""

_OUR_NAME: Final = re.compile(r"[a-z][a-z_]*")
"""Names of the CDK's own context hold a colon, a hyphen, an at sign or an upper case letter."""
