"""The MCP server for Bedrock knowledge bases of AWS Labs, started by an MCP client over standard input and output."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.conftest import ANIMALS, PLANTS, Zoo
from tests.clients.support import Client, client

pytestmark = pytest.mark.xdist_group("clients")

FASTEST = "the fastest animal on land"


@pytest.fixture(scope="module")
def assistant(zoo: Zoo) -> Iterator[Client]:
    with client("mcp_client", zoo.url) as process:
        yield process


def call(assistant: Client, tool: str, **arguments: Any) -> str:
    answer = assistant.ask("call", tool=tool, arguments=arguments)
    assert not answer["failed"], answer["text"]
    return str(answer["text"])


def query(assistant: Client, zoo: Zoo, question: str, **more: Any) -> list[dict[str, Any]]:
    text = call(assistant, "QueryKnowledgeBases", query=question, knowledge_base_id=zoo.knowledge_base_id, **more)
    return [json.loads(part) for part in text.split("\n\n") if part]


def test_it_lists_the_tagged_knowledge_bases_with_their_data_sources(assistant: Client, zoo: Zoo) -> None:
    listed = json.loads(call(assistant, "ListKnowledgeBases"))

    assert set(listed) == {zoo.knowledge_base_id}
    assert listed[zoo.knowledge_base_id]["name"] == "zoo"
    assert listed[zoo.knowledge_base_id]["type"] == "VECTOR"
    assert {source["name"]: source["id"] for source in listed[zoo.knowledge_base_id]["data_sources"]} == {
        "animals": zoo.animals.id,
        "plants": zoo.plants.id,
    }


def test_it_finds_the_document_that_answers(assistant: Client, zoo: Zoo) -> None:
    found = query(assistant, zoo, FASTEST, number_of_results=3)

    assert found[0]["content"]["text"] == ANIMALS["cheetah"][0]
    assert len(found) == 3
    assert found[0]["score"] >= found[1]["score"] >= found[2]["score"]


def test_it_searches_only_the_chosen_data_source(assistant: Client, zoo: Zoo) -> None:
    found = query(assistant, zoo, FASTEST, data_source_ids=[zoo.plants.id])

    assert found[0]["content"]["text"] == PLANTS["bamboo"][0]
    assert {document["location"]["customDocumentLocation"]["id"] for document in found} == set(PLANTS)


def test_it_reranks_what_it_found(assistant: Client, zoo: Zoo) -> None:
    found = query(assistant, zoo, FASTEST, number_of_results=5, reranking=True, reranking_model_name="COHERE")

    assert found[0]["content"]["text"] == ANIMALS["cheetah"][0]
    assert all(0 <= document["score"] <= 1 for document in found)


@pytest.mark.parametrize("more", [{}, {"reranking": True, "reranking_model_name": "COHERE"}])
def test_it_searches_a_managed_knowledge_base(assistant: Client, zoo: Zoo, more: dict[str, Any]) -> None:
    base = zoo.managed.knowledge_base_id
    sources = [zoo.managed.id]

    text = call(
        assistant, "QueryKnowledgeBases", query=FASTEST, knowledge_base_id=base, data_source_ids=sources, **more
    )

    found = [json.loads(part) for part in text.split("\n\n")]
    assert found[0]["location"]["customDocumentLocation"]["id"] == "cheetah"


def test_it_retrieves_agentically_with_citations_and_a_trace(assistant: Client, zoo: Zoo) -> None:
    base = zoo.managed.knowledge_base_id
    question = "How many hearts does the octopus have?"

    text = call(assistant, "AgenticQueryKnowledgeBases", query=question, knowledge_base_ids=[base], include_trace=True)

    answer = json.loads(text)
    cited = [answer["results"][number]["text"] for each in answer["citations"] for number in each["resultIndexes"]]
    assert "The octopus has three hearts" in answer["answer"]
    assert cited == [ANIMALS["octopus"][0]]
    assert [(step["step"], step["status"]) for step in answer["trace"]] == [("Retrieval", "SUCCEEDED")]


def test_the_assistant_sees_an_unknown_knowledge_base(assistant: Client) -> None:
    answer = assistant.ask(
        "call", tool="QueryKnowledgeBases", arguments={"query": FASTEST, "knowledge_base_id": "UNKNOWN000"}
    )

    assert answer["failed"]
