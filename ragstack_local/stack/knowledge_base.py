"""The knowledge base of the local stack, made through the API like any other."""

import time
from dataclasses import dataclass
from typing import Any, Final

from botocore.config import Config

from ragstack_local.connection import local_client

BUCKET: Final = "ragstack-documents"
NAME: Final = "ragstack-local"
ACCOUNT: Final = "000000000000"
POLL_SECONDS: Final = 0.1
_ROLE_ARN: Final = f"arn:aws:iam::{ACCOUNT}:role/ragstack-local"
_MODEL_ARN: Final = "arn:aws:bedrock:us-east-1::foundation-model/amazon.titan-embed-text-v2:0"


@dataclass(frozen=True)
class LocalKnowledgeBase:
    """The ids of the knowledge base and of its data source, ten alphanumeric characters each."""

    knowledge_base_id: str
    data_source_id: str

    @classmethod
    def ensure(cls, bedrock_endpoint: str) -> "LocalKnowledgeBase":
        """Find the knowledge base of an earlier run, or create it."""
        agent = local_client("bedrock-agent", bedrock_endpoint, Config(retries={"mode": "standard"}))
        found = _named(agent.list_knowledge_bases()["knowledgeBaseSummaries"])
        knowledge_base_id = found["knowledgeBaseId"] if found else _create_knowledge_base(agent)
        _await_active(agent, knowledge_base_id)
        sources = agent.list_data_sources(knowledgeBaseId=knowledge_base_id)["dataSourceSummaries"]
        source = _named(sources)
        return cls(knowledge_base_id, source["dataSourceId"] if source else _create_source(agent, knowledge_base_id))


def _named(summaries: list[Any]) -> Any | None:
    return next((summary for summary in summaries if summary["name"] == NAME), None)


def _create_knowledge_base(agent: Any) -> str:
    # Declared as the vector store that offers hybrid search and every filter operator.
    created = agent.create_knowledge_base(
        name=NAME,
        roleArn=_ROLE_ARN,
        knowledgeBaseConfiguration={
            "type": "VECTOR",
            "vectorKnowledgeBaseConfiguration": {"embeddingModelArn": _MODEL_ARN},
        },
        storageConfiguration={
            "type": "OPENSEARCH_SERVERLESS",
            "opensearchServerlessConfiguration": {
                "collectionArn": f"arn:aws:aoss:us-east-1:{ACCOUNT}:collection/ragstacklocal0000000",
                "vectorIndexName": NAME,
                "fieldMapping": {"vectorField": "vector", "textField": "text", "metadataField": "metadata"},
            },
        },
    )
    return str(created["knowledgeBase"]["knowledgeBaseId"])


def _await_active(agent: Any, knowledge_base_id: str) -> None:
    """Wait while it is CREATING, which the local Bedrock can be told to take its time for."""
    while agent.get_knowledge_base(knowledgeBaseId=knowledge_base_id)["knowledgeBase"]["status"] == "CREATING":
        time.sleep(POLL_SECONDS)


def _create_source(agent: Any, knowledge_base_id: str) -> str:
    created = agent.create_data_source(
        knowledgeBaseId=knowledge_base_id,
        name=NAME,
        dataSourceConfiguration={"type": "S3", "s3Configuration": {"bucketArn": f"arn:aws:s3:::{BUCKET}"}},
    )
    return str(created["dataSource"]["dataSourceId"])
