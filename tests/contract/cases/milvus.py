"""Milvus on a Milvus Lite file, in the layout that `create` makes, and in one with columns and dynamic fields."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ragstack_common.embedding import HashedEmbedding
from ragstack_common.search import RetrievalBackend, create_retrieval_backend
from tests.contract.case import PATIENCE_SECONDS, Case
from tests.contract.documents import Document
from tests.support.milvus import looking_soon

PATIENT: Any = {"timeout_seconds": PATIENCE_SECONDS}


@contextmanager
def _made_here(documents: Sequence[Document], folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
    pytest.importorskip("milvus_lite", reason="needs the extra milvus")
    from ragstack_common.search.engines.milvus.backend import MilvusBackend  # noqa: PLC0415 - an extra
    from ragstack_common.search.engines.milvus.collection import MilvusDocument  # noqa: PLC0415 - as above

    async def fill(backend: MilvusBackend) -> None:
        await backend.create()
        await backend.add(MilvusDocument(d.id, d.text, d.source, d.metadata) for d in documents)

    config = {"type": "milvus", "uri": str(folder / "made.db"), "collection_name": "handbook", **PATIENT}
    keeper = MilvusBackend(
        config["uri"], config["collection_name"], **PATIENT
    )  # keeps the server from starting for every test
    with looking_soon():
        asyncio.run(fill(keeper))
    yield lambda: create_retrieval_backend(config)
    asyncio.run(keeper.close())


@contextmanager
def _made_elsewhere(documents: Sequence[Document], folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
    pytest.importorskip("milvus_lite", reason="needs the extra milvus")
    from pymilvus import DataType, MilvusClient  # noqa: PLC0415 - an extra

    embedding = HashedEmbedding()
    client = MilvusClient(str(folder / "elsewhere.db"))
    schema = client.create_schema(auto_id=False, enable_dynamic_field=True)
    schema.add_field("pk", DataType.VARCHAR, is_primary=True, max_length=64)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=embedding.dimension)
    schema.add_field("content", DataType.VARCHAR, max_length=4096)
    schema.add_field("corpus", DataType.VARCHAR, max_length=64, nullable=True)
    schema.add_field("year", DataType.INT16, nullable=True)
    schema.add_field("score", DataType.DOUBLE, nullable=True)
    schema.add_field("public", DataType.BOOL, nullable=True)
    index = client.prepare_index_params("vector", index_type="AUTOINDEX", metric_type="IP")
    with looking_soon():
        client.create_collection("handbook", schema=schema, index_params=index)
    vectors = embedding.embed([document.text for document in documents])
    missing = {"corpus": None, "year": None, "score": None, "public": None}
    rows = [
        {"pk": d.id, "vector": vector.tolist(), "content": d.text, "source": d.source, **missing, **d.metadata}
        for d, vector in zip(documents, vectors, strict=True)
    ]
    client.insert("handbook", rows)
    config = {
        "type": "milvus",
        "uri": str(folder / "elsewhere.db"),
        "collection_name": "handbook",
        "text_field": "content",
        "embedding": embedding.name,
        **PATIENT,
    }
    yield lambda: create_retrieval_backend(config)
    client.close()


CASES = [Case("milvus", _made_here), Case("milvus_dynamic", _made_elsewhere)]
