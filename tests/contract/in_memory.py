"""The third party's backend, with look-ups."""

from collections.abc import Sequence
from typing import Any

from ragstack_common.search import RetrievedChunk
from tests.contract.cases.third_party import InMemoryBackend
from tests.contract.documents import Document


class LookingUpBackend(InMemoryBackend):
    """Finds chunks by their ids too."""

    async def get_by_id(self, chunk_id: str) -> RetrievedChunk | None:
        for d in self._documents:
            if d.id == chunk_id:
                return RetrievedChunk(content=d.text, score=1.0, source=d.source, metadata=d.metadata, chunk_id=d.id)
        return None


def holding(documents: Sequence[Document]) -> dict[str, Any]:
    """Return the configuration of a backend that holds the documents."""
    return {"type": "in_memory_by_id", "documents": documents}
