"""Several searches in parallel under one deadline, without one failure failing the others."""

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

from ragstack_common.core.aws_errors import public_reason
from ragstack_common.core.deadline import Finished, await_together
from ragstack_common.core.errors import RagStackError, RetrievalError, RetrievalTimeoutError
from ragstack_common.core.telemetry import LOGGER
from ragstack_common.search.base import RetrievalBackend
from ragstack_common.search.merge import best_relevance, kept_notes
from ragstack_common.search.models import Note, RetrievedChunk, SearchOutcome, SearchRequest, SliceReport

PartKind: TypeAlias = Literal["backend", "corpus", "slice"]


@dataclass(frozen=True)
class Parts:
    """Searches that ran in parallel.

    Attributes:
        reports: One for each search, or for each part of a search that has several.
        start: When the searches began, by ``time.perf_counter``.
    """

    found: dict[str, SearchOutcome]
    reports: tuple[SliceReport, ...]
    start: float

    @property
    def rankings(self) -> dict[str, list[RetrievedChunk]]:
        """The chunks of each search, best first."""
        return {name: outcome.chunks for name, outcome in self.found.items()}

    @property
    def attributes(self) -> dict[str, list[dict[str, Any]]]:
        """The attributes of the chunks of each search, best first."""
        return {name: [chunk.metadata for chunk in chunks] for name, chunks in self.rankings.items()}

    def joined(self, later: "Parts") -> "Parts":
        """Add searches that began later."""
        return Parts({**self.found, **later.found}, (*self.reports, *later.reports), self.start)

    def explained(self, name: str, trust: float, reason: str) -> "Parts":
        """Add to the reports of one slice how far it is trusted, and why."""
        return replace(
            self,
            reports=tuple(
                replace(each, trust=trust, reason=reason) if each.slice == name else each for each in self.reports
            ),
        )

    def outcome(self, chunks: list[RetrievedChunk], request: SearchRequest, **fields: Any) -> SearchOutcome:
        """Return the merged outcome for the merged chunks, with further fields."""
        # Why words were not searched is the same for every part.
        notes = dict.fromkeys(
            each if each.kind == "words" else Note(each.kind, f"{name}: {each.text}")
            for name, found in self.found.items()
            for each in found.notes
        )
        ages = [outcome.age_seconds for outcome in self.found.values() if outcome.age_seconds is not None]
        return SearchOutcome(
            chunks,
            self.reports,
            (time.perf_counter() - self.start) * 1000,
            notes=kept_notes(notes, chunks, request),
            age_seconds=max(ages, default=None),
            best_relevance=best_relevance(outcome.best_relevance for outcome in self.found.values()),
            **fields,
        )


async def search_together(
    kind: PartKind,
    searches: Mapping[str, tuple[RetrievalBackend, SearchRequest]],
    timeout_seconds: float,
    *,
    fatal: tuple[type[Exception], ...] = (),
    optional: Collection[str] = (),
) -> Parts:
    """Search in parallel until all searches have ended or the deadline has come; late ones are abandoned.

    The *kind* says what the names of the searches name. Errors of *optional* searches are only reported.

    Raises:
        RagStackError: One failed with a *fatal* error, or all but the *optional* ones, and these found nothing.
    """
    start = time.perf_counter()
    calls = [partial(backend.search, request) for backend, request in searches.values()]
    ended = dict(zip(searches, await await_together(calls, timeout_seconds), strict=True))
    errors = {name: error for name, end in ended.items() if (error := _error_of(name, end, timeout_seconds))}
    required = {name: error for name, error in errors.items() if name not in optional}
    for error in required.values():
        if isinstance(error, fatal):
            raise error
    answered = (end.value.chunks or name not in optional for name, end in ended.items() if end.value is not None)
    if required and not any(answered):
        raise joint_failure(required)
    for name, error in errors.items():
        unexpected = None if isinstance(error, RagStackError) else error
        LOGGER.warning("%s failed: %s", name, type(error).__name__, exc_info=unexpected)
    return Parts(
        {name: end.value for name, end in ended.items() if end.value is not None},
        tuple(report for name, end in ended.items() for report in _reports(kind, name, end, errors.get(name))),
        start,
    )


def joint_failure(errors: Mapping[str, Exception]) -> Exception:
    """Return one error for several, at least one, by the name of the part.

    It is the first if all that were not late failed alike, otherwise one of their nearest common class that names every
    cause.
    """
    causes = list(errors.values())
    own = [error for error in causes if not isinstance(error, RetrievalTimeoutError)] or causes
    if len({(type(error), str(error)) for error in own}) == 1 and isinstance(own[0], RagStackError):
        return own[0]
    shared = (kind for kind in _kinds(causes[0]) if all(isinstance(cause, kind) for cause in causes))
    named = "; ".join(f"{name}: {one_line(error)}" for name, error in errors.items())
    error = next(shared, RetrievalError)(f"Every part of the search failed. {named}")
    error.__cause__ = ExceptionGroup("Every part of the search failed", causes)
    return error


def one_line(error: Exception) -> str:
    """Return the message of an error of RAGStack, and only the code or class of any other."""
    return " ".join(str(error).split()) if isinstance(error, RagStackError) else public_reason(error)


def _error_of(name: str, end: Finished[SearchOutcome], timeout_seconds: float) -> Exception | None:
    if end.late:
        return RetrievalTimeoutError(f"The backend {name} did not answer within {timeout_seconds:.3g} seconds")
    return end.error


def _reports(kind: PartKind, name: str, end: Finished[SearchOutcome], error: Exception | None) -> Iterator[SliceReport]:
    place: dict[str, Any] = {kind: name}
    if end.value is None:
        is_late = isinstance(error, RetrievalTimeoutError | TimeoutError)
        line = None if error is None else one_line(error)
        yield SliceReport(**place, status="timeout" if is_late else "failed", milliseconds=end.milliseconds, error=line)
        return
    own = SliceReport(status="ok", milliseconds=end.milliseconds, hits=len(end.value.chunks))
    reports = end.value.parts or (own,)
    for report in reports:
        inner = report.backend if len(reports) > 1 else None  # the only backend needs no name
        yield replace(report, **{"backend": inner, **place})


def _kinds(error: Exception) -> list[type[RagStackError]]:
    """List the classes of an error that take only a message, the nearest first."""
    kinds = [kind for kind in type(error).__mro__ if issubclass(kind, RagStackError) and kind is not RagStackError]
    return [kind for kind in kinds if kind.__init__ is RagStackError.__init__]
