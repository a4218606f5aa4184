"""A knowledge base, created by the stacks or existing: its ids and the rights to it."""

from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_iam as iam

QUERY_ACTIONS: Final = ("bedrock:Retrieve",)

FOLLOWING_ACTIONS: Final = ("bedrock:GetKnowledgeBaseDocuments",)

RECONCILIATION_ACTIONS: Final = (
    "bedrock:GetIngestionJob",
    "bedrock:ListKnowledgeBaseDocuments",
    "bedrock:StartIngestionJob",
)

INGESTION_ACTIONS: Final = (
    "bedrock:DeleteKnowledgeBaseDocuments",
    "bedrock:GetKnowledgeBaseDocuments",
    "bedrock:IngestKnowledgeBaseDocuments",
    "bedrock:StartIngestionJob",
)
"""Source: Bedrock user guide, "Prerequisites for direct ingestion", which needs StartIngestionJob as well."""


class KnowledgeBase:
    """What the other stacks need to know of a knowledge base, and the rights to it.

    Attributes:
        knowledge_base_id: The knowledge base.
        data_source_id: The data source that reads the documents bucket.
        vector_store: One of ``config.VECTOR_STORES``; decides which attributes and filters are taken.
    """

    def __init__(self, knowledge_base_id: str, data_source_id: str, vector_store: str) -> None:
        self.knowledge_base_id = knowledge_base_id
        self.data_source_id = data_source_id
        self.vector_store = vector_store

    def grant_query(self, function: iam.IGrantable, stack: Stack) -> iam.Grant:
        """Let *function*, of *stack*, search."""
        return self._grant(function, stack, QUERY_ACTIONS)

    def grant_ingestion(self, function: iam.IGrantable, stack: Stack) -> iam.Grant:
        """Let *function*, of *stack*, submit, follow and delete documents."""
        return self._grant(function, stack, INGESTION_ACTIONS)

    def grant_following(self, function: iam.IGrantable, stack: Stack) -> iam.Grant:
        """Let *function*, of *stack*, ask what became of documents."""
        return self._grant(function, stack, FOLLOWING_ACTIONS)

    def grant_reconciliation(self, function: iam.IGrantable, stack: Stack) -> iam.Grant:
        """Let *function*, of *stack*, list documents and run synchronisations."""
        return self._grant(function, stack, RECONCILIATION_ACTIONS)

    def _grant(self, function: iam.IGrantable, stack: Stack, actions: tuple[str, ...]) -> iam.Grant:
        arn = stack.format_arn(service="bedrock", resource="knowledge-base", resource_name=self.knowledge_base_id)
        return iam.Grant.add_to_principal(actions=[*actions], grantee=function, resource_arns=[arn])
