"""Backends that index documents, each with an empty store."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local_bedrock.server import running
from ragstack_common.search import create_retrieval_backend
from tests.contract.case import PATIENCE_SECONDS, Make
from tests.contract.cases.bedrock import knowledge_base_of
from tests.support.milvus import looking_soon

PATIENT: dict[str, Any] = {"timeout_seconds": PATIENCE_SECONDS}


@dataclass(frozen=True)
class Writable:
    """One engine or wrapper.

    Attributes:
        name: Name in the test's id.
        open: Yields a function that makes backends of an empty store in the folder.
        chunk_is_document: A chunk has the document's id and source; otherwise the document's id is its source.
        has_embeddings: Searches can return embeddings.
        rejected: The id of a document that only the store rejects; None if there is none.
    """

    name: str
    open: Callable[[Path], AbstractContextManager[Make]]
    chunk_is_document: bool = True
    has_embeddings: bool = True
    rejected: str | None = None


@contextmanager
def _chroma(folder: Path) -> Iterator[Make]:
    config = {"type": "chroma", "path": str(folder / "new"), "collection_name": "written", **PATIENT}
    yield lambda: create_retrieval_backend(config)


@contextmanager
def _milvus(folder: Path) -> Iterator[Make]:
    pytest.importorskip("milvus_lite", reason="needs the extra milvus")
    from milvus_lite.server_manager import server_manager_instance  # noqa: PLC0415 - an extra

    uri = str(folder / "new.db")
    with looking_soon():
        yield lambda: create_retrieval_backend({"type": "milvus", "uri": uri, "collection_name": "written", **PATIENT})
    server_manager_instance.release_server(uri)


@contextmanager
def _bedrock(folder: Path) -> Iterator[Make]:
    with running(folder) as url:
        base = knowledge_base_of(url)
        place = {"knowledge_base_id": base.id, "data_source_id": base.data_source_id}
        clients = {"client": base.client("bedrock-agent-runtime"), "agent_client": base.client("bedrock-agent")}
        yield lambda: create_retrieval_backend({"type": "bedrock", **place, **clients, **PATIENT})


@contextmanager
def _wrapped(folder: Path) -> Iterator[Make]:
    config: dict[str, Any] = {"type": "chroma", "path": str(folder / "new"), "collection_name": "written", **PATIENT}
    for wrapper in ("multislice", "reranked", "cached", "metered"):
        config = {"type": wrapper, "backend": config}
    yield lambda: create_retrieval_backend(config)


ALL = [
    Writable("chroma", _chroma),
    Writable("milvus", _milvus, rejected="x" * 513),
    Writable("bedrock", _bedrock, chunk_is_document=False, has_embeddings=False, rejected="x" * 2049),
    Writable("wrapped", _wrapped),
]
