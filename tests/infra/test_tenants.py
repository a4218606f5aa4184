"""Knowledge bases of tenants."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra.access_options import MAX_TENANTS
from infra.options import OptionError, Options
from infra.policy_sizes import check_policies
from infra.target import KNOWLEDGE_BASE_REGIONS
from tests.infra.conftest import EXISTING, Assembly

pytestmark = pytest.mark.xdist_group("synthesized stacks")

IDS = {"acme": "ACMEKB1234/ACMEDS1234", "zenith": "ZENITH1234/ZENITHDS12"}


def access_file(folder: Path, tenants: int | list[str]) -> str:
    names = [f"t{number}" for number in range(tenants)] if isinstance(tenants, int) else tenants
    file = folder / "tenants.json"
    policy = {
        "rights": {"read": ["everyone"]},
        "labels": {name: {"allow": [f"tenant:{name}"]} for name in names},
        "prefixes": {f"tenants/{name}/": {"default": name} for name in names},
        "tenants": {name: {"prefix": f"tenants/{name}/"} for name in names},
    }
    file.write_text(json.dumps(policy))
    return str(file)


@pytest.fixture(scope="module")
def by_index(synthesize: Callable[..., Assembly], tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    file = access_file(tmp_path_factory.mktemp("access"), ["acme", "zenith"])
    return synthesize(tenants="index", access=file, contextual_headers="on")


def test_each_tenant_has_an_index_and_reads_its_prefix(by_index: Assembly) -> None:
    sources = [each["Properties"] for each in by_index.resources("AWS::Bedrock::DataSource").values()]
    prefixes = [each["DataSourceConfiguration"]["S3Configuration"].get("InclusionPrefixes") for each in sources]
    stored = [
        json.dumps(each["Properties"]["StorageConfiguration"])
        for each in by_index.resources("AWS::Bedrock::KnowledgeBase").values()
    ]

    assert sorted(prefixes, key=str) == [None, ["tenants/acme/"], ["tenants/zenith/"]]
    assert len({*stored}) == 3
    assert len(by_index.resources("AWS::S3Vectors::Index")) == 3
    assert len(by_index.resources("AWS::S3Vectors::VectorBucket")) == 1
    for kind in ("AWS::S3Vectors::Index", "AWS::S3Vectors::VectorBucket"):
        assert {each["DeletionPolicy"] for each in by_index.resources(kind).values()} == {"RetainExceptOnCreate"}


def test_functions_know_and_may_use_the_knowledge_bases_of_tenants(by_index: Assembly, aws: Assembly) -> None:
    for service, action in {
        "query": "bedrock:Retrieve",
        "answers": "bedrock:Retrieve",
        "ingestion": "bedrock:IngestKnowledgeBaseDocuments",
        "ingestion_status": "bedrock:GetKnowledgeBaseDocuments",
        "reconcile": "bedrock:DeleteKnowledgeBaseDocuments",
    }.items():
        ids = by_index.function(service)["Environment"]["Variables"]["TENANT_KNOWLEDGE_BASES"]["Fn::Join"][1]
        text = "".join(part if isinstance(part, str) else "ABCDEFGHIJ" for part in ids)
        assert json.loads(text) == dict.fromkeys(("acme", "zenith"), "ABCDEFGHIJ/ABCDEFGHIJ")
        assert by_index.rights(service)[action].count("knowledge-base/") == 3, service
        assert "TENANT_KNOWLEDGE_BASES" not in aws.function(service)["Environment"]["Variables"]


def test_the_shared_data_source_and_those_of_tenants_are_synchronised_once(by_index: Assembly) -> None:
    """The shared one first: `ragstack reconcile --full` starts the others again, and not this one."""
    sources = [json.dumps(source) for source in by_index.only("Custom::FirstSync")["Sources"]]

    assert len(sources) == 3
    assert "Tenant" not in sources[0]
    assert all(name in source for name, source in zip(("acme", "zenith"), sources[1:], strict=True))


def test_words_are_searched_in_every_index(by_index: Assembly) -> None:
    (configures,) = [name for name in by_index.resources("AWS::IAM::Role") if "TextSearch" in name]

    assert len(by_index.only("Custom::TextSearch")["Indexes"]) == 3
    for rights in (by_index.rights("query"), by_index.rights_of(configures)):
        assert "/index/*" in rights["s3vectors:GetIndex"]
    assert by_index.rights("query")["bedrock:GetKnowledgeBase"].count("knowledge-base/") == 3


@pytest.mark.slow
def test_a_deployment_with_tenants_breaks_no_rule(by_index: Assembly, lint: Callable[..., None]) -> None:
    lint(*by_index.folder.glob("*.template.json"))

    assert by_index.violations == []


def test_existing_knowledge_bases_of_tenants_are_used(synthesize: Callable[..., Assembly], tmp_path: Path) -> None:
    file = access_file(tmp_path, ["acme", "zenith"])

    index = {
        "vector_store": "S3_VECTORS",
        "vector_index_arn": "arn:aws:s3vectors:eu-west-1:123456789012:bucket/vectors/index/shared",
    }

    existing = synthesize(**EXISTING, **index, tenants="index", access=file, tenant_knowledge_bases=json.dumps(IDS))

    assert ":bucket/vectors/index/*" in existing.rights("query")["s3vectors:QueryVectors"]
    assert json.loads(existing.environment("query")["TENANT_KNOWLEDGE_BASES"]) == IDS
    assert "knowledge-base/ACMEKB1234" in existing.rights("ingestion")["bedrock:IngestKnowledgeBaseDocuments"]
    outputs = existing.templates["RagStackIngestion"]["Outputs"]
    assert json.loads(outputs["TenantKnowledgeBases"]["Value"]) == IDS


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [{"contextual_headers": "on"}, {"knowledge_base": "managed"}])
def test_the_largest_deployment_stays_within_the_limits_of_cloudformation(
    synthesize: Callable[..., Assembly], tmp_path: Path, chosen: dict[str, str]
) -> None:
    largest = synthesize(tenants="index", access=access_file(tmp_path, MAX_TENANTS), **chosen)

    for name, template in largest.templates.items():
        # Source: CloudFormation quotas.
        assert len(template["Resources"]) <= 500, name
        assert len(template.get("Outputs", {})) <= 200, name
        assert len(json.dumps(template)) <= 1_000_000, name
    assert largest.violations == []
    for region in sorted(KNOWLEDGE_BASE_REGIONS):
        check_policies(largest.folder, region)


def test_names_that_leave_no_room_in_the_environment_are_rejected(
    synthesize: Callable[..., Assembly], tmp_path: Path
) -> None:
    names = [f"a-tenant-with-a-long-name-{number:024}" for number in range(60)]

    with pytest.raises(OptionError, match=r"TENANT_KNOWLEDGE_BASES \(4,\d+ bytes\)"):
        synthesize(tenants="index", access=access_file(tmp_path, names))


def test_values_that_the_deployment_adds_count_in_the_environment(
    synthesize: Callable[..., Assembly], tmp_path: Path
) -> None:
    """Seven URLs of queues take 700 bytes."""
    names = [f"tenant-{number:02}" for number in range(MAX_TENANTS)]

    with pytest.raises(OptionError, match="environment of the function ingestion has about 4,"):
        synthesize(tenants="index", access=access_file(tmp_path, names))


@pytest.mark.parametrize(
    ("tenants", "values", "message"),
    [
        ([], {"tenants": "index"}, "needs an access file with tenants"),
        (["acme"], {"tenant_knowledge_bases": json.dumps(IDS)}, "needs tenants=index and knowledge_base=existing"),
        (["acme"], {"tenants": "index", **EXISTING, "vector_store": "S3_VECTORS"}, "which differ by acme"),
        (
            ["acme"],
            {"tenants": "index", **EXISTING, "tenant_knowledge_bases": json.dumps(IDS)},
            "which differ by zenith",
        ),
        (MAX_TENANTS + 1, {"tenants": "index"}, "creates 92 knowledge bases"),
        (["acme"], {"tenants": "row"}, "label or index"),
    ],
)
def test_choices_about_tenants_that_cannot_be_deployed_are_rejected(
    tmp_path: Path, tenants: Any, values: dict[str, str], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        Options.from_context({**values, "access": access_file(tmp_path, tenants)})


def test_a_prefix_that_can_be_written_in_two_ways_has_no_data_source_of_its_own(tmp_path: Path) -> None:
    """The data source of a knowledge base compares bytes, and so would leave out the keys of a Mac."""
    file = access_file(tmp_path, ["a"])
    policy = json.loads(Path(file).read_text())
    policy["tenants"]["a"]["prefix"] = "tenants/mu\u0308ller/"
    Path(file).write_text(json.dumps(policy))

    with pytest.raises(OptionError, match="tenant a has letters that can be written in two ways"):
        Options.from_context({"tenants": "index", "access": file})
    assert Options.from_context({"tenants": "label", "access": file})
