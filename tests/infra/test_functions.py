"""What every function has, and what each may do."""

import json
from pathlib import Path
from typing import Any

import pytest

from infra.layers import LAMBDA_PYTHON
from ragstack_common import settings

POWERTOOLS = {"LOG_LEVEL", "POWERTOOLS_METRICS_NAMESPACE", "POWERTOOLS_SERVICE_NAME"}
KNOWN = {value for name, value in vars(settings).items() if name.isupper() and isinstance(value, str)}


def allowed_actions(assembly: Any, role: str) -> set[str]:
    return {
        action
        for name, statement in assembly.statements()
        if name.startswith(role) and "Principal" not in statement
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }


def test_every_function_runs_on_arm64_with_the_interpreter_of_its_layer(aws: Any) -> None:
    functions = aws.resources("AWS::Lambda::Function")

    assert len(functions) == 3
    for name, function in functions.items():
        properties = function["Properties"]
        assert properties["Runtime"] == f"python{LAMBDA_PYTHON[0]}.{LAMBDA_PYTHON[1]}", name
        assert properties["Architectures"] == ["arm64"], name
        assert len(properties["Layers"]) == 2, name
        assert properties["TracingConfig"] == {"Mode": "Active"}, name
        assert properties["Handler"] == "handler.handler", name


def test_every_log_group_ends_and_every_function_has_one(aws: Any) -> None:
    groups = aws.resources("AWS::Logs::LogGroup")

    logged = [function["Properties"]["LoggingConfig"] for function in aws.resources("AWS::Lambda::Function").values()]

    assert {group["Properties"]["RetentionInDays"] for group in groups.values()} == {30}
    assert {config["LogGroup"]["Ref"] for config in logged} <= set(groups)
    assert len(logged) == 3


def test_no_policy_allows_an_action_with_a_wildcard(aws: Any) -> None:
    allowed = [statement for _, statement in aws.statements() if statement["Effect"] == "Allow"]

    assert len(allowed) > 10
    for statement in allowed:
        actions = [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
        assert not [action for action in actions if "*" in action], statement


def test_only_tracing_may_touch_every_resource(aws: Any) -> None:
    unbound = [
        statement["Action"]
        for _, statement in aws.statements()
        if statement["Effect"] == "Allow" and statement.get("Resource") == "*"
    ]

    assert unbound == [["xray:PutTelemetryRecords", "xray:PutTraceSegments"]] * 3


def test_the_query_function_may_search_and_no_more(aws: Any) -> None:
    actions = allowed_actions(aws, "RetrievalQueryRole")

    assert {action for action in actions if not action.startswith(("logs:", "xray:"))} == {"bedrock:Retrieve"}


def test_an_engine_brings_the_rights_to_what_it_names_and_to_nothing_else(
    synthesize: Any, stand_in_layer: Path
) -> None:
    engines = {
        "own": {
            "type": "s3_vectors",
            "vector_bucket_name": "vectors",
            "index_name": "handbook",
            "embedding": "bedrock:amazon.titan-embed-text-v2:0",
        },
        "other": {"type": "bedrock", "knowledge_base_id": "ZYXWVUTSRQ"},
    }

    assembly = synthesize(
        retrieval_engine="federated",
        retrieval_engine_config=json.dumps({"backends": engines}),
        dependencies_layer=str(stand_in_layer),
    )

    rights = {
        action: json.dumps(statement["Resource"])
        for name, statement in assembly.statements()
        if name.startswith("RetrievalQueryRole")
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
        if action.startswith(("bedrock:", "s3vectors:"))
    }
    assert rights.keys() == {
        "bedrock:InvokeModel",
        "bedrock:Retrieve",
        "s3vectors:GetIndex",
        "s3vectors:GetVectors",
        "s3vectors:QueryVectors",
    }
    assert ":bucket/vectors/index/handbook" in rights["s3vectors:QueryVectors"]
    assert "::foundation-model/amazon.titan-embed-text-v2:0" in rights["bedrock:InvokeModel"]
    assert ":knowledge-base/ZYXWVUTSRQ" in rights["bedrock:Retrieve"]
    assert assembly.violations == []


def test_the_retriever_tool_brings_the_rights_to_its_collections(synthesize: Any) -> None:
    assembly = synthesize(retriever_tool_collections="ZYXWVUTSRQ")

    resources = [
        json.dumps(statement["Resource"])
        for name, statement in assembly.statements()
        if name.startswith("RetrievalQueryRole") and statement["Action"] == "bedrock:Retrieve"
    ]
    assert any(":knowledge-base/ZYXWVUTSRQ" in resource for resource in resources)
    assert assembly.environment("query")["RETRIEVER_TOOL_COLLECTIONS"] == "ZYXWVUTSRQ"


def test_corpora_are_configured_by_the_deployer(synthesize: Any) -> None:
    assembly = synthesize(multi_corpus_metadata="legal_us,legal_uk", search_k="15", rerank="none")

    query = settings.QuerySettings.from_env(assembly.environment("query"))

    assert (query.corpora, query.search_k, query.rerank) == (("legal_us", "legal_uk"), 15, "none")


def test_the_ingestion_function_may_submit_look_and_dead_letter(aws: Any) -> None:
    actions = allowed_actions(aws, "IngestionRole")

    assert {action for action in actions if action.startswith(("bedrock:", "s3:"))} == {
        "bedrock:DeleteKnowledgeBaseDocuments",
        "bedrock:GetKnowledgeBaseDocuments",
        "bedrock:IngestKnowledgeBaseDocuments",
        "bedrock:StartIngestionJob",
        "s3:GetObject",
        "s3:ListBucket",
    }
    assert {"sqs:SendMessage", "sqs:ReceiveMessage", "sqs:DeleteMessage"} <= actions


def test_a_failed_message_does_not_take_its_batch_along(aws: Any) -> None:
    mapping = aws.only("AWS::Lambda::EventSourceMapping")

    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 2}


def test_the_settings_can_be_read_from_what_the_stacks_set(aws: Any) -> None:
    query = settings.QuerySettings.from_env(aws.environment("query"))
    ingestion = settings.IngestionSettings.from_env(aws.environment("ingestion"))

    assert query.timeout_seconds == 5
    assert ingestion.max_receives == 5


@pytest.mark.parametrize("service", ["query", "ingestion", "contextual_headers"])
def test_the_stacks_set_no_variable_that_nobody_reads(aws: Any, service: str) -> None:
    names = set(aws.environment(service))

    assert names <= KNOWN | POWERTOOLS
    assert names >= POWERTOOLS


def test_a_deployer_can_tune_what_the_settings_read(synthesize: Any) -> None:
    tuned = synthesize(
        retrieval_timeout_seconds="8.5",
        multislice_max_slices="2",
        filtered_score_boost="1.5",
        ingestion_documents_per_call="25",
        auth="api_key",
    )

    query = settings.QuerySettings.from_env(tuned.environment("query"))
    ingestion = settings.IngestionSettings.from_env(tuned.environment("ingestion"))

    assert (query.timeout_seconds, query.max_slices, query.filtered_score_boost) == (8.5, 2, 1.5)
    assert ingestion.documents_per_call == 25


def test_the_query_function_outlives_its_search_and_api_gateway_outlives_both(synthesize: Any) -> None:
    assembly = synthesize(retrieval_timeout_seconds="24")

    (timeout_seconds,) = [
        function["Properties"]["Timeout"]
        for function in assembly.resources("AWS::Lambda::Function").values()
        if "RETRIEVAL_TIMEOUT_SECONDS" in function["Properties"]["Environment"]["Variables"]
    ]

    assert 24 < timeout_seconds <= 29
