"""The knowledge base on S3 Vectors, and the one that exists."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Template
from cfnlint.helpers import REGIONS
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

from infra.constructs import vector_knowledge_base as vectors
from infra.options import Options
from infra.stacks import KnowledgeBaseStack, StorageStack, choose_knowledge_base
from infra.target import KNOWLEDGE_BASE_REGIONS

pytestmark = pytest.mark.xdist_group("synthesized stacks")

KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
OWNED = (
    "AWS::Bedrock::KnowledgeBase",
    "AWS::Bedrock::DataSource",
    "AWS::S3Vectors::VectorBucket",
    "AWS::S3Vectors::Index",
)


def exported(assembly: Any) -> Iterator[dict[str, Any]]:
    """Every resource that an export is made of."""
    for template in assembly.templates.values():
        for output in template["Outputs"].values():
            if "Export" in output:
                value = output["Value"]
                yield template["Resources"][value.get("Ref") or value["Fn::GetAtt"][0]]


def create_only(kind: str) -> set[str]:
    """Top-level properties whose change makes CloudFormation replace a resource."""
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
    return {path.removeprefix("/properties/").partition("/")[0] for path in schema["createOnlyProperties"]}


def test_nothing_that_can_be_replaced_is_exported(aws: Any, existing: Any) -> None:
    for assembly in (aws, existing):
        resources = list(exported(assembly))

        assert resources
        for resource in resources:
            assert create_only(resource["Type"]).isdisjoint(resource["Properties"]), resource["Type"]


def test_no_stack_imports_the_ids_of_the_knowledge_base(aws: Any) -> None:
    exports = [output for output in aws.templates["RagStackKnowledgeBase"]["Outputs"].values() if "Export" in output]

    assert exports == []
    assert "RagStackKnowledgeBase:" not in json.dumps(aws.templates)
    for stack in ("RagStackIngestion", "RagStackApi"):
        assert '{"Fn::GetStackOutput": {"StackName": "RagStackKnowledgeBase"' in json.dumps(aws.templates[stack])


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("EMBEDDING_TYPE", "BINARY"),
        ("DISTANCE_METRIC", "euclidean"),
        ("NON_FILTERABLE_KEYS", ("AMAZON_BEDROCK_TEXT",)),
        ("DATA_SOURCE_TYPE", "CUSTOM"),
    ],
)
def test_a_create_only_setting_makes_new_resources_and_outputs(
    monkeypatch: pytest.MonkeyPatch, setting: str, value: Any, node: None
) -> None:
    before = logical_ids()

    monkeypatch.setattr(vectors, setting, value)

    assert before.isdisjoint(logical_ids())


@pytest.mark.parametrize("choice", [{"embedding": "cohere"}, {"embedding": "nova"}, {"kms_key_arn": KEY}])
def test_another_embedding_or_key_makes_new_resources_and_outputs(choice: dict[str, str], node: None) -> None:
    assert logical_ids().isdisjoint(logical_ids(**choice))


def test_a_default_deployment_keeps_its_knowledge_base() -> None:
    """Another value replaces the knowledge base of every deployment that changed nothing."""
    assert vectors.generation(Options()) == "a6417da7"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("embedding", "model", "dimensions"),
    [
        ("titan", "amazon.titan-embed-text-v2:0", 1024),
        ("cohere", "cohere.embed-multilingual-v3", None),
        ("nova", "amazon.nova-2-multimodal-embeddings-v1:0", 1024),
    ],
)
def test_the_embedding_is_the_one_that_the_deployer_chose(
    synthesize: Any, lint: Any, embedding: str, model: str, dimensions: int | None
) -> None:
    stacks = synthesize(**({} if embedding == "titan" else {"embedding": embedding}))

    configuration = stacks.only("AWS::Bedrock::KnowledgeBase")["KnowledgeBaseConfiguration"]
    vector = configuration["VectorKnowledgeBaseConfiguration"]
    (role,) = [name for name in stacks.resources("AWS::IAM::Role") if "ServiceRole" in name]
    assert f"::foundation-model/{model}" in json.dumps(vector["EmbeddingModelArn"])
    assert f"::foundation-model/{model}" in stacks.rights_of(role)["bedrock:InvokeModel"]
    assert vector["EmbeddingModelConfiguration"]["BedrockEmbeddingModelConfiguration"].get("Dimensions") == dimensions
    assert stacks.only("AWS::S3Vectors::Index")["Dimension"] == 1024
    assert stacks.templates["RagStackKnowledgeBase"]["Outputs"]["EmbeddingModel"]["Value"] == model
    assert stacks.violations == []
    lint(*stacks.folder.glob("*.template.json"))


def logical_ids(**context: str) -> set[str]:
    """What the outputs for other stacks are named after, and the resources that go together."""
    app, options = App(), Options.from_context(context)
    storage = StorageStack(app, "Storage", options=options)
    stack = KnowledgeBaseStack(app, "KnowledgeBase", documents=storage.documents.bucket, options=options)
    resources = Template.from_stack(stack).to_json()["Resources"]
    return {name for name, resource in resources.items() if resource["Type"] in OWNED}


def test_every_create_only_property_belongs_to_the_generation(with_headers: Any) -> None:
    settings = {
        "AWS::Bedrock::KnowledgeBase": {"KnowledgeBaseConfiguration", "StorageConfiguration"},
        # Of DataSourceConfiguration the type alone, and of VectorIngestionConfiguration chunking and parsing.
        "AWS::Bedrock::DataSource": {
            "DataSourceConfiguration",
            "KnowledgeBaseId",
            "VectorIngestionConfiguration",
        },
        "AWS::S3Vectors::VectorBucket": {"EncryptionConfiguration"},
        "AWS::S3Vectors::Index": {
            "DataType",
            "Dimension",
            "DistanceMetric",
            "MetadataConfiguration",
            "VectorBucketArn",
        },
    }

    for kind in OWNED:
        assert create_only(kind) & with_headers.only(kind).keys() == settings[kind]
    ingestion = with_headers.only("AWS::Bedrock::DataSource")["VectorIngestionConfiguration"]
    assert {"ChunkingConfiguration", "ParsingConfiguration"}.isdisjoint(ingestion)


def test_each_stack_has_a_service_role_with_a_valid_name(aws: Any) -> None:
    """The schema of the knowledge base fixes the prefix."""
    (name,) = [
        role["Properties"]["RoleName"]
        for role in aws.resources("AWS::IAM::Role").values()
        if "RoleName" in role["Properties"]
    ]

    prefix, stack, generation = name["Fn::Join"][1]
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", "AWS::Bedrock::KnowledgeBase").schema
    assert f"begin with {prefix}" in schema["properties"]["RoleArn"]["description"]
    assert "AWS::StackId" in str(stack)
    assert len(prefix) + len("1a2b3c4d") + len(generation) <= 64


def test_bedrocks_own_keys_are_not_filterable(aws: Any) -> None:
    index = aws.only("AWS::S3Vectors::Index")

    keys = index["MetadataConfiguration"]["NonFilterableMetadataKeys"]

    assert sorted(keys) == ["AMAZON_BEDROCK_METADATA", "AMAZON_BEDROCK_TEXT"]


def test_the_vectors_are_encrypted_and_kept(aws: Any) -> None:
    bucket = aws.only("AWS::S3Vectors::VectorBucket")
    stateful = [
        *aws.resources("AWS::S3Vectors::VectorBucket").values(),
        *aws.resources("AWS::S3Vectors::Index").values(),
    ]

    assert bucket["EncryptionConfiguration"] == {"SseType": "AES256"}
    assert {resource["DeletionPolicy"] for resource in stateful} == {"RetainExceptOnCreate"}
    assert {resource["UpdateReplacePolicy"] for resource in stateful} == {"Retain"}


def test_only_this_accounts_knowledge_bases_may_take_the_service_role(aws: Any) -> None:
    (conditions,) = [
        statement["Condition"]
        for _, statement in aws.statements()
        if statement["Effect"] == "Allow" and statement.get("Principal") == {"Service": "bedrock.amazonaws.com"}
    ]

    assert conditions["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    assert "knowledge-base/*" in str(conditions["ArnLike"]["aws:SourceArn"])


def test_the_service_role_reads_documents_and_writes_vectors_only(aws: Any) -> None:
    actions = {
        action
        for name, statement in aws.statements()
        if "ServiceRole" in name and "Principal" not in statement
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }

    assert {action for action in actions if not action.startswith("s3vectors:")} == {
        "bedrock:InvokeModel",
        "s3:GetObject",
        "s3:ListBucket",
    }
    assert "s3vectors:DeleteIndex" not in actions


@pytest.mark.parametrize("stacks", ["aws", "with_headers"])
def test_the_knowledge_base_waits_until_iam_knows_its_role(stacks: str, request: pytest.FixtureRequest) -> None:
    """Creating it fails, without another try, while Bedrock cannot assume the role."""
    assembly = request.getfixturevalue(stacks)
    ((settled, waiting),) = assembly.resources("Custom::SettledRole").items()
    (role,) = [name for name in assembly.resources("AWS::IAM::Role") if "ServiceRole" in name]

    assert waiting["Properties"]["Role"] == {"Fn::GetAtt": [role, "Arn"]}
    for kind in ("AWS::Bedrock::KnowledgeBase", "AWS::Bedrock::DataSource"):
        (waits,) = assembly.resources(kind).values()
        assert settled in waits["DependsOn"]
    assert not [name for name in assembly.resources("AWS::IAM::Policy") if "ServiceRole" in name], "later than the role"


def test_a_change_of_the_role_s_policies_is_waited_for_too(aws: Any, with_headers: Any) -> None:
    first, second = (stacks.only("Custom::SettledRole")["Policies"] for stacks in (aws, with_headers))

    assert first != second


@pytest.mark.parametrize(("request_type", "waits"), [("Create", [30]), ("Update", [30]), ("Delete", [])])
def test_the_wait_ends_with_an_answer_to_cloudformation(
    aws: Any, monkeypatch: pytest.MonkeyPatch, request_type: str, waits: list[int]
) -> None:
    code = aws.inline_code("SettledRole")
    slept: list[int] = []
    sent: list[tuple[Any, ...]] = []
    module = ModuleType("cfnresponse")
    vars(module).update(SUCCESS="SUCCESS", send=lambda *answer: sent.append(answer))
    monkeypatch.setitem(sys.modules, "cfnresponse", module)
    monkeypatch.setattr("time.sleep", slept.append)
    names: dict[str, Any] = {}
    exec(code, names)

    names["handler"]({"RequestType": request_type}, "context")

    assert slept == waits
    assert sent == [({"RequestType": request_type}, "context", "SUCCESS", {}, "settled")]


def test_an_existing_knowledge_base_is_not_created_again(existing: Any) -> None:
    for kind in OWNED:
        assert existing.resources(kind) == {}, kind


def test_the_functions_use_the_existing_knowledge_base(existing: Any) -> None:
    assert existing.environment("query")["KNOWLEDGE_BASE_ID"] == "ABCDEFGHIJ"
    assert existing.environment("ingestion")["KNOWLEDGE_BASE_ID"] == "ABCDEFGHIJ"
    assert existing.environment("ingestion")["DATA_SOURCE_ID"] == "KLMNOPQRST"


def test_rights_reach_the_existing_knowledge_base_and_no_other(existing: Any) -> None:
    resources = [
        str(statement["Resource"]) for _, statement in existing.statements() if "bedrock:" in str(statement["Action"])
    ]

    assert len(resources) == 7
    assert all("knowledge-base/ABCDEFGHIJ" in resource for resource in resources)


@pytest.mark.parametrize(("region", "is_reported"), [("us-west-1", True), ("eu-central-1", False), (None, False)])
def test_a_region_without_knowledge_bases_is_reported_at_synthesis(
    stand_in_layer: Path, node: None, region: str | None, is_reported: bool
) -> None:
    app = App()
    options = Options(dependencies_layer=stand_in_layer)
    storage = StorageStack(app, "Storage", options=options)

    choose_knowledge_base(app, options, storage.documents.bucket, region)

    said = "".join(file.read_text() for file in Path(app.synth().directory).glob("*.json"))
    assert (f"in {region} " in said) == is_reported


def test_known_regions_equal_those_of_cloudformation() -> None:
    """All of them have S3 Vectors."""

    def regions(kind: str) -> set[str]:
        return {region for region in REGIONS if kind in PROVIDER_SCHEMA_MANAGER.get_resource_types(region)}

    assert regions("AWS::Bedrock::KnowledgeBase") == regions("AWS::Bedrock::DataSource") == KNOWLEDGE_BASE_REGIONS
    assert regions("AWS::S3Vectors::Index") > KNOWLEDGE_BASE_REGIONS
