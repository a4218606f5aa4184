"""A knowledge base, created by the stacks or existing: its ids and the permissions on it."""

from dataclasses import dataclass
from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_

SEARCH: Final = ("bedrock:Retrieve",)
FOLLOW: Final = ("bedrock:GetKnowledgeBaseDocuments",)
RECONCILE: Final = ("bedrock:GetIngestionJob", "bedrock:ListKnowledgeBaseDocuments", "bedrock:StartIngestionJob")
INGEST: Final = (
    "bedrock:DeleteKnowledgeBaseDocuments",
    "bedrock:GetKnowledgeBaseDocuments",
    "bedrock:IngestKnowledgeBaseDocuments",
    "bedrock:StartIngestionJob",
)
"""Source: Bedrock user guide, "Prerequisites for direct ingestion", which needs StartIngestionJob as well."""


@dataclass(frozen=True)
class KnowledgeBase:
    """What the other stacks need to know of a knowledge base.

    Attributes:
        knowledge_base_id: The knowledge base.
        data_source_id: The data source that reads the documents bucket.
        vector_store: One of ``STORE_RULES``; decides which attributes and filters are accepted.
    """

    knowledge_base_id: str
    data_source_id: str
    vector_store: str

    def grant(self, function: lambda_.Function, actions: tuple[str, ...]) -> None:
        """Allow *function* these actions on the knowledge base."""
        arn = Stack.of(function).format_arn(
            service="bedrock", resource="knowledge-base", resource_name=self.knowledge_base_id
        )
        iam.Grant.add_to_principal(actions=[*actions], grantee=function, resource_arns=[arn])
