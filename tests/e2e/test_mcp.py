"""An assistant starts `ragstack mcp` and calls the tools of the stack."""

from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from tests.e2e.support import ROOT, LocalStack
from tests.ragstack_local.support import RAGSTACK

pytestmark = pytest.mark.e2e

QUESTION = "How many days of leave can I carry over?"


@pytest.mark.asyncio
async def test_an_assistant_searches_lists_and_looks_at_documents(stack: LocalStack, handbook: Path) -> None:
    env = {**stack.env, "PYTHONPATH": str(ROOT)}
    async with Client(stdio_client(StdioServerParameters(command=str(RAGSTACK), args=["mcp"], env=env))) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("search", {"query": QUESTION, "top_k": 1})
        source = found.structured_content["results"][0]["source"]
        status = await client.call_tool("get_document_status", {"document": source})
        corpora = await client.call_tool("list_corpora", {})
        versions = await client.call_tool("list_versions", {})
        retrieved = await client.call_tool("retriever", {"texts": [QUESTION], "top_k": 1})
        failed = await client.call_tool("search", {"query": QUESTION, "metadata_filter": {"a": {"$like": "b"}}})

    assert tools == ["search", "ask", "list_corpora", "list_versions", "get_document_status", "retriever"]
    assert Path(source).name == "leave-and-holidays-2026.md"
    assert found.content[0].text.startswith(f"[1] {source} (")
    assert status.content[0].text == f"{source}: INDEXED, searches find it."
    assert "- people: " in corpora.content[0].text
    assert '- "2026": ' in versions.content[0].text
    assert retrieved.structured_content["results"][0]["metadata"]["source"] == source
    assert (failed.is_error, failed.content[0].text.partition(":")[0]) == (True, "InvalidFilter")
