"""Run an embedding that is pure Python on more than one core."""

import logging
import multiprocessing
import threading
from collections.abc import Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Final

from pebble import ProcessExpired, ProcessPool

from local_bedrock.reading import conversion
from ragstack_common import embedding
from ragstack_common.embedding.protocol import Embedding, EmbeddingClosed, Vectors, cores

STARTED_AFTER_CHARACTERS: Final = 500_000
"""Characters embedded before the processes start: a small data set is faster without them."""

SENT_CHARACTERS: Final = 4_000
"""Shorter calls are embedded in this process: sending the texts takes a millisecond, and so does embedding them."""

CLOSING_CHECK_SECONDS: Final = 0.2

log = logging.getLogger(__name__)


def load(choice: str, cache_folder: Path) -> Embedding:
    """Return the chosen embedding; ``hashed`` runs in worker processes.

    ``hashed`` is not cached. A cache hit takes .01 ms instead of .3, but storing a passage costs the main process
    .06 ms, while embedding it is the work of another process.

    Args:
        choice: As for :func:`ragstack_common.embedding.load`.
        cache_folder: As for :func:`ragstack_common.embedding.load`.

    Raises:
        EmbeddingError: The kind is unknown, or its model is not available.
    """
    chosen = embedding.load(choice, cache_folder)
    return WorkerProcesses(chosen) if isinstance(chosen, embedding.HashedEmbedding) else chosen


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
        self.dimension, self.fusion_weight = inner.dimension, inner.fusion_weight
        self._inner = inner
        self._processes = cores() - 1 if processes is None else processes
        self._started_after = started_after
        self._seen = 0
        self._closed = False
        self._starting = threading.Lock()
        self._pool: ProcessPool | None = None
        self._first: Future[Vectors] | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages; the result doesn't depend on the process."""
        if self._closed:
            raise EmbeddingClosed
        size = sum(map(len, texts))
        pool = self._ready_pool(size)
        if pool is None or size < SENT_CHARACTERS:
            return self._inner.embed(texts)
        try:
            return self._sent(pool, texts)
        except (ProcessExpired, MemoryError, OSError, RuntimeError) as error:
            if self._closed:
                raise EmbeddingClosed from None
            log.warning("An embedding process ended (%s): texts are embedded in the main process from now on", error)
            self._processes = 0
            return self._inner.embed(texts)

    def close(self) -> None:
        """End the processes; calls in progress fail."""
        with self._starting:
            self._closed = True
            if self._pool is not None:
                self._pool.stop()  # type: ignore[no-untyped-call]
                self._pool.join(5)

    def _sent(self, pool: ProcessPool, texts: Sequence[str]) -> Vectors:
        future: Future[Vectors] = pool.schedule(self._inner.embed, args=(list(texts),))
        # The pool never completes the futures of a stopped process.
        while not wait((future,), timeout=CLOSING_CHECK_SECONDS).done:
            if self._closed:
                raise EmbeddingClosed
        return future.result()

    def _ready_pool(self, size: int) -> ProcessPool | None:
        with self._starting:
            self._seen += size
            if self._processes == 0 or self._closed or self._seen < self._started_after:
                return None
            if self._pool is None:
                # A fork would copy the locks of this process's threads.
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPool(self._processes, initializer=conversion.begin, context=context)
                self._first = self._pool.schedule(self._inner.embed, args=([""],))
            return self._pool if self._first is not None and self._first.done() else None
