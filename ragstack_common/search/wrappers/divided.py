"""A store with short filters: a search within a longer scope runs in parts."""

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Final

from botocore.exceptions import ClientError

from ragstack_common.core.errors import InvalidFilterError, InvalidQueryError, InvalidRequestError, ScopeTooLongError
from ragstack_common.filters import Filter, all_of
from ragstack_common.filters.constraints import constraints, divide
from ragstack_common.search.base import PassingWrapper, RetrievalBackend
from ragstack_common.search.engine import DEFAULT_TIMEOUT_SECONDS
from ragstack_common.search.merge import best_first, identify, select_best
from ragstack_common.search.models import RetrievedChunk, SearchOutcome, SearchRequest, parsed
from ragstack_common.search.parts import search_together

MAX_PARTS: Final = 5
"""Parts of one search. Each is a search of its own, and an account is allowed about 20 searches a second."""

scopes_together: Final[ContextVar[tuple[Filter, ...]]] = ContextVar("scopes_together", default=())
"""The scopes of all parts of the search around a part, so that its scores can be relative to the best of all."""

SHORT_QUERY: Final = 1_000
"""Characters that no store refuses. Third parties report this maximum for queries of knowledge bases."""


class DividedBackend(PassingWrapper):
    """Searches a store that limits the constraints of a filter.

    If filters and scope together have more, the scope is divided: each part is searched with a share of the values of
    its longest ``in``, all in parallel, and the results are merged by their scores. A chunk that several parts find
    counts once, with its best score. A part that fails or is late is a failed part of the outcome.

    Args:
        backend: The scores of two of its searches for one query must be comparable.
        max_constraints: Of one filter; 1 or more.
        count: Counts the constraints of a filter as it is sent.
    """

    name = "divided"

    def __init__(
        self,
        backend: RetrievalBackend,
        max_constraints: int,
        *,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        count: Callable[[Filter | None], int] = constraints,
    ) -> None:
        super().__init__(backend)
        self.max_constraints = max_constraints
        self.timeout_seconds = timeout_seconds
        self._count = count

    async def search(self, request: SearchRequest) -> SearchOutcome:
        """Search, in parts only if one filter is too short for the scope.

        Raises:
            InvalidFilterError: The filters of the request are too long, or leave too little room for the scope.
            ScopeTooLongError: The scope alone is too long, also in parts, or is refused.
        """
        try:
            if self._count(request.restriction) <= self.max_constraints:
                return await self.backend.search(request)
            return await super().search(request)
        except InvalidRequestError as error:
            if _is_about_the_scope(error, request):
                raise ScopeTooLongError(
                    "The vector store refused a search whose only filter is that of the access labels: see the log"
                ) from error
            raise

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        scopes = self._scopes(parsed(request.scope_filter), parsed(request.filters))
        requests = [replace(request, scope_filter=scope) for scope in scopes]
        token = scopes_together.set(scopes)
        try:
            parts = await search_together(
                "backend",
                {f"part-{number}": (self.backend, each) for number, each in enumerate(requests, start=1)},
                self.timeout_seconds,
                fatal=(InvalidFilterError, InvalidQueryError),
            )
        finally:
            scopes_together.reset(token)
        best: dict[Hashable, RetrievedChunk] = {}
        for chunk in best_first(chain.from_iterable(parts.rankings.values())):
            best.setdefault(identify(chunk), chunk)
        return parts.outcome(select_best(list(best.values()), request), request)

    def _scopes(self, scope: Filter | None, filters: Filter | None) -> tuple[Filter, ...]:
        divided = None if scope is None else divide(scope, MAX_PARTS, partial(self._fits, filters))
        if divided is not None:
            return divided
        if scope is None or divide(scope, MAX_PARTS, partial(self._fits, None)) is not None:
            raise InvalidFilterError(
                f"The filter has {constraints(filters)} constraints, of which each value of a list is one. The vector"
                f" store takes {self.max_constraints} in a search, with those of your access labels: use fewer values"
            )
        raise ScopeTooLongError(
            f"What this caller may see takes {constraints(scope)} constraints of a filter, and the vector store takes"
            f" {self.max_constraints} in each of {MAX_PARTS} parts of a search: join access labels that the same"
            " people see"
        )

    def _fits(self, filters: Filter | None, scope: Filter) -> bool:
        return self._count(all_of(scope, filters)) <= self.max_constraints


def _is_about_the_scope(error: InvalidRequestError, request: SearchRequest) -> bool:
    """Whether the service can only have refused the scope, which is not the caller's to change."""
    is_refused = isinstance(error.__cause__, ClientError) and len(request.query) <= SHORT_QUERY
    return is_refused and request.scope_filter is not None and request.filters is None
