"""Distinct values, on each engine's own store."""

import asyncio
from typing import Any

import pytest

from ragstack_common.filters.tree import kind_of
from ragstack_common.search.values import DistinctValues, distinct_values, natural_order
from tests.contract.case import Make
from tests.contract.documents import DOCUMENTS

CASES = ("bedrock", "chroma", "milvus", "third_party")


def values_of(key: str, **wanted: Any) -> tuple[Any, ...]:
    found: dict[tuple[str, Any], Any] = {}
    for document in DOCUMENTS:
        value = document.metadata.get(key, [])
        if all(document.metadata.get(name) == other for name, other in wanted.items()):
            members = value if isinstance(value, list) else [value]
            found |= {(kind_of(member), member): member for member in members}
    return tuple(sorted(found.values(), key=natural_order))


def collected(make: Make, key: str, **options: Any) -> DistinctValues:
    async def collect() -> DistinctValues:
        async with make() as backend:
            return await distinct_values(backend, key, **options)

    return asyncio.run(collect())


@pytest.mark.parametrize("key", ["corpus", "version", "year", "public", "score", "tags", "absent"])
@pytest.mark.parametrize("page_size", [2, 100])
def test_distinct_values_come_from_the_documents(make: Make, key: str, page_size: int) -> None:
    assert collected(make, key, page_size=page_size) == DistinctValues(values_of(key), complete=True)


@pytest.mark.parametrize("key", ["version", "tags"])
def test_filters_restrict_the_documents(make: Make, key: str) -> None:
    found = collected(make, key, filters={"corpus": "legal"})

    assert found == DistinctValues(values_of(key, corpus="legal"), complete=True)


def test_a_limit_is_applied_and_reported(make: Make) -> None:
    found = collected(make, "tags", limit=2)

    assert len(found.values) == 2
    assert not found.complete
