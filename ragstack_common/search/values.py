"""The values of an attribute among the chunks that a search can find."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.filters import Filter, Scalar, parse
from ragstack_common.filters.parsing import MAX_VALUES
from ragstack_common.filters.tree import kind_of
from ragstack_common.search.base import RetrievalBackend, narrowed
from ragstack_common.search.models import FilterSource, RetrievedChunk, SearchRequest, check_top_k

LISTS_AT_ONCE: Final = 5
"""Values that one search looks for in lists. Source: members of a group in a RetrievalFilter."""

_DIGITS: Final = re.compile(r"(\d+)")
_KINDS: Final = ("boolean", "number", "string")


@dataclass(frozen=True)
class DistinctValues:
    """Values of an attribute.

    Attributes:
        values: Each once: booleans, then numbers, then strings in natural order (v1.9 before v1.10).
        complete: Whether these are all values.
    """

    values: tuple[Scalar, ...]
    complete: bool


async def distinct_values(
    backend: RetrievalBackend,
    key: str,
    *,
    filters: FilterSource | None = None,
    limit: int = 100,
    query: str = "document",
    page_size: int = 100,
) -> DistinctValues:
    """Collect the values of an attribute by searches that exclude the known values, until they find nothing.

    This needs no catalogue and sees what a search sees. Members of lists count one by one. It costs one search for
    each page of new values, one that finds nothing, and one for every five strings, because a list with a known member
    may contain an unknown one. If the backend cannot express ``listContains``, the latter read every chunk with the
    value instead. A backend that searches only words needs a *query* that the chunks contain.

    Returns:
        The values. They are incomplete if there are more than *limit*, if a part of a search failed, if more chunks
        have such lists than one search can return, if a value cannot be used in a filter, or if there are more than
        a filter can exclude: 1,000, or fewer with some stores.

    Raises:
        InvalidFilterError: The backend cannot express ``notIn``; the message names the clause.
        InvalidQueryError: The limit, the page or the query is out of range.
        RetrievalError: A search failed.
    """
    check_top_k(limit, math.inf, "limit")
    check_top_k(page_size, backend.max_top_k)
    collection = _Collection(backend, key, SearchRequest(query, page_size, filters=filters), limit)
    await collection.collect()
    await collection.collect_from_lists()
    ordered = sorted(collection.known.values(), key=natural_order)
    return DistinctValues(tuple(ordered[:limit]), collection.complete and len(ordered) <= limit)


def natural_order(value: Scalar) -> tuple[Any, ...]:
    """Order booleans before numbers before strings, and strings so that v1.9 comes before v1.10."""
    kind = kind_of(value)
    if not isinstance(value, str):
        return _KINDS.index(kind), value
    parts = _DIGITS.split(value.casefold())  # text and digits take turns
    return _KINDS.index(kind), [_size(part) if place % 2 else part for place, part in enumerate(parts)], value


def _size(digits: str) -> tuple[int, str]:
    """Order digits as numbers of any length."""
    significant = digits.lstrip("0")
    return len(significant), significant


@dataclass
class _Collection:
    """The values found so far, by kind: 1, 1.0 and True are equal to Python."""

    backend: RetrievalBackend
    key: str
    request: SearchRequest
    limit: int
    complete: bool = True
    known: dict[tuple[str, Scalar], Scalar] = field(default_factory=dict)

    async def collect(self) -> None:
        """Search without the known values until nothing is found."""
        while len(self.known) <= self.limit:
            if len(self.known) > MAX_VALUES:
                self.complete = False  # a filter cannot exclude more
                return
            try:
                chunks = await self._search(narrowed(self.request, *self._unknown()))
            except InvalidFilterError:
                if not self.known:
                    raise
                self.complete = False  # the store takes no filter that excludes this many
                return
            if not chunks:
                return
            if not self._learn(chunks):
                self.complete = False  # a value that cannot be used in a filter cannot be excluded either
                return

    async def collect_from_lists(self) -> None:
        """Search the lists that contain a known string: the first searches excluded them."""
        searched: set[Scalar] = set()
        while len(self.known) <= self.limit:
            strings = [value for value in self.known.values() if isinstance(value, str) and value not in searched]
            if not strings:
                return
            searched.update(strings)
            for start in range(0, len(strings), LISTS_AT_ONCE):
                chunks = await self._chunks_with(strings[start : start + LISTS_AT_ONCE])
                self._learn(chunks)
                self.complete &= len(chunks) < self.backend.max_top_k

    async def _chunks_with(self, values: Sequence[str]) -> list[RetrievedChunk]:
        """Return the chunks with one of the values in a list, or anywhere if the backend has no listContains."""
        lists = [{"listContains": {"key": self.key, "value": value}} for value in values]
        in_list = lists[0] if len(lists) == 1 else {"orAll": lists}
        everything = {"top_k": self.backend.max_top_k}
        try:
            return await self._search(narrowed(self.request, parse(in_list), **everything))
        except InvalidFilterError:
            either = {"in": {"key": self.key, "value": list(values)}}
            return await self._search(narrowed(self.request, parse(either), **everything))

    async def _search(self, request: SearchRequest) -> list[RetrievedChunk]:
        outcome = await self.backend.search(request)
        self.complete &= outcome.complete
        return outcome.chunks

    def _unknown(self) -> Iterator[Filter]:
        """Yield the filters that a chunk with an unknown value matches, one for each kind of value."""
        if not self.known:
            # No document has this value, so that notIn finds every chunk that has the attribute.
            yield parse({"notIn": {"key": self.key, "value": ["ragstack: no document has this value"]}})
        for kind in _KINDS:
            values = [value for (its_kind, _), value in self.known.items() if its_kind == kind]
            if values:
                yield parse({"notIn": {"key": self.key, "value": values}})

    def _learn(self, chunks: Iterable[RetrievedChunk]) -> bool:
        """Add the values of chunks; return whether there was a new one."""
        before = len(self.known)
        for chunk in chunks:
            value = chunk.metadata.get(self.key)
            for member in value if isinstance(value, list | tuple) else [value]:
                if self._can_be_filtered(member):
                    self.known.setdefault((kind_of(member), member), member)
                else:
                    self.complete = False
        return len(self.known) > before

    def _can_be_filtered(self, member: Any) -> TypeGuard[Scalar]:
        try:
            parse({"notIn": {"key": self.key, "value": [member]}})
        except InvalidFilterError:
            return False
        return True
