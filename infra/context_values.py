"""The context values that the stacks themselves take, each with its type, default and meaning."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Self

from pydantic import Field, model_validator

from infra.access_options import AccessValues
from infra.context_types import (
    BedrockId,
    BucketName,
    CertificateArn,
    Domain,
    EmailAddress,
    KeyArn,
    LayerArn,
    LayerFile,
    Prefix,
    Questions,
    ResourceTags,
    RetentionDays,
    Schedule,
    SecurityGroupIds,
    SettingsFile,
    SubnetIds,
    Switch,
    TableName,
    TextLanguage,
    TopicArn,
    Url,
    VectorIndexArn,
    WebAcls,
)
from infra.embeddings import Embedding
from infra.target import LEFT_OUT_LOCALLY, LOCAL_SECONDS_PER_CALL, MANAGED_REQUESTS_PER_SECOND, Target
from ragstack_common.settings.access import AuthKind
from ragstack_common.settings.base import BusName
from ragstack_common.settings.names import MANAGED, OTHER_STORE, S3_VECTORS
from ragstack_common.settings.search import VectorStore


class ApiLogging(StrEnum):
    """Whether API Gateway logs requests, for which the account's settings must name a role in each Region."""

    OFF = "off"
    ON = "on"
    WITH_ACCOUNT_ROLE = "with_account_role"


class KnowledgeBaseKind(StrEnum):
    """Where the knowledge base comes from."""

    S3_VECTORS = "s3_vectors"
    MANAGED = "managed"
    EXISTING = "existing"


def is_managed(values: Mapping[str, Any]) -> bool:
    """Whether context values, which are not checked yet, choose a managed knowledge base."""
    is_existing = values.get("knowledge_base") == KnowledgeBaseKind.EXISTING
    return values.get("knowledge_base") == KnowledgeBaseKind.MANAGED or (
        is_existing and str(values.get("vector_store")).upper() == MANAGED
    )


class ContextValues(AccessValues):
    """The context values of the stacks themselves; those of the functions are in :mod:`ragstack_common.settings`."""

    target: Target = Field(Target.AWS, description="where the stacks go; `local` is what `ragstack up` uses")
    prefix: Prefix = Field(
        "RagStack",
        description="first part of every stack's name, different for each deployment in an account; a long one leaves"
        " less room for the keys of documents",
    )
    tags: ResourceTags = Field(
        (), description="tags for all resources that support them, such as `project=ragstack,owner=search`"
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
    documents_bucket_key_arn: KeyArn | None = Field(
        None, description="the KMS key that encrypts the objects of `documents_bucket`"
    )
    registry_table: TableName | None = Field(
        None, description="the [document registry](#existing-resources) that an earlier deployment left"
    )
    kms_key_arn: KeyArn | None = Field(
        None,
        description="[a key of your own](#a-key-of-your-own) for buckets, vectors, table, queues, topics and logs; by"
        " default, AWS's keys",
    )
    log_retention_days: RetentionDays | None = Field(
        None, description="how long all logs are kept; by default 30 days, or a year with `audit_reads`"
    )
    knowledge_base: KnowledgeBaseKind = Field(
        KnowledgeBaseKind.S3_VECTORS,
        description="[create a knowledge base](#knowledge-bases) on S3 Vectors or a managed one, or use an existing"
        " one",
    )
    knowledge_base_id: BedrockId | None = Field(None, description="required with `knowledge_base=existing`")
    data_source_id: BedrockId | None = Field(
        None,
        description="required with `knowledge_base=existing`: an S3 data source that reads the documents bucket, or in"
        " a managed knowledge base, a data source with the connector CUSTOM",
    )
    vector_store: VectorStore = Field(
        OTHER_STORE,
        description="with `knowledge_base=existing`: its vector store; `MANAGED` for a managed knowledge base, into"
        " which uploads fail without it",
    )
    vector_index_arn: VectorIndexArn | None = Field(
        None,
        description="with `knowledge_base=existing` and `vector_store=S3_VECTORS`: its index, so that searches find"
        " words too. With `tenants=index`, functions may query all indexes of its bucket",
    )
    embedding: Embedding = Field(
        Embedding.TITAN,
        description="[model](#embedding-models) of the knowledge base that the stacks create; a change"
        " [creates a new one](#settings-that-cannot-be-changed-in-place)",
    )
    text_search_language: TextLanguage | None = Field(
        None,
        description="language of the documents for [word search](#word-search) in S3 Vectors; by default, no"
        " language in particular",
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
    snap_start: Switch = Field(
        default=False,
        description="start the functions `query`, `documents` and `authorizer` from"
        " [snapshots](OPERATIONS.md#snapshots), which are billed",
    )
    alarm_topic: TopicArn | None = Field(None, description="every alarm notifies this SNS topic of the same Region")
    alarm_email: EmailAddress | None = Field(
        None, description="every alarm sends e-mail to this address, after you confirm"
    )
    monthly_budget: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="US dollars a month: [a budget](#budget) for the whole account, which notifies `alarm_email` or"
        " `alarm_topic`",
    )
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
    console_domain: Domain | None = Field(
        None, description="[a domain of yours](#domains) for the console; with `console_certificate`"
    )
    console_certificate: CertificateArn | None = Field(
        None, description="its certificate, which CloudFront needs in us-east-1"
    )
    console_questions: Questions = Field(
        (),
        description="questions that the console [suggests](CONSOLE.md#suggested-questions) to those for whom the"
        " documents answer them. The list itself is public",
    )
    api_domain: Domain | None = Field(
        None,
        description="[a domain of yours](#domains) for the API of the first kind in `auth`; with `api_certificate`",
    )
    api_certificate: CertificateArn | None = Field(None, description="its certificate, in the Region of the stacks")
    web_acls: WebAcls = Field(
        (),
        description="[web ACLs of AWS WAF](#web-acls): one with the scope CLOUDFRONT for the console, one with the"
        " scope REGIONAL for the APIs, or both",
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
    def console_web_acl(self) -> str | None:
        """ARN of the web ACL of the console's distribution."""
        return next((arn for arn in self.web_acls if ":global/" in arn), None)

    @property
    def api_web_acl(self) -> str | None:
        """ARN of the web ACL of the APIs' stages."""
        return next((arn for arn in self.web_acls if ":regional/" in arn), None)

    @property
    def key_arns(self) -> list[str]:
        """The KMS keys of the deployer that encrypt what functions and Bedrock read and write."""
        return sorted({key for key in (self.kms_key_arn, self.documents_bucket_key_arn) if key})

    @property
    def uses_existing_knowledge_base(self) -> bool:
        """Whether the deployer named a knowledge base."""
        return self.knowledge_base is KnowledgeBaseKind.EXISTING

    @property
    def store(self) -> str:
        """The vector store behind the knowledge base, one of ``STORE_RULES``."""
        created = {KnowledgeBaseKind.S3_VECTORS: S3_VECTORS, KnowledgeBaseKind.MANAGED: MANAGED}
        return created.get(self.knowledge_base, self.vector_store)

    @model_validator(mode="before")
    @classmethod
    def _some_choices_change_defaults(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Default to what a managed knowledge base takes; locally, to no authentication and few processes."""
        own: dict[str, Any] = {}
        if is_managed(values):
            own["api_requests_per_second"] = MANAGED_REQUESTS_PER_SECOND
        if values.get("target") == Target.LOCAL:
            own |= {"auth": (AuthKind.NONE,), "ingestion_seconds_per_call": LOCAL_SECONDS_PER_CALL}
        return {**own, **values}

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
            (
                self.monthly_budget and not (self.alarm_topic or self.alarm_email),
                "monthly_budget needs alarm_email or alarm_topic, which it notifies: add one",
            ),
            *(
                (
                    bool(getattr(self, f"{name}_domain")) is not bool(getattr(self, f"{name}_certificate")),
                    f"{name}_domain and {name}_certificate belong together: give both",
                )
                for name in ("console", "api")
            ),
            (
                self.console_domain and self.console_domain == self.api_domain,
                "console_domain and api_domain must differ: a domain can refer to one of them",
            ),
            (
                self.console_certificate and ":acm:us-east-1:" not in self.console_certificate,
                f"console_certificate={self.console_certificate} is invalid: CloudFront needs one in us-east-1",
            ),
            *(
                (
                    len([arn for arn in self.web_acls if f":{scope}/" in arn]) > 1,
                    f"web_acls names two with the scope {name}: give one",
                )
                for scope, name in (("global", "CLOUDFRONT"), ("regional", "REGIONAL"))
            ),
            *(
                (name in given and not on_aws, f"{name} is for target=aws: leave it out")
                for name in ("api_domain", "console_domain", "kms_key_arn", "monthly_budget", "snap_start", "web_acls")
            ),
            (
                self.documents_bucket_key_arn and not self.documents_bucket,
                "documents_bucket_key_arn needs documents_bucket: for a bucket of the stacks, give kms_key_arn",
            ),
            *(
                (getattr(self, name) and not on_aws, f"{name} is for target=aws: local data is in --data-dir")
                for name in ("documents_bucket", "registry_table")
            ),
            (
                self.registry_table and not self.documents_bucket,
                "registry_table needs documents_bucket: a registry describes the documents of one bucket",
            ),
            *(
                (
                    self.knowledge_base is not KnowledgeBaseKind.S3_VECTORS and name in given,
                    (
                        f"{name} cannot be combined with knowledge_base={self.knowledge_base}: leave it out, or use"
                        " knowledge_base=s3_vectors"
                    ),
                )
                for name in ("contextual_headers", "embedding", "text_search_language")
            ),
            (
                self.vector_index_arn and not (existing and self.vector_store == S3_VECTORS),
                "vector_index_arn needs knowledge_base=existing and vector_store=S3_VECTORS: leave it out",
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
