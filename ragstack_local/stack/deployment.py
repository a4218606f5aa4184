"""The project's own CDK app, deployed with the real `cdk` command line."""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ragstack_local.connection import DEFAULT_PREFIX, LOCAL_REGION, Connection, local_environment
from ragstack_local.stack.errors import StackError
from ragstack_local.stack.knowledge_base import ACCOUNT, LocalKnowledgeBase
from ragstack_local.stack.processes import LOG_LINES
from ragstack_local.stack.project import Project

SIGN_OF_AN_ERROR: Final = ("rror", "ailed", "❌")


def deploy(
    project: Project, *, data: Path, aws_endpoint: str, bedrock_endpoint: str, knowledge_base: LocalKnowledgeBase
) -> Connection:
    """Bootstrap the local account and deploy all stacks into it.

    Raises:
        StackError: The command line failed; the message holds the end of its output.
    """
    context = {
        "target": "local",
        "knowledge_base": "existing",
        "knowledge_base_id": knowledge_base.knowledge_base_id,
        "data_source_id": knowledge_base.data_source_id,
        "bedrock_endpoint": bedrock_endpoint,
        "aws_endpoint": aws_endpoint,
    }
    outputs = data / "outputs.json"
    assembly = data / "cdk.out"
    env = local_environment(aws_endpoint, PATH=f"{project.tools}{os.pathsep}{os.environ['PATH']}")
    cdk = _Cdk(project, env, data / "logs")
    options = [part for name, value in context.items() for part in ("--context", f"{name}={value}")]
    with ThreadPoolExecutor(2) as threads:
        # Away from cdk.json, which would have the command line synthesize the app for nothing.
        bootstrap = threads.submit(
            cdk, "bootstrap", f"aws://{ACCOUNT}/{LOCAL_REGION}", folder=_empty(data / "bootstrap")
        )
        synth = threads.submit(cdk, "synth", "--quiet", "--output", str(assembly), *options)
    bootstrap.result()
    synth.result()
    cdk(
        *("deploy", "--all", "--app", str(assembly), "--outputs-file", str(outputs)),
        *("--require-approval", "never", "--method", "direct"),
    )
    return Connection.from_outputs(
        json.loads(outputs.read_text()),
        DEFAULT_PREFIX,
        aws_endpoint=aws_endpoint,
        bedrock_endpoint=bedrock_endpoint,
        process_id=os.getpid(),
    )


def _empty(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass(frozen=True)
class _Cdk:
    """Runs the command line, each command into a log of its own."""

    project: Project
    env: dict[str, str]
    logs: Path

    def __call__(self, command: str, *arguments: str, folder: Path | None = None) -> None:
        log = self.logs / f"cdk-{command}.log"
        done = subprocess.run(  # noqa: S603 - the commands are ours
            [str(self.project.cdk), command, *arguments],
            cwd=folder or self.project.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        log.write_text(done.stdout)
        if done.returncode:
            lines = done.stdout.splitlines()
            telling = [line for line in lines if any(sign in line for sign in SIGN_OF_AN_ERROR)] or lines
            end = "\n".join(telling[-LOG_LINES:])
            raise StackError(f"cdk {command} failed:\n{end}\n(all of it: {log})")
