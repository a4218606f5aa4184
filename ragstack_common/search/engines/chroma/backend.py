"""Chroma as an engine: a folder on this machine, or a server. Needs the extra ``chroma``."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import chromadb

from ragstack_common.core.deadline import in_thread
from ragstack_common.embedding import Embedding
from ragstack_common.filters import Filter
from ragstack_common.search.engine import DEFAULT_TIMEOUT_SECONDS, BatchEngine
from ragstack_common.search.engines.chroma.collection import ChromaCollection
from ragstack_common.search.engines.chroma.search import DEFAULT_SCAN_LIMIT, CollectionSearch
from ragstack_common.search.engines.chroma.store import ClientConnection, Connection, FolderConnection
from ragstack_common.search.indexing import parse_documents, put_in_batches
from ragstack_common.search.models import RetrievedChunk
from ragstack_common.search.tracing import Attributes


class ChromaBackend(BatchEngine):
    """Searches a collection. It opens the store at the first search. Only :meth:`index` creates anything.

    The vector index is approximate (HNSW) and looks at 100 neighbours or more. Among 10,000 vectors it then found
    99.8 % of the nearest ten with Chroma's own settings, and all of them with the settings of ``ragstack build``.

    Args:
        path: Folder of an embedded store; give this or *host*.
        port: Port of the server; by default the one of ``chroma run``.
        headers: Sent with every request to the server, such as a token.
        tenant: Tenant on the server; None is Chroma's default.
        database: Database on the server; None is Chroma's default.
        embedding: The collection's embedding; None uses the recorded one.
        hybrid: Whether a keyword search (BM25 over all chunks) ranks too. It reads the collection into memory, and
            again after every change.
        source_key: Attribute that names the document of a chunk; None uses the first of source, path, url, uri and
            file_name that a chunk has.
        scan_limit: Size of the largest collection whose metadata are read for a filter that Chroma cannot express;
            0 rejects such filters.

    Raises:
        ValueError: Neither or both of path and host are given, or a value is out of range.
        EmbeddingError: The embedding cannot be loaded.
    """

    name = "chroma"
    approximate = True
    has_embeddings = True

    def __init__(
        self,
        path: str | Path | None = None,
        collection_name: str = "",
        *,
        host: str | None = None,
        port: int = 8000,
        ssl: bool = False,
        headers: Mapping[str, str] | None = None,
        tenant: str | None = None,
        database: str | None = None,
        embedding: Embedding | str | None = None,
        hybrid: bool = False,
        source_key: str | None = None,
        scan_limit: int = DEFAULT_SCAN_LIMIT,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        super().__init__(timeout_seconds=timeout_seconds)
        if (path is None) == (host is None):
            raise ValueError("give either the path of a folder or the host of a server")
        if not collection_name:
            raise ValueError("collection_name is missing")
        if scan_limit < 0:
            raise ValueError(f"scan_limit must be 0 or more, not {scan_limit}")
        server: dict[str, Any] = {"host": host, "port": port, "ssl": ssl, "headers": headers and dict(headers)}
        server |= {"tenant": tenant, "database": database}
        options = {name: value for name, value in server.items() if value is not None}
        connection: Connection = (
            FolderConnection(Path(path))
            if path is not None
            else ClientConnection(f"the server {host}:{port}", lambda: chromadb.HttpClient(**options))
        )
        self.hybrid = hybrid
        self._collection = ChromaCollection(connection, collection_name, embedding, source_key)
        self._searcher = CollectionSearch(self._collection, scan_limit)

    def _source_keys(self) -> Sequence[str]:
        return self._collection.source_keys

    async def _find_several(
        self, queries: Sequence[str], count: int, filters: Filter | None
    ) -> list[list[RetrievedChunk]]:
        return await in_thread(lambda: self._searcher.several(queries, count, filters, hybrid=self.hybrid))

    async def get_by_id(self, chunk_id: str) -> RetrievedChunk | None:
        """Return the chunk with this id, with a score of 1, or None."""
        collection = self._collection
        look_up = partial(collection.run, lambda handle: collection.chunks(handle, {chunk_id: 1.0}))
        found = await self.within_deadline(in_thread(look_up))
        return found[0] if found else None

    async def index(self, documents: Sequence[Mapping[str, Any]]) -> list[str]:
        """Store documents, each as one chunk. A missing collection is created, and so is a missing folder."""
        checked = parse_documents(documents)
        return await in_thread(lambda: put_in_batches(checked, 256, self._collection.put))

    async def health_check(self) -> bool:
        """Check that the collection exists and can be read; it may be empty."""
        try:
            await self.within_deadline(in_thread(lambda: self._collection.run(lambda h: h.collection.count())))
        except Exception:  # noqa: BLE001 - every failure means unhealthy
            return False
        return True

    def _vectors(self, ids: Sequence[str]) -> dict[str, list[float]]:
        found = self._collection.run(lambda handle: self._collection.vectors(handle, ids))
        return {key: vector.tolist() for key, vector in found.items()}

    async def close(self) -> None:
        """Close the embedding, and the store after its last search."""
        await in_thread(self._collection.close)

    def span_attributes(self) -> Attributes:
        """Show the collection."""
        return {"collection_name": self._collection.name}
