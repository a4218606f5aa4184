"""Rerankers, and the wrapper that searches with one."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import boto3
import pytest

from ragstack_common.core.errors import ConfigurationError
from ragstack_common.reranking import LexicalReranker, RerankingWeights
from ragstack_common.search import Ranking, RetrievalBackend, RetrievedChunk, SearchRequest, create_retrieval_backend
from ragstack_common.search.models import SearchOutcome
from ragstack_common.search.rerank.bedrock import BedrockReranker
from ragstack_common.search.rerank.chunks import ChunkReranker, LexicalChunkReranker
from ragstack_common.search.rerank.factory import load_reranker
from ragstack_common.search.wrappers.reranked import RerankedBackend
from tests.support.aws_service import AwsService, Fault
from tests.support.backends import Shelf, chunk
from tests.support.virtual_time import run_in_virtual_time

LEAVE = "annual leave"


class Failing(LexicalChunkReranker):
    name = "failing"

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.closed = 0

    async def rerank(self, query: str, chunks: Sequence[RetrievedChunk]) -> list[RetrievedChunk]:
        assert query
        assert chunks
        if self.error is None:
            await asyncio.Event().wait()
        raise self.error or AssertionError

    async def close(self) -> None:
        self.closed += 1


def search(backend: RetrievalBackend, query: str = LEAVE, **request: Any) -> SearchOutcome:
    return asyncio.run(backend.search(SearchRequest(query, **request)))


def test_the_best_of_more_candidates_are_returned() -> None:
    inner = Shelf(*(chunk(f"filler {n}", 0.9 - n / 100) for n in range(20)), chunk("the annual leave", 0.3))

    outcome = search(RerankedBackend(inner, candidates=30), top_k=2)

    assert inner.requests[0].top_k == 30
    assert [found.content for found in outcome.chunks] == ["the annual leave", "filler 0"]
    assert outcome.notes == ()


def test_chunks_keep_how_they_were_found() -> None:
    before = Ranking(base_score=0.8, boost=1.25, score=1.0, found_by=("filtered",))
    inner = Shelf(chunk("annual leave", 1.0, ranking=before))

    ranking = search(RerankedBackend(inner)).chunks[0].ranking

    assert ranking is not None
    assert (ranking.base_score, ranking.boost, ranking.found_by) == (0.8, 1.25, ("filtered",))
    assert ranking.contributions.keys() == {"phrase", "frequency", "proximity", "metadata", "vector"}
    assert ranking.reranked_from == 1


def test_the_minimal_score_is_compared_with_the_score_of_the_reranker() -> None:
    inner = Shelf(chunk("nothing of it", 0.9), chunk("annual leave", 0.6))

    chunks = search(RerankedBackend(inner), min_score=0.5).chunks

    assert [found.content for found in chunks] == ["annual leave"]
    assert inner.requests[0].min_score is None


@pytest.mark.parametrize(
    ("error", "reason"),
    [(RuntimeError("out of\nmemory"), "failed (RuntimeError)"), (None, "did not answer within 0.01 seconds")],
)
def test_a_failed_reranker_leaves_the_order_of_the_search(
    error: Exception | None, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    inner = Shelf(chunk("first", 0.9), chunk("annual leave", 0.8), chunk("last", 0.1))
    backend = RerankedBackend(inner, Failing(error), timeout_seconds=0.01)

    with caplog.at_level(logging.WARNING, "ragstack"):
        outcome = run_in_virtual_time(backend.search(SearchRequest(LEAVE, 3, 0.5)))

    assert [found.content for found in outcome.chunks] == ["first", "annual leave"]
    assert len(outcome.notes) == 1
    assert reason in outcome.notes[0].text
    assert "failing" in caplog.text


def test_the_reranker_and_the_backend_are_closed_together() -> None:
    inner, reranker = Shelf(), Failing()

    asyncio.run(RerankedBackend(inner, reranker).close())

    assert (inner.closed, reranker.closed) == (1, 1)


@pytest.mark.parametrize(
    "options",
    [{"candidates": 0}, {"candidates": 10_001}, {"timeout_seconds": 0}],
)
def test_numbers_out_of_range_are_rejected_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        RerankedBackend(Shelf(), **options)


def test_a_reranker_is_made_from_json() -> None:
    config = {
        "type": "reranked",
        "backend": {"type": "bedrock", "knowledge_base_id": "ABCDEFGHIJ"},
        "reranker": {"type": "lexical", "weights": {"phrase": 2}},
        "candidates": 20,
    }

    backend = create_retrieval_backend(config)

    assert isinstance(backend, RerankedBackend)
    assert backend.span_attributes() == {"reranker_name": "lexical"}
    assert backend._candidates == 20


def test_a_reranker_is_a_name_or_an_object() -> None:
    own = LexicalReranker(RerankingWeights(phrase=9))

    by_name, by_object, same = load_reranker("lexical"), load_reranker(own), load_reranker(Failing())

    assert isinstance(by_name, LexicalChunkReranker)
    assert isinstance(by_object, LexicalChunkReranker)
    assert by_object.lexical is own
    assert isinstance(same, ChunkReranker)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("lexicle", "lexical, bedrock"),
        ("", "lexical, bedrock"),
        ({"type": "lexical", "weight": 1}, "weight"),
        ({"type": "lexical", "weights": {"phrase": -1}}, "phrase"),
        ("lexical:fast", "lexical"),
        ("cross_encoder", "folder"),
        (object(), "not a reranker"),
    ],
)
def test_an_object_that_is_not_a_reranker_is_rejected(choice: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_reranker(choice)


def rerank(reranker: ChunkReranker, *chunks: RetrievedChunk, query: str = LEAVE) -> list[RetrievedChunk]:
    return asyncio.run(reranker.rerank(query, chunks))


def test_a_model_of_bedrock_answers_page_by_page(searches: AwsService) -> None:
    searches.program(
        "Rerank",
        {"results": [{"index": 1, "relevanceScore": 0.9}], "nextToken": "more"},
        {"results": [{"index": 0, "relevanceScore": 0.2}]},
    )
    chunks = [chunk("x" * 40_000, 0.8), chunk("annual leave", 0.1), chunk("  ", 0.3)]

    reranked = rerank(BedrockReranker(client=searches.client()), *chunks)

    assert [found.score for found in reranked] == [0.9, 0.2, 0.0]
    assert [found.content for found in reranked] == ["annual leave", "x" * 40_000, "  "]
    assert reranked[0].ranking is not None
    assert reranked[0].ranking.contributions == {"bedrock": 0.9}
    assert searches.refusals == []


def test_a_model_that_does_not_score_every_text_has_failed(searches: AwsService) -> None:
    searches.program("Rerank", {"results": [{"index": 0, "relevanceScore": 0.9}]})
    backend = RerankedBackend(Shelf(chunk("a", 0.9), chunk("b", 0.8)), BedrockReranker(client=searches.client()))

    outcome = search(backend)

    assert [found.content for found in outcome.chunks] == ["a", "b"]
    assert "1 of 2" in outcome.notes[0].text


def test_an_error_of_the_service_is_noted_and_logged(searches: AwsService, caplog: pytest.LogCaptureFixture) -> None:
    searches.program("Rerank", Fault("AccessDeniedException", "not authorized to perform: bedrock:Rerank"))
    backend = RerankedBackend(Shelf(chunk("a")), BedrockReranker(client=searches.client()))

    assert "failed (AccessDeniedException)" in search(backend).notes[0].text
    assert "bedrock:Rerank" in caplog.text


@pytest.mark.parametrize(
    ("region", "partition"),
    [("eu-west-1", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")],
)
def test_the_default_model_depends_on_the_clients_region(searches: AwsService, region: str, partition: str) -> None:
    searches.program("Rerank", {"results": [{"index": 0, "relevanceScore": 0.7}]})
    client = boto3.client("bedrock-agent-runtime", region, endpoint_url=searches.endpoint)

    rerank(BedrockReranker(client=client), chunk("a"))

    configuration = searches.asked("Rerank")[0]["rerankingConfiguration"]["bedrockRerankingConfiguration"]
    model = configuration["modelConfiguration"]["modelArn"]
    assert model == f"arn:{partition}:bedrock:{region}::foundation-model/cohere.rerank-v3-5:0"
