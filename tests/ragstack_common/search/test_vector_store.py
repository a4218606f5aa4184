"""Connection strings, and the backend that they make."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.core.errors import ConfigurationError
from ragstack_common.search import SearchRequest, create_retrieval_backend
from ragstack_common.search.engines.bedrock import BedrockBackend
from ragstack_common.search.vector_store import VectorStoreBackend, engine_config
from tests.support.spans import recorded


@pytest.mark.parametrize(
    ("connection_string", "config"),
    [
        ("chroma:///data/my%20store#books", {"type": "chroma", "path": "/data/my store", "collection_name": "books"}),
        ("chroma:store#books", {"type": "chroma", "path": "store", "collection_name": "books"}),
        (
            "chroma+https://example.com:8443/main#books%3Fx",
            {"type": "chroma", "host": "example.com", "port": 8443, "ssl": True, "database": "main"}
            | {"collection_name": "books?x"},
        ),
        (
            "chroma://127.0.0.1?hybrid=true&timeout_seconds=2.5&embedding=onnx:models/mini%23mean#books",
            {"type": "chroma", "host": "127.0.0.1", "collection_name": "books", "hybrid": True}
            | {"timeout_seconds": 2.5, "embedding": "onnx:models/mini#mean"},
        ),
        ("milvus:///data/lite.db#books", {"type": "milvus", "uri": "/data/lite.db", "collection_name": "books"}),
        (
            "milvus://root:a%40b@milvus.local:19530/library#books",
            {"type": "milvus", "uri": "http://milvus.local:19530", "token": "root:a@b", "database": "library"}
            | {"collection_name": "books"},
        ),
        (
            "milvus+https://:key@cloud:443#books",
            {"type": "milvus", "uri": "https://cloud:443", "token": "key", "collection_name": "books"},
        ),
        ("bedrock://ABCDEFGHIJ", {"type": "bedrock", "knowledge_base_id": "ABCDEFGHIJ"}),
        (
            "bedrock://ABCDEFGHIJ/KLMNOPQRST",
            {"type": "bedrock", "knowledge_base_id": "ABCDEFGHIJ", "data_source_id": "KLMNOPQRST"},
        ),
    ],
)
def test_a_connection_string_is_the_configuration_of_an_engine(connection_string: str, config: dict[str, Any]) -> None:
    assert engine_config(connection_string) == config


@pytest.mark.parametrize(
    "connection_string",
    [
        "",
        "books",
        "postgres://host/table",
        "chroma:///data/store",
        "chroma:#books",
        "chroma://host:many#books",
        "milvus://host:19530",
        "bedrock://",
        "chroma:store#books?hybrid=true",
        "chroma://user:password@host#books",
        "milvus://host:99999#books",
        "bedrock://ABCDEFGHIJ/KLMNOPQRST/more",
        "bedrock+https://ABCDEFGHIJ",
        "bedrock://ABCDEFGHIJ#books",
        "bedrock://arn:aws:bedrock:eu-west-1:123456789012:knowledge-base/ABCDEFGHIJ",
        None,
        7,
    ],
)
def test_anything_else_is_an_error_that_shows_the_forms(connection_string: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"chroma:///FOLDER#COLLECTION.*bedrock://KNOWLEDGE_BASE_ID"):
        engine_config(connection_string)


@given(st.text())
def test_an_error_never_quotes_the_connection_string(text: str) -> None:
    message = ""
    try:
        engine_config(f"milvus://user:secret-{text}")
    except ConfigurationError as error:
        message = str(error)

    assert "secret-" not in message


def test_the_factory_makes_the_engine_of_a_connection_string() -> None:
    backend = create_retrieval_backend(
        {"type": "vector_store", "connection_string": "bedrock://ABCDEFGHIJ/KLMNOPQRST?search_type=SEMANTIC"}
    )

    assert isinstance(backend, VectorStoreBackend)
    engine = backend.backend
    assert isinstance(engine, BedrockBackend)
    assert (engine.engine.knowledge_base_id, engine.engine.data_source_id) == ("ABCDEFGHIJ", "KLMNOPQRST")
    assert engine.engine.search_type == "SEMANTIC"
    assert (backend.name, backend.max_top_k) == ("bedrock", engine.max_top_k)


def test_options_of_the_configuration_win(tmp_path: Path) -> None:
    backend = VectorStoreBackend(f"chroma://{tmp_path}?hybrid=false#books", hybrid=True)

    assert backend.backend.hybrid  # type: ignore[attr-defined]


@pytest.mark.parametrize("query", ["wrong_option=1", "timeout_seconds=0"])
def test_an_option_that_the_engine_does_not_take_is_an_error(query: str) -> None:
    with pytest.raises(ConfigurationError, match="bedrock"):
        VectorStoreBackend(f"bedrock://ABCDEFGHIJ?{query}")


@pytest.mark.integration
def test_everything_passes_to_the_engine_under_one_span(tmp_path: Path) -> None:
    async def used() -> list[Any]:
        async with VectorStoreBackend(f"chroma://{tmp_path}/new#books") as backend:
            await backend.index([{"id": "1", "content": "Herons stand."}, {"id": "2", "content": "Ospreys dive."}])
            with recorded() as heard:
                outcome = await backend.search(SearchRequest("herons", 1, with_embeddings=True))
                spans = [*heard.by_name()]
            batch = await backend.retrieve_batch(["herons", "ospreys"], 1)
            streamed = [chunk.chunk_id async for chunk in backend.stream("herons", limit=1)]
            return [
                *(outcome.chunks[0].chunk_id, outcome.chunks[0].embedding is not None, spans),
                [chunks[0].chunk_id for chunks in batch],
                *(streamed, (await backend.get_by_id("2")).content, await backend.health_check()),  # type: ignore[union-attr]
            ]

    assert asyncio.run(used()) == ["1", True, ["retrieve chroma"], ["1", "2"], ["1"], "Ospreys dive.", True]
