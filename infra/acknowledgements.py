"""How a construct accepts a finding of cdk-nag's AwsSolutions pack: by its id, with the reason."""

import hashlib
import json
import re

from aws_cdk import Acknowledgment, Stack, Token, Validations
from aws_cdk import aws_s3 as s3
from constructs import IConstruct


def acknowledge(construct: IConstruct, rule: str, reason: str, *, finding: str | None = None) -> None:
    """Accept a finding of a rule such as ``COG4`` on *construct* and everything below it.

    *finding* names one of several findings that the rule reports.
    """
    rule_id = f"AwsSolutions-{rule}" + (f"[{finding}]" if finding else "")
    Validations.of(construct).acknowledge(Acknowledgment(id=rule_id, reason=reason))


def acknowledge_objects(construct: IConstruct, bucket: s3.IBucket, reason: str, *, keys: str = "*") -> None:
    """Accept that a policy below *construct* names objects of *bucket*, which another stack owns, by a pattern."""
    if not Token.is_unresolved(bucket.bucket_name):  # a bucket of the deployer
        acknowledge(
            construct, "IAM5", reason, finding=f"Resource::arn:<AWS::Partition>:s3:::{bucket.bucket_name}/{keys}"
        )
        return
    owner = Stack.of(bucket)
    imported = owner.resolve(owner.export_value(bucket.bucket_arn))
    for name in (imported["Fn::ImportValue"], published(owner, bucket.bucket_arn)):  # locally, and on AWS
        acknowledge(construct, "IAM5", reason, finding=f"Resource::{name}/{keys}")


def published(owner: Stack, reference: str) -> str:
    """Return a weak reference to an attribute of a resource, which another stack makes, as a finding names it."""
    path = f"Publish/Output{json.dumps(owner.resolve(reference), separators=(',', ':'))}"
    digest = hashlib.md5(path.encode(), usedforsecurity=False).hexdigest()[:8].upper()
    output = {
        "StackName": owner.stack_name,
        "Region": {"Ref": "AWS::Region"},
        "OutputName": re.sub("[^A-Za-z0-9]", "", path) + digest,
    }
    return json.dumps({"Fn::GetStackOutput": output}, separators=(",", ":"))
