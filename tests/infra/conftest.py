"""The stacks, synthesized once for each set of context values."""

import hashlib
import importlib.util
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest
from cfnlint.api import lint_by_config
from cfnlint.config import ManualArgs

ROOT = Path(__file__).resolve().parents[2]

EXISTING = {
    "knowledge_base": "existing",
    "knowledge_base_id": "ABCDEFGHIJ",
    "data_source_id": "KLMNOPQRST",
}
TUNED = {
    "retrieval_timeout_seconds": "8.5",
    "multislice_max_slices": "2",
    "filtered_score_boost": "1.5",
    "ingestion_batch_window_seconds": "0",
    "ingestion_calls_per_second": "20",
    "ingestion_seconds_per_call": "0.4",
    "ingestion_documents_per_call": "25",
    "ingestion_max_attempts": "4",
    "ingestion_max_receives": "3",
    "status_first_delay_seconds": "30",
    "status_give_up_seconds": "7200",
    "upload_max_bytes": "1000",
    "upload_seconds": "60",
    "event_bus_name": "documents",
    "api_logging": "with_account_role",
    "api_requests_per_second": "50",
    "alarm_email": "ops@example.com",
    "multi_corpus_metadata": "legal_us,legal_uk",
    "rerank": "none",
    "search_k": "15",
    "retriever_tool_collections": "ZYXWVUTSRQ",
    "reconcile_poll_seconds": "5",
    "reconcile_schedule": "off",
    "reconcile_settle_seconds": "0",
}
CHOSEN = {
    "alarm_topic": "arn:aws:sns:eu-central-1:123456789012:operations",
    "answer_timeout_seconds": "890",
    "api_logging": "on",
    "retrieval_timeout_seconds": "24",
    "web_adapter_layer": "arn:aws-cn:lambda:cn-north-1:123456789012:layer:Adapter:3",
}
ACCESS = ROOT / "samples" / "access.json"
EVERYTHING = {"auth": "cognito,iam", "access": str(ACCESS), "contextual_headers": "on"}
PEOPLE_ADDED = {
    "auth": "iam,oidc",
    "oidc_issuer": "https://login.example.com/",
    "oidc_audience": "ragstack,other",
    "access": str(ACCESS),
}
AT_THE_EDGE = {
    "auth": "cognito,iam",
    "access": str(ACCESS),
    "alarm_email": "ops@example.com",
    "api_certificate": "arn:aws:acm:eu-central-1:123456789012:certificate/12345678-1234-1234-1234-123456789012",
    "api_domain": "api.example.com",
    "api_logging": "on",
    "audit_reads": "true",
    "console_certificate": "arn:aws:acm:us-east-1:123456789012:certificate/12345678-1234-1234-1234-123456789012",
    "console_domain": "docs.example.com",
    "console_questions": "Who approves travel?; When is payday?",
    "email_sender": "no-reply@example.com",
    "mfa": "required",
    "monthly_budget": "250",
    "tags": "project=ragstack, cost center=a=b",
    "web_acls": (
        "arn:aws:wafv2:us-east-1:123456789012:global/webacl/console/12345678-1234-1234-1234-123456789012,"
        "arn:aws:wafv2:eu-central-1:123456789012:regional/webacl/api/12345678-1234-1234-1234-123456789012"
    ),
}
SNAPSHOTS = {"auth": "iam,cognito", "access": str(ACCESS), "snap_start": "on"}
LOCAL = {**EXISTING, "target": "local", "bedrock_endpoint": "http://127.0.0.1:9999"}


@dataclass(frozen=True)
class Assembly:
    """What a synth left behind."""

    folder: Path

    @cached_property
    def templates(self) -> dict[str, dict[str, Any]]:
        files = sorted(self.folder.glob("*.template.json"))
        return {file.name.removesuffix(".template.json"): json.loads(file.read_text()) for file in files}

    @property
    def violations(self) -> list[dict[str, Any]]:
        """The findings, without the warnings about what a deployer must know before the first deployment."""
        report = json.loads((self.folder / "validation-report.json").read_text())
        found = [violation for plugin in report["pluginReports"] for violation in plugin["violations"]]
        expected = {f"Annotation::ragstack:{name}" for name in ("access", "concurrency")}
        return [violation for violation in found if violation["ruleName"] not in expected]

    def resources(self, kind: str = "") -> dict[str, dict[str, Any]]:
        """Every resource of a type, or of any, by logical id."""
        return {
            name: resource
            for template in self.templates.values()
            for name, resource in template["Resources"].items()
            if kind in ("", resource["Type"])
        }

    def only(self, kind: str) -> dict[str, Any]:
        """The properties of the one resource of a type."""
        (resource,) = self.resources(kind).values()
        properties: dict[str, Any] = resource["Properties"]
        return properties

    def statements(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every statement of every policy that a template holds, with the resource it stands in."""
        for name, resource in self.resources().items():
            for document in _policy_documents(resource["Properties"]):
                for statement in document["Statement"]:
                    yield name, statement

    def functions(self) -> dict[str, dict[str, Any]]:
        """Every function of ``lambdas/`` by logical id, without those of custom resources."""
        return {
            name: function
            for name, function in self.resources("AWS::Lambda::Function").items()
            if "POWERTOOLS_SERVICE_NAME" in function["Properties"].get("Environment", {}).get("Variables", {})
        }

    def function(self, service: str) -> dict[str, Any]:
        """The properties of a function, by its folder."""
        for function in self.functions().values():
            properties: dict[str, Any] = function["Properties"]
            if properties["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"] == service:
                return properties
        raise LookupError(service)

    def rights(self, service: str) -> dict[str, str]:
        """The actions that a function is allowed except logging and tracing, with their resources."""
        return self.rights_of(self.function(service)["Role"]["Fn::GetAtt"][0])

    def rights_of(self, role: str) -> dict[str, str]:
        """What a role may do, by its logical id."""
        rights: dict[str, str] = {}
        policies = [
            each["Properties"]
            for each in self.resources("AWS::IAM::Policy").values()
            if {"Ref": role} in each["Properties"]["Roles"]
        ]
        policies += self.resources("AWS::IAM::Role")[role]["Properties"].get("Policies", [])
        for policy in policies:
            for statement in policy["PolicyDocument"]["Statement"]:
                for action in [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]:
                    if not action.startswith(("logs:", "xray:")):
                        on = json.dumps([statement["Resource"], statement.get("Condition", "")])
                        rights[action] = rights.get(action, "") + on
        return rights

    def inline_code(self, kind: str) -> str:
        """The code behind a custom resource."""
        function = self.only(f"Custom::{kind}")["ServiceToken"]["Fn::GetAtt"][0]
        code: str = self.resources("AWS::Lambda::Function")[function]["Properties"]["Code"]["ZipFile"]
        return code

    def environment(self, service: str) -> dict[str, str]:
        """A function's environment, with a word in place of what only the deployment knows."""
        variables = self.function(service)["Environment"]["Variables"]
        return {name: value if isinstance(value, str) else "resolved" for name, value in variables.items()}


def _policy_documents(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "Statement" in value:
            yield value
        else:
            for inner in value.values():
                yield from _policy_documents(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _policy_documents(inner)


BUILT_LAYERS = ("dependencies_layer", "answers_layer", "viewer_layer")
"""Context values of layers that a synthesis would build."""


@pytest.fixture(scope="session")
def stand_in_layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A layer that needs no package index."""
    path = tmp_path_factory.mktemp("layer") / "dependencies.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("python/dependency.py"), "")  # the same bytes in each run
    return path


@pytest.fixture(scope="session")
def node(tools: Path) -> Iterator[None]:
    """The node of this virtual environment, which the CDK starts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
        yield


@pytest.fixture(scope="session")
def synthesize(tmp_path_factory: pytest.TempPathFactory, stand_in_layer: Path, node: None) -> Callable[..., Assembly]:
    """Synthesize in this process, as ``cdk synth --context ...`` would; what did not change is kept in build/.

    Tests share what they read.
    """
    made = ROOT / "build" / "test-assemblies" / _sources_digest()
    for old in made.parent.glob("*"):
        if old != made:
            shutil.rmtree(old, ignore_errors=True)

    @cache
    def run(**context: str) -> Assembly:
        named = sorted((name, Path(value).name, _content(value)) for name, value in context.items())
        folder = made / hashlib.sha256(json.dumps(named).encode()).hexdigest()[:16]
        if not folder.exists():
            layers = dict.fromkeys(BUILT_LAYERS, str(stand_in_layer))
            made.mkdir(parents=True, exist_ok=True)
            part = folder.with_name(f"{folder.name}.{os.getpid()}")
            _synthesize({**layers, **context}, part, _console(tmp_path_factory.mktemp("console")))
            try:
                part.rename(folder)
            except OSError:  # another process was first
                shutil.rmtree(part)
        return Assembly(folder)

    return run


def _synthesize(context: dict[str, str], out: Path, console: Path) -> None:
    from aws_cdk import App  # noqa: PLC0415  importing it starts node

    specification = importlib.util.spec_from_file_location("cdk_app", ROOT / "app.py")
    assert specification is not None
    assert specification.loader is not None
    cdk_app = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(cdk_app)
    flags = json.loads((ROOT / "cdk.json").read_text())["context"]
    with pytest.MonkeyPatch.context() as patch:
        # To compile takes seconds, and changes nothing but the digests of assets: test_bytecode.py does it.
        patch.setattr("infra.bytecode._is_own", lambda _: False)
        patch.setattr("infra.bytecode._pyodide", lambda: None)
        patch.setattr("infra.options.CONSOLE_FILES", console)
        cdk_app.build(App(context={**flags, **context}, outdir=str(out))).synth()


def _console(folder: Path) -> Path:
    """A console that needs no build."""
    (folder / "assets").mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text("<!doctype html>")
    (folder / "assets" / "index-1.js").write_text("run()")
    return folder


def _sources_digest() -> str:
    """Identify all that an assembly is made of, apart from its context."""
    digest = hashlib.sha256(f"{ROOT} {sys.version}".encode())
    files = [
        Path(__file__),
        ROOT / "app.py",
        *ROOT.glob("cdk*.json"),
        ROOT / "requirements.txt",
        *ROOT.glob("requirements/*.txt"),
    ]
    for folder in ("infra", "lambdas", "ragstack_common"):
        files += [file for file in (ROOT / folder).rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    for file in sorted(files):
        digest.update(f"\0{file}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _content(value: str) -> str:
    """Read a value that is a file of its own in each run."""
    is_file = value.startswith("/") and Path(value).is_file() and Path(value).suffix != ".zip"
    return Path(value).read_text(encoding="utf-8") if is_file else "" if value.startswith("/") else value


@pytest.fixture(scope="session")
def lint() -> Callable[..., None]:
    """Run cfn-lint on templates, once for all that are equal: each takes about a second."""

    def run(*templates: Path) -> None:
        digests = {hashlib.sha256(template.read_bytes()).hexdigest(): template for template in templates}
        marks = {file.parents[1] / f"{digest[:16]}.passed-cfn-lint": file for digest, file in digests.items()}
        if new := [str(file) for mark, file in marks.items() if not mark.exists()]:
            # In this process: the command would load its rules again for each call.
            found = lint_by_config(ManualArgs(templates=new))
            assert [str(match) for match in found if match.rule.severity == "error"] == []
        for mark in marks:
            mark.touch()

    return run


@pytest.fixture(scope="session")
def aws(synthesize: Callable[..., Assembly]) -> Assembly:
    """The stacks as they are deployed to AWS by default."""
    return synthesize()


@pytest.fixture(scope="session")
def with_headers(synthesize: Callable[..., Assembly]) -> Assembly:
    """The same with contextual headers."""
    return synthesize(contextual_headers="on")


@pytest.fixture(scope="session")
def everything(synthesize: Callable[..., Assembly]) -> Assembly:
    """The stacks with every function and API."""
    return synthesize(**EVERYTHING)


@pytest.fixture(scope="session")
def edge(synthesize: Callable[..., Assembly]) -> Assembly:
    """The stacks with domains, web ACLs, a second factor, an audit and a budget."""
    return synthesize(**AT_THE_EDGE)


@pytest.fixture(scope="session")
def snapshots(synthesize: Callable[..., Assembly]) -> Assembly:
    """The stacks whose functions start from snapshots."""
    return synthesize(**SNAPSHOTS)


@pytest.fixture(scope="session")
def managed(synthesize: Callable[..., Assembly]) -> Assembly:
    """The stacks with a managed knowledge base."""
    return synthesize(knowledge_base="managed")


@pytest.fixture(scope="session")
def existing(synthesize: Callable[..., Assembly]) -> Assembly:
    """The stacks around a knowledge base that exists."""
    return synthesize(**EXISTING)


@pytest.fixture(scope="session")
def local(synthesize: Callable[..., Assembly]) -> Assembly:
    """The stacks as they are deployed into the local stack."""
    return synthesize(**LOCAL)


@pytest.fixture(scope="session")
def tuned(synthesize: Callable[..., Assembly], tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """The stacks of a deployer who has an opinion on everything, and a file of settings."""
    file = tmp_path_factory.mktemp("settings") / "settings.json"
    file.write_text('{"reranking_weights": {"vector": 1}, "cosine_share": 0.5}')
    return synthesize(**TUNED, settings=str(file))


@pytest.fixture(scope="session")
def chosen(synthesize: Callable[..., Assembly]) -> Assembly:
    """The stacks with other values where ``tuned`` has none, or another one."""
    return synthesize(**CHOSEN)


@pytest.fixture(scope="session")
def tools() -> Path:
    """The folder of this interpreter's commands."""
    return Path(sys.executable).parent
