"""Distinct values, compared with the attributes of the documents."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ragstack_common import filters as filter_language
from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.filters import Operator, clauses_of
from ragstack_common.filters.tree import kind_of
from ragstack_common.search import RetrievalBackend, RetrievedChunk, SearchOutcome, SearchRequest
from ragstack_common.search.models import MAX_TOP_K, SliceReport
from ragstack_common.search.values import DistinctValues, distinct_values, natural_order
from tests.support.soak import examples


class Attributes(RetrievalBackend):
    """Chunks with metadata; every query finds them in one order."""

    name = "attributes"

    def __init__(self, *metadata: Mapping[str, Any], max_top_k: int = MAX_TOP_K, lists: bool = True) -> None:
        self.max_top_k = max_top_k
        self.requests: list[SearchRequest] = []
        self._lists = lists
        self._chunks = [
            RetrievedChunk(content=str(number), score=0.5, source=str(number), metadata=dict(each))
            for number, each in enumerate(metadata)
        ]

    async def retrieve(
        self,
        query: str,
        top_k: int = 5,
        min_score: float | None = None,
        filters: dict[str, Any] | None = None,
    ) -> list[RetrievedChunk]:
        request = SearchRequest(query, top_k, min_score, filters)
        self.requests.append(request)
        condition = request.restriction
        clauses = () if condition is None else clauses_of(condition)
        if not self._lists and any(clause.operator is Operator.LIST_CONTAINS for clause in clauses):
            raise InvalidFilterError("listContains(key) is not known here")
        return [c for c in self._chunks if condition is None or filter_language.evaluate(condition, c.metadata)][:top_k]


def collected(backend: RetrievalBackend, key: str = "version", **options: Any) -> DistinctValues:
    return asyncio.run(distinct_values(backend, key, **options))


def versions(*values: Any, **options: Any) -> Attributes:
    return Attributes(*({"version": value} for value in values), **options)


def members(values: Iterable[Any]) -> set[tuple[str, Any]]:
    flat = (member for value in values for member in (value if isinstance(value, list) else [value]))
    return {(kind_of(member), member) for member in flat}


def test_more_values_than_the_limit_are_incomplete() -> None:
    backend = versions(*map(str, range(7)))

    assert not collected(backend, limit=6).complete
    assert len(collected(backend, limit=6).values) == 6
    assert collected(backend, limit=7) == DistinctValues(tuple("0123456"), complete=True)


def test_more_values_than_a_filter_can_exclude_are_incomplete() -> None:
    backend = versions(*range(1_500))

    assert collected(backend, limit=5_000, page_size=1_000) == DistinctValues(tuple(range(1_500)), complete=False)
    assert collected(versions(*range(1_000)), limit=5_000, page_size=1_000).complete


def test_more_lists_than_one_search_returns_are_incomplete() -> None:
    many_lists = [["a"]] * 3 + [["a", "hidden"]]

    assert collected(versions(*many_lists, max_top_k=3), page_size=1) == DistinctValues(("a",), complete=False)
    assert collected(versions(*many_lists, max_top_k=5), page_size=1) == DistinctValues(("a", "hidden"), complete=True)


def test_a_value_that_no_filter_can_express_ends_the_search() -> None:
    assert collected(versions(float("nan"), "1")) == DistinctValues(("1",), complete=False)
    assert collected(versions({"a": 1}, None)) == DistinctValues((), complete=False)


def test_a_part_of_a_search_that_failed_makes_the_values_incomplete() -> None:
    class HalfDown(Attributes):
        async def search(self, request: SearchRequest) -> SearchOutcome:
            outcome = await super().search(request)
            return replace(
                outcome,
                parts=(*outcome.parts, SliceReport(slice="other", status="failed", milliseconds=1.0, error="down")),
            )

    assert collected(HalfDown({"version": "1"})) == DistinctValues(("1",), complete=False)


def test_digits_of_any_length_are_compared_as_numbers() -> None:
    assert sorted(["9" * 5000, "10" + "0" * 5000, "007", "7", ""], key=natural_order) == [
        "",
        "007",
        "7",
        "9" * 5000,
        "10" + "0" * 5000,
    ]


SCALARS = st.sampled_from(["1", "2", "10", "v1", "ä", "a'b", ""]) | st.integers(-3, 3) | st.booleans() | st.just(1.5)
LISTS = st.lists(st.sampled_from(["1", "2", "x", "y", "z", "10"]), max_size=4)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.none() | SCALARS | LISTS, max_size=14), st.integers(1, 4), st.booleans())
def test_the_values_are_exactly_those_of_the_documents(values: list[Any], page: int, lists: bool) -> None:
    backend = Attributes(*({} if value is None else {"version": value} for value in values), lists=lists)

    found = collected(backend, page_size=page)

    wanted = members(value for value in values if value is not None)
    assert members(found.values) == wanted
    assert len(found.values) == len(wanted)
    assert found.complete
    assert list(found.values) == sorted(found.values, key=natural_order)
