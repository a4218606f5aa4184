"""The rights that a run needs in an AWS account, and whether the caller has them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from botocore.exceptions import ClientError

from ragstack_local.certify.site import PREFIX, Place

_SERVICES: Final = {
    **dict.fromkeys(("bedrock-agent", "bedrock-agent-runtime", "bedrock-runtime"), "bedrock"),
    "service-quotas": "servicequotas",
}
"""The prefix of actions by the name of the client, where they differ."""

_ACTIONS: Final[Mapping[str, Sequence[str]]] = {
    "bedrock-agent-runtime.AgenticRetrieveStream": (
        *("bedrock:AgenticRetrieveStream", "bedrock:Retrieve", "bedrock:GetDocumentContent"),
        "bedrock:InvokeModelWithResponseStream",
    ),
    "bedrock-agent-runtime.Retrieve": ("bedrock:Retrieve", "bedrock:Rerank"),
    "bedrock-agent.IngestKnowledgeBaseDocuments": ("bedrock:IngestKnowledgeBaseDocuments", "bedrock:StartIngestionJob"),
    "bedrock-agent.CreateKnowledgeBase": ("bedrock:CreateKnowledgeBase", "iam:PassRole"),
    "bedrock-runtime.Converse": ("bedrock:InvokeModel",),
    "bedrock-runtime.ConverseStream": ("bedrock:InvokeModelWithResponseStream",),
    "s3.DeleteObjects": ("s3:DeleteObject", "s3:DeleteObjectVersion"),
    "s3.ListObjectVersions": ("s3:ListBucketVersions",),
    "s3vectors.QueryVectors": ("s3vectors:QueryVectors", "s3vectors:GetVectors"),
}
"""The actions of operations whose name is not that of their only action. Source: Service Authorization Reference."""


def operations(service: str, names: str) -> list[str]:
    """Return operations as calls are counted, from their names with blanks between them."""
    return [f"{service}.{name}" for name in names.split()]


OPERATIONS: Final = (
    *operations(
        "bedrock-agent",
        "CreateDataSource CreateKnowledgeBase DeleteDataSource DeleteKnowledgeBase DeleteKnowledgeBaseDocuments"
        " GetDataSource GetIngestionJob GetKnowledgeBase GetKnowledgeBaseDocuments IngestKnowledgeBaseDocuments"
        " ListDataSources ListKnowledgeBaseDocuments ListKnowledgeBases StartIngestionJob UpdateDataSource",
    ),
    *operations(
        "bedrock-agent-runtime",
        "AgenticRetrieveStream CheckIngestedDocumentAcl GetDocumentContent GetIngestedDocumentAcl Retrieve"
        " RetrieveAndGenerate",
    ),
    *operations("bedrock-runtime", "Converse ConverseStream InvokeModel"),
    *operations("bedrock", "GetFoundationModelAvailability GetUseCaseForModelAccess"),
    *operations("iam", "CreateRole DeleteRole DeleteRolePolicy ListRolePolicies PutRolePolicy"),
    *operations("s3", "CreateBucket DeleteBucket DeleteObject DeleteObjects ListObjectVersions PutObject"),
    *operations(
        "s3vectors",
        "CreateIndex CreateVectorBucket DeleteIndex DeleteVectorBucket GetIndex GetVectorBucket"
        " PutVectorBucketDefaultIndexMode PutVectors QueryVectors UpdateMetadataConfiguration",
    ),
    *operations("textract", "DetectDocumentText"),
    *operations("service-quotas", "ListAWSDefaultServiceQuotas ListServiceQuotas"),
)
"""What the checks of the services and their removal call. A test compares it with the calls of a run."""


def actions_of(called: Sequence[str]) -> list[str]:
    """Return the IAM actions of operations, such as ``s3vectors.QueryVectors``."""
    found: set[str] = set()
    for operation in called:
        service, name = operation.split(".")
        found.update(_ACTIONS.get(operation, (f"{_SERVICES.get(service, service)}:{name}",)))
    return sorted(found)


def policy() -> dict[str, Any]:
    """Return the IAM policy of a caller who runs the checks of the services."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": actions, "Resource": resource} for resource, actions in _statements("*", "*")
        ],
    }


def _statements(account: str, name: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the actions for each resource."""
    actions = actions_of(OPERATIONS)
    own = {"s3:": f"arn:aws:s3:::{PREFIX}-{name}", "iam:": f"arn:aws:iam::{account}:role/{PREFIX}-{name}"}
    for prefix, resource in own.items():
        yield resource, [action for action in actions if action.startswith(prefix)]
    yield "*", [action for action in actions if not action.startswith(tuple(own))]


def missing_rights(session: Any, place: Place, caller: str) -> list[str] | None:
    """Return the actions that the caller lacks; None if the account does not say.

    Args:
        session: A session of boto3.
        place: The account.
        caller: The ARN of the caller, as GetCallerIdentity returns it.
    """
    iam = session.client("iam", place.region)
    missing: list[str] = []
    try:
        for resource, actions in _statements(place.account, "probe"):
            arn = resource.replace("arn:aws:", f"arn:{caller.split(':')[1]}:", 1)
            pages = iam.get_paginator("simulate_principal_policy").paginate(
                PolicySourceArn=_principal(iam, caller), ActionNames=actions, ResourceArns=[arn]
            )
            found = [result for page in pages for result in page["EvaluationResults"]]
            missing += [result["EvalActionName"] for result in found if result["EvalDecision"] != "allowed"]
    except ClientError:  # the caller may not ask
        return None
    return missing


def _principal(iam: Any, caller: str) -> str:
    """Return the ARN of the user or role behind a caller: a session of a role has no policies of its own."""
    kind, _, rest = caller.rpartition(":")[2].partition("/")
    return str(iam.get_role(RoleName=rest.split("/")[0])["Role"]["Arn"]) if kind == "assumed-role" else caller
