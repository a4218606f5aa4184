"""LlamaIndex: the knowledge-base retriever, and the store of vectors."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.conftest import ANIMALS, PLANTS, Zoo
from tests.clients.support import LLAMA_INDEX, Client, client
from tests.local_bedrock.support import client as boto3_client

pytestmark = pytest.mark.xdist_group("clients")

FASTEST = "the fastest animal on land"


@pytest.fixture(scope="module")
def llama_index(zoo: Zoo) -> Iterator[Client]:
    with client("llama_index_client", zoo.url, programs=LLAMA_INDEX) as process:
        yield process


def search(llama_index: Client, zoo: Zoo, question: str, **configuration: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = llama_index.ask(
        "retrieve",
        question=question,
        knowledge_base_id=zoo.knowledge_base_id,
        retrieval_config={"vectorSearchConfiguration": configuration},
    )
    return found


def test_nodes_come_with_text_score_and_metadata(llama_index: Client, zoo: Zoo) -> None:
    found = search(llama_index, zoo, FASTEST, numberOfResults=3)

    assert found[0]["text"] == ANIMALS["cheetah"][0]
    assert 1 >= found[0]["score"] >= found[1]["score"] >= found[2]["score"] >= 0
    assert found[0]["location"] == {"type": "CUSTOM", "customDocumentLocation": {"id": "cheetah"}}
    assert found[0]["sourceMetadata"]["legs"] == 4


def test_filters_and_the_kind_of_search_are_followed(llama_index: Client, zoo: Zoo) -> None:
    savanna = {"listContains": {"key": "habitats", "value": "savanna"}}

    found = search(llama_index, zoo, "water in a trunk", numberOfResults=5, overrideSearchType="HYBRID", filter=savanna)

    assert found[0]["text"] == PLANTS["baobab"][0]
    assert {node["location"]["customDocumentLocation"]["id"] for node in found} == {"cheetah", "ostrich", "baobab"}


def test_its_asynchronous_client_finds_the_same(llama_index: Client, zoo: Zoo) -> None:
    texts = llama_index.ask(
        "retrieve_asynchronously",
        question=FASTEST,
        knowledge_base_id=zoo.knowledge_base_id,
        retrieval_config={"vectorSearchConfiguration": {"numberOfResults": 3}},
    )

    assert texts == [node["text"] for node in search(llama_index, zoo, FASTEST, numberOfResults=3)]


def test_its_store_of_vectors_adds_queries_and_deletes(llama_index: Client, zoo: Zoo) -> None:
    boto3_client("s3vectors", zoo.url).create_vector_bucket(vectorBucketName="llama-index")
    place = {"bucket": "llama-index", "index": "animals"}
    vectors = {"cheetah": [1.0, 0.0, 0.1], "whale": [0.0, 1.0, 0.0], "snail": [0.6, 0.8, 0.0]}
    texts = {name: ANIMALS[name][0] for name in vectors}
    llama_index.ask("create_index", **place, dimension=3)

    added = llama_index.ask("add", **place, texts=texts, vectors=vectors, legs={"cheetah": 4, "whale": 0, "snail": 0})
    nearest = llama_index.ask("query", **place, vector=[1.0, 0.0, 0.0], k=2, filters=[])
    without_legs = [{"key": "legs", "value": 1, "operator": "<"}]
    filtered = llama_index.ask("query", **place, vector=[1.0, 0.0, 0.0], k=3, filters=without_legs)
    left = llama_index.ask("remove", **place, ids=["cheetah"])

    assert added == list(vectors)
    assert nearest["ids"] == ["cheetah", "snail"]
    assert nearest["texts"] == [texts["cheetah"], texts["snail"]]
    assert nearest["similarities"] == pytest.approx([0.995, 0.6], abs=1e-3)
    assert filtered["ids"] == ["snail", "whale"]
    assert set(left) == {"whale", "snail"}
