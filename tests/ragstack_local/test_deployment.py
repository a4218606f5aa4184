"""When stacks that were synthesized are deployed again as they are."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from local_bedrock.server import running
from ragstack_local.connection.connection import Project
from ragstack_local.errors import StackError
from ragstack_local.stack import deployment
from ragstack_local.stack.deployment import OUTPUTS, Assembly, KnowledgeBaseType, LocalKnowledgeBase, deployed_type
from tests.ragstack_local.support import aws

NOWHERE = "http://127.0.0.1:9"
CONTEXT = {"target": "local", "aws_endpoint": "http://127.0.0.1:4566"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A checkout in which everything is small."""
    root = tmp_path / "checkout"
    for name in ("app.py", "infra/stacks/api.py", "lambdas/query/handler.py", "ragstack_common/core/errors.py"):
        write(root / name, "first")
    write(root / "layer.zip", "first")
    return Project(root, root / ".ragstack")


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def assembly(project: Project, **more: str) -> Assembly:
    return Assembly.compare(project, project.data / "cdk.out", CONTEXT | more)


def deploy(project: Project, **more: str) -> None:
    synthesized = assembly(project, **more)
    with synthesized.deployed():
        write(synthesized.path / "manifest.json", "{}")


def test_a_deployment_is_current_until_something_changes(project: Project) -> None:
    before = assembly(project).is_current

    deploy(project)

    assert not before
    assert assembly(project).is_current
    deploy(project)
    assert assembly(project).is_current


@pytest.mark.parametrize(
    "change",
    [
        lambda root: write(root / "app.py", "second"),
        lambda root: write(root / "infra/stacks/api.py", "second"),
        lambda root: write(root / "lambdas/query/handler.py", "second"),
        lambda root: write(root / "ragstack_common/core/errors.py", "second"),
        lambda root: write(root / "ragstack_common/new.py", ""),
        lambda root: write(root / "cdk.context.json", "{}"),
        lambda root: (root / "infra/stacks/api.py").unlink(),
        lambda root: (root / "infra/stacks/api.py").rename(root / "infra/stacks/storage.py"),
        lambda root: write(root / "layer.zip", "second"),
        lambda root: (root / ".ragstack/cdk.out/manifest.json").unlink(),
    ],
    ids=["app", "stack", "handler", "layer", "new file", "context", "deleted", "renamed", "own layer", "no assembly"],
)
def test_changed_sources_are_synthesized_again(project: Project, change: Callable[[Path], object]) -> None:
    deploy(project, dependencies_layer="layer.zip")

    change(project.root)

    assert not assembly(project, dependencies_layer="layer.zip").is_current


def test_after_a_deployment_that_failed_it_is_synthesized_again(project: Project) -> None:
    deploy(project)

    with pytest.raises(RuntimeError), assembly(project).deployed():
        raise RuntimeError

    assert not assembly(project).is_current


def test_a_change_during_the_synthesis_is_seen_by_the_next_start(project: Project) -> None:
    synthesized = assembly(project)
    with synthesized.deployed():
        write(synthesized.path / "manifest.json", "{}")
        write(project.root / "app.py", "second")

    assert not assembly(project).is_current


def test_a_deployment_that_fails_says_what_the_app_said(tmp_path: Path) -> None:
    cdk = tmp_path / "checkout" / "node_modules" / ".bin" / "cdk"
    write(cdk, "#!/bin/sh\necho search_k=0 is invalid\necho app.py: Subprocess exited with error 1\nexit 1\n")
    cdk.chmod(0o700)
    project = Project(tmp_path / "checkout", tmp_path / "data")

    with pytest.raises(StackError, match="search_k=0 is invalid"):
        deployment.deploy(
            project,
            data=tmp_path,
            aws_endpoint=NOWHERE,
            bedrock_endpoint=NOWHERE,
            answers_endpoint=NOWHERE,
            knowledge_base=LocalKnowledgeBase("KB", "DS", KnowledgeBaseType.VECTOR),
            chosen={},
            step=lambda _: nullcontext(),
        )


def test_the_knowledge_base_has_the_tag_that_the_mcp_server_looks_for(tmp_path: Path) -> None:
    with running(tmp_path) as url:
        agent = aws("bedrock-agent", url)
        identifier = LocalKnowledgeBase.ensure(url).knowledge_base_id
        arn = agent.get_knowledge_base(knowledgeBaseId=identifier)["knowledgeBase"]["knowledgeBaseArn"]
        created = agent.list_tags_for_resource(resourceArn=arn)["tags"]
        agent.untag_resource(resourceArn=arn, tagKeys=list(created))  # as an earlier version left it
        LocalKnowledgeBase.ensure(url)
        found = agent.list_tags_for_resource(resourceArn=arn)["tags"]

    assert created == found == {"mcp-multirag-kb": "true"}


def test_a_managed_knowledge_base_stays_managed(tmp_path: Path) -> None:
    with running(tmp_path) as url:
        agent = aws("bedrock-agent", url)
        made = LocalKnowledgeBase.ensure(url, KnowledgeBaseType.MANAGED)
        again = LocalKnowledgeBase.ensure(url)
        tenants = LocalKnowledgeBase.ensure_tenants(url, {"t1": "tenants/1/"}, again.kind)
        own, source = tenants["t1"].split("/")
        described = agent.get_data_source(knowledgeBaseId=own, dataSourceId=source)["dataSource"]
        with pytest.raises(StackError, match="knowledge base of type managed: leave --knowledge-base out"):
            LocalKnowledgeBase.ensure(url, KnowledgeBaseType.VECTOR)

    connector = described["dataSourceConfiguration"]["managedKnowledgeBaseConnectorConfiguration"]
    assert again == made
    assert made.vector_store == "MANAGED"
    assert described["status"] == "AVAILABLE"
    assert json.loads(connector["connectorParameters"])["type"] == "CUSTOM"


@pytest.mark.parametrize(
    ("outputs", "kind"),
    [
        (None, None),
        ("{", None),
        ("{}", None),
        ('{"RagStackIngestion": {"VectorStore": "MANAGED"}}', KnowledgeBaseType.MANAGED),
        ('{"RagStackIngestion": {"VectorStore": "OPENSEARCH_SERVERLESS"}}', KnowledgeBaseType.VECTOR),
    ],
)
def test_a_knowledge_base_that_is_lost_with_its_index_keeps_its_type(
    tmp_path: Path, outputs: str | None, kind: KnowledgeBaseType | None
) -> None:
    if outputs is not None:
        (tmp_path / OUTPUTS).write_text(outputs)

    assert deployed_type(tmp_path) == kind


def test_each_tenant_has_a_knowledge_base_that_reads_its_prefix(tmp_path: Path) -> None:
    with running(tmp_path) as url:
        agent = aws("bedrock-agent", url)
        shared = LocalKnowledgeBase.ensure(url)
        made = LocalKnowledgeBase.ensure_tenants(url, {f"t{number}": f"tenants/{number}/" for number in range(12)})
        again = LocalKnowledgeBase.ensure_tenants(url, {"t1": "customers/1/", "t11": "tenants/11/"})
        own, source = made["t1"].split("/")
        described = agent.get_data_source(knowledgeBaseId=own, dataSourceId=source)["dataSource"]
        found = LocalKnowledgeBase.ensure(url)

    assert again == {name: made[name] for name in ("t1", "t11")}
    assert described["dataSourceConfiguration"]["s3Configuration"]["inclusionPrefixes"] == ["customers/1/"]
    assert found == shared
    assert len({*made.values(), f"{shared.knowledge_base_id}/{shared.data_source_id}"}) == 13
