"""Chroma in a folder, by vectors alone and by words too, and as the server of its own package."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import chromadb
import httpx
from chromadb.api import ClientAPI
from chromadb.api.client import Client

from ragstack_common.embedding import HashedEmbedding
from ragstack_common.search import RetrievalBackend, create_retrieval_backend
from tests.contract.case import PATIENCE_SECONDS, Case, Make
from tests.contract.documents import Document
from tests.support.children import child

COLLECTION = "contract"
PATIENT = {"timeout_seconds": PATIENCE_SECONDS}
MAX_STARTS = 5


def closed(client: ClientAPI) -> Client:
    """Return a client that its block closes, which chromadb does not declare."""
    assert isinstance(client, Client)
    return client


def fill(client: Any, documents: Sequence[Document], space: str = "cosine", name: str = COLLECTION) -> None:
    collection = client.create_collection(
        name,
        configuration={"hnsw": {"space": space}},
        metadata={"ragstack:embedding": "hashed"},
        embedding_function=None,
    )
    collection.add(
        ids=[document.id for document in documents],
        documents=[document.text for document in documents],
        metadatas=[{"source": document.source, **document.metadata} for document in documents],
        embeddings=HashedEmbedding().embed([document.text for document in documents]),
    )


@contextmanager
def server(folder: Path) -> Iterator[int]:
    """Start Chroma's own server on a free port, or on another one if the port was taken meanwhile."""
    for _ in range(MAX_STARTS):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [str(Path(sys.executable).with_name("chroma")), "run", "--host", "127.0.0.1", "--port", str(port)]
        with child([*command, "--path", str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            if _is_up(process, port):
                yield port
                return
    raise TimeoutError("the Chroma server did not start")


def _is_up(process: "subprocess.Popen[bytes]", port: int) -> bool:
    """Wait for its answer; return False if it ends instead."""
    for _ in range(1_000):
        if process.poll() is not None:
            return False
        try:
            httpx.get(f"http://127.0.0.1:{port}/api/v2/heartbeat", timeout=30).raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.05)
        else:
            return True
    return False


def _in_folder(
    space: str = "cosine", **options: Any
) -> Callable[[Sequence[Document], Path], AbstractContextManager[Make]]:
    @contextmanager
    def opened(documents: Sequence[Document], folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
        with closed(chromadb.PersistentClient(folder)) as client:
            fill(client, documents, space)
        config = {"type": "chroma", "path": str(folder), "collection_name": COLLECTION, **PATIENT, **options}
        yield lambda: create_retrieval_backend(config)

    return opened


@contextmanager
def _on_server(documents: Sequence[Document], folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
    with server(folder) as port:
        with closed(chromadb.HttpClient("127.0.0.1", port)) as client:
            fill(client, documents)
        place = {"host": "127.0.0.1", "port": port, "collection_name": COLLECTION}
        config = {"type": "chroma", **place, **PATIENT, "hybrid": True}
        yield lambda: create_retrieval_backend(config)


CASES = [
    Case("chroma", _in_folder()),
    Case("chroma_hybrid", _in_folder(hybrid=True)),
    Case("chroma_server", _on_server, opens_twice=False),
]
