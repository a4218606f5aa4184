"""A knowledge base of a local Bedrock, whose chunks are those of the documents."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

from local_bedrock.creation import create_knowledge_base
from local_bedrock.pytest_plugin import TemporaryKnowledgeBase
from local_bedrock.server import running
from ragstack_common.search import RetrievalBackend, create_retrieval_backend
from tests.contract.case import PATIENCE_SECONDS, Case
from tests.contract.documents import Document
from tests.local_bedrock.support import client

ONE_SENTENCE = {
    "chunkingStrategy": "FIXED_SIZE",
    "fixedSizeChunkingConfiguration": {"maxTokens": 27, "overlapPercentage": 1},
}
"""Each text of the documents fits in this, and no two of them do: two texts of one source become its two chunks."""


@contextmanager
def _open(documents: Sequence[Document], folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
    with running(folder) as url:
        base = knowledge_base_of(url)
        for source, parts in groupby(documents, key=lambda document: document.source):
            chunks = list(parts)
            base.add({source: "\n\n".join(chunk.text for chunk in chunks)}, chunks[0].metadata)
        yield lambda: create_retrieval_backend(
            {
                "type": "bedrock",
                "timeout_seconds": PATIENCE_SECONDS,
                "knowledge_base_id": base.id,
                "data_source_id": base.data_source_id,
                "vector_store": "OPENSEARCH_SERVERLESS",
                "client": base.client("bedrock-agent-runtime"),
            }
        )


def knowledge_base_of(url: str) -> TemporaryKnowledgeBase:
    agent = client("bedrock-agent", url)
    identifier = create_knowledge_base(agent, "contract")
    source = agent.create_data_source(
        knowledgeBaseId=identifier,
        name="texts",
        dataSourceConfiguration={"type": "CUSTOM"},
        vectorIngestionConfiguration={"chunkingConfiguration": ONE_SENTENCE},
    )
    return TemporaryKnowledgeBase(url, identifier, source["dataSource"]["dataSourceId"])


CASES = [Case("bedrock", _open, keeps_ids=False, metadata_filter=True)]
