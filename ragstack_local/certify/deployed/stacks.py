"""The deployment of the project's own stacks in an AWS account, under names of the run."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ragstack_common.access.callers import caller_from_arn
from ragstack_local.certify.check import NotTried
from ragstack_local.certify.deployed.removal import DEPLOYING, STACK, describe_stack
from ragstack_local.certify.site import Site
from ragstack_local.connection.connection import Connection, Project
from ragstack_local.errors import StackError
from ragstack_local.stack.processes import Child

PARTS: Final = ("Storage", "KnowledgeBase", "Ingestion", "Api")
"""The names of the stacks after the prefix, in the order of their creation."""

OPERATORS: Final = "operators"
READERS: Final = "readers"
"""The groups of people: these see everything, those nothing."""

LABEL: Final = "certify"
"""The access label of all documents, which nobody but operators sees."""

EVERY_MINUTES: Final = 5
"""How often the stacks reconcile, so that a run sees it happen."""

POLL_SECONDS: Final = 1.0


@dataclass(frozen=True)
class Attempt:
    """The end of an attempt to deploy the stacks.

    Attributes:
        code: The exit code of the command line.
        outputs: The outputs of the stacks by their names; empty if it failed.
    """

    code: int
    outputs: Mapping[str, Mapping[str, str]]


def deployable_project(cloudformation: Any) -> Project:
    """Return the project whose stacks can be deployed.

    Args:
        cloudformation: A client for the account and the Region.

    Raises:
        NotTried: There is no checkout or no command line of the CDK, or the Region is not bootstrapped.
    """
    try:
        project = Project.find()
        project.require_checkout()
        _ = project.cdk  # raises if it is not installed
    except StackError as error:
        raise NotTried(str(error)) from None
    bootstrap = describe_stack(cloudformation, "CDKToolkit")
    if bootstrap is None or not bootstrap["StackStatus"].endswith("_COMPLETE"):
        raise NotTried("the Region is not bootstrapped for the CDK: run `npx cdk bootstrap`, once for each Region")
    return project


def attempt(site: Site) -> Attempt:
    """The deployment."""
    project = deployable_project(site.client("cloudformation"))
    command: list[str | Path] = [project.cdk, "deploy", "--all", "--require-approval", "never"]
    folder = site.journal.path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    access, outputs = folder / "access.json", folder / "outputs.json"
    access.write_text(json.dumps(access_file(site, site.client("sts").get_caller_identity()["Arn"])))
    command += ["--outputs-file", outputs, "--output", folder / "cdk.out"]
    command += [part for name, value in context(site, access).items() for part in ("--context", f"{name}={value}")]
    for part in PARTS:
        with site.creating(STACK, site.stack_prefix + part):
            pass
    environment = {
        **os.environ,
        "AWS_REGION": site.region,
        "AWS_DEFAULT_REGION": site.region,
        "PATH": f"{project.tools}{os.pathsep}{os.environ['PATH']}",
    }
    with site.creating(DEPLOYING, str(folder)):
        child = Child.start("cdk deploy", command, environment, folder / "cdk-deploy.log", project.root)
        try:
            while child.process.poll() is None:
                site.pause(POLL_SECONDS)
        finally:
            child.stop()
    code = child.process.returncode
    site.removed(DEPLOYING, str(folder))
    return Attempt(code, json.loads(outputs.read_text()) if code == 0 else {})


def deploy(site: Site) -> Connection:
    """Deploy the stacks of the run, and return where they are.

    Raises:
        NotTried: They cannot be deployed, or the deployment failed.
    """
    made = site.shared(attempt)
    if made.code:
        raise NotTried("the stacks could not be deployed, as the check deployment.stacks says")
    return Connection.from_outputs(made.outputs, site.stack_prefix, deployed_to=site.region)


def context(site: Site, access: Path) -> dict[str, str]:
    """Return the context values of the deployment.

    Programs sign their requests, and people sign in, so that both ways are tried.
    """
    return {
        "prefix": site.stack_prefix,
        "auth": "iam,cognito",
        "access": str(access),
        "reconcile_schedule": f"rate({EVERY_MINUTES} minutes)",
        "tags": f"ragstack-certify={site.token}",
    }


def access_file(site: Site, arn: str) -> dict[str, Any]:
    """Return the access file of the deployment, whose operators are the caller with this ARN and a group of people."""
    operators = [f"group:{OPERATORS}", caller_from_arn(arn).name]
    return {
        "rights": {"read": [f"group:{READERS}", *operators], "write": operators, "operate": operators},
        "labels": {LABEL: {}},
        "prefixes": {f"{site.name()}/": {"default": LABEL, "writers": operators}},
    }
