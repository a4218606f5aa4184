"""`ragstack mcp`, called with the official client: its tools call the HTTP API."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from ragstack_common.http.mcp import build_server
from ragstack_local.api.http_operations import HttpOperations
from ragstack_local.connection.address import Address
from ragstack_local.errors import ApiError
from tests.ragstack_local.support import RAGSTACK, Api
from tests.support.mcp_text import text_of

SEARCH: dict[str, Any] = {"slices": [], "inferred_filter": None, "corpora": [], "best_relevance": None}
SOURCES = {"question": "Why?", "sources": [], "complete": True, "retrieval_ms": 1.0, **SEARCH}
DONE = {
    "question": "Why?",
    "answer": "The documents do not say.",
    "answered": False,
    "sentences": [],
    "sources": [],
    "answerer": {"provider": "none"},
    "usage": {},
    "timings": {"retrieval_ms": 1.0, "total_ms": 2.0},
    "complete": True,
    **SEARCH,
}


def event(name: str, data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


def server_for(api: Api) -> Any:
    return build_server(HttpOperations(lambda: Address(api.url)))


async def test_without_a_stack_each_call_says_how_to_start_one(tmp_path: Path) -> None:
    errors = tmp_path / "errors"
    with errors.open("w") as stderr:
        command = StdioServerParameters(
            command=str(RAGSTACK), args=["mcp"], env={"RAGSTACK_DATA": str(tmp_path), "PYTHONPATH": str(Path.cwd())}
        )
        async with Client(stdio_client(command, errlog=stderr)) as client:
            tools = (await client.list_tools()).tools
            result = await client.call_tool("search", {"query": "leave"})

    assert [tool.name for tool in tools][:2] == ["search", "ask"]
    assert result.is_error
    assert text_of(result).startswith("No local stack is running: start one with `ragstack up`")
    assert errors.read_text().startswith("No local stack is running")


async def test_an_answer_is_read_from_the_stream_of_the_api(api: Api) -> None:
    new = event("new", {"of": "a later version"})
    api.will_stream(
        event("sources", SOURCES), b": waiting\n\n", new, event("token", {"text": "The "}), event("done", DONE)
    )

    async with Client(server_for(api)) as client:
        result = await client.call_tool("ask", {"question": "Why?", "corpus_filter": "people"})

    assert text_of(result) == "The documents do not say."
    assert api.requests[0]["body"] == {"question": "Why?", "corpus_filter": "people"}


async def test_tools_in_another_form_are_left_out(api: Api) -> None:
    api.will_answer(200, {"tools": [{"name": "retriever"}]})

    async with Client(server_for(api)) as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool("retriever", {"texts": ["leave"]})

    assert "retriever" not in {tool.name for tool in tools}
    assert text_of(result).startswith("The API answered in another form than ToolList")


async def test_an_error_of_a_tool_is_passed_on_word_for_word(api: Api) -> None:
    api.will_answer(400, {"success": False, "error": "texts[1] must be a string"})

    with pytest.raises(ApiError, match=r"^texts\[1\] must be a string$"):
        await HttpOperations(lambda: Address(api.url)).run_tool("retriever", {"texts": ["a", 1]})
