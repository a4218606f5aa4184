"""The retriever tool on the real store of every engine: one collection, with corpora for its partitions."""

import pytest

from ragstack_common.search import factory, register_backend
from ragstack_common.tools import Registry, RetrieverSettings, RetrieverTool, SearchedCollection, run_tool
from tests.contract.case import Make
from tests.contract.documents import DOCUMENTS

CASES = ("bedrock", "chroma", "milvus")


@pytest.fixture
def registry(make: Make, monkeypatch: pytest.MonkeyPatch) -> Registry:
    monkeypatch.setattr(factory, "_registered", dict(factory._registered))
    register_backend("store", make)
    registry = Registry()
    registry.register(RetrieverTool(RetrieverSettings({"docs": SearchedCollection({"type": "store"}, "corpus")})))
    return registry


def test_several_texts_find_their_documents_in_one_list(registry: Registry) -> None:
    texts = ["grease the bearings of the water pump", "the landlord returns the deposit"]

    status, answer = run_tool(registry, "retriever", {"input": {"collection_name": "docs", "texts": texts, "top_k": 2}})

    assert status == 200
    assert {result["text"] for result in answer["output"]["results"]} == {DOCUMENTS[7].text, DOCUMENTS[8].text}
    assert all(result["metadata"]["source"] for result in answer["output"]["results"])
    assert all(isinstance(result["id"], str) for result in answer["output"]["results"])


def test_a_partition_is_a_corpus(registry: Registry) -> None:
    data = {"collection_name": "docs", "partition_name": "legal", "texts": ["water pump", "lease"]}

    status, answer = run_tool(registry, "retriever", {"input": data})

    assert status == 200
    wanted = {document.text for document in DOCUMENTS if document.metadata.get("corpus") == "legal"}
    assert {result["text"] for result in answer["output"]["results"]} == wanted


def test_an_unknown_partition_is_empty(registry: Registry) -> None:
    data = {"collection_name": "docs", "partition_name": "nowhere", "texts": ["water pump"]}

    status, answer = run_tool(registry, "retriever", {"input": data})

    assert (status, answer["output"]) == (200, {"results": [], "count": 0})
