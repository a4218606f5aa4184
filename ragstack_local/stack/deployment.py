"""The local knowledge base, and the project's CDK app deployed with the real `cdk` command line.

Synthesis and deployment take most of a first start. A digest of all inputs decides what has changed: stacks
are synthesized again only if no assembly has been made of these inputs, and deployed again only if CloudFormation does
not have them as the last deployment of these inputs has left them.
"""

import json
import os
import shutil
import sysconfig
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import urllib3
from botocore.config import Config
from botocore.exceptions import ClientError

from local_bedrock.creation import (
    ACCOUNT,
    MCP_TAGS,
    await_active,
    create_custom_connector,
    create_knowledge_base,
    create_managed_knowledge_base,
)
from ragstack_common.reading.ocr import rapidocr, tesseract
from ragstack_common.settings.names import MANAGED, OPENSEARCH_SERVERLESS
from ragstack_local.connection.connection import (
    DEFAULT_PREFIX,
    LOCAL_REGION,
    Connection,
    Project,
    local_client,
    local_environment,
)
from ragstack_local.errors import StackError
from ragstack_local.stack import checkpoints
from ragstack_local.stack.assembly import Assembly, Inputs
from ragstack_local.stack.processes import LOG_LINES, Child, held_interrupts

Step = Callable[[str], AbstractContextManager[Any]]
"""Shows a step by its name while it runs."""

BUCKET: Final = "ragstack-documents"
KNOWLEDGE_BASE: Final = "ragstack-local"

WITHOUT_RULES: Final = {"CDK_VALIDATION": "false"}
"""Loading AWS's rules for templates takes longer than synthesis, and nothing is deployed to AWS here.

Source: aws-cdk-lib, core/lib/private/synthesis-validation.
"""

OUTPUTS: Final = "outputs.json"

DEPLOYED: Final = "deployed.json"
"""What was deployed, written when it is on the disk."""


class KnowledgeBaseType(StrEnum):
    """The types of knowledge bases that the local stack can use. Source: bedrock-agent, shape KnowledgeBaseType."""

    VECTOR = "vector"
    MANAGED = "managed"


@dataclass(frozen=True)
class LocalKnowledgeBase:
    """The ids of the knowledge base and of its data source, ten alphanumeric characters each, and its type."""

    knowledge_base_id: str
    data_source_id: str
    kind: KnowledgeBaseType

    @property
    def vector_store(self) -> str:
        """The vector store that it declares."""
        return MANAGED if self.kind is KnowledgeBaseType.MANAGED else OPENSEARCH_SERVERLESS

    @classmethod
    def ensure(
        cls,
        bedrock_endpoint: str,
        kind: KnowledgeBaseType | None = None,
        name: str = KNOWLEDGE_BASE,
        prefix: str | None = None,
    ) -> "LocalKnowledgeBase":
        """Find the knowledge base of an earlier run, or create it.

        Args:
            bedrock_endpoint: The local Bedrock.
            kind: Its type; None for that of the earlier run, at first VECTOR.
            name: Name of the knowledge base and its data source.
            prefix: Prefix of the documents that a data source of type S3 reads; None reads the whole bucket.

        Raises:
            StackError: That of the earlier run has another type.
        """
        agent = local_client("bedrock-agent", bedrock_endpoint, Config(retries={"mode": "standard"}))
        pages = agent.get_paginator("list_knowledge_bases").paginate()
        found = _named([each for page in pages for each in page["knowledgeBaseSummaries"]], name)
        if found is None:
            create = create_managed_knowledge_base if kind is KnowledgeBaseType.MANAGED else create_knowledge_base
            knowledge_base_id = create(agent, name)
        else:
            knowledge_base_id = found["knowledgeBaseId"]
            await_active(agent, knowledge_base_id)
            kind = _kind_of_earlier(agent, knowledge_base_id, kind)
        if kind is KnowledgeBaseType.MANAGED:
            return cls(knowledge_base_id, _custom_connector(agent, knowledge_base_id, name), kind)
        source_id = _s3_source(agent, knowledge_base_id, name, prefix)
        return cls(knowledge_base_id, source_id, KnowledgeBaseType.VECTOR)

    @classmethod
    def ensure_tenants(
        cls, bedrock_endpoint: str, prefixes: Mapping[str, str], kind: KnowledgeBaseType | None = None
    ) -> dict[str, str]:
        """Find or create the knowledge base of each tenant; return their ids as the context value has them."""
        found = {
            name: cls.ensure(bedrock_endpoint, kind, f"{KNOWLEDGE_BASE}-{name}", each)
            for name, each in prefixes.items()
        }
        return {name: f"{own.knowledge_base_id}/{own.data_source_id}" for name, own in found.items()}


def deployed_type(data: Path) -> KnowledgeBaseType | None:
    """Return the type of the knowledge base of the last deployment in a data folder, which may be lost with its index.

    Returns:
        None if nothing was deployed.
    """
    try:
        store = json.loads((data / OUTPUTS).read_text())[f"{DEFAULT_PREFIX}Ingestion"]["VectorStore"]
    except (OSError, ValueError, KeyError):
        return None
    return KnowledgeBaseType.MANAGED if store == MANAGED else KnowledgeBaseType.VECTOR


def _kind_of_earlier(agent: Any, knowledge_base_id: str, kind: KnowledgeBaseType | None) -> KnowledgeBaseType:
    """Return the type of the knowledge base of an earlier run; raises StackError if it is not the chosen one."""
    described = agent.get_knowledge_base(knowledgeBaseId=knowledge_base_id)["knowledgeBase"]
    agent.tag_resource(resourceArn=described["knowledgeBaseArn"], tags=MCP_TAGS)  # early versions set no tags
    found = KnowledgeBaseType[described["knowledgeBaseConfiguration"]["type"]]
    if kind not in (None, found):
        raise StackError(
            f"The data folder has a knowledge base of type {found}: leave --knowledge-base out, or choose another"
            " --data-dir"
        )
    return found


def _s3_source(agent: Any, knowledge_base_id: str, name: str, prefix: str | None) -> str:
    source = _named(agent.list_data_sources(knowledgeBaseId=knowledge_base_id)["dataSourceSummaries"], name)
    read: Any = {"bucketArn": f"arn:aws:s3:::{BUCKET}"}
    if prefix is not None:
        read["inclusionPrefixes"] = [prefix]
    described: Any = {"name": name, "dataSourceConfiguration": {"type": "S3", "s3Configuration": read}}
    if source is None:
        source = agent.create_data_source(knowledgeBaseId=knowledge_base_id, **described)["dataSource"]
    elif prefix is not None:  # another one may have been in the access file
        ids = {"knowledgeBaseId": knowledge_base_id, "dataSourceId": source["dataSourceId"]}
        agent.update_data_source(**ids, **described)
    return str(source["dataSourceId"])


def _custom_connector(agent: Any, knowledge_base_id: str, name: str) -> str:
    source = _named(agent.list_data_sources(knowledgeBaseId=knowledge_base_id)["dataSourceSummaries"], name)
    return str(source["dataSourceId"]) if source else create_custom_connector(agent, knowledge_base_id, name)


def _named(summaries: list[Any], name: str) -> Any | None:
    return next((summary for summary in summaries if summary["name"] == name), None)


@dataclass(frozen=True)
class Deployment:
    """A deployment that succeeded and is on the disk.

    Attributes:
        inputs: The digest of its inputs.
        stacks: What CloudFormation said about each stack then, by name: id, status, and time of the last change.
    """

    inputs: str
    stacks: Mapping[str, Sequence[str]]

    @classmethod
    def read(cls, data: Path) -> "Deployment | None":
        """Return the last deployment in a data folder; None if there is none, or it was interrupted."""
        try:
            return cls(**json.loads((data / DEPLOYED).read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, data: Path) -> None:
        """Record the deployment."""
        new = data / f"{DEPLOYED}.new"
        new.write_text(json.dumps(asdict(self)))
        new.replace(data / DEPLOYED)


def _found_stacks(aws_endpoint: str) -> dict[str, list[str]]:
    """Ask CloudFormation for the stacks of the app, as a deployment records them."""
    cloudformation = local_client("cloudformation", aws_endpoint, Config(retries={"mode": "standard"}))
    found = {}
    for stack in cloudformation.describe_stacks()["Stacks"]:
        name, changed_at = str(stack["StackName"]), stack.get("LastUpdatedTime") or stack["CreationTime"]
        if name.startswith(DEFAULT_PREFIX):
            found[name] = [stack["StackId"], stack["StackStatus"], changed_at.isoformat()]
    return found


_ENGINES: Final = (("rapidocr", rapidocr.is_installed), ("tesseract", tesseract.is_installed))


def deploy(
    project: Project,
    *,
    data: Path,
    aws_endpoint: str,
    bedrock_endpoint: str,
    answers_endpoint: str,
    knowledge_base: LocalKnowledgeBase,
    chosen: Mapping[str, str],
    step: Step,
) -> Connection:
    """Bootstrap the local account and deploy all stacks into it, and show each step.

    Raises:
        StackError: The command line failed; the message holds the end of its output.
    """
    context = {
        "vector_store": knowledge_base.vector_store,
        "receipt_wait_seconds": "0",  # it finds what it has accepted
        "receipt_lookups_per_second": "1000",  # and has no quota
        **_recognition(),
        **chosen,
        "target": "local",
        "knowledge_base": "existing",
        "knowledge_base_id": knowledge_base.knowledge_base_id,
        "data_source_id": knowledge_base.data_source_id,
        "bedrock_endpoint": bedrock_endpoint,
        "aws_endpoint": aws_endpoint,
        "answers_endpoint": answers_endpoint,
    }
    outputs = data / OUTPUTS
    inputs = Inputs.read(project, context)
    last = Deployment.read(data)
    is_unchanged = last is not None and last.inputs == inputs.digest and outputs.is_file()
    if not (is_unchanged and last is not None and last.stacks == _found_stacks(aws_endpoint)):
        (data / DEPLOYED).unlink(missing_ok=True)
        shutil.rmtree(data / "cdk.out", ignore_errors=True)  # of earlier versions
        env = local_environment(aws_endpoint, PATH=f"{project.tools}{os.pathsep}{os.environ['PATH']}", **WITHOUT_RULES)
        cdk = _Cdk(project, env, data / "logs")
        assembly = Assembly.find(project, inputs)
        is_synthesized = assembly.is_synthesized
        with step(
            "Preparing the deployment of templates that were synthesized before"
            if is_synthesized
            else "Synthesizing the templates, because this is the first start or something has changed"
        ):
            made = None if is_synthesized else inputs.for_synthesis.context
            _prepare(cdk, assembly, made, data / "bootstrap", aws_endpoint)
        bound = data / "assembly"
        assembly.bind(inputs.bound_later, bound)
        files = ("--app", str(bound), "--outputs-file", str(outputs))
        options = ("--require-approval", "never", "--method", "direct")
        with (
            step("Deploying storage, ingestion and API"),
            cdk.running("deploy", "--all", *files, *options) as deploying,
        ):
            cdk.finish(deploying)
        _remove_other_assets(aws_endpoint, Assembly(bound).object_keys)
        shutil.rmtree(bound)
        if Inputs.read(project, context) != inputs:  # something was changed during the synthesis
            assembly.remove()
        elif _is_saved(aws_endpoint):
            Deployment(inputs.digest, _found_stacks(aws_endpoint)).write(data)
    return Connection.from_outputs(
        json.loads(outputs.read_text()),
        DEFAULT_PREFIX,
        aws_endpoint=aws_endpoint,
        bedrock_endpoint=bedrock_endpoint,
        answers_url=answers_endpoint,
        process_id=os.getpid(),
        data=str(data),
    )


def installed_recognition() -> str | None:
    """Return what recognizes text in pictures on this machine; None if nothing is installed."""
    return "+".join(name for name, is_installed in _ENGINES if is_installed()) or None


def _recognition() -> dict[str, str]:
    """Return the context values for the recognition of text in pictures, if it is installed."""
    installed = installed_recognition()
    # The functions have the packages of their layers alone.
    return {} if installed is None else {"recognition": installed, "reader_path": sysconfig.get_path("platlib")}


def answers_environment(data: Path, aws_endpoint: str) -> dict[str, str]:
    """Return the environment of the deployed function ``answers``, for a process that does its work."""
    outputs = json.loads((data / OUTPUTS).read_text())[f"{DEFAULT_PREFIX}Api"]
    lambda_ = local_client("lambda", aws_endpoint, Config(retries={"mode": "standard"}))
    function = lambda_.get_function_configuration(FunctionName=outputs["AnswersFunctionName"])
    return local_environment(aws_endpoint, **function["Environment"]["Variables"])


def _prepare(
    cdk: "_Cdk", assembly: Assembly, context: Mapping[str, str] | None, elsewhere: Path, aws_endpoint: str
) -> None:
    """Bootstrap the account and synthesize the stacks in parallel, each only if needed.

    Args:
        cdk: The command line.
        assembly: Where the stacks are synthesized.
        context: The context values of the synthesis; None if it is not needed.
        elsewhere: A folder without an app.
        aws_endpoint: MiniStack.
    """
    with ExitStack() as running:
        commands = []
        if context is not None:
            folder = running.enter_context(assembly.synthesized())
            options = [part for name, value in context.items() for part in ("--context", f"{name}={value}")]
            # Assets stay where they are built, for all data folders.
            synth = cdk.running("synth", "--quiet", "--no-staging", "--output", str(folder), *options)
            commands.append(running.enter_context(synth))
        if not _is_bootstrapped(aws_endpoint):
            # Outside the checkout, because cdk.json there makes `cdk bootstrap` synthesize the app.
            elsewhere.mkdir(parents=True, exist_ok=True)
            account = f"aws://{ACCOUNT}/{LOCAL_REGION}"
            commands.append(running.enter_context(cdk.running("bootstrap", account, folder=elsewhere)))
        for command in commands:
            cdk.finish(command)


def _remove_other_assets(aws_endpoint: str, keys: Collection[str]) -> None:
    """Remove the assets of earlier deployments: functions and layers have copies, and builds have the newest."""
    s3 = local_client("s3", aws_endpoint, Config(retries={"mode": "standard"}))
    bucket = f"cdk-hnb659fds-assets-{ACCOUNT}-{LOCAL_REGION}"  # as the templates name it
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
        for version in page.get("Versions", []):
            if version["Key"] not in keys:
                s3.delete_object(Bucket=bucket, Key=version["Key"], VersionId=version["VersionId"])


def _is_saved(aws_endpoint: str) -> bool:
    """Have MiniStack write a checkpoint; return whether it did."""
    answer = urllib3.request("PUT", f"{aws_endpoint}{checkpoints.ROUTE}", timeout=60.0, retries=False)
    return answer.status == HTTPStatus.NO_CONTENT


def _is_bootstrapped(aws_endpoint: str) -> bool:
    cloudformation = local_client("cloudformation", aws_endpoint, Config(retries={"mode": "standard"}))
    try:
        # Source: CDK developer guide, "AWS CDK bootstrapping".
        (stack,) = cloudformation.describe_stacks(StackName="CDKToolkit")["Stacks"]
    except ClientError:
        return False
    return str(stack["StackStatus"]) in ("CREATE_COMPLETE", "UPDATE_COMPLETE")


@dataclass(frozen=True)
class _Cdk:
    """Runs the command line, each command with its own log."""

    project: Project
    env: dict[str, str] = field(repr=False)
    logs: Path

    @contextmanager
    def running(self, command: str, *arguments: str, folder: Path | None = None) -> Iterator[Child]:
        """Start a command; end it with the context at the latest."""
        log = self.logs / f"cdk-{command}.log"
        line: list[str | Path] = [self.project.cdk, command, *arguments]
        with ExitStack() as cleanup:
            with held_interrupts():
                child = Child.start(f"cdk {command}", line, self.env, log, folder or self.project.root)
                cleanup.callback(child.stop)
            yield child

    def finish(self, child: Child) -> None:
        if child.process.wait():
            lines = child.log.read_text(errors="replace").splitlines()
            relevant = [line for line in lines if any(mark in line for mark in ("rror", "ailed", "❌"))]
            shown = relevant if relevant and len(lines) > LOG_LINES else lines
            end = "\n".join(shown[-LOG_LINES:])
            raise StackError(f"{child.name} failed:\n{end}\n(full log: {child.log})")
