"""The contract of retrieval backends, tested on each of them with a real store."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragstack_common import filters as filter_language
from ragstack_common.core.errors import InvalidFilterError, InvalidQueryError, InvalidRequestError
from ragstack_common.filters.tree import clauses_of
from ragstack_common.search import RetrievalBackend, RetrievedChunk, SearchOutcome, SearchRequest
from tests.contract.case import Case, Make, run
from tests.contract.documents import DOCUMENTS, LONG_QUERY
from tests.ragstack_common.filters.strategies import clauses
from tests.ragstack_common.filters.strategies import filters as any_filters
from tests.support.soak import SOAK

pytestmark = pytest.mark.integration


LEAVE = "How many days of annual leave do employees have?"
PUMP = "grease the bearings of the water pump"
EVERYTHING = (
    "the days of the water pump, the lease, expenses, annual leave, the canteen, a red lamp, trains and flights"
)
TEXTS = {document.text: document for document in DOCUMENTS}

FILTERS: list[dict[str, Any]] = [
    {"corpus": "legal"},
    {"corpus": {"$ne": "legal"}},
    {"corpus": {"$in": ["legal", "manual"]}},
    {"corpus": {"$nin": ["legal", "manual"]}},
    {"notIn": {"key": "corpus", "value": ["legal", "manual"]}},
    {"year": {"$gte": 2020}},
    {"year": {"$gt": 2019, "$lt": 2024}},
    {"year": {"$lte": 2019}},
    {"year": 2024},
    {"score": {"$gte": 3.25}},
    {"public": True},
    {"public": {"$ne": True}},
    {"version": "1"},
    {"version": 1},
    {"note": 'it\'s 50% "full" \\ ok'},
    {"note": {"$contains": '50% "f'}},
    {"corpus": {"$contains": "and"}},
    {"corpus": {"$startsWith": "hand"}},
    {"tags": {"$listContains": "lease"}},
    {"tags": "lease"},
    {"absent": "x"},
    {"absent": {"$ne": "x"}},
    {"$and": [{"corpus": "handbook"}, {"version": "2"}]},
    {"$or": [{"corpus": "legal"}, {"year": {"$lt": 2019}}]},
    {"$not": {"corpus": "legal"}},
    {"$not": {"$or": [{"corpus": "legal"}, {"version": "1"}]}},
    {"corpus": '" or 1 == 1 or corpus == "'},
    {"corpus') or ('1'='1": "x"},
]


WORDS = st.sampled_from(["legal", "handbook", "1", "2", "lease", "it's", 'a"b', "\\", "%", "_"])
NUMBERS = st.sampled_from([2018, 2020, 2023.5, 4.5, 0, -1])
KEYS = st.sampled_from(["corpus", "version", "year", "public", "tags", "score", "note", "absent"])
ANY_FILTER = any_filters(clauses(KEYS, WORDS, NUMBERS, WORDS | NUMBERS | st.booleans()), max_leaves=4)


def retrieve(make: Make, *arguments: Any, **named: Any) -> list[RetrievedChunk]:
    return list(run(make, lambda backend: backend.retrieve(*arguments, **named))[0])


def texts(chunks: list[RetrievedChunk]) -> list[str]:
    return [chunk.content for chunk in chunks]


def matching(filters: dict[str, Any]) -> set[str]:
    parsed = filter_language.parse(filters)
    return {document.text for document in DOCUMENTS if filter_language.evaluate(parsed, document.metadata)}


def test_the_chunk_that_answers_comes_first(make: Make) -> None:
    chunks = retrieve(make, PUMP, top_k=3)

    assert chunks[0].content == DOCUMENTS[8].text


def test_chunks_come_best_first_with_scores_within_0_and_1(make: Make) -> None:
    scores = [chunk.score for chunk in retrieve(make, EVERYTHING, top_k=12)]

    assert scores == sorted(scores, reverse=True)
    assert all(0.0 <= score <= 1.0 for score in scores)


def test_top_k_is_5_by_default(make: Make) -> None:
    assert len(retrieve(make, EVERYTHING)) == 5


@pytest.mark.parametrize("top_k", [1, 2, 7])
def test_at_most_top_k_chunks_are_returned(make: Make, top_k: int) -> None:
    assert len(retrieve(make, EVERYTHING, top_k=top_k)) == top_k


def test_a_shorter_list_is_the_beginning_of_a_longer_one(make: Make) -> None:
    short, long = run(make, lambda b: b.retrieve(LEAVE, top_k=2), lambda b: b.retrieve(LEAVE, top_k=4))

    assert texts(short) == texts(long)[:2]


def test_a_large_top_k_returns_all_chunks(case: Case, make: Make) -> None:
    if not case.whole_collection:
        pytest.skip("this backend bounds its candidates")

    assert set(texts(retrieve(make, EVERYTHING, top_k=50))) == set(TEXTS)


def test_a_chunk_has_its_text_source_and_metadata(case: Case, make: Make) -> None:
    chunk = retrieve(make, PUMP, top_k=1)[0]

    document = DOCUMENTS[8]
    assert document.source in chunk.source
    assert {name: chunk.metadata.get(name) for name in document.metadata} == document.metadata
    assert not case.keeps_ids or chunk.chunk_id == document.id


def test_special_characters_are_unchanged(make: Make) -> None:
    chunk = retrieve(make, "red lamp double tone tank level", top_k=1)[0]

    assert chunk.content == DOCUMENTS[10].text
    assert chunk.metadata["note"] == DOCUMENTS[10].metadata["note"]


def test_min_score_drops_lower_chunks(make: Make) -> None:
    everything = retrieve(make, LEAVE, top_k=12)
    least = everything[2].score

    chunks = retrieve(make, LEAVE, top_k=12, min_score=least)

    assert texts(chunks) == [chunk.content for chunk in everything if chunk.score >= least]


def test_a_chunk_can_be_looked_up_by_its_id(case: Case, make: Make) -> None:
    chunk = retrieve(make, PUMP, top_k=1)[0]
    if not case.looks_up:
        with pytest.raises(InvalidRequestError):
            run(make, lambda backend: backend.get_by_id(str(chunk.chunk_id)))
        return

    found = run(make, lambda backend: backend.get_by_id(str(chunk.chunk_id)))[0]

    assert (found.content, found.source, found.chunk_id) == (chunk.content, chunk.source, chunk.chunk_id)
    assert found.metadata == chunk.metadata
    assert found.score == 1.0


@pytest.mark.parametrize("chunk_id", ["no-such-chunk", "", "' or 1==1 --", '"] or true'])
def test_looking_up_an_unknown_id_returns_none(case: Case, make: Make, chunk_id: str) -> None:
    if not case.looks_up:
        pytest.skip("this backend cannot look up chunks")

    assert run(make, lambda backend: backend.get_by_id(chunk_id)) == [None]


def test_a_working_backend_is_healthy(make: Make) -> None:
    assert run(make, lambda backend: backend.health_check()) == [True]


def test_a_backend_can_be_closed_twice(make: Make) -> None:
    assert run(make, lambda backend: backend.close(), lambda backend: backend.close()) == [None, None]


def test_a_batch_has_the_answers_of_its_queries_in_order(make: Make) -> None:
    queries = [LEAVE, PUMP, "land registry lease", LEAVE]

    batch, *single = run(
        make,
        lambda backend: backend.retrieve_batch(queries, top_k=3),
        *(lambda backend, query=query: backend.retrieve(query, top_k=3) for query in queries),
    )

    assert [texts(chunks) for chunks in batch] == [texts(chunks) for chunks in single]


def test_an_empty_batch_has_no_answers(make: Make) -> None:
    assert run(make, lambda backend: backend.retrieve_batch([])) == [[]]


def test_a_batch_with_an_empty_query_is_an_error(make: Make) -> None:
    with pytest.raises(InvalidQueryError, match="query"):
        run(make, lambda backend: backend.retrieve_batch([LEAVE, " "]))


def test_a_stream_yields_each_chunk_once_in_order(make: Make) -> None:
    async def streamed(backend: RetrievalBackend) -> list[RetrievedChunk]:
        return [chunk async for chunk in backend.stream(EVERYTHING, limit=9, page_size=2)]

    stream, ranking = run(make, streamed, lambda backend: backend.retrieve(EVERYTHING, top_k=9))

    assert texts(stream) == texts(ranking)


def test_a_stream_can_be_abandoned(make: Make) -> None:
    async def first(backend: RetrievalBackend) -> str:
        async for chunk in backend.stream(PUMP, page_size=2):
            return chunk.content
        return ""

    assert run(make, first) == [DOCUMENTS[8].text]


def test_concurrent_searches_are_independent(make: Make) -> None:
    async def together(backend: RetrievalBackend) -> list[list[RetrievedChunk]]:
        return await asyncio.gather(*(backend.retrieve(query, top_k=2) for query in [LEAVE, PUMP] * 6))

    answers = run(make, together)[0]

    assert {tuple(texts(chunks)) for chunks in answers[::2]} == {tuple(texts(answers[0]))}
    assert {tuple(texts(chunks)) for chunks in answers[1::2]} == {tuple(texts(answers[1]))}


def test_equal_searches_have_equal_answers(make: Make) -> None:
    first, second = run(make, *[lambda backend: backend.retrieve(EVERYTHING, top_k=12)] * 2)

    assert [(c.content, c.score) for c in first] == [(c.content, c.score) for c in second]


def test_deduplication_by_document_keeps_the_best_chunk_of_each(make: Make) -> None:
    request = SearchRequest(LEAVE, top_k=3, deduplicate_by="document")

    outcome = run(make, lambda backend: backend.search(request))[0]

    sources = [chunk.source for chunk in outcome.chunks]
    assert len(set(sources)) == len(sources) > 1
    assert [chunk.score for chunk in outcome.chunks] == sorted((c.score for c in outcome.chunks), reverse=True)


def test_a_document_comes_with_its_best_passages(make: Make) -> None:
    one = SearchRequest(LEAVE, top_k=5, deduplicate_by="document")

    plain, several = run(make, *(partial(_searched, request) for request in (one, replace(one, passages=2))))

    assert [(c.content, c.score) for c in several.chunks] == [(c.content, c.score) for c in plain.chunks]
    assert all(chunk.passages == () for chunk in plain.chunks)
    assert all(chunk.passages[0].content == chunk.content for chunk in several.chunks)
    [leave] = [chunk for chunk in several.chunks if "leave.md" in chunk.source]
    assert {passage.content for passage in leave.passages} == {DOCUMENTS[0].text, DOCUMENTS[1].text}
    assert leave.passages_found == 2
    assert {chunk.passages_found for chunk in several.chunks if chunk is not leave} == {1}


@pytest.mark.slow
def test_a_long_document_does_not_displace_the_others(make_long: Make) -> None:
    some = SearchRequest(LONG_QUERY, top_k=20, deduplicate_by="document")
    more_than_there_are = replace(some, top_k=30)

    found, everything = run(make_long, *(partial(_searched, request) for request in (some, more_than_there_are)))

    for outcome, documents in ((found, 20), (everything, 25)):
        scores = [chunk.score for chunk in outcome.chunks]
        assert len({chunk.source for chunk in outcome.chunks}) == len(outcome.chunks) == documents
        assert "long.md" in outcome.chunks[0].source
        assert scores == sorted(scores, reverse=True)
        assert outcome.complete
        assert outcome.notes == ()


async def _searched(request: SearchRequest, backend: RetrievalBackend) -> SearchOutcome:
    return await backend.search(request)


def test_an_outcome_reports_completeness_and_parts(make: Make) -> None:
    outcome = run(make, lambda backend: backend.search(SearchRequest(PUMP)))[0]

    assert outcome.complete
    assert outcome.milliseconds > 0
    assert all(part.status == "ok" for part in outcome.parts)
    assert sum(part.hits for part in outcome.parts) >= len(outcome.chunks)


def test_a_metadata_filter_boosts_matches_or_is_an_error(case: Case, make: Make) -> None:
    request = SearchRequest(LEAVE, top_k=6, metadata_filter={"version": "2"})
    if not case.metadata_filter:
        with pytest.raises(InvalidRequestError, match="metadata_filter"):
            run(make, lambda backend: backend.search(request))
        return

    chunks = run(make, lambda backend: backend.search(request))[0].chunks

    assert chunks[0].content == DOCUMENTS[2].text
    assert {chunk.metadata.get("version") for chunk in chunks} > {"2"}


Search = Callable[..., list[RetrievedChunk]]


@pytest.fixture(scope="module")
def search(make: Make) -> Iterator[Search]:
    """Search with one backend that stays open, for tests with many searches."""
    with asyncio.Runner() as runner:
        backend = make()
        yield lambda *arguments, **named: runner.run(backend.retrieve(*arguments, **named))
        runner.run(backend.close())


def test_a_filter_selects_its_matches_or_names_the_unknown_clause(case: Case, search: Search) -> None:
    for filters in FILTERS:
        if {clause.operator.value for clause in clauses_of(filter_language.parse(filters))} & case.refuses:
            with pytest.raises(InvalidFilterError, match=r"\w+\(.+\)"):
                search(EVERYTHING, top_k=12, filters=filters)
            continue

        try:
            found = set(texts(search(EVERYTHING, top_k=12, filters=filters)))
        except InvalidFilterError:
            continue

        wanted = matching(filters)
        assert found == wanted if case.whole_collection else found <= wanted, filters


@settings(max_examples=25 if SOAK else 10, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_filter_selects_its_matches_or_is_an_error(case: Case, search: Search, data: st.DataObject) -> None:
    filters = filter_language.to_mongo(data.draw(ANY_FILTER))

    try:
        found = set(texts(search(EVERYTHING, top_k=12, filters=filters)))
    except InvalidFilterError:
        return

    assert found == matching(filters) if case.whole_collection else found <= matching(filters)


@pytest.mark.parametrize("query", ["?", "'\"", "a\x00b", "DROP TABLE chunk; --"])
def test_a_query_is_never_syntax(search: Search, query: str) -> None:
    assert isinstance(search(query), list)


@pytest.mark.parametrize(
    ("wrong", "error", "member"),
    [
        ({"filters": {"corpus": {"$regex": "x"}}}, InvalidFilterError, "regex"),
        ({"query": "  \n "}, InvalidQueryError, "query"),
        ({"top_k": 0}, InvalidQueryError, "top_k"),
        ({"min_score": 1.1}, InvalidQueryError, "min_score"),
    ],
)
def test_an_invalid_request_is_an_error(
    search: Search, wrong: dict[str, Any], error: type[Exception], member: str
) -> None:
    with pytest.raises(error, match=member):
        search(**{"query": LEAVE, **wrong})
