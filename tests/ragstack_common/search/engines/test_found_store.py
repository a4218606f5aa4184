"""How a process finds out the vector store of a knowledge base that its settings do not name."""

import asyncio
import logging
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from ragstack_common.access.callers import OPERATOR
from ragstack_common.core import clients
from ragstack_common.core.errors import ConfigurationError, ThrottledError
from ragstack_common.core.retry import Backoff
from ragstack_common.search.engines import found_store
from ragstack_common.services.search import QueryService, check_engine
from ragstack_common.services.search_models import RetrieveRequest
from ragstack_common.services.word_search import WordSearch, word_search_of
from ragstack_common.settings.names import MANAGED, OPENSEARCH_SERVERLESS, OTHER_STORE, S3_VECTORS
from ragstack_common.settings.search import QuerySettings
from ragstack_common.tools.retriever import RetrieverSettings, RetrieverTool
from tests.ragstack_common.services.test_word_search import settings
from tests.support.aws_service import AwsService, Fault, aws_service
from tests.support.knowledge_base import KNOWLEDGE_BASE, described_knowledge_base, hits

COLLECTION = "arn:aws:aoss:us-east-1:123456789012:collection/abcdefghij0123456789"
MAPPING = {"vectorField": "v", "textField": "t", "metadataField": "m"}
STORES: dict[str, dict[str, Any]] = {
    MANAGED: {"knowledgeBaseConfiguration": {"type": "MANAGED", "managedKnowledgeBaseConfiguration": {}}},
    S3_VECTORS: {"storageConfiguration": {"type": "S3_VECTORS", "s3VectorsConfiguration": {}}},
    OPENSEARCH_SERVERLESS: {
        "storageConfiguration": {
            "type": "OPENSEARCH_SERVERLESS",
            "opensearchServerlessConfiguration": {
                "collectionArn": COLLECTION,
                "vectorIndexName": "chunks",
                "fieldMapping": MAPPING,
            },
        }
    },
    OTHER_STORE: {"storageConfiguration": {"type": "RDS"}},
}


@pytest.fixture
def agent(searches: AwsService, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsService]:
    with aws_service("bedrock-agent") as service:
        monkeypatch.setattr(clients, "discovery_client", cache(service.client))
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME", searches.endpoint)
        found_store.store_of.cache_clear()
        yield service
        found_store.store_of.cache_clear()


def service(**env: str) -> Any:
    return QueryService.from_env({"KNOWLEDGE_BASE_ID": KNOWLEDGE_BASE, **env})


def store(query: Any) -> str:
    return str(query._engine.engine.vector_store)


@pytest.mark.parametrize("kind", STORES)
def test_a_function_finds_out_the_store_of_its_knowledge_base(agent: AwsService, kind: str) -> None:
    agent.program("GetKnowledgeBase", described_knowledge_base(**STORES[kind]))

    assert store(service()) == store(service(VECTOR_STORE="OTHER")) == kind
    assert agent.asked("GetKnowledgeBase") == [{"knowledgeBaseId": KNOWLEDGE_BASE}]
    assert agent.refusals == []


@pytest.mark.parametrize("kind", [MANAGED, S3_VECTORS, OPENSEARCH_SERVERLESS])
def test_a_store_in_the_settings_needs_no_call(agent: AwsService, kind: str) -> None:
    assert store(service(VECTOR_STORE=kind)) == kind
    check_engine(QuerySettings(knowledge_base_id=KNOWLEDGE_BASE))
    assert agent.requests == []


@pytest.mark.parametrize(
    "fault", [Fault("AccessDeniedException", "User arn:aws:iam::1:x", 403), Fault("InternalServerException", "x", 500)]
)
def test_an_unknown_store_stays_other_with_a_warning(
    agent: AwsService, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    agent.program("GetKnowledgeBase", fault)

    with caplog.at_level(logging.WARNING):
        assert store(service()) == OTHER_STORE

    (record,) = [record for record in caplog.records if "vector store" in record.getMessage()]
    assert "allow bedrock:GetKnowledgeBase" in record.getMessage()
    assert "MANAGED cannot be searched" in record.getMessage()
    assert "arn:" not in record.getMessage()


def test_a_throttled_process_asks_again(agent: AwsService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_store, "THROTTLED", Backoff(1, 0.0))
    throttled = Fault("ThrottlingException", "Rate exceeded", 429)
    agent.program("GetKnowledgeBase", throttled, described_knowledge_base(**STORES[MANAGED]))

    assert store(service()) == MANAGED


def test_a_process_that_stays_throttled_does_not_take_the_store_for_another(
    agent: AwsService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found_store, "THROTTLED", Backoff(1, 0.0))
    agent.program("GetKnowledgeBase", Fault("ThrottlingException", "Rate exceeded", 429))

    with pytest.raises(ThrottledError, match="GetKnowledgeBase failed: ThrottlingException"):
        service()
    words = word_search_of(settings(vector_store="OTHER"))()

    agent.program("GetKnowledgeBase", described_knowledge_base(**STORES[MANAGED]))
    assert store(service()) == MANAGED
    assert words is not None
    assert "ThrottlingException" in str(words.reason)


def test_a_managed_knowledge_base_that_is_not_known_as_one_is_a_fault_of_the_deployment(
    agent: AwsService, searches: AwsService
) -> None:
    agent.program("GetKnowledgeBase", Fault("AccessDeniedException", "x", 403))
    refusal = "vectorSearchConfiguration is not supported for managed knowledge bases. Use managedSearchConfiguration"
    searches.program("Retrieve", Fault("ValidationException", f"{refusal} instead.", 400))

    with pytest.raises(ConfigurationError, match="set VECTOR_STORE to MANAGED"):
        service().retrieve(RetrieveRequest(query="leave"), OPERATOR)


def test_a_managed_knowledge_base_is_found_and_searched(agent: AwsService, searches: AwsService) -> None:
    agent.program("GetKnowledgeBase", described_knowledge_base(**STORES[MANAGED]))
    searches.program("Retrieve", hits())

    assert service().retrieve(RetrieveRequest(query="leave"), OPERATOR).complete

    (asked,) = searches.asked("Retrieve")
    assert [*asked["retrievalConfiguration"]] == ["managedSearchConfiguration"]
    assert searches.refusals == []


def test_a_search_type_that_the_found_store_does_not_take_is_an_error(agent: AwsService) -> None:
    agent.program("GetKnowledgeBase", described_knowledge_base(**STORES[MANAGED]))

    with pytest.raises(ConfigurationError, match="managed search is always hybrid"):
        service(SEARCH_TYPE="HYBRID")


@pytest.mark.parametrize("kind", [MANAGED, OTHER_STORE])
@pytest.mark.parametrize("collections", [KNOWLEDGE_BASE, "*", ""])
def test_the_retriever_finds_out_the_store_of_each_collection(
    agent: AwsService, searches: AwsService, kind: str, collections: str
) -> None:
    agent.program("GetKnowledgeBase", described_knowledge_base(**STORES[kind]))
    searches.program("Retrieve", hits())
    env = {"KNOWLEDGE_BASE_ID": KNOWLEDGE_BASE, "RETRIEVER_TOOL_COLLECTIONS": collections}
    tool = RetrieverTool(RetrieverSettings.from_env({name: value for name, value in env.items() if value}))

    asyncio.run(tool.run({"collection_name": KNOWLEDGE_BASE, "texts": ["leave"]}))

    (asked,) = searches.asked("Retrieve")
    form = "managedSearchConfiguration" if kind == MANAGED else "vectorSearchConfiguration"
    assert [*asked["retrievalConfiguration"]] == [form]


def test_the_retriever_searches_its_own_knowledge_base_as_the_settings_say(
    agent: AwsService, searches: AwsService
) -> None:
    searches.program("Retrieve", hits())
    tool = RetrieverTool(RetrieverSettings.from_env({"KNOWLEDGE_BASE_ID": KNOWLEDGE_BASE, "VECTOR_STORE": "MANAGED"}))

    asyncio.run(tool.run({"collection_name": KNOWLEDGE_BASE, "texts": ["leave"]}))

    (asked,) = searches.asked("Retrieve")
    assert [*asked["retrievalConfiguration"]] == ["managedSearchConfiguration"]
    assert agent.requests == []


def test_the_status_says_that_a_managed_knowledge_base_finds_words(agent: AwsService) -> None:
    agent.program("GetKnowledgeBase", described_knowledge_base(**STORES[MANAGED]))

    assert word_search_of(settings(vector_store="MANAGED"))() == WordSearch(search_type="HYBRID")
    assert agent.requests == []
    assert word_search_of(settings(vector_store="OTHER"))() == WordSearch(search_type="HYBRID")


def test_another_knowledge_base_is_searched_in_all_of_its_data_sources(agent: AwsService, searches: AwsService) -> None:
    agent.program("GetKnowledgeBase", described_knowledge_base(**STORES[MANAGED]))
    other = {"DATA_SOURCE_ID": "KLMNOPQRST", "RETRIEVAL_ENGINE_CONFIG": '{"knowledge_base_id": "ZYXWVUTSRQ"}'}

    for env in (other, {**other, "RETRIEVAL_ENGINE_CONFIG": f'{{"knowledge_base_id": "{KNOWLEDGE_BASE}"}}'}):
        searches.program("Retrieve", hits())
        assert service(**env).retrieve(RetrieveRequest(query="leave"), OPERATOR).complete

    all_of_it, one_of_its_own = (each["retrievalConfiguration"] for each in searches.asked("Retrieve"))
    assert "filter" not in all_of_it["managedSearchConfiguration"]
    assert one_of_its_own["managedSearchConfiguration"]["filter"] == {
        "equals": {"key": "_data_source_id", "value": "KLMNOPQRST"}
    }
