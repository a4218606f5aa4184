"""A managed knowledge base, whose index and models belong to Amazon Bedrock."""

from collections.abc import Iterable
from typing import Final

from aws_cdk import CrossStackReferences, Names, ReferenceStrength
from aws_cdk import aws_bedrock as bedrock
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.constructs.knowledge_base import KnowledgeBaseIds, KnowledgeBaseReference
from infra.constructs.service_role import identify, reading_documents, service_role
from infra.constructs.settled_role import SettledRole
from infra.options import Options
from ragstack_common.settings.names import CONNECTOR_SOURCE, CUSTOM_CONNECTOR, MANAGED

EMBEDDING_TYPE: Final = "MANAGED"


def generation(options: Options) -> str:
    """Identify the settings that CloudFormation cannot change in place."""
    return identify((EMBEDDING_TYPE, options.kms_key_arn, CONNECTOR_SOURCE, sorted(CUSTOM_CONNECTOR.items())))


class ManagedKnowledgeBase(Construct):
    """A knowledge base of the type MANAGED, and those of tenants, each with a data source for direct ingestion.

    Chunking is not configured: with a managed embedding, Bedrock refuses a strategy, and makes chunks of 300 tokens
    (source: third parties; Bedrock user guide, kb-managed-customize-ingestion).

    Args:
        tenants: The tenants that get their own.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, documents: s3.IBucket, options: Options, tenants: Iterable[str]
    ) -> None:
        super().__init__(scope, construct_id)
        policies = iam.PolicyDocument(statements=reading_documents(documents))
        if options.key_arns:
            # For the objects of the bucket. Bedrock uses the knowledge base's own key by a grant of its creator
            # (source: Bedrock user guide, encryption-kb).
            policies.add_statements(iam.PolicyStatement(actions=["kms:Decrypt"], resources=[*options.key_arns]))
        self._key = options.kms_key_arn
        self._role = service_role(
            self, documents, policies, description="Reads the documents", generation=generation(options)
        )
        self._settled = SettledRole(self, "Settled", role=self._role, policies=policies)
        own = {
            name: self._knowledge_base(Construct(self, f"Tenant-{name}"), f"The documents of {name}")
            for name in tenants
        }
        shared = self._knowledge_base(self, "The documents of RAGStack")
        self.knowledge_base = KnowledgeBaseReference(*shared, MANAGED, own)

    def _knowledge_base(self, scope: Construct, description: str) -> KnowledgeBaseIds:
        """Create a knowledge base with a data source; return their ids."""
        encryption = bedrock.CfnKnowledgeBase.ManagedKnowledgeBaseServerSideEncryptionConfigurationProperty(
            kms_key_arn=self._key
        )
        knowledge_base = bedrock.CfnKnowledgeBase(
            scope,
            "KnowledgeBase",
            description=description,
            knowledge_base_configuration=bedrock.CfnKnowledgeBase.KnowledgeBaseConfigurationProperty(
                type="MANAGED",
                managed_knowledge_base_configuration=bedrock.CfnKnowledgeBase.ManagedKnowledgeBaseConfigurationProperty(
                    embedding_model_type=EMBEDDING_TYPE,
                    server_side_encryption_configuration=encryption if self._key else None,
                ),
            ),
            # Unique to this generation: while one is replaced, both exist.
            name=Names.unique_resource_name(scope, max_length=80, separator="-"),
            role_arn=self._role.role_arn,
        )
        knowledge_base.node.add_dependency(self._settled)
        data_source = bedrock.CfnDataSource(
            scope,
            "Documents",
            # Nobody could read or delete what a deleted knowledge base left, and storage is billed.
            data_deletion_policy="DELETE",
            data_source_configuration=bedrock.CfnDataSource.DataSourceConfigurationProperty(
                type=CONNECTOR_SOURCE,
                managed_knowledge_base_connector_configuration=(
                    bedrock.CfnDataSource.ManagedKnowledgeBaseConnectorConfigurationProperty(
                        connector_parameters=dict(CUSTOM_CONNECTOR)
                    )
                ),
            ),
            description="The documents bucket",
            knowledge_base_id=knowledge_base.attr_knowledge_base_id,
            name="documents",
        )
        data_source.node.add_dependency(self._settled)
        # An exported id that is imported could never be replaced.
        for replaceable in (knowledge_base, data_source):
            CrossStackReferences.of(replaceable).produce(ReferenceStrength.WEAK)
        return knowledge_base.attr_knowledge_base_id, data_source.attr_data_source_id
