"""How the stacks of a run and its documents are removed."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import ClientError

from ragstack_local.certify import removal
from ragstack_local.certify.journal import Resource
from ragstack_local.certify.removal import Clients, Remove, if_present
from ragstack_local.connection import running

STACK: Final = "stack"
DEPLOYING: Final = "process that deploys"
DOCUMENTS: Final = "documents"
DEAD_LETTERS: Final = "dead letters"

WAITING: Final = {"Delay": 10, "MaxAttempts": 180}
"""Half an hour for the deletion of a stack, of which the distribution of the console takes some minutes."""

MAX_RECEIVES: Final = 100
"""Calls that look for dead letters, ten in each."""

HIDDEN_SECONDS: Final = 30


def _stack(clients: Clients, resource: Resource) -> bool:
    """Delete a stack, and then what CloudFormation has kept of it.

    The name has the token of the run, so no other stack ever had it. CloudFormation lists the resources of a deleted
    stack for 90 days. Source: CloudFormation API reference, ListStackResources.
    """
    cloudformation = clients("cloudformation")
    kept: dict[str, str] = {}
    if (stack := describe_stack(cloudformation, resource.name)) is not None:
        kept |= _kept(cloudformation, stack["StackId"])  # by a rollback
        _delete(cloudformation, stack)
    deleted = cloudformation.get_paginator("list_stacks").paginate(StackStatusFilter=["DELETE_COMPLETE"])
    for each in (each for page in deleted for each in page["StackSummaries"]):
        if each["StackName"] == resource.name:
            kept |= _kept(cloudformation, each["StackId"])
    for kind, remove in KEPT.items():
        for physical_id in (physical_id for physical_id, its in kept.items() if its == kind):
            remove(clients, physical_id)
    logs = clients("logs")
    # A function that ends after its log group was deleted creates it again, if its role may.
    for page in logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=f"/aws/lambda/{resource.name}-"):
        for group in page["logGroups"]:
            _log_group(clients, group["logGroupName"])
    return True


def describe_stack(cloudformation: Any, name: str) -> Mapping[str, Any] | None:
    """Return the description of a stack; None if there is none."""
    try:
        (found,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise
    return dict(found)


def _delete(cloudformation: Any, stack: Mapping[str, Any]) -> None:
    """Delete a stack. What an earlier attempt could not delete is kept, if it can be removed without the stack."""
    if stack["StackStatus"] != "DELETE_IN_PROGRESS":
        pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack["StackId"])
        left = [
            each["LogicalResourceId"]
            for page in pages
            for each in page["StackResourceSummaries"]
            if each["ResourceStatus"] == "DELETE_FAILED" and each["ResourceType"] in KEPT
        ]
        more = {"RetainResources": left} if left and stack["StackStatus"] == "DELETE_FAILED" else {}
        cloudformation.delete_stack(StackName=stack["StackId"], **more)
    waiter = cloudformation.get_waiter("stack_delete_complete")
    waiter.wait(StackName=stack["StackId"], WaiterConfig=WAITING)


def _kept(cloudformation: Any, stack_id: str) -> dict[str, str]:
    """Return the types of the resources that CloudFormation has not deleted on purpose, by their physical ids."""
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack_id)
    return {
        each["PhysicalResourceId"]: each["ResourceType"]
        for page in pages
        for each in page["StackResourceSummaries"]
        if each["ResourceStatus"] == "DELETE_SKIPPED" and each.get("PhysicalResourceId")
    }


def _bucket(clients: Clients, name: str) -> None:
    removal.KINDS[removal.BUCKET](clients, Resource(removal.BUCKET, name))


def _table(clients: Clients, name: str) -> None:
    with if_present():
        dynamodb = clients("dynamodb")
        if dynamodb.describe_table(TableName=name)["Table"].get("DeletionProtectionEnabled"):
            dynamodb.update_table(TableName=name, DeletionProtectionEnabled=False)
        dynamodb.delete_table(TableName=name)


def _user_pool(clients: Clients, pool_id: str) -> None:
    with if_present():
        cognito = clients("cognito-idp")
        pool = cognito.describe_user_pool(UserPoolId=pool_id)["UserPool"]
        # An update sets what it does not name to its default, and these two belong together.
        kept = {name: pool[name] for name in ("AutoVerifiedAttributes", "UserAttributeUpdateSettings") if name in pool}
        cognito.update_user_pool(UserPoolId=pool_id, DeletionProtection="INACTIVE", **kept)
        cognito.delete_user_pool(UserPoolId=pool_id)


def _vector_index(clients: Clients, arn: str) -> None:
    with if_present():
        clients("s3vectors").delete_index(indexArn=arn)


def _vector_bucket(clients: Clients, arn: str) -> None:
    with if_present():
        clients("s3vectors").delete_vector_bucket(vectorBucketArn=arn)


def _log_group(clients: Clients, name: str) -> None:
    with if_present():
        clients("logs").delete_log_group(logGroupName=name)


KEPT: Final[Mapping[str, Callable[[Clients, str], None]]] = {
    "AWS::S3::Bucket": _bucket,
    "AWS::DynamoDB::Table": _table,
    "AWS::Cognito::UserPool": _user_pool,
    "AWS::S3Vectors::Index": _vector_index,
    "AWS::S3Vectors::VectorBucket": _vector_bucket,
    "AWS::Logs::LogGroup": _log_group,
}
"""How resources that stacks keep are removed, by their types; indexes before the bucket that they are in.

Physical ids in S3 Vectors are ARNs. Source: CloudFormation's resource schemas, primaryIdentifier.
"""


def _process(_: Clients, resource: Resource) -> bool:
    """End the process that deploys, and all that it started, before the stacks are deleted that it would create."""
    running.end_leftovers(Path(resource.name))
    return True


def _documents(clients: Clients, resource: Resource) -> bool:
    """Delete the objects under a prefix in a bucket; the functions of its stack do the rest."""
    s3 = clients("s3")
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=resource.within, Prefix=resource.name):
        for found in page.get("Contents", []):
            s3.delete_object(Bucket=resource.within, Key=found["Key"])
    return True


def _dead_letters(clients: Clients, resource: Resource) -> bool:
    """Delete the dead letters about documents of the run; others are visible again at once."""
    sqs = clients("sqs")
    others: dict[str, str] = {}
    for _ in range(MAX_RECEIVES):
        messages = sqs.receive_message(
            QueueUrl=resource.within, MaxNumberOfMessages=10, VisibilityTimeout=HIDDEN_SECONDS
        ).get("Messages", [])
        for message in messages:
            if resource.name in message["Body"]:
                sqs.delete_message(QueueUrl=resource.within, ReceiptHandle=message["ReceiptHandle"])
            else:
                others[message["MessageId"]] = message["ReceiptHandle"]
        if not messages:
            break
    for handle in others.values():
        sqs.change_message_visibility(QueueUrl=resource.within, ReceiptHandle=handle, VisibilityTimeout=0)
    return True


KINDS: Final[Mapping[str, Remove]] = {
    STACK: _stack,
    DEPLOYING: _process,
    DOCUMENTS: _documents,
    DEAD_LETTERS: _dead_letters,
}
"""By the kinds of resources in the journal."""
