"""How people and programs ask, and put documents in."""

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from infra.constructs.documents_function import DocumentsFunction
from infra.constructs.ingestion_path import IngestionPath
from infra.constructs.query_function import QueryFunction
from infra.constructs.retrieval_api import DOCUMENTS, QUERY, RetrievalApi
from infra.options import Options


class ApiStack(Stack):
    """The HTTP interface and the functions behind it."""

    def __init__(self, scope: Construct, construct_id: str, *, path: IngestionPath, options: Options) -> None:
        super().__init__(scope, construct_id, description="RAGStack: HTTP interface")
        query = QueryFunction(
            self, "Query", knowledge_base=path.knowledge_base, options=options, registry=path.registry
        )
        documents = DocumentsFunction(self, "Documents", path=path, options=options)
        functions = {QUERY: query.function, DOCUMENTS: documents.function}
        api = RetrievalApi(self, "Retrieval", functions=functions, options=options)
        CfnOutput(self, "ApiUrl", value=api.url)
        if api.api_key_id:
            CfnOutput(self, "ApiKeyId", value=api.api_key_id)
