"""How documents reach the knowledge base."""

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from infra.constructs.ingestion_function import IngestionFunction
from infra.constructs.knowledge_base import KnowledgeBase
from infra.options import Options
from infra.stacks.storage import StorageStack


class IngestionStack(Stack):
    """The function that submits documents to the knowledge base."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        storage: StorageStack,
        knowledge_base: KnowledgeBase,
        options: Options,
    ) -> None:
        super().__init__(scope, construct_id, description="RAGStack: from the documents bucket to the knowledge base")
        IngestionFunction(
            self,
            "Ingestion",
            documents=storage.documents,
            events=storage.events,
            knowledge_base=knowledge_base,
            options=options,
        )
        # Here, and not in the knowledge base's own stack, which an existing one does without.
        CfnOutput(self, "KnowledgeBaseId", value=knowledge_base.knowledge_base_id)
        CfnOutput(self, "DataSourceId", value=knowledge_base.data_source_id)
