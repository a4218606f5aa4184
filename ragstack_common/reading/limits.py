"""Limits of the processes that read files, which can be hostile, and the reasons for files that break them."""

import logging
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MEMORY_LIMIT: Final = 1536 * 1024**2
"""Bytes of memory of one process; its libraries take a tenth."""

TOO_MUCH_MEMORY_CODE: Final = 97
"""Exit code of a process that ended itself; not used otherwise."""

WATCH_SECONDS: Final = 0.05
WATCHED_SHARE: Final = 0.9
"""Share of the memory limit at which a process ends itself; at the limit itself, libraries fail or abort."""


def watch(memory_limit: int) -> None:
    """Prepare a process: watch its memory, end it with its parent, and disable logging.

    Watching is not enough for hostile files, because a library that doesn't release the interpreter's lock can allocate
    gigabytes between two checks. Reading therefore also uses :func:`limited_memory`, which the kernel enforces.
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

    The limit doesn't count the gigabyte that the libraries reserve and never use, so they are loaded before.
    """
    if sys.platform != "linux":
        yield
        return
    reserved, resident = _memory_pages()
    untouched = (reserved - resident) * resource.getpagesize()
    before, most = resource.getrlimit(resource.RLIMIT_AS)
    allowed = untouched + limit if most == resource.RLIM_INFINITY else min(untouched + limit, most)
    resource.setrlimit(resource.RLIMIT_AS, (allowed, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, most))


def took_too_long(file_format: str, seconds: float) -> str:
    """Return the reason why a file was not read that took longer than the time limit."""
    return f"Reading the .{file_format} file took longer than {seconds:g} seconds: split it."


def ended_its_reader(file_format: str, exit_code: int | None) -> str:
    """Return the reason why a file was not read whose process ended.

    Args:
        file_format: Its format.
        exit_code: Negative for a signal, as in ``subprocess``.
    """
    # C++ libraries abort when they get no memory; damaged files cause other signals.
    if exit_code in (TOO_MUCH_MEMORY_CODE, -signal.SIGABRT):
        return f"Reading the .{file_format} file took too much memory: split it, or save it with less in it."
    return f"Reading the .{file_format} file ended its reader (exit code {exit_code}): the file is damaged."
