"""The embeddings of the knowledge bases; one that is pure Python runs on more than one core."""

import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from pebble import ProcessExpired

from local_bedrock.processes.worker_pool import PoolClosed, WorkerPool
from ragstack_common import embedding
from ragstack_common.embedding import EmbeddingError
from ragstack_common.embedding.protocol import Embedding, EmbeddingClosed, Vectors, cores
from ragstack_common.settings.model_cache import KNOWN
from ragstack_common.settings.names import DEFAULT_EMBEDDING

if TYPE_CHECKING:
    from concurrent.futures import Future

STARTED_AFTER_CHARACTERS: Final = 500_000
"""Characters embedded before the processes start: a small data set is faster without them."""

SENT_CHARACTERS: Final = 4_000
"""Shorter calls are embedded in this process: sending the texts takes a millisecond, and so does embedding them."""

log = logging.getLogger(__name__)


def load(choice: str, cache_folder: Path) -> Embedding:
    """Return the chosen embedding; ``hashed`` runs in worker processes.

    ``hashed`` is not cached. A cache hit takes .01 ms instead of .3, but storing a passage costs the main process
    .06 ms, while embedding it is the work of another process.

    Raises:
        EmbeddingError: The kind is unknown, or its model is not available.
    """
    chosen = embedding.load(choice, cache_folder)
    return WorkerProcesses(chosen) if isinstance(chosen, embedding.HashedEmbedding) else chosen


class UnavailableEmbedding(Embedding):
    """Stands for an embedding that is not on this machine: every text is the zero vector, so that words decide."""

    cosine_share = 0.0
    fusion_weight = 0.0

    def __init__(self, name: str, dimension: int) -> None:
        self.name = self.description = name
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return zeros."""
        return np.zeros((len(texts), self.dimension), dtype=np.float32)


@dataclass(frozen=True)
class Embeddings:
    """The embedding for new knowledge bases, and earlier ones by name, until their texts are embedded again."""

    chosen: Embedding
    earlier: Mapping[str, Embedding] = field(default_factory=dict)

    def named(self, name: str) -> Embedding:
        """Return the embedding of a knowledge base that records this name."""
        return self.earlier.get(name, self.chosen)

    def close(self) -> None:
        """Close all of them."""
        for each in (self.chosen, *self.earlier.values()):
            each.close()


def load_earlier(name: str, dimension: int, cache_folder: Path) -> Embedding:
    """Return the embedding that a knowledge base was made with, if it is on this machine."""
    choice = embedding.embedding_choice(name)
    if choice is not None and choice.partition("#")[0] in (DEFAULT_EMBEDDING, *KNOWN):
        with suppress(EmbeddingError):
            found = load(choice, cache_folder)
            if (found.name, found.dimension) == (name, dimension):
                return found
    return UnavailableEmbedding(name, dimension)


class WorkerProcesses(Embedding):
    """Embeds large batches in worker processes, so that they don't block the threads of this process.

    The processes start in the background and end with this process. If one fails, this process takes over.

    Args:
        inner: The embedding; must be picklable.
        processes: Number of processes; by default one less than the number of cores. 0 embeds everything here.
        started_after: Characters to embed before the processes start.
    """

    def __init__(
        self, inner: Embedding, *, processes: int | None = None, started_after: int = STARTED_AFTER_CHARACTERS
    ) -> None:
        self.name, self.description = inner.name, inner.description
        self.dimension = inner.dimension
        self.cosine_share, self.fusion_weight = inner.cosine_share, inner.fusion_weight
        self._inner = inner
        count = cores() - 1 if processes is None else processes
        self._pool = WorkerPool(count)
        self._is_usable = count > 0
        self._left = started_after
        self._lock = threading.Lock()
        self._closed = False
        self._first: Future[Vectors] | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages; the result doesn't depend on the process."""
        if self._closed:
            raise EmbeddingClosed
        size = sum(map(len, texts))
        if not self._has_started(size) or size < SENT_CHARACTERS:
            return self._inner.embed(texts)
        try:
            return self._pool.call(self._inner.embed, list(texts))
        except PoolClosed:
            raise EmbeddingClosed from None
        except (ProcessExpired, MemoryError, OSError, RuntimeError) as error:
            if self._closed:
                raise EmbeddingClosed from None
            log.warning("An embedding process ended (%s): texts are embedded in the main process from now on", error)
            self._is_usable = False
            return self._inner.embed(texts)

    def close(self) -> None:
        """End the processes; calls in progress fail."""
        self._closed = True
        self._pool.close()

    def _has_started(self, size: int) -> bool:
        """Count characters, and start the processes in the background when there are enough."""
        with self._lock:
            self._left -= size
            if self._is_usable and self._left <= 0 and self._first is None:
                self._first = self._pool.schedule(self._inner.embed, [""])
            return self._is_usable and self._first is not None and self._first.done()
