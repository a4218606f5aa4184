import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.core.errors import (
    InvalidFilterError,
    InvalidRequestError,
    ScopeTooLongError,
    ServiceUnavailableError,
)
from ragstack_common.filters import Clause, Filter, Operator, all_of, evaluate, parse
from ragstack_common.filters.constraints import constraints
from ragstack_common.search import SearchRequest
from ragstack_common.search.engines.bedrock import BedrockBackend
from ragstack_common.search.wrappers.divided import MAX_PARTS, DividedBackend
from tests.support.aws_service import AwsService, Fault
from tests.support.backends import Shelf, chunk, names
from tests.support.knowledge_base import KNOWLEDGE_BASE, hit, hits, search_of

LIMIT = 100


def labels(number: int) -> Filter:
    return Clause(Operator.IN, "access", tuple(f"l{each}" for each in range(number)))


def shelf(documents: int = 400) -> Shelf:
    """Chunks with labels in turn, the best first."""
    return Shelf(
        *(
            chunk(f"d{number}", 1 - number / 1000, metadata={"access": f"l{number % 200}", "year": number})
            for number in range(documents)
        )
    )


@pytest.mark.parametrize("number", [1, 99, 100, 101, 150, 200])
async def test_a_scope_of_any_length_finds_what_one_search_would(number: int) -> None:
    whole, divided = shelf(), shelf()
    request = SearchRequest("q", 20, scope_filter=labels(number))

    outcome = await DividedBackend(divided, LIMIT).search(request)

    assert names(outcome.chunks) == names((await whole.search(request)).chunks)
    assert len(divided.requests) == (1 if number <= LIMIT else 2)
    assert all(constraints(each.restriction) <= LIMIT for each in divided.requests)


async def test_filters_apply_to_each_part() -> None:
    divided = shelf()
    wanted = {"year": {"$gte": 190}}

    outcome = await DividedBackend(divided, LIMIT).search(
        SearchRequest("q", 3, filters=wanted, scope_filter=labels(199))
    )

    assert names(outcome.chunks) == "d190 d191 d192"
    assert len(divided.requests) == 3
    assert outcome.complete


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20),
    st.integers(1, 8),
    st.integers(0, 2),
    st.integers(1, 10),
    st.sampled_from(["chunk", "document"]),
)
def test_what_is_found_does_not_depend_on_hidden_documents_or_on_the_parts(
    documents: list[tuple[int, int]], seen: int, excluded: int, top_k: int, by: Any
) -> None:
    """Documents have a label and a score; the caller sees the first labels, and some documents are excluded."""
    chunks = [
        chunk(f"d{number}", score / 10, source=f"d{number // 2}", metadata={"access": f"l{label}", "number": number})
        for number, (label, score) in enumerate(documents)
    ]
    chunks.sort(key=lambda each: (-each.score, each.source, each.content))
    scope = all_of(labels(seen), Clause(Operator.NOT_IN, "number", (0, 1)[:excluded]) if excluded else None)
    request = SearchRequest("q", top_k, scope_filter=scope, deduplicate_by=by)
    visible = [each for each in chunks if scope is not None and evaluate(scope, each.metadata)]

    found = asyncio.run(DividedBackend(Shelf(*chunks), 2 + excluded).search(request))
    alone = asyncio.run(DividedBackend(Shelf(*visible), 2 + excluded).search(request))
    whole = asyncio.run(DividedBackend(Shelf(*visible), LIMIT).search(request))

    assert found.chunks == alone.chunks
    assert [part.hits for part in found.parts] == [part.hits for part in alone.parts]
    if by == "chunk":
        assert found.chunks == whole.chunks


async def test_a_chunk_that_several_parts_find_counts_once() -> None:
    both = Shelf(chunk("a", 0.9, metadata={"access": ["l1", "l149"]}), chunk("b", 0.5, metadata={"access": "l3"}))

    outcome = await DividedBackend(both, LIMIT).search(SearchRequest("q", scope_filter=labels(150)))

    assert names(outcome.chunks) == "a b"


async def test_a_part_that_fails_is_missing_from_the_outcome() -> None:
    class Failing(Shelf):
        async def _search(self, request: SearchRequest) -> Any:
            if "l149" in repr(request.restriction):
                raise ServiceUnavailableError("busy")
            return await super()._search(request)

    outcome = await DividedBackend(Failing(chunk("a", metadata={"access": "l1"})), LIMIT).search(
        SearchRequest("q", scope_filter=labels(150))
    )

    assert names(outcome.chunks) == "a"
    assert [part.status for part in outcome.parts] == ["ok", "failed"]
    assert not outcome.complete


async def test_a_filter_of_the_caller_that_is_too_long_is_the_callers_error() -> None:
    years = {"year": {"$in": [*range(120)]}}

    for scope in (None, labels(3), labels(150)):
        with pytest.raises(InvalidFilterError, match=r"has 120 constraints.* takes 100 .*use fewer values"):
            await DividedBackend(shelf(), LIMIT).search(SearchRequest("q", filters=years, scope_filter=scope))


async def test_a_filter_that_leaves_too_little_room_for_the_labels_is_the_callers_error() -> None:
    with pytest.raises(InvalidFilterError, match="has 80 constraints"):
        await DividedBackend(shelf(), LIMIT).search(
            SearchRequest("q", filters={"year": {"$in": [*range(80)]}}, scope_filter=labels(150))
        )


async def test_a_scope_that_is_too_long_in_parts_is_not_the_callers_error() -> None:
    excluded = Clause(Operator.NOT_IN, "source", tuple(f"s{number}" for number in range(LIMIT)))

    for scope in (all_of(labels(3), excluded), labels(LIMIT * MAX_PARTS + 1)):
        for filters in (None, {"year": 1}):
            with pytest.raises(ScopeTooLongError, match="join access labels"):
                await DividedBackend(shelf(), LIMIT).search(SearchRequest("q", filters=filters, scope_filter=scope))


def test_150_labels_find_everything_in_a_store_that_refuses_more_than_100_constraints(searches: AwsService) -> None:
    """As S3 Vectors does; the data source is a constraint too."""
    searches.program("Retrieve", answer)
    backend = BedrockBackend(KNOWLEDGE_BASE, "DATASOURCE", client=searches.client(), vector_store="S3_VECTORS")

    for number in (98, 99, 100, 150, 200):
        request = SearchRequest("q", 50, scope_filter=labels(number), deduplicate_by="document")
        outcome = asyncio.run(backend.search(request))

        assert len(outcome.chunks) == 50
        assert outcome.complete
        assert outcome.notes == ()


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({}, ScopeTooLongError),
        ({"filters": {"year": 1}}, InvalidRequestError),
        ({"scope_filter": None}, InvalidRequestError),
        ({"query": "q" * 1001}, InvalidRequestError),
    ],
)
def test_a_scope_that_the_store_refuses_all_the_same_is_not_the_callers_error(
    searches: AwsService, more: dict[str, Any], error: type[Exception]
) -> None:
    """If it counts otherwise than its documentation says; of two parts, both are refused."""
    searches.program("Retrieve", Fault("ValidationException", "The filter is invalid."))
    backend = BedrockBackend(KNOWLEDGE_BASE, client=searches.client(), vector_store="S3_VECTORS")

    for number in (50, 150):
        with pytest.raises(error) as raised:
            asyncio.run(backend.search(SearchRequest(**{"query": "q", "scope_filter": labels(number), **more})))
        assert type(raised.value) is error


def answer(parameters: dict[str, Any]) -> Any:
    filter_ = parse(search_of(parameters)["filter"])
    if constraints(filter_) > LIMIT:
        return Fault("ValidationException", "too many constraints")
    matching = []
    for number in range(150):
        found = {"access": f"l{number % 98}", "x-amz-bedrock-kb-data-source-id": "DATASOURCE"}
        found["x-amz-bedrock-kb-source-uri"] = f"s3://b/{number}"
        if evaluate(filter_, found):
            matching.append(hit(f"s3://b/{number}", 1 - number / 1000, metadata=found))
    return hits(*matching[: search_of(parameters)["numberOfResults"]])
