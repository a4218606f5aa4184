"""A knowledge base on Amazon S3 Vectors."""

from collections.abc import Mapping
from typing import Final

from aws_cdk import Aws, CrossStackReferences, Names, ReferenceStrength, RemovalPolicy, Stack
from aws_cdk import aws_bedrock as bedrock
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3vectors as s3vectors
from constructs import Construct

from infra.acknowledgements import acknowledge, published
from infra.constructs.contextual_headers import ContextualHeaders
from infra.constructs.first_sync import FirstSync
from infra.constructs.knowledge_base import EVERY_INDEX, KnowledgeBaseIds, KnowledgeBaseReference, VectorIndex
from infra.constructs.service_role import identify, reading_documents, service_role
from infra.constructs.settled_role import SettledRole
from infra.constructs.text_search import TextSearch
from infra.embeddings import MODELS, EmbeddingModel
from infra.everywhere import use_keys
from infra.options import Options
from ragstack_common.settings.names import METADATA_KEY, S3_VECTORS, TEXT_KEY

EMBEDDING_TYPE: Final = "FLOAT32"
DISTANCE_METRIC: Final = "cosine"

NON_FILTERABLE_KEYS: Final = (TEXT_KEY, METADATA_KEY)
"""Bedrock keeps a chunk's text under these; as filterable metadata it would overflow 2 KB and the chunk would fail."""

DATA_SOURCE_TYPE: Final = "S3"


def generation(options: Options) -> str:
    """Identify the settings that CloudFormation cannot change in place."""
    model = MODELS[options.embedding]
    create_only = (
        model.model_id,
        model.dimensions,
        EMBEDDING_TYPE,
        DISTANCE_METRIC,
        NON_FILTERABLE_KEYS,
        f"aws:kms {options.kms_key_arn}" if options.kms_key_arn else "AES256",
        DATA_SOURCE_TYPE,
    )
    return identify(create_only)


class VectorKnowledgeBase(Construct):
    """A knowledge base whose vectors are in Amazon S3 Vectors, which has no cost while idle, and those of tenants.

    All have one bucket of vectors and one role, and each an index of its own: S3 Vectors bills the size of an index for
    every query.

    Args:
        headers: Transforms the chunks.
        tenants: By name, the prefix of the documents of each tenant that gets its own.

    Attributes:
        embedding: The id of the embedding model.
        first_sync: What became of the first synchronisation of the data sources, in words.
        text_search: What became of the configuration of word search, in words; None if searches do without.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        documents: s3.IBucket,
        headers: ContextualHeaders | None,
        options: Options,
        tenants: Mapping[str, str],
    ) -> None:
        super().__init__(scope, construct_id)
        self._model: EmbeddingModel = MODELS[options.embedding]
        self.embedding = self._model.model_id
        self._model_arn = f"arn:{Aws.PARTITION}:bedrock:{Aws.REGION}::foundation-model/{self.embedding}"
        self._documents, self._headers, self._options = documents, headers, options
        self._bucket = self._vector_bucket()
        index = self._vector_index(self)
        resource = f"{self._bucket.attr_vector_bucket_arn}/index/*" if tenants else index.attr_index_arn
        policies = self._service_policies(resource)
        self._role = service_role(
            self,
            documents,
            policies,
            description="Reads the documents, embeds them and keeps their vectors",
            generation=generation(options),
        )
        if tenants:
            bucket = Stack.of(self).resolve(self._bucket.logical_id)
            acknowledge(self, "IAM5", EVERY_INDEX, finding=f"Resource::<{bucket}.VectorBucketArn>/index/*")
        if headers:
            headers.acknowledge_use(self._role)
        self._settled = SettledRole(self, "Settled", role=self._role, policies=policies)
        indexes, own = [index], {}
        for name, prefix in tenants.items():
            place = Construct(self, f"Tenant-{name}")
            indexes.append(self._vector_index(place))
            own[name] = self._searchable(place, indexes[-1], f"The documents of {name}", prefix)
        shared = self._searchable(self, index, "The documents of RAGStack")
        for replaceable in (self._bucket, index):
            CrossStackReferences.of(replaceable).produce(ReferenceStrength.WEAK)
        self.first_sync = FirstSync(self, "FirstSync", sources=[shared, *own.values()]).state
        self.text_search: str | None = None
        if options.query.search_type != "SEMANTIC":
            self.text_search = TextSearch(
                self,
                "TextSearch",
                indexes=[each.attr_index_arn for each in indexes],
                language=options.text_search_language,
                resource=resource,
            ).state
        finding = f"{published(Stack.of(self), self._bucket.attr_vector_bucket_arn)}/index/*" if tenants else None
        self.knowledge_base = KnowledgeBaseReference(
            *shared, S3_VECTORS, own, VectorIndex(index.attr_index_arn, resource, finding)
        )

    def _searchable(
        self, scope: Construct, index: s3vectors.CfnIndex, description: str, prefix: str | None = None
    ) -> KnowledgeBaseIds:
        """Create a knowledge base with a data source, which reads the documents under a prefix; return their ids."""
        knowledge_base = bedrock.CfnKnowledgeBase(
            scope,
            "KnowledgeBase",
            description=description,
            knowledge_base_configuration=self._embedding(),
            # Unique to this generation: while one is replaced, both exist.
            name=Names.unique_resource_name(scope, max_length=80, separator="-"),
            role_arn=self._role.role_arn,
            storage_configuration=bedrock.CfnKnowledgeBase.StorageConfigurationProperty(
                type="S3_VECTORS",
                s3_vectors_configuration=bedrock.CfnKnowledgeBase.S3VectorsConfigurationProperty(
                    index_arn=index.attr_index_arn
                ),
            ),
        )
        knowledge_base.node.add_dependency(self._settled)
        data_source = bedrock.CfnDataSource(
            scope,
            "Documents",
            # The vectors stay with their bucket, which outlives the stack.
            data_deletion_policy="RETAIN",
            data_source_configuration=bedrock.CfnDataSource.DataSourceConfigurationProperty(
                type=DATA_SOURCE_TYPE,
                s3_configuration=bedrock.CfnDataSource.S3DataSourceConfigurationProperty(
                    bucket_arn=self._documents.bucket_arn, inclusion_prefixes=[prefix] if prefix else None
                ),
            ),
            description="The documents bucket",
            knowledge_base_id=knowledge_base.attr_knowledge_base_id,
            name="documents",
            server_side_encryption_configuration=bedrock.CfnDataSource.ServerSideEncryptionConfigurationProperty(
                kms_key_arn=self._options.kms_key_arn
            )
            if self._options.kms_key_arn
            else None,
            vector_ingestion_configuration=self._headers.ingestion if self._headers else None,
        )
        data_source.node.add_dependency(self._settled)  # its permission for the function of headers may be new
        # An exported id that is imported could never be replaced.
        for replaceable in (knowledge_base, data_source):
            CrossStackReferences.of(replaceable).produce(ReferenceStrength.WEAK)
        return knowledge_base.attr_knowledge_base_id, data_source.attr_data_source_id

    def _vector_bucket(self) -> s3vectors.CfnVectorBucket:
        bucket = s3vectors.CfnVectorBucket(
            self,
            "VectorBucket",
            encryption_configuration=s3vectors.CfnVectorBucket.EncryptionConfigurationProperty(
                kms_key_arn=self._options.kms_key_arn, sse_type="aws:kms" if self._options.kms_key_arn else "AES256"
            ),
        )
        bucket.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        return bucket

    def _vector_index(self, scope: Construct) -> s3vectors.CfnIndex:
        index = s3vectors.CfnIndex(
            scope,
            "VectorIndex",
            data_type="float32",
            dimension=self._model.dimensions,
            distance_metric=DISTANCE_METRIC,
            metadata_configuration=s3vectors.CfnIndex.MetadataConfigurationProperty(
                non_filterable_metadata_keys=[*NON_FILTERABLE_KEYS]
            ),
            vector_bucket_arn=self._bucket.attr_vector_bucket_arn,
        )
        index.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        return index

    def _embedding(self) -> bedrock.CfnKnowledgeBase.KnowledgeBaseConfigurationProperty:
        model = bedrock.CfnKnowledgeBase.BedrockEmbeddingModelConfigurationProperty(
            dimensions=self._model.dimensions if self._model.has_choice else None, embedding_data_type=EMBEDDING_TYPE
        )
        return bedrock.CfnKnowledgeBase.KnowledgeBaseConfigurationProperty(
            type="VECTOR",
            vector_knowledge_base_configuration=bedrock.CfnKnowledgeBase.VectorKnowledgeBaseConfigurationProperty(
                embedding_model_arn=self._model_arn,
                embedding_model_configuration=bedrock.CfnKnowledgeBase.EmbeddingModelConfigurationProperty(
                    bedrock_embedding_model_configuration=model
                ),
            ),
        )

    def _service_policies(self, indexes: str) -> iam.PolicyDocument:
        """Permissions of Bedrock on these indexes. Source: Bedrock user guide, kb-permissions."""
        headers = self._headers
        statements = [
            iam.PolicyStatement(actions=["bedrock:InvokeModel"], resources=[self._model_arn]),
            *reading_documents(self._documents),
            iam.PolicyStatement(
                actions=[
                    "s3vectors:DeleteVectors",
                    "s3vectors:GetIndex",
                    "s3vectors:GetVectors",
                    "s3vectors:PutVectors",
                    "s3vectors:QueryVectors",
                ],
                resources=[indexes],
            ),
        ]
        if self._options.key_arns:
            statements.append(use_keys(self._options))
        return iam.PolicyDocument(statements=[*statements, *(headers.statements() if headers else [])])
