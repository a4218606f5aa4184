"""Operators that the vector store of a knowledge base may ignore are rejected."""

import asyncio
from typing import Any

import pytest

from ragstack_common.access.callers import OPERATOR
from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.core.telemetry import NO_METRICS
from ragstack_common.filters import check_vector_store, parse
from ragstack_common.search.engines.bedrock import BedrockBackend
from ragstack_common.services.search import QueryService, make_engine
from ragstack_common.services.search_models import RetrieveRequest
from ragstack_common.settings.names import OPENSEARCH_SERVERLESS, OTHER_STORE, S3_VECTORS
from ragstack_common.settings.search import QuerySettings
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


def is_rejected(source: dict[str, Any], store: str, *, restricts: bool) -> bool:
    try:
        check_vector_store(parse(source), store, restricts=restricts)
    except InvalidFilterError as error:
        return "team" in str(error) and "cannot be used here" in str(error)
    return False


@pytest.mark.parametrize(
    ("store", "restricts", "rejected"),
    [
        (S3_VECTORS, True, [*IGNORED, IN_A_LIST]),
        (S3_VECTORS, False, IGNORED),
        (OTHER_STORE, True, [*IGNORED, IN_A_LIST]),
        (OTHER_STORE, False, []),
        (OPENSEARCH_SERVERLESS, True, []),
        (OPENSEARCH_SERVERLESS, False, []),
    ],
)
def test_a_filter_is_rejected_if_the_store_may_ignore_it(store: str, restricts: bool, rejected: list[Any]) -> None:
    every = [*IGNORED, IN_A_LIST, *SAFE]

    assert [source for source in every if is_rejected(source, store, restricts=restricts)] == rejected


def test_the_backend_checks_the_filters_of_searches_and_streams(searches: AwsService) -> None:
    backend = BedrockBackend(KNOWLEDGE_BASE, client=searches.client())

    async def streamed() -> list[Any]:
        return [chunk async for chunk in backend.stream("q", filters=IGNORED[0])]

    with pytest.raises(InvalidFilterError, match="cannot be used here"):
        asyncio.run(backend.retrieve("q", filters=IGNORED[0]))
    with pytest.raises(InvalidFilterError, match="cannot be used here"):
        asyncio.run(streamed())
    assert searches.requests == []


def test_the_settings_of_the_function_name_its_vector_store(
    searches: AwsService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME", searches.endpoint)
    request = RetrieveRequest(query="q", metadata_filter=IGNORED[0])

    def service(store: str, **more: str) -> QueryService:
        return QueryService.from_env({"KNOWLEDGE_BASE_ID": KNOWLEDGE_BASE, "VECTOR_STORE": store, **more})

    with pytest.raises(InvalidFilterError, match="S3 Vectors, which ignores the operator"):
        service("s3_vectors").retrieve(request, OPERATOR)
    with pytest.raises(InvalidFilterError, match="S3 Vectors, which ignores the operator"):
        service("S3_VECTORS", MULTI_CORPUS_METADATA="people,law").retrieve(request, OPERATOR)
    assert service("OPENSEARCH_SERVERLESS").retrieve(request, OPERATOR).complete


def test_another_knowledge_base_has_another_vector_store(searches: AwsService) -> None:
    def engine(**config: str) -> Any:
        settings = QuerySettings(
            knowledge_base_id=KNOWLEDGE_BASE, vector_store=OPENSEARCH_SERVERLESS, retrieval_engine_config={**config}
        )
        return make_engine(settings, NO_METRICS)

    assert engine().engine.vector_store == OPENSEARCH_SERVERLESS
    assert engine(knowledge_base_id="ANOTHERKB1").engine.vector_store == OTHER_STORE
    assert engine(knowledge_base_id="ANOTHERKB1", vector_store=S3_VECTORS).engine.vector_store == S3_VECTORS


@pytest.mark.parametrize(
    "own", [KNOWLEDGE_BASE, f"arn:aws:bedrock:us-east-1:123456789012:knowledge-base/{KNOWLEDGE_BASE}"]
)
def test_every_engine_uses_the_vector_store_of_the_settings(own: str) -> None:
    def stores(retrieval_engine: str, config: dict[str, Any]) -> list[str]:
        settings = QuerySettings(
            knowledge_base_id=KNOWLEDGE_BASE,
            vector_store=S3_VECTORS,
            retrieval_engine=retrieval_engine,
            retrieval_engine_config=config,
        )
        engine: Any = make_engine(settings, NO_METRICS)
        if retrieval_engine == "bedrock":
            return [engine.engine.vector_store]
        return [backend.engine.vector_store for backend in engine.backend.backends.values()]

    another = {"type": "bedrock", "knowledge_base_id": "ANOTHERKB1"}
    both = {"own": {"type": "bedrock", "knowledge_base_id": own}, "another": another}

    assert stores("bedrock", {"knowledge_base_id": own}) == [S3_VECTORS]
    assert stores("federated", {"backends": both}) == [S3_VECTORS, OTHER_STORE]
