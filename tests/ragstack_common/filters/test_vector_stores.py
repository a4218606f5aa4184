"""Filters that the store behind a knowledge base would ignore are rejected before anything is asked."""

import asyncio
from typing import Any

import pytest

from ragstack_common.api.search import QueryService, RetrieveRequest, engine_of
from ragstack_common.config import OPENSEARCH_SERVERLESS, OTHER_STORE, S3_VECTORS, VECTOR_STORES, QuerySettings
from ragstack_common.errors import InvalidFilterError
from ragstack_common.multislice_retriever import MultiSliceRetriever
from ragstack_common.retrieval.engines.bedrock import BedrockBackend
from ragstack_common.telemetry import NO_METRICS
from tests.support.aws_service import AwsService
from tests.support.knowledge_base import KNOWLEDGE_BASE, hit, hits

IGNORED: list[dict[str, Any]] = [
    {"team": {"$startsWith": "legal"}},
    {"startsWith": {"key": "team", "value": "legal"}},
    {"team": {"$contains": "legal"}},
    {"$and": [{"year": 2026}, {"$or": [{"team": "x"}, {"stringContains": {"key": "team", "value": "legal"}}]}]},
    {"team": {"$not": {"$startsWith": "legal"}}},
]
IN_A_LIST = {"team": {"$listContains": "legal"}}
SAFE: list[dict[str, Any]] = [{"team": "legal"}, {"team": {"$in": ["legal"]}, "year": {"$gte": 2020}}]


@pytest.fixture(autouse=True)
def answering(searches: AwsService) -> None:
    searches.program("Retrieve", hits(hit()))


def refused(searches: AwsService, store: str, **filters: Any) -> bool:
    """Whether a search is refused because of the store; Bedrock's grammar may refuse it too, whatever the store."""
    try:
        MultiSliceRetriever(searches.client(), vector_store=store).search("q", KNOWLEDGE_BASE, None, **filters)
    except InvalidFilterError as error:
        return "team" in str(error) and "cannot be used here" in str(error) and searches.requests == []
    return False


@pytest.mark.parametrize("source", IGNORED, ids=str)
def test_what_s3_vectors_ignores_is_refused_in_every_filter(searches: AwsService, source: dict[str, Any]) -> None:
    assert refused(searches, S3_VECTORS, metadata_filter=source)
    assert refused(searches, S3_VECTORS, scope_filter=source)


@pytest.mark.parametrize("source", [*IGNORED, IN_A_LIST], ids=str)
def test_what_an_unknown_store_may_ignore_is_refused_where_it_would_protect_something(
    searches: AwsService, source: dict[str, Any]
) -> None:
    assert refused(searches, OTHER_STORE, scope_filter=source)
    assert not refused(searches, OTHER_STORE, metadata_filter=source)


@pytest.mark.parametrize("source", [*IGNORED, IN_A_LIST], ids=str)
def test_opensearch_serverless_is_asked_with_every_operator(searches: AwsService, source: dict[str, Any]) -> None:
    assert not refused(searches, OPENSEARCH_SERVERLESS, metadata_filter=source)
    assert not refused(searches, OPENSEARCH_SERVERLESS, scope_filter=source)


def test_a_member_of_a_list_may_be_preferred_on_s3_vectors_and_not_required(searches: AwsService) -> None:
    assert refused(searches, S3_VECTORS, scope_filter=IN_A_LIST)
    assert not refused(searches, S3_VECTORS, metadata_filter=IN_A_LIST)


@pytest.mark.parametrize("store", VECTOR_STORES)
@pytest.mark.parametrize("source", SAFE, ids=str)
def test_other_operators_are_sent_to_every_store(searches: AwsService, store: str, source: dict[str, Any]) -> None:
    assert not refused(searches, store, metadata_filter=source, scope_filter=source)
    assert searches.requests


def test_a_store_that_is_not_named_is_unknown(searches: AwsService) -> None:
    with pytest.raises(InvalidFilterError, match=r"startsWith\(team, 'legal'\).* vector_store=OPENSEARCH_SERVERLESS"):
        MultiSliceRetriever(searches.client()).search("q", KNOWLEDGE_BASE, None, scope_filter=IGNORED[0])


def test_a_store_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="vector_store must be one of S3_VECTORS, OPENSEARCH_SERVERLESS, OTHER"):
        MultiSliceRetriever(vector_store="PAPER")


def test_the_filters_of_a_backend_restrict_and_so_do_those_of_its_stream(searches: AwsService) -> None:
    backend = BedrockBackend(KNOWLEDGE_BASE, client=searches.client())

    async def streamed() -> list[Any]:
        return [chunk async for chunk in backend.stream("q", filters=IGNORED[0])]

    with pytest.raises(InvalidFilterError, match="cannot be used here"):
        asyncio.run(backend.retrieve("q", filters=IGNORED[0]))
    with pytest.raises(InvalidFilterError, match="cannot be used here"):
        asyncio.run(streamed())
    assert searches.requests == []


def test_the_function_knows_its_store_from_its_settings(searches: AwsService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME", searches.endpoint)
    request = RetrieveRequest(query="q", metadata_filter=IGNORED[0])

    def service(store: str, **more: str) -> QueryService:
        return QueryService.from_env({"KNOWLEDGE_BASE_ID": KNOWLEDGE_BASE, "VECTOR_STORE": store, **more})

    with pytest.raises(InvalidFilterError, match="S3 Vectors, which ignores the operator"):
        service("s3_vectors").retrieve(request)
    with pytest.raises(InvalidFilterError, match="S3 Vectors, which ignores the operator"):
        service("S3_VECTORS", MULTI_CORPUS_METADATA="people,law").retrieve(request)
    assert service("OPENSEARCH_SERVERLESS").retrieve(request).complete


def test_the_store_of_the_function_is_not_that_of_another_knowledge_base(searches: AwsService) -> None:
    def engine(**config: str) -> Any:
        settings = QuerySettings(
            knowledge_base_id=KNOWLEDGE_BASE, vector_store=OPENSEARCH_SERVERLESS, retrieval_engine_config={**config}
        )
        return engine_of(settings, NO_METRICS)

    assert engine().vector_store == OPENSEARCH_SERVERLESS
    assert engine(knowledge_base_id="ANOTHERKB1").vector_store == OTHER_STORE
    assert engine(knowledge_base_id="ANOTHERKB1", vector_store=S3_VECTORS).vector_store == S3_VECTORS


@pytest.mark.parametrize(
    "own", [KNOWLEDGE_BASE, f"arn:aws:bedrock:us-east-1:123456789012:knowledge-base/{KNOWLEDGE_BASE}"]
)
def test_the_store_of_the_function_is_that_of_its_knowledge_base_wherever_it_is_named(own: str) -> None:
    def stores(retrieval_engine: str, config: dict[str, Any]) -> list[str]:
        settings = QuerySettings(
            knowledge_base_id=KNOWLEDGE_BASE,
            vector_store=S3_VECTORS,
            retrieval_engine=retrieval_engine,
            retrieval_engine_config=config,
        )
        engine: Any = engine_of(settings, NO_METRICS)
        if retrieval_engine == "bedrock":
            return [engine.vector_store]
        return [backend.vector_store for backend in engine.backend.backends.values()]

    another = {"type": "bedrock", "knowledge_base_id": "ANOTHERKB1"}
    both = {"own": {"type": "bedrock", "knowledge_base_id": own}, "another": another}

    assert stores("bedrock", {"knowledge_base_id": own}) == [S3_VECTORS]
    assert stores("federated", {"backends": both}) == [S3_VECTORS, OTHER_STORE]
