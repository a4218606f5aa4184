"""A store in parts: a search skips the parts that its filters exclude."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ragstack_common.core.errors import InvalidRequestError
from ragstack_common.filters import Filter, possible_values
from ragstack_common.search.base import ReportingBackend, RetrievalBackend
from ragstack_common.search.engine import DEFAULT_TIMEOUT_SECONDS
from ragstack_common.search.models import RetrievedChunk, SearchOutcome, SearchRequest
from ragstack_common.search.tracing import describe_span
from ragstack_common.search.wrappers.federated import FederatedBackend

MAX_PARTS: Final = 20
"""Parts of one search. Each is a search of its own, and an account is allowed about 20 searches a second."""


@dataclass(frozen=True)
class Part:
    """A part of a store, and the values of the attribute that its chunks can have."""

    backend: RetrievalBackend
    values: frozenset[str]


class PartitionedBackend(ReportingBackend):
    """Searches the parts of a store that can have a match, and orders the chunks of several by their scores.

    The filters of a search decide: a part is left out if none of its values of one attribute can match. A search
    without such a filter searches all parts. So the filters, such as the scope of a caller, also limit what is searched
    and paid for.

    Args:
        key: The attribute, of which each chunk has one value at most.
        parts: By name; their scores must be comparable.
    """

    name = "partitioned"

    def __init__(
        self, key: str, parts: Mapping[str, Part], *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    ) -> None:
        self.key = key
        self.parts = MappingProxyType(dict(parts))
        self._all = FederatedBackend(
            {name: part.backend for name, part in parts.items()}, timeout_seconds=timeout_seconds, merge="scores"
        )
        self.max_top_k = min(part.backend.max_top_k for part in parts.values())

    async def get_by_id(self, chunk_id: str) -> RetrievedChunk | None:
        """Return the chunk from the first part that has it, as a federation does."""
        return await self._all.get_by_id(chunk_id)

    async def close(self) -> None:
        """Close every part, even if closing one fails."""
        await self._all.close()

    async def health_check(self) -> bool:
        """Return whether at least one part would answer before the deadline."""
        return await self._all.health_check()

    async def _search(self, request: SearchRequest) -> SearchOutcome:
        chosen = self._chosen(request.restriction)
        describe_span({"collection_name": ", ".join(chosen)})
        if len(chosen) > MAX_PARTS:
            raise InvalidRequestError(
                f"The search is one of {len(chosen)} knowledge bases, and at most {MAX_PARTS} can be searched together:"
                f' name values of {self.key}, such as {{"{self.key}": "..."}}, in a strict filter'
            )
        if len(chosen) == 1:
            return await self.parts[chosen[0]].backend.search(request)
        several = {name: self.parts[name].backend for name in chosen}
        return await FederatedBackend(several, timeout_seconds=self._all.timeout_seconds, merge="scores").search(
            request
        )

    def _chosen(self, restriction: Filter | None) -> list[str]:
        """Return the parts that can have a match; if none can, the first, which finds nothing."""
        values = possible_values(restriction, self.key)
        if values is None:
            return [*self.parts]
        return [name for name, part in self.parts.items() if not part.values.isdisjoint(values)] or [*self.parts][:1]
