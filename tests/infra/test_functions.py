"""What every function has, and what each may do."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from infra.layers import LAMBDA_PYTHON
from ragstack_common.core.metrics import STACK
from ragstack_common.core.telemetry import NO_METRICS
from ragstack_common.search.wrappers.multislice import MultiSliceBackend
from ragstack_common.services.search import make_engine
from ragstack_common.settings.answers import AnswerSettings
from ragstack_common.settings.ingestion import (
    FUNCTION_SETTINGS,
    DocumentApiSettings,
    IngestionSettings,
    ReconcileSettings,
)
from ragstack_common.settings.reranking_weights import RerankingWeights
from ragstack_common.settings.search import QuerySettings

from .conftest import CHOSEN

pytestmark = pytest.mark.xdist_group("synthesized stacks")

SERVICES = {
    "answers",
    "contextual_headers",
    "converter",
    "documents",
    "ingestion",
    "ingestion_status",
    "query",
    "receipts",
    "reconcile",
    "viewer",
}
POWERTOOLS = {"LOG_LEVEL", "POWERTOOLS_METRICS_NAMESPACE", "POWERTOOLS_SERVICE_NAME"}
KNOWN = {name for model in FUNCTION_SETTINGS for name in model.variables()} | {STACK}
ADAPTER = {"AWS_LAMBDA_EXEC_WRAPPER", "AWS_LWA_INVOKE_MODE", "AWS_LWA_PORT", "AWS_LWA_READINESS_CHECK_PATH"}

SENDING = {"sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:SendMessage"}
WORDS = {"s3vectors:GetIndex", "s3vectors:GetVectors", "s3vectors:QueryVectors"}
SEARCHING = WORDS | {"bedrock:Retrieve"}
READING_A_QUEUE = {"sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:ReceiveMessage"}
RIGHTS = {
    "answers": SEARCHING
    | {"dynamodb:Query", "dynamodb:Scan", "dynamodb:UpdateItem"}
    | {"dynamodb:BatchGetItem", "dynamodb:GetItem", "s3:GetObject", "s3:ListBucket"},
    "query": SEARCHING
    | {"dynamodb:Query", "dynamodb:Scan", "s3:GetObject", "s3:ListBucket"}
    | {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"},
    "documents": SENDING
    | READING_A_QUEUE
    | {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan"}
    | {"dynamodb:BatchWriteItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}
    | {"cloudwatch:DescribeAlarms", "cloudwatch:GetMetricData"}
    | {"s3:DeleteObject", "s3:GetObject", "s3:GetObjectVersion", "s3:ListBucket", "s3:PutObject"}
    | WORDS,
    "ingestion": SENDING
    | READING_A_QUEUE
    | {"bedrock:DeleteKnowledgeBaseDocuments", "bedrock:GetKnowledgeBaseDocuments"}
    | {"bedrock:IngestKnowledgeBaseDocuments", "bedrock:StartIngestionJob"}
    | {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}
    | {"events:PutEvents", "s3:DeleteObject", "s3:GetObject", "s3:ListBucket", "s3:PutObject"},
    "converter": SENDING | READING_A_QUEUE | {"s3:DeleteObject", "s3:GetObject", "s3:ListBucket", "s3:PutObject"},
    "ingestion_status": SENDING
    | READING_A_QUEUE
    | {"bedrock:GetKnowledgeBaseDocuments", "events:PutEvents"}
    | {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"},
    "receipts": SENDING
    | READING_A_QUEUE
    | {"bedrock:Retrieve", "events:PutEvents", "s3:GetObject", "s3:ListBucket"}
    | {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"},
    "reconcile": SENDING
    | READING_A_QUEUE
    | {"bedrock:GetIngestionJob", "bedrock:ListKnowledgeBaseDocuments", "bedrock:StartIngestionJob"}
    | {"bedrock:DeleteKnowledgeBaseDocuments"}
    | {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan"}
    | {"dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}
    | {"s3:GetObject", "s3:ListBucket", "s3:PutObject"},
    "viewer": {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan"}
    | {"s3:GetObject", "s3:ListBucket"},
}
MAX_LAYERS = 5
"""Source: Lambda quotas, layers of a function."""

RECEIVERS = {
    "documents": {"ChangesEvents", "JobsQueue"},
    "ingestion": {"ChangesDeadLetters", "ChangesEvents", "JobsQueue", "ReceiptsQueue", "StatusQueue"}
    | {"ConversionQueue", "LargeFilesQueue"},
    "converter": {"ChangesDeadLetters", "ChangesEvents"},
    "ingestion_status": {"ChangesDeadLetters", "ChangesEvents", "JobsQueue", "ReceiptsQueue", "StatusQueue"},
    "receipts": {"ChangesDeadLetters", "ChangesEvents", "JobsQueue"},
    "reconcile": {"ChangesEvents", "JobsQueue"},
}
WRITTEN = {
    "documents": ["JOB", "JOB#*", "JUDGMENT", "JUDGMENT#*"],
    "answers": ["BUDGET#*", "PERSON"],
    "query": ["PERSON"],
    "reconcile": ["JOB", "JOB#*", "GATE", "RATE#*", "CATALOGUE", "CATALOGUE#*", "SNAPSHOT"],
}
"""Partitions of the registry, where a function may not write all of them."""

ALL_QUEUES = (
    "ChangesDeadLetters",
    "ChangesEvents",
    "ConversionQueue",
    "DeadJobs",
    "JobsQueue",
    "LargeFilesQueue",
    "ReceiptsQueue",
    "StatusQueue",
)


def test_every_function_runs_on_arm64_with_its_layers_python(with_headers: Any) -> None:
    functions = with_headers.functions()

    assert {with_headers.environment(service)["POWERTOOLS_SERVICE_NAME"] for service in SERVICES} == SERVICES
    assert len(functions) == len(SERVICES)
    for name, function in functions.items():
        properties = function["Properties"]
        assert properties["Runtime"] == f"python{LAMBDA_PYTHON[0]}.{LAMBDA_PYTHON[1]}", name
        assert properties["Architectures"] == ["arm64"], name
        service = properties["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"]
        layers = {"answers": 4, "converter": 3, "receipts": 3, "viewer": 3}
        assert len(properties["Layers"]) == layers.get(service, 2), name
        assert properties["TracingConfig"] == {"Mode": "Active"}, name
        assert properties["Handler"] == ("run.sh" if service == "answers" else "handler.handler"), name


def test_every_log_group_ends_and_every_function_has_one(with_headers: Any) -> None:
    groups = with_headers.resources("AWS::Logs::LogGroup")

    logged = [function["Properties"]["LoggingConfig"] for function in with_headers.functions().values()]

    assert {group["Properties"]["RetentionInDays"] for group in groups.values()} == {30}
    assert {config["LogGroup"]["Ref"] for config in logged} <= set(groups)
    assert len(logged) == len(SERVICES)


def test_no_policy_allows_an_action_with_a_wildcard(with_headers: Any) -> None:
    allowed = [statement for _, statement in with_headers.statements() if statement["Effect"] == "Allow"]

    assert len(allowed) > 10
    for statement in allowed:
        actions = [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
        assert not [action for action in actions if "*" in action], statement


def test_only_tracing_and_metrics_may_touch_every_resource(with_headers: Any) -> None:
    unbound = [
        statement["Action"]
        for _, statement in with_headers.statements()
        if statement["Effect"] == "Allow" and statement.get("Resource") == "*"
    ]

    tracing = ["xray:PutTelemetryRecords", "xray:PutTraceSegments"]
    assert sorted(unbound) == sorted([["cloudwatch:GetMetricData", *tracing], *[tracing] * (len(SERVICES) - 1)])


@pytest.mark.parametrize("service", sorted(RIGHTS))
def test_a_function_may_do_its_work_and_no_more(with_headers: Any, service: str) -> None:
    assert with_headers.rights(service).keys() == RIGHTS[service]


@pytest.mark.parametrize("service", sorted(RECEIVERS))
def test_a_function_may_send_only_to_its_receivers(with_headers: Any, service: str) -> None:
    receivers = with_headers.rights(service)["sqs:SendMessage"]

    assert {queue for queue in ALL_QUEUES if queue in receivers} == RECEIVERS[service]


@pytest.mark.parametrize(
    ("service", "own"),
    [
        ("documents", "ChangesDeadLetters"),
        ("ingestion", "ChangesEvents"),
        ("ingestion_status", "StatusQueue"),
        ("receipts", "ReceiptsQueue"),
        ("reconcile", "JobsQueue"),
    ],
)
def test_a_function_receives_only_from_its_own_queue(with_headers: Any, service: str, own: str) -> None:
    for action in READING_A_QUEUE:
        assert {queue for queue in ALL_QUEUES if queue in with_headers.rights(service)[action]} == {own}


@pytest.mark.parametrize("service", sorted(WRITTEN))
def test_a_function_may_write_only_its_partitions(with_headers: Any, service: str) -> None:
    rights = with_headers.rights(service)

    for action in {"dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"} & rights.keys():
        condition = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": WRITTEN[service]}}
        assert json.dumps(condition) in rights[action]


def test_the_query_function_lists_the_catalogue_and_the_names_of_documents(with_headers: Any) -> None:
    """It looks up the names of documents that it is asked to explain."""
    condition = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["CATALOGUE", "CATALOGUE##entry", "ACCESS"]}}
    one = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["ACCESS", "DOCUMENT#*", "PERSON"]}}

    assert json.dumps(condition) in with_headers.rights("query")["dynamodb:Query"]
    assert json.dumps(one) in with_headers.rights("query")["dynamodb:BatchGetItem"]
    assert re.findall(r"/index/(\w+)", with_headers.rights("query")["dynamodb:Query"]) == ["by_uri"]


def test_one_function_writes_the_snapshot_and_no_other_object(with_headers: Any) -> None:
    assert "/values.json.gz" in json.dumps(with_headers.rights("query")["s3:GetObject"])
    for action in ("s3:GetObject", "s3:PutObject"):
        resource = json.dumps(with_headers.rights("reconcile")[action])
        assert "/values.json.gz" in resource, action
        assert "/*" not in resource, action


def test_events_go_to_the_bus_that_the_deployer_names(with_headers: Any, tuned: Any) -> None:
    assert ":event-bus/default" in with_headers.rights("ingestion")["events:PutEvents"]
    assert ":event-bus/documents" in tuned.rights("ingestion_status")["events:PutEvents"]
    assert with_headers.environment("ingestion")["EVENT_BUS_NAME"] == "default"
    assert tuned.environment("ingestion_status")["EVENT_BUS_NAME"] == "documents"


def test_a_model_reranks_what_the_own_knowledge_base_finds(synthesize: Any) -> None:
    """Its id is known to the deployment alone, so the configuration need not name it."""
    config = {"reranker": {"type": "bedrock"}, "backend": {"type": "bedrock"}}
    assembly = synthesize(retrieval_engine="reranked", retrieval_engine_config=json.dumps(config))

    rights = assembly.rights("query")
    settings = QuerySettings.from_env({**assembly.environment("query"), "KNOWLEDGE_BASE_ID": "ABCDEFGHIJ"})
    engine = make_engine(settings, NO_METRICS)

    assert rights.keys() == RIGHTS["query"] | {"bedrock:InvokeModel", "bedrock:Rerank"}
    assert "::foundation-model/cohere.rerank-v3-5:0" in rights["bedrock:InvokeModel"]
    assert isinstance(engine, MultiSliceBackend)


def test_an_engine_brings_only_the_rights_that_it_needs(synthesize: Any, stand_in_layer: Path) -> None:
    model = "arn:aws:bedrock:us-west-2::foundation-model/amazon.rerank-v1:0"
    milvus = {"type": "milvus", "collection_name": "handbook"}
    engines = {
        "own": {**milvus, "embedding": "bedrock:amazon.titan-embed-text-v2:0"},
        "of a profile": {"type": "cached", "backend": {**milvus, "embedding": "bedrock:us.cohere.embed-v4:0"}},
        "balanced": {
            "type": "balanced",
            "corpora": ["a", "b"],
            "reranker": {"type": "bedrock", "model": model},
            "backend": {"type": "bedrock", "knowledge_base_id": "ZYXWVUTSRQ"},
        },
    }

    assembly = synthesize(
        retrieval_engine="federated",
        retrieval_engine_config=json.dumps({"backends": engines}),
        milvus_layer=str(stand_in_layer),
        milvus_address="milvus.example.com:19530",
        retriever_tool_engine="bedrock",
    )

    rights = assembly.rights("query")
    of_engines = {"bedrock:GetKnowledgeBase", "bedrock:InvokeModel", "bedrock:Rerank"}
    assert rights.keys() == RIGHTS["query"] | of_engines
    assert rights["bedrock:Rerank"] == '["*", ""]'
    assert ":knowledge-base/ZYXWVUTSRQ" in rights["bedrock:Retrieve"]
    for part in (
        "::foundation-model/amazon.titan-embed-text-v2:0",
        ":inference-profile/us.cohere.embed-v4:0",
        ":bedrock:*::foundation-model/cohere.embed-v4:0",
        model,
    ):
        assert part in rights["bedrock:InvokeModel"]
    assert assembly.violations == []


def test_milvus_brings_layer_secret_and_vpc_to_searching_functions(synthesize: Any, stand_in_layer: Path) -> None:
    secret = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:milvus-AbCdEf"
    network = {
        "vpc_subnet_ids": "subnet-0123456789abcdef0,subnet-0123456789abcdef1",
        "vpc_security_group_ids": "sg-0123456789abcdef0",
    }
    milvus = {
        "milvus_address": "milvus.internal:19530",
        "milvus_database": "shop",
        "milvus_secret": secret,
        "retriever_tool_collections": "xmidas,docs",
    }

    assembly = synthesize(**milvus, **network, milvus_layer=str(stand_in_layer))

    for service in ("answers", "query"):
        function = assembly.function(service)
        assert "MilvusLayer" in json.dumps(function["Layers"])
        assert len(function["Layers"]) <= MAX_LAYERS
        assert function["VpcConfig"] == {
            "SubnetIds": network["vpc_subnet_ids"].split(","),
            "SecurityGroupIds": [network["vpc_security_group_ids"]],
        }
        assert assembly.environment(service).items() >= {(name.upper(), value) for name, value in milvus.items()}
        assert secret in assembly.rights(service)["secretsmanager:GetSecretValue"]
        assert "ec2:CreateNetworkInterface" in assembly.rights(service)
    assert "VpcConfig" not in assembly.function("documents")
    assert "MilvusLayer" not in json.dumps(assembly.function("documents")["Layers"])
    assert assembly.violations == []


TRACED = {"otel_exporter_otlp_endpoint": "https://collector.example.com:4318", "ragstack_trace_content": "true"}


def test_functions_export_spans_only_if_a_collector_is_named(aws: Any, synthesize: Any, stand_in_layer: Path) -> None:
    traced = synthesize(**TRACED, tracing_layer=str(stand_in_layer))

    for service in ("answers", "query"):
        assert "TracingLayer" in json.dumps(traced.function(service)["Layers"])
        assert len(traced.function(service)["Layers"]) == len(aws.function(service)["Layers"]) + 1 <= MAX_LAYERS
        assert traced.environment(service).items() >= {(name.upper(), value) for name, value in TRACED.items()}
        assert "OTEL_EXPORTER_OTLP_ENDPOINT" not in aws.environment(service)
    for service in ("ingestion", "ingestion_status", "reconcile"):
        assert traced.function(service) == aws.function(service)
    assert "collector.example.com" not in json.dumps(traced.function("documents"))
    assert traced.violations == []


def test_milvus_and_the_export_of_spans_share_a_layer(synthesize: Any, stand_in_layer: Path) -> None:
    milvus = {"milvus_address": "milvus.example.com:19530", "retriever_tool_collections": "docs"}
    both = {"milvus_layer": str(stand_in_layer), "tracing_layer": str(stand_in_layer)}

    assembly = synthesize(**TRACED, **milvus, **both)

    assert len(assembly.function("answers")["Layers"]) == MAX_LAYERS


def test_the_function_for_answers_is_a_web_server_behind_the_adapter(with_headers: Any, chosen: Any) -> None:
    assert ":753240598075:layer:LambdaAdapterLayerArm64:30" in json.dumps(with_headers.function("answers")["Layers"])
    assert CHOSEN["web_adapter_layer"] in chosen.function("answers")["Layers"]
    assert with_headers.environment("answers").items() >= {
        ("AWS_LAMBDA_EXEC_WRAPPER", "/opt/bootstrap"),
        ("AWS_LWA_INVOKE_MODE", "response_stream"),
        ("AWS_LWA_READINESS_CHECK_PATH", "/health"),
    }


@pytest.mark.parametrize(
    ("model", "allowed"),
    [
        ("amazon.nova-lite-v1:0", ["::foundation-model/amazon.nova-lite-v1:0"]),
        (
            "eu.amazon.nova-lite-v1:0",
            [":inference-profile/eu.amazon.nova-lite-v1:0", ":bedrock:*::foundation-model/amazon.nova-lite-v1:0"],
        ),
        (
            "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc123",
            [":application-inference-profile/abc123", "::foundation-model/*", "bedrock:InferenceProfileArn"],
        ),
    ],
    ids=["model", "profile", "own profile"],
)
def test_a_model_brings_the_rights_to_generate_with_it(synthesize: Any, model: str, allowed: list[str]) -> None:
    assembly = synthesize(answer_model=model, answer_guardrail="abcdef123456:2")

    rights = assembly.rights("answers")
    assert rights.keys() == RIGHTS["answers"] | {
        "bedrock:ApplyGuardrail",
        "bedrock:InvokeModel",
        "bedrock:InvokeModelWithResponseStream",
    }
    for part in allowed:
        assert part in rights["bedrock:InvokeModelWithResponseStream"]
    assert ":guardrail/abcdef123456" in rights["bedrock:ApplyGuardrail"]
    assert "bedrock:InvokeModel" not in assembly.rights("query")
    assert assembly.violations == []


def test_the_model_that_judges_brings_its_rights(synthesize: Any) -> None:
    rights = synthesize(answer_model="amazon.nova-pro-v1:0", support_model="amazon.nova-micro-v1:0").rights("answers")

    for model in ("nova-pro", "nova-micro"):
        assert f"::foundation-model/amazon.{model}-v1:0" in rights["bedrock:InvokeModelWithResponseStream"]


def test_the_retriever_tool_brings_the_rights_to_its_collections(tuned: Any) -> None:
    assert ":knowledge-base/ZYXWVUTSRQ" in tuned.rights("query")["bedrock:Retrieve"]
    assert tuned.environment("query")["RETRIEVER_TOOL_COLLECTIONS"] == "ZYXWVUTSRQ"


def test_the_settings_can_be_read_from_what_the_stacks_set(with_headers: Any) -> None:
    query = QuerySettings.from_env(with_headers.environment("query"))
    answers = AnswerSettings.from_env(with_headers.environment("answers"))
    ingestion = IngestionSettings.from_env(with_headers.environment("ingestion"))
    following = IngestionSettings.from_env(with_headers.environment("ingestion_status"))
    documents = DocumentApiSettings.from_env(with_headers.environment("documents"))
    reconcile = ReconcileSettings.from_env(with_headers.environment("reconcile"))

    assert following == ingestion
    assert answers.answer_model is None
    assert QuerySettings.from_env(with_headers.environment("answers")) == query
    assert query.vector_store == ingestion.vector_store == documents.vector_store == "S3_VECTORS"
    assert reconcile.calls_per_second == ingestion.calls_per_second


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_the_stacks_set_only_variables_that_a_function_reads(with_headers: Any, service: str) -> None:
    names = set(with_headers.environment(service))

    assert names <= KNOWN | POWERTOOLS | (ADAPTER if service == "answers" else set())
    assert names >= POWERTOOLS


def test_a_deployer_can_tune_what_the_settings_read(tuned: Any) -> None:
    query = QuerySettings.from_env(tuned.environment("query"))
    ingestion = IngestionSettings.from_env(tuned.environment("ingestion"))
    reconcile = ReconcileSettings.from_env(tuned.environment("reconcile"))
    documents = DocumentApiSettings.from_env(tuned.environment("documents"))

    assert (query.timeout_seconds, query.max_slices, query.filtered_score_boost) == (8.5, 2, 1.5)
    assert query.reranking_weights == RerankingWeights(vector=1)
    assert (query.corpora, query.search_k, query.rerank) == (("legal_us", "legal_uk"), 15, "none")
    assert (ingestion.documents_per_call, ingestion.max_attempts, ingestion.first_delay_seconds) == (25, 4, 30)
    assert (ingestion.calls_per_second, ingestion.give_up_seconds) == (20, 7200)
    assert (reconcile.calls_per_second, reconcile.give_up_seconds) == (20, 7200)
    assert (reconcile.settle_seconds, reconcile.poll_seconds) == (0, 5)
    assert (documents.upload_max_bytes, documents.upload_seconds) == (1000, 60)


def test_the_query_function_and_api_gateway_outlive_a_search(chosen: Any) -> None:
    assert 24 < chosen.function("query")["Timeout"] <= 29
