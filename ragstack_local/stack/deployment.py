"""The project's own CDK app, deployed with the real `cdk` command line."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from botocore.config import Config
from botocore.exceptions import ClientError

from local_bedrock.creation import ACCOUNT
from ragstack_common.config import OPENSEARCH_SERVERLESS
from ragstack_local.connection import DEFAULT_PREFIX, LOCAL_REGION, Connection, local_client, local_environment
from ragstack_local.stack import interrupts
from ragstack_local.stack.errors import StackError
from ragstack_local.stack.knowledge_base import LocalKnowledgeBase
from ragstack_local.stack.processes import LOG_LINES, Child
from ragstack_local.stack.project import Project
from ragstack_local.stack.synthesis import Assembly

SIGN_OF_AN_ERROR: Final = ("rror", "ailed", "❌")
BOOTSTRAP_STACK: Final = "CDKToolkit"
"""Source: CDK developer guide, "AWS CDK bootstrapping"."""
WITHOUT_RULES: Final = {"CDK_VALIDATION": "false"}
"""AWS's rules for templates take longer to load than the stacks take to synthesize, and nothing goes to AWS here.

Source: aws-cdk-lib, core/lib/private/synthesis-validation.
"""


def deploy(
    project: Project,
    *,
    data: Path,
    aws_endpoint: str,
    bedrock_endpoint: str,
    knowledge_base: LocalKnowledgeBase,
    chosen: Mapping[str, str],
) -> Connection:
    """Bootstrap the local account and deploy all stacks into it.

    Args:
        project: The checkout.
        data: Folder of what the command line writes.
        aws_endpoint: Where the stacks go.
        bedrock_endpoint: What the functions call.
        knowledge_base: What they search.
        chosen: More context values, as ``cdk --context`` takes them.

    Raises:
        StackError: The command line failed; the message holds the end of its output.
    """
    context = {
        "vector_store": OPENSEARCH_SERVERLESS,  # which the local knowledge base declares itself to be on
        **chosen,
        "target": "local",
        "knowledge_base": "existing",
        "knowledge_base_id": knowledge_base.knowledge_base_id,
        "data_source_id": knowledge_base.data_source_id,
        "bedrock_endpoint": bedrock_endpoint,
        "aws_endpoint": aws_endpoint,
    }
    outputs = data / "outputs.json"
    assembly = Assembly.of(project, data / "cdk.out", context)
    env = local_environment(aws_endpoint, PATH=f"{project.tools}{os.pathsep}{os.environ['PATH']}", **WITHOUT_RULES)
    cdk = _Cdk(project, env, data / "logs")
    where = ("--app", str(assembly.path), "--outputs-file", str(outputs))
    with assembly.deployed():
        _prepare(cdk, assembly, context, _empty(data / "bootstrap"), aws_endpoint)
        with cdk.running("deploy", "--all", *where, "--require-approval", "never", "--method", "direct") as deployment:
            cdk.finish(deployment)
    return Connection.from_outputs(
        json.loads(outputs.read_text()),
        DEFAULT_PREFIX,
        aws_endpoint=aws_endpoint,
        bedrock_endpoint=bedrock_endpoint,
        process_id=os.getpid(),
    )


def _prepare(cdk: "_Cdk", assembly: Assembly, context: Mapping[str, str], elsewhere: Path, aws_endpoint: str) -> None:
    """Bootstrap the account and synthesize the stacks, side by side, each only where that is not done yet."""
    options = [part for name, value in context.items() for part in ("--context", f"{name}={value}")]
    with ExitStack() as running:
        commands = []
        if not (assembly.is_current and _is_bootstrapped(aws_endpoint)):
            # Away from cdk.json, which would have the command line synthesize the app for nothing.
            account = f"aws://{ACCOUNT}/{LOCAL_REGION}"
            commands.append(running.enter_context(cdk.running("bootstrap", account, folder=elsewhere)))
        if not assembly.is_current:
            synth = cdk.running("synth", "--quiet", "--output", str(assembly.path), *options)
            # First, because what is wrong is mostly wrong there.
            commands.insert(0, running.enter_context(synth))
        for command in commands:
            cdk.finish(command)


def _is_bootstrapped(aws_endpoint: str) -> bool:
    cloudformation = local_client("cloudformation", aws_endpoint, Config(retries={"mode": "standard"}))
    try:
        (stack,) = cloudformation.describe_stacks(StackName=BOOTSTRAP_STACK)["Stacks"]
    except ClientError:
        return False
    return str(stack["StackStatus"]) in ("CREATE_COMPLETE", "UPDATE_COMPLETE")


def _empty(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass(frozen=True)
class _Cdk:
    """Runs the command line, each command into a log of its own."""

    project: Project
    env: dict[str, str]
    logs: Path

    @contextmanager
    def running(self, command: str, *arguments: str, folder: Path | None = None) -> Iterator[Child]:
        """Start a command that ends with the context at the latest."""
        log = self.logs / f"cdk-{command}.log"
        line: list[str | Path] = [self.project.cdk, command, *arguments]
        with ExitStack() as cleanup:
            with interrupts.held():
                child = Child.start(f"cdk {command}", line, self.env, log, folder or self.project.root)
                cleanup.callback(child.stop)
            yield child

    def finish(self, child: Child) -> None:
        if child.process.wait():
            lines = child.log.read_text(errors="replace").splitlines()
            telling = [line for line in lines if any(sign in line for sign in SIGN_OF_AN_ERROR)] or lines
            end = "\n".join(telling[-LOG_LINES:])
            raise StackError(f"{child.name} failed:\n{end}\n(all of it: {child.log})")
