"""Fill a collection in a folder and search it, through the engine and through KnowledgeBase."""

import asyncio

from ragstack_common.embedding import HashedEmbedding
from ragstack_common.knowledge_base import KnowledgeBase
from ragstack_common.retrieval import create_retrieval_backend

base = KnowledgeBase("handbook", "store", embedding=HashedEmbedding(), environment={})
assert not base.in_memory
base.collection.add(
    ids=["leave", "lunch"],
    documents=["Employees have thirty days of leave.", "Lunch is at noon."],
    metadatas=[{"source": "leave.md", "year": 2026}, {"source": "lunch.md", "year": 2020}],
)
assert base.retrieve("days of leave", n_results=1)[0]["metadata"]["source"] == "leave.md"


async def main() -> None:
    config = {"type": "chroma", "path": "store", "collection_name": "handbook", "hybrid": True}
    async with create_retrieval_backend(config) as backend:
        found = await backend.retrieve("days of leave", top_k=2, filters={"year": {"$gte": 2025}})
        assert [chunk.source for chunk in found] == ["leave.md"], found


asyncio.run(main())
