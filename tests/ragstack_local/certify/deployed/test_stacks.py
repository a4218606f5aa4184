"""The deployment of the stacks, and their removal."""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ragstack_common.access.callers import Right
from ragstack_common.access.policy import read_policy
from ragstack_local.certify.check import NotTried, Verdict
from ragstack_local.certify.deployed import removal, rights, stacks
from ragstack_local.certify.deployed.checks import CHECKS
from ragstack_local.certify.journal import Resource
from ragstack_local.certify.removal import remove_all
from ragstack_local.certify.runner import run_check
from ragstack_local.certify.site import Site
from ragstack_local.connection.connection import Project
from tests.ragstack_local.certify.deployed.account import Account, in_turn
from tests.ragstack_local.certify.deployed.conftest import PREFIX, TOKEN
from tests.ragstack_local.certify.deployed.test_aws_checks import NOW, stack
from tests.ragstack_local.support import OUTPUTS
from tests.support.aws_service import Fault

BY_NAME = {check.name: check for check in CHECKS}
ROOT = Path(__file__).parents[4]
ARN = "arn:aws:sts::123456789012:assumed-role/Operator/me"
ABSENT = Fault("ValidationError", "Stack with id a does not exist")
RENAMED = {name.replace("RagStack", PREFIX): values for name, values in OUTPUTS.items()}

CDK = """\
#!{python}
import json, sys, time
arguments = sys.argv[1:]
given = lambda name: arguments[arguments.index(name) + 1]
with open({notes!r}, "w") as notes:
    json.dump(arguments, notes)
time.sleep({seconds})
with open(given("--outputs-file"), "w") as outputs:
    json.dump({outputs!r}, outputs)
sys.exit({code})
"""


@pytest.fixture
def cdk(account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Install a command line that notes its arguments, and deploys nothing."""
    root = tmp_path / "checkout"
    program = root / "node_modules" / ".bin" / "cdk"
    program.parent.mkdir(parents=True)
    (root / "cdk.json").write_text("{}")
    monkeypatch.setattr(Project, "find", classmethod(lambda cls: cls(root, tmp_path)))
    account.replies |= {
        "cloudformation.DescribeStacks": stack("UPDATE_COMPLETE"),
        "sts.GetCallerIdentity": {"Arn": ARN, "Account": "123456789012", "UserId": "A"},
    }

    def install(*, code: int = 0, seconds: float = 0) -> Path:
        notes = tmp_path / "arguments.json"
        program.write_text(
            CDK.format(python=sys.executable, notes=str(notes), outputs=RENAMED, code=code, seconds=seconds)
        )
        program.chmod(0o755)
        return notes

    return install


def test_the_stacks_are_deployed_under_names_of_the_run(undeployed: Site, cdk: Callable[..., Path]) -> None:
    notes = cdk()

    connection = stacks.deploy(undeployed)

    arguments = json.loads(notes.read_text())
    assert arguments[:2] == ["deploy", "--all"]
    assert f"prefix={PREFIX}" in arguments
    assert connection.bucket == "documents"
    assert [each.name for each in undeployed.journal.remaining()] == [
        f"{PREFIX}{part}" for part in ("Api", "Ingestion", "KnowledgeBase", "Storage")
    ]


def test_the_caller_and_a_group_operate_and_readers_see_nothing(undeployed: Site, tmp_path: Path) -> None:
    file = tmp_path / "access.json"
    file.write_text(json.dumps(stacks.access_file(undeployed, ARN)))

    policy = read_policy(file)

    assert policy.rights[Right.OPERATE] == ("group:operators", "role:arn:aws:iam::123456789012:role/Operator")
    assert policy.rights[Right.READ][0] == "group:readers"
    assert policy.labels["certify"].allow == ()
    assert policy.prefixes[f"ragstack-certify-{TOKEN}/"].default == "certify"


def test_a_region_without_bootstrap_is_not_tried(undeployed: Site, account: Account, cdk: Callable[..., Path]) -> None:
    notes = cdk()
    account.replies["cloudformation.DescribeStacks"] = ABSENT

    with pytest.raises(NotTried, match="cdk bootstrap"):
        undeployed.shared(stacks.attempt)

    assert not notes.exists()
    assert undeployed.journal.remaining() == []


def test_the_type_of_what_cannot_be_created_is_reported(
    undeployed: Site, account: Account, cdk: Callable[..., Path]
) -> None:
    cdk(code=1)
    account.replies["cloudformation.DescribeStacks"] = lambda given: stack(
        "ROLLBACK_COMPLETE" if given["StackName"].endswith("Api") else "CREATE_COMPLETE"
    )
    events = [
        {
            "ResourceType": kind,
            "ResourceStatus": status,
            "StackId": "a",
            "EventId": "b",
            "StackName": "c",
            "Timestamp": NOW,
        }
        for kind, status in (("AWS::Cognito::UserPool", "CREATE_COMPLETE"), ("AWS::Lambda::Function", "CREATE_FAILED"))
    ]
    account.replies["cloudformation.DescribeStackEvents"] = {"StackEvents": events}

    outcome = run_check(undeployed, BY_NAME["deployment.stacks"])
    others = run_check(undeployed, BY_NAME["api.health"])

    assert (outcome.verdict, outcome.observed) == (
        Verdict.DIFFERS,
        {"Api": {"status": "ROLLBACK_COMPLETE", "failed": ["AWS::Lambda::Function"]}},
    )
    assert others.verdict is Verdict.NOT_TRIED
    assert "deployment.stacks" in others.reason


def test_stacks_that_deploy_are_complete(undeployed: Site, account: Account, cdk: Callable[..., Path]) -> None:
    cdk()
    account.replies["cloudformation.DescribeStacks"] = stack("CREATE_COMPLETE")

    assert run_check(undeployed, BY_NAME["deployment.stacks"]).verdict is Verdict.MATCHES


def test_an_interrupt_ends_the_command_line(
    undeployed: Site, cdk: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cdk(seconds=60)

    def interrupted(seconds: float) -> None:
        raise NotTried("the run was interrupted")

    monkeypatch.setattr(undeployed, "pause", interrupted)
    start = time.monotonic()

    with pytest.raises(NotTried, match="interrupted"):
        undeployed.shared(stacks.attempt)

    assert time.monotonic() - start < 30
    kinds = [each.kind for each in undeployed.journal.remaining()]
    assert kinds == [removal.DEPLOYING, *[removal.STACK] * 4]


KEPT = {
    "Documents": ("AWS::S3::Bucket", "documents"),
    "Table": ("AWS::DynamoDB::Table", "registry"),
    "Pool": ("AWS::Cognito::UserPool", "eu-west-1_abcdefghi"),
    "Vectors": ("AWS::S3Vectors::VectorBucket", "arn:aws:s3vectors:eu-west-1:123456789012:bucket/vectors"),
    "Index": ("AWS::S3Vectors::Index", "arn:aws:s3vectors:eu-west-1:123456789012:bucket/vectors/index/index"),
    "Audit": ("AWS::Logs::LogGroup", "audit"),
}


def summaries(status: str) -> list[dict[str, Any]]:
    common = {"LastUpdatedTimestamp": NOW, "ResourceStatus": status}
    return [
        {"LogicalResourceId": logical, "ResourceType": kind, "PhysicalResourceId": physical, **common}
        for logical, (kind, physical) in KEPT.items()
    ]


@pytest.fixture
def left(account: Account) -> Account:
    """A stack that exists, is then deleted, and keeps resources."""

    def found(name: str) -> Mapping[str, Any]:
        return {"StackName": name, "StackId": f"id-of-{name}", "CreationTime": NOW, "StackStatus": "DELETE_COMPLETE"}

    name = f"{PREFIX}Storage"
    there = {**stack("CREATE_COMPLETE")["Stacks"][0], "StackName": name, "StackId": f"id-of-{name}"}
    account.replies |= {
        "cloudformation.DescribeStacks": in_turn(
            {"Stacks": [there]}, {"Stacks": [{**there, "StackStatus": "DELETE_COMPLETE"}]}
        ),
        "cloudformation.DeleteStack": {},
        "cloudformation.ListStacks": {"StackSummaries": [found("RagStackStorage"), found(name)]},
        "cloudformation.ListStackResources": {"StackResourceSummaries": summaries("DELETE_SKIPPED")},
        "logs.DescribeLogGroups": {"logGroups": []},
        "logs.DeleteLogGroup": {},
        "s3.ListObjectVersions": {"Versions": [{"Key": "a.md", "VersionId": "1"}]},
        "s3.DeleteObjects": {},
        "s3.DeleteBucket": {},
        "dynamodb.DescribeTable": {"Table": {"DeletionProtectionEnabled": True}},
        "dynamodb.UpdateTable": {},
        "dynamodb.DeleteTable": {},
        "cognito-idp.DescribeUserPool": {
            "UserPool": {"AutoVerifiedAttributes": ["email"], "AdminCreateUserConfig": {"UnusedAccountValidityDays": 3}}
        },
        "cognito-idp.UpdateUserPool": {},
        "cognito-idp.DeleteUserPool": {},
        "s3vectors.DeleteIndex": {},
        "s3vectors.DeleteVectorBucket": {},
    }
    return account


def remove_stack(site: Site) -> list[Any]:
    name = f"{PREFIX}Storage"
    with site.creating(removal.STACK, name):
        pass
    return remove_all(site.journal, removal.KINDS, site.client, wait_seconds=0.0)


def test_a_stack_is_deleted_with_all_that_it_keeps(undeployed: Site, left: Account) -> None:
    assert remove_stack(undeployed) == []

    deletions = [name for name, _ in left.called if ".Delete" in name or ".Update" in name]
    assert deletions == [
        "cloudformation.DeleteStack",
        "s3.DeleteObjects",
        "s3.DeleteBucket",
        "dynamodb.UpdateTable",
        "dynamodb.DeleteTable",
        "cognito-idp.UpdateUserPool",
        "cognito-idp.DeleteUserPool",
        "s3vectors.DeleteIndex",
        "s3vectors.DeleteVectorBucket",
        "logs.DeleteLogGroup",
    ]
    asked = {each["StackName"] for each in left.asked("cloudformation.ListStackResources")}
    assert asked == {f"id-of-{PREFIX}Storage"}


def test_resources_that_cloudformation_deleted_are_left_alone(undeployed: Site, left: Account) -> None:
    left.replies["cloudformation.ListStackResources"] = {"StackResourceSummaries": summaries("DELETE_COMPLETE")}

    assert remove_stack(undeployed) == []

    assert [name for name, _ in left.called if ".Delete" in name] == ["cloudformation.DeleteStack"]


def test_a_removal_that_was_interrupted_goes_on(undeployed: Site, left: Account) -> None:
    """The stack is gone, and a part of what it kept."""
    left.replies |= {
        "cloudformation.DescribeStacks": ABSENT,
        "s3.ListObjectVersions": Fault("NoSuchBucket", status=404),
        "dynamodb.DescribeTable": Fault("ResourceNotFoundException"),
        "cognito-idp.DescribeUserPool": Fault("ResourceNotFoundException"),
    }

    assert remove_stack(undeployed) == []

    assert left.asked("s3vectors.DeleteVectorBucket")


def test_a_stack_that_cannot_be_deleted_is_reported(
    undeployed: Site, left: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragstack_local.certify.removal.ATTEMPTS", 2)
    failed = {**stack("DELETE_FAILED")["Stacks"][0], "StackId": "a"}
    left.replies["cloudformation.DescribeStacks"] = {"Stacks": [failed]}

    (((resource, reason)),) = remove_stack(undeployed)

    assert resource == Resource(removal.STACK, f"{PREFIX}Storage")
    assert "Waiter" in reason


def test_what_cloudformation_cannot_delete_is_removed_without_it(undeployed: Site, left: Account) -> None:
    there = left.replies["cloudformation.DescribeStacks"]({})["Stacks"][0]
    left.replies["cloudformation.DescribeStacks"] = in_turn(
        {"Stacks": [{**there, "StackStatus": "DELETE_FAILED"}]},
        {"Stacks": [{**there, "StackStatus": "DELETE_COMPLETE"}]},
    )
    other = {**summaries("DELETE_FAILED")[0], "LogicalResourceId": "Function", "ResourceType": "AWS::Lambda::Function"}
    left.replies["cloudformation.ListStackResources"] = {
        "StackResourceSummaries": [summaries("DELETE_FAILED")[0], other]
    }

    assert remove_stack(undeployed) == []

    (asked,) = left.asked("cloudformation.DeleteStack")
    assert asked["RetainResources"] == ["Documents"]


def test_a_process_that_still_deploys_is_ended(undeployed: Site, cdk: Callable[..., Path], tmp_path: Path) -> None:
    from ragstack_local.stack.processes import Child  # noqa: PLC0415

    folder = tmp_path / "run"
    child = Child.start(
        "cdk", [sys.executable, "-c", "import time; time.sleep(60)"], dict(os.environ), folder / "cdk.log"
    )

    assert removal.KINDS[removal.DEPLOYING](undeployed.client, Resource(removal.DEPLOYING, str(folder)))

    assert child.process.wait(10) != 0


def test_the_policy_in_the_documentation_is_that_of_the_checks() -> None:
    """The account of these tests refuses calls that it does not name."""
    assert json.loads((ROOT / "docs" / "certificates" / "stacks-policy.json").read_text()) == rights.policy()


def test_the_policy_is_short_enough_for_iam() -> None:
    assert len(json.dumps(rights.policy(), separators=(",", ":"))) < 6144
