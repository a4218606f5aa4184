"""What a deployer may write after --context, and what is said about the rest."""

import json

import pytest
from cfnlint.helpers import REGIONS
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

from infra.engine import BEDROCK_EMBEDDINGS, DEFAULT_RERANKING_MODEL, EMBEDDINGS, IN_THE_LAYER, Engine
from infra.option_checks import OptionError
from infra.options import DEFAULT_CALLS_PER_SECOND, Auth, ExistingKnowledgeBase, Options
from infra.target import KNOWLEDGE_BASE_REGIONS, Target
from infra.variables import LARGEST_DOCUMENT_BYTES, LONGEST_UPLOAD_SECONDS
from ragstack_common.api.settings import LONGEST_UPLOAD_SECONDS as LONGEST_SIGNED_SECONDS
from ragstack_common.config import QuerySettings
from ragstack_common.embedding import bedrock, kinds
from ragstack_common.ingestion.observation import LARGEST_DOCUMENT
from ragstack_common.ingestion.settings import IngestionSettings
from ragstack_common.retrieval import known_backends
from ragstack_common.retrieval.rerank.bedrock import DEFAULT_MODEL

from .conftest import EXISTING, LOCAL


def reranked(reranker: object, **options: str) -> dict[str, str]:
    """A reranked search of another knowledge base."""
    backend = {"type": "bedrock", "knowledge_base_id": "ABCDEFGHIJ", **options}
    config = json.dumps({"reranker": reranker, "backend": backend})
    return {"retrieval_engine": "reranked", "retrieval_engine_config": config}


def embedded(embedding: str) -> dict[str, str]:
    return reranked("lexical", embedding=embedding)


def test_nothing_chosen_means_aws_with_iam_and_a_new_knowledge_base() -> None:
    options = Options.from_context({"@aws-cdk/core:checkSecretUsage": True, "aws:cdk:bundling-stacks": ["**"]})

    assert options == Options()
    assert (options.target, options.auth, options.existing_knowledge_base) == (Target.AWS, Auth.IAM, None)


def test_the_local_target_asks_nobody_who_calls_unless_told_to() -> None:
    assert Options.from_context(LOCAL).auth is Auth.NONE
    assert Options.from_context({**LOCAL, "auth": "iam"}).auth is Auth.IAM


@pytest.mark.parametrize(
    ("context", "says"),
    [
        ({"target": "azure"}, "target=azure is unknown: choose aws or local"),
        ({"auth": "none"}, "auth=none is for target=local only: choose auth=iam or auth=api_key"),
        ({"auth": "cognito"}, "auth=cognito is unknown: choose iam or api_key or none"),
        ({"knowledge_base": "existing"}, "knowledge_base=existing needs knowledge_base_id"),
        ({**EXISTING, "data_source_id": ""}, "knowledge_base=existing needs data_source_id"),
        ({**EXISTING, "knowledge_base_id": "KB123"}, "knowledge_base_id=KB123 is unusable: an id has ten"),
        ({"knowledge_base_id": "ABCDEFGHIJ"}, "knowledge_base_id is given without knowledge_base=existing"),
        ({"knowledge_base": "opensearch"}, "knowledge_base=opensearch is unknown: choose s3_vectors or existing"),
        ({"contextual_headers": "no"}, "contextual_headers=no is unknown: choose on or off"),
        ({**EXISTING, "contextual_headers": "on"}, "contextual_headers is for a knowledge base that is created"),
        ({"target": "local"}, "target=local needs knowledge_base=existing"),
        ({"bedrock_endpoint": "http://localhost:1"}, "bedrock_endpoint is for target=local only"),
        ({**LOCAL, "bedrock_endpoint": "localhost:1"}, "bedrock_endpoint=localhost:1 is unusable: write it as http"),
        ({"prefix": "1st"}, "prefix=1st is unusable"),
        ({"retrieval_timeout_seconds": "0"}, "retrieval_timeout_seconds=0 is unusable: write a number from 0.1 to 24"),
        ({"retrieval_timeout_seconds": "nan"}, "retrieval_timeout_seconds=nan is unusable"),
        ({"multislice_max_slices": "1.5"}, "multislice_max_slices=1.5 is unusable: write a whole number"),
        ({"multislice_enabled": "maybe"}, "multislice_enabled=maybe is unusable: choose true or false"),
        ({"search_type": "HYBRID"}, "search_type=HYBRID is not available on S3 Vectors"),
        ({**EXISTING, "search_type": "KEYWORD"}, "search_type=KEYWORD is unusable: choose HYBRID or SEMANTIC"),
        ({"retrieval_engine": "My Engine"}, "retrieval_engine=My Engine is unusable: write the name of an engine"),
        ({"retrieval_engine_config": "[1]"}, "retrieval_engine_config=[1] is unusable: write a JSON object"),
        ({"retrieval_engine": "chroma"}, "the engine chroma needs packages that the layer lacks: build"),
        (
            {"retrieval_engine": "cached", "retrieval_engine_config": '{"backend": {"type": "milvus"}}'},
            "the engine milvus needs packages that the layer lacks",
        ),
        (
            {"retrieval_engine": "federated", "retrieval_engine_config": '{"backends": [{"type": "s3_vectors"}]}'},
            "the engine s3_vectors needs packages that the layer lacks",
        ),
        ({"retriever_tool_engine": "milvus"}, "the engine milvus needs packages that the layer lacks"),
        ({"retriever_tool_collections": "*"}, "retriever_tool_collections=* is unusable: name the collections"),
        ({"retriever_tool_collections": ","}, "retriever_tool_collections=, is unusable: name a collection"),
        ({"retriever_tool_collections": '{"a": 7}'}, 'retriever_tool_collections={"a": 7} is unusable: each'),
        (
            {"retriever_tool_collections": '{"leases": {"type": "chroma", "path": "x"}}'},
            "the engine chroma needs packages that the layer lacks",
        ),
        (
            reranked("acme"),
            "the engine acme needs packages that the layer lacks",
        ),
        (reranked("cross_encoder:model"), "the engine cross_encoder needs packages that the layer lacks"),
        (
            reranked("bedrock:cohere.rerank-v3-5:0"),
            "the engine reranked cannot be deployed: the reranker bedrock needs the ARN of a foundation model",
        ),
        (
            reranked({"type": "bedrock", "model_arn": "arn:aws:bedrock:us-east-1::foundation-model/a.b"}),
            "the engine reranked cannot be deployed: the reranker bedrock has no option model_arn",
        ),
        (
            {"retrieval_engine": "reranked", "retrieval_engine_config": '{"reranker": "bedrock"}'},
            "the engine reranked cannot be deployed: reranked needs backend in its configuration",
        ),
        (
            {"retrieval_engine": "cached", "retrieval_engine_config": '{"backend": {"type": "bedrock"}}'},
            "the engine cached cannot be deployed: bedrock needs knowledge_base_id in its configuration",
        ),
        (embedded("word2vec"), "the engine reranked cannot be deployed: unknown embedding 'word2vec': choose one"),
        (
            embedded("bedrock:amazon.nova-embed"),
            "the engine reranked cannot be deployed: the embedding 'bedrock:amazon.nova-embed' needs the id or ARN",
        ),
        (
            embedded("bedrock:arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/cohere.embed-v4"),
            "the engine reranked cannot be deployed: the embedding 'bedrock:arn:aws:bedrock:us-east-1:123456789012:app",
        ),
        ({"rerank": "cohere"}, "rerank=cohere is unusable: choose lexical or none"),
        ({"multi_corpus_metadata": "a,,b"}, "multi_corpus_metadata=a,,b is unusable: write names with one comma"),
        ({"multi_corpus_metadata": "a,all"}, "multi_corpus_metadata=a,all is unusable: no corpus can be called all"),
        ({"large_retrieval_size_all_corpus": "1001"}, "large_retrieval_size_all_corpus=1001 is unusable: write a"),
        ({"large_retrieval_size_single_corpus": "0"}, "large_retrieval_size_single_corpus=0 is unusable: write a"),
        ({"search_k": "101"}, "search_k=101 is unusable: write a whole number from 1 to 100"),
        ({"ingestion_max_receives": "0"}, "ingestion_max_receives=0 is unusable"),
        ({"ingestion_max_attempts": "0"}, "ingestion_max_attempts=0 is unusable: write a whole number from 1 to 100"),
        ({"ingestion_calls_per_second": "0"}, "ingestion_calls_per_second=0 is unusable: write a number from 0.1 to"),
        ({"ingestion_batch_window_seconds": "0.5"}, "ingestion_batch_window_seconds=0.5 is unusable: write a whole"),
        ({"ingestion_batch_window_seconds": "301"}, "ingestion_batch_window_seconds=301 is unusable: write a whole"),
        ({"status_first_delay_seconds": "901"}, "status_first_delay_seconds=901 is unusable: write a number from 0"),
        ({"status_give_up_seconds": "0"}, "status_give_up_seconds=0 is unusable: write a number from 1 to 259200"),
        ({"upload_max_bytes": "52428801"}, "upload_max_bytes=52428801 is unusable: write a whole number from 1 to"),
        ({"upload_seconds": "0"}, "upload_seconds=0 is unusable: write a whole number from 1 to 3600"),
        ({"vector_store": "OTHER"}, "vector_store is given without knowledge_base=existing"),
        (
            {**EXISTING, "vector_store": "pinecone"},
            "vector_store=pinecone is unusable: choose S3_VECTORS or OPENSEARCH_SERVERLESS or OTHER",
        ),
        ({"event_bus_name": "arn:aws:events"}, "event_bus_name=arn:aws:events is unusable: write the name"),
        ({"reconcile_settle_seconds": "-1"}, "reconcile_settle_seconds=-1 is unusable: write a number from 0 to 3600"),
        ({"reconcile_poll_seconds": "901"}, "reconcile_poll_seconds=901 is unusable: write a number from 0 to 900"),
        ({"reconcile_schedule": "nightly"}, "reconcile_schedule=nightly is unusable: write cron("),
        ({"reconcile_schedule": "cron(0 3 * * *)"}, "reconcile_schedule=cron(0 3 * * *) is unusable: write cron("),
        ({"reconcile_schedule": "rate(1 days)"}, "reconcile_schedule=rate(1 days) is unusable: write cron("),
        ({"reconcile_schedule": "rate(0 hours)"}, "reconcile_schedule=rate(0 hours) is unusable: write cron("),
        ({"api_logging": "yes"}, "api_logging=yes is unknown: choose off or on or with_account_role"),
        ({"api_requests_per_second": "0"}, "api_requests_per_second=0 is unusable: write a whole number from 1 to"),
        ({"alarm_topic": "operations"}, "alarm_topic=operations is unusable: write the ARN of an SNS topic"),
        ({"alarm_email": "operations"}, "alarm_email=operations is unusable: write an e-mail address"),
        (
            {"alarm_topic": "arn:aws:sns:eu-west-1:123456789012:a", "alarm_email": "a@example.com"},
            "alarm_topic and alarm_email exclude each other",
        ),
        ({"dependencies_layer": "/nowhere.zip"}, "dependencies_layer=/nowhere.zip is unusable: there is no such file"),
        ({"knowlege_base": "existing"}, "context value 'knowlege_base' is unknown: choose from alarm_email,"),
    ],
)
def test_an_unusable_value_is_refused_in_one_line_that_says_what_to_write(context: dict[str, str], says: str) -> None:
    with pytest.raises(OptionError) as refused:
        Options.from_context(context)

    assert str(refused.value).startswith(says)
    assert "\n" not in str(refused.value)


def test_a_region_without_knowledge_bases_is_refused_unless_the_deployer_knows_better() -> None:
    with pytest.raises(OptionError) as refused:
        Options.from_context({}, "us-west-1")

    assert str(refused.value).startswith("Amazon Bedrock has no knowledge bases in us-west-1: set AWS_REGION to")
    assert "\n" not in str(refused.value)
    assert Options.from_context({"region_check": "off"}, "us-west-1") == Options()
    assert Options.from_context({}, "eu-central-1") == Options.from_context({}, None) == Options()
    assert Options.from_context(LOCAL, "us-west-1").target is Target.LOCAL


def test_the_regions_with_knowledge_bases_are_those_of_cloudformation_and_have_s3_vectors() -> None:
    def regions(kind: str) -> set[str]:
        return {region for region in REGIONS if kind in PROVIDER_SCHEMA_MANAGER.get_resource_types(region)}

    assert regions("AWS::Bedrock::KnowledgeBase") == regions("AWS::Bedrock::DataSource") == KNOWLEDGE_BASE_REGIONS
    assert regions("AWS::S3Vectors::Index") > KNOWLEDGE_BASE_REGIONS


@pytest.mark.parametrize(
    ("written", "schedule"),
    [
        ("cron(15 1 ? * MON-FRI *)", "cron(15 1 ? * MON-FRI *)"),
        ("rate(1 day)", "rate(1 day)"),
        ("rate(12 hours)", "rate(12 hours)"),
        ("off", None),
    ],
)
def test_reconciliation_comes_when_the_deployer_says_or_never(written: str, schedule: str | None) -> None:
    assert Options.from_context({"reconcile_schedule": written}).reconcile_schedule == schedule


def test_an_existing_knowledge_base_has_no_limits_unless_it_is_said_to_be_on_s3_vectors() -> None:
    silent = Options.from_context(EXISTING).existing_knowledge_base
    told = Options.from_context({**EXISTING, "vector_store": "s3_vectors"}).existing_knowledge_base

    assert silent is not None
    assert told is not None
    assert (silent.vector_store, told.vector_store) == ("OTHER", "S3_VECTORS")


def test_the_local_target_asks_about_documents_sooner_unless_told_when() -> None:
    assert Options.from_context(LOCAL).ingestion_variables == {"STATUS_FIRST_DELAY_SECONDS": "1"}
    assert Options.from_context({**LOCAL, "status_first_delay_seconds": "0"}).ingestion_variables == {
        "STATUS_FIRST_DELAY_SECONDS": "0"
    }
    assert Options.from_context({}).ingestion_variables == {}


def test_the_stacks_assume_the_defaults_of_the_settings() -> None:
    options = Options()

    assert options.max_receives == IngestionSettings.max_receives
    assert options.give_up_seconds == IngestionSettings.give_up_seconds
    assert options.event_bus_name == IngestionSettings.event_bus_name
    assert IngestionSettings.calls_per_second == DEFAULT_CALLS_PER_SECOND
    assert options.retrieval_timeout_seconds == QuerySettings.timeout_seconds
    assert ExistingKnowledgeBase("", "").vector_store == IngestionSettings.vector_store


def test_the_limits_of_uploads_are_those_of_the_function_that_signs_them() -> None:
    assert (LARGEST_DOCUMENT_BYTES, LONGEST_UPLOAD_SECONDS) == (LARGEST_DOCUMENT, LONGEST_SIGNED_SECONDS)


def test_numbers_and_booleans_may_come_from_cdk_json() -> None:
    options = Options.from_context({"retrieval_timeout_seconds": 3, "multislice_enabled": False})

    assert options.query_variables == {"RETRIEVAL_TIMEOUT_SECONDS": "3", "MULTISLICE_ENABLED": "false"}


def test_an_object_in_cdk_json_configures_an_engine_as_text_on_the_command_line_does() -> None:
    config = {"backend": {"type": "bedrock", "knowledge_base_id": "ABCDEFGHIJ"}}

    written = Options.from_context({"retrieval_engine": "cached", "retrieval_engine_config": config})
    typed = Options.from_context({"retrieval_engine": "cached", "retrieval_engine_config": json.dumps(config)})

    assert written == typed
    assert written.engines == [Engine({**config, "type": "cached"})]


def test_the_knowledge_base_of_the_stacks_alone_is_no_other_engine() -> None:
    assert Options.from_context({}).engines == []
    assert Options.from_context({"retrieval_engine": "bedrock"}).engines == []


def test_every_engine_that_is_said_to_need_no_package_is_one_that_there_is() -> None:
    assert set(known_backends()) >= IN_THE_LAYER


def test_every_embedding_that_synthesis_accepts_is_one_that_the_function_can_load() -> None:
    assert {
        form.partition("[")[0].partition(":")[0] for form in kinds.FORMS.replace(" or ", ", ").split(", ")
    } == EMBEDDINGS
    assert {*bedrock._SHAPES} == {*BEDROCK_EMBEDDINGS}


def test_the_stacks_and_the_functions_agree_on_the_default_reranking_model() -> None:
    assert DEFAULT_RERANKING_MODEL == DEFAULT_MODEL
