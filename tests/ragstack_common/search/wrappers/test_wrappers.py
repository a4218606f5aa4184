"""Every wrapper passes the whole request on."""

from collections.abc import Callable

import pytest

from ragstack_common.filters import Clause, Operator, all_of, parse
from ragstack_common.search import RetrievalBackend, SearchRequest
from ragstack_common.search.wrappers.balanced import BalancedBackend
from ragstack_common.search.wrappers.cached import CachedRetrievalBackend
from ragstack_common.search.wrappers.federated import FederatedBackend
from ragstack_common.search.wrappers.metered import MeteredBackend
from ragstack_common.search.wrappers.multislice import MultiSliceBackend
from ragstack_common.search.wrappers.reranked import RerankedBackend
from tests.support.backends import Shelf, chunk

SCOPE = {"tenant": "t1"}
TOPIC = {"topic": "leave"}
YEAR = {"year": 2026}

WRAPPERS: list[Callable[[RetrievalBackend], RetrievalBackend]] = [
    CachedRetrievalBackend,
    RerankedBackend,
    MeteredBackend,
    MultiSliceBackend,
    lambda backend: FederatedBackend([backend]),
    lambda backend: BalancedBackend(backend, ["legal", "handbook"]),
]


@pytest.mark.parametrize("wrap", WRAPPERS)
async def test_scope_and_filters_restrict_every_wrapped_search(
    wrap: Callable[[RetrievalBackend], RetrievalBackend],
) -> None:
    shelf = Shelf(chunk("a"))

    await wrap(shelf).search(SearchRequest("q", filters=YEAR, scope_filter=SCOPE, deduplicate_by="document"))

    assert shelf.requests
    for request in shelf.requests:
        assert request.scope_filter == parse(SCOPE)
        assert "year" in str(request.filters)


@pytest.mark.parametrize("wrap", [wrap for wrap in WRAPPERS if wrap is not MultiSliceBackend])
async def test_the_metadata_filter_reaches_the_wrapped_backend(
    wrap: Callable[[RetrievalBackend], RetrievalBackend],
) -> None:
    shelf = Shelf(chunk("a"))

    await wrap(shelf).search(SearchRequest("q", metadata_filter=TOPIC))

    assert {request.metadata_filter for request in shelf.requests} == {parse(TOPIC)}


@pytest.mark.parametrize("wrap", WRAPPERS[:-1])
async def test_the_corpus_filter_reaches_a_balanced_backend_within(
    wrap: Callable[[RetrievalBackend], RetrievalBackend],
) -> None:
    shelf = Shelf(chunk("a", metadata={"corpus": "legal"}))
    backend = wrap(BalancedBackend(shelf, ["legal", "handbook"]))

    outcome = await backend.search(SearchRequest("q", corpus_filter="legal", filters=YEAR, scope_filter=SCOPE))

    [request] = shelf.requests
    corpus = Clause(Operator.EQUALS, "corpus", "legal")
    assert request.restriction == all_of(parse(SCOPE), all_of(parse(YEAR), corpus))
    assert outcome.complete


async def test_retrieve_of_a_wrapper_takes_all_filters() -> None:
    shelf = Shelf(chunk("a", metadata={"corpus": "legal", "tenant": "t1"}))
    backend = CachedRetrievalBackend(BalancedBackend(shelf, ["legal", "handbook"]))

    found = await backend.retrieve("q", metadata_filter=TOPIC, scope_filter=SCOPE, corpus_filter="legal")

    assert [each.source for each in found] == ["a"]
    [request] = shelf.requests
    assert (request.metadata_filter, request.scope_filter) == (parse(TOPIC), parse(SCOPE))


async def test_a_cached_answer_belongs_to_one_scope_and_corpus() -> None:
    shelf = Shelf(chunk("a", metadata={"corpus": "legal"}))
    backend = CachedRetrievalBackend(BalancedBackend(shelf, ["legal", "handbook"]))

    for corpus in ("legal", "handbook", "legal"):
        await backend.retrieve("q", corpus_filter=corpus)
    for tenant in ("t1", "t2", "t1"):
        await backend.retrieve("q", scope_filter={"tenant": tenant}, corpus_filter="legal")

    assert len(shelf.requests) == 4
