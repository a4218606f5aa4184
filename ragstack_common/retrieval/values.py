"""Which values an attribute has among the chunks that a search can find."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from ragstack_common.errors import InvalidFilterError, InvalidQueryError
from ragstack_common.filters import Scalar, parse
from ragstack_common.filters.evaluation import kind_of
from ragstack_common.filters.parsing import MAX_VALUES
from ragstack_common.retrieval.base import RetrievalBackend, narrowed
from ragstack_common.retrieval.models import RetrievedChunk, SearchRequest, check_top_k

DEFAULT_LIMIT: Final = 100
DEFAULT_PAGE: Final = 100

QUERY: Final = "document"
"""What is asked for: any word will do, because it is the filter that decides."""

NO_VALUE: Final = "ragstack: no document has this value"
"""With it, ``notIn`` asks whether the attribute is there at all."""

LISTS_AT_ONCE: Final = 5
"""Values that one search asks for in lists. Source: members of a group in a RetrievalFilter."""

_DIGITS: Final = re.compile(r"(\d+)")
_KINDS: Final = ("boolean", "number", "string")


@dataclass(frozen=True)
class DistinctValues:
    """Values of an attribute.

    Attributes:
        values: Each once: booleans, then numbers by size, then strings, in which numbers count as numbers.
        complete: Whether there are no others.
    """

    values: tuple[Scalar, ...]
    complete: bool


async def distinct_values(
    backend: RetrievalBackend,
    key: str,
    *,
    filters: Mapping[str, Any] | None = None,
    limit: int = DEFAULT_LIMIT,
    query: str = QUERY,
    page_size: int = DEFAULT_PAGE,
) -> DistinctValues:
    """Collect the values of an attribute by searches that leave out what is known, until nothing is left.

    This needs no catalogue and sees what a search sees. Members of lists, which hold strings, count one by one. It
    costs a search for each page of new values, one that finds nothing, and one for every five strings, because a list
    with a known member may hide an unknown one. Where the backend cannot express ``listContains``, these last ones read
    every chunk with the value instead.

    Args:
        backend: A search that asks for more chunks than pass its filter must return all that pass.
        key: The attribute.
        filters: Restricts the chunks that count.
        limit: Values at most, 1 or more.
        query: What the searches ask. Backends that search words only need one that the chunks have.
        page_size: Chunks of one search.

    Returns:
        The values. They are not complete where there are more than *limit*, where a part of a search failed, where
        more chunks hold such lists than one search can return, where a value cannot stand in a filter, or where there
        are more than 1,000, which is what a filter can leave out.

    Raises:
        InvalidFilterError: The backend cannot express ``notIn``; the message names the clause.
        InvalidQueryError: The limit, the page or the query is out of range.
        RetrievalError: Nothing could be found out.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidQueryError(f"limit must be 1 or more, not {limit!r}")
    check_top_k(page_size, backend.max_top_k)
    collection = _Collection(backend, key, SearchRequest(query, page_size, filters=filters), limit)
    await collection.collect()
    await collection.collect_from_lists()
    ordered = sorted(collection.values(), key=natural_order)
    return DistinctValues(tuple(ordered[:limit]), collection.complete and len(ordered) <= limit)


def natural_order(value: Scalar) -> tuple[Any, ...]:
    """Order booleans before numbers before strings, and strings so that v1.9 comes before v1.10."""
    kind = kind_of(value)
    if not isinstance(value, str):
        return _KINDS.index(kind), value
    parts = _DIGITS.split(value.casefold())  # text and digits take turns
    return _KINDS.index(kind), [_size(part) if place % 2 else part for place, part in enumerate(parts)], value


def _size(digits: str) -> tuple[int, str]:
    """Order digits as numbers, however many there are."""
    significant = digits.lstrip("0")
    return len(significant), significant


class _Collection:
    """The values found so far."""

    def __init__(self, backend: RetrievalBackend, key: str, request: SearchRequest, limit: int) -> None:
        self.complete = True
        self._backend = backend
        self._key = key
        self._request = request
        self._limit = limit
        self._known: dict[tuple[str, Scalar], Scalar] = {}  # by kind: 1, 1.0 and True are equal to Python

    def values(self) -> Iterable[Scalar]:
        return self._known.values()

    async def collect(self) -> None:
        """Search without what is known until nothing comes: then every chunk has a value that is known."""
        while len(self._known) <= self._limit:
            if len(self._known) > MAX_VALUES:
                self.complete = False  # a filter cannot leave out more
                return
            chunks = await self._search(narrowed(self._request, *self._unknown()))
            if not chunks:
                return
            if not self._learn(chunks):
                self.complete = False  # what cannot stand in a filter cannot be left out either
                return

    async def collect_from_lists(self) -> None:
        """Look into the lists that hold a known string, because the search before saw few of them."""
        asked: set[Scalar] = set()
        while len(self._known) <= self._limit:
            strings = [value for value in self.values() if isinstance(value, str) and value not in asked]
            if not strings:
                return
            asked.update(strings)
            for start in range(0, len(strings), LISTS_AT_ONCE):
                chunks = await self._chunks_with(strings[start : start + LISTS_AT_ONCE])
                self._learn(chunks)
                self.complete &= len(chunks) < self._backend.max_top_k

    async def _chunks_with(self, values: Sequence[str]) -> list[RetrievedChunk]:
        """Return the chunks with one of the values in a list, or anywhere if the backend cannot tell lists."""
        lists = [{"listContains": {"key": self._key, "value": value}} for value in values]
        in_list = lists[0] if len(lists) == 1 else {"orAll": lists}
        everything = {"top_k": self._backend.max_top_k}
        try:
            return await self._search(narrowed(self._request, in_list, **everything))
        except InvalidFilterError:
            either = {"in": {"key": self._key, "value": list(values)}}
            return await self._search(narrowed(self._request, either, **everything))

    async def _search(self, request: SearchRequest) -> list[RetrievedChunk]:
        outcome = await self._backend.search(request)
        self.complete &= outcome.complete
        return outcome.chunks

    def _unknown(self) -> Iterator[dict[str, Any]]:
        """Write what a chunk with an unknown value must match; the values of each kind by themselves."""
        if not self._known:
            yield {"notIn": {"key": self._key, "value": [NO_VALUE]}}
        for kind in _KINDS:
            values = [value for (its_kind, _), value in self._known.items() if its_kind == kind]
            if values:
                yield {"notIn": {"key": self._key, "value": values}}

    def _learn(self, chunks: Iterable[RetrievedChunk]) -> bool:
        """Take the values of chunks; tell whether there was a new one."""
        before = len(self._known)
        for chunk in chunks:
            value = chunk.metadata.get(self._key)
            for member in value if isinstance(value, list | tuple) else [value]:
                if self._can_be_filtered(member):
                    self._known.setdefault((kind_of(member), member), member)
                else:
                    self.complete = False
        return len(self._known) > before

    def _can_be_filtered(self, member: Any) -> TypeGuard[Scalar]:
        try:
            parse({"notIn": {"key": self._key, "value": [member]}})
        except InvalidFilterError:
            return False
        return True
