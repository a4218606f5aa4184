"""Several backends asked at once, under one deadline, none of which can fail the others."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ragstack_common.deadline import Finished, await_together
from ragstack_common.errors import RagStackError, RetrievalError, RetrievalTimeoutError
from ragstack_common.models import SliceStatus
from ragstack_common.retrieval_errors import reason_of
from ragstack_common.telemetry import LOGGER

T = TypeVar("T")

Call = Awaitable[T] | Callable[[], Awaitable[T]]


@dataclass(frozen=True)
class Ended(Finished[T]):
    """How the call of one backend ended: with a value, or with an error, which a late one has too."""

    @property
    def status(self) -> SliceStatus:
        """The word for it in a report."""
        if self.error is None:
            return "ok"
        return "timeout" if isinstance(self.error, RetrievalTimeoutError | TimeoutError) else "failed"


async def ask_together(calls: Mapping[str, Call[T]], timeout_seconds: float) -> dict[str, Ended[T]]:
    """Await calls at once until all have ended or the time is over; what is late is cancelled and not waited for.

    Args:
        calls: By name, what is awaited, or what makes it: an error of the making is that of its part then.
        timeout_seconds: The time for all of them.

    Returns:
        One entry for each call, in the order of the calls.
    """
    finished = await await_together([partial(_asked, call) for call in calls.values()], timeout_seconds)
    return {name: _ending(end, name, timeout_seconds) for name, end in zip(calls, finished, strict=True)}


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
    """Return the message of an error of RAGStack, and the code or class alone of any other."""
    return " ".join(str(error).split()) if isinstance(error, RagStackError) else reason_of(error)


def _kinds(error: Exception) -> list[type[RagStackError]]:
    """List an error's classes that say what to do and take a message, the nearest first."""
    kinds = [kind for kind in type(error).__mro__ if issubclass(kind, RagStackError) and kind is not RagStackError]
    return [kind for kind in kinds if kind.__init__ is RagStackError.__init__]


def _asked(call: Call[T]) -> Awaitable[T]:
    return call() if callable(call) else call


def _ending(end: Finished[T], name: str, timeout_seconds: float) -> Ended[T]:
    error = end.error
    if end.late:
        error = RetrievalTimeoutError(f"The backend {name} did not answer within {timeout_seconds:.3g} seconds")
    elif error is not None and not isinstance(error, RagStackError):
        LOGGER.warning("the backend %s failed", name, exc_info=error)
    return Ended(end.milliseconds, end.value, error, end.late)
