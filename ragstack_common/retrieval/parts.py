"""Several backends asked in parallel under one deadline, without one failure failing the others; and their reports."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from ragstack_common.deadline import Finished, await_together
from ragstack_common.errors import RagStackError, RetrievalError, RetrievalTimeoutError
from ragstack_common.retrieval.models import SearchOutcome, SliceReport, SliceStatus
from ragstack_common.retrieval_errors import reason_of
from ragstack_common.telemetry import LOGGER

T = TypeVar("T")

Call = Awaitable[T] | Callable[[], Awaitable[T]]


@dataclass(frozen=True)
class Ended(Finished[T]):
    """How one call ended: with a value or an error. A late call has an error too."""

    @property
    def status(self) -> SliceStatus:
        """The status in a report."""
        if self.error is None:
            return "ok"
        return "timeout" if isinstance(self.error, RetrievalTimeoutError | TimeoutError) else "failed"


async def ask_together(calls: Mapping[str, Call[T]], timeout_seconds: float) -> dict[str, Ended[T]]:
    """Await calls in parallel until all have ended or the deadline has come; late calls are cancelled and abandoned.

    Args:
        calls: By name, an awaitable or a function that returns one; an error of the function counts as the call's.
        timeout_seconds: The time for all of them.

    Returns:
        One entry for each call, in the order of the calls.
    """
    finished = await await_together([partial(_asked, call) for call in calls.values()], timeout_seconds)
    return {name: _ending(end, name, timeout_seconds) for name, end in zip(calls, finished, strict=True)}


def raise_if_all_failed(ended: Mapping[str, Ended[T]], what: str) -> None:
    """Raise an error if no call has succeeded, and log the failures otherwise.

    Raises:
        RagStackError: Of the nearest common class of the errors; it names every cause.
    """
    errors = {name: end.error for name, end in ended.items() if end.error is not None}
    if len(errors) < len(ended):
        for name, error in errors.items():
            LOGGER.warning("%s failed: %s", name, type(error).__name__)
        return
    raise failure_of(errors, what)


def failure_of(errors: Mapping[str, Exception], what: str) -> RagStackError:
    """Return one error for several: of their nearest common class, naming every cause.

    Args:
        errors: By the name of the part, at least one.
        what: The beginning of the message.
    """
    causes = list(errors.values())
    shared = (kind for kind in _kinds(causes[0]) if all(isinstance(cause, kind) for cause in causes))
    kind = next(shared, RetrievalError)
    named = "; ".join(f"{name}: {one_line(error)}" for name, error in errors.items())
    error = kind(f"{what}. {named}")
    error.__cause__ = ExceptionGroup(what, causes)
    return error


def reports_of(name: str, end: Ended[SearchOutcome]) -> Iterable[SliceReport]:
    """Report on a part, and on those of its own parts that failed."""
    if end.value is None:
        yield SliceReport(name, end.status, end.milliseconds, 0, None if end.error is None else one_line(end.error))
        return
    yield SliceReport(name, "ok", end.milliseconds, len(end.value.chunks))
    for part in end.value.parts:
        if part.status != "ok":
            yield replace(part, name=f"{name}/{part.name}")


def one_line(error: Exception) -> str:
    """Return the message of an error of RAGStack, and only the code or class of any other."""
    return " ".join(str(error).split()) if isinstance(error, RagStackError) else reason_of(error)


def _kinds(error: Exception) -> list[type[RagStackError]]:
    """List the classes of an error that take only a message, the nearest first."""
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
