"""Create knowledge bases through the API."""

import time
from typing import Any, Final

ACCOUNT: Final = "000000000000"
MCP_TAGS: Final = {"mcp-multirag-kb": "true"}
"""AWS's MCP server lists only knowledge bases with this tag. Source: awslabs.bedrock-kb-retrieval-mcp-server 1.1.2."""

_MODEL_ARN: Final = "arn:aws:bedrock:us-east-1::foundation-model/amazon.titan-embed-text-v2:0"


def create_knowledge_base(agent: Any, name: str) -> str:
    """Create a knowledge base on the vector store that supports hybrid search and every filter operator.

    Returns:
        The id of the ACTIVE knowledge base.
    """
    created = agent.create_knowledge_base(
        name=name,
        roleArn=f"arn:aws:iam::{ACCOUNT}:role/ragstack-local",
        knowledgeBaseConfiguration={
            "type": "VECTOR",
            "vectorKnowledgeBaseConfiguration": {"embeddingModelArn": _MODEL_ARN},
        },
        storageConfiguration={
            "type": "OPENSEARCH_SERVERLESS",
            "opensearchServerlessConfiguration": {
                "collectionArn": f"arn:aws:aoss:us-east-1:{ACCOUNT}:collection/ragstacklocal0000000",
                "vectorIndexName": "ragstack-local",
                "fieldMapping": {"vectorField": "vector", "textField": "text", "metadataField": "metadata"},
            },
        },
        tags=MCP_TAGS,
    )
    identifier = str(created["knowledgeBase"]["knowledgeBaseId"])
    await_active(agent, identifier)
    return identifier


def await_active(agent: Any, knowledge_base_id: str) -> None:
    """Wait while the knowledge base is CREATING."""
    while agent.get_knowledge_base(knowledgeBaseId=knowledge_base_id)["knowledgeBase"]["status"] == "CREATING":
        time.sleep(0.02)
