"""When stacks that were synthesized are deployed again as they are."""

import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from unittest.mock import Mock

import pytest

from infra.layers import EXTRA_REQUIREMENTS, REQUIREMENTS
from local_bedrock.server import running
from ragstack_local.connection.connection import Project
from ragstack_local.errors import StackError
from ragstack_local.stack import assembly as assemblies
from ragstack_local.stack import deployment
from ragstack_local.stack.assembly import ASSEMBLIES, Assembly, Inputs
from ragstack_local.stack.deployment import OUTPUTS, KnowledgeBaseType, LocalKnowledgeBase, deployed_type
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
    return Assembly.find(project, Inputs.read(project, CONTEXT | more))


def synthesize(project: Project, **more: str) -> None:
    (asset := project.root / "build/layer.zip").parent.mkdir(exist_ok=True)
    asset.write_text("packages")
    with assembly(project, **more).synthesized() as folder:
        write(folder / "manifest.json", "{}")
        write(folder / "Api.assets.json", json.dumps({"files": {"layer": {"source": {"path": str(asset)}}}}))


def test_an_assembly_is_used_until_something_changes(project: Project) -> None:
    before = assembly(project).is_synthesized

    synthesize(project)

    assert not before
    assert assembly(project).is_synthesized
    synthesize(project)
    assert assembly(project).is_synthesized


@pytest.mark.parametrize(
    "change",
    [
        lambda root: write(root / "app.py", "second"),
        lambda root: write(root / "infra/stacks/api.py", "second"),
        lambda root: write(root / "lambdas/query/handler.py", "second"),
        lambda root: write(root / "ragstack_common/core/errors.py", "second"),
        lambda root: write(root / "ragstack_common/new.py", ""),
        lambda root: write(root / "cdk.context.json", "{}"),
        lambda root: write(root / "requirements/answers.txt", "uvicorn==2"),
        lambda root: (root / "infra/stacks/api.py").unlink(),
        lambda root: (root / "infra/stacks/api.py").rename(root / "infra/stacks/storage.py"),
        lambda root: write(root / "layer.zip", "second"),
        lambda root: (root / "build/layer.zip").unlink(),
        lambda root: next((root / ASSEMBLIES).glob("*/manifest.json")).unlink(),
        lambda root: next((root / ASSEMBLIES).glob("*/manifest.json")).write_text(""),
        lambda root: next((root / ASSEMBLIES).glob("*/Api.assets.json")).write_text(""),
        lambda root: shutil.rmtree(root / "build"),
    ],
    ids=[
        *("app", "stack", "handler", "common layer", "new file", "context", "packages", "deleted", "renamed"),
        *("own layer", "no layer", "no assembly", "power cut", "power cut amid assets", "no build"),
    ],
)
def test_changed_sources_are_synthesized_again(project: Project, change: Callable[[Path], object]) -> None:
    synthesize(project, dependencies_layer="layer.zip")

    change(project.root)

    assert not assembly(project, dependencies_layer="layer.zip").is_synthesized


@pytest.mark.parametrize("package", assemblies.PACKAGES)
def test_another_version_of_a_package_is_synthesized_again(
    project: Project, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    synthesize(project)

    monkeypatch.setattr(assemblies, "version", lambda name: "0" if name == package else version(name))

    assert not assembly(project).is_synthesized


def test_starts_that_alternate_between_callers_synthesize_once(project: Project) -> None:
    """As `make demo` and `make up` do."""
    synthesize(project, auth="none,oidc")
    synthesize(project)

    assert assembly(project, auth="none,oidc").is_synthesized
    assert assembly(project).is_synthesized
    assert not assembly(project, auth="oidc").is_synthesized


def test_a_stack_that_is_slower_leaves_the_assembly_of_a_faster_one(project: Project) -> None:
    """The faster one reads it at that moment."""
    with assembly(project).synthesized() as slower:
        write(slower / "manifest.json", "{}")
        synthesize(project)
        faster = assembly(project).path.stat().st_ino

    assert assembly(project).path.stat().st_ino == faster


def test_old_assemblies_are_removed(project: Project) -> None:
    for number in range(assemblies.MAX_ASSEMBLIES + 2):
        synthesize(project, search_k=str(number))

    assert len([*(project.root / ASSEMBLIES).iterdir()]) == assemblies.MAX_ASSEMBLIES


def test_a_synthesis_that_failed_is_done_again(project: Project) -> None:
    with pytest.raises(ZeroDivisionError), assembly(project).synthesized() as folder:
        write(folder / "manifest.json", str(1 // 0))

    assert not assembly(project).is_synthesized
    assert [*(project.root / ASSEMBLIES).iterdir()] == []


def test_data_folders_with_other_ports_share_an_assembly(project: Project, tmp_path: Path) -> None:
    synthesize(project)
    context = {
        "aws_endpoint": "http://127.0.0.1:60002",
        "bedrock_endpoint": "http://127.0.0.1:5567",
        "knowledge_base_id": "KB12345678",
        "oidc_issuer": "https://issuer.example:60004",
    }
    inputs = Inputs.read(project, CONTEXT | context)
    values = inputs.for_synthesis.context
    old = "0" * 64
    synthesize(project, **context)
    made = Assembly.find(project, inputs)
    api = {"Type": "AWS::ApiGateway::Deployment"}
    text = json.dumps({"values": [values[name] for name in context], "Resources": {f"Api{old}": api}})
    write(made.path / "Api.template.json", text)
    asset = {"source": {"path": "Api.template.json"}, "destination": f"{old}.json"}
    write(made.path / "Api.assets.json", json.dumps({"files": {old: asset}}))
    write(made.path / "manifest.json", json.dumps({"template": f"s3://assets/{old}.json"}))

    made.bind(inputs.bound_later, tmp_path / "bound")

    bound = (tmp_path / "bound/Api.template.json").read_bytes()
    new = hashlib.sha256(bound).hexdigest()
    ((deployed, _),) = json.loads(bound)["Resources"].items()
    assert json.loads(bound)["values"] == [*context.values()]
    assert deployed.startswith(f"Api{old[:32]}")
    assert deployed != f"Api{old}"
    assert json.loads((tmp_path / "bound/Api.assets.json").read_text()) == {
        "files": {new: {**asset, "destination": f"{new}.json"}}
    }
    assert json.loads((tmp_path / "bound/manifest.json").read_text()) == {"template": f"s3://assets/{new}.json"}
    assert (made.path / "Api.template.json").read_text() == text
    assert assembly(project, aws_endpoint="http://127.0.0.1:1234").path == assembly(project).path
    assert assembly(project, oidc_issuer="https://a.example").path != assembly(project).path


def test_the_version_of_a_package_that_a_function_needs_is_an_input() -> None:
    """Each file of requirements from which a layer is built is among the sources."""
    assert {f"requirements/{file.name}" for file in (REQUIREMENTS, *EXTRA_REQUIREMENTS.values())} <= {
        *assemblies.SOURCES
    }


class Services:
    """A command line that notes what it is asked, and a CloudFormation that has the stacks that it deployed."""

    def __init__(self, project: Project, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project, self.data = project, data
        self.deployments = 0
        self.can_save = True
        self.calls = data / "calls"
        cdk = project.root / "node_modules/.bin/cdk"
        write(
            cdk,
            '#!/bin/sh\n[ -e "$CALLS-fails" ] && exit 1\necho $1 >> "$CALLS"\nwhile [ $# -gt 0 ]; do case $1 in\n'
            "--output) mkdir -p $2; echo {} > $2/manifest.json;;\n"
            '--outputs-file) cp "$CALLS-outputs" $2; echo >> "$CALLS-deployments";;\nesac; shift; done\n',
        )
        cdk.chmod(0o700)
        merged = dict.fromkeys(("ApiUrl", "DocumentsBucketName", "KnowledgeBaseId", "DataSourceId"), "x")
        merged |= {f"{name}QueueUrl": "x" for name in ("Ingestion", "DeadLetter", "Status", "Conversion", "Receipts")}
        merged |= dict.fromkeys(("LargeConversionQueueUrl", "JobsQueueUrl", "RegistryTableName"), "x")
        write(Path(f"{self.calls}-outputs"), json.dumps({"RagStackApi": merged}))
        monkeypatch.setenv("CALLS", str(self.calls))
        monkeypatch.setattr(deployment, "_found_stacks", lambda _: self.stacks)
        monkeypatch.setattr(deployment, "_is_bootstrapped", lambda _: True)
        monkeypatch.setattr(deployment, "_is_saved", lambda _: self.can_save)
        monkeypatch.setattr(deployment, "_remove_other_assets", lambda *_: None)
        self.is_lost = False

    @property
    def stacks(self) -> dict[str, list[str]]:
        count = len(found.read_text()) if (found := Path(f"{self.calls}-deployments")).exists() else 0
        return {} if self.is_lost or not count else {"RagStackApi": ["id", "CREATE_COMPLETE", str(count)]}

    def start(self, **chosen: str) -> list[str]:
        """Deploy as a start does; return the commands that were run."""
        before = len(self.calls.read_text().split()) if self.calls.exists() else 0
        deployment.deploy(
            self.project,
            data=self.data,
            aws_endpoint=NOWHERE,
            bedrock_endpoint=NOWHERE,
            answers_endpoint=NOWHERE,
            knowledge_base=LocalKnowledgeBase("KB", "DS", KnowledgeBaseType.VECTOR),
            chosen=chosen,
            step=lambda _: nullcontext(),
        )
        return self.calls.read_text().split()[before:]


@pytest.fixture
def services(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Services:
    (data := tmp_path / "data").mkdir()
    return Services(project, data, monkeypatch)


def test_what_is_deployed_is_not_deployed_again(services: Services) -> None:
    assert services.start() == ["synth", "deploy"]
    assert services.start() == []
    assert services.start(search_k="5") == ["synth", "deploy"]
    assert services.start() == ["deploy"]
    assert services.start() == []


def test_changed_sources_are_deployed(services: Services) -> None:
    services.start()

    write(services.project.root / "lambdas/query/handler.py", "second")

    assert services.start() == ["synth", "deploy"]


def test_stacks_that_the_services_do_not_have_are_deployed(services: Services) -> None:
    """The data folder was deleted in part, or a kill has left an earlier state."""
    services.start()

    services.is_lost = True

    assert services.start() == ["deploy"]


def test_a_deployment_that_another_program_changed_is_deployed(services: Services) -> None:
    services.start()

    with Path(f"{services.calls}-deployments").open("a") as deployments:
        deployments.write("\n")

    assert services.start() == ["deploy"]


@pytest.mark.parametrize("name", ["deployed.json", "outputs.json"])
def test_a_deployment_without_a_record_is_deployed(services: Services, name: str) -> None:
    services.start()

    (services.data / name).unlink()

    assert services.start() == ["deploy"]


def test_a_deployment_that_failed_is_repeated(services: Services) -> None:
    services.start()
    failing = Path(f"{services.calls}-fails")
    failing.touch()

    with pytest.raises(StackError, match="failed"):
        services.start(search_k="5")
    failing.unlink()

    assert services.start(search_k="5") == ["synth", "deploy"]


def test_a_deployment_that_was_killed_is_repeated(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    services.start()
    with monkeypatch.context() as killed:
        killed.setattr(deployment.Deployment, "write", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            services.start(search_k="5")

    assert services.start(search_k="5") == ["deploy"]


def test_a_deployment_that_is_not_on_the_disk_is_not_relied_on(services: Services) -> None:
    services.can_save = False
    services.start()

    assert services.start() == ["deploy"]


def test_a_change_during_the_synthesis_is_seen_by_the_next_start(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = services.project.root / "app.py"
    with monkeypatch.context() as changing:
        changing.setattr(deployment, "_is_bootstrapped", lambda _: app.write_text("second") > 0)
        services.start()

    assert services.start() == ["synth", "deploy"]
    write(app, "first")
    assert services.start() == ["synth", "deploy"]


def test_a_deployment_that_fails_says_what_the_app_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment, "_is_bootstrapped", lambda _: True)
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
