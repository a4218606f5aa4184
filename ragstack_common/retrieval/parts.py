"""Several backends asked at once, under one deadline, none of which can fail the others."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from ragstack_common.errors import RagStackError, RetrievalError, RetrievalTimeoutError
from ragstack_common.models import SliceStatus

T = TypeVar("T")

Call = Awaitable[T] | Callable[[], Awaitable[T]]


@dataclass(frozen=True)
class Ended(Generic[T]):
    """How the call of one backend ended: with a value, or with an error."""

    milliseconds: float
    value: T | None = None
    error: Exception | None = None

    @property
    def status(self) -> SliceStatus:
        """The word for it in a report."""
        if self.error is None:
            return "ok"
        return "timeout" if isinstance(self.error, RetrievalTimeoutError | TimeoutError) else "failed"


_stragglers: Final[set[asyncio.Future[Any]]] = set()
"""Calls that were cancelled and have not ended: the event loop itself holds them by weak references."""


async def ask_together(calls: Mapping[str, Call[T]], timeout_seconds: float) -> dict[str, Ended[T]]:
    """Await calls at once until all have ended or the time is over; what is late is cancelled and not waited for.

    Args:
        calls: By name, what is awaited, or what makes it: an error of the making is that of its part then.
        timeout_seconds: The time for all of them.

    Returns:
        One entry for each call, in the order of the calls.
    """
    start = time.perf_counter()

    async def timed(call: Call[T]) -> Ended[T]:
        try:
            value = await (call() if callable(call) else call)
        except Exception as error:  # noqa: BLE001 - it is reported, and does not fail the others
            return Ended(_since(start), error=error)
        return Ended(_since(start), value)

    tasks = {name: asyncio.create_task(timed(call)) for name, call in calls.items()}
    if not tasks:
        return {}
    try:
        await asyncio.wait(tasks.values(), timeout=timeout_seconds)
    finally:
        for task in tasks.values():
            if not task.done():
                _give_up(task)
    return {name: _ending(task, name, timeout_seconds, start) for name, task in tasks.items()}


def failure_of(errors: Mapping[str, Exception], what: str) -> RagStackError:
    """Make one error of those of all parts: of their nearest common class, with every cause named.

    Args:
        errors: By the name of the part, at least one.
        what: What went wrong, as the message shall begin.
    """
    causes = list(errors.values())
    shared = (kind for kind in _kinds(causes[0]) if all(isinstance(cause, kind) for cause in causes))
    kind = next(shared, RetrievalError)
    named = "; ".join(f"{name}: {one_line(error)}" for name, error in errors.items())
    error = kind(f"{what}. {named}")
    error.__cause__ = ExceptionGroup(what, causes)
    return error


def one_line(error: Exception) -> str:
    """Say what an error says, and of which class it is where it is none of RAGStack's."""
    text = " ".join(str(error).split())
    return text if isinstance(error, RagStackError) else f"{type(error).__name__}: {text}".removesuffix(": ")


def _kinds(error: Exception) -> list[type[RagStackError]]:
    """List an error's classes that say what to do and take a message, the nearest first."""
    kinds = [kind for kind in type(error).__mro__ if issubclass(kind, RagStackError) and kind is not RagStackError]
    return [kind for kind in kinds if kind.__init__ is RagStackError.__init__]


def _give_up(task: "asyncio.Future[Ended[T]]") -> None:
    _stragglers.add(task)
    task.add_done_callback(_stragglers.discard)
    task.cancel()


def _ending(task: "asyncio.Future[Ended[T]]", name: str, timeout_seconds: float, start: float) -> Ended[T]:
    if task.done() and not task.cancelled():
        return task.result()
    late = RetrievalTimeoutError(f"The backend {name} did not answer within {timeout_seconds:g} seconds")
    return Ended(_since(start), error=late)


def _since(start: float) -> float:
    return (time.perf_counter() - start) * 1000
