"""Where the time of an ingestion goes."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal

Stage = Literal["read", "parse", "chunk", "embed", "store"]
STAGES: Final[tuple[Stage, ...]] = ("read", "parse", "chunk", "embed", "store")


class Timings:
    """Sums over all documents since the start, from any thread.

    Args:
        clock: Seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seconds: dict[Stage, float] = dict.fromkeys(STAGES, 0.0)
        self._documents = 0
        self._chunks = 0

    @contextmanager
    def measured(self, stage: Stage) -> Iterator[None]:
        """Add the time of the block to a stage, whether or not it succeeds."""
        start = self._clock()
        try:
            yield
        finally:
            taken = self._clock() - start
            with self._lock:
                self._seconds[stage] += taken

    def count(self, *, chunks: int) -> None:
        """Count a document that was indexed."""
        with self._lock:
            self._documents += 1
            self._chunks += chunks

    def snapshot(self) -> dict[str, float]:
        """Return ``{stage}_seconds`` of every stage, summed over the threads, and the documents and chunks indexed."""
        with self._lock:
            seconds = {f"{stage}_seconds": self._seconds[stage] for stage in STAGES}
            return {**seconds, "documents": self._documents, "chunks": self._chunks}
