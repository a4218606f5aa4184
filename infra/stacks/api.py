"""How people and programs query."""

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from infra.constructs.knowledge_base import KnowledgeBase
from infra.constructs.retrieval_api import RetrievalApi
from infra.options import Options


class ApiStack(Stack):
    """The HTTP interface and the function behind it."""

    def __init__(self, scope: Construct, construct_id: str, *, knowledge_base: KnowledgeBase, options: Options) -> None:
        super().__init__(scope, construct_id, description="RAGStack: HTTP interface")
        api = RetrievalApi(self, "Retrieval", knowledge_base=knowledge_base, options=options)
        CfnOutput(self, "ApiUrl", value=api.url)
        if api.api_key_id:
            CfnOutput(self, "ApiKeyId", value=api.api_key_id)
