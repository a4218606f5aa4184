"""Fill a collection in a folder and search it, through the engine, KnowledgeBase and the command line."""

import asyncio
import subprocess
import sys
from pathlib import Path

from ragstack_common.embedding import HashedEmbedding
from ragstack_common.knowledge_base import KnowledgeBase
from ragstack_common.search import create_retrieval_backend

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

Path("texts").mkdir()
Path("texts/leave.md").write_text("Employees have thirty days of leave.")
Path("texts/lunch.html").write_text("<p>Lunch is at noon.</p>")
ragstack = Path(sys.executable).parent / "ragstack"
for arguments in (["build", "texts"], ["query", "thirty days", "--engine", "chroma"]):
    done = subprocess.run([ragstack, *arguments, "--db-path", "built"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
assert "leave.md" in done.stdout, done
