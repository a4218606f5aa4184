"""Refuses a deployment that would drop access control, which a forgotten option does."""

from typing import Final

from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.constructs.inline_resource import inline_resource
from infra.constructs.storage import DocumentRegistry
from ragstack_common.registry.table import ACCESS, BY_LABEL, PARTITION_KEY, SORT_KEY

_CHECK: Final = f"""\
import boto3
import cfnresponse

def handler(event, context):
    table = event["ResourceProperties"]["Table"]
    status, reason = cfnresponse.SUCCESS, None
    if event["RequestType"] != "Delete":
        try:
            client = boto3.client("dynamodb")
            changes = client.query(
                TableName=table, Limit=1, ConsistentRead=True,
                KeyConditionExpression="{PARTITION_KEY} = :access AND {SORT_KEY} < :version",
                ExpressionAttributeValues={{":access": {{"S": "{ACCESS}"}}, ":version": {{"S": "VERSION"}}}},
            )
            labelled = client.scan(TableName=table, IndexName="{BY_LABEL}", Limit=1)
            if changes["Count"] or labelled["Count"]:
                held = "changes of access rules" if changes["Count"] else "documents with access labels"
                raise ValueError(
                    f"{{table}} has {{held}}: deploy with access=FILE. To open it to every caller, deploy a"
                    " file that allows everyone"
                )
        except Exception as error:
            status, reason = cfnresponse.FAILED, f"Without an access file, nothing is deployed: {{error}}"
    cfnresponse.send(event, context, status, {{}}, table, reason=reason)
"""
"""Sort keys of changes begin with a digit. A deletion never fails, so that a rollback does not."""


class OpenAccess(Construct):
    """Checks, before what depends on it is deployed, that nothing in the registry says who sees what.

    The functions repeat the check before they answer (:class:`ragstack_common.access.guard.Guard`), because their
    configuration can also change outside of CloudFormation.
    """

    def __init__(self, scope: Construct, construct_id: str, *, registry: DocumentRegistry) -> None:
        super().__init__(scope, construct_id)
        table = registry.table
        checked, role = inline_resource(
            self,
            "Checked",
            code=_CHECK,
            description="Refuses a deployment without an access file if documents have access labels",
            properties={"Table": table.table_name},
            timeout_seconds=60,
            type_name="OpenAccess",
        )
        changes = iam.Grant.add_to_principal(
            actions=["dynamodb:Query"],
            conditions={"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": [ACCESS]}},
            grantee=role,
            resource_arns=[table.table_arn],
        )
        checked.node.add_dependency(changes, registry.grant_labels(role))
