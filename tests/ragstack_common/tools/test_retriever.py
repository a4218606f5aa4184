"""The retriever on a small engine: input, results, access to collections, settings."""

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any, ClassVar

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from ragstack_common.core import errors
from ragstack_common.search import RetrievalBackend, RetrievedChunk, factory, register_backend
from ragstack_common.search.models import SearchRequest
from ragstack_common.tools import (
    MilvusConfig,
    Registry,
    RetrieverSettings,
    RetrieverTool,
    SearchedCollection,
    ToolError,
    ToolInput,
    registry_from_env,
    run_tool,
)
from ragstack_common.tools.registry import execution_time
from ragstack_common.tools.schemas import INPUT_SCHEMA, RetrieverRequest, clean


class Shelf(RetrievalBackend):
    """A small engine that finds the lines that contain the query, the shortest first."""

    made: ClassVar[list["Shelf"]] = []

    def __init__(self, lines: Sequence[str], error: str | None = None, **options: Any) -> None:
        self.lines, self.error, self.options = lines, error, options
        self.asked: list[Any] = []
        self.closed = 0
        Shelf.made.append(self)

    async def retrieve(
        self, query: str, top_k: int = 5, min_score: float | None = None, filters: dict[str, Any] | None = None
    ) -> list[RetrievedChunk]:
        SearchRequest(query, top_k, min_score, filters)
        self.asked.append((query, top_k, filters))
        if self.error is not None:
            raise getattr(errors, self.error)("the shelf is no good")
        found = [line for line in self.lines if query in line and (not filters or filters["corpus"] in line)]
        chunks = [
            RetrievedChunk(content=line, score=len(query) / len(line), source="shelf.md", chunk_id=f"line-{line[:4]}")
            for line in found
        ]
        return sorted(chunks, key=lambda chunk: -chunk.score)[:top_k]

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def shelf(monkeypatch: pytest.MonkeyPatch) -> list[Shelf]:
    monkeypatch.setattr(factory, "_registered", dict(factory._registered))
    monkeypatch.setattr(Shelf, "made", [])
    register_backend("shelf", Shelf)
    return Shelf.made


LINES = ["pump water", "pump water slowly", "lease of water", "a lease"]


def tool(**options: Any) -> RetrieverTool:
    backend = {"type": "shelf", "lines": LINES, **options}
    return RetrieverTool(RetrieverSettings({"lines": SearchedCollection(backend, "corpus")}))


def registered(made: RetrieverTool) -> Registry:
    registry = Registry()
    registry.register(made)
    return registry


def execute(made: RetrieverTool, data: Any) -> Any:
    return registered(made).execute_now(ToolInput("retriever", data))


def ask(*texts: str, **more: Any) -> dict[str, Any]:
    return {"collection_name": "lines", "texts": list(texts), **more}


def test_results_have_the_id_source_and_score_of_the_engine() -> None:
    answer = execute(tool(), ask("pump", top_k=1)).data

    assert answer == {
        "results": [{"id": "line-pump", "text": "pump water", "score": 0.4, "metadata": {"source": "shelf.md"}}],
        "count": 1,
    }


def test_top_k_counts_the_results_of_all_texts_together() -> None:
    answer = execute(tool(), ask("pump", "lease", top_k=2)).data

    assert [result["text"] for result in answer["results"]] == ["a lease", "pump water"]


def test_equal_texts_are_searched_once(shelf: list[Shelf]) -> None:
    execute(tool(), ask("water", " water ", "wa\u0000ter", "water"))

    assert [query for query, *_ in shelf[0].asked] == ["water", "wa ter"]


def test_a_partition_is_a_filter_if_the_engine_has_no_partitions(shelf: list[Shelf]) -> None:
    answer = execute(tool(), ask("water", partition_name="lease")).data

    assert shelf[0].asked == [("water", 10, {"corpus": "lease"})]
    assert [result["text"] for result in answer["results"]] == ["lease of water"]


def test_an_engine_with_partitions_gets_the_partition(shelf: list[Shelf]) -> None:
    settings = RetrieverSettings({"lines": SearchedCollection({"type": "shelf", "lines": LINES})})

    made = RetrieverTool(settings)
    for partition in ("p", "q", "p"):
        execute(made, ask("water", partition_name=partition))

    assert [one.options["partition_names"] for one in shelf] == [["p"], ["q"]]
    assert [query for query, *_ in shelf[0].asked] == ["water", "water"]


def test_concurrent_runs_share_a_backend_that_the_tool_closes(shelf: list[Shelf]) -> None:
    made = tool()

    async def together() -> list[Any]:
        return list(await asyncio.gather(*(made.run(ask("water", top_k=1)) for _ in range(50))))

    answers = asyncio.run(together())

    asyncio.run(made.close())

    assert [one.closed for one in shelf] == [1]
    assert all(answer == answers[0] for answer in answers)


def test_the_backend_of_a_missing_collection_is_closed(shelf: list[Shelf]) -> None:
    made = tool(error="CollectionNotFoundError")
    for _ in range(2):
        assert execute(made, ask("water")).error == "query failed: collection not found"

    assert [one.closed for one in shelf] == [1, 1]


@pytest.mark.parametrize("name", ["other", "LINES", "lines2", "tmp.db", "1"])
def test_only_configured_collections_can_be_searched(shelf: list[Shelf], name: str) -> None:
    result = execute(tool(), {"collection_name": name, "texts": ["water"]})

    assert result.as_json() == {"success": False, "error": "query failed: collection not found"}
    assert shelf == []


@pytest.mark.parametrize("collections", [["lines"], ["lines", "songs"]])
def test_the_schema_lists_the_collections_to_choose_from(collections: list[str]) -> None:
    settings = RetrieverSettings.from_env({"RETRIEVER_TOOL_COLLECTIONS": ",".join(reversed(collections))})
    made = RetrieverTool(settings)

    answer = execute(made, {"texts": ["water"]})

    assert made.input_schema["required"] == ["collection_name", "texts"]
    assert made.input_schema["properties"]["collection_name"]["enum"] == collections
    assert answer.error == "collection_name field is required and must be a string"


def test_the_schema_of_a_whole_database_lists_no_collections() -> None:
    settings = RetrieverSettings.from_env({"RETRIEVER_TOOL_COLLECTIONS": "*", "MILVUS_ADDRESS": "localhost:1"})

    assert RetrieverTool(settings).input_schema == INPUT_SCHEMA


BAD_NAME = "must be 1 to 255 letters, digits, '_', '-' or '.', not starting with '-' or '.'"

BAD_INPUTS: list[tuple[Any, str]] = [
    ({"collection_name": "", "texts": ["a"]}, "collection_name field is required and must be a string"),
    ({"collection_name": "../x.db", "texts": ["a"]}, f"collection_name field {BAD_NAME}"),
    (ask("a", partition_name=5), "partition_name field must be a string"),
    (ask("a", partition_name='" or 1 == 1'), f"partition_name field {BAD_NAME}"),
    ({"collection_name": "lines"}, "texts field must be an array of strings"),
    (ask(), "texts field must contain at least one string"),
    (ask(*"a" * 101), "texts field must contain at most 100 strings"),
    ({"collection_name": "lines", "texts": ["a", None]}, "texts[1] must be a string"),
    (ask("a", " \n\t"), "texts[1] must not be empty"),
    (ask("x" * 20_001), "texts[0] must have at most 20000 characters"),
    (ask("a", top_k="5"), "top_k field must be an integer"),
    (ask("a", top_k=True), "top_k field must be an integer"),
    (ask("a", top_k=101), "top_k field must be between 1 and 100"),
    (ask("a", filters={}), "unknown field: filters"),
]


@pytest.mark.parametrize(("data", "error"), BAD_INPUTS, ids=lambda value: str(value)[:50])
def test_an_invalid_input_is_an_error_in_python_and_over_http(shelf: list[Shelf], data: Any, error: str) -> None:
    registry = registered(tool())

    result = registry.execute_now(ToolInput("retriever", data))

    assert result.as_json() == {"success": False, "error": error}
    assert run_tool(registry, "retriever", {"input": data}) == (400, {"success": False, "error": error})
    assert shelf == []


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ([], "the request body must be a JSON object"),
        ({}, "input field is required and must be an object"),
        ({"input": []}, "input field is required and must be an object"),
        ({"input": {}, "name": "x"}, "unknown field: name"),
    ],
)
def test_an_invalid_body_is_an_error(body: Any, error: str) -> None:
    assert run_tool(registered(tool()), "retriever", body) == (400, {"success": False, "error": error})


def test_an_unknown_tool_is_a_404() -> None:
    status, body = run_tool(Registry(), "shovel", {"input": {}})

    assert (status, body) == (404, {"success": False, "error": "unknown tool: shovel; registered: none"})


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        ("CollectionNotFoundError", 502, "query failed: collection not found"),
        ("PartitionNotFoundError", 404, "query failed: partition not found"),
        ("KnowledgeBaseNotFoundError", 502, "query failed: the shelf is no good"),
        ("ThrottledError", 429, "query failed: the shelf is no good"),
        ("DimensionMismatchError", 500, "query failed: the shelf is no good"),
    ],
)
def test_an_error_of_the_search_has_its_usual_status(error: str, status: int, text: str) -> None:
    answer = run_tool(registered(tool(error=error)), "retriever", {"input": ask("a")})

    assert answer == (status, {"success": False, "error": text})


def test_an_invalid_configuration_of_an_engine_is_a_500() -> None:
    settings = RetrieverSettings({"lines": SearchedCollection({"type": "shelf", "shelves": 3})})

    status, body = run_tool(registered(RetrieverTool(settings)), "retriever", {"input": ask("a")})

    assert status == 500
    assert body["error"].startswith("query failed: The backend shelf cannot be created")


names = st.text(max_size=5) | st.sampled_from(["collection_name", "texts", "top_k", "partition_name"])
members = st.none() | st.integers() | st.text() | st.lists(st.text() | st.integers())


@given(st.dictionaries(names, members, max_size=4))
def test_any_input_is_valid_or_an_error_that_names_the_field(data: dict[str, Any]) -> None:
    refusal = None
    try:
        request = RetrieverRequest.parse(data)
    except ToolError as error:
        refusal = str(error)

    assert refusal is None or re.match(r"(texts|top_k|collection_name|partition_name|unknown)\b", refusal)
    if refusal is None:
        assert 1 <= request.top_k <= 100
        assert all(text == clean(text) and text for text in request.texts)
        assert " ".join(request.texts).encode()


def test_whole_floats_and_empty_partitions_are_accepted() -> None:
    request = RetrieverRequest.parse(ask("a", top_k=5.0, partition_name=""))

    assert (request.top_k, request.partition_name) == (5, None)


@pytest.mark.parametrize(
    ("seconds", "text"), [(1.2, "1.2s"), (2.14, "2.1s"), (0.0123, "0.012s"), (0.0, "0.000s"), (75.0, "75.0s")]
)
def test_times_are_seconds(seconds: float, text: str) -> None:
    assert execution_time(seconds) == text


class TestSettings:
    def test_without_any_the_functions_knowledge_base_is_the_collection(self) -> None:
        settings = RetrieverSettings.from_env({"KNOWLEDGE_BASE_ID": "ABCDEFGHIJ", "RETRIEVAL_TIMEOUT_SECONDS": "3"})

        assert settings.find("ABCDEFGHIJ") == SearchedCollection(
            {"type": "bedrock", "knowledge_base_id": "ABCDEFGHIJ", "timeout_seconds": 3.0}, "corpus", in_registry=True
        )
        assert settings.find("KLMNOPQRST") is None

    def test_restrictions_of_searches_apply_to_the_tool(self) -> None:
        env = {"KNOWLEDGE_BASE_ID": "ABCDEFGHIJ", "DATA_SOURCE_ID": "KLMNOPQRST", "SEARCH_TYPE": "semantic"}

        found = RetrieverSettings.from_env(env).find("ABCDEFGHIJ")

        assert found is not None
        assert (found.backend["data_source_id"], found.backend["search_type"]) == ("KLMNOPQRST", "SEMANTIC")

    def test_a_milvus_of_the_environment_has_the_named_collections(self) -> None:
        env = {
            "MILVUS_ADDRESS": "milvus:19530",
            "MILVUS_USERNAME": "root",
            "MILVUS_PASSWORD": "secret",
            "MILVUS_DATABASE": "shop",
            "RETRIEVER_TOOL_COLLECTIONS": "xmidas, docs",
            "RETRIEVER_TOOL_EMBEDDING": "onnx:/models/mini",
        }

        settings = RetrieverSettings.from_env(env)

        assert sorted(settings.collections) == ["docs", "xmidas"]
        assert settings.find("xmidas") == SearchedCollection(
            {
                "type": "milvus",
                "uri": "http://milvus:19530",
                "token": "root:secret",
                "database": "shop",
                "embedding": "onnx:/models/mini",
                "collection_name": "xmidas",
            }
        )

    @pytest.mark.parametrize(
        ("secret", "token"),
        [
            ('{"username": "root", "password": "s3cret", "host": "milvus"}', "root:s3cret"),
            ("an-api-key\n", "an-api-key"),
            ("1234", "1234"),
        ],
    )
    def test_the_login_of_milvus_can_be_a_secret(self, secret: str, token: str) -> None:
        with mock_aws():
            arn = boto3.client("secretsmanager", region_name="eu-west-1").create_secret(
                Name="milvus", SecretString=secret
            )["ARN"]
            env = {"MILVUS_ADDRESS": "milvus:19530", "MILVUS_SECRET": arn, "RETRIEVER_TOOL_COLLECTIONS": "xmidas"}

            found = RetrieverSettings.from_env(env).find("xmidas")

        assert found is not None
        assert found.backend["token"] == token

    @pytest.mark.parametrize(
        ("secret", "says"),
        [
            ("{}", "must be a JSON object with username and password"),
            ('{"username": "root", "password": ""}', "must be a JSON object"),
            (" ", "must be a JSON object"),
            (None, "could not be read"),
        ],
    )
    def test_a_secret_without_a_login_is_named(self, secret: str | None, says: str) -> None:
        arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:milvus-AbCdEf"
        with mock_aws():
            if secret is not None:
                arn = boto3.client("secretsmanager", region_name="eu-west-1").create_secret(
                    Name="milvus", SecretString=secret
                )["ARN"]

            with pytest.raises(errors.ConfigurationError, match=f"MILVUS_SECRET {says}"):
                RetrieverSettings.from_env(
                    {"MILVUS_ADDRESS": "milvus:19530", "MILVUS_SECRET": arn, "RETRIEVER_TOOL_COLLECTIONS": "xmidas"}
                )

    def test_the_login_goes_to_no_other_server_than_the_address(self) -> None:
        collections: dict[str, dict[str, Any]] = {
            "docs": {"type": "cached", "backend": {"type": "milvus", "collection_name": "docs"}},
            "papers": {"type": "milvus", "uri": "http://another:19530"},
        }
        env = {
            "MILVUS_ADDRESS": "milvus:19530",
            "MILVUS_PASSWORD": "key",
            "RETRIEVER_TOOL_COLLECTIONS": json.dumps(collections),
        }

        settings = RetrieverSettings.from_env(env)

        own = {"type": "milvus", "uri": "http://milvus:19530", "token": "key", "collection_name": "docs"}
        assert settings.collections["docs"].backend == {"type": "cached", "backend": own}
        assert settings.collections["papers"].backend == {**collections["papers"], "collection_name": "papers"}

    def test_every_collection_is_searched_only_where_that_is_said(self) -> None:
        env = {"MILVUS_ADDRESS": "localhost:19530"}

        assert RetrieverSettings.from_env(env).find("xmidas") is None
        everything = RetrieverSettings.from_env({**env, "RETRIEVER_TOOL_COLLECTIONS": "*"})

        found = everything.find("xmidas")
        assert found is not None
        assert found.backend["collection_name"] == "xmidas"

    def test_collections_can_be_of_several_engines(self) -> None:
        collections = {
            "papers": {},
            "notes": {"type": "chroma", "path": "chroma", "collection_name": "n", "partition_key": "folder"},
        }
        env = {
            "RETRIEVER_TOOL_ENGINE": "chroma",
            "RETRIEVER_TOOL_ENGINE_CONFIG": '{"path": "books"}',
            "RETRIEVER_TOOL_COLLECTIONS": json.dumps(collections),
        }

        settings = RetrieverSettings.from_env(env)

        assert settings.find("papers") == SearchedCollection(
            {"type": "chroma", "path": "books", "collection_name": "papers"}, "corpus"
        )
        assert settings.find("notes") == SearchedCollection(
            {"type": "chroma", "path": "chroma", "collection_name": "n"}, "folder"
        )

    @pytest.mark.parametrize(
        ("env", "message"),
        [
            ({"RETRIEVER_TOOL_COLLECTIONS": "{"}, "RETRIEVER_TOOL_COLLECTIONS"),
            ({"RETRIEVER_TOOL_COLLECTIONS": '{"a": 1}'}, "RETRIEVER_TOOL_COLLECTIONS.*each collection"),
            ({"RETRIEVER_TOOL_COLLECTIONS": "a/b"}, "cannot be a collection's name"),
            ({"RETRIEVER_TOOL_ENGINE_CONFIG": "[]"}, "RETRIEVER_TOOL_ENGINE_CONFIG.*JSON object"),
            ({"RETRIEVER_TOOL_ENGINE": "shelf", "RETRIEVER_TOOL_COLLECTIONS": "*"}, "searched only with"),
            ({"RETRIEVAL_TIMEOUT_SECONDS": "soon"}, "RETRIEVAL_TIMEOUT_SECONDS"),
        ],
    )
    def test_an_unusable_setting_is_named(self, env: dict[str, str], message: str) -> None:
        with pytest.raises(errors.ConfigurationError, match=message):
            RetrieverSettings.from_env(env)

    def test_a_tool_needs_a_collection(self) -> None:
        assert registry_from_env({}).list() == []

    @pytest.mark.parametrize(
        ("address", "uri"),
        [
            ("localhost:19530", "http://localhost:19530"),
            ("https://cloud.example", "https://cloud.example"),
            ("data/milvus.db", "data/milvus.db"),
            ("unix:/tmp/milvus.sock", "unix:/tmp/milvus.sock"),
        ],
    )
    def test_an_address_without_a_scheme_is_http(self, address: str, uri: str) -> None:
        assert MilvusConfig(address).uri == uri

    def test_a_password_is_not_shown(self) -> None:
        assert "secret" not in repr(MilvusConfig(password="secret"))

    def test_a_password_alone_is_an_api_key(self) -> None:
        assert (MilvusConfig(password="key").token, MilvusConfig().token) == ("key", None)
