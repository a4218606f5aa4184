"""How a construct accepts a finding of cdk-nag's AwsSolutions pack: by its id, with the reason."""

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
    acknowledge(construct, "IAM5", reason, finding=f"Resource::{imported['Fn::ImportValue']}/{keys}")
