"""An event loop whose clock moves only when nothing is left to do: what is late is late, on any machine, at once.

For what is written in asyncio alone. A thread or a server works in real time, and its answer would come after every
timeout.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _SkippingSelector(selectors.DefaultSelector):
    """Adds up the time that a loop wants to sleep, and does not sleep."""

    seconds = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select()
        ready = super().select(0)
        if not ready:
            self.seconds += max(0.0, timeout)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Jumps to the next timer when everything else has been done."""

    def __init__(self) -> None:
        self._skipping = _SkippingSelector()
        super().__init__(self._skipping)

    def time(self) -> float:
        return self._skipping.seconds


def run_in_virtual_time(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run to the end, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(coroutine)


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Run an asynchronous test on such a loop."""

    @wraps(test)
    def run(*arguments: P.args, **named: P.kwargs) -> T:
        return run_in_virtual_time(test(*arguments, **named))

    return run
