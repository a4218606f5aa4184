"""Create knowledge bases through the API."""

import time
from typing import Any, Final

from ragstack_common.settings.names import CONNECTOR_SOURCE, CUSTOM_CONNECTOR, METADATA_KEY, TEXT_KEY

ACCOUNT: Final = "000000000000"
MCP_TAGS: Final = {"mcp-multirag-kb": "true"}
"""AWS's MCP server lists only knowledge bases with this tag. Source: awslabs.bedrock-kb-retrieval-mcp-server 1.1.2."""

_MODEL_ARN: Final = "arn:aws:bedrock:us-east-1::foundation-model/amazon.titan-embed-text-v2:0"
_DIMENSION: Final = 1024
"""Of the model's vectors; shorter ones of the local embeddings are filled up."""

_OPENSEARCH: Final = {
    "type": "OPENSEARCH_SERVERLESS",
    "opensearchServerlessConfiguration": {
        "collectionArn": f"arn:aws:aoss:us-east-1:{ACCOUNT}:collection/ragstacklocal0000000",
        "vectorIndexName": "ragstack-local",
        "fieldMapping": {"vectorField": "vector", "textField": "text", "metadataField": "metadata"},
    },
}


def create_vector_index(vectors: Any, name: str) -> str:
    """Create an index of S3 Vectors, in a bucket of the same name, for a knowledge base whose words are searched.

    Returns:
        Its ARN.
    """
    vectors.create_vector_bucket(vectorBucketName=name)
    created = vectors.create_index(
        vectorBucketName=name,
        indexName=name,
        dataType="float32",
        dimension=_DIMENSION,
        distanceMetric="cosine",
        metadataConfiguration={
            "nonFilterableMetadataKeys": [TEXT_KEY, METADATA_KEY],
            "textSearchConfigurations": [{"metadataKey": TEXT_KEY}],
        },
    )
    return str(created["indexArn"])


def create_knowledge_base(agent: Any, name: str, index_arn: str | None = None) -> str:
    """Create a knowledge base on an index of S3 Vectors, or on the store that has every search and filter operator.

    Returns:
        The id of the ACTIVE knowledge base.
    """
    return _create_knowledge_base(
        agent,
        name,
        knowledgeBaseConfiguration={
            "type": "VECTOR",
            "vectorKnowledgeBaseConfiguration": {"embeddingModelArn": _MODEL_ARN},
        },
        storageConfiguration=_OPENSEARCH
        if index_arn is None
        else {"type": "S3_VECTORS", "s3VectorsConfiguration": {"indexArn": index_arn}},
    )


def create_managed_knowledge_base(agent: Any, name: str) -> str:
    """Create a knowledge base of type MANAGED, as create_knowledge_base does."""
    return _create_knowledge_base(
        agent,
        name,
        knowledgeBaseConfiguration={
            "type": "MANAGED",
            "managedKnowledgeBaseConfiguration": {"embeddingModelType": "MANAGED"},
        },
    )


def _create_knowledge_base(agent: Any, name: str, **configuration: Any) -> str:
    role = f"arn:aws:iam::{ACCOUNT}:role/ragstack-local"
    created = agent.create_knowledge_base(name=name, roleArn=role, tags=MCP_TAGS, **configuration)
    identifier = str(created["knowledgeBase"]["knowledgeBaseId"])
    await_active(agent, identifier)
    return identifier


def create_custom_connector(agent: Any, knowledge_base_id: str, name: str) -> str:
    """Connect a managed knowledge base to documents that are submitted one by one.

    Returns:
        The id of the AVAILABLE data source.
    """
    created = agent.create_data_source(
        knowledgeBaseId=knowledge_base_id,
        name=name,
        dataSourceConfiguration={
            "type": CONNECTOR_SOURCE,
            "managedKnowledgeBaseConnectorConfiguration": {"connectorParameters": CUSTOM_CONNECTOR},
        },
    )
    ids = {"knowledgeBaseId": knowledge_base_id, "dataSourceId": created["dataSource"]["dataSourceId"]}
    while agent.get_data_source(**ids)["dataSource"]["status"] == "CREATING":
        time.sleep(0.02)
    return str(ids["dataSourceId"])


def await_active(agent: Any, knowledge_base_id: str) -> None:
    """Wait while the knowledge base is CREATING."""
    while agent.get_knowledge_base(knowledgeBaseId=knowledge_base_id)["knowledgeBase"]["status"] == "CREATING":
        time.sleep(0.02)
