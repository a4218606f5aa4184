"""The third party's backend, with look-ups, and what opens wrappers around it by configuration."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from ragstack_common.retrieval import RetrievalBackend, RetrievedChunk, create_retrieval_backend, register_backend
from tests.contract.cases.third_party import InMemoryBackend
from tests.contract.documents import Document

Configure = Callable[[Sequence[Document]], Mapping[str, Any]]


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


def opened_by(
    configure: Configure,
) -> Callable[[Sequence[Document], Path], AbstractContextManager[Callable[[], RetrievalBackend]]]:
    """Return what a case opens: the backends of a configuration, made by the factory."""

    @contextmanager
    def opened(documents: Sequence[Document], _folder: Path) -> Iterator[Callable[[], RetrievalBackend]]:
        register_backend("in_memory_by_id", LookingUpBackend)
        yield lambda: create_retrieval_backend(configure(documents))

    return opened
