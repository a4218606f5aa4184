"""The engine bedrock against a service that checks each request: pages, failures and chunks."""

import asyncio
from typing import Any
from unittest.mock import ANY

import pytest

from ragstack_common.core import errors
from ragstack_common.search import Ranking, RetrievedChunk, SearchRequest, create_retrieval_backend
from ragstack_common.search.engines.bedrock import BedrockBackend
from tests.support.aws_service import AwsService, Fault
from tests.support.knowledge_base import KNOWLEDGE_BASE, hit, hits, search_of

TOPIC = {"topic": "genealogy"}
TOPIC_FILTER = {"equals": {"key": "topic", "value": "genealogy"}}


def chunk_hit(uri: str, number: int, score: float, **metadata: Any) -> Any:
    own = {"x-amz-bedrock-kb-chunk-id": f"1%3A0%3A{number}", "x-amz-bedrock-kb-source-uri": uri, **metadata}
    return hit(uri, score, f"Passage {number}.", metadata=own)


def pages(total: int, *, uri: str = "s3://b/{}", fails_at: int | None = None, fault: Any = None) -> Any:
    """Answer with the number of hits that a request asks for, and with a token while there are more."""

    def answer(parameters: dict[str, Any]) -> Any:
        start, size = int(parameters.get("nextToken", 0)), search_of(parameters)["numberOfResults"]
        if fails_at is not None and start >= fails_at:
            return fault
        end = min(total, start + size)
        found = hits(*(chunk_hit(uri.format(n), n, 1 - n / 2000) for n in range(start, end)))
        return {**found, "nextToken": str(end)} if end < total else found

    return answer


def backend(searches: AwsService, **options: Any) -> BedrockBackend:
    return BedrockBackend(KNOWLEDGE_BASE, client=searches.client(), **options)


def search(searches: AwsService, request: SearchRequest, **options: Any) -> Any:
    return asyncio.run(backend(searches, **options).search(request))


CALIBRATION = {"embedding": None, "search_type": "SEMANTIC", "intercept": -4, "weights": {"score": 8}}


def test_a_service_without_signals_is_calibrated_by_its_score(
    searches: AwsService,
) -> None:
    searches.program("Retrieve", hits(chunk_hit("s3://b/a", 1, 0.5), chunk_hit("s3://b/b", 2, 0.25)))
    own = {"calibrations": [CALIBRATION]}

    semantic = search(searches, SearchRequest("Judy"), relevance_calibration=own, search_type="SEMANTIC")
    stream = asyncio.run(streamed(backend(searches, relevance_calibration=own, search_type="SEMANTIC")))
    hybrid = search(searches, SearchRequest("Judy"), relevance_calibration=own, search_type="HYBRID")

    assert [chunk.relevance for chunk in semantic.chunks] == [pytest.approx(0.5), pytest.approx(0.1192, abs=1e-4)]
    assert semantic.best_relevance == pytest.approx(0.5)
    assert [chunk.relevance for chunk in stream] == [chunk.relevance for chunk in semantic.chunks]
    assert [chunk.relevance for chunk in hybrid.chunks] == [None, None]


async def streamed(engine: BedrockBackend, **options: Any) -> list[RetrievedChunk]:
    return [chunk async for chunk in engine.stream("Judy", **options)]


def test_a_hit_becomes_a_chunk_that_explains_its_score(searches: AwsService) -> None:
    found = chunk_hit("s3://b/judy.txt", 7, 0.9, topic="genealogy")
    searches.program("Retrieve", hits(found))

    outcome = search(searches, SearchRequest("Judy", metadata_filter=TOPIC, filter_trust=0.75))

    assert outcome.chunks == [
        RetrievedChunk(
            content="Passage 7.",
            score=1.0,
            source="s3://b/judy.txt",
            metadata=found["metadata"],
            chunk_id="s3://b/judy.txt#1%3A0%3A7",
            location={"type": "S3", "s3Location": {"uri": "s3://b/judy.txt"}},
            ranking=Ranking(
                base_score=0.9,
                score=1.0,
                found_by=("filtered", "unfiltered"),
                contributions={"filtered": 0.75, "unfiltered": 0.25},
                ranks={"filtered": 1, "unfiltered": 1},
            ),
        )
    ]
    assert [(part.name, part.status, part.hits) for part in outcome.parts] == [
        ("filtered", "ok", 1),
        ("unfiltered", "ok", 1),
    ]
    assert outcome.complete


@pytest.mark.parametrize(("top_k", "calls", "page"), [(5, 1, 5), (100, 1, 100), (101, 2, 100), (1000, 10, 100)])
def test_more_than_a_page_is_read_page_by_page(searches: AwsService, top_k: int, calls: int, page: int) -> None:
    searches.program("Retrieve", pages(1200))

    outcome = search(searches, SearchRequest("Judy", top_k=top_k))

    asked = searches.asked("Retrieve")
    assert [chunk.source for chunk in outcome.chunks] == [f"s3://b/{n}" for n in range(top_k)]
    assert [search_of(p)["numberOfResults"] for p in asked] == [page] * calls
    assert [p.get("nextToken") for p in asked] == [None, *(str(page * n) for n in range(1, calls))]
    assert outcome.complete
    assert searches.refusals == []


def ranked(*documents: tuple[str, int], excludes: bool = True) -> Any:
    """Answer from documents, in order, each with a number of chunks; *excludes* obeys filters that exclude some."""
    chunks = [uri for uri, count in documents for _ in range(count)]

    def answer(parameters: dict[str, Any]) -> Any:
        found = [uri for uri in excluded(parameters) if excludes]
        kept = [(place, uri) for place, uri in enumerate(chunks) if uri not in found]
        start, size = int(parameters.get("nextToken", 0)), search_of(parameters)["numberOfResults"]
        page = [chunk_hit(uri, place, 1 - place / 4000) for place, uri in kept[start : start + size]]
        return {**hits(*page), **({"nextToken": str(start + size)} if start + size < len(kept) else {})}

    return answer


def excluded(parameters: dict[str, Any]) -> list[str]:
    """Read the documents that a request excludes."""
    condition = search_of(parameters).get("filter", {})
    values = [part["notIn"]["value"] for part in condition.get("andAll", [condition]) if "notIn" in part]
    return [uri for value in values for uri in value]


LONG = ("s3://b/long", 300)
LOOKED_UP = "s3://b/#1/long.pdf"
SHORT = tuple((f"s3://b/{n:02}", 1) for n in range(24))
TWENTY = SearchRequest("Judy", top_k=20, deduplicate_by="document")


def test_a_second_search_keeps_the_filters_of_its_slice(searches: AwsService) -> None:
    searches.program("Retrieve", ranked(LONG, *SHORT))

    outcome = search(searches, SearchRequest("Judy", 5, None, {"tenant": "t1"}, TOPIC, "document"))

    narrowed = [search_of(p)["filter"]["andAll"] for p in searches.asked("Retrieve") if excluded(p)]
    tenant = {"equals": {"key": "tenant", "value": "t1"}}
    others = {"notIn": {"key": "x-amz-bedrock-kb-source-uri", "value": ["s3://b/long", "s3://b/long.ragstack.md"]}}
    assert sorted(narrowed, key=len) == [[tenant, others], [tenant, TOPIC_FILTER, others]]
    assert len(outcome.chunks) == 5
    assert (outcome.complete, outcome.notes, searches.refusals) == (True, (), [])


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(TWENTY, id="the service refuses the longer filter"),
        pytest.param(
            SearchRequest(
                "Judy",
                20,
                filters={"$or": [{"$and": [{f"a{n}": {"$gt": m}} for m in range(5)]} for n in range(5)]},
                deduplicate_by="document",
            ),
            id="Bedrock cannot express it",
        ),
    ],
)
def test_further_pages_are_read_if_documents_cannot_be_excluded(searches: AwsService, request_: SearchRequest) -> None:
    searches.program("Retrieve", ranked(LONG, *SHORT))
    searches.program("Retrieve", Fault("ValidationException", "Too long."), when=lambda p: bool(excluded(p)))

    outcome = search(searches, request_)

    assert len(outcome.chunks) == 20
    assert [p.get("nextToken") for p in searches.asked("Retrieve") if not excluded(p)] == [None, "80", "160", "240"]
    assert (outcome.complete, outcome.notes) == (True, ())


def test_a_page_that_fails_leaves_the_pages_before_it(searches: AwsService) -> None:
    searches.program("Retrieve", pages(1200, fails_at=200, fault=Fault("ThrottlingException", "Slow down.")))

    outcome = search(searches, SearchRequest("Judy", top_k=300))

    [part] = outcome.parts
    assert len(outcome.chunks) == 200
    assert not outcome.complete
    assert (part.status, part.hits, part.error) == ("failed", 200, ANY)
    assert part.error.startswith("after 200 chunks: Retrieve failed: ThrottlingException; ")


def test_a_first_page_that_fails_is_the_error_of_the_search(searches: AwsService) -> None:
    searches.program("Retrieve", Fault("ResourceNotFoundException", "No such knowledge base."))
    engine = backend(searches)

    with pytest.raises(errors.KnowledgeBaseNotFoundError, match="ResourceNotFoundException"):
        asyncio.run(engine.retrieve("Judy"))

    assert not asyncio.run(engine.health_check())


def test_a_stream_reads_each_page_once_and_not_before_it_needs_it(searches: AwsService) -> None:
    searches.program("Retrieve", pages(1250))

    everything = asyncio.run(streamed(backend(searches), page_size=100))
    asked = len(searches.asked("Retrieve"))
    few = asyncio.run(streamed(backend(searches), page_size=100, limit=5))

    assert [chunk.source for chunk in everything] == [f"s3://b/{n}" for n in range(1250)]
    assert asked == 13
    assert [chunk.source for chunk in few] == [f"s3://b/{n}" for n in range(5)]
    assert len(searches.asked("Retrieve")) - asked == 1


def test_a_stream_ends_at_the_minimal_score(searches: AwsService) -> None:
    searches.program("Retrieve", pages(250))

    chunks = asyncio.run(streamed(backend(searches), page_size=10, min_score=0.99))

    assert [chunk.score for chunk in chunks] == [1 - n / 2000 for n in range(21)]
    assert len(searches.asked("Retrieve")) <= 4


def test_equal_scores_have_one_order_across_pages(searches: AwsService) -> None:
    names = ["d", "b", "c", "a"]
    first, second = (hits(*(chunk_hit(f"s3://b/{n}", ord(n), 0.5) for n in part)) for part in (names[:2], names[2:]))
    searches.program("Retrieve", second, when=lambda p: "nextToken" in p)
    searches.program("Retrieve", {**first, "nextToken": "2"}, when=lambda p: "nextToken" not in p)

    chunks = asyncio.run(streamed(backend(searches), page_size=2))

    assert [chunk.source for chunk in chunks] == ["s3://b/a", "s3://b/b", "s3://b/c", "s3://b/d"]


def test_a_stream_fails_after_the_chunks_of_the_first_page(searches: AwsService) -> None:
    searches.program("Retrieve", pages(250, fails_at=100, fault=Fault("ThrottlingException", "Slow down.")))
    seen = []

    async def consume() -> None:
        async for chunk in backend(searches).stream("Judy", page_size=100):
            seen.append(chunk.source)  # noqa: PERF401 - what came before the error counts

    with pytest.raises(errors.ThrottledError):
        asyncio.run(consume())

    # the last one is held back until it is known what the next page begins with
    assert len(seen) == 99


def test_a_lookup_reads_the_pages_of_one_document(searches: AwsService) -> None:
    searches.program("Retrieve", pages(250, uri="s3://b/#1/long.pdf"))

    found = asyncio.run(backend(searches).get_by_id("s3://b/#1/long.pdf#1%3A0%3A120"))

    assert found is not None
    assert (found.content, found.score) == ("Passage 120.", 1.0)
    assert [search_of(p)["filter"] for p in searches.asked("Retrieve")] == [
        {"in": {"key": "x-amz-bedrock-kb-source-uri", "value": [LOOKED_UP, f"{LOOKED_UP}.ragstack.md"]}}
    ] * 2


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"knowledge_base_id": ""},
        {"knowledge_base_id": KNOWLEDGE_BASE, "search_type": "hybrid"},
        {"knowledge_base_id": KNOWLEDGE_BASE, "surprise": 1},
    ],
)
def test_a_configuration_that_is_unusable_is_refused_by_name(config: dict[str, Any]) -> None:
    with pytest.raises(errors.ConfigurationError, match="bedrock"):
        create_retrieval_backend({"type": "bedrock", **config})
