"""A managed knowledge base, which Amazon Bedrock stores and embeds."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Template
from botocore.config import Config
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

from infra.checks import check_region
from infra.constructs import managed_knowledge_base as managed_module
from infra.context_values import KnowledgeBaseKind
from infra.options import OptionError, Options
from infra.stacks import KnowledgeBaseStack, StorageStack
from infra.target import KNOWLEDGE_BASE_REGIONS
from ragstack_common.core.errors import ConfigurationError
from ragstack_common.core.telemetry import NO_METRICS
from ragstack_common.services.search import make_engine
from ragstack_common.settings.ingestion import IngestionSettings
from ragstack_common.settings.names import CONNECTOR_SOURCE, MANAGED_REGIONS
from ragstack_common.settings.search import QuerySettings
from ragstack_local.connection.connection import local_client
from tests.support.forked_bedrock import forked_bedrock

from .conftest import EXISTING, Assembly
from .test_knowledge_base import create_only, exported
from .test_tenants import IDS, access_file

pytestmark = pytest.mark.xdist_group("synthesized stacks")

KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
MANAGED = {"knowledge_base": "managed"}
EXISTING_MANAGED = {**EXISTING, "vector_store": "MANAGED"}
RETRIEVE_BURST_PER_SECOND = 25
"""Source: Bedrock user guide, kb-managed-quotas."""


def service_role(stacks: Assembly) -> str:
    (role,) = [name for name in stacks.resources("AWS::IAM::Role") if "ServiceRole" in name]
    return role


def logical_ids(**context: str) -> set[str]:
    app, options = App(), Options.from_context({**MANAGED, **context})
    storage = StorageStack(app, "Storage", options=options)
    stack = KnowledgeBaseStack(app, "KnowledgeBase", documents=storage.documents.bucket, options=options)
    return {
        name
        for name, resource in Template.from_stack(stack).to_json()["Resources"].items()
        if resource["Type"].startswith("AWS::Bedrock::")
    }


def test_a_managed_knowledge_base_needs_no_vectors_and_no_models(managed: Assembly) -> None:
    stack = managed.templates["RagStackKnowledgeBase"]

    assert managed.only("AWS::Bedrock::KnowledgeBase")["KnowledgeBaseConfiguration"] == {
        "Type": "MANAGED",
        "ManagedKnowledgeBaseConfiguration": {"EmbeddingModelType": "MANAGED"},
    }
    assert "StorageConfiguration" not in managed.only("AWS::Bedrock::KnowledgeBase")
    assert {each["Type"] for each in stack["Resources"].values()} == {
        "AWS::Bedrock::DataSource",
        "AWS::Bedrock::KnowledgeBase",
        "AWS::IAM::Policy",
        "AWS::IAM::Role",
        "AWS::Lambda::Function",
        "AWS::Logs::LogGroup",
        "Custom::SettledRole",
    }
    assert "s3vectors" not in json.dumps(managed.templates)
    assert managed.rights_of(service_role(managed)).keys() == {"s3:GetObject", "s3:ListBucket"}


def test_its_data_source_takes_direct_ingestion_and_the_default_chunks(managed: Assembly) -> None:
    source = managed.only("AWS::Bedrock::DataSource")

    assert source["DataSourceConfiguration"] == {
        "Type": "MANAGED_KNOWLEDGE_BASE_CONNECTOR",
        # All values are texts: CloudFormation would make texts of numbers, which the service refuses.
        "ManagedKnowledgeBaseConnectorConfiguration": {"ConnectorParameters": {"type": "CUSTOM", "version": "1"}},
    }
    assert "VectorIngestionConfiguration" not in source, "refused with a managed embedding"
    assert source["DataDeletionPolicy"] == "DELETE"


def test_the_knowledge_base_waits_until_iam_knows_its_role(managed: Assembly) -> None:
    ((settled, waiting),) = managed.resources("Custom::SettledRole").items()

    assert waiting["Properties"]["Role"] == {"Fn::GetAtt": [service_role(managed), "Arn"]}
    for kind in ("AWS::Bedrock::KnowledgeBase", "AWS::Bedrock::DataSource"):
        (waits,) = managed.resources(kind).values()
        assert settled in waits["DependsOn"]


@pytest.mark.slow
def test_the_templates_break_no_rule(managed: Assembly, lint: Callable[..., None]) -> None:
    lint(*managed.folder.glob("*.template.json"))

    assert managed.violations == []
    for resource in exported(managed):
        assert create_only(resource["Type"]).isdisjoint(resource["Properties"]), resource["Type"]


def test_every_create_only_property_belongs_to_the_generation(
    managed: Assembly, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert create_only("AWS::Bedrock::KnowledgeBase") & managed.only("AWS::Bedrock::KnowledgeBase").keys() == {
        "KnowledgeBaseConfiguration"
    }
    assert create_only("AWS::Bedrock::DataSource") & managed.only("AWS::Bedrock::DataSource").keys() == {
        "DataSourceConfiguration",
        "KnowledgeBaseId",
    }
    before = logical_ids()
    assert len(before) == 2
    assert before.isdisjoint(logical_ids(kms_key_arn=KEY))
    for setting, value in {"EMBEDDING_TYPE": "CUSTOM", "CUSTOM_CONNECTOR": {"type": "S3", "version": "1"}}.items():
        with monkeypatch.context() as patch:
            patch.setattr(managed_module, setting, value)
            assert before.isdisjoint(logical_ids()), setting


def test_functions_search_and_submit_without_rights_on_vectors(managed: Assembly, aws: Assembly) -> None:
    for service in ("query", "answers", "documents", "ingestion", "ingestion_status", "receipts", "reconcile"):
        words = {action for action in aws.rights(service) if action.startswith("s3vectors:")}
        assert managed.rights(service).keys() == aws.rights(service).keys() - words, service
    for service in ("query", "answers", "documents", "ingestion", "receipts"):
        assert managed.environment(service)["VECTOR_STORE"] == "MANAGED"
    assert managed.templates["RagStackIngestion"]["Outputs"]["VectorStore"]["Value"] == "MANAGED"


def as_request(properties: Any) -> Any:
    """Write the properties of a template as the API names them; parameters of connectors are its own form already."""
    if not isinstance(properties, dict):
        return properties
    return {
        name[0].lower() + name[1:]: value if name == "ConnectorParameters" else as_request(value)
        for name, value in properties.items()
    }


@pytest.mark.parametrize("chosen", [{}, {"kms_key_arn": KEY}])
def test_the_local_bedrock_creates_what_the_template_describes(
    synthesize: Callable[..., Assembly], tmp_path: Path, chosen: dict[str, str]
) -> None:
    """An implementation that was written from the model, and not for this test."""
    stacks = synthesize(**MANAGED, **chosen)
    base = as_request(stacks.only("AWS::Bedrock::KnowledgeBase"))
    source = as_request(stacks.only("AWS::Bedrock::DataSource"))
    text = {"type": "TEXT", "textContent": {"data": "The hotel in Kyoto has 312 rooms."}}
    document = {"customDocumentIdentifier": {"id": "s3://documents/kyoto.md"}, "sourceType": "IN_LINE"}
    content = {"dataSourceType": "CUSTOM", "custom": {**document, "inlineContent": text}}

    with forked_bedrock(tmp_path) as url:
        agent, runtime = (local_client(name, url, Config()) for name in ("bedrock-agent", "bedrock-agent-runtime"))
        created = agent.create_knowledge_base(**{**base, "roleArn": "arn:aws:iam::123456789012:role/own"})
        ids = {"knowledgeBaseId": created["knowledgeBase"]["knowledgeBaseId"]}
        wait_for("ACTIVE", lambda: agent.get_knowledge_base(**ids)["knowledgeBase"])
        ids["dataSourceId"] = agent.create_data_source(**{**source, **ids})["dataSource"]["dataSourceId"]
        wait_for("AVAILABLE", lambda: agent.get_data_source(**ids)["dataSource"])
        agent.ingest_knowledge_base_documents(**ids, documents=[{"content": content}])
        wait_for("INDEXED", lambda: agent.list_knowledge_base_documents(**ids)["documentDetails"][0])
        found = runtime.retrieve(
            knowledgeBaseId=ids["knowledgeBaseId"],
            retrievalQuery={"text": "rooms in Kyoto"},
            retrievalConfiguration={"managedSearchConfiguration": {"numberOfResults": 1}},
        )

    encryption = created["knowledgeBase"]["knowledgeBaseConfiguration"]["managedKnowledgeBaseConfiguration"]
    assert encryption.get("serverSideEncryptionConfiguration") == ({"kmsKeyArn": KEY} if chosen else None)
    assert found["retrievalResults"][0]["documentId"] == "s3://documents/kyoto.md"


def wait_for(status: str, read: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while read()["status"] != status:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_a_key_encrypts_the_index_and_opens_the_documents(
    synthesize: Callable[..., Assembly], lint: Callable[..., None]
) -> None:
    """Bedrock uses the key of the index by a grant, so its role needs the key for the documents alone."""
    keyed = synthesize(**MANAGED, kms_key_arn=KEY)

    configuration = keyed.only("AWS::Bedrock::KnowledgeBase")["KnowledgeBaseConfiguration"]
    encryption = configuration["ManagedKnowledgeBaseConfiguration"]["ServerSideEncryptionConfiguration"]
    rights = keyed.rights_of(service_role(keyed))
    assert encryption == {"KmsKeyArn": KEY}
    assert rights["kms:Decrypt"] == json.dumps([KEY, ""])
    assert rights.keys() == {"kms:Decrypt", "s3:GetObject", "s3:ListBucket"}
    assert keyed.violations == []
    lint(*keyed.folder.glob("*.template.json"))


def test_rates_follow_the_quota_of_managed_retrieve(managed: Assembly, synthesize: Callable[..., Assembly]) -> None:
    existing = synthesize(**EXISTING_MANAGED, documents_bucket="handbook-of-acme")
    chosen = Options.from_context({**MANAGED, "api_requests_per_second": "30", "receipt_lookups_per_second": "2"})

    for stacks in (managed, existing):
        (routes,) = [
            each for each in stacks.only("AWS::ApiGateway::Stage")["MethodSettings"] if each["ResourcePath"] == "/*"
        ]
        assert routes["ThrottlingRateLimit"] == 10
        assert routes["ThrottlingBurstLimit"] <= RETRIEVE_BURST_PER_SECOND
        assert stacks.environment("receipts")["RECEIPT_LOOKUPS_PER_SECOND"] == "4"
    assert (chosen.api_requests_per_second, chosen.ingestion.lookups_per_second) == (30, 2)
    others = Options.from_context({})
    share = others.ingestion.lookups_per_second / others.api_requests_per_second
    by_default = Options.from_context(MANAGED)
    assert by_default.ingestion.lookups_per_second / by_default.api_requests_per_second == share
    assert IngestionSettings.variables()["RECEIPT_LOOKUPS_PER_SECOND"].default == 8


@pytest.mark.slow
def test_each_tenant_has_a_managed_knowledge_base(
    synthesize: Callable[..., Assembly], tmp_path: Path, lint: Callable[..., None]
) -> None:
    file = access_file(tmp_path, ["acme", "zenith"])
    stacks = synthesize(**MANAGED, tenants="index", access=file)

    sources = [each["Properties"] for each in stacks.resources("AWS::Bedrock::DataSource").values()]
    assert len({json.dumps(source["KnowledgeBaseId"]) for source in sources}) == 3
    for service, action in {"query": "bedrock:Retrieve", "ingestion": "bedrock:IngestKnowledgeBaseDocuments"}.items():
        assert stacks.rights(service)[action].count("knowledge-base/") == 3
        assert "TENANT_KNOWLEDGE_BASES" in stacks.environment(service)
    assert "bedrock:GetKnowledgeBase" not in stacks.rights("query")
    assert stacks.violations == []
    lint(*stacks.folder.glob("*.template.json"))


def test_the_prefix_of_a_tenant_may_have_accents_where_data_sources_have_none(tmp_path: Path) -> None:
    file = Path(access_file(tmp_path, ["a"]))
    policy = json.loads(file.read_text())
    policy["tenants"]["a"]["prefix"] = "tenants/mu\u0308ller/"
    file.write_text(json.dumps(policy))

    assert Options.from_context({**MANAGED, "tenants": "index", "access": str(file)})


@pytest.mark.slow
def test_the_type_of_an_existing_knowledge_base_is_found_out_where_the_deployer_names_none(
    existing: Assembly, synthesize: Callable[..., Assembly], lint: Callable[..., None]
) -> None:
    """Retrieve takes other requests for a managed one."""
    named = synthesize(**EXISTING_MANAGED, documents_bucket="handbook-of-acme")

    def asking(stacks: Assembly) -> set[str]:
        services = ("query", "answers", "documents", "receipts", "ingestion", "reconcile", "viewer")
        return {service for service in services if "bedrock:GetKnowledgeBase" in stacks.rights(service)}

    assert asking(existing) == {"query", "answers", "documents"}
    assert asking(named) == set()
    assert existing.environment("query")["VECTOR_STORE"] == "OTHER"
    assert {named.environment(each)["VECTOR_STORE"] for each in ("query", "ingestion")} == {"MANAGED"}
    assert named.violations == []
    lint(*named.folder.glob("*.template.json"))


def test_existing_managed_knowledge_bases_of_tenants_are_used(
    synthesize: Callable[..., Assembly], tmp_path: Path
) -> None:
    file = access_file(tmp_path, ["acme", "zenith"])

    stacks = synthesize(**EXISTING_MANAGED, tenants="index", access=file, tenant_knowledge_bases=json.dumps(IDS))

    assert "knowledge-base/ACMEKB1234" in stacks.rights("query")["bedrock:Retrieve"]
    assert not [action for action in stacks.rights("query") if action.startswith("s3vectors:")]


def test_another_knowledge_base_of_the_configuration_may_be_managed(tuned: Assembly) -> None:
    """A collection that names no store."""
    assert ":knowledge-base/ZYXWVUTSRQ" in tuned.rights("query")["bedrock:GetKnowledgeBase"]


def test_the_deployer_is_told_who_must_read_the_bucket(synthesize: Callable[..., Assembly], existing: Assembly) -> None:
    """A data source for direct ingestion reads nothing itself."""
    reads = {
        synthesize(**EXISTING_MANAGED): "The role of the knowledge base",
        existing: "The data source KLMNOPQRST",
    }

    for stacks, reader in reads.items():
        report = (stacks.folder / "validation-report.json").read_text()
        assert f"{reader} must read the bucket that RagStackStorage creates" in report


@pytest.mark.parametrize("region", sorted(MANAGED_REGIONS))
def test_a_region_with_managed_knowledge_bases_passes(region: str) -> None:
    check_region(Options.from_context(MANAGED), region)
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(region, "AWS::Bedrock::DataSource").schema
    assert CONNECTOR_SOURCE in json.dumps(schema)


@pytest.mark.parametrize("region", ["us-east-2", "ap-southeast-1", "us-gov-west-1"])
def test_another_region_is_refused_with_those_that_have_them(region: str) -> None:
    with pytest.raises(OptionError, match=f"in {region}: set AWS_REGION to one of ap-northeast-1, .*, us-west-2, or"):
        check_region(Options.from_context(MANAGED), region)

    check_region(Options.from_context({**EXISTING_MANAGED, "web_adapter_layer": ADAPTER}), region)
    assert MANAGED_REGIONS < KNOWLEDGE_BASE_REGIONS


ADAPTER = "arn:aws:lambda:us-east-2:123456789012:layer:LambdaAdapterLayerArm64:1"


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (
            {"embedding": "cohere"},
            "embedding cannot be combined with knowledge_base=managed: leave it out, or use knowledge_base=s3_vectors",
        ),
        ({"text_search_language": "de"}, "text_search_language cannot be combined with knowledge_base=managed"),
        ({"contextual_headers": "on"}, "contextual_headers cannot be combined with knowledge_base=managed"),
        (
            {"vector_index_arn": "arn:aws:s3vectors:eu-west-1:123456789012:bucket/vectors/index/own"},
            "vector_index_arn needs knowledge_base=existing and vector_store=S3_VECTORS",
        ),
        ({"vector_store": "MANAGED"}, "vector_store needs knowledge_base=existing"),
        ({"knowledge_base_id": "ABCDEFGHIJ"}, "knowledge_base_id needs knowledge_base=existing"),
        (
            {"target": "local"},
            "target=local needs knowledge_base=existing: the local CloudFormation has no AWS::Bedrock::KnowledgeBase",
        ),
        ({"search_type": "SEMANTIC"}, "search_type=SEMANTIC has no meaning for a managed knowledge base"),
        ({"search_type": "HYBRID"}, "search_type=HYBRID has no meaning for a managed knowledge base"),
    ],
)
def test_a_choice_without_a_meaning_is_refused_with_what_to_do(context: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError) as refused:
        Options.from_context({**MANAGED, **context})

    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("chosen", ["HYBRID", "SEMANTIC"])
def test_what_functions_cannot_create_is_refused_before_the_deployment(
    synthesize: Callable[..., Assembly], chosen: str
) -> None:
    """The engine of a managed knowledge base takes no kind of search."""
    variables = synthesize(**EXISTING_MANAGED).environment("query")

    with pytest.raises(ConfigurationError):
        make_engine(QuerySettings.from_env({**variables, "SEARCH_TYPE": chosen}), NO_METRICS)
    with pytest.raises(OptionError, match=f"search_type={chosen} has no meaning for a managed knowledge base"):
        Options.from_context({**EXISTING_MANAGED, "search_type": chosen})
    assert make_engine(QuerySettings.from_env(variables), NO_METRICS)


def test_the_choice_has_one_name_in_options() -> None:
    options: Any = Options.from_context(MANAGED)

    assert (options.knowledge_base, options.store) == (KnowledgeBaseKind.MANAGED, "MANAGED")
    assert (Options().store, Options.from_context(EXISTING).store) == ("S3_VECTORS", "OTHER")
    lower_case = Options.from_context({**EXISTING, "vector_store": "managed"})
    assert (lower_case.store, lower_case.api_requests_per_second) == ("MANAGED", 10)
