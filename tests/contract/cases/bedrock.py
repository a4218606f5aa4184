"""A knowledge base of a local Bedrock, whose chunks are those of the documents."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

from local_bedrock.creation import create_knowledge_base, create_vector_index
from local_bedrock.pytest_plugin import TemporaryKnowledgeBase
from local_bedrock.server import running
from ragstack_common.search import RetrievalBackend, create_retrieval_backend
from ragstack_common.settings.names import MANAGED, OPENSEARCH_SERVERLESS, S3_VECTORS
from tests.contract.case import PATIENCE_SECONDS, Case
from tests.contract.documents import Document
from tests.local_bedrock.support import CUSTOM_MODEL, Bedrock, client, connector_configuration
from tests.support.waiting import eventually

ONE_SENTENCE = {
    "chunkingStrategy": "FIXED_SIZE",
    "fixedSizeChunkingConfiguration": {"maxTokens": 27, "overlapPercentage": 1},
}
"""Each text of the documents fits in this, and no two of them do: two texts of one source become its two chunks."""


@contextmanager
def _open(documents: Sequence[Document], folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
    with _filled(documents, folder) as base:
        yield lambda: create_retrieval_backend(
            {**_options(base), "vector_store": OPENSEARCH_SERVERLESS},
        )


@contextmanager
def _open_index(documents: Sequence[Document], folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
    """On S3 Vectors, whose words are searched in the index."""
    with _filled(documents, folder, S3_VECTORS) as base:
        clients = {"index_client": base.client("s3vectors"), "agent_client": base.client("bedrock-agent")}
        yield lambda: create_retrieval_backend({**_options(base), **clients, "vector_store": S3_VECTORS})


@contextmanager
def _open_managed(documents: Sequence[Document], folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
    """Of type MANAGED, with the connector CUSTOM."""
    with _filled(documents, folder, MANAGED) as base:
        yield lambda: create_retrieval_backend({**_options(base), "vector_store": MANAGED})


def _options(base: TemporaryKnowledgeBase) -> dict[str, Any]:
    return {
        "type": "bedrock",
        "timeout_seconds": PATIENCE_SECONDS,
        "knowledge_base_id": base.id,
        "data_source_id": base.data_source_id,
        "client": base.client("bedrock-agent-runtime"),
    }


@contextmanager
def _filled(
    documents: Sequence[Document], folder: Path, store: str = OPENSEARCH_SERVERLESS
) -> Iterator[TemporaryKnowledgeBase]:
    with running(folder) as url:
        base = knowledge_base_of(url, store)
        for source, parts in groupby(documents, key=lambda document: document.source):
            chunks = list(parts)
            base.add({source: "\n\n".join(chunk.text for chunk in chunks)}, chunks[0].metadata)
        yield base


def knowledge_base_of(url: str, store: str) -> TemporaryKnowledgeBase:
    agent = client("bedrock-agent", url)
    if store == MANAGED:
        identifier = Bedrock.at(url).managed_base("contract", **CUSTOM_MODEL)
    else:
        index = create_vector_index(client("s3vectors", url), "contract") if store == S3_VECTORS else None
        identifier = create_knowledge_base(agent, "contract", index)
    source = agent.create_data_source(
        knowledgeBaseId=identifier,
        name="texts",
        dataSourceConfiguration=connector_configuration("CUSTOM") if store == MANAGED else {"type": "CUSTOM"},
        vectorIngestionConfiguration={"chunkingConfiguration": ONE_SENTENCE},
    )["dataSource"]
    ids = {"knowledgeBaseId": identifier, "dataSourceId": source["dataSourceId"]}
    eventually(lambda: agent.get_data_source(**ids)["dataSource"]["status"] == "AVAILABLE")
    return TemporaryKnowledgeBase(url, *ids.values())


CASES = [
    Case("bedrock", _open, keeps_ids=False, metadata_filter=True),
    Case(
        "bedrock-s3-vectors",
        _open_index,
        keeps_ids=False,
        metadata_filter=True,
        refuses=frozenset({"startsWith", "stringContains", "listContains"}),
    ),
    Case(
        "bedrock-managed",
        _open_managed,
        keeps_ids=False,
        metadata_filter=True,
        refuses=frozenset({"startsWith", "stringContains"}),
    ),
]
