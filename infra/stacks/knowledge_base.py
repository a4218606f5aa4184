"""The knowledge base."""

from aws_cdk import Stack
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.constructs.contextual_headers import ContextualHeaders
from infra.constructs.knowledge_base import KnowledgeBase
from infra.constructs.vector_knowledge_base import VectorKnowledgeBase, generation
from infra.options import Options


class KnowledgeBaseStack(Stack):
    """A knowledge base on S3 Vectors that reads the documents bucket.

    Attributes:
        knowledge_base: Its ids and rights.
    """

    def __init__(self, scope: Construct, construct_id: str, *, documents: s3.IBucket, options: Options) -> None:
        super().__init__(scope, construct_id, description="RAGStack: knowledge base on Amazon S3 Vectors")
        headers = ContextualHeaders(self, "Context", options=options) if options.contextual_headers else None
        self.knowledge_base = VectorKnowledgeBase(
            self, f"Vectors{generation()}", documents=documents, headers=headers
        ).knowledge_base


def choose_knowledge_base(scope: Construct, options: Options, documents: s3.IBucket) -> KnowledgeBase:
    """The existing knowledge base that the deployer named, or a stack that creates one."""
    if existing := options.existing_knowledge_base:
        return KnowledgeBase(existing.knowledge_base_id, existing.data_source_id, existing.vector_store)
    stack = KnowledgeBaseStack(scope, f"{options.prefix}KnowledgeBase", documents=documents, options=options)
    return stack.knowledge_base
