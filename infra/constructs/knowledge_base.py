"""A knowledge base, created by the stacks or existing: its ids and the permissions on it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_

from infra.acknowledgements import acknowledge
from ragstack_common.settings.names import OTHER_STORE, S3_VECTORS

KnowledgeBaseIds: TypeAlias = tuple[str, str]
"""The ids of a knowledge base and of its data source."""

SEARCH: Final = ("bedrock:Retrieve",)
SEARCH_WORDS: Final = ("s3vectors:GetIndex", "s3vectors:GetVectors", "s3vectors:QueryVectors")
"""A query with words, a filter or metadata needs the last two (source: s3vectors, QueryVectors). The first tells why
words cannot be searched."""

DISCOVER: Final = ("bedrock:GetKnowledgeBase",)
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

KNOWLEDGE_BASES_PER_STATEMENT: Final = 20
"""One statement with the knowledge bases of all tenants would exceed a managed policy, which the CDK makes of whole
statements."""

EVERY_INDEX: Final = "A role can name ten thousand characters, and not the index of each tenant"
"""Why a policy names all indexes of a bucket."""


@dataclass(frozen=True)
class VectorIndex:
    """The index of S3 Vectors behind the shared knowledge base.

    Attributes:
        arn: Its ARN.
        resource: What policies name: the index, or all indexes of its bucket if tenants have their own.
        finding: That pattern as cdk-nag names it; None if it is the index.
    """

    arn: str
    resource: str
    finding: str | None = None


@dataclass(frozen=True)
class KnowledgeBaseReference:
    """What the other stacks need to know of a knowledge base.

    Attributes:
        knowledge_base_id: The knowledge base.
        data_source_id: The data source of the documents.
        vector_store: One of ``STORE_RULES``; decides which attributes and filters are accepted.
        tenants: The ids of knowledge base and data source of each tenant that has its own.
        index: Where words are searched; None for another store, or if it is not known.
    """

    knowledge_base_id: str
    data_source_id: str
    vector_store: str
    tenants: Mapping[str, KnowledgeBaseIds] = field(default_factory=dict)
    index: VectorIndex | None = None

    @property
    def tenant_ids(self) -> str:
        """The ids of the tenants' knowledge bases as functions read them."""
        return json.dumps({name: "/".join(ids) for name, ids in self.tenants.items()}, separators=(",", ":"))

    def grant(self, function: lambda_.Function, actions: tuple[str, ...]) -> None:
        """Allow *function* these actions on the knowledge base, and on those of tenants."""
        grant_knowledge_bases(function, actions, [self.knowledge_base_id, *(own for own, _ in self.tenants.values())])

    def grant_search(self, function: lambda_.Function) -> None:
        """Allow *function* to search vectors and words."""
        self.grant(function, SEARCH)
        self.grant_words(function)

    def grant_words(self, function: lambda_.Function) -> None:
        """Allow *function* to search words in S3 Vectors, whose indexes it can find out, as it can an unknown store."""
        has_more_indexes = self.vector_store == S3_VECTORS and (self.tenants or self.index is None)
        if has_more_indexes or self.vector_store == OTHER_STORE:
            self.grant(function, DISCOVER)
        if self.index is not None:
            iam.Grant.add_to_principal(actions=[*SEARCH_WORDS], grantee=function, resource_arns=[self.index.resource])
            if self.index.finding:
                assert function.role is not None, "a function of ours has a role of its own"
                acknowledge(function.role, "IAM5", EVERY_INDEX, finding=f"Resource::{self.index.finding}")


def grant_knowledge_bases(
    grantee: lambda_.Function | iam.Role, actions: Sequence[str], ids: Sequence[str]
) -> list[iam.Grant]:
    """Allow these actions on knowledge bases of this account, in statements that a policy has room for."""
    stack = Stack.of(grantee)
    arns = [stack.format_arn(service="bedrock", resource="knowledge-base", resource_name=each) for each in ids]
    return [
        iam.Grant.add_to_principal(
            actions=[*actions],
            grantee=grantee,
            resource_arns=arns[start : start + KNOWLEDGE_BASES_PER_STATEMENT],
        )
        for start in range(0, len(arns), KNOWLEDGE_BASES_PER_STATEMENT)
    ]


def existing_index(arn: str | None, *, of_tenants: bool) -> VectorIndex | None:
    """Return the index that the deployer named; those of tenants are in its bucket."""
    if arn is None:
        return None
    every = f"{arn.rpartition('/')[0]}/*"
    return VectorIndex(arn, every, every) if of_tenants else VectorIndex(arn, arn)
