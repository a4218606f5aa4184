"""The knowledge base of the local stack, made through the API like any other."""

from dataclasses import dataclass
from typing import Any, Final

from botocore.config import Config

from local_bedrock.creation import MCP_TAGS, await_active, create_knowledge_base
from ragstack_local.connection import local_client

BUCKET: Final = "ragstack-documents"
NAME: Final = "ragstack-local"


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
        knowledge_base_id = found["knowledgeBaseId"] if found else create_knowledge_base(agent, NAME)
        await_active(agent, knowledge_base_id)
        if found:  # perhaps by a version that set no tags
            arn = agent.get_knowledge_base(knowledgeBaseId=knowledge_base_id)["knowledgeBase"]["knowledgeBaseArn"]
            agent.tag_resource(resourceArn=arn, tags=MCP_TAGS)
        sources = agent.list_data_sources(knowledgeBaseId=knowledge_base_id)["dataSourceSummaries"]
        source = _named(sources)
        return cls(knowledge_base_id, source["dataSourceId"] if source else _create_source(agent, knowledge_base_id))


def _named(summaries: list[Any]) -> Any | None:
    return next((summary for summary in summaries if summary["name"] == NAME), None)


def _create_source(agent: Any, knowledge_base_id: str) -> str:
    created = agent.create_data_source(
        knowledgeBaseId=knowledge_base_id,
        name=NAME,
        dataSourceConfiguration={"type": "S3", "s3Configuration": {"bucketArn": f"arn:aws:s3:::{BUCKET}"}},
    )
    return str(created["dataSource"]["dataSourceId"])
