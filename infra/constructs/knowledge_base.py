"""A knowledge base, created by the stacks or existing: its ids and the permissions on it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_

SEARCH: Final = ("bedrock:Retrieve",)
FOLLOW: Final = ("bedrock:GetKnowledgeBaseDocuments",)
RECONCILE: Final = ("bedrock:GetIngestionJob", "bedrock:ListKnowledgeBaseDocuments", "bedrock:StartIngestionJob")
REMOVE: Final = ("bedrock:DeleteKnowledgeBaseDocuments",)
INGEST: Final = (
    "bedrock:DeleteKnowledgeBaseDocuments",
    "bedrock:GetKnowledgeBaseDocuments",
    "bedrock:IngestKnowledgeBaseDocuments",
    "bedrock:StartIngestionJob",
)
"""Source: Bedrock user guide, "Prerequisites for direct ingestion", which needs StartIngestionJob as well."""


@dataclass(frozen=True)
class KnowledgeBaseReference:
    """What the other stacks need to know of a knowledge base.

    Attributes:
        knowledge_base_id: The knowledge base.
        data_source_id: The data source that reads the documents bucket.
        vector_store: One of ``STORE_RULES``; decides which attributes and filters are accepted.
        tenants: The ids of knowledge base and data source of each tenant that has its own.
    """

    knowledge_base_id: str
    data_source_id: str
    vector_store: str
    tenants: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def tenant_ids(self) -> str:
        """The ids of the tenants' knowledge bases as functions read them."""
        return json.dumps({name: "/".join(ids) for name, ids in self.tenants.items()}, separators=(",", ":"))

    def grant(self, function: lambda_.Function, actions: tuple[str, ...]) -> None:
        """Allow *function* these actions on the knowledge base, and on those of tenants."""
        ids = [self.knowledge_base_id, *(own for own, _ in self.tenants.values())]
        stack = Stack.of(function)
        arns = [stack.format_arn(service="bedrock", resource="knowledge-base", resource_name=each) for each in ids]
        iam.Grant.add_to_principal(actions=[*actions], grantee=function, resource_arns=arns)
