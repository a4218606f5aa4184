"""The product on a knowledge base of type MANAGED that it finds, with documents of both connectors."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pytest

from ragstack_common.access.callers import OPERATOR
from ragstack_common.core import clients
from ragstack_common.core.errors import InvalidFilterError
from ragstack_common.search.engines.found_store import store_of
from ragstack_common.services.ask import AskService
from ragstack_common.services.ask_models import AskRequest
from ragstack_common.services.search import QueryService
from ragstack_common.services.search_models import RetrieveRequest, RetrieveResponse
from ragstack_common.tools.retriever import RetrieverSettings, RetrieverTool
from tests.local_bedrock.support import Bedrock, Source

SOURCE_URI: Final = "x-amz-bedrock-kb-source-uri"
SAMPLES: Final = Path(__file__).parents[2] / "samples"
GUIDE: Final = SAMPLES / "documents" / "product" / "gateway-installation.pdf"
LONG_LEAVE: Final = " ".join(f"Heron {n} is on parental leave and keeps its nest." for n in range(900))
CACHED: Final = (clients.retrieval_client, clients.discovery_client, store_of)


class Filled:
    """A knowledge base with documents of both connectors, and the environment of a function that searches it."""

    def __init__(self, bedrock: Bedrock, s3: Any, bucket: str) -> None:
        self.knowledge_base_id = bedrock.managed_base("existing")
        self.bucket = bucket
        for key, text in {
            "birds/nest plan ü.md": "# Nests\n\nA nest is built in April.",
            "leave.md": LONG_LEAVE,
        }.items():
            s3.put_object(Bucket=bucket, Key=key, Body=text.encode())
        metadata = b'{"metadataAttributes": {"topic": "nests", "year": 2025}}'
        s3.put_object(Bucket=bucket, Key="birds/nest plan ü.md.metadata.json", Body=metadata)
        s3.put_object(Bucket=bucket, Key="guide.pdf", Body=GUIDE.read_bytes())
        connection = {"bucketName": bucket, "bucketOwnerAccountId": "000000000000"}
        crawled = bedrock.connector(self.knowledge_base_id, "S3", connectionConfiguration=connection)
        assert crawled.synchronised()["status"] == "COMPLETE"
        self.crawled = crawled
        self.submitted = bedrock.connector(self.knowledge_base_id, "CUSTOM")
        self._submit(self.submitted, "herons.txt", "Herons build a nest of sticks.", topic="nests")
        self._submit(self.submitted, "storks.txt", "Storks eat frogs.", topic="food")
        self.env = {"KNOWLEDGE_BASE_ID": self.knowledge_base_id, "RETRIEVAL_TIMEOUT_SECONDS": "24"}

    def _submit(self, source: Source, key: str, text: str, **attributes: str) -> None:
        inline = [{"key": key, "value": {"type": "STRING", "stringValue": value}} for key, value in attributes.items()]
        document = {
            "content": {
                "dataSourceType": "CUSTOM",
                "custom": {
                    "customDocumentIdentifier": {"id": self.uri(key)},
                    "sourceType": "IN_LINE",
                    "inlineContent": {"type": "TEXT", "textContent": {"data": text}},
                },
            },
            "metadata": {"type": "IN_LINE_ATTRIBUTE", "inlineAttributes": inline},
        }
        assert [each["status"] for each in source.ingested(document)] == ["INDEXED"]

    def uri(self, key: str) -> str:
        return f"s3://{self.bucket}/{key}"

    def found(self, query: str, env: Mapping[str, str] = MappingProxyType({}), **options: Any) -> RetrieveResponse:
        service = QueryService.from_env({**self.env, **env})
        response = service.retrieve(RetrieveRequest(query=query, **{"infer_filter": False, **options}), OPERATOR)
        assert response.complete
        return response

    def sources(self, query: str, **options: Any) -> list[str]:
        results = self.found(query, **options).results
        return [str(result.source).removeprefix(f"s3://{self.bucket}/") for result in results]


@pytest.fixture(scope="module")
def made(bedrock: Bedrock, s3: Any) -> Filled:
    s3.create_bucket(Bucket="existing-documents")
    return Filled(bedrock, s3, "existing-documents")


@pytest.fixture
def filled(made: Filled, bedrock: Bedrock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Filled]:
    for service in ("BEDROCK_AGENT", "BEDROCK_AGENT_RUNTIME"):
        monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", bedrock.url)
    for each in CACHED:
        each.cache_clear()
    yield made
    for each in CACHED:
        each.cache_clear()


EVERY: Final = {"herons.txt", "storks.txt", "leave.md", "birds/nest plan ü.md", "guide.pdf"}


def test_documents_of_both_connectors_are_found_by_their_uris(filled: Filled) -> None:
    found = filled.sources("nest", top_k=10)

    assert set(found) == EVERY
    assert len(found) == len(EVERY)
    assert set(found[:3]) == {"herons.txt", "birds/nest plan ü.md", "leave.md"}


@pytest.mark.parametrize("key", sorted(EVERY))
def test_a_document_is_selected_and_excluded_by_its_uri(filled: Filled, key: str) -> None:
    options: dict[str, Any] = {"filter_mode": "strict", "top_k": 10}

    assert filled.sources("nest", metadata_filter={SOURCE_URI: filled.uri(key)}, **options) == [key]
    for excluded in ({"$ne": filled.uri(key)}, {"$nin": [filled.uri(key)]}):
        assert set(filled.sources("nest", metadata_filter={SOURCE_URI: excluded}, **options)) == EVERY - {key}


def test_a_caller_can_write_the_names_of_the_service(filled: Filled) -> None:
    (result,) = filled.found("nest", metadata_filter={SOURCE_URI: filled.uri("leave.md")}, filter_mode="strict").results

    url = result.metadata["_source_uri"]
    assert url.startswith("https://")
    assert filled.sources("nest", metadata_filter={"_source_uri": url}, filter_mode="strict") == ["leave.md"]


def test_data_sources_attributes_and_negations_restrict_a_search(filled: Filled) -> None:
    def strict(filters: dict[str, Any]) -> set[str]:
        return set(filled.sources("nest", metadata_filter=filters, filter_mode="strict", top_k=10))

    assert strict({"x-amz-bedrock-kb-data-source-id": filled.submitted.id}) == {"herons.txt", "storks.txt"}
    assert strict({"topic": "nests"}) == {"herons.txt", "birds/nest plan ü.md"}
    assert strict({"topic": {"$ne": "nests"}}) == EVERY - {"herons.txt", "birds/nest plan ü.md"}
    assert strict({"$or": [{"year": {"$gte": 2025}}, {"topic": {"$in": ["food", "none"]}}]}) == {
        "birds/nest plan ü.md",
        "storks.txt",
    }


@pytest.mark.parametrize("operator", ["$startsWith", "$contains"])
def test_an_operator_that_the_service_refuses_names_the_alternative(filled: Filled, operator: str) -> None:
    with pytest.raises(InvalidFilterError, match="use equals, in or a comparison"):
        filled.found("nest", metadata_filter={"topic": {operator: "ne"}})


def test_a_preference_raises_its_matches_and_keeps_the_others(filled: Filled) -> None:
    response = filled.found("nest", metadata_filter={"topic": "food"}, filter_trust=0.9, top_k=10)

    assert [part.slice for part in response.slices] == ["filtered", "unfiltered"]
    assert response.results[0].source == filled.uri("storks.txt")
    assert len(response.results) == len(EVERY)


def test_a_page_is_known_where_the_service_reports_it(filled: Filled) -> None:
    (guide,) = filled.found(
        "gateway", metadata_filter={SOURCE_URI: filled.uri("guide.pdf")}, filter_mode="strict"
    ).results

    assert guide.page is not None


def test_chunks_are_looked_up_by_the_ids_of_a_search(filled: Filled) -> None:
    engine: Any = QueryService.from_env(filled.env)._engine
    found = asyncio.run(engine.retrieve("herons on parental leave", 20))

    looked_up = [asyncio.run(engine.get_by_id(chunk.chunk_id)) for chunk in found]

    assert len({chunk.chunk_id for chunk in found}) == len(found) > 3
    assert [chunk and chunk.content for chunk in looked_up] == [chunk.content for chunk in found]


def test_a_question_is_answered_with_citations(filled: Filled) -> None:
    service = AskService.from_env(filled.env)

    answer = asyncio.run(service.ask(AskRequest(question="When is a nest built?"), OPERATOR))

    (cited,) = [source for source in answer.sources if source.cited][:1]
    assert "April" in answer.answer
    assert cited.source == filled.uri("birds/nest plan ü.md")
    assert cited.location == {"type": "S3", "s3Location": {"uri": cited.source}}


def test_the_passages_of_one_document_are_read_without_the_others(filled: Filled) -> None:
    service = QueryService.from_env(filled.env)

    passages = asyncio.run(service.passages_of(filled.uri("leave.md"), "parental leave", OPERATOR))

    assert len(passages) > 1
    assert {passage.source for passage in passages} == {filled.uri("leave.md")}


def test_the_retriever_tool_finds_the_same_documents(filled: Filled) -> None:
    tool = RetrieverTool(RetrieverSettings.from_env(filled.env))

    found = asyncio.run(tool.run({"collection_name": filled.knowledge_base_id, "texts": ["storks and frogs"]}))

    assert found["results"][0]["metadata"]["source"] == filled.uri("storks.txt")


def test_relevance_is_that_of_managed_searches(filled: Filled) -> None:
    """No calibration for another kind of search is used."""

    def relevances(search_type: str) -> list[float | None]:
        own = {"embedding": "hashed", "search_type": search_type, "intercept": 9, "weights": {"vector": 1}}
        env = {"RELEVANCE_CALIBRATION": json.dumps({"calibrations": [own]})}
        return [result.relevance for result in filled.found("nest", env).results]

    shipped = [result.relevance for result in filled.found("nest").results]

    assert None not in shipped
    assert relevances("HYBRID") == relevances("SEMANTIC") == shipped
    assert all((relevance or 0) > 0.99 for relevance in relevances("MANAGED"))
