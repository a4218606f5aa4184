"""Calls in parallel under one deadline that holds, whatever the calls do."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from typing import Final, Generic, TypeVar

T = TypeVar("T")

THREADS: Final = 64
"""Calls at once in one process, those that were abandoned and have not ended yet included."""


@dataclass(frozen=True)
class Finished(Generic[T]):
    """How one call ended: with a value, with an error, or, having neither, after the deadline."""

    milliseconds: float
    value: T | None = None
    error: Exception | None = None


def call_together(calls: Sequence[Callable[[], T]], timeout_seconds: float) -> list[Finished[T]]:
    """Run the calls in parallel and come back when all have ended or the deadline has come.

    A call that outlives the deadline is abandoned: it ends in its own time, in its thread, and nobody waits for it.
    The threads outlive the call, so that a search does not pay for starting them.

    Returns:
        One entry for each call, in the order of the calls.
    """
    start = time.perf_counter()
    futures = [_threads().submit(_timed, call, start) for call in calls]
    wait(futures, timeout=timeout_seconds)
    return [_finished(future, start) for future in futures]


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="ragstack-slice")


def _timed(call: Callable[[], T], start: float) -> Finished[T]:
    try:
        value = call()
    except Exception as error:  # noqa: BLE001 - it is reported to the caller, who knows which errors are whose
        return Finished(_milliseconds_since(start), error=error)
    return Finished(_milliseconds_since(start), value=value)


def _finished(future: "Future[Finished[T]]", start: float) -> Finished[T]:
    # A call that no thread was free for is taken back, so that it does not run later for nobody.
    if future.cancel() or not future.done():
        return Finished(_milliseconds_since(start))
    return future.result()


def _milliseconds_since(start: float) -> float:
    return (time.perf_counter() - start) * 1000
