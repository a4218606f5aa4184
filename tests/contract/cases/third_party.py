"""A third-party backend: only ``retrieve``, registered under a name, in memory."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragstack_common import filters as filter_language
from ragstack_common.embedding import HashedEmbedding
from ragstack_common.search import RetrievalBackend, RetrievedChunk, create_retrieval_backend, register_backend
from ragstack_common.search.models import SearchRequest
from tests.contract.case import Case
from tests.contract.documents import Document


class InMemoryBackend(RetrievalBackend):
    name = "in_memory"

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._embedding = HashedEmbedding()
        self._vectors = self._embedding.embed([document.text for document in documents])

    async def retrieve(
        self,
        query: str,
        top_k: int = 5,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
    ) -> list[RetrievedChunk]:
        request = SearchRequest(query, top_k, min_score, filters)
        scores = (self._vectors @ self._embedding.embed_query(query)).clip(0.0, 1.0).tolist()
        chunks = [
            RetrievedChunk(content=d.text, score=score, source=d.source, metadata=d.metadata, chunk_id=d.id)
            for d, score in zip(self._documents, scores, strict=True)
            if score >= request.score_floor
            and (request.restriction is None or filter_language.evaluate(request.restriction, d.metadata))
        ]
        return sorted(chunks, key=lambda chunk: -chunk.score)[:top_k]


@contextmanager
def _open(documents: Sequence[Document], _folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
    register_backend("in_memory", InMemoryBackend)
    yield lambda: create_retrieval_backend({"type": "in_memory", "documents": documents})


CASES = [Case("third_party", _open, looks_up=False)]
