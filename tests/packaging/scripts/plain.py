"""Search a Bedrock knowledge base with nothing but the library's own dependencies, and meet what they leave out."""

import asyncio

from ragstack_common.core.errors import KnowledgeBaseNotFoundError, MissingPackageError
from ragstack_common.multislice_retriever import MultiSliceRetriever
from ragstack_common.search import create_retrieval_backend


def missing(config: dict[str, object]) -> str:
    try:
        create_retrieval_backend(config)
    except MissingPackageError as error:
        return str(error)
    raise AssertionError("nothing is missing")


async def search() -> None:
    async with create_retrieval_backend({"type": "bedrock", "knowledge_base_id": "ABCDEFGHIJ"}) as backend:
        await backend.retrieve("anything")


for find in (
    lambda: asyncio.run(search()),
    lambda: MultiSliceRetriever().search("anything", "ABCDEFGHIJ", None, {"year": {"$gte": 2020}}),
):
    try:
        find()
    except KnowledgeBaseNotFoundError:
        continue
    raise AssertionError("there is no such knowledge base")

assert "pip install 'ragstack-kb[chroma] @ file://" in missing({"type": "chroma"})
assert "pip install 'ragstack-kb[milvus] @ file://" in missing({"type": "milvus"})
try:
    import ragstack_common.embedding  # noqa: F401
except ImportError as error:
    assert "pip install 'ragstack-kb[local] @ file://" in str(error)  # noqa: PT017 - a script, which pytest does not run
else:
    raise AssertionError("numpy is installed")
