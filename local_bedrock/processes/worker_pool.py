"""Worker processes for work that would block the threads of the server, or that can be hostile."""

import logging
import multiprocessing
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from pebble import ProcessPool

MEMORY_LIMIT: Final = 1536 * 1024**2
"""Bytes of memory of one worker process; its libraries take a tenth."""

TOO_MUCH_MEMORY_CODE: Final = 97
"""Exit code of a process that ended itself; not used otherwise."""

WATCH_SECONDS: Final = 0.05
WATCHED_SHARE: Final = 0.9
"""Share of the memory limit at which a process ends itself; at the limit itself, libraries fail or abort."""

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
                    self._processes, initializer=_begin, initargs=(self._memory_limit,), context=context
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


def _begin(memory_limit: int) -> None:
    """Prepare a worker process: watch its memory, end it with its parent, and disable logging.

    Watching is not enough for hostile files, because a library that doesn't release the interpreter's lock can allocate
    gigabytes between two checks. Calls therefore also use :func:`limited_memory`,
    which the kernel enforces.
    """
    logging.disable(logging.CRITICAL)
    threading.Thread(target=_watch, args=(os.getppid(), memory_limit), daemon=True).start()


def _watch(parent: int, memory_limit: int) -> None:
    # A killed parent can't enforce the time limit.
    while os.getppid() == parent:
        try:
            taken = _memory_bytes()
        except MemoryError:
            taken = memory_limit
        if taken > WATCHED_SHARE * memory_limit:
            os._exit(TOO_MUCH_MEMORY_CODE)
        time.sleep(WATCH_SECONDS)
    os._exit(1)


def _memory_bytes() -> int:
    """Return the resident memory, or its peak where only that is available."""
    if sys.platform == "linux":
        # ru_maxrss starts with the peak of the parent.
        return _memory_pages()[1] * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _memory_pages() -> tuple[int, int]:
    """Return the size of the address space and of its resident part."""
    with open("/proc/self/statm", "rb") as statistics:  # noqa: PTH123 - twenty times a second
        reserved, resident, *_ = statistics.read().split()
    return int(reserved), int(resident)


@contextmanager
def limited_memory(limit: int) -> Iterator[None]:
    """Limit the address space so that the process's memory stays below the limit.

    The limit doesn't count the gigabyte that the libraries reserve and never use.
    """
    if sys.platform != "linux":
        yield
        return
    reserved, resident = _memory_pages()
    untouched = (reserved - resident) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (untouched + limit, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
