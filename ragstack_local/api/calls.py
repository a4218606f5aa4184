"""Calls of operations, which are asynchronous, from commands, which are not."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Generator
from functools import cache
from typing import TypeVar

T = TypeVar("T")


def run(work: Awaitable[T]) -> T:
    """Await an operation; Ctrl-C cancels it."""

    async def awaited() -> T:
        return await work

    coroutine = awaited()
    try:
        return _runner().run(coroutine)
    except asyncio.CancelledError:
        # A task that was cancelled twice, as libraries do, does not tell asyncio that an interrupt was the reason.
        raise KeyboardInterrupt from None
    except KeyboardInterrupt:
        # Just before the operation starts, an interrupt leaves its task in the loop; just after it has ended, a call
        # that stops the loop.
        loop = _runner().get_loop()
        for task in asyncio.all_tasks(loop):
            if task.get_coro() is coroutine:
                task.cancel()
        loop.call_soon(loop.stop)
        loop.run_forever()
        if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
            coroutine.close()  # it was interrupted before there was a task
            if inspect.iscoroutine(work):
                work.close()
        raise


def each(events: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """Yield the events of an operation; closing the iterator ends the operation."""
    try:
        while (event := run(anext(events, None))) is not None:
            yield event
    finally:
        run(events.aclose())


@cache
def _runner() -> asyncio.Runner:
    """Return the one event loop, which is kept: connections and shared searches belong to it."""
    return asyncio.Runner(loop_factory=asyncio.new_event_loop)
