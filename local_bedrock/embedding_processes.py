"""An embedding in pure Python, on more than one core."""

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
"""Embedded before the processes are started: a small data set is done sooner without them."""

SENT_CHARACTERS: Final = 4_000
"""Fewer in one call are embedded at once: sending them takes a millisecond, like embedding them."""

CLOSING_CHECK_SECONDS: Final = 0.2

log = logging.getLogger(__name__)


def load(choice: str, cache_folder: Path) -> Embedding:
    """Return the chosen embedding, on more than one core.

    ``hashed`` is not cached: finding a passage takes .01 ms instead of .3, but keeping it costs the one process that
    also stores it .06 ms, where embedding it is another's work.

    Args:
        choice: As for :func:`ragstack_common.embedding.load`.
        cache_folder: The same.

    Raises:
        EmbeddingError: There is no such kind, or its model cannot be had.
    """
    chosen = embedding.load(choice, cache_folder)
    return WorkerProcesses(chosen) if isinstance(chosen, embedding.HashedEmbedding) else chosen


class WorkerProcesses(Embedding):
    """Embeds large batches in other processes, so that they do not hold up the threads of this one.

    Spawned while this process goes on by itself, and ended with it. Where they fail, it does the work again.

    Args:
        inner: Can be pickled.
        processes: At most; one core is left to this process. 0 embeds everything here.
        started_after: Characters to embed before the processes are started.
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
        """Embed passages, here or elsewhere, with the same result."""
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
            log.warning("A process that embeds texts ended (%s): this process embeds them from now on", error)
            self._processes = 0
            return self._inner.embed(texts)

    def close(self) -> None:
        """End the processes; what they were at fails."""
        with self._starting:
            self._closed = True
            if self._pool is not None:
                self._pool.stop()  # type: ignore[no-untyped-call]
                self._pool.join(5)

    def _sent(self, pool: ProcessPool, texts: Sequence[str]) -> Vectors:
        future: Future[Vectors] = pool.schedule(self._inner.embed, args=(list(texts),))
        # The pool leaves the futures of a stopped process as they are.
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
                # Spawned, because a fork would copy the locks of this process's threads.
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPool(self._processes, initializer=conversion.begin, context=context)
                self._first = self._pool.schedule(self._inner.embed, args=([""],))
            return self._pool if self._first is not None and self._first.done() else None
