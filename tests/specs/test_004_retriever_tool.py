"""The examples of the specification "Retriever Tool", on a real Milvus Lite."""

from ragstack_common.function import metrics

import ast
import asyncio
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from lambdas.query import handler as query
from ragstack_common.tools import (
    MilvusConfig,
    MilvusQueryTool,
    Registry,
    ToolInput,
    list_tools,
    registry_from_env,
    run_tool,
)

pytest.importorskip("milvus_lite", reason="needs the extra milvus")

from milvus_lite.server_manager import server_manager_instance

from ragstack_common.search.engines.milvus.backend import MilvusBackend
from ragstack_common.search.engines.milvus.collection import MilvusDocument
from tests.support.events import Context, api_event

DOCUMENTS = [
    MilvusDocument(
        1001,
        "Artificial Intelligence (AI) is a field of computer science...",
        "wikipedia",
        {"category": "technology"},
    ),
    MilvusDocument(1002, "The canteen serves soup on Mondays.", "menu"),
]
IN_PARTITION = [
    MilvusDocument(
        2001,
        "Machine learning algorithms process data to find patterns...",
        "research_paper",
        {"author": "Dr. Smith", "timestamp": "2024-01-01T00:00:00Z"},
    ),
    MilvusDocument(
        2002,
        "Neural networks consist of interconnected nodes...",
        "tutorial",
        {"difficulty": "intermediate"},
    ),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = str(tmp_path_factory.mktemp("xmidas") / "milvus.db")
    keeper = MilvusBackend(path, "xmidas", timeout_seconds=60)

    async def fill() -> None:
        await keeper.create(partition_names=["documents"], integer_ids=True)
        await keeper.add(DOCUMENTS)
        await keeper.add(IN_PARTITION, "documents")

    asyncio.run(fill())
    yield path
    asyncio.run(keeper.close())


@pytest.fixture(scope="module")
def registry(address: str) -> Iterator[Registry]:
    registry = Registry()
    registry.register(MilvusQueryTool(MilvusConfig(address=address)))
    yield registry
    asyncio.run(registry.close())


def execute(registry: Registry, **data: Any) -> dict[str, Any]:
    return registry.execute_now(ToolInput(name="retriever", data=data)).as_json()


def test_basic_query(address: str) -> None:
    async def example() -> Any:
        registry = Registry()
        registry.register(MilvusQueryTool(MilvusConfig(address=address)))

        result = await registry.execute(
            ToolInput(
                name="retriever",
                data={"collection_name": "xmidas", "texts": ["your search query"], "top_k": 10},
            )
        )
        await registry.close()
        return result

    result = asyncio.run(example())

    assert result.success
    assert result.data["count"] == len(result.data["results"]) == 4


def test_multiple_text_queries(registry: Registry) -> None:
    texts = ["artificial intelligence", "machine learning algorithms", "neural networks"]

    answer = execute(registry, collection_name="xmidas", texts=texts, top_k=20)

    assert {result["id"] for result in answer["data"]["results"][:3]} == {1001, 2001, 2002}
    assert answer["data"]["count"] == 4


def test_example_1_single_query(registry: Registry) -> None:
    answer = execute(registry, collection_name="xmidas", texts=["artificial intelligence"], top_k=5)

    assert list(answer) == ["success", "data"]
    assert answer["success"] is True
    best = answer["data"]["results"][0]
    assert list(best) == ["id", "text", "score", "metadata"]
    assert (best["id"], best["text"]) == (1001, "Artificial Intelligence (AI) is a field of computer science...")
    assert best["metadata"] == {"source": "wikipedia", "category": "technology"}
    assert 0 < best["score"] <= 1
    json.dumps(answer)


def test_example_2_multiple_queries(registry: Registry) -> None:
    answer = execute(
        registry,
        collection_name="xmidas",
        partition_name="documents",
        texts=["machine learning algorithms", "neural network architecture"],
        top_k=10,
    )

    assert answer["data"]["count"] == 2
    found = {result["id"]: result["metadata"] for result in answer["data"]["results"]}
    assert found[2001] == {"source": "research_paper", "author": "Dr. Smith", "timestamp": "2024-01-01T00:00:00Z"}
    assert found[2002] == {"source": "tutorial", "difficulty": "intermediate"}


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ({"texts": ["query"], "top_k": 5}, "collection_name field is required and must be a string"),
        ({"collection_name": "xmidas", "texts": "not an array"}, "texts field must be an array of strings"),
        ({"collection_name": "xmidas", "texts": ["valid query", 123]}, "texts[1] must be a string"),
        ({"collection_name": "nonexistent", "texts": ["query"]}, "query failed: collection not found"),
    ],
)
def test_error_handling(registry: Registry, data: dict[str, Any], error: str) -> None:
    result = registry.execute_now(ToolInput(name="retriever", data=data))
    status, body = run_tool(registry, "retriever", {"input": data})

    assert result.as_json() == {"success": False, "error": error}
    assert body == {"success": False, "error": error}
    assert status == (404 if "not found" in error else 400)


@pytest.fixture
def api(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """The deployed function; Milvus is a server that it reaches over the network."""
    server = server_manager_instance.start_and_get_uri(address)
    monkeypatch.setenv("MILVUS_ADDRESS", urlsplit(server).netloc)
    monkeypatch.setenv("RETRIEVER_TOOL_COLLECTIONS", "*")
    monkeypatch.setattr(metrics, "namespace", "RAGStack")
    monkeypatch.setattr(metrics, "service", "query")
    query.tools.cache_clear()

    def post(body: str) -> Any:
        answer = query.handler(api_event("POST", "/tools/retriever", body), Context())
        return json.loads(answer["body"])

    yield post
    asyncio.run(query.tools().close())
    query.tools.cache_clear()


def test_api_single_query_search(api: Callable[[str], Any]) -> None:
    answer = api(
        """{
            "input": {
              "collection_name": "xmidas",
              "texts": ["artificial intelligence"],
              "top_k": 5
            }
          }"""
    )

    assert list(answer) == ["success", "output", "stats"]
    assert answer["success"] is True
    assert answer["output"]["count"] == len(answer["output"]["results"]) == 4
    best = answer["output"]["results"][0]
    assert {**best, "score": 0.92} == {
        "id": 1001,
        "text": "Artificial Intelligence (AI) is a field of computer science...",
        "score": 0.92,
        "metadata": {"source": "wikipedia", "category": "technology"},
    }
    assert re.fullmatch(r"\d+\.\d+s", answer["stats"]["execution_time"])


def test_api_multiple_queries_with_partition(api: Callable[[str], Any]) -> None:
    answer = api(
        """{
            "input": {
              "collection_name": "xmidas",
              "partition_name": "documents",
              "texts": [
                "machine learning algorithms",
                "neural network architecture"
              ],
              "top_k": 10
            }
          }"""
    )

    assert answer["output"]["count"] == 2
    assert sorted(result["id"] for result in answer["output"]["results"]) == [2001, 2002]
    scores = [result["score"] for result in answer["output"]["results"]]
    assert scores == sorted(scores, reverse=True)


def test_the_input_schema_is_the_table(registry: Registry) -> None:
    (tool,) = list_tools(registry)["tools"]

    schema = tool["input_schema"]
    assert tool["name"] == "retriever"
    assert {name: part["type"] for name, part in schema["properties"].items()} == {
        "collection_name": "string",
        "partition_name": "string",
        "texts": "array",
        "top_k": "integer",
    }
    assert schema["required"] == ["collection_name", "texts"]
    assert (schema["properties"]["top_k"]["default"], schema["properties"]["top_k"]["maximum"]) == (10, 100)


def test_a_missing_partition_is_an_error(registry: Registry) -> None:
    answer = execute(registry, collection_name="xmidas", partition_name="nowhere", texts=["query"])

    assert answer == {"success": False, "error": "query failed: partition not found"}


def test_the_environment_configures_the_tool(address: str) -> None:
    env = {"MILVUS_ADDRESS": address, "RETRIEVER_TOOL_COLLECTIONS": "xmidas"}

    registry = registry_from_env(env)

    required = "collection_name field is required and must be a string"
    assert execute(registry, texts=["query"], top_k=5) == {"success": False, "error": required}
    assert execute(registry, collection_name="xmidas", texts=["soup"], top_k=1)["data"]["results"][0]["id"] == 1002
    assert execute(registry, collection_name="other", texts=["soup"])["error"] == "query failed: collection not found"
    asyncio.run(registry.close())


def test_the_python_examples_of_the_documentation_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "TOOLS.md").read_text(encoding="utf-8")
    query, fill = re.findall(r"```python\n(.*?)```", page.partition("## In Python")[2], flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)

    filled = eval(compile(fill, "fill", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), {})
    asyncio.run(filled)
    exec(query, {})

    assert "'success': True" in capsys.readouterr().out
