"""Worker processes for work that would block the threads of the server, or that can be hostile."""

import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from pebble import ProcessPool

from ragstack_common.reading.limits import MEMORY_LIMIT, watch

T = TypeVar("T")


class PoolClosed(Exception):  # noqa: N818 - expected at the end
    """The pool was closed before the call ended."""


class WorkerPool:
    """Processes with limited memory that start with the first call and end with this process.

    Args:
        processes: Maximum number of concurrent calls.
        memory_limit: Bytes of one process, including its libraries.
    """

    def __init__(self, processes: int, memory_limit: int = MEMORY_LIMIT) -> None:
        self._processes = processes
        self._memory_limit = memory_limit
        self._lock = threading.Lock()
        self._closed = False
        self._pool: ProcessPool | None = None

    def schedule(self, function: Callable[..., T], *args: Any, timeout: float | None = None) -> Future[T]:
        """Start a call in the background.

        Args:
            function: Must be picklable, like its arguments.
            args: For the function.
            timeout: Seconds after which the call is ended with a TimeoutError.

        Raises:
            PoolClosed: The pool is closed.
        """
        with self._lock:
            if self._closed:
                raise PoolClosed
            if self._pool is None or not self._pool.active:
                # A fork would copy the locks of this process's threads.
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPool(
                    self._processes, initializer=watch, initargs=(self._memory_limit,), context=context
                )
            future: Future[T] = self._pool.schedule(function, args=args, timeout=timeout)
            return future

    def call(self, function: Callable[..., T], *args: Any, timeout: float | None = None) -> T:
        """Call a function in a worker process, and wait for its result; arguments as in :meth:`schedule`.

        Raises:
            PoolClosed: The pool was closed.
            TimeoutError: The time limit was reached.
            ProcessExpired: The process ended.
        """
        future = self.schedule(function, *args, timeout=timeout)
        # The pool never completes the futures of a stopped process.
        while not wait((future,), timeout=0.2).done:
            if self._closed:
                raise PoolClosed
        return future.result()

    def close(self) -> None:
        """End the processes; calls in progress raise PoolClosed."""
        with self._lock:
            self._closed = True
            if self._pool is not None:
                self._pool.stop()  # type: ignore[no-untyped-call]
                self._pool.join(5)
