"""Checks of CloudFormation and IAM: how the templates deploy, and how resources change in place."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from ragstack_common.settings.names import CONNECTOR_SOURCE, CUSTOM_CONNECTOR
from ragstack_local.certify import fixtures
from ragstack_local.certify.check import Json, Source, Topic
from ragstack_local.certify.deployed import deployment, stacks
from ragstack_local.certify.deployed.removal import STACK, describe_stack
from ragstack_local.certify.removal import KNOWLEDGE_BASE, ROLE
from ragstack_local.certify.site import Site, error_code

DEPLOYMENT: Final = Topic("deployment", "all stacks", "")
POLICIES: Final = Topic("policies", "tenants (infra/policy_sizes.py)", "")
CHANGES: Final = Topic("changes", "upgrades (docs/OPERATIONS.md)", "")

NO_TEMPLATES: Final = "the local CloudFormation lacks resources of these templates"
NO_CHANGES: Final = "the local CloudFormation replaces no resource"

IN_PLACE: Final = {"changed": "UPDATE_COMPLETE", "resource": "the same"}

SMALL_SECONDS: Final = 600.0
"""For a stack of two resources."""

MAX_INLINE_CHARACTERS: Final = 10_240
"""Source: IAM quotas, all inline policies of a role, without white space."""

LONG_NAME: Final = 500
"""Characters of a name of an object, of at most 1,024."""

ASSUMED_BY_NOBODY: Final = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Deny", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"},
    ],
}


@DEPLOYMENT.check("stacks", "CloudFormation deploys all stacks of the project", Source.MODEL, "complete")
def _stacks(site: Site) -> Json:
    """Describe each stack; of one that failed, the types of the resources that could not be created."""
    if site.is_aws:
        site.shared(stacks.attempt)
    prefix = site.stack_prefix if site.is_aws else deployment.of(site).prefix
    cloudformation = site.client("cloudformation")
    # The local stack has its knowledge base without CloudFormation.
    parts = [each for each in stacks.PARTS if site.is_aws or each != "KnowledgeBase"]
    found = {part: describe_stack(cloudformation, prefix + part) for part in parts}
    states = {part: None if each is None else str(each["StackStatus"]) for part, each in found.items()}
    bad = {part: state for part, state in states.items() if state not in ("CREATE_COMPLETE", "UPDATE_COMPLETE")}
    failed = {
        part: {"status": state, "failed": _failed_types(cloudformation, prefix + part) if state else []}
        for part, state in bad.items()
    }
    return failed or "complete"


def _failed_types(cloudformation: Any, name: str) -> list[Json]:
    pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName=name)
    events = (each for page in pages for each in page["StackEvents"])
    return [*sorted({each["ResourceType"] for each in events if each["ResourceStatus"].endswith("_FAILED")})]


@DEPLOYMENT.check(
    "first_sync",
    "The first synchronisation of a new data source is complete before documents are uploaded",
    Source.THIRD_PARTY,
    "COMPLETE (1)",
    used_by="output FirstSync",
    aws_only=NO_TEMPLATES,
)
def _first_sync(site: Site) -> Json:
    """Read what became of the job, without the error of AWS, which names the account."""
    return deployment.of(site).outputs("KnowledgeBase").get("FirstSync", "").partition(":")[0]


@DEPLOYMENT.check(
    "text_search",
    "The stacks can add a text search to the index that CloudFormation created",
    Source.GUESS,
    "on",
    used_by="output TextSearch",
    aws_only=NO_TEMPLATES,
)
def _text_search(site: Site) -> Json:
    """Read what became of text search; an index that is being built is on."""
    state = deployment.of(site).outputs("KnowledgeBase").get("TextSearch", "")
    return "on" if state in ("ACTIVE (1)", "BUILDING (1)") else "off"


@DEPLOYMENT.check(
    "references",
    "CloudFormation in this Region supports Fn::GetStackOutput",
    Source.DOCUMENTATION,
    {"used": True, "stack": "CREATE_COMPLETE"},
    aws_only="the local CloudFormation has exports alone",
)
def _references(site: Site) -> Json:
    """Look for weak references in a stack that was deployed."""
    name = deployment.of(site).prefix + "Api"
    client = site.client("cloudformation")
    template = client.get_template(StackName=name, TemplateStage="Original")["TemplateBody"]
    text = template if isinstance(template, str) else json.dumps(template)
    return {"used": "Fn::GetStackOutput" in text, "stack": str((describe_stack(client, name) or {})["StackStatus"])}


@DEPLOYMENT.check(
    "managed",
    "CloudFormation creates a managed knowledge base, and a data source for direct ingestion",
    Source.MODEL,
    "CREATE_COMPLETE",
    used_by="knowledge_base=managed",
    aws_only=NO_TEMPLATES,
)
def _managed(site: Site) -> Json:
    site.shared(fixtures.knowledge_base)  # has the same role, which Bedrock can assume from then on
    configuration = {"Type": "MANAGED", "ManagedKnowledgeBaseConfiguration": {"EmbeddingModelType": "MANAGED"}}
    base = {"Name": site.name("template"), "RoleArn": site.shared(fixtures.role)}
    connector = {"ConnectorParameters": CUSTOM_CONNECTOR}
    source = {
        "Type": CONNECTOR_SOURCE,
        "ManagedKnowledgeBaseConnectorConfiguration": connector,
    }
    template = _template(
        Base={
            "Type": "AWS::Bedrock::KnowledgeBase",
            "Properties": {**base, "KnowledgeBaseConfiguration": configuration},
        },
        Source={
            "Type": "AWS::Bedrock::DataSource",
            "Properties": {
                "Name": "documents",
                "KnowledgeBaseId": {"Ref": "Base"},
                "DataDeletionPolicy": "DELETE",
                "DataSourceConfiguration": source,
            },
        },
    )
    with site.creating(KNOWLEDGE_BASE, base["Name"]):
        pass
    with _stack(site, "managed", template) as (_, status):
        return status


def policy(characters: int) -> str:
    """Return a policy with this number of characters, as the synthesis counts them."""
    statement: dict[str, Any] = {"Effect": "Deny", "Action": "s3:GetObject", "Resource": []}
    document = {"Version": "2012-10-17", "Statement": [statement]}
    resources: list[str] = statement["Resource"]

    def size() -> int:
        return len(json.dumps(document, separators=(",", ":")))

    beginning = "arn:aws:s3:::ragstack-certify/"
    while characters - size() > 2 * LONG_NAME:
        resources.append(f"{beginning}{len(resources):03d}{'x' * LONG_NAME}")
    resources.append(beginning)
    resources[-1] += "x" * (characters - size())
    return json.dumps(document, separators=(",", ":"))


@POLICIES.check(
    "size",
    "IAM counts the characters of inline policies as the check at synthesis does",
    Source.DOCUMENTATION,
    {"the longest": "accepted", "one more": {"error": "LimitExceeded"}},
    aws_only="the local IAM does not count the characters of policies",
)
def _policy_size(site: Site) -> Json:
    """Give a role the longest policy, and one of a character more."""
    iam, name = site.client("iam"), site.name("policies")
    with site.creating(ROLE, name):
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(ASSUMED_BY_NOBODY))

    def put(characters: int) -> Callable[[], object]:
        return lambda: iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=policy(characters))

    sizes = {"the longest": MAX_INLINE_CHARACTERS, "one more": MAX_INLINE_CHARACTERS + 1}
    return {text: error_code(put(size)) for text, size in sizes.items()}


def _pool(**more: Any) -> Mapping[str, Any]:
    return {"Type": "AWS::Cognito::UserPool", **more}


def _template(**resources: Mapping[str, Any]) -> str:
    return json.dumps({"Resources": resources})


ENDS_AT_ONCE: Final[Mapping[str, Mapping[str, Any]]] = {
    "Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"},
    "Condition": {
        "Type": "AWS::CloudFormation::WaitCondition",
        "DependsOn": "Pool",
        "Properties": {"Handle": {"Ref": "Handle"}, "Timeout": "1", "Count": 1},
    },
}
"""Fails a second after the pool was created."""


@CHANGES.check(
    "protected_pool",
    "The rollback of a failed first deployment keeps a protected user pool",
    Source.GUESS,
    {"stack": "ROLLBACK_COMPLETE", "pool": "DELETE_SKIPPED"},
    used_by="auth=cognito",
    aws_only="the local CloudFormation keeps no resource of a rollback",
)
def _protected_pool(site: Site) -> Json:
    """Let the first deployment of a protected pool fail, and look at what its rollback does."""
    protected = _pool(
        DeletionPolicy="Retain", UpdateReplacePolicy="Retain", Properties={"DeletionProtection": "ACTIVE"}
    )
    with _stack(site, "rollback", _template(Pool=protected, **ENDS_AT_ONCE)) as (name, status):
        return {"stack": status, "pool": _resources(site, name)["Pool"]["ResourceStatus"]}


@CHANGES.check(
    "second_factor",
    "The second factor of an existing user pool can be changed",
    Source.GUESS,
    IN_PLACE,
    used_by="mfa",
    aws_only=NO_CHANGES,
)
def _second_factor(site: Site) -> Json:
    factor = {"MfaConfiguration": "ON", "EnabledMfas": ["SOFTWARE_TOKEN_MFA"]}
    before, after = _pool(Properties={"MfaConfiguration": "OFF"}), _pool(Properties=factor)
    return _changed(site, "factor", _template(Part=before), _template(Part=after))


@CHANGES.check(
    "header_policy",
    "CloudFormation renames response headers policies in place",
    Source.GUESS,
    IN_PLACE,
    used_by="the console",
    aws_only=NO_CHANGES,
)
def _header_policy(site: Site) -> Json:
    def named(name: str) -> str:
        security = {"ContentTypeOptions": {"Override": True}}
        config = {"Name": name, "SecurityHeadersConfig": security}
        properties = {"ResponseHeadersPolicyConfig": config}
        return _template(Part={"Type": "AWS::CloudFront::ResponseHeadersPolicy", "Properties": properties})

    return _changed(site, "headers", named(site.name("first")), named(site.name("second")))


def _changed(site: Site, part: str, before: str, after: str) -> Json:
    """Create a stack with a resource, change it, and say whether it is the same one afterwards."""
    with _stack(site, part, before) as (name, status):
        if status != "CREATE_COMPLETE":
            return {"created": status}
        first = _resources(site, name)["Part"]["PhysicalResourceId"]
        site.client("cloudformation").update_stack(StackName=name, TemplateBody=after)
        changed = _ended(site, name)
        same = _resources(site, name)["Part"]["PhysicalResourceId"] == first
        return {"changed": changed, "resource": "the same" if same else "another"}


@contextmanager
def _stack(site: Site, part: str, template: str) -> Iterator[tuple[str, str]]:
    """Create a stack; yields its name and status. CloudFormation deletes it afterwards while other checks run."""
    cloudformation, name = site.client("cloudformation"), site.name(part)
    with site.creating(STACK, name):
        cloudformation.create_stack(StackName=name, TemplateBody=template)
    yield name, _ended(site, name)
    cloudformation.delete_stack(StackName=name)


def _ended(site: Site, name: str) -> str:
    """Wait until CloudFormation has ended its work at a stack; returns the status."""

    def look() -> str | None:
        status = str((describe_stack(site.client("cloudformation"), name) or {})["StackStatus"])
        return None if status.endswith("_IN_PROGRESS") else status

    return str(site.eventually(look, "the end of the work at a small stack", SMALL_SECONDS))


def _resources(site: Site, name: str) -> Mapping[str, Mapping[str, Any]]:
    found = site.client("cloudformation").describe_stack_resources(StackName=name)["StackResources"]
    return {each["LogicalResourceId"]: each for each in found}
