"""Assistants call the tools of the stack: as a child process `ragstack mcp`, and over HTTP."""

from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from tests.e2e.support import ROOT, LocalStack
from tests.ragstack_local.support import RAGSTACK
from tests.support.mcp_text import text_of

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("local stack")]

QUESTION = "How many days of leave can I carry over?"
TOOLS = ["search", "ask", "list_corpora", "list_versions", "get_document_status", "retriever"]


async def test_an_assistant_starts_the_server_and_calls_its_tools(stack: LocalStack, handbook: Path) -> None:
    env = {**stack.env, "PYTHONPATH": str(ROOT)}
    messages: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        messages.append(message)

    async with Client(stdio_client(StdioServerParameters(command=str(RAGSTACK), args=["mcp"], env=env))) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        answer = await client.call_tool("ask", {"question": QUESTION}, progress_callback=note)
        found = await client.call_tool("search", {"query": QUESTION, "top_k": 1})
        source = found.structured_content["results"][0]["source"]
        status = await client.call_tool("get_document_status", {"document": source})
        corpora = await client.call_tool("list_corpora", {})
        versions = await client.call_tool("list_versions", {})
        retrieved = await client.call_tool("retriever", {"texts": [QUESTION], "top_k": 1})
        failed = await client.call_tool("search", {"query": QUESTION, "metadata_filter": {"a": {"$like": "b"}}})

    assert tools == TOOLS
    assert Path(source).name == "leave-and-holidays-2026.md"
    assert source in text_of(answer).partition("Sources:")[2]
    assert messages[0] is not None
    assert messages[0].endswith("passages")
    assert text_of(found).startswith(f"[1] {source} (corpus people; version 2026; relevance ")
    assert text_of(status) == f"{source}: INDEXED, searches find it."
    assert "- people: " in text_of(corpora)
    assert '- "2026": ' in text_of(versions)
    assert retrieved.structured_content["results"][0]["metadata"]["source"] == source
    assert (failed.is_error, text_of(failed).partition(":")[0]) == (True, "InvalidFilter")


async def test_an_assistant_calls_the_same_tools_over_http(stack: LocalStack, handbook: Path) -> None:
    for url in (stack.connection.api_url, stack.connection.answers_url):
        async with Client(f"{url}/mcp") as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            answer = await client.call_tool("ask", {"question": QUESTION})
            status = await client.call_tool(
                "get_document_status", {"document": "samples/documents/people/leave-and-holidays-2026.md"}
            )
            retrieved = await client.call_tool("retriever", {"texts": [QUESTION], "top_k": 1})

        assert tools == TOOLS
        assert "leave-and-holidays-2026.md" in text_of(answer)
        assert "INDEXED" in text_of(status)
        assert retrieved.structured_content["count"] == 1
