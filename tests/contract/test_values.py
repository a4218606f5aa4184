"""Distinct values, on each engine's own store."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ragstack_common.filters.tree import kind_of
from ragstack_common.search import RetrievalBackend
from ragstack_common.search.values import DistinctValues, distinct_values, natural_order
from tests.contract.case import Case
from tests.contract.cases import all_cases
from tests.contract.documents import DOCUMENTS

ENGINES = ("third_party", "bedrock", "chroma", "milvus")


@pytest.fixture(
    scope="module", params=[case for case in all_cases() if case.name in ENGINES], ids=lambda case: case.name
)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture(scope="module")
def make(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], RetrievalBackend]]:
    with case.open(DOCUMENTS, tmp_path_factory.mktemp(case.name)) as make:
        yield make


def values_of(key: str, **wanted: Any) -> tuple[Any, ...]:
    found: dict[tuple[str, Any], Any] = {}
    for document in DOCUMENTS:
        value = document.metadata.get(key, [])
        if all(document.metadata.get(name) == other for name, other in wanted.items()):
            members = value if isinstance(value, list) else [value]
            found |= {(kind_of(member), member): member for member in members}
    return tuple(sorted(found.values(), key=natural_order))


def collected(make: Callable[[], RetrievalBackend], key: str, **options: Any) -> DistinctValues:
    async def collect() -> DistinctValues:
        async with make() as backend:
            return await distinct_values(backend, key, **options)

    return asyncio.run(collect())


@pytest.mark.parametrize("key", ["corpus", "version", "year", "public", "score", "tags", "absent"])
@pytest.mark.parametrize("page_size", [2, 100])
def test_distinct_values_are_those_of_the_documents(
    make: Callable[[], RetrievalBackend], key: str, page_size: int
) -> None:
    assert collected(make, key, page_size=page_size) == DistinctValues(values_of(key), complete=True)


@pytest.mark.parametrize("key", ["version", "tags"])
def test_filters_restrict_the_documents(make: Callable[[], RetrievalBackend], key: str) -> None:
    found = collected(make, key, filters={"corpus": "legal"})

    assert found == DistinctValues(values_of(key, corpus="legal"), complete=True)


def test_a_limit_is_applied_and_reported(make: Callable[[], RetrievalBackend]) -> None:
    found = collected(make, "tags", limit=2)

    assert len(found.values) == 2
    assert not found.complete
